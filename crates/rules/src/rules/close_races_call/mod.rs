//! `close-races-call`: closing and starting work are not one atomic decision.

use toctou_analysis::{Defect, DefectKind};
use toctou_core::ir::Program;
use toctou_core::rule::{Persona, RuleMeta, Severity};

use crate::case::Verdict;

pub const META: RuleMeta = RuleMeta {
    id: "close-races-call",
    summary: "Closing and starting work are not one atomic decision",
    severity: Severity::High,
    persona: Persona::Regular,
    points: 18,
    cwe: 362,
    since: "0.1.0",
    page: include_str!("page.md"),
};

pub(crate) fn of_defect(program: &Program, defect: &Defect) -> Option<Verdict> {
    if defect.kind != DefectKind::CloseRace {
        return None;
    }
    let function = crate::classify::display_function(program, defect.spot.func);
    let verdict = Verdict::new(
        format!("`{function}` tests that it is not closed, gives way, and then registers in `{}` what closing has to see: closing in between misses it", defect.key),
        "register before the first `await`, or test again after the last one",
        "work begins after closing was reported as done",
    );
    Some(if defect.duck {
        verdict.persona(Persona::Pedantic)
    } else {
        verdict
    })
}
