//! Taking values apart: destructuring in declarations and parameters.

use oxc_ast::ast::{BindingPattern, Expression};
use oxc_span::GetSpan;
use toctou_core::ir::Var;

use super::{Hint, Lower, MAX_DEPTH, peel, span};
use crate::scope::EXPORTED;

/// Evaluating it does nothing else, so a default needs no branch of its own.
pub(super) fn is_simple(expression: &Expression<'_>) -> bool {
    match peel(expression) {
        Expression::ObjectExpression(e) => e.properties.is_empty(),
        Expression::ArrayExpression(e) => e.elements.is_empty(),
        Expression::TemplateLiteral(e) => e.expressions.is_empty(),
        Expression::ArrowFunctionExpression(_) | Expression::FunctionExpression(_) => true,
        Expression::Identifier(_) => true,
        other => other.is_literal(),
    }
}

impl<'a> Lower<'a, '_> {
    /// Declares the names of a pattern with the parts of `value`.
    pub(super) fn bind(&mut self, pattern: &'a BindingPattern<'a>, value: Var) {
        let at = span(pattern.span());
        if self.depth >= MAX_DEPTH {
            self.too_deep(at);
            return;
        }
        self.depth += 1;
        match pattern {
            BindingPattern::BindingIdentifier(id) => {
                if let Some(symbol) = id.symbol_id.get() {
                    self.declare_symbol(symbol, value, at);
                }
            }
            BindingPattern::ObjectPattern(pattern) => {
                for property in &pattern.properties {
                    let at = span(property.span);
                    let key = self.key(&property.key);
                    let item = self.property_of(at, value, &key);
                    self.bind(&property.value, item);
                }
                if let Some(rest) = &pattern.rest {
                    let item = self.rest_object(span(rest.span), value);
                    self.bind(&rest.argument, item);
                }
            }
            BindingPattern::ArrayPattern(pattern) => {
                for (index, element) in pattern.elements.iter().enumerate() {
                    if let Some(element) = element {
                        let item = self.element_at(span(element.span()), value, index);
                        self.bind(element, item);
                    }
                }
                if let Some(rest) = &pattern.rest {
                    let item = self.rest_array(span(rest.span), value);
                    self.bind(&rest.argument, item);
                }
            }
            BindingPattern::AssignmentPattern(pattern) => {
                let hint = self.binding_hint(&pattern.left);
                let item = self.or_default(value, &pattern.right, hint);
                self.bind(&pattern.left, item);
            }
        }
        self.depth -= 1;
    }

    pub(super) fn binding_hint(&mut self, pattern: &BindingPattern<'a>) -> Option<Hint> {
        match pattern {
            BindingPattern::BindingIdentifier(id) => {
                let mut hint = self.hint(id.name.as_str(), id.span);
                hint.exported = id
                    .symbol_id
                    .get()
                    .is_some_and(|symbol| self.symbols.has(symbol, EXPORTED));
                Some(hint)
            }
            _ => None,
        }
    }

    /// `value`, or `default` where it is missing.
    pub(super) fn or_default(
        &mut self,
        value: Var,
        default: &'a Expression<'a>,
        hint: Option<Hint>,
    ) -> Var {
        let at = Self::span_of(default);
        if is_simple(default) {
            let other = self.expr_named(default, hint);
            return self.phi(at, vec![value, other]);
        }
        let operator = oxc_syntax::operator::LogicalOperator::Coalesce;
        self.either(at, operator, value, |this| this.expr_named(default, hint))
    }
}
