//! How many windows of its callees a function remembers. A dispatcher has room for each of its
//! tools: the last one in a long `switch` counts as much as the first.

use rustc_hash::FxHashMap;
use toctou_core::Name;

use crate::effect::Window;

/// Of one tool. Nobody reads a report that is longer.
pub(crate) const MAX_WINDOWS: usize = 400;
/// Of all tools together.
const MAX_OF_ALL: usize = 4_000;

#[derive(Default)]
pub(crate) struct Room {
    taken: FxHashMap<Option<Name>, usize>,
    all: usize,
}

impl Room {
    pub(crate) fn has_for(&self, label: Option<Name>, window: &Window) -> bool {
        let taken = self.taken.get(&label).copied().unwrap_or(0);
        // What is atomic by accident leaves room for what is open.
        let open = window.in_process || window.cross_process;
        let (most, of_all) = if open {
            (MAX_WINDOWS, MAX_OF_ALL)
        } else {
            (MAX_WINDOWS / 2, MAX_OF_ALL / 2)
        };
        taken < most && self.all < of_all
    }

    pub(crate) fn take(&mut self, label: Option<Name>) {
        *self.taken.entry(label).or_default() += 1;
        self.all += 1;
    }
}
