//! What was found, as data, and in the forms in which it is told.

pub mod text;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::plan::Candidate;
use crate::proof::Proof;
use crate::search::Scope;
use crate::target::Target;

pub const SCHEMA: &str = "toctou.prove/1";

/// The answer. There is no word for "safe".
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    Proved,
    NoViolation,
    Inconclusive,
}

/// What came of one pair of calls in one scope.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum AttemptOutcome {
    Proved,
    NoViolation,
    Inconclusive,
    /// The calls do not succeed even one after the other.
    NotPossible,
    /// Time was up before its turn.
    NotTried,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Attempt {
    pub tools: Vec<String>,
    pub what: String,
    pub scope: String,
    pub outcome: AttemptOutcome,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    pub schedules: usize,
    pub points: usize,
}

impl Attempt {
    pub fn new(candidate: &Candidate, scope: Scope) -> Self {
        Self {
            tools: candidate.tools(),
            what: candidate.shown(),
            scope: scope.as_str().to_owned(),
            outcome: AttemptOutcome::NotTried,
            reason: None,
            schedules: 0,
            points: 0,
        }
    }
}

/// A tool, and what it seems to be.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ToolReport {
    pub name: String,
    /// `reads`, `writes`, or `fails` if no arguments were found by which it works.
    pub role: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// What became of a finding of `scan`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FindingReport {
    pub fingerprint: String,
    pub rule: String,
    pub tools: Vec<String>,
    /// `proved`, `not-reproduced`, `inconclusive`.
    pub status: String,
    pub schedules: usize,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proof: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Report {
    pub schema: String,
    pub tool_version: String,
    pub target: Target,
    pub outcome: Outcome,
    /// The outcome in words.
    pub summary: String,
    pub seconds: f64,
    pub budget_seconds: f64,
    /// Runs of the server in all.
    pub runs: usize,
    pub schedules: usize,
    pub points: usize,
    /// What could not be used here, and why.
    pub notes: Vec<String>,
    pub tools: Vec<ToolReport>,
    pub proofs: Vec<Proof>,
    pub attempts: Vec<Attempt>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub findings: Vec<FindingReport>,
}

impl Report {
    /// The JSON schema of the JSON report.
    pub fn schema() -> schemars::Schema {
        schemars::schema_for!(Report)
    }

    pub fn json(&self) -> String {
        let text = serde_json::to_string_pretty(self).unwrap_or_default();
        toctou_report::clean::json(&text) + "\n"
    }
}
