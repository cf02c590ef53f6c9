//! Clients of HTTP+SSE, the transport of 2024-11-05.
//!
//! A GET opens the stream on which everything arrives, and its first event
//! says where to POST. The session is the stream's: it ends with it, and its
//! server is started by the first message rather than by the GET, which a web
//! page could make a browser send without saying so.

use std::sync::Arc;
use std::time::Duration;

use hyper::body::Incoming;
use hyper::{Request, Response, StatusCode};

use super::answer;
use super::body::{Answer, Stream};
use super::post::bad;
use super::service::{Endpoint, Service, names};
use super::sessions::new_id;
use super::streams::Streams;
use crate::awake::AWAKE;
use crate::session::{Origin, Sink};
use crate::wire::{self, Code, Parsed};

/// A client that takes longer to begin is gone.
const BEGUN_WITHIN: Duration = Duration::from_secs(30);

impl Service {
    /// Opens the stream of a new session.
    pub(super) fn open_stream(
        self: &Arc<Self>,
        endpoint: &Endpoint,
        request: &Request<Incoming>,
        subject: Option<Arc<str>>,
    ) -> Response<Answer> {
        // Every page's pictures accept `*/*`.
        if !names(request.headers(), "text/event-stream") {
            return answer::empty(StatusCode::NOT_ACCEPTABLE);
        }
        if self.guard.keeper.gate.is_closed() {
            return answer::no_room();
        }
        let path = request.uri().path();
        let (Some(id), Some(folder)) = (new_id(), path.strip_suffix("sse")) else {
            return answer::empty(StatusCode::INTERNAL_SERVER_ERROR);
        };
        let place = wire::encode_endpoint(&format!("{folder}message?sessionId={id}"));
        let (streams, events) = Streams::single(place);
        let session = self.open(endpoint, streams, subject);
        if !self.sessions.insert(id.clone(), session) {
            return answer::no_room();
        }
        let service = Arc::clone(self);
        let leaving = Leaving {
            service: Arc::clone(self),
            id: id.clone(),
        };
        tokio::spawn(async move {
            tokio::time::sleep(BEGUN_WITHIN).await;
            service.sessions.remove_unbegun(&id);
        });
        answer::events(Stream::new(events, Some(Box::new(leaving))))
    }

    /// Takes a message. What there is to say about it comes by the stream.
    pub(super) async fn message(
        &self,
        endpoint: &Endpoint,
        request: Request<Incoming>,
        subject: Option<Arc<str>>,
    ) -> Response<Answer> {
        let (parts, body) = request.into_parts();
        let frame = match self.read(&parts.headers, body).await {
            Ok(frame) => frame,
            Err(response) => return *response,
        };
        let parsed = match wire::parse(&frame, &self.guard.limits) {
            Ok(parsed) => parsed,
            Err(fault) => return bad(&fault),
        };
        let query = parts.uri.query().unwrap_or_default();
        let id = query
            .split('&')
            .find_map(|part| part.strip_prefix("sessionId="))
            .unwrap_or_default();
        let name = &endpoint.upstream.name;
        let Some(session) = self.sessions.find(id, subject.as_ref(), name, true) else {
            return answer::no_session();
        };
        if !session.is_begun() {
            if !matches!(&parsed, Parsed::One(message) if message.method == "initialize") {
                let text = "a session begins with `initialize`";
                let status = StatusCode::BAD_REQUEST;
                return answer::error(status, None, Code::InvalidRequest, text);
            }
            if let Err(response) = self.start_server(endpoint, &session) {
                self.sessions.remove(id);
                return *response;
            }
        }
        let sink: Arc<dyn Sink> = Arc::new(Arc::clone(&session.streams));
        session
            .session
            .from_client(&frame, &Origin { sink, subject });
        session.session.flush();
        AWAKE.stir(1);
        answer::empty(StatusCode::ACCEPTED)
    }
}

/// The stream of a session: when it ends, so does the session.
struct Leaving {
    service: Arc<Service>,
    id: String,
}

impl Drop for Leaving {
    fn drop(&mut self) {
        self.service.end(&self.id);
    }
}
