//! What a message is, found by looking at its envelope.
//!
//! A key that stands twice means one thing to one parser and another to the
//! next: what the guard checked would not be what the server does. So the keys
//! that decide anything must stand once.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;
use thiserror::Error;

use super::Id;

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
    Batch(Vec<&'a RawValue>),
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
    pub raw_id: Option<&'a RawValue>,
    pub method: Cow<'a, str>,
    pub params: Option<&'a RawValue>,
    pub result: Option<&'a RawValue>,
}

/// Reads the envelope of `bytes`.
pub fn parse<'a>(bytes: &'a [u8], limits: &Limits) -> Result<Parsed<'a>, Fault> {
    if bytes.len() > limits.bytes {
        return Err(Fault::TooLarge(limits.bytes));
    }
    if deeper_than(bytes, limits.depth) {
        return Err(Fault::TooDeep(limits.depth));
    }
    let text = std::str::from_utf8(bytes)
        .map_err(|error| Fault::Syntax(format!("not UTF-8 after byte {}", error.valid_up_to())))?;
    match bytes.iter().find(|byte| !byte.is_ascii_whitespace()) {
        Some(b'{') => Envelope::read(text)?.classify().map(Parsed::One),
        Some(b'[') => batch(text, limits.batch).map(Parsed::Batch),
        _ => Err(Fault::Syntax("expected an object".to_owned())),
    }
}

/// Counts brackets outside of strings. The parsers behind the guard may recurse.
fn deeper_than(bytes: &[u8], limit: usize) -> bool {
    // Each level needs two bytes.
    if bytes.len() <= limit * 2 {
        return false;
    }
    let mut depth = 0_usize;
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        match byte {
            b'{' | b'[' => {
                depth += 1;
                if depth > limit {
                    return true;
                }
            }
            b'}' | b']' => depth = depth.saturating_sub(1),
            b'"' => at = end_of_string(bytes, at + 1),
            _ => {}
        }
        at += 1;
    }
    false
}

/// The closing quote of the string whose text begins at `at`.
fn end_of_string(bytes: &[u8], mut at: usize) -> usize {
    while let Some(found) = bytes
        .get(at..)
        .and_then(|rest| memchr::memchr2(b'"', b'\\', rest))
    {
        at += found;
        if bytes[at] == b'"' {
            return at;
        }
        at += 2;
    }
    bytes.len()
}

fn batch(text: &str, limit: usize) -> Result<Vec<&RawValue>, Fault> {
    struct Parts(usize);
    impl<'de> Visitor<'de> for Parts {
        type Value = (Vec<&'de RawValue>, bool);
        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an array")
        }
        fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
            let mut parts = Vec::new();
            let mut over = false;
            while let Some(part) = seq.next_element::<&'de RawValue>()? {
                if parts.len() == self.0 {
                    over = true;
                    while seq.next_element::<IgnoredAny>()?.is_some() {}
                    break;
                }
                parts.push(part);
            }
            Ok((parts, over))
        }
    }
    let mut de = serde_json::Deserializer::from_str(text);
    let (parts, over) = (&mut de)
        .deserialize_seq(Parts(limit))
        .and_then(|parts| de.end().map(|()| parts))
        .map_err(|error| Fault::Syntax(error.to_string()))?;
    if over {
        return Err(Fault::TooMany(limit));
    }
    if parts.is_empty() {
        return Err(Fault::EmptyBatch);
    }
    Ok(parts)
}

#[derive(Default)]
struct Envelope<'a> {
    id: Option<&'a RawValue>,
    method: Option<&'a RawValue>,
    params: Option<&'a RawValue>,
    result: Option<&'a RawValue>,
    error: Option<&'a RawValue>,
}

