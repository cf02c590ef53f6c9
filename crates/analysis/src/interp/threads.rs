//! Threads that a function starts, and those that it has waited for.
//!
//! `if s.running { return }; s.running = true; go s.loop()`, under a lock: there is one of them. And
//! who has waited for all that were counted in (`wg.Wait()`) uses what they have left alone: as if
//! both held a lock, the thread all its life.

use super::Interp;
use super::access::{Accesses, HeldLock, Spot};
use crate::effect::Pos;
use crate::held::Held;
use crate::sym::{Sym, SymKind};
use toctou_core::ir::{Callee, Op};
use toctou_models::{Do, Mode};

impl Interp<'_, '_, '_> {
    pub(super) fn settle_threads(&mut self, held: &Held, plain: &mut Accesses) {
        let starts = |plain: &Accesses| plain.calls.iter().any(|c| c.spawned);
        if starts(plain) {
            self.settle_single(held, plain);
        }
        let mut counted: Vec<(Do, Pos, HeldLock)> = Vec::new();
        for step in &plain.life {
            if let Some(spot) = step.counter {
                let over = HeldLock {
                    spot,
                    shared: false,
                    once: false,
                };
                counted.push((step.what, step.at, over));
            }
        }
        for (what, at, over) in counted {
            if what == Do::Enroll {
                let started = plain.calls.iter_mut().filter(|c| c.spawned);
                for call in started.filter(|c| c.at == at || self.precedes(at, c.at)) {
                    call.locks.push(over);
                }
                continue;
            }
            for access in &mut plain.accesses {
                if self.precedes(at, access.at) {
                    access.locks.push(over);
                }
            }
            let called = plain.calls.iter_mut().filter(|c| !c.spawned);
            for call in called.filter(|c| self.precedes(at, c.at)) {
                call.locks.push(over);
            }
        }
    }

    /// Threads that are started only where a flag said that none runs, and it is set then; or
    /// where something else decided that it is this call's to do.
    fn settle_single(&mut self, held: &Held, plain: &mut Accesses) {
        let flags = self.ready_tests(held);
        for call in plain.calls.iter_mut().filter(|c| c.spawned && !c.repeated) {
            let once = call.locks.iter().any(|l| l.once);
            let flagged = flags.iter().any(|(test, set, _)| {
                self.precedes(*set, call.at) && self.is_unset(*test, call.at)
            });
            let decided = || {
                let on = self.control_deps(call.at.block);
                let mut on = on.events();
                on.any(|(e, _)| {
                    let mode = self.events[e as usize].mode;
                    matches!(mode, Mode::Conditional | Mode::Exclusive)
                })
            };
            call.single = once || flagged || decided();
        }
    }

    /// The field that the call at hand counts in, or waits for.
    pub(super) fn counter(&mut self, key: Sym) -> Option<Spot> {
        let key = self.origin(key);
        let SymKind::Field(object, name) = *self.cx.syms.kind(key) else {
            return None;
        };
        let class = self.class_of(object, 0).or_else(|| {
            // Made here: the register knows what.
            let inst = self.function.blocks[self.at.block as usize]
                .insts
                .get(self.at.inst as usize)?;
            let Op::Call {
                callee: Callee::Method { obj, .. },
                ..
            } = inst.op
            else {
                return None;
            };
            let Op::GetField { obj: outer, .. } = self.cx.definition(self.id, obj)?.op else {
                return None;
            };
            self.cx.points_to.only_class(self.id, outer)
        })?;
        Some(Spot::Joined(class, name))
    }
}
