//! All calls at once, with random delays where they touch the state, or between them
//! if the server cannot be delayed.

use std::time::Duration;

use toctou_hold::Jitter;

use super::{Driven, Stage};
use crate::lab::RunError;

pub fn drive(stage: &mut Stage<'_>, seed: u64) -> Result<Driven, RunError> {
    if stage.cell.sandbox().is_none() {
        return apart(stage, seed);
    }
    stage.cell.supervisor.set_jitter(Some(Jitter {
        seed,
        most: Duration::from_millis(20),
        percent: 60,
    }));
    let driven = super::burst::drive(stage);
    stage.cell.supervisor.set_jitter(None);
    driven
}

/// Longer than this apart, and one is done before the next begins.
const MOST_APART: u64 = 8_000;

fn apart(stage: &mut Stage<'_>, seed: u64) -> Result<Driven, RunError> {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut order: Vec<usize> = (0..stage.calls.len()).collect();
    random.shuffle(&mut order);
    for call in &order {
        stage.send(&[*call])?;
        std::thread::sleep(Duration::from_micros(random.u64(..MOST_APART)));
    }
    let patience = stage.patience;
    stage.wait(&order, patience)?;
    Ok(stage.finish(None, true, Vec::new()))
}
