//! A gate that closes: nothing starts after it, and whoever is inside is waited for.
//!
//! A flag and a counter are two things, and between them fits a call that has seen the flag open and is not counted yet.
//! Here both are one word, so that "is it open?" and "I am in" are one step.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use crate::local::shim::{Arc, AtomicU64, Mutex, Ordering, lock};

/// The highest bit: closed. The others: how many are inside.
const CLOSED: u64 = 1 << 63;

/// Lets calls in until it is closed. Clones are the same gate.
///
/// # What is promised
///
/// - After [`CloseGate::close`] was called, every [`CloseGate::enter`] is refused.
/// - When the future of `close` is ready, nobody is inside.
/// - Closing twice, from several tasks, or dropping the future of `close`, is allowed. The gate stays closed.
///
/// # What is not
///
/// - Nobody inside is interrupted. A call that never ends keeps `close` waiting: put a timeout round it.
/// - It lives in one process, and is gone with it.
#[derive(Clone)]
pub struct CloseGate {
    inner: Arc<Gate>,
}

struct Gate {
    word: AtomicU64,
    closers: Mutex<Vec<Waker>>,
}

/// The gate is closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Closed;

impl fmt::Display for Closed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("closed")
    }
}

impl std::error::Error for Closed {}

/// Proof of being inside. Dropping it leaves.
#[must_use = "dropping it leaves the gate"]
pub struct Inside {
    gate: Arc<Gate>,
}

impl Default for CloseGate {
    fn default() -> Self {
        Self::new()
    }
}

impl CloseGate {
    /// An open gate.
    pub fn new() -> Self {
        let gate = Gate {
            word: AtomicU64::new(0),
            closers: Mutex::new(Vec::new()),
        };
        Self {
            inner: Arc::new(gate),
        }
    }

    /// Goes in, or is refused. Never waits.
    ///
    /// # Errors
    ///
    /// [`Closed`] if closing has begun.
    pub fn enter(&self) -> Result<Inside, Closed> {
        // The count cannot reach the highest bit: each one inside takes memory.
        self.inner
            .word
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, |word| {
                (word & CLOSED == 0).then_some(word + 1)
            })
            .map_err(|_| Closed)?;
        Ok(Inside {
            gate: self.inner.clone(),
        })
    }

    /// Closes at once; the future waits for those inside.
    pub fn close(&self) -> impl Future<Output = ()> + Send + Unpin + use<> {
        self.inner.word.fetch_or(CLOSED, Ordering::AcqRel);
        Drained {
            gate: self.inner.clone(),
        }
    }

    /// True once closing has begun.
    pub fn is_closed(&self) -> bool {
        self.inner.word.load(Ordering::Acquire) & CLOSED != 0
    }

    /// How many are inside.
    pub fn inside(&self) -> u64 {
        self.inner.word.load(Ordering::Acquire) & !CLOSED
    }
}

impl fmt::Debug for CloseGate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CloseGate")
            .field("closed", &self.is_closed())
            .field("inside", &self.inside())
            .finish()
    }
}

impl fmt::Debug for Inside {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Inside")
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        if self.gate.word.fetch_sub(1, Ordering::AcqRel) == CLOSED | 1 {
            let closers = std::mem::take(&mut *lock(&self.gate.closers));
            closers.into_iter().for_each(Waker::wake);
        }
    }
}

struct Drained {
    gate: Arc<Gate>,
}

impl Future for Drained {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        // The last one to leave takes the list after it has lowered the count: either it finds this waker, or the count
        // is seen as zero here.
        let mut closers = lock(&self.gate.closers);
        if self.gate.word.load(Ordering::Acquire) == CLOSED {
            return Poll::Ready(());
        }
        if !closers.iter().any(|waker| waker.will_wake(context.waker())) {
            closers.push(context.waker().clone());
        }
        Poll::Pending
    }
}
