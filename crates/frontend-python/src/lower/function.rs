//! Functions: a state of their own, parameters first; decorators as calls.

use ruff_python_ast::{self as ast, Expr, Stmt};
use toctou_core::Span;
use toctou_core::ir::{
    CallKind, Callee, Cell, ClassId, FuncId, FuncKind, Op, Term, TypeRef, Var, VarInfo, VarKind,
};

use super::{Lower, MAX_DEPTH, State, at, span};
use crate::scope::start_of;
use crate::types;

pub(super) enum Body<'a> {
    Statements(&'a [Stmt]),
    /// `lambda: x`
    Expression(&'a Expr),
}

/// Everything that tells one kind of function from another.
pub(super) struct Parts<'a> {
    pub(super) kind: FuncKind,
    pub(super) name: &'a str,
    pub(super) name_span: Span,
    pub(super) span: Span,
    pub(super) scope: usize,
    pub(super) params: Option<&'a ast::Parameters>,
    pub(super) body: Body<'a>,
    pub(super) is_async: bool,
    pub(super) returns: Option<&'a Expr>,
    pub(super) class: Option<ClassId>,
    pub(super) decorators: &'a [ast::Decorator],
    /// The first parameter is the object.
    pub(super) has_self: bool,
    /// Constructors only: what the class body gives every object.
    pub(super) fields: Option<&'a [Stmt]>,
}

impl<'a> Lower<'a> {
    pub(super) fn lambda(&mut self, e: &'a ast::ExprLambda) -> Var {
        let here = at(e);
        let Some(scope) = self.scopes.of(start_of(e)) else {
            return self.too_deep(here);
        };
        let func = self.function(Parts {
            kind: FuncKind::Arrow,
            name: "<lambda>",
            name_span: here,
            span: here,
            scope,
            params: e.parameters.as_deref(),
            body: Body::Expression(&e.body),
            is_async: false,
            returns: None,
            class: None,
            decorators: &[],
            has_self: false,
            fields: None,
        });
        let dst = self.temp();
        self.emit(here, Op::Func { dst, func });
        dst
    }

    pub(super) fn function_def(&mut self, s: &'a ast::StmtFunctionDef) {
        let Some(scope) = self.scopes.of(start_of(s)) else {
            self.too_deep(at(s));
            return;
        };
        // Signatures only; the function follows.
        if has_decorator(&s.decorator_list, &["overload"]) {
            return;
        }
        let decorators: Vec<(Span, Var)> = s
            .decorator_list
            .iter()
            .filter(|d| !is_structural(d))
            .map(|d| (at(&d.expression), self.expr(&d.expression)))
            .collect();
        let kind = if self.outer.is_empty() {
            FuncKind::Function
        } else {
            FuncKind::Arrow
        };
        let parts = Parts {
            kind,
            name: s.name.as_str(),
            name_span: at(&s.name),
            span: span(s.range),
            scope,
            params: Some(&s.parameters),
            body: Body::Statements(&s.body),
            is_async: s.is_async,
            returns: s.returns.as_deref(),
            class: None,
            decorators: &s.decorator_list,
            has_self: false,
            fields: None,
        };
        if let Some(class) = self.class_body() {
            self.method(s, parts, class, decorators);
            return;
        }
        let func = self.function(parts);
        let value = self.decorated(func, at(&s.name), decorators);
        self.write(s.name.as_str(), value, at(&s.name));
    }

    /// `@a @b def f` is `f = a(b(f))`.
    pub(super) fn decorated(
        &mut self,
        func: FuncId,
        here: Span,
        decorators: Vec<(Span, Var)>,
    ) -> Var {
        let mut value = self.temp();
        self.emit(here, Op::Func { dst: value, func });
        for (here, decorator) in decorators.into_iter().rev() {
            value = self.call_op(here, Callee::Value(decorator), &[value], CallKind::Decorate);
        }
        value
    }

    pub(super) fn function(&mut self, parts: Parts<'a>) -> FuncId {
        let name = self.names.intern(parts.name);
        let id = self.new_function(name, parts.kind, parts.span);
        let parent = self.f.id;
        let outer = std::mem::replace(&mut self.f, State::new(id, parts.scope));
        self.outer.push(outer);
        self.f.class = parts.class;
        let params = self.parameters(&parts);
        let has_rest = parts.params.is_some_and(|p| p.vararg.is_some());
        if let Some(fields) = parts.fields {
            self.initialise(fields, None);
        }
        match parts.body {
            Body::Statements(body) => self.statements(body),
            Body::Expression(e) => {
                let value = self.expr(e);
                self.end(at(e), Term::Return(Some(value)));
            }
        }
        let end = Span::new(parts.span.end.saturating_sub(1), parts.span.end);
        self.end(end, Term::Return(None));
        let done = match self.outer.pop() {
            Some(outer) => std::mem::replace(&mut self.f, outer),
            None => State::new(id, 0),
        };
        let return_type = types::annotation(&mut self.names, parts.returns);
        let decorators = parts
            .decorators
            .iter()
            .filter_map(|d| {
                let callee = match &d.expression {
                    Expr::Call(call) => &call.func,
                    other => other,
                };
                types::dotted_name(&mut self.names, callee)
            })
            .collect();
        let is_generator = self.scopes.list[parts.scope].is_generator;
        if let Some(function) = self.module.functions.get_mut(id.0 as usize) {
            function.parent = Some(parent);
            function.class = parts.class;
            function.is_async = parts.is_async;
            function.is_generator = is_generator;
            function.exported = self.outer.is_empty() && !parts.name.starts_with('_');
            function.params = params;
            function.has_rest = has_rest;
            function.vars = done.vars;
            function.blocks = done.blocks;
            function.detours = done.detours;
            function.return_type = return_type;
            function.decorators = decorators;
            function.name_span = parts.name_span;
        }
        id
    }

