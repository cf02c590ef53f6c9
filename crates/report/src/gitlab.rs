//! GitLab's code quality report: a list that a merge request compares with
//! that of its target branch, by fingerprint.
//!
//! GitLab shows what it is given, so what does not count is left out.

use serde::Serialize;
use toctou_core::finding::Finding;
use toctou_core::rule::Severity;

use crate::clean;
use crate::json::to_text;
use crate::view::View;

#[derive(Serialize)]
struct Issue<'a> {
    description: String,
    check_name: &'a str,
    fingerprint: &'a str,
    severity: &'static str,
    location: Place,
}

#[derive(Serialize)]
struct Place {
    /// From the root of the repository, which is where jobs run.
    path: String,
    lines: Lines,
}

#[derive(Serialize)]
struct Lines {
    begin: u32,
    end: u32,
}

pub(crate) fn render(view: &View<'_>) -> String {
    let issues: Vec<Issue<'_>> = view
        .active()
        .filter(|finding| !finding.non_product)
        .map(|finding| issue(view, finding))
        .collect();
    to_text(&issues)
}

fn issue<'a>(view: &View<'_>, finding: &'a Finding) -> Issue<'a> {
    let place = &finding.location;
    Issue {
        description: clean::line(&finding.message),
        check_name: &finding.rule,
        fingerprint: &finding.fingerprint,
        severity: match finding.severity {
            Severity::Critical => "blocker",
            Severity::High => "critical",
            Severity::Medium => "major",
            Severity::Low => "minor",
            Severity::Info => "info",
        },
        location: Place {
            path: format!("{}{}", view.base, place.file),
            lines: Lines {
                begin: place.line.max(1),
                end: place.end_line.max(place.line).max(1),
            },
        },
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use crate::fixtures;

    fn rendered(report: &toctou_core::finding::ScanReport) -> Value {
        serde_json::from_str(&super::render(&fixtures::view(report))).expect("json")
    }

    fn schema_errors(value: &Value) -> Vec<String> {
        let schema = include_str!("../tests/data/gitlab-code-quality.schema.json");
        let schema: Value = serde_json::from_str(schema).expect("schema");
        let validator = jsonschema::validator_for(&schema).expect("a valid schema");
        validator
            .iter_errors(value)
            .map(|e| format!("{}: {e}", e.instance_path))
            .collect()
    }

    #[test]
    fn validates_against_the_schema() {
        for report in [fixtures::report(), fixtures::hostile(), Default::default()] {
            assert_eq!(schema_errors(&rendered(&report)), [""; 0]);
        }
        let mut wrong = rendered(&fixtures::report());
        wrong[0]["severity"] = "high".into();
        wrong[0]["location"]["path"] = "./a.ts".into();
        assert_eq!(schema_errors(&wrong).len(), 2);
    }

    #[test]
    fn has_what_counts_and_nothing_else() {
        let mut report = fixtures::report();
        let all = rendered(&report);
        let all = all.as_array().expect("a list");
        // One of three is suppressed.
        assert_eq!(all.len(), 2);
        assert_eq!(all[0]["severity"], "critical");
        assert_eq!(all[0]["fingerprint"], "00000000000000f1");
        assert_eq!(
            all[0]["location"]["path"],
            format!("{}src/memory/index.ts", fixtures::view(&report).base)
        );
        report.findings[0].non_product = true;
        assert_eq!(rendered(&report).as_array().map(Vec::len), Some(1));
    }
}
