//! A lock that ends by itself, over work that may take longer.
//!
//! Work has no bound if it waits for another service or for code that is not
//! here; a statement on a database is taken to be short. What is written after
//! such a wait, without a condition that would refuse a holder whose time is
//! over, is written by two.

use rustc_hash::FxHashMap;
use toctou_core::Span;
use toctou_core::finding::ResourceKind;
use toctou_core::ir::{CallKind, Callee, FuncId, Function, Op, Var};
use toctou_models::Mode;

use crate::cfg::Cfg;
use crate::context::{Context, DefectKind, FoundDefect};
use crate::effect::{Act, Event, Pos};
use crate::order;
use crate::summary::Summary;
use crate::sym::Sym;

use super::flow;
use super::sends::call_number;

/// Methods by which a lease is renewed, or watched over.
const RENEWS: &[&str] = &[
    "extend",
    "renew",
    "refresh",
    "keepAlive",
    "heartbeat",
    "expire",
    "pexpire",
    "pExpire",
];

/// Methods that somebody may wait for, but not for long.
const SHORT: &[&str] = &[
    "release", "unlock", "connect", "close", "end", "sleep", "delay", "json", "text",
];

struct Lease {
    func: FuncId,
    span: Span,
    key: Sym,
    /// The wait without a bound.
    wait: (FuncId, Span),
}

pub(super) fn check(cx: &mut Context<'_, '_>, edges: &[Vec<u32>]) {
    let below = below(cx);
    let mut found: Vec<Lease> = Vec::new();
    for f in 0..cx.summaries.len() {
        let id = FuncId(f as u32);
        let Some(summary) = cx.summaries[f].clone() else {
            continue;
        };
        for (lock, waits) in &summary.leases {
            if renews(cx, id) || renews(cx, lock.func) {
                continue;
            }
            let under = |e: &Event| {
                e.lock
                    .as_ref()
                    .is_some_and(|l| (l.func, l.span) == (lock.func, lock.span))
            };
            let wait = first_long_wait(cx, edges, id, &summary, waits, &under).or_else(|| {
                let seen = below.get(&(lock.func, lock.span))?;
                seen.write.then_some(seen.wait?)
            });
            if let Some(wait) = wait {
                found.push(Lease {
                    func: lock.func,
                    span: lock.span,
                    key: lock.key,
                    wait,
                });
            }
        }
        found.extend(set_if_absent(cx, edges, id, &summary));
    }
    for l in found {
        cx.defects.push(FoundDefect {
            kind: DefectKind::LeaseInUse,
            func: l.func,
            span: l.span,
            first: Some(l.wait),
            key: l.key,
            resource: ResourceKind::Lock,
            in_process: true,
            cross_process: true,
            duck: false,
            word: false,
        });
    }
}

/// The first wait without a bound after which something is written, under the same lock.
fn first_long_wait(
    cx: &mut Context<'_, '_>,
    edges: &[Vec<u32>],
    f: FuncId,
    summary: &Summary,
    waits: &[Pos],
    under: &dyn Fn(&Event) -> bool,
) -> Option<(FuncId, Span)> {
    if waits.is_empty() {
        return None;
    }
    let program = cx.program;
    let function = program.function(f);
    let cfg = Cfg::new(function);
    for wait in waits {
        let inst = &function.blocks[wait.block as usize].insts[wait.inst as usize];
        let long = match &inst.op {
            Op::Await { src, .. } => call_of(function, *src)
                .is_some_and(|(at, callee)| is_long(cx, edges, f, summary, at, Some(callee))),
            // Where calls block, most are short: only what is known to ask somebody else counts.
            Op::Call { .. } => is_long(cx, edges, f, summary, *wait, None),
            _ => false,
        };
        if !long {
            continue;
        }
        let written = summary.events.iter().any(|e| {
            under(e)
                && is_unfenced(e)
                && flow::between(function, &cfg, *wait, e.at, |_| false).is_some()
        });
        if written {
            return Some((f, inst.span));
        }
    }
    None
}

