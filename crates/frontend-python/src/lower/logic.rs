//! Conditions: short circuits are real branches, so that what stands on the
//! right of `and` is control dependent on what stands on the left.

use ruff_python_ast::{self as ast, BoolOp, CmpOp, Expr, UnaryOp};
use toctou_core::Span;
use toctou_core::ir::{BinOp, BlockId, Op, Term, Var};

use super::{Lower, MAX_DEPTH, at};

/// The condition of a loop or `if` that is always true.
pub(super) fn always_true(test: &Expr) -> bool {
    match test {
        Expr::BooleanLiteral(literal) => literal.value,
        Expr::NumberLiteral(literal) => {
            matches!(&literal.value, ast::Number::Int(i) if i.as_u64() != Some(0))
        }
        _ => false,
    }
}

impl<'a> Lower<'a> {
    /// Ends the current block with a branch on `test`.
    pub(super) fn condition(&mut self, test: &'a Expr, then: BlockId, otherwise: BlockId) {
        let span = at(test);
        if self.depth >= MAX_DEPTH {
            let cond = self.too_deep(span);
            self.branch(span, cond, then, otherwise);
            return;
        }
        self.depth += 1;
        match test {
            Expr::BoolOp(node) => {
                let last = node.values.len().saturating_sub(1);
                for (index, operand) in node.values.iter().enumerate() {
                    if index == last {
                        self.condition(operand, then, otherwise);
                        break;
                    }
                    let next = self.block();
                    match node.op {
                        BoolOp::And => self.condition(operand, next, otherwise),
                        BoolOp::Or => self.condition(operand, then, next),
                    }
                    self.start(next);
                }
            }
            Expr::UnaryOp(node) if node.op == UnaryOp::Not => {
                self.condition(&node.operand, otherwise, then);
            }
            _ if always_true(test) => self.goto(span, then),
            _ => {
                let cond = self.expr(test);
                self.branch(span, cond, then, otherwise);
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

    /// `a and b`, `a or b` for their value.
    pub(super) fn bool_op(&mut self, node: &'a ast::ExprBoolOp) -> Var {
        let span = at(node);
        let join = self.block();
        let mut values = Vec::new();
        let last = node.values.len().saturating_sub(1);
        for (index, operand) in node.values.iter().enumerate() {
            let value = self.expr(operand);
            values.push(value);
            if index == last {
                break;
            }
            let next = self.block();
            match node.op {
                BoolOp::And => self.branch(span, value, next, join),
                BoolOp::Or => self.branch(span, value, join, next),
            }
            self.start(next);
        }
        self.goto(span, join);
        self.start(join);
        // What `a and b and c` gives is c, or something false.
        self.phi(span, values)
    }

    /// `a if c else b`
    pub(super) fn conditional(&mut self, node: &'a ast::ExprIf) -> Var {
        let span = at(node);
        let (then, otherwise, join) = (self.block(), self.block(), self.block());
        self.condition(&node.test, then, otherwise);
        self.start(then);
        let a = self.expr(&node.body);
        self.goto(span, join);
        self.start(otherwise);
        let b = self.expr(&node.orelse);
        self.goto(span, join);
        self.start(join);
        self.phi(span, vec![a, b])
    }

    pub(super) fn compare(&mut self, node: &'a ast::ExprCompare) -> Var {
        let span = at(node);
        let mut left = self.expr(&node.left);
        let mut result: Option<Var> = None;
        for (op, right) in node.ops.iter().zip(node.comparators.iter()) {
            let value = self.comparison(span, *op, left, right);
            result = Some(match result {
                None => value.0,
                Some(before) => self.binary(span, BinOp::Either, before, value.0),
            });
            left = value.1;
        }
        match result {
            Some(value) => value,
            None => left,
        }
    }

    pub(super) fn binary(&mut self, span: Span, op: BinOp, left: Var, right: Var) -> Var {
        let dst = self.temp();
        self.emit(
            span,
            Op::Binary {
                dst,
                op,
                left,
                right,
            },
        );
        dst
    }

    fn not(&mut self, span: Span, src: Var) -> Var {
        let dst = self.temp();
        self.emit(span, Op::Not { dst, src });
        dst
    }

    /// One comparison, and the value of its right side.
    fn comparison(&mut self, span: Span, op: CmpOp, left: Var, right: &'a Expr) -> (Var, Var) {
        let value = self.expr(right);
        let result = match op {
            CmpOp::Eq | CmpOp::Is => self.binary(span, BinOp::Eq, left, value),
            CmpOp::NotEq | CmpOp::IsNot => self.binary(span, BinOp::Ne, left, value),
            CmpOp::Lt | CmpOp::LtE | CmpOp::Gt | CmpOp::GtE => {
                self.binary(span, BinOp::Compare, left, value)
            }
            CmpOp::In | CmpOp::NotIn => {
                let literal = matches!(
                    right,
                    Expr::Tuple(_) | Expr::List(_) | Expr::Set(_) | Expr::StringLiteral(_)
                );
                let found = if literal {
                    self.binary(span, BinOp::Test, left, value)
                } else {
                    self.method_call(span, value, "__contains__", &[left])
                };
                match op {
                    CmpOp::NotIn => self.not(span, found),
                    _ => found,
                }
            }
        };
        (result, value)
    }
}
