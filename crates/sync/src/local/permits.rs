//! Counting semaphores by caller, within one process.

use std::collections::{HashMap, VecDeque};
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use super::keyed::{QueueFull, shrink};
use super::shim::{Arc, Mutex, lock};

#[derive(Default)]
pub struct Permits {
    table: Mutex<Table>,
}

#[derive(Default)]
struct Table {
    callers: HashMap<Arc<str>, Caller>,
    waiters: HashMap<u64, Waiter>,
    next_waiter: u64,
}

#[derive(Default)]
struct Caller {
    used: u32,
    queue: VecDeque<u64>,
}

struct Waiter {
    /// Of the request, since requests of one caller may have different limits.
    limit: u32,
    waker: Option<Waker>,
    granted: bool,
}

impl Table {
    /// Grants to those at the head of the queue, and forgets a caller with nothing running and nobody waiting.
    fn advance(&mut self, caller: &str) -> Vec<Waker> {
        let mut wakers = Vec::new();
        let Some(entry) = self.callers.get_mut(caller) else {
            return wakers;
        };
        while let Some(first) = entry.queue.front() {
            let Some(waiter) = self.waiters.get_mut(first).filter(|w| entry.used < w.limit) else {
                break;
            };
            waiter.granted = true;
            wakers.extend(waiter.waker.take());
            entry.used += 1;
            entry.queue.pop_front();
        }
        if entry.used == 0 && entry.queue.is_empty() {
            self.callers.remove(caller);
            shrink(&mut self.callers);
        }
        wakers
    }

    fn give_back(&mut self, caller: &str) -> Vec<Waker> {
        if let Some(entry) = self.callers.get_mut(caller) {
            entry.used -= 1;
        }
        self.advance(caller)
    }
}

impl Permits {
    /// Takes a permit, or a place in the queue if fewer than `max_queue` wait.
    pub fn enter(
        self: &Arc<Self>,
        caller: &str,
        limit: u32,
        max_queue: usize,
    ) -> Result<Enter, QueueFull> {
        let mut table = lock(&self.table);
        let caller: Arc<str> = match table.callers.get_key_value(caller) {
            Some((known, _)) => known.clone(),
            None => caller.into(),
        };
        let (used, queued) = table
            .callers
            .get(&caller)
            .map_or((0, 0), |entry| (entry.used, entry.queue.len()));
        if queued == 0 && used < limit {
            table.callers.entry(caller.clone()).or_default().used += 1;
            drop(table);
            let held = HeldPermit {
                permits: self.clone(),
                caller,
            };
            return Ok(Enter {
                state: State::Ready(Some(held)),
            });
        }
        if queued >= max_queue {
            return Err(QueueFull(queued));
        }
        let id = table.next_waiter;
        table.next_waiter += 1;
        table
            .callers
            .entry(caller.clone())
            .or_default()
            .queue
            .push_back(id);
        table.waiters.insert(
            id,
            Waiter {
                limit,
                waker: None,
                granted: false,
            },
        );
        drop(table);
        Ok(Enter {
            state: State::Waiting {
                permits: self.clone(),
                caller,
                id,
            },
        })
    }

    /// Callers with permits out or requests waiting, and requests that wait.
    pub fn len(&self) -> (usize, usize) {
        let table = lock(&self.table);
        (table.callers.len(), table.waiters.len())
    }
}

/// Waits for its turn. Dropping it leaves the queue.
pub struct Enter {
    state: State,
}

enum State {
    Ready(Option<HeldPermit>),
    Waiting {
        permits: Arc<Permits>,
        caller: Arc<str>,
        id: u64,
    },
}

impl Future for Enter {
    type Output = HeldPermit;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<HeldPermit> {
        let (permits, caller) = match &mut self.state {
            State::Ready(held) => {
                return held.take().map_or(Poll::Pending, Poll::Ready);
            }
            State::Waiting {
                permits,
                caller,
                id,
            } => {
                let mut table = lock(&permits.table);
                let Some(waiter) = table.waiters.get_mut(id) else {
                    return Poll::Pending;
                };
                if !waiter.granted {
                    waiter.waker = Some(context.waker().clone());
                    return Poll::Pending;
                }
                table.waiters.remove(id);
                shrink(&mut table.waiters);
                drop(table);
                (permits.clone(), caller.clone())
            }
        };
        self.state = State::Ready(None);
        Poll::Ready(HeldPermit { permits, caller })
    }
}

impl Drop for Enter {
    fn drop(&mut self) {
        let State::Waiting {
            permits,
            caller,
            id,
        } = &self.state
        else {
            return;
        };
        let mut table = lock(&permits.table);
        let wakers = match table.waiters.remove(id) {
            // It was granted and never looked at.
            Some(Waiter { granted: true, .. }) => table.give_back(caller),
            Some(_) => {
                if let Some(entry) = table.callers.get_mut(caller) {
                    entry.queue.retain(|other| other != id);
                }
                table.advance(caller)
            }
            None => Vec::new(),
        };
        shrink(&mut table.waiters);
        drop(table);
        wakers.into_iter().for_each(Waker::wake);
    }
}

/// A permit. Dropping it gives it back.
pub struct HeldPermit {
    permits: Arc<Permits>,
    caller: Arc<str>,
}

impl Drop for HeldPermit {
    fn drop(&mut self) {
        let wakers = lock(&self.permits.table).give_back(&self.caller);
        wakers.into_iter().for_each(Waker::wake);
    }
}
