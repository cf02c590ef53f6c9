//! `shared-server-across-requests`: one server or transport object serves many HTTP clients.

use toctou_analysis::{Defect, DefectKind};
use toctou_core::ir::Program;
use toctou_core::rule::{Confidence, Persona, RuleMeta, Severity};

use crate::case::Verdict;

pub const META: RuleMeta = RuleMeta {
    id: "shared-server-across-requests",
    summary: "One server or transport object serves many HTTP clients",
    severity: Severity::Critical,
    persona: Persona::Regular,
    points: 22,
    cwe: 488,
    since: "0.1.0",
    page: include_str!("page.md"),
};

pub(crate) fn of_defect(program: &Program, defect: &Defect) -> Option<Verdict> {
    if defect.kind != DefectKind::SharedServer {
        return None;
    }
    let function = program.qualified_name(defect.spot.func);
    let key = &defect.key;
    let mut verdict = if defect.duck {
        Verdict::new(
            format!("`{function}` answers every client through the one stateless transport `{key}`: clients number their requests alike, and one gets the other's result"),
            "make a server and a transport in the handler for every request, or give the transport a `sessionIdGenerator` and keep one pair per session",
            "B gets the answer to A's request",
        )
    } else {
        Verdict::new(
            format!("`{function}` connects `{key}`, which all clients share, to a new transport: what it still has to send to an earlier client goes to this one"),
            "make the server where the transport is made: one pair for every request, or for every session",
            "what was meant for A arrives at B",
        )
    };
    verdict.confidence = Some(Confidence::High);
    Some(verdict)
}
