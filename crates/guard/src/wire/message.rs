//! What a message is, found by looking at its envelope.
//!
//! A key that stands twice means one thing to one parser and another to the
//! next: what the guard checked would not be what the server does. So the keys
//! that decide anything must stand once.

use std::borrow::Cow;

use thiserror::Error;

use super::scan::{Bad, Fields, Scanner};
use super::{Id, Raw};

/// How large and how deep a message may be.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    pub bytes: usize,
    pub depth: usize,
    /// Messages in one array.
    pub batch: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            bytes: 64 << 20,
            depth: 128,
            batch: 1000,
        }
    }
}

/// Why a message is not let through.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum Fault {
    #[error("not valid JSON: {0}")]
    Syntax(String),
    #[error("larger than {0} bytes")]
    TooLarge(usize),
    #[error("nested deeper than {0} levels")]
    TooDeep(usize),
    #[error("more than {0} messages in one array")]
    TooMany(usize),
    #[error("an empty array of messages")]
    EmptyBatch,
    #[error("the key `{key}` stands twice")]
    Duplicate { key: String, id: Option<Id> },
    #[error("not a request, notification or response: {0}")]
    Shape(&'static str),
}

/// One message, or several in an array as revision 2025-03-26 has it.
#[derive(Debug)]
pub enum Parsed<'a> {
    One(Message<'a>),
    /// Each part is a whole message of its own.
    Batch(Vec<Raw<'a>>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Request,
    Notification,
    Response,
}

/// The envelope; the parts are the bytes as sent.
#[derive(Debug)]
pub struct Message<'a> {
    pub kind: Kind,
    /// There for requests, and for responses unless it is null.
    pub id: Option<Id>,
    pub raw_id: Option<Raw<'a>>,
    pub method: Cow<'a, str>,
    pub params: Option<Raw<'a>>,
    within: Fields<'a, 6>,
    pub result: Option<Raw<'a>>,
}

/// Reads the envelope of `bytes`.
pub fn parse<'a>(bytes: &'a [u8], limits: &Limits) -> Result<Parsed<'a>, Fault> {
    if bytes.len() > limits.bytes {
        return Err(Fault::TooLarge(limits.bytes));
    }
    let text = std::str::from_utf8(bytes)
        .map_err(|error| Fault::Syntax(format!("not UTF-8 after byte {}", error.valid_up_to())))?;
    match bytes.iter().find(|byte| !byte.is_ascii_whitespace()) {
        Some(b'{') => Envelope::read(text, limits.depth)?
            .classify()
            .map(Parsed::One),
        Some(b'[') => batch(text, limits).map(Parsed::Batch),
        _ => Err(Fault::Syntax("expected an object".to_owned())),
    }
}

fn batch<'a>(text: &'a str, limits: &Limits) -> Result<Vec<Raw<'a>>, Fault> {
    let mut parts = Vec::new();
    let mut over = false;
    let mut scanner = Scanner::new(text, limits.depth);
    let found = scanner.array(|part| {
        over |= parts.len() == limits.batch;
        if !over {
            parts.push(part);
        }
    });
    scanner.finish(found)?;
    match parts.is_empty() {
        true => Err(Fault::EmptyBatch),
        false if over => Err(Fault::TooMany(limits.batch)),
        false => Ok(parts),
    }
}

#[derive(Default)]
struct Envelope<'a> {
    version: Option<Raw<'a>>,
    id: Option<Raw<'a>>,
    method: Option<Raw<'a>>,
    params: Option<Raw<'a>>,
    result: Option<Raw<'a>>,
    error: Option<Raw<'a>>,
    within: Fields<'a, 6>,
    twice: Option<&'static str>,
}

/// The keys of [`Params`].
const PARAMS: [&str; 6] = [
    "name",
    "uri",
    "arguments",
    "_meta",
    "requestId",
    "progressToken",
];

impl<'a> Envelope<'a> {
    fn read(text: &'a str, depth: usize) -> Result<Self, Fault> {
        let mut envelope = Self::default();
        let mut scanner = Scanner::new(text, depth);
        let found = scanner.object(|scanner, key| envelope.member(scanner, key));
        scanner.finish(found)?;
        if let Some(key) = envelope.twice {
            return Err(Fault::Duplicate {
                key: key.to_owned(),
                id: (key != "id")
                    .then(|| envelope.id.and_then(Id::read))
                    .flatten(),
            });
        }
        if envelope
            .version
            .is_none_or(|version| version.get() != "\"2.0\"")
        {
            return Err(Fault::Shape("`jsonrpc` is not \"2.0\""));
        }
        Ok(envelope)
    }

    fn member(&mut self, scanner: &mut Scanner<'a>, key: &str) -> Result<(), Bad> {
        let (name, slot) = match key {
            "jsonrpc" => ("jsonrpc", &mut self.version),
            "id" => ("id", &mut self.id),
            "method" => ("method", &mut self.method),
            "params" => ("params", &mut self.params),
            "result" => ("result", &mut self.result),
            "error" => ("error", &mut self.error),
            _ => return scanner.skip(),
        };
        // What is within is taken on the way.
        let value = if name == "params" && scanner.next() == Some(b'{') {
            let begin = scanner.place();
            self.within = scanner.fields(PARAMS)?;
            scanner.since(begin)
        } else {
            scanner.value()?
        };
        if slot.replace(value).is_some() {
            self.twice = Some(name);
        }
        Ok(())
    }

    fn classify(self) -> Result<Message<'a>, Fault> {
        let id = self.id.and_then(Id::read);
        let (kind, method) = match self.method {
            Some(method) => {
                let method: Cow<'a, str> = method
                    .text()
                    .ok_or(Fault::Shape("`method` is not a string"))?;
                if self.result.is_some() || self.error.is_some() {
                    return Err(Fault::Shape("both a request and a response"));
                }
                match (self.id, &id) {
                    (None, _) => (Kind::Notification, method),
                    (Some(_), Some(_)) => (Kind::Request, method),
                    (Some(_), None) => return Err(Fault::Shape("`id` is not a string or number")),
                }
            }
            None => {
                if self.result.is_some() == self.error.is_some() {
                    return Err(Fault::Shape(
                        "neither `method`, nor one of `result` and `error`",
                    ));
                }
                (Kind::Response, Cow::Borrowed(""))
            }
        };
        Ok(Message {
            kind,
            id,
            raw_id: self.id,
            method,
            params: self.params,
            within: self.within,
            result: self.result,
        })
    }
}

impl<'a> Message<'a> {
    /// Parameters that decide something, or the name of one that stands twice.
    pub fn params(&self) -> Result<Params<'a>, Fault> {
        let ([name, uri, arguments, meta, request_id, progress_token], twice) = self.within;
        if let Some(key) = twice {
            return Err(Fault::Duplicate {
                key: format!("params.{key}"),
                id: self.id.clone(),
            });
        }
        Ok(Params {
            name: name.and_then(Raw::text),
            uri: uri.and_then(Raw::text),
            arguments,
            meta,
            request_id,
            progress_token,
        })
    }
}

/// Of `params`, what the guard looks at.
#[derive(Debug, Default)]
pub struct Params<'a> {
    pub name: Option<Cow<'a, str>>,
    pub uri: Option<Cow<'a, str>>,
    pub arguments: Option<Raw<'a>>,
    pub meta: Option<Raw<'a>>,
    pub request_id: Option<Raw<'a>>,
    pub progress_token: Option<Raw<'a>>,
}

#[cfg(test)]
mod tests;
