//! Leaving code early: `break`, `continue`, `return`, and what must run on
//! the way out.
//!
//! A `finally` body is lowered once. Everybody who leaves through it jumps to
//! its entry and notes where they meant to go; at its end a [`Term::Multi`]
//! leads to all of those places. `with` works the same way, with the exit of
//! the resource for a body.

use ruff_python_ast::{self as ast, ExceptHandler, Expr, Stmt};
use toctou_core::Span;
use toctou_core::ir::{BinOp, BlockId, Op, Term, Var, VarInfo, VarKind};

use super::{Lower, MAX_DEPTH, at};

/// Something that encloses the current statement and that a jump can aim at
/// or must pass.
pub(super) enum Frame {
    Loop { exit: Exit, again: BlockId },
    Finally { entry: BlockId, pending: Vec<Jump> },
}

/// The block after a loop. Made when somebody first jumps there, so that an
/// endless loop has none.
pub(super) struct Exit {
    pub(super) block: Option<BlockId>,
    handler: Option<BlockId>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Jump {
    /// Out of the loop at this position.
    Break(usize),
    Continue(usize),
    Return,
}

/// A `finally` that has been entered; see [`Lower::begin_finally`].
pub(super) struct Finally {
    entry: BlockId,
    /// Where exceptions arrive.
    thrown: BlockId,
    outer_handler: Option<BlockId>,
    /// Somebody reaches it without jumping.
    falls_through: bool,
}

impl<'a> Lower<'a> {
    pub(super) fn exit(&self) -> Exit {
        Exit {
            block: None,
            handler: self.f.handler,
        }
    }

    /// Takes off the innermost loop and continues behind it, if anybody does.
    pub(super) fn leave(&mut self, at: Span) {
        if let Some(Frame::Loop { exit, .. }) = self.f.frames.pop()
            && let Some(block) = exit.block
        {
            self.goto(at, block);
            self.start(block);
        }
    }

    pub(super) fn jump(&mut self, jump: Jump, at: Span) {
        let Some(from) = self.f.current else {
            return;
        };
        if self.is_held_up(jump) {
            let to = self.goal(jump);
            self.f.detours.jumps.push((from, to));
        }
        if let Some(target) = self.route(jump, at) {
            self.goto(at, target);
        }
    }

    /// The next block on the way: the nearest `finally` that has to run first,
    /// or else the goal.
    fn route(&mut self, jump: Jump, at: Span) -> Option<BlockId> {
        if self.is_held_up(jump)
            && let Some(&index) = self.f.finallies.last()
            && let Some(Frame::Finally { entry, pending }) = self.f.frames.get_mut(index)
        {
            if !pending.contains(&jump) {
                pending.push(jump);
            }
            return Some(*entry);
        }
        if jump != Jump::Return {
            return self.goal(jump);
        }
        let block = self.block();
        let resume = self.f.current.replace(block);
        let value = self.f.returned;
        self.end(at, Term::Return(value));
        self.f.current = resume;
        Some(block)
    }

    /// Must a `finally` run first?
    fn is_held_up(&self, jump: Jump) -> bool {
        let inside = match jump {
            Jump::Break(frame) | Jump::Continue(frame) => frame + 1,
            Jump::Return => 0,
        };
        self.f
            .finallies
            .last()
            .is_some_and(|&index| index >= inside)
    }

    /// Where a jump within the function leads in the end.
    fn goal(&mut self, jump: Jump) -> Option<BlockId> {
        match jump {
            Jump::Return => None,
            Jump::Continue(frame) => match self.f.frames.get(frame) {
                Some(Frame::Loop { again, .. }) => Some(*again),
                _ => None,
            },
            Jump::Break(frame) => self.exit_of(frame),
        }
    }

    /// The block behind the loop at this position, made if need be.
    pub(super) fn exit_of(&mut self, frame: usize) -> Option<BlockId> {
        let Frame::Loop { exit, .. } = self.f.frames.get(frame)? else {
            return None;
        };
        if let Some(block) = exit.block {
            return Some(block);
        }
        let handler = exit.handler;
        let block = self.block_under(handler);
        if let Some(Frame::Loop { exit, .. }) = self.f.frames.get_mut(frame) {
            exit.block = Some(block);
        }
        Some(block)
    }

