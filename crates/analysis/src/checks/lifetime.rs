//! Things that are closed while threads still use them, or never.
//!
//! Three shapes. A call takes something from a table that a closer empties
//! and ends, and uses it with nothing that makes one wait for the other. A
//! channel is closed on a way on which those who send were not waited for. An
//! object is filled by a call that fails half-way, and closed only if it did not.

use rustc_hash::FxHashSet;
use toctou_core::FileRole;
use toctou_core::finding::ResourceKind;
use toctou_core::ir::{BinOp, Callee, ClassId, FuncId, Function, Literal, Op, Term, Var};
use toctou_models::Do;

use crate::context::{Context, DefectKind, FoundDefect};
use crate::effect::Pos;
use crate::interp::access::{HeldLock, Step};
use crate::sym::{Sym, SymKind};

pub(crate) fn check(cx: &mut Context<'_, '_>, _edges: &[Vec<u32>]) {
    let mut found = Vec::new();
    let callers = held_by_callers(cx);
    for f in 0..cx.program.functions.len() {
        let id = FuncId(f as u32);
        if cx.program.file_of(id).role != FileRole::Product {
            continue;
        }
        closed_in_use(cx, id, &callers, &mut found);
        closed_before_join(cx, id, &mut found);
        half_open(cx, id, &mut found);
    }
    cx.defects.extend(found);
}

/// Locks that every caller of a function holds: helpers that are called under
/// a lock do not take it.
pub(super) fn held_by_callers(cx: &Context<'_, '_>) -> Vec<Vec<HeldLock>> {
    let mut held: Vec<Vec<HeldLock>> = vec![Vec::new(); cx.plain.len()];
    // A helper of a helper: so many calls deep.
    for _ in 0..3 {
        let mut next: Vec<Option<Vec<HeldLock>>> = vec![None; cx.plain.len()];
        for entry in &cx.entries {
            next[entry.handler.0 as usize] = Some(Vec::new());
        }
        for (plain, above) in cx.plain.iter().zip(&held) {
            for call in &plain.calls {
                let mut locks: Vec<HeldLock> = Vec::new();
                if !call.spawned {
                    locks.extend(call.locks.iter().chain(above));
                }
                let slot = &mut next[call.callee.0 as usize];
                match slot {
                    Some(known) => known.retain(|l| locks.contains(l)),
                    None => *slot = Some(locks),
                }
            }
        }
        held = next.into_iter().map(Option::unwrap_or_default).collect();
    }
    held
}

fn class_of(cx: &Context<'_, '_>, f: FuncId) -> Option<ClassId> {
    let mut at = Some(f);
    for _ in 0..32 {
        let function = cx.program.function(at?);
        if function.class.is_some() {
            return function.class;
        }
        at = function.parent;
    }
    None
}

/// `this.table` of `this.table[k].session`: the field that it was taken from.
fn table(cx: &Context<'_, '_>, key: Sym) -> Option<Sym> {
    let mut at = key;
    let mut entry = false;
    loop {
        match *cx.syms.kind(at) {
            SymKind::Field(base, _) if matches!(cx.syms.kind(base), SymKind::This) => {
                return entry.then_some(at);
            }
            SymKind::Index(base, _) | SymKind::Element(base) => {
                entry = true;
                at = base;
            }
            SymKind::Field(base, _) => at = base,
            _ => return None,
        }
    }
}

fn steps<'c>(cx: &'c Context<'_, '_>, f: FuncId, what: Do) -> impl Iterator<Item = &'c Step> {
    cx.plain[f.0 as usize]
        .life
        .iter()
        .filter(move |s| s.what == what)
}

