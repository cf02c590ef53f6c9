//! Functions: a state of their own, parameters first.

use oxc_ast::ast::{
    ArrowFunctionBody, ArrowFunctionExpression, BindingPattern, Expression, FormalParameters,
    Function, FunctionBody, TSTypeAnnotation,
};
use oxc_syntax::{scope::ScopeId, symbol::SymbolId};
use toctou_core::ir::{Cell, ClassId, FuncId, FuncKind, Op, Term, TypeRef, Var, VarInfo, VarKind};
use toctou_core::{Name, Span};

use super::class::Fields;
use super::pattern::is_simple;
use super::{Hint, Lower, MAX_DEPTH, State, span};
use crate::scope::{CAPTURED, REFERENCED};
use crate::types;

pub(super) enum Body<'a> {
    Statements(&'a FunctionBody<'a>),
    /// `x => x + 1`
    Expression(&'a Expression<'a>),
    /// A constructor that the source does not write.
    Implied,
    Missing,
}

/// Everything that tells one kind of function from another.
pub(super) struct Parts<'a> {
    pub(super) kind: FuncKind,
    pub(super) hint: Hint,
    pub(super) span: Span,
    pub(super) scope: Option<ScopeId>,
    pub(super) params: Option<&'a FormalParameters<'a>>,
    pub(super) body: Body<'a>,
    pub(super) is_async: bool,
    pub(super) is_generator: bool,
    pub(super) return_type: Option<&'a TSTypeAnnotation<'a>>,
    pub(super) class: Option<ClassId>,
    pub(super) decorators: Vec<Name>,
    /// The name by which a function expression can call itself.
    pub(super) own_name: Option<SymbolId>,
    /// Constructors only.
    pub(super) fields: Option<Fields<'a>>,
    /// A constructor that must call its superclass's.
    pub(super) derived: bool,
}

/// A parameter that is more than a plain register: what is left to do with it.
struct Unbound<'a> {
    raw: Var,
    pattern: &'a BindingPattern<'a>,
    default: Option<&'a Expression<'a>>,
}

