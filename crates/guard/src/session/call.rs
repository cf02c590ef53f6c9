//! Requests of a client: let in, held up, refused, cancelled.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use bytes::Bytes;

use super::flight::Timer;
use super::{Flight, Link, LinkState, MOST_FLIGHTS, MOST_WAITING, Origin, Session, Sink, Stage};
use crate::admit::{Admitted, Caller, Pass, Plan, Tool};
use crate::log::log;
use crate::refusal::{Reason, Refusal};
use crate::wire::{self, Code, Fault, Id, Message, Params, Raw};

type Admission = Pin<Box<dyn Future<Output = Result<Admitted, Refusal>> + Send>>;

impl Session {
    pub(super) fn request(self: &Arc<Self>, bytes: &Bytes, message: &Message<'_>, origin: &Origin) {
        let (Some(id), Some(raw_id)) = (message.id.clone(), message.raw_id) else {
            return;
        };
        let params = match message.params() {
            Ok(params) => params,
            Err(fault) => return self.bad_request(raw_id, &fault, &origin.sink),
        };
        let mut state = self.state();
        let key = if self.setup.remap {
            state.next += 1;
            Id::Integer(state.next)
        } else {
            id.clone()
        };
        if state.flights.contains(&key) {
            drop(state);
            let text = format!(
                "toctou guard: the id {id} is in use by a request that is not answered yet"
            );
            // Under the id itself, the answer would end the other request.
            return self.deliver(
                &origin.sink,
                wire::error(None, Code::InvalidRequest, &text),
                true,
            );
        }
        if state.flights.len() >= MOST_FLIGHTS || state.flights.waiting() >= MOST_WAITING {
            drop(state);
            let text = "toctou guard: too many requests are not answered yet";
            let answer = wire::error(Some(raw_id.get()), Code::TooManyRequests, text);
            return self.deliver(&origin.sink, answer, true);
        }
        let (link, closing) = match &state.link {
            LinkState::Up(link) => (Ok(Arc::clone(link)), state.closing),
            LinkState::Greeting(_) => (Err(Duration::ZERO), state.closing),
            LinkState::Down { until } => (
                Err(until.saturating_duration_since(Instant::now())),
                state.closing,
            ),
        };
        if closing || self.keeper().gate.is_closed() {
            drop(state);
            return self.turn_away(message, raw_id, &params, origin, Reason::Closing);
        }
        let link = match link {
            Ok(link) => link,
            Err(left) => {
                drop(state);
                let retry_after = left.max(Duration::from_millis(100));
                return self.turn_away(
                    message,
                    raw_id,
                    &params,
                    origin,
                    Reason::Down { retry_after },
                );
            }
        };
        state.handshake.note(bytes, message, &params);
        if let Some(name) = state.handshake.take_client() {
            state.caller.principal = name;
        }
        let ask = state.handshake.wants_tools();
        let mut flight = Flight::new(Stage::Plain, raw_id.get(), origin);
        let outgoing = self.outgoing(bytes, raw_id, &params, &key, &mut flight);
        let original = (self.setup.remap && !self.setup.shared).then_some(id);
        if message.method != "tools/call" {
            flight.endless = message.method == "subscriptions/listen";
            flight.greeting = message.method == "initialize";
            state.flights.insert(key, original, flight);
            drop(state);
            self.push(&link, outgoing);
            if ask {
                self.ask_tools(None);
            }
            return;
        }
        let Some(name) = &params.name else {
            drop(state);
            let fault = Fault::Shape("`params.name` is not a string");
            return self.bad_request(raw_id, &fault, &origin.sink);
        };
        let tool = state
            .catalog
            .tool(&self.setup.keeper, &self.setup.server, name);
        flight.tool = Some(Arc::clone(&tool));
        // Nothing to wait for, and nothing that could go wrong on the way.
        if tool.is_free()
            && !self.keeper().policy.observe
            && let Ok(pass) = self.keeper().admit_free(&tool)
        {
            flight.stage = Stage::Running(Some(pass));
            let timed = tool.timeout.map(|timeout| (key.clone(), timeout));
            state.flights.insert(key, original, flight);
            drop(state);
            self.push(&link, outgoing);
            if let Some((key, timeout)) = timed {
                self.start_timer(key, timeout, &tool);
            }
            if ask {
                self.ask_tools(None);
            }
            return;
        }
        let caller = match &origin.subject {
            // Known by a token: whatever it calls itself, and over whichever connection.
            Some(subject) => Caller {
                principal: Arc::clone(subject),
                connection: "".into(),
            },
            None => state.caller.clone(),
        };
        flight.stage = Stage::Waiting(None);
        state.flights.insert(key.clone(), original, flight);
        drop(state);
        if ask {
            self.ask_tools(None);
        }
        let plan = self.keeper().plan(&tool, params.arguments, &caller);
        self.tool_call(key, plan, &link, outgoing);
    }

