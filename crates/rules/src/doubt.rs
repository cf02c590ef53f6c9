//! When an open window is not enough for the regular report.
//!
//! A window says that nothing in the code keeps two calls apart. Whether that harms anybody depends on
//! more than the code shows, and some shapes of windows turn out to be harmless as often as not. These
//! shapes are here, in one table, and what has one is for the `pedantic` persona. Which they are was
//! counted, not guessed: `./scripts/evaluate --doubts` says for each how many of the findings that were
//! read in published servers are true. One that is right more often than wrong does not belong here.

use toctou_analysis::{Defect, Mode};
use toctou_core::finding::{EntryKind, Finding, ResourceKind};
use toctou_core::ir::Dispatch;
use toctou_core::rule::{Persona, RuleMeta};

use crate::case::{Case, mentions, plain};
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

/// The same for a flaw that is not a window.
pub(crate) fn about_defect(defect: &Defect) -> Option<&'static str> {
    let word = "it is a number or a truth value, of which nobody sees a half, and the old one was right a moment ago";
    defect.word.then_some(word)
}

/// Where something else is the server: what nothing of it calls, and no event does, is for
/// whoever calls it from elsewhere to worry about.
pub fn set_apart(findings: &mut [Finding]) {
    let unserved = |kind| matches!(kind, EntryKind::Export | EntryKind::Startup);
    for finding in findings {
        let alone = finding.entry_points.iter().all(|e| unserved(e.kind));
        // What is left open is left open, whoever came by.
        let leaks = finding.rule == leak_on_partial_init::META.id;
        if finding.persona == Persona::Regular && alone && !leaks {
            withhold(finding, "it is beside the server, which does not call it");
        }
    }
}

pub(crate) fn withhold(finding: &mut Finding, why: &str) {
    finding.persona = Persona::Pedantic;
    finding.because += &format!("; not in the regular report, since {why}");
}

/// Calls between the function that decides and the access that it trusts.
const FAR: usize = 3;
/// Functions between a handler and the place where read and write meet.
const DEEP: usize = 4;

