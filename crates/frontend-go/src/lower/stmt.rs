//! Statements.

use toctou_core::ir::{BinOp, CallKind, Literal, Op, Var};
use tree_sitter::Node;

use super::expr::is_dereference;
use super::{Lower, MAX_DEPTH, children, span};

impl<'t> Lower<'t> {
    /// The statements of a block, in a scope of their own.
    pub(super) fn statements(&mut self, block: Node<'_>) {
        let mark = self.open_scope();
        self.statement_list(block);
        self.close_scope(mark);
    }

    /// The statements among a node's children.
    pub(super) fn statement_list(&mut self, node: Node<'_>) {
        for child in children(node) {
            if child.kind() == "statement_list" {
                for statement in children(child) {
                    self.statement(statement);
                }
            } else {
                self.statement(child);
            }
        }
    }

    pub(super) fn statement(&mut self, node: Node<'_>) {
        if self.depth >= MAX_DEPTH {
            self.too_deep(span(node));
            return;
        }
        self.depth += 1;
        self.statement_here(node);
        self.depth -= 1;
    }

    fn statement_here(&mut self, node: Node<'_>) {
        let at = span(node);
        match node.kind() {
            "expression_statement" => {
                if let Some(e) = children(node).into_iter().next() {
                    self.expression(e);
                    if self.is_panic(e) {
                        self.leave_function(at, Some(Vec::new()));
                    }
                }
            }
            "short_var_declaration" => self.short_declaration(node),
            "assignment_statement" => self.assignment(node),
            "inc_statement" | "dec_statement" => {
                if let Some(target) = children(node).into_iter().next() {
                    let one = self.names.intern("1");
                    let place = self.place(target);
                    let old = self.read_place(&place, at);
                    let right = self.constant(at, Literal::Num(one));
                    let value = self.binary(at, BinOp::Add, old, right);
                    self.write_place(&place, value, at);
                }
            }
            "var_declaration" => self.variables(node),
            "const_declaration" => self.constants(node),
            "type_declaration" => self.local_types(node),
            "if_statement" => self.if_statement(node),
            "for_statement" => self.for_statement(node),
            "expression_switch_statement" | "type_switch_statement" => self.switch(node),
            "select_statement" => self.select(node),
            "block" => self.statements(node),
            "return_statement" => {
                let mut values: Vec<Var> = Vec::new();
                let list = children(node).into_iter().next();
                let bare = list.is_none();
                if let Some(list) = list {
                    let count = self.f.result_count;
                    values = self
                        .values(list, count.max(1))
                        .into_iter()
                        .flatten()
                        .collect();
                    // `return *p`: who gets it has a struct of his own.
                    let nodes = match list.kind() {
                        "expression_list" => children(list),
                        _ => vec![list],
                    };
                    for (i, (value, node)) in values.iter_mut().zip(nodes).enumerate() {
                        let copies = self.f.result_copies.get(i).is_some_and(|c| *c);
                        if copies && is_dereference(node) {
                            *value = self.copied(span(node), *value);
                        }
                    }
                }
                let bare = bare && !self.f.results.is_empty();
                self.leave_function(at, (!bare).then_some(values));
            }
            "go_statement" => {
                if let Some(call) = children(node).into_iter().next()
                    && let Some((callee, args)) = self.call_parts(call)
                {
                    let dst = self.temp();
                    self.emit(
                        at,
                        Op::Call {
                            dst,
                            callee,
                            args: args.into(),
                            kind: CallKind::Spawn,
                        },
                    );
                }
            }
            "defer_statement" => self.defer(node),
            "send_statement" => self.send(node),
            "receive_statement" => self.receive_statement(node),
            "labeled_statement" => self.labeled(node),
            "break_statement" | "continue_statement" => self.jump(node),
            "goto_statement" => {
                if let Some(label) = children(node).into_iter().next() {
                    let name = self.name(label);
                    let block = self.label_block(name);
                    self.goto(at, block);
                }
            }
            "fallthrough_statement" => self.fall_through(at),
            "empty_statement" | "comment" => {}
            "ERROR" => {
                for child in children(node) {
                    self.statement(child);
                }
            }
            _ => {
                self.expression(node);
            }
        }
    }

    fn is_panic(&mut self, node: Node<'_>) -> bool {
        node.kind() == "call_expression"
            && super::field(node, "function").is_some_and(|f| {
                let name = self.name(f);
                self.names.text(name) == "panic"
                    && !self.is_local(name)
                    && !self.package.contains_key(&name)
            })
    }

    pub(super) fn binary(
        &mut self,
        at: toctou_core::Span,
        op: BinOp,
        left: Var,
        right: Var,
    ) -> Var {
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

    /// Types declared in a function: they have names, and hardly ever methods.
    fn local_types(&mut self, node: Node<'_>) {
        for spec in children(node) {
            let Some(name) = super::field(spec, "name") else {
                continue;
            };
            let at = span(name);
            let name = self.name(name);
            if self.typed.insert(name) {
                let class = self.new_class(name, at);
                self.module
                    .types
                    .push((name, toctou_core::ir::TypeDef::Class(class)));
                self.classes.insert(name, class);
                self.type_declaration(class, spec);
            }
            self.bind(name, super::vars::Slot::Nothing);
        }
    }
}
