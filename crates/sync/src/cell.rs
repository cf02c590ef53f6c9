//! Values with a version: read, compute, and write back only if nobody else did.

use std::time::Duration;

use crate::{BoxFuture, Error, Fence, Result, key};

/// Which state of a cell. No version is ever used twice, so that a cell which was deleted and made again is not mistaken
/// for the old one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Version(pub(crate) u64);

impl Version {
    /// A version from its number, for one that travelled through another system (an `ETag`, say).
    pub const fn new(number: u64) -> Self {
        Self(number)
    }

    /// The number.
    pub const fn get(self) -> u64 {
        self.0
    }
}

/// A value and its version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Versioned {
    /// The value.
    pub value: Vec<u8>,
    /// Its version.
    pub version: Version,
}

/// What came of a compare-and-swap.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Swap {
    /// The cell had the expected version, and now has this one (none after a deletion).
    Done(Option<Version>),
    /// It had not. This is what it has, at the time of the attempt.
    Conflict(Option<Versioned>),
}

/// Cells: named values with a version.
///
/// # What is promised
///
/// - [`Cells::compare_and_swap`] compares and writes in one step.
/// - [`Cells::write_fenced`] refuses a fence lower than the highest that this cell has seen.
/// - A value is whole: a reader sees one that somebody wrote, never parts of two.
///
/// # What is not
///
/// - **Crash:** `memory` is gone with its process. `host` survives the crash of a process; a power cut may take back the
///   last writes. `postgres` and `redis` keep what their server is set up to keep; a Redis that forgets starts
///   with higher versions and fences (its clock in microseconds), not with old ones.
/// - **Pause, partition:** an error of [`Error::Unavailable`] leaves open whether the write took place. Read again: the
///   version tells.
/// - **Clock jump:** no effect, except that a Redis that lost its data *and* whose clock was set back could repeat a
///   version.
/// - A cell takes at most 16 MiB.
pub trait Cells: Send + Sync {
    /// The value and its version, if there is one.
    ///
    /// # Errors
    ///
    /// [`Error::Unavailable`], [`Error::Invalid`] for a key longer than 4 KiB.
    fn read<'a>(&'a self, key: &'a str) -> BoxFuture<'a, Result<Option<Versioned>>>;

    /// Writes `value` (or deletes, for `None`) if the cell has the version `expected` (or is not there, for `None`).
    ///
    /// # Errors
    ///
    /// As [`Cells::read`], and [`Error::Full`]. A conflict is not an error.
    fn compare_and_swap<'a>(
        &'a self,
        key: &'a str,
        expected: Option<Version>,
        value: Option<Vec<u8>>,
    ) -> BoxFuture<'a, Result<Swap>>;

    /// Writes whatever the version is, if no write with a higher fence came before. The cell remembers the fence even
    /// when its value is deleted.
    ///
    /// # Errors
    ///
    /// As [`Cells::read`], [`Error::Full`], and [`Error::StaleFence`].
    fn write_fenced<'a>(
        &'a self,
        key: &'a str,
        fence: Fence,
        value: Vec<u8>,
    ) -> BoxFuture<'a, Result<Version>>;
}

/// How often to try, and how long to pause between.
#[derive(Debug, Clone, Copy)]
pub struct Retry {
    /// Attempts in all. At least one is made.
    pub attempts: u32,
    /// The first pause is a random part of this, the second of twice this, and so on.
    pub base: Duration,
    /// No pause is longer than this.
    pub cap: Duration,
}

impl Default for Retry {
    fn default() -> Self {
        Self {
            attempts: 10,
            base: Duration::from_millis(5),
            cap: Duration::from_millis(500),
        }
    }
}

impl Retry {
    /// A random pause after the given number of failures. All of it is random, not a part: those who lost together do
    /// not come back together.
    pub fn pause(&self, failures: u32) -> Duration {
        let factor = 1u32
            .checked_shl(failures.saturating_sub(1))
            .unwrap_or(u32::MAX);
        self.base
            .saturating_mul(factor)
            .min(self.cap)
            .mul_f64(fastrand::f64())
    }
}

/// Reads, computes and writes back, again and again until nobody came between.
///
/// `change` gets the current value and returns the new one (`None` deletes it). It may run several times, so it must have
/// no effects of its own. Returns what was written.
///
/// # Errors
///
/// What `change` returns; [`Error::Conflict`] after the last attempt; what [`Cells`] return.
pub async fn update<C, F>(
    cells: &C,
    key: &str,
    retry: Retry,
    mut change: F,
) -> Result<Option<Versioned>>
where
    C: Cells + ?Sized,
    F: FnMut(Option<&[u8]>) -> Result<Option<Vec<u8>>> + Send,
{
    let mut current = cells.read(key).await?;
    let attempts = retry.attempts.max(1);
    for attempt in 1..=attempts {
        let expected = current.as_ref().map(|current| current.version);
        let value = change(current.as_ref().map(|current| current.value.as_slice()))?;
        match cells.compare_and_swap(key, expected, value.clone()).await? {
            Swap::Done(version) => {
                return Ok(version
                    .zip(value)
                    .map(|(version, value)| Versioned { value, version }));
            }
            Swap::Conflict(_) if attempt == attempts => break,
            Swap::Conflict(_) => {
                tokio::time::sleep(retry.pause(attempt)).await;
                // What the conflict showed is old after the pause.
                current = cells.read(key).await?;
            }
        }
    }
    Err(Error::Conflict {
        key: key::shown(key),
        attempts,
    })
}

const MAX_VALUE: usize = 16 << 20;

pub(crate) fn check(key: &str, value: Option<&[u8]>) -> Result<()> {
    key::check(key)?;
    match value {
        Some(value) if value.len() > MAX_VALUE => Err(Error::Invalid(format!(
            "a value of {} bytes: {MAX_VALUE} at most",
            value.len()
        ))),
        _ => Ok(()),
    }
}
