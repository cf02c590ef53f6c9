//! How long all of it may take, and whether somebody pressed Ctrl-C.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use thiserror::Error;

/// Why work ends before it is done.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum Stop {
    #[error("the time budget is used up")]
    Budget,
    #[error("interrupted")]
    Interrupted,
    #[error("as many schedules were run as were asked for")]
    Enough,
}

/// A deadline that everybody who waits looks at.
#[derive(Clone, Debug)]
pub struct Budget {
    began: Instant,
    deadline: Instant,
    interrupted: Arc<AtomicBool>,
    /// For those alone who share this part of it.
    called_off: Arc<AtomicBool>,
}

impl Budget {
    pub fn new(total: Duration) -> Self {
        let began = Instant::now();
        Self {
            began,
            deadline: began + total,
            interrupted: Arc::default(),
            called_off: Arc::default(),
        }
    }

    /// The same, with an earlier end.
    #[must_use]
    pub fn within(&self, part: Duration) -> Self {
        Self {
            deadline: self.deadline.min(Instant::now() + part),
            ..self.clone()
        }
    }

    /// The same, for work that can be called off by itself.
    #[must_use]
    pub fn apart(&self) -> Self {
        Self {
            called_off: Arc::default(),
            ..self.clone()
        }
    }

    pub fn call_off(&self) {
        self.called_off.store(true, Ordering::Relaxed);
    }

    pub fn check(&self) -> Result<(), Stop> {
        if self.interrupted() || self.called_off.load(Ordering::Relaxed) {
            return Err(Stop::Interrupted);
        }
        if Instant::now() >= self.deadline {
            return Err(Stop::Budget);
        }
        Ok(())
    }

    pub fn left(&self) -> Duration {
        self.deadline.saturating_duration_since(Instant::now())
    }

    pub fn elapsed(&self) -> Duration {
        self.began.elapsed()
    }

    pub fn interrupt(&self) {
        self.interrupted.store(true, Ordering::Relaxed);
    }

    pub fn interrupted(&self) -> bool {
        self.interrupted.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_called_off_by_itself_leaves_the_rest_alone() {
        let budget = Budget::new(Duration::from_secs(60));
        let part = budget.apart();
        part.call_off();
        assert_eq!(part.check(), Err(Stop::Interrupted));
        assert_eq!(budget.check(), Ok(()));
        let other = budget.apart();
        budget.interrupt();
        assert_eq!(other.check(), Err(Stop::Interrupted));
    }
}
