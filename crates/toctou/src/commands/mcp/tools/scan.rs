//! `scan`: findings, worst first, as many as an agent can use at a time.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::sync::atomic::AtomicBool;

use serde_json::{Value, json};
use toctou_core::Finding;
use toctou_core::interleaving::Action;
use toctou_core::rule::{Persona, Severity};
use toctou_report::clean;

use super::given::Given;
use super::{Answer, MAX_FINDINGS, Roots, failure};
use crate::cli::InputArgs;
use crate::select::{Selection, select};

/// An agent pays for every byte that it reads.
const MAX_BYTES: usize = 48 << 10;

pub(super) fn input() -> Value {
    let severities: Vec<&str> = Severity::ALL.iter().map(|s| s.as_str()).collect();
    let personas: Vec<&str> = Persona::ALL.iter().map(|p| p.as_str()).collect();
    json!({
        "type": "object",
        "properties": {
            "path": { "type": "string", "description": "Folder or file, from the root that toctou was started with. Default: all of it." },
            "persona": { "enum": personas, "description": "regular: near certain. pedantic, auditor: more to look at." },
            "min_severity": { "enum": severities },
            "rules": { "type": "array", "items": { "type": "string" }, "description": "These rules only." },
            "limit": { "type": "integer", "minimum": 1, "maximum": MAX_FINDINGS, "description": "At most so many findings. Default: 20." },
            "offset": { "type": "integer", "minimum": 0, "description": "Leave out so many, to see the rest." },
        },
        "additionalProperties": false,
    })
}

pub(super) fn output() -> Value {
    let count = json!({ "type": "integer" });
    let text = json!({ "type": "string" });
    let texts = json!({ "type": "array", "items": text });
    json!({
        "type": "object",
        "properties": {
            "root": text,
            "score": count, "grade": text,
            "files": count, "entry_points": count, "skipped": count,
            "total": count,
            "left_out": count,
            "findings": { "type": "array", "items": {
                "type": "object",
                "properties": {
                    "rule": text, "severity": text, "confidence": text,
                    "message": text, "fix": text, "because": text,
                    "file": text, "line": count, "column": count, "function": text,
                    "entry_points": texts, "steps": texts, "scopes": texts,
                    "fingerprint": text, "counts": { "type": "boolean" },
                },
                "required": ["rule", "severity", "message", "fix", "file", "line", "fingerprint"],
            } },
            "notes": texts,
        },
        "required": ["root", "score", "grade", "total", "left_out", "findings", "notes"],
    })
}

pub(super) fn run(roots: &Roots, arguments: &Value, stop: &AtomicBool) -> Result<Answer, String> {
    let given = Given(arguments);
    given.only(&[
        "path",
        "persona",
        "min_severity",
        "rules",
        "limit",
        "offset",
    ])?;
    let asked = given.text("path")?.unwrap_or(".");
    let path = roots.resolve(asked).ok_or_else(|| {
        format!(
            "there is no `{}` that may be read here",
            clean::short(asked, 200)
        )
    })?;
    let persona = given.word::<Persona>("persona")?;
    let min_severity = given.word::<Severity>("min_severity")?;
    let rules = given.rules()?;
    let limit = given.number("limit")?.unwrap_or(20).clamp(1, MAX_FINDINGS) as usize;
    let offset = given.number("offset")?.unwrap_or(0) as usize;
    let mut args = InputArgs::of(path.clone());
    let (input, scan) = roots
        .scan(&mut args, stop)
        .map_err(|error| failure(&error))?;
    args.persona = persona;
    let selection = Selection {
        persona: input.persona(&args),
        min_severity: min_severity
            .or(input.config.min_severity)
            .unwrap_or(Severity::Info),
        rules: &rules,
        known: &BTreeSet::new(),
    };
    let (report, _) = select(&scan, &selection);
    let mut active: Vec<&Finding> = report
        .findings
        .iter()
        .filter(|finding| finding.suppressed.is_none())
        .collect();
    active.sort_by_key(|finding| std::cmp::Reverse(finding.severity));

    let mut notes: Vec<String> = Vec::new();
    for wrong in scan.bad_comments.iter().take(20) {
        notes.push(format!("{wrong}; {}", wrong.fault.hint()));
    }
    for skipped in report
        .skipped
        .iter()
        .filter(|skipped| skipped.fault)
        .take(20)
    {
        notes.push(format!(
            "not analysed: {}: {}",
            skipped.file, skipped.reason
        ));
    }
    let mut findings = Vec::new();
    let mut size = 0;
    for finding in active.iter().skip(offset).take(limit) {
        let value = compact(finding);
        size += value.to_string().len();
        if size > MAX_BYTES {
            break;
        }
        findings.push(value);
    }
    let left_out = active
        .len()
        .saturating_sub(offset)
        .saturating_sub(findings.len());
    let summary = &report.summary;
    let mut text = format!(
        "{} findings; score {} of 100, grade {}; {} files, {} entry points\n",
        active.len(),
        summary.score,
        summary.grade,
        summary.files,
        summary.entry_points
    );
    for finding in active.iter().skip(offset).take(findings.len()) {
        let place = &finding.location;
        let _ = writeln!(
            text,
            "\n{} {} at {}:{}\n{}\nfix: {}",
            finding.severity,
            finding.rule,
            clean::line(&place.file),
            place.line,
            clean::line(&finding.message),
            clean::line(&finding.fix),
        );
    }
    if left_out > 0 {
        let next = offset + findings.len();
        let _ = writeln!(text, "\n{left_out} more: call again with offset {next}");
    }
    for note in &notes {
        let _ = writeln!(text, "note: {}", clean::line(note));
    }
    Ok(Answer {
        structured: json!({
            "root": roots.shown(&path),
            "score": summary.score,
            "grade": summary.grade,
            "files": summary.files,
            "entry_points": summary.entry_points,
            "skipped": summary.skipped,
            "total": active.len(),
            "left_out": left_out,
            "findings": findings,
            "notes": notes.iter().map(|note| clean::short(note, 500)).collect::<Vec<_>>(),
        }),
        text,
    })
}

fn compact(finding: &Finding) -> Value {
    let place = &finding.location;
    let steps: Vec<String> = finding
        .interleaving
        .iter()
        .take(16)
        .map(|step| match step.action {
            Action::Outcome => clean::short(&step.text, 200),
            _ => clean::short(
                &format!(
                    "{}: {} ({}:{})",
                    step.actor, step.text, step.file, step.line
                ),
                300,
            ),
        })
        .collect();
    let entries: Vec<String> = finding
        .entry_points
        .iter()
        .take(10)
        .map(|entry| clean::short(&entry.name, 100))
        .collect();
    json!({
        "rule": finding.rule,
        "severity": finding.severity,
        "confidence": finding.confidence,
        "message": clean::short(&finding.message, 1000),
        "fix": clean::short(&finding.fix, 1000),
        "because": clean::short(&finding.because, 500),
        "file": clean::short(&place.file, 500),
        "line": place.line,
        "column": place.column,
        "function": clean::short(&place.function, 200),
        "entry_points": entries,
        "steps": steps,
        "scopes": finding.scopes,
        "fingerprint": finding.fingerprint,
        "counts": !finding.non_product,
    })
}
