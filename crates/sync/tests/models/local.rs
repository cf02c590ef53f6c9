//! The sources of the crate, with loom's primitives in place of the standard library's.

#[path = "../../src/local/keyed.rs"]
pub mod keyed;
#[path = "../../src/local/permits.rs"]
pub mod permits;

pub mod shim {
    pub use loom::sync::atomic::{AtomicU64, Ordering};
    pub use loom::sync::{Mutex, MutexGuard};
    // Counting references is not what is checked here, and the tables need arrays and strings in them.
    pub use std::sync::Arc;

    pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
        mutex.lock().unwrap()
    }
}
