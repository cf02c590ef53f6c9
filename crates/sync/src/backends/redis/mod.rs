//! State on a Redis server: scripts, the server's clock, leases that are prolonged.

mod claims;
mod line;
mod records;
mod server;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use redis::Value;
use tokio::time::{Instant, sleep};

use self::claims::{Claims, HeldClaim};
use self::records::{Running, finish};
use self::server::{Server, failed, milliseconds};
use super::front::{Front, delegate};
use super::remote::{Claim, Id, Remote, RemoteBegin};
use crate::deadline::Deadline;
use crate::idempotency::Outcome;
use crate::rate::Microseconds;
use crate::{Decision, Error, Fence, Mode, Result, Swap, Version, Versioned, key};

/// How the Redis backend works.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct RedisOptions {
    /// `redis://[[user]:password@]host[:port][/database]`, or `rediss://…` for TLS. The server's certificate must be for
    /// its name in the URL, and by a well-known authority or one in the file that `SSL_CERT_FILE` names.
    pub url: String,
    /// Everybody with the same prefix shares state. Default: `toctou:`.
    pub prefix: String,
    /// How long a holder that is no longer heard of keeps what it holds. Default: 10 s. It is prolonged three times in
    /// this time.
    pub lease: Duration,
}

impl RedisOptions {
    /// This server, and defaults.
    pub fn new(url: impl Into<String>) -> Self {
        Self {
            url: url.into(),
            prefix: "toctou:".into(),
            lease: Duration::from_secs(10),
        }
    }

    /// Shares state with everybody who has this prefix.
    #[must_use]
    pub fn prefix(mut self, prefix: impl Into<String>) -> Self {
        self.prefix = prefix.into();
        self
    }

    /// A holder that is not heard of for this long loses what it holds. At least 100 ms.
    #[must_use]
    pub fn lease(mut self, lease: Duration) -> Self {
        self.lease = lease;
        self
    }
}

/// The backend on one Redis server (7 or later, not a cluster).
///
/// - **Crash:** what a dead process held is free when its lease ends. Somebody who was waiting when it died delays those
///   behind it by up to 2 seconds.
/// - **Pause, partition:** a process that does not reach the server for a lease loses what it holds, and is told so by
///   [`crate::LockGuard::lost`] as soon as it runs again. What it writes before it looks is stopped only by a fence.
/// - **Restart of the server:** without persistence all is forgotten: locks are free while their holders still run (they
///   are told at the next prolongation, within a third of the lease), rates start anew, idempotency records are gone.
///   Fences and versions go on above the old ones. With `appendfsync everysec` the last second is forgotten.
/// - **Failover** to a replica forgets what was not replicated: the same, for the last moments.
/// - **Clock jump** of the server: set forward, leases end early; set back, they end late.
/// - Waiting is asking again after 2 to 45 ms; requests of different processes are served in the order of arrival.
#[derive(Debug)]
pub struct Redis {
    front: Front<RedisRemote>,
}

impl Redis {
    /// Connects. Must be called within a Tokio runtime, in which it then prolongs leases.
    ///
    /// # Errors
    ///
    /// [`Error::Unavailable`] if the server does not answer, [`Error::Invalid`] for a URL that is none or a lease below
    /// 100 ms.
    pub async fn connect(options: RedisOptions) -> Result<Self> {
        if options.lease < Duration::from_millis(100) {
            return Err(Error::Invalid("a lease below 100 ms cannot be kept".into()));
        }
        let server = Server::connect(&options.url, options.prefix, options.lease).await?;
        let server = Arc::new(server);
        server.ping().await?;
        tokio::spawn(Claims::renew(Arc::downgrade(&server), options.lease));
        tokio::spawn(Claims::watch(Arc::downgrade(&server), options.lease));
        Ok(Self {
            front: Front::new(Arc::new(RedisRemote { server }), String::new()),
        })
    }
}

delegate!(Redis);

struct RedisRemote {
    server: Arc<Server>,
}

impl fmt::Debug for RedisRemote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisRemote")
            .field("prefix", &self.server.prefix)
            .finish()
    }
}

/// How long a place in a queue lasts if nobody asks again.
const PLACE: Duration = Duration::from_secs(2);

fn name(id: &Id) -> String {
    key::hex(&id[..16])
}

fn claim() -> String {
    key::hex(&fastrand::u128(..).to_le_bytes())
}

impl RedisRemote {
    /// A claim that is given back when it is dropped, from before the request is sent: the answer may not come.
    fn held(&self, claim: &str, members: Vec<(String, String)>) -> HeldClaim {
        HeldClaim {
            server: self.server.clone(),
            claim: claim.into(),
            members,
            released: false,
        }
    }

    fn started(&self, held: HeldClaim, sent: Instant) -> Claim {
        let keys = held.members.iter().map(|(key, _)| key.clone()).collect();
        let lost = self
            .server
            .claims
            .add(&held.claim, sent, keys, self.server.lease * 2);
        Claim {
            held: Box::new(held),
            lost: Some(lost),
        }
    }
}

impl Remote for RedisRemote {
    const NAME: &'static str = "redis";

