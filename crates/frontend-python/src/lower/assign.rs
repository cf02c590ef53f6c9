//! Assignments, and taking values apart.

use ruff_python_ast::{self as ast, Expr, Operator};
use toctou_core::ir::{BinOp, Literal, Op, Var};

use super::{Lower, MAX_DEPTH, at};
use crate::types;

impl<'a> Lower<'a> {
    pub(super) fn assignment(&mut self, s: &'a ast::StmtAssign) {
        // `a, b = x, y`: each for itself.
        if let ([Expr::Tuple(targets)], Expr::Tuple(values)) =
            (s.targets.as_slice(), s.value.as_ref())
            && targets.elts.len() == values.elts.len()
            && !(targets.elts.iter().chain(&values.elts)).any(|e| matches!(e, Expr::Starred(_)))
        {
            let values: Vec<Var> = values
                .elts
                .iter()
                .map(|e| {
                    let src = self.expr(e);
                    let dst = self.temp();
                    self.emit(at(e), Op::Copy { dst, src });
                    dst
                })
                .collect();
            for (target, value) in targets.elts.iter().zip(values) {
                self.assign(target, value);
            }
            return;
        }
        if let [Expr::Name(name)] = s.targets.as_slice() {
            self.alias(name.id.as_str(), &s.value);
        }
        let value = self.expr(&s.value);
        for target in &s.targets {
            self.assign(target, value);
        }
    }

    pub(super) fn annotated(&mut self, s: &'a ast::StmtAnnAssign) {
        let ty = types::annotation(&mut self.names, Some(&s.annotation));
        match s.target.as_ref() {
            Expr::Name(name) if self.f.class_names.is_empty() => {
                self.set_type(name.id.as_str(), ty);
            }
            // `self.store: Store = …` declares a field.
            Expr::Attribute(attribute) if self.is_self(&attribute.value) => {
                if let Some(class) = self.method_class() {
                    let name = self.names.intern(attribute.attr.as_str());
                    self.add_field(class, name, ty, false, at(attribute));
                }
            }
            _ => {}
        }
        if let Some(value) = &s.value {
            if let Expr::Name(name) = s.target.as_ref() {
                self.alias(name.id.as_str(), value);
            }
            let value = self.expr(value);
            self.assign(&s.target, value);
        }
    }

    pub(super) fn augmented(&mut self, s: &'a ast::StmtAugAssign) {
        let span = at(s);
        match s.target.as_ref() {
            Expr::Attribute(target) => {
                let obj = self.expr(&target.value);
                let field = self.names.intern(target.attr.as_str());
                let old = self.temp();
                self.emit(
                    at(target),
                    Op::GetField {
                        dst: old,
                        obj,
                        field,
                    },
                );
                let in_place = self.scopes.collected.in_place(target.attr.as_str(), s.op);
                if let Some(method) = in_place {
                    let value = self.expr(&s.value);
                    let name = self.names.intern(method);
                    let callee = toctou_core::ir::Callee::Method { obj: old, name };
                    self.call_op(span, callee, &[value], toctou_core::ir::CallKind::Plain);
                    return;
                }
                let value = self.combined(s, old);
                self.emit(span, Op::SetField { obj, field, value });
            }
            Expr::Subscript(target) => {
                let obj = self.expr(&target.value);
                let index = self.expr(&target.slice);
                let old = self.temp();
                self.emit(
                    at(target),
                    Op::GetIndex {
                        dst: old,
                        obj,
                        index,
                    },
                );
                let value = self.combined(s, old);
                self.emit(span, Op::SetIndex { obj, index, value });
            }
            Expr::Name(name) => {
                let old = self.read(name.id.as_str(), at(name));
                let value = self.combined(s, old);
                self.write(name.id.as_str(), value, span);
            }
            other => {
                let old = self.expr(other);
                self.combined(s, old);
            }
        }
    }

    fn combined(&mut self, s: &'a ast::StmtAugAssign, old: Var) -> Var {
        let value = self.expr(&s.value);
        let span = at(s);
        if s.op == Operator::Add && is_text(&s.value) {
            return self.concat(span, vec![old, value]);
        }
        self.operator(span, s.op, old, value)
    }

    pub(super) fn operator(
        &mut self,
        span: toctou_core::Span,
        op: Operator,
        left: Var,
        right: Var,
    ) -> Var {
        match op {
            Operator::Add => self.binary(span, BinOp::Add, left, right),
            // Paths are joined by it; numbers are not looked at.
            Operator::Div => {
                let join = self.global(span, "__truediv__");
                self.call_op(
                    span,
                    toctou_core::ir::Callee::Value(join),
                    &[left, right],
                    toctou_core::ir::CallKind::Plain,
                )
            }
            Operator::BitOr | Operator::BitAnd | Operator::BitXor => {
                self.opaque(span, vec![left, right])
            }
            _ => self.binary(span, BinOp::Arith, left, right),
        }
    }

    pub(super) fn concat(&mut self, span: toctou_core::Span, parts: Vec<Var>) -> Var {
        let dst = self.temp();
        self.emit(span, Op::Concat { dst, parts });
        dst
    }

    /// Puts a value where the target says.
    pub(super) fn assign(&mut self, target: &'a Expr, value: Var) {
        let span = at(target);
        if self.depth >= MAX_DEPTH {
            self.too_deep(span);
            return;
        }
        self.depth += 1;
        match target {
            Expr::Name(name) => self.write(name.id.as_str(), value, span),
            Expr::Attribute(attribute) => {
                let obj = self.expr(&attribute.value);
                let field = self.names.intern(attribute.attr.as_str());
                self.emit(span, Op::SetField { obj, field, value });
            }
            Expr::Subscript(subscript) => {
                let obj = self.expr(&subscript.value);
                let index = self.expr(&subscript.slice);
                self.emit(span, Op::SetIndex { obj, index, value });
            }
            Expr::Starred(starred) => self.assign(&starred.value, value),
            Expr::Tuple(ast::ExprTuple { elts, .. }) | Expr::List(ast::ExprList { elts, .. }) => {
                for (i, element) in elts.iter().enumerate() {
                    let part = if matches!(element, Expr::Starred(_)) {
                        self.opaque(span, vec![value])
                    } else {
                        let text = self.names.intern(&i.to_string());
                        let index = self.constant(span, Literal::Num(text));
                        let dst = self.temp();
                        self.emit(
                            at(element),
                            Op::GetIndex {
                                dst,
                                obj: value,
                                index,
                            },
                        );
                        dst
                    };
                    self.assign(element, part);
                }
            }
            _ => {}
        }
        self.depth -= 1;
    }
}

/// An expression that is text beyond doubt.
pub(super) fn is_text(expression: &Expr) -> bool {
    matches!(expression, Expr::StringLiteral(_) | Expr::FString(_))
}
