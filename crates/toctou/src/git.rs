//! What Git remembers of a folder, read without running anything of it.
//!
//! Blobs are taken as they are stored: no checkout, so no filters, hooks or
//! attributes of the repository come into play, and no links are made.
//! Nothing is fetched.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::path::{Component, Path, PathBuf};
use std::process::{Command, Stdio};

use toctou_source::{Apart, Scratch};

use crate::errors::Error;

/// Of a listing, and of everything that is written.
const MAX_LISTING: u64 = 256 << 20;
const MAX_TOTAL: u64 = 2 << 30;

pub(crate) struct Repo {
    /// Canonical.
    pub(crate) top: PathBuf,
}

/// A file of a commit.
pub(crate) struct Blob {
    pub(crate) path: PathBuf,
    id: String,
    size: u64,
}

impl Repo {
    /// The repository that `folder` is in.
    pub(crate) fn of(folder: &Path) -> Result<Self, Error> {
        let top =
            run(command(folder).args(["rev-parse", "--show-toplevel"])).map_err(
                |fault| match fault {
                    Fault::Missing => fault.into(),
                    Fault::Said(text) => failed(text, Some("`--since` needs a Git repository")),
                },
            )?;
        let top = PathBuf::from(top.trim_end_matches(['\n', '\r']));
        let top = top
            .canonicalize()
            .map_err(|error| Error::Read { path: top, error })?;
        Ok(Self { top })
    }

    /// The commit where the work on what is there now began: the common
    /// ancestor with `name`, so that what others did there since is no news.
    pub(crate) fn commit(&self, name: &str) -> Result<String, Error> {
        let hint = "name a branch, a tag or a commit; in CI, fetch it first: `git fetch origin main` (actions/checkout: `fetch-depth: 0`)";
        let unknown = || failed(format!("there is no commit `{name}`"), Some(hint));
        if name.starts_with('-') || name.contains('\0') {
            return Err(unknown());
        }
        let commit = run(command(&self.top)
            .args(["rev-parse", "--verify", "--quiet", "--end-of-options"])
            .arg(format!("{name}^{{commit}}")))
        .map_err(|fault| match fault {
            Fault::Missing => fault.into(),
            Fault::Said(_) => unknown(),
        })?;
        let commit = hash(&commit).ok_or_else(unknown)?;
        let base = run(command(&self.top).args(["merge-base", &commit, "HEAD"]));
        // Unrelated or cut-off histories have none.
        Ok(base.ok().and_then(|text| hash(&text)).unwrap_or(commit))
    }

    /// The regular files of a commit.
    pub(crate) fn files(&self, commit: &str) -> Result<Vec<Blob>, Error> {
        let listing =
            run(command(&self.top).args(["ls-tree", "-r", "-z", "-l", "--full-tree", commit]))?;
        Ok(listing.split('\0').filter_map(blob).collect())
    }

