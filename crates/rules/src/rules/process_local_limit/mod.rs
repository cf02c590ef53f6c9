//! `process-local-limit`: a limit lives in one process's memory in a server that runs as many.

use toctou_core::finding::ResourceKind;
use toctou_core::rule::{Persona, RuleMeta, Severity};

use crate::case::{Case, Verdict};

pub const META: RuleMeta = RuleMeta {
    id: "process-local-limit",
    summary: "A limit lives in one process's memory in a server that runs as many",
    severity: Severity::Low,
    persona: Persona::Pedantic,
    points: 4,
    cwe: 770,
    since: "0.1.0",
    page: include_str!("page.md"),
};

const LIMITS: &[&str] = &["limit", "rate", "quota", "throttle", "ratelimit", "attempt", "attempts"];

/// A count in memory that nothing else can see, tested and raised without giving way.
pub(crate) fn judge(case: &Case<'_>) -> Option<Verdict> {
    let w = case.w;
    if w.snapshot.is_some() {
        return None;
    }
    if !case.is(ResourceKind::Memory) || w.in_process || !w.accidental {
        return None;
    }
    if !(case.subject_mentions(LIMITS) || case.function_mentions(LIMITS) || case.speaks_of_a_limit()) || !w.data {
        return None;
    }
    let message = format!(
        "`{}` limits callers with a count in this process's memory: every further server process starts its own count",
        case.key()
    );
    Some(
        Verdict::new(
            message,
            "keep the count where all processes see it, and test and raise it in one step (Redis `INCR` or Lua, one SQL statement)",
            "both processes let the call through: the limit is doubled",
        )
        .persona(Persona::Pedantic),
    )
}
