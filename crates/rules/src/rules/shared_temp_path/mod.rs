//! `shared-temp-path`: two writers share one fixed temporary path.

use toctou_analysis::Act;
use toctou_core::rule::{Persona, RuleMeta, Severity};

use crate::case::{Case, Verdict};

pub const META: RuleMeta = RuleMeta {
    id: "shared-temp-path",
    summary: "Two writers share one fixed temporary path",
    severity: Severity::Medium,
    persona: Persona::Regular,
    points: 10,
    cwe: 377,
    since: "0.1.0",
    page: include_str!("page.md"),
};

/// The window between writing a temporary file and renaming it.
pub(crate) fn judge(case: &Case<'_>) -> Option<Verdict> {
    if case.w.read_act != Act::Write || !case.is_open() {
        return None;
    }
    let message = format!(
        "`{}` is a temporary file with a fixed name: two writers share it, and one renames what the other has half written",
        case.key()
    );
    Some(Verdict::new(
        message,
        "put something unique into the temporary file's name (`randomUUID()`), in the same folder",
        "the file holds B's bytes, or a mixture, under A's name",
    ))
}
