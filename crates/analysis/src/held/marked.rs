//! A lock file that is sought until a variable says that it was had:
//! `while (!got) { try { open(lock, "wx"); got = true } catch { await sleep(50) } }`.
//!
//! The ways out of the loop meet at its head, so the head alone does not tell who has it. The variable
//! does: nothing but the hand that made the file sets it.

use toctou_core::ir::{BinOp, BlockId, Literal, Op, Term, Var};

use super::passes::Pass;
use super::{Held, MAX_ACQUIRES, begun};
use crate::effect::{LockKind, Pos};
use crate::interp::Interp;

pub(super) fn passes(interp: &Interp<'_, '_, '_>, held: &Held) -> Vec<Pass> {
    let mut out = Vec::new();
    if !interp.cfg.has_loop {
        return out;
    }
    for (i, a) in interp.acquires.iter().enumerate().take(MAX_ACQUIRES) {
        if a.if_true || a.lock.kind != LockKind::File {
            continue;
        }
        for head in interp.cfg.rpo.iter().copied() {
            let around = head != a.at.block && interp.cfg.dominates(head, a.at.block);
            let Some((mark, to)) = asked(interp, head).filter(|_| around) else {
                continue;
            };
            let repeats = |p: &u32| interp.cfg.dominates(head, *p);
            let leaves = interp.cfg.preds[head as usize].iter().any(repeats)
                && !begun::is_in_loop(interp, head, to.0);
            if leaves && is_set_under(interp, mark, held, 1 << i) {
                out.push(Pass {
                    from: head,
                    to: to.0,
                    bits: 1 << i,
                });
            }
        }
    }
    out
}

/// The variable that a block ends in a test of, and where it goes if there is something in it.
fn asked(interp: &Interp<'_, '_, '_>, block: u32) -> Option<(Var, BlockId)> {
    let block = &interp.function.blocks[block as usize];
    let Term::Branch {
        cond,
        then,
        otherwise,
    } = block.term
    else {
        return None;
    };
    let (mut var, mut to) = (cond, then);
    for inst in block.insts.iter().rev() {
        if inst.op.dst() != Some(var) {
            continue;
        }
        match inst.op {
            Op::Copy { src, .. } => var = src,
            Op::Not { src, .. } => {
                var = src;
                to = if to == then { otherwise } else { then };
            }
            Op::Binary {
                op: BinOp::Eq,
                left,
                right,
                ..
            } if interp.is_empty_value(interp.val(right)) => {
                var = left;
                to = if to == then { otherwise } else { then };
            }
            _ => return None,
        }
    }
    Some((var, to))
}

/// Is it empty at first, and filled only where the lock is held?
fn is_set_under(interp: &Interp<'_, '_, '_>, mark: Var, held: &Held, bits: u64) -> bool {
    let mut filled = false;
    for (b, block) in interp.function.blocks.iter().enumerate() {
        for (i, inst) in block.insts.iter().enumerate() {
            if inst.op.dst() != Some(mark) {
                continue;
            }
            let at = Pos {
                block: b as u32,
                inst: i as u32,
            };
            let empty = match &inst.op {
                Op::Const { value, .. } => matches!(value, Literal::Null | Literal::Bool(false)),
                Op::Copy { src, .. } => interp.is_empty_value(interp.val(*src)),
                _ => false,
            };
            let under = held.at(at) & bits != 0;
            if !empty && !under {
                return false;
            }
            filled |= under;
        }
    }
    filled
}
