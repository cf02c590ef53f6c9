//! A proof is read by people: the fewest calls, no set-up that is not needed,
//! the smallest arguments.

use serde_json::Value;

use crate::gates;
use crate::lab::{Lab, RunError};
use crate::oracles::serial::{MOST_CALLS, SerialSet, Verdict};
use crate::scenario::{Assignment, Scenario, Schedule};

/// Tries smaller scenarios by the same schedule; the smallest that still shows it.
pub fn shrink(
    lab: &Lab,
    set: &SerialSet,
    schedule: &Schedule,
) -> Result<Option<SerialSet>, RunError> {
    let mut best: Option<SerialSet> = None;
    let current = |best: &Option<SerialSet>| {
        best.as_ref()
            .map_or_else(|| set.scenario.clone(), |best| best.scenario.clone())
    };

    if set.scenario.calls.len() > MOST_CALLS {
        for count in 2..set.scenario.calls.len() {
            let mut smaller = set.scenario.clone();
            smaller.calls.truncate(count);
            if let Some(found) = shows(lab, set, smaller, schedule)? {
                best = Some(found);
                break;
            }
        }
    }
    let scenario = current(&best);
    let bound = scenario
        .calls
        .iter()
        .any(|call| call.arguments.to_string().contains("${setup"));
    if !scenario.setup.is_empty() && !bound {
        // None of it, else the half of it.
        for kept in [0, scenario.setup.len() / 2] {
            if kept == scenario.setup.len() {
                continue;
            }
            let mut smaller = scenario.clone();
            smaller.setup.truncate(kept);
            if let Some(found) = shows(lab, set, smaller, schedule)? {
                best = Some(found);
                break;
            }
        }
    }
    let mut smaller = current(&best);
    let mut changed = false;
    for call in &mut smaller.calls {
        changed |= shorten(&mut call.arguments);
    }
    let distinct = smaller.calls.windows(2).all(|pair| pair[0] != pair[1]);
    let was_distinct = set.scenario.calls.windows(2).all(|pair| pair[0] != pair[1]);
    if changed
        && distinct == was_distinct
        && let Some(found) = shows(lab, set, smaller, schedule)?
    {
        best = Some(found);
    }
    Ok(best)
}

/// The serial runs of a smaller scenario, if the schedule shows the race there.
fn shows(
    lab: &Lab,
    set: &SerialSet,
    scenario: Scenario,
    schedule: &Schedule,
) -> Result<Option<SerialSet>, RunError> {
    let assignment = Assignment(set.assignment.0[..scenario.calls.len()].to_vec());
    let smaller = match SerialSet::record(lab, &scenario, &assignment) {
        Ok(mut smaller) => {
            smaller.masks = set.masks.clone();
            smaller
        }
        Err(RunError::Setup { .. } | RunError::Gone) => return Ok(None),
        Err(error) => return Err(error),
    };
    if !smaller.works() {
        return Ok(None);
    }
    let mut smaller = smaller;
    let outcome = gates::run(lab, &smaller, schedule, false)?;
    let shown = matches!(smaller.explain(lab, &outcome)?, Verdict::Violation(_));
    Ok(shown.then_some(smaller))
}

/// Long texts to their first word.
fn shorten(value: &mut Value) -> bool {
    match value {
        Value::String(text) if text.len() > 24 && text.contains(' ') => {
            if let Some(first) = text.split(' ').next() {
                *text = first.to_owned();
                return true;
            }
            false
        }
        Value::Array(items) => items
            .iter_mut()
            .fold(false, |changed, item| shorten(item) | changed),
        Value::Object(map) => map
            .values_mut()
            .fold(false, |changed, item| shorten(item) | changed),
        _ => false,
    }
}
