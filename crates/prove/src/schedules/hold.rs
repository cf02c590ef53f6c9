//! One call stands still at a point, the others run to their end, and it goes on.
//!
//! If the others cannot finish, the server keeps them out while it is held:
//! then they go on together, and nothing is lost but the time.

use std::time::{Duration, Instant};

use toctou_hold::{Hold, HoldState, Point, Source};

use super::{Driven, Stage, Turn};
use crate::lab::RunError;
use crate::scenario::Place;

/// Which call stands where.
pub struct Held {
    pub call: usize,
    pub point: u32,
    pub at: Place,
    pub then: Option<u32>,
    /// The others start only when it is done.
    pub alone: bool,
}

/// The longest pause without a reason.
const MOST: Duration = Duration::from_secs(3);

pub fn drive(stage: &mut Stage<'_>, held: &Held) -> Result<Driven, RunError> {
    let source = match held.at {
        Place::Syscall => Source::Syscall,
        Place::Await => Source::Await,
    };
    let process = stage.cell.servers[stage.process(held.call)].id();
    let hold = stage.cell.supervisor.arm(Point {
        source,
        process,
        nth: held.point,
        only: None,
    });
    let others: Vec<usize> = (0..stage.calls.len())
        .filter(|call| *call != held.call)
        .collect();
    let began = Instant::now();
    stage.send(&[held.call])?;
    // It comes to the point, or ends without coming by.
    let deadline = began + stage.patience;
    while hold.state() == HoldState::Waiting
        && !stage.answered(held.call)
        && Instant::now() < deadline
    {
        stage.budget.check()?;
        stage.listen(Duration::from_millis(1));
    }
    let event = match hold.state() {
        HoldState::Held(event) => Some(event),
        _ => None,
    };
    let mut turns = vec![Turn {
        call: held.call,
        until: stage.now(),
    }];
    let mut overlapped = false;
    let reached = event.is_some();
    let patience = stage.patience;
    if reached && held.alone {
        // As long as another call would take.
        std::thread::sleep((stage.expected * 2).clamp(Duration::from_millis(50), MOST));
    } else if reached {
        let second = match (held.then, others.first()) {
            (Some(point), Some(other)) => Some(stage.cell.supervisor.arm(Point {
                source,
                process: stage.cell.servers[stage.process(*other)].id(),
                nth: point,
                only: None,
            })),
            _ => None,
        };
        for other in &others {
            stage.send(&[*other])?;
            overlapped = match &second {
                Some(second) => wait_held(stage, second, *other)?,
                None => stage.wait_or_stuck(*other)?,
            };
            turns.push(Turn {
                call: *other,
                until: stage.now(),
            });
            if !overlapped {
                break;
            }
        }
        hold.release();
        if second.is_some() {
            // The first runs to its end while the second stands.
            stage.wait_or_stuck(held.call)?;
            turns.push(Turn {
                call: held.call,
                until: stage.now(),
            });
        }
        drop(second);
    }
    drop(hold);
    stage.wait(&[held.call], patience)?;
    turns.push(Turn {
        call: held.call,
        until: stage.now(),
    });
    // Those that had no turn yet.
    for other in &others {
        if stage.tickets[*other].is_none() {
            stage.send(&[*other])?;
        }
        stage.wait(&[*other], patience)?;
        turns.push(Turn {
            call: *other,
            until: stage.now(),
        });
    }
    Ok(stage.finish(event, reached && overlapped, turns))
}

/// Until the second call stands as well, or is done.
fn wait_held(stage: &mut Stage<'_>, hold: &Hold, call: usize) -> Result<bool, RunError> {
    let deadline =
        Instant::now() + (stage.expected * 3 + Duration::from_secs(1)).min(stage.patience);
    loop {
        if matches!(hold.state(), HoldState::Held(_)) || stage.answered(call) {
            return Ok(true);
        }
        stage.budget.check()?;
        if Instant::now() >= deadline {
            return Ok(false);
        }
        stage.listen(Duration::from_millis(1));
    }
}
