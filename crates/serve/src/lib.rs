//! A small web page on the same binary: a Git address or an archive in, a graded
//! report out.
//!
//! One process does it all by default, with a SQLite file. With PostgreSQL any
//! number of processes share the work: the table of jobs is the queue ([`store`]),
//! and workers that die lose nothing. The page can be shown to the world: what
//! strangers name is looked at by `toctou-source` as theirs, scanned in a child
//! process that limits itself ([`child`]), and shown as text; and one caller gets
//! only so much ([`callers`]).

mod badge;
mod callers;
mod child;
mod http;
mod log;
mod store;
mod worker;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use thiserror::Error;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::{Notify, Semaphore, watch};

pub use callers::CallerLimits;
pub use child::{Reach, ScanLimits, Scanner};
pub use store::StoreError;
pub use worker::LEASE;

/// Where a scan finds the number of the process that waits for it.
pub const WORKER: &str = "TOCTOU_WORKER";

use callers::Callers;
use http::{Service, SiteOptions};
use store::Store;
use worker::{Scratch, Worker};

/// What a service is to do.
#[derive(Debug)]
pub struct Options {
    /// None is a worker only.
    pub listen: Option<SocketAddr>,
    /// A path, or `postgres://…`.
    pub store: String,
    /// Scans at a time.
    pub workers: u16,
    pub scanner: Scanner,
    pub callers: CallerLimits,
    /// In bytes.
    pub max_upload: usize,
    /// The address of a caller is what the proxy in front says.
    pub behind_proxy: bool,
    /// How many reports are kept.
    pub keep: i64,
    pub lease: Duration,
}

#[derive(Debug, Error)]
pub enum ServeError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("a worker alone needs a store that others can reach")]
    NotShared,
    #[error("limits cannot be kept: {0}")]
    Limits(#[from] toctou_sync::Error),
    #[error("cannot listen on {address}: {error}")]
    Listen {
        address: SocketAddr,
        error: std::io::Error,
    },
    #[error("{doing}: {error}")]
    Io {
        doing: &'static str,
        error: std::io::Error,
    },
}

impl ServeError {
    /// What to do about it.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Store(_) => {
                Some("`--store` names a file, or a database: postgres://user@host/name")
            }
            Self::NotShared => {
                Some("give `--store postgres://user@host/name`, the same as to the others")
            }
            Self::Listen { .. } => Some("`--listen 127.0.0.1:0` finds a free port"),
            Self::Limits(_) | Self::Io { .. } => None,
        }
    }
}

/// Uploads that are held in memory at a time.
const UPLOADS: usize = 16;

/// Serves until a signal comes. `ready` is told the address.
///
/// # Errors
///
/// When it cannot start.
pub fn run(options: Options, ready: impl FnOnce(Option<SocketAddr>)) -> Result<(), ServeError> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| ServeError::Io {
            doing: "starting",
            error,
        })?;
    runtime.block_on(serve(options, ready))
}

async fn serve(options: Options, ready: impl FnOnce(Option<SocketAddr>)) -> Result<(), ServeError> {
    let io = |doing| move |error| ServeError::Io { doing, error };
    let mut interrupt = signal(SignalKind::interrupt()).map_err(io("waiting for signals"))?;
    let mut terminate = signal(SignalKind::terminate()).map_err(io("waiting for signals"))?;
    let store = Arc::new(Store::open(&options.store).await?);
    if options.listen.is_none() && !store.is_shared() {
        return Err(ServeError::NotShared);
    }
    let scratch = Arc::new(Scratch::new().map_err(io("making a folder for scans"))?);
    let arrived = Arc::new(Notify::new());
    let (stop, stopped) = watch::channel(false);
    let mut tasks = tokio::task::JoinSet::new();
    let mut address = None;
    if let Some(wanted) = options.listen {
        let failed = |error| ServeError::Listen {
            address: wanted,
            error,
        };
        let listener = TcpListener::bind(wanted).await.map_err(failed)?;
        let bound = listener.local_addr().map_err(failed)?;
        address = Some(bound);
        let limits = if store.is_shared() {
            &*options.store
        } else {
            "memory:"
        };
        let service = Arc::new(Service {
            store: Arc::clone(&store),
            callers: Callers {
                backend: toctou_sync::connect(limits).await?,
                limits: options.callers,
            },
            arrived: Arc::clone(&arrived),
            options: SiteOptions {
                max_upload: options.max_upload,
                private: options.scanner.reach.private,
                behind_proxy: options.behind_proxy,
                local: bound.ip().is_loopback() && !options.behind_proxy,
            },
            uploads: Semaphore::new(UPLOADS),
        });
        tasks.spawn(http::accept(listener, service, stopped.clone()));
    }
    for _ in 0..options.workers {
        let worker = Worker {
            store: Arc::clone(&store),
            scanner: options.scanner.clone(),
            scratch: Arc::clone(&scratch),
            arrived: Arc::clone(&arrived),
            keep: options.keep,
            lease: options.lease,
        };
        let stopped = stopped.clone();
        tasks.spawn(async move { worker.run(stopped).await });
    }
    ready(address);
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
    }
    let _ = stop.send(true);
    // A second signal ends it at once.
    tokio::select! {
        () = async { while tasks.join_next().await.is_some() {} } => {}
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
    }
    Ok(())
}
