//! One message from a client, and the answer to it.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::Poll;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use hyper::body::Incoming;
use hyper::header::{CONTENT_LENGTH, CONTENT_TYPE, HeaderMap, HeaderValue};
use hyper::{Request, Response, StatusCode};

use super::answer::{self, Rejected, SESSION};
use super::body::{Answer, Stream};
use super::service::{Endpoint, Service, accepts};
use super::sessions::{HttpSession, Sessions, new_id};
use super::streams::{First, PostSink, Streams};
use crate::awake::AWAKE;
use crate::session::{Origin, Session, Sink};
use crate::wire::{self, Code, Fault, Kind, Message, Parsed};

/// A client that takes longer to send its message is gone.
const BODY_WITHIN: Duration = Duration::from_secs(30);
/// The first revision without sessions.
const WITHOUT_SESSIONS: &str = "2026-07-28";
const META_VERSION: &str = "io.modelcontextprotocol/protocolVersion";

impl Service {
    pub(super) async fn post(
        &self,
        endpoint: &Endpoint,
        request: Request<Incoming>,
        subject: Option<Arc<str>>,
    ) -> Response<Answer> {
        let (parts, body) = request.into_parts();
        let headers = parts.headers;
        let frame = match self.read(&headers, body).await {
            Ok(frame) => frame,
            Err(response) => return *response,
        };
        let parsed = match wire::parse(&frame, &self.guard.limits) {
            Ok(parsed) => parsed,
            Err(fault) => return bad(&fault),
        };
        let first = match &parsed {
            Parsed::One(message) => Some(message),
            Parsed::Batch(_) => None,
        };
        match first.map(|message| revision(message, &headers, &endpoint.shared)) {
            Some(Err(response)) => *response,
            Some(Ok(Some(_))) => {
                self.stateless(endpoint, &frame, &parsed, subject, &headers)
                    .await
            }
            _ if first.is_some_and(|message| message.method == "initialize") => {
                self.begin(endpoint, &frame, &parsed, subject, &headers)
                    .await
            }
            _ => {
                let session = match self.named(endpoint, &headers, subject.as_ref()) {
                    Ok(session) => session,
                    Err(response) => return *response,
                };
                let asks = match &parsed {
                    Parsed::One(message) => message.kind == Kind::Request,
                    Parsed::Batch(parts) => parts.iter().any(|part| {
                        matches!(wire::parse(part.get().as_bytes(), &self.guard.limits),
                            Ok(Parsed::One(message)) if message.kind == Kind::Request)
                    }),
                };
                self.in_session(&session, &frame, &parsed, asks, subject)
                    .await
            }
        }
    }

    /// The body of a POST.
    pub(super) async fn read(
        &self,
        headers: &HeaderMap,
        body: Incoming,
    ) -> Result<Bytes, Rejected> {
        let json = headers
            .get(CONTENT_TYPE)
            .is_some_and(|kind| kind.as_bytes().starts_with(b"application/json"));
        if !json {
            let text = "the Content-Type is not application/json";
            let status = StatusCode::UNSUPPORTED_MEDIA_TYPE;
            return Err(Box::new(answer::error(
                status,
                None,
                Code::InvalidRequest,
                text,
            )));
        }
        let limit = self.guard.limits.bytes;
        let too_large = || {
            let text = Fault::TooLarge(limit).to_string();
            answer::error(
                StatusCode::PAYLOAD_TOO_LARGE,
                None,
                Code::InvalidRequest,
                &text,
            )
        };
        let said = headers
            .get(CONTENT_LENGTH)
            .and_then(|length| length.to_str().ok()?.parse::<u64>().ok());
        if said.is_some_and(|length| length > limit as u64) {
            return Err(Box::new(too_large()));
        }
        let mut body = std::pin::pin!(Limited::new(body, limit).collect());
        // Most bodies come with their heads: then no clock is asked.
        let body = match std::future::poll_fn(|cx| Poll::Ready(body.as_mut().poll(cx))).await {
            Poll::Ready(body) => Ok(body),
            Poll::Pending => tokio::time::timeout(BODY_WITHIN, body).await,
        };
        match body {
            Ok(Ok(body)) => Ok(body.to_bytes()),
            Ok(Err(error)) if error.is::<LengthLimitError>() => Err(Box::new(too_large())),
            Ok(Err(_)) => Err(Box::new(answer::empty(StatusCode::BAD_REQUEST))),
            Err(_) => Err(Box::new(answer::empty(StatusCode::REQUEST_TIMEOUT))),
        }
    }

