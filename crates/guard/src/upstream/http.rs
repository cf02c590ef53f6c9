//! A server that is reached by Streamable HTTP.
//!
//! Every message is a POST of its own, and answers come back as JSON or as a
//! stream of events. Requests run side by side; a notification is waited for,
//! so that `initialized` arrives before what follows it. A stream that breaks
//! is taken up again where the server gives its events ids; otherwise the
//! caller is told that the end of its call is not known.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full, LengthLimitError, Limited};
use hyper::body::Incoming;
use hyper::header::{ACCEPT, CONTENT_TYPE, HeaderName, HeaderValue};
use hyper::{Method, Request, Response, StatusCode, Uri};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use tokio::sync::{mpsc, watch};

use super::Supervised;
use crate::log::log;
use crate::session::{Link, Session};
use crate::wire::{self, Code, Events, Id, Kind, Message, Parsed};

const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
const VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
const METHOD: HeaderName = HeaderName::from_static("mcp-method");
const NAME: HeaderName = HeaderName::from_static("mcp-name");
const LAST_EVENT: HeaderName = HeaderName::from_static("last-event-id");
/// Where requests say which revision they speak, since there is no handshake.
const META_VERSION: &str = "io.modelcontextprotocol/protocolVersion";
const RESUME_ATTEMPTS: u32 = 5;
/// A server has so long to take a notification, or to list its tools.
const TAKEN_WITHIN: Duration = Duration::from_secs(10);

