//! Every way in which source cannot be had.

use std::path::PathBuf;
use std::time::Duration;

use thiserror::Error;

#[derive(Debug, Error)]
pub enum SourceError {
    #[error("{text}: {because}")]
    NotASource { text: String, because: String },
    #[error("{what}: {because}")]
    Refused { what: String, because: String },
    #[error("`{program}` was not found on the PATH")]
    MissingProgram {
        program: &'static str,
        hint: &'static str,
    },
    #[error("{what}: {because}")]
    Failed {
        what: String,
        because: String,
        hint: Option<&'static str>,
    },
    #[error("{what} is too large: more than {limit}")]
    TooLarge { what: String, limit: String },
    #[error("{what} took longer than {} seconds", limit.as_secs())]
    TooSlow { what: String, limit: Duration },
    #[error("{archive} is not safe to unpack: {entry}: {because}")]
    Unsafe {
        archive: String,
        entry: String,
        because: &'static str,
    },
    #[error("{archive} cannot be unpacked: {because}")]
    Broken { archive: String, because: String },
    #[error("{}: {error}", path.display())]
    Io {
        path: PathBuf,
        error: std::io::Error,
    },
}

impl SourceError {
    /// What to do about it.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::NotASource { .. } => Some(
                "a source is a path, https://host/path, git@host:path, owner/name, npm:name@version, pypi:name==version, or an archive; a Git one may end in @ref and #folder",
            ),
            Self::MissingProgram { hint, .. } => Some(hint),
            Self::Failed { hint, .. } => *hint,
            Self::TooLarge { .. } => Some("`--max-fetch` sets the limit"),
            Self::TooSlow { .. } => Some("`--fetch-timeout` sets the limit"),
            Self::Refused { .. } | Self::Unsafe { .. } | Self::Broken { .. } | Self::Io { .. } => {
                None
            }
        }
    }
}

/// `512 MB`, `200000 entries`.
pub(crate) fn megabytes(bytes: u64) -> String {
    if bytes >= 1 << 20 {
        format!("{} MB", bytes >> 20)
    } else {
        format!("{bytes} bytes")
    }
}
