//! For programs: `toctou.scan/1`, a contract that other tools read.
//!
//! `findings` holds what counts; suppressed ones stand apart, so that a reader
//! who knows nothing of suppressions does the right thing.

use schemars::{JsonSchema, Schema, schema_for};
use serde::Serialize;
use toctou_core::finding::{Finding, Note, Skipped, Source, Summary};
use toctou_core::rule::Persona;

use crate::clean;
use crate::view::View;

/// The document that `toctou scan --output json` writes.
#[derive(Serialize, JsonSchema)]
#[schemars(title = "toctou.scan/1")]
struct Document<'a> {
    /// Always `toctou.scan/1`. Fields may be added under this name, never removed.
    schema: &'a str,
    tool_version: &'a str,
    /// Whose findings these are.
    persona: Persona,
    /// Where the source came from, if not from a path.
    #[serde(skip_serializing_if = "Option::is_none")]
    source: Option<&'a Source>,
    summary: &'a Summary,
    findings: Vec<&'a Finding>,
    /// Found, and ignored by a comment, the config or the baseline.
    suppressed: Vec<&'a Finding>,
    notes: &'a [Note],
    skipped: &'a [Skipped],
    /// With `--stats` only.
    #[serde(skip_serializing_if = "Option::is_none")]
    stats: Option<Stats<'a>>,
}

#[derive(Serialize, JsonSchema)]
struct Stats<'a> {
    bytes: u64,
    lines: u64,
    /// Calls that no model knows, most frequent first.
    unknown_calls: Vec<UnknownCall<'a>>,
}

#[derive(Serialize, JsonSchema)]
struct UnknownCall<'a> {
    name: &'a str,
    count: u32,
}

pub(crate) fn render(view: &View<'_>) -> String {
    let report = view.report;
    let document = Document {
        schema: &report.schema,
        tool_version: &report.tool_version,
        persona: view.persona,
        source: report.source.as_ref(),
        summary: &report.summary,
        findings: view.active().collect(),
        suppressed: view.suppressed().collect(),
        notes: &report.notes,
        skipped: &report.skipped,
        stats: view.stats.map(|stats| Stats {
            bytes: stats.bytes,
            lines: stats.lines,
            unknown_calls: stats
                .unknown_calls
                .iter()
                .map(|(name, count)| UnknownCall {
                    name,
                    count: *count,
                })
                .collect(),
        }),
    };
    to_text(&document)
}

/// Pretty, with a final line break, and with nothing a terminal would act on.
pub(crate) fn to_text<T: Serialize>(document: &T) -> String {
    match serde_json::to_string_pretty(document) {
        Ok(text) => clean::json(&text) + "\n",
        // Strings, numbers and lists only: there is nothing in it that can fail.
        Err(error) => unreachable!("a report is always JSON: {error}"),
    }
}

/// JSON schema of the document.
pub fn scan_schema() -> Schema {
    schema_for!(Document<'static>)
}

#[cfg(test)]
mod tests {
    use crate::fixtures;

    #[test]
    fn keeps_the_contract() {
        let report = fixtures::report();
        let text = super::render(&fixtures::view(&report));
        let value: serde_json::Value = serde_json::from_str(&text).expect("json");
        assert_eq!(value["schema"], "toctou.scan/1");
        let finding = &value["findings"][0];
        for key in [
            "rule",
            "severity",
            "confidence",
            "persona",
            "scopes",
            "message",
            "fix",
            "fingerprint",
            "resource",
            "location",
            "entry_points",
            "interleaving",
        ] {
            assert!(!finding[key].is_null(), "{key}");
        }
        assert_eq!(finding["scopes"][1], "cross-process");
        assert_eq!(finding["resource"]["kind"], "file");
        assert_eq!(value["suppressed"].as_array().map(Vec::len), Some(1));
        assert_eq!(
            value["suppressed"][0]["suppressed"]["reason"],
            "only one writer"
        );
    }

    #[test]
    fn matches_its_own_schema() {
        let report = fixtures::report();
        let text = super::render(&fixtures::view(&report));
        let value: serde_json::Value = serde_json::from_str(&text).expect("json");
        let schema = serde_json::to_value(super::scan_schema()).expect("schema");
        let validator = jsonschema::validator_for(&schema).expect("a valid schema");
        let errors: Vec<String> = validator
            .iter_errors(&value)
            .map(|e| e.to_string())
            .collect();
        assert!(errors.is_empty(), "{errors:#?}");
    }
}
