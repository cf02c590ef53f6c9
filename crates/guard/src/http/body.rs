//! Bodies of answers: all at once, or as it comes.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};
use tokio::time::{Interval, MissedTickBehavior};

use super::backlog::Behind;

/// Proxies between us and the client end a connection that is silent.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

pub(crate) enum Answer {
    Whole(Option<Bytes>),
    Stream(Stream),
}

/// Events as they come. Dropping it is how a client leaves.
pub(crate) struct Stream {
    events: Behind,
    alive: Interval,
    /// Told when the stream is dropped.
    _leaving: Option<Box<dyn Send + Sync>>,
}

impl Stream {
    pub(super) fn new(events: Behind, leaving: Option<Box<dyn Send + Sync>>) -> Self {
        let mut alive =
            tokio::time::interval_at(tokio::time::Instant::now() + KEEP_ALIVE, KEEP_ALIVE);
        alive.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Self {
            events,
            alive,
            _leaving: leaving,
        }
    }
}

impl Answer {
    pub(super) fn is_stream(&self) -> bool {
        matches!(self, Self::Stream(_))
    }
}

impl Body for Answer {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match &mut *self {
            Self::Whole(bytes) => Poll::Ready(bytes.take().map(|bytes| Ok(Frame::data(bytes)))),
            Self::Stream(stream) => {
                if let Poll::Ready(event) = stream.events.poll(context) {
                    return Poll::Ready(event.map(|event| Ok(Frame::data(event))));
                }
                if stream.alive.poll_tick(context).is_ready() {
                    return Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(b":\n\n")))));
                }
                Poll::Pending
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        matches!(self, Self::Whole(None))
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Whole(bytes) => SizeHint::with_exact(bytes.as_ref().map_or(0, Bytes::len) as u64),
            Self::Stream(_) => SizeHint::default(),
        }
    }
}
