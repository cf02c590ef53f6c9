//! Composite literals: structs, maps, slices.

use toctou_core::Span;
use toctou_core::ir::{Arg, Key, Op, TypeRef, Var, VarInfo, VarKind};
use tree_sitter::Node;

use super::expr::is_dereference;
use super::{Lower, MAX_DEPTH, children, field, span};

impl<'t> Lower<'t> {
    /// `T{…}`, `map[K]V{…}`, `[]T{…}`
    pub(super) fn composite(&mut self, node: Node<'_>) -> Var {
        let at = span(node);
        let (Some(ty), Some(body)) = (field(node, "type"), field(node, "body")) else {
            return self.opaque(at, Vec::new());
        };
        let type_ref = self.type_ref(ty);
        self.literal(at, ty, type_ref, body)
    }

    fn literal(
        &mut self,
        at: Span,
        ty: Node<'_>,
        type_ref: Option<TypeRef>,
        body: Node<'_>,
    ) -> Var {
        if self.depth >= MAX_DEPTH {
            return self.too_deep(at);
        }
        self.depth += 1;
        let value = match ty.kind() {
            "slice_type" | "array_type" | "implicit_length_array_type" => {
                let element = field(ty, "element");
                let items = self.items(body, element);
                let dst = self.literal_temp(type_ref);
                self.emit(at, Op::Array { dst, items });
                dst
            }
            "map_type" => {
                let fields = self.entries(body, field(ty, "value"), true);
                let dst = self.literal_temp(type_ref);
                self.emit(at, Op::Object { dst, fields });
                dst
            }
            _ => {
                let fields = self.entries(body, None, false);
                let dst = self.literal_temp(type_ref);
                self.emit(at, Op::Object { dst, fields });
                dst
            }
        };
        self.depth -= 1;
        value
    }

    fn literal_temp(&mut self, ty: Option<TypeRef>) -> Var {
        self.f.var(VarInfo {
            name: None,
            kind: VarKind::Temp,
            captured: false,
            lent: false,
            word: false,
            ty: ty.map(Box::new),
        })
    }

    fn items(&mut self, body: Node<'_>, element: Option<Node<'_>>) -> Vec<Arg> {
        children(body)
            .into_iter()
            .filter_map(|item| {
                let item = match item.kind() {
                    "keyed_element" => field(item, "value")?,
                    _ => item,
                };
                Some(Arg {
                    value: self.element(item, element),
                    spread: false,
                    name: None,
                })
            })
            .collect()
    }

    /// Keyed elements; those without a key are numbered.
    fn entries(
        &mut self,
        body: Node<'_>,
        element: Option<Node<'_>>,
        is_map: bool,
    ) -> Vec<(Key, Var)> {
        let mut out = Vec::new();
        for (index, item) in children(body).into_iter().enumerate() {
            let (key, value) = match item.kind() {
                "keyed_element" => (field(item, "key"), field(item, "value")),
                _ => (None, Some(item)),
            };
            let Some(value) = value else { continue };
            let key = match key.map(unwrap) {
                Some(key) if !is_map && key.kind() == "identifier" => Key::Name(self.name(key)),
                Some(key) if key.kind().ends_with("string_literal") => {
                    let text = super::expr::string_value(self.text(key));
                    Key::Name(self.names.intern(&text))
                }
                Some(key) => Key::Computed(self.expression(key)),
                None => Key::Name(self.names.intern(&index.to_string())),
            };
            let mut var = self.element(value, element);
            // `T{f: *p}`, and the f of it is changed: that is no change of what p points at.
            if let Key::Name(name) = key
                && is_dereference(unwrap(value))
                && self.captures.changes_within(self.names.text(name))
            {
                var = self.copied(span(value), var);
            }
            out.push((key, var));
        }
        out
    }

    /// An element; `{…}` alone has the type of the literal's elements.
    fn element(&mut self, node: Node<'_>, ty: Option<Node<'_>>) -> Var {
        let inner = unwrap(node);
        if inner.kind() != "literal_value" {
            return self.expression(inner);
        }
        let mut ty = ty;
        while let Some(node) = ty.filter(|t| t.kind() == "pointer_type") {
            ty = children(node).first().copied();
        }
        match ty {
            Some(ty) => {
                let type_ref = self.type_ref(ty);
                self.literal(span(inner), ty, type_ref, inner)
            }
            None => self.untyped_literal(inner),
        }
    }

    pub(super) fn untyped_literal(&mut self, node: Node<'_>) -> Var {
        let at = span(node);
        if self.depth >= MAX_DEPTH {
            return self.too_deep(at);
        }
        self.depth += 1;
        let fields = self.entries(node, None, false);
        let dst = self.literal_temp(None);
        self.emit(at, Op::Object { dst, fields });
        self.depth -= 1;
        dst
    }
}

fn unwrap(node: Node<'_>) -> Node<'_> {
    if node.kind() == "literal_element"
        && let Some(inner) = children(node).first()
    {
        return *inner;
    }
    node
}
