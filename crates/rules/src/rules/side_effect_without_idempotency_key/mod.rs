//! `side-effect-without-idempotency-key`: something that cannot be taken back is sent on a path that can run twice.

use toctou_analysis::{Defect, DefectKind};
use toctou_core::ir::Program;
use toctou_core::rule::{Persona, RuleMeta, Severity};

use crate::case::{Verdict, mentions};
use crate::classify::excerpt;

pub const META: RuleMeta = RuleMeta {
    id: "side-effect-without-idempotency-key",
    summary: "Something that cannot be taken back is sent on a path that can run twice",
    severity: Severity::Medium,
    persona: Persona::Regular,
    points: 10,
    cwe: 837,
    since: "0.1.0",
    page: include_str!("page.md"),
};

/// What costs money when it happens twice, by the words that models name it with.
const COSTLY: &[&str] = &[
    "payment", "charge", "order", "refund", "payout", "transfer", "money",
];

pub(crate) fn of_defect(program: &Program, defect: &Defect) -> Option<Verdict> {
    if defect.kind != DefectKind::SendTwice {
        return None;
    }
    let call = excerpt(program, defect.spot);
    let call = call.split('(').next().unwrap_or_default();
    let again = match defect.first {
        Some(_) => "it is tried again when it fails, also when only the answer was lost",
        None => "a client that gets no answer in time calls again",
    };
    let verdict = Verdict::new(
        format!(
            "`{call}` cannot be taken back and carries no idempotency key: {again}, and then it happens twice"
        ),
        "derive an idempotency key from the intention (the order, not the attempt) and send it along; where the API has none, record the intention under a unique key first",
        "what was meant once has happened twice",
    );
    // A second mail is a nuisance; a second charge is not.
    if defect.first.is_none() && !mentions(&defect.key, COSTLY) {
        return Some(verdict.persona(Persona::Pedantic));
    }
    Some(verdict)
}
