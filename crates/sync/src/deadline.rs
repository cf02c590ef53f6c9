//! One wait that goes through several stages.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use tokio::time::{Instant, timeout_at};

use crate::Wait;

/// When a request gives up.
#[derive(Debug, Clone, Copy)]
pub struct Deadline {
    wait: Wait,
    start: Instant,
}

/// It was not ready in time.
#[derive(Debug)]
pub struct Expired;

impl Deadline {
    pub fn new(wait: Wait) -> Self {
        Self {
            wait,
            start: Instant::now(),
        }
    }

    /// Waits for others, as long as the request allows. Not for requests to a server: those are not waiting.
    pub async fn run<F: Future>(&self, future: F) -> Result<F::Output, Expired> {
        match self.wait {
            Wait::Forever => Ok(future.await),
            Wait::For(time) => match self.start.checked_add(time) {
                Some(end) => timeout_at(end, future).await.map_err(|_| Expired),
                None => Ok(future.await),
            },
            Wait::No => {
                let mut future = pin!(future);
                match poll_fn(|context| Poll::Ready(future.as_mut().poll(context))).await {
                    Poll::Ready(output) => Ok(output),
                    Poll::Pending => Err(Expired),
                }
            }
        }
    }

    pub fn waits(&self) -> bool {
        self.wait != Wait::No
    }

    pub fn waited(&self) -> Duration {
        self.start.elapsed()
    }
}
