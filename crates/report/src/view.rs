//! What a format is given: the report, and how it is looked at.

use toctou_core::finding::{Finding, ScanReport};
use toctou_core::rule::{Persona, RuleMeta, Severity};
use toctou_core::source::SourceFile;

use crate::proofs::Proofs;

#[derive(Clone, Copy, Debug)]
pub struct View<'a> {
    /// Findings of the selected persona, rules and severity, sorted by place;
    /// suppressed ones are among them, marked.
    pub report: &'a ScanReport,
    pub sources: &'a [SourceFile],
    pub rules: &'a [RuleMeta],
    pub persona: Persona,
    /// What was scanned, as the user named it.
    pub roots: &'a [String],
    /// Leads from the working directory to the scanned root (`packages/a/`),
    /// for formats whose readers start from there.
    pub base: &'a str,
    pub hidden: Hidden,
    pub stats: Option<&'a Stats>,
    pub terminal: Terminal,
    pub verbose: bool,
    /// The entry of the guard's policy that closes a finding, if one can.
    pub guard: fn(&Finding) -> Option<String>,
    /// What `toctou prove` made of the findings.
    pub proofs: Option<&'a Proofs>,
}

/// Findings that are there, and not in the report because nobody asked.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Hidden {
    pub pedantic: u32,
    pub auditor: u32,
    /// Below `--min-severity`, or of another rule than `--rule` names.
    pub filtered: u32,
}

/// What `--stats` shows.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Stats {
    /// Calls that no model knows, and how often they are made; most frequent first.
    pub unknown_calls: Vec<(String, u32)>,
    pub bytes: u64,
    pub lines: u64,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Terminal {
    pub width: usize,
    pub color: bool,
    pub unicode: bool,
}

impl Default for Terminal {
    fn default() -> Self {
        Self {
            width: 100,
            color: false,
            unicode: true,
        }
    }
}

impl<'a> View<'a> {
    /// Findings that count as such.
    pub fn active(&self) -> impl Iterator<Item = &'a Finding> + use<'a> {
        self.report
            .findings
            .iter()
            .filter(|f| f.suppressed.is_none())
    }

    pub fn suppressed(&self) -> impl Iterator<Item = &'a Finding> + use<'a> {
        self.report
            .findings
            .iter()
            .filter(|f| f.suppressed.is_some())
    }

    pub fn source(&self, path: &str) -> Option<&'a SourceFile> {
        // Sources are sorted by path; a scan of one repository has thousands.
        let index = self
            .sources
            .binary_search_by(|file| (*file.path).cmp(path))
            .ok()?;
        self.sources.get(index)
    }

    pub fn rule(&self, id: &str) -> Option<&'a RuleMeta> {
        self.rules.iter().find(|rule| rule.id == id)
    }

    /// `2 high, 1 low`: worst first, zeroes left out.
    pub fn counts(&self) -> Vec<(Severity, usize)> {
        Severity::ALL
            .iter()
            .rev()
            .map(|&severity| {
                (
                    severity,
                    self.active().filter(|f| f.severity == severity).count(),
                )
            })
            .filter(|&(_, count)| count > 0)
            .collect()
    }
}

/// `1 file`, `2 files`.
pub fn plural(count: usize, noun: &str) -> String {
    if count == 1 {
        format!("1 {noun}")
    } else {
        format!("{count} {noun}s")
    }
}
