//! Expressions.

use ruff_python_ast::{
    self as ast, Expr, FStringPart, InterpolatedStringElement, Operator, UnaryOp,
};
use toctou_core::Span;
use toctou_core::ir::{Arg, BinOp, Key, Literal, Op, Var};

use super::assign::is_text;
use super::comprehension::Made;
use super::{Lower, MAX_DEPTH, at};

impl<'a> Lower<'a> {
    pub(super) fn expr(&mut self, expression: &'a Expr) -> Var {
        if self.depth >= MAX_DEPTH {
            return self.too_deep(at(expression));
        }
        self.depth += 1;
        let value = self.expr_inner(expression);
        self.depth -= 1;
        value
    }

    fn expr_inner(&mut self, expression: &'a Expr) -> Var {
        let span = at(expression);
        match expression {
            Expr::Name(e) => self.read(e.id.as_str(), span),
            Expr::StringLiteral(e) => {
                let name = self.names.intern(e.value.to_str());
                self.constant(span, Literal::Str(name))
            }
            Expr::NumberLiteral(_) => {
                let text = self.text.get(span.start as usize..span.end as usize);
                let name = self.names.intern(text.unwrap_or("0"));
                self.constant(span, Literal::Num(name))
            }
            Expr::BooleanLiteral(e) => self.constant(span, Literal::Bool(e.value)),
            Expr::NoneLiteral(_) => self.null(span),
            Expr::BytesLiteral(_) | Expr::EllipsisLiteral(_) => self.constant(span, Literal::Other),
            Expr::FString(e) => self.fstring(e),
            Expr::Attribute(e) => self.attribute(e),
            Expr::Subscript(e) => self.subscript(e),
            Expr::Call(e) => self.call(e),
            Expr::Await(e) => {
                let src = self.expr(&e.value);
                self.awaited(span, src)
            }
            Expr::BoolOp(e) => self.bool_op(e),
            Expr::If(e) => self.conditional(e),
            Expr::Compare(e) => self.compare(e),
            Expr::BinOp(e) => self.bin_op(e),
            Expr::UnaryOp(e) => self.unary(e),
            Expr::Named(e) => {
                let value = self.expr(&e.value);
                self.assign(&e.target, value);
                value
            }
            Expr::Lambda(e) => self.lambda(e),
            Expr::Dict(e) => self.dict(e),
            Expr::List(e) => self.array(span, &e.elts),
            Expr::Tuple(e) => self.array(span, &e.elts),
            Expr::Set(e) => self.array(span, &e.elts),
            Expr::ListComp(e) => self.comprehension(span, &e.generators, Made::List(&e.elt)),
            Expr::SetComp(e) => self.comprehension(span, &e.generators, Made::List(&e.elt)),
            Expr::Generator(e) => self.comprehension(span, &e.generators, Made::List(&e.elt)),
            Expr::DictComp(e) => {
                let made = Made::Dict(e.key.as_deref(), &e.value);
                self.comprehension(span, &e.generators, made)
            }
            Expr::Yield(e) => {
                let value = match &e.value {
                    Some(value) => self.expr(value),
                    None => self.null(span),
                };
                self.yielded(span, value)
            }
            Expr::YieldFrom(e) => {
                let value = self.expr(&e.value);
                self.yielded(span, value)
            }
            Expr::Starred(e) => self.expr(&e.value),
            Expr::Slice(e) => {
                let mut from = Vec::new();
                for part in [&e.lower, &e.upper, &e.step].into_iter().flatten() {
                    from.push(self.expr(part));
                }
                self.opaque(span, from)
            }
            Expr::TString(_) | Expr::IpyEscapeCommand(_) => self.opaque(span, Vec::new()),
        }
    }

    fn yielded(&mut self, span: Span, value: Var) -> Var {
        let dst = self.temp();
        self.emit(span, Op::YieldValue { dst, value });
        dst
    }

