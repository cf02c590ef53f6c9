//! For a pull request comment or a job summary.

use std::fmt::Write as _;

use toctou_core::finding::Finding;

use crate::clean::{markdown, markdown_block, markdown_cell_code, markdown_code, markdown_prose};
use crate::snippet::Gutter;
use crate::timeline;
use crate::view::{Terminal, View, plural};

/// A comment holds 65,536 characters; a finding takes about 1,500.
const DETAILS: usize = 25;
/// A job summary holds a megabyte; a row is seldom longer than 500 bytes.
const ROWS: usize = 500;

pub(crate) fn render(view: &View<'_>) -> String {
    let summary = &view.report.summary;
    let findings: Vec<&Finding> = view.active().collect();
    let mut out = String::from("## toctou: race conditions\n\n");
    let counts: Vec<String> = view
        .counts()
        .iter()
        .map(|(severity, count)| format!("{count} {severity}"))
        .collect();
    if findings.is_empty() {
        let _ = writeln!(out, "**No findings** for the {} persona.", view.persona);
    } else {
        let _ = writeln!(
            out,
            "**{}**: {}.",
            plural(findings.len(), "finding"),
            counts.join(", ")
        );
    }
    let _ = writeln!(
        out,
        "Score {} of 100, grade **{}**. Scanned {}, {}; {} skipped, {} suppressed.\n",
        summary.score,
        markdown(&summary.grade),
        plural(summary.files as usize, "file"),
        plural(summary.entry_points as usize, "entry point"),
        summary.skipped,
        plural(summary.suppressed as usize, "finding"),
    );
    if let Some(source) = &view.report.source {
        let _ = writeln!(out, "Source: {}\n", markdown_code(&source.to_string()));
    }
    if !findings.is_empty() {
        out += "| severity | rule | where | what |\n|---|---|---|---|\n";
        for finding in findings.iter().take(ROWS) {
            let place = format!(
                "{}{}:{}",
                view.base, finding.location.file, finding.location.line
            );
            let _ = writeln!(
                out,
                "| {} | {} | {} | {} |",
                finding.severity,
                markdown_cell_code(&finding.rule),
                markdown_cell_code(&place),
                markdown_prose(&finding.message),
            );
        }
        out.push('\n');
        if findings.len() > ROWS {
            let _ = writeln!(out, "{} more are left out here.\n", findings.len() - ROWS);
        }
    }
    for finding in findings.iter().take(DETAILS) {
        out += &details(finding);
    }
    if findings.len() > DETAILS {
        let _ = writeln!(
            out,
            "Details of {} more are left out here.\n",
            findings.len() - DETAILS
        );
    }
    let faults: Vec<_> = view
        .report
        .skipped
        .iter()
        .filter(|skipped| skipped.fault)
        .collect();
    if !faults.is_empty() {
        out += "**Not analysed:**\n\n";
        for skipped in faults {
            let _ = writeln!(
                out,
                "- {}: {}",
                markdown_code(&skipped.file),
                markdown(&skipped.reason)
            );
        }
        out.push('\n');
    }
    out
}

fn details(finding: &Finding) -> String {
    let place = &finding.location;
    let gutter = Gutter {
        digits: 4,
        terminal: Terminal {
            width: 88,
            color: false,
            unicode: true,
        },
    };
    let drawing = timeline::render(&finding.interleaving, &place.file, gutter);
    let mut out = format!(
        "<details><summary>{} at {}:{}</summary>\n\n",
        markdown(&finding.rule),
        markdown(&place.file),
        place.line
    );
    if !drawing.is_empty() {
        out += &markdown_block(&drawing, "text");
        out.push('\n');
    }
    let entries: Vec<String> = finding
        .entry_points
        .iter()
        .take(5)
        .map(|entry| {
            format!(
                "{} {}",
                crate::text::kind(entry.kind),
                markdown_code(&entry.name)
            )
        })
        .collect();
    for (name, text) in [
        ("Reporting because", markdown_prose(&finding.because)),
        ("Fix", markdown_prose(&finding.fix)),
        ("Entry points", entries.join(", ")),
    ] {
        if !text.is_empty() {
            let _ = writeln!(out, "**{name}:** {text}\n");
        }
    }
    out + "</details>\n\n"
}

#[cfg(test)]
mod tests {
    use crate::fixtures;

    #[test]
    fn table_and_details() {
        let report = fixtures::report();
        insta::assert_snapshot!(super::render(&fixtures::view(&report)));
    }

    /// As a reader of Markdown sees it: a run of backticks opens code, and the
    /// next run of the same length ends it.
    fn without_code(text: &str) -> String {
        let mut out = String::new();
        let mut rest = text;
        while let Some(at) = rest.find(['`', '\\']) {
            out += &rest[..at];
            rest = &rest[at..];
            if rest.starts_with('\\') {
                rest = rest.get(2..).unwrap_or("");
                continue;
            }
            let run = rest.len() - rest.trim_start_matches('`').len();
            let fence = &rest[..run];
            let mut end = run;
            loop {
                let Some(found) = rest[end..].find(fence) else {
                    return out + rest;
                };
                let start = end + found;
                let length = rest[start..].len() - rest[start..].trim_start_matches('`').len();
                end = start + length;
                if length == run {
                    break;
                }
            }
            rest = &rest[end..];
        }
        out + rest
    }

    #[test]
    fn hostile_text_stays_text() {
        let report = fixtures::hostile();
        let text = super::render(&fixtures::view(&report));
        // In code it is shown as it is; outside code there is none.
        let prose = without_code(&text);
        assert!(!prose.contains("<script"), "{prose}");
        assert!(!text.contains('\u{1b}'));
        let rows = text
            .lines()
            .filter(|line| line.starts_with("| high"))
            .count();
        assert_eq!(rows, report.findings.len());
    }
}
