//! Makes a race happen, and replays it.
//!
//! A server is started on a fresh state in a sandbox ([`cell`]), its tools are
//! tried ([`plan`]), and calls that may not go together are driven into each
//! other ([`schedules`]). An outcome that no serial order explains is a
//! violation ([`oracles`]); it is proved when it has passed all [`gates`].

pub mod budget;
pub mod call;
pub mod canon;
pub mod cell;
pub mod client;
mod error;
pub mod gates;
pub mod interrupt;
pub mod lab;
pub mod likely;
pub mod names;
pub mod oracles;
pub mod outcome;
pub mod plan;
pub mod pool;
pub mod proof;
pub mod prove;
pub mod replay;
pub mod report;
pub mod reproducer;
pub mod scenario;
pub mod schedules;
pub mod search;
mod shrink;
pub mod store;
pub mod target;
mod timeline;

pub use error::ProveError;
pub use prove::{Options, Replayed, Strategy, prove, replay_recipe};
