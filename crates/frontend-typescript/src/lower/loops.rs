//! Loops and `switch`.

use oxc_ast::ast::{
    DoWhileStatement, Expression, ForInStatement, ForOfStatement, ForStatement, ForStatementInit,
    ForStatementLeft, Statement, SwitchStatement, VariableDeclarationKind, WhileStatement,
};
use toctou_core::Span;
use toctou_core::ir::{BinOp, Op, Term, Var};

use super::finally::Frame;
use super::logic::always_true;
use super::{Lower, span};

impl<'a> Lower<'a, '_> {
    pub(super) fn while_statement(&mut self, s: &'a WhileStatement<'a>) {
        let at = span(s.span);
        let head = self.block();
        self.goto(at, head);
        let exit = self.exit();
        let frame = self.f.frames.len();
        self.f.frames.push(Frame::Loop { exit, again: head });
        self.start(head);
        let body = self.block();
        self.loop_test(Some(&s.test), body, frame, at);
        self.start(body);
        self.statement(&s.body);
        self.goto(at, head);
        self.leave(at);
    }

    pub(super) fn do_statement(&mut self, s: &'a DoWhileStatement<'a>) {
        let at = span(s.span);
        let body = self.block();
        let test = self.block();
        self.goto(at, body);
        let exit = self.exit();
        let frame = self.f.frames.len();
        self.f.frames.push(Frame::Loop { exit, again: test });
        self.start(body);
        self.statement(&s.body);
        self.goto(at, test);
        self.start(test);
        self.loop_test(Some(&s.test), body, frame, at);
        self.leave(at);
    }

    pub(super) fn for_statement(&mut self, s: &'a ForStatement<'a>) {
        let at = span(s.span);
        match &s.init {
            Some(ForStatementInit::VariableDeclaration(declaration)) => {
                self.variables(declaration);
            }
            Some(init) => {
                if let Some(e) = init.as_expression() {
                    self.expr(e);
                }
            }
            None => {}
        }
        let head = self.block();
        self.goto(at, head);
        let again = if s.update.is_some() {
            self.block()
        } else {
            head
        };
        let exit = self.exit();
        let frame = self.f.frames.len();
        self.f.frames.push(Frame::Loop { exit, again });
        self.start(head);
        let body = self.block();
        self.loop_test(s.test.as_ref(), body, frame, at);
        self.start(body);
        self.statement(&s.body);
        self.goto(at, again);
        if let Some(update) = &s.update {
            self.start(again);
            self.expr(update);
            self.goto(at, head);
        }
        self.leave(at);
    }

    /// Into the body while the test holds, else out. An endless loop has no way out.
    fn loop_test(
        &mut self,
        test: Option<&'a Expression<'a>>,
        body: toctou_core::ir::BlockId,
        frame: usize,
        at: Span,
    ) {
        match test {
            Some(test) if !always_true(test) => {
                if let Some(out) = self.exit_of(frame) {
                    self.condition(test, body, out);
                }
            }
            _ => self.goto(at, body),
        }
    }

    pub(super) fn for_of(&mut self, s: &'a ForOfStatement<'a>) {
        self.each(span(s.span), &s.left, &s.right, &s.body, false, s.r#await);
    }

    pub(super) fn for_in(&mut self, s: &'a ForInStatement<'a>) {
        self.each(span(s.span), &s.left, &s.right, &s.body, true, false);
    }

    fn each(
        &mut self,
        at: Span,
        left: &'a ForStatementLeft<'a>,
        right: &'a Expression<'a>,
        body: &'a Statement<'a>,
        keys: bool,
        awaited: bool,
    ) {
        let of = self.expr(right);
        let of_at = Self::span_of(right);
        let head = self.block();
        self.goto(at, head);
        let exit = self.exit();
        let frame = self.f.frames.len();
        self.f.frames.push(Frame::Loop { exit, again: head });
        self.start(head);
        let inside = self.block();
        if let Some(out) = self.exit_of(frame) {
            self.end(of_at, Term::Multi(vec![inside, out]));
        }
        self.start(inside);
        let dst = self.temp();
        self.emit(of_at, Op::Element { dst, of, keys });
        let element = if awaited {
            let value = self.temp();
            self.emit(
                of_at,
                Op::Await {
                    dst: value,
                    src: dst,
                },
            );
            value
        } else {
            dst
        };
        self.each_body(left, element, body);
        self.goto(at, head);
        self.leave(at);
    }

    fn each_body(&mut self, left: &'a ForStatementLeft<'a>, element: Var, body: &'a Statement<'a>) {
        match left {
            ForStatementLeft::VariableDeclaration(declaration) => {
                let Some(declarator) = declaration.declarations.first() else {
                    self.statement(body);
                    return;
                };
                match declaration.kind {
                    VariableDeclarationKind::Using | VariableDeclarationKind::AwaitUsing => {
                        let awaited = declaration.kind == VariableDeclarationKind::AwaitUsing;
                        self.using(&declarator.id, element, awaited, |this| {
                            this.statement(body);
                        });
                    }
                    _ => {
                        self.bind(&declarator.id, element);
                        self.statement(body);
                    }
                }
            }
            other => {
                if let Some(target) = other.as_assignment_target() {
                    self.assign_target(target, element);
                }
                self.statement(body);
            }
        }
    }

    pub(super) fn switch(&mut self, s: &'a SwitchStatement<'a>) {
        let at = span(s.span);
        let value = self.expr(&s.discriminant);
        let exit = self.exit();
        let frame = self.f.frames.len();
        self.f.frames.push(Frame::Switch { exit });
        for case in &s.cases {
            self.hoist(&case.consequent);
        }
        let bodies: Vec<_> = s.cases.iter().map(|_| self.block()).collect();
        let mut default = None;
        for (case, &body) in s.cases.iter().zip(&bodies) {
            let Some(test) = &case.test else {
                default = Some(body);
                continue;
            };
            let test_at = Self::span_of(test);
            let right = self.expr(test);
            let cond = self.temp();
            self.emit(
                test_at,
                Op::Binary {
                    dst: cond,
                    op: BinOp::Eq,
                    left: value,
                    right,
                },
            );
            let next = self.block();
            self.branch(test_at, cond, body, next);
            self.start(next);
        }
        match default {
            Some(body) => self.goto(at, body),
            None => {
                if let Some(out) = self.exit_of(frame) {
                    self.goto(at, out);
                }
            }
        }
        for (index, (case, &body)) in s.cases.iter().zip(&bodies).enumerate() {
            self.start(body);
            self.statement_list(&case.consequent);
            if !self.reachable() {
                continue;
            }
            match bodies.get(index + 1) {
                Some(&next) => self.goto(span(case.span), next),
                None => {
                    if let Some(out) = self.exit_of(frame) {
                        self.goto(span(case.span), out);
                    }
                }
            }
        }
        self.leave(at);
    }
}
