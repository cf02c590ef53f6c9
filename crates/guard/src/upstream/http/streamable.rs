//! Streamable HTTP: every message is a POST to one address, and answers come
//! back as JSON or as a stream of events. A stream that breaks is taken up
//! again where the server gives its events ids; otherwise the caller is told
//! that the end of its call is not known.

use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full, LengthLimitError, Limited};
use hyper::body::Incoming;
use hyper::header::{ACCEPT, CONTENT_TYPE, HeaderName};
use hyper::{Method, Response, StatusCode};

use super::envelope::Envelope;
use super::sse::Old;
use super::{Remote, SESSION, TAKEN_WITHIN, VERSION, is_stream};
use crate::wire::{self, EventKind, Events, Id, Kind, Message, Parsed};

const METHOD: HeaderName = HeaderName::from_static("mcp-method");
const NAME: HeaderName = HeaderName::from_static("mcp-name");
const LAST_EVENT: HeaderName = HeaderName::from_static("last-event-id");
const RESUME_ATTEMPTS: u32 = 5;

impl Remote {
    /// Sends one message to where the server takes them.
    pub(super) async fn post(
        &self,
        message: Bytes,
        envelope: &Envelope,
    ) -> Result<Response<Incoming>, String> {
        let endpoint = self.known().endpoint.clone();
        let mut request = self
            .head(
                Method::POST,
                endpoint.unwrap_or_else(|| self.spec.uri.clone()),
            )
            .header(CONTENT_TYPE, "application/json")
            .header(ACCEPT, "application/json, text/event-stream");
        if let Some(version) = &envelope.version {
            request = request
                .header(VERSION, version)
                .header(METHOD, &envelope.method);
            if let Some(name) = &envelope.name {
                request = request.header(NAME, wire::header_value(name));
            }
            for (name, value) in &envelope.mirrored {
                request = request.header(name, value);
            }
        }
        let request = request
            .body(Full::new(message))
            .map_err(|error| error.to_string())?;
        self.send(request).await
    }

    /// One request from its question to its answer, or to where that is awaited.
    pub(super) async fn request(&self, message: Bytes, mut envelope: Envelope) -> Option<Old> {
        if self.known().endpoint.is_some() {
            self.ask(message, &envelope).await;
            return None;
        }
        if envelope.mirrors() {
            // A call that comes before the list of tools would lack headers, and be refused.
            self.session.tools_told(TAKEN_WITHIN).await;
            envelope.mirror(&message, &self.session);
        }
        let (id, raw_id) = envelope.id.as_ref()?;
        let response = match self.post(message.clone(), &envelope).await {
            Ok(response) => response,
            Err(because) => {
                self.no_answer(raw_id, &format!("the server cannot be reached: {because}"));
                return None;
            }
        };
        if let Some(session) = response.headers().get(SESSION) {
            self.known().session = Some(session.clone());
        }
        let status = response.status();
        if is_stream(&response) {
            self.stream(response, &envelope, raw_id).await;
            return None;
        }
        match self.body(response).await {
            Ok(body) if self.answers(&body, id) => {
                self.learn(&envelope, &body);
                self.session.from_server(&body);
                self.session.flush();
            }
            Ok(_) if envelope.method == "initialize" && status.is_client_error() => {
                match self.open().await {
                    Ok(opened) => return Some(Old::new(opened, message)),
                    Err(because) => {
                        let text = format!(
                            "the server said {status}, and HTTP+SSE, the transport of 2024-11-05, does not work either: {because}"
                        );
                        self.no_answer(raw_id, &text);
                    }
                }
            }
            Ok(_) if status == StatusCode::NOT_FOUND => {
                self.no_answer(raw_id, "the server has ended the session; connect again");
            }
            Ok(_) => self.no_answer(raw_id, &format!("the server said {status}")),
            Err(because) => self.no_answer(raw_id, &because),
        }
        None
    }

    async fn body(&self, response: Response<Incoming>) -> Result<Bytes, String> {
        let limit = self.session.limits().bytes;
        let body = Limited::new(response.into_body(), limit).collect().await;
        body.map(http_body_util::Collected::to_bytes)
            .map_err(|error| match error.downcast_ref::<LengthLimitError>() {
                Some(_) => format!("the server's answer is larger than {limit} bytes"),
                None => format!("the server's answer broke off: {error}"),
            })
    }

