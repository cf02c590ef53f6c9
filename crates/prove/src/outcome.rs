//! What a run left behind.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde_json::{Map, Value, json};
use toctou_hold::{Entry, Event, Snapshot};

use crate::call::Reply;
use crate::canon::content::{Beside, Content, belongs_to_database};

/// Everything that can be compared about a run, and what is told about it.
#[derive(Clone, Debug)]
pub struct Outcome {
    pub replies: Vec<Reply>,
    /// How long each call took.
    pub latencies: Vec<Option<Duration>>,
    /// What the read-only tools say, asked of each process in turn.
    pub observed: Vec<Reply>,
    /// The same, of a server that was started afterwards.
    pub fresh: Vec<Reply>,
    pub files: Files,
    /// How a server ended that should have gone on.
    pub crash: Option<String>,
    /// What the servers did, in the order of time, from the first call on.
    pub events: Vec<Event>,
    /// For each event, the call that it belongs to, if that is known.
    pub owners: Vec<Option<usize>>,
    /// Where a call was held.
    pub held: Option<Event>,
    /// The others were answered while it was held.
    pub overlapped: bool,
    /// Calls that were not answered in the time they had.
    pub silent: Vec<usize>,
}

/// The files of a state, read.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Files {
    pub all: BTreeMap<String, Content>,
    /// Too many to look at all of them.
    pub truncated: bool,
}

/// Folders that hold nothing but what can be made again.
const CACHES: [&str; 6] = [
    "__pycache__",
    ".cache",
    ".npm",
    "node-compile-cache",
    "tsx-",
    ".pytest_cache",
];

impl Files {
    pub fn read(snapshot: &Snapshot) -> Self {
        let mut all = BTreeMap::new();
        for (path, entry) in &snapshot.entries {
            if belongs_to_database(path) || is_cache(path) {
                continue;
            }
            let content = match entry {
                Entry::Folder | Entry::Special => continue,
                Entry::File { .. } => {
                    let wal = snapshot.entries.get(&format!("{path}-wal"));
                    let beside = Beside {
                        wal: wal.and_then(Entry::bytes),
                        lines: path.ends_with(".jsonl") || path.ends_with(".ndjson"),
                    };
                    match entry.bytes() {
                        Some(bytes) => Content::of(bytes, &beside),
                        None => Content::Opaque,
                    }
                }
                Entry::Link(to) => Content::Lines(json!([format!("link to {to}")])),
                Entry::Removed => Content::Lines(json!(["removed"])),
                Entry::Unreadable(_) => Content::Opaque,
            };
            all.insert(path.clone(), content);
        }
        Self {
            all,
            truncated: snapshot.truncated,
        }
    }

    /// Without files that are only ever written: logs.
    pub fn value(&self, logs: &BTreeSet<String>) -> Value {
        let files: Map<String, Value> = self
            .all
            .iter()
            .filter(|(path, _)| !logs.contains(*path))
            .map(|(path, content)| (path.clone(), content.value()))
            .collect();
        Value::Object(files)
    }
}

fn is_cache(path: &str) -> bool {
    // What commits refer to is named by what is in it, and by the time.
    if path.contains("/.git/objects/") || path.contains("/.git/logs/") {
        return true;
    }
    path.split('/').any(|part| {
        CACHES
            .iter()
            .any(|cache| part == *cache || (cache.ends_with('-') && part.starts_with(cache)))
    })
}

impl Outcome {
    /// What is left: the files, and what the tools say about it.
    pub fn state(&self, logs: &BTreeSet<String>) -> Value {
        let values = |replies: &[Reply]| replies.iter().map(Reply::value).collect::<Vec<_>>();
        json!({
            "files": self.files.value(logs),
            "tools": values(&self.observed),
            "fresh": values(&self.fresh),
        })
    }

    pub fn responses(&self) -> Value {
        self.replies.iter().map(Reply::value).collect()
    }

    /// Whether any call was answered by an error.
    pub fn has_errors(&self) -> bool {
        self.replies.iter().any(|reply| !reply.is_ok())
    }
}
