//! From everything that was found to what was asked for.

use std::collections::BTreeSet;

use toctou_core::finding::{Finding, SCAN_SCHEMA, ScanReport, Summary};
use toctou_core::rule::{Persona, Severity};
use toctou_report::Hidden;
use toctou_rules::{registry, score};

use crate::pipeline::Scan;

pub(crate) struct Selection<'a> {
    pub(crate) persona: Persona,
    pub(crate) min_severity: Severity,
    /// Empty is all.
    pub(crate) rules: &'a [String],
    /// Fingerprints of what is no news.
    pub(crate) known: &'a BTreeSet<String>,
}

/// The score is of the project, not of the selection: it comes first.
pub(crate) fn select(scan: &Scan, selection: &Selection<'_>) -> (ScanReport, Hidden) {
    let score = score::score(&scan.findings, registry::all());
    let mut hidden = Hidden::default();
    let mut findings = Vec::new();
    let news = |finding: &&Finding| !selection.known.contains(&finding.fingerprint);
    for finding in scan.findings.iter().filter(news) {
        let asked = finding.severity >= selection.min_severity
            && (selection.rules.is_empty() || selection.rules.contains(&finding.rule));
        let count = match () {
            () if !asked => &mut hidden.filtered,
            () if finding.persona <= selection.persona => {
                findings.push(finding.clone());
                continue;
            }
            () if finding.persona == Persona::Pedantic => &mut hidden.pedantic,
            () => &mut hidden.auditor,
        };
        // What is suppressed, or for another persona as well, is not missed.
        if finding.suppressed.is_none() && (asked || finding.persona <= selection.persona) {
            *count += 1;
        }
    }
    let report = ScanReport {
        schema: SCAN_SCHEMA.to_owned(),
        tool_version: env!("CARGO_PKG_VERSION").to_owned(),
        source: None,
        summary: Summary {
            score: score.points,
            grade: score.grade.to_owned(),
            files: scan.sources.len() as u32,
            functions: scan.functions,
            entry_points: scan.entry_points,
            skipped: scan.skipped_files,
            suppressed: findings
                .iter()
                .filter(|finding| finding.suppressed.is_some())
                .count() as u32,
            deductions: score.deductions,
            capped: score.capped,
        },
        findings,
        notes: scan.notes.clone(),
        skipped: scan.skipped.clone(),
    };
    (report, hidden)
}

/// Does this finding make the run fail?
pub(crate) fn fails(finding: &Finding, fail_on: Severity) -> bool {
    score::counts(finding) && finding.severity >= fail_on
}

#[cfg(test)]
mod tests {
    use super::*;
    use toctou_core::finding::{Location, Resource, ResourceKind};
    use toctou_core::rule::Confidence;

    fn finding(persona: Persona, severity: Severity) -> Finding {
        Finding {
            rule: "data-race".to_owned(),
            severity,
            confidence: Confidence::High,
            persona,
            scopes: Vec::new(),
            message: String::new(),
            fix: String::new(),
            because: String::new(),
            fingerprint: String::new(),
            anchor: String::new(),
            resource: Resource {
                kind: ResourceKind::Memory,
                key: String::new(),
            },
            location: Location {
                file: "a.ts".to_owned(),
                line: 1,
                column: 1,
                end_line: 1,
                end_column: 2,
                function: String::new(),
            },
            read: None,
            gap: None,
            entry_points: Vec::new(),
            interleaving: Vec::new(),
            copies: Vec::new(),
            non_product: false,
            suppressed: None,
            edit: None,
        }
    }

    #[test]
    fn counts_what_it_hides() {
        let scan = Scan {
            findings: vec![
                finding(Persona::Regular, Severity::High),
                finding(Persona::Regular, Severity::Low),
                finding(Persona::Pedantic, Severity::High),
                finding(Persona::Auditor, Severity::High),
            ],
            ..Scan::default()
        };
        let selection = Selection {
            persona: Persona::Regular,
            min_severity: Severity::Medium,
            rules: &[],
            known: &BTreeSet::new(),
        };
        let (report, hidden) = select(&scan, &selection);
        assert_eq!(report.findings.len(), 1);
        assert_eq!(
            hidden,
            Hidden {
                pedantic: 1,
                auditor: 1,
                filtered: 1
            }
        );
        // 18 for the first data race, 9 for the second: both are regular.
        assert_eq!(report.summary.score, 73);
    }

    #[test]
    fn tests_and_mild_findings_do_not_fail() {
        let mut finding = finding(Persona::Regular, Severity::Medium);
        assert!(fails(&finding, Severity::Info));
        assert!(!fails(&finding, Severity::High));
        finding.non_product = true;
        assert!(!fails(&finding, Severity::Info));
    }
}
