//! Staying awake for a moment.
//!
//! To put a thread to sleep and wake it again takes longer than all that the
//! guard does with a message: tens of microseconds where the two ends are on
//! different cores. So while messages follow each other closely, the guard
//! looks for the next one for a moment before it sleeps. A server that takes
//! its time, or a client, turns this off by itself: a guard that waits for
//! somebody slow costs nothing.

use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tokio::sync::Notify;

/// Messages closer than this follow each other, and this is how long to look.
const MOMENT: Duration = Duration::from_micros(200);

/// One for the process, as there is one thread for all of the guard.
pub(crate) static AWAKE: LazyLock<Awake> = LazyLock::new(|| Awake {
    start: Instant::now(),
    // With one core, whoever is waited for could not run meanwhile.
    moment: match std::thread::available_parallelism() {
        Ok(cores) if cores.get() > 1 => nanoseconds(MOMENT),
        _ => 0,
    },
    last: AtomicU64::new(0),
    until: AtomicU64::new(0),
    wanted: Notify::new(),
});

pub(crate) struct Awake {
    start: Instant,
    moment: u64,
    last: AtomicU64,
    until: AtomicU64,
    wanted: Notify,
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

impl Awake {
    /// So many messages were passed on together. Where there are several, there
    /// is enough to do, and the thread is better left to those who do it.
    pub(crate) fn stir(&self, messages: usize) {
        if messages != 1 {
            self.last.store(0, Ordering::Relaxed);
            return self.until.store(0, Ordering::Relaxed);
        }
        let now = nanoseconds(self.start.elapsed());
        let since = now - self.last.swap(now, Ordering::Relaxed).min(now);
        if since < self.moment && self.until.swap(now + self.moment, Ordering::Relaxed) < now {
            self.wanted.notify_one();
        }
    }

    /// Keeps the thread from sleeping, whenever that is wanted.
    pub(crate) async fn keep(&self) {
        loop {
            self.wanted.notified().await;
            while nanoseconds(self.start.elapsed()) < self.until.load(Ordering::Relaxed) {
                // To others on this core, and then to whatever has come for us.
                std::thread::yield_now();
                tokio::task::yield_now().await;
            }
        }
    }
}
