//! When an open window is not enough for the regular report.
//!
//! A window says that nothing in the code keeps two calls apart. Whether that harms anybody depends on
//! more than the code shows, and some shapes of windows turn out to be harmless as often as not. These
//! shapes are here, in one table, and what has one is for the `pedantic` persona. Which they are was
//! counted, not guessed: `./scripts/evaluate --doubts` says for each how many of the findings that were
//! read in published servers are true. One that is right more often than wrong does not belong here.

use toctou_core::rule::RuleMeta;

use crate::case::Case;
use crate::rules::*;

pub(crate) struct Doubt {
    /// Follows "not in the regular report, since".
    pub says: &'static str,
    holds: fn(&Case<'_>, &RuleMeta) -> bool,
}

/// Why this one is not for the regular report, if it is not.
pub(crate) fn about(case: &Case<'_>, rule: &RuleMeta) -> Option<&'static Doubt> {
    DOUBTS.iter().find(|doubt| (doubt.holds)(case, rule))
}

/// Calls between the function that decides and the access that it trusts.
const FAR: usize = 3;
/// Functions between a handler and the place where read and write meet.
const DEEP: usize = 4;

const DOUBTS: &[Doubt] = &[
    Doubt {
        says: "the row is read several calls below the function where it decides, and much else can decide there",
        holds: |case, _| {
            let w = case.w;
            let calls = w.read.len();
            let decides = !w.data && !w.compared && calls >= FAR;
            case.is_store() && !counts(case) && (decides || calls > FAR)
        },
    },
    Doubt {
        says: "nothing gives way between the look and the write: it takes another process in the same instant",
        holds: |case, rule| is(rule, &[&file_check_then_act::META]) && !case.w.in_process,
    },
    Doubt {
        says: "no call of an MCP client leads here, only an event or a timer, or a route by way of many functions",
        holds: |case, rule| {
            let rules = [
                &file_check_then_act::META,
                &memory_check_then_act::META,
                &db_check_then_write::META,
                &auth_check_then_act::META,
                &single_use_check_then_consume::META,
            ];
            is(rule, &rules) && is_aside(case)
        },
    },
    Doubt {
        says: "nothing else happens between the test and the change: done twice, it is done for nothing",
        holds: |case, rule| is(rule, &[&memory_check_then_act::META]) && !case.w.other_writes,
    },
    Doubt {
        says: "what was read only decides about a write that another function makes under the lock, and that one may look again",
        holds: |case, rule| is(rule, &[&lock_scope_too_narrow::META]) && !case.w.data && case.w.write.len() > 1,
    },
    Doubt {
        says: "there is a lock, and no call of an MCP client leads here but a route by way of many functions",
        holds: |case, rule| is(rule, &[&lock_scope_too_narrow::META]) && is_aside(case),
    },
    Doubt {
        says: "part of it is in a transaction, and how far that keeps others out is not known",
        holds: |case, rule| is(rule, &[&db_check_then_write::META]) && case.w.partial.is_some() && !counts(case),
    },
    Doubt {
        says: "nobody waits for the call that writes, so it may well be the only one",
        holds: |case, rule| is(rule, &[&shared_temp_path::META]) && case.w.detached,
    },
];

fn is(rule: &RuleMeta, rules: &[&RuleMeta]) -> bool {
    rules.iter().any(|r| r.id == rule.id)
}

/// How many there are is looked at: every other call changes that.
fn counts(case: &Case<'_>) -> bool {
    let aggregate = case.w.read_row.as_ref().is_some_and(|r| r.aggregate);
    aggregate || case.w.counted
}

/// Reached by what stands beside the calls of clients, and not at once.
fn is_aside(case: &Case<'_>) -> bool {
    case.only_beside_calls() && (case.only_by_events() || case.depth() >= DEEP)
}