    /// Events up to the answer.
    async fn stream(&self, response: Response<Incoming>, envelope: &Envelope, raw_id: &str) {
        let mut last = None;
        let mut response = Some(response);
        for attempt in 0..=RESUME_ATTEMPTS {
            if let Some(response) = response.take() {
                match self.events(response, &mut last, Some(envelope)).await {
                    Ok(true) => return,
                    Ok(false) => {}
                    Err(because) => return self.no_answer(raw_id, &because),
                }
            }
            let Some(seen) = &last else { break };
            tokio::time::sleep(Duration::from_millis(100 << attempt)).await;
            response = self.get(Some(seen)).await;
        }
        self.no_answer(
            raw_id,
            "the server's answer broke off; the call may or may not have taken effect",
        );
    }

    /// Passes events on; true when the answer was among them.
    async fn events(
        &self,
        response: Response<Incoming>,
        last: &mut Option<String>,
        wanted: Option<&Envelope>,
    ) -> Result<bool, String> {
        let mut events = Events::new(self.session.limits().bytes);
        let mut body = response.into_body();
        while let Some(frame) = body.frame().await {
            let Ok(frame) = frame else { return Ok(false) };
            let Some(data) = frame.data_ref() else {
                continue;
            };
            events.feed(data);
            while let Some(event) = events.next_event() {
                let event = event.map_err(|error| error.to_string())?;
                if event.id.is_some() {
                    *last = event.id;
                }
                if event.data.is_empty() || event.kind != EventKind::Message {
                    continue;
                }
                let done = wanted.filter(|envelope| {
                    let id = envelope.id.as_ref().map(|(id, _)| id);
                    id.is_some_and(|id| self.answers(&event.data, id))
                });
                if let Some(envelope) = done {
                    self.learn(envelope, &event.data);
                }
                self.session.from_server(&event.data);
                self.session.flush();
                if done.is_some() {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }

    /// What the server says of its own accord, where it has such a stream.
    pub(super) async fn listen(&self) {
        let mut last = None;
        let mut pause = Duration::from_millis(500);
        while let Some(response) = self.get(last.as_deref()).await {
            if self.events(response, &mut last, None).await.is_ok() {
                pause = Duration::from_millis(500);
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(Duration::from_secs(30));
        }
    }

    async fn get(&self, last: Option<&str>) -> Option<Response<Incoming>> {
        let mut request = self
            .head(Method::GET, self.spec.uri.clone())
            .header(ACCEPT, "text/event-stream");
        if let Some(last) = last {
            request = request.header(LAST_EVENT, last);
        }
        let request = request.body(Full::default()).ok()?;
        let response = self.client.request(request).await.ok()?;
        (response.status() == StatusCode::OK).then_some(response)
    }

    /// Ends the session, if there is one.
    pub(super) async fn leave(&self) {
        if self.known().session.is_none() {
            return;
        }
        if let Ok(request) = self
            .head(Method::DELETE, self.spec.uri.clone())
            .body(Full::default())
        {
            let _ =
                tokio::time::timeout(Duration::from_secs(2), self.client.request(request)).await;
        }
    }

    fn answers(&self, body: &[u8], id: &Id) -> bool {
        matches!(
            wire::parse(body, self.session.limits()),
            Ok(Parsed::One(Message { kind: Kind::Response, id: Some(ref answered), .. })) if answered == id
        )
    }

    /// The revision that the handshake agreed on goes into every later request.
    fn learn(&self, envelope: &Envelope, body: &[u8]) {
        if envelope.method != "initialize" {
            return;
        }
        if let Ok(Parsed::One(message)) = wire::parse(body, self.session.limits())
            && let Some(result) = message.result
            && let Ok(([Some(version)], _)) = wire::fields(result.get(), ["protocolVersion"])
            && let Ok(version) = serde_json::from_str::<String>(version.get())
        {
            self.known().version = version.parse().ok();
        }
    }
}
