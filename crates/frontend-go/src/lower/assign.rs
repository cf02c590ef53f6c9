//! Declarations with `:=`, assignments, and what can be assigned to.

use toctou_core::ir::{BinOp, Op, Var, VarKind};
use toctou_core::{Name, Span};
use tree_sitter::Node;

use super::expr::is_dereference;
use super::{Lower, children, field, span};

/// Something that can be assigned to, evaluated as far as it must be.
pub(super) enum Place {
    Name(Name),
    Field(Var, Name),
    Index(Var, Var),
    /// `*p`
    Pointer(Var),
    Nothing,
}

impl<'t> Lower<'t> {
    pub(super) fn place(&mut self, node: Node<'_>) -> Place {
        let mut node = node;
        while node.kind() == "parenthesized_expression" {
            match children(node).first() {
                Some(inner) => node = *inner,
                None => return Place::Nothing,
            }
        }
        match node.kind() {
            "identifier" => Place::Name(self.name(node)),
            "selector_expression" => {
                let Some(name) = field(node, "field") else {
                    return Place::Nothing;
                };
                let operand = field(node, "operand");
                // `pkg.Variable = x`: variables of other packages are fields of them.
                let obj = match operand {
                    Some(operand) => self.expression(operand),
                    None => return Place::Nothing,
                };
                Place::Field(obj, self.name(name))
            }
            "index_expression" => {
                let obj = self.operand(node, "operand");
                let index = self.operand(node, "index");
                Place::Index(obj, index)
            }
            "unary_expression" => Place::Pointer(self.operand(node, "operand")),
            _ => {
                self.expression(node);
                Place::Nothing
            }
        }
    }

    pub(super) fn read_place(&mut self, place: &Place, at: Span) -> Var {
        match *place {
            Place::Name(name) => self.read_name(name, at),
            Place::Field(obj, field) => self.get_field(at, obj, field),
            Place::Index(obj, index) => {
                let dst = self.temp();
                self.emit(at, Op::GetIndex { dst, obj, index });
                dst
            }
            Place::Pointer(value) => self.copy(at, value),
            Place::Nothing => self.opaque(at, Vec::new()),
        }
    }

    pub(super) fn write_place(&mut self, place: &Place, value: Var, at: Span) {
        match *place {
            Place::Name(name) => self.write_name(name, value, at),
            Place::Field(obj, field) => self.emit(at, Op::SetField { obj, field, value }),
            Place::Index(obj, index) => self.emit(at, Op::SetIndex { obj, index, value }),
            Place::Pointer(obj) => {
                let field = self.names.intern("*");
                self.emit(at, Op::SetField { obj, field, value });
            }
            Place::Nothing => {}
        }
    }

    /// The values on the right, `count` of them: one call can give several.
    pub(super) fn values(&mut self, list: Node<'_>, count: usize) -> Vec<Option<Var>> {
        let nodes = if list.kind() == "expression_list" {
            children(list)
        } else {
            vec![list]
        };
        if let [one] = nodes.as_slice()
            && count > 1
        {
            return self.several(*one, count);
        }
        let mut values: Vec<Option<Var>> = nodes
            .into_iter()
            .map(|node| Some(self.expression(node)))
            .collect();
        values.resize(values.len().max(count), None);
        values
    }

    /// `v, ok := m[k]`, `v, ok := x.(T)`, `v, ok := <-ch`, `a, b := f()`.
    fn several(&mut self, node: Node<'_>, count: usize) -> Vec<Option<Var>> {
        let at = span(node);
        let value = self.expression(node);
        let asks = matches!(
            node.kind(),
            "index_expression" | "type_assertion_expression" | "unary_expression"
        );
        if asks {
            // That it is there is as true as the value itself.
            let ok = self.copy(at, value);
            return vec![Some(value), Some(ok)];
        }
        (0..count)
            .map(|i| Some(self.component(at, value, i)))
            .collect()
    }

    pub(super) fn short_declaration(&mut self, node: Node<'_>) {
        let (Some(left), Some(right)) = (field(node, "left"), field(node, "right")) else {
            return;
        };
        let targets = children(left);
        let mut values = self.values(right, targets.len());
        // `x := *p`, and x is changed: that is no change of what p points at.
        for ((target, node), value) in targets.iter().zip(children(right)).zip(&mut values) {
            if let Some(value) = value
                && is_dereference(node)
                && self.captures.changes(self.text(*target))
            {
                *value = self.copied(span(node), *value);
            }
        }
        self.declare_or_assign(targets, values);
    }

    /// Names that this scope has already are assigned, others are new.
    fn declare_or_assign(&mut self, targets: Vec<Node<'_>>, values: Vec<Option<Var>>) {
        for (target, value) in targets.into_iter().zip(values) {
            let at = span(target);
            let name = self.name(target);
            let Some(value) = value else { continue };
            if self.names.text(name) == "_" {
                continue;
            }
            if self.in_this_scope(name) {
                self.write_name(name, value, at);
            } else {
                let slot = self.declare(name, None, VarKind::Let);
                self.store(slot, value, at);
            }
        }
    }

    pub(super) fn assignment(&mut self, node: Node<'_>) {
        let (Some(left), Some(right)) = (field(node, "left"), field(node, "right")) else {
            return;
        };
        let at = span(node);
        let operator = field(node, "operator").map_or("=", |o| o.kind());
        let targets = children(left);
        if operator != "=" {
            let Some(target) = targets.first() else {
                return;
            };
            let place = self.place(*target);
            let old = self.read_place(&place, at);
            let right_node = children(right).into_iter().next().unwrap_or(right);
            let value = self.expression(right_node);
            let value = match operator {
                "+=" => self.operate(at, "+", old, value, Some(right_node)),
                _ => self.binary(at, BinOp::Arith, old, value),
            };
            self.write_place(&place, value, at);
            return;
        }
        let places: Vec<Place> = targets.iter().map(|t| self.place(*t)).collect();
        let mut values = self.values(right, places.len());
        // `m[k] = *p`: what is in there is a struct of its own; so is `x` in `x = *p`.
        let from = children(right);
        for (i, (node, value)) in from.into_iter().zip(&mut values).enumerate() {
            let own = match (places.get(i), targets.get(i)) {
                (Some(Place::Index(..)), _) => true,
                (_, Some(target)) if target.kind() == "identifier" => {
                    self.captures.changes(self.text(*target))
                }
                _ => false,
            };
            if let Some(value) = value
                && own
                && is_dereference(node)
            {
                *value = self.copied(span(node), *value);
            }
        }
        for ((place, target), value) in places.iter().zip(&targets).zip(values) {
            if let Some(value) = value {
                let at = if places.len() == 1 { at } else { span(*target) };
                self.write_place(place, value, at);
            }
        }
    }

    /// `case v, ok := <-ch:` and `case <-ch:` of a `select`.
    pub(super) fn receive_statement(&mut self, node: Node<'_>) {
        let Some(right) = field(node, "right") else {
            return;
        };
        let Some(left) = field(node, "left") else {
            self.expression(right);
            return;
        };
        let targets = children(left);
        let values = self.values(right, targets.len());
        let between = self
            .text
            .get(left.end_byte()..right.start_byte())
            .unwrap_or_default();
        if between.contains(":=") {
            self.declare_or_assign(targets, values);
            return;
        }
        for (target, value) in targets.into_iter().zip(values) {
            let place = self.place(target);
            if let Some(value) = value {
                self.write_place(&place, value, span(target));
            }
        }
    }
}
