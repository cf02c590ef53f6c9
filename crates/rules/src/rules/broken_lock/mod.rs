//! `broken-lock`: a hand-made lock or limiter lets in more callers than it should.

use toctou_analysis::{Defect, DefectKind};
use toctou_core::ir::Program;
use toctou_core::rule::{Persona, RuleMeta, Severity};

use crate::case::{Case, Verdict};

pub const META: RuleMeta = RuleMeta {
    id: "broken-lock",
    summary: "A hand-made lock or limiter lets in more callers than it should",
    severity: Severity::High,
    persona: Persona::Regular,
    points: 18,
    cwe: 821,
    since: "0.1.0",
    page: include_str!("page.md"),
};

/// A lock file that looks left behind is removed by its name, and then created. Of two who find
/// it so, one has it already when the other removes it.
pub(crate) fn judge(case: &Case<'_>) -> Option<Verdict> {
    if !case.w.steals || !case.is_open() {
        return None;
    }
    Some(Verdict::new(
        format!(
            "`{}` is found to be left behind, and removed by its name: another call that found the same can have taken it anew in between",
            case.key()
        ),
        "let a lock end with who holds it (`flock` on an open file), or move the old one to a name of your own, look whether it is the one that was judged, and put it back if not",
        "A removes the lock that B has just taken, and both are inside",
    ))
}

pub(crate) fn of_defect(_: &Program, defect: &Defect) -> Option<Verdict> {
    let key = &defect.key;
    match defect.kind {
        DefectKind::LetsTwoIn => Some(Verdict::new(
            format!(
                "all who wait for `{key}` wake up together and take it without looking again: with three calls, two are inside"
            ),
            "test again after every wait (`while (held) await held`), or let each caller wait for exactly the one before it",
            "A and B are inside at the same time",
        )),
        DefectKind::DropsLive => Some(Verdict::new(
            format!(
                "an entry of `{key}` is deleted while somebody holds it or waits for it: the next caller finds none and goes in beside him"
            ),
            "delete an entry only if nobody holds it or waits for it (`if (map.get(key) === mine)`, `if (!lock.isLocked())`), or not at all",
            "A and B are inside at the same time",
        )),
        _ => None,
    }
}
