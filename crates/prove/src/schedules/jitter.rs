//! All calls at once, with random delays where they touch the state.

use std::time::Duration;

use toctou_hold::Jitter;

use super::{Driven, Stage};
use crate::lab::RunError;

pub fn drive(stage: &mut Stage<'_>, seed: u64) -> Result<Driven, RunError> {
    stage.cell.supervisor.set_jitter(Some(Jitter {
        seed,
        most: Duration::from_millis(20),
        percent: 60,
    }));
    let driven = super::burst::drive(stage);
    stage.cell.supervisor.set_jitter(None);
    driven
}
