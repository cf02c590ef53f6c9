//! The story that all parts tell: who does what, in which order, to what.
//!
//! `scan` proposes an interleaving, `prove` replays it, `guard` prevents it,
//! reports draw it as one column per actor.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What an actor does at a step.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Action {
    /// Reads or checks the resource.
    Read,
    /// Gives way: an `await`, a thread switch, another process's turn.
    Yield,
    /// Writes, replaces or creates.
    Write,
    Delete,
    Acquire,
    Release,
    Begin,
    Commit,
    Open,
    Close,
    /// Sends something that cannot be taken back.
    Send,
    /// An effect of what happened, told in words: "B's entry is lost".
    Outcome,
}

/// One step of one actor.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Step {
    /// `A`, `B`, …
    pub actor: String,
    pub action: Action,
    /// Path relative to the scanned root, with `/`. Empty for outcomes.
    pub file: String,
    /// 1-based; 0 for outcomes.
    pub line: u32,
    /// `Class.method` of the line.
    pub function: String,
    /// What happens, in a few words that fit a column.
    pub text: String,
    /// Value of the resource as this actor sees it, where it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
}

/// Steps of two or more actors, in the order in which they happen.
pub type Interleaving = Vec<Step>;
