//! The client's side of MCP: as much as it takes to call tools at exact moments.
//!
//! What is sent together goes out in one write, since a gap of milliseconds
//! decides whether calls meet. Answers are read by a thread of their own, so
//! that no server can block the one that watches the clock.

pub mod http;
mod stdio;

use std::collections::HashMap;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use thiserror::Error;

use crate::budget::{Budget, Stop};
use crate::call::{Call, Reply};

pub use stdio::{Pipes, connect};

/// How messages reach a server.
pub trait Transport: Send {
    /// Sends all of them as close together as the transport can.
    fn send(&mut self, messages: &[Value]) -> std::io::Result<()>;

    /// Nothing more will be sent.
    fn leave(&mut self) {}
}

/// What a server sent.
#[derive(Debug)]
pub enum Incoming {
    Message(Value),
    /// A line that is no message.
    Garbage(String),
    End,
}

#[derive(Debug, Error)]
pub enum ClientError {
    #[error(transparent)]
    Stopped(#[from] Stop),
    #[error("the server ended")]
    Ended,
    #[error("no answer to `{0}`")]
    Silence(&'static str),
    #[error("`{method}` was refused: {message}")]
    Refused {
        method: &'static str,
        message: String,
    },
    #[error("cannot write to the server: {0}")]
    Write(#[from] std::io::Error),
}

/// A tool as its server describes it.
#[derive(Clone, Debug)]
pub struct Tool {
    pub name: String,
    pub description: String,
    pub schema: Value,
    /// What the annotation says, if there is one.
    pub read_only: Option<bool>,
}

pub struct Client {
    transport: Box<dyn Transport>,
    incoming: Receiver<Incoming>,
    next: u64,
    answers: HashMap<u64, Answer>,
    ended: bool,
    /// Lines on standard output that were no messages.
    pub garbage: Vec<String>,
}

#[derive(Debug)]
struct Answer {
    message: Value,
    at: Instant,
}

/// A request that was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ticket {
    id: u64,
    pub sent: Instant,
}

const MOST_GARBAGE: usize = 20;
const MOST_PAGES: usize = 50;
const MOST_TOOLS: usize = 500;

impl Client {
    pub fn new(transport: Box<dyn Transport>, incoming: Receiver<Incoming>) -> Self {
        Self {
            transport,
            incoming,
            next: 1,
            answers: HashMap::new(),
            ended: false,
            garbage: Vec::new(),
        }
    }

    /// The handshake.
    pub fn initialize(&mut self, within: Duration, budget: &Budget) -> Result<(), ClientError> {
        let params = json!({
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": {"name": "toctou", "version": env!("CARGO_PKG_VERSION")},
        });
        self.request("initialize", params, within, budget)?;
        self.transport
            .send(&[json!({"jsonrpc": "2.0", "method": "notifications/initialized"})])?;
        Ok(())
    }

    pub fn tools(&mut self, within: Duration, budget: &Budget) -> Result<Vec<Tool>, ClientError> {
        let mut tools = Vec::new();
        let mut cursor = None;
        for _ in 0..MOST_PAGES {
            let params = match &cursor {
                Some(cursor) => json!({ "cursor": cursor }),
                None => json!({}),
            };
            let result = self.request("tools/list", params, within, budget)?;
            let page = result.get("tools").and_then(Value::as_array);
            tools.extend(page.into_iter().flatten().filter_map(Tool::read));
            cursor = result
                .get("nextCursor")
                .and_then(Value::as_str)
                .map(str::to_owned);
            if cursor.is_none() || tools.len() >= MOST_TOOLS {
                break;
            }
        }
        tools.truncate(MOST_TOOLS);
        Ok(tools)
    }

    fn request(
        &mut self,
        method: &'static str,
        params: Value,
        within: Duration,
        budget: &Budget,
    ) -> Result<Value, ClientError> {
        let id = self.next;
        self.next += 1;
        self.transport
            .send(&[json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})])?;
        let ticket = Ticket {
            id,
            sent: Instant::now(),
        };
        let deadline = Instant::now() + within;
        while !self.answers.contains_key(&id) {
            budget.check()?;
            if self.ended {
                return Err(ClientError::Ended);
            }
            if Instant::now() >= deadline {
                return Err(ClientError::Silence(method));
            }
            self.receive(Duration::from_millis(50));
        }
        let message = self.take(ticket).unwrap_or_default();
        if let Some(error) = message.get("error") {
            let message = error.get("message").unwrap_or(error);
            return Err(ClientError::Refused {
                method,
                message: crate::call::text_of(message),
            });
        }
        Ok(message.get("result").cloned().unwrap_or(Value::Null))
    }

