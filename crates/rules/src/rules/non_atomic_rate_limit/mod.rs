//! `non-atomic-rate-limit`: a limit is read, compared and counted with others able to run between.

use toctou_core::finding::ResourceKind;
use toctou_core::rule::{Persona, RuleMeta, Severity};

use crate::case::{Case, Verdict};

pub const META: RuleMeta = RuleMeta {
    id: "non-atomic-rate-limit",
    summary: "A limit is read, compared and counted with others able to run between",
    severity: Severity::High,
    persona: Persona::Regular,
    points: 18,
    cwe: 362,
    since: "0.1.0",
    page: include_str!("page.md"),
};

const LIMITS: &[&str] = &["limit", "rate", "quota", "throttle", "ratelimit", "usage", "attempt", "allowance"];

/// A count was read and compared, and raised in a second step.
pub(crate) fn judge(case: &Case<'_>) -> Option<Verdict> {
    let w = case.w;
    if w.snapshot.is_some() {
        return None;
    }
    if case.is(ResourceKind::File) || !case.is_open() || case.deletes() {
        return None;
    }
    // Rows that are counted are raised by one more row.
    let rows = w.compared && w.read_row.as_ref().is_some_and(|r| r.aggregate);
    let counts = w.data || case.is_atomic_step() || rows || w.counted;
    // A count that is only carried on, with nothing decided by it, is no limit.
    if !counts || !w.tested {
        return None;
    }
    if !(w.counted || case.subject_mentions(LIMITS) || case.function_mentions(LIMITS) || case.speaks_of_a_limit()) {
        return None;
    }
    let message = format!(
        "`{}` is compared with a limit and raised in two steps: calls that come together all pass the test",
        case.key()
    );
    Some(Verdict::new(
        message,
        "test and raise in one step: `UPDATE … SET n = n + 1 WHERE n < max`, Redis `INCR` and compare its result, or a Lua script",
        "both calls passed the limit",
    ))
}
