//! Conditions: short circuits are real branches, so that what stands on the
//! right of `&&` is control dependent on what stands on the left.

use oxc_ast::ast::{ConditionalExpression, Expression, LogicalExpression};
use oxc_syntax::operator::{LogicalOperator, UnaryOperator};
use toctou_core::Span;
use toctou_core::ir::{BlockId, Term, Var};

use super::{Hint, Lower, MAX_DEPTH, peel, span};

/// The condition of a loop or `if` that is always true.
pub(super) fn always_true(test: &Expression<'_>) -> bool {
    match peel(test) {
        Expression::BooleanLiteral(lit) => lit.value,
        Expression::NumericLiteral(lit) => lit.value != 0.0,
        _ => false,
    }
}

/// `a && b && c` as `[a, b, c]`: the operands of a chain of one operator.
fn operands<'a>(
    node: &'a LogicalExpression<'a>,
    operator: LogicalOperator,
) -> Vec<&'a Expression<'a>> {
    let mut out = vec![&node.right];
    let mut left = &node.left;
    loop {
        match peel(left) {
            Expression::LogicalExpression(inner) if inner.operator == operator => {
                out.push(&inner.right);
                left = &inner.left;
            }
            _ => {
                out.push(left);
                break;
            }
        }
    }
    out.reverse();
    out
}

impl<'a> Lower<'a, '_> {
    /// Ends the current block with a branch on `test`.
    pub(super) fn condition(
        &mut self,
        test: &'a Expression<'a>,
        then: BlockId,
        otherwise: BlockId,
    ) {
        let at = Self::span_of(test);
        if self.depth >= MAX_DEPTH {
            let cond = self.too_deep(at);
            self.branch(at, cond, then, otherwise);
            return;
        }
        self.depth += 1;
        match peel(test) {
            Expression::LogicalExpression(node) if node.operator != LogicalOperator::Coalesce => {
                let is_and = node.operator == LogicalOperator::And;
                let operands = operands(node, node.operator);
                let last = operands.len() - 1;
                for (index, operand) in operands.into_iter().enumerate() {
                    if index == last {
                        self.condition(operand, then, otherwise);
                    } else {
                        let next = self.block();
                        if is_and {
                            self.condition(operand, next, otherwise);
                        } else {
                            self.condition(operand, then, next);
                        }
                        self.start(next);
                    }
                }
            }
            Expression::UnaryExpression(node) if node.operator == UnaryOperator::LogicalNot => {
                self.condition(&node.argument, otherwise, then);
            }
            _ if always_true(test) => self.goto(at, then),
            _ => {
                let cond = self.expr(test);
                self.branch(at, cond, then, otherwise);
            }
        }
        self.depth -= 1;
    }

    pub(super) fn branch(&mut self, at: Span, cond: Var, then: BlockId, otherwise: BlockId) {
        self.end(
            at,
            Term::Branch {
                cond,
                then,
                otherwise,
            },
        );
    }

    /// `a && b`, `a || b`, `a ?? b` for their value.
    pub(super) fn logical(&mut self, node: &'a LogicalExpression<'a>) -> Var {
        let at = span(node.span);
        // Left-deep chains of any of the three operators, outermost last.
        let mut rest: Vec<(LogicalOperator, &'a Expression<'a>)> =
            vec![(node.operator, &node.right)];
        let mut left = &node.left;
        while let Expression::LogicalExpression(inner) = peel(left) {
            rest.push((inner.operator, &inner.right));
            left = &inner.left;
        }
        let mut value = self.expr(left);
        while let Some((operator, right)) = rest.pop() {
            value = self.either(at, operator, value, |this| this.expr(right));
        }
        value
    }

    /// `value` if the operator says so, else what `right` computes.
    pub(super) fn either(
        &mut self,
        at: Span,
        operator: LogicalOperator,
        value: Var,
        right: impl FnOnce(&mut Self) -> Var,
    ) -> Var {
        let evaluate = self.block();
        let join = self.block();
        match operator {
            LogicalOperator::And => self.branch(at, value, evaluate, join),
            LogicalOperator::Or | LogicalOperator::Coalesce => {
                self.branch(at, value, join, evaluate);
            }
        }
        self.start(evaluate);
        let other = right(self);
        self.goto(at, join);
        self.start(join);
        self.phi(at, vec![value, other])
    }

    /// `c ? a : d ? b : …`: one join for the whole chain.
    pub(super) fn conditional(
        &mut self,
        node: &'a ConditionalExpression<'a>,
        hint: Option<Hint>,
    ) -> Var {
        let at = span(node.span);
        let join = self.block();
        let mut values = Vec::new();
        let mut node = node;
        loop {
            let then = self.block();
            let otherwise = self.block();
            self.condition(&node.test, then, otherwise);
            self.start(then);
            values.push(self.expr_named(&node.consequent, hint));
            self.goto(at, join);
            self.start(otherwise);
            match peel(&node.alternate) {
                Expression::ConditionalExpression(next) => node = next,
                _ => break,
            }
        }
        values.push(self.expr_named(&node.alternate, hint));
        self.goto(at, join);
        self.start(join);
        self.phi(at, values)
    }
}
