//! A server that is reached by HTTP.
//!
//! Every message is a POST of its own. Requests run side by side; a
//! notification is waited for, so that `initialized` arrives before what
//! follows it. How answers come back is the transport's matter: Streamable
//! HTTP, or HTTP+SSE where the server is named as one of these, or turns out
//! to be one when it refuses the handshake.

mod envelope;
mod sse;
mod streamable;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::header::{CONTENT_TYPE, HeaderName, HeaderValue};
use hyper::{Method, Request, Response, Uri};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;

use self::envelope::Envelope;
use self::sse::Old;
use super::Supervised;
use crate::log::log;
use crate::session::{Link, Session};
use crate::wire::{self, Code};

const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
const VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
/// A server has so long to take a notification, to list its tools, or to open a stream.
const TAKEN_WITHIN: Duration = Duration::from_secs(10);
/// A server that vanishes without a word is noticed by this.
const KEEP_ALIVE: Duration = Duration::from_secs(60);

/// Where a server is.
#[derive(Clone, Debug)]
pub struct HttpSpec {
    uri: Uri,
    headers: Vec<(HeaderName, HeaderValue)>,
    tls: Arc<rustls::ClientConfig>,
    sse: bool,
}

impl HttpSpec {
    pub fn new(url: &str, headers: &BTreeMap<String, String>) -> Result<Self, String> {
        let uri: Uri = url
            .parse()
            .map_err(|error| format!("`{url}` is not an address: {error}"))?;
        if !matches!(uri.scheme_str(), Some("http" | "https")) || uri.host().is_none() {
            return Err(format!("`{url}` does not begin with http:// or https://"));
        }
        let headers = headers
            .iter()
            .map(|(name, value)| {
                let mut value: HeaderValue = value
                    .parse()
                    .map_err(|_| format!("the value of header `{name}` is not valid"))?;
                value.set_sensitive(true);
                let name = name
                    .parse()
                    .map_err(|_| format!("`{name}` is not a header"))?;
                Ok((name, value))
            })
            .collect::<Result<_, String>>()?;
        Ok(Self {
            uri,
            headers,
            tls: Arc::new(toctou_tls::client().map_err(|error| error.to_string())?),
            sse: false,
        })
    }

    /// The server speaks HTTP+SSE, the transport of 2024-11-05.
    pub fn over_sse(mut self) -> Self {
        self.sse = true;
        self
    }

    pub fn is_sse(&self) -> bool {
        self.sse
    }

    pub fn url(&self) -> String {
        self.uri.to_string()
    }

    pub fn host(&self) -> &str {
        self.uri.host().unwrap_or_default()
    }

    pub fn is_tls(&self) -> bool {
        self.uri.scheme_str() == Some("https")
    }

    pub fn port(&self) -> u16 {
        let usual = if self.is_tls() { 443 } else { 80 };
        self.uri.port_u16().unwrap_or(usual)
    }

    /// Host and port, as a request names them.
    pub fn authority(&self) -> &str {
        self.uri.authority().map_or("", |whole| {
            let whole = whole.as_str();
            whole.rsplit_once('@').map_or(whole, |(_, place)| place)
        })
    }

    /// With what is asked for.
    pub fn path(&self) -> &str {
        self.uri.path_and_query().map_or("/", |path| path.as_str())
    }

    pub fn headers(&self) -> &[(HeaderName, HeaderValue)] {
        &self.headers
    }

    /// Makes a connection to it a secure one.
    pub async fn tls<S>(&self, stream: S) -> std::io::Result<tokio_rustls::client::TlsStream<S>>
    where
        S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin,
    {
        toctou_tls::connect(&self.tls, self.host(), stream)
            .await
            .map_err(std::io::Error::other)
    }

    /// Puts the server at a session's service.
    pub fn connect(self, session: &Arc<Session>) -> Supervised {
        let mut http = HttpConnector::new();
        http.enforce_http(false);
        http.set_nodelay(true);
        http.set_keepalive(Some(KEEP_ALIVE));
        let connector = HttpsConnectorBuilder::new()
            .with_tls_config(rustls::ClientConfig::clone(&self.tls))
            .https_or_http()
            .enable_http1()
            .wrap_connector(http);
        let remote = Arc::new(Remote {
            client: Client::builder(TokioExecutor::new()).build(connector),
            spec: self,
            session: Arc::clone(session),
            known: Mutex::default(),
        });
        let (queue, messages) = mpsc::unbounded_channel();
        let (stop, stopped) = watch::channel(false);
        let (_, outlet) = watch::channel(None);
        session.server_up(Arc::new(HttpLink(queue)));
        let task = tokio::spawn(remote.run(messages, stopped));
        Supervised { stop, task, outlet }
    }
}

