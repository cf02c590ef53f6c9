//! Comprehensions: loops whose results are put together.

use ruff_python_ast::{self as ast, Expr};
use toctou_core::Span;
use toctou_core::ir::{Arg, Key, Op, Term, Var, VarInfo, VarKind};

use super::Lower;
use super::finally::Frame;

/// What is put together.
pub(super) enum Made<'a> {
    List(&'a Expr),
    Dict(Option<&'a Expr>, &'a Expr),
}

impl<'a> Lower<'a> {
    /// `next(x for x in xs if …)`, `any(f(x) for x in xs)`: one of what is put together.
    pub(super) fn one_of(&mut self, e: &'a ast::ExprGenerator) -> Var {
        let made = Made::List(&e.elt);
        self.gone_through(super::span(e.range), &e.generators, made)
            .0
    }

    pub(super) fn comprehension(
        &mut self,
        span: Span,
        generators: &'a [ast::Comprehension],
        made: Made<'a>,
    ) -> Var {
        let (item, key) = self.gone_through(span, generators, made);
        let dst = self.temp();
        match key {
            Some(key) => self.emit(
                span,
                Op::Object {
                    dst,
                    fields: vec![(Key::Computed(key), item)],
                },
            ),
            None => self.emit(
                span,
                Op::Array {
                    dst,
                    items: vec![Arg {
                        value: item,
                        spread: false,
                        name: None,
                    }],
                },
            ),
        }
        dst
    }

    /// The loops: what they make last, and under which key.
    fn gone_through(
        &mut self,
        span: Span,
        generators: &'a [ast::Comprehension],
        made: Made<'a>,
    ) -> (Var, Option<Var>) {
        let item = self.f.var(VarInfo {
            name: None,
            kind: VarKind::Let,
            captured: false,
            lent: false,
            word: false,
            ty: None,
        });
        let exits = self.f.frames.len();
        for generator in generators {
            let of = self.iterated(&generator.iter, generator.is_async);
            let head = self.block();
            self.goto(span, head);
            let exit = self.exit();
            let frame = self.f.frames.len();
            self.f.frames.push(Frame::Loop { exit, again: head });
            self.start(head);
            let body = self.block();
            let done = self.exit_of(frame).unwrap_or(head);
            self.end(span, Term::Multi(vec![body, done]));
            self.start(body);
            let value = self.element(super::at(&generator.iter), of, generator.is_async);
            self.assign(&generator.target, value);
            for test in &generator.ifs {
                let kept = self.block();
                self.condition(test, kept, head);
                self.start(kept);
            }
        }
        let mut key = None;
        let value = match made {
            Made::List(e) => self.expr(e),
            Made::Dict(k, v) => {
                key = k.map(|k| self.expr(k));
                self.expr(v)
            }
        };
        self.emit(
            span,
            Op::Copy {
                dst: item,
                src: value,
            },
        );
        while self.f.frames.len() > exits {
            if let Some(Frame::Loop { again, .. }) = self.f.frames.last() {
                let again = *again;
                self.goto(span, again);
            }
            self.leave(span);
        }
        (item, key)
    }
}
