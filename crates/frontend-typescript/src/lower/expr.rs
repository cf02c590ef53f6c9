//! Expressions: every one ends in a register that holds its value.

use oxc_ast::ast::{
    ArrayExpression, ArrayExpressionElement, BinaryExpression, Expression, ObjectExpression,
    ObjectPropertyKind, PropertyKey, PropertyKind, TemplateLiteral, UnaryExpression,
};
use oxc_span::GetSpan;
use oxc_syntax::operator::{BinaryOperator, UnaryOperator};
use toctou_core::Span;
use toctou_core::ir::{Arg, BinOp, FuncKind, Key, Literal, Op, Var};

use super::{Hint, Lower, MAX_DEPTH, peel, span};

/// What is being built along a chain of binary operators.
enum Fold {
    Value(Var),
    /// Parts of a string, joined when the chain of `+` ends.
    Parts(Vec<Var>),
}

/// Is the value a string by its mere shape?
pub(super) fn is_string(expression: &Expression<'_>) -> bool {
    let mut expression = peel(expression);
    // Parenthesised sums nest to the left; a few levels are plenty.
    for _ in 0..8 {
        match expression {
            Expression::StringLiteral(_) | Expression::TemplateLiteral(_) => return true,
            Expression::BinaryExpression(e) if e.operator == BinaryOperator::Addition => {
                if matches!(
                    peel(&e.right),
                    Expression::StringLiteral(_) | Expression::TemplateLiteral(_)
                ) {
                    return true;
                }
                expression = peel(&e.left);
            }
            _ => return false,
        }
    }
    false
}

fn binary_op(operator: BinaryOperator) -> BinOp {
    match operator {
        BinaryOperator::Equality | BinaryOperator::StrictEquality => BinOp::Eq,
        BinaryOperator::Inequality | BinaryOperator::StrictInequality => BinOp::Ne,
        BinaryOperator::LessThan
        | BinaryOperator::LessEqualThan
        | BinaryOperator::GreaterThan
        | BinaryOperator::GreaterEqualThan => BinOp::Compare,
        BinaryOperator::Addition => BinOp::Add,
        BinaryOperator::In | BinaryOperator::Instanceof => BinOp::Test,
        _ => BinOp::Arith,
    }
}

