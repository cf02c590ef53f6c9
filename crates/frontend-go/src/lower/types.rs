//! Types, as far as they name something; classes from type declarations.

use toctou_core::ir::{Class, ClassId, Field, TypeDef, TypeRef};
use toctou_core::{Name, Span};
use tree_sitter::Node;

use super::vars::{is_builtin_type, is_word_type};
use super::{Lower, children, field, fields, span};

/// Pointers to pointers and slices of slices that are looked through.
const MAX_TYPE_DEPTH: u32 = 8;

impl<'t> Lower<'t> {
    pub(super) fn type_ref(&mut self, node: Node<'_>) -> Option<TypeRef> {
        self.type_at(node, 0)
    }

    fn type_at(&mut self, node: Node<'_>, depth: u32) -> Option<TypeRef> {
        if depth > MAX_TYPE_DEPTH {
            return None;
        }
        let below = |lower: &mut Self, inner: Option<Node<'_>>| lower.type_at(inner?, depth + 1);
        match node.kind() {
            "pointer_type" => {
                let element = below(self, children(node).first().copied())?;
                Some(self.container("*", element))
            }
            "parenthesized_type" | "negated_type" | "type_elem" | "type_constraint" => {
                below(self, children(node).first().copied())
            }
            "generic_type" => below(self, field(node, "type")),
            "slice_type" | "array_type" | "implicit_length_array_type" => {
                let element = below(self, field(node, "element"))?;
                Some(self.container("[]", element))
            }
            "map_type" => {
                let element = below(self, field(node, "value"));
                Some(TypeRef {
                    name: self.names.intern("map"),
                    element: element.map(Box::new),
                })
            }
            "channel_type" => {
                let element = below(self, field(node, "value"))?;
                Some(self.container("chan", element))
            }
            "type_identifier" | "identifier" => {
                let name = self.name(node);
                if is_builtin_type(self.names.text(name)) && !self.classes.contains_key(&name) {
                    return None;
                }
                self.know_type(name);
                Some(TypeRef {
                    name,
                    element: None,
                })
            }
            "qualified_type" => {
                let package = self.name(field(node, "package")?);
                let member = self.text(field(node, "name")?);
                self.know_package(package);
                let text = format!("{}.{member}", self.names.text(package));
                let name = self.names.intern(&text);
                Some(TypeRef {
                    name,
                    element: None,
                })
            }
            "struct_type" => {
                let name = self
                    .names
                    .intern(&format!("struct at {}", node.start_byte()));
                if self.typed.insert(name) {
                    let class = self.new_class(name, span(node));
                    self.module.types.push((name, TypeDef::Class(class)));
                    self.struct_fields(class, node, depth + 1);
                }
                Some(TypeRef {
                    name,
                    element: None,
                })
            }
            _ => None,
        }
    }

    /// Is it a number or a truth value, by a name of the language itself?
    pub(super) fn is_word(&self, node: Node<'_>) -> bool {
        let text = self.text(node);
        let own = |name: Name| self.classes.contains_key(&name);
        is_word_type(text) && !self.names.find(text).is_some_and(own)
    }

    /// The same for a variable without a declared type, by the literal it begins with.
    pub(super) fn begins_as_word(&self, node: Node<'_>) -> bool {
        let node = match (node.kind(), children(node).as_slice()) {
            ("expression_list", [one]) => *one,
            _ => node,
        };
        let literals = [
            "int_literal",
            "float_literal",
            "rune_literal",
            "true",
            "false",
        ];
        literals.contains(&node.kind())
    }

    /// What a pointer points at.
    pub(super) fn pointee(&self, ty: TypeRef) -> TypeRef {
        match ty.element {
            Some(element) if self.names.text(ty.name) == "*" => *element,
            element => TypeRef {
                name: ty.name,
                element,
            },
        }
    }

    fn container(&mut self, name: &str, element: TypeRef) -> TypeRef {
        TypeRef {
            name: self.names.intern(name),
            element: Some(Box::new(element)),
        }
    }

    /// Sees to it that the types table can say what a name means.
    fn know_type(&mut self, name: Name) {
        if !self.classes.contains_key(&name) && !self.typed.contains(&name) {
            self.sibling(name);
        }
    }

    fn know_package(&mut self, package: Name) {
        if self.typed.contains(&package) {
            return;
        }
        match self.imported.get(&package).copied() {
            Some(var) => {
                self.typed.insert(package);
                self.module.types.push((package, TypeDef::Import(var)));
            }
            None => {
                self.sibling(package);
            }
        }
    }

