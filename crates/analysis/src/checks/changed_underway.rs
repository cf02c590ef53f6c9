//! A table is gone through while somebody else adds to it or takes from it, in a language where
//! that fails (`dictionary changed size during iteration`).
//!
//! Only of tables that a variable of a module holds from the start: these are every caller's. Others
//! come in between where the loop gives way, and anywhere if it runs in a thread of its own.

use rustc_hash::{FxHashMap, FxHashSet};
use toctou_core::finding::ResourceKind;
use toctou_core::ir::{Callee, FuncId, Function, Op, Var};
use toctou_core::{FileRole, Span};
use toctou_models::Do;

use super::code;
use crate::cfg::Cfg;
use crate::context::{Context, DefectKind, FoundDefect};
use crate::effect::{Act, Event, Pos};
use crate::library::ResultRule;
use crate::order;
use crate::roots::{is_served, offloads_unknown, thread_of};
use crate::sym::{Sym, SymKind};

pub fn check(cx: &mut Context<'_, '_>, edges: &[Vec<u32>]) {
    if !cx.library.fails_if_changed() {
        return;
    }
    let offloads = offloads_unknown(cx);
    let entries = cx.entries.iter().filter(|e| is_served(e.kind) && !e.serial);
    let (mut all, mut in_threads) = (Vec::new(), Vec::new());
    for entry in entries {
        all.push(entry.handler);
        if thread_of(cx, entry, offloads) == Some(true) {
            in_threads.push(entry.handler);
        }
    }
    let served = order::reachable(edges, all);
    let threads = order::reachable(edges, in_threads);
    let locked = under_locks(cx, edges);
    let here: Vec<FuncId> = (0..cx.program.functions.len() as u32)
        .map(FuncId)
        .filter(|f| served[f.0 as usize] && !locked.contains(f))
        .filter(|f| cx.program.file_of(*f).role == FileRole::Product)
        .collect();
    let mut changes: FxHashMap<Sym, Vec<(FuncId, Event)>> = FxHashMap::default();
    for &f in &here {
        for (key, event) in changed_by(cx, f) {
            changes.entry(key).or_default().push((f, event));
        }
    }
    if changes.is_empty() {
        return;
    }
    let mut seen = FxHashSet::default();
    for step in std::mem::take(&mut cx.gone_through) {
        let (f, at, key, _) = step;
        if here.contains(&f)
            && let Some(changed) = changes.get(&key)
            && seen.insert((f, at))
        {
            gone_through(cx, step, threads[f.0 as usize], changed);
        }
    }
}

