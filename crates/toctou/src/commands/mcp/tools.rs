//! The tools: what they take, what they give, and how much of it.

mod given;
mod prove;
mod scan;

use std::sync::atomic::AtomicBool;

use serde_json::{Value, json};
use toctou_report::clean;
use toctou_rules::registry;

use super::roots::Roots;
use crate::errors::Error;
use given::Given;

const MAX_FINDINGS: u64 = 100;

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
        input: scan::input,
        output: scan::output,
        call: |roots, arguments, stop| answer(scan::run(roots, arguments, stop)),
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
        input: prove::input,
        output: prove::output,
        call: |roots, arguments, _| answer(prove::run(roots, arguments)),
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