    /// The first message of a client that wants a session.
    async fn begin(
        &self,
        endpoint: &Endpoint,
        frame: &Bytes,
        parsed: &Parsed<'_>,
        subject: Option<Arc<str>>,
        headers: &HeaderMap,
    ) -> Response<Answer> {
        if headers.contains_key(SESSION) {
            let text = "a session begins without an Mcp-Session-Id header";
            return answer::error(StatusCode::BAD_REQUEST, None, Code::InvalidRequest, text);
        }
        let streams = Arc::new(Streams::default());
        let session = self.open(endpoint, streams, subject.clone());
        let Some(id) = new_id() else {
            return answer::empty(StatusCode::INTERNAL_SERVER_ERROR);
        };
        if !self.sessions.insert(id.clone(), Arc::clone(&session)) {
            return answer::no_room();
        }
        let mut beginning = Beginning {
            sessions: &self.sessions,
            id,
            begun: false,
        };
        if let Err(response) = self.start_server(endpoint, &session) {
            return *response;
        }
        let mut response = self
            .in_session(&session, frame, parsed, true, subject)
            .await;
        // One who was refused gets no id. A server that says other things first has not refused.
        beginning.begun = session.session.is_greeted() || response.body().is_stream();
        if beginning.begun
            && let Ok(id) = HeaderValue::from_str(&beginning.id)
        {
            response.headers_mut().insert(SESSION, id);
        }
        response
    }

    /// A session, without its server as yet.
    pub(super) fn open(
        &self,
        endpoint: &Endpoint,
        streams: Arc<Streams>,
        subject: Option<Arc<str>>,
    ) -> Arc<HttpSession> {
        let upstream = &endpoint.upstream;
        let main: Arc<dyn Sink> = Arc::new(Arc::clone(&streams));
        let session = self.guard.session(upstream.server(), main, true, false);
        let name = Arc::clone(&upstream.name);
        Arc::new(HttpSession::new(session, streams, subject, name))
    }

    pub(super) fn start_server(
        &self,
        endpoint: &Endpoint,
        session: &HttpSession,
    ) -> Result<(), Rejected> {
        if self.guard.keeper.gate.is_closed() {
            return Err(Box::new(answer::no_room()));
        }
        let started = self
            .guard
            .start(&endpoint.upstream, &session.session, None)
            .map_err(|error| {
                let (status, text) = (StatusCode::BAD_GATEWAY, error.to_string());
                Box::new(answer::error(status, None, Code::Unavailable, &text))
            })?;
        session.begin(started);
        Ok(())
    }

    async fn in_session(
        &self,
        session: &Arc<HttpSession>,
        frame: &Bytes,
        parsed: &Parsed<'_>,
        asks: bool,
        subject: Option<Arc<str>>,
    ) -> Response<Answer> {
        let (sink, mut first) = session.streams.post(true);
        let origin = Origin {
            sink: Arc::clone(&sink) as Arc<dyn Sink>,
            subject,
        };
        session.session.parsed_from_client(frame, parsed, &origin);
        session.session.flush();
        AWAKE.stir(1);
        if !asks {
            // Only what is wrong with the message can have been said.
            return match first.try_recv() {
                Ok(First::Whole(error)) => answer::json(StatusCode::BAD_REQUEST, error),
                _ => {
                    sink.close();
                    answer::empty(StatusCode::ACCEPTED)
                }
            };
        }
        match first.await {
            Ok(First::Whole(body)) => answer::json(StatusCode::OK, body),
            Ok(First::Events(events)) => answer::events(Stream::new(events, None)),
            Ok(First::Nothing) | Err(_) => answer::empty(StatusCode::ACCEPTED),
        }
    }

    /// A request that says everything itself.
    async fn stateless(
        &self,
        endpoint: &Endpoint,
        frame: &Bytes,
        parsed: &Parsed<'_>,
        subject: Option<Arc<str>>,
        headers: &HeaderMap,
    ) -> Response<Answer> {
        let (sink, first) = endpoint.streams.post(false);
        let origin = Origin {
            sink: Arc::clone(&sink) as Arc<dyn Sink>,
            subject,
        };
        let leaving = Leaving {
            session: Arc::clone(&endpoint.shared),
            sink: Arc::clone(&sink),
        };
        endpoint.shared.parsed_from_client(frame, parsed, &origin);
        endpoint.shared.flush();
        AWAKE.stir(1);
        if matches!(parsed, Parsed::One(message) if message.kind != Kind::Request) {
            sink.close();
            return answer::empty(StatusCode::ACCEPTED);
        }
        match first.await {
            Ok(First::Whole(body)) => answer::json(status_of(&body), body),
            Ok(First::Events(_)) if !accepts(headers, "text/event-stream") => {
                answer::empty(StatusCode::NOT_ACCEPTABLE)
            }
            Ok(First::Events(events)) => {
                answer::events(Stream::new(events, Some(Box::new(leaving))))
            }
            Ok(First::Nothing) | Err(_) => answer::empty(StatusCode::ACCEPTED),
        }
    }
}

