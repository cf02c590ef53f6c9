//! Tools that start something costly, with nothing that bounds how many at once.
//!
//! What is costly is said by models (`cost`). From every function
//! that does it, one walk up the call graph finds the handlers that lead to
//! it. A function that takes a lock, a permit or a place in a queue ends the
//! walk: what is below it is bounded. One finding per server, that is per
//! group of modules that import each other.

use std::collections::VecDeque;

use rustc_hash::FxHashSet;
use toctou_core::finding::{EntryKind, ResourceKind};
use toctou_core::ir::{Callee, FuncId, Function, Op};
use toctou_core::{FileRole, Span};
use toctou_models::{Cost as Weight, Do};

use crate::checks::code;
use crate::context::{Context, DefectKind, FoundDefect};
use crate::effect::Pos;
use crate::entity::EntityId;
use crate::order;
use crate::sym::SymKind;

/// Names of hand-made bounds. One that is not a lock (a counter with a number
/// of permits) is known by its name only.
const BOUNDS: &[&str] = &[
    "semaphore",
    "acquire",
    "sem",
    "sema",
    "limit",
    "limiter",
    "limited",
    "ratelimit",
    "throttle",
    "throttled",
    "queue",
    "enqueue",
    "queued",
    "concurrency",
    "slot",
    "slots",
    "permit",
    "mutex",
    "lock",
    "locked",
    "exclusive",
    "serialize",
    "bottleneck",
    "pool",
];

#[derive(Clone, Copy)]
struct Cost {
    func: FuncId,
    span: Span,
    what: EntityId,
}

pub fn check(cx: &mut Context<'_, '_>, edges: &[Vec<u32>]) {
    let tools: Vec<usize> = (0..cx.entries.len())
        .filter(|&i| {
            let e = &cx.entries[i];
            e.kind == EntryKind::Tool
                && cx.program.file_of(e.func).role == FileRole::Product
                && crate::roots::handlers_at_once(cx, e).is_none()
        })
        .collect();
    if tools.is_empty() {
        return;
    }
    let handlers = tools.iter().map(|&i| cx.entries[i].handler);
    let called = order::reachable(edges, handlers);
    let (costly, cheap, bounded) = costs(cx, &called);
    let callers = order::reverse(edges);
    let near = up(cx, &callers, &costly, &bounded);
    let far = up(cx, &callers, &cheap, &bounded);
    let group = crate::roots::module_groups(cx.program);
    let group_of = |cx: &Context<'_, '_>, f: FuncId| {
        group[cx.program.function_module[f.0 as usize].0 as usize]
    };
    // Over stdio the only client is the user's own; over HTTP strangers share the machine.
    let over_http: FxHashSet<u32> = cx
        .entries
        .iter()
        .filter(|e| e.kind == EntryKind::Route)
        .map(|e| group_of(cx, e.func))
        .collect();
    let mut found: Vec<(u32, bool, FuncId, Span, Cost)> = Vec::new();
    for i in tools {
        let e = &cx.entries[i];
        let g = group_of(cx, e.func);
        if let Some(cost) = near[e.handler.0 as usize] {
            found.push((g, !over_http.contains(&g), e.func, e.span, cost));
        } else if let Some(cost) = far[e.handler.0 as usize] {
            found.push((g, true, e.func, e.span, cost));
        }
    }
    found.sort_by_key(|&(g, soft, func, span, _)| (g, soft, func, span));
    found.dedup_by_key(|f| f.0);
    for (_, soft, func, span, cost) in found {
        let key = cx.syms.make(SymKind::Ext(cost.what));
        let span = code::first_line(cx, func, span);
        cx.defects.push(FoundDefect {
            kind: DefectKind::NoLimit,
            func,
            span,
            first: Some((cost.func, cost.span)),
            key,
            resource: ResourceKind::External,
            in_process: true,
            cross_process: false,
            duck: soft,
            word: false,
        });
    }
}

