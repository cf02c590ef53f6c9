//! `multi-step-without-transaction`: writes that belong together are not held together.

use toctou_analysis::{Defect, DefectKind};
use toctou_core::ir::Program;
use toctou_core::rule::{Persona, RuleMeta, Severity};

use crate::case::Verdict;

pub const META: RuleMeta = RuleMeta {
    id: "multi-step-without-transaction",
    summary: "Writes that belong together are not held together",
    severity: Severity::High,
    persona: Persona::Regular,
    points: 15,
    cwe: 662,
    since: "0.1.0",
    page: include_str!("page.md"),
};

pub(crate) fn of_defect(program: &Program, defect: &Defect) -> Option<Verdict> {
    let weak = match defect.kind {
        DefectKind::MultiStep => false,
        DefectKind::RelatedSteps => true,
        _ => return None,
    };
    let function = crate::classify::display_function(program, defect.spot.func);
    let line = defect
        .first
        .map_or(0, |f| crate::classify::location(program, f).line);
    let verdict = Verdict::new(
        format!(
            "`{function}` makes two changes that belong together, the first in line {line}, and no transaction holds them together: between them others see half of it, and a failure leaves half of it"
        ),
        "make both in one transaction, on one connection, and roll it back when anything fails",
        "sees the first change without the second; if A fails here, it stays so",
    );
    Some(if weak {
        verdict.persona(Persona::Pedantic)
    } else {
        verdict
    })
}
