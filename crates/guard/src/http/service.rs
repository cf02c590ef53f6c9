//! From a request to its server.

use std::sync::Arc;
use std::time::Duration;

use hyper::body::Incoming;
use hyper::header::{ACCEPT, ALLOW, HeaderValue};
use hyper::{Method, Request, Response, StatusCode};

use super::access::Access;
use super::answer::{self, Rejected, SESSION};
use super::body::{Answer, Stream};
use super::sessions::{HttpSession, Sessions};
use super::streams::Streams;
use crate::log::log;
use crate::run::{Guard, GuardError};
use crate::servers::Upstream;
use crate::session::{Session, Sink};
use crate::upstream::{StartError, Supervised};
use crate::wire::Code;

/// One server and its address.
pub(super) struct Endpoint {
    pub(super) upstream: Upstream,
    /// For clients of revisions without sessions: they share it.
    pub(super) shared: Arc<Session>,
    pub(super) streams: Arc<Streams>,
}

/// Everything behind one listening address.
pub(crate) struct Service {
    pub(super) guard: Guard,
    pub(super) access: Access,
    pub(super) endpoints: Vec<Endpoint>,
    pub(super) sessions: Sessions,
    supervised: std::sync::Mutex<Vec<Supervised>>,
}

/// Which transport comes in where.
#[derive(Clone, Copy)]
enum Door {
    Mcp,
    /// The stream of 2024-11-05, and where its clients send their messages.
    Sse,
    Message,
}

impl Door {
    fn of(last: &str) -> Option<Self> {
        match last {
            "" | "mcp" => Some(Self::Mcp),
            "sse" => Some(Self::Sse),
            "message" => Some(Self::Message),
            _ => None,
        }
    }
}

/// One that dies this soon has not started.
const STARTED_AFTER: Duration = Duration::from_millis(300);
const SWEEP_EVERY: Duration = Duration::from_secs(60);

impl Service {
    /// Starts all servers. If one does not start, the others are ended and it is named.
    pub(crate) async fn start(
        guard: Guard,
        access: Access,
        upstreams: &[Upstream],
    ) -> Result<Self, GuardError> {
        let mut endpoints = Vec::new();
        let mut supervised = Vec::new();
        let mut failed = None;
        for upstream in upstreams {
            let streams = Arc::new(Streams::default());
            let main: Arc<dyn Sink> = Arc::new(Arc::clone(&streams));
            let shared = guard.session(upstream.server(), main, true, true);
            match guard.start(upstream, &shared, None) {
                Ok(running) => supervised.push(running),
                Err(error) => {
                    failed = Some(error);
                    break;
                }
            }
            endpoints.push(Endpoint {
                upstream: upstream.clone(),
                shared,
                streams,
            });
        }
        if failed.is_none() {
            tokio::time::sleep(STARTED_AFTER).await;
            let dead = endpoints.iter().find(|endpoint| !endpoint.shared.is_up());
            failed = dead.map(|endpoint| GuardError::Start {
                server: endpoint.upstream.name.as_ref().into(),
                source: StartError::EndedAtOnce,
            });
        }
        if let Some(error) = failed {
            stop_all(supervised).await;
            return Err(error);
        }
        Ok(Self {
            guard,
            access,
            endpoints,
            sessions: Sessions::default(),
            supervised: std::sync::Mutex::new(supervised),
        })
    }

    pub(super) async fn handle(self: Arc<Self>, request: Request<Incoming>) -> Response<Answer> {
        let subject = match self.access.check(request.headers()) {
            Ok(subject) => subject,
            Err(denied) => {
                log!(
                    Warn,
                    "denied",
                    status = denied.status.as_u16(),
                    because = denied.because
                );
                return answer::denied(&denied);
            }
        };
        let Some((endpoint, door)) = self.endpoint(request.uri().path()) else {
            let names: Vec<&str> = self
                .endpoints
                .iter()
                .map(|endpoint| &*endpoint.upstream.name)
                .collect();
            let text = format!("no server here; there are /{}", names.join(", /"));
            return answer::error(StatusCode::NOT_FOUND, None, Code::InvalidRequest, &text);
        };
        match (door, request.method()) {
            (Door::Mcp, &Method::POST) => self.post(endpoint, request, subject).await,
            (Door::Mcp, &Method::GET) => self.listen(endpoint, &request, subject.as_ref()),
            (Door::Mcp, &Method::DELETE) => self.delete(endpoint, &request, subject.as_ref()),
            (Door::Sse, &Method::GET) => self.open_stream(endpoint, &request, subject),
            (Door::Message, &Method::POST) => self.message(endpoint, request, subject).await,
            (door, _) => {
                let mut response = answer::empty(StatusCode::METHOD_NOT_ALLOWED);
                let allowed = match door {
                    Door::Mcp => "POST, GET, DELETE",
                    Door::Sse => "GET",
                    Door::Message => "POST",
                };
                response
                    .headers_mut()
                    .insert(ALLOW, HeaderValue::from_static(allowed));
                response
            }
        }
    }

    /// `/NAME` or `/NAME/mcp`, `/NAME/sse` and `/NAME/message`; with one server
    /// also `/`, `/mcp`, `/sse` and `/message`.
    fn endpoint(&self, path: &str) -> Option<(&Endpoint, Door)> {
        let path = path.strip_prefix('/')?;
        let (name, last) = path.rsplit_once('/').unwrap_or((path, ""));
        let named = |name: &str| {
            let mut all = self.endpoints.iter();
            all.find(|endpoint| *endpoint.upstream.name == *name)
        };
        if let (Some(endpoint), Some(door)) = (named(name), Door::of(last)) {
            return Some((endpoint, door));
        }
        match self.endpoints.as_slice() {
            [only] => Some((only, Door::of(path)?)),
            _ => None,
        }
    }