    async fn lock(
        self: &Arc<Self>,
        keys: &[(Id, Mode)],
        deadline: &Deadline,
    ) -> Result<Option<(Fence, Claim)>> {
        let server = &self.server;
        let claim = claim();
        let letter = |mode: &Mode| if *mode == Mode::Exclusive { "x" } else { "s" };
        let members = keys
            .iter()
            .map(|(id, mode)| {
                (
                    format!("h:{}", name(id)),
                    format!("{}{claim}", letter(mode)),
                )
            })
            .collect();
        let held = self.held(&claim, members);
        let place = if deadline.waits() {
            milliseconds(PLACE)
        } else {
            0
        };
        let mut pause = Duration::from_millis(2);
        loop {
            let sent = Instant::now();
            let fence: Option<u64> = server
                .call(&server::LOCK, |call| {
                    call.arg(&server.prefix)
                        .arg(&claim)
                        .arg(milliseconds(server.lease))
                        .arg(place);
                    for (id, mode) in keys {
                        call.arg(name(id)).arg(letter(mode));
                    }
                })
                .await?;
            if let Some(fence) = fence {
                return Ok(Some((Fence::new(fence), self.started(held, sent))));
            }
            if deadline
                .run(sleep(pause.mul_f64(0.5 + fastrand::f64())))
                .await
                .is_err()
            {
                return Ok(None);
            }
            pause = (pause * 2).min(Duration::from_millis(30));
        }
    }

    async fn permit(self: &Arc<Self>, caller: Id, limit: u32) -> Result<Option<Claim>> {
        let server = &self.server;
        let claim = claim();
        let mut held = self.held(
            &claim,
            vec![(format!("p:{}", name(&caller)), claim.clone())],
        );
        let sent = Instant::now();
        let taken: bool = server
            .call(&server::PERMIT, |call| {
                call.arg(&server.prefix)
                    .arg(&claim)
                    .arg(milliseconds(server.lease));
                call.arg(name(&caller)).arg(limit);
            })
            .await?;
        if !taken {
            held.released = true;
            return Ok(None);
        }
        Ok(Some(self.started(held, sent)))
    }

    async fn take(&self, key: Id, quota: Microseconds) -> Result<Decision> {
        let (allowed, rest): (bool, u64) = self
            .server
            .call(&server::TAKE, |call| {
                call.arg(format!("{}g:{}", self.server.prefix, name(&key)));
                call.arg(quota.window).arg(quota.cost);
            })
            .await?;
        Ok(if allowed {
            quota.allowed(rest)
        } else {
            quota.denied(rest)
        })
    }

    async fn read(&self, key: Id) -> Result<Option<Versioned>> {
        let (version, value) = self.server.cell(&name(&key)).await?;
        let versioned = |(version, value)| Versioned {
            value,
            version: Version::new(version),
        };
        Ok(version.zip(value).map(versioned))
    }

    async fn compare_and_swap(
        &self,
        key: Id,
        expected: Option<Version>,
        value: Option<Vec<u8>>,
    ) -> Result<Swap> {
        let expected = expected.map_or(String::new(), |version| version.get().to_string());
        let answer: Vec<Value> = self
            .server
            .call(&server::SWAP, |call| {
                call.arg(&self.server.prefix).arg(name(&key)).arg(expected);
                match value {
                    Some(value) => call.arg("set").arg(value),
                    None => call.arg("delete").arg(""),
                };
            })
            .await?;
        let text = |value: &Value| redis::from_redis_value_ref::<String>(value).map_err(failed);
        let version = |text: String| text.parse().ok().map(Version::new);
        match answer.as_slice() {
            [Value::Int(1), new] => Ok(Swap::Done(version(text(new)?))),
            [Value::Int(0), found, value] => {
                let value = redis::from_redis_value_ref(value).map_err(failed)?;
                let versioned = |version| Versioned { value, version };
                Ok(Swap::Conflict(version(text(found)?).map(versioned)))
            }
            _ => Err(failed("an answer that the script does not give")),
        }
    }

    async fn write_fenced(
        &self,
        key: Id,
        fence: Fence,
        value: Vec<u8>,
    ) -> Result<Result<Version, Fence>> {
        let (written, number): (bool, u64) = self
            .server
            .call(&server::WRITE, |call| {
                call.arg(&self.server.prefix)
                    .arg(name(&key))
                    .arg(fence.get())
                    .arg(value);
            })
            .await?;
        Ok(if written {
            Ok(Version::new(number))
        } else {
            Err(Fence::new(number))
        })
    }

    async fn begin(
        self: &Arc<Self>,
        key: Id,
        arguments: Id,
        keep: Duration,
    ) -> Result<RemoteBegin> {
        let server = &self.server;
        let ticket = claim();
        let running = Running::asked(server.clone(), name(&key), ticket.clone());
        let sent = Instant::now();
        let answer: Vec<Vec<u8>> = server
            .call(&server::BEGIN, |call| {
                call.arg(&server.prefix)
                    .arg(name(&key))
                    .arg(name(&arguments))
                    .arg(&ticket);
                call.arg(milliseconds(server.lease)).arg(milliseconds(keep));
            })
            .await?;
        let mut answer = answer.into_iter();
        let what = answer.next().unwrap_or_default();
        if what == b"first" {
            let kept = keep.max(server.lease * 2);
            // A record that cannot be prolonged becomes unknown by itself.
            let _ = server
                .claims
                .add(&ticket, sent, vec![format!("r:{}", name(&key))], kept);
            return Ok(RemoteBegin::First(Box::new(running)));
        }
        running.was_not_made();
        match what.as_slice() {
            b"replay" => Ok(RemoteBegin::Replay(answer.next().unwrap_or_default())),
            b"running" => Ok(RemoteBegin::InFlight),
            b"other" => Ok(RemoteBegin::OtherArguments),
            b"unknown" => Ok(RemoteBegin::Unknown),
            _ => Err(failed("an answer that the script does not give")),
        }
    }

    async fn settle(&self, key: Id, result: Option<Vec<u8>>) -> Result<bool> {
        let outcome = result.map_or(Outcome::NotRun, Outcome::Done);
        finish(&self.server, &name(&key), "", Some(&outcome)).await
    }

    async fn check(&self) -> Result<()> {
        self.server.ping().await
    }
}
