//! Read/write locks by key, within one process.
//!
//! All keys of a request are granted together or not at all. Nobody holds one key while waiting for another, so there is
//! no deadlock to avoid. A request that waits stands in the queue of each of its keys, and is passed by nobody whom it
//! conflicts with: so nobody starves either.

use std::collections::{HashMap, VecDeque};
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use super::shim::{Arc, Mutex, lock};
use crate::lock::Mode;

/// Keys in one request, each once.
pub type Keys = Arc<[(Arc<str>, Mode)]>;

#[derive(Default)]
pub struct KeyedLocks {
    table: Mutex<Table>,
}

#[derive(Default)]
struct Table {
    entries: HashMap<Arc<str>, Entry>,
    waiters: HashMap<u64, Waiter>,
    next_waiter: u64,
    /// Counts grants. Conflicting grants are ordered by it, since a grant happens after the release it waited for.
    grants: u64,
}

#[derive(Default)]
struct Entry {
    readers: usize,
    writer: bool,
    queue: VecDeque<(u64, Mode)>,
}

impl Entry {
    fn admits(&self, mode: Mode) -> bool {
        match mode {
            Mode::Shared => !self.writer,
            Mode::Exclusive => !self.writer && self.readers == 0,
        }
    }

    fn take(&mut self, mode: Mode) {
        match mode {
            Mode::Shared => self.readers += 1,
            Mode::Exclusive => self.writer = true,
        }
    }

    fn give_back(&mut self, mode: Mode) {
        match mode {
            Mode::Shared => self.readers -= 1,
            Mode::Exclusive => self.writer = false,
        }
    }

    fn dequeue(&mut self, waiter: u64) {
        if let Some(place) = self.queue.iter().position(|(other, _)| *other == waiter) {
            self.queue.remove(place);
        }
    }

    fn is_idle(&self) -> bool {
        self.readers == 0 && !self.writer && self.queue.is_empty()
    }

    /// True if nobody waits before this waiter whom it would pass unfairly.
    fn is_next(&self, waiter: u64, mode: Mode) -> bool {
        self.queue
            .iter()
            .take_while(|(other, _)| *other != waiter)
            .all(|(_, other)| mode.passes(*other))
    }
}

struct Waiter {
    keys: Keys,
    waker: Option<Waker>,
    /// Set when it was granted and the future has not seen it yet.
    granted: Option<u64>,
}

impl Table {
    /// True if all keys can be taken by somebody who has not waited.
    fn is_free(&self, keys: &[(Arc<str>, Mode)]) -> bool {
        keys.iter().all(|(key, mode)| {
            self.entries.get(key).is_none_or(|entry| {
                entry.admits(*mode) && entry.queue.iter().all(|(_, other)| mode.passes(*other))
            })
        })
    }

    fn grant(&mut self, keys: &[(Arc<str>, Mode)]) -> u64 {
        for (key, mode) in keys {
            self.entries.entry(key.clone()).or_default().take(*mode);
        }
        self.grants += 1;
        self.grants
    }

    fn give_back(&mut self, keys: &Keys) -> Vec<Waker> {
        for (key, mode) in keys.iter() {
            if let Some(entry) = self.entries.get_mut(key) {
                entry.give_back(*mode);
            }
        }
        self.advance(keys)
    }

    /// Takes a waiter out of all queues.
    fn leave(&mut self, waiter: u64, keys: &Keys) -> Vec<Waker> {
        for (key, _) in keys.iter() {
            if let Some(entry) = self.entries.get_mut(key) {
                entry.dequeue(waiter);
            }
        }
        self.advance(keys)
    }

    /// Grants what has become possible at these keys, and forgets those that are idle.
    fn advance(&mut self, keys: &Keys) -> Vec<Waker> {
        let mut wakers = Vec::new();
        for (key, _) in keys.iter() {
            while let Some(waiter) = self.first_grantable(key) {
                let Some(entry) = self.waiters.get(&waiter) else {
                    break;
                };
                let granted = entry.keys.clone();
                for (key, _) in granted.iter() {
                    if let Some(entry) = self.entries.get_mut(key) {
                        entry.dequeue(waiter);
                    }
                }
                let number = self.grant(&granted);
                if let Some(entry) = self.waiters.get_mut(&waiter) {
                    entry.granted = Some(number);
                    wakers.extend(entry.waker.take());
                }
            }
            if self.entries.get(key).is_some_and(Entry::is_idle) {
                self.entries.remove(key);
            }
        }
        shrink(&mut self.entries);
        wakers
    }

