//! Connections: one for everything that does not wait, and a few for what does.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use toctou_tls::postgres::Tls;
use tokio::runtime::Handle;
use tokio::sync::{Semaphore, watch};
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Config, Row};

use crate::local::shim::lock;
use crate::{Error, Result};

/// Connections for waiting, in each process. When all are busy, waiting is asking again.
const WAITERS: usize = 4;
const CONNECT: Duration = Duration::from_secs(3);
/// A server that says nothing for this long is gone.
const SILENCE: Duration = Duration::from_secs(10);
/// After so many requests, rows whose time is over are deleted.
const SWEEP_EACH: u32 = 4096;
/// Held by the one that makes the schema.
const SCHEMA_LOCK: i64 = 8_388_337_467_911_498_089;

pub fn failed(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Error {
    Error::unavailable("postgres", error)
}

/// A connection. What it holds is gone when it is.
pub struct Session {
    pub client: Client,
    /// Held exclusively as long as the session lives: others see by it that we are alive.
    pub owner: i64,
    pub lost: watch::Receiver<bool>,
}

impl Session {
    async fn open(config: &Config, tls: &Tls) -> Result<Self> {
        let connected = tokio::time::timeout(CONNECT, config.connect(tls.clone())).await;
        let (client, connection) = connected.map_err(failed)?.map_err(failed)?;
        let (ended, lost) = watch::channel(false);
        tokio::spawn(async move {
            let _ = connection.await;
            ended.send_replace(true);
        });
        let owner = fastrand::i64(1..);
        client
            .query_one("SELECT pg_advisory_lock($1)", &[&owner])
            .await
            .map_err(failed)?;
        Ok(Self {
            client,
            owner,
            lost,
        })
    }

    pub async fn row(&self, query: &str, arguments: &[&(dyn ToSql + Sync)]) -> Result<Row> {
        self.client
            .query_one(query, arguments)
            .await
            .map_err(failed)
    }
}

impl Session {
    async fn schema_is_made(&self) -> Result<bool> {
        let made = self
            .row("SELECT to_regclass('toctou.version_1') IS NOT NULL", &[])
            .await?;
        made.try_get(0).map_err(failed)
    }

    /// Makes the schema if it is not there. Never a second time: that would lock tables that others use.
    async fn make_schema(&self) -> Result<()> {
        if self.schema_is_made().await? {
            return Ok(());
        }
        self.row("SELECT pg_advisory_lock($1)", &[&SCHEMA_LOCK])
            .await?;
        if !self.schema_is_made().await? {
            let schema = include_str!("schema.sql");
            self.client.batch_execute(schema).await.map_err(failed)?;
        }
        self.row("SELECT pg_advisory_unlock($1)", &[&SCHEMA_LOCK])
            .await
            .map(|_| ())
    }
}

pub struct Sessions {
    config: Config,
    pub tls: Tls,
    current: tokio::sync::Mutex<Option<Arc<Session>>>,
    idle: Mutex<Vec<Session>>,
    pub waiters: Arc<Semaphore>,
    pub runtime: Handle,
    until_sweep: AtomicU32,
}

impl Sessions {
    pub async fn connect(url: &str) -> Result<Self> {
        let (mut config, tls) =
            toctou_tls::postgres::parse(url).map_err(|error| Error::Invalid(error.to_string()))?;
        config
            .application_name("toctou")
            .connect_timeout(CONNECT)
            .keepalives_idle(SILENCE / 2)
            .tcp_user_timeout(SILENCE);
        let sessions = Self {
            config,
            tls,
            current: tokio::sync::Mutex::default(),
            idle: Mutex::default(),
            waiters: Arc::new(Semaphore::new(WAITERS)),
            runtime: Handle::current(),
            until_sweep: AtomicU32::new(SWEEP_EACH),
        };
        let session = sessions.current().await?;
        session.make_schema().await?;
        session
            .row("SELECT toctou.sweep($1)", &[&session.owner])
            .await?;
        Ok(sessions)
    }

    /// The session for everything that does not wait; a new one if it is gone.
    pub async fn current(&self) -> Result<Arc<Session>> {
        let mut current = self.current.lock().await;
        if let Some(session) = current
            .as_ref()
            .filter(|session| !session.client.is_closed())
        {
            return Ok(session.clone());
        }
        let session = Arc::new(Session::open(&self.config, &self.tls).await?);
        *current = Some(session.clone());
        Ok(session)
    }

    /// A session for waiting. The caller has a permit of `waiters`.
    pub async fn waiter(&self) -> Result<Session> {
        loop {
            let idle = lock(&self.idle).pop();
            match idle {
                Some(session) if session.client.is_closed() => {}
                Some(session) => return Ok(session),
                None => return Session::open(&self.config, &self.tls).await,
            }
        }
    }

    pub fn give_back(&self, session: Session) {
        if !session.client.is_closed() {
            lock(&self.idle).push(session);
        }
    }

    /// Called by steps that add rows which end by themselves.
    pub fn sweep_now_and_then(self: &Arc<Self>) {
        if self.until_sweep.fetch_sub(1, Ordering::Relaxed) != 1 {
            return;
        }
        self.until_sweep.store(SWEEP_EACH, Ordering::Relaxed);
        let sessions = self.clone();
        self.runtime.spawn(async move {
            let session = sessions.current().await?;
            session
                .row("SELECT toctou.sweep($1)", &[&session.owner])
                .await
        });
    }
}

/// Starts a step at once, in a task of its own: it goes on when the caller is gone, and what it returns is then dropped.
pub fn detached<T: Send + 'static>(
    runtime: &Handle,
    step: impl Future<Output = Result<T>> + Send + 'static,
) -> impl Future<Output = Result<T>> + Send + 'static {
    let running = runtime.spawn(step);
    async move { running.await.map_err(failed)? }
}
