//! Expressions.

use toctou_core::Span;
use toctou_core::ir::{BinOp, Literal, Op, Var};
use tree_sitter::Node;

use super::{Lower, MAX_DEPTH, children, field, span};

impl<'t> Lower<'t> {
    pub(super) fn expression(&mut self, node: Node<'_>) -> Var {
        if self.depth >= MAX_DEPTH {
            return self.too_deep(span(node));
        }
        self.depth += 1;
        let value = self.expression_here(node);
        self.depth -= 1;
        value
    }

    fn expression_here(&mut self, node: Node<'_>) -> Var {
        let at = span(node);
        match node.kind() {
            "identifier" | "type_identifier" | "package_identifier" => self.read(node),
            "nil" => self.null(at),
            "true" => self.constant(at, Literal::Bool(true)),
            "false" => self.constant(at, Literal::Bool(false)),
            "int_literal" | "float_literal" | "rune_literal" | "imaginary_literal" => {
                let name = self.name(node);
                self.constant(at, Literal::Num(name))
            }
            "iota" => {
                let text = self.iota.unwrap_or(0).to_string();
                let name = self.names.intern(&text);
                self.constant(at, Literal::Num(name))
            }
            "interpreted_string_literal" | "raw_string_literal" => {
                let text = string_value(self.text(node));
                let name = self.names.intern(&text);
                self.constant(at, Literal::Str(name))
            }
            "parenthesized_expression" => match children(node).first() {
                Some(inner) => self.expression(*inner),
                None => self.opaque(at, Vec::new()),
            },
            "selector_expression" | "qualified_type" => self.selector(node),
            "index_expression" => {
                let obj = self.operand(node, "operand");
                let index = self.operand(node, "index");
                let dst = self.temp();
                self.emit(at, Op::GetIndex { dst, obj, index });
                dst
            }
            "slice_expression" => {
                for part in ["start", "end", "capacity"] {
                    if let Some(part) = field(node, part) {
                        self.expression(part);
                    }
                }
                let obj = self.operand(node, "operand");
                self.copy(at, obj)
            }
            "call_expression" => self.call(node),
            "type_conversion_expression" => {
                let value = self.operand(node, "operand");
                self.copy(at, value)
            }
            "type_assertion_expression" => self.assertion(node),
            "type_instantiation_expression" | "generic_type" => match field(node, "type") {
                Some(inner) => self.expression(inner),
                None => self.opaque(at, Vec::new()),
            },
            "composite_literal" => self.composite(node),
            "func_literal" => self.closure(node),
            "unary_expression" => self.unary(node),
            "binary_expression" => self.binary_chain(node),
            "variadic_argument" => match children(node).first() {
                Some(inner) => self.expression(*inner),
                None => self.opaque(at, Vec::new()),
            },
            // Types where a value may stand: `make(map[string]int)`.
            kind if kind.ends_with("_type") => self.null(at),
            "literal_value" => self.untyped_literal(node),
            "ERROR" => {
                let from = children(node)
                    .into_iter()
                    .take(64)
                    .map(|c| self.expression(c))
                    .collect();
                self.opaque(at, from)
            }
            _ => self.opaque(at, Vec::new()),
        }
    }

    pub(super) fn operand(&mut self, node: Node<'_>, name: &str) -> Var {
        match field(node, name) {
            Some(inner) => self.expression(inner),
            None => self.opaque(span(node), Vec::new()),
        }
    }

    fn selector(&mut self, node: Node<'_>) -> Var {
        let at = span(node);
        let obj = match field(node, "operand").or_else(|| field(node, "package")) {
            Some(operand) => self.expression(operand),
            None => self.opaque(at, Vec::new()),
        };
        match field(node, "field").or_else(|| field(node, "name")) {
            Some(name) => {
                let name = self.name(name);
                self.get_field(at, obj, name)
            }
            None => obj,
        }
    }

    /// `x.(T)`: the same value, and its type is known.
    fn assertion(&mut self, node: Node<'_>) -> Var {
        let at = span(node);
        let src = self.operand(node, "operand");
        let ty = field(node, "type").and_then(|ty| self.type_ref(ty));
        let dst = self.f.var(toctou_core::ir::VarInfo {
            name: None,
            kind: toctou_core::ir::VarKind::Temp,
            captured: false,
            lent: false,
            word: false,
            ty: ty.map(Box::new),
        });
        self.emit(at, Op::Copy { dst, src });
        dst
    }

