//! Something is opened, a later step fails, and nobody closes it.
//!
//! From each opening, the walk follows the ways on which nothing fails until
//! the thing is closed, returned or stored. A step on such a way that can
//! fail, and whose failure leaves the function with nothing on its way that
//! touches the thing, leaks it. The thing has to be a local, and something has
//! to end it where nothing fails: what is meant to stay open is left alone.

mod holding;
mod looped;
mod opening;

use rustc_hash::{FxHashMap, FxHashSet};
use toctou_core::finding::ResourceKind;
use toctou_core::ir::{
    BinOp, BlockId, CallKind, Callee, Cell, FuncId, FuncKind, Function, Inst, Op, Term, Var,
};
use toctou_core::{FileRole, Span};
use toctou_models::Do;

use crate::checks::code;
use crate::context::{Context, DefectKind, FoundDefect};
use crate::effect::Pos;
use crate::sym::SymKind;
use holding::{Holding, Use};
use opening::{is_awaited, opens};

/// Methods that end what was opened.
const CLOSES: &[&str] = &[
    "close",
    "end",
    "disconnect",
    "release",
    "kill",
    "quit",
    "destroy",
    "dispose",
    "stop",
    "terminate",
    "shutdown",
    "cleanup",
    "teardown",
    "exit",
    "rollback",
];

pub fn check(cx: &mut Context<'_, '_>, _: &[Vec<u32>]) {
    let program = cx.program;
    for f in 0..program.functions.len() {
        let id = FuncId(f as u32);
        let function = program.function(id);
        // What start-up code opens stays for as long as the process.
        if function.kind == FuncKind::ModuleInit || program.file_of(id).role != FileRole::Product {
            continue;
        }
        let openings: Vec<(Pos, &Inst)> = code::calls(function)
            .filter(|(_, n, inst)| opens(cx, id, *n, inst))
            .map(|(at, _, inst)| (at, inst))
            .collect();
        if openings.is_empty() {
            continue;
        }
        let calls: FxHashMap<Pos, u32> = code::calls(function).map(|(at, n, _)| (at, n)).collect();
        let results: FxHashMap<Var, (u32, &Op)> = code::calls(function)
            .filter_map(|(_, n, i)| Some((i.op.dst()?, (n, &i.op))))
            .collect();
        for (at, inst) in openings {
            let mut walk = Walk {
                cx,
                id,
                function,
                calls: &calls,
                results: &results,
            };
            let found = walk.one(at, inst).or_else(|| walk.in_loop(at, inst));
            if let Some((span, first, var)) = found {
                let key = cx.syms.make(SymKind::Cell(Cell { owner: id, var }));
                cx.defects.push(FoundDefect {
                    kind: DefectKind::PartialInit,
                    func: id,
                    span,
                    first: first.map(|s| (id, s)),
                    key,
                    resource: ResourceKind::Memory,
                    in_process: true,
                    cross_process: false,
                    duck: false,
                    word: false,
                });
            }
        }
    }
}

type Leak = (Span, Option<Span>, Var);

struct Walk<'c, 'a, 'm> {
    cx: &'c mut Context<'a, 'm>,
    id: FuncId,
    function: &'a Function,
    /// Calls of the function by place and by result: their numbers.
    calls: &'c FxHashMap<Pos, u32>,
    results: &'c FxHashMap<Var, (u32, &'a Op)>,
}