struct HttpLink(mpsc::UnboundedSender<Bytes>);

impl Link for HttpLink {
    fn push(&self, message: Bytes) {
        // The task ends with the session.
        let _ = self.0.send(message);
    }
    fn flush(&self) {}
}

type Messages = mpsc::UnboundedReceiver<Bytes>;
/// Requests under way. One of them may find that the server is an old one.
type Tasks = JoinSet<Option<Old>>;

struct Remote {
    client: Client<HttpsConnector<HttpConnector>, Full<Bytes>>,
    spec: HttpSpec,
    session: Arc<Session>,
    known: Mutex<Known>,
}

/// What the server has said about itself.
#[derive(Clone, Default)]
struct Known {
    session: Option<HeaderValue>,
    version: Option<HeaderValue>,
    /// Where messages go while a stream of HTTP+SSE is open.
    endpoint: Option<Uri>,
}

impl Remote {
    fn known(&self) -> std::sync::MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn run(self: Arc<Self>, mut messages: Messages, mut stopped: watch::Receiver<bool>) {
        let mut tasks = JoinSet::new();
        let old = if self.spec.sse {
            Some(None)
        } else {
            let turned_out = self.pass_on(None, &mut messages, &mut tasks, &mut stopped);
            turned_out.await.map(Some)
        };
        match old {
            None => drop(tasks),
            Some(old) => tokio::select! {
                () = self.keep_stream(old, messages, tasks, stopped.clone()) => {}
                _ = stopped.wait_for(|stopped| *stopped) => {}
            },
        }
        self.leave().await;
        self.session.server_down(Duration::ZERO);
    }

    /// Sends messages until there are no more, or the server turns out to be an old one.
    async fn pass_on(
        self: &Arc<Self>,
        first: Option<Bytes>,
        messages: &mut Messages,
        tasks: &mut Tasks,
        stopped: &mut watch::Receiver<bool>,
    ) -> Option<Old> {
        let mut next = first;
        loop {
            let message = match next.take() {
                Some(message) => message,
                None => tokio::select! {
                    message = messages.recv() => message?,
                    Some(done) = tasks.join_next() => match done {
                        Ok(Some(old)) => return Some(old),
                        _ => continue,
                    },
                    _ = stopped.wait_for(|stopped| *stopped) => return None,
                },
            };
            let Some(envelope) = Envelope::read(&message, &self.session) else {
                continue;
            };
            let remote = Arc::clone(self);
            if envelope.id.is_some() {
                tasks.spawn(async move { remote.request(message, envelope).await });
                continue;
            }
            // What follows waits for it, but not for a server that has gone silent.
            let posted = tokio::time::timeout(TAKEN_WITHIN, self.post(message, &envelope));
            let because = match posted.await {
                Ok(Ok(_)) => None,
                Ok(Err(because)) => Some(because),
                Err(_) => Some("the server does not take it".to_owned()),
            };
            if let Some(because) = because {
                log!(
                    Warn,
                    "not-delivered",
                    method = envelope.method,
                    because = because
                );
            }
            if envelope.method == "notifications/initialized" && self.known().endpoint.is_none() {
                tasks.spawn(async move {
                    remote.listen().await;
                    None
                });
            }
        }
    }

    fn head(&self, method: Method, uri: Uri) -> hyper::http::request::Builder {
        let mut request = Request::builder().method(method).uri(uri);
        for (name, value) in &self.spec.headers {
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

    async fn send(&self, request: Request<Full<Bytes>>) -> Result<Response<Incoming>, String> {
        self.client.request(request).await.map_err(|error| {
            let source = std::error::Error::source(&error).map(|source| format!(": {source}"));
            format!("{error}{}", source.unwrap_or_default())
        })
    }

    fn no_answer(&self, raw_id: &str, because: &str) {
        let text = format!("toctou guard: {because}");
        let answer = wire::error(Some(raw_id), Code::Unavailable, &text);
        self.session.from_server(&answer.into());
        self.session.flush();
    }
}

fn is_stream(response: &Response<Incoming>) -> bool {
    let kind = response.headers().get(CONTENT_TYPE);
    kind.is_some_and(|kind| kind.as_bytes().starts_with(b"text/event-stream"))
}
