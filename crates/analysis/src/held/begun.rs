//! Where a transaction is held that is not begun on every way: by who is not in one already, in
//! the rounds of a loop, or if there is anything to write.

use rustc_hash::FxHashMap;
use toctou_core::ir::{Arg, Op, Term};

use super::{Held, MAX_ACQUIRES};
use crate::cfg::Control;
use crate::effect::{Event, LockKind, Pos};
use crate::interp::{Acquire, Interp};
use crate::sym::SymKind;

/// `if own: BEGIN`: who does not begin a transaction because of what the caller
/// said is in one already. Where that is decided.
pub(super) fn unless_begun(interp: &Interp<'_, '_, '_>, a: &Acquire) -> Option<Pos> {
    if a.lock.kind != LockKind::Transaction(true) || is_begun_by_write(interp, a) {
        return None;
    }
    let controls = interp.cfg.controls_of(a.at.block);
    let decides = |block: u32| match interp.function.blocks[block as usize].term {
        Term::Branch { cond, .. } => {
            let deps = interp.deps_of(interp.val(cond));
            deps.events().next().is_none() && !deps.is_empty()
        }
        _ => false,
    };
    let first = controls.iter().filter(|c| c.way == 0 && decides(c.block));
    let block = first.map(|c| c.block).min()?;
    let insts = interp.function.blocks[block as usize].insts.len();
    Some(Pos {
        block,
        inst: insts.checked_sub(1)? as u32,
    })
}

/// A statement that writes where a list is not empty, and is made of that list: who has
/// nothing to write begins no transaction, but has hardly come for that. Where that is decided.
pub(super) fn unless_empty(interp: &Interp<'_, '_, '_>, a: &Acquire) -> Option<Pos> {
    if !is_begun_by_write(interp, a) {
        return None;
    }
    let inst = &interp.function.blocks[a.at.block as usize].insts[a.at.inst as usize];
    let Op::Call { args, .. } = &inst.op else {
        return None;
    };
    let syms = &interp.cx.syms;
    let is_list = |block: u32| match interp.function.blocks[block as usize].term {
        Term::Branch { cond, .. } => {
            let list = interp.val(cond);
            let uses = |arg: &Arg| syms.contains(interp.val(arg.value), list);
            match syms.kind(list) {
                SymKind::Array(_) => true,
                SymKind::New(..) => args.iter().any(uses),
                _ => false,
            }
        }
        _ => false,
    };
    let controls = interp.cfg.controls_of(a.at.block);
    let (lists, others): (Vec<&Control>, Vec<&Control>) = controls
        .iter()
        .partition(|c| c.way == 0 && is_list(c.block));
    let lists = lists.iter().map(|c| c.block);
    let first = lists.reduce(|a, b| if interp.cfg.dominates(a, b) { a } else { b })?;
    let decides = |block: u32| {
        let term = &interp.function.blocks[block as usize].term;
        matches!(term, Term::Branch { .. } | Term::Multi(_))
    };
    if (others.iter()).any(|c| decides(c.block) && interp.cfg.dominates(first, c.block)) {
        return None;
    }
    let insts = interp.function.blocks[first as usize].insts.len();
    Some(Pos {
        block: first,
        inst: insts as u32,
    })
}

fn is_begun_by_write(interp: &Interp<'_, '_, '_>, a: &Acquire) -> bool {
    let writes = |e: &Event| e.at == a.at && e.act.is_write();
    matches!(a.lock.kind, LockKind::Transaction(_)) && interp.events.iter().any(writes)
}

/// A statement that writes in every round of a loop has begun its transaction when the loop is
/// done: who was given nothing to go through has hardly come for that.
pub(super) fn begun_in_loops(interp: &Interp<'_, '_, '_>, held: &Held) -> FxHashMap<u32, u64> {
    let mut out: FxHashMap<u32, u64> = FxHashMap::default();
    let cfg = &interp.cfg;
    for (i, a) in interp.acquires.iter().enumerate().take(MAX_ACQUIRES) {
        if !cfg.has_loop || !is_begun_by_write(interp, a) {
            continue;
        }
        for head in cfg.rpo.iter().copied() {
            let again = |p: &&u32| cfg.dominates(head, **p) && cfg.dominates(a.at.block, **p);
            let inside = head != a.at.block && cfg.dominates(head, a.at.block);
            if !inside || !cfg.preds[head as usize].iter().any(|p| again(&p)) {
                continue;
            }
            let ended = held.changes.iter().any(|(at, (_, give))| {
                give >> i & 1 == 1
                    && at.block != head
                    && (cfg.succs[head as usize].iter()).any(|e| {
                        is_in_loop(interp, head, e.to.0) && cfg.dominates(e.to.0, at.block)
                    })
            });
            if !ended {
                *out.entry(head).or_default() |= 1 << i;
            }
        }
    }
    out
}

/// Does the way from a loop's head to here lead into the loop?
pub(super) fn is_in_loop(interp: &Interp<'_, '_, '_>, head: u32, to: u32) -> bool {
    let cfg = &interp.cfg;
    (cfg.preds[head as usize].iter()).any(|p| cfg.dominates(head, *p) && cfg.dominates(to, *p))
}