impl Walk<'_, '_, '_> {
    /// Opened once, and a later step fails.
    fn one(&mut self, at: Pos, inst: &Inst) -> Option<Leak> {
        let Op::Call { dst, callee, .. } = &inst.op else {
            return None;
        };
        if let Some(found) = self.follow(at, inst.span, *dst) {
            return Some(found);
        }
        // `client.connect()` opens the client, if the function made it.
        let Callee::Method { obj, .. } = callee else {
            return None;
        };
        let made = self.made_here(*obj)?;
        self.follow(at, inst.span, made)
    }

    /// The call of this function that made the value of a register.
    fn made_here(&mut self, var: Var) -> Option<Var> {
        let mut v = var;
        for _ in 0..6 {
            match self.cx.definition(self.id, v).map(|i| &i.op)? {
                Op::Copy { src, .. } | Op::Await { src, .. } => v = *src,
                Op::LoadVar { cell, .. } if cell.owner == self.id => {
                    v = self.cx.only_store(*cell)?.1;
                }
                Op::Call {
                    dst,
                    kind: CallKind::New,
                    ..
                } => return Some(*dst),
                _ => return None,
            }
        }
        None
    }

    fn follow(&mut self, at: Pos, opened: Span, value: Var) -> Option<Leak> {
        let held = Holding::new(self.id, self.function, value);
        let mut start = at;
        let block = &self.function.blocks[at.block as usize];
        // It is there when the opening has been waited for.
        if let Some(i) = block.insts[at.inst as usize + 1..]
            .iter()
            .position(|i| matches!(i.op, Op::Await { .. }))
        {
            start.inst += 1 + i as u32;
        }
        let mut seen = FxHashSet::default();
        let mut work = vec![(start.block, start.inst as usize + 1)];
        let mut ended = false;
        let mut leak: Option<(Pos, Span)> = None;
        'blocks: while let Some((b, from)) = work.pop() {
            let block = &self.function.blocks[b as usize];
            for (i, inst) in block.insts.iter().enumerate().skip(from) {
                let pos = Pos {
                    block: b,
                    inst: i as u32,
                };
                match held.use_of(&inst.op) {
                    Use::Called(name) if self.is_close(name) => {
                        ended = true;
                        continue 'blocks;
                    }
                    Use::Kept => {
                        ended = true;
                        continue 'blocks;
                    }
                    Use::Entered => continue 'blocks,
                    Use::Given if !self.is_io(pos) => continue 'blocks,
                    Use::Given if self.closes(pos) => {
                        ended = true;
                        continue 'blocks;
                    }
                    _ => {}
                }
                let before = leak.is_none_or(|(p, _)| pos < p);
                if before && self.fails(pos, inst) && !self.is_covered(block.handler, &held) {
                    leak = Some((pos, inst.span));
                }
            }
            match &block.term {
                Term::Return(Some(v)) if held.has(*v) => ended = true,
                // The end of a `finally` throws on what was caught: not a failure of its own.
                Term::Throw(v) if self.is_caught(*v) => {}
                Term::Branch {
                    cond,
                    then,
                    otherwise,
                } if self.asks(*cond, &held).is_some() => {
                    let there = self.asks(*cond, &held) == Some(true);
                    let next = if there { then } else { otherwise };
                    if seen.insert(next.0) {
                        work.push((next.0, 0));
                    }
                }
                Term::Throw(_) if !self.is_covered(block.handler, &held) => {
                    let pos = Pos {
                        block: b,
                        inst: u32::MAX,
                    };
                    if leak.is_none_or(|(p, _)| pos < p) {
                        leak = Some((pos, block.term_span));
                    }
                }
                term => {
                    for next in term.successors() {
                        if seen.insert(next.0) {
                            work.push((next.0, 0));
                        }
                    }
                }
            }
        }
        let (_, span) = leak.filter(|_| ended)?;
        Some((span, Some(opened), held.name(self.function)))
    }

    fn is_caught(&mut self, v: Var) -> bool {
        matches!(
            self.cx.definition(self.id, v).map(|i| &i.op),
            Some(Op::Catch { .. })
        )
    }

    /// `if (handle)`, `if (!handle)`: which way is taken while it is there.
    fn asks(&mut self, cond: Var, held: &Holding) -> Option<bool> {
        if held.has(cond) {
            return Some(true);
        }
        match self.cx.definition(self.id, cond).map(|i| &i.op)? {
            Op::Not { src, .. } => self.asks(*src, held).map(|b| !b),
            Op::Binary {
                op, left, right, ..
            } if held.has(*left) || held.has(*right) => match op {
                BinOp::Ne => Some(true),
                BinOp::Eq => Some(false),
                _ => None,
            },
            _ => None,
        }
    }

    fn is_close(&self, name: toctou_core::Name) -> bool {
        code::mentions(self.cx.names.text(name), CLOSES)
    }

    /// A library's function that uses the thing and does not keep it.
    fn is_io(&mut self, at: Pos) -> bool {
        let Some(&n) = self.calls.get(&at) else {
            return false;
        };
        code::models(self.cx, self.id, n)
            .iter()
            .any(|(_, r)| r.result_type.is_none() && !r.effects.is_empty())
    }

    fn closes(&mut self, at: Pos) -> bool {
        let Some(&n) = self.calls.get(&at) else {
            return false;
        };
        self.does(n, Do::Close)
    }

    fn does(&mut self, call: u32, what: Do) -> bool {
        code::models(self.cx, self.id, call)
            .iter()
            .any(|(_, r)| r.effects.iter().any(|e| e.effect.r#do == what))
    }

    /// Can this step fail? Waiting for a call of something that is known to,
    /// or that is not of this program; calling what throws.
    fn fails(&mut self, at: Pos, inst: &Inst) -> bool {
        match &inst.op {
            Op::Await { src, .. } => {
                let Some(&(
                    n,
                    Op::Call {
                        callee,
                        kind: CallKind::Plain,
                        ..
                    },
                )) = self.results.get(src)
                else {
                    return false;
                };
                // Closing one thing hardly ever fails.
                if matches!(callee, Callee::Method { name, .. } if self.is_close(*name)) {
                    return false;
                }
                let (funcs, exts) = self.cx.points_to.targets(self.id, n);
                if !funcs.is_empty() {
                    return self.may_throw(funcs);
                }
                if !exts.is_empty() {
                    return code::models(self.cx, self.id, n)
                        .iter()
                        .any(|(_, r)| !r.effects.is_empty());
                }
                // Not known: a method of an object from a library.
                matches!(callee, Callee::Method { .. })
            }
            Op::Call {
                kind: CallKind::Plain,
                ..
            } => {
                let Some(&n) = self.calls.get(&at) else {
                    return false;
                };
                let (funcs, _) = self.cx.points_to.targets(self.id, n);
                if !funcs.is_empty() {
                    return funcs.iter().all(|f| !self.cx.program.function(*f).is_async)
                        && self.may_throw(funcs);
                }
                // Another opening, that is not waited for.
                !is_awaited(self.function, inst) && self.does(n, Do::Open)
            }
            _ => false,
        }
    }

    fn may_throw(&self, funcs: &[FuncId]) -> bool {
        funcs.iter().any(|f| {
            self.cx.summaries[f.0 as usize]
                .as_ref()
                .is_some_and(|s| s.may_throw)
        })
    }

    /// Does something after the failure touch the thing, or clean up, or end the process?
    fn is_covered(&self, handler: Option<BlockId>, held: &Holding) -> bool {
        let Some(h) = handler else {
            return false;
        };
        let mut seen = FxHashSet::default();
        let mut work = vec![h.0];
        while let Some(b) = work.pop() {
            if !seen.insert(b) {
                continue;
            }
            let block = &self.function.blocks[b as usize];
            for inst in &block.insts {
                let cleans = match &inst.op {
                    Op::Call {
                        callee: Callee::Method { name, .. },
                        ..
                    } => self.is_close(*name),
                    Op::Call {
                        callee: Callee::Value(v),
                        ..
                    } => self.function.vars[v.0 as usize]
                        .name
                        .is_some_and(|n| self.is_close(n)),
                    Op::LoadVar { cell, .. } => self.cx.program.function(cell.owner).vars
                        [cell.var.0 as usize]
                        .name
                        .is_some_and(|n| self.is_close(n)),
                    _ => false,
                };
                if cleans || !matches!(held.use_of(&inst.op), Use::None) {
                    return true;
                }
            }
            work.extend(block.term.successors().iter().map(|t| t.0));
            work.extend(block.handler.map(|h| h.0));
        }
        false
    }
}
