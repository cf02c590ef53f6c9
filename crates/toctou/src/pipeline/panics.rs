//! A panic is a bug of ours. It must neither kill the scan of other files nor
//! go by without a word.

use std::any::Any;
use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Once;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::errors::Error;

thread_local! {
    /// Where the last panic of this thread came from.
    static PLACE: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// How many scans are under way: an editor has several folders open.
static SCANS: AtomicUsize = AtomicUsize::new(0);
static HOOK: Once = Once::new();

/// Runs `work` with panics noted by us and not printed by the runtime.
pub(super) fn quietly<T>(work: impl FnOnce() -> T) -> T {
    // Put in once and left there: to swap it for each scan would be a race of scans.
    HOOK.call_once(|| {
        let usual = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            if SCANS.load(Ordering::Relaxed) == 0 {
                return usual(info);
            }
            let place = info
                .location()
                .map(|at| format!("{}:{}", at.file(), at.line()));
            PLACE.with_borrow_mut(|last| *last = place);
        }));
    });
    let _scan = Scanning::begin();
    work()
}

struct Scanning;

impl Scanning {
    fn begin() -> Self {
        SCANS.fetch_add(1, Ordering::Relaxed);
        Self
    }
}

impl Drop for Scanning {
    fn drop(&mut self) {
        SCANS.fetch_sub(1, Ordering::Relaxed);
    }
}

/// What went wrong, in words, if `work` panicked.
pub(super) fn caught<T>(work: impl FnOnce() -> T) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(work)).map_err(|panic| message(&*panic))
}

pub(super) fn guarded<T>(doing: &'static str, work: impl FnOnce() -> T) -> Result<T, Error> {
    caught(work).map_err(|message| Error::Internal { doing, message })
}

fn message(panic: &(dyn Any + Send)) -> String {
    let text = panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("panic");
    match PLACE.with_borrow_mut(Option::take) {
        Some(place) => format!("{text} ({place})"),
        None => text.to_owned(),
    }
}
