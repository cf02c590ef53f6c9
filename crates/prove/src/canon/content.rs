//! What a file holds, as a value that can be compared.

use rusqlite::types::ValueRef;
use rusqlite::{Connection, OpenFlags};
use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};

/// Larger files are compared by nothing but their being there.
const LARGEST: usize = 8 << 20;

/// How much of a file can be read.
#[derive(Clone, Debug, PartialEq)]
pub enum Content {
    Json(Value),
    /// Lines of text, each a value of its own if it is JSON.
    Lines(Value),
    Tables(Value),
    /// Nothing that can be compared without knowing the format: a picture, an
    /// archive, whose bytes differ for reasons that nobody can see.
    Opaque,
}

impl Content {
    pub fn of(bytes: &[u8], beside: &Beside<'_>) -> Self {
        if bytes.len() > LARGEST {
            return Self::Opaque;
        }
        if bytes.starts_with(b"SQLite format 3\0") {
            return tables(bytes, beside.wal).map_or(Self::Opaque, Self::Tables);
        }
        let Ok(text) = std::str::from_utf8(bytes) else {
            return Self::Opaque;
        };
        if text.contains('\0') {
            return Self::Opaque;
        }
        if !beside.lines
            && text.trim_start().starts_with(['{', '['])
            && let Ok(value) = serde_json::from_str(text)
        {
            return Self::Json(value);
        }
        let lines = text
            .lines()
            .map(|line| {
                let json = line
                    .starts_with(['{', '['])
                    .then(|| serde_json::from_str(line));
                match json {
                    Some(Ok(value)) => value,
                    _ => Value::String(line.to_owned()),
                }
            })
            .collect();
        Self::Lines(lines)
    }

    pub fn value(&self) -> Value {
        match self {
            Self::Json(value) => json!({ "json": value }),
            Self::Lines(value) => json!({ "lines": value }),
            Self::Tables(value) => json!({ "tables": value }),
            Self::Opaque => json!("a file that cannot be looked into"),
        }
    }

    /// The format in a word, if there is one that a torn write breaks.
    pub fn format(&self) -> Option<&'static str> {
        match self {
            Self::Json(_) => Some("JSON"),
            Self::Tables(_) => Some("SQLite"),
            Self::Lines(Value::Array(lines)) => {
                let all = !lines.is_empty() && lines.iter().all(|line| !line.is_string());
                all.then_some("JSON lines")
            }
            Self::Lines(_) | Self::Opaque => None,
        }
    }
}

/// Files that belong to the one looked at.
#[derive(Clone, Copy, Debug, Default)]
pub struct Beside<'a> {
    /// SQLite's write-ahead log.
    pub wal: Option<&'a [u8]>,
    /// Its name says that each line is a value, even if there is only one.
    pub lines: bool,
}

/// SQLite's own files beside a database: part of it, or of no account.
pub fn belongs_to_database(name: &str) -> bool {
    ["-wal", "-shm", "-journal"]
        .iter()
        .any(|end| name.ends_with(end))
}

/// All rows of all tables. Nothing if it cannot be read.
fn tables(bytes: &[u8], wal: Option<&[u8]>) -> Option<Value> {
    let folder = tempfile::tempdir().ok()?;
    let path = folder.path().join("copy.db");
    std::fs::write(&path, bytes).ok()?;
    if let Some(wal) = wal {
        std::fs::write(folder.path().join("copy.db-wal"), wal).ok()?;
    }
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let db = Connection::open_with_flags(&path, flags).ok()?;
    let mut names: Vec<(String, String)> = Vec::new();
    {
        let mut all = db
            .prepare("SELECT name, coalesce(sql, '') FROM sqlite_master WHERE type = 'table' ORDER BY name")
            .ok()?;
        let mut rows = all.query([]).ok()?;
        while let Some(row) = rows.next().ok()? {
            names.push((row.get(0).ok()?, row.get(1).ok()?));
        }
    }
    // A virtual table's own tables hold its index, in a form that depends on history.
    let hidden: Vec<String> = names
        .iter()
        .filter(|(_, sql)| sql.to_ascii_uppercase().starts_with("CREATE VIRTUAL"))
        .map(|(name, _)| format!("{name}_"))
        .collect();
    let mut out = Map::new();
    for (name, sql) in &names {
        if name.starts_with("sqlite_stat")
            || sql.to_ascii_uppercase().starts_with("CREATE VIRTUAL")
            || hidden.iter().any(|start| name.starts_with(start.as_str()))
        {
            continue;
        }
        let quoted = name.replace('"', "\"\"");
        let mut select = db.prepare(&format!("SELECT * FROM \"{quoted}\"")).ok()?;
        let columns: Vec<String> = select.column_names().map(str::to_owned).collect();
        let mut rows = select.query([]).ok()?;
        let mut list = Vec::new();
        while let Some(row) = rows.next().ok()? {
            let mut item = Map::new();
            for (index, column) in columns.iter().enumerate() {
                item.insert(column.clone(), cell(row.get_ref(index).ok()?));
            }
            list.push(Value::Object(item));
        }
        out.insert(name.clone(), Value::Array(list));
    }
    Some(Value::Object(out))
}

fn cell(value: ValueRef<'_>) -> Value {
    match value {
        ValueRef::Null => Value::Null,
        ValueRef::Integer(number) => json!(number),
        ValueRef::Real(number) => json!(number),
        ValueRef::Text(text) => Value::String(String::from_utf8_lossy(text).into_owned()),
        ValueRef::Blob(bytes) => {
            let digest = Sha256::digest(bytes);
            let short: String = digest[..8]
                .iter()
                .map(|byte| format!("{byte:02x}"))
                .collect();
            Value::String(format!("blob {short}"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_database_is_its_rows() {
        let folder = tempfile::tempdir().expect("folder");
        let path = folder.path().join("a.db");
        let db = Connection::open(&path).expect("open");
        db.execute_batch(
            "PRAGMA journal_mode = wal; CREATE TABLE t (id INTEGER PRIMARY KEY, n TEXT); INSERT INTO t (n) VALUES ('x');",
        )
        .expect("sql");
        let bytes = std::fs::read(&path).expect("read");
        let wal = std::fs::read(folder.path().join("a.db-wal")).expect("read");
        let content = Content::of(
            &bytes,
            &Beside {
                wal: Some(&wal),
                lines: false,
            },
        );
        assert_eq!(
            content,
            Content::Tables(json!({"t": [{"id": 1, "n": "x"}]}))
        );
    }

    #[test]
    fn json_lines_and_the_rest() {
        let of = |bytes: &[u8]| Content::of(bytes, &Beside::default());
        assert_eq!(of(b"{\"a\": 1}"), Content::Json(json!({"a": 1})));
        assert_eq!(of(b"{\"a\":1}\nx"), Content::Lines(json!([{"a": 1}, "x"])));
        assert_eq!(of(b"{\"a\": "), Content::Lines(json!(["{\"a\": "])));
        assert_eq!(of(b"\xff\x00"), Content::Opaque);
    }
}