    /// Writes the files, those that are too large left out.
    pub(crate) fn write(
        &self,
        blobs: &[Blob],
        max_size: u64,
        scratch: &Scratch,
    ) -> Result<(), Error> {
        let blobs: Vec<&Blob> = blobs.iter().filter(|blob| blob.size <= max_size).collect();
        if blobs.iter().map(|blob| blob.size).sum::<u64>() > MAX_TOTAL {
            return Err(failed("the commit holds too much".to_owned(), None));
        }
        let mut git = command(&self.top);
        git.args(["cat-file", "--batch"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        let mut git = Apart::start(&mut git).map_err(|_| Error::from(Fault::Missing))?;
        let (Some(mut stdin), Some(stdout)) = (git.child.stdin.take(), git.child.stdout.take())
        else {
            return Err(failed("no pipe to git".to_owned(), None));
        };
        let ids: Vec<&str> = blobs.iter().map(|blob| blob.id.as_str()).collect();
        let mut reader = BufReader::new(stdout);
        let written = std::thread::scope(|scope| {
            scope.spawn(move || {
                for id in ids {
                    if writeln!(stdin, "{id}").is_err() {
                        break;
                    }
                }
            });
            let written = blobs
                .iter()
                .try_for_each(|blob| one(&mut reader, blob, scratch));
            // Whoever still writes to it finds the pipe closed.
            drop(reader);
            written
        });
        let _ = git.wait();
        written
    }
}

/// One answer of `git cat-file --batch`: a line, the content, a line break.
fn one(reader: &mut impl std::io::BufRead, blob: &Blob, scratch: &Scratch) -> Result<(), Error> {
    let lost = || {
        failed(
            format!("{} cannot be read from the repository", blob.path.display()),
            Some("a partial clone has to fetch it first"),
        )
    };
    let mut head = String::new();
    reader
        .by_ref()
        .take(200)
        .read_line(&mut head)
        .map_err(|_| lost())?;
    if head.trim_end() != format!("{} blob {}", blob.id, blob.size) {
        return Err(lost());
    }
    let mut content = vec![0; blob.size as usize + 1];
    reader.read_exact(&mut content).map_err(|_| lost())?;
    content.pop();
    scratch
        .write(&blob.path, &content)
        .map_err(|error| Error::Write {
            path: scratch.path().join(&blob.path),
            error,
        })
}

/// A line of `git ls-tree -l -z`: mode, type, id, size, tab, path.
fn blob(line: &str) -> Option<Blob> {
    let (head, path) = line.split_once('\t')?;
    let mut words = head.split_ascii_whitespace();
    let (mode, kind) = (words.next()?, words.next()?);
    let path = PathBuf::from(path);
    // No links, no submodules, and nothing that leads out.
    let plain = path
        .components()
        .all(|part| matches!(part, Component::Normal(_)));
    (mode.starts_with("100") && kind == "blob" && plain).then_some(())?;
    Some(Blob {
        id: hash(words.next()?)?,
        size: words.next()?.parse().ok()?,
        path,
    })
}

fn hash(text: &str) -> Option<String> {
    let text = text.trim();
    let is_hash = text.len() >= 40 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_hash.then(|| text.to_owned())
}

/// `git`, with everything turned off that a repository can make it run.
fn command(folder: &Path) -> Command {
    let mut git = Command::new("git");
    git.arg("-C")
        .arg(folder)
        .args([
            "-c",
            "core.fsmonitor=false",
            "-c",
            "core.hooksPath=/dev/null",
        ])
        .arg("--no-pager")
        .stdin(Stdio::null())
        .env("GIT_TERMINAL_PROMPT", "0")
        .env("GIT_OPTIONAL_LOCKS", "0")
        .env("GIT_NO_LAZY_FETCH", "1")
        .env("GIT_NO_REPLACE_OBJECTS", "1")
        .env("LC_ALL", "C");
    // Set inside of hooks, and meant for another folder.
    for name in ["GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_PREFIX"] {
        git.env_remove(name);
    }
    git
}

enum Fault {
    Missing,
    Said(String),
}

impl From<Fault> for Error {
    fn from(fault: Fault) -> Self {
        match fault {
            Fault::Missing => failed(
                "git was not found".to_owned(),
                Some("install Git, and see that it is on PATH"),
            ),
            Fault::Said(text) => failed(text, None),
        }
    }
}

fn failed(message: String, hint: Option<&'static str>) -> Error {
    Error::Since { message, hint }
}

/// What a command writes, if it succeeds. Names that are not Unicode are passed over.
fn run(git: &mut Command) -> Result<String, Fault> {
    let said = |error: std::io::Error| Fault::Said(format!("git: {error}"));
    git.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut git = Apart::start(git).map_err(|_| Fault::Missing)?;
    let (Some(stdout), Some(stderr)) = (git.child.stdout.take(), git.child.stderr.take()) else {
        return Err(Fault::Said("no pipe to git".to_owned()));
    };
    let complaint = std::thread::spawn(move || {
        let mut text = Vec::new();
        let _ = stderr.take(4096).read_to_end(&mut text);
        String::from_utf8_lossy(&text).trim().to_owned()
    });
    let mut out = Vec::new();
    stdout
        .take(MAX_LISTING)
        .read_to_end(&mut out)
        .map_err(said)?;
    let status = git.wait().map_err(said)?;
    if !status.success() {
        return Err(Fault::Said(complaint.join().unwrap_or_default()));
    }
    Ok(String::from_utf8_lossy(&out).into_owned())
}

/// Files with changes that Git could not bring back; all of them where there is no Git.
pub(crate) fn dirty(folder: &Path, paths: &[PathBuf]) -> Result<Vec<String>, Error> {
    let mut git = command(folder);
    git.args([
        "status",
        "--porcelain",
        "-z",
        "--ignored",
        "--untracked-files=all",
        "--",
    ]);
    let Ok(listing) = run(git.args(paths)) else {
        return Ok(paths
            .iter()
            .map(|path| path.display().to_string())
            .collect());
    };
    // `XY path`, each ended by a NUL.
    Ok(listing
        .split('\0')
        .filter_map(|entry| entry.get(3..))
        .map(str::to_owned)
        .collect())
}
