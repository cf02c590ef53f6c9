//! The baseline: findings that were there before, so that only new ones count.
//!
//! A text file, sorted, one line per finding, so that a review shows what was
//! added or fixed. Only the fingerprint is read back; rule, path and symbol
//! are there for people.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use thiserror::Error;
use toctou_core::finding::{Finding, Suppression, SuppressionKind};

pub const DEFAULT_NAME: &str = "toctou-baseline.txt";

const HEAD: &str = "\
# toctou baseline: findings that are known and do not count.
# `toctou baseline write` renews it, `toctou baseline prune` drops what is gone.
# fingerprint rule path symbol
";

#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[error("line {line}: `{text}` is not a baseline entry")]
pub struct BaselineError {
    pub line: usize,
    pub text: String,
}

#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct Baseline {
    /// Fingerprint → the whole line.
    entries: BTreeMap<String, String>,
}

impl Baseline {
    pub fn of(findings: &[Finding]) -> Self {
        let entries = findings
            .iter()
            .filter(|finding| is_eligible(finding))
            .map(|finding| {
                let line = format!(
                    "{} {} {} {}",
                    finding.fingerprint,
                    finding.rule,
                    word(&finding.location.file),
                    word(&finding.location.function),
                );
                (finding.fingerprint.clone(), line)
            })
            .collect();
        Self { entries }
    }

    pub fn parse(text: &str) -> Result<Self, BaselineError> {
        let mut entries = BTreeMap::new();
        for (index, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let fingerprint = line.split_whitespace().next().unwrap_or_default();
            if fingerprint.len() != 16 || !fingerprint.bytes().all(|b| b.is_ascii_hexdigit()) {
                return Err(BaselineError {
                    line: index + 1,
                    text: line.chars().take(60).collect(),
                });
            }
            entries.insert(fingerprint.to_owned(), line.to_owned());
        }
        Ok(Self { entries })
    }

    /// By path, rule and symbol: neighbours in the code are neighbours here.
    pub fn render(&self) -> String {
        let mut lines: Vec<(Vec<&str>, &str)> = self
            .entries
            .values()
            .map(|line| {
                let mut key: Vec<&str> = line.split_whitespace().skip(1).collect();
                if key.len() > 1 {
                    key.swap(0, 1);
                }
                (key, line.as_str())
            })
            .collect();
        lines.sort_unstable();
        let mut text = HEAD.to_owned();
        for (_, line) in lines {
            let _ = writeln!(text, "{line}");
        }
        text
    }

    pub fn len(&self) -> usize {
        self.entries.len()
    }

    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    pub fn contains(&self, finding: &Finding) -> bool {
        self.entries.contains_key(&finding.fingerprint)
    }

    /// Marks known findings, and returns how many entries match none any more.
    pub fn apply(&self, findings: &mut [Finding]) -> usize {
        let mut found = BTreeSet::new();
        for finding in findings {
            if self.contains(finding) {
                found.insert(finding.fingerprint.clone());
                finding.suppressed.get_or_insert_with(|| Suppression {
                    kind: SuppressionKind::Baseline,
                    reason: "in the baseline".to_owned(),
                });
            }
        }
        self.entries.len() - found.len()
    }

    /// Drops entries that match no finding, and returns how many.
    pub fn prune(&mut self, findings: &[Finding]) -> usize {
        let present: BTreeSet<&str> = findings.iter().map(|f| f.fingerprint.as_str()).collect();
        let before = self.entries.len();
        self.entries
            .retain(|fingerprint, _| present.contains(fingerprint.as_str()));
        before - self.entries.len()
    }
}

/// What has a written reason of its own needs no entry.
pub fn is_eligible(finding: &Finding) -> bool {
    finding
        .suppressed
        .as_ref()
        .is_none_or(|suppression| suppression.kind == SuppressionKind::Baseline)
}

/// One field of a line: white space and control characters would break it.
fn word(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_whitespace() || c.is_control() || c == '%' {
            let _ = write!(out, "%{:02X}", u32::from(c));
        } else {
            out.push(c);
        }
    }
    if out.is_empty() { "-".to_owned() } else { out }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::finding;

    fn some() -> Vec<Finding> {
        let mut findings = vec![
            finding("file-read-modify-write", "src/b.ts", 9),
            finding("db-lost-update", "src/a b.ts", 4),
        ];
        findings[0].fingerprint = "00000000000000aa".to_owned();
        findings[1].fingerprint = "00000000000000bb".to_owned();
        findings
    }

    #[test]
    fn is_sorted_by_path_and_reads_itself() {
        let baseline = Baseline::of(&some());
        let text = baseline.render();
        let lines: Vec<_> = text.lines().filter(|line| !line.starts_with('#')).collect();
        assert_eq!(
            lines,
            [
                "00000000000000bb db-lost-update src/a%20b.ts save",
                "00000000000000aa file-read-modify-write src/b.ts save",
            ]
        );
        assert_eq!(Baseline::parse(&text), Ok(baseline));
    }

    #[test]
    fn marks_what_is_known_and_counts_what_is_gone() {
        let baseline = Baseline::of(&some());
        let mut now = vec![some().remove(0), finding("data-race", "c.ts", 1)];
        assert_eq!(baseline.apply(&mut now), 1);
        assert!(now[0].suppressed.is_some());
        assert!(now[1].suppressed.is_none());
    }

    #[test]
    fn prune_keeps_only_what_is_still_there() {
        let mut baseline = Baseline::of(&some());
        assert_eq!(baseline.prune(&some()[..1]), 1);
        assert_eq!(baseline.len(), 1);
    }

    #[test]
    fn refuses_other_files() {
        let error = Baseline::parse("# ok\n\n{\"json\": true}\n").expect_err("not a baseline");
        assert_eq!(
            error.to_string(),
            "line 3: `{\"json\": true}` is not a baseline entry"
        );
    }
}
