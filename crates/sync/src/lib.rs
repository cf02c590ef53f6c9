//! Primitives that close race windows.
//!
//! A window is a read, a point where somebody else can run, and a write that trusts the read. Each primitive here closes
//! one shape of it, and says how far its promise goes:
//!
//! | primitive | closes |
//! |---|---|
//! | [`Locks`] | anything, by letting one caller (or many readers) in at a time, by key |
//! | [`Semaphores`] | one caller taking everything: at most N of its calls run |
//! | [`RateLimits`] | counting and comparing in two steps |
//! | [`Cells`] | read, compute, write back |
//! | [`Idempotency`] | the same order sent twice |
//! | [`CloseGate`] | a call that starts while everything is being closed |
//! | [`InitScope`] | things left open when a later step fails |
//! | [`files`] | "does it exist?" then create; read, change, write; check a path, then open it |
//!
//! The first five are traits, because how far they reach depends on where the state lives. [`connect`] gives one
//! [`Backend`] for all five:
//!
//! | backend | reaches | a holder that crashes | a holder that is paused |
//! |---|---|---|---|
//! | [`Memory`] | this process | takes the state with it | keeps what it holds |
//! | [`Host`] | all processes of one user on one Linux host | is released by the kernel, at once | keeps what it holds |
//! | `Redis` | everybody on that server | is released when its lease ends | **loses it**, when its lease ends |
//! | `Postgres` | everybody on that database | is released when its connection ends | keeps it while its connection lives |
//!
//! No lock stops a holder that does not know that it has lost it. Each acquisition therefore has a [`Fence`], a number
//! that grows; a resource that refuses numbers lower than one it has seen is safe, and [`Cells::write_fenced`] is such a
//! resource.
//!
//! Everything here is cancel-safe: a future that is dropped leaves no lock, permit or place in a queue behind. It needs a
//! Tokio runtime with time enabled.
//!
//! ```
//! use std::time::Duration;
//! use toctou_sync::{LockRequest, connect};
//!
//! # tokio::runtime::Runtime::new().unwrap().block_on(async {
//! let backend = connect("memory:").await?;
//! let request = LockRequest::new().exclusive("invoice:17").shared("customer:4");
//! let guard = backend.acquire(request.within(Duration::from_secs(5))).await?;
//! // Read, decide, write: nobody else is here.
//! backend.write_fenced("invoice:17", guard.fence(), b"paid".to_vec()).await?;
//! guard.release().await?;
//! # Ok::<(), toctou_sync::Error>(())
//! # }).unwrap();
//! ```
#![warn(missing_docs)]

mod backend;
mod backends;
mod cell;
mod deadline;
mod error;
pub mod files;
mod gate;
mod idempotency;
mod key;
mod local;
mod lock;
mod rate;
mod scope;
mod semaphore;

pub use backend::{Backend, BoxFuture, Wait, connect};

pub use backends::host::{Host, HostOptions};
pub use backends::memory::{Memory, MemoryOptions};
#[cfg(feature = "postgres")]
pub use backends::postgres::{Postgres, PostgresOptions};
#[cfg(feature = "redis")]
pub use backends::redis::{Redis, RedisOptions};
pub use cell::{Cells, Retry, Swap, Version, Versioned, update};
pub use error::{Error, Result};
pub use gate::{CloseGate, Closed, Inside};
pub use idempotency::{Begin, Call, Idempotency, InFlight, Ticket};
pub use lock::{Fence, LockGuard, LockRequest, Locks, Mode};
pub use rate::{Decision, Quota, RateLimits};
pub use scope::InitScope;
pub use semaphore::{Limit, Permit, Semaphores};
