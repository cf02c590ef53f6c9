//! The interleaving as frames: what each step does to the resource.
//!
//! An interleaving says what an actor sees. A page that can be stepped through
//! needs more: what the resource holds after each step, who acts on something
//! that is no longer true, and whose write is gone in the end. All of that
//! follows from the order of the steps, so it is worked out here and not drawn
//! from a rule's name.

use std::collections::BTreeMap;

use serde::Serialize;
use toctou_core::interleaving::{Action, Step};

use crate::clean;

const TEXT: usize = 200;
const VALUE: usize = 120;
/// More lanes than this are no picture.
const LANES: usize = 6;

#[derive(Serialize)]
pub(super) struct Story {
    lanes: Vec<String>,
    frames: Vec<Frame>,
}

#[derive(Serialize)]
struct Frame {
    /// Index into the lanes; none for an outcome, which concerns all.
    #[serde(skip_serializing_if = "Option::is_none")]
    lane: Option<usize>,
    action: Action,
    text: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    file: String,
    line: u32,
    #[serde(skip_serializing_if = "String::is_empty")]
    function: String,
    /// What the actor sees or writes.
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<String>,
    /// What the resource holds after this step, in so far as it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    holds: Option<String>,
    /// `holds` is a value, not a description of one.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    exact: bool,
    /// The frame whose read this step trusts, although somebody wrote since.
    #[serde(skip_serializing_if = "Option::is_none")]
    stale: Option<usize>,
    /// The frame whose write this step wipes out.
    #[serde(skip_serializing_if = "Option::is_none")]
    undoes: Option<usize>,
}

/// The state of the resource while the story is told.
#[derive(Default)]
struct State {
    holds: Option<(String, bool)>,
    /// The last write: frame, actor, and the value if it is known.
    last: Option<(usize, usize, Option<String>)>,
    /// Where each actor looked last.
    looked: BTreeMap<usize, usize>,
    sent: usize,
}

/// What scan proposes: one resource, and what happens to it.
pub(super) fn of(steps: &[Step]) -> Option<Story> {
    let mut state = State::default();
    tell(steps, |index, lane, lanes, frame| {
        if let Some(lane) = lane {
            state.advance(index, lane, lanes, frame);
        }
        if let Some((holds, exact)) = &state.holds {
            frame.holds = Some(holds.clone());
            frame.exact = *exact;
        }
    })
}

/// What prove recorded: steps on many things, of which none is followed.
pub(super) fn of_run(steps: &[Step]) -> Option<Story> {
    tell(steps, |_, _, _, _| {})
}

fn tell(
    steps: &[Step],
    mut look: impl FnMut(usize, Option<usize>, &[String], &mut Frame),
) -> Option<Story> {
    let mut lanes: Vec<String> = steps
        .iter()
        .filter(|step| step.action != Action::Outcome)
        .map(|step| clean::short(&step.actor, 12))
        .collect();
    lanes.sort_unstable();
    lanes.dedup();
    if lanes.is_empty() || lanes.len() > LANES {
        return None;
    }
    let mut frames: Vec<Frame> = Vec::with_capacity(steps.len());
    for (index, step) in steps.iter().enumerate() {
        let actor = clean::short(&step.actor, 12);
        let lane = (step.action != Action::Outcome)
            .then(|| lanes.iter().position(|name| *name == actor))
            .flatten();
        let mut frame = Frame {
            lane,
            action: step.action,
            text: clean::short(&step.text, TEXT),
            file: clean::line(&step.file),
            line: step.line,
            function: clean::short(&step.function, TEXT),
            value: step
                .value
                .as_deref()
                .map(|value| clean::short(value, VALUE)),
            holds: None,
            exact: false,
            stale: None,
            undoes: None,
        };
        look(index, lane, &lanes, &mut frame);
        frames.push(frame);
    }
    Some(Story { lanes, frames })
}

