//! Latches: a place that is found empty and filled without giving way.
//!
//! `if (this.ready) return this.ready; this.ready = this.load();` Whoever comes
//! second finds it filled, so what the first one does to memory from there on
//! has no rival. A latch that the function clears again covers only what its own
//! statement begins: the promise that is kept is the work, and nobody clears it
//! before that ends. (What comes after is the business of `Interp::flag_locks`.)

use toctou_core::finding::ResourceKind;
use toctou_core::ir::Term;

use crate::effect::{Act, Loc, Pos};
use crate::held::Held;
use crate::interp::Interp;
use crate::sym::{Sym, SymKind};

pub(crate) struct Latch {
    /// The event that fills it.
    event: usize,
    root: Sym,
    /// It is cleared again: it covers what its own statement begins, no more.
    cleared: bool,
}

impl Interp<'_, '_, '_> {
    pub(crate) fn latches(&self, held: &Held) -> Vec<Latch> {
        let mut out = Vec::new();
        for (w, e) in self.events.iter().enumerate() {
            let fills = e.loc.kind == ResourceKind::Memory
                && e.act == Act::Write
                && !e.idempotent
                && e.call.is_none()
                // One entry of many keeps out those who come for the same entry only.
                && matches!(self.cx.syms.kind(e.loc.key), SymKind::Field(..) | SymKind::VarLoc(_));
            if !fills || !self.is_found_empty(w, held) {
                continue;
            }
            let cleared = self
                .events
                .iter()
                .any(|c| c.loc == e.loc && c.act == Act::Write && c.idempotent);
            out.push(Latch {
                event: w,
                root: self.cx.syms.root(e.loc.key),
                cleared,
            });
        }
        out
    }

    /// Is the write made only where the place was seen to be empty, at once?
    fn is_found_empty(&self, w: usize, held: &Held) -> bool {
        let write = &self.events[w];
        let place = write.loc.key;
        let empty = self.cfg.controls_of(write.at.block).iter().any(|control| {
            let Term::Branch { cond, .. } = self.function.blocks[control.block as usize].term
            else {
                return false;
            };
            let mut sym = self.val(cond);
            let mut yes = control.way == 0;
            while let SymKind::Not(inner) = self.cx.syms.kind(sym) {
                sym = *inner;
                yes = !yes;
            }
            // The value itself, or compared with a constant: `now - last < 5` is no latch.
            match *self.cx.syms.kind(sym) {
                SymKind::Eq(a, b) => {
                    yes && (self.is_value_of(a, place) && self.is_constant(b)
                        || self.is_value_of(b, place) && self.is_constant(a))
                }
                _ => !yes && control.way < 2 && self.is_value_of(sym, place),
            }
        });
        empty
            && write.ctrl.events().any(|(r, _)| {
                let read = &self.events[r as usize];
                // Where calls run in parallel, not to give way keeps nobody out: a lock does.
                let alone = !self.guarded || held.at(read.at) & held.at(write.at) != 0;
                read.loc == write.loc && alone && self.is_at_once(r as usize, w)
            })
    }

    /// Parts of one object, or variables of one scope.
    pub(crate) fn is_beside(&self, a: Sym, b: Sym) -> bool {
        match (self.cx.syms.kind(a), self.cx.syms.kind(b)) {
            (SymKind::Cell(a) | SymKind::VarLoc(a), SymKind::Cell(b) | SymKind::VarLoc(b)) => {
                a.owner == b.owner
            }
            _ => a == b,
        }
    }

    pub(crate) fn is_value_of(&self, value: Sym, place: Sym) -> bool {
        value == place
            || matches!((self.cx.syms.kind(value), self.cx.syms.kind(place)),
                (SymKind::Cell(a), SymKind::VarLoc(b)) if a == b)
    }

    /// Is what happens to a place in memory at `at` behind a latch?
    pub(crate) fn is_latched(
        &self,
        latches: &[Latch],
        at: Pos,
        loc: Loc,
        read: Option<usize>,
    ) -> bool {
        latches.iter().any(|latch| {
            let fill = self.events[latch.event].at;
            let same_statement = at.block == fill.block && at.inst <= fill.inst;
            let behind = at.block == fill.block || self.cfg.dominates(fill.block, at.block);
            let in_time = read.is_none_or(|r| {
                let seen = self.events[r].at;
                self.is_at_once(r, latch.event)
                    || !latch.cleared && seen != fill && self.cfg.dominates(fill.block, seen.block)
            });
            loc.kind == ResourceKind::Memory
                && self.is_beside(self.cx.syms.root(loc.key), latch.root)
                && (same_statement || behind && !latch.cleared)
                && in_time
        })
    }
}
