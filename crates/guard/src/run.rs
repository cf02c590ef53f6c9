//! A guard from its start to its end.

mod listen;
mod stdio;

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use thiserror::Error;
use toctou_sync::CloseGate;
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::admit::Gatekeeper;
use crate::awake::AWAKE;
use crate::http::Listen;
use crate::io::Outlet;
use crate::metrics::Metrics;
use crate::policy::Policy;
use crate::record::Recorder;
use crate::servers::{Spec, Upstream};
use crate::session::{Server, Session, Setup, Sink};
use crate::upstream::{Shutdown, StartError, Supervised, supervise};
use crate::wire::Limits;

/// What a guard is to do.
#[derive(Debug)]
pub struct Options {
    pub policy: Policy,
    pub servers: Vec<Upstream>,
    pub limits: Limits,
    pub record: Option<PathBuf>,
    /// How long calls in flight may take when the guard closes.
    pub grace: Duration,
    /// Where Prometheus may ask.
    pub metrics: Option<SocketAddr>,
    pub shutdown: Shutdown,
}

#[derive(Debug, Error)]
pub enum GuardError {
    #[error("the backend `{backend}` cannot be used: {source}")]
    Backend {
        backend: String,
        #[source]
        source: toctou_sync::Error,
    },
    #[error("server `{server}`: {source}")]
    Start {
        server: String,
        #[source]
        source: StartError,
    },
    #[error("cannot write to {path}: {source}")]
    Record { path: PathBuf, source: io::Error },
    #[error("cannot listen on {address}: {source}")]
    Listen {
        address: SocketAddr,
        source: io::Error,
    },
    #[error("server `{server}` does not tell its tools: {because}")]
    NoTools { server: String, because: String },
    #[error("{doing}: {source}")]
    Io {
        doing: &'static str,
        source: io::Error,
    },
}

impl GuardError {
    /// What to do about it.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Backend { .. } => {
                Some("`--backend memory` works without one, for this guard alone")
            }
            Self::Start { .. } => Some("does the command work without the guard?"),
            Self::NoTools { .. } => Some("does the server work without the guard?"),
            Self::Listen { .. } => Some("choose another port"),
            Self::Record { .. } | Self::Io { .. } => None,
        }
    }
}

/// Parts that all sessions share.
#[derive(Debug)]
pub struct Guard {
    pub keeper: Arc<Gatekeeper>,
    pub recorder: Option<Arc<Recorder>>,
    pub limits: Limits,
    pub grace: Duration,
    pub shutdown: Shutdown,
}

/// The locks are kept on this host unless the policy says otherwise.
const BACKEND: &str = "host";

impl Guard {
    pub async fn new(options: &Options) -> Result<Self, GuardError> {
        let backend = options.policy.backend.as_deref().unwrap_or(BACKEND);
        // `host` and `memory` may be written without the colon of a URL.
        let url = match backend {
            "host" | "memory" => format!("{backend}:"),
            url => url.to_owned(),
        };
        let backend = toctou_sync::connect(&url)
            .await
            .map_err(|source| GuardError::Backend {
                // What stands after the scheme may hold a password.
                backend: url.split(':').next().unwrap_or_default().to_owned(),
                source,
            })?;
        let recorder = match &options.record {
            None => None,
            Some(path) => Some(Arc::new(Recorder::create(path).map_err(|source| {
                GuardError::Record {
                    path: path.clone(),
                    source,
                }
            })?)),
        };
        Ok(Self {
            keeper: Arc::new(Gatekeeper {
                policy: options.policy.clone(),
                backend,
                metrics: Arc::new(Metrics::default()),
                gate: CloseGate::new(),
            }),
            recorder,
            limits: options.limits,
            grace: options.grace,
            shutdown: options.shutdown,
        })
    }

    pub(crate) fn session(
        &self,
        server: Server,
        main: Arc<dyn Sink>,
        remap: bool,
        shared: bool,
    ) -> Arc<Session> {
        Session::new(Setup {
            keeper: Arc::clone(&self.keeper),
            server,
            limits: self.limits,
            remap,
            shared,
            recorder: self.recorder.clone(),
            main,
        })
    }

    pub(crate) fn start(
        &self,
        upstream: &Upstream,
        session: &Arc<Session>,
        client: Option<Arc<Outlet>>,
    ) -> Result<Supervised, GuardError> {
        match &upstream.spec {
            Spec::Child(child) => supervise(
                child.clone(),
                Arc::clone(session),
                self.shutdown,
                Arc::clone(&upstream.name),
                client,
            )
            .map_err(|source| GuardError::Start {
                server: upstream.name.as_ref().into(),
                source,
            }),
            Spec::Http(http) => Ok(http.clone().connect(session)),
        }
    }
}

/// Stands between standard input and output and one server, until the client
/// leaves or a signal comes.
pub fn stdio(options: &Options, upstream: &Upstream) -> Result<(), GuardError> {
    awake()?.block_on(async {
        let guard = Guard::new(options).await?;
        serve_metrics(&guard, options).await?;
        stdio::serve(&guard, upstream).await
    })
}

/// Serves HTTP in front of all servers until a signal comes.
pub fn listen(options: &Options, listen: Listen) -> Result<(), GuardError> {
    awake()?.block_on(async {
        let guard = Guard::new(options).await?;
        listen::serve(guard, options, listen).await
    })
}

/// Opens the address for Prometheus, if there is to be one.
async fn serve_metrics(guard: &Guard, options: &Options) -> Result<(), GuardError> {
    if let Some(address) = options.metrics {
        let listener = bind(address).await?;
        tokio::spawn(crate::http::serve_metrics(
            listener,
            Arc::clone(&guard.keeper.metrics),
        ));
    }
    Ok(())
}

async fn bind(address: SocketAddr) -> Result<tokio::net::TcpListener, GuardError> {
    tokio::net::TcpListener::bind(address)
        .await
        .map_err(|source| GuardError::Listen { address, source })
}

/// A runtime that stays awake while messages follow each other closely.
fn awake() -> Result<tokio::runtime::Runtime, GuardError> {
    crate::pages::small();
    let runtime = runtime()?;
    runtime.spawn(AWAKE.keep());
    Ok(runtime)
}

/// One thread: a guard waits more than it works, and a switch of threads costs
/// more than a message.
pub(crate) fn runtime() -> Result<tokio::runtime::Runtime, GuardError> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|source| GuardError::Io {
            doing: "starting",
            source,
        })
}

/// SIGTERM and SIGINT.
struct Signals {
    term: Signal,
    int: Signal,
}

impl Signals {
    fn new() -> Result<Self, GuardError> {
        let listen = |kind| {
            signal(kind).map_err(|source| GuardError::Io {
                doing: "listening for signals",
                source,
            })
        };
        Ok(Self {
            term: listen(SignalKind::terminate())?,
            int: listen(SignalKind::interrupt())?,
        })
    }

    async fn recv(&mut self) {
        tokio::select! {
            _ = self.term.recv() => {}
            _ = self.int.recv() => {}
        }
    }
}
