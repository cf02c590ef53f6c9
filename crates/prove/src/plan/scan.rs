//! What `scan` found, as tools that shall meet; and what became of it.

use serde::Deserialize;
use serde_json::Value;

use crate::proof::Proof;
use crate::report::{Attempt, AttemptOutcome, FindingReport, Place};

/// Of a finding, what matters here. Other keys are not looked at.
#[derive(Clone, Debug, Deserialize)]
pub struct Finding {
    pub rule: String,
    pub fingerprint: String,
    #[serde(default)]
    pub scopes: Vec<String>,
    resource: Option<Resource>,
    location: Option<Location>,
    #[serde(default)]
    entry_points: Vec<Entry>,
    #[serde(default)]
    suppressed: Option<Value>,
}

#[derive(Clone, Debug, Deserialize)]
struct Resource {
    kind: String,
}

#[derive(Clone, Debug, Deserialize)]
struct Location {
    file: String,
    line: u32,
}

#[derive(Clone, Debug, Deserialize)]
struct Entry {
    kind: String,
    name: String,
}

#[derive(Deserialize)]
struct Scan {
    schema: String,
    findings: Vec<Finding>,
}

/// Reads the JSON of `toctou scan`.
pub fn parse(json: &str) -> Result<Vec<Finding>, String> {
    let scan: Scan = serde_json::from_str(json).map_err(|error| error.to_string())?;
    if !scan.schema.starts_with("toctou.scan/") {
        return Err(format!(
            "its schema is `{}`, not `toctou.scan/1`",
            scan.schema
        ));
    }
    Ok(scan
        .findings
        .into_iter()
        .filter(|finding| finding.suppressed.is_none())
        .collect())
}

impl Finding {
    /// The tools that reach it.
    pub fn tools(&self) -> Vec<String> {
        let mut tools: Vec<String> = self
            .entry_points
            .iter()
            .filter(|entry| entry.kind == "tool")
            .map(|entry| entry.name.clone())
            .collect();
        tools.sort();
        tools.dedup();
        tools
    }

    /// Whether `proof` shows this one: by the same tools, in one of its scopes,
    /// and, where it is about files or rows, in files.
    fn is_shown_by(&self, proof: &Proof) -> bool {
        let tools = self.tools();
        let scope = self.scopes.is_empty() || self.scopes.contains(&proof.scope);
        let stored = self
            .resource
            .as_ref()
            .is_some_and(|resource| matches!(resource.kind.as_str(), "file" | "row"));
        let touches = proof.held.is_some()
            || proof
                .differences
                .iter()
                .any(|change| change.place.starts_with("files"));
        // Answers alone tell of files too: two calls that both created one.
        let fits = !stored || touches || proof.recipe.class != crate::oracles::Class::State;
        scope && fits && proof.tools.iter().all(|tool| tools.contains(tool))
    }
}

/// What became of each finding.
pub fn judge(findings: &[Finding], proofs: &[Proof], attempts: &[Attempt]) -> Vec<FindingReport> {
    findings
        .iter()
        .map(|finding| {
            let tools = finding.tools();
            let mine: Vec<&Attempt> = attempts
                .iter()
                .filter(|attempt| attempt.tools.iter().all(|tool| tools.contains(tool)))
                .collect();
            let proof = proofs.iter().find(|proof| finding.is_shown_by(proof));
            let schedules: usize = mine.iter().map(|attempt| attempt.schedules).sum();
            let reason = mine
                .iter()
                .find(|attempt| attempt.outcome == AttemptOutcome::Inconclusive)
                .or_else(|| {
                    mine.iter()
                        .find(|attempt| attempt.outcome == AttemptOutcome::NotPossible)
                })
                .and_then(|attempt| attempt.reason.clone());
            let (status, reason) = if proof.is_some() {
                ("proved", None)
            } else if tools.is_empty() {
                ("inconclusive", Some("no tool reaches it".to_owned()))
            } else if schedules == 0 {
                let why = reason.unwrap_or_else(|| "its tools could not be called".to_owned());
                ("inconclusive", Some(why))
            } else if mine
                .iter()
                .any(|attempt| attempt.outcome == AttemptOutcome::Inconclusive)
            {
                ("inconclusive", reason)
            } else {
                ("not-reproduced", None)
            };
            FindingReport {
                fingerprint: finding.fingerprint.clone(),
                rule: finding.rule.clone(),
                tools,
                status: status.to_owned(),
                schedules,
                location: finding.location.as_ref().map(|place| Place {
                    file: place.file.clone(),
                    line: place.line,
                }),
                proof: proof.map(|proof| proof.id.clone()),
                reason,
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_scan_writes_and_names_what_it_cannot() {
        let findings = parse(
            r#"{"schema": "toctou.scan/1", "summary": {}, "findings": [
                {"rule": "r", "fingerprint": "f", "entry_points": [{"kind": "tool", "name": "b"}, {"kind": "tool", "name": "a"}, {"kind": "timer", "name": "c"}]},
                {"rule": "s", "fingerprint": "g", "suppressed": {"kind": "comment", "reason": "x"}}]}"#,
        )
        .expect("valid");
        assert_eq!(findings.len(), 1);
        assert_eq!(findings[0].tools(), ["a", "b"]);
        assert!(parse("{}").is_err());
        assert!(parse(r#"{"schema": "x", "findings": []}"#).is_err());
        let told = judge(&findings, &[], &[]);
        assert_eq!(told[0].status, "inconclusive");
    }
}