    fn tool_call(
        self: &Arc<Self>,
        key: Id,
        plan: Result<Plan, Refusal>,
        link: &Arc<dyn Link>,
        outgoing: Bytes,
    ) {
        let observe = self.keeper().policy.observe;
        let plan = match plan {
            Ok(plan) => plan,
            Err(_) if observe => {
                self.state().flights.advance(&key, Stage::Running(None));
                return self.push(link, outgoing);
            }
            Err(refusal) => return self.refused(&key, &refusal),
        };
        if observe {
            self.state().flights.advance(&key, Stage::Running(None));
            self.push(link, outgoing);
            return self.observe(key, plan);
        }
        let keeper = Arc::clone(self.keeper());
        let mut admission: Admission = Box::pin(async move { keeper.admit(plan).await });
        // Nearly always nobody is in the way: no task, no switch.
        if let Poll::Ready(admitted) = admission
            .as_mut()
            .poll(&mut Context::from_waker(Waker::noop()))
        {
            return self.admitted(&key, admitted, outgoing);
        }
        let session = Arc::clone(self);
        let id = key.clone();
        self.keeper().metrics.waiting(1);
        let waiting = Waiting(Arc::clone(self));
        let task = tokio::spawn(async move {
            let admitted = admission.await;
            drop(waiting);
            session.admitted(&id, admitted, outgoing);
            session.flush();
        });
        let mut state = self.state();
        if let Some(Flight {
            stage: Stage::Waiting(handle @ None),
            ..
        }) = state.flights.get_mut(&key)
        {
            *handle = Some(task.abort_handle());
        }
    }

    fn observe(self: &Arc<Self>, key: Id, plan: Plan) {
        let session = Arc::clone(self);
        let serial = self
            .state()
            .flights
            .get(&key)
            .map_or(0, |flight| flight.serial);
        tokio::spawn(async move {
            let Some(mut pass) = session.keeper().observe(plan).await else {
                return;
            };
            {
                let mut state = session.state();
                if let Some(flight) = state.flights.get_mut(&key)
                    && flight.serial == serial
                    && let Stage::Running(held @ None) = &mut flight.stage
                {
                    *held = Some(pass);
                    return;
                }
            }
            // It was answered meanwhile.
            if let Some(ticket) = pass.ticket.take() {
                session.keeper().forget(ticket).await;
            }
        });
    }

    fn admitted(self: &Arc<Self>, key: &Id, admitted: Result<Admitted, Refusal>, outgoing: Bytes) {
        let pass = match admitted {
            Err(refusal) => return self.refused(key, &refusal),
            Ok(Admitted::Replay(result)) => {
                let Some(flight) = self.state().flights.remove(key) else {
                    return;
                };
                self.changed.notify_waiters();
                let answer = wire::result(&flight.raw_id, &String::from_utf8_lossy(&result));
                return self.deliver(&flight.sink, answer, true);
            }
            Ok(Admitted::Run(pass)) => pass,
        };
        let mut state = self.state();
        let link = match &state.link {
            LinkState::Up(link) => Some(Arc::clone(link)),
            LinkState::Greeting(_) | LinkState::Down { .. } => None,
        };
        let Some(link) = link.filter(|_| state.flights.contains(key)) else {
            // Cancelled at the last moment, or the server died meanwhile: it never started.
            let waits = state.flights.contains(key);
            drop(state);
            if waits {
                let tool = Arc::clone(&pass.tool);
                let reason = Reason::Down {
                    retry_after: Duration::from_secs(1),
                };
                let refusal = self.keeper().refuse(&tool, &pass.keys, reason);
                self.refused(key, &refusal);
            }
            return self.undo(pass);
        };
        if pass.waited > Duration::from_millis(1) {
            log!(
                Info,
                "waited",
                server = &*pass.tool.server,
                tool = &*pass.tool.name,
                keys = &pass.keys[..],
                waited_ms = pass.waited.as_millis() as u64
            );
        }
        let tool = Arc::clone(&pass.tool);
        state.flights.advance(key, Stage::Running(Some(pass)));
        drop(state);
        self.push(&link, outgoing);
        if let Some(timeout) = tool.timeout {
            self.start_timer(key.clone(), timeout, &tool);
        }
    }

