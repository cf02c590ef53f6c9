//! All calls at once: in one write, since a gap of milliseconds keeps them apart.

use super::{Driven, Stage};
use crate::lab::RunError;

pub fn drive(stage: &mut Stage<'_>) -> Result<Driven, RunError> {
    let all: Vec<usize> = (0..stage.calls.len()).collect();
    stage.send(&all)?;
    let patience = stage.patience;
    stage.wait(&all, patience)?;
    Ok(stage.finish(None, true, Vec::new()))
}