/// A closer ends the entries of a table; the other methods of its class use them.
fn closed_in_use(
    cx: &Context<'_, '_>,
    closer: FuncId,
    callers: &[Vec<HeldLock>],
    out: &mut Vec<FoundDefect>,
) {
    let Some(class) = class_of(cx, closer) else {
        return;
    };
    let mut done: FxHashSet<FuncId> = FxHashSet::default();
    for close in steps(cx, closer, Do::Close) {
        let Some(closed) = table(cx, close.key) else {
            continue;
        };
        // One entry at a time, by its key, is not the end of all.
        if !all_of(cx, close.key) {
            continue;
        }
        for user in users(cx, class, closer) {
            let used = steps(cx, user, Do::Use).find(|s| table(cx, s.key) == Some(closed));
            let Some(used) = used else { continue };
            let locks = |f: FuncId, step: &Step| -> Vec<HeldLock> {
                let own = step.locks.iter().map(|(lock, _)| *lock);
                own.chain(callers[f.0 as usize].iter().copied()).collect()
            };
            if kept_apart(&locks(user, used), &locks(closer, close))
                || waited_for(cx, user, used, closer, close)
                || !done.insert(user)
            {
                continue;
            }
            let set = cx.plain[closer.0 as usize]
                .flags
                .iter()
                .find(|(sets, _)| *sets);
            out.push(FoundDefect {
                kind: DefectKind::UseAfterClose,
                func: user,
                span: used.span,
                first: Some((closer, set.map_or(close.span, |(_, s)| s.span))),
                key: closed,
                resource: ResourceKind::External,
                in_process: true,
                cross_process: false,
                duck: false,
                word: false,
            });
        }
    }
}

/// Is every entry of the table meant: `for _, c := range table`?
fn all_of(cx: &Context<'_, '_>, key: Sym) -> bool {
    let mut at = key;
    loop {
        match *cx.syms.kind(at) {
            SymKind::Element(_) => return true,
            SymKind::Field(base, _) | SymKind::Index(base, _) => at = base,
            _ => return false,
        }
    }
}

fn users<'c>(
    cx: &'c Context<'_, '_>,
    class: ClassId,
    closer: FuncId,
) -> impl Iterator<Item = FuncId> + 'c {
    cx.program.classes[class.0 as usize]
        .methods
        .iter()
        .map(|(_, f)| *f)
        .filter(move |f| *f != closer)
}

/// Is one lock held over both, by one of them alone?
pub(super) fn kept_apart(a: &[HeldLock], b: &[HeldLock]) -> bool {
    a.iter().any(|x| {
        b.iter()
            .any(|y| x.spot == y.spot && !(x.shared && y.shared))
    })
}

/// The user counts itself in, in one step with its test of a flag that the
/// closer sets under the same lock; and the closer waits for the count.
fn waited_for(
    cx: &Context<'_, '_>,
    user: FuncId,
    used: &Step,
    closer: FuncId,
    close: &Step,
) -> bool {
    let joins: Vec<&Step> = steps(cx, closer, Do::Join)
        .filter(|j| j.at < close.at || before(cx, closer, j.at, close.at))
        .collect();
    steps(cx, user, Do::Enroll).any(|enroll| {
        let counted =
            joins.iter().any(|j| j.key == enroll.key) && before(cx, user, enroll.at, used.at);
        counted
            && cx.plain[user.0 as usize].flags.iter().any(|(sets, test)| {
                !sets
                    && enroll.locks.iter().any(|(lock, by)| {
                        // Held without a break from the test to the count …
                        test.locks.iter().any(|(l, b)| l == lock && b == by)
                            // … and by the closer, alone, when it sets the flag.
                            && cx.plain[closer.0 as usize].flags.iter().any(|(sets, set)| {
                                *sets
                                    && set.key == test.key
                                    && set
                                        .locks
                                        .iter()
                                        .any(|(l, _)| l.spot == lock.spot && !l.shared)
                            })
                    })
            })
    })
}

/// Can `to` be reached from `from`?
pub(super) fn before(cx: &Context<'_, '_>, f: FuncId, from: Pos, to: Pos) -> bool {
    reaches(cx.program.function(f), from, to, &[])
}

