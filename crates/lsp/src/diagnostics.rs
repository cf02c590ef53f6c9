//! Findings as an editor shows them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use toctou_core::finding::Location;
use toctou_core::interleaving::Action;
use toctou_core::rule::Severity;
use toctou_core::{Finding, SourceFile};
use toctou_report::clean;

use crate::protocol::{CodeDescription, Diagnostic, Place, Position, Range, Related};
use crate::{Problem, Scan, text, uri};

const PAGES: &str = "https://github.com/toctou-dev/toctou/blob/main/docs/rules";
pub(crate) const SOURCE: &str = "toctou";

/// By file, as the editor names it; `folder` is the editor's name for the root.
pub(crate) fn of_scan(folder: &Path, scan: &Scan) -> BTreeMap<PathBuf, Vec<Diagnostic>> {
    let mut all: BTreeMap<PathBuf, Vec<Diagnostic>> = BTreeMap::new();
    for finding in &scan.findings {
        all.entry(folder.join(&finding.location.file))
            .or_default()
            .push(of_finding(folder, scan, finding));
    }
    of_problems(folder, &scan.problems, &mut all);
    all
}

pub(crate) fn of_problems(
    folder: &Path,
    problems: &[Problem],
    all: &mut BTreeMap<PathBuf, Vec<Diagnostic>>,
) {
    for problem in problems {
        let line = problem.line.saturating_sub(1);
        let end = Position {
            line: line + 1,
            character: 0,
        };
        all.entry(folder.join(&problem.path))
            .or_default()
            .push(Diagnostic {
                range: Range {
                    start: Position { line, character: 0 },
                    end,
                },
                severity: 1,
                code: None,
                code_description: None,
                source: SOURCE,
                message: clean::line(&problem.text),
                related_information: Vec::new(),
            });
    }
}

pub(crate) fn of_finding(folder: &Path, scan: &Scan, finding: &Finding) -> Diagnostic {
    let mut message = clean::line(&finding.message);
    message += &format!("\nBecause: {}", clean::line(&finding.because));
    message += &format!("\nFix: {}", clean::line(&finding.fix));
    Diagnostic {
        range: range(scan, &finding.location),
        severity: match finding.severity {
            Severity::Critical | Severity::High => 1,
            Severity::Medium => 2,
            Severity::Low => 3,
            Severity::Info => 4,
        },
        code: Some(finding.rule.clone()),
        code_description: Some(CodeDescription {
            href: format!("{PAGES}/{}.md", finding.rule),
        }),
        source: SOURCE,
        message,
        related_information: related(folder, scan, finding),
    }
}

/// The steps of both calls, in the order of time: what the editor lists below
/// the message and jumps to.
fn related(folder: &Path, scan: &Scan, finding: &Finding) -> Vec<Related> {
    let steps = finding.interleaving.iter().enumerate();
    steps
        .map(|(number, step)| {
            let nowhere = step.line == 0 || step.file.is_empty();
            let (file, line) = if nowhere {
                (&finding.location.file, finding.location.line)
            } else {
                (&step.file, step.line)
            };
            let who = match step.action {
                Action::Outcome => String::new(),
                _ => format!("call {}: ", step.actor),
            };
            let value = step
                .value
                .as_ref()
                .map_or_else(String::new, |value| format!(" = {value}"));
            Related {
                location: Place {
                    uri: uri::of_path(&folder.join(file)),
                    range: whole_line(source(scan, file), line),
                },
                message: clean::line(&format!("{}. {who}{}{value}", number + 1, step.text)),
            }
        })
        .collect()
}

pub(crate) fn source<'a>(scan: &'a Scan, path: &str) -> Option<&'a SourceFile> {
    let index = scan
        .sources
        .binary_search_by(|file| (*file.path).cmp(path))
        .ok()?;
    scan.sources.get(index)
}

fn whole_line(source: Option<&SourceFile>, line: u32) -> Range {
    let text = source.map_or("", |source| source.line_text(line));
    let indent = text.len() - text.trim_start().len();
    let line = line.saturating_sub(1);
    let at = |character| Position { line, character };
    Range {
        start: at(text::units(&text[..indent])),
        end: at(text::units(text)),
    }
}

/// On one line: a mark over a whole function body helps nobody.
pub(crate) fn range(scan: &Scan, place: &Location) -> Range {
    let source = source(scan, &place.file);
    let line = source.map_or("", |source| source.line_text(place.line));
    let start = text::character(line, place.column);
    let end = if place.end_line == place.line {
        text::character(line, place.end_column)
    } else {
        text::units(line)
    };
    let at = |character| Position {
        line: place.line.saturating_sub(1),
        character,
    };
    Range {
        start: at(start),
        end: at(end.max(start + 1)),
    }
}
