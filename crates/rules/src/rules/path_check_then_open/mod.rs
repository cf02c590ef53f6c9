//! `path-check-then-open`: a path is checked, then opened again by name.

use toctou_analysis::{Act, Mode};
use toctou_core::rule::{Persona, RuleMeta, Severity};

use crate::case::{Case, Verdict};

pub const META: RuleMeta = RuleMeta {
    id: "path-check-then-open",
    summary: "A path is checked, then opened again by name",
    severity: Severity::High,
    persona: Persona::Regular,
    points: 15,
    cwe: 363,
    since: "0.1.0",
    page: include_str!("page.md"),
};

/// The path was resolved and judged, then used again by name.
pub(crate) fn judge(case: &Case<'_>) -> Option<Verdict> {
    let w = case.w;
    if !w.path_check {
        return None;
    }
    // A rename and an exclusive create do not follow a link that stands there.
    if matches!(w.write_mode, Mode::Exclusive | Mode::Replace) {
        return None;
    }
    // Neither does removing it.
    if case.deletes() {
        return None;
    }
    let reads = w.write_act == Act::Read;
    let message = format!(
        "the path is resolved and checked, then {} by name: a link put there in between leads outside",
        if reads { "read" } else { "written" }
    );
    let verdict = Verdict::new(
        message,
        "open the file first and check what was opened, or create with `wx` and replace by rename, which do not follow links",
        "A acts on what B's link points at, outside of what was allowed",
    );
    // Reading by a swapped link leaks. Where the server's own tools cannot change what
    // a path leads to, it takes another program that can already write there.
    // Without clients there is nobody whom the check keeps out.
    let open = w.relinked && case.is_served();
    Some(if reads || !open { verdict.persona(Persona::Pedantic) } else { verdict })
}
