//! A proof, made to happen again from its recipe.

use crate::gates::{self, Failure, Passed};
use crate::lab::{Lab, RunError};
use crate::oracles::serial::SerialSet;
use crate::proof::Recipe;
use crate::target::Target;

/// Runs the recipe as a search does when it has found something.
pub fn replay(lab: &Lab, recipe: &Recipe) -> Result<(SerialSet, Passed), RunError> {
    let mut set = SerialSet::record(lab, &recipe.scenario, &recipe.assignment)?;
    let mut steady = set.steady(lab, 1)?;
    if steady.is_ok() {
        steady = set.at_leisure(lab)?;
    }
    if let Err(unsteady) = steady {
        return Ok((set, Passed::Inconclusive(unsteady.to_string())));
    }
    let passed = gates::replay(lab, &mut set, &recipe.schedule, Failure::Counts)?;
    Ok((set, passed))
}

/// Reads a `replay.json`.
pub fn parse(json: &str) -> Result<Recipe, String> {
    let recipe: Recipe = serde_json::from_str(json).map_err(|error| error.to_string())?;
    if recipe.schema != crate::proof::REPLAY_SCHEMA {
        return Err(format!(
            "its schema is `{}`, not `{}`",
            recipe.schema,
            crate::proof::REPLAY_SCHEMA
        ));
    }
    let calls = recipe.scenario.calls.len();
    if calls == 0 || recipe.assignment.0.len() != calls {
        return Err("each call needs a process".to_owned());
    }
    if recipe.assignment.processes() > 8 {
        return Err("more than eight processes".to_owned());
    }
    if let crate::scenario::Schedule::Hold { call, .. } = recipe.schedule
        && call >= calls
    {
        return Err(format!("there is no call {call} to hold"));
    }
    if matches!(&recipe.target, Target::Command(command) if command.argv.is_empty()) {
        return Err("there is no command in it".to_owned());
    }
    Ok(recipe)
}