    fn unary(&mut self, node: Node<'_>) -> Var {
        let at = span(node);
        let operator = field(node, "operator").map_or("", |o| o.kind());
        match operator {
            "<-" => self.receive(node),
            "!" => {
                let src = self.operand(node, "operand");
                let dst = self.temp();
                self.emit(at, Op::Not { dst, src });
                dst
            }
            // Pointers and what they point at are one thing here; see also `copied`.
            "&" => {
                let address = self.operand(node, "operand");
                self.f.lend(address);
                address
            }
            "*" => self.operand(node, "operand"),
            _ => {
                let src = self.operand(node, "operand");
                self.copy(at, src)
            }
        }
    }

    /// A struct of its own with the same fields.
    pub(super) fn copied(&mut self, at: Span, value: Var) -> Var {
        let dst = self.temp();
        let fields = vec![(toctou_core::ir::Key::Spread, value)];
        self.emit(at, Op::Object { dst, fields });
        dst
    }

    /// `a + b + c …`: long, not deep.
    fn binary_chain(&mut self, node: Node<'_>) -> Var {
        let mut spine = vec![node];
        let mut at = node;
        while let Some(left) = field(at, "left") {
            if left.kind() != "binary_expression" {
                break;
            }
            spine.push(left);
            at = left;
        }
        let mut value = self.operand(at, "left");
        while let Some(node) = spine.pop() {
            let here = span(node);
            let operator = field(node, "operator").map_or("", |o| o.kind());
            let right_node = field(node, "right");
            let right = match right_node {
                Some(right) => self.expression(right),
                None => self.opaque(here, Vec::new()),
            };
            value = self.operate(here, operator, value, right, right_node);
        }
        value
    }

    pub(super) fn operate(
        &mut self,
        at: Span,
        operator: &str,
        left: Var,
        right: Var,
        right_node: Option<Node<'_>>,
    ) -> Var {
        let op = match operator {
            "==" => BinOp::Eq,
            "!=" => BinOp::Ne,
            "<" | "<=" | ">" | ">=" => BinOp::Compare,
            "&&" | "||" => BinOp::Test,
            "+" | "+=" => {
                let is_text = right_node.is_some_and(|n| n.kind().ends_with("string_literal"))
                    || self.is_text(left)
                    || self.is_text(right);
                if is_text {
                    let dst = self.temp();
                    self.emit(
                        at,
                        Op::Concat {
                            dst,
                            parts: vec![left, right],
                        },
                    );
                    return dst;
                }
                BinOp::Add
            }
            _ => BinOp::Arith,
        };
        self.binary(at, op, left, right)
    }

    /// Was this register just made from text?
    fn is_text(&self, var: Var) -> bool {
        let last = self
            .f
            .current
            .and_then(|b| self.f.blocks.get(b.0 as usize))
            .map(|b| b.insts.iter().rev().take(4));
        last.into_iter().flatten().any(|inst| match &inst.op {
            Op::Const {
                dst,
                value: Literal::Str(_),
            }
            | Op::Concat { dst, .. } => *dst == var,
            _ => false,
        })
    }
}

/// `*p`
pub(super) fn is_dereference(node: Node<'_>) -> bool {
    node.kind() == "unary_expression" && field(node, "operator").is_some_and(|o| o.kind() == "*")
}

/// The text of a string literal, with the escapes that matter in paths and SQL.
pub(super) fn string_value(literal: &str) -> String {
    if let Some(raw) = literal.strip_prefix('`') {
        return raw.strip_suffix('`').unwrap_or(raw).to_owned();
    }
    let inner = literal
        .strip_prefix('"')
        .and_then(|rest| rest.strip_suffix('"'))
        .unwrap_or(literal);
    if !inner.contains('\\') {
        return inner.to_owned();
    }
    let mut out = String::with_capacity(inner.len());
    let mut chars = inner.chars();
    while let Some(c) = chars.next() {
        if c != '\\' {
            out.push(c);
            continue;
        }
        match chars.next() {
            Some('n') => out.push('\n'),
            Some('t') => out.push('\t'),
            Some('r') => out.push('\r'),
            Some(other) => out.push(other),
            None => {}
        }
    }
    out
}
