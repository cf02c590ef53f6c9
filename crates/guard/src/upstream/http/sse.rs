//! HTTP+SSE, the transport of 2024-11-05: one stream of events for all that the
//! server says, and a second address for what it is told.
//!
//! The first event names that address. It is the server's word, and the
//! headers that are sent there may hold a token: so it must be of the same
//! origin, and only its path is taken. A stream is a session of the server:
//! when it breaks, whoever waits is told at once, and a new one begins with
//! the handshake said again, as for a child that died.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::header::ACCEPT;
use hyper::{Method, StatusCode, Uri};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use url::{Position, Url};

use super::envelope::Envelope;
use super::{HttpLink, Messages, Remote, TAKEN_WITHIN, Tasks, is_stream};
use crate::log::log;
use crate::upstream::Pause;
use crate::wire::{EventKind, Events};

/// The answer comes by the stream, so a request that is not confirmed is not lost yet.
const CONFIRMED_WITHIN: Duration = Duration::from_secs(60);

/// A stream whose first event has come.
pub(super) struct Opened {
    endpoint: Uri,
    body: Incoming,
    events: Events,
}

/// A server that speaks this transport, and what it is to be told first.
pub(super) struct Old {
    opened: Opened,
    first: Bytes,
}

impl Old {
    pub(super) fn new(opened: Opened, first: Bytes) -> Self {
        Self { opened, first }
    }
}

impl Remote {
    /// Opens a stream, and learns where messages go.
    pub(super) async fn open(&self) -> Result<Opened, String> {
        tokio::time::timeout(TAKEN_WITHIN, self.open_stream())
            .await
            .unwrap_or_else(|_| Err("the server sends no `endpoint` event".to_owned()))
    }

    async fn open_stream(&self) -> Result<Opened, String> {
        let request = self
            .head(Method::GET, self.spec.uri.clone())
            .header(ACCEPT, "text/event-stream")
            .body(Full::default())
            .map_err(|error| error.to_string())?;
        let response = self.send(request).await?;
        if response.status() != StatusCode::OK {
            return Err(format!("the server said {}", response.status()));
        }
        if !is_stream(&response) {
            return Err("the server's answer is no stream of events".to_owned());
        }
        let mut events = Events::new(self.session.limits().bytes);
        let mut body = response.into_body();
        let first = loop {
            if let Some(event) = events.next_event() {
                break event.map_err(|error| error.to_string())?;
            }
            more(&mut body, &mut events).await?;
        };
        if first.kind != EventKind::Endpoint {
            return Err("the first event is not `endpoint`".to_owned());
        }
        Ok(Opened {
            endpoint: endpoint(&self.spec.uri, &first.data)?,
            body,
            events,
        })
    }

    /// Sends a request. Its answer comes by the stream.
    pub(super) async fn ask(&self, message: Bytes, envelope: &Envelope) {
        let Some((_, raw_id)) = &envelope.id else {
            return;
        };
        match tokio::time::timeout(CONFIRMED_WITHIN, self.post(message, envelope)).await {
            Ok(Ok(response)) if response.status().is_success() => {}
            Ok(Ok(response)) => {
                self.no_answer(raw_id, &format!("the server said {}", response.status()));
            }
            Ok(Err(because)) => {
                self.no_answer(raw_id, &format!("the server cannot be reached: {because}"));
            }
            Err(_) => log!(Warn, "not-confirmed", method = envelope.method),
        }
    }

    /// Keeps a stream open for as long as there are messages. The first is
    /// opened when there is something to say.
    pub(super) async fn keep_stream(
        self: &Arc<Self>,
        mut old: Option<Old>,
        mut messages: Messages,
        mut tasks: Tasks,
        mut stopped: watch::Receiver<bool>,
    ) {
        let mut pause = Pause::default();
        let mut begun = false;
        loop {
            let (opened, first) = match old.take() {
                Some(Old { opened, first }) => (opened, Some(first)),
                None if begun => (self.open_again(&mut pause).await, None),
                None => {
                    let Some(first) = messages.recv().await else {
                        return;
                    };
                    match self.open().await {
                        Ok(opened) => (opened, Some(first)),
                        Err(because) => {
                            self.unreachable(&first, &because);
                            // Who came meanwhile need not wait for the same.
                            while let Ok(message) = messages.try_recv() {
                                self.unreachable(&message, &because);
                            }
                            continue;
                        }
                    }
                }
            };
            self.known().endpoint = Some(opened.endpoint);
            if begun {
                let (queue, fresh) = mpsc::unbounded_channel();
                messages = fresh;
                self.session.restarted();
                self.session.server_up(Arc::new(HttpLink(queue)));
            }
            begun = true;
            let since = Instant::now();
            let because = tokio::select! {
                because = self.read(opened.body, opened.events) => because,
                _ = self.pass_on(first, &mut messages, &mut tasks, &mut stopped) => return,
            };
            // Nothing of the old stream is sent to the next.
            tasks = JoinSet::new();
            self.known().endpoint = None;
            pause.after(since.elapsed());
            self.session.server_down(pause.length());
            log!(
                Error,
                "stream-lost",
                host = self.spec.host(),
                because = because
            );
        }
    }

