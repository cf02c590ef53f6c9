//! How many calls in which time: the generic cell rate algorithm.
//!
//! One number per key, the time at which the key would be unused again. A call pushes it on by one interval, and is
//! allowed while it is less than the burst ahead of now. Check and take are one step in every backend.

use std::time::Duration;

use crate::{BoxFuture, Error, Result, key};

/// A rate: one token each interval, and up to a burst of them at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Quota {
    interval: Duration,
    burst: u32,
}

impl Quota {
    /// One token each interval. The burst is 1 until [`Quota::burst`] says otherwise.
    pub const fn every(interval: Duration) -> Self {
        Self { interval, burst: 1 }
    }

    /// So many a second, all of them at once if nothing was used before.
    pub const fn per_second(tokens: u32) -> Self {
        Self::per(tokens, Duration::from_secs(1))
    }

    /// So many a minute, all of them at once if nothing was used before.
    pub const fn per_minute(tokens: u32) -> Self {
        Self::per(tokens, Duration::from_secs(60))
    }

    /// So many in a period, all of them at once if nothing was used before.
    pub const fn per(tokens: u32, period: Duration) -> Self {
        // No tokens at all is refused when it is used.
        let interval = match tokens {
            0 => Duration::ZERO,
            _ => Duration::from_nanos((period.as_nanos() / tokens as u128) as u64),
        };
        Self {
            interval,
            burst: tokens,
        }
    }

    /// How many may come at once.
    #[must_use]
    pub const fn burst(mut self, tokens: u32) -> Self {
        self.burst = tokens;
        self
    }

    /// The time in which one token comes back.
    pub const fn interval(&self) -> Duration {
        self.interval
    }

    /// In microseconds, as all backends count: exact in the floating point numbers of Lua.
    pub(crate) fn checked(&self, key: &str, cost: u32) -> Result<Microseconds> {
        key::check(key)?;
        let interval = u64::try_from(self.interval.as_micros()).unwrap_or(u64::MAX);
        let window = interval
            .checked_mul(u64::from(self.burst))
            .filter(|w| *w <= MAX_WINDOW);
        match window {
            Some(window) if interval > 0 && self.burst > 0 => {
                if cost > self.burst {
                    return Err(Error::Invalid(format!(
                        "{cost} tokens at once never fit a burst of {}",
                        self.burst
                    )));
                }
                Ok(Microseconds {
                    interval,
                    window,
                    cost: interval * u64::from(cost),
                })
            }
            _ => Err(Error::Invalid(format!(
                "a rate of one each {:?} with a burst of {} cannot be kept",
                self.interval, self.burst
            ))),
        }
    }
}

/// A year. Longer windows are mistakes, and would leave the range in which Lua counts exactly.
const MAX_WINDOW: u64 = 366 * 24 * 3600 * 1_000_000;

#[derive(Debug, Clone, Copy)]
pub(crate) struct Microseconds {
    pub interval: u64,
    /// Interval times burst.
    pub window: u64,
    /// Interval times the tokens asked for.
    pub cost: u64,
}

impl Microseconds {
    /// The decision, and the time to store if it is allowed. The backends in Lua and SQL repeat this arithmetic.
    ///
    /// A stored time further ahead than the window can only come from a clock that was set back (or a quota that was
    /// lowered): it counts as the window, so that nobody waits longer than that.
    pub fn decide(self, stored: Option<u64>, now: u64) -> (Decision, Option<u64>) {
        let start = stored.unwrap_or(now).clamp(now, now + self.window);
        let next = start + self.cost;
        if next > now + self.window {
            return (self.denied(next - now - self.window), None);
        }
        (self.allowed(now + self.window - next), Some(next))
    }

    pub fn denied(self, wait: u64) -> Decision {
        Decision::Denied {
            retry_after: Duration::from_micros(wait),
        }
    }

    /// `left` is the part of the window that is not used.
    pub fn allowed(self, left: u64) -> Decision {
        Decision::Allowed {
            remaining: u32::try_from(left / self.interval).unwrap_or(u32::MAX),
        }
    }
}

