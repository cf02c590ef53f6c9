//! `file-check-then-act`: a file is looked at, then created, written, deleted or renamed.

use toctou_analysis::Act;
use toctou_core::finding::ResourceKind;
use toctou_core::frontend::Remedy;
use toctou_core::rule::{Persona, RuleMeta, Severity};

use crate::case::{Case, How, Mend, Verdict};

pub const META: RuleMeta = RuleMeta {
    id: "file-check-then-act",
    summary: "A file is looked at, then created, written, deleted or renamed",
    severity: Severity::High,
    persona: Persona::Regular,
    points: 18,
    cwe: 367,
    since: "0.1.0",
    page: include_str!("page.md"),
};

/// A file was looked for, and what was seen decided what was done to it.
pub(crate) fn judge(case: &Case<'_>) -> Option<Verdict> {
    let w = case.w;
    if !case.is(ResourceKind::File) || w.data || !case.is_open() || w.path_check {
        return None;
    }
    let message = if w.keyed && w.read_act == Act::List {
        format!("the name of `{}` is made from a listing of its folder: two calls can make the same name", case.key())
    } else if case.deletes() {
        format!("`{}` is looked for and then removed: another call can have removed or replaced it in between", case.key())
    } else {
        format!("`{}` is looked for and then written: another call can have created or changed it in between", case.key())
    };
    let verdict = Verdict::new(
        message,
        "let the file system decide: create with the `wx` flag and treat EEXIST as the answer, or remove and ignore ENOENT",
        if case.deletes() { "A removes what B has just written, or fails" } else { "A's write replaces B's" },
    );
    let verdict = if w.in_process { verdict } else { verdict.severity(Severity::Medium) };
    // What is there is handed out, what is not is made and kept.
    let cache = w.read_act == Act::Read && w.given_back && !w.other_writes;
    Some(if case.seldom_hurts() || cache || case.is_kept_for_a_while() || w.memo {
        verdict.persona(Persona::Pedantic)
    } else {
        verdict.mend(create_exclusively(case))
    })
}

/// The write is reached only where nothing was there, and by a call that the
/// function makes itself: then to fail if something is there changes nothing
/// but the race.
fn create_exclusively(case: &Case<'_>) -> Option<Mend> {
    let w = case.w;
    let [create] = w.write.as_slice() else { return None };
    let looked = w.read_act == Act::Check && w.write_positive == Some(false);
    (looked && w.write_act == Act::Write && !w.keyed).then_some(Mend {
        title: "Create the file only if there is none",
        func: create.func,
        how: How::Ask(Remedy::CreateExclusively { create: create.span }),
    })
}
