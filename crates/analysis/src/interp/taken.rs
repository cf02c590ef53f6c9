//! What is taken out of a place that others look into is the taker's alone.
//!
//! `mu.Lock(); batch := s.pending; s.pending = nil; mu.Unlock()`, or an entry that is looked up and
//! deleted: who comes next finds something else there, or nothing.

use toctou_core::ir::Term;

use super::Interp;
use super::access::{Accesses, Owner};
use crate::effect::Pos;
use crate::held::{Held, MAX_ACQUIRES};
use crate::sym::{Sym, SymKind};

/// Places of one function that are emptied.
const MAX_TAKEN: usize = 16;

/// From where on a place's old content is nobody else's.
struct Taken {
    place: Sym,
    /// The last block that everybody goes through; in it, what stands behind this instruction.
    from: Pos,
}

impl Interp<'_, '_, '_> {
    /// Something new is put into a place, or nothing.
    pub(crate) fn note_emptied(&mut self, place: Sym, value: Option<Sym>) {
        if !self.is_racy() || self.emptied.len() >= MAX_TAKEN {
            return;
        }
        let new = value.is_none_or(|v| {
            let origin = self.origin(v);
            self.owner_of(origin) == Owner::Own
        });
        let entry = (place, self.at);
        if new && self.owner_of(place) != Owner::Own && !self.emptied.contains(&entry) {
            self.emptied.push(entry);
        }
    }

    /// What was taken out is not shared from then on, wherever it goes.
    pub(crate) fn settle_taken(&mut self, held: &Held, plain: &mut Accesses) {
        let emptied = std::mem::take(&mut self.emptied);
        for (place, at) in emptied {
            let Some(taken) = self.taken(held, plain, place, at) else {
                continue;
            };
            let is_after = |at: Pos| self.comes_by(taken.from, at);
            let is_own = |sym: Sym, at: Pos| is_after(at) && self.leads_through(sym, taken.place);
            // The place itself is everybody's still, and what is in it now.
            let itself = |a: &super::access::Access| a.key == place && !a.content;
            plain.accesses.retain(|a| itself(a) || !is_own(a.key, a.at));
            for call in &mut plain.calls {
                if call.recv.is_some_and(|recv| is_own(recv, call.at)) {
                    call.this = Owner::Own;
                }
                for (owner, sym) in call.args.iter_mut().zip(&call.values) {
                    if is_own(*sym, call.at) {
                        *owner = Owner::Own;
                    }
                }
            }
        }
    }

    fn taken(&mut self, held: &Held, plain: &Accesses, place: Sym, at: Pos) -> Option<Taken> {
        // Of an entry it is only known that somebody looked into the table.
        let (looked_at, content) = match *self.cx.syms.kind(place) {
            SymKind::Index(table, _) => (table, true),
            // To look at a variable is to look at its place, and gives what is in it.
            SymKind::Cell(cell) => (self.cx.syms.make(SymKind::VarLoc(cell)), false),
            _ => (place, false),
        };
        let mut exclusive = 0u64;
        for (i, a) in self.acquires.iter().enumerate().take(MAX_ACQUIRES) {
            exclusive |= u64::from(!a.lock.shared) << i;
        }
        let bits = held.at(at) & exclusive;
        let reads = plain.accesses.iter();
        let reads: Vec<Pos> = reads
            .filter(|a| !a.write && a.content == content && a.key == looked_at)
            .map(|a| a.at)
            .collect();
        let before = |read: &Pos| self.comes_by(*read, at) && held.at(*read) & bits != 0;
        let found = !reads.is_empty() && reads.iter().all(before);
        let from = self.only_if_there(place, at);
        found.then_some(Taken { place, from })
    }

    /// `if ok { delete(m, k) }`: where it is not done there was nothing.
    fn only_if_there(&self, place: Sym, at: Pos) -> Pos {
        let controls = self.cfg.controls_of(at.block);
        let [control] = *controls else {
            return at;
        };
        let block = control.block;
        let Term::Branch { cond, .. } = self.function.blocks[block as usize].term else {
            return at;
        };
        // Whether there is one is asked of the entry.
        let asked = self.val(cond) == place && control.way == 0;
        let inst = u32::MAX;
        if asked { Pos { block, inst } } else { at }
    }

    /// Does everybody who comes to `b` come by `a` first?
    fn comes_by(&self, a: Pos, b: Pos) -> bool {
        if a.block == b.block {
            a.inst < b.inst
        } else {
            self.cfg.dominates(a.block, b.block)
        }
    }

    fn leads_through(&self, mut sym: Sym, place: Sym) -> bool {
        loop {
            if sym == place {
                return true;
            }
            match *self.cx.syms.kind(sym) {
                SymKind::Field(base, _) | SymKind::Index(base, _) | SymKind::Element(base) => {
                    sym = base;
                }
                _ => return false,
            }
        }
    }
}
