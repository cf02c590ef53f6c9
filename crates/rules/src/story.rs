//! The interleaving of a window: two calls, step by step.

use toctou_analysis::{Act, Defect, DefectKind, Spot};
use toctou_core::finding::ResourceKind;
use toctou_core::interleaving::{Action, Interleaving, Step};
use toctou_core::ir::Program;

use crate::case::Case;
use crate::classify::{display_function, excerpt, location};

fn step(program: &Program, actor: &str, action: Action, spot: Spot, value: Option<&str>) -> Step {
    let place = location(program, spot);
    Step {
        actor: actor.to_owned(),
        action,
        file: place.file,
        line: place.line,
        function: display_function(program, spot.func),
        text: excerpt(program, spot),
        value: value.map(str::to_owned),
    }
}

fn outcome(actor: &str, text: &str) -> Step {
    Step {
        actor: actor.to_owned(),
        action: Action::Outcome,
        file: String::new(),
        line: 0,
        function: String::new(),
        text: text.to_owned(),
        value: None,
    }
}

pub(crate) fn of_window(case: &Case<'_>, last: &str) -> Interleaving {
    let (program, w) = (case.program, case.w);
    let deep = |trail: &[Spot]| {
        trail.last().copied().unwrap_or(Spot {
            func: w.meet,
            span: Default::default(),
        })
    };
    let (read, write) = (deep(&w.read), deep(&w.write));
    let act = match w.write_act {
        Act::Delete => Action::Delete,
        Act::Send => Action::Send,
        Act::Read => Action::Open,
        _ => Action::Write,
    };
    let look = if w.read_act == Act::Write {
        Action::Write
    } else {
        Action::Read
    };
    let v = values(case);
    let mut steps = vec![step(program, "A", look, read, v.seen)];
    // The calls in the meeting function, where they are not the accesses themselves.
    if let Some(gap) = w.gap {
        let gap = Spot {
            func: w.meet,
            span: gap,
        };
        if gap != w.read[0] {
            steps.push(Step {
                text: "gives way".to_owned(),
                ..step(program, "A", Action::Yield, gap, None)
            });
        }
    }
    steps.push(step(program, "B", look, read, v.seen));
    steps.push(step(program, "B", act, write, v.by_b));
    steps.push(step(program, "A", act, write, v.by_a));
    steps.push(outcome("A", last));
    steps
}

struct Values {
    seen: Option<&'static str>,
    by_b: Option<&'static str>,
    by_a: Option<&'static str>,
}

/// What the resource holds after each step, in a window that loses something.
fn values(case: &Case<'_>) -> Values {
    let w = case.w;
    if w.data && w.write_act == Act::Write {
        return Values {
            seen: Some("v0"),
            by_b: Some("v0 + B"),
            by_a: Some("v0 + A"),
        };
    }
    let exists = w.read_act == Act::Check && w.kind == ResourceKind::File;
    if exists && !case.deletes() && w.write_positive == Some(false) {
        return Values {
            seen: Some("absent"),
            by_b: Some("B's"),
            by_a: Some("A's"),
        };
    }
    Values {
        seen: None,
        by_b: None,
        by_a: None,
    }
}

/// Is the step before a flaw something that was read? Else it is a wait, a
/// write, a second try: told in the story, and not marked as what was trusted.
pub(crate) fn begins_with_a_read(kind: DefectKind) -> bool {
    !matches!(
        kind,
        DefectKind::LetsTwoIn
            | DefectKind::DropsLive
            | DefectKind::LeaseInUse
            | DefectKind::MultiStep
            | DefectKind::RelatedSteps
            | DefectKind::SendTwice
            | DefectKind::DataRace
            | DefectKind::UseAfterClose
            | DefectKind::ClosedTwice
    )
}

