//! Who decides: every event of every process of a run comes by here, in one order,
//! and goes on at once, goes on later, or is held.
//!
//! It knows neither the kernel nor any runtime. A source of events brings each with
//! a way to let it go on; that is all it takes to add another source.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::watch;

use crate::event::{Class, Event, Jitter, Point, ProcessId, Source};

/// Events kept for one run. A server in a loop must not eat the memory.
const MOST_EVENTS: usize = 200_000;

/// Lets a held event go on. Called at most once, from any thread.
pub(crate) trait Resume: Send {
    fn resume(self: Box<Self>);
}

/// An event that has no place in the order yet.
pub(crate) struct Draft {
    pub pid: u32,
    pub tid: u32,
    pub source: Source,
    pub class: Class,
    pub name: String,
    pub paths: Vec<String>,
    pub length: Option<u64>,
    pub detail: String,
}

/// What becomes of an event.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Go,
    After(Duration),
    /// The supervisor has taken the `Resume` and will call it.
    Held,
}

/// Sees and holds what the processes of one run do. Cheap to clone; all clones are one.
#[derive(Clone)]
pub struct Supervisor {
    inner: Arc<Inner>,
}

struct Inner {
    started: Instant,
    core: Mutex<Core>,
}

#[derive(Default)]
struct Core {
    events: Vec<Event>,
    next_index: u64,
    dropped: u64,
    arms: Vec<Arm>,
    next_arm: u64,
    jitter: Option<(Jitter, fastrand::Rng)>,
    /// One for each launch: whether it has ended.
    ended: Vec<bool>,
}

struct Arm {
    id: u64,
    point: Point,
    /// Events that still pass before the one to hold.
    left: u32,
    state: watch::Sender<HoldState>,
    resume: Option<Box<dyn Resume>>,
}

/// How far a hold has come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HoldState {
    /// The event has not come yet.
    Waiting,
    /// The event has come, and waits.
    Held(Event),
    /// It was let go.
    Released(Event),
    /// The process ended, before or while it was held.
    Ended,
}

impl Default for Supervisor {
    fn default() -> Self {
        Self::new()
    }
}

impl Supervisor {
    pub fn new() -> Self {
        Self {
            inner: Arc::new(Inner {
                started: Instant::now(),
                core: Mutex::new(Core::default()),
            }),
        }
    }

    /// A place in the order of events: what comes later is [`since`](Self::events_since) it.
    pub fn mark(&self) -> Mark {
        Mark(self.lock().next_index)
    }

    /// What happened since, in the order of arrival.
    pub fn events_since(&self, mark: Mark) -> Vec<Event> {
        self.events_between(mark, Mark(u64::MAX))
    }

    pub fn events_between(&self, from: Mark, to: Mark) -> Vec<Event> {
        let core = self.lock();
        let start = core.events.partition_point(|e| e.index < from.0);
        core.events[start..]
            .iter()
            .take_while(|e| e.index < to.0)
            .cloned()
            .collect()
    }

    /// Events that were not kept because there were too many.
    pub fn dropped_events(&self) -> u64 {
        self.lock().dropped
    }

    /// Forgets the events so far. Marks stay good.
    pub fn forget_events(&self) {
        let mut core = self.lock();
        core.events.clear();
    }

    /// Holds the event that the point names, counted from now.
    pub fn arm(&self, point: Point) -> Hold {
        let mut core = self.lock();
        let ended = core.has_ended(point.process);
        let state = if ended {
            HoldState::Ended
        } else {
            HoldState::Waiting
        };
        let (state, watch) = watch::channel(state);
        let id = core.next_arm;
        core.next_arm += 1;
        let left = point.nth.saturating_sub(1);
        if !ended {
            core.arms.push(Arm {
                id,
                point: point.clone(),
                left,
                state,
                resume: None,
            });
        }
        Hold {
            supervisor: self.clone(),
            id,
            point,
            watch,
        }
    }

    /// Random delays from now on, or none.
    pub fn set_jitter(&self, jitter: Option<Jitter>) {
        self.lock().jitter = jitter.map(|j| (j, fastrand::Rng::with_seed(j.seed)));
    }

    pub(crate) fn add_process(&self) -> ProcessId {
        let mut core = self.lock();
        let id = u32::try_from(core.ended.len()).unwrap_or(u32::MAX);
        core.ended.push(false);
        ProcessId(id)
    }

