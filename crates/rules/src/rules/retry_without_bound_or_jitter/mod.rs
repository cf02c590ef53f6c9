//! `retry-without-bound-or-jitter`: a conflict is retried without a bound or without jitter.

use toctou_analysis::{Defect, DefectKind};
use toctou_core::ir::Program;
use toctou_core::rule::{Persona, RuleMeta, Severity};

use crate::case::Verdict;

pub const META: RuleMeta = RuleMeta {
    id: "retry-without-bound-or-jitter",
    summary: "A conflict is retried without a bound or without jitter",
    severity: Severity::Low,
    persona: Persona::Regular,
    points: 4,
    cwe: 834,
    since: "0.1.0",
    page: include_str!("page.md"),
};

pub(crate) fn of_defect(program: &Program, defect: &Defect) -> Option<Verdict> {
    let function = crate::classify::display_function(program, defect.spot.func);
    match defect.kind {
        DefectKind::RetryForever => Some(Verdict::new(
            format!("`{function}` tries again for as long as somebody else is faster, without a bound on the attempts or the time"),
            "give up after a few attempts, and wait longer and by chance between them: `Math.random() * 50 * 2 ** attempt`",
            "loses every time and never ends",
        )),
        DefectKind::RetryInStep => Some(Verdict::new(
            format!("`{function}` tries again at the same times as everybody who lost with it, and collides with them again"),
            "put chance into the wait: `Math.random() * 50 * 2 ** attempt`",
            "all losers try again at the same moment",
        )),
        DefectKind::RetryWidening => Some(Verdict::new(
            format!("`{function}` waits longer from turn to turn, but as long as everybody who lost with it, and collides with them again"),
            "put chance into the wait: `Math.random() * 50 * 2 ** attempt`",
            "all losers try again at the same moment",
        ).persona(Persona::Pedantic)),
        _ => None,
    }
}
