//! The part of every outside backend that is the same: the turn among the callers of this process, then the claim
//! outside, then waiting for what others hold.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::memory::{local_lock, local_permit, lock_expired, permit_expired};
use super::remote::{Claim, Id, Remote, RemoteBegin};
use crate::deadline::Deadline;
use crate::idempotency::Ticket;
use crate::local::keyed::{Held, KeyedLocks};
use crate::local::permits::{HeldPermit, Permits};
use crate::lock::Release;
use crate::{
    Backend, Begin, BoxFuture, Call, Cells, Decision, Error, Fence, Idempotency, InFlight, Limit,
    LockGuard, LockRequest, Locks, Mode, Permit, Quota, RateLimits, Result, Semaphores, Swap,
    Version, Versioned, cell, key,
};

pub struct Front<R> {
    remote: Arc<R>,
    namespace: String,
    locks: Arc<KeyedLocks>,
    permits: Arc<Permits>,
}

/// A claim outside and its turn here. Fields are dropped in this order: first others may come in, then we.
struct Both<L> {
    outside: Box<dyn Release>,
    local: L,
}

impl<L: Send + Sync + 'static> Release for Both<L> {
    fn release(self: Box<Self>) -> BoxFuture<'static, Result<()>> {
        let Self { outside, local } = *self;
        let released = outside.release();
        Box::pin(async move {
            let result = released.await;
            drop(local);
            result
        })
    }
}

/// Pauses between two looks at what others hold: short at first, then long enough to cost nothing.
struct Pauses(Duration);

impl Pauses {
    fn new() -> Self {
        Self(Duration::from_millis(2))
    }

    async fn pause(&mut self) {
        sleep(self.0.mul_f64(0.5 + fastrand::f64())).await;
        self.0 = (self.0 * 2).min(Duration::from_millis(30));
    }
}

impl<R: Remote> Front<R> {
    pub fn new(remote: Arc<R>, namespace: String) -> Self {
        Self {
            remote,
            namespace,
            locks: Arc::default(),
            permits: Arc::default(),
        }
    }

    fn id(&self, kind: &str, key: &str) -> Id {
        key::scoped(&[kind, &self.namespace, key])
    }

    async fn lock(&self, request: LockRequest) -> Result<LockGuard> {
        let deadline = Deadline::new(request.wait);
        let local: Held = local_lock(&self.locks, &request, &deadline).await?;
        let keys: Vec<(Id, Mode)> = request
            .keys
            .iter()
            .map(|(key, mode)| (self.id("lock", key), *mode))
            .collect();
        let Some((
            fence,
            Claim {
                held: outside,
                lost,
            },
        )) = self.remote.lock(&keys, &deadline).await?
        else {
            return Err(lock_expired(&request, &deadline));
        };
        Ok(LockGuard::new(
            fence,
            request,
            Box::new(Both { outside, local }),
            lost,
        ))
    }

    async fn permit(&self, caller: &str, limit: Limit) -> Result<Permit> {
        let deadline = Deadline::new(limit.wait);
        let local: HeldPermit = local_permit(&self.permits, caller, limit, &deadline).await?;
        let id = self.id("permit", caller);
        let mut pauses = Pauses::new();
        loop {
            if let Some(Claim {
                held: outside,
                lost,
            }) = self.remote.permit(id, limit.permits).await?
            {
                return Ok(Permit::new(caller, Box::new(Both { outside, local }), lost));
            }
            if deadline.run(pauses.pause()).await.is_err() {
                return Err(permit_expired(caller, limit, &deadline));
            }
        }
    }

    async fn begin_call(&self, call: Call<'_>) -> Result<Begin> {
        call.check()?;
        let id = self.id("record", call.key);
        let arguments = key::digest(call.arguments);
        let start = Instant::now();
        let mut pauses = Pauses::new();
        loop {
            match self.remote.begin(id, arguments, call.keep).await? {
                RemoteBegin::First(record) => {
                    return Ok(Begin::First(Ticket::new(call.key, record)));
                }
                RemoteBegin::Replay(result) => return Ok(Begin::Replay(result)),
                RemoteBegin::OtherArguments => return Ok(Begin::OtherArguments),
                RemoteBegin::Unknown => return Ok(Begin::Unknown),
                RemoteBegin::InFlight => match call.in_flight {
                    InFlight::Wait(time) if start.elapsed() < time => pauses.pause().await,
                    _ => return Ok(Begin::InFlight),
                },
            }
        }
    }
}

impl<R: Remote> fmt::Debug for Front<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct(R::NAME)
            .field("namespace", &self.namespace)
            .finish_non_exhaustive()
    }
}

impl<R: Remote> Backend for Front<R> {
    fn name(&self) -> &'static str {
        R::NAME
    }

    fn check(&self) -> BoxFuture<'_, Result<()>> {
        Box::pin(self.remote.check())
    }
}

impl<R: Remote> Locks for Front<R> {
    fn acquire(&self, request: LockRequest) -> BoxFuture<'_, Result<LockGuard>> {
        Box::pin(self.lock(request))
    }
}

