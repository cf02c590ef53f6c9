//! Where calls can meet at all, as seen when the tools were tried: that is tried first.

use std::collections::BTreeSet;

use toctou_hold::{Class, Event};

use crate::canon::content::Content;
use crate::cell::Cell;
use crate::outcome::Files;
use crate::search::Scope;

/// What the server seems to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Likely {
    /// A call gives way before it is done.
    pub in_process: bool,
    /// Something is left where another process finds it.
    pub cross_process: bool,
}

impl Likely {
    /// From what the server did, and whether one thread runs an event loop for all calls.
    pub fn of(events: &[Event], event_loop: bool) -> Self {
        let gives_way = |event: &Event| {
            event.class == Class::Completion || (event.class.is_point() && event.tid != event.pid)
        };
        Self {
            in_process: !event_loop || events.iter().any(gives_way),
            cross_process: events
                .iter()
                .any(|event| matches!(event.class, Class::Mutate | Class::Lock)),
        }
    }

    pub fn has(self, scope: Scope) -> bool {
        match scope {
            Scope::InProcess => self.in_process,
            Scope::CrossProcess => self.cross_process,
        }
    }
}

/// Whether the server has written files that nobody else can look into. What
/// stands there is then known only from a server that reads them anew.
pub fn keeps_unreadable(cell: &Cell, logs: &BTreeSet<String>) -> bool {
    let (Some(sandbox), Some(snapshot)) = (cell.sandbox(), cell.snapshot()) else {
        return false;
    };
    let events = cell.supervisor.events_since(cell.start);
    let files = Files::read(&snapshot).all;
    let mut unreadable = files
        .iter()
        .filter(|(path, content)| **content == Content::Opaque && !logs.contains(*path));
    unreadable.any(|(path, _)| {
        let seen = sandbox.seen(path).to_string_lossy().into_owned();
        events
            .iter()
            .any(|event| event.class == Class::Mutate && event.paths.contains(&seen))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use toctou_hold::{ProcessId, Source};

    fn event(class: Class, tid: u32) -> Event {
        Event {
            index: 0,
            process: ProcessId(0),
            pid: 7,
            tid,
            source: Source::Syscall,
            class,
            name: String::new(),
            paths: Vec::new(),
            length: None,
            detail: String::new(),
            at: std::time::Duration::ZERO,
        }
    }

    #[test]
    fn a_loop_that_never_gives_way_runs_one_call_after_the_other() {
        let files = [event(Class::Mutate, 7)];
        let blocking = Likely::of(&files, true);
        assert!(!blocking.in_process && blocking.cross_process);
        assert!(Likely::of(&files, false).in_process);
        assert!(Likely::of(&[event(Class::Mutate, 8)], true).in_process);
        let memory = Likely::of(&[event(Class::Completion, 7)], true);
        assert!(memory.in_process && !memory.cross_process);
    }
}
