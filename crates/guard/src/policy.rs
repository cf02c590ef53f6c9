//! What may run beside what: the policy, as data.
//!
//! [`file`] is what can be written, [`Policy`] what it means. Without a file
//! the policy comes from the tools' own annotations: a tool with
//! `readOnlyHint` shares the server with others of its kind, every other tool
//! has it alone. A tool that says nothing about itself may do anything.

mod compile;
pub mod file;
mod key;
mod scan;

use std::time::Duration;

use globset::GlobMatcher;
use toctou_sync::Quota;

pub use compile::{PolicyError, parse};
pub use key::{KeyFault, Template};
pub use scan::{ScanError, entry_for, from_scan};

/// The policy, checked.
#[derive(Clone, Debug, Default)]
pub struct Policy {
    pub tools: Vec<ToolPolicy>,
    pub defaults: Defaults,
    /// Keys of one namespace exclude each other, whichever guard they are in.
    pub namespace: Option<String>,
    pub observe: bool,
    /// Tell the caller which keys it waited for, and how long.
    pub meta: bool,
    pub backend: Option<String>,
    /// Let calls through when the backend is lost.
    pub open_on_loss: bool,
}

/// For tools that no entry names, and for keys that an entry leaves out.
#[derive(Clone, Debug)]
pub struct Defaults {
    /// How long a call may wait to be let in.
    pub wait: Duration,
    /// How many calls may wait at once.
    pub queue: usize,
    /// How long the server may take, as far as the caller is concerned.
    pub timeout: Option<Duration>,
    /// How long a lock is kept for a cancelled call that is not answered.
    pub cancel_hold: Duration,
}

impl Default for Defaults {
    fn default() -> Self {
        Self {
            wait: Duration::from_secs(30),
            queue: 1000,
            timeout: None,
            cancel_hold: Duration::from_secs(30),
        }
    }
}

/// One `[[tool]]` entry.
#[derive(Clone, Debug)]
pub struct ToolPolicy {
    pub names: Vec<NamePattern>,
    pub server: Option<String>,
    /// `None`: the server's own lock. Empty: no lock.
    pub locks: Option<Vec<Template>>,
    pub mode: Mode,
    pub wait: Option<Duration>,
    pub queue: Option<usize>,
    pub timeout: Option<Duration>,
    pub in_flight: Option<InFlight>,
    pub rate: Option<Rate>,
    pub idempotency: Option<Idempotency>,
    pub on_cancel: OnCancel,
}

#[derive(Clone, Debug)]
pub struct NamePattern {
    pub text: String,
    pub matcher: GlobMatcher,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// Shared if the server says that the tool only reads.
    #[default]
    Annotated,
    Shared,
    Exclusive,
}

/// What becomes of a cancellation while the call runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnCancel {
    /// The server is told. It may then stop without an answer.
    #[default]
    Forward,
    /// The server is not told: it answers, so the end of the call is known.
    Keep,
}

#[derive(Clone, Copy, Debug)]
pub struct InFlight {
    pub max: u32,
    pub by: By,
    /// Calls of one caller that may wait.
    pub queue: usize,
}

#[derive(Clone, Copy, Debug)]
pub struct Rate {
    pub calls: u32,
    pub per: Duration,
    pub burst: u32,
    pub by: By,
}

impl Rate {
    pub fn quota(&self) -> Quota {
        Quota::per(self.calls, self.per).burst(self.burst)
    }
}

/// Whose calls are counted together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum By {
    #[default]
    Caller,
    Everybody,
}

#[derive(Clone, Debug)]
pub struct Idempotency {
    pub key: Template,
    pub keep: Duration,
}

impl Policy {
    /// The first entry that names the tool.
    pub fn find(&self, server: &str, tool: &str) -> Option<(usize, &ToolPolicy)> {
        self.tools.iter().enumerate().find(|(_, entry)| {
            entry.server.as_deref().is_none_or(|name| name == server)
                && entry.names.iter().any(|name| name.matcher.is_match(tool))
        })
    }
}
