//! A server that is reached by Streamable HTTP.
//!
//! Every message is a POST of its own, and each that shall meet others has a
//! connection of its own. These are opened first, all but the last byte of each
//! request is sent, and then the last bytes go out together.

mod post;

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use http_body_util::{BodyExt as _, Limited};
use hyper::body::Incoming as Received;
use hyper::client::conn::http1::{self, SendRequest};
use hyper::header::{ACCEPT, CONTENT_TYPE, HOST, HeaderName, HeaderValue};
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use toctou_guard::upstream::HttpSpec;
use toctou_guard::wire::Events;
use toctou_hold::Network;
use tokio::net::TcpStream;
use tokio::runtime::Handle;
use tokio::sync::mpsc;

use self::post::{Gate, Post};
use super::{Incoming, Transport};

const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
const VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");

/// A larger answer is none of a server in its right mind.
const LARGEST: usize = 16 << 20;
/// A notification is waited for so long, so that what follows it comes after it.
const TAKEN_WITHIN: Duration = Duration::from_secs(10);
/// Requests wait for each other no longer than this.
const TOGETHER_WITHIN: Duration = Duration::from_secs(2);
/// A server that has died is told of first, and only then that its connections broke.
const AFTER_DEATH: Duration = Duration::from_millis(200);

/// How to reach the server.
#[derive(Clone)]
pub enum Road {
    /// In a sandbox, where it may not listen yet.
    Sandbox(Network, u16),
    /// Wherever its address leads.
    World,
}

struct Http {
    handle: Handle,
    remote: Arc<Remote>,
    batches: mpsc::UnboundedSender<Vec<Value>>,
}

impl Transport for Http {
    fn send(&mut self, messages: &[Value]) -> io::Result<()> {
        self.batches
            .send(messages.to_vec())
            .map_err(|_| io::Error::from(io::ErrorKind::BrokenPipe))
    }

    /// A server that goes on without us need not keep our session.
    fn leave(&mut self) {
        if matches!(self.remote.road, Road::World) && self.remote.known().session.is_some() {
            // Time runs only within the runtime.
            let goodbye =
                async { tokio::time::timeout(Duration::from_secs(2), self.remote.delete()).await };
            let _ = self.handle.block_on(goodbye);
        }
    }
}

impl Drop for Http {
    fn drop(&mut self) {
        self.remote.left.store(true, Ordering::Relaxed);
    }
}

/// Puts the server at a client's service. What it says goes to `found`.
pub fn connect(
    handle: &Handle,
    spec: HttpSpec,
    road: Road,
    found: Sender<Incoming>,
) -> Box<dyn Transport> {
    let (batches, to_send) = mpsc::unbounded_channel();
    let remote = Arc::new(Remote {
        spec,
        road,
        found,
        known: Mutex::default(),
        idle: Mutex::default(),
        reached: AtomicBool::new(false),
        left: AtomicBool::new(false),
    });
    handle.spawn(Arc::clone(&remote).run(to_send));
    Box::new(Http {
        handle: handle.clone(),
        remote,
        batches,
    })
}

struct Remote {
    spec: HttpSpec,
    road: Road,
    found: Sender<Incoming>,
    known: Mutex<Known>,
    idle: Mutex<Vec<SendRequest<Post>>>,
    /// There was a connection.
    reached: AtomicBool,
    /// The client is gone.
    left: AtomicBool,
}

/// What the server said about itself.
#[derive(Clone, Default)]
struct Known {
    session: Option<HeaderValue>,
    version: Option<HeaderValue>,
}

