//! Loops that repeat a conflicting write or a lock attempt, without an end or
//! at times that all losers share.
//!
//! A retry is a loop that is left when the attempt succeeds and goes round
//! when it fails: the attempt throws into the loop, or its result decides a
//! branch of which one way leaves. What else can end it (a counter, a clock)
//! is a bound. Loops over a collection and loops that try another name each
//! turn are not retries; polling and reading make no attempt. Nor is it one
//! where failure leaves the loop and success goes round: that is work, taken
//! piece by piece. Losers are in step only if they wait before they try again.

mod slice;

pub(crate) use slice::operands;

use rustc_hash::FxHashSet;
use toctou_core::finding::ResourceKind;
use toctou_core::ir::{BinOp, Callee, FuncId, Function, Literal, Op, Term, Var};
use toctou_core::{FileRole, Name, Span};
use toctou_models::{Do, LockScope, Mode};

use crate::cfg::{Cfg, EdgeKind};
use crate::checks::code;
use crate::context::{Context, DefectKind, FoundDefect};
use crate::effect::{Event, Pos};
use crate::library::ResultRule;
use crate::sym::Sym;
use slice::{Slice, Slicer};

pub fn check(cx: &mut Context<'_, '_>, _: &[Vec<u32>]) {
    let program = cx.program;
    for f in 0..program.functions.len() {
        let id = FuncId(f as u32);
        let function = program.function(id);
        if program.file_of(id).role != FileRole::Product || !goes_back(function) {
            continue;
        }
        let attempts = attempts(cx, id);
        if attempts.is_empty() {
            continue;
        }
        let cfg = Cfg::new(function);
        let fresh = fresh(cx, id, function);
        let loops = loops(&cfg);
        let mut seen = FxHashSet::default();
        for attempt in &attempts {
            let Some(body) = loops
                .iter()
                .filter(|l| l.has[attempt.at.block as usize])
                .min_by_key(|l| (l.size, l.head))
            else {
                continue;
            };
            if seen.contains(&body.head) {
                continue;
            }
            let kind = judge(cx, id, function, &cfg, body, attempt.at, &fresh);
            let asks = |cx: &Context<'_, '_>| speaks(cx, id, function, body, WAIT);
            let kind = kind.filter(|k| match k {
                DefectKind::RetryForever => !attempt.ours || !asks(cx),
                _ => !attempt.queues && asks(cx),
            });
            if let Some(kind) = kind {
                seen.insert(body.head);
                report(cx, id, function, &cfg, body, attempt, kind);
            }
        }
    }
}

/// Something that fails when somebody else was faster.
struct Attempt {
    at: Pos,
    span: Span,
    key: Option<Sym>,
    resource: ResourceKind,
    /// Waits for its turn: whoever is last to ask gets in as soon as there is room.
    queues: bool,
    /// A lock of this process, which somebody here gives back: to ask again after a while is
    /// to wait for it.
    ours: bool,
}

struct Loop {
    head: u32,
    has: Vec<bool>,
    size: usize,
}

fn goes_back(function: &Function) -> bool {
    function
        .blocks
        .iter()
        .enumerate()
        .any(|(b, block)| block.term.successors().iter().any(|t| t.0 as usize <= b))
}

