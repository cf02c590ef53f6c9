//! `auth-check-then-act`: permission or ownership is checked, then acted on without the check in the act.

use toctou_core::rule::{Persona, RuleMeta, Severity};

use crate::case::{Case, Verdict, mentions};

pub const META: RuleMeta = RuleMeta {
    id: "auth-check-then-act",
    summary: "Permission or ownership is checked, then acted on without the check in the act",
    severity: Severity::Critical,
    persona: Persona::Regular,
    points: 22,
    cwe: 367,
    since: "0.1.0",
    page: include_str!("page.md"),
};

const RIGHTS: &[&str] = &[
    "owner", "author", "permission", "role", "admin", "tenant", "acl", "grant", "allowed", "authorized", "userid",
    "creator", "user", "org", "organization", "workspace",
];

/// Somebody's right was read, and what it allowed was done without asking again.
pub(crate) fn judge(case: &Case<'_>) -> Option<Verdict> {
    if !case.is_store() || case.w.data || !case.is_open() || case.is_atomic_step() || case.inserts() {
        return None;
    }
    // Who may is often decided once and for all when the row is made.
    let checked = case.w.checked.iter().filter(|c| !case.w.checked_final.contains(c));
    if !checked.into_iter().any(|c| mentions(c, RIGHTS)) {
        return None;
    }
    let message = format!(
        "`{}` is checked for who may change it, and changed in a second statement that does not ask again",
        case.key()
    );
    Some(Verdict::new(
        message,
        "make the right a condition of the statement itself (`WHERE id = $1 AND owner_id = $2`) and look at the row count",
        "A acts on a right that it no longer has",
    ))
}
