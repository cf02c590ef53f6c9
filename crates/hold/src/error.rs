use std::io;
use std::path::PathBuf;

use thiserror::Error;

/// Why a server could not be run.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Error {
    #[error("cannot make a scratch folder in {}: {source}", path.display())]
    Scratch { path: PathBuf, source: io::Error },
    #[error("cannot {what} {}: {source}", path.display())]
    File {
        what: &'static str,
        path: PathBuf,
        source: io::Error,
    },
    #[error("no isolation by namespaces: {0}")]
    Isolation(String),
    #[error("nothing to start: the command is empty")]
    EmptyCommand,
    #[error("cannot start `{command}`: {source}")]
    Spawn { command: String, source: io::Error },
}

impl Error {
    pub(crate) fn file(
        what: &'static str,
        path: impl Into<PathBuf>,
    ) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::File { what, path, source }
    }
}
