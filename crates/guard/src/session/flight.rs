//! Requests between their question and their answer.

use std::sync::Arc;

use rustc_hash::FxHashMap;
use tokio::task::AbortHandle;

use super::{Origin, Sink};
use crate::admit::{Pass, Tool};
use crate::wire::{Id, Raw};

/// One request that is not answered yet.
pub(super) struct Flight {
    pub(super) stage: Stage,
    /// The id as the client wrote it.
    pub(super) raw_id: Box<str>,
    /// The progress token as the client wrote it, if it was replaced.
    pub(super) token: Option<Box<str>>,
    pub(super) sink: Arc<dyn Sink>,
    pub(super) tool: Option<Arc<Tool>>,
    /// Tells it from a later one with the same id.
    pub(super) serial: u64,
    pub(super) timer: Option<Timer>,
    /// A stream of notifications that ends when the client wants it to.
    pub(super) endless: bool,
    /// The client's `initialize`.
    pub(super) greeting: bool,
}

/// A timer that ends with what it is for.
pub(super) struct Timer(pub(super) AbortHandle);

impl Drop for Timer {
    fn drop(&mut self) {
        self.0.abort();
    }
}

pub(super) enum Stage {
    /// Not a tool call: nothing is held.
    Plain,
    /// Not let in yet; the server has not seen it.
    Waiting(Option<AbortHandle>),
    /// The server has it.
    Running(Option<Box<Pass>>),
    /// The server has it, but nobody waits for the answer any more.
    Abandoned(Option<Box<Pass>>),
    /// A question of the guard itself.
    Own(Question),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Question {
    /// The handshake, said again to a server that was started again.
    Initialize,
    Tools,
}

impl Flight {
    pub(super) fn new(stage: Stage, raw_id: &str, origin: &Origin) -> Self {
        Self {
            stage,
            raw_id: raw_id.into(),
            token: None,
            sink: Arc::clone(&origin.sink),
            tool: None,
            serial: 0,
            timer: None,
            endless: false,
            greeting: false,
        }
    }
}

/// All of them, by the id that the server knows.
#[derive(Default)]
pub(super) struct Flights {
    by_id: FxHashMap<Id, Flight>,
    /// Only where ids are replaced: the client's id.
    originals: FxHashMap<Id, Id>,
    waiting: usize,
    inserted: u64,
}

impl Flights {
    pub(super) fn len(&self) -> usize {
        self.by_id.len()
    }

    /// Those that somebody waits for.
    pub(super) fn callers(&self) -> usize {
        self.by_id
            .values()
            .filter(|flight| !flight.endless && !matches!(flight.stage, Stage::Own(_)))
            .count()
    }

    pub(super) fn waiting(&self) -> usize {
        self.waiting
    }

    pub(super) fn contains(&self, id: &Id) -> bool {
        self.by_id.contains_key(id)
    }

    pub(super) fn get_mut(&mut self, id: &Id) -> Option<&mut Flight> {
        self.by_id.get_mut(id)
    }

    pub(super) fn get(&self, id: &Id) -> Option<&Flight> {
        self.by_id.get(id)
    }

    pub(super) fn insert(&mut self, id: Id, original: Option<Id>, mut flight: Flight) {
        self.inserted += 1;
        flight.serial = self.inserted;
        if let Some(original) = original {
            self.originals.insert(original, id.clone());
        }
        self.waiting += usize::from(matches!(flight.stage, Stage::Waiting(_)));
        self.by_id.insert(id, flight);
    }

    pub(super) fn remove(&mut self, id: &Id) -> Option<Flight> {
        let flight = self.by_id.remove(id)?;
        self.waiting -= usize::from(matches!(flight.stage, Stage::Waiting(_)));
        if !self.originals.is_empty()
            && let Some(original) = Id::read(Raw::new(&flight.raw_id))
            && self.originals.get(&original) == Some(id)
        {
            self.originals.remove(&original);
        }
        if self.by_id.is_empty() && self.by_id.capacity() > 4096 {
            self.by_id = FxHashMap::default();
            self.originals = FxHashMap::default();
        }
        Some(flight)
    }

    /// Puts a flight into another stage; gives back the old one.
    pub(super) fn advance(&mut self, id: &Id, stage: Stage) -> Option<Stage> {
        let flight = self.by_id.get_mut(id)?;
        self.waiting -= usize::from(matches!(flight.stage, Stage::Waiting(_)));
        self.waiting += usize::from(matches!(stage, Stage::Waiting(_)));
        Some(std::mem::replace(&mut flight.stage, stage))
    }

    /// The server's id of a request, by the client's.
    pub(super) fn by_original(&self, original: &Id) -> Option<Id> {
        self.originals.get(original).cloned()
    }

    pub(super) fn ids(&self, wanted: impl Fn(&Flight) -> bool) -> Vec<Id> {
        self.by_id
            .iter()
            .filter(|(_, flight)| wanted(flight))
            .map(|(id, _)| id.clone())
            .collect()
    }
}
