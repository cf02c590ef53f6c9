//! Branches, loops, `switch`, `select`, labels.

use toctou_core::ir::{BinOp, BlockId, Op, Term, Var, VarKind};
use toctou_core::{Name, Span};
use tree_sitter::Node;

use super::{Lower, children, field, fields, span};

/// Where `break` and `continue` lead in one loop, `switch` or `select`.
pub(super) struct Jump {
    label: Option<Name>,
    after: BlockId,
    /// Loops only.
    again: Option<BlockId>,
    /// The next case, for `fallthrough`.
    next: Option<BlockId>,
}

impl<'t> Lower<'t> {
    pub(super) fn if_statement(&mut self, node: Node<'_>) {
        let mark = self.open_scope();
        let after = self.block();
        let mut at = Some(node);
        // `else if` chains are long, not deep.
        while let Some(node) = at.take() {
            let here = span(node);
            if let Some(init) = field(node, "initializer") {
                self.statement(init);
            }
            let then = self.block();
            let otherwise = self.block();
            match field(node, "condition") {
                Some(condition) => self.condition(condition, then, otherwise),
                None => self.end(here, Term::Multi(vec![then, otherwise])),
            }
            self.start(then);
            if let Some(body) = field(node, "consequence") {
                let defers = self.defer_mark();
                self.statements(body);
                self.defer_maybe(defers);
            }
            self.goto(here, after);
            self.start(otherwise);
            match field(node, "alternative") {
                Some(next) if next.kind() == "if_statement" => at = Some(next),
                Some(block) => {
                    let defers = self.defer_mark();
                    self.statements(block);
                    self.defer_maybe(defers);
                    self.goto(here, after);
                }
                None => self.goto(here, after),
            }
        }
        self.close_scope(mark);
        self.start_if_reached(after);
    }

    /// Goes on in a block that something leads to; else what follows is dead.
    fn start_if_reached(&mut self, block: BlockId) {
        let reached = self.f.reached.get(block.0 as usize) == Some(&true);
        if reached {
            self.start(block);
        } else {
            self.f.current = None;
        }
    }

    /// `a && b || !c` as jumps, so that each test decides for itself.
    pub(super) fn condition(&mut self, node: Node<'_>, then: BlockId, otherwise: BlockId) {
        let at = span(node);
        if self.depth >= super::MAX_DEPTH {
            self.too_deep(at);
            self.end(at, Term::Multi(vec![then, otherwise]));
            return;
        }
        self.depth += 1;
        let operator = field(node, "operator").map(|o| o.kind());
        match (node.kind(), operator) {
            ("parenthesized_expression", _) => match children(node).first() {
                Some(inner) => self.condition(*inner, then, otherwise),
                None => self.end(at, Term::Multi(vec![then, otherwise])),
            },
            ("unary_expression", Some("!")) => match field(node, "operand") {
                Some(inner) => self.condition(inner, otherwise, then),
                None => self.end(at, Term::Multi(vec![then, otherwise])),
            },
            ("binary_expression", Some("&&" | "||")) => {
                let and = operator == Some("&&");
                let second = self.block();
                if let Some(left) = field(node, "left") {
                    if and {
                        self.condition(left, second, otherwise);
                    } else {
                        self.condition(left, then, second);
                    }
                }
                self.start(second);
                match field(node, "right") {
                    Some(right) => self.condition(right, then, otherwise),
                    None => self.end(at, Term::Multi(vec![then, otherwise])),
                }
            }
            _ => {
                let cond = self.expression(node);
                self.end(
                    at,
                    Term::Branch {
                        cond,
                        then,
                        otherwise,
                    },
                );
            }
        }
        self.depth -= 1;
    }

    pub(super) fn for_statement(&mut self, node: Node<'_>) {
        let at = span(node);
        let label = self.label.take();
        let mark = self.open_scope();
        let body = field(node, "body");
        let head_node = children(node)
            .into_iter()
            .find(|c| Some(*c) != body && c.kind() != "comment");
        let clause = head_node.filter(|h| h.kind() == "for_clause");
        let range = head_node.filter(|h| h.kind() == "range_clause");
        if let Some(init) = clause.and_then(|c| field(c, "initializer")) {
            self.statement(init);
        }
        let of = range
            .and_then(|r| field(r, "right"))
            .map(|right| self.expression(right));
        let head = self.block();
        let inside = self.block();
        let update = self.block();
        let after = self.block();
        self.goto(at, head);
        self.start(head);
        match (range, clause, head_node) {
            (Some(_), _, _) => self.end(at, Term::Multi(vec![inside, after])),
            (None, Some(clause), _) => match field(clause, "condition") {
                Some(condition) => self.condition(condition, inside, after),
                None => self.goto(at, inside),
            },
            (None, None, Some(condition)) => self.condition(condition, inside, after),
            (None, None, None) => self.goto(at, inside),
        }
        self.start(inside);
        if let (Some(range), Some(of)) = (range, of) {
            self.range_variables(range, of);
        }
        self.f.targets.push(Jump {
            label,
            after,
            again: Some(update),
            next: None,
        });
        let defers = self.defer_mark();
        if let Some(body) = body {
            self.statements(body);
        }
        self.defer_maybe(defers);
        self.f.targets.pop();
        self.goto(at, update);
        self.start(update);
        if let Some(step) = clause.and_then(|c| field(c, "update")) {
            self.statement(step);
        }
        self.goto(at, head);
        self.close_scope(mark);
        self.start_if_reached(after);
    }

