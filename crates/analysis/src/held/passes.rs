//! Who has the lock already passes: `if (mine.getStore()?.has(key)) return work()`, before the
//! lock is taken.
//!
//! That is safe if what is asked belongs to the call alone, as a library says, and is set
//! nowhere but where the lock is held. A set that all calls share says only that somebody has
//! the lock, and lets everybody in meanwhile.

use toctou_core::Name;
use toctou_core::ir::{Callee, Cell, ExportTarget, Op, Term, Var};

use super::{Held, MAX_ACQUIRES};
use crate::effect::{LockKind, Pos};
use crate::interp::{Acquire, Interp};
use crate::sym::{CalleeSym, Sym, SymKind};

/// A way out of a branch on which locks are held that are not taken there.
pub(super) struct Pass {
    pub(super) from: u32,
    pub(super) to: u32,
    pub(super) bits: u64,
}

/// What a call has for itself is kept in a variable, or in a field of that name.
#[derive(Clone, Copy)]
enum Keeper {
    Variable(Cell),
    Field(Name),
}

/// A condition that decides whether a lock is taken.
pub(super) struct Turn {
    /// Which acquisition it is, as one bit.
    bits: u64,
    from: u32,
    pub(super) cond: Var,
    /// The lock is taken where the answer is yes.
    on_yes: bool,
    /// Where it goes past the lock.
    past: u32,
}

impl Turn {
    pub(super) fn pass(&self) -> Pass {
        Pass {
            from: self.from,
            to: self.past,
            bits: self.bits,
        }
    }
}

/// The conditions on which such locks are taken.
pub(super) fn turns(interp: &Interp<'_, '_, '_>, is_such: impl Fn(&Acquire) -> bool) -> Vec<Turn> {
    let mut out = Vec::new();
    for (i, a) in interp.acquires.iter().enumerate().take(MAX_ACQUIRES) {
        if a.if_true || !is_such(a) {
            continue;
        }
        for control in interp.cfg.controls_of(a.at.block).iter() {
            let Term::Branch {
                cond,
                then,
                otherwise,
            } = interp.function.blocks[control.block as usize].term
            else {
                continue;
            };
            let (on_yes, past) = match control.way {
                0 => (true, otherwise),
                1 => (false, then),
                _ => continue,
            };
            out.push(Turn {
                bits: 1 << i,
                from: control.block,
                cond,
                on_yes,
                past: past.0,
            });
        }
    }
    out
}

pub(super) fn passes(interp: &Interp<'_, '_, '_>, held: &Held) -> Vec<Pass> {
    if interp.own.is_empty() {
        return Vec::new();
    }
    let is_passed = |turn: &Turn| {
        let (asked, yes) = interp.asked(turn.cond);
        // The lock is taken where the answer is no.
        let own = interp
            .own_in(asked, turn.cond)
            .filter(|_| turn.on_yes != yes);
        let keeper = own.and_then(|own| interp.keeper(own));
        keeper.is_some_and(|(keeper, asks)| interp.is_set_under(keeper, asks, held, turn.bits))
    };
    let turns = turns(interp, |a| a.lock.kind == LockKind::Library);
    turns
        .iter()
        .filter(|t| is_passed(t))
        .map(Turn::pass)
        .collect()
}

impl Interp<'_, '_, '_> {
    fn asked(&self, cond: Var) -> (Sym, bool) {
        match self.cx.syms.kind(self.val(cond)) {
            SymKind::Not(inner) => (*inner, false),
            _ => (self.val(cond), true),
        }
    }

    /// The call's own thing that a condition is about, if it is about nothing else.
    fn own_in(&self, asked: Sym, cond: Var) -> Option<Sym> {
        if let SymKind::Eq(a, b) = *self.cx.syms.kind(asked)
            && (self.is_empty_value(a) || self.is_empty_value(b))
        {
            return None;
        }
        let mut values: Vec<Sym> = vec![asked];
        let insts = self.function.blocks.iter().flat_map(|b| &b.insts);
        for inst in insts.filter(|inst| inst.op.dst() == Some(cond)) {
            match &inst.op {
                Op::Phi { from, .. } => values.extend(from.iter().map(|v| self.val(*v))),
                Op::Copy { src, .. } => values.push(self.val(*src)),
                _ => {}
            }
        }
        if let Some(others) = self.alternatives.get(&asked) {
            values.extend(others);
        }
        let mut owns = self.own.iter().copied().filter(|own| {
            let about = |v: &Sym| self.cx.syms.contains(*v, *own);
            values.iter().any(about)
        });
        let own = owns.next()?;
        owns.next().is_none().then_some(own)
    }

    /// Where it is kept, and by which method it is asked for.
    fn keeper(&self, own: Sym) -> Option<(Keeper, Name)> {
        let SymKind::Call(call) = self.cx.syms.kind(own) else {
            return None;
        };
        let CalleeSym::Method(asks) = call.callee else {
            return None;
        };
        let keeper = match *self.cx.syms.kind(call.recv?) {
            SymKind::Cell(cell) | SymKind::VarLoc(cell) => Keeper::Variable(cell),
            SymKind::Field(base, name) if *self.cx.syms.kind(base) == SymKind::This => {
                Keeper::Field(name)
            }
            _ => return None,
        };
        Some((keeper, asks))
    }

    /// Is everything that is done with it, but to ask, done by us with the lock held?
    fn is_set_under(&self, keeper: Keeper, asks: Name, held: &Held, bits: u64) -> bool {
        let program = self.cx.program;
        if let Keeper::Variable(cell) = keeper {
            let module = program.function_module[cell.owner.0 as usize].0 as usize;
            let exports = &program.modules[module].exports;
            let out =
                |e: &(Name, ExportTarget)| matches!(e.1, ExportTarget::Local(v) if v == cell.var);
            if program.modules[module].init != cell.owner || exports.iter().any(out) {
                return false;
            }
        }
        program.functions.iter().enumerate().all(|(f, function)| {
            let insts = || function.blocks.iter().flat_map(|b| &b.insts);
            let loaded: Vec<Var> = insts()
                .filter_map(|inst| match (&inst.op, keeper) {
                    (Op::LoadVar { dst, cell }, Keeper::Variable(kept)) if *cell == kept => {
                        Some(*dst)
                    }
                    (Op::GetField { dst, field, .. }, Keeper::Field(kept)) if *field == kept => {
                        Some(*dst)
                    }
                    _ => None,
                })
                .collect();
            if loaded.is_empty() {
                return true;
            }
            function.blocks.iter().enumerate().all(|(b, block)| {
                block.insts.iter().enumerate().all(|(i, inst)| {
                    let Op::Call { callee, args, .. } = &inst.op else {
                        return true;
                    };
                    let given = args.iter().any(|arg| loaded.contains(&arg.value));
                    let used = matches!(callee, Callee::Method { obj, name }
                        if loaded.contains(obj) && *name != asks);
                    let at = Pos {
                        block: b as u32,
                        inst: i as u32,
                    };
                    !given && (!used || f == self.id.0 as usize && held.at(at) & bits != 0)
                })
            })
        })
    }
}