/// Per function that is called for a tool: its first costly call, its first call that goes out at all,
/// and whether it bounds what it does.
fn costs(
    cx: &mut Context<'_, '_>,
    called: &[bool],
) -> (Vec<Option<Cost>>, Vec<Option<Cost>>, Vec<bool>) {
    let program = cx.program;
    let n = program.functions.len();
    let (mut costly, mut cheap, mut bounded) = (vec![None; n], vec![None; n], vec![false; n]);
    for f in (0..n).filter(|&f| called[f]) {
        let id = FuncId(f as u32);
        let function = program.function(id);
        for (at, call, inst) in code::calls(function) {
            for (what, rule) in code::models(cx, id, call) {
                for e in &rule.effects {
                    let cost = Some(Cost {
                        func: id,
                        span: inst.span,
                        what,
                    });
                    match e.effect.r#do {
                        Do::Use if e.effect.cost == Some(Weight::High) => {
                            let counts = !is_aside(function, at, &inst.op);
                            costly[f] = costly[f].or(cost.filter(|_| counts));
                        }
                        Do::Use if e.effect.cost == Some(Weight::Low) => {
                            cheap[f] = cheap[f].or(cost)
                        }
                        Do::Lock => bounded[f] = true,
                        _ => {}
                    }
                }
            }
            bounded[f] = bounded[f] || is_bound(cx, id, call, &inst.op);
        }
    }
    (costly, cheap, bounded)
}

/// A thing that is kept (`this.child = spawn(…)`) is one of its kind. What is
/// done only after a failure is not what calls come for.
fn is_aside(function: &Function, at: Pos, op: &Op) -> bool {
    let dst = op.dst();
    let kept = function
        .blocks
        .iter()
        .flat_map(|b| &b.insts)
        .any(|i| match &i.op {
            Op::SetField { value, .. } | Op::StoreVar { value, .. } => Some(*value) == dst,
            _ => false,
        });
    kept || !code::without_failure(function)[at.block as usize]
}

/// A call that takes a hand-made lock, runs its argument under one, or is
/// called by the name of something that bounds.
fn is_bound(cx: &mut Context<'_, '_>, f: FuncId, call: u32, op: &Op) -> bool {
    let program = cx.program;
    for &t in cx.points_to.targets(f, call).0 {
        if let Some(s) = &cx.summaries[t.0 as usize]
            && (!s.leaves_held.is_empty() || s.sym_calls.iter().any(|c| !c.locks.is_empty()))
        {
            return true;
        }
        let function = program.function(t);
        let class = function.class.map(|c| program.classes[c.0 as usize].name);
        if [Some(function.name), class]
            .into_iter()
            .flatten()
            .any(|n| code::mentions(cx.names.text(n), BOUNDS))
        {
            return true;
        }
    }
    let Op::Call { callee, .. } = op else {
        return false;
    };
    let (value, method) = match callee {
        Callee::Method { obj, name } => (*obj, Some(*name)),
        Callee::Value(v) => (*v, None),
        Callee::Super(_) => return false,
    };
    let of = match cx.definition(f, value).map(|i| &i.op) {
        Some(Op::GetField { field, .. }) => Some(*field),
        Some(Op::LoadVar { cell, .. }) => {
            program.function(cell.owner).vars[cell.var.0 as usize].name
        }
        _ => program.function(f).vars[value.0 as usize].name,
    };
    [method, of]
        .into_iter()
        .flatten()
        .any(|n| code::mentions(cx.names.text(n), BOUNDS))
}

/// For every function that leads to a cost with no bound on the way: the nearest.
fn up(
    cx: &Context<'_, '_>,
    callers: &[Vec<u32>],
    costs: &[Option<Cost>],
    bounded: &[bool],
) -> Vec<Option<Cost>> {
    let mut out: Vec<Option<Cost>> = vec![None; costs.len()];
    let mut work = VecDeque::new();
    for (f, cost) in costs.iter().enumerate() {
        if cost.is_some() && !bounded[f] {
            out[f] = *cost;
            work.push_back(f as u32);
        }
    }
    while let Some(f) = work.pop_front() {
        for &c in &callers[f as usize] {
            if !bounded[c as usize]
                && out[c as usize].is_none()
                && calls_normally(cx, FuncId(c), FuncId(f))
            {
                out[c as usize] = out[f as usize];
                work.push_back(c);
            }
        }
    }
    out
}

/// Is there a way to the callee other than after a failure?
fn calls_normally(cx: &Context<'_, '_>, caller: FuncId, callee: FuncId) -> bool {
    let function = cx.program.function(caller);
    let normal = code::without_failure(function);
    if normal.iter().all(|n| *n) {
        return true;
    }
    let mut only_failing = false;
    for (at, n, _) in code::calls(function) {
        if cx.points_to.targets(caller, n).0.contains(&callee) {
            if normal[at.block as usize] {
                return true;
            }
            only_failing = true;
        }
    }
    !only_failing
}