impl State {
    fn advance(&mut self, index: usize, lane: usize, lanes: &[String], frame: &mut Frame) {
        match frame.action {
            Action::Read => {
                match &frame.value {
                    Some(value) => self.holds = Some((value.clone(), true)),
                    None if self.holds.is_none() => {
                        self.holds = Some(("as it was".to_owned(), false));
                    }
                    None => {}
                }
                self.looked.insert(lane, index);
            }
            Action::Write | Action::Delete => {
                if let Some((at, by, value)) = &self.last
                    && *by != lane
                    && let Some(looked) = self.looked.get(&lane)
                    && looked < at
                {
                    frame.stale = Some(*looked);
                    // Only where both values are known can it be said that one is gone.
                    if value.is_some() && frame.value.is_some() {
                        frame.undoes = Some(*at);
                    }
                }
                let by = &lanes[lane];
                self.holds = Some(match (&frame.value, frame.action) {
                    (Some(value), _) => (value.clone(), true),
                    (None, Action::Delete) => (format!("deleted by {by}"), false),
                    (None, _) => (format!("changed by {by}"), false),
                });
                self.last = Some((index, lane, frame.value.clone()));
            }
            Action::Send => {
                self.sent += 1;
                let times = if self.sent == 1 {
                    "once".to_owned()
                } else {
                    format!("{} times", self.sent)
                };
                self.holds = Some((format!("sent {times}"), false));
            }
            Action::Yield
            | Action::Acquire
            | Action::Release
            | Action::Begin
            | Action::Commit
            | Action::Open
            | Action::Close
            | Action::Outcome => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(actor: &str, action: Action, value: Option<&str>) -> Step {
        Step {
            actor: actor.to_owned(),
            action,
            file: "a.ts".to_owned(),
            line: 1,
            function: String::new(),
            text: "x".to_owned(),
            value: value.map(str::to_owned),
        }
    }

    #[test]
    fn a_lost_update() {
        let story = of(&[
            step("A", Action::Read, Some("v0")),
            step("B", Action::Read, Some("v0")),
            step("B", Action::Write, Some("v0 + B")),
            step("A", Action::Write, Some("v0 + A")),
            step("A", Action::Outcome, None),
        ])
        .expect("a story");
        let holds: Vec<_> = story.frames.iter().map(|f| f.holds.as_deref()).collect();
        assert_eq!(holds, ["v0", "v0", "v0 + B", "v0 + A", "v0 + A"].map(Some));
        // B read before it wrote, and nobody wrote in between: only A is stale.
        assert_eq!(story.frames[2].stale, None);
        assert_eq!(story.frames[3].stale, Some(0));
        assert_eq!(story.frames[3].undoes, Some(2));
        assert_eq!(story.frames[4].lane, None);
    }

    #[test]
    fn nothing_is_said_to_be_lost_where_values_are_unknown() {
        let story = of(&[
            step("A", Action::Read, None),
            step("B", Action::Read, None),
            step("B", Action::Write, None),
            step("A", Action::Write, None),
        ])
        .expect("a story");
        assert_eq!(story.frames[3].stale, Some(0));
        assert_eq!(story.frames[3].undoes, None);
        assert_eq!(story.frames[3].holds.as_deref(), Some("changed by A"));
        assert!(!story.frames[3].exact);
    }

    #[test]
    fn a_second_look_is_not_stale() {
        let story = of(&[
            step("A", Action::Read, Some("v0")),
            step("B", Action::Write, Some("v1")),
            step("A", Action::Read, Some("v1")),
            step("A", Action::Write, Some("v2")),
        ])
        .expect("a story");
        assert_eq!(story.frames[3].stale, None);
        assert_eq!(story.frames[3].undoes, None);
    }

    #[test]
    fn a_crowd_is_no_picture() {
        let steps: Vec<Step> = (0..7)
            .map(|n| step(&n.to_string(), Action::Read, None))
            .collect();
        assert!(of(&steps).is_none());
        assert!(of(&[]).is_none());
    }
}
