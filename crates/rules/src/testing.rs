//! Findings for unit tests.

use toctou_core::finding::{Finding, Location, Resource, ResourceKind};
use toctou_core::rule::{Confidence, Persona, Scope, Severity};

pub(crate) fn finding(rule: &str, file: &str, line: u32) -> Finding {
    Finding {
        rule: rule.to_owned(),
        severity: Severity::High,
        confidence: Confidence::High,
        persona: Persona::Regular,
        scopes: vec![Scope::InProcess],
        message: String::new(),
        fix: String::new(),
        because: String::new(),
        fingerprint: format!("{line:016x}"),
        anchor: String::new(),
        resource: Resource {
            kind: ResourceKind::File,
            key: "store".to_owned(),
        },
        location: Location {
            file: file.to_owned(),
            line,
            column: 1,
            end_line: line,
            end_column: 9,
            function: "save".to_owned(),
        },
        read: None,
        gap: None,
        entry_points: Vec::new(),
        interleaving: Vec::new(),
        copies: Vec::new(),
        non_product: false,
        suppressed: None,
        edit: None,
    }
}