    pub(super) fn innermost_loop(&self) -> Option<usize> {
        self.f
            .frames
            .iter()
            .rposition(|frame| matches!(frame, Frame::Loop { .. }))
    }

    pub(super) fn return_value(&mut self, value: Option<Var>, at: Span) {
        if self.f.finallies.is_empty() {
            self.end(at, Term::Return(value));
            return;
        }
        if let Some(src) = value {
            let dst = match self.f.returned {
                Some(var) => var,
                None => {
                    let var = self.f.var(VarInfo {
                        name: None,
                        kind: VarKind::Let,
                        captured: false,
                        lent: false,
                        word: false,
                        ty: None,
                    });
                    self.f.returned = Some(var);
                    var
                }
            };
            self.emit(at, Op::Copy { dst, src });
        }
        self.jump(Jump::Return, at);
    }

    /// From here to [`Lower::end_finally`], every way out leads through it.
    pub(super) fn begin_finally(&mut self, at: Span) -> Finally {
        let outer_handler = self.f.handler;
        let entry = self.block();
        let thrown = self.block();
        self.f.finallies.push(self.f.frames.len());
        self.f.frames.push(Frame::Finally {
            entry,
            pending: Vec::new(),
        });
        self.f.handler = Some(thrown);
        let body = self.block();
        self.goto(at, body);
        self.start(body);
        Finally {
            entry,
            thrown,
            outer_handler,
            falls_through: false,
        }
    }

    pub(super) fn end_finally(
        &mut self,
        mut finally: Finally,
        at: Span,
        body: impl FnOnce(&mut Self),
    ) {
        if self.reachable() {
            finally.falls_through = true;
            self.goto(at, finally.entry);
        }
        self.f.handler = finally.outer_handler;
        self.f.finallies.pop();
        let pending = match self.f.frames.pop() {
            Some(Frame::Finally { pending, .. }) => pending,
            _ => Vec::new(),
        };
        self.start(finally.thrown);
        let exception = self.temp();
        self.emit(at, Op::Catch { dst: exception });
        self.goto(at, finally.entry);

        self.start(finally.entry);
        let first = self.f.blocks.len();
        body(self);
        if !pending.is_empty() {
            let own = (first..self.f.blocks.len()).map(|b| BlockId(b as u32));
            self.f.detours.meanwhile.push(finally.entry);
            self.f.detours.meanwhile.extend(own);
        }
        if !self.reachable() {
            return;
        }
        let after = finally.falls_through.then(|| self.block());
        let rethrow = self.block();
        let mut next: Vec<BlockId> = after.into_iter().collect();
        next.push(rethrow);
        for jump in pending {
            if let Some(block) = self.route(jump, at)
                && !next.contains(&block)
            {
                next.push(block);
            }
        }
        self.end(at, Term::Multi(next));
        self.start(rethrow);
        self.end(at, Term::Throw(exception));
        self.f.current = after;
    }

    pub(super) fn try_statement(&mut self, s: &'a ast::StmtTry) {
        let span = at(s);
        if s.finalbody.is_empty() {
            self.try_except(s, span);
            return;
        }
        let finally = self.begin_finally(span);
        self.try_except(s, span);
        self.end_finally(finally, span, |this| this.statements(&s.finalbody));
    }

