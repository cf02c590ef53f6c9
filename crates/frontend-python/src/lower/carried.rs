//! What is found by a way that the program does not spell out: what a server is given when it is
//! set up and its handlers find in their context, methods by a part of their name, objects that a
//! class makes of a text.

use ruff_python_ast::{self as ast, Expr, Stmt};
use rustc_hash::FxHashMap;
use toctou_core::Span;
use toctou_core::ir::{Arg, CallKind, Callee, Cell, Op, TypeRef, Var, VarInfo, VarKind};

use super::{Lower, at};
use crate::types;

/// The types of what all handlers share: whoever has one has the same one. Models know them.
const LIFESPAN: &str = "__lifespan__";
const STATE: &str = "__state__";

/// The field under which what a lifespan hands out is found.
const FIELD: &str = "lifespan_context";

/// Methods of fewer than these have nothing in common by their names.
const MIN_PREFIX: usize = 3;

/// Methods by which a class makes an object of what was read.
const MAKERS: &[&str] = &[
    "model_validate",
    "model_validate_json",
    "model_construct",
    "parse_obj",
    "parse_raw",
    "parse_file",
    "from_dict",
    "from_json",
];

impl<'a> Lower<'a> {
    fn set_var_type(&mut self, var: Var, name: &str) {
        let name = self.names.intern(name);
        if let Some(info) = self.f.vars.get_mut(var.0 as usize) {
            info.ty = Some(Box::new(TypeRef {
                name,
                element: None,
            }));
        }
    }

    /// What all handlers share: a variable of the module, under a name that no program has.
    fn shared(&mut self, span: Span, name: &'static str) -> Var {
        let known = self.kept.iter().find(|(kept, _)| *kept == name);
        let cell = match known {
            Some((_, cell)) => *cell,
            None => {
                let ty = self.names.intern(name);
                let info = VarInfo {
                    name: Some(ty),
                    kind: VarKind::Let,
                    captured: true,
                    lent: false,
                    word: false,
                    ty: Some(Box::new(TypeRef {
                        name: ty,
                        element: None,
                    })),
                };
                let module = self.outer.first_mut().unwrap_or(&mut self.f);
                let var = module.var(info);
                let cell = Cell {
                    owner: module.id,
                    var,
                };
                self.kept.push((name, cell));
                cell
            }
        };
        let dst = self.temp();
        self.emit(span, Op::LoadVar { dst, cell });
        self.set_var_type(dst, name);
        dst
    }

    /// `FastMCP(lifespan=f)`: what `f` hands out is there for all handlers.
    pub(super) fn keep_lifespan(&mut self, span: Span, args: &[Arg]) {
        let name = self.names.intern("lifespan");
        let Some(arg) = args.iter().find(|a| a.name == Some(name)) else {
            return;
        };
        let value = self.call_op(span, Callee::Value(arg.value), &[], CallKind::Plain);
        let obj = self.shared(span, LIFESPAN);
        let field = self.names.intern(FIELD);
        self.emit(span, Op::SetField { obj, field, value });
    }

    /// `context.lifespan_context`, and `request.app.state`, which is that of the one application.
    pub(super) fn carried(&mut self, e: &'a ast::ExprAttribute, dst: Var) -> Var {
        let span = at(e);
        match e.attr.as_str() {
            FIELD => {
                let kept = self.shared(span, LIFESPAN);
                self.get_field(span, kept, FIELD)
            }
            "state" if is_app(&e.value) => self.shared(span, STATE),
            _ => dst,
        }
    }

    /// `getattr(self, f"handle_{name}")`: one of the methods whose names begin so.
    pub(super) fn method_by_prefix(&mut self, of: &'a Expr, name: &'a Expr) -> Option<Var> {
        let Expr::FString(text) = name else {
            return None;
        };
        let first = text.value.elements().next()?;
        let prefix = first.as_literal()?.value.as_ref();
        if prefix.len() < MIN_PREFIX || !self.is_self(of) {
            return None;
        }
        let class = self.module.classes.get(self.method_class()?.0 as usize)?;
        let class = self.names.text(class.name);
        let methods: Vec<&'a str> = (self.methods.get(class)?.iter())
            .copied()
            .filter(|m| m.starts_with(prefix))
            .collect();
        if methods.is_empty() {
            return None;
        }
        let span = at(name);
        let obj = self.expr(of);
        let found = methods
            .into_iter()
            .map(|m| self.get_field(span, obj, m))
            .collect();
        Some(self.phi(span, found))
    }

    /// `Settings.model_validate_json(text)` is a `Settings`.
    pub(super) fn made_by_class(&mut self, e: &ast::ExprCall, dst: Var) {
        let Expr::Attribute(callee) = e.func.as_ref() else {
            return;
        };
        if !MAKERS.contains(&callee.attr.as_str()) {
            return;
        }
        let Some(class) = types::dotted(&callee.value) else {
            return;
        };
        let last = class.rsplit('.').next().unwrap_or(&class);
        if last.starts_with(char::is_uppercase) {
            self.set_var_type(dst, &class);
        } else if class == "cls"
            && let Some(id) = self.method_class()
            && let Some(class) = self.module.classes.get(id.0 as usize)
        {
            let name = self.names.text(class.name).to_owned();
            self.set_var_type(dst, &name);
        }
    }
}

fn is_app(e: &Expr) -> bool {
    match e {
        Expr::Name(name) => name.id.as_str() == "app",
        Expr::Attribute(attribute) => attribute.attr.as_str() == "app",
        _ => false,
    }
}

/// The names of the methods of the classes of a file.
pub(super) fn methods(body: &[Stmt]) -> FxHashMap<&str, Vec<&str>> {
    let mut out: FxHashMap<&str, Vec<&str>> = FxHashMap::default();
    for statement in body {
        let Stmt::ClassDef(class) = statement else {
            continue;
        };
        let names = class.body.iter().filter_map(|s| match s {
            Stmt::FunctionDef(f) => Some(f.name.as_str()),
            _ => None,
        });
        out.entry(class.name.as_str()).or_default().extend(names);
    }
    out
}
