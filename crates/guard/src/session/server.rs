//! Messages of a server, its coming and its going.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use memchr::memmem;

use super::flight::Question;
use super::{Flight, Link, LinkState, MOST_TASKS, Session, Stage};
use crate::admit::Pass;
use crate::log::log;
use crate::record::Direction;
use crate::refusal::Reason;
use crate::wire::{self, Code, Fault, Id, Kind, Message, Parsed, Raw};

impl Session {
    /// Takes one message of the server, or an array of them.
    pub fn from_server(self: &Arc<Self>, frame: &Bytes) {
        self.record(Direction::FromServer, frame);
        match wire::parse(frame, &self.setup.limits) {
            Ok(Parsed::One(message)) => self.server_message(frame, &message),
            Ok(Parsed::Batch(parts)) => {
                for part in parts {
                    match wire::parse(part.get().as_bytes(), &self.setup.limits) {
                        Ok(Parsed::One(message)) => {
                            let bytes = frame.slice_ref(part.get().as_bytes());
                            self.server_message(&bytes, &message);
                        }
                        Ok(Parsed::Batch(_)) => {
                            self.bad_answer(&Fault::Shape("an array in an array"))
                        }
                        Err(fault) => self.bad_answer(&fault),
                    }
                }
            }
            Err(fault) => self.bad_answer(&fault),
        }
    }

    /// Servers write all kinds of things to standard output. What is no
    /// message is not passed on; if it was meant as an answer, its caller is told.
    fn bad_answer(self: &Arc<Self>, fault: &Fault) {
        log!(
            Warn,
            "bad-message",
            from = "server",
            server = &*self.setup.server.name,
            because = fault.to_string()
        );
        let Fault::Duplicate { id: Some(id), .. } = fault else {
            return;
        };
        let Some(flight) = self.state().flights.remove(id) else {
            return;
        };
        self.changed.notify_waiters();
        if !matches!(flight.stage, Stage::Own(_) | Stage::Abandoned(_)) {
            let text = format!("toctou guard: the server's answer is not valid: {fault}");
            let answer = wire::error(Some(&flight.raw_id), Code::Internal, &text);
            self.deliver(&flight.sink, answer, true);
        }
    }

    fn server_message(self: &Arc<Self>, bytes: &Bytes, message: &Message<'_>) {
        self.keeper().metrics.message();
        match message.kind {
            Kind::Response => self.answer(bytes, message),
            Kind::Request if self.setup.shared => {
                let text =
                    "toctou guard: several clients share this server, so none of them can be asked";
                let raw_id = message.raw_id.map(Raw::get);
                self.to_server(wire::error(raw_id, Code::Unavailable, text).into());
            }
            Kind::Request => self.deliver(&self.setup.main, bytes.clone(), false),
            Kind::Notification => self.server_notification(bytes, message),
        }
    }

    fn server_notification(self: &Arc<Self>, bytes: &Bytes, message: &Message<'_>) {
        match &*message.method {
            "notifications/tools/list_changed" => self.ask_tools(None),
            "notifications/tasks/status" => {
                if let Some(params) = message.params {
                    self.task_status(params);
                }
            }
            _ => {}
        }
        if !self.setup.remap {
            return self.deliver(&self.setup.main, bytes.clone(), false);
        }
        if let Some((sink, bytes)) = self.addressee(bytes, message) {
            self.deliver(&sink, bytes, false);
        } else if self.setup.shared {
            // Nobody's in particular: to give it to one client could show it another's.
            self.keeper().metrics.stray();
            log!(
                Debug,
                "stray-notification",
                server = &*self.setup.server.name,
                method = &*message.method
            );
        } else {
            self.deliver(&self.setup.main, bytes.clone(), false);
        }
    }

