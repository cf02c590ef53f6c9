//! Rates and cells: maps with a limit.

use std::collections::HashMap;
use std::sync::Mutex;

use tokio::time::Instant;

use crate::local::keyed::shrink;
use crate::local::shim::lock;
use crate::rate::Microseconds;
use crate::{Decision, Error, Fence, Result, Swap, Version, Versioned, cell, key};

/// Below this many entries a map is not looked through for dead ones.
const SWEEP_FROM: usize = 1024;

pub struct Rates {
    max: usize,
    start: Instant,
    state: Mutex<RateTable>,
}

struct RateTable {
    /// The time, in microseconds since the start, at which a key is back to full.
    full_at: HashMap<Box<str>, u64>,
    sweep_at: usize,
}

impl Rates {
    pub fn new(max: usize) -> Self {
        let table = RateTable {
            full_at: HashMap::new(),
            sweep_at: SWEEP_FROM,
        };
        Self {
            max,
            start: Instant::now(),
            state: Mutex::new(table),
        }
    }

    pub fn take(&self, key: &str, quota: Microseconds) -> Result<Decision> {
        let mut table = lock(&self.state);
        // Read under the mutex, so that it never runs backwards from one decision to the next.
        let now = u64::try_from(self.start.elapsed().as_micros()).unwrap_or(u64::MAX / 2);
        let stored = table.full_at.get(key).copied();
        if stored.is_none() && table.full_at.len() >= table.sweep_at {
            table.full_at.retain(|_, full_at| *full_at > now);
            shrink(&mut table.full_at);
            // Twice what is left: each sweep is paid for by as many new keys.
            table.sweep_at = (table.full_at.len() * 2).clamp(SWEEP_FROM, self.max.max(SWEEP_FROM));
        }
        if stored.is_none() && table.full_at.len() >= self.max {
            return Err(Error::Full {
                what: "rate limits",
                max: self.max,
            });
        }
        let (decision, next) = quota.decide(stored, now);
        if let Some(next) = next {
            table.full_at.insert(key.into(), next);
        }
        Ok(decision)
    }

    pub fn len(&self) -> usize {
        lock(&self.state).full_at.len()
    }
}

pub struct Values {
    max: usize,
    max_bytes: usize,
    state: Mutex<CellTable>,
}

#[derive(Default)]
struct CellTable {
    cells: HashMap<Box<str>, Cell>,
    versions: u64,
    bytes: usize,
}

#[derive(Default)]
struct Cell {
    value: Option<Versioned>,
    fence: Option<Fence>,
}

impl Values {
    pub fn new(max: usize, max_bytes: usize) -> Self {
        Self {
            max,
            max_bytes,
            state: Mutex::default(),
        }
    }

    pub fn read(&self, key: &str) -> Result<Option<Versioned>> {
        key::check(key)?;
        Ok(lock(&self.state)
            .cells
            .get(key)
            .and_then(|cell| cell.value.clone()))
    }

    pub fn compare_and_swap(
        &self,
        key: &str,
        expected: Option<Version>,
        value: Option<Vec<u8>>,
    ) -> Result<Swap> {
        cell::check(key, value.as_deref())?;
        let mut table = lock(&self.state);
        let current = table.cells.get(key).and_then(|cell| cell.value.as_ref());
        if current.map(|current| current.version) != expected {
            return Ok(Swap::Conflict(current.cloned()));
        }
        self.write(&mut table, key, value).map(Swap::Done)
    }

    pub fn write_fenced(&self, key: &str, fence: Fence, value: Vec<u8>) -> Result<Version> {
        cell::check(key, Some(&value))?;
        let mut table = lock(&self.state);
        if let Some(seen) = table.cells.get(key).and_then(|cell| cell.fence)
            && seen > fence
        {
            return Err(Error::StaleFence {
                presented: fence,
                seen,
            });
        }
        let version = self.write(&mut table, key, Some(value))?;
        if let Some(cell) = table.cells.get_mut(key) {
            cell.fence = Some(fence);
        }
        Ok(version.unwrap_or(Version(0)))
    }

    fn write(
        &self,
        table: &mut CellTable,
        key: &str,
        value: Option<Vec<u8>>,
    ) -> Result<Option<Version>> {
        let old = table.cells.get(key);
        if old.is_none() && value.is_some() && table.cells.len() >= self.max {
            return Err(Error::Full {
                what: "cells",
                max: self.max,
            });
        }
        let size = |value: Option<&Vec<u8>>| value.map_or(0, Vec::len);
        let old_size = size(
            old.and_then(|cell| cell.value.as_ref())
                .map(|old| &old.value),
        );
        let bytes = table.bytes - old_size + size(value.as_ref());
        if bytes > self.max_bytes && bytes > table.bytes {
            return Err(Error::Full {
                what: "bytes in cells",
                max: self.max_bytes,
            });
        }
        table.bytes = bytes;
        let Some(value) = value else {
            match table.cells.get_mut(key) {
                // Its fence stays, or a late write would get through.
                Some(cell) if cell.fence.is_some() => cell.value = None,
                _ => {
                    table.cells.remove(key);
                    shrink(&mut table.cells);
                }
            }
            return Ok(None);
        };
        table.versions += 1;
        let version = Version(table.versions);
        table.cells.entry(key.into()).or_default().value = Some(Versioned { value, version });
        Ok(Some(version))
    }

    pub fn len(&self) -> usize {
        lock(&self.state).cells.len()
    }
}
