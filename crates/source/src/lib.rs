//! Source from elsewhere: a Git repository, an npm or PyPI package, an archive.
//!
//! What comes back is a folder of plain files, which is gone when it is dropped.
//! Everything in it was made by strangers, so nothing of it is run and nothing of
//! it is believed: Git brings objects and checks nothing out (no hooks, filters,
//! submodules or links), packages come as the archives that they are, and every
//! file goes through one writer ([`tree`]) that knows the limits.

mod address;
mod archive;
mod error;
mod git;
mod packages;
mod process;
mod scratch;
mod spec;
mod tree;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

pub use address::is_public;
pub use error::SourceError;
pub use scratch::{Apart, Scratch, clean_up_on_signals};
pub use spec::{GitSpec, Remote, Spec};

/// How much and how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// On the way here, and unpacked.
    pub bytes: u64,
    /// Files and folders.
    pub entries: u64,
    /// Folders within folders.
    pub depth: usize,
    /// Unpacked to packed. Source rarely passes 20.
    pub ratio: u64,
    pub time: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            bytes: 512 << 20,
            entries: 200_000,
            depth: 64,
            ratio: 200,
            time: Duration::from_secs(300),
        }
    }
}

/// Which addresses may be asked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Reach {
    /// Whatever the user names, with the user's own Git settings and keys;
    /// plain http to this machine only.
    #[default]
    User,
    /// A stranger names it: https to public addresses, resolved once, no
    /// redirects, nobody's settings or keys.
    Public,
    /// As `Public`, but private addresses and plain http too.
    Intranet,
}

pub struct Options<'a> {
    pub limits: Limits,
    pub reach: Reach,
    /// If not empty, these hosts only (`Public`, `Intranet`).
    pub hosts: &'a [String],
    /// Hosts that may be asked by plain http (`User`).
    pub plain_http: &'a [String],
    /// Told what goes on, some times a second.
    pub progress: &'a (dyn Fn(&str) + Sync),
}

/// Where a folder of source came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    /// As the user would name it: `https://github.com/owner/name`, `npm:name`.
    pub name: String,
    /// The commit or version that was brought.
    pub revision: Option<String>,
}

/// Something that was in the source and is not in the folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeftOut {
    pub path: String,
    pub reason: &'static str,
}

/// A folder of source, removed when this is dropped.
#[derive(Debug)]
pub struct Fetched {
    pub root: PathBuf,
    pub origin: Origin,
    pub left_out: Vec<LeftOut>,
    _scratch: Scratch,
}

/// Brings the source here.
///
/// # Errors
///
/// When it cannot be had within the limits, or lies about what it is.
pub fn fetch(spec: &Spec, options: &Options<'_>) -> Result<Fetched, SourceError> {
    let scratch = Scratch::new("toctou-source-").map_err(|error| SourceError::Io {
        path: std::env::temp_dir(),
        error,
    })?;
    let job = Job {
        options,
        scratch: scratch.path(),
        deadline: Instant::now() + options.limits.time,
    };
    let (root, origin, left_out) = match spec {
        Spec::Git(spec) => git::fetch(spec, &job)?,
        Spec::Npm { name, version } => packages::npm(name, version.as_deref(), &job)?,
        Spec::Pypi { name, version } => packages::pypi(name, version.as_deref(), &job)?,
        Spec::Archive(path) => {
            let (root, left_out) = archive::unpack(path, &job)?;
            let origin = Origin {
                name: path.display().to_string(),
                revision: None,
            };
            (root, origin, left_out)
        }
    };
    Ok(Fetched {
        root,
        origin,
        left_out,
        _scratch: scratch,
    })
}

/// One fetch, as its steps see it.
struct Job<'a> {
    options: &'a Options<'a>,
    scratch: &'a Path,
    deadline: Instant,
}

impl Job<'_> {
    fn limits(&self) -> Limits {
        self.options.limits
    }

    fn say(&self, text: &str) {
        (self.options.progress)(text);
    }

    /// Whoever asks is a stranger.
    fn is_stranger(&self) -> bool {
        self.options.reach != Reach::User
    }
}
