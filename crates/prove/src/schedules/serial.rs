//! One call after the other: what the others are measured by.

use std::time::{Duration, Instant};

use super::{Driven, Stage, Turn};
use crate::lab::RunError;

pub fn drive(stage: &mut Stage<'_>, order: &[usize]) -> Result<Driven, RunError> {
    let mut turns = Vec::new();
    for (place, call) in order.iter().enumerate() {
        if place > 0 {
            let until = Instant::now() + stage.pause;
            while Instant::now() < until {
                stage.budget.check()?;
                stage.listen(Duration::from_millis(20));
            }
        }
        stage.send(&[*call])?;
        let patience = stage.patience;
        let answered = stage.wait(&[*call], patience)?;
        // What a call does after its answer is still its own.
        super::settle(&stage.cell.supervisor);
        turns.push(Turn {
            call: *call,
            until: stage.now(),
        });
        if !answered {
            break;
        }
    }
    Ok(stage.finish(None, false, turns))
}