const DOUBTS: &[Doubt] = &[
    Doubt {
        says: "the row is read several calls below the function where it decides, and much else can decide there",
        holds: |case, rule| {
            let w = case.w;
            let calls = w.read.len();
            let decides = !w.data && !w.compared && calls >= FAR;
            let counted = counts(case) || is(rule, &[&non_atomic_rate_limit::META]);
            case.is_store() && !counted && (decides || calls > FAR)
        },
    },
    Doubt {
        says: "nothing gives way between the look and the write: it takes another process in the same instant",
        holds: |case, rule| is(rule, &[&file_check_then_act::META]) && !case.w.in_process,
    },
    Doubt {
        says: "nobody who asks for something leads here, only an event or a timer",
        holds: |case, rule| {
            let rules = [
                &file_check_then_act::META,
                &db_check_then_write::META,
                &auth_check_then_act::META,
                &single_use_check_then_consume::META,
            ];
            is(rule, &rules) && case.only_by_events()
        },
    },
    Doubt {
        says: "the server has set it before it lets anybody in",
        holds: |case, rule| {
            let w = case.w;
            // A file is another process's, too, which may start at the same time.
            let memory = is(rule, &[&memory_check_then_act::META]);
            let file = is(rule, &[&file_check_then_act::META]) && w.one_process;
            (memory || file) && w.early && w.write_positive == Some(false)
        },
    },
    Doubt {
        says: "it is set by another function, which may look again, and nothing else happens in between",
        holds: |case, rule| {
            let w = case.w;
            is(rule, &[&memory_check_then_act::META]) && w.write.len() > 1 && !w.other_writes
        },
    },
    Doubt {
        says: "what was read only decides about a write that another function makes under the lock, and that one may look again",
        holds: |case, rule| {
            let w = case.w;
            let elsewhere = !w.data && w.write.len() > 1;
            let far = case.only_beside_calls() || case.nearest() >= DEEP;
            // Whom the test has told no, what was counted, and what was found by the state that the
            // write changes, nobody tests a second time.
            let lone = w.refuses || w.compared || db_check_then_write::claims(case);
            // That there is no file is found out here, and then the first one is written.
            let missing = w.write_positive == Some(false) && case.levels(&w.read) == 1;
            let first = case.is(ResourceKind::File) && missing;
            let other = case.levels(&w.write) > 1 && !lone && !first;
            is(rule, &[&lock_scope_too_narrow::META]) && elsewhere && (far || other)
        },
    },
    Doubt {
        says: "many functions lie between what was read and the write under the lock, and it may be no more than a name that gets there",
        holds: |case, rule| {
            is(rule, &[&lock_scope_too_narrow::META]) && case.levels(&case.w.write) > FAR
        },
    },
    Doubt {
        says: "nothing that stays open is made, and nobody is told no: of two that do the same, the later has the last word",
        holds: |case, rule| {
            let w = case.w;
            let felt = w.opens || w.refuses || w.changed_within || case.keeps_others_out();
            // Two have taken what was there for one.
            let felt = felt || w.passed_on || w.counted || w.spent;
            is(rule, &[&memory_check_then_act::META]) && !felt
        },
    },
    Doubt {
        says: "where it is not there yet it is put there, by a function of its own, which is how caches are filled",
        holds: |case, rule| {
            let w = case.w;
            let missing = w.write_positive == Some(false) && !w.data && !case.deletes();
            let put = missing && case.levels(&w.write) > 1;
            let felt = w.other_writes || w.refuses;
            is(rule, &[&lock_scope_too_narrow::META])
                && case.is(ResourceKind::Memory)
                && put
                && !felt
        },
    },
    Doubt {
        says: "many functions lie between the handler and the test, and some of them may decide as well",
        holds: |case, rule| {
            let deep = case.depth() >= DEEP;
            let locked = is(rule, &[&lock_scope_too_narrow::META]) && case.is(ResourceKind::Memory);
            // Which row is written was found out, and nobody is seen to change what was found.
            let found = case.w.keyed && !case.w.handed_back;
            // Of what is made on first use, a cache that is filled twice; where calls take turns only
            // at an `await`, it was mostly something that is left open.
            let filled = dispatch(case) != Dispatch::Await && !case.w.opens;
            deep && (locked
                || is(rule, &[&memory_check_then_act::META]) && filled
                || is(rule, &[&session_lost_update::META])
                || is(rule, &[&db_check_then_write::META]) && !counts(case)
                || is(rule, &[&db_lost_update::META]) && found)
        },
    },
    Doubt {
        says: "what was read is looked up to be handed out, and no copy that is taken to be saved",
        holds: |case, _| case.w.snapshot.is_some() && case.w.given_back,
    },
    Doubt {
        says: "nobody is seen to call it, and it takes two processes in the same instant",
        holds: |case, _| !case.is_served() && !case.w.in_process,
    },
    Doubt {
        says: "one process serves all clients, which has the port, and it takes a second one on the same data",
        holds: |case, _| case.w.one_process && !case.w.in_process,
    },
    Doubt {
        says: "the file is written several calls below the function that has looked for it",
        holds: |case, rule| is(rule, &[&file_check_then_act::META]) && case.w.write.len() > FAR,
    },
    Doubt {
        says: "a lock keeps the calls of this process apart, and what another process can change only decides whether it is written",
        holds: |case, rule| {
            is(rule, &[&process_lock_on_shared_resource::META]) && !case.w.data && !case.w.keyed
        },
    },
    Doubt {
        says: "what is deleted twice is gone once, and what was tested before is not seen to change, or another function has looked for the row",
        holds: |case, rule| {
            let stays = case.w.checked_changed.is_empty();
            let gone = case.deletes() && (stays || case.levels(&case.w.read) > 1);
            is(rule, &[&db_check_then_write::META]) && (gone || marks_deleted(case))
        },
    },
    Doubt {
        says: "of what was read, only what says which row it is goes into what is written, or it goes into other columns: none is written over by its own older value",
        holds: |case, rule| is(rule, &[&db_lost_update::META]) && carries_no_change(case),
    },
    Doubt {
        says: "of what was read, only when it was made goes into what is written, and nobody changes that",
        holds: |case, rule| {
            let rules = [&file_read_modify_write::META, &db_lost_update::META];
            is(rule, &rules) && keeps_birth(case)
        },
    },
    Doubt {
        says: "which columns are written is not seen, and they need not be those that were tested",
        holds: |case, rule| {
            let row = case.w.write_row.as_ref();
            let unseen = row.is_some_and(|r| r.columns.is_empty() && !r.insert);
            is(rule, &[&db_check_then_write::META]) && unseen && !case.deletes() && !case.w.data
        },
    },
    Doubt {
        says: "part of it is in a transaction, and how far that keeps others out is not known",
        holds: |case, rule| {
            // A limit is passed by another row, wherever that is put in.
            let limit = counts(case) && case.inserts();
            is(rule, &[&db_check_then_write::META]) && case.w.partial.is_some() && !limit
        },
    },
    Doubt {
        says: "nothing gives way between the look and the write, it takes another process in the same instant, and another function has looked",
        holds: |case, rule| {
            let w = case.w;
            let far = !w.in_process && !w.keyed && !w.data && case.levels(&w.read) > 1;
            is(rule, &[&db_check_then_write::META]) && far
        },
    },
    Doubt {
        says: "a row is put in whether one was found or not",
        holds: |case, rule| {
            let w = case.w;
            // How many there are may have been judged below, by who failed otherwise.
            let either = w.write_positive.is_none() && !w.data && !counts(case);
            is(rule, &[&db_check_then_write::META]) && case.inserts() && either
        },
    },
    Doubt {
        says: "what is there is handed out, and made anew where it is not, which is how caches are filled",
        holds: |case, rule| {
            let w = case.w;
            is(rule, &[&db_check_then_write::META])
                && w.write_row.is_none()
                && !w.data
                && w.given_back
        },
    },
    Doubt {
        says: "the function is there to delete it, and nobody is seen to use it",
        holds: |case, rule| {
            is(rule, &[&single_use_check_then_consume::META])
                && case.is_store()
                && db_check_then_write::removes(case)
        },
    },
    Doubt {
        says: "what was there decides whether it is written at all, and then it is mostly the same that everybody writes",
        holds: |case, rule| {
            let decided = case.w.tested && !case.w.compared;
            // What is thrown away was not there to be tested, and of two who take one, one is lost.
            let decided = decided && !case.w.drains && !case.w.reckoned;
            is(rule, &[&session_lost_update::META]) && decided && dispatch(case) == Dispatch::Await
        },
    },
    Doubt {
        says: "nobody waits for the call that writes, so it may well be the only one",
        holds: |case, rule| is(rule, &[&shared_temp_path::META]) && case.w.detached,
    },
    Doubt {
        says: "nobody waits for the work that writes it, far from any handler, and it takes two processes in the same instant",
        holds: |case, rule| {
            let far = case.depth() >= DEEP && !case.w.in_process;
            is(rule, &[&file_read_modify_write::META]) && case.w.detached && far
        },
    },
    Doubt {
        says: "only routes lead here, nothing gives way in between, and the process that answers them has the port",
        holds: |case, rule| {
            is(rule, &[&shared_temp_path::META]) && !case.w.in_process && case.only_by_routes()
        },
    },
    Doubt {
        says: "no other function changes the file, and only an event or a timer leads to this one",
        holds: |case, rule| {
            is(rule, &[&file_read_modify_write::META]) && case.only_by_events() && case.w.lone
        },
    },
    Doubt {
        says: "what is there is handed out, and what is not is made: twice is mostly the same",
        holds: |case, rule| {
            let w = case.w;
            is(rule, &[&file_check_then_act::META]) && w.given_back && !w.keyed && !w.refuses
        },
    },
    Doubt {
        says: "it is made elsewhere and put in its place whole, and no other function writes it: who is second puts the same there",
        holds: |case, rule| {
            let w = case.w;
            let whole = w.write_mode == Mode::Replace && !w.refuses;
            is(rule, &[&file_check_then_act::META]) && whole && case.w.lone
        },
    },
    Doubt {
        says: "the one process that has the port has made it before it lets anybody in",
        holds: |case, rule| {
            is(rule, &[&shared_temp_path::META]) && case.w.one_process && case.w.early
        },
    },
    Doubt {
        says: "nothing gives way between the check and the use, or no client leads there, so nobody can put a link there in between",
        holds: |case, rule| {
            let unmet = case.w.accidental || case.only_by_events();
            is(rule, &[&path_check_then_open::META]) && unmet
        },
    },
];

