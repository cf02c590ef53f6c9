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
        let (mut too_few, mut enough) = (1, set.scenario.calls.len());
        while enough - too_few > 1 {
            let count = usize::midpoint(too_few, enough);
            let mut smaller = set.scenario.clone();
            smaller.calls.truncate(count);
            match shows(lab, set, smaller, schedule)? {
                Some(found) => {
                    best = Some(found);
                    enough = count;
                }
                None => too_few = count,
            }
        }
    }
    let scenario = current(&best);
    let was_distinct = set.scenario.calls.windows(2).all(|pair| pair[0] != pair[1]);
    let mut short = scenario.clone();
    let mut changed = false;
    for call in &mut short.calls {
        changed |= shorten(&mut call.arguments);
    }
    let distinct = short.calls.windows(2).all(|pair| pair[0] != pair[1]);
    if !changed || distinct != was_distinct {
        short = scenario.clone();
    }
    let bound = scenario
        .calls
        .iter()
        .any(|call| call.arguments.to_string().contains("${setup"));
    // Short arguments and no set-up, else the half of it, else all of it.
    let all = scenario.setup.len();
    let mut kept = if bound {
        vec![all]
    } else {
        vec![0, all / 2, all]
    };
    kept.dedup();
    for kept in kept {
        let mut smaller = short.clone();
        smaller.setup.truncate(kept);
        if smaller != scenario
            && let Some(found) = shows(lab, set, smaller, schedule)?
        {
            best = Some(found);
            break;
        }
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
            smaller.lists = set.lists;
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