fn attempts(cx: &mut Context<'_, '_>, f: FuncId) -> Vec<Attempt> {
    let mut out = Vec::new();
    let Some(summary) = cx.summaries[f.0 as usize].clone() else {
        return out;
    };
    for e in summary.events.iter().filter(|e| can_conflict(e)) {
        out.push(Attempt {
            at: e.at,
            span: e.trail.span,
            key: Some(e.loc.key),
            resource: e.loc.kind,
            queues: e.mode == Mode::Exclusive && e.loc.kind != ResourceKind::Row,
            ours: false,
        });
    }
    for (at, n, inst) in code::calls(cx.program.function(f)) {
        // A guard stands for what is locked: to look at that is not to ask
        // whether the lock was got.
        let models = code::models(cx, f, n);
        let locks: Vec<LockScope> = models
            .iter()
            .filter(|(_, r)| r.result != ResultRule::Recv)
            .flat_map(|(_, r)| &r.effects)
            .filter(|e| e.effect.r#do == Do::Lock && e.callback.is_none())
            .map(|e| e.effect.scope)
            .collect();
        if !locks.is_empty() {
            out.push(Attempt {
                at,
                span: inst.span,
                key: None,
                resource: ResourceKind::Lock,
                queues: true,
                ours: locks.iter().all(|scope| *scope == LockScope::Process),
            });
        }
    }
    out.sort_by_key(|a| a.at);
    out
}

fn can_conflict(e: &Event) -> bool {
    let shared = matches!(
        e.loc.kind,
        ResourceKind::File | ResourceKind::Row | ResourceKind::Kv
    );
    let tested = e
        .row
        .as_ref()
        .is_some_and(|r| r.looked_at && !r.conditions.is_empty() && !r.insert);
    shared && e.act.is_write() && (matches!(e.mode, Mode::Exclusive | Mode::Conditional) || tested)
}

/// Natural loops, one per head.
fn loops(cfg: &Cfg) -> Vec<Loop> {
    let n = cfg.succs.len();
    let mut out: Vec<Loop> = Vec::new();
    for head in 0..n as u32 {
        let back: Vec<u32> = cfg.preds[head as usize]
            .iter()
            .copied()
            .filter(|&p| cfg.dominates(head, p))
            .collect();
        // Deeply nested loops would make this quadratic.
        if back.is_empty() || out.len() > 200 {
            continue;
        }
        let mut has = vec![false; n];
        has[head as usize] = true;
        let mut work = back;
        while let Some(b) = work.pop() {
            if !std::mem::replace(&mut has[b as usize], true) {
                work.extend(&cfg.preds[b as usize]);
            }
        }
        let size = has.iter().filter(|h| **h).count();
        out.push(Loop { head, has, size });
    }
    out
}

/// Can the loop begin another turn from here, by the given edges?
fn comes_round(cfg: &Cfg, body: &Loop, from: &[u32], handlers: bool) -> bool {
    let mut seen = FxHashSet::default();
    let mut work: Vec<u32> = from.to_vec();
    while let Some(b) = work.pop() {
        if b == body.head {
            return true;
        }
        if body.has[b as usize] && seen.insert(b) {
            let next = cfg.succs[b as usize].iter();
            work.extend(
                next.filter(|e| handlers || e.kind != EdgeKind::Handler)
                    .map(|e| e.to.0),
            );
        }
    }
    false
}

fn judge(
    cx: &mut Context<'_, '_>,
    f: FuncId,
    function: &Function,
    cfg: &Cfg,
    body: &Loop,
    at: Pos,
    fresh: &FxHashSet<Pos>,
) -> Option<DefectKind> {
    // Over a collection: each turn is about another thing.
    if matches!(function.blocks[body.head as usize].term, Term::Multi(_)) {
        return None;
    }
    let slicer = Slicer::new(function, &body.has);
    let inst = &function.blocks[at.block as usize].insts[at.inst as usize];
    let tried = inst.op.dst()?;
    let asked = slicer.of(slice::operands(&inst.op));
    if asked.counter || draws(&asked, fresh) {
        return None;
    }
    let normal: Vec<u32> = cfg.succs[at.block as usize]
        .iter()
        .filter(|e| e.kind != EdgeKind::Handler)
        .map(|e| e.to.0)
        .collect();
    let caught = function.blocks[at.block as usize]
        .handler
        .filter(|h| body.has[h.0 as usize]);
    let throws = caught.is_some_and(|h| comes_round(cfg, body, &[h.0], true))
        && !comes_round(cfg, body, &normal, false);
    let mut decided = false;
    let mut bound = Bound::None;
    for b in (0..function.blocks.len() as u32).filter(|b| body.has[*b as usize]) {
        let block = &function.blocks[b as usize];
        let leaves = |t: u32| !body.has[t as usize];
        let targets = block.term.successors();
        if !targets.iter().any(|t| leaves(t.0)) {
            continue;
        }
        match &block.term {
            Term::Branch { cond, then, .. } => {
                let why = slicer.of([*cond]);
                decided |= why.vars.contains(&tried)
                    && !is_left_empty_handed(function, *cond, leaves(then.0));
                bound = bound.max(bound_of(cx, f, function, &slicer, &why, tried, fresh));
            }
            Term::Multi(_) => bound = bound.max(Bound::Unknown),
            _ => {}
        }
    }
    if !throws && !decided {
        return None;
    }
    match bound {
        Bound::None => Some(DefectKind::RetryForever),
        Bound::Known if !speaks(cx, f, function, body, CHANCE) => {
            let widens = waits_longer(cx, f, function, body, &slicer);
            Some(if widens {
                DefectKind::RetryWidening
            } else {
                DefectKind::RetryInStep
            })
        }
        _ => None,
    }
}

/// Is there a wait in the loop that is another one in each turn?
fn waits_longer(
    cx: &Context<'_, '_>,
    f: FuncId,
    function: &Function,
    body: &Loop,
    slicer: &Slicer<'_>,
) -> bool {
    let named = |var: Var| {
        let insts = function.blocks.iter().flat_map(|b| &b.insts);
        let made = insts.filter(|inst| inst.op.dst() == Some(var));
        made.into_iter().any(|inst| match &inst.op {
            Op::GetField { field: name, .. } | Op::Global { name, .. } => {
                is_one_of(cx, *name, WAIT)
            }
            Op::LoadVar { cell, .. } => cx.program.function(cell.owner).vars[cell.var.0 as usize]
                .name
                .is_some_and(|name| is_one_of(cx, name, WAIT)),
            _ => false,
        })
    };
    code::calls(cx.program.function(f)).any(|(at, _, inst)| {
        let Op::Call { callee, args, .. } = &inst.op else {
            return false;
        };
        let waits = match callee {
            Callee::Method { name, .. } => is_one_of(cx, *name, WAIT),
            Callee::Value(value) => named(*value),
            _ => false,
        };
        body.has[at.block as usize] && waits && slicer.of(args.iter().map(|a| a.value)).counter
    })
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Bound {
    None,
    Unknown,
    Known,
}

/// Is this way out a bound on attempts or time?
fn bound_of(
    cx: &mut Context<'_, '_>,
    f: FuncId,
    function: &Function,
    slicer: &Slicer<'_>,
    why: &Slice,
    tried: Var,
    fresh: &FxHashSet<Pos>,
) -> Bound {
    if why.counter || draws(why, fresh) {
        return Bound::Known;
    }
    // Asking something else than the attempt, what was read for it, or its
    // failure may end the loop for reasons that are not seen here.
    let summary = cx.summaries[f.0 as usize].clone();
    let elsewhere = why.calls.iter().any(|at| {
        let op = &function.blocks[at.block as usize].insts[at.inst as usize].op;
        let about = slicer.of(slice::operands(op));
        let read = |e: &Event| e.at == *at || about.calls.contains(&e.at);
        let reads = summary.as_ref().is_some_and(|s| s.events.iter().any(read));
        op.dst() != Some(tried) && !about.vars.contains(&tried) && !about.caught && !reads
    });
    if why.outside || elsewhere {
        Bound::Unknown
    } else {
        Bound::None
    }
}

/// Calls that give another value every time: clocks, chance, new ids.
fn fresh(cx: &mut Context<'_, '_>, f: FuncId, function: &Function) -> FxHashSet<Pos> {
    code::calls(function)
        .filter(|(_, n, _)| {
            code::models(cx, f, *n)
                .iter()
                .any(|(_, r)| r.result == ResultRule::Fresh)
        })
        .map(|(at, _, _)| at)
        .collect()
}

fn draws(slice: &Slice, fresh: &FxHashSet<Pos>) -> bool {
    slice.calls.iter().any(|at| fresh.contains(at))
}

/// Is the loop left where the condition's value says that there was nothing? Whoever got
/// something goes round then, for more.
fn is_left_empty_handed(function: &Function, cond: Var, by_yes: bool) -> bool {
    let insts = || function.blocks.iter().flat_map(|b| &b.insts);
    let made = |var: Var| {
        let mut made = insts().filter(|inst| inst.op.dst() == Some(var));
        let one = made.next().filter(|_| made.next().is_none());
        one.map(|inst| &inst.op)
    };
    let (mut var, mut there) = (cond, by_yes);
    for _ in 0..8 {
        match made(var) {
            Some(Op::Not { src, .. }) => (var, there) = (*src, !there),
            Some(Op::Copy { src, .. } | Op::Await { src, .. }) => var = *src,
            Some(Op::Binary {
                op: op @ (BinOp::Eq | BinOp::Ne),
                left,
                right,
                ..
            }) if matches!(
                made(*right),
                Some(Op::Const {
                    value: Literal::Null,
                    ..
                })
            ) =>
            {
                (var, there) = (*left, there == (*op == BinOp::Ne));
            }
            // What is counted or compared may be one thing or the other.
            Some(Op::Call { .. }) => return !there,
            _ => return false,
        }
    }
    false
}

const CHANCE: &[&str] = &["random", "jitter"];
const WAIT: &[&str] = &["sleep", "delay", "wait", "timeout", "backoff"];

fn is_one_of(cx: &Context<'_, '_>, name: Name, words: &[&str]) -> bool {
    let text = cx.names.text(name).to_ascii_lowercase();
    words.iter().any(|w| text.contains(w))
}

/// Is there one of these words in the loop, or in what it calls?
fn speaks(
    cx: &Context<'_, '_>,
    f: FuncId,
    function: &Function,
    body: &Loop,
    words: &[&str],
) -> bool {
    let mut work: Vec<(FuncId, u32)> = Vec::new();
    if speaks_of(cx, f, function, Some(&body.has), &mut work, 0, words) {
        return true;
    }
    let mut seen = FxHashSet::default();
    while let Some((g, depth)) = work.pop() {
        if depth > 3 || seen.len() > 60 || !seen.insert(g) {
            continue;
        }
        let callee = cx.program.function(g);
        if speaks_of(cx, g, callee, None, &mut work, depth, words) {
            return true;
        }
    }
    false
}

fn speaks_of(
    cx: &Context<'_, '_>,
    f: FuncId,
    function: &Function,
    within: Option<&[bool]>,
    calls: &mut Vec<(FuncId, u32)>,
    depth: u32,
    words: &[&str],
) -> bool {
    let is_one = |name: Name| is_one_of(cx, name, words);
    if within.is_none() && is_one(function.name) {
        return true;
    }
    for (at, n, _) in code::calls(function) {
        if within.is_none_or(|w| w[at.block as usize]) {
            calls.extend(cx.points_to.targets(f, n).0.iter().map(|t| (*t, depth + 1)));
        }
    }
    let blocks = function.blocks.iter().enumerate();
    blocks
        .filter(|(b, _)| within.is_none_or(|w| w[*b]))
        .flat_map(|(_, block)| &block.insts)
        .any(|inst| match &inst.op {
            Op::Call {
                callee: Callee::Method { name, .. },
                ..
            }
            | Op::GetField { field: name, .. }
            | Op::Global { name, .. } => is_one(*name),
            Op::LoadVar { cell, .. } => cx.program.function(cell.owner).vars[cell.var.0 as usize]
                .name
                .is_some_and(is_one),
            Op::Func { func, .. } => {
                calls.push((*func, depth + 1));
                false
            }
            _ => false,
        })
}

fn report(
    cx: &mut Context<'_, '_>,
    f: FuncId,
    function: &Function,
    cfg: &Cfg,
    body: &Loop,
    attempt: &Attempt,
    kind: DefectKind,
) {
    // The way into a loop carries the span of the whole statement.
    let into = cfg.preds[body.head as usize]
        .iter()
        .find(|p| !body.has[**p as usize]);
    let span = into.map_or(attempt.span, |p| function.blocks[*p as usize].term_span);
    let span = code::first_line(cx, f, span);
    let key = attempt.key.unwrap_or_else(|| cx.syms.null());
    cx.defects.push(FoundDefect {
        kind,
        func: f,
        span,
        first: Some((f, attempt.span)),
        key,
        resource: attempt.resource,
        in_process: true,
        cross_process: true,
        duck: false,
        word: false,
    });
}
