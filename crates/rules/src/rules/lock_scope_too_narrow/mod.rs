//! `lock-scope-too-narrow`: the lock covers the write but not the read it trusts.

use toctou_core::finding::ResourceKind;
use toctou_core::rule::{Persona, RuleMeta, Severity};

use crate::case::{Case, Verdict};
use crate::rules::db_check_then_write;

pub const META: RuleMeta = RuleMeta {
    id: "lock-scope-too-narrow",
    summary: "The lock covers the write but not the read it trusts",
    severity: Severity::High,
    persona: Persona::Regular,
    points: 15,
    cwe: 667,
    since: "0.1.0",
    page: include_str!("page.md"),
};

/// There is a lock, but it is not held from the read to the write.
pub(crate) fn judge(case: &Case<'_>) -> Option<Verdict> {
    let w = case.w;
    let lock = w.partial.as_ref()?;
    if let Some(file) = &w.snapshot {
        return w.in_process.then(|| snapshot(case, &lock.key, file));
    }
    if w.constant || !case.is_open() || w.path_check || lock.transaction || !(w.data || w.keyed || w.tested) {
        return None;
    }
    if db_check_then_write::has_constraint(case) {
        return None;
    }
    let message = format!(
        "`{}` is read outside the section in which `{}` is held for the write: the lock does not cover the decision",
        case.key(),
        lock.key
    );
    let verdict = Verdict::new(
        message,
        "take the lock once, before the read, and give it back after the write",
        "A writes back what it read before B's change: B's change is lost",
    );
    // What was only tested, in a store: the lock changes nothing about what that is worth.
    let tested = case.is(ResourceKind::Row) && !w.data;
    let minor = tested && (db_check_then_write::is_minor(case) || !db_check_then_write::matters(case));
    Some(if minor || case.is_kept_for_a_while() || case.seldom_hurts() || case.fills_cache() || case.is_distant_decision() {
        verdict.persona(Persona::Pedantic)
    } else {
        verdict
    })
}

/// What a lock protects was copied under it; the copy is saved without it.
fn snapshot(case: &Case<'_>, lock: &str, file: &str) -> Verdict {
    let message = format!(
        "`{}` is copied while `{lock}` is held, and the copy is written to `{file}` after it was given back: of two calls, the one with the older copy can write last",
        case.key()
    );
    Verdict::new(
        message,
        "write the file before the lock is given back, or hold a second lock, for saving, from the copy to the end of the write",
        "the file holds A's older copy: B's change is gone after the next start",
    )
}