/// A session whose client has not heard of it yet. If it never does, because
/// the handshake fails or it leaves before, the server goes.
struct Beginning<'a> {
    sessions: &'a Sessions,
    id: String,
    begun: bool,
}

impl Drop for Beginning<'_> {
    fn drop(&mut self) {
        if self.begun {
            return;
        }
        if let Some(session) = self.sessions.remove(&self.id) {
            session.session.close();
            tokio::spawn(async move { session.stop().await });
        }
    }
}

/// Where there are no sessions, a client that leaves has cancelled its request.
struct Leaving {
    session: Arc<Session>,
    sink: Arc<PostSink>,
}

impl Drop for Leaving {
    fn drop(&mut self) {
        if !self.sink.ended.load(Ordering::Acquire) {
            let sink: Arc<dyn Sink> = Arc::clone(&self.sink) as Arc<dyn Sink>;
            self.session.left(&sink);
        }
    }
}

/// The revision, if it is one without sessions; then headers and body must agree.
fn revision(
    message: &Message<'_>,
    headers: &HeaderMap,
    session: &Session,
) -> Result<Option<String>, Rejected> {
    let params = message.params().map_err(|fault| Box::new(bad(&fault)))?;
    let header = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let said = header("mcp-protocol-version");
    let meta: Option<String> = params.meta.and_then(|meta| {
        let ([version], _) = wire::fields(meta.get(), [META_VERSION]).ok()?;
        serde_json::from_str(version?.get()).ok()
    });
    // Revisions are dates: they compare as text.
    if meta.is_none() && said.is_none_or(|said| said < WITHOUT_SESSIONS) {
        return Ok(None);
    }
    let id = message.raw_id.map(wire::Raw::get);
    let mismatch = |what: String| {
        let text = format!("Header mismatch: {what}");
        let response = answer::error(StatusCode::BAD_REQUEST, id, Code::HeaderMismatch, &text);
        Err(Box::new(response))
    };
    if message.kind != Kind::Request {
        return Ok(meta.or_else(|| said.map(str::to_owned)));
    }
    match (said, &meta) {
        (Some(said), Some(meta)) if said == meta => {}
        _ => return mismatch("MCP-Protocol-Version is not the version in _meta".to_owned()),
    }
    if header("mcp-method") != Some(&*message.method) {
        return mismatch("Mcp-Method is not the method".to_owned());
    }
    if matches!(
        &*message.method,
        "tools/call" | "resources/read" | "prompts/get"
    ) {
        let body = params.name.as_deref().or(params.uri.as_deref());
        let named = header("mcp-name").and_then(wire::from_header);
        if named.is_none() || named.as_deref() != body {
            return mismatch("Mcp-Name is not the name or uri".to_owned());
        }
    }
    if let ("tools/call", Some(name)) = (&*message.method, &params.name) {
        let mirrored = session.mirrored(name);
        if !mirrored.is_empty() {
            let arguments = params.arguments.map_or("null", wire::Raw::get);
            let arguments = serde_json::from_str(arguments).unwrap_or_default();
            if let Some(wrong) = mirrored
                .iter()
                .find(|one| !one.agrees(header(&one.header), &arguments))
            {
                return mismatch(format!("{} is not the argument", wrong.header));
            }
        }
    }
    Ok(meta)
}

/// Without sessions, the status tells some errors apart.
fn status_of(body: &[u8]) -> StatusCode {
    #[derive(serde::Deserialize)]
    struct Error {
        code: i64,
    }
    let error = std::str::from_utf8(body).ok().and_then(|text| {
        let ([error], _) = wire::fields(text, ["error"]).ok()?;
        serde_json::from_str(error?.get()).ok()
    });
    match error {
        Some(Error { code: -32601 }) => StatusCode::NOT_FOUND,
        Some(Error {
            code: -32022..=-32020 | -32600 | -32700,
        }) => StatusCode::BAD_REQUEST,
        Some(Error { code: -32010 }) => StatusCode::BAD_GATEWAY,
        Some(Error { code: -32011 }) => StatusCode::SERVICE_UNAVAILABLE,
        _ => StatusCode::OK,
    }
}

pub(super) fn bad(fault: &Fault) -> Response<Answer> {
    let code = match fault {
        Fault::Syntax(_) => Code::Parse,
        _ => Code::InvalidRequest,
    };
    answer::error(StatusCode::BAD_REQUEST, None, code, &fault.to_string())
}
