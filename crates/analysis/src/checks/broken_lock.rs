//! Locks made by hand that let two in.
//!
//! * `if (held) await held; held = …`: those who waited all wake up at once,
//!   and none of them looks again. In a loop it is right.
//! * A queue per key (`prev = map.get(k); map.set(k, next); await prev`) whose
//!   entry is deleted by whoever is done: the entry is the last waiter's, and
//!   the next caller finds none and goes in beside him.
//! * A table of locks whose entries a timer deletes, held or not.

use rustc_hash::FxHashSet;
use toctou_core::finding::ResourceKind;
use toctou_core::ir::{CallKind, Callee, FuncId, FuncKind, Op, Term, Var};
use toctou_core::{Name, Span};

use crate::cfg::Cfg;
use crate::context::{Context, DefectKind, FoundDefect};
use crate::effect::Pos;

use super::flow::{self, Base, Defs, Place, Words};
use super::lock_table::{self, Found, Removals};

pub(super) fn check(cx: &mut Context<'_, '_>, _: &[Vec<u32>]) {
    let words = Words::new(cx);
    let mut found: Vec<Found> = Vec::new();
    let program = cx.program;
    // Closures that take an entry out of a container without asking, by the function round them.
    let mut removals = Removals::default();
    let mut lockers = Vec::new();
    for (f, function) in program.functions.iter().enumerate() {
        let id = FuncId(f as u32);
        let mut waits = false;
        let mut removes = false;
        for inst in function.blocks.iter().flat_map(|b| &b.insts) {
            match &inst.op {
                Op::Await { .. } => waits = true,
                Op::Delete { key: Err(_), .. } => removes = true,
                Op::Call {
                    callee: Callee::Method { name, .. },
                    ..
                } => {
                    removes |= Some(*name) == words.delete;
                    waits |= *name == cx.words.then;
                }
                _ => {}
            }
        }
        if removes {
            let defs = Defs::new(id, function, &words);
            let cfg = Cfg::new(function);
            for (place, span) in unasked(&defs, &cfg) {
                let mut at = Some(id);
                for _ in 0..4 {
                    let Some(g) = at else { break };
                    removals.entry(g).or_default().push((place, id, span));
                    at = program.function(g).parent;
                }
            }
        }
        let small = function.blocks.len() <= flow::MAX_BLOCKS;
        if waits && small && function.kind != FuncKind::ModuleInit {
            lockers.push(id);
        }
    }
    for id in lockers {
        let function = program.function(id);
        let defs = Defs::new(id, function, &words);
        let mut lock = HandMade::new(&defs, cx.words.then, cx.words.catch, cx.words.finally);
        if lock.waits.is_empty() && lock.chains.is_empty() || lock.stores.is_empty() {
            continue;
        }
        let cfg = Cfg::new(function);
        lock.cfg = Some(&cfg);
        for (place, first, span) in lock.wake_together(cx) {
            found.push((DefectKind::LetsTwoIn, place, id, span, Some((id, first))));
        }
        for (place, first) in lock.queues() {
            for (p, func, span) in removals.get(&id).into_iter().flatten() {
                if *p == place {
                    found.push((
                        DefectKind::DropsLive,
                        place,
                        *func,
                        *span,
                        Some((id, first)),
                    ));
                }
            }
        }
    }
    lock_table::timers(cx, &words, &removals, &mut found);
    for (kind, place, func, span, first) in found {
        let key = place.base.symbol(cx);
        cx.defects.push(FoundDefect {
            kind,
            func,
            span,
            first,
            key,
            resource: ResourceKind::Lock,
            in_process: true,
            cross_process: false,
            duck: false,
            word: false,
        });
    }
}

/// Entries that a function removes on every way through it.
fn unasked(defs: &Defs<'_>, cfg: &Cfg) -> Vec<(Place, Span)> {
    let mut out = Vec::new();
    for (b, block) in defs.function.blocks.iter().enumerate() {
        for inst in &block.insts {
            if let Some(place) = defs.removed(&inst.op)
                && !cfg.controls_of(b as u32).iter().any(|c| c.way < 2)
            {
                out.push((place, inst.span));
            }
        }
    }
    out
}

/// The waits, stores and tests of a function that may be a lock.
struct HandMade<'d, 'a> {
    defs: &'d Defs<'a>,
    cfg: Option<&'d Cfg>,
    /// Waits for a promise that stands in a shared place, where it waits and where it looked.
    waits: Vec<(Place, Pos, Span, Option<Pos>)>,
    /// What follows a promise that stands in a shared place: `prev.then(…)`, by its result.
    chains: Vec<(Place, Var, Span)>,
    stores: Vec<(Place, Var, Pos, Span)>,
    /// Blocks that end in a test of a place.
    tests: Vec<(Place, u32)>,
}

