//! A server that dies.

use super::{Class, Evidence, Kind};

pub fn judge(evidence: &Evidence<'_>) -> Option<(Kind, String)> {
    let crash = evidence.outcome.crash.as_ref()?;
    (evidence.class == Class::Crash).then(|| (Kind::Crash, format!("the server dies ({crash})")))
}
