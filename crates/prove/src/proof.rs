//! A race that happened, as often as it was asked to.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toctou_core::interleaving::Interleaving;

use crate::call::Reply;
use crate::oracles::serial::SerialSet;
use crate::oracles::{Class, Kind, Violation};
use crate::outcome::Outcome;
use crate::scenario::{Assignment, Scenario, Schedule};
use crate::store::Needs;
use crate::target::Target;
use crate::timeline::{timeline, told};

pub const REPLAY_SCHEMA: &str = "toctou.replay/1";

/// Everything it takes to make the race happen again.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Recipe {
    pub schema: String,
    pub target: Target,
    /// What it keeps its state in, besides files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<Needs>,
    /// A server that is started afterwards is asked as well.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub fresh: bool,
    pub scenario: Scenario,
    pub assignment: Assignment,
    pub schedule: Schedule,
    pub class: Class,
    pub headline: String,
}

/// The server that a proof is about.
#[derive(Clone, Debug)]
pub struct Subject {
    pub target: Target,
    pub state: Option<Needs>,
    pub fresh: bool,
}

/// A place where the outcome differs from the nearest serial one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Changed {
    pub place: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub serial: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub found: Option<String>,
}

/// What a serial order answers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SerialAnswers {
    pub order: Vec<usize>,
    pub replies: Vec<Reply>,
}

/// How often it happened again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Replays {
    pub reproduced: usize,
    pub of: usize,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Proof {
    /// `add_note-add_note-in-process`
    pub id: String,
    pub kind: Kind,
    pub tools: Vec<String>,
    /// `in-process` or `cross-process`.
    pub scope: String,
    /// `burst`, `hold`, `await-hold`, `jitter`.
    pub strategy: String,
    /// How the calls conflict, in words.
    pub template: String,
    pub recipe: Recipe,
    /// Where a call was held, in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held: Option<String>,
    pub replays: Replays,
    pub replies: Vec<Reply>,
    pub serial: Vec<SerialAnswers>,
    /// The serial order that comes closest.
    pub nearest: Vec<usize>,
    pub differences: Vec<Changed>,
    pub timeline: Interleaving,
    /// Since the start, when it was proved.
    pub seconds: f64,
}

impl Proof {
    /// Tells what happened when `schedule` was run.
    #[expect(
        clippy::too_many_arguments,
        reason = "a proof is made of these, in one place"
    )]
    pub fn new(
        subject: &Subject,
        set: &SerialSet,
        schedule: &Schedule,
        template: &str,
        violation: &Violation,
        outcome: &Outcome,
        replays: Replays,
        elapsed: Duration,
    ) -> Self {
        let mut tools: Vec<String> = set
            .scenario
            .calls
            .iter()
            .map(|call| call.tool.clone())
            .collect();
        tools.sort();
        tools.dedup();
        let scope = set.assignment.scope();
        Self {
            id: format!("{}-{scope}", tools.join("-")),
            kind: violation.kind,
            tools,
            scope: scope.to_owned(),
            strategy: schedule.name().to_owned(),
            template: template.to_owned(),
            timeline: timeline(&set.scenario, &set.assignment, schedule, outcome, violation),
            recipe: Recipe {
                schema: REPLAY_SCHEMA.to_owned(),
                target: subject.target.clone(),
                state: subject.state.clone(),
                fresh: subject.fresh,
                scenario: set.scenario.clone(),
                assignment: set.assignment.clone(),
                schedule: schedule.clone(),
                class: violation.class,
                headline: violation.headline.clone(),
            },
            held: outcome.held.as_ref().map(told),
            replays,
            replies: outcome.replies.clone(),
            serial: set
                .runs
                .iter()
                .map(|run| SerialAnswers {
                    order: run.order.clone(),
                    replies: run.outcome.replies.clone(),
                })
                .collect(),
            nearest: violation.nearest.clone(),
            differences: violation
                .differences
                .iter()
                .map(|difference| Changed {
                    place: difference.path.clone(),
                    serial: difference.expected.clone(),
                    found: difference.found.clone(),
                })
                .collect(),
            seconds: elapsed.as_secs_f64(),
        }
    }
}