/// A write that nothing stops when its maker's time is over.
fn is_unfenced(e: &Event) -> bool {
    let shared = matches!(
        e.loc.kind,
        ResourceKind::Row | ResourceKind::File | ResourceKind::Kv
    );
    shared
        && matches!(e.act, Act::Write | Act::Delete)
        && !matches!(e.mode, Mode::Conditional | Mode::Exclusive | Mode::Atomic)
        && e.row
            .as_ref()
            .is_none_or(|r| !r.insert && r.conditions.len() < 2)
}

/// Does waiting for this call take as long as somebody else likes? `callee`: it is waited for, so
/// that one which nobody knows does.
fn is_long(
    cx: &mut Context<'_, '_>,
    edges: &[Vec<u32>],
    f: FuncId,
    summary: &Summary,
    at: Pos,
    callee: Option<&Callee>,
) -> bool {
    let here = |e: &&Event| e.at == at;
    if summary
        .events
        .iter()
        .filter(here)
        .any(|e| e.loc.kind == ResourceKind::External)
    {
        return true;
    }
    let Some(number) = call_number(cx, f, at) else {
        return false;
    };
    let (funcs, exts) = cx.points_to.targets(f, number);
    if !funcs.is_empty() {
        let seen = order::reachable(edges, funcs.iter().copied());
        return seen
            .iter()
            .enumerate()
            .any(|(g, s)| *s && asks_outside(cx, FuncId(g as u32)));
    }
    let Some(callee) = callee else {
        return false;
    };
    if summary.events.iter().any(|e| e.at == at) {
        return false;
    }
    if !exts.is_empty() {
        let exts = exts.to_vec();
        return exts.into_iter().all(|e| {
            let rules = cx.library.calls(e, &mut cx.entities, &mut cx.names);
            rules.is_empty()
        });
    }
    match callee {
        Callee::Method { name, .. } => {
            let text = cx.names.text(*name);
            let short = SHORT.contains(&text) || RENEWS.contains(&text);
            let known = !cx
                .library
                .methods(*name, &mut cx.entities, &mut cx.names)
                .is_empty();
            !short && !known
        }
        // A parameter: only the callers know.
        _ => false,
    }
}

/// Is a service asked in this very function?
fn asks_outside(cx: &Context<'_, '_>, g: FuncId) -> bool {
    cx.summaries[g.0 as usize].as_ref().is_some_and(|s| {
        s.events
            .iter()
            .any(|e| e.call.is_none() && e.loc.kind == ResourceKind::External)
    })
}

/// The call that gave a value, if it is of this function.
fn call_of(function: &Function, var: Var) -> Option<(Pos, &Callee)> {
    for (b, block) in function.blocks.iter().enumerate() {
        for (i, inst) in block.insts.iter().enumerate() {
            if let Op::Call {
                dst, callee, kind, ..
            } = &inst.op
                && *dst == var
                && *kind != CallKind::New
            {
                let at = Pos {
                    block: b as u32,
                    inst: i as u32,
                };
                return Some((at, callee));
            }
        }
    }
    None
}

/// Does the function, or one that stands in it, renew a lease?
fn renews(cx: &Context<'_, '_>, f: FuncId) -> bool {
    let renews = |function: &Function| {
        function.blocks.iter().flat_map(|b| &b.insts).any(|i| {
            matches!(&i.op, Op::Call { callee: Callee::Method { name, .. }, .. }
                if RENEWS.contains(&cx.names.text(*name)))
        })
    };
    let program = cx.program;
    // Functions that stand in one follow it in the order of the program.
    let inside = |g: u32| {
        let mut at = Some(FuncId(g));
        for _ in 0..16 {
            match at {
                Some(p) if p == f => return true,
                Some(p) => at = program.function(p).parent,
                None => return false,
            }
        }
        false
    };
    let module = program.function_module[f.0 as usize];
    (0..program.functions.len() as u32).any(|g| {
        program.function_module[g as usize] == module
            && renews(program.function(FuncId(g)))
            && inside(g)
    })
}

/// What happens under a lease that a helper takes round a callback.
#[derive(Default)]
struct Below {
    wait: Option<(FuncId, Span)>,
    write: bool,
}

