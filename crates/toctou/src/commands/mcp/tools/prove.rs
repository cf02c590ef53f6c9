//! `prove_status`: what a run of `toctou prove` has shown.

use std::fmt::Write as _;
use std::io::Read as _;

use serde_json::{Value, json};
use toctou_report::clean;

use super::given::Given;
use super::{Answer, MAX_FINDINGS, Roots};

const MAX_FILE: u64 = 32 << 20;

pub(super) fn input() -> Value {
    json!({
        "type": "object",
        "properties": { "path": { "type": "string", "description": "The report, from the root that toctou was started with." } },
        "additionalProperties": false,
    })
}

pub(super) fn output() -> Value {
    let text = json!({ "type": "string" });
    json!({
        "type": "object",
        "properties": {
            "outcome": { "type": "string", "description": "proved, no-violation, inconclusive, or none if there is no report." },
            "summary": text,
            "proofs": { "type": "integer" },
            "findings": { "type": "array", "items": {
                "type": "object",
                "properties": { "fingerprint": text, "rule": text, "status": text, "reason": text },
                "required": ["fingerprint", "rule", "status"],
            } },
            "left_out": { "type": "integer" },
        },
        "required": ["outcome", "summary", "proofs", "findings", "left_out"],
    })
}

pub(super) fn run(roots: &Roots, arguments: &Value) -> Result<Answer, String> {
    let given = Given(arguments);
    given.only(&["path"])?;
    let Some(asked) = given.text("path")? else {
        let text = "No report was named. `toctou prove --output json=prove.json -- COMMAND` runs the server and writes one.";
        return Ok(Answer {
            structured: json!({ "outcome": "none", "summary": text, "proofs": 0, "findings": [], "left_out": 0 }),
            text: text.to_owned(),
        });
    };
    let shown = clean::short(asked, 200);
    let unreadable = || format!("there is no `{shown}` that may be read here");
    let path = roots.resolve(asked).ok_or_else(unreadable)?;
    let file = std::fs::File::open(&path).map_err(|_| unreadable())?;
    let is_file = file.metadata().is_ok_and(|meta| meta.is_file());
    let mut text = String::new();
    // What was opened is what is read: it is not asked for by name again.
    let read = file.take(MAX_FILE).read_to_string(&mut text);
    if !is_file || read.is_err() {
        return Err(unreadable());
    }
    let wrong = || format!("`{shown}` is not a report of `toctou prove` (toctou.prove/1)");
    let report: Value = serde_json::from_str(&text).map_err(|_| wrong())?;
    if report["schema"] != "toctou.prove/1" {
        return Err(wrong());
    }
    let word = |value: &Value| clean::short(value.as_str().unwrap_or("unknown"), 500);
    let (outcome, summary) = (word(&report["outcome"]), word(&report["summary"]));
    let list = |name: &str| report[name].as_array().map_or(&[][..], Vec::as_slice);
    let proofs = list("proofs").len();
    let all = list("findings");
    let findings: Vec<Value> = all
        .iter()
        .take(MAX_FINDINGS as usize)
        .map(|finding| {
            json!({
                "fingerprint": word(&finding["fingerprint"]),
                "rule": word(&finding["rule"]),
                "status": word(&finding["status"]),
                "reason": finding["reason"].as_str().map_or_else(String::new, |r| clean::short(r, 300)),
            })
        })
        .collect();
    let mut text = format!("{outcome}: {summary}\n{proofs} proofs\n");
    for finding in &findings {
        let said = |key: &str| finding[key].as_str().unwrap_or_default().to_owned();
        let _ = writeln!(
            text,
            "{} {} {}",
            said("status"),
            said("rule"),
            said("fingerprint")
        );
    }
    Ok(Answer {
        structured: json!({
            "outcome": outcome,
            "summary": summary,
            "proofs": proofs,
            "left_out": all.len() - findings.len(),
            "findings": findings,
        }),
        text,
    })
}
