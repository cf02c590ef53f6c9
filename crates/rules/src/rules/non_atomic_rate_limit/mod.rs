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

/// Names of what spaces calls out by waiting.
const WAITS: &[&str] =
    &["limit", "limiter", "rate", "quota", "throttle", "throttler", "ratelimit", "interval", "cooldown"];

/// A count was read and compared, and raised in a second step.
pub(crate) fn judge(case: &Case<'_>) -> Option<Verdict> {
    let w = case.w;
    if w.snapshot.is_some() {
        return None;
    }
    if case.is(ResourceKind::File) || !case.is_open() || case.deletes() {
        return None;
    }
    // What is spent is no limit, unless it is called one.
    if w.spent && !case.subject_mentions(LIMITS) {
        return None;
    }
    if w.waits {
        return waits(case);
    }
    // Rows that are counted are raised by one more row.
    let rows = w.compared && w.read_row.as_ref().is_some_and(|r| r.aggregate);
    // A value of one column that is made from another's is not that one, raised.
    let counts = w.data && !case.writes_other_columns() || case.is_atomic_step() || rows || w.counted;
    // A count that is only carried on, with nothing decided by it, is no limit; nor is a row that is
    // looked up and written again, with nothing compared and nobody turned away.
    let judged = w.compared || w.counted || w.refuses || case.is_atomic_step();
    if !counts || !w.tested || !judged {
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

/// Who finds the limit reached waits, and goes on without a second look.
fn waits(case: &Case<'_>) -> Option<Verdict> {
    let named = case.subject_mentions(WAITS) || case.function_mentions(WAITS);
    if !named || !case.w.in_process {
        return None;
    }
    let message = format!(
        "`{}` decides whether a call waits, and is set after the wait without a second look: calls that wait together all go on together",
        case.key()
    );
    Some(Verdict::new(
        message,
        "look again after the wait (`while` in place of `if`), or hold one lock over test, wait and count",
        "both calls waited for the same moment and passed the limit",
    ))
}