impl<'a> Lower<'a, '_> {
    pub(super) fn expr(&mut self, expression: &'a Expression<'a>) -> Var {
        self.expr_named(expression, None)
    }

    /// `hint` names the expression if it turns out to be a function or class.
    pub(super) fn expr_named(&mut self, expression: &'a Expression<'a>, hint: Option<Hint>) -> Var {
        if self.depth >= MAX_DEPTH {
            return self.too_deep(Self::span_of(expression));
        }
        self.depth += 1;
        let value = self.expr_inner(peel(expression), hint);
        self.depth -= 1;
        value
    }

    fn expr_inner(&mut self, expression: &'a Expression<'a>, hint: Option<Hint>) -> Var {
        let at = Self::span_of(expression);
        match expression {
            Expression::Identifier(id) => self.read(id),
            Expression::StringLiteral(lit) => self.string(at, lit.value.as_str()),
            Expression::NumericLiteral(lit) => {
                let text = lit.raw.map_or("", |raw| raw.as_str());
                let name = self.names.intern(text);
                self.constant(at, Literal::Num(name))
            }
            Expression::BigIntLiteral(lit) => {
                let name = self.names.intern(lit.value.as_str());
                self.constant(at, Literal::Num(name))
            }
            Expression::BooleanLiteral(lit) => self.constant(at, Literal::Bool(lit.value)),
            Expression::NullLiteral(_) => self.null(at),
            // Where it stands twice, it is the same twice.
            Expression::RegExpLiteral(lit) => match lit.raw {
                Some(raw) => self.string(at, raw.as_str()),
                None => self.constant(at, Literal::Other),
            },
            Expression::TemplateLiteral(template) => self.template(template),
            Expression::ThisExpression(_) | Expression::Super(_) => self.this(at),
            Expression::StaticMemberExpression(_)
            | Expression::ComputedMemberExpression(_)
            | Expression::PrivateFieldExpression(_)
            | Expression::CallExpression(_)
            | Expression::ChainExpression(_)
            | Expression::TaggedTemplateExpression(_) => self.chain_value(expression),
            Expression::NewExpression(new) => self.new_expression(new),
            Expression::AwaitExpression(e) => {
                let src = self.expr(&e.argument);
                let dst = self.temp();
                self.emit(at, Op::Await { dst, src });
                dst
            }
            Expression::ArrowFunctionExpression(arrow) => self.arrow_value(arrow, hint),
            Expression::FunctionExpression(function) => {
                self.function_value(function, FuncKind::Function, hint)
            }
            Expression::ClassExpression(class) => self.class_value(class, hint),
            Expression::AssignmentExpression(e) => self.assignment(e),
            Expression::UpdateExpression(e) => self.update(e),
            Expression::BinaryExpression(e) => self.binary(e),
            Expression::LogicalExpression(e) => self.logical(e),
            Expression::ConditionalExpression(e) => self.conditional(e, hint),
            Expression::UnaryExpression(e) => self.unary(e),
            Expression::ObjectExpression(e) => self.object(e),
            Expression::ArrayExpression(e) => self.array(e),
            Expression::SequenceExpression(e) => {
                let mut last = None;
                for e in &e.expressions {
                    last = Some(self.expr(e));
                }
                last.unwrap_or_else(|| self.null(at))
            }
            Expression::YieldExpression(e) => {
                let value = match &e.argument {
                    Some(argument) => self.expr(argument),
                    None => self.null(at),
                };
                let dst = self.temp();
                self.emit(at, Op::YieldValue { dst, value });
                dst
            }
            Expression::ImportExpression(e) => self.import_expression(e),
            Expression::PrivateInExpression(e) => {
                let left = self.string(span(e.left.span), &format!("#{}", e.left.name));
                let right = self.expr(&e.right);
                self.emit_binary(at, BinOp::Test, left, right)
            }
            Expression::ImportMeta(_) => self.global(at, "import.meta"),
            Expression::JSXElement(e) => self.jsx_element(e),
            Expression::JSXFragment(e) => self.jsx_fragment(e),
            Expression::V8IntrinsicExpression(e) => {
                let args = self.args(&e.arguments);
                let from = args.iter().map(|a| a.value).collect();
                self.opaque(at, from)
            }
            Expression::NewTarget(_) => self.opaque(at, Vec::new()),
            // Peeled off before.
            Expression::ParenthesizedExpression(_)
            | Expression::TSAsExpression(_)
            | Expression::TSSatisfiesExpression(_)
            | Expression::TSTypeAssertion(_)
            | Expression::TSNonNullExpression(_)
            | Expression::TSInstantiationExpression(_) => self.opaque(at, Vec::new()),
        }
    }

    fn template(&mut self, template: &'a TemplateLiteral<'a>) -> Var {
        let at = span(template.span);
        let text = |quasi: &oxc_ast::ast::TemplateElement<'a>| {
            quasi.value.cooked.unwrap_or(quasi.value.raw).as_str()
        };
        if template.expressions.is_empty() {
            let whole = template.quasis.first().map_or("", text);
            return self.string(at, whole);
        }
        let mut parts = Vec::with_capacity(template.expressions.len() * 2 + 1);
        for (index, quasi) in template.quasis.iter().enumerate() {
            let part = text(quasi);
            if !part.is_empty() {
                parts.push(self.string(span(quasi.span), part));
            }
            if let Some(e) = template.expressions.get(index) {
                parts.push(self.expr(e));
            }
        }
        self.concat(at, parts)
    }

    pub(super) fn concat(&mut self, at: Span, parts: Vec<Var>) -> Var {
        let dst = self.temp();
        self.emit(at, Op::Concat { dst, parts });
        dst
    }

    pub(super) fn emit_binary(&mut self, at: Span, op: BinOp, left: Var, right: Var) -> Var {
        let dst = self.temp();
        self.emit(
            at,
            Op::Binary {
                dst,
                op,
                left,
                right,
            },
        );
        dst
    }

    /// Left-deep: `a + b + c + …` is a loop, whatever its length.
    fn binary(&mut self, node: &'a BinaryExpression<'a>) -> Var {
        let mut spine = vec![node];
        let mut leftmost = &node.left;
        while let Expression::BinaryExpression(inner) = peel(leftmost) {
            spine.push(inner);
            leftmost = &inner.left;
        }
        let mut string = is_string(leftmost);
        let mut fold = Fold::Value(self.expr(leftmost));
        while let Some(node) = spine.pop() {
            let at = span(node.span);
            let plus = node.operator == BinaryOperator::Addition;
            let right = self.expr(&node.right);
            fold = if plus && (string || is_string(&node.right)) {
                string = true;
                let mut parts = match fold {
                    Fold::Value(var) => vec![var],
                    Fold::Parts(parts) => parts,
                };
                parts.push(right);
                // The next operator decides whether the string goes on growing.
                match spine.last() {
                    Some(next) if next.operator == BinaryOperator::Addition => Fold::Parts(parts),
                    _ => Fold::Value(self.concat(at, parts)),
                }
            } else {
                string = false;
                let left = match fold {
                    Fold::Value(var) => var,
                    Fold::Parts(parts) => self.concat(at, parts),
                };
                Fold::Value(self.emit_binary(at, binary_op(node.operator), left, right))
            };
        }
        match fold {
            Fold::Value(var) => var,
            Fold::Parts(parts) => self.concat(span(node.span), parts),
        }
    }

    fn unary(&mut self, node: &'a UnaryExpression<'a>) -> Var {
        let at = span(node.span);
        match (node.operator, peel(&node.argument)) {
            (UnaryOperator::UnaryNegation, Expression::NumericLiteral(lit)) => {
                let text = format!("-{}", lit.raw.map_or("", |raw| raw.as_str()));
                let name = self.names.intern(&text);
                self.constant(at, Literal::Num(name))
            }
            (UnaryOperator::Void, argument) => {
                self.expr(argument);
                self.null(at)
            }
            (UnaryOperator::Delete, argument) => self.delete(at, argument),
            (UnaryOperator::LogicalNot, argument) => {
                let src = self.expr(argument);
                let dst = self.temp();
                self.emit(at, Op::Not { dst, src });
                dst
            }
            (_, argument) => {
                let src = self.expr(argument);
                let dst = self.temp();
                self.emit(at, Op::Copy { dst, src });
                dst
            }
        }
    }

    fn array(&mut self, node: &'a ArrayExpression<'a>) -> Var {
        let mut items = Vec::with_capacity(node.elements.len());
        for element in &node.elements {
            let (value, spread) = match element {
                ArrayExpressionElement::SpreadElement(e) => (self.expr(&e.argument), true),
                ArrayExpressionElement::Elision(e) => (self.null(span(e.span)), false),
                other => match other.as_expression() {
                    Some(e) => (self.expr(e), false),
                    None => continue,
                },
            };
            items.push(Arg {
                value,
                spread,
                name: None,
            });
        }
        let dst = self.temp();
        self.emit(span(node.span), Op::Array { dst, items });
        dst
    }

    fn object(&mut self, node: &'a ObjectExpression<'a>) -> Var {
        let mut fields = Vec::with_capacity(node.properties.len());
        for property in &node.properties {
            match property {
                ObjectPropertyKind::SpreadProperty(e) => {
                    let value = self.expr(&e.argument);
                    fields.push((Key::Spread, value));
                }
                ObjectPropertyKind::ObjectProperty(p) => {
                    let key = self.key(&p.key);
                    let hint = match key {
                        Key::Name(name) => Some(Hint {
                            name,
                            span: span(p.key.span()),
                            exported: false,
                        }),
                        Key::Computed(_) | Key::Spread => None,
                    };
                    let value = match (&p.value, p.kind) {
                        (Expression::FunctionExpression(f), PropertyKind::Get) => {
                            self.function_value(f, FuncKind::Getter, hint)
                        }
                        (Expression::FunctionExpression(f), PropertyKind::Set) => {
                            self.function_value(f, FuncKind::Setter, hint)
                        }
                        (Expression::FunctionExpression(f), PropertyKind::Init) if p.method => {
                            self.function_value(f, FuncKind::Method, hint)
                        }
                        (value, _) => self.expr_named(value, hint),
                    };
                    fields.push((key, value));
                }
            }
        }
        let dst = self.temp();
        self.emit(span(node.span), Op::Object { dst, fields });
        dst
    }

    /// A property key: a name where it is one, else its value.
    pub(super) fn key(&mut self, key: &'a PropertyKey<'a>) -> Key {
        match self.static_key(key) {
            Some(name) => Key::Name(name),
            None => match key.as_expression() {
                Some(e) => Key::Computed(self.expr(e)),
                None => Key::Spread,
            },
        }
    }

    pub(super) fn static_key(&mut self, key: &PropertyKey<'a>) -> Option<toctou_core::Name> {
        match key {
            PropertyKey::StaticIdentifier(id) => Some(self.names.intern(id.name.as_str())),
            PropertyKey::PrivateIdentifier(id) => {
                let text = format!("#{}", id.name);
                Some(self.names.intern(&text))
            }
            PropertyKey::StringLiteral(lit) => Some(self.names.intern(lit.value.as_str())),
            PropertyKey::NumericLiteral(lit) => {
                Some(self.names.intern(lit.raw.map_or("", |raw| raw.as_str())))
            }
            PropertyKey::TemplateLiteral(lit) if lit.expressions.is_empty() => {
                let text = lit.single_quasi()?;
                Some(self.names.intern(text.as_str()))
            }
            // `[Symbol.asyncIterator]`
            PropertyKey::StaticMemberExpression(e) if matches!(&e.object, Expression::Identifier(id) if id.name == "Symbol") =>
            {
                let text = format!("Symbol.{}", e.property.name);
                Some(self.names.intern(&text))
            }
            _ => None,
        }
    }
}
