//! `memory-check-then-act`: shared memory is checked, awaited on, then acted on.

use toctou_core::finding::ResourceKind;
use toctou_core::rule::{Persona, RuleMeta, Severity};

use crate::case::{Case, Verdict};

pub const META: RuleMeta = RuleMeta {
    id: "memory-check-then-act",
    summary: "Shared memory is checked, awaited on, then acted on",
    severity: Severity::High,
    persona: Persona::Regular,
    points: 15,
    cwe: 367,
    since: "0.1.0",
    page: include_str!("page.md"),
};

/// A flag or cache was tested, the call gave way, and then it acted.
pub(crate) fn judge(case: &Case<'_>) -> Option<Verdict> {
    let w = case.w;
    if w.snapshot.is_some() {
        return None;
    }
    if !case.is(ResourceKind::Memory) || w.data || !w.in_process {
        return None;
    }
    let message = format!(
        "`{}` is tested, the call gives way, and only then is it set: a second call passes the same test meanwhile",
        case.key()
    );
    let verdict = Verdict::new(
        message,
        "set it before the first `await` (and undo that on failure), or keep the promise of the first call and return it to the others",
        "both calls did the work",
    );
    // There is one, and a newer one takes its place: whoever comes last has the newest.
    let renews = w.renews && !w.constant;
    // Of two that threads make on first use, one is dropped: mostly nobody misses it.
    Some(if renews || w.latched || case.is_kept_for_a_while() || case.is_waste() || case.deletes() || w.clears || w.write_in_handler {
        verdict.persona(Persona::Pedantic)
    } else {
        verdict
    })
}
