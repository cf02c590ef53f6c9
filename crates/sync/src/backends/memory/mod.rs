//! State in this process: fastest, and gone with it.

mod records;
mod values;

use std::fmt;
use std::sync::Arc;

use self::records::Records;
use self::values::{Rates, Values};
use crate::backend::Backend;
use crate::deadline::Deadline;
use crate::local::keyed::{Held, KeyedLocks};
use crate::local::permits::{HeldPermit, Permits};
use crate::lock::Release;
use crate::{
    Begin, BoxFuture, Call, Cells, Decision, Error, Fence, Idempotency, Limit, LockGuard,
    LockRequest, Locks, Permit, Quota, RateLimits, Result, Semaphores, Swap, Version, Versioned,
    key, semaphore,
};

/// How much the memory backend keeps at most. What is full refuses; nothing is evicted.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct MemoryOptions {
    /// Rate limits that are not back to full.
    pub max_rates: usize,
    /// Cells.
    pub max_cells: usize,
    /// Idempotency records.
    pub max_records: usize,
    /// Bytes of all cells, and as many of all recorded results.
    pub max_bytes: usize,
}

impl Default for MemoryOptions {
    fn default() -> Self {
        Self {
            max_rates: 1 << 20,
            max_cells: 1 << 20,
            max_records: 1 << 20,
            max_bytes: 256 << 20,
        }
    }
}

/// The backend for one process.
pub struct Memory {
    locks: Arc<KeyedLocks>,
    permits: Arc<Permits>,
    rates: Rates,
    values: Values,
    records: Arc<Records>,
}

impl Memory {
    /// An empty one. Clones of its `Arc` share its state, two of them do not.
    pub fn new(options: MemoryOptions) -> Self {
        Self {
            locks: Arc::default(),
            permits: Arc::default(),
            rates: Rates::new(options.max_rates),
            values: Values::new(options.max_cells, options.max_bytes),
            records: Arc::new(Records::new(options.max_records, options.max_bytes)),
        }
    }

    /// How many keys, callers, rates, cells and records are kept.
    pub fn len(&self) -> usize {
        self.locks.len().0
            + self.permits.len().0
            + self.rates.len()
            + self.values.len()
            + self.records.len()
    }

    /// True if nothing is kept.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl Default for Memory {
    fn default() -> Self {
        Self::new(MemoryOptions::default())
    }
}

impl fmt::Debug for Memory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Memory").field("len", &self.len()).finish()
    }
}

impl Backend for Memory {
    fn name(&self) -> &'static str {
        "memory"
    }

    fn check(&self) -> BoxFuture<'_, Result<()>> {
        Box::pin(async { Ok(()) })
    }
}

impl Locks for Memory {
    fn acquire(&self, request: LockRequest) -> BoxFuture<'_, Result<LockGuard>> {
        Box::pin(async move {
            let held = local_lock(&self.locks, &request, &Deadline::new(request.wait)).await?;
            let fence = Fence::new(held.number());
            Ok(LockGuard::new(fence, request, Box::new(held), None))
        })
    }
}

impl Semaphores for Memory {
    fn enter<'a>(&'a self, caller: &'a str, limit: Limit) -> BoxFuture<'a, Result<Permit>> {
        Box::pin(async move {
            let held =
                local_permit(&self.permits, caller, limit, &Deadline::new(limit.wait)).await?;
            Ok(Permit::new(caller, Box::new(held), None))
        })
    }
}

impl RateLimits for Memory {
    fn take<'a>(
        &'a self,
        key: &'a str,
        quota: Quota,
        cost: u32,
    ) -> BoxFuture<'a, Result<Decision>> {
        Box::pin(async move { self.rates.take(key, quota.checked(key, cost)?) })
    }
}

impl Cells for Memory {
    fn read<'a>(&'a self, key: &'a str) -> BoxFuture<'a, Result<Option<Versioned>>> {
        Box::pin(async move { self.values.read(key) })
    }

    fn compare_and_swap<'a>(
        &'a self,
        key: &'a str,
        expected: Option<Version>,
        value: Option<Vec<u8>>,
    ) -> BoxFuture<'a, Result<Swap>> {
        Box::pin(async move { self.values.compare_and_swap(key, expected, value) })
    }

    fn write_fenced<'a>(
        &'a self,
        key: &'a str,
        fence: Fence,
        value: Vec<u8>,
    ) -> BoxFuture<'a, Result<Version>> {
        Box::pin(async move { self.values.write_fenced(key, fence, value) })
    }
}

impl Idempotency for Memory {
    fn begin<'a>(&'a self, call: Call<'a>) -> BoxFuture<'a, Result<Begin>> {
        Box::pin(async move { self.records.begin(call).await })
    }

    fn settle<'a>(&'a self, key: &'a str, result: Option<Vec<u8>>) -> BoxFuture<'a, Result<bool>> {
        Box::pin(async move { self.records.settle(key, result) })
    }
}

impl Release for Held {
    fn release(self: Box<Self>) -> BoxFuture<'static, Result<()>> {
        drop(self);
        Box::pin(async { Ok(()) })
    }
}

impl Release for HeldPermit {
    fn release(self: Box<Self>) -> BoxFuture<'static, Result<()>> {
        drop(self);
        Box::pin(async { Ok(()) })
    }
}

/// The turn of a request among those of this process: all of it here, the first stage in other backends.
pub async fn local_lock(
    locks: &Arc<KeyedLocks>,
    request: &LockRequest,
    deadline: &Deadline,
) -> Result<Held> {
    request.check()?;
    let keys = request
        .keys
        .iter()
        .map(|(key, mode)| (key.as_str().into(), *mode))
        .collect();
    let full = |queued| Error::QueueFull {
        what: request.what(),
        queued,
    };
    let turn = locks
        .acquire(keys, request.max_queue)
        .map_err(|queue| full(queue.0))?;
    deadline
        .run(turn)
        .await
        .map_err(|_| lock_expired(request, deadline))
}

pub fn lock_expired(request: &LockRequest, deadline: &Deadline) -> Error {
    let what = request.what();
    match deadline.waits() {
        true => Error::Timeout {
            what,
            waited: deadline.waited(),
        },
        false => Error::Busy { what },
    }
}

pub async fn local_permit(
    permits: &Arc<Permits>,
    caller: &str,
    limit: Limit,
    deadline: &Deadline,
) -> Result<HeldPermit> {
    semaphore::check(caller, limit)?;
    let turn = permits
        .enter(caller, limit.permits, limit.queue)
        .map_err(|queue| match limit.queue {
            0 => at_limit(caller, limit),
            _ => Error::QueueFull {
                what: key::shown(caller),
                queued: queue.0,
            },
        })?;
    deadline
        .run(turn)
        .await
        .map_err(|_| permit_expired(caller, limit, deadline))
}

pub fn permit_expired(caller: &str, limit: Limit, deadline: &Deadline) -> Error {
    match deadline.waits() {
        true => Error::Timeout {
            what: key::shown(caller),
            waited: deadline.waited(),
        },
        false => at_limit(caller, limit),
    }
}

fn at_limit(caller: &str, limit: Limit) -> Error {
    Error::AtLimit {
        caller: key::shown(caller),
        limit: limit.permits,
    }
}
