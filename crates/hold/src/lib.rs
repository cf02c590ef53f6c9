//! Runs a server in a sandbox and holds its work at exact points.
//!
//! Nothing here knows MCP, races or oracles. There are three things:
//!
//! - a [`State`]: folders that a server can change, prepared once and copied for each run, and a
//!   [`Snapshot`] of what is in them;
//! - a [`Sandbox`] round one state, in which servers are [`launched`](Sandbox::launch);
//! - a [`Supervisor`] that sees what they do to the state as [`Event`]s, and can
//!   [`arm`](Supervisor::arm) a [`Point`] to hold one of them there while others run.
//!
//! # What is not seen
//!
//! Writes to mapped memory, and work queued in an `io_uring` (the call that makes one fails with
//! `ENOSYS`, so that servers fall back to system calls). SQLite in WAL mode maps its `-shm` file:
//! its locks and its writes to the log are seen.

mod error;
mod event;
mod files;
mod launch;
#[cfg(target_os = "linux")]
mod linux;
#[cfg(unix)]
mod preload;
mod probe;
mod sandbox;
mod scratch;
mod snapshot;
mod supervisor;

pub use error::Error;
pub use event::{Class, Event, Jitter, Point, ProcessId, Shape, Source};
pub use launch::{Hooks, Launch, Process};
pub use probe::{Available, probe};
pub use sandbox::{Isolate, Isolation, IsolationKind, Paths, Sandbox, SandboxSpec};
pub use scratch::{Area, Scratch, State};
pub use snapshot::{Content, Entry, Limits, Snapshot};
pub use supervisor::{Hold, HoldState, Mark, Supervisor};
