//! Keyed read/write locks.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use tokio::sync::watch;

use crate::{BoxFuture, Error, Result, Wait, key};

/// How a key is held.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Mode {
    /// With other shared holders.
    Shared,
    /// Alone.
    Exclusive,
}

impl Mode {
    /// True if one who comes later may be served before one who waits.
    pub(crate) fn passes(self, waiting: Self) -> bool {
        self == Self::Shared && waiting == Self::Shared
    }
}

/// A number that grows with every acquisition.
///
/// If two acquisitions have a key in common and are not both shared, the later one has the higher number. A resource
/// that remembers the highest number it has seen and refuses lower ones ([`crate::Cells::write_fenced`]) is safe from a
/// holder that lost its lock without knowing it. Numbers have gaps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Fence(u64);

impl Fence {
    /// A fence from its number, for one that travelled through another system.
    pub const fn new(number: u64) -> Self {
        Self(number)
    }

    /// The number.
    pub const fn get(self) -> u64 {
        self.0
    }
}

impl fmt::Display for Fence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// What to lock, how, and how long to wait for it.
///
/// ```
/// # use std::time::Duration;
/// # use toctou_sync::LockRequest;
/// let request = LockRequest::new()
///     .exclusive("invoice:17")
///     .shared("customer:4")
///     .within(Duration::from_secs(10))
///     .queue_at_most(100);
/// ```
#[derive(Debug, Clone)]
pub struct LockRequest {
    pub(crate) keys: BTreeMap<String, Mode>,
    pub(crate) wait: Wait,
    pub(crate) max_queue: usize,
}

impl Default for LockRequest {
    fn default() -> Self {
        Self::new()
    }
}

impl LockRequest {
    /// A request for nothing yet, that waits as long as it takes.
    pub const fn new() -> Self {
        Self {
            keys: BTreeMap::new(),
            wait: Wait::Forever,
            max_queue: usize::MAX,
        }
    }

    /// Adds a key to be held alone.
    #[must_use]
    pub fn exclusive(self, key: impl Into<String>) -> Self {
        self.key(key, Mode::Exclusive)
    }

    /// Adds a key to be held with other readers.
    #[must_use]
    pub fn shared(self, key: impl Into<String>) -> Self {
        self.key(key, Mode::Shared)
    }

    /// Adds a key. Of a key that is named twice, the stronger mode counts.
    #[must_use]
    pub fn key(mut self, key: impl Into<String>, mode: Mode) -> Self {
        let held = self.keys.entry(key.into()).or_insert(mode);
        *held = mode.max(*held);
        self
    }

    /// Waits at most this long.
    #[must_use]
    pub fn within(self, time: Duration) -> Self {
        self.wait(Wait::For(time))
    }

    /// Says how long to wait.
    #[must_use]
    pub fn wait(mut self, wait: Wait) -> Self {
        self.wait = wait;
        self
    }

    /// Refuses at once if this many requests of this process already wait for one of the keys.
    #[must_use]
    pub fn queue_at_most(mut self, requests: usize) -> Self {
        self.max_queue = requests;
        self
    }

    /// The keys for a message.
    pub(crate) fn what(&self) -> String {
        let mut keys = self.keys.keys().map(|key| key::shown(key));
        let first = keys.next().unwrap_or_default();
        match keys.len() {
            0 => first,
            more => format!("{first} (and {more} more)"),
        }
    }

    pub(crate) fn check(&self) -> Result<()> {
        if self.keys.is_empty() {
            return Err(Error::Invalid("a lock needs at least one key".into()));
        }
        if self.keys.len() > MAX_KEYS {
            return Err(Error::Invalid(format!(
                "more than {MAX_KEYS} keys in one lock"
            )));
        }
        self.keys.keys().try_for_each(|key| key::check(key))
    }
}

/// More keys than this in one request are refused.
const MAX_KEYS: usize = 256;

