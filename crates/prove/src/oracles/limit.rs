//! More calls succeed than in any serial order: a limit that does not hold, or
//! a thing that can be used once and was used twice.

use super::{Evidence, Kind};
use crate::scenario::Scenario;

pub fn judge(evidence: &Evidence<'_>) -> Option<(Kind, String)> {
    if !same_tool(evidence.scenario) {
        return None;
    }
    let count = |outcome: &crate::outcome::Outcome| {
        outcome.replies.iter().filter(|reply| reply.is_ok()).count()
    };
    let most = evidence
        .serial
        .iter()
        .map(|run| count(&run.outcome))
        .max()?;
    let now = count(evidence.outcome);
    let tool = &evidence.scenario.calls.first()?.tool;
    // None at all in serial order says nothing about a limit.
    (now > most && most > 0).then(|| {
        let kind = if most == 1 {
            Kind::Duplicate
        } else {
            Kind::LimitExceeded
        };
        (
            kind,
            format!("{now} calls of `{tool}` succeed, in any serial order {most}"),
        )
    })
}

fn same_tool(scenario: &Scenario) -> bool {
    let mut tools = scenario.calls.iter().map(|call| &call.tool);
    let first = tools.next();
    tools.all(|tool| Some(tool) == first)
}
