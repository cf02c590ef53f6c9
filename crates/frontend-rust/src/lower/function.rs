//! Functions, closures and `async` blocks.

use syn::{Attribute, Block, Expr, FnArg, Pat, ReturnType};
use toctou_core::Span;
use toctou_core::ir::{Cell, ClassId, FuncId, FuncKind, Op, Var, VarKind};

use super::items::{attribute_path, kind_of};
use super::{Fails, FuncState, Local, Lower, MAX_DEPTH};
use crate::types::is_option;

/// A function as declared.
pub(super) struct Signature<'s> {
    pub(super) sig: &'s syn::Signature,
    pub(super) attrs: &'s [Attribute],
    pub(super) block: Option<&'s Block>,
    pub(super) class: Option<ClassId>,
    pub(super) in_impl: bool,
    /// The trait that it implements, by its name in this file.
    pub(super) of_trait: Option<toctou_core::Name>,
    pub(super) exported: bool,
}

impl Lower<'_> {
    pub(super) fn function(&mut self, f: Signature<'_>) -> FuncId {
        let id = self.new_function();
        let name = self.names.intern(&f.sig.ident.to_string());
        let name_span = self.places.token(f.sig.ident.span());
        let end = f.block.map_or(name_span.end, |b| {
            self.places.token(b.brace_token.span.close()).end
        });
        let span = Span::new(self.places.token(f.sig.fn_token.span).start, end);
        let receiver = f
            .sig
            .inputs
            .iter()
            .any(|arg| matches!(arg, FnArg::Receiver(_)));
        let kind = kind_of(receiver, f.in_impl);
        let parent = Some(self.f.id);
        let mut state = FuncState::new(id, name, kind, parent, span, name_span);
        state.class = f.class;
        state.is_async = f.sig.asyncness.is_some();
        state.exported = f.exported;
        state.fails = fails(&f.sig.output);
        state.decorators = self.decorators(f.attrs);
        // An implementation is marked by its trait, as others are by an attribute.
        state.decorators.extend(f.of_trait);
        if let Some(marks) = f.class.and_then(|c| self.class_marks.get(&c)) {
            state.decorators.extend(marks.iter().copied());
        }
        if let Some(block) = f.block {
            state.captured = self.captured_in(|finder| {
                syn::visit::Visit::visit_block(finder, block);
            });
        }
        self.enter(state);
        self.with_generics(&f.sig.generics);
        self.f.return_type = self.returned_type(&f.sig.output);
        for arg in &f.sig.inputs {
            if let FnArg::Typed(arg) = arg {
                self.parameter(&arg.pat, Some(&arg.ty));
            }
        }
        if let Some(block) = f.block {
            self.function_body(block);
        }
        self.leave(Span::new(end.saturating_sub(1), end));
        id
    }

    /// The names of attributes, which models know by what they are imported from.
    pub(super) fn decorators(&mut self, attrs: &[Attribute]) -> Vec<toctou_core::Name> {
        let mut out = Vec::new();
        for attr in attrs {
            if attribute_path(attr).is_some()
                && let Some(name) = self.type_name(attr.path())
            {
                out.push(name);
            }
        }
        out
    }

    fn parameter(&mut self, pat: &Pat, ty: Option<&syn::Type>) {
        let at = self.places.pat(pat);
        let var = self.f.var(VarKind::Param, None);
        self.f.params.push(var);
        if let Some(ty) = ty {
            let mut of = ty;
            // `State(app): State<App>`: the pattern takes the wrapper off.
            if let (Pat::TupleStruct(p), syn::Type::Path(t)) = (pat, ty)
                && let (Some(a), Some(b)) = (p.path.segments.last(), t.path.segments.last())
                && a.ident == b.ident
                && let syn::PathArguments::AngleBracketed(args) = &b.arguments
                && let Some(syn::GenericArgument::Type(inner)) = args.args.first()
            {
                of = inner;
            }
            let ty = self.type_ref(of);
            if let Some(info) = self.f.vars.get_mut(var.0 as usize) {
                info.ty = ty.map(Box::new);
            }
        }
        if let Some(ident) = simple(pat)
            && !self.f.captured.contains(&ident)
        {
            let name = self.names.intern(&ident);
            if let Some(info) = self.f.vars.get_mut(var.0 as usize) {
                info.name = Some(name);
            }
            self.add_local(Local {
                name,
                var,
                guard: false,
                held: None,
                taken: false,
                runs: false,
            });
            return;
        }
        if let Some(ident) = simple(pat) {
            let name = self.names.intern(&ident);
            if let Some(info) = self.f.vars.get_mut(var.0 as usize) {
                info.name = Some(name);
            }
        }
        self.bind(pat, var, at);
    }

    pub(super) fn add_local(&mut self, local: Local) {
        if let Some(scope) = self.f.scopes.last_mut() {
            scope.locals.push(local);
        }
    }

    /// Declares a variable with its first value.
    pub(super) fn declare_local(
        &mut self,
        at: Span,
        text: &str,
        value: Option<Var>,
        mutable: bool,
    ) -> Var {
        let name = self.names.intern(text);
        let kind = if mutable {
            VarKind::Let
        } else {
            VarKind::Const
        };
        let var = self.f.var(kind, Some(name));
        let captured = self.f.captured.contains(text);
        if let Some(info) = self.f.vars.get_mut(var.0 as usize) {
            info.captured = captured;
        }
        self.add_local(Local {
            name,
            var,
            guard: false,
            held: None,
            taken: false,
            runs: false,
        });
        if let Some(value) = value {
            if captured {
                let cell = Cell {
                    owner: self.f.id,
                    var,
                };
                self.emit(at, Op::StoreVar { cell, value });
            } else if !self.retarget(value, var) {
                self.emit(
                    at,
                    Op::Copy {
                        dst: var,
                        src: value,
                    },
                );
            }
        }
        var
    }

    /// Where the value was computed by the last instruction, a call, that
    /// instruction writes the variable itself.
    fn retarget(&mut self, from: Var, to: Var) -> bool {
        let is_temp = self
            .f
            .vars
            .get(from.0 as usize)
            .is_some_and(|info| info.kind == VarKind::Temp && info.ty.is_none());
        let guarded = self.f.scopes.iter().any(|s| s.guards.contains(&from));
        let last = self
            .f
            .current
            .and_then(|b| self.f.blocks.get_mut(b.0 as usize))
            .and_then(|b| b.insts.last_mut());
        match last.map(|inst| &mut inst.op) {
            Some(Op::Call { dst, .. } | Op::Await { dst, .. })
                if is_temp && !guarded && *dst == from =>
            {
                *dst = to;
                true
            }
            _ => false,
        }
    }

    fn function_body(&mut self, block: &Block) {
        self.block_tail(block);
    }

    pub(super) fn closure(&mut self, c: &syn::ExprClosure) -> Var {
        let first = match (&c.asyncness, &c.capture) {
            (Some(t), _) => t.span,
            (None, Some(t)) => t.span,
            (None, None) => c.inputs_begin.span,
        };
        let at = self.places.token(first);
        let body_end = self.places.expr(&c.body).end;
        let span = Span::new(at.start, body_end.max(at.end));
        // `|x| async move { … }` is one function that waits.
        let (body, is_async) = match &*c.body {
            Expr::Async(a) => (None, Some(a)),
            other => (Some(other), None),
        };
        let mut state = self.inner(span);
        state.is_async = c.asyncness.is_some() || is_async.is_some();
        state.fails = fails(&c.output);
        state.captured = match is_async {
            Some(a) => self.captured_in(|f| syn::visit::Visit::visit_block(f, &a.block)),
            None => self.captured_in(|f| syn::visit::Visit::visit_expr(f, &c.body)),
        };
        let id = state.id;
        self.enter(state);
        for pat in &c.inputs {
            match pat {
                Pat::Type(typed) => self.parameter(&typed.pat, Some(&typed.ty)),
                other => self.parameter(other, None),
            }
        }
        match (body, is_async) {
            (Some(body), _) => self.tail(body),
            (None, Some(a)) => self.block_tail(&a.block),
            (None, None) => {}
        }
        self.leave(span);
        self.op(span, |dst| Op::Func { dst, func: id })
    }

    fn inner(&mut self, span: Span) -> FuncState {
        let id = self.new_function();
        let name = self.names.intern("<anonymous>");
        FuncState::new(id, name, FuncKind::Arrow, Some(self.f.id), span, span)
    }

    /// `async { … }`: a function without parameters, for whoever waits for it.
    pub(super) fn async_block(&mut self, a: &syn::ExprAsync) -> Var {
        let start = self.places.token(a.async_token.span).start;
        let span = Span::new(
            start,
            self.places.token(a.block.brace_token.span.close()).end,
        );
        let mut state = self.inner(span);
        state.is_async = true;
        state.captured = self.captured_in(|f| syn::visit::Visit::visit_block(f, &a.block));
        let id = state.id;
        self.enter(state);
        self.block_tail(&a.block);
        self.leave(span);
        self.op(span, |dst| Op::Func { dst, func: id })
    }

    /// An expression that somebody else runs, as a function.
    pub(super) fn thunk(&mut self, e: &Expr) -> Var {
        let span = self.places.expr(e);
        if self.depth >= MAX_DEPTH {
            return self.too_deep(span);
        }
        let mut state = self.inner(span);
        state.is_async = true;
        state.captured = self.captured_in(|f| syn::visit::Visit::visit_expr(f, e));
        let id = state.id;
        self.enter(state);
        let value = self.expr(e);
        let done = self.op(span, |dst| Op::Await { dst, src: value });
        self.return_value(Some(done), span);
        self.leave(span);
        self.op(span, |dst| Op::Func { dst, func: id })
    }
}

fn fails(output: &ReturnType) -> Fails {
    if is_option(output) {
        Fails::Null
    } else {
        Fails::Throw
    }
}

/// A pattern that only names the value.
pub(super) fn simple(pat: &Pat) -> Option<String> {
    match pat {
        Pat::Ident(p) if p.subpat.is_none() => Some(p.ident.to_string()),
        _ => None,
    }
}
