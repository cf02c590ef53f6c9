//! Threads: what is done before one is started, and which object each is started with.
//!
//! What a function does before `go f()` is seen by `f`, and no lock is needed for it. Positions
//! are compared by the control flow of the function that starts it, whoever of its callees does.

use rustc_hash::{FxHashMap, FxHashSet};
use toctou_core::ir::FuncId;

use crate::cfg::Cfg;
use crate::context::Context;
use crate::effect::Pos;
use crate::interp::access::{HeldLock, Owner, Passed, Spot};
use crate::sym::{Sym, SymKind};

/// Threads that one function may start, it or those that it calls.
const MAX_STARTED: usize = 12;
/// Larger functions are not looked at.
const MAX_BLOCKS: usize = 400;
/// How far up it is followed where an object was made.
const MAX_UP: u32 = 4;

type Callers<'c> = FxHashMap<FuncId, Vec<(FuncId, &'c Passed)>>;

pub(super) struct Threads {
    /// What each function starts, by itself or below.
    below: Vec<Vec<FuncId>>,
    flows: FxHashMap<FuncId, Flow>,
}

struct Flow {
    /// Starts of threads, and what can run after each, in this call of the function.
    starts: Vec<(Pos, Vec<FuncId>, Vec<bool>)>,
    looped: Vec<bool>,
    /// Blocks that lead to a loop, and that come after none.
    ahead: Vec<bool>,
}

impl Threads {
    pub(super) fn new(cx: &Context<'_, '_>) -> Self {
        let count = cx.plain.len();
        let mut below: Vec<Vec<FuncId>> = vec![Vec::new(); count];
        let mut callers: Vec<Vec<u32>> = vec![Vec::new(); count];
        let mut work: Vec<u32> = Vec::new();
        for (f, plain) in cx.plain.iter().enumerate() {
            for call in &plain.calls {
                if call.spawned {
                    add(&mut below[f], call.callee);
                } else {
                    callers[call.callee.0 as usize].push(f as u32);
                }
            }
            if !below[f].is_empty() {
                work.push(f as u32);
            }
        }
        // Sets only grow, up to a limit.
        while let Some(f) = work.pop() {
            let started = below[f as usize].clone();
            for &caller in &callers[f as usize] {
                let into = &mut below[caller as usize];
                let before = into.len();
                started.iter().for_each(|r| add(into, *r));
                if into.len() > before {
                    work.push(caller);
                }
            }
        }
        Self {
            below,
            flows: FxHashMap::default(),
        }
    }

    /// Threads that are started after a place was passed, and never before it, by this call.
    pub(super) fn started_after(
        &mut self,
        cx: &Context<'_, '_>,
        f: FuncId,
        at: Pos,
    ) -> Vec<FuncId> {
        if self.below[f.0 as usize].is_empty() {
            return Vec::new();
        }
        let mut after: Vec<FuncId> = Vec::new();
        let mut earlier: FxHashSet<FuncId> = FxHashSet::default();
        for (start, threads, then) in &self.flow(cx, f).starts {
            let same = start.block == at.block;
            let again = then.get(at.block as usize) == Some(&true);
            let comes_first = !again && (!same || at.inst < start.inst);
            if comes_first {
                after.extend(threads);
            } else {
                earlier.extend(threads);
            }
        }
        after.retain(|r| !earlier.contains(r));
        after.sort_unstable();
        after.dedup();
        after
    }

    /// Is it done once by a call of the function, before it begins with what it does again and again?
    pub(super) fn is_ahead(&mut self, cx: &Context<'_, '_>, f: FuncId, at: Pos) -> bool {
        let flow = self.flow(cx, f);
        flow.ahead.get(at.block as usize) == Some(&true)
    }

    /// Is it done again and again by one call of the function?
    pub(super) fn is_looped(&mut self, cx: &Context<'_, '_>, f: FuncId, at: Pos) -> bool {
        self.flow(cx, f).looped.get(at.block as usize) == Some(&true)
    }

