//! A call that is never answered, though it is in every serial order.

use super::{Class, Evidence, Kind};
use crate::scenario::letter;

pub fn judge(evidence: &Evidence<'_>) -> Option<(Kind, String)> {
    if evidence.class != Class::Hang {
        return None;
    }
    let calls: Vec<String> = evidence
        .outcome
        .silent
        .iter()
        .map(|call| letter(*call))
        .collect();
    Some((
        Kind::Hang,
        format!("call {} is never answered", calls.join(", ")),
    ))
}