/// Read/write locks by key.
///
/// # What is promised
///
/// - A key that is held exclusively is held by nobody else, within the backend's reach, as long as
///   [`LockGuard::is_lost`] is false **and the holder is not paused** (see below).
/// - Several keys are taken together; two requests cannot deadlock, in whatever order they name their keys. A task that
///   holds one guard and asks for a second can.
/// - Requests of one process are served in the order in which they came, readers and writers alike: neither starves.
///   Between processes the order is roughly that of arrival, and a waiting writer keeps new readers out.
/// - A request that times out or is dropped leaves nothing behind. A key that nobody holds or waits for takes no memory.
///
/// # What is not
///
/// - Locks are not re-entrant: to ask for a key while holding it waits for oneself.
/// - **Crash:** `memory` is gone with its process; `host` and `postgres` release at once, `redis` when the lease ends.
///   Work that the holder had half done stays half done.
/// - **Pause** (a stopped process, a long swap, a suspended laptop): with `redis` the lease ends and somebody else gets
///   in while the paused holder still believes to be alone. Only a fence that is checked at the resource stops its late
///   write. With `postgres` the same happens if the server gives up the connection.
/// - **Partition:** a holder that cannot reach the server is told by [`LockGuard::lost`], at the latest when its lease
///   ends. `memory` and `host` have no network.
/// - **Clock jump:** no lock depends on the wall clock of a client. `redis` uses the server's clock: set forward, it ends
///   leases early.
pub trait Locks: Send + Sync {
    /// Waits for its turn and takes all keys of the request.
    ///
    /// # Errors
    ///
    /// [`Error::Busy`], [`Error::Timeout`], [`Error::QueueFull`], [`Error::Unavailable`], [`Error::Invalid`] (no key,
    /// more than 256 keys, or a key longer than 4 KiB).
    fn acquire(&self, request: LockRequest) -> BoxFuture<'_, Result<LockGuard>>;
}

/// Gives back what a guard holds. Dropping the value gives it back too, without saying when.
pub(crate) trait Release: Send + Sync {
    fn release(self: Box<Self>) -> BoxFuture<'static, Result<()>>;
}

/// Keys that are held. Dropping it releases them.
///
/// With `memory` and `host`, the keys are free when `drop` returns. With `redis` and `postgres` the release is sent in
/// the background: [`LockGuard::release`] waits until the server has confirmed it.
#[must_use = "dropping the guard releases the lock"]
pub struct LockGuard {
    fence: Fence,
    held: Box<dyn Release>,
    lost: Option<watch::Receiver<bool>>,
    request: LockRequest,
}

impl LockGuard {
    pub(crate) fn new(
        fence: Fence,
        request: LockRequest,
        held: Box<dyn Release>,
        lost: Option<watch::Receiver<bool>>,
    ) -> Self {
        Self {
            fence,
            held,
            lost,
            request,
        }
    }

    /// The number of this acquisition.
    pub fn fence(&self) -> Fence {
        self.fence
    }

    /// True if the backend has told that the keys are no longer held. False is no proof of the opposite.
    pub fn is_lost(&self) -> bool {
        self.lost.as_ref().is_some_and(is_lost)
    }

    /// Waits until the keys are lost; with `memory` and `host`, for ever. For use in a `select!` beside the work.
    pub async fn lost(&self) {
        wait_until_lost(self.lost.clone()).await;
    }

    /// Releases, and waits until others can see it.
    ///
    /// # Errors
    ///
    /// [`Error::Lost`] if the keys had been lost before, so that the work was not protected to its end;
    /// [`Error::Unavailable`] if the release could not be confirmed (it then ends with the lease or connection).
    pub async fn release(self) -> Result<()> {
        let lost = self.is_lost();
        let released = self.held.release().await;
        if lost {
            Err(Error::Lost {
                what: self.request.what(),
            })
        } else {
            released
        }
    }
}

impl fmt::Debug for LockGuard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LockGuard")
            .field("keys", &self.request.keys)
            .field("fence", &self.fence)
            .finish()
    }
}

/// A sender that is gone can no longer vouch for the lease.
pub(crate) fn is_lost(lost: &watch::Receiver<bool>) -> bool {
    *lost.borrow() || lost.has_changed().is_err()
}

pub(crate) async fn wait_until_lost(lost: Option<watch::Receiver<bool>>) {
    match lost {
        Some(mut lost) => {
            let _ = lost.wait_for(|lost| *lost).await;
        }
        None => std::future::pending().await,
    }
}
