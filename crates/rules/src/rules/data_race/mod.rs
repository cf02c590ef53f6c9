//! `data-race`: shared memory is used by several threads without synchronisation.

use toctou_core::rule::{Persona, RuleMeta, Severity};

pub const META: RuleMeta = RuleMeta {
    id: "data-race",
    summary: "Shared memory is used by several threads without synchronisation",
    severity: Severity::High,
    persona: Persona::Regular,
    points: 18,
    cwe: 366,
    since: "0.1.0",
    page: include_str!("page.md"),
};
