//! `lease-expires-in-use`: a lock with a time limit covers work that has none.

use toctou_analysis::{Defect, DefectKind};
use toctou_core::ir::Program;
use toctou_core::rule::{Persona, RuleMeta, Severity};

use crate::case::Verdict;

pub const META: RuleMeta = RuleMeta {
    id: "lease-expires-in-use",
    summary: "A lock with a time limit covers work that has none",
    severity: Severity::Medium,
    persona: Persona::Regular,
    points: 10,
    cwe: 672,
    since: "0.1.0",
    page: include_str!("page.md"),
};

pub(crate) fn of_defect(_: &Program, defect: &Defect) -> Option<Verdict> {
    if defect.kind != DefectKind::LeaseInUse {
        return None;
    }
    Some(Verdict::new(
        format!(
            "the lock `{}` ends by itself, and under it something is waited for that may take longer: what is written after that is written without the lock",
            defect.key
        ),
        "renew the lock while the work runs (`redlock.using`), or put a version or fencing token into the condition of the write",
        "A writes over what B, who has the lock now, has done",
    ))
}
