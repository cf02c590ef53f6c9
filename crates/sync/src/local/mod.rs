//! What one process needs to keep its own callers in order: a table of locks and a table of permits.
//!
//! Both are a map behind a mutex, with wakers in it, and nothing else: no timer, no channel, no runtime. So they can be
//! model-checked as they are (`tests/models.rs`), and every backend can put them in front of its own means.

pub mod keyed;
pub mod permits;
pub mod shim;
