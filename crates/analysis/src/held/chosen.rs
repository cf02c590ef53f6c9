//! A lock that is taken for some names: `if WRITERS.contains(&name) { lock }`, before the same
//! name decides what is done.
//!
//! Whether a name is in the list is not followed. Who wrote the list has said what needs the lock,
//! so it is taken to be had where it may be: enough to doubt a window, not to close it.

use toctou_core::Name;
use toctou_core::ir::{Callee, Cell, Op, Var};

use super::passes::{self, Pass, Turn};
use crate::interp::Interp;
use crate::sym::SymKind;

pub(super) fn passes(interp: &Interp<'_, '_, '_>) -> Vec<Pass> {
    let turns = passes::turns(interp, |a| !a.lock.shared);
    let chosen = turns.iter().filter(|turn| asks_a_list(interp, turn.cond));
    chosen.map(Turn::pass).collect()
}

/// Is a list of the module asked for what the caller was given?
fn asks_a_list(interp: &Interp<'_, '_, '_>, mut cond: Var) -> bool {
    let insts = || interp.function.blocks.iter().flat_map(|b| &b.insts);
    // A condition is a few steps away from the call that it asks.
    for _ in 0..4 {
        let Some(inst) = insts().find(|inst| inst.op.dst() == Some(cond)) else {
            return false;
        };
        match &inst.op {
            Op::Copy { src, .. } | Op::Not { src, .. } => cond = *src,
            Op::Call {
                callee: Callee::Method { obj, name: asks },
                args,
                ..
            } => {
                let [name] = &**args else {
                    return false;
                };
                let syms = &interp.cx.syms;
                let list = match *syms.kind(interp.val(*obj)) {
                    SymKind::Cell(cell) | SymKind::VarLoc(cell) => {
                        interp.cx.is_module_cell(cell) && is_only_asked(interp, cell, *asks)
                    }
                    SymKind::Array(_) => true,
                    _ => false,
                };
                let root = syms.root(interp.val(name.value));
                return list && matches!(syms.kind(root), SymKind::Param(_));
            }
            _ => return false,
        }
    }
    false
}

/// Does nobody do anything else with it? What is put in and taken out says who is at work, and not
/// what the lock is for.
fn is_only_asked(interp: &Interp<'_, '_, '_>, cell: Cell, asks: Name) -> bool {
    interp.cx.program.functions.iter().all(|function| {
        let insts = || function.blocks.iter().flat_map(|b| &b.insts);
        let loaded: Vec<Var> = insts()
            .filter_map(|inst| match inst.op {
                Op::LoadVar { dst, cell: of } if of == cell => Some(dst),
                _ => None,
            })
            .collect();
        if loaded.is_empty() {
            return true;
        }
        insts().all(|inst| match &inst.op {
            Op::Call {
                callee: Callee::Method { obj, name },
                ..
            } => *name == asks || !loaded.contains(obj),
            Op::SetIndex { obj, .. } | Op::SetField { obj, .. } => !loaded.contains(obj),
            _ => true,
        })
    })
}