    async fn open_again(&self, pause: &mut Pause) -> Opened {
        loop {
            pause.rest().await;
            match self.open().await {
                Ok(opened) => return opened,
                Err(because) => {
                    log!(
                        Warn,
                        "stream-not-opened",
                        host = self.spec.host(),
                        because = because
                    );
                    self.session.server_down(pause.length());
                }
            }
        }
    }

    /// Passes on what the server says, until the stream ends; why it did.
    async fn read(&self, mut body: Incoming, mut events: Events) -> String {
        loop {
            while let Some(event) = events.next_event() {
                match event {
                    Ok(event) if event.kind == EventKind::Message && !event.data.is_empty() => {
                        self.session.from_server(&event.data);
                    }
                    Ok(_) => {}
                    Err(error) => return error.to_string(),
                }
            }
            self.session.flush();
            if let Err(because) = more(&mut body, &mut events).await {
                return because;
            }
        }
    }

    fn unreachable(&self, message: &[u8], because: &str) {
        if let Some(Envelope {
            id: Some((_, raw_id)),
            ..
        }) = Envelope::read(message, &self.session)
        {
            self.no_answer(&raw_id, &format!("the server cannot be reached: {because}"));
        }
    }
}

/// Waits for more of a stream.
async fn more(body: &mut Incoming, events: &mut Events) -> Result<(), String> {
    let frame = body.frame().await.ok_or("the stream ended")?;
    if let Some(data) = frame.map_err(|error| error.to_string())?.data_ref() {
        events.feed(data);
    }
    Ok(())
}

/// Where messages go, by what the server says and where it is.
fn endpoint(base: &Uri, said: &[u8]) -> Result<Uri, String> {
    let wrong = |because: &str| format!("the `endpoint` event is not an address: {because}");
    let said = std::str::from_utf8(said).map_err(|error| wrong(&error.to_string()))?;
    let own = Url::parse(&base.to_string()).map_err(|error| wrong(&error.to_string()))?;
    let named = own.join(said).map_err(|error| wrong(&error.to_string()))?;
    if named.origin() != own.origin() {
        return Err(format!(
            "the `endpoint` event leads elsewhere, to {}",
            named.origin().ascii_serialization()
        ));
    }
    let mut parts = base.clone().into_parts();
    let path = named[Position::BeforePath..Position::AfterQuery].parse();
    parts.path_and_query = Some(path.map_err(|_| wrong("not a path"))?);
    Uri::from_parts(parts).map_err(|error| wrong(&error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resolved(base: &str, said: &str) -> Result<String, String> {
        let base = base.parse().expect("an address");
        endpoint(&base, said.as_bytes()).map(|uri| uri.to_string())
    }

    #[test]
    fn messages_go_where_the_server_says() {
        for (base, said, expected) in [
            ("http://h:1/sse", "/m?id=1", "http://h:1/m?id=1"),
            ("http://h:1/a/sse?x=y", "m/?id=1", "http://h:1/a/m/?id=1"),
            ("http://h/sse", "?id=1", "http://h/sse?id=1"),
            ("http://h:80/sse", "http://h/m#x", "http://h:80/m"),
            ("https://H/sse", "https://h:443/m", "https://H/m"),
            ("http://u:p@h/sse", "http://h/m", "http://u:p@h/m"),
            ("http://h/sse", "/../../m", "http://h/m"),
            ("http://h/sse", "http://x:y@h/m", "http://h/m"),
        ] {
            assert_eq!(resolved(base, said).as_deref(), Ok(expected), "{said}");
        }
    }

    #[test]
    fn but_not_elsewhere() {
        for said in [
            "http://evil.example/m",
            "//evil.example/m",
            "\\\\evil.example/m",
            "/\\evil.example/m",
            "https://h/m",
            "http://h:81/m",
            "http://h@evil.example/m",
            "http://h.evil.example/m",
            "ht\ttp://evil.example",
            "file:///etc/passwd",
            "javascript:x",
            "http://[",
        ] {
            let because = resolved("http://h/sse", said).expect_err(said);
            assert!(because.contains("`endpoint`"), "{because}");
        }
        assert!(endpoint(&"http://h/".parse().expect("an address"), b"\xff").is_err());
    }
}