    /// What a variable without a declared type is, by the literal it begins with.
    pub(super) fn type_of_value(&mut self, node: Node<'_>) -> Option<TypeRef> {
        let node = match node.kind() {
            "expression_list" => match children(node).as_slice() {
                [one] => *one,
                _ => return None,
            },
            _ => node,
        };
        match node.kind() {
            "composite_literal" => self.type_ref(field(node, "type")?),
            "unary_expression" if field(node, "operator")?.kind() == "&" => {
                let operand = field(node, "operand").filter(|o| o.kind() == "composite_literal")?;
                let element = self.type_ref(field(operand, "type")?)?;
                Some(self.container("*", element))
            }
            "call_expression" if self.text(field(node, "function")?) == "make" => {
                let arguments = field(node, "arguments")?;
                let ty = children(arguments).into_iter().next()?;
                self.type_ref(ty)
            }
            _ => None,
        }
    }

    pub(super) fn new_class(&mut self, name: Name, at: Span) -> ClassId {
        let id = ClassId(self.module.classes.len() as u32);
        let exported = is_exported(self.names.text(name));
        self.module.classes.push(Class {
            name,
            is_interface: false,
            extends: None,
            implements: Vec::new(),
            constructor: None,
            methods: Vec::new(),
            fields: Vec::new(),
            word: false,
            table: None,
            unique: Vec::new(),
            exported,
            span: at,
        });
        id
    }

    /// `type T …`, once all types of the file have their classes.
    pub(super) fn type_declaration(&mut self, class: ClassId, node: Node<'_>) {
        let Some(ty) = field(node, "type") else {
            return;
        };
        match ty.kind() {
            "struct_type" => self.struct_fields(class, ty, 0),
            "interface_type" => self.interface(class, ty),
            _ => {
                self.module.classes[class.0 as usize].word = self.is_word(ty);
                // `type T U`: the fields of U.
                let base = self.type_ref(ty).map(|ty| self.pointee(ty));
                if let Some(base) = base.filter(|base| base.element.is_none()) {
                    self.module.classes[class.0 as usize].extends = Some(base.name);
                }
            }
        }
    }

    fn struct_fields(&mut self, class: ClassId, node: Node<'_>, depth: u32) {
        let Some(list) = children(node)
            .into_iter()
            .find(|c| c.kind() == "field_declaration_list")
        else {
            return;
        };
        for declaration in children(list) {
            let Some(ty) = field(declaration, "type") else {
                continue;
            };
            let at = span(declaration);
            let resolved = self.type_at(ty, depth);
            let word = self.is_word(ty);
            let names = fields(declaration, "name");
            if names.is_empty() {
                // Embedded: its fields and methods are the struct's.
                let Some(base) = resolved.map(|ty| self.pointee(ty)) else {
                    continue;
                };
                let text = self.names.text(base.name);
                let short = text.rsplit('.').next().unwrap_or(text).to_owned();
                let name = self.names.intern(&short);
                let class = &mut self.module.classes[class.0 as usize];
                if class.extends.is_none() {
                    class.extends = Some(base.name);
                } else {
                    class.implements.push(base.name);
                }
                class.fields.push(Field {
                    name,
                    ty: Some(base),
                    is_static: false,
                    read_only: false,
                    word: false,
                    span: at,
                });
                continue;
            }
            for node in names {
                let name = self.name(node);
                self.module.classes[class.0 as usize].fields.push(Field {
                    name,
                    ty: resolved.clone(),
                    is_static: false,
                    read_only: false,
                    word,
                    span: at,
                });
            }
        }
    }

    /// Methods without bodies: who has them all implements it (see `resolve`).
    fn interface(&mut self, class: ClassId, node: Node<'_>) {
        self.module.classes[class.0 as usize].is_interface = true;
        for member in children(node) {
            match member.kind() {
                "method_elem" => self.interface_method(class, member),
                // An embedded interface.
                "type_elem" => {
                    if let Some(base) = self.type_ref(member) {
                        self.module.classes[class.0 as usize]
                            .implements
                            .push(base.name);
                    }
                }
                _ => {}
            }
        }
    }
}

pub(super) fn is_exported(name: &str) -> bool {
    name.chars().next().is_some_and(char::is_uppercase)
}
