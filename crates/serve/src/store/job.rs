//! What a job is, and the values that it is kept as.

/// A value of a column. All numbers have 64 bits.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Value {
    Null,
    Int(i64),
    Text(String),
    Bytes(Vec<u8>),
}

impl Value {
    pub(super) fn text(&self) -> String {
        match self {
            Self::Text(text) => text.clone(),
            _ => String::new(),
        }
    }

    pub(super) fn some_text(&self) -> Option<String> {
        match self {
            Self::Text(text) => Some(text.clone()),
            _ => None,
        }
    }

    pub(super) fn int(&self) -> i64 {
        match self {
            Self::Int(number) => *number,
            _ => 0,
        }
    }

    pub(super) fn some_int(&self) -> Option<i64> {
        match self {
            Self::Int(number) => Some(*number),
            _ => None,
        }
    }

    pub(super) fn bytes(self) -> Option<Vec<u8>> {
        match self {
            Self::Bytes(bytes) => Some(bytes),
            _ => None,
        }
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<i64> for Value {
    fn from(number: i64) -> Self {
        Self::Int(number)
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum State {
    Queued,
    Running,
    Done,
    Failed,
}

impl State {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Running => "running",
            Self::Done => "done",
            Self::Failed => "failed",
        }
    }

    pub(super) fn parse(text: &str) -> Self {
        match text {
            "queued" => Self::Queued,
            "running" => Self::Running,
            "done" => Self::Done,
            _ => Self::Failed,
        }
    }

    pub fn is_over(self) -> bool {
        matches!(self, Self::Done | Self::Failed)
    }
}

/// What somebody asked for.
#[derive(Clone, Debug)]
pub struct NewJob {
    pub id: String,
    /// An address, or the name of an upload.
    pub source: String,
    /// An archive. Uploads are not listed: only who has the address sees the report.
    pub upload: Option<Vec<u8>>,
    pub caller: String,
}

/// A job as it is now.
#[derive(Clone, PartialEq, Debug)]
pub struct Job {
    /// Grows with every job that is accepted.
    pub number: i64,
    pub id: String,
    pub source: String,
    pub is_upload: bool,
    pub state: State,
    pub progress: String,
    pub error: Option<String>,
    pub grade: Option<String>,
    pub score: Option<i64>,
    pub findings: Option<i64>,
    pub revision: Option<String>,
    /// Milliseconds since 1970.
    pub created: i64,
    pub finished: Option<i64>,
}

/// A job in the hands of a worker.
#[derive(Clone, Debug)]
pub struct Claim {
    pub id: String,
    pub fence: i64,
    pub source: String,
    pub upload: Option<Vec<u8>>,
}

/// How a job ended.
#[derive(Clone, Debug)]
pub enum Outcome {
    Done(Box<Report>),
    Failed(String),
}

#[derive(Clone, Debug, Default)]
pub struct Report {
    pub grade: String,
    pub score: i64,
    pub findings: i64,
    pub revision: Option<String>,
    /// Both gzipped.
    pub json: Vec<u8>,
    pub html: Vec<u8>,
    /// What the page may do: it names the script of the version that made it.
    pub policy: String,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Format {
    Json,
    Html,
}
