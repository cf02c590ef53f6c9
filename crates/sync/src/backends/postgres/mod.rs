//! State in a PostgreSQL database: advisory locks, and tables with functions for the rest.

mod locks;
mod session;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use self::locks::Numbers;
use self::session::{Session, Sessions, detached, failed};
use super::front::{Front, delegate};
use super::remote::{Claim, Id, Remote, RemoteBegin};
use crate::deadline::Deadline;
use crate::idempotency::{Finish, Outcome};
use crate::lock::Release;
use crate::rate::Microseconds;
use crate::{BoxFuture, Decision, Error, Fence, Mode, Result, Swap, Version, Versioned};

/// How the PostgreSQL backend works.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct PostgresOptions {
    /// `postgres://[user[:password]@]host[:port]/database[?sslmode=…]`, or any form that libpq takes. `sslmode` and
    /// `sslrootcert` mean what they mean to libpq: `require` encrypts and believes whoever answers, `verify-full` checks
    /// who it is (by the well-known authorities and those in the file that `SSL_CERT_FILE` names, unless `sslrootcert`
    /// names others), and without one TLS is used if the server has it.
    pub url: String,
    /// Keys of one namespace do not meet those of another. Default: empty.
    pub namespace: String,
}

impl PostgresOptions {
    /// This database, and defaults.
    pub fn new(url: impl Into<String>) -> Self {
        Self {
            url: url.into(),
            namespace: String::new(),
        }
    }

    /// In this namespace.
    #[must_use]
    pub fn namespace(mut self, namespace: impl Into<String>) -> Self {
        self.namespace = namespace.into();
        self
    }
}

/// The backend in one PostgreSQL database (13 or later). It makes a schema `toctou` for itself.
///
/// A process has one connection, and up to four more while it waits for locks or holds what it waited for. They must be
/// direct, or through a pooler that keeps a session together: what is held belongs to the session.
///
/// - **Crash:** what a dead process held is free as soon as the server sees its connection end. If the machine is gone,
///   that is when the server's `tcp_keepalives` settings say so: hours, by default.
/// - **Pause:** a stopped process keeps what it holds, unless the server gives up on the connection.
/// - **Partition:** the client gives up after 10 seconds of silence, and [`crate::LockGuard::lost`] says so; the server
///   as above.
/// - **Restart or failover** of the server ends all connections: locks and permits are lost, and said to be. Calls that
///   ran are `Unknown` to others until their end is recorded. Fences and versions go on, unless a failover loses their
///   last steps.
/// - **Clock jump** of the server: matters for rates and for how long results are kept, not for locks.
#[derive(Debug)]
pub struct Postgres {
    front: Front<PostgresRemote>,
}

impl Postgres {
    /// Connects, and makes the schema if it is not there. Must be called within a Tokio runtime.
    ///
    /// # Errors
    ///
    /// [`Error::Unavailable`] if the server does not answer or the schema cannot be made, [`Error::Invalid`] for a URL
    /// that is none.
    pub async fn connect(options: PostgresOptions) -> Result<Self> {
        let sessions = Arc::new(Sessions::connect(&options.url).await?);
        Ok(Self {
            front: Front::new(Arc::new(PostgresRemote { sessions }), options.namespace),
        })
    }
}

delegate!(Postgres);

struct PostgresRemote {
    sessions: Arc<Sessions>,
}

impl fmt::Debug for PostgresRemote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PostgresRemote")
    }
}

/// Numbers of the server are 64 bits with a sign; ours never get that far.
fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

fn version(number: i64) -> Version {
    Version::new(number.unsigned_abs())
}

impl Remote for PostgresRemote {
    const NAME: &'static str = "postgres";

    async fn lock(
        self: &Arc<Self>,
        keys: &[(Id, Mode)],
        deadline: &Deadline,
    ) -> Result<Option<(Fence, Claim)>> {
        locks::acquire(&self.sessions, Numbers::of(keys), deadline).await
    }

