//! `match`: one test after the other.

use ruff_python_ast::{self as ast, Pattern, Singleton};
use toctou_core::Span;
use toctou_core::ir::{BinOp, BlockId, Literal, Var};

use super::{Lower, MAX_DEPTH, at};

impl<'a> Lower<'a> {
    pub(super) fn match_statement(&mut self, s: &'a ast::StmtMatch) {
        let span = at(s);
        let subject = self.expr(&s.subject);
        let join = self.block();
        for case in &s.cases {
            let (body, next) = (self.block(), self.block());
            self.pattern(&case.pattern, subject, body, next);
            self.start(body);
            if let Some(guard) = &case.guard {
                let kept = self.block();
                self.condition(guard, kept, next);
                self.start(kept);
            }
            self.statements(&case.body);
            self.goto(span, join);
            self.start(next);
        }
        self.goto(span, join);
        self.start(join);
    }

    /// Goes to `then` if the value fits, with the names of the pattern bound.
    fn pattern(&mut self, pattern: &'a Pattern, value: Var, then: BlockId, otherwise: BlockId) {
        let span = at(pattern);
        if self.depth >= MAX_DEPTH {
            let cond = self.too_deep(span);
            self.branch(span, cond, then, otherwise);
            return;
        }
        self.depth += 1;
        match pattern {
            Pattern::MatchValue(p) => {
                let wanted = self.expr(&p.value);
                let cond = self.binary(span, BinOp::Eq, value, wanted);
                self.branch(span, cond, then, otherwise);
            }
            Pattern::MatchSingleton(p) => {
                let literal = match p.value {
                    Singleton::None => Literal::Null,
                    Singleton::True => Literal::Bool(true),
                    Singleton::False => Literal::Bool(false),
                };
                let wanted = self.constant(span, literal);
                let cond = self.binary(span, BinOp::Eq, value, wanted);
                self.branch(span, cond, then, otherwise);
            }
            Pattern::MatchOr(p) => {
                let last = p.patterns.len().saturating_sub(1);
                for (index, inner) in p.patterns.iter().enumerate() {
                    if index == last {
                        self.pattern(inner, value, then, otherwise);
                        break;
                    }
                    let next = self.block();
                    self.pattern(inner, value, then, next);
                    self.start(next);
                }
            }
            Pattern::MatchAs(p) => {
                if let Some(name) = &p.name {
                    self.write(name.as_str(), value, at(name));
                }
                match &p.pattern {
                    Some(inner) => self.pattern(inner, value, then, otherwise),
                    None => self.goto(span, then),
                }
            }
            Pattern::MatchStar(p) => {
                if let Some(name) = &p.name {
                    self.write(name.as_str(), value, at(name));
                }
                self.goto(span, then);
            }
            Pattern::MatchSequence(p) => {
                let parts: Vec<(Option<&'a str>, &'a Pattern)> =
                    p.patterns.iter().map(|inner| (None, inner)).collect();
                self.parts(span, value, &parts, then, otherwise);
            }
            Pattern::MatchMapping(p) => {
                if let Some(name) = &p.rest {
                    self.write(name.as_str(), value, at(name));
                }
                let parts: Vec<(Option<&'a str>, &'a Pattern)> = p
                    .keys
                    .iter()
                    .zip(&p.patterns)
                    .map(|(key, inner)| {
                        let name = match key {
                            ast::Expr::StringLiteral(text) => Some(text.value.to_str()),
                            _ => None,
                        };
                        (name, inner)
                    })
                    .collect();
                self.parts(span, value, &parts, then, otherwise);
            }
            Pattern::MatchClass(p) => {
                let class = self.expr(&p.cls);
                let cond = self.binary(span, BinOp::Test, value, class);
                let fits = self.block();
                self.branch(span, cond, fits, otherwise);
                self.start(fits);
                let mut parts: Vec<(Option<&'a str>, &'a Pattern)> = Vec::new();
                parts.extend(p.arguments.patterns.iter().map(|inner| (None, inner)));
                parts.extend(
                    p.arguments
                        .keywords
                        .iter()
                        .map(|k| (Some(k.attr.as_str()), &k.pattern)),
                );
                self.parts(span, value, &parts, then, otherwise);
            }
        }
        self.depth -= 1;
    }

    /// All parts of the value must fit.
    fn parts(
        &mut self,
        span: Span,
        value: Var,
        parts: &[(Option<&'a str>, &'a Pattern)],
        then: BlockId,
        otherwise: BlockId,
    ) {
        for (name, inner) in parts {
            let part = match name {
                Some(name) => self.get_field(span, value, name),
                None => {
                    let dst = self.temp();
                    self.emit(
                        span,
                        toctou_core::ir::Op::Element {
                            dst,
                            of: value,
                            keys: false,
                        },
                    );
                    dst
                }
            };
            let next = self.block();
            self.pattern(inner, part, next, otherwise);
            self.start(next);
        }
        if parts.is_empty() {
            let cond = self.opaque(span, vec![value]);
            self.branch(span, cond, then, otherwise);
        } else {
            self.goto(span, then);
        }
    }
}
