//! What a backend outside of this process has to do.

use std::fmt::Debug;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;

use crate::deadline::Deadline;
use crate::idempotency::Finish;
use crate::lock::Release;
use crate::rate::Microseconds;
use crate::{Decision, Fence, Mode, Result, Swap, Version, Versioned};

/// Something that is held outside, until it is released or dropped.
pub struct Claim {
    pub held: Box<dyn Release>,
    pub lost: Option<watch::Receiver<bool>>,
}

/// What a key is outside: a digest of its kind, its namespace and itself.
pub type Id = [u8; 32];

pub enum RemoteBegin {
    First(Box<dyn Finish>),
    Replay(Vec<u8>),
    InFlight,
    OtherArguments,
    Unknown,
}

/// Each method is one atomic step outside. A future that is dropped half way leaves nothing held.
///
/// Requests for one key come one at a time from this process, except that several shared holders of a key may come at
/// once.
pub trait Remote: Debug + Send + Sync + 'static {
    const NAME: &'static str;

    /// Takes all keys. `None` if the time was over before.
    fn lock(
        self: &Arc<Self>,
        keys: &[(Id, Mode)],
        deadline: &Deadline,
    ) -> impl Future<Output = Result<Option<(Fence, Claim)>>> + Send;

    /// Takes a permit if fewer than `limit` are out.
    fn permit(
        self: &Arc<Self>,
        caller: Id,
        limit: u32,
    ) -> impl Future<Output = Result<Option<Claim>>> + Send;

    fn take(&self, key: Id, quota: Microseconds) -> impl Future<Output = Result<Decision>> + Send;

    fn read(&self, key: Id) -> impl Future<Output = Result<Option<Versioned>>> + Send;

    fn compare_and_swap(
        &self,
        key: Id,
        expected: Option<Version>,
        value: Option<Vec<u8>>,
    ) -> impl Future<Output = Result<Swap>> + Send;

    /// `Err` is the higher fence that was seen.
    fn write_fenced(
        &self,
        key: Id,
        fence: Fence,
        value: Vec<u8>,
    ) -> impl Future<Output = Result<Result<Version, Fence>>> + Send;

    fn begin(
        self: &Arc<Self>,
        key: Id,
        arguments: Id,
        keep: Duration,
    ) -> impl Future<Output = Result<RemoteBegin>> + Send;

    fn settle(&self, key: Id, result: Option<Vec<u8>>)
    -> impl Future<Output = Result<bool>> + Send;

    fn check(&self) -> impl Future<Output = Result<()>> + Send;
}
