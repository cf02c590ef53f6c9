//! Running an operation once, however often it is asked for.

use std::fmt;
use std::time::Duration;

use crate::{BoxFuture, Error, Result, key};

/// An operation to be run once.
#[derive(Debug, Clone, Copy)]
pub struct Call<'a> {
    pub(crate) key: &'a str,
    pub(crate) arguments: &'a [u8],
    pub(crate) in_flight: InFlight,
    pub(crate) keep: Duration,
}

impl<'a> Call<'a> {
    /// A call with its idempotency key and its arguments, in a form in which equal arguments are equal bytes. Of the
    /// arguments only a digest is kept. If the same call runs already, the answer is [`Begin::InFlight`]; a result is kept
    /// for a day.
    ///
    /// Keys of different callers must not meet: put the caller into the key, or one caller can read another's results.
    pub const fn new(key: &'a str, arguments: &'a [u8]) -> Self {
        Self {
            key,
            arguments,
            in_flight: InFlight::Refuse,
            keep: Duration::from_secs(24 * 60 * 60),
        }
    }

    /// What to do while the same call runs.
    #[must_use]
    pub const fn in_flight(mut self, in_flight: InFlight) -> Self {
        self.in_flight = in_flight;
        self
    }

    /// How long the result is kept. After that the same key runs again.
    #[must_use]
    pub const fn keep(mut self, time: Duration) -> Self {
        self.keep = time;
        self
    }

    pub(crate) fn check(&self) -> Result<()> {
        key::check(self.key)
    }
}

/// What to do while the same call runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InFlight {
    /// Answer [`Begin::InFlight`].
    Refuse,
    /// Wait for its result, and answer [`Begin::InFlight`] after this time.
    Wait(Duration),
}

/// Whether to run.
#[derive(Debug)]
pub enum Begin {
    /// Nobody has run this key: run it, and say how it ended.
    First(Ticket),
    /// It ran with the same arguments, and this was the result.
    Replay(Vec<u8>),
    /// It runs now.
    InFlight,
    /// The key was used with other arguments. Nothing is said about the result.
    OtherArguments,
    /// It was begun, and nobody said how it ended: its process died, or dropped the ticket. It may have taken effect or
    /// not. Find out, then say so with [`Idempotency::settle`].
    Unknown,
}

/// A record of operations by key.
///
/// # What is promised
///
/// - Of all calls with one key, within the backend's reach, exactly one gets [`Begin::First`], until its result is no
///   longer kept or [`Ticket::forget`] or [`Idempotency::settle`] says that nothing happened.
/// - What was begun and not ended is never run again silently.
/// - A key whose time is over takes no memory.
///
/// # What is not
///
/// - It does not make the operation atomic: if the process dies between the operation and [`Ticket::complete`], the answer
///   is [`Begin::Unknown`], and somebody has to look.
/// - **Crash:** `memory` forgets with its process, so that after a restart a key runs again: use another backend where
///   that matters. `host` and `postgres` say `Unknown` as soon as the process is dead, `redis` when its lease has ended.
///   A `host` whose machine loses power may forget the last records.
/// - **Pause, partition:** with `redis`, a process that is paused beyond its lease is taken for dead, and others get
///   `Unknown`; when it completes later, the result is recorded.
/// - **Clock jump:** how long a result is kept is measured by the wall clock of the host or server (`memory`: by the
///   monotonic clock). Set forward, records are forgotten early.
/// - `memory` keeps a bounded number of records and bytes, and refuses new ones with [`Error::Full`].
pub trait Idempotency: Send + Sync {
    /// Asks whether to run.
    ///
    /// # Errors
    ///
    /// [`Error::Unavailable`], [`Error::Full`], [`Error::Invalid`] for a key longer than 4 KiB.
    fn begin<'a>(&'a self, call: Call<'a>) -> BoxFuture<'a, Result<Begin>>;

    /// Settles a key whose outcome was [`Begin::Unknown`]: with the result, or with `None` if it did not take effect and
    /// may run again. Returns false if the key's outcome was not unknown; then nothing is changed.
    ///
    /// # Errors
    ///
    /// [`Error::Unavailable`], [`Error::Full`], [`Error::Invalid`].
    fn settle<'a>(&'a self, key: &'a str, result: Option<Vec<u8>>) -> BoxFuture<'a, Result<bool>>;
}

/// How a record ends.
pub(crate) enum Outcome {
    Done(Vec<u8>),
    NotRun,
}

/// Records the end. Dropping it records that the end is not known.
pub(crate) trait Finish: Send + Sync {
    /// From now on the caller may run. Dropped before, the record is as if it had not been made.
    fn hand_over(&mut self) {}

    fn finish(self: Box<Self>, outcome: Outcome) -> BoxFuture<'static, Result<()>>;
}

/// The duty to say how a call ended. Dropping it leaves the outcome unknown.
#[must_use = "dropping the ticket leaves the outcome unknown"]
pub struct Ticket {
    key: String,
    record: Box<dyn Finish>,
}

impl Ticket {
    pub(crate) fn new(key: &str, mut record: Box<dyn Finish>) -> Self {
        record.hand_over();
        Self {
            key: key::shown(key),
            record,
        }
    }

    /// It ran, and this is the result that others get. Also for a failure that took effect in part: what others get is
    /// the answer, and it is not run again.
    ///
    /// # Errors
    ///
    /// [`Error::Unavailable`]: the result may not be recorded, and others get [`Begin::Unknown`] or
    /// [`Begin::InFlight`]. [`Error::Full`], [`Error::Invalid`] for a result of more than 16 MiB: others get
    /// [`Begin::Unknown`].
    pub async fn complete(self, result: impl Into<Vec<u8>>) -> Result<()> {
        let result = result.into();
        if result.len() > MAX_RESULT {
            return Err(Error::Invalid(format!(
                "a result of {} bytes: {MAX_RESULT} at most",
                result.len()
            )));
        }
        self.record.finish(Outcome::Done(result)).await
    }

    /// It did not take effect, and may run again.
    ///
    /// # Errors
    ///
    /// [`Error::Unavailable`]: others may get [`Begin::Unknown`].
    pub async fn forget(self) -> Result<()> {
        self.record.finish(Outcome::NotRun).await
    }
}

const MAX_RESULT: usize = 16 << 20;

impl fmt::Debug for Ticket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ticket").field("key", &self.key).finish()
    }
}