impl<R: Remote> Semaphores for Front<R> {
    fn enter<'a>(&'a self, caller: &'a str, limit: Limit) -> BoxFuture<'a, Result<Permit>> {
        Box::pin(self.permit(caller, limit))
    }
}

impl<R: Remote> RateLimits for Front<R> {
    fn take<'a>(
        &'a self,
        key: &'a str,
        quota: Quota,
        cost: u32,
    ) -> BoxFuture<'a, Result<Decision>> {
        Box::pin(async move {
            let quota = quota.checked(key, cost)?;
            self.remote.take(self.id("rate", key), quota).await
        })
    }
}

impl<R: Remote> Cells for Front<R> {
    fn read<'a>(&'a self, key: &'a str) -> BoxFuture<'a, Result<Option<Versioned>>> {
        Box::pin(async move {
            cell::check(key, None)?;
            self.remote.read(self.id("cell", key)).await
        })
    }

    fn compare_and_swap<'a>(
        &'a self,
        key: &'a str,
        expected: Option<Version>,
        value: Option<Vec<u8>>,
    ) -> BoxFuture<'a, Result<Swap>> {
        Box::pin(async move {
            cell::check(key, value.as_deref())?;
            self.remote
                .compare_and_swap(self.id("cell", key), expected, value)
                .await
        })
    }

    fn write_fenced<'a>(
        &'a self,
        key: &'a str,
        fence: Fence,
        value: Vec<u8>,
    ) -> BoxFuture<'a, Result<Version>> {
        Box::pin(async move {
            cell::check(key, Some(&value))?;
            self.remote
                .write_fenced(self.id("cell", key), fence, value)
                .await?
                .map_err(|seen| Error::StaleFence {
                    presented: fence,
                    seen,
                })
        })
    }
}

impl<R: Remote> Idempotency for Front<R> {
    fn begin<'a>(&'a self, call: Call<'a>) -> BoxFuture<'a, Result<Begin>> {
        Box::pin(self.begin_call(call))
    }

    fn settle<'a>(&'a self, key: &'a str, result: Option<Vec<u8>>) -> BoxFuture<'a, Result<bool>> {
        Box::pin(async move {
            cell::check(key, result.as_deref())?;
            self.remote.settle(self.id("record", key), result).await
        })
    }
}

/// A public backend is a name for a [`Front`]: it hands all traits on to its field `front`.
macro_rules! delegate {
    ($backend:ty) => {
        impl $crate::Backend for $backend {
            fn name(&self) -> &'static str {
                $crate::Backend::name(&self.front)
            }
            fn check(&self) -> $crate::BoxFuture<'_, $crate::Result<()>> {
                $crate::Backend::check(&self.front)
            }
        }
        impl $crate::Locks for $backend {
            fn acquire(
                &self,
                request: $crate::LockRequest,
            ) -> $crate::BoxFuture<'_, $crate::Result<$crate::LockGuard>> {
                $crate::Locks::acquire(&self.front, request)
            }
        }
        impl $crate::Semaphores for $backend {
            fn enter<'a>(
                &'a self,
                caller: &'a str,
                limit: $crate::Limit,
            ) -> $crate::BoxFuture<'a, $crate::Result<$crate::Permit>> {
                $crate::Semaphores::enter(&self.front, caller, limit)
            }
        }
        impl $crate::RateLimits for $backend {
            fn take<'a>(
                &'a self,
                key: &'a str,
                quota: $crate::Quota,
                cost: u32,
            ) -> $crate::BoxFuture<'a, $crate::Result<$crate::Decision>> {
                $crate::RateLimits::take(&self.front, key, quota, cost)
            }
        }
        impl $crate::Cells for $backend {
            fn read<'a>(
                &'a self,
                key: &'a str,
            ) -> $crate::BoxFuture<'a, $crate::Result<Option<$crate::Versioned>>> {
                $crate::Cells::read(&self.front, key)
            }
            fn compare_and_swap<'a>(
                &'a self,
                key: &'a str,
                expected: Option<$crate::Version>,
                value: Option<Vec<u8>>,
            ) -> $crate::BoxFuture<'a, $crate::Result<$crate::Swap>> {
                $crate::Cells::compare_and_swap(&self.front, key, expected, value)
            }
            fn write_fenced<'a>(
                &'a self,
                key: &'a str,
                fence: $crate::Fence,
                value: Vec<u8>,
            ) -> $crate::BoxFuture<'a, $crate::Result<$crate::Version>> {
                $crate::Cells::write_fenced(&self.front, key, fence, value)
            }
        }
        impl $crate::Idempotency for $backend {
            fn begin<'a>(
                &'a self,
                call: $crate::Call<'a>,
            ) -> $crate::BoxFuture<'a, $crate::Result<$crate::Begin>> {
                $crate::Idempotency::begin(&self.front, call)
            }
            fn settle<'a>(
                &'a self,
                key: &'a str,
                result: Option<Vec<u8>>,
            ) -> $crate::BoxFuture<'a, $crate::Result<bool>> {
                $crate::Idempotency::settle(&self.front, key, result)
            }
        }
    };
}
pub(crate) use delegate;