    fn flow(&mut self, cx: &Context<'_, '_>, f: FuncId) -> &Flow {
        let below = &self.below;
        self.flows.entry(f).or_insert_with(|| {
            let function = cx.program.function(f);
            let mut flow = Flow {
                starts: Vec::new(),
                looped: Vec::new(),
                ahead: Vec::new(),
            };
            if function.blocks.len() > MAX_BLOCKS {
                return flow;
            }
            let cfg = Cfg::new(function);
            for call in &cx.plain[f.0 as usize].calls {
                let threads = match call.spawned {
                    true => vec![call.callee],
                    false => below[call.callee.0 as usize].clone(),
                };
                if !threads.is_empty() && flow.starts.len() < MAX_STARTED {
                    let then = after(&cfg, call.at.block);
                    flow.starts.push((call.at, threads, then));
                }
            }
            if cfg.has_loop {
                let blocks = 0..function.blocks.len() as u32;
                flow.looped = blocks.map(|b| cfg.leads_back(b)).collect();
                flow.ahead = leading(&cfg, &flow.looped);
                for (b, looped) in (0..).zip(&flow.looped) {
                    if *looped {
                        flow.ahead[b as usize] = false;
                        let later = after(&cfg, b);
                        let ahead = flow.ahead.iter_mut().zip(later);
                        ahead.for_each(|(ahead, later)| *ahead &= !later);
                    }
                }
            }
            flow
        })
    }
}

fn add(into: &mut Vec<FuncId>, thread: FuncId) {
    if into.len() < MAX_STARTED && !into.contains(&thread) {
        into.push(thread);
    }
}

/// Blocks that can run after this one; itself only if it can run again.
fn after(cfg: &Cfg, block: u32) -> Vec<bool> {
    let mut seen = vec![false; cfg.succs.len()];
    let mut work = vec![block];
    while let Some(b) = work.pop() {
        for edge in &cfg.succs[b as usize] {
            if !std::mem::replace(&mut seen[edge.to.0 as usize], true) {
                work.push(edge.to.0);
            }
        }
    }
    seen
}

/// Blocks from which one of these is reached.
fn leading(cfg: &Cfg, to: &[bool]) -> Vec<bool> {
    let mut seen = to.to_vec();
    let mut work: Vec<u32> = (0..to.len() as u32).filter(|b| to[*b as usize]).collect();
    while let Some(b) = work.pop() {
        for &p in &cfg.preds[b as usize] {
            if !std::mem::replace(&mut seen[p as usize], true) {
                work.push(p);
            }
        }
    }
    seen
}

/// Who calls each function, and waits for it.
pub(super) fn callers<'c>(cx: &'c Context<'_, '_>) -> Callers<'c> {
    let mut out: Callers<'c> = FxHashMap::default();
    for (f, plain) in cx.plain.iter().enumerate() {
        for call in plain.calls.iter().filter(|c| !c.spawned) {
            let list = out.entry(call.callee).or_default();
            list.push((FuncId(f as u32), call));
        }
    }
    out
}

/// Is a thread only ever started with an object that was just made?
pub(super) fn has_own_object(
    cx: &Context<'_, '_>,
    starts: &[(FuncId, &Passed)],
    callers: &Callers<'_>,
) -> bool {
    let own = |(f, call): &(FuncId, &Passed)| is_new(cx, *f, call, callers, 0);
    !starts.is_empty() && starts.iter().all(own)
}

fn is_new(
    cx: &Context<'_, '_>,
    f: FuncId,
    call: &Passed,
    callers: &Callers<'_>,
    depth: u32,
) -> bool {
    if call.repeated {
        return false;
    }
    let made = |sym: Sym| matches!(cx.syms.kind(sym), SymKind::New(..) | SymKind::Object(_));
    match call.this {
        Owner::Own => call.recv.is_some_and(made),
        // It starts its own.
        Owner::This if depth < MAX_UP && !cx.entries.iter().any(|e| e.handler == f) => {
            let from = callers.get(&f).map_or(&[][..], Vec::as_slice);
            let up = |(f, call): &(FuncId, &Passed)| is_new(cx, *f, call, callers, depth + 1);
            !from.is_empty() && from.len() <= 8 && from.iter().all(up)
        }
        _ => false,
    }
}

/// What the thread is counted in with, wherever it is started.
pub(super) fn joined(starts: &[(FuncId, &Passed)]) -> Vec<HeldLock> {
    let counted = |call: &Passed| -> Vec<HeldLock> {
        let locks = call.locks.iter().copied();
        locks
            .filter(|l| matches!(l.spot, Spot::Joined(..)))
            .collect()
    };
    let mut each = starts.iter().map(|(_, call)| counted(call));
    let mut common = each.next().unwrap_or_default();
    for other in each {
        common.retain(|l| other.contains(l));
    }
    common
}