    fn try_except(&mut self, s: &'a ast::StmtTry, span: Span) {
        if s.handlers.is_empty() {
            self.statements(&s.body);
            self.statements(&s.orelse);
            return;
        }
        let outer = self.f.handler;
        let caught = self.block();
        self.f.handler = Some(caught);
        let entry = self.block();
        self.goto(span, entry);
        self.start(entry);
        self.statements(&s.body);
        self.f.handler = outer;
        let mut ends: Vec<BlockId> = Vec::new();
        if self.reachable() {
            // What stands in `else` is not protected.
            if !s.orelse.is_empty() {
                let next = self.block();
                self.goto(span, next);
                self.start(next);
                self.statements(&s.orelse);
            }
            ends.extend(self.f.current.take());
        }

        self.start(caught);
        let exception = self.temp();
        let first = s.handlers.first().map_or(span, at);
        self.emit(
            Span::new(first.start, first.start),
            Op::Catch { dst: exception },
        );
        for handler in &s.handlers {
            let ExceptHandler::ExceptHandler(handler) = handler;
            self.is_caught(exception, handler.type_.as_deref());
        }
        let bodies: Vec<BlockId> = s.handlers.iter().map(|_| self.block()).collect();
        let all = s.handlers.iter().any(|h| {
            let ExceptHandler::ExceptHandler(h) = h;
            catches_all(h.type_.as_deref())
        });
        let mut next = bodies.clone();
        let rethrow = (!all).then(|| self.block());
        next.extend(rethrow);
        match next.as_slice() {
            [one] => self.goto(span, *one),
            _ => self.end(span, Term::Multi(next)),
        }
        if let Some(rethrow) = rethrow {
            self.start(rethrow);
            self.end(span, Term::Throw(exception));
        }
        self.f.caught.push(exception);
        for (handler, block) in s.handlers.iter().zip(bodies) {
            let ExceptHandler::ExceptHandler(handler) = handler;
            self.start(block);
            if let Some(name) = &handler.name {
                self.write(name.as_str(), exception, at(name));
            }
            self.statements(&handler.body);
            ends.extend(self.f.current.take());
        }
        self.f.caught.pop();
        if ends.is_empty() {
            return;
        }
        let after = self.block();
        for end in ends {
            self.start(end);
            self.goto(span, after);
        }
        self.start(after);
    }

    /// `except T:` asks what the exception is. Which way that goes nobody knows.
    fn is_caught(&mut self, exception: Var, of: Option<&'a Expr>) {
        let Some(of) = of else { return };
        let right = self.expr(of);
        let dst = self.temp();
        self.emit(
            at(of),
            Op::Binary {
                dst,
                op: BinOp::Test,
                left: exception,
                right,
            },
        );
    }

    /// `with a as x, b as y:`
    pub(super) fn with(&mut self, s: &'a ast::StmtWith) {
        self.with_items(&s.items, s.is_async, &s.body);
    }

    fn with_items(&mut self, items: &'a [ast::WithItem], is_async: bool, body: &'a [Stmt]) {
        let Some((item, rest)) = items.split_first() else {
            self.statements(body);
            return;
        };
        let span = at(&item.context_expr);
        // Each resource nests a scope: count it like any other nesting.
        if self.depth >= MAX_DEPTH {
            self.too_deep(span);
            return;
        }
        self.depth += 1;
        let value = self.expr(&item.context_expr);
        let resource = self.temp();
        self.emit(
            span,
            Op::Enter {
                dst: resource,
                resource: value,
            },
        );
        let (enter, exit) = if is_async {
            ("__aenter__", "__aexit__")
        } else {
            ("__enter__", "__exit__")
        };
        // A generator holds what it holds from the first: entering it can fail, too.
        let finally = self.begin_finally(span);
        let mut entered = self.method_call(span, resource, enter, &[]);
        if is_async {
            entered = self.awaited(span, entered);
        }
        if let Some(target) = &item.optional_vars {
            self.assign(target, entered);
        }
        self.with_items(rest, is_async, body);
        let end = body.last().map_or(span, at);
        let end = Span::new(end.end.saturating_sub(1), end.end);
        self.end_finally(finally, end, |this| {
            let done = this.method_call(end, resource, exit, &[]);
            this.emit(end, Op::Exit { resource });
            if is_async {
                this.awaited(end, done);
            }
        });
        self.depth -= 1;
    }
}

fn catches_all(ty: Option<&Expr>) -> bool {
    match ty {
        None => true,
        Some(Expr::Name(name)) => {
            matches!(name.id.as_str(), "Exception" | "BaseException")
        }
        Some(_) => false,
    }
}
