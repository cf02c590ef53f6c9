//! Who decides: every event of every process of a run comes by here, in one order,
//! and goes on at once, goes on later, or is held.
//!
//! It knows neither the kernel nor any runtime. A source of events brings each with
//! a way to let it go on; that is all it takes to add another source.

use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
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
    /// It is held or delayed: the supervisor has the `Resume`, and will call it.
    Taken,
}

/// Sees and holds what the processes of one run do. Cheap to clone; all clones are one.
#[derive(Clone)]
pub struct Supervisor {
    inner: Arc<Inner>,
}

struct Inner {
    started: Instant,
    core: Mutex<Core>,
    later: Later,
}

#[derive(Default)]
struct Core {
    events: Vec<Event>,
    next_index: u64,
    dropped: u64,
    arms: Vec<Arm>,
    next_arm: u64,
    jitter: Option<(Jitter, fastrand::Rng)>,
    /// One for each launch.
    processes: Vec<Launched>,
}

#[derive(Default)]
struct Launched {
    ended: bool,
    /// The process of this program's that all of the server's descend from.
    top: Option<u32>,
    runtimes: Vec<String>,
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
                later: Later::default(),
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
        let id = u32::try_from(core.processes.len()).unwrap_or(u32::MAX);
        core.processes.push(Launched::default());
        ProcessId(id)
    }

    pub(crate) fn process_started(&self, process: ProcessId, top: Option<u32>) {
        if let Some(launched) = self.lock().processes.get_mut(process.0 as usize) {
            launched.top = top;
        }
    }

    pub(crate) fn runtime_heard(&self, process: ProcessId, runtime: String) {
        if let Some(launched) = self.lock().processes.get_mut(process.0 as usize)
            && !launched.runtimes.contains(&runtime)
        {
            launched.runtimes.push(runtime);
        }
    }

    /// The runtimes in which a preload has come up (`node`, `python`): where there is none, there
    /// are no events from [`Source::Await`].
    pub fn runtimes(&self, process: ProcessId) -> Vec<String> {
        let core = self.lock();
        let launched = core.processes.get(process.0 as usize);
        launched.map(|l| l.runtimes.clone()).unwrap_or_default()
    }

    /// Whether all threads of a process and of what it started sleep at this moment, those that
    /// are held included: it waits for input, for a lock, for a timer or for somebody who is held.
    /// `None` if that cannot be seen, or it has ended.
    pub fn idle(&self, process: ProcessId) -> Option<bool> {
        let top = {
            let core = self.lock();
            let launched = core.processes.get(process.0 as usize)?;
            launched.top.filter(|_| !launched.ended)?
        };
        #[cfg(target_os = "linux")]
        {
            crate::linux::idle::all_sleep(top)
        }
        #[cfg(not(target_os = "linux"))]
        {
            let _ = top;
            None
        }
    }

    /// A process is gone: nobody may wait for it any longer.
    pub(crate) fn process_ended(&self, process: ProcessId) {
        let mut core = self.lock();
        if let Some(launched) = core.processes.get_mut(process.0 as usize) {
            launched.ended = true;
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
        let decision = core.decide(&event);
        if core.events.len() < MOST_EVENTS {
            core.events.push(event);
        } else {
            core.dropped += 1;
        }
        match decision {
            Decision::Go => Verdict::Go,
            Decision::Hold(arm, event) => {
                let arm = &mut core.arms[arm];
                arm.resume = Some(resume());
                arm.state.send_replace(HoldState::Held(event));
                Verdict::Taken
            }
            Decision::Delay(delay) => {
                drop(core);
                later(&self.inner, Instant::now() + delay, resume());
                Verdict::Taken
            }
        }
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
        self.processes
            .get(process.0 as usize)
            .is_some_and(|p| p.ended)
    }

    fn decide(&mut self, event: &Event) -> Decision {
        let mut chosen = None;
        for (n, arm) in self.arms.iter_mut().enumerate() {
            if arm.resume.is_some() || !arm.point.counts(event) {
                continue;
            }
            if arm.left > 0 {
                arm.left -= 1;
            } else if chosen.is_none() {
                chosen = Some(n);
            }
        }
        if let Some(arm) = chosen {
            return Decision::Hold(arm, event.clone());
        }
        if event.class.is_point()
            && let Some((jitter, rng)) = &mut self.jitter
            && rng.u8(..100) < jitter.percent
        {
            let most = u64::try_from(jitter.most.as_micros()).unwrap_or(u64::MAX);
            return Decision::Delay(Duration::from_micros(rng.u64(..=most)));
        }
        Decision::Go
    }
}

enum Decision {
    Go,
    /// By this arm.
    Hold(usize, Event),
    Delay(Duration),
}

/// What goes on at a time. A thread waits for it, as long as there is something.
#[derive(Default)]
struct Later {
    queue: Mutex<Queue>,
    sooner: Condvar,
}

#[derive(Default)]
struct Queue {
    waiting: BTreeMap<(Instant, u64), Box<dyn Resume>>,
    next: u64,
    served: bool,
}

fn later(inner: &Arc<Inner>, due: Instant, resume: Box<dyn Resume>) {
    let mut queue = inner.later.lock();
    let number = queue.next;
    queue.next += 1;
    queue.waiting.insert((due, number), resume);
    if queue.served {
        inner.later.sooner.notify_one();
        return;
    }
    let server = Arc::clone(inner);
    let started = thread::Builder::new()
        .name("toctou-hold-later".to_owned())
        .spawn(move || server.later.serve());
    match started {
        Ok(_) => queue.served = true,
        // Without a thread there are no delays.
        Err(_) => {
            let all = std::mem::take(&mut queue.waiting);
            drop(queue);
            all.into_values().for_each(Resume::resume);
        }
    }
}

impl Later {
    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn serve(&self) {
        let mut queue = self.lock();
        while let Some(first) = queue.waiting.first_entry() {
            let left = first.key().0.saturating_duration_since(Instant::now());
            if left.is_zero() {
                first.remove().resume();
                continue;
            }
            queue = self
                .sooner
                .wait_timeout(queue, left)
                .unwrap_or_else(PoisonError::into_inner)
                .0;
        }
        queue.served = false;
    }
}

/// A place in the order of events.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Mark(u64);

impl Mark {
    /// The [`Event::index`] of the first event after it.
    pub fn index(self) -> u64 {
        self.0
    }
}

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
