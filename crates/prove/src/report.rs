//! What was found, as data, and in the forms in which it is told.

pub mod markdown;
pub mod sarif;
pub mod text;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toctou_report::plural;

use crate::plan::Candidate;
use crate::plan::probe::Known;
use crate::proof::Proof;
use crate::search::Scope;
use crate::target::Target;
use crate::timeline::short;

/// A way to write the report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    Text,
    Json,
    Sarif,
    Markdown,
}

impl Format {
    pub const ALL: [Self; 4] = [Self::Text, Self::Json, Self::Sarif, Self::Markdown];

    pub fn name(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Json => "json",
            Self::Sarif => "sarif",
            Self::Markdown => "markdown",
        }
    }

    pub fn find(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|format| format.name() == name)
    }

    pub fn render(self, report: &Report, terminal: toctou_report::Terminal) -> String {
        match self {
            Self::Text => text::render(report, terminal),
            Self::Json => report.json(),
            Self::Sarif => sarif::render(report),
            Self::Markdown => markdown::render(report),
        }
    }
}

pub const SCHEMA: &str = "toctou.prove/1";

/// The answer. There is no word for "safe".
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    Proved,
    NoViolation,
    Inconclusive,
}

impl Outcome {
    /// With the reason, if it is inconclusive.
    pub fn of(proofs: &[Proof], attempts: &[Attempt]) -> (Self, Option<String>) {
        if !proofs.is_empty() {
            return (Self::Proved, None);
        }
        let first = |outcome: AttemptOutcome| {
            let mut some = attempts.iter().filter(|attempt| attempt.outcome == outcome);
            some.next()
        };
        let reason_of = |outcome| first(outcome).and_then(|attempt| attempt.reason.clone());
        let reason = if first(AttemptOutcome::Inconclusive).is_some() {
            reason_of(AttemptOutcome::Inconclusive)
        } else if first(AttemptOutcome::NoViolation).is_some()
            || attempts.iter().any(|attempt| attempt.points > 0)
        {
            // At how many points is part of the answer.
            return (Self::NoViolation, None);
        } else {
            reason_of(AttemptOutcome::NotTried).or_else(|| reason_of(AttemptOutcome::NotPossible))
        };
        let reason = reason.unwrap_or_else(|| "no calls were tried".to_owned());
        (Self::Inconclusive, Some(reason))
    }

    pub fn in_words(self, proofs: usize, schedules: usize, points: usize, bound: usize) -> String {
        match self {
            Self::Proved if proofs == 1 => "1 race proved".to_owned(),
            Self::Proved => format!("{proofs} races proved"),
            Self::NoViolation if points == 0 => {
                let schedules = plural(schedules, "schedule");
                format!("no violation in {schedules}; no call was held")
            }
            Self::NoViolation => {
                let points = plural(points, "pause point");
                format!("no violation at {points}, bound {bound}")
            }
            Self::Inconclusive => "inconclusive".to_owned(),
        }
    }
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
    /// It ended before this one was through.
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

impl ToolReport {
    pub fn of(known: &Known) -> Self {
        let role = match (known.works, known.is_reader()) {
            (false, _) => "fails",
            (true, true) => "reads",
            (true, false) => "writes",
        };
        Self {
            name: known.tool.name.clone(),
            role: role.to_owned(),
            error: (!known.works).then(|| short(&known.reply.shown(), 200)),
        }
    }
}

/// A line in the source.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Place {
    pub file: String,
    pub line: u32,
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
    /// Where it is in the source.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub location: Option<Place>,
    /// The id of the proof.
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
    /// Why it is inconclusive.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
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

#[cfg(test)]
mod tests {
    use super::*;

    fn attempt(outcome: AttemptOutcome) -> Attempt {
        Attempt {
            tools: vec!["t".to_owned()],
            what: "t twice".to_owned(),
            scope: "in-process".to_owned(),
            outcome,
            reason: Some("why".to_owned()),
            schedules: 1,
            points: 0,
        }
    }

    #[test]
    fn nothing_that_was_tried_to_its_end_is_no_answer() {
        let (outcome, reason) = Outcome::of(&[], &[attempt(AttemptOutcome::NotTried)]);
        assert_eq!(
            (outcome, reason.as_deref()),
            (Outcome::Inconclusive, Some("why"))
        );
        assert_eq!(Outcome::of(&[], &[]).0, Outcome::Inconclusive);
        let some = [
            attempt(AttemptOutcome::NoViolation),
            attempt(AttemptOutcome::NotTried),
        ];
        assert_eq!(Outcome::of(&[], &some), (Outcome::NoViolation, None));
        let doubt = [
            attempt(AttemptOutcome::NoViolation),
            attempt(AttemptOutcome::Inconclusive),
        ];
        assert_eq!(Outcome::of(&[], &doubt).0, Outcome::Inconclusive);
        assert!(
            !Outcome::NoViolation
                .in_words(0, 3, 0, 1)
                .contains("pause point")
        );
    }
}
