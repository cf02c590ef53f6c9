//! What can go wrong. One type for all primitives, so that a caller can decide by kind: wait, give up, or fail closed.

use std::time::Duration;

use crate::Fence;

/// The result of an operation of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why something was not done.
///
/// [`Error::Unavailable`] and [`Error::Lost`] are about the backend, the others are answers of a backend that works.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// It was taken, and the request said not to wait.
    #[error("{what} is taken")]
    Busy {
        /// The key or caller.
        what: String,
    },
    /// It was still taken after the time the request allowed.
    #[error("{what} was still taken after {waited:?}")]
    Timeout {
        /// The key or caller.
        what: String,
        /// How long the request waited.
        waited: Duration,
    },
    /// As many requests wait already as the request allows.
    #[error("{queued} requests already wait for {what}")]
    QueueFull {
        /// The key or caller.
        what: String,
        /// How many wait.
        queued: usize,
    },
    /// The caller has as many calls running as it may, and the limit has no queue.
    #[error("{caller} already has {limit} running")]
    AtLimit {
        /// The caller.
        caller: String,
        /// How many may run.
        limit: u32,
    },
    /// The backend keeps as many things as it may. Nothing is evicted to make room, because what is evicted is no
    /// longer protected.
    #[error("no room for more {what}: {max} are kept")]
    Full {
        /// What kind of thing.
        what: &'static str,
        /// How many are kept at most.
        max: usize,
    },
    /// A write came with a fence lower than one that was seen before: its writer lost the lock in the meantime.
    #[error("fence {presented} is stale: {seen} was seen")]
    StaleFence {
        /// The fence of the write.
        presented: Fence,
        /// The highest fence that was seen.
        seen: Fence,
    },
    /// Others changed the cell at every attempt.
    #[error("{key} was changed by others at each of {attempts} attempts")]
    Conflict {
        /// The key of the cell.
        key: String,
        /// How many attempts were made.
        attempts: u32,
    },
    /// What was held is no longer held: its lease ended or its connection broke. Somebody else may hold it now.
    #[error("{what} is no longer held")]
    Lost {
        /// The keys or the caller.
        what: String,
    },
    /// The backend cannot be reached, or failed. Whether the operation took effect is not known.
    #[error("the {backend} backend failed")]
    Unavailable {
        /// The backend's name.
        backend: &'static str,
        /// What it said.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The request makes no sense, whoever runs at the same time.
    #[error("{0}")]
    Invalid(String),
    /// A file operation failed.
    #[error("{path}")]
    File {
        /// The file.
        path: String,
        /// Why.
        #[source]
        source: std::io::Error,
    },
}

impl Error {
    /// True if the backend failed, as opposed to having refused. This is where "fail open or closed" is decided.
    pub fn is_unavailable(&self) -> bool {
        matches!(self, Self::Unavailable { .. })
    }

    /// True if the same request may succeed later without anybody's help.
    pub fn is_contention(&self) -> bool {
        matches!(
            self,
            Self::Busy { .. }
                | Self::Timeout { .. }
                | Self::QueueFull { .. }
                | Self::AtLimit { .. }
                | Self::Full { .. }
                | Self::Conflict { .. }
        )
    }

    pub(crate) fn unavailable(
        backend: &'static str,
        source: impl Into<Box<dyn std::error::Error + Send + Sync>>,
    ) -> Self {
        Self::Unavailable {
            backend,
            source: source.into(),
        }
    }

    pub(crate) fn file(path: &std::path::Path, source: impl Into<std::io::Error>) -> Self {
        Self::File {
            path: path.display().to_string(),
            source: source.into(),
        }
    }
}
