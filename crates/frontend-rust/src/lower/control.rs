//! Conditions, `if`, `match` and loops.

use syn::{BinOp as Operator, Expr, UnOp};
use toctou_core::Span;
use toctou_core::ir::{BlockId, Op, Term, Var};

use super::guards::last_of;
use super::{Frame, Lower, MAX_DEPTH};

impl Lower<'_> {
    /// Goes to one block or the other. `let` in the condition binds in the
    /// innermost scope.
    pub(super) fn condition(&mut self, e: &Expr, then: BlockId, otherwise: BlockId) {
        let at = self.places.expr(e);
        if self.depth >= MAX_DEPTH {
            let cond = self.too_deep(at);
            self.branch(at, cond, then, otherwise);
            return;
        }
        self.depth += 1;
        match e {
            Expr::Paren(x) => self.condition(&x.expr, then, otherwise),
            Expr::Unary(x) if matches!(x.op, UnOp::Not(_)) => {
                self.condition(&x.expr, otherwise, then);
            }
            Expr::Binary(x) if matches!(x.op, Operator::And(_)) => {
                let second = self.block();
                self.condition(&x.left, second, otherwise);
                self.start(second);
                self.condition(&x.right, then, otherwise);
            }
            Expr::Binary(x) if matches!(x.op, Operator::Or(_)) => {
                let second = self.block();
                self.condition(&x.left, then, second);
                self.start(second);
                self.condition(&x.right, then, otherwise);
            }
            Expr::Let(x) => {
                let value = self.expr(&x.expr);
                let before = self.f.scopes.last().map_or(0, |s| s.locals.len());
                self.matches(&x.pat, value, at, Some(otherwise));
                self.note_taken(&x.expr, before);
                self.note_held(&x.expr, before);
                self.goto(at, then);
            }
            _ => {
                let cond = self.expr(e);
                self.branch(at, cond, then, otherwise);
            }
        }
        self.depth -= 1;
    }

    /// Variables of the innermost scope that a pattern bound to parts of `e`.
    fn note_taken(&mut self, e: &Expr, from: usize) {
        if self.comes_from_guard(e)
            && let Some(scope) = self.f.scopes.last_mut()
        {
            for local in scope.locals.iter_mut().skip(from) {
                local.taken = true;
            }
        }
    }

    /// Sets the result of a branch, or gives it back, and goes on at `join`.
    fn branch_end(
        &mut self,
        at: Span,
        value: Option<Var>,
        result: Option<Var>,
        join: &mut Option<BlockId>,
    ) {
        if !self.reachable() {
            return;
        }
        if let Some(dst) = result {
            let src = match value {
                Some(src) => src,
                None => self.null(at),
            };
            self.emit(at, Op::Copy { dst, src });
        }
        let block = match *join {
            Some(block) => block,
            None => *join.insert(self.block()),
        };
        self.goto(at, block);
    }

    /// A chain of `else if` is a loop here.
    pub(super) fn if_expr(&mut self, e: &syn::ExprIf, tail: bool, result: Option<Var>) {
        let at = self.places.token(e.if_token.span);
        let mut join = None;
        let mut opened = 0;
        let mut node = e;
        let mut given = Vec::new();
        loop {
            let holds = has_let(&node.cond);
            self.push_scope();
            opened += 1;
            let then = self.block();
            let otherwise = self.block();
            self.condition(&node.cond, then, otherwise);
            // Without `let`, what the condition made is dropped before the branches.
            let guards = match self.f.scopes.last_mut() {
                Some(scope) if !holds => std::mem::take(&mut scope.guards),
                _ => Vec::new(),
            };
            let held = self
                .f
                .scopes
                .last()
                .map(|s| s.guards.clone())
                .unwrap_or_default();
            self.start(then);
            self.drop_all(&guards, at, &[]);
            if tail {
                self.block_tail(&node.then_branch);
            } else {
                let value = self.block_value(&node.then_branch);
                let along = self.taken_along(last_of(&node.then_branch), &held);
                self.drop_all(&held, at, &along);
                given.extend(self.come_with(held.len()));
                given.extend(along);
                self.branch_end(at, Some(value), result, &mut join);
            }
            self.start(otherwise);
            self.drop_all(&guards, at, &[]);
            match &node.else_branch {
                None => {
                    self.drop_all(&held, at, &[]);
                    self.branch_end(at, None, result, &mut join);
                    break;
                }
                Some((_, other)) => match &**other {
                    // The names of the first condition end, what it holds does not.
                    Expr::If(next) => node = next,
                    other => {
                        if tail {
                            self.tail(other);
                        } else {
                            let value = self.expr(other);
                            self.drop_all(&held, at, &[]);
                            given.extend(self.come_with(held.len()));
                            self.branch_end(at, Some(value), result, &mut join);
                        }
                        break;
                    }
                },
            }
        }
        for _ in 0..opened {
            self.f.scopes.pop();
        }
        self.drop_all_later(&given);
        self.f.current = join;
    }

    pub(super) fn match_expr(&mut self, e: &syn::ExprMatch, tail: bool, result: Option<Var>) {
        let at = self.places.token(e.match_token.span);
        self.push_scope();
        let value = self.expr(&e.expr);
        let held = self
            .f
            .scopes
            .last()
            .map(|s| s.guards.clone())
            .unwrap_or_default();
        let mut join = None;
        let mut given = Vec::new();
        let count = e.arms.len();
        for (index, arm) in e.arms.iter().enumerate() {
            if !self.reachable() {
                break;
            }
            // All cases are covered: the last one fits where no other did.
            let last = index + 1 == count && !matches!(arm.pat, syn::Pat::Guard(_));
            let next = self.block();
            self.push_scope();
            let arm_at = self.places.pat(&arm.pat);
            let arm_at = if arm_at.start == arm_at.end {
                at
            } else {
                arm_at
            };
            self.matches(&arm.pat, value, arm_at, (!last).then_some(next));
            self.note_taken(&e.expr, 0);
            self.note_held(&e.expr, 0);
            let body_at = self.places.expr(&arm.body);
            if tail {
                self.tail(&arm.body);
            } else {
                self.push_scope();
                let value = self.expr(&arm.body);
                let along = self.taken_along(Some(&arm.body), &held);
                given.extend(self.go_with(&arm.body, value));
                self.pop_scope(body_at, &[value]);
                self.drop_all(&held, body_at, &along);
                given.extend(along);
                self.branch_end(body_at, Some(value), result, &mut join);
            }
            self.f.scopes.pop();
            self.f.current = (!last).then_some(next);
        }
        if self.reachable() {
            let nothing = self.null(at);
            self.end(at, Term::Throw(nothing));
        }
        self.f.scopes.pop();
        self.drop_all_later(&given);
        self.f.current = join;
    }

    pub(super) fn push_frame(
        &mut self,
        label: Option<&syn::Label>,
        again: Option<BlockId>,
        value: Option<Var>,
    ) {
        let label = label.map(|l| self.names.intern(&l.name.ident.to_string()));
        let scopes = self.f.scopes.len();
        self.f.frames.push(Frame {
            label,
            again,
            exit: None,
            value,
            scopes,
        });
    }

    /// Ends a loop: goes on behind it, if anybody does.
    pub(super) fn pop_frame(&mut self) {
        if let Some(frame) = self.f.frames.pop() {
            self.f.current = frame.exit;
        }
    }

    pub(super) fn exit_of(&mut self, index: usize) -> Option<BlockId> {
        if let Some(block) = self.f.frames.get(index)?.exit {
            return Some(block);
        }
        let block = self.block();
        if let Some(frame) = self.f.frames.get_mut(index) {
            frame.exit = Some(block);
        }
        Some(block)
    }

    fn frame(&mut self, label: Option<&syn::Lifetime>, needs_loop: bool) -> Option<usize> {
        let label = label.map(|l| self.names.intern(&l.ident.to_string()));
        self.f.frames.iter().rposition(|f| match label {
            Some(_) => f.label == label && (!needs_loop || f.again.is_some()),
            None => f.again.is_some(),
        })
    }

    pub(super) fn break_expr(&mut self, e: &syn::ExprBreak) {
        let at = self.places.token(e.break_token.span);
        let value = e.expr.as_ref().map(|e| self.expr(e));
        let Some(index) = self.frame(e.label.as_ref(), false) else {
            let nothing = self.null(at);
            self.end(at, Term::Throw(nothing));
            return;
        };
        let (scopes, result) = match self.f.frames.get(index) {
            Some(frame) => (frame.scopes, frame.value),
            None => return,
        };
        if let (Some(dst), Some(src)) = (result, value) {
            self.emit(at, Op::Copy { dst, src });
        }
        self.drop_to(scopes, at, &[]);
        if self.reachable()
            && let Some(exit) = self.exit_of(index)
        {
            self.goto(at, exit);
        }
    }

    pub(super) fn continue_expr(&mut self, e: &syn::ExprContinue) {
        let at = self.places.token(e.continue_token.span);
        let target = self
            .frame(e.label.as_ref(), true)
            .and_then(|index| self.f.frames.get(index))
            .and_then(|f| Some((f.scopes, f.again?)));
        match target {
            Some((scopes, again)) => {
                self.drop_to(scopes, at, &[]);
                self.goto(at, again);
            }
            None => {
                let nothing = self.null(at);
                self.end(at, Term::Throw(nothing));
            }
        }
    }

    pub(super) fn loop_expr(&mut self, e: &syn::ExprLoop) -> Var {
        let at = self.places.token(e.loop_token.span);
        let result = self.result();
        let head = self.block();
        self.goto(at, head);
        self.push_frame(e.label.as_ref(), Some(head), Some(result));
        self.start(head);
        self.block_value(&e.body);
        self.goto(at, head);
        self.pop_frame();
        result
    }

    pub(super) fn while_expr(&mut self, e: &syn::ExprWhile) {
        let at = self.places.token(e.while_token.span);
        let head = self.block();
        self.goto(at, head);
        self.push_frame(e.label.as_ref(), Some(head), None);
        let frame = self.f.frames.len() - 1;
        self.start(head);
        self.push_scope();
        let body = self.block();
        let done = self.block();
        self.condition(&e.cond, body, done);
        let holds = has_let(&e.cond);
        let guards = match self.f.scopes.last_mut() {
            Some(scope) if !holds => std::mem::take(&mut scope.guards),
            _ => Vec::new(),
        };
        let held = self
            .f
            .scopes
            .last()
            .map(|s| s.guards.clone())
            .unwrap_or_default();
        self.start(body);
        self.drop_all(&guards, at, &[]);
        self.block_value(&e.body);
        self.drop_all(&held, at, &[]);
        self.goto(at, head);
        self.f.scopes.pop();
        self.start(done);
        self.drop_all(&guards, at, &[]);
        self.drop_all(&held, at, &[]);
        if let Some(exit) = self.exit_of(frame) {
            self.goto(at, exit);
        }
        self.pop_frame();
    }

    pub(super) fn for_expr(&mut self, e: &syn::ExprForLoop) {
        let at = self.places.token(e.for_token.span);
        // What is gone through lives as long as the loop does.
        self.push_scope();
        let of = self.expr(&e.expr);
        let head = self.block();
        self.goto(at, head);
        self.push_frame(e.label.as_ref(), Some(head), None);
        let frame = self.f.frames.len() - 1;
        self.start(head);
        let body = self.block();
        if let Some(exit) = self.exit_of(frame) {
            self.end(at, Term::Multi(vec![body, exit]));
        }
        self.start(body);
        self.push_scope();
        let item = self.op(at, |dst| Op::Element {
            dst,
            of,
            keys: false,
        });
        self.bind(&e.pat, item, at);
        self.block_value(&e.body);
        self.f.scopes.pop();
        self.goto(at, head);
        self.pop_frame();
        self.pop_scope(at, &[]);
    }
}

/// Does a condition bind something?
fn has_let(e: &Expr) -> bool {
    let mut e = e;
    for _ in 0..MAX_DEPTH {
        e = match e {
            Expr::Let(_) => return true,
            Expr::Paren(x) => &x.expr,
            Expr::Binary(x) if matches!(x.op, Operator::And(_)) => {
                if matches!(*x.right, Expr::Let(_)) {
                    return true;
                }
                &x.left
            }
            _ => return false,
        };
    }
    false
}