    /// A process is gone: nobody may wait for it any longer.
    pub(crate) fn process_ended(&self, process: ProcessId) {
        let mut core = self.lock();
        if let Some(ended) = core.ended.get_mut(process.0 as usize) {
            *ended = true;
        }
        core.arms.retain_mut(|arm| {
            let of_it = arm.point.process == process;
            if of_it {
                arm.state.send_replace(HoldState::Ended);
            }
            !of_it
        });
    }

    /// An event has come. `resume` is asked for only if it is held.
    pub(crate) fn arrive(
        &self,
        process: ProcessId,
        draft: Draft,
        resume: impl FnOnce() -> Box<dyn Resume>,
    ) -> Verdict {
        let at = self.inner.started.elapsed();
        let mut core = self.lock();
        let event = Event {
            index: core.next_index,
            process,
            pid: draft.pid,
            tid: draft.tid,
            source: draft.source,
            class: draft.class,
            name: draft.name,
            paths: draft.paths,
            length: draft.length,
            detail: draft.detail,
            at,
        };
        core.next_index += 1;
        let verdict = core.decide(&event, resume);
        if core.events.len() < MOST_EVENTS {
            core.events.push(event);
        } else {
            core.dropped += 1;
        }
        verdict
    }

    fn release(&self, id: u64) {
        let arm = {
            let mut core = self.lock();
            let at = core.arms.iter().position(|a| a.id == id);
            at.map(|at| core.arms.swap_remove(at))
        };
        let Some(arm) = arm else { return };
        let held = match &*arm.state.borrow() {
            HoldState::Held(event) => Some(event.clone()),
            _ => None,
        };
        if let Some(event) = held {
            arm.state.send_replace(HoldState::Released(event));
        }
        if let Some(resume) = arm.resume {
            resume.resume();
        }
    }

    fn lock(&self) -> MutexGuard<'_, Core> {
        // Nothing panics while it holds the lock, and if it did, to go on is best:
        // the alternative is a server that stands still for ever.
        self.inner
            .core
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

impl Core {
    fn has_ended(&self, process: ProcessId) -> bool {
        self.ended.get(process.0 as usize).copied().unwrap_or(false)
    }

    fn decide(&mut self, event: &Event, resume: impl FnOnce() -> Box<dyn Resume>) -> Verdict {
        let mut chosen = None;
        for arm in &mut self.arms {
            if arm.resume.is_some() || !arm.point.counts(event) {
                continue;
            }
            if arm.left > 0 {
                arm.left -= 1;
            } else if chosen.is_none() {
                chosen = Some(arm);
            }
        }
        if let Some(arm) = chosen {
            arm.resume = Some(resume());
            arm.state.send_replace(HoldState::Held(event.clone()));
            return Verdict::Held;
        }
        if event.class.is_point()
            && let Some((jitter, rng)) = &mut self.jitter
            && rng.u8(..100) < jitter.percent
        {
            let most = u64::try_from(jitter.most.as_micros()).unwrap_or(u64::MAX);
            return Verdict::After(Duration::from_micros(rng.u64(..=most)));
        }
        Verdict::Go
    }
}

/// A place in the order of events.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Mark(u64);

/// An armed point. What it holds goes on when it is released or dropped.
pub struct Hold {
    supervisor: Supervisor,
    id: u64,
    point: Point,
    watch: watch::Receiver<HoldState>,
}

impl Hold {
    pub fn point(&self) -> &Point {
        &self.point
    }

    pub fn state(&self) -> HoldState {
        self.watch.borrow().clone()
    }

    /// Waits until the event has come and is held; `None` if it cannot come any
    /// more. Cancel-safe: to give up after a time, use `tokio::time::timeout`.
    pub async fn held(&mut self) -> Option<Event> {
        let state = self
            .watch
            .wait_for(|s| !matches!(s, HoldState::Waiting))
            .await
            .ok()?
            .clone();
        match state {
            HoldState::Held(event) | HoldState::Released(event) => Some(event),
            HoldState::Waiting | HoldState::Ended => None,
        }
    }

    /// Lets it go on, or stops waiting for it.
    pub fn release(&self) {
        self.supervisor.release(self.id);
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        self.release();
    }
}
