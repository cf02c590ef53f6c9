//! One client and one server, and the calls between them.
//!
//! A session knows no transport: messages come in as bytes by [`from_client`]
//! and [`from_server`], and go out through a [`Sink`] and a [`Link`]. Every
//! request is a [`Flight`] from the moment it is read until it is answered, so
//! that an answer finds its caller, and a caller its answer even if the server
//! dies.
//!
//! [`from_client`]: Session::from_client
//! [`from_server`]: Session::from_server

mod batch;
mod call;
mod cancel;
mod catalog;
mod flight;
mod handshake;
mod server;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use tokio::sync::Notify;

use crate::admit::{Caller, Gatekeeper, Pass};
use crate::log::log;
use crate::record::{Direction, Recorder};
use crate::wire::{self, Code, Fault, Id, Kind, Limits, Message, Mirrored, Parsed};
use catalog::Catalog;
use flight::{Flight, Flights, Stage};
use handshake::Handshake;

/// Where messages for a client go.
pub trait Sink: Send + Sync {
    /// `last` if it is the answer to the request that the sink belongs to.
    fn deliver(&self, message: Bytes, last: bool);
    /// Nothing will come for the request: it was cancelled.
    fn close(&self);
    /// Writes what was delivered.
    fn flush(&self);
}

/// Where messages for a server go.
pub trait Link: Send + Sync {
    fn push(&self, message: Bytes);
    fn flush(&self);
}

/// Where a message came from.
#[derive(Clone)]
pub struct Origin {
    pub sink: Arc<dyn Sink>,
    /// Who is authenticated; otherwise the client's own name counts.
    pub subject: Option<Arc<str>>,
}

/// The server of a session.
#[derive(Clone, Debug)]
pub struct Server {
    pub name: Arc<str>,
    /// Tells servers apart, the same in every guard that starts the same server.
    pub namespace: Arc<str>,
}

/// What a session is made of.
pub struct Setup {
    pub keeper: Arc<Gatekeeper>,
    pub server: Server,
    pub limits: Limits,
    /// Give requests ids of our own, because clients that share the server may choose the same.
    pub remap: bool,
    /// Several clients share the session: the server cannot ask one of them.
    pub shared: bool,
    pub recorder: Option<Arc<Recorder>>,
    /// Messages of the server that answer nobody's request.
    pub main: Arc<dyn Sink>,
}

pub struct Session {
    setup: Setup,
    number: u64,
    state: Mutex<State>,
    changed: Notify,
}

struct State {
    link: LinkState,
    flights: Flights,
    /// Locks of calls whose result is a task that still runs.
    tasks: Vec<(String, Box<Pass>)>,
    handshake: Handshake,
    catalog: Catalog,
    next: i64,
    caller: Caller,
    /// Answers that are kept on record before they are told.
    settling: usize,
    closing: bool,
}

impl State {
    fn is_idle(&self) -> bool {
        self.flights.callers() == 0 && self.settling == 0
    }
}

enum LinkState {
    Up(Arc<dyn Link>),
    /// Started again, and the handshake is not answered yet.
    Greeting(Arc<dyn Link>),
    Down {
        until: Instant,
    },
}

/// More requests than this at once are refused.
const MOST_FLIGHTS: usize = 100_000;
/// More tasks than this do not hold their locks.
const MOST_TASKS: usize = 10_000;
/// More calls than this may not wait at once.
const MOST_WAITING: usize = 10_000;

static NUMBER: AtomicU64 = AtomicU64::new(1);

