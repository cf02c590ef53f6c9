//! The score: one number that can be recomputed by hand.
//!
//! 100, minus a rule's points for its first finding and half of them for its
//! second. More of the same say nothing new about the server. Only what the
//! regular persona sees, in product files and not suppressed, counts, so that
//! looking closer never makes a server worse.

use std::collections::BTreeMap;

use toctou_core::Finding;
use toctou_core::finding::Deduction;
use toctou_core::rule::{Confidence, Persona, RuleMeta, Severity};

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Score {
    pub points: u32,
    pub grade: &'static str,
    pub deductions: Vec<Deduction>,
    pub capped: bool,
}

/// Does the finding count, towards the score and towards the exit code?
pub fn counts(finding: &Finding) -> bool {
    finding.suppressed.is_none() && !finding.non_product
}

pub fn score(findings: &[Finding], rules: &[RuleMeta]) -> Score {
    let mut seen: BTreeMap<&str, u32> = BTreeMap::new();
    let mut capped = false;
    for finding in findings {
        if !counts(finding) || finding.persona != Persona::Regular {
            continue;
        }
        *seen.entry(&finding.rule).or_default() += 1;
        capped |= finding.severity == Severity::Critical && finding.confidence == Confidence::High;
    }
    let deductions: Vec<Deduction> = seen
        .iter()
        .map(|(id, &findings)| {
            let points = rules
                .iter()
                .find(|rule| rule.id == *id)
                .map_or(0, |rule| rule.points);
            Deduction {
                rule: (*id).to_owned(),
                findings,
                first: points,
                second: if findings > 1 { points / 2 } else { 0 },
            }
        })
        .collect();
    let lost: u32 = deductions.iter().map(|d| d.first + d.second).sum();
    let points = 100_u32.saturating_sub(lost);
    let grade = match grade(points) {
        "A" | "B" | "C" if capped => "D",
        grade => grade,
    };
    Score {
        points,
        grade,
        deductions,
        capped,
    }
}

fn grade(points: u32) -> &'static str {
    match points {
        90.. => "A",
        80.. => "B",
        70.. => "C",
        60.. => "D",
        _ => "F",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::finding;

    const RULES: &[RuleMeta] = &[rule("a", 15), rule("b", 22), rule("c", 40)];

    const fn rule(id: &'static str, points: u32) -> RuleMeta {
        RuleMeta {
            id,
            summary: "",
            severity: Severity::High,
            persona: Persona::Regular,
            points,
            cwe: 362,
            since: "0.1.0",
            page: "",
        }
    }

    fn of(findings: &[Finding]) -> (u32, &'static str) {
        let score = score(findings, RULES);
        (score.points, score.grade)
    }

    #[test]
    fn first_costs_all_second_half_third_nothing() {
        let a = || finding("a", "x.ts", 1);
        assert_eq!(of(&[]), (100, "A"));
        assert_eq!(of(&[a()]), (85, "B"));
        assert_eq!(of(&[a(), a()]), (78, "C"));
        assert_eq!(of(&[a(), a(), a(), a()]), (78, "C"));
        assert_eq!(of(&[a(), finding("b", "x.ts", 1)]), (63, "D"));
    }

    #[test]
    fn never_below_zero() {
        let all: Vec<_> = ["a", "a", "b", "b", "c", "c"]
            .iter()
            .map(|id| finding(id, "x.ts", 1))
            .collect();
        assert_eq!(of(&all), (0, "F"));
    }

    #[test]
    fn a_certain_critical_caps_the_grade() {
        let mut b = finding("b", "x.ts", 1);
        b.severity = Severity::Critical;
        b.confidence = Confidence::High;
        assert_eq!(of(&[b.clone()]), (78, "D"));
        b.confidence = Confidence::Medium;
        assert_eq!(of(&[b]), (78, "C"));
    }

    #[test]
    fn other_personas_tests_and_suppressed_ones_are_free() {
        let mut pedantic = finding("a", "x.ts", 1);
        pedantic.persona = Persona::Pedantic;
        let mut test = finding("b", "x.test.ts", 1);
        test.non_product = true;
        let mut ignored = finding("c", "x.ts", 1);
        ignored.suppressed = Some(toctou_core::finding::Suppression {
            kind: toctou_core::finding::SuppressionKind::Comment,
            reason: "single writer".to_owned(),
        });
        assert_eq!(of(&[pedantic, test, ignored]), (100, "A"));
    }
}