pub(crate) fn of_defect(program: &Program, defect: &Defect, last: &str) -> Interleaving {
    let words = |actor: &str, action, spot, text: &str| Step {
        text: text.to_owned(),
        ..step(program, actor, action, spot, None)
    };
    let spot = defect.spot;
    let first = defect.first.unwrap_or(spot);
    let mut steps = match defect.kind {
        DefectKind::PoisonedChain => vec![
            words("A", Action::Acquire, spot, "fails inside the chain"),
            words(
                "B",
                Action::Acquire,
                spot,
                "waits for its turn in the chain",
            ),
        ],
        DefectKind::NotReleased => vec![
            words(
                "A",
                Action::Acquire,
                spot,
                "takes the lock and fails before giving it back",
            ),
            words("B", Action::Acquire, spot, "waits for the lock"),
        ],
        DefectKind::LetsTwoIn | DefectKind::DropsLive => vec![
            words("A", Action::Acquire, spot, "is inside"),
            words("B", Action::Acquire, spot, "is let in as well"),
        ],
        DefectKind::LeaseInUse => vec![
            step(program, "A", Action::Acquire, spot, None),
            step(
                program,
                "A",
                Action::Yield,
                defect.first.unwrap_or(spot),
                None,
            ),
            words(
                "B",
                Action::Acquire,
                spot,
                "takes the lock when A's time is over",
            ),
        ],
        DefectKind::MultiStep | DefectKind::RelatedSteps => vec![
            step(
                program,
                "A",
                Action::Write,
                defect.first.unwrap_or(spot),
                None,
            ),
            words("B", Action::Read, spot, "reads both"),
            step(program, "A", Action::Write, spot, None),
        ],
        DefectKind::SendTwice => vec![
            step(program, "A", Action::Send, spot, None),
            step(program, "B", Action::Send, spot, None),
        ],
        DefectKind::BlindUpdate => vec![
            step(program, "A", Action::Write, spot, None),
            step(program, "B", Action::Write, spot, None),
        ],
        DefectKind::CloseRace => vec![
            words(
                "A",
                Action::Read,
                first,
                "tests that it is open, and gives way",
            ),
            words(
                "B",
                Action::Close,
                first,
                "closes, and waits for what is registered",
            ),
            words("A", Action::Write, spot, "goes on and registers its work"),
        ],
        DefectKind::CountedLate => vec![
            words(
                "A",
                Action::Read,
                first,
                "tests that it is open, and gives the lock back",
            ),
            words(
                "B",
                Action::Close,
                first,
                "closes, and finds nothing to wait for",
            ),
            words(
                "A",
                Action::Write,
                spot,
                "counts its work in, and begins it",
            ),
        ],
        DefectKind::ClosedTwice => vec![
            words("A", Action::Close, first, "closes it"),
            words("B", Action::Close, spot, "closes it again"),
        ],
        DefectKind::UseAfterClose => vec![
            words("A", Action::Read, spot, "finds it open"),
            words("B", Action::Close, first, "closes it"),
            words("A", Action::Write, spot, "goes on to use it"),
        ],
        DefectKind::DataRace => vec![
            words("A", Action::Write, first, "uses it"),
            words("B", Action::Write, spot, "uses it at the same moment"),
        ],
        DefectKind::PartialInit | DefectKind::HalfOpen => vec![
            step(program, "A", Action::Open, first, None),
            words("A", Action::Read, spot, "fails"),
        ],
        DefectKind::RetryForever | DefectKind::RetryInStep | DefectKind::RetryWidening => vec![
            words("A", Action::Write, first, "tries, and wins"),
            words("B", Action::Write, first, "tries, and loses"),
            words("B", Action::Yield, spot, "begins another turn"),
        ],
        DefectKind::SharedServer => vec![
            words("A", Action::Open, spot, "takes it for its own client"),
            words("B", Action::Open, spot, "takes it for its own client"),
        ],
        DefectKind::NoLimit => vec![
            words("A", Action::Open, first, "starts it"),
            words("B", Action::Open, first, "starts it as well"),
        ],
    };
    let alone = matches!(defect.kind, DefectKind::PartialInit | DefectKind::HalfOpen);
    let who = if alone { "A" } else { "B" };
    steps.push(outcome(who, last));
    steps
}