    /// Whose request a notification is about, and the notification in the words of that client.
    fn addressee(
        &self,
        bytes: &Bytes,
        message: &Message<'_>,
    ) -> Option<(Arc<dyn super::Sink>, Bytes)> {
        const SUBSCRIPTION: &str = "io.modelcontextprotocol/subscriptionId";
        let params = message.params().unwrap_or_default();
        let subscription = params.meta.and_then(|meta| {
            let ([id], _) = wire::fields(meta.get(), [SUBSCRIPTION]).ok()?;
            id
        });
        for raw in [params.progress_token, subscription].into_iter().flatten() {
            let state = self.state();
            if let Some(flight) = Id::read(raw).and_then(|id| state.flights.get(&id)) {
                let theirs = flight.token.as_deref().unwrap_or(&flight.raw_id);
                let bytes = wire::replace(bytes, &[(raw, theirs.as_bytes())]);
                return Some((Arc::clone(&flight.sink), bytes.into()));
            }
        }
        None
    }

    fn answer(self: &Arc<Self>, bytes: &Bytes, message: &Message<'_>) {
        let found = message.id.as_ref().and_then(|id| {
            let mut state = self.state();
            // A late answer may meet a new request of the same id that the server has not seen.
            let asked = state
                .flights
                .get(id)
                .is_some_and(|flight| !matches!(flight.stage, Stage::Waiting(_)));
            let flight = asked.then(|| state.flights.remove(id)).flatten()?;
            state.handshake.agreed |= flight.greeting && message.result.is_some();
            Some(flight)
        });
        let Some(flight) = found else {
            self.keeper().metrics.stray();
            log!(
                Debug,
                "stray-answer",
                server = &*self.setup.server.name,
                id = message.id.as_ref().map(ToString::to_string)
            );
            return;
        };
        self.changed.notify_waiters();
        if let Some(result) = message.result {
            self.task_status(result);
        }
        match flight.stage {
            Stage::Own(Question::Tools) => self.tools_answered(message.result),
            Stage::Own(Question::Initialize) => self.said_again(),
            Stage::Abandoned(Some(pass)) => self.finished(message, pass, None),
            Stage::Running(Some(pass)) => {
                let answer = self.with_meta(self.for_client(bytes, message, &flight.raw_id), &pass);
                self.finished(message, pass, Some((flight.sink, answer)));
            }
            Stage::Abandoned(None) => {}
            _ => {
                let bytes = self.for_client(bytes, message, &flight.raw_id);
                self.deliver(&flight.sink, bytes, true);
            }
        }
    }

    /// A call is answered: its locks go, its result is kept if it is to be,
    /// and its caller is told, if it still waits.
    fn finished(
        self: &Arc<Self>,
        message: &Message<'_>,
        mut pass: Box<Pass>,
        mut answer: Option<(Arc<dyn super::Sink>, Bytes)>,
    ) {
        if pass.observed
            && let Some((sink, answer)) = answer.take()
        {
            self.deliver(&sink, answer, true);
        }
        let Some(ticket) = pass.ticket.take() else {
            self.hold_for_task(pass, message.result);
            if let Some((sink, answer)) = answer {
                self.deliver(&sink, answer, true);
            }
            return;
        };
        let kept = message.result.filter(|result| !says_failed(*result));
        let result = kept.map(|result| result.get().as_bytes().to_vec());
        let task = message.result.map(|result| result.get().to_owned());
        let session = Arc::clone(self);
        self.state().settling += 1;
        // Kept before it is told: a repetition must not overtake the record.
        tokio::spawn(async move {
            session.keeper().settle(ticket, result).await;
            session.hold_for_task(pass, task.as_deref().map(Raw::new));
            if let Some((sink, answer)) = answer {
                session.deliver(&sink, answer, true);
                session.flush();
            }
            session.state().settling -= 1;
            session.changed.notify_waiters();
        });
    }

    /// The answer with a note on what was waited for, if the policy wants it.
    fn with_meta(&self, answer: Bytes, pass: &Pass) -> Bytes {
        if self.keeper().policy.meta
            && let Ok(Parsed::One(message)) = wire::parse(&answer, &self.setup.limits)
            && let Some(with) = message
                .result
                .and_then(|result| wire::insert_meta(&answer, result, "toctou/lock", &pass.meta()))
        {
            return with.into();
        }
        answer
    }

    fn for_client(&self, bytes: &Bytes, message: &Message<'_>, raw_id: &str) -> Bytes {
        match message.raw_id {
            Some(ours) if self.setup.remap => {
                wire::replace(bytes, &[(ours, raw_id.as_bytes())]).into()
            }
            _ => bytes.clone(),
        }
    }

