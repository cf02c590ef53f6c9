//! Workflow commands: a GitHub Actions run shows them as annotations.
//!
//! GitHub shows ten errors and ten warnings per step and drops the rest, so
//! the worst come first. For more than that, upload SARIF.

use toctou_core::finding::Finding;
use toctou_core::rule::Severity;

use crate::clean::{workflow_data, workflow_property};
use crate::view::{View, plural};

pub(crate) fn render(view: &View<'_>) -> String {
    let mut out = String::new();
    let mut findings: Vec<&Finding> = view.active().collect();
    findings.sort_by_key(|finding| std::cmp::Reverse(finding.severity));
    for finding in &findings {
        out += &command(view, finding);
    }
    for skipped in view.report.skipped.iter().filter(|skipped| skipped.fault) {
        let file = workflow_property(&format!("{}{}", view.base, skipped.file));
        out += &format!(
            "::warning file={file},title=toctou::not analysed%3A {}\n",
            workflow_data(&skipped.reason)
        );
    }
    for note in &view.report.notes {
        let mut properties = String::new();
        if let Some(file) = &note.file {
            properties += &format!(
                "file={},",
                workflow_property(&format!("{}{file}", view.base))
            );
        }
        if let Some(line) = note.line {
            properties += &format!("line={line},");
        }
        out += &format!(
            "::notice {properties}title=toctou::{}\n",
            workflow_data(&note.text)
        );
    }
    let summary = &view.report.summary;
    out += &format!(
        "toctou: {} in {}; score {} of 100, grade {}\n",
        plural(findings.len(), "finding"),
        plural(summary.files as usize, "file"),
        summary.score,
        summary.grade,
    );
    out
}

fn command(view: &View<'_>, finding: &Finding) -> String {
    let level = match finding.severity {
        Severity::Critical | Severity::High => "error",
        Severity::Medium => "warning",
        Severity::Low | Severity::Info => "notice",
    };
    let place = &finding.location;
    let file = workflow_property(&format!("{}{}", view.base, place.file));
    // Columns are only allowed when the span is on one line.
    let columns = if place.line == place.end_line {
        format!(",col={},endColumn={}", place.column, place.end_column)
    } else {
        String::new()
    };
    let title = workflow_property(&format!("{} ({})", finding.rule, finding.severity));
    let text = workflow_data(&format!("{}\nFix: {}", finding.message, finding.fix));
    format!(
        "::{level} file={file},line={},endLine={}{columns},title={title}::{text}\n",
        place.line, place.end_line,
    )
}

#[cfg(test)]
mod tests {
    use crate::fixtures;

    #[test]
    fn one_command_per_finding() {
        let report = fixtures::report();
        insta::assert_snapshot!(super::render(&fixtures::view(&report)));
    }

    #[test]
    fn hostile_text_adds_no_command() {
        let report = fixtures::hostile();
        let text = super::render(&fixtures::view(&report));
        let commands = text.lines().filter(|line| line.starts_with("::")).count();
        assert_eq!(
            commands,
            report.findings.len() + report.skipped.len() + report.notes.len()
        );
        assert!(!text.contains('\u{1b}'));
    }
}
