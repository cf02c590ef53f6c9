//! `no-concurrency-limit`: nothing bounds how much one caller can have in flight.

use toctou_analysis::{Defect, DefectKind};
use toctou_core::ir::Program;
use toctou_core::rule::{Persona, RuleMeta, Severity};

use crate::case::Verdict;

pub const META: RuleMeta = RuleMeta {
    id: "no-concurrency-limit",
    summary: "Nothing bounds how much one caller can have in flight",
    severity: Severity::Medium,
    persona: Persona::Pedantic,
    points: 10,
    cwe: 770,
    since: "0.1.0",
    page: include_str!("page.md"),
};

pub(crate) fn of_defect(program: &Program, defect: &Defect) -> Option<Verdict> {
    if defect.kind != DefectKind::NoLimit {
        return None;
    }
    let at = defect.first.unwrap_or(defect.spot);
    let function = crate::classify::display_function(program, at.func);
    let verdict = Verdict::new(
        format!("tools of this server start `{}` in `{function}`, and nothing bounds how many run at once: a client decides", defect.key),
        "run it under a semaphore or `p-limit`, per caller where callers are known, and refuse or queue what is above the bound",
        "all of them run at once",
    );
    Some(verdict)
}
