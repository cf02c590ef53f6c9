//! `defer` and every way out of a function.
//!
//! What is deferred becomes a chain of blocks at the end, last one first. A
//! return enters the chain at the last one that is registered there; one that
//! stands in a branch that may not have been taken can be passed by. So the
//! code stays linear in the size of the source.

use toctou_core::Span;
use toctou_core::ir::{Arg, BlockId, CallKind, Callee, Op, Term, Var};
use tree_sitter::Node;

use super::{Lower, children, span};

/// Deferred calls that a return looks back over; more of them run in any case.
const MAX_MAYBE: usize = 16;

pub(super) struct Defer {
    at: Span,
    callee: Callee,
    args: Vec<Arg>,
    block: BlockId,
    /// Runs for certain, wherever control is now.
    sure: bool,
    /// Which of those before it are sure where it is registered.
    before: Vec<bool>,
}

impl<'t> Lower<'t> {
    pub(super) fn defer(&mut self, node: Node<'_>) {
        let at = span(node);
        let Some(call) = children(node).into_iter().next() else {
            return;
        };
        let Some((callee, args)) = self.call_parts(call) else {
            return;
        };
        if !self.reachable() {
            return;
        }
        let block = self.block();
        let from = self.f.defers.len().saturating_sub(MAX_MAYBE);
        let before = self.f.defers[from..].iter().map(|d| d.sure).collect();
        self.f.defers.push(Defer {
            at,
            callee,
            args,
            block,
            sure: true,
            before,
        });
    }

    pub(super) fn defer_mark(&self) -> usize {
        self.f.defers.len()
    }

    /// A branch ends: what it deferred may or may not run later.
    pub(super) fn defer_maybe(&mut self, mark: usize) {
        for defer in self.f.defers.iter_mut().skip(mark) {
            defer.sure = false;
        }
    }

    /// `return`, or the end of the body, or a panic.
    pub(super) fn leave_function(&mut self, at: Span, values: Option<Vec<Var>>) {
        if !self.reachable() {
            return;
        }
        let names = self.f.results.clone();
        if !self.f.defers_any {
            let values = match values {
                Some(values) => values,
                None => names.iter().map(|name| self.read_name(*name, at)).collect(),
            };
            let value = self.tuple(at, values);
            self.end(at, Term::Return(value));
            return;
        }
        if let Some(values) = values {
            if names.is_empty() {
                for (i, value) in values.into_iter().enumerate() {
                    let dst = self.returned(i);
                    self.emit(at, Op::Copy { dst, src: value });
                }
            } else {
                for (name, value) in names.iter().zip(values) {
                    self.write_name(*name, value, at);
                }
            }
        }
        let exit = match self.f.exit {
            Some(exit) => exit,
            None => {
                let exit = self.block();
                self.f.exit = Some(exit);
                exit
            }
        };
        let sure: Vec<bool> = self.f.defers.iter().map(|d| d.sure).collect();
        let ways = self.ways(&sure, sure.len(), exit);
        self.end(at, ways);
    }

    fn returned(&mut self, index: usize) -> Var {
        while self.f.returned.len() <= index {
            let var = self.f.var(toctou_core::ir::VarInfo {
                name: None,
                kind: toctou_core::ir::VarKind::Let,
                captured: false,
                lent: false,
                word: false,
                ty: None,
            });
            self.f.returned.push(var);
        }
        self.f.returned[index]
    }

    /// Where to go with the first `count` deferred: `sure` speaks of the last of them.
    fn ways(&self, sure: &[bool], count: usize, exit: BlockId) -> Term {
        let mut blocks = Vec::new();
        let first = count - sure.len().min(count);
        for i in (first..count).rev() {
            blocks.push(self.f.defers[i].block);
            if sure[i - first] || blocks.len() > MAX_MAYBE {
                break;
            }
            if i == 0 {
                blocks.push(exit);
            }
        }
        match blocks.as_slice() {
            [] => Term::Goto(exit),
            [one] => Term::Goto(*one),
            _ => Term::Multi(blocks),
        }
    }

    /// The chain itself, once the body is lowered.
    pub(super) fn run_deferred(&mut self, at: Span) {
        let Some(exit) = self.f.exit else { return };
        let defers = std::mem::take(&mut self.f.defers);
        let plan: Vec<(BlockId, Vec<bool>)> =
            defers.iter().map(|d| (d.block, d.before.clone())).collect();
        self.f.defers = defers;
        for (i, (block, before)) in plan.into_iter().enumerate() {
            let ways = self.ways(&before, i, exit);
            let defer = &self.f.defers[i];
            let (callee, args, span) = (defer.callee.clone(), defer.args.clone(), defer.at);
            self.start(block);
            let dst = self.temp();
            self.emit(
                span,
                Op::Call {
                    dst,
                    callee,
                    args: args.into(),
                    kind: CallKind::Plain,
                },
            );
            self.end(span, ways);
        }
        self.start(exit);
        let names = self.f.results.clone();
        let values: Vec<Var> = if names.is_empty() {
            self.f.returned.clone()
        } else {
            names.iter().map(|name| self.read_name(*name, at)).collect()
        };
        let value = self.tuple(at, values);
        self.end(at, Term::Return(value));
    }
}
