//! What a server does to its state, one event at a time.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// A server process as it was launched, with all of its threads and children.
/// Numbered from 0 in the order of launches of one [`Supervisor`](crate::Supervisor).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ProcessId(pub u32);

impl fmt::Display for ProcessId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "process {}", self.0)
    }
}

/// Where an event is seen, and so where the server can be held.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Source {
    /// Before a system call, by seccomp user notification. Any language. The
    /// thread that makes the call stands still, the others go on.
    Syscall,
    /// After the completion of asynchronous work, by a preload for Node and
    /// Python. The continuation waits, the event loop goes on.
    Await,
}

/// What an event means for the state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Class {
    /// Changes files: create, write, rename, remove, truncate.
    Mutate,
    /// Takes a file lock that keeps others out.
    Lock,
    /// Gives a file lock back.
    Unlock,
    /// Looks only: opens what exists, takes a shared lock.
    Read,
    /// Asynchronous work of the event loop is done and its result is about to be delivered.
    Completion,
}

impl Class {
    /// Whether holding here can change an outcome. Between two of these, others
    /// may run wherever they like: it makes no difference that anyone can see.
    pub fn is_point(self) -> bool {
        matches!(self, Self::Mutate | Self::Lock | Self::Completion)
    }
}

/// Something that a server is about to do, or has just been given.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Event {
    /// Place in the order of arrival, over all processes of one supervisor.
    pub index: u64,
    pub process: ProcessId,
    /// As the host sees them. Differ from run to run.
    pub pid: u32,
    pub tid: u32,
    pub source: Source,
    pub class: Class,
    /// `openat`, `rename`, `fs.promises.readFile`, `asyncio.sleep`.
    pub name: String,
    /// As the server sees them: absolute, `.` and `..` resolved. Two for a rename.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub paths: Vec<String>,
    /// Bytes to be written, or the new length of a file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub length: Option<u64>,
    /// What else a reader wants to know: `create, truncate`, `write lock 0..1`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub detail: String,
    /// Since the supervisor began.
    pub at: Duration,
}

impl Event {
    /// What is the same when the server does it again.
    pub fn shape(&self) -> Shape {
        Shape {
            name: self.name.clone(),
            paths: self.paths.clone(),
        }
    }
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}(", self.name)?;
        for (i, path) in self.paths.iter().enumerate() {
            if i > 0 {
                f.write_str(" → ")?;
            }
            f.write_str(path)?;
        }
        if let Some(length) = self.length {
            let comma = if self.paths.is_empty() { "" } else { ", " };
            write!(f, "{comma}{length} bytes")?;
        }
        f.write_str(")")?;
        if !self.detail.is_empty() {
            write!(f, " {}", self.detail)?;
        }
        Ok(())
    }
}

/// An event without what changes from run to run.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Shape {
    pub name: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub paths: Vec<String>,
}

/// Where to hold: the schedule's one line of data.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Point {
    pub source: Source,
    pub process: ProcessId,
    /// The n-th event, from 1, that is a point ([`Class::is_point`]), counted from arming.
    pub nth: u32,
    /// Counts only events of this shape. For servers with work in the background,
    /// whose other events come at any time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub only: Option<Shape>,
}

impl Point {
    pub(crate) fn counts(&self, event: &Event) -> bool {
        self.source == event.source
            && self.process == event.process
            && event.class.is_point()
            && self
                .only
                .as_ref()
                .is_none_or(|s| s.name == event.name && s.paths == event.paths)
    }
}

/// Random delays at the points where holding is possible, by a seed. Which event
/// gets which delay depends on the order in which events come, so a seed narrows
/// down what happens and does not fix it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Jitter {
    pub seed: u64,
    /// Delays are spread evenly from nothing to this.
    pub most: Duration,
    /// Of a hundred events, so many are delayed.
    pub percent: u8,
}
