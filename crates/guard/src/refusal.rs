//! Why a call was not made, in words that an agent can act on.

use std::time::Duration;

use serde_json::{Value, json};

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reason {
    /// Somebody else holds a key.
    Busy {
        waited: Duration,
    },
    QueueFull,
    AtLimit {
        limit: u32,
    },
    Rate {
        retry_after: Duration,
    },
    /// The same call runs now.
    InFlight,
    OtherArguments,
    /// The same call was begun once, and nobody knows how it ended.
    Unknown,
    /// The key of the lock cannot be told from the arguments.
    NoKey {
        fault: String,
    },
    BackendLost,
    Closing,
    /// The server is not running.
    Down {
        retry_after: Duration,
    },
    /// The server died while the call ran.
    Died,
    /// The server has not answered in time.
    Timeout {
        after: Duration,
    },
    Cancelled,
}

/// A call that is not made, or whose end is not known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    pub reason: Reason,
    pub tool: String,
    /// The keys it is about.
    pub keys: Vec<String>,
}

impl Refusal {
    pub fn name(&self) -> &'static str {
        match self.reason {
            Reason::Busy { .. } => "busy",
            Reason::QueueFull => "queue-full",
            Reason::AtLimit { .. } => "at-limit",
            Reason::Rate { .. } => "rate-limited",
            Reason::InFlight => "in-flight",
            Reason::OtherArguments => "other-arguments",
            Reason::Unknown => "outcome-unknown",
            Reason::NoKey { .. } => "no-key",
            Reason::BackendLost => "backend-lost",
            Reason::Closing => "closing",
            Reason::Down { .. } => "server-down",
            Reason::Died => "server-died",
            Reason::Timeout { .. } => "timeout",
            Reason::Cancelled => "cancelled",
        }
    }

    pub fn retry_after(&self) -> Option<Duration> {
        match self.reason {
            Reason::Rate { retry_after } | Reason::Down { retry_after } => Some(retry_after),
            Reason::Busy { .. } | Reason::QueueFull | Reason::AtLimit { .. } | Reason::InFlight => {
                Some(Duration::from_secs(1))
            }
            Reason::BackendLost => Some(Duration::from_secs(5)),
            _ => None,
        }
    }

    /// Whether the server has seen the call.
    fn started(&self) -> &'static str {
        match self.reason {
            Reason::Died | Reason::Timeout { .. } | Reason::Unknown => "unknown",
            Reason::InFlight => "yes",
            _ => "no",
        }
    }

    pub fn message(&self) -> String {
        let tool = &self.tool;
        let keys = match self.keys.as_slice() {
            [] => "it".to_owned(),
            [key] => format!("`{key}`"),
            [first, rest @ ..] => format!("`{first}` and {} more", rest.len()),
        };
        let what = match &self.reason {
            Reason::Busy { waited } => format!(
                "`{tool}` was not started: another call still holds {keys} after {}.",
                shown(*waited)
            ),
            Reason::QueueFull => {
                format!("`{tool}` was not started: too many calls already wait for {keys}.")
            }
            Reason::AtLimit { limit } => format!(
                "`{tool}` was not started: {limit} calls are running, which is the limit. Wait for one to end."
            ),
            Reason::Rate { .. } => {
                format!("`{tool}` was not started: too many calls in a short time.")
            }
            Reason::InFlight => {
                format!("`{tool}` was not started again: the same call ({keys}) is still running.")
            }
            Reason::OtherArguments => format!(
                "`{tool}` was not started: {keys} was used before with other arguments. Use a new key for a new call."
            ),
            Reason::Unknown => format!(
                "`{tool}` was not started: an earlier call with {keys} was begun and its end is not known. It may have taken effect: look before you repeat it with a new key."
            ),
            Reason::NoKey { fault } => format!("`{tool}` was not started: {fault}."),
            Reason::BackendLost => format!(
                "`{tool}` was not started: the place where locks are kept cannot be reached, so nothing would protect {keys}."
            ),
            Reason::Closing => format!("`{tool}` was not started: the guard is shutting down."),
            Reason::Down { .. } => format!(
                "`{tool}` was not started: the server is not running; it is being started again."
            ),
            Reason::Died => format!(
                "The server died while `{tool}` ran. The call may or may not have taken effect: look before you repeat it."
            ),
            Reason::Timeout { after } => format!(
                "The server has not answered `{tool}` within {}. The call still runs and keeps {keys} until it ends: look before you repeat it.",
                shown(*after)
            ),
            Reason::Cancelled => format!("`{tool}` was cancelled before it was started."),
        };
        match self.retry_after() {
            Some(time) => format!("{what} Retry after {}.", shown(time)),
            None => what,
        }
    }

    /// The same for programs.
    pub fn details(&self) -> Value {
        let mut details = json!({
            "reason": self.name(),
            "tool": self.tool,
            "started": self.started(),
        });
        if !self.keys.is_empty() {
            details["keys"] = json!(self.keys.iter().take(16).collect::<Vec<_>>());
        }
        if let Some(time) = self.retry_after() {
            details["retryAfterMs"] = json!(millis(time));
        }
        details
    }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX).max(1)
}

fn shown(time: Duration) -> String {
    match millis(time) {
        ms @ 0..=999 => format!("{ms} ms"),
        ms @ 1000..=9999 => format!("{:.1} s", ms as f64 / 1000.0),
        ms => format!("{} s", ms.div_ceil(1000)),
    }
}