    /// The caller is told after a while. The lock stays until the server has answered.
    fn start_timer(self: &Arc<Self>, key: Id, timeout: Duration, tool: &Arc<Tool>) {
        let session = Arc::clone(self);
        let tool = Arc::clone(tool);
        let id = key.clone();
        let timer = tokio::spawn(async move {
            tokio::time::sleep(timeout).await;
            let mut state = session.state();
            let Some(flight) = state.flights.get_mut(&key) else {
                return;
            };
            let Stage::Running(held) = &mut flight.stage else {
                return;
            };
            let held = held.take();
            let keys = held
                .as_ref()
                .map(|pass| pass.keys.clone())
                .unwrap_or_default();
            let (raw_id, sink) = (flight.raw_id.clone(), Arc::clone(&flight.sink));
            state.flights.advance(&key, Stage::Abandoned(held));
            drop(state);
            let refusal = session
                .keeper()
                .refuse(&tool, &keys, Reason::Timeout { after: timeout });
            let answer = wire::tool_error(&raw_id, &refusal.message(), &refusal.details());
            session.deliver(&sink, answer, true);
            session.flush();
        });
        // Goes with the flight: an answered call leaves no timer behind.
        if let Some(flight) = self.state().flights.get_mut(&id) {
            flight.timer = Some(Timer(timer.abort_handle()));
        } else {
            timer.abort();
        }
    }

    /// Ends the record of a call that never reached the server.
    fn undo(self: &Arc<Self>, mut pass: Box<Pass>) {
        if let Some(ticket) = pass.ticket.take() {
            let keeper = Arc::clone(self.keeper());
            tokio::spawn(async move {
                keeper.settle(ticket, None).await;
                drop(pass);
            });
        }
    }

    /// Answers a waiting call with why it is not made.
    fn refused(&self, key: &Id, refusal: &Refusal) {
        let Some(flight) = self.state().flights.remove(key) else {
            return;
        };
        self.changed.notify_waiters();
        let answer = wire::tool_error(&flight.raw_id, &refusal.message(), &refusal.details());
        self.deliver(&flight.sink, answer, true);
    }

    /// Answers a request that is not even looked at.
    fn turn_away(
        &self,
        message: &Message<'_>,
        raw_id: Raw<'_>,
        params: &Params<'_>,
        origin: &Origin,
        reason: Reason,
    ) {
        let code = match reason {
            Reason::Closing => Code::Closing,
            _ => Code::Unavailable,
        };
        let answer = match (&*message.method, &params.name) {
            ("tools/call", Some(name)) => {
                let tool = self
                    .state()
                    .catalog
                    .tool(&self.setup.keeper, &self.setup.server, name);
                let refusal = self.keeper().refuse(&tool, &[], reason);
                wire::tool_error(raw_id.get(), &refusal.message(), &refusal.details())
            }
            _ => {
                let text = match code {
                    Code::Closing => "toctou guard: shutting down",
                    _ => "toctou guard: the server is not running; it is being started again",
                };
                wire::error(Some(raw_id.get()), code, text)
            }
        };
        self.deliver(&origin.sink, answer, true);
    }

    fn bad_request(&self, raw_id: Raw<'_>, fault: &Fault, sink: &Arc<dyn Sink>) {
        log!(
            Warn,
            "bad-request",
            session = self.number,
            because = fault.to_string()
        );
        let text = format!("toctou guard: {fault}");
        let answer = wire::error(Some(raw_id.get()), Code::InvalidParams, &text);
        self.deliver(sink, answer, true);
    }

    /// The message as the server gets it.
    fn outgoing(
        &self,
        bytes: &Bytes,
        raw_id: Raw<'_>,
        params: &Params<'_>,
        key: &Id,
        flight: &mut Flight,
    ) -> Bytes {
        let Id::Integer(number) = key else {
            return bytes.clone();
        };
        if !self.setup.remap {
            return bytes.clone();
        }
        let number = number.to_string();
        // A token is unique among one client's requests only, and our id is unique among all.
        let token = params.meta.and_then(|meta| {
            wire::fields(meta.get(), ["progressToken"])
                .ok()
                .and_then(|([token], twice)| token.filter(|_| twice.is_none()))
        });
        let Some(token) = token else {
            return wire::replace(bytes, &[(raw_id, number.as_bytes())]).into();
        };
        flight.token = Some(token.get().into());
        wire::replace(
            bytes,
            &[(raw_id, number.as_bytes()), (token, number.as_bytes())],
        )
        .into()
    }
}

/// Counts a call that waits, however it stops waiting.
struct Waiting(Arc<Session>);

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.keeper().metrics.waiting(-1);
    }
}
