//! What stands between a suspicion and a proof. Each gate was needed in practice.

use std::time::Duration;

use crate::lab::{Experiment, Lab, RunError};
use crate::oracles::Violation;
use crate::oracles::serial::{SerialSet, Verdict};
use crate::outcome::Outcome;
use crate::proof::Replays;
use crate::scenario::Schedule;

/// Nothing is called proved before it happened so often in so many tries.
pub const REPLAYS_NEEDED: usize = 5;
/// What a proof is tried in the end.
pub const REPLAYS_TOLD: usize = 10;
/// Further runs of each serial order.
const SERIAL_AGAIN: usize = 2;

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

/// Puts a suspicion to the test, with up to `told` replays.
pub fn pass(
    lab: &Lab,
    set: &mut SerialSet,
    schedule: &Schedule,
    seen: &Outcome,
    told: usize,
) -> Result<Passed, RunError> {
    if let Err(unsteady) = set.steady(lab, SERIAL_AGAIN)? {
        return Ok(Passed::Inconclusive(unsteady.to_string()));
    }
    let Verdict::Violation(_) = set.explain(lab, seen)? else {
        return Ok(Passed::FalseAlarm);
    };
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
    replay(lab, set, schedule, REPLAYS_NEEDED, told)
}

/// Runs it again and again: `needed` times without one failure, then up to `told` times.
pub fn replay(
    lab: &Lab,
    set: &mut SerialSet,
    schedule: &Schedule,
    needed: usize,
    told: usize,
) -> Result<Passed, RunError> {
    let mut best: Option<(Box<Violation>, Box<Outcome>)> = None;
    let mut replays = Replays {
        reproduced: 0,
        of: 0,
    };
    while replays.of < told {
        let outcome = match run(lab, set, schedule, false) {
            Ok(outcome) => outcome,
            // What was needed is there; what is only told may be cut short.
            Err(RunError::Stopped(_)) if replays.of >= needed => break,
            Err(error) => return Err(error),
        };
        replays.of += 1;
        if let Verdict::Violation(violation) = set.explain(lab, &outcome)? {
            replays.reproduced += 1;
            best = Some((violation, Box::new(outcome)));
        }
        if replays.of == needed && replays.reproduced < needed {
            return Ok(Passed::Flaky(replays));
        }
    }
    Ok(proved(best, replays))
}

fn proved(best: Option<(Box<Violation>, Box<Outcome>)>, replays: Replays) -> Passed {
    match best {
        Some((violation, outcome)) => Passed::Proved {
            violation,
            outcome,
            replays,
        },
        None => Passed::Flaky(replays),
    }
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
