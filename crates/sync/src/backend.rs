//! The family of traits as one thing, chosen by a URL.

use std::fmt::Debug;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use crate::{
    Cells, Error, Host, HostOptions, Idempotency, Locks, Memory, MemoryOptions, RateLimits, Result,
    Semaphores,
};

/// A boxed future: the traits are used as `dyn`, because the backend is chosen at run time.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// How long a request may wait for its turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wait {
    /// Not at all.
    No,
    /// At most this long, by the monotonic clock: setting the system's clock does not change it.
    For(Duration),
    /// Until it is there, or the future is dropped.
    Forever,
}

/// All primitives whose reach depends on where their state lives.
pub trait Backend:
    Locks + Semaphores + RateLimits + Cells + Idempotency + Debug + Send + Sync + 'static
{
    /// `memory`, `host`, `redis` or `postgres`.
    fn name(&self) -> &'static str;

    /// Asks the backend for a sign of life. An error is always [`Error::Unavailable`].
    fn check(&self) -> BoxFuture<'_, Result<()>>;
}

/// Opens the backend that a URL names.
///
/// | URL | backend |
/// |---|---|
/// | `memory:` | [`Memory`] |
/// | `host:` | [`Host`] in the user's runtime directory |
/// | `host:/some/directory` | [`Host`] in that directory |
/// | `redis://…`, `rediss://…` | `Redis`, with the feature `redis` |
/// | `postgres://…`, `postgresql://…` | `Postgres`, with the feature `postgres` |
///
/// # Errors
///
/// [`Error::Invalid`] for a URL that names no backend or one that was not compiled in, [`Error::Unavailable`] if the
/// backend does not answer.
pub async fn connect(url: &str) -> Result<Arc<dyn Backend>> {
    let (scheme, rest) = url
        .split_once(':')
        .ok_or_else(|| Error::Invalid(format!("not the URL of a backend: {url}")))?;
    match scheme {
        "memory" if rest.is_empty() => Ok(Arc::new(Memory::new(MemoryOptions::default()))),
        "host" if rest.is_empty() => Ok(Arc::new(Host::open(HostOptions::default())?)),
        "host" => Ok(Arc::new(Host::open(HostOptions::in_directory(rest))?)),
        #[cfg(feature = "redis")]
        "redis" | "rediss" => Ok(Arc::new(
            crate::Redis::connect(crate::RedisOptions::new(url)).await?,
        )),
        #[cfg(feature = "postgres")]
        "postgres" | "postgresql" => Ok(Arc::new(
            crate::Postgres::connect(crate::PostgresOptions::new(url)).await?,
        )),
        // A URL may carry a password: only its scheme is repeated.
        _ => Err(Error::Invalid(format!(
            "no backend for {scheme} URLs: memory, host, redis and postgres exist, the last two as features"
        ))),
    }
}
