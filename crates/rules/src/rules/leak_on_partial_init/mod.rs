//! `leak-on-partial-init`: a failure half-way through start-up leaks what was already opened.

use toctou_analysis::{Defect, DefectKind};
use toctou_core::ir::Program;
use toctou_core::rule::{Persona, RuleMeta, Severity};

use crate::case::Verdict;

pub const META: RuleMeta = RuleMeta {
    id: "leak-on-partial-init",
    summary: "A failure half-way through start-up leaks what was already opened",
    severity: Severity::Medium,
    persona: Persona::Regular,
    points: 10,
    cwe: 772,
    since: "0.1.0",
    page: include_str!("page.md"),
};

pub(crate) fn of_defect(program: &Program, defect: &Defect) -> Option<Verdict> {
    let function = crate::classify::display_function(program, defect.spot.func);
    if defect.kind == DefectKind::HalfOpen {
        return Some(Verdict::new(
            format!("`{function}` closes it only if this step succeeds: what was opened before a failure stays open"),
            "put the closing off (`defer`) before the step that opens, not after it",
            "stays open for as long as the process lives",
        ));
    }
    if defect.kind != DefectKind::PartialInit {
        return None;
    }
    let message = if defect.first.is_some() {
        format!("`{function}` leaves `{}` open when this step fails", defect.key)
    } else {
        format!("`{function}` opens one after the other: when one cannot be opened, those before it stay open")
    };
    Some(Verdict::new(
        message,
        "begin a `try` right after the opening and close in its `finally`, or use `await using`",
        "stays open for as long as the process lives",
    ))
}
