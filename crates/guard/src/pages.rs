//! Small pages of memory.
//!
//! The allocator asks the kernel for pages of two megabytes. That makes a scan
//! faster, and a guard larger by a third than what it uses. Children would inherit
//! the setting: it is taken back while one is started.

use std::sync::OnceLock;

use rustix::thread::{disable_transparent_huge_pages, transparent_huge_pages_are_disabled};

/// What it was before, once it is changed.
static BEFORE: OnceLock<bool> = OnceLock::new();

/// From now on, in this process. A kernel that refuses has no such pages, or the guard is larger.
pub(crate) fn small() {
    let disabled = BEFORE.get_or_init(|| transparent_huge_pages_are_disabled().unwrap_or(true));
    if !disabled {
        let _ = disable_transparent_huge_pages(true);
    }
}

/// Starts a child as if the setting had never been changed.
pub(crate) fn as_before<T>(start: impl FnOnce() -> T) -> T {
    if BEFORE.get() != Some(&false) {
        return start();
    }
    let _ = disable_transparent_huge_pages(false);
    let started = start();
    let _ = disable_transparent_huge_pages(true);
    started
}
