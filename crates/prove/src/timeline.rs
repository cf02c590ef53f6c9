//! What happened, as the story that all parts of toctou tell.

use toctou_core::interleaving::{Action, Interleaving, Step};
use toctou_hold::{Class, Event};

use crate::call::Call;
use crate::oracles::Violation;
use crate::outcome::Outcome;
use crate::scenario::{Assignment, Scenario, Schedule, letter};

/// Events of one call beyond this are left out of the middle.
const MOST_STEPS: usize = 14;

/// Two columns: what each call did to the state, and what it was answered.
pub fn timeline(
    scenario: &Scenario,
    assignment: &Assignment,
    schedule: &Schedule,
    outcome: &Outcome,
    violation: &Violation,
) -> Interleaving {
    let mut steps = Vec::new();
    let held = match schedule {
        Schedule::Hold { call, .. } => Some(*call),
        _ => None,
    };
    let order: Vec<usize> = match held {
        Some(first) => std::iter::once(first)
            .chain((0..scenario.calls.len()).filter(|call| *call != first))
            .collect(),
        None => (0..scenario.calls.len()).collect(),
    };
    let crossing = assignment.processes() > 1;
    let known = outcome.owners.iter().any(Option::is_some);
    let begin = |call: usize, steps: &mut Interleaving| {
        let place = if crossing {
            format!(
                " (process {})",
                assignment.0.get(call).copied().unwrap_or(0) + 1
            )
        } else {
            String::new()
        };
        steps.push(step(
            call,
            Action::Open,
            format!("{}{place}", shown(&scenario.calls[call])),
        ));
    };
    let answer = |call: usize, steps: &mut Interleaving| {
        if let Some(reply) = outcome.replies.get(call) {
            steps.push(step(
                call,
                Action::Close,
                format!("answers: {}", short(&reply.shown(), 90)),
            ));
        }
    };
    let relevant: Vec<(usize, &Event)> = outcome
        .events
        .iter()
        .zip(&outcome.owners)
        .filter_map(|(event, owner)| Some(((*owner)?, event)))
        .collect();
    if let Some(first) = held.filter(|_| known && scenario.calls.len() == 2) {
        let other = 1 - first;
        begin(first, &mut steps);
        let at = outcome.held.as_ref().map(|event| event.index);
        let before: Vec<&Event> = relevant
            .iter()
            .filter(|(call, event)| *call == first && at.is_none_or(|at| event.index < at))
            .map(|(_, event)| *event)
            .collect();
        push_events(first, &before, &mut steps);
        if let Some(event) = &outcome.held {
            steps.push(step(
                first,
                Action::Yield,
                format!("held before {}", told(event)),
            ));
        }
        begin(other, &mut steps);
        let middle: Vec<&Event> = relevant
            .iter()
            .filter(|(call, _)| *call == other)
            .map(|(_, event)| *event)
            .collect();
        push_events(other, &middle, &mut steps);
        answer(other, &mut steps);
        let after: Vec<&Event> = relevant
            .iter()
            .filter(|(call, event)| *call == first && at.is_some_and(|at| event.index >= at))
            .map(|(_, event)| *event)
            .collect();
        push_events(first, &after, &mut steps);
        answer(first, &mut steps);
    } else {
        for call in &order {
            begin(*call, &mut steps);
        }
        if known {
            for (call, event) in relevant.iter().take(MOST_STEPS * scenario.calls.len()) {
                steps.push(step(*call, action(event), told(event)));
            }
        }
        for call in &order {
            answer(*call, &mut steps);
        }
    }
    steps.push(Step {
        actor: String::new(),
        action: Action::Outcome,
        file: String::new(),
        line: 0,
        function: String::new(),
        text: violation.headline.clone(),
        value: None,
    });
    steps
}

fn push_events(call: usize, events: &[&Event], steps: &mut Interleaving) {
    let skipped = events.len().saturating_sub(MOST_STEPS);
    for (index, event) in events.iter().enumerate() {
        if skipped > 0 && index == MOST_STEPS / 2 {
            steps.push(step(call, Action::Yield, format!("({skipped} more)")));
        }
        if skipped > 0 && index >= MOST_STEPS / 2 && index < MOST_STEPS / 2 + skipped {
            continue;
        }
        steps.push(step(call, action(event), told(event)));
    }
}

fn step(call: usize, action: Action, text: String) -> Step {
    Step {
        actor: letter(call),
        action,
        file: String::new(),
        line: 0,
        function: String::new(),
        text,
        value: None,
    }
}

fn action(event: &Event) -> Action {
    match event.class {
        Class::Mutate => match event.name.as_str() {
            "unlink" | "unlinkat" | "rmdir" => Action::Delete,
            _ => Action::Write,
        },
        Class::Lock => Action::Acquire,
        Class::Unlock => Action::Release,
        Class::Read => Action::Read,
        Class::Completion => Action::Yield,
    }
}

/// A system call with the names of files, not their folders.
pub fn told(event: &Event) -> String {
    let mut short = event.clone();
    for path in &mut short.paths {
        if let Some(name) = path.rsplit('/').next() {
            *path = name.to_owned();
        }
    }
    short.to_string()
}

fn shown(call: &Call) -> String {
    short(&call.shown(), 120)
}

pub fn short(text: &str, most: usize) -> String {
    let line: String = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if line.chars().count() <= most {
        return line;
    }
    let start: String = line.chars().take(most.saturating_sub(3)).collect();
    start + "..."
}
