//! What is set up once, by hand: under a lock, unless a flag says that it was,
//! and then the flag is set. Whoever has called the function that does so finds
//! everything set up, and needs no lock to look at it.

use super::Interp;
use super::access::{Accesses, HeldLock, Spot};
use crate::effect::{Act, Pos};
use crate::held::Held;
use crate::sym::SymKind;
use toctou_core::finding::ResourceKind;
use toctou_core::ir::Term;

impl Interp<'_, '_, '_> {
    /// What is done within such a section has it to itself; what comes after a
    /// call of the function shares it with others who do the same.
    pub(crate) fn settle_ready(&mut self, held: &Held, plain: &mut Accesses) {
        let mut after: Vec<(Pos, Spot)> = Vec::new();
        for call in plain.calls.iter().filter(|c| !c.spawned) {
            for spot in &self.cx.plain[call.callee.0 as usize].readies {
                after.push((call.at, *spot));
            }
        }
        let returns: Vec<Pos> = (0..)
            .zip(&self.function.blocks)
            .filter(|(_, block)| matches!(block.term, Term::Return(_)))
            .map(|(i, block)| Pos {
                block: i,
                inst: block.insts.len() as u32,
            })
            .collect();
        for (at, spot) in &after {
            let always = returns.iter().all(|r| self.precedes(*at, *r));
            if always && !plain.readies.contains(spot) {
                plain.readies.push(*spot);
            }
            let after = HeldLock {
                spot: *spot,
                shared: true,
                once: false,
            };
            for access in plain.accesses.iter_mut() {
                if self.precedes(*at, access.at) {
                    access.locks.push(after);
                }
            }
            for call in plain.calls.iter_mut() {
                if self.precedes(*at, call.at) {
                    call.locks.push(after);
                }
            }
        }
        for (test, set, bits) in self.ready_tests(held) {
            let flag = self.events[test].loc.key;
            let SymKind::Field(base, name) = *self.cx.syms.kind(flag) else {
                continue;
            };
            let Some(class) = self.class_of(base, 0) else {
                continue;
            };
            let spot = Spot::Ready(class, name);
            let within = HeldLock {
                spot,
                shared: false,
                once: false,
            };
            let inside = |at: Pos| held.at(at) & bits != 0 && self.is_unset(test, at);
            for access in &mut plain.accesses {
                if access.key != flag && inside(access.at) {
                    access.locks.push(within);
                }
            }
            for call in &mut plain.calls {
                if inside(call.at) {
                    call.locks.push(within);
                }
            }
            // The flag says as much of what was set up before it.
            let before = after.iter().filter(|(at, _)| self.precedes(*at, set));
            for spot in before.map(|(_, spot)| *spot).chain([spot]) {
                if !plain.readies.contains(&spot) {
                    plain.readies.push(spot);
                }
            }
        }
    }

    /// Flags that are tested, where they are set, and the acquisitions that hold for both.
    pub(super) fn ready_tests(&self, held: &Held) -> Vec<(usize, Pos, u64)> {
        let mut out = Vec::new();
        for (r, test) in self.events.iter().enumerate() {
            let memory = test.loc.kind == ResourceKind::Memory && test.call.is_none();
            let bits = held.at(test.at);
            if !memory || bits == 0 || test.act != Act::Read {
                continue;
            }
            let bits = (0..self.acquires.len().min(64))
                .filter(|i| !self.acquires[*i].lock.shared)
                .fold(0, |sum, i| sum | bits & 1 << i);
            let set = self.events.iter().find(|e| {
                e.act == Act::Write
                    && e.loc == test.loc
                    && e.call.is_none()
                    && e.constant
                    && !e.idempotent
                    && held.at(e.at) & bits != 0
                    && self.is_unset(r, e.at)
            });
            if let Some(set) = set {
                out.push((r, set.at, bits));
            }
        }
        out
    }

    /// Is a place reached only where the flag was seen not to be set?
    pub(super) fn is_unset(&self, test: usize, at: Pos) -> bool {
        let (plainly, somehow) = self.said_at(test, at.block);
        plainly.or(somehow) == Some(false)
    }

    pub(super) fn precedes(&self, a: Pos, b: Pos) -> bool {
        a.block == b.block && a.inst < b.inst
            || a.block != b.block && self.cfg.dominates(a.block, b.block)
    }
}
