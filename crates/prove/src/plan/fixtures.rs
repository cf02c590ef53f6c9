//! Files that a server may want to find in its workspace.
//!
//! Texts are always there. What is of a kind of its own is made where the tools speak of it, two
//! of each: without it, no tool for that kind of file can be called at all.

mod office;

use std::io;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;

use super::synth::KEYS;
use crate::client::Tool;

/// A kind of file that has to be made for its tools.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    Spreadsheet,
    Document,
    Database,
    Picture,
    Repository,
}

/// How to tell from what is said about a tool, and what its files are called.
const KINDS: [(Kind, &[&str], &str); 5] = [
    (
        Kind::Spreadsheet,
        &["xlsx", "excel", "spreadsheet", "workbook", "worksheet"],
        ".xlsx",
    ),
    (Kind::Document, &["docx", "word document"], ".docx"),
    (Kind::Database, &["sqlite", ".db"], ".db"),
    (Kind::Picture, &["png", "image file", "image_path"], ".png"),
    (
        Kind::Repository,
        &["git repo", "repo_path", "git_status", "git working"],
        "-repo",
    ),
];

const TEXTS: [(&str, &str); 4] = [
    (".json", ".json"),
    (".csv", ".csv"),
    (".md", ".md"),
    (".yaml", ".yaml"),
];

/// What a tool's files are called, by what it says about them.
pub fn ending(tool: &str, schema: &Value) -> &'static str {
    let text = format!("{tool} {schema}").to_ascii_lowercase();
    let own = KINDS
        .iter()
        .find(|(_, words, _)| words.iter().any(|word| text.contains(word)));
    let written = TEXTS.iter().find(|(word, _)| text.contains(word));
    match (own, written) {
        (Some((_, _, ending)), _) => ending,
        (None, Some((_, ending))) => ending,
        (None, None) => ".txt",
    }
}

/// The kinds that the tools speak of.
pub fn kinds(tools: &[Tool]) -> Vec<Kind> {
    let mut all: Vec<Kind> = Vec::new();
    for tool in tools {
        let ending = ending(&tool.name, &tool.schema);
        let own = KINDS.iter().filter(|(_, _, own)| *own == ending);
        all.extend(own.map(|(kind, _, _)| *kind));
    }
    all.sort();
    all.dedup();
    all
}

/// Whether a file of the workspace is one of ours, and so says nothing about the server.
pub fn is_ours(path: &str) -> bool {
    KEYS[..2].iter().any(|word| {
        path.strip_prefix(word)
            .is_some_and(|rest| rest.starts_with('.') || rest.starts_with("-repo"))
    })
}

/// Two files of each common kind of text.
pub fn texts(workspace: &Path) -> io::Result<()> {
    for word in &KEYS[..2] {
        for (ending, content) in [
            (".txt", format!("text of {word}\n")),
            (".md", format!("# {word}\n\ntext of {word}\n")),
            (".json", format!("{{\"name\": \"{word}\"}}\n")),
            (".csv", format!("name,count\n{word},1\n")),
            (".yaml", format!("name: {word}\n")),
        ] {
            std::fs::write(workspace.join(format!("{word}{ending}")), content)?;
        }
    }
    Ok(())
}

/// Two of this kind. The note says what could not be made.
pub fn make(workspace: &Path, kind: Kind) -> io::Result<Option<String>> {
    for word in &KEYS[..2] {
        let at = |ending: &str| workspace.join(format!("{word}{ending}"));
        match kind {
            Kind::Spreadsheet => std::fs::write(at(".xlsx"), office::xlsx(word))?,
            Kind::Document => std::fs::write(at(".docx"), office::docx(word))?,
            Kind::Picture => std::fs::write(at(".png"), png())?,
            Kind::Database => database(&at(".db"), word)?,
            Kind::Repository => {
                if let Err(why) = repository(&at("-repo"), word) {
                    return Ok(Some(format!("no git repository could be made: {why}")));
                }
            }
        }
    }
    Ok(None)
}

/// One table with one row.
fn database(path: &Path, word: &str) -> io::Result<()> {
    let made = rusqlite::Connection::open(path).and_then(|db| {
        db.execute_batch("CREATE TABLE items (name TEXT PRIMARY KEY, count INTEGER NOT NULL)")?;
        db.execute("INSERT INTO items VALUES (?1, 1)", [word])
    });
    made.map(drop).map_err(io::Error::other)
}