    async fn permit(self: &Arc<Self>, caller: Id, limit: u32) -> Result<Option<Claim>> {
        let sessions = self.sessions.clone();
        let step = async move {
            let session = sessions.current().await?;
            let id = fastrand::i64(1..);
            let row = session
                .row(
                    "SELECT toctou.permit($1, $2, $3, $4)",
                    &[&caller.as_slice(), &i64::from(limit), &session.owner, &id],
                )
                .await?;
            let taken: bool = row.try_get(0).map_err(failed)?;
            Ok(taken.then(|| PermitRow {
                sessions,
                session,
                id,
                given_back: false,
            }))
        };
        let permit = detached(&self.sessions.runtime, step).await?;
        Ok(permit.map(|permit| {
            let lost = Some(permit.session.lost.clone());
            Claim {
                held: Box::new(permit),
                lost,
            }
        }))
    }

    async fn take(&self, key: Id, quota: Microseconds) -> Result<Decision> {
        let session = self.sessions.current().await?;
        let (window, cost) = (signed(quota.window), signed(quota.cost));
        let query = "SELECT allowed, rest FROM toctou.take($1, $2, $3)";
        let row = session
            .row(query, &[&key.as_slice(), &window, &cost])
            .await?;
        self.sessions.sweep_now_and_then();
        let rest: i64 = row.try_get(1).map_err(failed)?;
        Ok(match row.try_get(0).map_err(failed)? {
            true => quota.allowed(rest.unsigned_abs()),
            false => quota.denied(rest.unsigned_abs()),
        })
    }

    async fn read(&self, key: Id) -> Result<Option<Versioned>> {
        let session = self.sessions.current().await?;
        let query =
            "SELECT value, version FROM toctou.cells WHERE key = $1 AND version IS NOT NULL";
        let row = session
            .client
            .query_opt(query, &[&key.as_slice()])
            .await
            .map_err(failed)?;
        let Some(row) = row else { return Ok(None) };
        let value = row.try_get(0).map_err(failed)?;
        Ok(Some(Versioned {
            value,
            version: version(row.try_get(1).map_err(failed)?),
        }))
    }

    async fn compare_and_swap(
        &self,
        key: Id,
        expected: Option<Version>,
        value: Option<Vec<u8>>,
    ) -> Result<Swap> {
        let session = self.sessions.current().await?;
        let expected = expected.map(|version| signed(version.get()));
        let query = "SELECT done, a_version, a_found FROM toctou.swap($1, $2, $3)";
        let row = session
            .row(query, &[&key.as_slice(), &expected, &value])
            .await?;
        let done: bool = row.try_get(0).map_err(failed)?;
        let number: Option<i64> = row.try_get(1).map_err(failed)?;
        if done {
            return Ok(Swap::Done(number.map(version)));
        }
        let found: Option<Vec<u8>> = row.try_get(2).map_err(failed)?;
        let versioned = |(number, value)| Versioned {
            value,
            version: version(number),
        };
        Ok(Swap::Conflict(number.zip(found).map(versioned)))
    }

    async fn write_fenced(
        &self,
        key: Id,
        fence: Fence,
        value: Vec<u8>,
    ) -> Result<Result<Version, Fence>> {
        let session = self.sessions.current().await?;
        let query = "SELECT a_version, seen FROM toctou.write_fenced($1, $2, $3)";
        let row = session
            .row(query, &[&key.as_slice(), &signed(fence.get()), &value])
            .await?;
        match row.try_get::<_, Option<i64>>(0).map_err(failed)? {
            Some(number) => Ok(Ok(version(number))),
            None => {
                let seen: i64 = row.try_get(1).map_err(failed)?;
                Ok(Err(Fence::new(seen.unsigned_abs())))
            }
        }
    }

    async fn begin(
        self: &Arc<Self>,
        key: Id,
        arguments: Id,
        keep: Duration,
    ) -> Result<RemoteBegin> {
        let sessions = self.sessions.clone();
        let keep = i64::try_from(keep.as_micros()).unwrap_or(i64::MAX / 4);
        let step = async move {
            let session = sessions.current().await?;
            let ticket = fastrand::i64(1..);
            let row = session
                .row(
                    "SELECT what, a_result FROM toctou.begin_record($1, $2, $3, $4, $5)",
                    &[
                        &key.as_slice(),
                        &arguments.as_slice(),
                        &session.owner,
                        &ticket,
                        &keep,
                    ],
                )
                .await?;
            let result: Option<Vec<u8>> = row.try_get(1).map_err(failed)?;
            Ok(match row.try_get(0).map_err(failed)? {
                "first" => {
                    sessions.sweep_now_and_then();
                    let state = Progress::Asked;
                    RemoteBegin::First(Box::new(Running {
                        sessions,
                        key,
                        ticket,
                        state,
                    }))
                }
                "done" => RemoteBegin::Replay(result.unwrap_or_default()),
                "running" => RemoteBegin::InFlight,
                "other" => RemoteBegin::OtherArguments,
                _ => RemoteBegin::Unknown,
            })
        };
        detached(&self.sessions.runtime, step).await
    }