fn is(rule: &RuleMeta, rules: &[&RuleMeta]) -> bool {
    rules.iter().any(|r| r.id == rule.id)
}

/// How calls take turns where read and write meet.
fn dispatch(case: &Case<'_>) -> Dispatch {
    let module = case.program.function_module[case.w.meet.0 as usize];
    case.program.modules[module.0 as usize].dispatch
}

/// How many there are is looked at: every other call changes that.
fn counts(case: &Case<'_>) -> bool {
    let aggregate = case.w.read_row.as_ref().is_some_and(|r| r.aggregate);
    aggregate || case.w.counted
}

/// A row that says that it is deleted is as good as gone: `SET deleted_at = now()`.
fn marks_deleted(case: &Case<'_>) -> bool {
    let Some(row) = &case.w.write_row else {
        return false;
    };
    let marks = |c: &String| mentions(c, &["deleted", "removed"]);
    let changed = |c: &String| mentions(c, &["updated", "modified"]);
    !row.insert
        && row.columns.iter().any(marks)
        && row.columns.iter().all(|c| marks(c) || changed(c))
}

/// Which columns of what was read are in what is written is known, and those that are written
/// are others, or it is only the row's name.
fn carries_no_change(case: &Case<'_>) -> bool {
    let w = case.w;
    let (Some(carried), Some(read), Some(write)) = (&w.carried, &w.read_row, &w.write_row) else {
        return false;
    };
    let is_known = |list: &[String]| !list.is_empty() && list.iter().all(|c| is_column(c));
    // What is not among the columns that were asked for is a part of one, or made of several.
    let asked = !is_known(&read.columns) || carried.iter().all(|c| has(&read.columns, c));
    let elsewhere = is_known(&write.columns) && !carried.iter().any(|c| has(&write.columns, c));
    let name = carried.iter().all(|c| mentions(c, &["id"]));
    // Who changes what the row was found by takes it from others who look for the same.
    let taken = !write.insert && read.conditions.iter().any(|c| has(&write.columns, c));
    !carried.is_empty() && asked && !taken && (elsewhere || name)
}

/// Nobody is told no or counted by what was read; of its fields, the one that says since when it is
/// there is kept, and at most its name beside that.
fn keeps_birth(case: &Case<'_>) -> bool {
    let w = case.w;
    let born = |c: &String| mentions(c, &["created"]) && !mentions(c, &["by"]);
    let kept = w.carried.as_ref().is_some_and(|carried| {
        carried.iter().any(born) && carried.iter().all(|c| born(c) || mentions(c, &["id"]))
    });
    kept && !w.refuses && !w.compared && !w.counted
}

/// A column that is named, rather than all of them, or one that is known only when it runs.
fn is_column(name: &str) -> bool {
    !name.contains('*') && !name.starts_with("toctou_hole")
}

fn has(columns: &[String], name: &str) -> bool {
    columns.iter().any(|c| plain(c) == plain(name))
}
