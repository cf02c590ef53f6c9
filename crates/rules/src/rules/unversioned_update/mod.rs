//! `unversioned-update`: a record that others read and write back is overwritten blindly.

use toctou_analysis::{Defect, DefectKind};
use toctou_core::ir::Program;
use toctou_core::rule::{Persona, RuleMeta, Severity};

use crate::case::Verdict;

pub const META: RuleMeta = RuleMeta {
    id: "unversioned-update",
    summary: "A record that others read and write back is overwritten blindly",
    severity: Severity::Medium,
    persona: Persona::Pedantic,
    points: 10,
    cwe: 362,
    since: "0.1.0",
    page: include_str!("page.md"),
};

pub(crate) fn of_defect(_: &Program, defect: &Defect) -> Option<Verdict> {
    if defect.kind != DefectKind::BlindUpdate {
        return None;
    }
    Some(Verdict::new(
        format!(
            "a record of `{}` is overwritten with what the caller sent, whatever others have changed since he read it",
            table(defect)
        ),
        "hand out a version with the record, and put it into the condition: `WHERE id = $1 AND version = $2`",
        "A's change is gone, and both were told that they had saved",
    ))
}

/// Tables are texts, and texts are shown in quotes.
fn table(defect: &Defect) -> &str {
    defect.key.trim_matches('"')
}
