//! `session-lost-update`: in-memory state is read, others run, and it is written back.

use toctou_core::finding::ResourceKind;
use toctou_core::rule::{Persona, RuleMeta, Severity};

use crate::case::{Case, Verdict};

pub const META: RuleMeta = RuleMeta {
    id: "session-lost-update",
    summary: "In-memory state is read, others run, and it is written back",
    severity: Severity::High,
    persona: Persona::Regular,
    points: 15,
    cwe: 362,
    since: "0.1.0",
    page: include_str!("page.md"),
};

/// State in memory was read, the call gave way, and a value made from it was put back.
pub(crate) fn judge(case: &Case<'_>) -> Option<Verdict> {
    let w = case.w;
    if w.snapshot.is_some() {
        return None;
    }
    if !case.is(ResourceKind::Memory) || !w.data {
        return None;
    }
    if w.drains && w.in_process {
        let message = format!(
            "`{}` is handed on, the call gives way, and then it is emptied: what another call has added meanwhile is lost",
            case.key()
        );
        let verdict = Verdict::new(
            message,
            "take it away before the `await` (`const batch = items; items = []`) and put it back if that fails, or remove only what was handed on",
            "what B has added is lost",
        );
        return Some(if case.only_by_events() { verdict.persona(Persona::Pedantic) } else { verdict });
    }
    if case.deletes() || case.is_atomic_step() {
        return None;
    }
    if w.in_process {
        let message = format!(
            "`{}` is read, the call gives way, and a value made from it is written back: what another call put there meanwhile is lost",
            case.key()
        );
        let verdict = Verdict::new(
            message,
            "read it again after the last `await` before writing, or hold a mutex from the read to the write",
            "B's change is lost",
        );
        // Other calls change the same object in place: only one that replaced or
        // removed it is overwritten.
        return Some(if w.puts_back || case.only_beside_calls() { verdict.persona(Persona::Pedantic) } else { verdict });
    }
    let message = format!(
        "`{}` is read and written back with no `await` between: atomic in one process, until somebody adds one",
        case.key()
    );
    Some(
        Verdict::new(
            message,
            "nothing to fix today; keep the read and the write together, or make it one operation",
            "with an `await` between them, B's change would be lost",
        )
        .severity(Severity::Info)
        .persona(Persona::Auditor),
    )
}