/// Is there a way from one instruction to another that meets none of `stops`?
fn reaches(function: &Function, from: Pos, to: Pos, stops: &[Pos]) -> bool {
    let mut seen = vec![false; function.blocks.len()];
    let mut work = vec![(from.block, from.inst + 1)];
    while let Some((block, first)) = work.pop() {
        let stop = stops
            .iter()
            .filter(|s| s.block == block && s.inst >= first)
            .map(|s| s.inst)
            .min();
        if to.block == block && to.inst >= first && stop.is_none_or(|s| s > to.inst) {
            return true;
        }
        if stop.is_some() {
            continue;
        }
        for next in function.blocks[block as usize].term.successors() {
            if !std::mem::replace(&mut seen[next.0 as usize], true) {
                work.push((next.0, 0));
            }
        }
    }
    false
}

/// A channel that threads started here send on is closed on a way on which
/// they were not waited for, although on another they are.
fn closed_before_join(cx: &Context<'_, '_>, f: FuncId, out: &mut Vec<FoundDefect>) {
    let joins: Vec<Pos> = steps(cx, f, Do::Join).map(|s| s.at).collect();
    if joins.is_empty() {
        return;
    }
    let function = cx.program.function(f);
    for close in steps(cx, f, Do::Close) {
        if !matches!(cx.syms.kind(close.key), SymKind::Cell(_)) {
            continue;
        }
        for call in cx.plain[f.0 as usize].calls.iter().filter(|c| c.spawned) {
            let sends = steps(cx, call.callee, Do::Use).find(|s| s.key == close.key);
            let Some(sends) = sends else { continue };
            if reaches(function, call.at, close.at, &joins) {
                out.push(FoundDefect {
                    kind: DefectKind::UseAfterClose,
                    func: call.callee,
                    span: sends.span,
                    first: Some((f, close.span)),
                    key: close.key,
                    resource: ResourceKind::External,
                    in_process: true,
                    cross_process: false,
                    duck: false,
                    word: false,
                });
            }
        }
    }
}

/// `if err := m.Load(); err != nil { … } else { defer m.Close() }`: what was
/// opened before the failure is never closed.
fn half_open(cx: &mut Context<'_, '_>, f: FuncId, out: &mut Vec<FoundDefect>) {
    let calls = cx.plain[f.0 as usize].calls.clone();
    for call in &calls {
        let class = cx.program.function(call.callee).class;
        let (Some(class), Some(object), false) = (class, call.recv, call.spawned) else {
            continue;
        };
        // An object of our own: whoever made it elsewhere may close it there.
        let own = match *cx.syms.kind(object) {
            SymKind::This | SymKind::Param(_) | SymKind::Field(..) | SymKind::Index(..) => false,
            SymKind::Cell(cell) => cell.owner == f,
            _ => true,
        };
        let Some(open) = own.then(|| opens(cx, call.callee)).flatten() else {
            continue;
        };
        let Some(failed) = failure(cx, f, call.at) else {
            continue;
        };
        let closes = closings(cx, f, class);
        if closes.is_empty() {
            continue;
        }
        let function = cx.program.function(f);
        let start = Pos {
            block: failed,
            inst: 0,
        };
        let kept = closes.iter().any(|at| {
            // Closed on the way on, or seen to before.
            at.block == failed
                || reaches(function, start, *at, &[])
                || reaches(function, *at, call.at, &[])
        });
        if !kept {
            out.push(FoundDefect {
                kind: DefectKind::HalfOpen,
                func: f,
                span: call.span,
                first: Some(open),
                key: object,
                resource: ResourceKind::External,
                in_process: true,
                cross_process: false,
                duck: false,
                word: false,
            });
        }
    }
}

