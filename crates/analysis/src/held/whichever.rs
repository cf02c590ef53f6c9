//! Is a lock held, whichever acquisition of it it was?
//!
//! `mu.Lock(); if slow { mu.Unlock(); wait(); mu.Lock() }; use()`: for a window that began before
//! the branch the two are not one. For who asks only whether somebody else can be at it now, they
//! are.

use rustc_hash::FxHashMap;

use super::{Held, MAX_ACQUIRES};
use crate::effect::LockKind;
use crate::interp::Interp;
use crate::sym::Sym;

impl Held {
    /// None if no lock is taken twice.
    pub(crate) fn whichever(&self, interp: &Interp<'_, '_, '_>) -> Option<Self> {
        let mut groups: FxHashMap<(Sym, bool), u64> = FxHashMap::default();
        for (i, a) in interp.acquires.iter().enumerate().take(MAX_ACQUIRES) {
            if a.lock.kind == LockKind::Library && !a.if_true && !a.lock.counted {
                *groups.entry((a.lock.key, a.lock.shared)).or_default() |= 1 << i;
            }
        }
        groups.retain(|_, bits| bits.count_ones() > 1);
        if groups.is_empty() {
            return None;
        }
        let all = |bits: u64| {
            let touched = groups.values().filter(|group| **group & bits != 0);
            touched.fold(bits, |bits, group| bits | group)
        };
        let changes = self.changes.iter();
        let changes = changes.map(|(at, (take, give))| (*at, (all(*take), all(*give))));
        let mut held = Self {
            at_entry: Vec::new(),
            changes: changes.collect(),
            any: true,
            hoped: Vec::new(),
            passes: Vec::new(),
            lone: self.lone,
            after_loops: FxHashMap::default(),
        };
        held.flow(interp, &[], 0);
        Some(held)
    }
}