impl<'a> Lower<'a, '_> {
    pub(super) fn function_value(
        &mut self,
        function: &'a Function<'a>,
        kind: FuncKind,
        hint: Option<Hint>,
    ) -> Var {
        let at = span(function.span);
        let parts = self.function_parts(function, kind, hint);
        let func = self.function(parts);
        let dst = self.temp();
        self.emit(at, Op::Func { dst, func });
        dst
    }

    pub(super) fn arrow_value(
        &mut self,
        arrow: &'a ArrowFunctionExpression<'a>,
        hint: Option<Hint>,
    ) -> Var {
        let at = span(arrow.span);
        let parts = self.arrow_parts(arrow, hint);
        let func = self.function(parts);
        let dst = self.temp();
        self.emit(at, Op::Func { dst, func });
        dst
    }

    pub(super) fn function_parts(
        &mut self,
        function: &'a Function<'a>,
        kind: FuncKind,
        hint: Option<Hint>,
    ) -> Parts<'a> {
        // `const f = function g() {}`: the name it gives itself is the better one,
        // the place of the other is what a reader looks for.
        let hint = match (&function.id, hint) {
            (Some(id), None) => self.hint(id.name.as_str(), id.span),
            (Some(id), Some(hint)) => Hint {
                exported: hint.exported,
                ..self.hint(id.name.as_str(), id.span)
            },
            (None, Some(hint)) => hint,
            (None, None) => self.hint(
                "<anonymous>",
                oxc_span::Span::new(function.span.start, function.params.span.end),
            ),
        };
        Parts {
            kind,
            hint,
            span: span(function.span),
            scope: function.scope_id.get(),
            params: Some(&function.params),
            body: match &function.body {
                Some(body) => Body::Statements(body),
                None => Body::Missing,
            },
            is_async: function.r#async,
            is_generator: function.generator,
            return_type: function.return_type.as_deref(),
            class: None,
            decorators: Vec::new(),
            own_name: function
                .id
                .as_ref()
                .filter(|_| function.is_expression())
                .and_then(|id| id.symbol_id.get()),
            fields: None,
            derived: false,
        }
    }

    pub(super) fn arrow_parts(
        &mut self,
        arrow: &'a ArrowFunctionExpression<'a>,
        hint: Option<Hint>,
    ) -> Parts<'a> {
        let hint = match hint {
            Some(hint) => hint,
            None => self.hint(
                "<anonymous>",
                oxc_span::Span::new(arrow.span.start, arrow.params.span.end),
            ),
        };
        let body = match &arrow.body {
            ArrowFunctionBody::FunctionBody(body) => Body::Statements(body),
            other => match other.as_expression() {
                Some(e) => Body::Expression(e),
                None => Body::Missing,
            },
        };
        Parts {
            kind: FuncKind::Arrow,
            hint,
            span: span(arrow.span),
            scope: arrow.scope_id.get(),
            params: Some(&arrow.params),
            body,
            is_async: arrow.r#async,
            is_generator: false,
            return_type: arrow.return_type.as_deref(),
            class: None,
            decorators: Vec::new(),
            own_name: None,
            fields: None,
            derived: false,
        }
    }

    pub(super) fn function(&mut self, parts: Parts<'a>) -> FuncId {
        let id = self.new_function(parts.hint.name, parts.kind, parts.span);
        let parent = self.f.id;
        let room = self.spare.pop().unwrap_or_default();
        let outer = std::mem::replace(&mut self.f, State::new(id, room));
        self.outer.push(outer);
        let namespace = self.namespace.take();
        if let Some(slot) = parts
            .scope
            .and_then(|scope| self.scope_state.get_mut(scope.index()))
        {
            *slot = self.outer.len() as u32;
        }

        let (params, has_rest) = self.parameters(&parts);
        self.depth += 1;
        if self.depth >= MAX_DEPTH {
            self.too_deep(parts.span);
        } else {
            self.body(&parts);
        }
        self.depth -= 1;

        self.namespace = namespace;
        let return_type = types::annotation(&mut self.names, parts.return_type);
        let done = match self.outer.pop() {
            Some(outer) => std::mem::replace(&mut self.f, outer),
            None => std::mem::replace(&mut self.f, State::new(parent, Vec::new())),
        };
        let blocks = self.finished_blocks(done.blocks);
        let mut vars = done.vars;
        vars.shrink_to_fit();
        if let Some(function) = self.module.functions.get_mut(id.0 as usize) {
            function.parent = Some(parent);
            function.class = parts.class;
            function.is_async = parts.is_async;
            function.is_generator = parts.is_generator;
            function.exported = parts.hint.exported;
            function.params = params;
            function.has_rest = has_rest;
            function.vars = vars;
            function.blocks = blocks;
            function.detours = done.detours;
            function.return_type = return_type;
            function.decorators = parts.decorators;
            function.name_span = parts.hint.span;
        }
        id
    }

    fn body(&mut self, parts: &Parts<'a>) {
        if let Some(symbol) = parts.own_name
            && self.symbols.has(symbol, REFERENCED)
        {
            let func = self.f.id;
            let dst = self.temp();
            self.emit(parts.hint.span, Op::Func { dst, func });
            self.declare_symbol(symbol, dst, parts.hint.span);
        }
        if let Some(fields) = parts.fields {
            if parts.derived {
                self.f.fields = Some(fields);
            } else {
                self.initialise(fields);
            }
        }
        match parts.body {
            Body::Statements(body) => self.statements(&body.statements),
            Body::Expression(e) => {
                let value = self.expr(e);
                self.end(Self::span_of(e), Term::Return(Some(value)));
            }
            Body::Implied => self.implied_constructor(parts),
            Body::Missing => {}
        }
        // `super()` was in a place that could not be reached, or is missing.
        if let Some(fields) = self.f.fields.take() {
            self.initialise(fields);
        }
        let end = Span::new(parts.span.end.saturating_sub(1), parts.span.end);
        self.end(end, Term::Return(None));
    }

    /// Registers of the parameters, in order; then what takes them apart.
    fn parameters(&mut self, parts: &Parts<'a>) -> (Vec<Var>, bool) {
        let Some(list) = parts.params else {
            // An implied constructor of a derived class passes on what it gets.
            if matches!(parts.body, Body::Implied) && parts.derived {
                let name = self.names.intern("args");
                let var = self.param(Some(name), None);
                return (vec![var], true);
            }
            return (Vec::new(), false);
        };
        let mut params = Vec::with_capacity(list.items.len() + 1);
        let mut unbound = Vec::new();
        for item in &list.items {
            let ty = item
                .type_annotation
                .as_deref()
                .and_then(|a| self.stated_type(&a.type_annotation))
                .or_else(|| types::of_initialiser(&mut self.names, item.initializer.as_deref()?));
            let default = item.initializer.as_deref();
            params.push(self.parameter(&item.pattern, default, ty, &mut unbound));
        }
        if let Some(rest) = &list.rest {
            let ty = types::annotation(&mut self.names, rest.type_annotation.as_deref());
            params.push(self.parameter(&rest.rest.argument, None, ty, &mut unbound));
        }
        for Unbound {
            raw,
            pattern,
            default,
        } in unbound
        {
            let value = match default {
                // It stays the parameter, whichever of the two it is.
                Some(default) if is_simple(default) => {
                    let hint = self.binding_hint(pattern);
                    let at = Self::span_of(default);
                    let other = self.expr_named(default, hint);
                    let from = vec![raw, other];
                    self.emit(at, Op::Phi { dst: raw, from });
                    raw
                }
                Some(default) => {
                    let hint = self.binding_hint(pattern);
                    self.or_default(raw, default, hint)
                }
                None => raw,
            };
            self.bind(pattern, value);
        }
        (params, list.rest.is_some())
    }

    fn param(&mut self, name: Option<Name>, ty: Option<TypeRef>) -> Var {
        self.f.var(VarInfo {
            name,
            kind: VarKind::Param,
            captured: false,
            lent: false,
            word: false,
            ty: ty.map(Box::new),
        })
    }

    fn parameter(
        &mut self,
        pattern: &'a BindingPattern<'a>,
        default: Option<&'a Expression<'a>>,
        ty: Option<TypeRef>,
        unbound: &mut Vec<Unbound<'a>>,
    ) -> Var {
        let id = match pattern {
            BindingPattern::BindingIdentifier(id) => Some(id),
            _ => None,
        };
        let name = id.map(|id| self.names.intern(id.name.as_str()));
        let raw = self.param(name, ty.clone());
        if let Some(symbol) = id.and_then(|id| id.symbol_id.get()) {
            if default.is_none()
                && !self.symbols.has(symbol, CAPTURED)
                && let Some(slot) = self.slots.get_mut(symbol.index())
            {
                *slot = Some(Cell {
                    owner: self.f.id,
                    var: raw,
                });
                return raw;
            }
            self.set_type(symbol, ty);
        }
        unbound.push(Unbound {
            raw,
            pattern,
            default,
        });
        raw
    }
}