/// Where a method, or what it calls or starts, opens several things for its object.
fn opens(cx: &Context<'_, '_>, method: FuncId) -> Option<(FuncId, toctou_core::Span)> {
    let mut seen: FxHashSet<FuncId> = FxHashSet::default();
    let mut work = vec![(method, 0, false)];
    while let Some((f, depth, many)) = work.pop() {
        if !seen.insert(f) || depth > 4 {
            continue;
        }
        if many && let Some(open) = steps(cx, f, Do::Open).next() {
            return Some((f, open.span));
        }
        for call in &cx.plain[f.0 as usize].calls {
            work.push((call.callee, depth + 1, many || call.repeated));
        }
    }
    None
}

/// The block that runs if a call's error is there: `if err != nil`.
fn failure(cx: &mut Context<'_, '_>, f: FuncId, call: Pos) -> Option<u32> {
    let function = cx.program.function(f);
    let result = function.blocks[call.block as usize]
        .insts
        .get(call.inst as usize)?
        .op
        .dst()?;
    let from = |cx: &mut Context<'_, '_>, var: Var| {
        let mut at = var;
        for _ in 0..6 {
            if at == result {
                return true;
            }
            match cx.definition(f, at).map(|i| &i.op) {
                Some(Op::Copy { src, .. }) => at = *src,
                Some(Op::GetField { obj, .. }) => at = *obj,
                Some(Op::LoadVar { cell, .. }) => match cx.only_store(*cell) {
                    Some((by, value)) if by == f => at = value,
                    _ => return false,
                },
                _ => return false,
            }
        }
        false
    };
    for block in &function.blocks {
        let Term::Branch {
            cond,
            then,
            otherwise,
        } = &block.term
        else {
            continue;
        };
        let (op, left, right) = match cx.definition(f, *cond).map(|i| &i.op) {
            Some(Op::Binary {
                op, left, right, ..
            }) => (*op, *left, *right),
            _ => continue,
        };
        let null = matches!(
            cx.definition(f, right).map(|i| &i.op),
            Some(Op::Const {
                value: Literal::Null,
                ..
            })
        );
        if null && from(cx, left) {
            match op {
                BinOp::Ne => return Some(then.0),
                BinOp::Eq => return Some(otherwise.0),
                _ => {}
            }
        }
    }
    None
}

/// Where something of a class is closed, or its closing is put off until the end.
fn closings(cx: &mut Context<'_, '_>, f: FuncId, class: ClassId) -> Vec<Pos> {
    let function = cx.program.function(f);
    let mut out = Vec::new();
    for (b, block) in function.blocks.iter().enumerate() {
        for (i, inst) in block.insts.iter().enumerate() {
            let Op::Call { callee, .. } = &inst.op else {
                continue;
            };
            let at = Pos {
                block: b as u32,
                inst: i as u32,
            };
            let targets: Vec<FuncId> = cx.plain[f.0 as usize]
                .calls
                .iter()
                .filter(|c| c.at == at)
                .map(|c| c.callee)
                .collect();
            let ends = |g: &FuncId| {
                cx.program.function(*g).class == Some(class)
                    && steps(cx, *g, Do::Close).any(|s| table(cx, s.key).is_some())
            };
            let closes = targets.iter().any(|t| {
                ends(t)
                    || class_of(cx, *t) != Some(class)
                        && cx.plain[t.0 as usize].calls.iter().any(|c| ends(&c.callee))
            });
            if !closes {
                continue;
            }
            let var = match callee {
                Callee::Value(v) | Callee::Method { obj: v, .. } => *v,
                Callee::Super(_) => continue,
            };
            out.push(
                defined_at(function, var)
                    .filter(|d| d.block != at.block)
                    .unwrap_or(at),
            );
        }
    }
    out
}

fn defined_at(function: &Function, var: Var) -> Option<Pos> {
    for (b, block) in function.blocks.iter().enumerate() {
        if let Some(i) = block.insts.iter().position(|i| i.op.dst() == Some(var)) {
            return Some(Pos {
                block: b as u32,
                inst: i as u32,
            });
        }
    }
    None
}