impl<'a> Envelope<'a> {
    fn read(text: &'a str) -> Result<Self, Fault> {
        let ([version, id, method, params, result, error], twice) = fields(
            text,
            ["jsonrpc", "id", "method", "params", "result", "error"],
        )?;
        if let Some(key) = twice {
            return Err(Fault::Duplicate {
                key: key.to_owned(),
                id: (key != "id").then(|| id.and_then(Id::read)).flatten(),
            });
        }
        if version.is_none_or(|version| version.get() != "\"2.0\"") {
            return Err(Fault::Shape("`jsonrpc` is not \"2.0\""));
        }
        Ok(Self {
            id,
            method,
            params,
            result,
            error,
        })
    }

    fn classify(self) -> Result<Message<'a>, Fault> {
        let id = self.id.and_then(Id::read);
        let (kind, method) = match self.method {
            Some(method) => {
                let method: Cow<'a, str> =
                    borrowed_text(method).ok_or(Fault::Shape("`method` is not a string"))?;
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
            result: self.result,
        })
    }
}

impl<'a> Message<'a> {
    /// Parameters that decide something, or the name of one that stands twice.
    pub fn params(&self) -> Result<Params<'a>, Fault> {
        let Some(params) = self.params.filter(|params| params.get().starts_with('{')) else {
            return Ok(Params::default());
        };
        let ([name, uri, arguments, meta, request_id, progress_token], twice) = fields(
            params.get(),
            [
                "name",
                "uri",
                "arguments",
                "_meta",
                "requestId",
                "progressToken",
            ],
        )?;
        if let Some(key) = twice {
            return Err(Fault::Duplicate {
                key: format!("params.{key}"),
                id: self.id.clone(),
            });
        }
        Ok(Params {
            name: name.and_then(borrowed_text),
            uri: uri.and_then(borrowed_text),
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
    pub arguments: Option<&'a RawValue>,
    pub meta: Option<&'a RawValue>,
    pub request_id: Option<&'a RawValue>,
    pub progress_token: Option<&'a RawValue>,
}

fn borrowed_text(raw: &RawValue) -> Option<Cow<'_, str>> {
    let text = raw.get();
    let inner = text.strip_prefix('"')?.strip_suffix('"')?;
    if memchr::memchr(b'\\', inner.as_bytes()).is_none() {
        return Some(Cow::Borrowed(inner));
    }
    serde_json::from_str::<String>(text).ok().map(Cow::Owned)
}

/// The values of some keys of an object, and one of them that stands twice.
pub fn fields<'a, const N: usize>(
    text: &'a str,
    names: [&'static str; N],
) -> Result<([Option<&'a RawValue>; N], Option<&'static str>), Fault> {
    struct Wanted<const N: usize>([&'static str; N]);
    impl<'de, const N: usize> Visitor<'de> for Wanted<N> {
        type Value = ([Option<&'de RawValue>; N], Option<&'static str>);
        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an object")
        }
        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
            let mut values = [None; N];
            let mut twice = None;
            while let Some(Key(key)) = map.next_key()? {
                match self.0.iter().position(|name| *name == key) {
                    None => {
                        map.next_value::<IgnoredAny>()?;
                    }
                    Some(at) => {
                        let value = map.next_value::<&'de RawValue>()?;
                        if values[at].replace(value).is_some() {
                            twice = Some(self.0[at]);
                        }
                    }
                }
            }
            Ok((values, twice))
        }
    }
    let mut de = serde_json::Deserializer::from_str(text);
    (&mut de)
        .deserialize_map(Wanted(names))
        .and_then(|found| de.end().map(|()| found))
        .map_err(|error| Fault::Syntax(error.to_string()))
}

/// A key, copied only if it is written with escapes.
pub(super) struct Key<'a>(pub(super) Cow<'a, str>);

impl<'de> Deserialize<'de> for Key<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Text;
        impl<'de> Visitor<'de> for Text {
            type Value = Key<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a key")
            }
            fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
                Ok(Key(Cow::Borrowed(text)))
            }
            fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
                Ok(Key(Cow::Owned(text.to_owned())))
            }
        }
        deserializer.deserialize_str(Text)
    }
}

#[cfg(test)]
mod tests;
