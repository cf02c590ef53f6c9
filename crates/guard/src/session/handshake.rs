//! What a server must be told again when it is started again, and what the
//! guard asks it for itself: its tools.

use std::sync::Arc;

use bytes::Bytes;
use serde::Deserialize;

use super::flight::Question;
use super::{Flight, LinkState, Origin, Session, Stage};
use crate::wire::{self, Id, Message, Params, Raw};

/// The first revision without a handshake puts these into every request.
const PER_REQUEST: [&str; 3] = [
    "io.modelcontextprotocol/protocolVersion",
    "io.modelcontextprotocol/clientInfo",
    "io.modelcontextprotocol/clientCapabilities",
];

/// A client that does not say who it is.
pub(super) const UNKNOWN: &str = "unknown";

/// What the client said at the start.
#[derive(Default)]
pub(super) struct Handshake {
    pub(super) initialize: Option<Bytes>,
    pub(super) initialized: Option<Bytes>,
    /// `_meta` for the guard's own requests, where requests carry it.
    meta: Option<String>,
    client: Option<Arc<str>>,
    pub(super) asked: bool,
    pub(super) asking: bool,
    /// The server has agreed to `initialize`.
    pub(super) agreed: bool,
    /// Somebody has waited for the tools in vain: nobody does so again.
    pub(super) gave_up: bool,
}

#[derive(Deserialize)]
struct Initialize {
    #[serde(rename = "clientInfo")]
    client: Option<ClientInfo>,
}

#[derive(Deserialize)]
struct ClientInfo {
    name: String,
}

impl Handshake {
    pub(super) fn note(&mut self, bytes: &Bytes, message: &Message<'_>, params: &Params<'_>) {
        if message.method == "initialize" {
            self.initialize = Some(bytes.clone());
            self.client = message
                .params
                .and_then(|params| serde_json::from_str::<Initialize>(params.get()).ok())
                .and_then(|initialize| initialize.client)
                .map(|client| client.name.into());
        } else if self.initialize.is_none()
            && let Some(meta) = params.meta
            && let Ok((values, None)) = wire::fields(meta.get(), PER_REQUEST)
            && values[0].is_some()
        {
            self.meta.get_or_insert_with(|| {
                let entries: Vec<String> = PER_REQUEST
                    .iter()
                    .zip(values)
                    .filter_map(|(key, value)| Some(format!("\"{key}\":{}", value?.get())))
                    .collect();
                format!("{{{}}}", entries.join(","))
            });
            // One who does not say is not the one who called before.
            let client = values[1].and_then(|info| serde_json::from_str(info.get()).ok());
            self.client =
                Some(client.map_or(UNKNOWN.into(), |client: ClientInfo| client.name.into()));
        }
    }

    pub(super) fn take_client(&mut self) -> Option<Arc<str>> {
        self.client.take()
    }

    /// Without a handshake, the first request is the moment to ask.
    pub(super) fn wants_tools(&self) -> bool {
        self.meta.is_some() && !self.asked
    }

    /// Whether the server has been asked for its tools, and has answered or will not.
    pub(super) fn is_told(&self) -> bool {
        self.gave_up || self.asked && !self.asking
    }
}

impl Session {
    /// Asks the server for its tools, a page at a time.
    pub(super) fn ask_tools(self: &Arc<Self>, cursor: Option<&str>) {
        let mut state = self.state();
        state.handshake.asked = true;
        if cursor.is_none() && std::mem::replace(&mut state.handshake.asking, true) {
            return;
        }
        let LinkState::Up(link) = &state.link else {
            state.handshake.asking = false;
            return;
        };
        let link = Arc::clone(link);
        let mut params = Vec::new();
        if let Some(cursor) = cursor {
            params.push(format!("\"cursor\":{}", serde_json::Value::from(cursor)));
        }
        if let Some(meta) = &state.handshake.meta {
            params.push(format!("\"_meta\":{meta}"));
        }
        let params = match params.as_slice() {
            [] => String::new(),
            some => format!(",\"params\":{{{}}}", some.join(",")),
        };
        let (id, raw) = self.own_id(&mut state.next);
        state
            .flights
            .insert(id, None, self.own(Question::Tools, &raw));
        drop(state);
        let message =
            format!("{{\"jsonrpc\":\"2.0\",\"id\":{raw},\"method\":\"tools/list\"{params}}}");
        self.push(&link, message.into());
    }

    pub(super) fn tools_answered(self: &Arc<Self>, result: Option<Raw<'_>>) {
        let next = {
            let mut state = self.state();
            let next = result.and_then(|result| state.catalog.page(result.get()));
            state.handshake.asking = next.is_some();
            next
        };
        self.changed.notify_waiters();
        if let Some(cursor) = next {
            self.ask_tools(Some(&cursor));
        }
    }

    /// Says the handshake again; true if there is one to say.
    pub(super) fn say_again(self: &Arc<Self>) -> bool {
        let mut state = self.state();
        let Some(initialize) = state.handshake.initialize.clone() else {
            return false;
        };
        let (id, raw) = self.own_id(&mut state.next);
        let LinkState::Greeting(link) = &state.link else {
            return false;
        };
        let link = Arc::clone(link);
        state
            .flights
            .insert(id, None, self.own(Question::Initialize, &raw));
        drop(state);
        let message = match wire::parse(&initialize, self.limits()) {
            Ok(wire::Parsed::One(message)) => match message.raw_id {
                Some(old) => wire::replace(&initialize, &[(old, raw.as_bytes())]),
                None => return false,
            },
            _ => return false,
        };
        self.push(&link, message.into());
        true
    }

    pub(super) fn said_again(self: &Arc<Self>) {
        let initialized = {
            let mut state = self.state();
            if let LinkState::Greeting(link) = &state.link {
                state.link = LinkState::Up(Arc::clone(link));
            }
            state.handshake.initialized.clone()
        };
        if let Some(initialized) = initialized {
            self.to_server(initialized);
            self.ask_tools(None);
        }
        self.changed.notify_waiters();
    }

    fn own(&self, question: Question, raw: &str) -> Flight {
        let origin = Origin {
            sink: Arc::clone(&self.setup.main),
            subject: None,
        };
        Flight::new(Stage::Own(question), raw, &origin)
    }

    /// An id that no client uses.
    fn own_id(&self, next: &mut i64) -> (Id, String) {
        *next += 1;
        if self.setup.remap {
            return (Id::Integer(*next), next.to_string());
        }
        let text = format!("toctou-guard-{}-{next}", self.number);
        let raw = format!("\"{text}\"");
        (Id::Text(text.into()), raw)
    }
}
