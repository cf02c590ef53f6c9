//! What `toctou prove` found, as far as a report of `scan` shows it.
//!
//! Its JSON is read here for the few fields that are shown; the crate that
//! writes it runs servers, and nothing of that is needed to draw a page.

use serde::Deserialize;
use thiserror::Error;
use toctou_core::finding::Finding;
use toctou_core::interleaving::Interleaving;
use toctou_core::rule::Confidence;

use crate::plural;

const SCHEMA: &str = "toctou.prove/1";

#[derive(Debug, Error)]
pub enum ProofsError {
    #[error("not the JSON of `toctou prove`: {0}")]
    Syntax(#[from] serde_json::Error),
    #[error("the schema is `{0}`, not `{SCHEMA}`")]
    Schema(String),
}

/// The document, to be asked about single findings.
#[derive(Debug, Deserialize)]
pub struct Proofs {
    schema: String,
    #[serde(default)]
    findings: Vec<Tried>,
    #[serde(default)]
    proofs: Vec<Proof>,
}

/// What became of a finding.
#[derive(Debug, Deserialize)]
pub(crate) struct Tried {
    fingerprint: String,
    /// `proved`, `not-reproduced`, `inconclusive`.
    pub(crate) status: String,
    #[serde(default)]
    pub(crate) schedules: u64,
    #[serde(default)]
    proof: Option<String>,
    #[serde(default)]
    pub(crate) reason: Option<String>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Proof {
    id: String,
    pub(crate) scope: String,
    pub(crate) strategy: String,
    pub(crate) recipe: Recipe,
    #[serde(default)]
    pub(crate) held: Option<String>,
    pub(crate) replays: Replays,
    #[serde(default)]
    pub(crate) differences: Vec<Changed>,
    pub(crate) timeline: Interleaving,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Recipe {
    pub(crate) headline: String,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Replays {
    pub(crate) reproduced: u64,
    pub(crate) of: u64,
}

/// A place where the state differs from the nearest serial one.
#[derive(Debug, Deserialize)]
pub(crate) struct Changed {
    pub(crate) place: String,
    #[serde(default)]
    pub(crate) serial: Option<String>,
    #[serde(default)]
    pub(crate) found: Option<String>,
}

impl Proofs {
    pub fn parse(json: &str) -> Result<Self, ProofsError> {
        let proofs: Self = serde_json::from_str(json)?;
        if proofs.schema == SCHEMA {
            Ok(proofs)
        } else {
            Err(ProofsError::Schema(proofs.schema))
        }
    }

    /// What was proved is certain, and says so; what was not says how far that went.
    pub fn mark(&self, findings: &mut [Finding]) {
        for finding in findings {
            let Some((tried, proof)) = self.of(&finding.fingerprint) else {
                continue;
            };
            let mut told = match (tried.status.as_str(), proof) {
                ("proved", Some(proof)) => {
                    finding.confidence = Confidence::High;
                    finding.because.clear();
                    format!(
                        "`toctou prove` made it happen in {} of {} replays: {}",
                        proof.replays.reproduced, proof.replays.of, proof.recipe.headline
                    )
                }
                ("not-reproduced", _) => format!(
                    "`toctou prove` did not reproduce it in {}",
                    plural(
                        usize::try_from(tried.schedules).unwrap_or(usize::MAX),
                        "schedule"
                    )
                ),
                ("inconclusive", _) => "`toctou prove` is inconclusive".to_owned(),
                _ => continue,
            };
            if let Some(reason) = &tried.reason {
                told += &format!(" ({reason})");
            }
            if !finding.because.is_empty() {
                finding.because += "; ";
            }
            finding.because += &told;
        }
    }

    /// What became of the finding, and the proof if there is one.
    pub(crate) fn of(&self, fingerprint: &str) -> Option<(&Tried, Option<&Proof>)> {
        let tried = self
            .findings
            .iter()
            .find(|tried| tried.fingerprint == fingerprint)?;
        let proof = tried
            .proof
            .as_deref()
            .and_then(|id| self.proofs.iter().find(|proof| proof.id == id));
        Some((tried, proof))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_document_is_refused() {
        assert!(matches!(Proofs::parse("{"), Err(ProofsError::Syntax(_))));
        assert!(matches!(
            Proofs::parse(r#"{"schema":"toctou.scan/1"}"#),
            Err(ProofsError::Schema(_))
        ));
        let empty = Proofs::parse(r#"{"schema":"toctou.prove/1","proofs":[],"more":1}"#);
        assert!(empty.expect("valid").of("x").is_none());
    }
}
