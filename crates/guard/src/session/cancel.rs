//! Requests that their client no longer waits for, and the end of a session.

use std::sync::Arc;

use bytes::Bytes;

use super::{Flight, Session, Sink, Stage};
use crate::log::log;
use crate::policy::OnCancel;
use crate::refusal::Reason;
use crate::wire::{self, Id, Raw};

impl Session {
    pub(super) fn cancelled(self: &Arc<Self>, bytes: &Bytes, id: &Id, raw: Raw<'_>) {
        let state = self.state();
        let key = if self.setup.remap {
            state.flights.by_original(id)
        } else {
            Some(id.clone())
        };
        let Some(key) = key else { return };
        let known = state.flights.contains(&key);
        drop(state);
        if !known {
            // Answered meanwhile, or never asked: for the server to say.
            if !self.setup.remap {
                self.to_server(bytes.clone());
            }
            return;
        }
        self.cancel(&key, || match &key {
            Id::Integer(number) if self.setup.remap => {
                wire::replace(bytes, &[(raw, number.to_string().as_bytes())]).into()
            }
            _ => bytes.clone(),
        });
    }

    fn cancel(self: &Arc<Self>, key: &Id, message: impl FnOnce() -> Bytes) {
        let state = self.state();
        let Some(flight) = state.flights.get(key) else {
            return;
        };
        let forward = match &flight.stage {
            Stage::Waiting(_) => false,
            Stage::Running(_) => !flight
                .tool
                .as_ref()
                .is_some_and(|tool| tool.on_cancel == OnCancel::Keep && tool.is_exclusive()),
            // Its answer is what ends the lock: a server that is told now need not give one.
            Stage::Abandoned(_) => false,
            Stage::Plain | Stage::Own(_) => true,
        };
        drop(state);
        if forward {
            self.to_server(message());
        }
        self.let_go(key, forward);
    }

    /// A client without a session has left: its requests are cancelled.
    pub fn left(self: &Arc<Self>, sink: &Arc<dyn Sink>) {
        let ids = self
            .state()
            .flights
            .ids(|flight| Arc::ptr_eq(&flight.sink, sink));
        for id in ids {
            let Id::Integer(number) = id else { continue };
            let message = format!(
                "{{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":{{\"requestId\":{number},\"reason\":\"the client left\"}}}}"
            );
            self.cancel(&id, || message.into());
        }
        self.flush_server();
    }

    /// The client no longer waits for a request.
    fn let_go(self: &Arc<Self>, key: &Id, told: bool) {
        let mut state = self.state();
        let Some(flight) = state.flights.get_mut(key) else {
            return;
        };
        let sink = Arc::clone(&flight.sink);
        match &mut flight.stage {
            Stage::Own(_) | Stage::Abandoned(_) => return,
            Stage::Plain => {
                state.flights.remove(key);
            }
            Stage::Waiting(handle) => {
                if let Some(handle) = handle.take() {
                    handle.abort();
                }
                let tool = flight.tool.clone();
                state.flights.remove(key);
                drop(state);
                if let Some(tool) = tool {
                    self.keeper().refuse(&tool, &[], Reason::Cancelled);
                }
                self.changed.notify_waiters();
                return sink.close();
            }
            Stage::Running(held) => {
                let (held, serial) = (held.take(), flight.serial);
                let kept = held.as_ref().is_some_and(|pass| pass.outlives_its_caller());
                if told && !kept {
                    // A read that nobody waits for harms nobody.
                    state.flights.remove(key);
                } else {
                    state.flights.advance(key, Stage::Abandoned(held));
                    if told {
                        self.expire(key.clone(), serial);
                    }
                }
            }
        }
        drop(state);
        self.changed.notify_waiters();
        sink.close();
    }

    /// A server that was told of a cancellation need not answer. Then nobody
    /// can know when it is done, and the lock is kept for a time.
    fn expire(self: &Arc<Self>, key: Id, serial: u64) {
        let session = Arc::clone(self);
        let hold = self.keeper().policy.defaults.cancel_hold;
        tokio::spawn(async move {
            tokio::time::sleep(hold).await;
            let mut state = session.state();
            if let Some(flight) = state.flights.get(&key)
                && flight.serial == serial
                && matches!(flight.stage, Stage::Abandoned(_))
            {
                let flight = state.flights.remove(&key);
                drop(state);
                session.changed.notify_waiters();
                if let Some(Flight {
                    stage: Stage::Abandoned(Some(pass)),
                    ..
                }) = flight
                {
                    log!(
                        Warn,
                        "released-without-answer",
                        tool = &*pass.tool.name,
                        keys = &pass.keys[..]
                    );
                }
            }
        });
    }

    /// Refuses everything that waits, and everything that comes from now on.
    pub fn close(self: &Arc<Self>) {
        let mut state = self.state();
        state.closing = true;
        let waiting = state
            .flights
            .ids(|flight| matches!(flight.stage, Stage::Waiting(_)));
        let mut refused = Vec::new();
        for key in waiting {
            if let Some(mut flight) = state.flights.remove(&key) {
                if let Stage::Waiting(Some(handle)) = &mut flight.stage {
                    handle.abort();
                }
                refused.push(flight);
            }
        }
        drop(state);
        for flight in refused {
            if let Some(tool) = &flight.tool {
                let refusal = self.keeper().refuse(tool, &[], Reason::Closing);
                let answer =
                    wire::tool_error(&flight.raw_id, &refusal.message(), &refusal.details());
                self.deliver(&flight.sink, answer, true);
                flight.sink.flush();
            }
        }
        self.changed.notify_waiters();
    }
}
