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

/// What is given to somebody, and taken away again.
const RIGHTS: &[&str] =
    &["owner", "permission", "role", "admin", "acl", "grant", "allowed", "authorized"];

/// Whose a row is from the beginning: a right that goes away only where it is seen to be changed.
const ORIGIN: &[&str] =
    &["author", "tenant", "userid", "creator", "user", "org", "organization", "workspace"];

/// Somebody's right was read, and what it allowed was done without asking again.
pub(crate) fn judge(case: &Case<'_>) -> Option<Verdict> {
    let w = case.w;
    if !case.is_store() || w.data || !case.is_open() || case.is_atomic_step() || case.inserts() {
        return None;
    }
    let is_right = |name: &String| {
        // Who may is often decided once and for all when the row is made.
        let lasts = w.checked_final.contains(name);
        let changes = w.checked_changed.contains(name);
        !lasts && (mentions(name, RIGHTS) || changes && mentions(name, ORIGIN))
    };
    // That the row is there at all is no right.
    if !w.checked.iter().any(|c| is_right(c) && w.weighed.contains(c)) {
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