/// Functions that take a lock, and what they call: whom that keeps out is for others to say.
fn under_locks(cx: &mut Context<'_, '_>, edges: &[Vec<u32>]) -> FxHashSet<FuncId> {
    let mut takes = Vec::new();
    for f in (0..cx.program.functions.len() as u32).map(FuncId) {
        let function = cx.program.function(f);
        let locks = code::calls(function).any(|(_, n, _)| {
            let rules = code::models(cx, f, n);
            rules
                .iter()
                .any(|(_, r)| r.effects.iter().any(|e| e.effect.r#do == Do::Lock))
        });
        if locks {
            takes.push(f);
        }
    }
    let under = order::reachable(edges, takes);
    let found = (0..under.len()).filter(|f| under[*f]);
    found.map(|f| FuncId(f as u32)).collect()
}

/// Tables that the function itself adds to or takes from.
fn changed_by(cx: &Context<'_, '_>, f: FuncId) -> Vec<(Sym, Event)> {
    let Some(summary) = cx.summaries[f.0 as usize].as_ref() else {
        return Vec::new();
    };
    let function = cx.program.function(f);
    let mut out = Vec::new();
    for event in &summary.events {
        if event.loc.kind != ResourceKind::Memory || event.call.is_some() {
            continue;
        }
        let key = match *cx.syms.kind(event.loc.key) {
            SymKind::Index(base, _) => base,
            _ if event.loc.entry.is_some() => event.loc.key,
            // A method of the table: `d.pop(k)`, `d.clear()`.
            _ => match function.blocks[event.at.block as usize]
                .insts
                .get(event.at.inst as usize)
                .map(|inst| &inst.op)
            {
                Some(Op::Call { .. }) => event.loc.key,
                _ => continue,
            },
        };
        // What is put in place of something that was found there makes the table no larger.
        let of_key = |i: u32| cx.syms.contains(summary.events[i as usize].loc.key, key);
        let looked_up = event.ctrl.events().any(|(i, _)| of_key(i));
        if event.act == Act::Delete || event.act == Act::Write && !looked_up {
            out.push((key, event.clone()));
        }
    }
    out
}

fn gone_through(
    cx: &mut Context<'_, '_>,
    (f, at, key, span): (FuncId, Pos, Sym, Span),
    thread: bool,
    changed: &[(FuncId, Event)],
) {
    let function = cx.program.function(f);
    let inst = &function.blocks[at.block as usize].insts[at.inst as usize];
    let Op::Element { of, .. } = inst.op else {
        return;
    };
    if !is_table(cx, key) || !is_itself(cx, f, of) {
        return;
    }
    let cfg = Cfg::new(function);
    let Some(body) = body_of(&cfg, at.block) else {
        return;
    };
    let gives_way = gives_way(cx, f, function, &body);
    if !gives_way && (!thread || function.is_async) {
        return;
    }
    // Its own loop may well set what it goes through.
    let other = |(g, e): &&(FuncId, Event)| *g != f || !body[e.at.block as usize];
    let Some((g, change)) = changed.iter().find(other) else {
        return;
    };
    cx.defects.push(FoundDefect {
        kind: DefectKind::ChangedUnderway,
        func: f,
        span: code::first_line(cx, f, span),
        first: Some((*g, change.trail.span)),
        key,
        resource: ResourceKind::Memory,
        in_process: true,
        cross_process: false,
        // Without a wait there is little time for another thread.
        duck: !gives_way,
        word: false,
    });
}

/// Is the table itself gone through, and not a copy of it?
fn is_itself(cx: &mut Context<'_, '_>, f: FuncId, var: Var) -> bool {
    let mut at = var;
    for _ in 0..4 {
        at = match cx.definition(f, at).map(|inst| &inst.op) {
            Some(Op::LoadVar { .. }) => return true,
            Some(Op::Copy { src, .. }) => *src,
            Some(Op::Call {
                callee: Callee::Method { obj, name },
                ..
            }) => {
                let rules = cx.library.methods(*name, &mut cx.entities, &mut cx.names);
                if rules.is_empty() || !rules.iter().all(|r| r.view) {
                    return false;
                }
                *obj
            }
            _ => return false,
        };
    }
    false
}

/// Was it made as a table, once, and is it the module's?
fn is_table(cx: &mut Context<'_, '_>, key: Sym) -> bool {
    let SymKind::Cell(cell) = *cx.syms.kind(key) else {
        return false;
    };
    let Some((f, made)) = cx.stored_in(cell) else {
        return false;
    };
    if cell.owner != f {
        return false;
    }
    match cx.definition(f, made).map(|inst| &inst.op) {
        Some(Op::Object { .. }) => true,
        Some(Op::Call { dst, .. }) => {
            let dst: Var = *dst;
            let number = code::calls(cx.program.function(f))
                .find(|(_, _, inst)| inst.op.dst() == Some(dst))
                .map(|(_, n, _)| n);
            number.is_some_and(|n| {
                let rules = code::models(cx, f, n);
                let made = [ResultRule::Table, ResultRule::Makes];
                rules.iter().any(|(_, r)| made.contains(&r.result))
            })
        }
        _ => false,
    }
}

/// The blocks of the innermost loop that a block is in.
fn body_of(cfg: &Cfg, at: u32) -> Option<Vec<bool>> {
    let mut best: Option<Vec<bool>> = None;
    for head in 0..cfg.succs.len() as u32 {
        let back = cfg.preds[head as usize].iter().copied();
        let mut work: Vec<u32> = back.filter(|p| cfg.dominates(head, *p)).collect();
        if work.is_empty() || !cfg.dominates(head, at) {
            continue;
        }
        let mut has = vec![false; cfg.succs.len()];
        has[head as usize] = true;
        while let Some(b) = work.pop() {
            if !std::mem::replace(&mut has[b as usize], true) {
                work.extend(&cfg.preds[b as usize]);
            }
        }
        let size = |has: &[bool]| has.iter().filter(|h| **h).count();
        if has[at as usize] && best.as_ref().is_none_or(|b| size(b) > size(&has)) {
            best = Some(has);
        }
    }
    best
}

/// Does somebody else run in the course of the loop?
fn gives_way(cx: &Context<'_, '_>, f: FuncId, function: &Function, body: &[bool]) -> bool {
    let quick: FxHashSet<Var> = code::calls(function)
        .filter_map(|(_, n, inst)| {
            let (funcs, exts) = cx.points_to.targets(f, n);
            let yields = |g: &FuncId| {
                let summary = cx.summaries[g.0 as usize].as_ref();
                summary.is_none_or(|s| s.yields)
            };
            let known = !funcs.is_empty() && exts.is_empty();
            (known && !funcs.iter().any(yields))
                .then(|| inst.op.dst())
                .flatten()
        })
        .collect();
    let blocks = function.blocks.iter().enumerate();
    blocks
        .filter(|(b, _)| body[*b])
        .flat_map(|(_, block)| &block.insts)
        .any(|inst| matches!(&inst.op, Op::Await { src, .. } if !quick.contains(src)))
}
