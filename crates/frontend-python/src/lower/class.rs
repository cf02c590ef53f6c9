//! Classes. Their bodies run where they stand: functions become methods, the
//! rest become fields of the class. What a body gives every object is also
//! set by the constructor, and one is made where there is none.

use ruff_python_ast::{self as ast, Expr, Stmt};
use rustc_hash::FxHashMap;
use toctou_core::ir::{
    CallKind, Callee, Class, ClassId, Field, FuncKind, Op, Term, TypeDef, TypeRef, Var,
};
use toctou_core::{Name, Span};

use super::function::{Parts, has_decorator};
use super::{Lower, State, at};
use crate::types;

impl<'a> Lower<'a> {
    pub(super) fn class_body(&self) -> Option<ClassId> {
        self.f.class_names.last()?;
        self.f.class
    }

    pub(super) fn class_def(&mut self, s: &'a ast::StmtClassDef) {
        let span = at(&s.name);
        let decorators: Vec<(Span, Var)> = s
            .decorator_list
            .iter()
            .map(|d| (at(&d.expression), self.expr(&d.expression)))
            .collect();
        let mut bases: Vec<Name> = Vec::new();
        let mut is_interface = false;
        for base in s.arguments.iter().flat_map(|a| a.args.iter()) {
            let Some(text) = types::dotted(match base {
                Expr::Subscript(subscript) => &subscript.value,
                other => other,
            }) else {
                continue;
            };
            match text.rsplit('.').next() {
                Some("object" | "ABC" | "Generic") => {}
                Some("Protocol") => is_interface = true,
                _ => bases.push(self.names.intern(&text)),
            }
        }
        let id = ClassId(self.module.classes.len() as u32);
        let name = self.names.intern(s.name.as_str());
        let mut bases = bases.into_iter();
        self.module.classes.push(Class {
            name,
            is_interface,
            extends: bases.next(),
            implements: bases.collect(),
            constructor: None,
            methods: Vec::new(),
            fields: Vec::new(),
            word: false,
            exported: self.outer.is_empty(),
            span: super::span(s.range),
        });
        if self.outer.is_empty() && self.f.class_names.is_empty() {
            self.module.types.push((name, TypeDef::Class(id)));
        }
        let class = self.temp();
        self.emit(
            span,
            Op::Class {
                dst: class,
                class: id,
            },
        );

        let outer_class = self.f.class.replace(id);
        self.f.class_names.push(FxHashMap::default());
        self.declared_fields(&s.body, id);
        self.class_statements(s, id);
        let names = self.f.class_names.pop().unwrap_or_default();
        self.f.class = outer_class;
        let mut names: Vec<(&str, Var)> = names.into_iter().collect();
        names.sort_unstable();
        for (name, value) in names {
            let field = self.names.intern(name);
            self.emit(
                span,
                Op::SetField {
                    obj: class,
                    field,
                    value,
                },
            );
        }
        if !self.has_constructor(id) {
            self.implied_constructor(s, id);
        }
        let mut value = class;
        for (here, decorator) in decorators.into_iter().rev() {
            value = self.call_op(here, Callee::Value(decorator), &[value], CallKind::Decorate);
        }
        let stored = if s.decorator_list.is_empty() {
            class
        } else {
            value
        };
        self.write(s.name.as_str(), stored, span);
    }

    fn has_constructor(&self, id: ClassId) -> bool {
        self.module
            .classes
            .get(id.0 as usize)
            .is_some_and(|c| c.constructor.is_some())
    }

    fn class_statements(&mut self, s: &'a ast::StmtClassDef, id: ClassId) {
        for statement in &s.body {
            if let Stmt::FunctionDef(def) = statement
                && def.name.as_str() == "__init__"
            {
                self.constructor(def, id, &s.body);
            }
        }
        for statement in &s.body {
            if !matches!(statement, Stmt::FunctionDef(def) if def.name.as_str() == "__init__") {
                self.statements(std::slice::from_ref(statement));
            }
        }
    }

    fn constructor(&mut self, def: &'a ast::StmtFunctionDef, id: ClassId, body: &'a [Stmt]) {
        let Some(scope) = self.scopes.of(crate::scope::start_of(def)) else {
            return;
        };
        let func = self.function(Parts {
            kind: FuncKind::Constructor,
            name: "__init__",
            name_span: at(&def.name),
            span: super::span(def.range),
            scope,
            params: Some(&def.parameters),
            body: super::function::Body::Statements(&def.body),
            is_async: false,
            returns: None,
            class: Some(id),
            decorators: &[],
            has_self: true,
            fields: Some(body),
        });
        if let Some(class) = self.module.classes.get_mut(id.0 as usize) {
            class.constructor = Some(func);
        }
    }

