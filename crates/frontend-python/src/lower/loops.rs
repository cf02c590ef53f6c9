//! Loops.

use ruff_python_ast::{self as ast, Expr, Stmt};
use toctou_core::Span;
use toctou_core::ir::{Op, Term, Var};

use super::finally::Frame;
use super::logic::always_true;
use super::{Lower, at};

impl<'a> Lower<'a> {
    pub(super) fn while_statement(&mut self, s: &'a ast::StmtWhile) {
        let span = at(s);
        let head = self.block();
        self.goto(span, head);
        let exit = self.exit();
        let frame = self.f.frames.len();
        self.f.frames.push(Frame::Loop { exit, again: head });
        self.start(head);
        let body = self.block();
        if always_true(&s.test) {
            self.goto(span, body);
        } else {
            let done = self.block();
            self.condition(&s.test, body, done);
            self.otherwise(&s.orelse, done, frame, span);
        }
        self.start(body);
        self.statements(&s.body);
        self.goto(span, head);
        self.leave(span);
    }

    /// The loop has come to its end: `else` runs, then what is behind it.
    fn otherwise(
        &mut self,
        orelse: &'a [Stmt],
        done: toctou_core::ir::BlockId,
        frame: usize,
        span: Span,
    ) {
        self.start(done);
        self.statements(orelse);
        if self.reachable()
            && let Some(exit) = self.exit_of(frame)
        {
            self.goto(span, exit);
        }
    }

    pub(super) fn for_statement(&mut self, s: &'a ast::StmtFor) {
        let span = at(s);
        let of = self.iterated(&s.iter, s.is_async);
        let head = self.block();
        self.goto(span, head);
        let exit = self.exit();
        let frame = self.f.frames.len();
        self.f.frames.push(Frame::Loop { exit, again: head });
        self.start(head);
        let body = self.block();
        let done = self.block();
        self.end(span, Term::Multi(vec![body, done]));
        self.otherwise(&s.orelse, done, frame, span);
        self.start(body);
        let value = self.element(at(s.iter.as_ref()), of, s.is_async);
        self.assign(&s.target, value);
        self.statements(&s.body);
        self.goto(span, head);
        self.leave(span);
    }

    /// What is gone through. An open file is read by that.
    pub(super) fn iterated(&mut self, iter: &'a Expr, is_async: bool) -> Var {
        let of = self.expr(iter);
        if !matches!(iter, Expr::Name(_) | Expr::Attribute(_)) {
            return of;
        }
        let name = if is_async { "__aiter__" } else { "__iter__" };
        self.method_call(at(iter), of, name, &[])
    }

    /// One element of what is gone through.
    pub(super) fn element(&mut self, span: Span, of: Var, is_async: bool) -> Var {
        let dst = self.temp();
        self.emit(
            span,
            Op::Element {
                dst,
                of,
                keys: false,
            },
        );
        if is_async {
            self.awaited(span, dst)
        } else {
            dst
        }
    }
}
