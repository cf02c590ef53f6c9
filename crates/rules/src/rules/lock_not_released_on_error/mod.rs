//! `lock-not-released-on-error`: a lock stays taken, or its queue breaks, when an error is thrown.

use toctou_analysis::{Defect, DefectKind};
use toctou_core::frontend::Remedy;
use toctou_core::ir::Program;
use toctou_core::rule::{Persona, RuleMeta, Severity};

use crate::case::{How, Mend, Verdict};

pub const META: RuleMeta = RuleMeta {
    id: "lock-not-released-on-error",
    summary: "A lock stays taken, or its queue breaks, when an error is thrown",
    severity: Severity::High,
    persona: Persona::Regular,
    points: 15,
    cwe: 667,
    since: "0.1.0",
    page: include_str!("page.md"),
};

pub(crate) fn of_defect(program: &Program, defect: &Defect) -> Option<Verdict> {
    let function = program.qualified_name(defect.spot.func);
    match defect.kind {
        DefectKind::PoisonedChain => Some(Verdict::new(
            format!("`{}` is a chain that one failure poisons: after it, every later call fails without having run", defect.key),
            "let the tail of the chain settle either way: `tail = run.then(() => {}, () => {})`",
            "B's work never runs: it gets A's error",
        )),
        DefectKind::NotReleased => Some(Verdict::new(
            format!("`{function}` takes the lock `{}` and does not give it back when something fails before the release", defect.key),
            "release in `finally`, or use the form that runs a callback under the lock",
            "B waits for ever",
        )
        .mend(Some(Mend {
            title: "Release the lock on every way out",
            func: defect.spot.func,
            how: How::Ask(Remedy::ReleaseAlways { acquire: defect.spot.span }),
        }))),
        _ => None,
    }
}