    fn first_grantable(&self, key: &str) -> Option<u64> {
        let entry = self.entries.get(key)?;
        for (waiter, mode) in &entry.queue {
            if !entry.admits(*mode) {
                return None;
            }
            let keys = &self.waiters.get(waiter)?.keys;
            let possible = keys.iter().all(|(key, mode)| {
                self.entries
                    .get(key)
                    .is_some_and(|entry| entry.admits(*mode) && entry.is_next(*waiter, *mode))
            });
            if possible {
                return Some(*waiter);
            }
            // Whoever stands behind a writer waits for it, even if that one waits for another key.
            if *mode == Mode::Exclusive {
                return None;
            }
        }
        None
    }
}

/// Gives memory back after a time with many keys.
pub fn shrink<K: std::hash::Hash + Eq, V>(map: &mut HashMap<K, V>) {
    if map.capacity() > 1024 && map.len() < map.capacity() / 8 {
        map.shrink_to(map.len() * 2);
    }
}

/// So many wait already that this one may not.
#[derive(Debug, PartialEq, Eq)]
pub struct QueueFull(pub usize);

impl KeyedLocks {
    /// Takes the keys, or a place in their queues unless one is longer than `max_queue`.
    pub fn acquire(self: &Arc<Self>, keys: Keys, max_queue: usize) -> Result<Acquire, QueueFull> {
        let mut table = lock(&self.table);
        if table.is_free(&keys) {
            let number = table.grant(&keys);
            drop(table);
            let held = Held {
                locks: self.clone(),
                keys,
                number,
            };
            return Ok(Acquire {
                state: State::Ready(Some(held)),
            });
        }
        let waiting = |(key, _): &(Arc<str>, Mode)| {
            table.entries.get(key).map_or(0, |entry| entry.queue.len())
        };
        let queued = keys.iter().map(waiting).max().unwrap_or(0);
        if queued >= max_queue {
            return Err(QueueFull(queued));
        }
        let id = table.next_waiter;
        table.next_waiter += 1;
        for (key, mode) in keys.iter() {
            table
                .entries
                .entry(key.clone())
                .or_default()
                .queue
                .push_back((id, *mode));
        }
        table.waiters.insert(
            id,
            Waiter {
                keys: keys.clone(),
                waker: None,
                granted: None,
            },
        );
        drop(table);
        Ok(Acquire {
            state: State::Waiting {
                locks: self.clone(),
                keys,
                id,
            },
        })
    }

    /// Keys that are held or waited for, and requests that wait.
    pub fn len(&self) -> (usize, usize) {
        let table = lock(&self.table);
        (table.entries.len(), table.waiters.len())
    }
}

/// Waits for its turn. Dropping it leaves the queues.
pub struct Acquire {
    state: State,
}

enum State {
    Ready(Option<Held>),
    Waiting {
        locks: Arc<KeyedLocks>,
        keys: Keys,
        id: u64,
    },
}

impl Future for Acquire {
    type Output = Held;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Held> {
        let (locks, keys, number) = match &mut self.state {
            State::Ready(held) => {
                return held.take().map_or(Poll::Pending, Poll::Ready);
            }
            State::Waiting { locks, keys, id } => {
                let mut table = lock(&locks.table);
                let Some(waiter) = table.waiters.get_mut(id) else {
                    return Poll::Pending;
                };
                let Some(number) = waiter.granted else {
                    waiter.waker = Some(context.waker().clone());
                    return Poll::Pending;
                };
                table.waiters.remove(id);
                shrink(&mut table.waiters);
                drop(table);
                (locks.clone(), keys.clone(), number)
            }
        };
        self.state = State::Ready(None);
        Poll::Ready(Held {
            locks,
            keys,
            number,
        })
    }
}

impl Drop for Acquire {
    fn drop(&mut self) {
        let State::Waiting { locks, keys, id } = &self.state else {
            return;
        };
        let mut table = lock(&locks.table);
        let wakers = match table.waiters.remove(id) {
            // It was granted and never looked at.
            Some(Waiter {
                granted: Some(_), ..
            }) => table.give_back(keys),
            Some(_) => table.leave(*id, keys),
            None => Vec::new(),
        };
        shrink(&mut table.waiters);
        drop(table);
        wakers.into_iter().for_each(Waker::wake);
    }
}

/// Keys that are held. Dropping it gives them back.
pub struct Held {
    locks: Arc<KeyedLocks>,
    keys: Keys,
    number: u64,
}

impl Held {
    /// Which grant this is.
    pub fn number(&self) -> u64 {
        self.number
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let wakers = lock(&self.locks.table).give_back(&self.keys);
        wakers.into_iter().for_each(Waker::wake);
    }
}
