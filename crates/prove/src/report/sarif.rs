//! SARIF 2.1.0, for code scanning. A proof has no place in the source of its
//! own: it is at the finding that it proves, or at the server's manifest.

use serde_json::{Value, json};
use toctou_report::clean;

use super::Report;
use crate::proof::Proof;

pub fn render(report: &Report) -> String {
    let results: Vec<Value> = report
        .proofs
        .iter()
        .map(|proof| result(report, proof))
        .collect();
    let document = json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": {"driver": {
                "name": "toctou",
                "informationUri": "https://github.com/toctou-dev/toctou",
                "semanticVersion": report.tool_version,
                "rules": [{
                    "id": "proved-race",
                    "name": "proved-race",
                    "shortDescription": {"text": "Tool calls that ran at the same time left what no serial order leaves"},
                    "fullDescription": {"text": "toctou prove ran the server, drove calls into each other, and found an outcome that no order of the calls explains. It was replayed several times."},
                    "help": {"text": "See docs/prove.md.", "markdown": "See [docs/prove.md](https://github.com/toctou-dev/toctou/blob/main/docs/prove.md)."},
                    "defaultConfiguration": {"level": "error"},
                    "properties": {"security-severity": "8.0", "precision": "very-high", "tags": ["security", "external/cwe/cwe-362", "race-condition"]},
                }],
            }},
            // Two kinds of upload, and neither replaces the other's alerts.
            "automationDetails": {"id": "toctou/prove/"},
            "columnKind": "unicodeCodePoints",
            "invocations": [{"executionSuccessful": true}],
            "results": results,
        }],
    });
    let text = serde_json::to_string_pretty(&document).unwrap_or_default();
    clean::json(&text) + "\n"
}

fn result(report: &Report, proof: &Proof) -> Value {
    let place = report
        .findings
        .iter()
        .find(|finding| finding.proof.as_deref() == Some(proof.id.as_str()))
        .and_then(|finding| finding.location.clone());
    let (file, line) = match place {
        Some(place) => (place.file, place.line),
        None => ("README.md".to_owned(), 1),
    };
    let headline = clean::line(&proof.recipe.headline)
        .replace('[', "\\[")
        .replace(']', "\\]");
    let steps: Vec<Value> = proof
        .timeline
        .iter()
        .enumerate()
        .map(|(index, step)| {
            let who = if step.actor.is_empty() { String::new() } else { format!("call {}: ", step.actor) };
            json!({
                "location": {
                    "physicalLocation": {"artifactLocation": {"uri": file}, "region": {"startLine": line}},
                    "message": {"text": clean::line(&format!("{}. {who}{}", index + 1, step.text))},
                },
                "executionOrder": index + 1,
            })
        })
        .collect();
    json!({
        "ruleId": "proved-race",
        "ruleIndex": 0,
        "level": "error",
        "message": {"text": format!(
            "Proved: {headline}. {} ({}), reproduced in {} of {} replays.",
            proof.tools.join(" and "), proof.scope, proof.replays.reproduced, proof.replays.of
        )},
        "locations": [{"physicalLocation": {
            "artifactLocation": {"uri": file},
            "region": {"startLine": line, "startColumn": 1, "endLine": line, "endColumn": 2},
        }}],
        "codeFlows": [{"threadFlows": [{"id": "timeline", "locations": steps}]}],
        "partialFingerprints": {"toctou/v1": format!("prove:{}", proof.id)},
        "properties": {"class": proof.recipe.class, "kind": proof.kind, "scope": proof.scope, "strategy": proof.strategy},
    })
}