    /// The session that a request names.
    pub(super) fn named(
        &self,
        endpoint: &Endpoint,
        request: &hyper::HeaderMap,
        subject: Option<&Arc<str>>,
    ) -> Result<Arc<HttpSession>, Rejected> {
        let Some(id) = request.get(SESSION) else {
            let text = "the Mcp-Session-Id header is missing";
            let response = answer::error(StatusCode::BAD_REQUEST, None, Code::InvalidRequest, text);
            return Err(Box::new(response));
        };
        id.to_str()
            .ok()
            .and_then(|id| {
                let name = &endpoint.upstream.name;
                self.sessions.find(id, subject, name, false)
            })
            .ok_or_else(|| Box::new(answer::no_session()))
    }

    fn listen(
        &self,
        endpoint: &Endpoint,
        request: &Request<Incoming>,
        subject: Option<&Arc<str>>,
    ) -> Response<Answer> {
        let headers = request.headers();
        if !accepts(headers, "text/event-stream") {
            return answer::empty(StatusCode::NOT_ACCEPTABLE);
        }
        // Revisions without sessions have no such stream.
        if !headers.contains_key(SESSION) {
            let text = "no stream without a session: POST `initialize` first (HTTP+SSE, the transport of 2024-11-05, is at `/sse`)";
            return answer::error(
                StatusCode::METHOD_NOT_ALLOWED,
                None,
                Code::InvalidRequest,
                text,
            );
        }
        let session = match self.named(endpoint, headers, subject) {
            Ok(session) => session,
            Err(response) => return *response,
        };
        let last = headers.get("last-event-id").and_then(|id| id.to_str().ok());
        match session.streams.listen(last) {
            Some(events) => answer::events(Stream::new(events, None)),
            None => answer::error(
                StatusCode::CONFLICT,
                None,
                Code::InvalidRequest,
                "this stream is in use, or there is none",
            ),
        }
    }

    fn delete(
        &self,
        endpoint: &Endpoint,
        request: &Request<Incoming>,
        subject: Option<&Arc<str>>,
    ) -> Response<Answer> {
        if let Err(response) = self.named(endpoint, request.headers(), subject) {
            return *response;
        }
        if let Some(id) = request
            .headers()
            .get(SESSION)
            .and_then(|id| id.to_str().ok())
        {
            self.end(id);
        }
        answer::empty(StatusCode::NO_CONTENT)
    }

    /// The client of a session has left. Its calls may finish; nobody waits for that.
    pub(super) fn end(&self, id: &str) {
        let Some(session) = self.sessions.remove(id) else {
            return;
        };
        let grace = self.guard.grace;
        tokio::spawn(async move {
            session.session.idle(grace).await;
            session.session.close();
            session.stop().await;
        });
    }

    /// Ends sessions that nobody uses, for as long as the guard runs.
    pub(crate) async fn sweep(self: Arc<Self>) {
        loop {
            tokio::time::sleep(SWEEP_EVERY).await;
            for session in self.sessions.expired() {
                session.session.close();
                session.stop().await;
            }
        }
    }

    /// Refuses what waits and what comes.
    pub(crate) fn close(&self) {
        drop(self.guard.keeper.gate.close());
        for session in self.all() {
            session.close();
        }
    }

    /// Waits for what runs.
    pub(crate) async fn idle(&self) {
        let deadline = tokio::time::Instant::now() + self.guard.grace;
        for session in self.all() {
            let left = deadline.saturating_duration_since(tokio::time::Instant::now());
            if !session.idle(left).await {
                log!(Warn, "calls-cut-off", in_flight = session.in_flight());
            }
        }
    }

    /// Ends all servers.
    pub(crate) async fn stop(&self) {
        let mut tasks = tokio::task::JoinSet::new();
        for session in self.sessions.take() {
            tasks.spawn(async move { session.stop().await });
        }
        let shared = std::mem::take(
            &mut *self
                .supervised
                .lock()
                .unwrap_or_else(std::sync::PoisonError::into_inner),
        );
        stop_all(shared).await;
        while tasks.join_next().await.is_some() {}
    }

    fn all(&self) -> Vec<Arc<Session>> {
        let own = self
            .sessions
            .all()
            .into_iter()
            .map(|session| Arc::clone(&session.session));
        let shared = self
            .endpoints
            .iter()
            .map(|endpoint| Arc::clone(&endpoint.shared));
        own.chain(shared).collect()
    }
}

async fn stop_all(servers: Vec<Supervised>) {
    let mut tasks = tokio::task::JoinSet::new();
    for server in servers {
        tasks.spawn(server.stop());
    }
    while tasks.join_next().await.is_some() {}
}

pub(super) fn accepts(headers: &hyper::HeaderMap, kind: &str) -> bool {
    names(headers, kind) || names(headers, "*/*")
}

/// Whether a kind is accepted by its own name.
pub(super) fn names(headers: &hyper::HeaderMap, kind: &str) -> bool {
    headers.get_all(ACCEPT).iter().any(|value| {
        value.to_str().is_ok_and(|value| {
            value.split(',').any(|part| {
                let part = part.split(';').next().unwrap_or_default().trim();
                part.eq_ignore_ascii_case(kind)
            })
        })
    })
}