    pub(super) fn method(
        &mut self,
        s: &'a ast::StmtFunctionDef,
        mut parts: Parts<'a>,
        class: ClassId,
        decorators: Vec<(Span, Var)>,
    ) {
        let list = &s.decorator_list;
        parts.class = Some(class);
        parts.has_self = true;
        parts.kind = if has_decorator(list, &["staticmethod"]) {
            parts.has_self = false;
            FuncKind::StaticMethod
        } else if has_decorator(list, &["classmethod"]) || s.name.as_str() == "__new__" {
            FuncKind::StaticMethod
        } else if has_decorator(list, &["property", "cached_property"]) {
            FuncKind::Getter
        } else if has_decorator(list, &["setter"]) {
            FuncKind::Setter
        } else {
            FuncKind::Method
        };
        let name = self.names.intern(s.name.as_str());
        let is_interface = self
            .module
            .classes
            .get(class.0 as usize)
            .is_some_and(|c| c.is_interface);
        if is_interface && is_stub(&s.body) {
            let ty = types::annotation(&mut self.names, s.returns.as_deref());
            self.add_field(class, name, ty, false, at(&s.name));
            return;
        }
        let func = self.function(parts);
        if let Some(class) = self.module.classes.get_mut(class.0 as usize) {
            class.methods.push((name, func));
        }
        if !decorators.is_empty() {
            self.decorated(func, at(&s.name), decorators);
        }
    }

    pub(super) fn add_field(
        &mut self,
        class: ClassId,
        name: Name,
        ty: Option<TypeRef>,
        is_static: bool,
        span: Span,
    ) {
        let Some(class) = self.module.classes.get_mut(class.0 as usize) else {
            return;
        };
        // A class has few fields that are declared twice.
        if class.fields.iter().rev().take(256).any(|f| f.name == name) {
            return;
        }
        class.fields.push(Field {
            name,
            ty,
            is_static,
            read_only: false,
            word: false,
            span,
        });
    }

    fn declared_fields(&mut self, body: &'a [Stmt], id: ClassId) {
        for statement in body {
            if let Stmt::AnnAssign(s) = statement
                && let Expr::Name(name) = s.target.as_ref()
            {
                let ty = types::annotation(&mut self.names, Some(&s.annotation));
                let name = self.names.intern(name.id.as_str());
                self.add_field(id, name, ty, false, at(s));
            }
            // `__tablename__ = "notes"` says something about the class itself, by a name that
            // nobody else gives meaning to.
            if let Stmt::Assign(s) = statement
                && let [Expr::Name(name)] = s.targets.as_slice()
                && is_said_of_class(name.id.as_str())
            {
                let name = self.names.intern(name.id.as_str());
                self.add_field(id, name, None, true, at(s));
            }
        }
    }

    /// Sets what the class body gives every object, in the constructor that
    /// is being lowered: from a parameter, or from the value in the body.
    pub(super) fn initialise(&mut self, body: &'a [Stmt], params: Option<&FxHashMap<&str, Var>>) {
        for statement in body {
            let (name, value) = match statement {
                Stmt::AnnAssign(s) => (s.target.as_ref(), s.value.as_deref()),
                Stmt::Assign(s) => match s.targets.as_slice() {
                    [target] => (target, Some(s.value.as_ref())),
                    _ => continue,
                },
                _ => continue,
            };
            let Expr::Name(name) = name else { continue };
            let here = at(statement);
            let param = params.and_then(|p| p.get(name.id.as_str())).copied();
            let literal = value.is_some_and(is_literal);
            let value = value
                .filter(|v| gives_a_value(v))
                .map(|v| self.default_value(v));
            let value = match (param, value) {
                // The default of a parameter, as it is of any function's.
                (Some(dst), Some(value)) if literal => {
                    let from = vec![dst, value];
                    self.emit(here, Op::Phi { dst, from });
                    dst
                }
                (Some(param), Some(value)) => self.phi(here, vec![param, value]),
                (Some(value), None) | (None, Some(value)) => value,
                (None, None) => continue,
            };
            let obj = self.this(here);
            let field = self.names.intern(name.id.as_str());
            self.emit(here, Op::SetField { obj, field, value });
        }
    }