    fn range_variables(&mut self, range: Node<'_>, of: Var) {
        let declares = self.text(range).contains(":=");
        let Some(left) = field(range, "left") else {
            return;
        };
        for (index, target) in children(left).into_iter().enumerate().take(2) {
            let at = span(target);
            let dst = self.temp();
            let keys = index == 0;
            self.emit(at, Op::Element { dst, of, keys });
            if declares {
                let name = self.name(target);
                if self.names.text(name) != "_" {
                    let slot = self.declare(name, None, VarKind::Let);
                    self.store(slot, dst, at);
                }
            } else {
                let place = self.place(target);
                self.write_place(&place, dst, at);
            }
        }
    }

    pub(super) fn switch(&mut self, node: Node<'_>) {
        let at = span(node);
        let label = self.label.take();
        let mark = self.open_scope();
        if let Some(init) = field(node, "initializer") {
            self.statement(init);
        }
        let by_type = node.kind() == "type_switch_statement";
        let value = field(node, "value").map(|v| self.expression(v));
        let alias = field(node, "alias")
            .and_then(|list| children(list).into_iter().next())
            .map(|n| self.name(n));
        let cases: Vec<Node<'_>> = children(node)
            .into_iter()
            .filter(|c| c.kind().ends_with("_case"))
            .collect();
        let bodies: Vec<BlockId> = cases.iter().map(|_| self.block()).collect();
        let after = self.block();
        let default = cases.iter().position(|c| c.kind() == "default_case");
        for (case, body) in cases.iter().zip(&bodies) {
            match case.kind() {
                "expression_case" => {
                    let tests = field(*case, "value").map(children).unwrap_or_default();
                    for test in tests {
                        let next = self.block();
                        match value {
                            Some(value) => {
                                let right = self.expression(test);
                                let cond = self.binary(span(test), BinOp::Eq, value, right);
                                self.end(
                                    span(test),
                                    Term::Branch {
                                        cond,
                                        then: *body,
                                        otherwise: next,
                                    },
                                );
                            }
                            None => self.condition(test, *body, next),
                        }
                        self.start(next);
                    }
                }
                "type_case" => {
                    let next = self.block();
                    let from = value.into_iter().collect();
                    let cond = self.opaque(span(*case), from);
                    self.end(
                        span(*case),
                        Term::Branch {
                            cond,
                            then: *body,
                            otherwise: next,
                        },
                    );
                    self.start(next);
                }
                _ => {}
            }
        }
        self.goto(at, default.map_or(after, |d| bodies[d]));
        for (i, case) in cases.iter().enumerate() {
            self.start(bodies[i]);
            self.f.targets.push(Jump {
                label,
                after,
                again: None,
                next: bodies.get(i + 1).copied(),
            });
            let scope = self.open_scope();
            if let (true, Some(name), Some(value)) = (by_type, alias, value) {
                let types = fields(*case, "type");
                let ty = match types.as_slice() {
                    [one] => self.type_ref(*one),
                    _ => None,
                };
                let slot = self.declare(name, ty, VarKind::Const);
                self.store(slot, value, at);
            }
            self.case_body(*case);
            self.close_scope(scope);
            self.f.targets.pop();
            self.goto(span(*case), after);
        }
        self.close_scope(mark);
        self.start_if_reached(after);
    }

    /// The statements of a case, without its tests.
    fn case_body(&mut self, case: Node<'_>) {
        let defers = self.defer_mark();
        for child in children(case) {
            if child.kind() == "statement_list" {
                self.statement_list(child);
            }
        }
        self.defer_maybe(defers);
    }

    pub(super) fn select(&mut self, node: Node<'_>) {
        let at = span(node);
        let label = self.label.take();
        let cases: Vec<Node<'_>> = children(node)
            .into_iter()
            .filter(|c| c.kind().ends_with("_case"))
            .collect();
        let bodies: Vec<BlockId> = cases.iter().map(|_| self.block()).collect();
        let after = self.block();
        self.end(at, Term::Multi(bodies.clone()));
        for (case, body) in cases.iter().zip(bodies) {
            self.start(body);
            self.f.targets.push(Jump {
                label,
                after,
                again: None,
                next: None,
            });
            let scope = self.open_scope();
            if let Some(communication) = field(*case, "communication") {
                self.statement(communication);
            }
            self.case_body(*case);
            self.close_scope(scope);
            self.f.targets.pop();
            self.goto(span(*case), after);
        }
        self.start_if_reached(after);
    }

    pub(super) fn labeled(&mut self, node: Node<'_>) {
        let Some(label) = field(node, "label") else {
            return;
        };
        let name = self.name(label);
        let block = self.label_block(name);
        self.goto(span(label), block);
        self.start(block);
        self.label = Some(name);
        for child in children(node) {
            if child.kind() != "label_name" {
                self.statement(child);
            }
        }
        self.label = None;
    }

    pub(super) fn label_block(&mut self, name: Name) -> BlockId {
        if let Some(&block) = self.f.labels.get(&name) {
            return block;
        }
        let block = self.block();
        self.f.labels.insert(name, block);
        block
    }

    pub(super) fn jump(&mut self, node: Node<'_>) {
        let at = span(node);
        let label = children(node).into_iter().next().map(|n| self.name(n));
        let again = node.kind() == "continue_statement";
        let target = self.f.targets.iter().rev().find_map(|jump| {
            if label.is_some() && jump.label != label {
                return None;
            }
            if again { jump.again } else { Some(jump.after) }
        });
        match target {
            Some(block) => self.goto(at, block),
            None => self.f.current = None,
        }
    }

    pub(super) fn fall_through(&mut self, at: Span) {
        if let Some(next) = self.f.targets.last().and_then(|jump| jump.next) {
            self.goto(at, next);
        }
    }
}
