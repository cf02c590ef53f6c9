//! The tools: what they take, what they give, and how much of it.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::io::Read as _;
use std::sync::atomic::AtomicBool;

use serde_json::{Map, Value, json};
use toctou_core::Finding;
use toctou_core::interleaving::Action;
use toctou_core::rule::{Persona, Severity};
use toctou_report::clean;
use toctou_rules::registry;

use super::roots::Roots;
use crate::cli::InputArgs;
use crate::errors::Error;
use crate::select::{Selection, select};

/// An agent pays for every byte that it reads.
const MAX_BYTES: usize = 48 << 10;
const MAX_FINDINGS: u64 = 100;
const MAX_FILE: u64 = 32 << 20;

pub(super) struct Tool {
    pub(super) name: &'static str,
    title: &'static str,
    description: &'static str,
    input: fn() -> Value,
    output: fn() -> Value,
    pub(super) call: fn(&Roots, &Value, &AtomicBool) -> Value,
}

pub(super) const TOOLS: &[Tool] = &[
    Tool {
        name: "scan",
        title: "Find races",
        description: "Finds race conditions in the source of an MCP server (TypeScript, JavaScript, Python, Go, Rust): \
            which tool calls can corrupt what when they run at the same time, by which order of steps, and how to fix it. \
            Reads files, runs nothing.",
        input: scan_input,
        output: scan_output,
        call: |roots, arguments, stop| answer(scan(roots, arguments, stop)),
    },
    Tool {
        name: "explain",
        title: "Explain a rule",
        description: "What a rule means, with examples of code that is wrong and of code that is right, and the fix.",
        input: explain_input,
        output: explain_output,
        call: |_, arguments, _| answer(explain(arguments)),
    },
    Tool {
        name: "prove_status",
        title: "What was proved",
        description: "Reads the report that `toctou prove --output json=FILE` has written: which findings were shown to \
            be real by running the server. Runs nothing.",
        input: prove_input,
        output: prove_output,
        call: |roots, arguments, _| answer(prove_status(roots, arguments)),
    },
];

pub(super) fn list() -> Value {
    let tools: Vec<Value> = TOOLS
        .iter()
        .map(|tool| {
            json!({
                "name": tool.name,
                "title": tool.title,
                "description": tool.description,
                "inputSchema": (tool.input)(),
                "outputSchema": (tool.output)(),
                "annotations": {
                    "title": tool.title,
                    "readOnlyHint": true,
                    "destructiveHint": false,
                    "idempotentHint": true,
                    "openWorldHint": false,
                },
            })
        })
        .collect();
    json!({ "resultType": "complete", "tools": tools, "ttlMs": 3_600_000, "cacheScope": "public" })
}

/// What a tool gives: for programs, and for whoever reads.
struct Answer {
    structured: Value,
    text: String,
}

/// What went wrong is told as a result: it is the model who can do better.
fn answer(result: Result<Answer, String>) -> Value {
    match result {
        Ok(Answer { structured, text }) => json!({
            "resultType": "complete",
            "content": [{ "type": "text", "text": text }],
            "structuredContent": structured,
            "isError": false,
        }),
        Err(text) => json!({
            "resultType": "complete",
            "content": [{ "type": "text", "text": text }],
            "isError": true,
        }),
    }
}

fn scan_input() -> Value {
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

fn scan_output() -> Value {
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

fn scan(roots: &Roots, arguments: &Value, stop: &AtomicBool) -> Result<Answer, String> {
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

/// As on the terminal: what happened, and what to do.
fn failure(error: &Error) -> String {
    error.render(false).trim_end().to_owned()
}

fn explain_input() -> Value {
    json!({
        "type": "object",
        "properties": { "rule": { "type": "string", "description": "Id of the rule, such as file-read-modify-write." } },
        "required": ["rule"],
        "additionalProperties": false,
    })
}

fn explain_output() -> Value {
    json!({
        "type": "object",
        "properties": {
            "rule": { "type": "string" },
            "summary": { "type": "string" },
            "severity": { "type": "string" },
            "persona": { "type": "string" },
            "page": { "type": "string", "description": "Markdown." },
        },
        "required": ["rule", "summary", "severity", "persona", "page"],
    })
}

fn explain(arguments: &Value) -> Result<Answer, String> {
    let given = Given(arguments);
    given.only(&["rule"])?;
    let id = given.text("rule")?.ok_or("`rule` is missing")?;
    let Some(rule) = registry::find(id) else {
        let rule = clean::short(id, 100);
        let closest = registry::closest(id);
        return Err(failure(&Error::UnknownRule { rule, closest }));
    };
    Ok(Answer {
        structured: json!({
            "rule": rule.id,
            "summary": rule.summary,
            "severity": rule.severity,
            "persona": rule.persona,
            "page": rule.page,
        }),
        text: rule.page.to_owned(),
    })
}

fn prove_input() -> Value {
    json!({
        "type": "object",
        "properties": { "path": { "type": "string", "description": "The report, from the root that toctou was started with." } },
        "additionalProperties": false,
    })
}

fn prove_output() -> Value {
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

fn prove_status(roots: &Roots, arguments: &Value) -> Result<Answer, String> {
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

/// Arguments, and what is wrong with them, for the model to read.
struct Given<'a>(&'a Value);

impl<'a> Given<'a> {
    fn only(&self, names: &[&str]) -> Result<(), String> {
        let empty = Map::new();
        let stranger = self
            .0
            .as_object()
            .unwrap_or(&empty)
            .keys()
            .find(|key| !names.contains(&key.as_str()));
        match stranger {
            None => Ok(()),
            Some(key) => Err(format!(
                "there is no argument `{}`; there is {}",
                clean::short(key, 100),
                names.join(", ")
            )),
        }
    }

    fn text(&self, name: &str) -> Result<Option<&'a str>, String> {
        match &self.0[name] {
            Value::Null => Ok(None),
            Value::String(text) => Ok(Some(text)),
            _ => Err(format!("`{name}` is not a string")),
        }
    }

    fn number(&self, name: &str) -> Result<Option<u64>, String> {
        match &self.0[name] {
            Value::Null => Ok(None),
            value => value
                .as_u64()
                .map(Some)
                .ok_or_else(|| format!("`{name}` is not a number from 0 on")),
        }
    }

    fn word<T: std::str::FromStr>(&self, name: &str) -> Result<Option<T>, String> {
        let Some(text) = self.text(name)? else {
            return Ok(None);
        };
        let parsed = text.parse().map(Some);
        parsed.map_err(|_| format!("`{}` is no {name}", clean::short(text, 100)))
    }

    fn rules(&self) -> Result<Vec<String>, String> {
        let Value::Array(names) = &self.0["rules"] else {
            return match &self.0["rules"] {
                Value::Null => Ok(Vec::new()),
                _ => Err("`rules` is not a list".to_owned()),
            };
        };
        names
            .iter()
            .map(|name| {
                let name = name.as_str().unwrap_or_default();
                match registry::find(name) {
                    Some(rule) => Ok(rule.id.to_owned()),
                    None => Err(failure(&Error::UnknownRule {
                        rule: clean::short(name, 100),
                        closest: registry::closest(name),
                    })),
                }
            })
            .collect()
    }
}
