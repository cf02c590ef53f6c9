//! `single-use-check-then-consume`: a single-use thing is found valid, used, and only then marked as used.

use toctou_core::finding::ResourceKind;
use toctou_core::rule::{Persona, RuleMeta, Severity};

use crate::case::{Case, Verdict, mentions};

pub const META: RuleMeta = RuleMeta {
    id: "single-use-check-then-consume",
    summary: "A single-use thing is found valid, used, and only then marked as used",
    severity: Severity::Critical,
    persona: Persona::Regular,
    points: 22,
    cwe: 367,
    since: "0.1.0",
    page: include_str!("page.md"),
};

const SINGLE_USE: &[&str] = &[
    "token", "code", "coupon", "nonce", "otp", "challenge", "invite", "invitation", "voucher", "ticket", "pin",
    "verifier", "redemption", "reset", "ott",
];
const MARKS: &[&str] = &["used", "consumed", "redeemed", "claimed", "revoked", "usedat", "redeemedat", "consumedat"];

/// `last_used_at`: what is stamped at each use is not used up by one.
const EACH_USE: &[&str] = &["last", "count", "times"];

/// A thing that may be used once was found valid, and marked or removed later.
pub(crate) fn judge(case: &Case<'_>) -> Option<Verdict> {
    let w = case.w;
    if w.snapshot.is_some() {
        return None;
    }
    if w.data || w.expired || !case.is_open() || !w.in_process && w.kind == ResourceKind::Memory {
        return None;
    }
    let single = mentions(case.key(), SINGLE_USE);
    let marks = |c: &String| mentions(c, MARKS) && !mentions(c, EACH_USE);
    let marked = w
        .write_row
        .as_ref()
        .is_some_and(|r| !r.insert && r.columns.iter().any(marks));
    let consumed = case.deletes() || marked || w.constant && case.checked_mentions(MARKS);
    let stored = case.is_store() || w.kind == ResourceKind::Memory;
    if !stored || !consumed || !(single || marked) {
        return None;
    }
    // Who removes it second is told that it is gone.
    let told = case.deletes()
        && w.write_row.as_ref().is_some_and(|r| r.looked_at || r.returning);
    let message = format!("`{}` is good for one use, but two calls can both find it valid before either uses it up", case.key());
    let verdict = Verdict::new(
        message,
        "use it up first, in one statement that says whether it was still there (`DELETE … RETURNING`, `UPDATE … WHERE used_at IS NULL`)",
        "both calls have used it",
    );
    Some(if told { verdict.persona(Persona::Pedantic) } else { verdict })
}
