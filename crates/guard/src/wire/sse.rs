//! Server-sent events: the stream format of HTTP answers.

use bytes::{Buf as _, Bytes, BytesMut};

use super::LineTooLong;

/// What an event is, by its name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EventKind {
    #[default]
    Message,
    /// Where messages are to be sent, in the transport of 2024-11-05.
    Endpoint,
    Other,
}

/// One event.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Event {
    pub kind: EventKind,
    pub id: Option<String>,
    pub data: Bytes,
}

/// Takes a stream apart. Holds at most one event, bounded by the limit.
#[derive(Debug)]
pub struct Events {
    buffer: BytesMut,
    looked: usize,
    data: BytesMut,
    has_data: bool,
    kind: EventKind,
    id: Option<String>,
    limit: usize,
    /// The last byte was a carriage return: a line feed now belongs to it.
    after_cr: bool,
}

impl Events {
    pub fn new(limit: usize) -> Self {
        Self {
            buffer: BytesMut::new(),
            looked: 0,
            data: BytesMut::new(),
            has_data: false,
            kind: EventKind::Message,
            id: None,
            limit,
            after_cr: false,
        }
    }

    pub fn feed(&mut self, bytes: &[u8]) {
        self.buffer.extend_from_slice(bytes);
    }

    /// The next event, if it is complete.
    pub fn next_event(&mut self) -> Option<Result<Event, LineTooLong>> {
        loop {
            if self.after_cr && !self.buffer.is_empty() {
                self.after_cr = false;
                if self.buffer[0] == b'\n' {
                    self.buffer.advance(1);
                }
            }
            let Some(found) = memchr::memchr2(b'\n', b'\r', &self.buffer[self.looked..]) else {
                self.looked = self.buffer.len();
                if self.buffer.len() + self.data.len() > self.limit {
                    return Some(Err(LineTooLong { limit: self.limit }));
                }
                return None;
            };
            let mut line = self.buffer.split_to(self.looked + found + 1);
            self.looked = 0;
            self.after_cr = line.last() == Some(&b'\r');
            line.truncate(line.len() - 1);
            if line.is_empty() {
                let id = self.id.clone();
                let data = self.data.split().freeze();
                let kind = std::mem::take(&mut self.kind);
                if std::mem::take(&mut self.has_data) {
                    return Some(Ok(Event { kind, id, data }));
                }
                continue;
            }
            self.field(&line);
            if self.data.len() > self.limit {
                return Some(Err(LineTooLong { limit: self.limit }));
            }
        }
    }

    fn field(&mut self, line: &[u8]) {
        let (name, value) = match memchr::memchr(b':', line) {
            None => (line, &[][..]),
            Some(at) => {
                let value = &line[at + 1..];
                (&line[..at], value.strip_prefix(b" ").unwrap_or(value))
            }
        };
        match name {
            b"data" => {
                if std::mem::replace(&mut self.has_data, true) {
                    self.data.extend_from_slice(b"\n");
                }
                self.data.extend_from_slice(value);
            }
            b"event" => {
                self.kind = match value {
                    b"message" | b"" => EventKind::Message,
                    b"endpoint" => EventKind::Endpoint,
                    _ => EventKind::Other,
                };
            }
            b"id" if !value.contains(&0) => {
                self.id = std::str::from_utf8(value).ok().map(str::to_owned);
            }
            _ => {}
        }
    }
}

/// Tells a client of 2024-11-05 where to send its messages.
pub fn encode_endpoint(path: &str) -> Bytes {
    format!("event: endpoint\ndata: {path}\n\n").into()
}

/// A message as an event. One of several lines becomes several data lines.
pub fn encode_event(id: Option<&str>, data: &[u8]) -> Bytes {
    let mut out = Vec::with_capacity(data.len() + 32);
    if let Some(id) = id {
        out.extend_from_slice(b"id: ");
        out.extend_from_slice(id.as_bytes());
        out.push(b'\n');
    }
    out.extend_from_slice(b"event: message\n");
    // Outside of strings a line break in JSON is space, and inside there is none.
    for line in data.split(|byte| matches!(byte, b'\n' | b'\r')) {
        if !line.is_empty() {
            out.extend_from_slice(b"data: ");
            out.extend_from_slice(line);
            out.push(b'\n');
        }
    }
    out.push(b'\n');
    out.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_come_whole_however_they_are_cut() {
        let text = b": hello\n\nid: 1\nevent: message\ndata: {\"a\":\ndata: 1}\n\nid:2\r\ndata:x\r\n\r\nretry: 1\rdata\r\rid: 3\n\n";
        for size in 1..text.len() {
            let mut events = Events::new(100);
            let mut got = Vec::new();
            for chunk in text.chunks(size) {
                events.feed(chunk);
                while let Some(event) = events.next_event() {
                    let event = event.expect("short");
                    got.push((event.id, String::from_utf8_lossy(&event.data).into_owned()));
                }
            }
            let id = |id: &str| Some(id.to_owned());
            assert_eq!(
                got,
                [
                    (id("1"), "{\"a\":\n1}".to_owned()),
                    (id("2"), "x".to_owned()),
                    (id("2"), String::new())
                ]
            );
        }
    }

    #[test]
    fn events_have_kinds_and_the_name_of_one_is_not_that_of_the_next() {
        let mut events = Events::new(100);
        events.feed(&encode_endpoint("/message?sessionId=1"));
        events.feed(b"data: a\n\nevent: ping\n\ndata: b\n\nevent: ping\ndata: c\n\n");
        events.feed(&encode_event(None, b"d"));
        let got: Vec<_> = std::iter::from_fn(|| events.next_event())
            .map(|event| event.map(|event| (event.kind, event.data)))
            .collect::<Result<_, _>>()
            .expect("short");
        let expected: [(EventKind, &[u8]); 5] = [
            (EventKind::Endpoint, b"/message?sessionId=1"),
            (EventKind::Message, b"a"),
            (EventKind::Message, b"b"),
            (EventKind::Other, b"c"),
            (EventKind::Message, b"d"),
        ];
        assert_eq!(got.len(), expected.len());
        for (got, expected) in got.iter().zip(expected) {
            assert_eq!((got.0, &got.1[..]), expected);
        }
    }

    #[test]
    fn what_is_written_is_read() {
        let data = b"{\"a\":\"\\n\"}";
        let mut events = Events::new(100);
        events.feed(&encode_event(Some("7-1"), data));
        let event = events.next_event().expect("one").expect("short");
        assert_eq!(
            (event.id.as_deref(), &event.data[..]),
            (Some("7-1"), &data[..])
        );
    }

    #[test]
    fn an_event_without_end_is_refused() {
        let mut events = Events::new(10);
        events.feed(b"data: 12345678901234567890");
        assert!(matches!(events.next_event(), Some(Err(_))));
    }
}
