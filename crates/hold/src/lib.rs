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
//! ```no_run
//! use toctou_hold::*;
//!
//! # async fn example() -> Result<(), Error> {
//! let prepared = Scratch::create()?.new_state()?;
//! let supervisor = Supervisor::new();
//! let sandbox = Sandbox::open(&SandboxSpec::default(), prepared.copy()?, &supervisor)?;
//! let server = Launch {
//!     argv: vec!["node".into(), "/srv/server.mjs".into()],
//!     hooks: Hooks { syscalls: true, ..Hooks::default() },
//!     ..Launch::default()
//! };
//! let a = sandbox.launch(&server).await?;
//! let b = sandbox.launch(&server).await?;
//! let mut hold = supervisor.arm(Point {
//!     source: Source::Syscall,
//!     process: a.id(),
//!     nth: 1,
//!     only: None,
//! });
//! // Here A gets a call. It comes as far as its first change of the state, and stands.
//! if let Some(event) = hold.held().await {
//!     println!("A is about to {event}");
//!     // Here B gets a call, and runs to its end.
//!     hold.release();
//! }
//! # drop((a, b));
//! let left = sandbox.close().await.snapshot(&Limits::default())?;
//! # drop(left);
//! # Ok(())
//! # }
//! ```
//!
//! # What is not seen
//!
//! - Writes to mapped memory. SQLite in WAL mode maps its `-shm` file; its locks and its writes to
//!   the log are seen.
//! - Work queued in an `io_uring`: the call that makes one fails with `ENOSYS`, so that servers fall
//!   back to system calls.
//! - Extended attributes, times, and calls of 32-bit programs.
//! - In [`Source::Await`]: what a runtime does without an event loop, native modules with threads of
//!   their own, and `uvloop`.
//!
//! # What a sandbox is not
//!
//! A wall against hostile code. It keeps a server from changing files and reaching the network by
//! accident; it can still read what the user can read.
//!
//! # What it costs
//!
//! `cargo bench -p toctou-hold` measures it: some 30 µs for a call that is looked at, next to nothing
//! for all others, and some tens of milliseconds for a sandbox with a process from start to end.

mod error;
mod event;
mod files;
mod launch;
#[cfg(target_os = "linux")]
mod linux;
mod network;
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
pub use network::Network;
pub use probe::{Available, probe};
pub use sandbox::{Isolate, Isolation, IsolationKind, Paths, Sandbox, SandboxSpec};
pub use scratch::{Area, Scratch, State};
pub use snapshot::{Content, Entry, Limits, Snapshot};
pub use supervisor::{Hold, HoldState, Mark, Supervisor};
