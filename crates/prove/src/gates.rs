//! What stands between a suspicion and a proof. Each gate was needed in practice.

use std::time::Duration;

use crate::lab::{Experiment, Lab, RunError};
use crate::oracles::Violation;
use crate::oracles::serial::{MOST_CALLS, SerialSet, Verdict};
use crate::outcome::Outcome;
use crate::proof::Replays;
use crate::scenario::Schedule;

/// Nothing is called proved before it happened so often in so many tries.
pub const REPLAYS_NEEDED: usize = 5;
/// What a proof is tried in the end.
pub const REPLAYS_TOLD: usize = 10;
/// Further runs of each serial order, beside those that take their time.
const SERIAL_AGAIN: usize = 1;
/// Of many calls there are two orders only, and none takes its time.
const MANY_AGAIN: usize = 2;

/// What the gates say.
pub enum Passed {
    Proved {
        violation: Box<Violation>,
        outcome: Box<Outcome>,
        replays: Replays,
    },
    /// A serial order explains it after all.
    FalseAlarm,
    /// It happened, but not every time.
    Flaky(Replays),
    /// The server does not do the same thing twice.
    Inconclusive(String),
}

/// Whether a suspicion stands when the serial orders are known better; else why not.
pub fn doubt(lab: &Lab, set: &mut SerialSet, seen: &Outcome) -> Result<Option<Passed>, RunError> {
    let few = set.scenario.calls.len() <= MOST_CALLS;
    let again = if few { SERIAL_AGAIN } else { MANY_AGAIN };
    let mut steady = set.steady(lab, again)?;
    if steady.is_ok() {
        steady = set.at_leisure(lab)?;
    }
    if let Err(unsteady) = steady {
        return Ok(Some(Passed::Inconclusive(unsteady.to_string())));
    }
    let stands = matches!(set.explain(lab, seen)?, Verdict::Violation(_));
    Ok((!stands).then_some(Passed::FalseAlarm))
}

/// Makes what stands happen again, as often as a proof is told with if there is time.
pub fn confirm(lab: &Lab, set: &mut SerialSet, schedule: &Schedule) -> Result<Passed, RunError> {
    if matches!(schedule, Schedule::Hold { .. }) {
        // Holding alone must change nothing: else it is time that decides, not the other call.
        let control = run(lab, set, schedule, true)?;
        match set.explain(lab, &control)? {
            Verdict::Serial(_) => {}
            Verdict::Refused | Verdict::Violation(_) => {
                return Ok(Passed::Inconclusive(
                    "the outcome depends on time: to hold a call changes it even if no other call runs".to_owned(),
                ));
            }
        }
    }
    replay(lab, set, schedule, Failure::Ends)
}

/// What a replay that shows nothing means for those that are needed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Failure {
    /// It cannot be proved any more.
    Ends,
    /// Somebody wants to know how often it happens.
    Counts,
}

/// Runs it again and again: as often as is needed without one failure, then as often as is told.
pub fn replay(
    lab: &Lab,
    set: &mut SerialSet,
    schedule: &Schedule,
    failure: Failure,
) -> Result<Passed, RunError> {
    let mut best: Option<(Box<Violation>, Box<Outcome>)> = None;
    let mut replays = Replays {
        reproduced: 0,
        of: 0,
    };
    while replays.of < REPLAYS_TOLD {
        let outcome = match run(lab, set, schedule, false) {
            Ok(outcome) => outcome,
            // What was needed is there; what is only told may be cut short.
            Err(RunError::Stopped(_)) if replays.of >= REPLAYS_NEEDED => break,
            Err(error) => return Err(error),
        };
        replays.of += 1;
        if let Verdict::Violation(violation) = set.explain(lab, &outcome)? {
            replays.reproduced += 1;
            best = Some((violation, Box::new(outcome)));
        }
        let failed = replays.of <= REPLAYS_NEEDED && replays.reproduced < replays.of;
        if failed && (failure == Failure::Ends || replays.of == REPLAYS_NEEDED) {
            return Ok(Passed::Flaky(replays));
        }
    }
    Ok(match best {
        Some((violation, outcome)) => Passed::Proved {
            violation,
            outcome,
            replays,
        },
        None => Passed::Flaky(replays),
    })
}

pub fn run(
    lab: &Lab,
    set: &SerialSet,
    schedule: &Schedule,
    alone: bool,
) -> Result<Outcome, RunError> {
    lab.run(&Experiment {
        scenario: &set.scenario,
        assignment: &set.assignment,
        schedule,
        alone,
        pause: Duration::ZERO,
        expected: set.latency(),
    })
}
