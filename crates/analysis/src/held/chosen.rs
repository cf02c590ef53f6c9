//! A lock that is taken for some names: `if WRITERS.contains(&name) { lock }`, before the same
//! name decides what is done.
//!
//! Whether a name is in the list is not followed. Who wrote the list has said what needs the lock,
//! so it is taken to be had where it may be: enough to doubt a window, not to close it.

use toctou_core::ir::{Callee, Op, Term, Var};

use super::MAX_ACQUIRES;
use super::passes::Pass;
use crate::interp::Interp;
use crate::sym::SymKind;

pub(super) fn passes(interp: &Interp<'_, '_, '_>) -> Vec<Pass> {
    let mut out = Vec::new();
    for (i, a) in interp.acquires.iter().enumerate().take(MAX_ACQUIRES) {
        if a.if_true || a.lock.shared {
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
            let other = match control.way {
                0 => otherwise,
                1 => then,
                _ => continue,
            };
            if asks_a_list(interp, cond) {
                out.push(Pass {
                    from: control.block,
                    to: other.0,
                    bits: 1 << i,
                });
            }
        }
    }
    out
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
                callee: Callee::Method { obj, .. },
                args,
                ..
            } => {
                let [name] = args.as_slice() else {
                    return false;
                };
                let syms = &interp.cx.syms;
                let list = match *syms.kind(interp.val(*obj)) {
                    SymKind::Cell(cell) | SymKind::VarLoc(cell) => interp.cx.is_module_cell(cell),
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