impl Remote {
    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn idle(&self) -> MutexGuard<'_, Vec<SendRequest<Post>>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn run(self: Arc<Self>, mut batches: mpsc::UnboundedReceiver<Vec<Value>>) {
        while let Some(messages) = batches.recv().await {
            let (requests, rest): (Vec<Value>, Vec<Value>) =
                messages.into_iter().partition(|message| {
                    message.get("method").is_some() && message.get("id").is_some()
                });
            for message in rest {
                let taken = self.post(&message, Gate::open());
                let _ = tokio::time::timeout(TAKEN_WITHIN, taken).await;
            }
            let gate = Gate::closed();
            for request in &requests {
                let (remote, request, gate) =
                    (Arc::clone(&self), request.clone(), Arc::clone(&gate));
                tokio::spawn(async move { remote.request(request, gate).await });
            }
            let _ = tokio::time::timeout(TOGETHER_WITHIN, gate.all_here(requests.len())).await;
            gate.release();
        }
    }

    /// One request from its question to its answer.
    async fn request(&self, request: Value, gate: Arc<Gate>) {
        let id = request.get("id").cloned().unwrap_or_default();
        let answered = match self.post(&request, gate).await {
            Ok((response, sender)) => {
                let answered = self.answer(&id, response).await;
                if sender.is_ready() {
                    self.idle().push(sender);
                }
                answered
            }
            Err(because) => Err(because),
        };
        if let Err(because) = answered {
            tokio::time::sleep(AFTER_DEATH).await;
            let message = format!("{because} ({})", self.spec.url());
            self.tell(
                json!({"jsonrpc": "2.0", "id": id, "error": {"code": -32000, "message": message}}),
            );
        }
    }

    fn tell(&self, message: Value) {
        // Nobody listens any more: then there is nothing to tell.
        let _ = self.found.send(Incoming::Message(message));
    }

    /// A connection that nobody uses.
    async fn connection(&self) -> Result<SendRequest<Post>, String> {
        loop {
            let idle = self.idle().pop();
            match idle {
                Some(sender) if sender.is_ready() => return Ok(sender),
                Some(_) => {}
                None => break,
            }
        }
        let failed = |error: io::Error| format!("the server cannot be reached: {error}");
        let stream = loop {
            match self.stream().await {
                Ok(stream) => break stream,
                // It was started a moment ago. Whoever waits for it gives up by themselves.
                Err(_) if self.starting() => {
                    tokio::time::sleep(Duration::from_millis(15)).await;
                }
                Err(error) => return Err(failed(error)),
            }
        };
        self.reached.store(true, Ordering::Relaxed);
        stream.set_nodelay(true).map_err(failed)?;
        if self.spec.is_tls() {
            let stream = self.spec.tls(stream).await.map_err(failed)?;
            return handshake(TokioIo::new(stream)).await;
        }
        handshake(TokioIo::new(stream)).await
    }

    fn starting(&self) -> bool {
        matches!(self.road, Road::Sandbox(..))
            && !self.reached.load(Ordering::Relaxed)
            && !self.left.load(Ordering::Relaxed)
    }

    async fn stream(&self) -> io::Result<TcpStream> {
        match &self.road {
            Road::World => {
                let host = self.spec.host().trim_matches(['[', ']']);
                TcpStream::connect((host, self.spec.port())).await
            }
            Road::Sandbox(network, port) => {
                let (network, port) = (network.clone(), *port);
                let connected = tokio::task::spawn_blocking(move || network.connect(port));
                let stream = connected.await.map_err(io::Error::other)??;
                stream.set_nonblocking(true)?;
                TcpStream::from_std(stream)
            }
        }
    }

    async fn post(
        &self,
        message: &Value,
        gate: Arc<Gate>,
    ) -> Result<(Response<Received>, SendRequest<Post>), String> {
        let body = Post::new(message.to_string().into_bytes(), gate);
        let request = self
            .head(Method::POST)
            .header(CONTENT_TYPE, "application/json")
            .header(ACCEPT, "application/json, text/event-stream")
            .body(body)
            .map_err(|error| error.to_string())?;
        self.send(request).await
    }

    async fn delete(&self) -> Result<(), String> {
        let body = Post::new(Vec::new(), Gate::open());
        let request = self.head(Method::DELETE).body(body);
        let request = request.map_err(|error| error.to_string())?;
        self.send(request).await.map(drop)
    }

    async fn send(
        &self,
        request: Request<Post>,
    ) -> Result<(Response<Received>, SendRequest<Post>), String> {
        let mut sender = self.connection().await?;
        let response = sender
            .send_request(request)
            .await
            .map_err(|error| format!("the connection broke: {error}"))?;
        Ok((response, sender))
    }

    fn head(&self, method: Method) -> hyper::http::request::Builder {
        let mut request = Request::builder()
            .method(method)
            .uri(self.spec.path())
            .header(HOST, self.spec.authority());
        for (name, value) in self.spec.headers() {
            request = request.header(name, value);
        }
        let known = self.known().clone();
        if let Some(session) = known.session {
            request = request.header(SESSION, session);
        }
        if let Some(version) = known.version {
            request = request.header(VERSION, version);
        }
        request
    }

    /// Passes on what the server answers, up to the answer.
    async fn answer(&self, id: &Value, response: Response<Received>) -> Result<(), String> {
        if let Some(session) = response.headers().get(SESSION) {
            self.known().session = Some(session.clone());
        }
        let status = response.status();
        let stream = response
            .headers()
            .get(CONTENT_TYPE)
            .is_some_and(|kind| kind.as_bytes().starts_with(b"text/event-stream"));
        if stream {
            return self.events(id, response).await;
        }
        let body = Limited::new(response.into_body(), LARGEST).collect().await;
        let body = body.map_err(|error| format!("the answer broke off: {error}"))?;
        match serde_json::from_slice::<Value>(&body.to_bytes()) {
            Ok(message) if message.get("id") == Some(id) => {
                self.learn(&message);
                self.tell(message);
                Ok(())
            }
            _ => Err(refusal(status)),
        }
    }

    async fn events(&self, id: &Value, response: Response<Received>) -> Result<(), String> {
        let mut events = Events::new(LARGEST);
        let mut body = response.into_body();
        let mut answered = false;
        // To its end, which follows the answer, so that the connection can be used again.
        while let Some(frame) = body.frame().await {
            let Ok(frame) = frame else { break };
            let Some(data) = frame.data_ref() else {
                continue;
            };
            events.feed(data);
            while let Some(event) = events.next_event() {
                let event = event.map_err(|error| error.to_string())?;
                if let Ok(message) = serde_json::from_slice::<Value>(&event.data) {
                    let is_answer = message.get("method").is_none();
                    answered |= is_answer && message.get("id") == Some(id);
                    if is_answer {
                        self.learn(&message);
                    }
                    self.tell(message);
                }
            }
        }
        if answered {
            Ok(())
        } else {
            Err("the answer broke off".to_owned())
        }
    }

    /// The revision that the handshake agreed on goes into every later request.
    fn learn(&self, message: &Value) {
        let version = message.pointer("/result/protocolVersion");
        if let Some(version) = version.and_then(Value::as_str) {
            self.known().version = version.parse().ok();
        }
    }
}

fn refusal(status: StatusCode) -> String {
    match status {
        StatusCode::METHOD_NOT_ALLOWED => {
            "the server takes no POST at this address: it may speak HTTP+SSE, the transport of 2024-11-05".to_owned()
        }
        status if status.is_success() => format!("the server said {status}, and nothing that answers the request"),
        status => format!("the server said {status}"),
    }
}

async fn handshake<S>(stream: S) -> Result<SendRequest<Post>, String>
where
    S: hyper::rt::Read + hyper::rt::Write + Unpin + Send + 'static,
{
    let (sender, connection) = http1::handshake(stream)
        .await
        .map_err(|error| format!("the server cannot be reached: {error}"))?;
    tokio::spawn(async move {
        let _ = connection.await;
    });
    Ok(sender)
}
