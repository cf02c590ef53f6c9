//! A request whose last byte waits for those of others.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};

use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};
use tokio::sync::watch;

/// Where requests wait for each other.
pub(super) struct Gate {
    here: watch::Sender<usize>,
    open: watch::Sender<bool>,
    count: AtomicUsize,
}

impl Gate {
    pub(super) fn closed() -> Arc<Self> {
        Arc::new(Self {
            here: watch::channel(0).0,
            open: watch::channel(false).0,
            count: AtomicUsize::new(0),
        })
    }

    pub(super) fn open() -> Arc<Self> {
        let gate = Self::closed();
        gate.release();
        gate
    }

    fn arrive(&self) {
        let count = self.count.fetch_add(1, Ordering::Relaxed) + 1;
        self.here.send_replace(count);
    }

    pub(super) async fn all_here(&self, count: usize) {
        let _ = self.here.subscribe().wait_for(|here| *here >= count).await;
    }

    pub(super) fn release(&self) {
        self.open.send_replace(true);
    }
}

/// The body of a request, its last byte held back until the gate opens.
pub(super) struct Post {
    first: Option<Bytes>,
    last: Option<Bytes>,
    length: u64,
    gate: Arc<Gate>,
    wait: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
}

impl Post {
    pub(super) fn new(text: Vec<u8>, gate: Arc<Gate>) -> Self {
        let length = text.len() as u64;
        let mut first = Bytes::from(text);
        let last = first.split_off(first.len().saturating_sub(1));
        Self {
            first: Some(first).filter(|bytes| !bytes.is_empty()),
            last: Some(last).filter(|bytes| !bytes.is_empty()),
            length,
            gate,
            wait: None,
        }
    }
}

impl Body for Post {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if let Some(first) = self.first.take() {
            return Poll::Ready(Some(Ok(Frame::data(first))));
        }
        if self.last.is_none() {
            return Poll::Ready(None);
        }
        if self.wait.is_none() {
            // Asked for more, so the rest is on its way.
            self.gate.arrive();
            let mut open = self.gate.open.subscribe();
            self.wait = Some(Box::pin(async move {
                let _ = open.wait_for(|open| *open).await;
            }));
        }
        if let Some(wait) = self.wait.as_mut()
            && wait.as_mut().poll(context).is_pending()
        {
            return Poll::Pending;
        }
        Poll::Ready(self.last.take().map(|last| Ok(Frame::data(last))))
    }

    fn is_end_stream(&self) -> bool {
        self.first.is_none() && self.last.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.length)
    }
}
