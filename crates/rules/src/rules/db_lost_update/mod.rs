//! `db-lost-update`: a value computed from a read is written back with no version or value condition.

use toctou_analysis::Mode;
use toctou_core::rule::{Persona, RuleMeta, Severity};

use crate::case::{Case, Verdict};

pub const META: RuleMeta = RuleMeta {
    id: "db-lost-update",
    summary: "A value computed from a read is written back with no version or value condition",
    severity: Severity::High,
    persona: Persona::Regular,
    points: 15,
    cwe: 362,
    since: "0.1.0",
    page: include_str!("page.md"),
};

/// A new value was computed from an old one and written back.
pub(crate) fn judge(case: &Case<'_>) -> Option<Verdict> {
    if !case.is_store() || !case.w.data || !case.is_open() || case.is_atomic_step() {
        return None;
    }
    // A row that is put in anew overwrites nobody's.
    if case.inserts() && case.w.write_mode != Mode::Upsert {
        return None;
    }
    let message = format!(
        "a value of `{}` is read, changed and written back: a change that another call makes in between is lost",
        case.key()
    );
    let verdict = Verdict::new(
        message,
        case.fix("let the database compute it (`SET n = n + $1`), or add a version to the WHERE clause and look at the row count, or read FOR UPDATE in the same transaction"),
        "B's change is lost",
    );
    Some(if case.writes_other_columns() { verdict.persona(Persona::Pedantic) } else { verdict })
}