    async fn settle(&self, key: Id, result: Option<Vec<u8>>) -> Result<bool> {
        let outcome = if result.is_some() { "done" } else { "not run" };
        end(&self.sessions, key, None, outcome, result).await
    }

    async fn check(&self) -> Result<()> {
        self.sessions
            .current()
            .await?
            .row("SELECT 1", &[])
            .await
            .map(|_| ())
    }
}

/// A row in the table of permits. It counts as long as its session lives.
struct PermitRow {
    sessions: Arc<Sessions>,
    session: Arc<Session>,
    id: i64,
    given_back: bool,
}

impl PermitRow {
    fn delete(&mut self) -> impl Future<Output = Result<()>> + Send + use<> {
        self.given_back = true;
        let (session, id) = (self.session.clone(), self.id);
        async move {
            let query = "DELETE FROM toctou.permits WHERE id = $1";
            match session.client.execute(query, &[&id]).await {
                Ok(_) => Ok(()),
                Err(_) if *session.lost.borrow() => Err(Error::Lost {
                    what: "the connection".into(),
                }),
                Err(error) => Err(failed(error)),
            }
        }
    }
}

impl Release for PermitRow {
    fn release(mut self: Box<Self>) -> BoxFuture<'static, Result<()>> {
        let deleted = self.delete();
        Box::pin(detached(&self.sessions.runtime, deleted))
    }
}

impl Drop for PermitRow {
    fn drop(&mut self) {
        if !self.given_back {
            let runtime = self.sessions.runtime.clone();
            runtime.spawn(self.delete());
        }
    }
}

async fn end(
    sessions: &Sessions,
    key: Id,
    ticket: Option<i64>,
    outcome: &str,
    result: Option<Vec<u8>>,
) -> Result<bool> {
    let session = sessions.current().await?;
    let query = "SELECT toctou.end_record($1, $2, $3, $4, $5)";
    let row = session
        .row(
            query,
            &[&key.as_slice(), &ticket, &session.owner, &outcome, &result],
        )
        .await?;
    row.try_get(0).map_err(failed)
}

/// The record of a call that runs here.
struct Running {
    sessions: Arc<Sessions>,
    key: Id,
    ticket: i64,
    state: Progress,
}

#[derive(PartialEq, Eq)]
enum Progress {
    /// The caller does not know yet that it may run: dropped, nothing has happened.
    Asked,
    Running,
    Ended,
}

impl Finish for Running {
    fn hand_over(&mut self) {
        self.state = Progress::Running;
    }

    fn finish(mut self: Box<Self>, outcome: Outcome) -> BoxFuture<'static, Result<()>> {
        self.state = Progress::Ended;
        let (sessions, key, ticket) = (self.sessions.clone(), self.key, self.ticket);
        let runtime = sessions.runtime.clone();
        let step = async move {
            let (outcome, result) = match outcome {
                Outcome::Done(result) => ("done", Some(result)),
                Outcome::NotRun => ("not run", None),
            };
            match end(&sessions, key, Some(ticket), outcome, result).await {
                Ok(true) => Ok(()),
                // Somebody settled it, or it was not kept so long.
                Ok(false) => Err(Error::Lost {
                    what: "the record".into(),
                }),
                Err(error) => Err(error),
            }
        };
        Box::pin(detached(&runtime, step))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let outcome = match self.state {
            Progress::Ended => return,
            Progress::Asked => "not run",
            Progress::Running => "unknown",
        };
        let (sessions, key, ticket) = (self.sessions.clone(), self.key, self.ticket);
        // If it does not get there, it is unknown when the session ends.
        self.sessions
            .runtime
            .spawn(async move { end(&sessions, key, Some(ticket), outcome, None).await });
    }
}
