//! `process-lock-on-shared-resource`: an in-process lock protects something that other processes also write.

use toctou_core::finding::ResourceKind;
use toctou_core::rule::{Persona, RuleMeta, Severity};

use crate::case::{Case, Verdict};
use crate::rules::db_check_then_write;

pub const META: RuleMeta = RuleMeta {
    id: "process-lock-on-shared-resource",
    summary: "An in-process lock protects something that other processes also write",
    severity: Severity::Medium,
    persona: Persona::Regular,
    points: 10,
    cwe: 667,
    since: "0.1.0",
    page: include_str!("page.md"),
};

/// A lock of this process closed the window for this process only.
pub(crate) fn judge(case: &Case<'_>) -> Option<Verdict> {
    let lock = case.w.closed_by.as_ref()?;
    if case.w.in_process || !case.w.cross_process {
        return None;
    }
    let message = format!(
        "`{}` is guarded by `{}`, a lock of this process only: a second server process on the same data is not kept out",
        case.key(),
        lock.key
    );
    let verdict = Verdict::new(
        message,
        "hold a lock that other processes see as well (a lock file, a database transaction), or let one process own the data",
        "B, in another process, never saw A's lock: its change is lost",
    );
    // A row that was looked up, and of which something else is changed.
    let aside = case.is(ResourceKind::Row) && !case.w.data && !db_check_then_write::matters(case);
    Some(if aside || case.is_kept_for_a_while() || case.w.memo || case.seldom_hurts() { verdict.persona(Persona::Pedantic) } else { verdict })
}
