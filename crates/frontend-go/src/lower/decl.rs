//! A file: imports, types, functions, variables and constants.

use toctou_core::Name;
use toctou_core::ir::{
    Cell, ClassId, ExportTarget, FuncId, FuncKind, ImportedName, Op, TypeDef, TypeRef, Var,
    VarInfo, VarKind,
};
use tree_sitter::Node;

use super::{Lower, State, children, field, fields, span};
use crate::captures::Captures;

impl<'t> Lower<'t> {
    pub(super) fn file(&mut self, path: &str, root: Node<'_>) {
        let name = self.names.intern(path);
        self.module.closed = is_internal(path);
        let at = span(root);
        let init = self.new_function(name, FuncKind::ModuleInit, at);
        self.f = State::new(init, 0);
        let top = children(root);
        for node in &top {
            match node.kind() {
                "import_declaration" => self.imports(*node),
                "package_clause" => {
                    self.is_program = self.text(*node).ends_with(" main");
                    self.module.closed |= self.is_program;
                }
                _ => {}
            }
        }
        // Names first: a file may use what it declares further down.
        let mut types: Vec<(ClassId, Node<'_>)> = Vec::new();
        for node in &top {
            match node.kind() {
                "function_declaration" => {
                    if let Some(name) = field(*node, "name") {
                        self.top_name(name, VarKind::Const);
                    }
                }
                "type_declaration" => self.type_names(*node, &mut types),
                "var_declaration" | "const_declaration" => {
                    let kind = if node.kind() == "const_declaration" {
                        VarKind::Const
                    } else {
                        VarKind::Let
                    };
                    for spec in specs(*node) {
                        for name in fields(spec, "name") {
                            if name.kind() == "identifier" {
                                self.top_name(name, kind);
                            }
                        }
                    }
                }
                _ => {}
            }
        }
        for (class, node) in types {
            self.type_declaration(class, node);
        }
        for node in &top {
            self.captures = Captures::of(*node, self.text);
            match node.kind() {
                "function_declaration" => self.function_declaration(*node),
                "method_declaration" => self.method_declaration(*node),
                "const_declaration" => self.constants(*node),
                "var_declaration" => self.variables(*node),
                _ => {}
            }
        }
        self.finish(init);
    }

    /// A variable of the package. `init` and `_` can be there many times.
    fn top_name(&mut self, node: Node<'_>, kind: VarKind) {
        let name = self.name(node);
        let text = self.names.text(name);
        if self.package.contains_key(&name) || matches!(text, "init" | "_") {
            return;
        }
        let var = self.f.var(VarInfo {
            name: Some(name),
            kind,
            captured: true,
            lent: false,
            word: false,
            ty: None,
        });
        self.package.insert(name, var);
        self.module.exports.push((name, ExportTarget::Local(var)));
    }

    fn imports(&mut self, node: Node<'_>) {
        let mut specs = Vec::new();
        for child in children(node) {
            match child.kind() {
                "import_spec" => specs.push(child),
                "import_spec_list" => specs.extend(children(child)),
                _ => {}
            }
        }
        for spec in specs {
            let Some(path) = field(spec, "path") else {
                continue;
            };
            let path = self.text(path).trim_matches(['"', '`']).to_owned();
            let alias = field(spec, "name").map(|n| self.text(n));
            let local = match alias {
                Some(".") => continue,
                Some(alias) => alias.to_owned(),
                None => package_name(&path),
            };
            let specifier = self.names.intern(&path);
            let local = self.names.intern(&local);
            // Nobody can name it: a driver that makes itself known.
            if alias == Some("_") {
                self.import(local, specifier, ImportedName::Namespace);
                continue;
            }
            if self.imported.contains_key(&local) {
                continue;
            }
            let var = self.import(local, specifier, ImportedName::Namespace);
            self.imported.insert(local, var);
        }
    }

    fn type_names<'a>(&mut self, node: Node<'a>, out: &mut Vec<(ClassId, Node<'a>)>) {
        for spec in children(node) {
            let Some(name) = field(spec, "name") else {
                continue;
            };
            let name_at = span(name);
            let name = self.name(name);
            if !self.typed.insert(name) {
                continue;
            }
            if spec.kind() == "type_alias" {
                // Known to be a type of this file before it is looked at.
                let Some(ty) = field(spec, "type").and_then(|ty| self.type_ref(ty)) else {
                    continue;
                };
                self.module.types.push((name, TypeDef::Alias(ty)));
                continue;
            }
            let class = self.new_class(name, name_at);
            self.classes.insert(name, class);
            self.module.types.push((name, TypeDef::Class(class)));
            let var = self.f.var(VarInfo {
                name: Some(name),
                kind: VarKind::Const,
                captured: true,
                lent: false,
                word: false,
                ty: None,
            });
            self.package.insert(name, var);
            self.module.exports.push((name, ExportTarget::Local(var)));
            let dst = self.temp();
            self.emit(name_at, Op::Class { dst, class });
            let cell = Cell {
                owner: FuncId(0),
                var,
            };
            self.emit(name_at, Op::StoreVar { cell, value: dst });
            out.push((class, spec));
        }
    }

    /// `const ( A = iota; B )`: a line without a value repeats the one above.
    pub(super) fn constants(&mut self, node: Node<'_>) {
        let mut last: Option<Node<'_>> = None;
        for (index, spec) in specs(node).into_iter().enumerate() {
            let value = field(spec, "value").or(last);
            last = value;
            self.iota = Some(index as u32);
            self.declare_all(spec, value, VarKind::Const);
        }
        self.iota = None;
    }

    pub(super) fn variables(&mut self, node: Node<'_>) {
        for spec in specs(node) {
            self.declare_all(spec, field(spec, "value"), VarKind::Let);
        }
    }

    fn declare_all(&mut self, spec: Node<'_>, value: Option<Node<'_>>, kind: VarKind) {
        let ty = field(spec, "type");
        let type_ref = match (ty, value) {
            (Some(ty), _) => self.type_ref(ty),
            (None, Some(value)) => self.type_of_value(value),
            (None, None) => None,
        };
        let word = match (ty, value) {
            (Some(ty), _) => self.is_word(ty),
            (None, Some(value)) => self.begins_as_word(value),
            (None, None) => false,
        };
        let names: Vec<Node<'_>> = fields(spec, "name")
            .into_iter()
            .filter(|name| name.kind() == "identifier")
            .collect();
        let values = match value {
            Some(value) => self.values(value, names.len()),
            // The zero value of a struct is a struct.
            None => match &type_ref {
                Some(_) if ty.is_some_and(|t| t.kind() != "pointer_type") => names
                    .iter()
                    .map(|n| Some(self.zero(span(*n), type_ref.clone())))
                    .collect(),
                _ => names.iter().map(|_| None).collect(),
            },
        };
        let top = self.outer.is_empty();
        for (node, value) in names.into_iter().zip(values) {
            let at = span(node);
            let name = self.name(node);
            if !top {
                let slot = self.declare(name, type_ref.clone(), kind);
                let value = match value {
                    Some(value) => value,
                    None => self.null(at),
                };
                self.store(slot, value, at);
                continue;
            }
            if let Some(&var) = self.package.get(&name) {
                self.type_of_top(var, type_ref.clone(), word);
            }
            if let Some(value) = value {
                self.write_name(name, value, at);
            }
        }
    }

    fn type_of_top(&mut self, var: Var, ty: Option<TypeRef>, word: bool) {
        if let Some(info) = self.f.vars.get_mut(var.0 as usize)
            && info.ty.is_none()
        {
            info.ty = ty.map(Box::new);
            info.word = word;
        }
    }

    /// `var x T`
    fn zero(&mut self, at: toctou_core::Span, ty: Option<TypeRef>) -> Var {
        let dst = self.f.var(VarInfo {
            name: None,
            kind: VarKind::Temp,
            captured: false,
            lent: false,
            word: false,
            ty: ty.map(Box::new),
        });
        self.emit(
            at,
            Op::Object {
                dst,
                fields: Vec::new(),
            },
        );
        dst
    }

    pub(super) fn name_of(&mut self, node: Node<'_>, fallback: &str) -> Name {
        match field(node, "name") {
            Some(name) => self.name(name),
            None => self.names.intern(fallback),
        }
    }
}

fn specs(node: Node<'_>) -> Vec<Node<'_>> {
    let mut out = Vec::new();
    for child in children(node) {
        match child.kind() {
            "var_spec" | "const_spec" => out.push(child),
            "var_spec_list" => out.extend(children(child)),
            _ => {}
        }
    }
    out
}

/// Only what stands beside the folder `internal` may import what is in it.
fn is_internal(path: &str) -> bool {
    let folder = path
        .rsplit_once(['/', '\\'])
        .map_or("", |(folder, _)| folder);
    folder.split(['/', '\\']).any(|part| part == "internal")
}

/// What a package is called by, as far as its path says.
fn package_name(path: &str) -> String {
    let mut parts = path.rsplit('/');
    let mut last = parts.next().unwrap_or(path);
    let is_version = |part: &str| {
        part.strip_prefix('v')
            .is_some_and(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()))
    };
    if is_version(last)
        && let Some(before) = parts.next()
    {
        last = before;
    }
    // `gopkg.in/yaml.v3`
    if let Some((name, version)) = last.rsplit_once('.')
        && is_version(version)
    {
        last = name;
    }
    last.to_owned()
}