    /// A result that is a task means that the call still runs.
    fn hold_for_task(&self, pass: Box<Pass>, result: Option<Raw<'_>>) {
        let Some((id, ended)) = result.and_then(task_of) else {
            return;
        };
        let mut state = self.state();
        if !ended && state.tasks.len() < MOST_TASKS {
            log!(
                Info,
                "held-for-task",
                tool = &*pass.tool.name,
                keys = &pass.keys[..],
                task = id
            );
            state.tasks.push((id, pass));
        }
    }

    /// Looks for news of a task that holds a lock.
    fn task_status(&self, value: Raw<'_>) {
        let mut state = self.state();
        if state.tasks.is_empty() {
            return;
        }
        if let Some((id, true)) = task_of(value) {
            let ended: Vec<_> = state
                .tasks
                .extract_if(.., |(held, _)| *held == id)
                .collect();
            drop(state);
            drop(ended);
            self.changed.notify_waiters();
        }
    }

    /// The server can be written to.
    pub fn server_up(self: &Arc<Self>, link: Arc<dyn Link>) {
        self.state().link = LinkState::Greeting(Arc::clone(&link));
        if !self.say_again() {
            self.state().link = LinkState::Up(link);
        }
        self.flush_server();
    }

    /// The server is gone: whoever waits for it is told at once. Nothing is
    /// sent again; whether a call took effect is for the caller to find out.
    pub fn server_down(self: &Arc<Self>, back_in: Duration) {
        let mut state = self.state();
        state.link = LinkState::Down {
            until: Instant::now() + back_in,
        };
        state.handshake.asking = false;
        let ids = state
            .flights
            .ids(|flight| !matches!(flight.stage, Stage::Waiting(_)));
        let lost: Vec<Flight> = ids
            .iter()
            .filter_map(|id| state.flights.remove(id))
            .collect();
        let tasks = std::mem::take(&mut state.tasks);
        drop(state);
        drop(tasks);
        for flight in lost {
            let answer = match (flight.stage, &flight.tool) {
                (Stage::Own(_) | Stage::Abandoned(_), _) => continue,
                (Stage::Running(pass), Some(tool)) => {
                    let keys = pass
                        .as_ref()
                        .map(|pass| pass.keys.clone())
                        .unwrap_or_default();
                    let refusal = self.keeper().refuse(tool, &keys, Reason::Died);
                    wire::tool_error(&flight.raw_id, &refusal.message(), &refusal.details())
                }
                _ => wire::error(
                    Some(&flight.raw_id),
                    Code::Unavailable,
                    "toctou guard: the server died before it answered",
                ),
            };
            self.deliver(&flight.sink, answer, true);
            flight.sink.flush();
        }
        self.changed.notify_waiters();
        self.setup.main.flush();
    }
}

fn says_failed(result: Raw<'_>) -> bool {
    wire::fields(result.get(), ["isError"])
        .is_ok_and(|([failed], _)| failed.is_some_and(|failed| failed.get() == "true"))
}

/// The id of the task that a result or notification is about, and whether it has ended.
fn task_of(value: Raw<'_>) -> Option<(String, bool)> {
    let text = value.get();
    memmem::find(text.as_bytes(), b"\"taskId\"")?;
    let ([task, id, status, meta], _) =
        wire::fields(text, ["task", "taskId", "status", "_meta"]).ok()?;
    let (id, status) = match (id, task) {
        (Some(id), _) => (id, status?),
        (None, Some(task)) => {
            let ([id, status], _) = wire::fields(task.get(), ["taskId", "status"]).ok()?;
            (id?, status?)
        }
        (None, None) => {
            // The task's own result: there is none before the task has ended.
            let ([related], _) =
                wire::fields(meta?.get(), ["io.modelcontextprotocol/related-task"]).ok()?;
            let ([id], _) = wire::fields(related?.get(), ["taskId"]).ok()?;
            return Some((serde_json::from_str(id?.get()).ok()?, true));
        }
    };
    let id: String = serde_json::from_str(id.get()).ok()?;
    let ended = matches!(
        status.get(),
        "\"completed\"" | "\"failed\"" | "\"cancelled\""
    );
    Some((id, ended))
}