    /// Registers of the parameters: by position, then `*rest`, those by name only, `**rest`.
    fn parameters(&mut self, parts: &Parts<'a>) -> Vec<Var> {
        let Some(list) = parts.params else {
            return Vec::new();
        };
        let mut all: Vec<&'a ast::Parameter> = list
            .posonlyargs
            .iter()
            .chain(&list.args)
            .map(|p| &p.parameter)
            .collect();
        if parts.has_self && !(list.posonlyargs.is_empty() && list.args.is_empty()) {
            let this = all.remove(0);
            self.f.this = Some(this.name.as_str());
        }
        all.extend(list.vararg.as_deref());
        all.extend(list.kwonlyargs.iter().map(|p| &p.parameter));
        all.extend(list.kwarg.as_deref());
        let raw: Vec<Var> = all.iter().map(|p| self.raw_parameter(p)).collect();
        let mut known = raw.clone();
        for param in list.iter_non_variadic_params() {
            let position = all.iter().position(|p| p.range == param.parameter.range);
            let Some((i, &dst)) = position.and_then(|i| Some((i, raw.get(i)?))) else {
                continue;
            };
            if let Some(value) = self.given(&param.parameter, param.default.as_deref(), dst) {
                known[i] = value;
            } else if let Some(default) = &param.default
                && !matches!(default.as_ref(), Expr::NoneLiteral(_))
            {
                let value = self.expr(default);
                let from = vec![dst, value];
                self.emit(at(default.as_ref()), Op::Phi { dst, from });
            }
        }
        for (param, value) in all.iter().zip(&known) {
            self.parameter(param, *value);
        }
        raw
    }

    fn raw_parameter(&mut self, param: &'a ast::Parameter) -> Var {
        let ty = types::annotation(&mut self.names, param.annotation.as_deref());
        self.param(param.name.as_str(), ty)
    }

    fn parameter(&mut self, param: &'a ast::Parameter, raw: Var) {
        let text = param.name.as_str();
        let scope = self.f.scope;
        let Some(symbol) = self.scopes.list[scope].symbols.get_mut(text) else {
            return;
        };
        if symbol.captured {
            let kind = if symbol.bound > 1 {
                VarKind::Let
            } else {
                VarKind::Const
            };
            let ty = self
                .f
                .vars
                .get(raw.0 as usize)
                .and_then(|info| info.ty.clone());
            if let Some(cell) = self.make_slot(scope, text, kind) {
                if let Some(info) = self.f.vars.get_mut(cell.var.0 as usize) {
                    info.ty = ty;
                }
                self.emit(at(&param.name), Op::StoreVar { cell, value: raw });
            }
        } else {
            symbol.slot = Some(Cell {
                owner: self.f.id,
                var: raw,
            });
        }
    }

    pub(super) fn param(&mut self, name: &str, ty: Option<TypeRef>) -> Var {
        let name = Some(self.names.intern(name));
        self.f.var(VarInfo {
            name,
            kind: VarKind::Param,
            captured: false,
            lent: false,
            word: false,
            ty: ty.map(Box::new),
        })
    }

    /// Is this the name of the object whose method is being lowered?
    pub(super) fn is_self(&self, expression: &Expr) -> bool {
        let Expr::Name(name) = expression else {
            return false;
        };
        let name = name.id.as_str();
        let Some(owner) = self.scopes.owner(self.f.scope, name) else {
            return false;
        };
        let state = std::iter::once(&self.f)
            .chain(self.outer.iter().rev())
            .find(|s| s.scope == owner);
        state.is_some_and(|s| s.this == Some(name))
    }

    /// The class whose method this is, or stands in.
    pub(super) fn method_class(&self) -> Option<ClassId> {
        std::iter::once(&self.f)
            .chain(self.outer.iter().rev())
            .take(MAX_DEPTH as usize)
            .find_map(|s| s.class)
    }
}

pub(super) fn has_decorator(list: &[ast::Decorator], names: &[&str]) -> bool {
    list.iter().any(|d| {
        let name = match &d.expression {
            Expr::Name(name) => name.id.as_str(),
            Expr::Attribute(attribute) => attribute.attr.as_str(),
            _ => return false,
        };
        names.contains(&name)
    })
}

/// Says what kind of function it is, and gives it back as it was.
fn is_structural(decorator: &ast::Decorator) -> bool {
    has_decorator(
        std::slice::from_ref(decorator),
        &[
            "staticmethod",
            "classmethod",
            "property",
            "cached_property",
            "setter",
            "deleter",
            "getter",
            "abstractmethod",
            "override",
            "final",
            "asynccontextmanager",
            "contextmanager",
        ],
    )
}