fn below(cx: &Context<'_, '_>) -> FxHashMap<(FuncId, Span), Below> {
    let mut out: FxHashMap<(FuncId, Span), Below> = FxHashMap::default();
    for (f, summary) in cx.summaries.iter().enumerate() {
        let Some(summary) = summary else { continue };
        for e in &summary.events {
            let Some(lock) = e.lock.as_ref().filter(|l| l.lease) else {
                continue;
            };
            if lock.func.0 as usize == f {
                continue;
            }
            let seen = out.entry((lock.func, lock.span)).or_default();
            seen.write |= is_unfenced(e);
            if e.loc.kind == ResourceKind::External && seen.wait.is_none() {
                seen.wait = Some((FuncId(f as u32), e.trail.span));
            }
        }
    }
    out
}

/// `SET key token PX 5000 NX` … `DEL key`: a lease made by hand.
fn set_if_absent(
    cx: &mut Context<'_, '_>,
    edges: &[Vec<u32>],
    f: FuncId,
    summary: &Summary,
) -> Vec<Lease> {
    let program = cx.program;
    let function = program.function(f);
    let mut out = Vec::new();
    for taken in &summary.events {
        let takes = taken.loc.kind == ResourceKind::Kv
            && taken.mode == Mode::Exclusive
            && taken.call.is_none()
            && (taken.lease || has_time_to_live(cx, function, taken.at));
        if !takes || renews(cx, f) {
            continue;
        }
        let cfg = Cfg::new(function);
        let gives_back = |e: &&Event| {
            e.loc.kind == ResourceKind::Kv
                && e.at != taken.at
                && (e.act == Act::Delete || e.mode == Mode::Atomic)
                && cx.syms.contains(e.loc.key, taken.loc.key)
                && !cfg.controls_of(e.at.block).iter().any(|c| c.way == 3)
        };
        let Some(given) = summary.events.iter().find(gives_back) else {
            continue;
        };
        let mut waits = Vec::new();
        for (b, block) in function.blocks.iter().enumerate() {
            for (i, inst) in block.insts.iter().enumerate() {
                let at = Pos {
                    block: b as u32,
                    inst: i as u32,
                };
                if waits_at(cx, f, &inst.op)
                    && flow::between(function, &cfg, taken.at, at, |_| false).is_some()
                    && flow::between(function, &cfg, at, given.at, |_| false).is_some()
                {
                    waits.push(at);
                }
            }
        }
        let key = taken.loc.key;
        let under = |e: &Event| e.loc.key != key;
        if let Some(wait) = first_long_wait(cx, edges, f, summary, &waits, &under) {
            out.push(Lease {
                func: f,
                span: taken.trail.span,
                key,
                wait,
            });
        }
    }
    out
}

/// Somebody else may decide how long this takes.
fn waits_at(cx: &Context<'_, '_>, f: FuncId, op: &Op) -> bool {
    let module = cx.program.function_module[f.0 as usize];
    let blocks = cx.program.modules[module.0 as usize]
        .dispatch
        .is_unguarded();
    matches!(op, Op::Await { .. }) || blocks && matches!(op, Op::Call { .. })
}

/// Is one of the arguments `PX`, `EX`, or an object that has them?
fn has_time_to_live(cx: &Context<'_, '_>, function: &Function, at: Pos) -> bool {
    let Op::Call { args, .. } = &function.blocks[at.block as usize].insts[at.inst as usize].op
    else {
        return false;
    };
    let ttl = |text: &str| matches!(text, "PX" | "EX" | "px" | "ex" | "expiration");
    function.blocks.iter().flat_map(|b| &b.insts).any(|inst| {
        let given = inst
            .op
            .dst()
            .is_some_and(|d| args.iter().any(|a| a.value == d));
        given
            && match &inst.op {
                Op::Const {
                    value: toctou_core::ir::Literal::Str(text),
                    ..
                } => ttl(cx.names.text(*text)),
                op => flow::literal_fields(op)
                    .iter()
                    .any(|n| ttl(cx.names.text(*n))),
            }
    })
}
