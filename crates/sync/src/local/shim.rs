//! The primitives that the model checker replaces (`tests/models.rs` has the same names for loom's).

use std::sync::{MutexGuard, PoisonError};

pub use std::sync::atomic::{AtomicU64, Ordering};
pub use std::sync::{Arc, Mutex};

/// Nothing in this crate panics while it holds a mutex; if it did, the tables would still be whole between statements.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
