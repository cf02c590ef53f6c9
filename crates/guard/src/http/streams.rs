//! Streams of events that can be taken up again.
//!
//! A client of a revision with sessions may lose its connection and come back
//! with the id of the last event it saw. Events are kept for that, up to a
//! bound; an id is `STREAM-NUMBER`, so it says which stream to go on with.
//! A client of 2024-11-05 has one stream for everything, and nothing to come
//! back to: its session ends with it.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use rustc_hash::FxHashMap;
use tokio::sync::oneshot;

use super::backlog::{Backlog, Behind, backlog};
use crate::session::Sink;
use crate::wire::encode_event;

/// What is kept of one session's events.
const KEPT_EVENTS: usize = 1000;
const KEPT_BYTES: usize = 8 << 20;

/// The stream of what the server says of its own accord.
const MAIN: u64 = 0;

#[derive(Default)]
struct State {
    /// Kept events, oldest first: stream, number, the event as bytes.
    log: VecDeque<(u64, u64, Bytes)>,
    bytes: usize,
    streams: FxHashMap<u64, Open>,
    next_stream: u64,
    /// The last number of the main stream that a client took; all, while one listens.
    taken_to: u64,
}

#[derive(Default)]
struct Open {
    sent: u64,
    to: Option<Backlog>,
    /// Waiting to learn whether one answer is all there will be.
    first: Option<oneshot::Sender<First>>,
}

/// How an answer begins.
pub(super) enum First {
    /// It is all there is.
    Whole(Bytes),
    /// There is more to come.
    Events(Behind),
    Nothing,
}

/// All streams of one session. As a sink it is the main stream.
#[derive(Default)]
pub(super) struct Streams {
    state: Mutex<State>,
    single: bool,
}

/// The answer to one POST.
pub(super) struct PostSink {
    streams: Arc<Streams>,
    number: u64,
    /// Without sessions there is nothing to come back to.
    keep: bool,
    pub(super) ended: AtomicBool,
}

impl Streams {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The one stream of a client of 2024-11-05, with its first event.
    pub(super) fn single(first: Bytes) -> (Arc<Self>, Behind) {
        let streams = Self {
            single: true,
            ..Self::default()
        };
        let (to, events) = backlog();
        to.push(first);
        streams.state().streams.insert(
            MAIN,
            Open {
                to: Some(to),
                ..Open::default()
            },
        );
        (Arc::new(streams), events)
    }

    pub(super) fn is_single(&self) -> bool {
        self.single
    }

    /// A stream for the answer to one POST.
    pub(super) fn post(self: &Arc<Self>, keep: bool) -> (Arc<PostSink>, oneshot::Receiver<First>) {
        let (first, answer) = oneshot::channel();
        let mut state = self.state();
        state.next_stream += 1;
        let number = state.next_stream;
        let open = Open {
            first: Some(first),
            ..Open::default()
        };
        state.streams.insert(number, open);
        let sink = PostSink {
            streams: Arc::clone(self),
            number,
            keep,
            ended: AtomicBool::new(false),
        };
        (Arc::new(sink), answer)
    }

    /// The main stream, or one that is taken up again; `None` if somebody has it.
    pub(super) fn listen(&self, last: Option<&str>) -> Option<Behind> {
        let (stream, seen) = match last.map(|id| id.split_once('-')) {
            None => (MAIN, None),
            Some(id) => {
                let (stream, seen) = id?;
                (stream.parse().ok()?, Some(seen.parse::<u64>().ok()?))
            }
        };
        let mut state = self.state();
        let (to, events) = backlog();
        let seen = seen.unwrap_or(state.taken_to);
        for (_, _, event) in state
            .log
            .iter()
            .filter(|(of, number, _)| *of == stream && *number > seen)
        {
            to.push(event.clone());
        }
        if stream == MAIN {
            let open = state.streams.entry(MAIN).or_default();
            if last.is_none() && open.to.as_ref().is_some_and(|to| !to.is_closed()) {
                return None;
            }
            open.to = Some(to);
            state.taken_to = u64::MAX;
        } else if let Some(open) = state.streams.get_mut(&stream) {
            // One that has ended is replayed, and that is the end of it.
            open.to = Some(to);
        }
        Some(events)
    }

    fn put(&self, stream: u64, message: &[u8], keep: bool) {
        let mut state = self.state();
        let open = state.streams.entry(stream).or_default();
        open.sent += 1;
        let number = open.sent;
        let id = keep.then(|| format!("{stream}-{number}"));
        let event = encode_event(id.as_deref(), message);
        // The first of several: the answer becomes a stream.
        if let Some(first) = open.first.take() {
            let (to, events) = backlog();
            open.to = Some(to);
            let _ = first.send(First::Events(events));
        }
        let taken = open.to.as_ref().is_some_and(|to| to.push(event.clone()));
        if !taken {
            open.to = None;
            if stream == MAIN && state.taken_to == u64::MAX {
                state.taken_to = number - 1;
            }
        }
        if keep {
            state.bytes += event.len();
            state.log.push_back((stream, number, event));
            while state.log.len() > KEPT_EVENTS || state.bytes > KEPT_BYTES {
                let Some((.., event)) = state.log.pop_front() else {
                    break;
                };
                state.bytes -= event.len();
            }
        }
    }

    fn end(&self, stream: u64, message: Option<Bytes>, keep: bool) {
        let first = {
            let mut state = self.state();
            state
                .streams
                .get_mut(&stream)
                .and_then(|open| open.first.take())
        };
        match (first, message) {
            (Some(first), Some(message)) => {
                let _ = first.send(First::Whole(message));
            }
            (Some(first), None) => {
                let _ = first.send(First::Nothing);
            }
            (None, Some(message)) => self.put(stream, &message, keep),
            (None, None) => {}
        }
        self.state().streams.remove(&stream);
    }

    /// A stream that leads to the client now, for what has no stream of its own.
    fn any_open(&self) -> u64 {
        let state = self.state();
        let open =
            |to: &Open| to.to.as_ref().is_some_and(|to| !to.is_closed()) || to.first.is_some();
        if state.streams.get(&MAIN).is_some_and(open) {
            return MAIN;
        }
        state
            .streams
            .iter()
            .filter(|(_, stream)| open(stream))
            .map(|(number, _)| *number)
            .max()
            .unwrap_or(MAIN)
    }
}

impl Sink for Arc<Streams> {
    fn deliver(&self, message: Bytes, _last: bool) {
        let stream = if self.single { MAIN } else { self.any_open() };
        self.put(stream, &message, !self.single);
    }
    fn close(&self) {}
    fn flush(&self) {}
}

impl Sink for PostSink {
    fn deliver(&self, message: Bytes, last: bool) {
        if last {
            self.ended.store(true, Ordering::Release);
            self.streams.end(self.number, Some(message), self.keep);
        } else {
            self.streams.put(self.number, &message, self.keep);
        }
    }

    fn close(&self) {
        self.ended.store(true, Ordering::Release);
        self.streams.end(self.number, None, self.keep);
    }

    fn flush(&self) {}
}
