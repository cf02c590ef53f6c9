//! A panic is a bug of ours. It must neither kill the scan of other files nor
//! go by without a word.

use std::any::Any;
use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::errors::Error;

thread_local! {
    /// Where the last panic of this thread came from.
    static PLACE: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Runs `work` with panics noted by us and not printed by the runtime.
pub(super) fn quietly<T>(work: impl FnOnce() -> T) -> T {
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(|info| {
        let place = info
            .location()
            .map(|at| format!("{}:{}", at.file(), at.line()));
        PLACE.with_borrow_mut(|last| *last = place);
    }));
    let result = work();
    std::panic::set_hook(hook);
    result
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
