//! Calls: functions by their path, methods, constructors that look like calls.

use syn::{Expr, ExprCall, ExprMethodCall};
use toctou_core::Span;
use toctou_core::ir::{Arg, CallKind, Callee, Op, Var};

use super::Lower;
use super::expr::is_self;
use super::guards::{is_held, may_hold};
use super::paths::{is_type_name, segments};
use super::pattern::bare;

/// `spawn(…)`, `task::spawn_blocking(…)`: what it is given runs beside the caller.
pub(super) fn starts_work(func: &Expr) -> bool {
    match func {
        Expr::Path(p) => p
            .path
            .segments
            .last()
            .is_some_and(|s| s.ident.to_string().starts_with("spawn")),
        _ => false,
    }
}

impl Lower<'_> {
    pub(super) fn invoke(&mut self, at: Span, callee: Var, args: Vec<Arg>) -> Var {
        self.op(at, |dst| Op::Call {
            dst,
            callee: Callee::Value(callee),
            args: args.into(),
            kind: CallKind::Plain,
        })
    }

    fn args<'e>(&mut self, args: impl Iterator<Item = &'e Expr>) -> Vec<Arg> {
        args.map(|e| Arg {
            value: self.waited_for(e),
            spread: false,
            name: None,
        })
        .collect()
    }

    /// A value that somebody waits for: `timeout(d, async { … })`. Whoever that
    /// is, an `async` block runs when its turn comes, and that is here.
    pub(super) fn waited_for(&mut self, e: &Expr) -> Var {
        let value = self.expr(e);
        if self.is_block_to_run(e) {
            let at = self.places.expr(e);
            return self.invoke(at, value, Vec::new());
        }
        value
    }

    fn is_block_to_run(&mut self, e: &Expr) -> bool {
        match bare(e) {
            Expr::Async(_) => true,
            Expr::Path(p) => p.path.get_ident().is_some_and(|ident| {
                let name = self.names.intern(&ident.to_string());
                self.local(name).is_some_and(|(_, l)| l.runs)
            }),
            _ => false,
        }
    }

    /// What somebody else runs: a closure, a block, or a call that is wrapped in one.
    fn work_args<'e>(&mut self, args: impl Iterator<Item = &'e Expr>) -> Vec<Arg> {
        args.map(|e| {
            let value = match bare(e) {
                Expr::Call(_) | Expr::MethodCall(_) | Expr::Await(_) => self.thunk(e),
                _ => self.expr(e),
            };
            Arg {
                value,
                spread: false,
                name: None,
            }
        })
        .collect()
    }

    pub(super) fn call(&mut self, x: &ExprCall) -> Var {
        let close = self.places.token(x.paren_token.span.close());
        let start = self.places.expr(&x.func).start.min(close.start);
        let at = Span::new(start, close.end);
        let Expr::Path(p) = &*x.func else {
            let callee = self.expr(&x.func);
            let args = self.args(x.args.iter());
            return self.invoke(at, callee, args);
        };
        if p.qself.is_some() {
            let args: Vec<Var> = x.args.iter().map(|e| self.expr(e)).collect();
            return self.derived(at, args);
        }
        let path = segments(&p.path);
        let last = path.last().map_or("", String::as_str);
        match (last, x.args.first()) {
            // Not the value it holds: `Ok(())` and `Some(false)` are there.
            ("Some" | "Ok", Some(value)) if path.len() <= 2 && may_be_no(value) => {
                return self.derived(at, Vec::new());
            }
            ("Some" | "Ok", Some(value)) if path.len() <= 2 => return self.expr(value),
            ("Err", Some(value)) if path.len() <= 2 => {
                let value = self.expr(value);
                return self.derived(at, vec![value]);
            }
            ("drop", Some(value)) if path.len() <= 3 && x.args.len() == 1 => {
                return self.drop_value(at, value);
            }
            _ => {}
        }
        // `Self::helper(self, …)` is a method call.
        if path.len() == 2
            && path[0] == "Self"
            && let Some(first) = x.args.first()
            && is_self(first)
        {
            let obj = self.expr(first);
            let args = self.args(x.args.iter().skip(1));
            let name = self.names.intern(last);
            return self.call_method(at, obj, name, args);
        }
        // A variant or a struct with fields by number.
        if is_type_name(last) && self.local_named(&path).is_none() {
            return self.constructed(at, &path, x);
        }
        let receiver = self.path_receiver(at, &path);
        let value = match receiver {
            Some((obj, name)) => {
                let args = if starts_work(&x.func) {
                    self.work_args(x.args.iter())
                } else {
                    self.args(x.args.iter())
                };
                self.call_method(at, obj, name, args)
            }
            None => {
                let callee = self.path_value(at, &path);
                let args = if starts_work(&x.func) {
                    self.work_args(x.args.iter())
                } else {
                    self.args(x.args.iter())
                };
                self.invoke(at, callee, args)
            }
        };
        if may_hold(last) {
            self.drop_later(value);
        }
        value
    }

    fn local_named(&mut self, path: &[String]) -> Option<()> {
        let [one] = path else { return None };
        let name = self.names.intern(one);
        self.local(name).map(|_| ())
    }

    fn constructed(&mut self, at: Span, path: &[String], x: &ExprCall) -> Var {
        let value = self.array(at, x.args.iter());
        if let [one] = path {
            let item = match one.as_str() {
                "Self" => self
                    .self_class()
                    .and_then(|class| self.classes.get(class.0 as usize).map(|c| c.name)),
                name => self
                    .item(name)
                    .filter(|i| i.class.is_some())
                    .and_then(|i| i.ty),
            };
            if let (Some(name), Some(info)) = (item, self.f.vars.get_mut(value.0 as usize)) {
                info.ty = Some(Box::new(toctou_core::ir::TypeRef {
                    name,
                    element: None,
                }));
            }
        }
        value
    }

    pub(super) fn call_method(
        &mut self,
        at: Span,
        obj: Var,
        name: toctou_core::Name,
        args: Vec<Arg>,
    ) -> Var {
        self.op(at, |dst| Op::Call {
            dst,
            callee: Callee::Method { obj, name },
            args: args.into(),
            kind: CallKind::Plain,
        })
    }

    pub(super) fn method_call(&mut self, x: &ExprMethodCall) -> Var {
        let close = self.places.token(x.paren_token.span.close());
        let start = self.places.expr(&x.receiver).start.min(close.start);
        let at = Span::new(start, close.end);
        let method = x.method.to_string();
        let guard = self.is_guard(&x.receiver);
        // All that a block that has not begun can be asked for is to run in some other way.
        let mut obj = self.waited_for(&x.receiver);
        // A pointer's or handle's copy is the same thing. What is copied out of a
        // guard, or of what came from one, is another.
        if method == "clone" && x.args.is_empty() && self.is_plain(&x.receiver) {
            return self.copy(at, obj);
        }
        if guard && reads_whole(&method) {
            obj = self.content(at, obj);
        }
        let taken = guard && matches!(method.as_str(), "take" | "replace") && x.args.len() < 2;
        if taken {
            let whole = self.content(at, obj);
            let value = match x.args.first() {
                Some(value) => self.expr(value),
                None => self.null(at),
            };
            let field = self.names.intern("*");
            self.emit(at, Op::SetField { obj, field, value });
            return whole;
        }
        if let Some(changed) = self.changed_text(x, at, obj) {
            return changed;
        }
        let name = self.names.intern(&method);
        let args = if method.starts_with("spawn") {
            self.work_args(x.args.iter())
        } else {
            self.args(x.args.iter())
        };
        let value = self.call_method(at, obj, name, args);
        if is_held(x) {
            self.drop_later(value);
        }
        value
    }

    /// A text or path in a variable that is changed in place is another one
    /// from then on: `name.push_str(".tmp")`, `path.set_extension("tmp")`.
    fn changed_text(&mut self, x: &ExprMethodCall, at: Span, old: Var) -> Option<Var> {
        let Expr::Path(path) = bare(&x.receiver) else {
            return None;
        };
        let ident = path.path.get_ident()?.to_string();
        let with = match x.method.to_string().as_str() {
            "push_str" => None,
            "set_extension" => Some("with_extension"),
            "set_file_name" => Some("with_file_name"),
            _ => return None,
        };
        let [part] = x.args.iter().collect::<Vec<_>>()[..] else {
            return None;
        };
        let name = self.names.intern(&ident);
        let (out, local) = self.local(name)?;
        let part = self.expr(part);
        let value = match with {
            None => self.op(at, |dst| Op::Concat {
                dst,
                parts: vec![old, part],
            }),
            Some(method) => {
                let method = self.names.intern(method);
                let arg = Arg {
                    value: part,
                    spread: false,
                    name: None,
                };
                self.call_method(at, old, method, vec![arg])
            }
        };
        self.write_local(at, out, &local, value);
        Some(self.null(at))
    }

    /// A variable or a field of one, not taken from behind a guard.
    fn is_plain(&mut self, e: &Expr) -> bool {
        let mut e = e;
        loop {
            e = match e {
                Expr::Paren(x) => &x.expr,
                Expr::Reference(x) => &x.expr,
                Expr::Field(x) => &x.base,
                Expr::Path(x) => {
                    let Some(ident) = x.path.get_ident() else {
                        return true;
                    };
                    let name = self.names.intern(&ident.to_string());
                    return self.local(name).is_none_or(|(_, l)| !l.guard && !l.taken);
                }
                _ => return false,
            };
        }
    }
}

/// Nothing, a number or a truth: a condition could take it for no.
fn may_be_no(e: &Expr) -> bool {
    match bare(e) {
        Expr::Tuple(x) => x.elems.is_empty(),
        Expr::Lit(x) => !matches!(x.lit, syn::Lit::Str(_) | syn::Lit::ByteStr(_)),
        _ => false,
    }
}

/// Methods of an `Option` or a plain value: they look at all of what a guard protects.
fn reads_whole(method: &str) -> bool {
    matches!(
        method,
        "is_some"
            | "is_none"
            | "as_ref"
            | "as_deref"
            | "as_mut"
            | "clone"
            | "cloned"
            | "copied"
            | "is_some_and"
            | "is_none_or"
            | "to_owned"
            | "to_string"
            | "as_deref_mut"
    )
}
