//! What makes an outcome wrong.
//!
//! One question decides: does any serial order explain it? The other oracles,
//! one a file, say in which way it is wrong, in words that a maintainer knows.

pub mod crash;
pub mod duplicate;
pub mod hang;
pub mod limit;
pub mod lost;
pub mod serial;
pub mod torn;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::canon::Difference;
use crate::outcome::Outcome;
use crate::scenario::Scenario;

/// Where the contradiction is.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Class {
    /// No serial order leaves this state.
    State,
    /// An order leaves this state, and its responses are others.
    Response,
    /// A call failed that succeeds in every order; without it, the rest is serial.
    SpuriousError,
    /// A server died.
    Crash,
    /// A call was never answered.
    Hang,
}

impl Class {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::State => "state",
            Self::Response => "response",
            Self::SpuriousError => "spurious-error",
            Self::Crash => "crash",
            Self::Hang => "hang",
        }
    }
}

/// What happened, by name.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    LostWrite,
    Torn,
    LimitExceeded,
    Duplicate,
    Crash,
    Hang,
    NotSerial,
}

/// An outcome that no serial order explains.
#[derive(Clone, Debug)]
pub struct Violation {
    pub class: Class,
    pub kind: Kind,
    /// One sentence.
    pub headline: String,
    /// The serial order that comes closest.
    pub nearest: Vec<usize>,
    pub differences: Vec<Difference>,
}

/// What the oracles that give names look at.
pub struct Evidence<'a> {
    pub scenario: &'a Scenario,
    pub outcome: &'a Outcome,
    /// Outcomes of serial orders.
    pub serial: &'a [serial::SerialRun],
    /// Against the nearest of them.
    pub differences: &'a [Difference],
    pub class: Class,
}

type Oracle = fn(&Evidence<'_>) -> Option<(Kind, String)>;

/// In the order in which they are asked; the first that recognises it gives the name.
const ORACLES: &[Oracle] = &[
    crash::judge,
    hang::judge,
    torn::judge,
    limit::judge,
    duplicate::judge,
    lost::judge,
];

/// A name for a violation.
pub fn name(evidence: &Evidence<'_>) -> (Kind, String) {
    ORACLES
        .iter()
        .find_map(|oracle| oracle(evidence))
        .unwrap_or_else(|| {
            let text = match evidence.class {
                Class::SpuriousError => {
                    "a call fails that succeeds in every serial order".to_owned()
                }
                Class::Response => {
                    "the answers contradict every serial order that leaves this state".to_owned()
                }
                _ => "no serial order of the calls leaves this state".to_owned(),
            };
            (Kind::NotSerial, text)
        })
}
