//! Where the state lives. Each backend implements all traits, and passes `tests/conformance`.
//!
//! `memory` is complete in itself. The others implement [`remote::Remote`], which knows nothing of waiting in this
//! process: [`front::Front`] puts the local tables before it, so that a thousand callers of one process are one to the
//! world outside.

pub mod front;
pub mod host;
pub mod memory;
#[cfg(feature = "postgres")]
pub mod postgres;
#[cfg(feature = "redis")]
pub mod redis;
pub mod remote;
