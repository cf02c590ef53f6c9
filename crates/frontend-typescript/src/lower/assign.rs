//! Assignments. `x += 1`, `x++` and `x ??= v` are a read and then a write,
//! and are lowered as such: that is what others can come between.

use oxc_ast::ast::{
    ArrayAssignmentTarget, AssignmentExpression, AssignmentTarget, AssignmentTargetMaybeDefault,
    AssignmentTargetProperty, Expression, IdentifierReference, ObjectAssignmentTarget,
    SimpleAssignmentTarget, UpdateExpression,
};
use oxc_span::GetSpan;
use oxc_syntax::operator::{AssignmentOperator, LogicalOperator, UpdateOperator};
use toctou_core::ir::{Arg, BinOp, Key, Literal, Op, Var};
use toctou_core::{Name, Span};

use super::expr::is_string;
use super::{Hint, Lower, MAX_DEPTH, peel, span};

/// Something that can be assigned to, with its object and key evaluated.
#[derive(Clone, Copy)]
enum Reference<'a> {
    Variable(&'a IdentifierReference<'a>),
    Field(Var, Name),
    Index(Var, Var),
    /// Not assignable: a syntax error that the parser let pass.
    Nothing,
}

impl<'a> Lower<'a, '_> {
    pub(super) fn assignment(&mut self, node: &'a AssignmentExpression<'a>) -> Var {
        let at = span(node.span);
        let Some(target) = node.left.as_simple_assignment_target() else {
            let value = self.expr(&node.right);
            self.assign_target(&node.left, value);
            return value;
        };
        if node.operator == AssignmentOperator::Assign
            && let Some(value) = self.commonjs_export(target, &node.right, at)
        {
            return value;
        }
        let hint = self.target_hint(target);
        let reference = self.reference(target);
        let logical = match node.operator {
            AssignmentOperator::Assign => {
                let value = self.expr_named(&node.right, hint);
                self.store(reference, value, at);
                return value;
            }
            AssignmentOperator::LogicalOr => LogicalOperator::Or,
            AssignmentOperator::LogicalAnd => LogicalOperator::And,
            AssignmentOperator::LogicalNullish => LogicalOperator::Coalesce,
            operator => {
                let old = self.load(reference, at);
                let right = self.expr(&node.right);
                let value = if operator != AssignmentOperator::Addition {
                    self.emit_binary(at, BinOp::Arith, old, right)
                } else if is_string(&node.right) {
                    self.concat(at, vec![old, right])
                } else {
                    self.emit_binary(at, BinOp::Add, old, right)
                };
                self.store(reference, value, at);
                return value;
            }
        };
        let old = self.load(reference, at);
        self.either(at, logical, old, |this| {
            let value = this.expr_named(&node.right, hint);
            this.store(reference, value, at);
            value
        })
    }

    pub(super) fn update(&mut self, node: &'a UpdateExpression<'a>) -> Var {
        let at = span(node.span);
        let reference = self.reference(&node.argument);
        let old = self.load(reference, at);
        let one = self.names.intern("1");
        let one = self.constant(at, Literal::Num(one));
        let op = match node.operator {
            UpdateOperator::Increment => BinOp::Add,
            UpdateOperator::Decrement => BinOp::Arith,
        };
        let new = self.emit_binary(at, op, old, one);
        self.store(reference, new, at);
        if node.prefix { new } else { old }
    }

    /// `x.handler = () => …`: the function is called `handler`.
    fn target_hint(&mut self, target: &SimpleAssignmentTarget<'a>) -> Option<Hint> {
        match target {
            SimpleAssignmentTarget::AssignmentTargetIdentifier(id) => {
                Some(self.hint(id.name.as_str(), id.span))
            }
            SimpleAssignmentTarget::StaticMemberExpression(e) => {
                Some(self.hint(e.property.name.as_str(), e.property.span))
            }
            SimpleAssignmentTarget::PrivateFieldExpression(e) => {
                Some(self.hint(e.field.name.as_str(), e.field.span))
            }
            _ => None,
        }
    }

    fn reference(&mut self, target: &'a SimpleAssignmentTarget<'a>) -> Reference<'a> {
        match target {
            SimpleAssignmentTarget::AssignmentTargetIdentifier(id) => Reference::Variable(id),
            SimpleAssignmentTarget::StaticMemberExpression(e) => {
                let obj = self.expr(&e.object);
                Reference::Field(obj, self.names.intern(e.property.name.as_str()))
            }
            SimpleAssignmentTarget::PrivateFieldExpression(e) => {
                let obj = self.expr(&e.object);
                let text = format!("#{}", e.field.name);
                Reference::Field(obj, self.names.intern(&text))
            }
            SimpleAssignmentTarget::ComputedMemberExpression(e) => {
                let obj = self.expr(&e.object);
                match self.string_index(&e.expression) {
                    Some(name) => Reference::Field(obj, name),
                    None => Reference::Index(obj, self.expr(&e.expression)),
                }
            }
            SimpleAssignmentTarget::TSAsExpression(e) => self.expr_reference(&e.expression),
            SimpleAssignmentTarget::TSSatisfiesExpression(e) => self.expr_reference(&e.expression),
            SimpleAssignmentTarget::TSNonNullExpression(e) => self.expr_reference(&e.expression),
            SimpleAssignmentTarget::TSTypeAssertion(e) => self.expr_reference(&e.expression),
        }
    }

    fn expr_reference(&mut self, expression: &'a Expression<'a>) -> Reference<'a> {
        match peel(expression) {
            Expression::Identifier(id) => Reference::Variable(id),
            Expression::StaticMemberExpression(e) => {
                let obj = self.expr(&e.object);
                Reference::Field(obj, self.names.intern(e.property.name.as_str()))
            }
            Expression::ComputedMemberExpression(e) => {
                let obj = self.expr(&e.object);
                Reference::Index(obj, self.expr(&e.expression))
            }
            other => {
                self.expr(other);
                Reference::Nothing
            }
        }
    }

    fn load(&mut self, reference: Reference<'a>, at: Span) -> Var {
        match reference {
            Reference::Variable(id) => self.read(id),
            Reference::Field(obj, field) => self.get_field(at, obj, field),
            Reference::Index(obj, index) => {
                let dst = self.temp();
                self.emit(at, Op::GetIndex { dst, obj, index });
                dst
            }
            Reference::Nothing => self.opaque(at, Vec::new()),
        }
    }

    fn store(&mut self, reference: Reference<'a>, value: Var, at: Span) {
        match reference {
            Reference::Variable(id) => self.write(id, value),
            Reference::Field(obj, field) => self.emit(at, Op::SetField { obj, field, value }),
            Reference::Index(obj, index) => self.emit(at, Op::SetIndex { obj, index, value }),
            Reference::Nothing => {}
        }
    }

    /// Assigns to a variable, a member or a pattern of them.
    pub(super) fn assign_target(&mut self, target: &'a AssignmentTarget<'a>, value: Var) {
        let at = span(target.span());
        if self.depth >= MAX_DEPTH {
            self.too_deep(at);
            return;
        }
        self.depth += 1;
        match target {
            AssignmentTarget::ArrayAssignmentTarget(pattern) => {
                self.assign_array(pattern, value);
            }
            AssignmentTarget::ObjectAssignmentTarget(pattern) => {
                self.assign_object(pattern, value);
            }
            other => {
                if let Some(simple) = other.as_simple_assignment_target() {
                    let reference = self.reference(simple);
                    self.store(reference, value, at);
                }
            }
        }
        self.depth -= 1;
    }

    fn assign_array(&mut self, pattern: &'a ArrayAssignmentTarget<'a>, value: Var) {
        for (index, element) in pattern.elements.iter().enumerate() {
            if let Some(element) = element {
                let item = self.element_at(span(element.span()), value, index);
                self.assign_maybe_default(element, item);
            }
        }
        if let Some(rest) = &pattern.rest {
            let at = span(rest.span);
            let item = self.rest_array(at, value);
            self.assign_target(&rest.target, item);
        }
    }

    fn assign_object(&mut self, pattern: &'a ObjectAssignmentTarget<'a>, value: Var) {
        for property in &pattern.properties {
            match property {
                AssignmentTargetProperty::AssignmentTargetPropertyIdentifier(p) => {
                    let at = span(p.span);
                    let field = self.names.intern(p.binding.name.as_str());
                    let mut item = self.get_field(at, value, field);
                    if let Some(init) = &p.init {
                        item = self.or_default(item, init, None);
                    }
                    self.write(&p.binding, item);
                }
                AssignmentTargetProperty::AssignmentTargetPropertyProperty(p) => {
                    let at = span(p.span);
                    let key = self.key(&p.name);
                    let item = self.property_of(at, value, &key);
                    self.assign_maybe_default(&p.binding, item);
                }
            }
        }
        if let Some(rest) = &pattern.rest {
            let item = self.rest_object(span(rest.span), value);
            self.assign_target(&rest.target, item);
        }
    }

    fn assign_maybe_default(&mut self, target: &'a AssignmentTargetMaybeDefault<'a>, item: Var) {
        match target {
            AssignmentTargetMaybeDefault::AssignmentTargetWithDefault(d) => {
                let item = self.or_default(item, &d.init, None);
                self.assign_target(&d.binding, item);
            }
            other => {
                if let Some(target) = other.as_assignment_target() {
                    self.assign_target(target, item);
                }
            }
        }
    }

    /// `value[index]`, for taking an array apart.
    pub(super) fn element_at(&mut self, at: Span, obj: Var, index: usize) -> Var {
        let text = index.to_string();
        let name = self.names.intern(&text);
        let index = self.constant(at, Literal::Num(name));
        let dst = self.temp();
        self.emit(at, Op::GetIndex { dst, obj, index });
        dst
    }

    pub(super) fn property_of(&mut self, at: Span, obj: Var, key: &Key) -> Var {
        match *key {
            Key::Name(field) => self.get_field(at, obj, field),
            Key::Computed(index) => {
                let dst = self.temp();
                self.emit(at, Op::GetIndex { dst, obj, index });
                dst
            }
            Key::Spread => obj,
        }
    }

    /// `...rest` of an object: a fresh object with the same fields.
    pub(super) fn rest_object(&mut self, at: Span, value: Var) -> Var {
        let dst = self.temp();
        self.emit(
            at,
            Op::Object {
                dst,
                fields: vec![(Key::Spread, value)],
            },
        );
        dst
    }

    pub(super) fn rest_array(&mut self, at: Span, value: Var) -> Var {
        let dst = self.temp();
        let items = vec![Arg {
            value,
            spread: true,
            name: None,
        }];
        self.emit(at, Op::Array { dst, items });
        dst
    }
}
