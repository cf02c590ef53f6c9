//! One call after the other: what the others are measured by.

use super::{Driven, Stage, Turn};
use crate::lab::RunError;

pub fn drive(stage: &mut Stage<'_>, order: &[usize]) -> Result<Driven, RunError> {
    let mut turns = Vec::new();
    for call in order {
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