    /// Sends calls as close together as can be.
    pub fn send(&mut self, calls: &[&Call]) -> Result<Vec<Ticket>, ClientError> {
        let mut ids = Vec::new();
        let messages: Vec<Value> = calls
            .iter()
            .map(|call| {
                let id = self.next;
                self.next += 1;
                ids.push(id);
                let arguments = match &call.arguments {
                    Value::Null => json!({}),
                    other => other.clone(),
                };
                json!({"jsonrpc": "2.0", "id": id, "method": "tools/call",
                       "params": {"name": call.tool, "arguments": arguments}})
            })
            .collect();
        let sent = Instant::now();
        self.transport.send(&messages)?;
        Ok(ids.into_iter().map(|id| Ticket { id, sent }).collect())
    }

    /// Takes in what comes within `patience`; false if nothing did.
    pub fn receive(&mut self, patience: Duration) -> bool {
        if self.ended {
            return false;
        }
        match self.incoming.recv_timeout(patience) {
            Ok(incoming) => {
                self.take_in(incoming);
                // Whatever else is there already.
                while let Ok(more) = self.incoming.try_recv() {
                    self.take_in(more);
                }
                true
            }
            Err(RecvTimeoutError::Timeout) => false,
            Err(RecvTimeoutError::Disconnected) => {
                self.ended = true;
                false
            }
        }
    }

    fn take_in(&mut self, incoming: Incoming) {
        match incoming {
            Incoming::End => self.ended = true,
            Incoming::Garbage(line) => {
                if self.garbage.len() < MOST_GARBAGE {
                    self.garbage.push(line);
                }
            }
            Incoming::Message(message) => {
                let method = message.get("method").and_then(Value::as_str);
                match (method, message.get("id")) {
                    (Some(method), Some(id)) => {
                        // A server that waits for an answer must get one.
                        let answer = answer_to(method, id);
                        let _ = self.transport.send(&[answer]);
                    }
                    (Some(_), None) => {}
                    (None, _) => {
                        if let Some(id) = message.get("id").and_then(Value::as_u64) {
                            let at = Instant::now();
                            self.answers.entry(id).or_insert(Answer { message, at });
                        }
                    }
                }
            }
        }
    }

    pub fn ended(&self) -> bool {
        self.ended
    }

    /// Says goodbye to a server that goes on without us.
    pub fn leave(&mut self) {
        self.transport.leave();
    }

    pub fn has_answer(&self, ticket: Ticket) -> bool {
        self.answers.contains_key(&ticket.id)
    }

    /// How long the answer took.
    pub fn latency(&self, ticket: Ticket) -> Option<Duration> {
        let answer = self.answers.get(&ticket.id)?;
        Some(answer.at.duration_since(ticket.sent))
    }

    fn take(&mut self, ticket: Ticket) -> Option<Value> {
        self.answers.remove(&ticket.id).map(|answer| answer.message)
    }

    pub fn reply(&mut self, ticket: Ticket) -> Reply {
        match self.take(ticket) {
            Some(message) => Reply::read(&message),
            None => Reply::Silence,
        }
    }
}

fn answer_to(method: &str, id: &Value) -> Value {
    match method {
        "ping" => json!({"jsonrpc": "2.0", "id": id, "result": {}}),
        "roots/list" => json!({"jsonrpc": "2.0", "id": id, "result": {"roots": []}}),
        _ => json!({"jsonrpc": "2.0", "id": id,
                    "error": {"code": -32601, "message": "toctou prove offers no such thing"}}),
    }
}

impl Tool {
    fn read(value: &Value) -> Option<Self> {
        Some(Self {
            name: value.get("name")?.as_str()?.to_owned(),
            description: value
                .get("description")
                .and_then(Value::as_str)
                .unwrap_or_default()
                .to_owned(),
            schema: value
                .get("inputSchema")
                .cloned()
                .unwrap_or_else(|| json!({})),
            read_only: value
                .pointer("/annotations/readOnlyHint")
                .and_then(Value::as_bool),
        })
    }
}