    fn fstring(&mut self, e: &'a ast::ExprFString) -> Var {
        let mut parts = Vec::new();
        for part in &e.value {
            match part {
                FStringPart::Literal(text) => {
                    let var = self.string(at(text), &text.value);
                    parts.push(var);
                }
                FStringPart::FString(string) => {
                    for element in &string.elements {
                        match element {
                            InterpolatedStringElement::Literal(text) => {
                                let var = self.string(at(text), &text.value);
                                parts.push(var);
                            }
                            InterpolatedStringElement::Interpolation(hole) => {
                                let var = self.expr(&hole.expression);
                                parts.push(var);
                            }
                        }
                    }
                }
            }
        }
        self.concat(at(e), parts)
    }

    fn attribute(&mut self, e: &'a ast::ExprAttribute) -> Var {
        let span = at(e);
        if e.attr.as_str() == "__class__"
            && self.is_self(&e.value)
            && let Some(class) = self.method_class()
        {
            let dst = self.temp();
            self.emit(span, Op::Class { dst, class });
            return dst;
        }
        let obj = self.expr(&e.value);
        let dst = self.get_field(span, obj, e.attr.as_str());
        self.carried(e, dst)
    }

    fn subscript(&mut self, e: &'a ast::ExprSubscript) -> Var {
        let obj = self.expr(&e.value);
        // A part of a list or text is still that list or text.
        if let Expr::Slice(_) = e.slice.as_ref() {
            self.expr(&e.slice);
            return obj;
        }
        let index = self.expr(&e.slice);
        let dst = self.temp();
        self.emit(at(e), Op::GetIndex { dst, obj, index });
        dst
    }

    /// `a + b + c + …` nests to the left, as deep as it is long: a loop.
    fn bin_op(&mut self, e: &'a ast::ExprBinOp) -> Var {
        let mut rest: Vec<&'a ast::ExprBinOp> = vec![e];
        let mut first = e.left.as_ref();
        while let Expr::BinOp(inner) = first {
            rest.push(inner);
            first = &inner.left;
        }
        let mut text = is_text(first);
        let mut value = self.expr(first);
        while let Some(node) = rest.pop() {
            let right = self.expr(&node.right);
            let span = at(node);
            text = match node.op {
                Operator::Add => text || is_text(&node.right),
                Operator::Mod => text,
                _ => false,
            };
            value = if text {
                self.concat(span, vec![value, right])
            } else if node.op == Operator::BitOr && is_flag(&node.right) {
                self.binary(span, BinOp::Arith, value, right)
            } else {
                self.operator(span, node.op, value, right)
            };
        }
        value
    }

    fn unary(&mut self, e: &'a ast::ExprUnaryOp) -> Var {
        let span = at(e);
        if let (UnaryOp::USub, Expr::NumberLiteral(_)) = (e.op, e.operand.as_ref()) {
            let text = self.text.get(span.start as usize..span.end as usize);
            let name = self.names.intern(text.unwrap_or("-1"));
            return self.constant(span, Literal::Num(name));
        }
        let src = self.expr(&e.operand);
        if e.op != UnaryOp::Not {
            return src;
        }
        let dst = self.temp();
        self.emit(span, Op::Not { dst, src });
        dst
    }

    fn dict(&mut self, e: &'a ast::ExprDict) -> Var {
        let mut fields = Vec::with_capacity(e.items.len());
        for item in &e.items {
            let key = match &item.key {
                None => Key::Spread,
                Some(Expr::StringLiteral(text)) => {
                    Key::Name(self.names.intern(text.value.to_str()))
                }
                Some(key) => Key::Computed(self.expr(key)),
            };
            let value = self.expr(&item.value);
            fields.push((key, value));
        }
        let dst = self.temp();
        self.emit(at(e), Op::Object { dst, fields });
        dst
    }

    fn array(&mut self, span: Span, elements: &'a [Expr]) -> Var {
        let items = elements
            .iter()
            .map(|e| Arg {
                value: self.expr(e),
                spread: matches!(e, Expr::Starred(_)),
                name: None,
            })
            .collect();
        let dst = self.temp();
        self.emit(span, Op::Array { dst, items });
        dst
    }
}

/// `LOCK_NB`, `os.O_EXCL`: `|` puts such names together, and both are meant.
fn is_flag(e: &Expr) -> bool {
    let name = match e {
        Expr::Name(name) => name.id.as_str(),
        Expr::Attribute(attribute) => attribute.attr.as_str(),
        _ => return false,
    };
    name.len() > 1 && !name.chars().any(char::is_lowercase)
}
