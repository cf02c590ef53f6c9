//! Arrays of messages, as revision 2025-03-26 has them.
//!
//! Each message of an array is a call of its own: a server may run them side
//! by side. So they go to the server one by one, and their answers come back
//! together.

use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;

use super::{Origin, Session, Sink};
use crate::wire::{self, Fault, Kind, Parsed, Raw};

/// Gathers the answers to one array.
struct Gather {
    inner: Arc<dyn Sink>,
    parts: Mutex<Parts>,
}

struct Parts {
    /// Answers that are still to come, and one more until all questions are asked.
    open: usize,
    bytes: Vec<u8>,
}

impl Gather {
    fn take(&self, message: Option<&[u8]>) {
        let mut parts = self.parts.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(message) = message {
            let before = if parts.bytes.is_empty() { b'[' } else { b',' };
            parts.bytes.push(before);
            parts.bytes.extend_from_slice(message);
        }
        parts.open = parts.open.saturating_sub(1);
        if parts.open > 0 {
            return;
        }
        let mut bytes = std::mem::take(&mut parts.bytes);
        drop(parts);
        if bytes.is_empty() {
            self.inner.close();
        } else {
            bytes.push(b']');
            self.inner.deliver(bytes.into(), true);
        }
    }
}

impl Sink for Gather {
    fn deliver(&self, message: Bytes, last: bool) {
        if last {
            self.take(Some(&message));
        } else {
            self.inner.deliver(message, false);
        }
    }

    fn close(&self) {
        self.take(None);
    }

    fn flush(&self) {
        self.inner.flush();
    }
}

impl Session {
    pub(super) fn client_batch(
        self: &Arc<Self>,
        frame: &Bytes,
        parts: &[Raw<'_>],
        origin: &Origin,
    ) {
        let limits = self.limits();
        let messages: Result<Vec<_>, Fault> = parts
            .iter()
            .map(|part| match wire::parse(part.get().as_bytes(), limits)? {
                Parsed::One(message) => Ok((frame.slice_ref(part.get().as_bytes()), message)),
                Parsed::Batch(_) => Err(Fault::Shape("an array in an array")),
            })
            .collect();
        let messages = match messages {
            Ok(messages) => messages,
            Err(fault) => return self.bad_message(&fault, &origin.sink),
        };
        let requests = messages
            .iter()
            .filter(|(_, message)| message.kind == Kind::Request)
            .count();
        let gather = Arc::new(Gather {
            inner: Arc::clone(&origin.sink),
            parts: Mutex::new(Parts {
                open: requests + 1,
                bytes: Vec::new(),
            }),
        });
        let origin = Origin {
            sink: Arc::clone(&gather) as Arc<dyn Sink>,
            subject: origin.subject.clone(),
        };
        for (bytes, message) in &messages {
            self.client_message(bytes, message, &origin);
        }
        gather.take(None);
    }
}