impl<'d, 'a> HandMade<'d, 'a> {
    fn new(defs: &'d Defs<'a>, then: Name, catch: Name, finally: Name) -> Self {
        let mut out = Self {
            defs,
            cfg: None,
            waits: Vec::new(),
            chains: Vec::new(),
            stores: Vec::new(),
            tests: Vec::new(),
        };
        let follows = |name: &Name| [then, catch, finally].contains(name);
        for (b, block) in defs.function.blocks.iter().enumerate() {
            for (i, inst) in block.insts.iter().enumerate() {
                let at = Pos {
                    block: b as u32,
                    inst: i as u32,
                };
                match &inst.op {
                    Op::Await { src, .. } => {
                        // `await held` and `await held.catch(() => {})`
                        let of = match defs.def(*src) {
                            Some(Op::Call {
                                callee: Callee::Method { obj, name },
                                ..
                            }) if *name == catch => *obj,
                            _ => *src,
                        };
                        if let Some(place) = defs.loaded(of) {
                            out.waits.push((place, at, inst.span, out.made_at(of)));
                        }
                    }
                    Op::Call {
                        dst,
                        callee: Callee::Method { obj, name },
                        ..
                    } if follows(name) => {
                        let known = out.chains.iter().find(|c| c.1 == *obj).map(|c| c.0);
                        if let Some(place) = known.or_else(|| defs.loaded(*obj)) {
                            out.chains.push((place, *dst, inst.span));
                        }
                    }
                    op => {
                        if let Some((place, value)) = defs.stored(op)
                            && out.outlives(place)
                        {
                            out.stores.push((place, value, at, inst.span));
                        }
                    }
                }
            }
            if let Term::Branch { cond, .. } = block.term
                && let Some(place) = defs.tested(cond)
            {
                out.tests.push((place, b as u32));
            }
        }
        out
    }

    /// Where a register is given its value, past copies.
    fn made_at(&self, var: Var) -> Option<Pos> {
        let op = self.defs.def(var)?;
        let blocks = self.defs.function.blocks.iter().enumerate();
        blocks
            .flat_map(|(b, block)| block.insts.iter().enumerate().map(move |(i, x)| (b, i, x)))
            .find(|(_, _, inst)| std::ptr::eq(&inst.op, op))
            .map(|(b, i, _)| Pos {
                block: b as u32,
                inst: i as u32,
            })
    }

    /// A variable of this very function is another one in every call.
    fn outlives(&self, place: Place) -> bool {
        match place.base {
            Base::Cell(cell) => cell.owner != self.defs.id,
            Base::Field(_) => self.defs.function.kind != FuncKind::Constructor,
        }
    }

    /// Waits for a promise, after which it is replaced without another look.
    fn wake_together(&self, cx: &Context<'_, '_>) -> Vec<(Place, Span, Span)> {
        let Some(cfg) = self.cfg else {
            return Vec::new();
        };
        let function = self.defs.function;
        let mut out = Vec::new();
        for (place, wait, first, _) in &self.waits {
            if flow::after(cfg, wait.block, |_| true).contains(&wait.block) {
                continue;
            }
            let tests: FxHashSet<u32> = self
                .tests
                .iter()
                .filter(|t| t.0 == *place)
                .map(|t| t.1)
                .collect();
            let around = cfg.controls_of(wait.block);
            let test = around.iter().find(|c| tests.contains(&c.block));
            let before = match test {
                Some(test) => cfg.controls_of(test.block),
                None => around.clone(),
            };
            for (p, value, store, span) in &self.stores {
                let replaced = p == place
                    && !self.defs.is_constant(*value)
                    && (self.is_promise(cx, *value) || test.is_some() && self.is_call(*value));
                if replaced
                    && cfg
                        .controls_of(store.block)
                        .iter()
                        .all(|c| before.contains(c))
                    && flow::between(function, cfg, *wait, *store, |b| tests.contains(&b)).is_some()
                {
                    out.push((*place, *first, *span));
                }
            }
        }
        out
    }

    fn is_promise(&self, cx: &Context<'_, '_>, var: Var) -> bool {
        let Some(Op::Call {
            kind: CallKind::New,
            callee: Callee::Value(class),
            ..
        }) = self.defs.def(var)
        else {
            return false;
        };
        matches!(self.defs.def(*class), Some(Op::Global { name, .. })
            if cx.names.text(*name) == "Promise")
    }

    /// A call that runs on by itself: it was not waited for before it was stored.
    fn is_call(&self, var: Var) -> bool {
        matches!(
            self.defs.def(var),
            Some(Op::Call {
                kind: CallKind::Plain,
                ..
            })
        )
    }

    /// Entries of a table in which each caller waits for the one before.
    fn queues(&self) -> Vec<(Place, Span)> {
        let mut out = Vec::new();
        let Some(cfg) = self.cfg else { return out };
        let function = self.defs.function;
        for (place, value, store, _) in &self.stores {
            if place.entry.is_none() || self.defs.is_nothing(*value) {
                continue;
            }
            // map.set(k, next); await prev. Who looks only now finds what he has put there himself.
            let leads_to =
                |at: &Pos| flow::between(function, cfg, *store, *at, |_| false).is_some();
            let waited = self.waits.iter().find(|(p, wait, _, looked)| {
                p == place && leads_to(wait) && !looked.as_ref().is_some_and(leads_to)
            });
            // map.set(k, prev.then(job))
            let made = self.made_of(*value);
            let chained = self
                .chains
                .iter()
                .find(|(p, dst, _)| p == place && made.contains(dst));
            if let Some(span) = waited.map(|w| w.2).or(chained.map(|c| c.2)) {
                out.push((*place, span));
            }
        }
        out
    }

    /// The registers that a value is made of: itself, and the promises it follows.
    fn made_of(&self, value: Var) -> FxHashSet<Var> {
        let mut out = FxHashSet::default();
        let mut stack = vec![value];
        while let Some(v) = stack.pop() {
            if out.len() > 32 || !out.insert(v) {
                continue;
            }
            match self.defs.def(v) {
                Some(Op::Call {
                    dst,
                    callee: Callee::Method { obj, .. },
                    ..
                }) => stack.extend([*dst, *obj]),
                Some(op) => stack.extend(op.dst()),
                None => {}
            }
        }
        out
    }
}
