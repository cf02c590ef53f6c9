//! Why nothing could be proved.

use thiserror::Error;

use crate::budget::Stop;
use crate::cell::StartError;
use crate::client::ClientError;
use crate::lab::RunError;
use crate::store::StoreError;

#[derive(Debug, Error)]
pub enum ProveError {
    #[error("the server cannot be used")]
    Start(#[from] StartError),
    #[error("the server has no tools")]
    NoTools,
    #[error("the scan has no findings")]
    NoFindings,
    #[error("nothing is reset between runs of a server that runs already")]
    NotOwn { calls: Vec<String> },
    #[error("none of the server's tools can be called")]
    NothingWorks { errors: Vec<String> },
    #[error("interrupted")]
    Interrupted,
    #[error("the server did not get ready within the budget")]
    NoTime,
    #[error("no scratch folder can be made")]
    Scratch(#[from] toctou_hold::Error),
    #[error("the server cannot be driven")]
    Run(RunError),
    #[error("cannot start threads")]
    Threads(std::io::Error),
    #[error("cannot prepare the scratch folder")]
    Fixtures(std::io::Error),
    #[error("the server's state cannot be kept")]
    Store(#[from] StoreError),
}

impl ProveError {
    /// There is nothing to prove, and nothing went wrong either.
    pub fn is_nothing(&self) -> bool {
        matches!(
            self,
            Self::NoTools | Self::NoFindings | Self::NothingWorks { .. }
        )
    }

    /// What happened, one line each.
    pub fn lines(&self) -> Vec<String> {
        let mut lines = vec![self.to_string()];
        match self {
            Self::Start(StartError::Server {
                because,
                stderr,
                garbage,
            }) => {
                lines = vec![because.clone()];
                lines.extend(
                    garbage
                        .iter()
                        .take(3)
                        .map(|line| format!("on standard output: {line}")),
                );
                let tail: Vec<&str> = stderr
                    .lines()
                    .filter(|line| !line.trim().is_empty())
                    .collect();
                let from = tail.len().saturating_sub(6);
                lines.extend(
                    tail[from..]
                        .iter()
                        .map(|line| format!("on standard error: {line}")),
                );
            }
            Self::Start(error) => lines.push(error.to_string()),
            Self::NotOwn { calls } => lines.extend(
                calls
                    .iter()
                    .map(|call| format!("`{{run}}` is missing in: {call}")),
            ),
            Self::NothingWorks { errors } => lines.extend(errors.iter().take(10).cloned()),
            Self::Run(error) => lines.push(error.to_string()),
            Self::Scratch(error) => lines.push(error.to_string()),
            Self::Store(error) => lines.push(error.to_string()),
            Self::Threads(error) | Self::Fixtures(error) => lines.push(error.to_string()),
            Self::NoTools | Self::NoFindings | Self::Interrupted | Self::NoTime => {}
        }
        lines
    }

    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Start(_) => Some(
                "does it start by hand? It gets no environment and no network: `--env NAME=VALUE`, `--allow-network`",
            ),
            Self::NothingWorks { .. } => Some(
                "give calls that work with `--examples FILE`, or what the server needs with `--env` and `--allow-network`",
            ),
            Self::NotOwn { .. } => Some(
                "write `{run}` into the names of what the calls change: it differs in every run",
            ),
            Self::NoTime => Some("try a larger `--budget`"),
            _ => None,
        }
    }
}

impl From<RunError> for ProveError {
    fn from(error: RunError) -> Self {
        match error {
            RunError::Stopped(Stop::Interrupted) => Self::Interrupted,
            RunError::Stopped(Stop::Budget | Stop::Enough) => Self::NoTime,
            RunError::Start(error) => Self::Start(error),
            other => Self::Run(other),
        }
    }
}

impl From<ClientError> for ProveError {
    fn from(error: ClientError) -> Self {
        match error {
            ClientError::Stopped(Stop::Interrupted) => Self::Interrupted,
            ClientError::Stopped(Stop::Budget | Stop::Enough) => Self::NoTime,
            other => Self::Start(StartError::Server {
                because: other.to_string(),
                stderr: String::new(),
                garbage: Vec::new(),
            }),
        }
    }
}