/// Where a server is.
#[derive(Clone, Debug)]
pub struct HttpSpec {
    uri: Uri,
    headers: Vec<(HeaderName, HeaderValue)>,
    tls: Arc<rustls::ClientConfig>,
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
            tls: Arc::new(trust()?),
        })
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
        let name = rustls::pki_types::ServerName::try_from(self.host().to_owned())
            .map_err(std::io::Error::other)?;
        tokio_rustls::TlsConnector::from(Arc::clone(&self.tls))
            .connect(name, stream)
            .await
    }

    /// Puts the server at a session's service.
    pub fn connect(self, session: &Arc<Session>) -> Supervised {
        let connector = HttpsConnectorBuilder::new()
            .with_tls_config(rustls::ClientConfig::clone(&self.tls))
            .https_or_http()
            .enable_http1()
            .build();
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

/// Whose certificates are trusted: the well-known authorities, and those in the
/// file that `SSL_CERT_FILE` names, as other programs have it.
fn trust() -> Result<rustls::ClientConfig, String> {
    use rustls::pki_types::CertificateDer;
    use rustls::pki_types::pem::PemObject as _;
    let mut roots = rustls::RootCertStore::empty();
    roots.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
    if let Some(path) = std::env::var_os("SSL_CERT_FILE") {
        let found = CertificateDer::pem_file_iter(&path)
            .and_then(Iterator::collect::<Result<Vec<_>, _>>)
            .map_err(|error| format!("SSL_CERT_FILE, {}: {error}", path.display()))?;
        roots.add_parsable_certificates(found);
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?;
    Ok(builder.with_root_certificates(roots).with_no_client_auth())
}

struct HttpLink(mpsc::UnboundedSender<Bytes>);

impl Link for HttpLink {
    fn push(&self, message: Bytes) {
        // The task ends with the session.
        let _ = self.0.send(message);
    }
    fn flush(&self) {}
}

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
}

/// What the headers of a POST say about its body.
struct Envelope {
    /// The id of a request, as sent.
    id: Option<(Id, String)>,
    method: String,
    name: Option<String>,
    version: Option<String>,
    /// Arguments that stand in headers too.
    mirrored: Vec<(String, String)>,
}

impl Envelope {
    fn read(bytes: &[u8], session: &Session) -> Option<Self> {
        let Ok(Parsed::One(message)) = wire::parse(bytes, session.limits()) else {
            return None;
        };
        let params = message.params().ok()?;
        let version = params.meta.and_then(|meta| {
            let ([version], _) = wire::fields(meta.get(), [META_VERSION]).ok()?;
            serde_json::from_str(version?.get()).ok()
        });
        let id = match (message.kind, message.id, message.raw_id) {
            (Kind::Request, Some(id), Some(raw)) => Some((id, raw.get().to_owned())),
            _ => None,
        };
        Some(Self {
            mirrored: Vec::new(),
            id,
            method: message.method.into_owned(),
            name: params.name.or(params.uri).map(std::borrow::Cow::into_owned),
            version,
        })
    }

    /// Whether arguments have to stand in headers.
    fn mirrors(&self) -> bool {
        self.version.is_some() && self.method == "tools/call"
    }

    /// Finds the arguments that the server wants in headers, by what it said about its tools.
    fn mirror(&mut self, bytes: &[u8], session: &Session) {
        let marked = session.mirrored(self.name.as_deref().unwrap_or_default());
        if marked.is_empty() {
            return;
        }
        if let Ok(Parsed::One(message)) = wire::parse(bytes, session.limits())
            && let Ok(params) = message.params()
        {
            let arguments = params.arguments.map_or("null", wire::Raw::get);
            let arguments = serde_json::from_str(arguments).unwrap_or_default();
            let header = |one: &wire::Mirrored| Some((one.header.clone(), one.value(&arguments)?));
            self.mirrored = marked.iter().filter_map(header).collect();
        }
    }
}

impl Remote {
    fn known(&self) -> std::sync::MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn run(
        self: Arc<Self>,
        mut messages: mpsc::UnboundedReceiver<Bytes>,
        mut stopped: watch::Receiver<bool>,
    ) {
        let mut tasks = tokio::task::JoinSet::new();
        loop {
            let message = tokio::select! {
                message = messages.recv() => message,
                _ = stopped.wait_for(|stopped| *stopped) => None,
            };
            let Some(message) = message else { break };
            let Some(envelope) = Envelope::read(&message, &self.session) else {
                continue;
            };
            let remote = Arc::clone(&self);
            if envelope.id.is_some() {
                tasks.spawn(async move { remote.request(message, envelope).await });
            } else {
                let opens = envelope.method == "notifications/initialized";
                // What follows waits for it, but not for a server that has gone silent.
                let posted = tokio::time::timeout(TAKEN_WITHIN, remote.post(message, &envelope));
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
                if opens {
                    let remote = Arc::clone(&self);
                    tasks.spawn(async move { remote.listen().await });
                }
            }
            while tasks.try_join_next().is_some() {}
        }
        tasks.abort_all();
        self.leave().await;
        self.session.server_down(Duration::ZERO);
    }

    fn head(&self, method: Method) -> hyper::http::request::Builder {
        let mut request = Request::builder().method(method).uri(self.spec.uri.clone());
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

    async fn post(
        &self,
        message: Bytes,
        envelope: &Envelope,
    ) -> Result<Response<Incoming>, String> {
        let mut request = self
            .head(Method::POST)
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
        self.client.request(request).await.map_err(|error| {
            let source = std::error::Error::source(&error).map(|source| format!(": {source}"));
            format!("{error}{}", source.unwrap_or_default())
        })
    }

    /// One request from its question to its answer.
    async fn request(&self, message: Bytes, mut envelope: Envelope) {
        if envelope.mirrors() {
            // A call that comes before the list of tools would lack headers, and be refused.
            self.session.tools_told(TAKEN_WITHIN).await;
            envelope.mirror(&message, &self.session);
        }
        let Some((id, raw_id)) = &envelope.id else {
            return;
        };
        let response = match self.post(message, &envelope).await {
            Ok(response) => response,
            Err(because) => {
                return self.no_answer(raw_id, &format!("the server cannot be reached: {because}"));
            }
        };
        if let Some(session) = response.headers().get(SESSION) {
            self.known().session = Some(session.clone());
        }
        let status = response.status();
        let stream = response
            .headers()
            .get(CONTENT_TYPE)
            .is_some_and(|kind| kind.as_bytes().starts_with(b"text/event-stream"));
        if stream {
            return self.stream(response, &envelope, raw_id).await;
        }
        match self.body(response).await {
            Ok(body) if self.answers(&body, id) => {
                self.learn(&envelope, &body);
                self.session.from_server(&body);
                self.session.flush();
            }
            Ok(_) if status == StatusCode::NOT_FOUND => {
                self.no_answer(raw_id, "the server has ended the session; connect again");
            }
            Ok(_) if status == StatusCode::METHOD_NOT_ALLOWED => self.no_answer(
                raw_id,
                "the server takes no POST at this address: it may speak HTTP+SSE, the transport of 2024-11-05, which the guard does not",
            ),
            Ok(_) => self.no_answer(raw_id, &format!("the server said {status}")),
            Err(because) => self.no_answer(raw_id, &because),
        }
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
                if event.data.is_empty() {
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
    async fn listen(&self) {
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
        let mut request = self.head(Method::GET).header(ACCEPT, "text/event-stream");
        if let Some(last) = last {
            request = request.header(LAST_EVENT, last);
        }
        let request = request.body(Full::default()).ok()?;
        let response = self.client.request(request).await.ok()?;
        (response.status() == StatusCode::OK).then_some(response)
    }

    /// Ends the session, if there is one.
    async fn leave(&self) {
        if self.known().session.is_none() {
            return;
        }
        if let Ok(request) = self.head(Method::DELETE).body(Full::default()) {
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

    fn no_answer(&self, raw_id: &str, because: &str) {
        let text = format!("toctou guard: {because}");
        let answer = wire::error(Some(raw_id), Code::Unavailable, &text);
        self.session.from_server(&answer.into());
        self.session.flush();
    }
}
