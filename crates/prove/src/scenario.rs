//! What is run, as data: the calls, and the order in which things happen.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::call::Call;

/// Calls that shall meet, and what is done before and after.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// One after the other, before anything else, in the first process.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub setup: Vec<Call>,
    /// The calls that meet: A, B, …
    pub calls: Vec<Call>,
    /// Tools that only read, asked afterwards of every process.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub observers: Vec<Call>,
}

/// When which call runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", tag = "strategy")]
pub enum Schedule {
    /// One after the other.
    Serial { order: Vec<usize> },
    /// All at once, in one write for each process.
    Burst,
    /// One call stands still at a point while the others run.
    Hold {
        /// Which call is held.
        call: usize,
        /// The n-th place where it can be held, from 1.
        point: u32,
        at: Place,
        /// A second hold, of the next call, with `--deep`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        then: Option<u32>,
    },
    /// All at once, with random delays.
    Jitter { seed: u64 },
}

/// What is counted to find the point.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Place {
    /// System calls that change the state.
    Syscall,
    /// Completions of asynchronous work.
    Await,
}

impl Schedule {
    pub fn name(&self) -> &'static str {
        match self {
            Self::Serial { .. } => "serial",
            Self::Burst => "burst",
            Self::Hold {
                at: Place::Syscall, ..
            } => "hold",
            Self::Hold {
                at: Place::Await, ..
            } => "await-hold",
            Self::Jitter { .. } => "jitter",
        }
    }
}

/// Which process each call goes to.
#[derive(
    Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(transparent)]
pub struct Assignment(pub Vec<usize>);

impl Assignment {
    pub fn one(calls: usize) -> Self {
        Self(vec![0; calls])
    }

    /// In turn to two processes.
    pub fn two(calls: usize) -> Self {
        Self((0..calls).map(|call| call % 2).collect())
    }

    pub fn processes(&self) -> usize {
        self.0.iter().max().map_or(1, |most| most + 1)
    }

    pub fn scope(&self) -> &'static str {
        if self.processes() > 1 {
            "cross-process"
        } else {
            "in-process"
        }
    }
}

/// `A`, `B`, …
pub fn letter(call: usize) -> String {
    let letter = u8::try_from(call).ok().and_then(|n| b'A'.checked_add(n));
    match letter {
        Some(letter) if letter <= b'Z' => char::from(letter).to_string(),
        _ => format!("#{}", call + 1),
    }
}
