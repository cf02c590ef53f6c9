//! How many calls of one caller may run at a time.

use std::fmt;
use std::time::Duration;

use tokio::sync::watch;

use crate::lock::{Release, is_lost, wait_until_lost};
use crate::{BoxFuture, Error, Result, Wait, key};

/// How many may run, how many may wait, and how long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limit {
    pub(crate) permits: u32,
    pub(crate) queue: usize,
    pub(crate) wait: Wait,
}

impl Limit {
    /// At most this many at a time; one more is refused at once.
    pub const fn at_most(permits: u32) -> Self {
        Self {
            permits,
            queue: 0,
            wait: Wait::No,
        }
    }

    /// Lets this many requests of a caller wait, each at most this long. More are refused at once.
    #[must_use]
    pub const fn queue(mut self, requests: usize, within: Duration) -> Self {
        self.queue = requests;
        self.wait = Wait::For(within);
        self
    }

    /// How many may run at a time.
    pub const fn permits(&self) -> u32 {
        self.permits
    }
}

/// Counting semaphores, one for each caller.
///
/// # What is promised
///
/// - Never more than `permits` of one caller run at a time, within the backend's reach. A caller is remembered exactly
///   as long as permits are out or requests wait.
/// - Requests of one process that wait are served in the order in which they came. The length of the queue counts the
///   requests of one process. Between processes there is no order, but a permit that is free is found within about
///   50 ms.
/// - The limit of each request counts for that request: lowering it takes nothing away from those who are in.
///
/// # What is not
///
/// - **Crash:** permits of a dead process are free again at once with `host` (looked at when the limit is reached), when
///   the server has noticed the broken connection with `postgres`, when the lease ends with `redis`.
/// - **Pause, partition:** with `redis`, permits of a process that does not renew them for a lease are given to others,
///   and [`Permit::is_lost`] says so: then more than `permits` calls may be running.
/// - **Clock jump:** as for [`crate::Locks`].
pub trait Semaphores: Send + Sync {
    /// Takes one permit of the caller.
    ///
    /// # Errors
    ///
    /// [`Error::AtLimit`] if the limit has no queue, [`Error::QueueFull`], [`Error::Timeout`], [`Error::Unavailable`],
    /// [`Error::Invalid`] (a limit of zero, or a name longer than 4 KiB).
    fn enter<'a>(&'a self, caller: &'a str, limit: Limit) -> BoxFuture<'a, Result<Permit>>;
}

/// The right to run. Dropping it gives it back, as for [`crate::LockGuard`].
#[must_use = "dropping the permit gives it back"]
pub struct Permit {
    held: Box<dyn Release>,
    lost: Option<watch::Receiver<bool>>,
    caller: String,
}

impl Permit {
    pub(crate) fn new(
        caller: &str,
        held: Box<dyn Release>,
        lost: Option<watch::Receiver<bool>>,
    ) -> Self {
        Self {
            held,
            lost,
            caller: key::shown(caller),
        }
    }

    /// True if the backend has told that the permit is no longer held.
    pub fn is_lost(&self) -> bool {
        self.lost.as_ref().is_some_and(is_lost)
    }

    /// Waits until the permit is lost; with `memory` and `host`, for ever.
    pub async fn lost(&self) {
        wait_until_lost(self.lost.clone()).await;
    }

    /// Gives it back, and waits until others can see it.
    ///
    /// # Errors
    ///
    /// As for [`crate::LockGuard::release`].
    pub async fn release(self) -> Result<()> {
        let lost = self.is_lost();
        let released = self.held.release().await;
        if lost {
            Err(Error::Lost { what: self.caller })
        } else {
            released
        }
    }
}

impl fmt::Debug for Permit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Permit")
            .field("caller", &self.caller)
            .finish()
    }
}

pub(crate) fn check(caller: &str, limit: Limit) -> Result<()> {
    key::check(caller)?;
    if limit.permits == 0 {
        return Err(Error::Invalid("a limit of zero lets nobody in".into()));
    }
    Ok(())
}
