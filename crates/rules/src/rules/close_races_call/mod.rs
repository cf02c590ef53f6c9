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
    if defect.kind == DefectKind::UseAfterClose {
        let function = crate::classify::display_function(program, defect.spot.func);
        let closer = defect
            .first
            .map_or_else(String::new, |spot| crate::classify::display_function(program, spot.func));
        return Some(Verdict::new(
            format!("`{function}` uses what `{closer}` closes, and nothing makes one wait for the other: it can be closed in the middle of a call"),
            "test that it is open and count the call in under one lock, set the flag under the same lock, and wait for the calls that were counted before anything is closed",
            "the call goes on with something that is closed",
        ));
    }
    if defect.kind == DefectKind::CountedLate {
        let function = crate::classify::display_function(program, defect.spot.func);
        return Some(Verdict::new(
            format!("`{function}` counts its work in with `{}` after the lock was given back under which it was tested that nothing is closed: closing in between does not wait for it", defect.key),
            "count the work in under the lock, in one step with the test",
            "work begins after closing was reported as done",
        ));
    }
    if defect.kind == DefectKind::ClosedTwice {
        let function = crate::classify::display_function(program, defect.spot.func);
        let other = defect
            .first
            .map_or_else(String::new, |spot| crate::classify::display_function(program, spot.func));
        return Some(Verdict::new(
            format!("`{function}` closes `{}`, which `{other}` may have closed already: nothing decides which of them does it", defect.key),
            "close it in one place alone, or in a `sync.Once` that both share",
            "the second close fails, and ends the process",
        ));
    }
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