impl Session {
    pub fn new(setup: Setup) -> Arc<Self> {
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        Arc::new(Self {
            number,
            state: Mutex::new(State {
                link: LinkState::Down {
                    until: Instant::now(),
                },
                flights: Flights::default(),
                tasks: Vec::new(),
                handshake: Handshake::default(),
                catalog: Catalog::default(),
                next: 0,
                caller: Caller {
                    principal: handshake::UNKNOWN.into(),
                    connection: format!("{}-{number}", std::process::id()).into(),
                },
                settling: 0,
                closing: false,
            }),
            setup,
            changed: Notify::new(),
        })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn keeper(&self) -> &Arc<Gatekeeper> {
        &self.setup.keeper
    }

    pub fn limits(&self) -> &Limits {
        &self.setup.limits
    }

    fn record(&self, direction: Direction, message: &[u8]) {
        if let Some(recorder) = &self.setup.recorder {
            recorder.message(self.number, direction, message);
        }
    }

    /// Takes one message of a client, or an array of them.
    pub fn from_client(self: &Arc<Self>, frame: &Bytes, origin: &Origin) {
        match wire::parse(frame, &self.setup.limits) {
            Ok(parsed) => self.parsed_from_client(frame, &parsed, origin),
            Err(fault) => {
                self.record(Direction::FromClient, frame);
                self.bad_message(&fault, &origin.sink);
            }
        }
    }

    /// The same, of a frame whose envelope was read already.
    pub(crate) fn parsed_from_client(
        self: &Arc<Self>,
        frame: &Bytes,
        parsed: &Parsed<'_>,
        origin: &Origin,
    ) {
        self.record(Direction::FromClient, frame);
        match parsed {
            Parsed::One(message) => self.client_message(frame, message, origin),
            Parsed::Batch(parts) => self.client_batch(frame, parts, origin),
        }
    }

    fn client_message(self: &Arc<Self>, bytes: &Bytes, message: &Message<'_>, origin: &Origin) {
        self.keeper().metrics.message();
        match message.kind {
            Kind::Request => self.request(bytes, message, origin),
            Kind::Notification => self.notification(bytes, message),
            Kind::Response => self.to_server(bytes.clone()),
        }
    }

    /// Says what is wrong with a message. The id is null: an answer under the
    /// id that such a message claims could end another call.
    pub fn bad_message(&self, fault: &Fault, sink: &Arc<dyn Sink>) {
        log!(
            Warn,
            "bad-message",
            from = "client",
            session = self.number,
            because = fault.to_string()
        );
        let code = match fault {
            Fault::Syntax(_) => Code::Parse,
            _ => Code::InvalidRequest,
        };
        self.deliver(
            sink,
            wire::error(None, code, &format!("toctou guard: {fault}")),
            true,
        );
    }

    fn notification(self: &Arc<Self>, bytes: &Bytes, message: &Message<'_>) {
        match &*message.method {
            "notifications/cancelled" => {
                if let Ok(params) = message.params()
                    && let Some(raw) = params.request_id
                    && let Some(id) = Id::read(raw)
                {
                    return self.cancelled(bytes, &id, raw);
                }
                self.to_server(bytes.clone());
            }
            "notifications/initialized" => {
                self.state().handshake.initialized = Some(bytes.clone());
                self.to_server(bytes.clone());
                self.ask_tools(None);
            }
            _ => self.to_server(bytes.clone()),
        }
    }

    fn to_server(&self, message: Bytes) {
        let state = self.state();
        if let LinkState::Up(link) = &state.link {
            let link = Arc::clone(link);
            drop(state);
            self.push(&link, message);
        }
    }

    fn push(&self, link: &Arc<dyn Link>, message: Bytes) {
        self.record(Direction::ToServer, &message);
        link.push(message);
    }

    fn deliver(&self, sink: &Arc<dyn Sink>, message: impl Into<Bytes>, last: bool) {
        let message = message.into();
        self.record(Direction::ToClient, &message);
        sink.deliver(message, last);
    }

    /// Writes what was passed on since the last time, both ways.
    pub fn flush(&self) {
        self.flush_server();
        self.setup.main.flush();
    }

    fn flush_server(&self) {
        let state = self.state();
        if let LinkState::Up(link) | LinkState::Greeting(link) = &state.link {
            let link = Arc::clone(link);
            drop(state);
            link.flush();
        }
    }

    /// Arguments of a tool that stand in headers too, as far as the server has told.
    pub fn mirrored(&self, tool: &str) -> Arc<[Mirrored]> {
        self.state().catalog.mirrored(tool)
    }

    /// Whether the server has agreed to the handshake.
    pub fn is_greeted(&self) -> bool {
        self.state().handshake.agreed
    }

    /// Whether the server can be written to.
    pub fn is_up(&self) -> bool {
        matches!(self.state().link, LinkState::Up(_))
    }

    /// Requests that are not answered yet.
    pub fn in_flight(&self) -> usize {
        let state = self.state();
        state.flights.len() + state.tasks.len()
    }

    /// Waits until everything is answered; false if that takes too long.
    pub async fn idle(&self, within: Duration) -> bool {
        self.reaches(State::is_idle, within).await
    }

    /// Waits for the list of tools where there is none yet, or a new one is on its way.
    pub async fn tools_told(&self, within: Duration) {
        let told = self.reaches(|state| state.handshake.is_told(), within);
        if !told.await {
            self.state().handshake.gave_up = true;
        }
    }

    async fn reaches(&self, wanted: impl Fn(&State) -> bool, within: Duration) -> bool {
        let reached = async {
            loop {
                let changed = self.changed.notified();
                tokio::pin!(changed);
                changed.as_mut().enable();
                if wanted(&self.state()) {
                    return;
                }
                changed.await;
            }
        };
        tokio::time::timeout(within, reached).await.is_ok()
    }
}

impl Session {
    /// Counts a server that was started again.
    pub fn restarted(&self) {
        self.keeper().metrics.restarted(&self.setup.server.name);
    }
}
