//! What one caller may ask for, by the primitives of `toctou-sync`: in this
//! process, or across all that share the database.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use toctou_sync::{Backend, Decision, Error, Limit, LockRequest, Permit, Quota};

use crate::store::{NewJob, Store, StoreError};

#[derive(Clone, Copy, Debug)]
pub struct CallerLimits {
    /// Scans a minute, all of them at once if none came before.
    pub rate: u32,
    /// Scans that wait or run.
    pub pending: u32,
    /// Uploads and streams that are open.
    pub open: u32,
}

pub struct Callers {
    pub backend: Arc<dyn Backend>,
    pub limits: CallerLimits,
}

/// Why a caller is turned away.
#[derive(Debug)]
pub enum Denied {
    /// Too many; try again after this time.
    Later(Duration),
    Unavailable(String),
}

impl From<StoreError> for Denied {
    fn from(error: StoreError) -> Self {
        Self::Unavailable(error.to_string())
    }
}

impl From<Error> for Denied {
    fn from(error: Error) -> Self {
        if error.is_contention() {
            Self::Later(Duration::from_secs(5))
        } else {
            Self::Unavailable(error.to_string())
        }
    }
}

/// An address is a caller. Of IPv6 it is the network: a home has many addresses.
pub fn name(address: IpAddr) -> String {
    match address.to_canonical() {
        IpAddr::V4(v4) => v4.to_string(),
        IpAddr::V6(v6) => {
            let [a, b, c, d, ..] = v6.segments();
            format!("{a:x}:{b:x}:{c:x}:{d:x}::/64")
        }
    }
}

impl Callers {
    /// One of the caller's scans of this minute.
    pub async fn take(&self, caller: &str) -> Result<(), Denied> {
        let quota = Quota::per_minute(self.limits.rate);
        let key = format!("serve:submit:{caller}");
        match self.backend.take(&key, quota, 1).await? {
            Decision::Allowed { .. } => Ok(()),
            Decision::Denied { retry_after } => Err(Denied::Later(retry_after)),
        }
    }

    /// A connection of the caller that stays open for a while.
    pub async fn enter(&self, caller: &str) -> Result<Permit, Denied> {
        let limit = Limit::at_most(self.limits.open);
        let key = format!("serve:open:{caller}");
        Ok(self.backend.enter(&key, limit).await?)
    }

    /// Puts a job into the queue, unless the caller has enough there. To count
    /// and to add are two steps: the lock makes them one.
    pub async fn submit(&self, store: &Store, job: NewJob) -> Result<(), Denied> {
        let key = format!("serve:pending:{}", job.caller);
        let request = LockRequest::new().exclusive(&*key);
        let lock = self
            .backend
            .acquire(request.within(Duration::from_secs(10)))
            .await?;
        let pending = store.pending(&job.caller).await?;
        let added = if pending < i64::from(self.limits.pending) {
            store.submit(job).await.map_err(Denied::from)
        } else {
            Err(Denied::Later(Duration::from_secs(10)))
        };
        // If it was lost meanwhile, one more may have got in: no harm is done.
        let _ = lock.release().await;
        added
    }
}
