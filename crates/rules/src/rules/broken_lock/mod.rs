//! `broken-lock`: a hand-made lock or limiter lets in more callers than it should.

use toctou_analysis::{Defect, DefectKind};
use toctou_core::ir::Program;
use toctou_core::rule::{Persona, RuleMeta, Severity};

use crate::case::Verdict;

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