/// One commit, the same in every run.
fn repository(folder: &Path, word: &str) -> io::Result<()> {
    std::fs::create_dir_all(folder)?;
    std::fs::write(
        folder.join(format!("{word}.txt")),
        format!("text of {word}\n"),
    )?;
    for arguments in [
        &["init", "--quiet", "--initial-branch=main"][..],
        &["config", "user.name", "toctou"],
        &["config", "user.email", "toctou@example.org"],
        &["add", "."],
        &["commit", "--quiet", "--message=first"],
    ] {
        let run = Command::new("git")
            .args(arguments)
            .current_dir(folder)
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("GIT_CONFIG_SYSTEM", "/dev/null")
            .env("GIT_AUTHOR_DATE", "2031-02-03T04:05:06Z")
            .env("GIT_COMMITTER_DATE", "2031-02-03T04:05:06Z")
            .env_remove("GIT_DIR")
            .env_remove("GIT_WORK_TREE")
            .env_remove("GIT_INDEX_FILE")
            .stdin(Stdio::null())
            .output()?;
        if !run.status.success() {
            let said = String::from_utf8_lossy(&run.stderr).trim().to_owned();
            return Err(io::Error::other(format!("git {}: {said}", arguments[0])));
        }
    }
    Ok(())
}

/// One black point.
fn png() -> Vec<u8> {
    let mut out = b"\x89PNG\r\n\x1a\n".to_vec();
    // Width, height, eight bits, grey; a filter and a point in a block that is not compressed.
    let head = [0, 0, 0, 1, 0, 0, 0, 1, 8, 0, 0, 0, 0];
    let data = [
        0x78, 0x01, 0x01, 0x02, 0x00, 0xfd, 0xff, 0x00, 0x00, 0x00, 0x02, 0x00, 0x01,
    ];
    for (kind, bytes) in [(b"IHDR", &head[..]), (b"IDAT", &data[..]), (b"IEND", &[])] {
        let mut chunk = kind.to_vec();
        chunk.extend(bytes);
        out.extend((bytes.len() as u32).to_be_bytes());
        out.extend(&chunk);
        out.extend(office::crc32(&chunk).to_be_bytes());
    }
    out
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn tool(name: &str, schema: Value) -> Tool {
        Tool {
            name: name.to_owned(),
            description: String::new(),
            schema,
            read_only: None,
        }
    }

    #[test]
    fn kinds_come_from_what_tools_say() {
        let path =
            |text: &str| json!({"properties": {"path": {"type": "string", "description": text}}});
        let tools = [
            tool("write_data_to_excel", path("Path of the file")),
            tool(
                "git_status",
                json!({"properties": {"repo_path": {"type": "string"}}}),
            ),
            tool("add_note", path("Where")),
        ];
        assert_eq!(kinds(&tools), [Kind::Spreadsheet, Kind::Repository]);
        assert_eq!(ending("add_row", &path("a .csv file")), ".csv");
        assert_eq!(ending("add_note", &path("Where")), ".txt");
    }

    /// Programs that know the formats take them.
    #[test]
    fn what_is_made_is_valid() {
        let folder = tempfile::tempdir().expect("a folder");
        for (kind, _, _) in KINDS {
            assert_eq!(make(folder.path(), kind).expect("made"), None, "{kind:?}");
        }
        let script = "import sys, zipfile, sqlite3, struct, zlib, os, xml.dom.minidom as dom\n\
            os.chdir(sys.argv[1])\n\
            for name in ('alpha.xlsx', 'bravo.docx'):\n\
            \x20   with zipfile.ZipFile(name) as archive:\n\
            \x20       assert archive.testzip() is None\n\
            \x20       for part in archive.namelist(): dom.parseString(archive.read(part))\n\
            assert sqlite3.connect('alpha.db').execute('SELECT * FROM items').fetchall() == [('alpha', 1)]\n\
            data = open('alpha.png', 'rb').read()\n\
            at = 8\n\
            while at < len(data):\n\
            \x20   size, = struct.unpack('>I', data[at:at + 4])\n\
            \x20   chunk = data[at + 4:at + 8 + size]\n\
            \x20   assert struct.unpack('>I', data[at + 8 + size:at + 12 + size]) == (zlib.crc32(chunk),)\n\
            \x20   if chunk[:4] == b'IDAT': assert zlib.decompress(chunk[4:]) == b'\\0\\0'\n\
            \x20   at += 12 + size\n";
        let checked = Command::new("python3")
            .args(["-c", script])
            .arg(folder.path())
            .output()
            .expect("Python");
        assert!(
            checked.status.success(),
            "{}",
            String::from_utf8_lossy(&checked.stderr)
        );
        let log = Command::new("git")
            .args(["-C", "alpha-repo", "log", "--format=%H %s"])
            .current_dir(folder.path())
            .output()
            .expect("git");
        let again = tempfile::tempdir().expect("a folder");
        make(again.path(), Kind::Repository).expect("made");
        let same = Command::new("git")
            .args(["-C", "alpha-repo", "log", "--format=%H %s"])
            .current_dir(again.path())
            .output()
            .expect("git");
        assert!(String::from_utf8_lossy(&log.stdout).ends_with(" first\n"));
        assert_eq!(log.stdout, same.stdout);
    }
}