/// Whether the tokens were taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// They were.
    Allowed {
        /// How many more could be taken now.
        remaining: u32,
    },
    /// They were not, and nothing was taken.
    Denied {
        /// After this time they would be there, if nobody else takes any.
        retry_after: Duration,
    },
}

impl Decision {
    /// True if the tokens were taken.
    pub const fn is_allowed(&self) -> bool {
        matches!(self, Self::Allowed { .. })
    }
}

/// Rate limits by key.
///
/// # What is promised
///
/// - Check and take are one step. In any time `t`, at most `burst + t / interval` tokens of a key are taken, within the
///   backend's reach, however many ask at once.
/// - A refusal takes nothing and says when to come again.
/// - A key whose tokens are all back is forgotten.
///
/// # What is not
///
/// - There is no queue and no order among those who are refused.
/// - **Crash:** tokens that were taken stay taken. `memory` forgets with its process: after a restart a burst is there.
/// - **Pause, partition:** a request whose answer is lost may have taken its tokens.
/// - **Clock jump:** `memory` and `host` use clocks that are not set. `redis` and `postgres` use the server's: set forward,
///   tokens come back early, at most one burst; set back, nobody waits longer than it takes to fill a burst.
/// - `memory` keeps a bounded number of keys, and refuses new ones with [`Error::Full`] rather than forget one early.
pub trait RateLimits: Send + Sync {
    /// Takes `cost` tokens, all or none.
    ///
    /// # Errors
    ///
    /// [`Error::Unavailable`], [`Error::Full`], [`Error::Invalid`] (a cost above the burst, a quota of zero or with a
    /// window of more than a year). To be refused is not an error.
    fn take<'a>(&'a self, key: &'a str, quota: Quota, cost: u32)
    -> BoxFuture<'a, Result<Decision>>;
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Whatever comes when: no more than the quota says, in any stretch of time; and what was promised is kept.
        #[test]
        fn never_more_than_the_quota(
            interval in 1u64..10_000,
            burst in 1u32..20,
            calls in proptest::collection::vec((0u64..20_000, 0u32..20), 1..200),
        ) {
            let quota = Quota::every(Duration::from_micros(interval)).burst(burst);
            let (mut stored, mut now) = (None, 1_000_000u64);
            let mut taken: Vec<(u64, u32)> = Vec::new();
            for (pause, cost) in calls {
                now += pause;
                let cost = cost.min(burst);
                let micros = quota.checked("key", cost).unwrap();
                match micros.decide(stored, now) {
                    (Decision::Allowed { remaining }, Some(next)) => {
                        stored = Some(next);
                        taken.push((now, cost));
                        prop_assert!(remaining <= burst);
                        let all = quota.checked("key", remaining).unwrap();
                        prop_assert!(all.decide(stored, now).0.is_allowed(), "what remains can be taken");
                    }
                    (Decision::Denied { retry_after }, None) => {
                        let wait = u64::try_from(retry_after.as_micros()).unwrap();
                        prop_assert!(wait > 0);
                        prop_assert!(micros.decide(stored, now + wait).0.is_allowed());
                        prop_assert!(!micros.decide(stored, now + wait - 1).0.is_allowed());
                    }
                    other => prop_assert!(false, "{other:?}"),
                }
                for (start, _) in &taken {
                    let since: u64 = taken.iter().filter(|t| t.0 >= *start).map(|t| u64::from(t.1)).sum();
                    prop_assert!(since <= u64::from(burst) + (now - start) / interval);
                }
            }
        }

        /// A clock that was set back makes nobody wait longer than a window.
        #[test]
        fn a_clock_set_back_is_survived(ahead in 0u64..1 << 60, burst in 1u32..20) {
            let quota = Quota::every(Duration::from_millis(1)).burst(burst).checked("key", 1).unwrap();
            let now = 1_000_000;
            if let (Decision::Denied { retry_after }, _) = quota.decide(Some(now + ahead), now) {
                prop_assert!(retry_after <= Duration::from_millis(u64::from(burst)));
            }
        }
    }
}
