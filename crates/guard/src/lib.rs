//! A proxy that closes the race windows of an MCP server without touching it.
//!
//! Messages pass through as bytes ([`wire`]); a [`session`] knows which request
//! is whose; the [`admit::Gatekeeper`] decides by the [`policy`] which calls may
//! run beside which. Locks and limits are those of `toctou-sync`, so that
//! several guards exclude each other too.

pub mod admit;
mod awake;
pub mod check;
pub mod http;
pub mod io;
pub mod log;
pub mod metrics;
mod pages;
pub mod policy;
pub mod record;
pub mod refusal;
pub mod run;
pub mod servers;
pub mod session;
pub mod upstream;
pub mod wire;
