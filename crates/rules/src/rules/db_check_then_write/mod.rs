//! `db-check-then-write`: a row is read and judged, then written without the condition in the write.

use toctou_core::rule::{Persona, RuleMeta, Severity};

use crate::case::{Case, How, Mend, Verdict, mentions, plain};
use crate::repeat;

pub const META: RuleMeta = RuleMeta {
    id: "db-check-then-write",
    summary: "A row is read and judged, then written without the condition in the write",
    severity: Severity::High,
    persona: Persona::Regular,
    points: 18,
    cwe: 367,
    since: "0.1.0",
    page: include_str!("page.md"),
};

/// A row was looked at, and another statement trusts what was seen.
pub(crate) fn judge(case: &Case<'_>) -> Option<Verdict> {
    let w = case.w;
    if !case.is_store() || w.data && !case.inserts() && !case.is_atomic_step() || !case.is_open() {
        return None;
    }
    if has_constraint(case) {
        return None;
    }
    let what = if case.inserts() {
        "looked for and, when it is not found, inserted"
    } else if case.deletes() {
        "looked at and then deleted"
    } else {
        "tested in one statement and changed in another"
    };
    let message = format!("`{}` is {what}: two calls can both pass the test before either acts", case.key());
    let verdict = Verdict::new(
        message,
        case.fix("put the test into the statement that acts (a WHERE condition, a unique index with ON CONFLICT) and look at the row count"),
        "both calls passed the test and acted",
    );
    let verdict = if matters(case) && !is_minor(case) {
        verdict.mend(repeat::changes(case).map(|(func, changes)| Mend {
            title: "Ask for it in the statement that writes; then look at its row count",
            func,
            how: How::Change(changes),
        }))
    } else {
        verdict.persona(Persona::Pedantic)
    };
    // One process, one statement after the other: it takes a second process.
    Some(if !w.in_process { verdict.severity(Severity::Medium) } else { verdict })
}

/// Done by two at once it costs little, or the test says little about the write.
pub(crate) fn is_minor(case: &Case<'_>) -> bool {
    let w = case.w;
    // That something is there, asked and acted on in one go by one process: it
    // takes a second process in the same instant, and costs a duplicate.
    let only_there = !w.in_process && w.checked.is_empty() && !claims(case) && !doubles(case);
    // Deleted by the key that the caller gave, twice: gone is gone.
    let gone = case.deletes() && !w.keyed && w.checked.is_empty() && !w.other_writes;
    // Who empties a table does not ask which rows are in it.
    let empties = case.deletes() && w.write_row.as_ref().is_some_and(|r| r.conditions.is_empty());
    // Who deletes a row that another has just deleted has lost nothing.
    let unchanging = !w.checked_changes && !case.inserts();
    // What was read far below and did not say no says little about a write far below.
    let counted = w.read_row.as_ref().is_some_and(|r| r.aggregate);
    let far = case.is_distant_decision() || !w.data && !w.keyed && w.read.len() > 3;
    let distant = far && w.write_positive.is_none() && !counted;
    case.is_kept_for_a_while()
        || w.expired
        || only_there
        || gone
        || empties
        || w.taken
        || unchanging
        || distant
        || removes(case)
        || is_another_row(case)
}

/// A new row is in nobody's way because of one that is there: it is a copy of it, or was made
/// since it was found. (That there is none is another matter, and so is what state it is in.)
fn is_another_row(case: &Case<'_>) -> bool {
    let w = case.w;
    let counted = w.read_row.as_ref().is_some_and(|r| r.aggregate);
    let copied = w.data && !w.tested && !counted;
    let found = !w.data && w.write_positive == Some(true) && (w.checked.is_empty() || w.compared);
    case.inserts() && (copied || found)
}

/// A function that is there to delete: what is gone already is as it should be.
pub(crate) fn removes(case: &Case<'_>) -> bool {
    let words = ["delete", "remove", "purge", "drop", "forget"];
    let asked_again = |column: &String| {
        let row = case.w.write_row.as_ref();
        row.is_some_and(|r| r.conditions.iter().any(|c| plain(c) == plain(column)))
    };
    case.deletes()
        && case.w.checked.iter().all(asked_again)
        && mentions(&case.function(), &words)
}

/// A unique index on what was looked for makes the second insert fail.
pub(crate) fn has_constraint(case: &Case<'_>) -> bool {
    if !case.inserts() {
        return false;
    }
    let read = case.w.read_row.as_ref();
    read.is_some_and(|r| case.analysis.is_unique(case.key(), &r.conditions))
}

/// The table is seen to take a second row like the one that was looked for.
fn doubles(case: &Case<'_>) -> bool {
    let (Some(read), Some(write)) = (&case.w.read_row, &case.w.write_row) else { return false };
    case.inserts()
        && case.w.write_positive == Some(false)
        && case.analysis.is_defined(case.key())
        && !read.aggregate
        && !read.conditions.is_empty()
        && read.conditions.iter().all(|c| write.columns.contains(c))
}

/// Does what is written change what another call looks at, or take it away?
pub(crate) fn matters(case: &Case<'_>) -> bool {
    claims(case) || changes_what_was_checked(case) || case.inserts() || case.deletes()
}

/// Two of these calls race with each other only if one changes what the other tests.
fn changes_what_was_checked(case: &Case<'_>) -> bool {
    let w = case.w;
    let Some(row) = &w.write_row else { return true };
    row.columns.is_empty()
        || w.checked.iter().any(|c| row.columns.iter().any(|o| plain(o) == plain(c)))
}

/// The read chose by a column that the write changes without asking for it again.
pub(crate) fn claims(case: &Case<'_>) -> bool {
    let (Some(read), Some(write)) = (&case.w.read_row, &case.w.write_row) else { return false };
    !write.insert
        && !case.deletes()
        && read.conditions.iter().any(|c| write.columns.contains(c) && !write.conditions.contains(c))
}
