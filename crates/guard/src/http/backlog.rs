//! Events on their way to one client.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};

use bytes::Bytes;
use tokio::sync::mpsc;

/// A client that is further behind is taken for gone. Bytes are counted and
/// not events, since many small answers may come at once.
const MOST: usize = 16 << 20;
/// What an event takes besides its bytes.
const EACH: usize = 64;

/// Where events are added.
pub(super) struct Backlog {
    to: mpsc::UnboundedSender<Bytes>,
    behind: Arc<AtomicUsize>,
}

/// Where they are taken out.
pub(crate) struct Behind {
    events: mpsc::UnboundedReceiver<Bytes>,
    behind: Arc<AtomicUsize>,
}

pub(super) fn backlog() -> (Backlog, Behind) {
    let (to, events) = mpsc::unbounded_channel();
    let behind = Arc::new(AtomicUsize::new(0));
    let backlog = Backlog {
        to,
        behind: Arc::clone(&behind),
    };
    (backlog, Behind { events, behind })
}

impl Backlog {
    /// False if the client is gone. One event always has room, however large.
    pub(super) fn push(&self, event: Bytes) -> bool {
        let size = event.len() + EACH;
        if self.behind.load(Ordering::Relaxed) > MOST {
            return false;
        }
        self.behind.fetch_add(size, Ordering::Relaxed);
        self.to.send(event).is_ok()
    }

    pub(super) fn is_closed(&self) -> bool {
        self.to.is_closed()
    }
}

impl Behind {
    pub(super) fn poll(&mut self, context: &mut Context<'_>) -> Poll<Option<Bytes>> {
        let event = self.events.poll_recv(context);
        if let Poll::Ready(Some(event)) = &event {
            self.behind.fetch_sub(event.len() + EACH, Ordering::Relaxed);
        }
        event
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_that_does_not_read_is_taken_for_gone() {
        let (backlog, mut behind) = backlog();
        assert!(backlog.push(vec![0; MOST].into()));
        assert!(!backlog.push(Bytes::from_static(b"x")));
        let mut context = Context::from_waker(std::task::Waker::noop());
        assert!(behind.poll(&mut context).is_ready());
        let many = (0..10_000).all(|_| backlog.push(Bytes::from_static(b"x")));
        assert!(many);
        drop(behind);
        assert!(!backlog.push(Bytes::from_static(b"x")) && backlog.is_closed());
    }
}