    /// `field(default_factory=dict)` gives what `dict()` does.
    fn default_value(&mut self, value: &'a Expr) -> Var {
        let here = at(value);
        if let Expr::Call(call) = value {
            for keyword in &call.arguments.keywords {
                let name = keyword.arg.as_ref().map(|n| n.as_str());
                if name == Some("default_factory") {
                    return match &keyword.value {
                        Expr::Name(n) if n.id.as_str() == "dict" => {
                            let dst = self.temp();
                            let fields = Vec::new();
                            self.emit(here, Op::Object { dst, fields });
                            dst
                        }
                        Expr::Name(n) if matches!(n.id.as_str(), "list" | "set") => {
                            let dst = self.temp();
                            let items = Vec::new();
                            self.emit(here, Op::Array { dst, items });
                            dst
                        }
                        factory => {
                            let factory = self.expr(factory);
                            self.call_op(here, Callee::Value(factory), &[], CallKind::New)
                        }
                    };
                }
                if name == Some("default") {
                    return self.expr(&keyword.value);
                }
            }
        }
        self.expr(value)
    }

    /// The constructor of a dataclass, or of a class with fields and no `__init__`.
    fn implied_constructor(&mut self, s: &'a ast::StmtClassDef, id: ClassId) {
        let has_fields = s
            .body
            .iter()
            .any(|s| matches!(s, Stmt::AnnAssign(_) | Stmt::Assign(_)));
        if !has_fields {
            return;
        }
        let name = self.names.intern("__init__");
        let here = at(&s.name);
        let func = self.new_function(name, FuncKind::Constructor, here);
        let parent = self.f.id;
        let scope = self.scopes.implied();
        let outer = std::mem::replace(&mut self.f, State::new(func, scope));
        self.outer.push(outer);
        self.f.class = Some(id);
        let mut params = Vec::new();
        let mut by_name: FxHashMap<&str, Var> = FxHashMap::default();
        for statement in &s.body {
            if let Stmt::AnnAssign(field) = statement
                && let Expr::Name(name) = field.target.as_ref()
                && !is_class_var(&field.annotation)
            {
                let ty = types::annotation(&mut self.names, Some(&field.annotation));
                let param = self.param(name.id.as_str(), ty);
                params.push(param);
                by_name.insert(name.id.as_str(), param);
            }
        }
        let derived = self
            .module
            .classes
            .get(id.0 as usize)
            .is_some_and(|c| c.extends.is_some());
        if derived {
            self.call_op(here, Callee::Super(None), &[], CallKind::Plain);
        }
        self.initialise(&s.body, Some(&by_name));
        self.end(here, Term::Return(None));
        let done = match self.outer.pop() {
            Some(outer) => std::mem::replace(&mut self.f, outer),
            None => return,
        };
        if let Some(function) = self.module.functions.get_mut(func.0 as usize) {
            function.parent = Some(parent);
            function.class = Some(id);
            function.params = params;
            function.vars = done.vars;
            function.blocks = done.blocks;
            function.detours = done.detours;
        }
        if let Some(class) = self.module.classes.get_mut(id.0 as usize) {
            class.constructor = Some(func);
        }
    }
}

/// Nothing but a docstring, `...` or `pass`.
fn is_stub(body: &[Stmt]) -> bool {
    body.iter().all(|s| match s {
        Stmt::Pass(_) => true,
        Stmt::Expr(e) => matches!(
            e.value.as_ref(),
            Expr::EllipsisLiteral(_) | Expr::StringLiteral(_)
        ),
        _ => false,
    })
}

fn is_said_of_class(name: &str) -> bool {
    name.len() > 4 && name.starts_with("__") && name.ends_with("__")
}

fn is_class_var(annotation: &Expr) -> bool {
    match annotation {
        Expr::Subscript(subscript) => types::dotted(&subscript.value)
            .is_some_and(|text| text.rsplit('.').next() == Some("ClassVar")),
        _ => false,
    }
}

/// Literals and calls; names of the class body are not seen from a method.
fn gives_a_value(value: &Expr) -> bool {
    match value {
        Expr::Call(call) => {
            call.arguments.args.iter().all(is_literal)
                && call
                    .arguments
                    .keywords
                    .iter()
                    .all(|k| is_literal(&k.value) || matches!(k.value, Expr::Name(_)))
        }
        Expr::Dict(d) => d.items.is_empty(),
        Expr::List(l) => l.elts.is_empty(),
        other => is_literal(other),
    }
}

fn is_literal(value: &Expr) -> bool {
    matches!(
        value,
        Expr::StringLiteral(_)
            | Expr::NumberLiteral(_)
            | Expr::BooleanLiteral(_)
            | Expr::NoneLiteral(_)
    )
}
