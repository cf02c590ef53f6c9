//! Calls, and the built-in functions that are really operators.

use ruff_python_ast::{self as ast, Expr};
use toctou_core::Span;
use toctou_core::ir::{Arg, BinOp, CallKind, Callee, KEYWORDS, Key, Op, Var};

use super::{Lower, at};

impl<'a> Lower<'a> {
    pub(super) fn call(&mut self, e: &'a ast::ExprCall) -> Var {
        let span = at(e);
        if let Expr::Name(name) = e.func.as_ref()
            && self.is_builtin(name.id.as_str())
            && let Some(value) = self.builtin(span, name.id.as_str(), &e.arguments)
        {
            return value;
        }
        let kind = if is_class_name(&e.func) {
            CallKind::New
        } else {
            CallKind::Plain
        };
        let mut skip = 0;
        let callee = match e.func.as_ref() {
            Expr::Attribute(attribute) => {
                let name = attribute.attr.as_str();
                if is_super(&attribute.value) {
                    match name {
                        "__init__" => Callee::Super(None),
                        _ => Callee::Super(Some(self.names.intern(name))),
                    }
                } else if name == "__init__"
                    && e.arguments.args.first().is_some_and(|a| self.is_self(a))
                {
                    // `Base.__init__(self, x)`
                    skip = 1;
                    Callee::Super(None)
                } else {
                    let obj = self.expr(&attribute.value);
                    let name = self.names.intern(name);
                    Callee::Method { obj, name }
                }
            }
            other => Callee::Value(self.expr(other)),
        };
        let args = match handed_on(e) {
            Some(partial) => self.unpacked(&e.arguments, partial),
            None => self.arguments(&e.arguments, skip),
        };
        if kind == CallKind::New {
            self.keep_lifespan(span, &args);
        }
        let dst = self.temp();
        self.emit(
            span,
            Op::Call {
                dst,
                callee,
                args: args.into(),
                kind,
            },
        );
        self.made_by_class(e, dst);
        dst
    }

    /// `to_thread(partial(f, a), b)` is `to_thread(f, a, b)`.
    fn unpacked(&mut self, arguments: &'a ast::Arguments, partial: &'a ast::ExprCall) -> Vec<Arg> {
        let mut args = Vec::new();
        for arg in &arguments.args {
            match arg {
                Expr::Call(call) if std::ptr::eq(call, partial) => {
                    args.extend(self.arguments(&call.arguments, 0));
                }
                _ => args.push(Arg {
                    value: self.expr(arg),
                    spread: matches!(arg, Expr::Starred(_)),
                    name: None,
                }),
            }
        }
        args
    }

    pub(super) fn arguments(&mut self, arguments: &'a ast::Arguments, skip: usize) -> Vec<Arg> {
        let mut args = Vec::with_capacity(arguments.args.len() + arguments.keywords.len());
        for arg in arguments.args.iter().skip(skip) {
            args.push(Arg {
                value: self.expr(arg),
                spread: matches!(arg, Expr::Starred(_)),
                name: None,
            });
        }
        for keyword in &arguments.keywords {
            let name = keyword.arg.as_ref().map_or(KEYWORDS, |name| name.as_str());
            args.push(Arg {
                value: self.expr(&keyword.value),
                spread: keyword.arg.is_none(),
                name: Some(self.names.intern(name)),
            });
        }
        args
    }

    /// Nobody has given the name another meaning.
    fn is_builtin(&self, name: &str) -> bool {
        self.scopes.owner(self.f.scope, name).is_none()
    }

    fn builtin(&mut self, span: Span, name: &str, arguments: &'a ast::Arguments) -> Option<Var> {
        let args = &arguments.args;
        let text = |e: &'a Expr| match e {
            Expr::StringLiteral(text) => Some(text.value.to_str()),
            _ => None,
        };
        match (name, args.as_ref()) {
            ("len", [of]) => {
                let obj = self.expr(of);
                Some(self.get_field(span, obj, "length"))
            }
            ("getattr", [of, Expr::FString(_)] | [of, Expr::FString(_), _]) => {
                self.method_by_prefix(of, &args[1])
            }
            ("getattr", [of, field]) => {
                let field = text(field)?;
                let obj = self.expr(of);
                Some(self.get_field(span, obj, field))
            }
            ("getattr", [of, field, default]) => {
                let field = text(field)?;
                let obj = self.expr(of);
                let value = self.get_field(span, obj, field);
                let default = self.expr(default);
                Some(self.phi(span, vec![value, default]))
            }
            ("hasattr", [of, field]) => {
                let field = text(field)?;
                let obj = self.expr(of);
                Some(self.get_field(span, obj, field))
            }
            ("setattr", [of, field, value]) => {
                let field = text(field)?;
                let obj = self.expr(of);
                let value = self.expr(value);
                let field = self.names.intern(field);
                self.emit(span, Op::SetField { obj, field, value });
                Some(self.null(span))
            }
            ("isinstance" | "issubclass", [of, class]) => {
                let left = self.expr(of);
                let right = self.expr(class);
                Some(self.binary(span, BinOp::Test, left, right))
            }
            ("type", [of]) if self.is_self(of) => {
                let class = self.method_class()?;
                let dst = self.temp();
                self.emit(span, Op::Class { dst, class });
                Some(dst)
            }
            ("dict", []) => {
                let mut fields = Vec::new();
                for keyword in &arguments.keywords {
                    let key = match &keyword.arg {
                        Some(name) => Key::Name(self.names.intern(name.as_str())),
                        None => Key::Spread,
                    };
                    fields.push((key, self.expr(&keyword.value)));
                }
                let dst = self.temp();
                self.emit(span, Op::Object { dst, fields });
                Some(dst)
            }
            ("any" | "all" | "next", [Expr::Generator(each)]) => Some(self.one_of(each)),
            ("next", [Expr::Generator(each), default]) => {
                let found = self.one_of(each);
                let default = self.expr(default);
                Some(self.phi(span, vec![found, default]))
            }
            ("list" | "set", []) => {
                let dst = self.temp();
                let items = Vec::new();
                self.emit(span, Op::Array { dst, items });
                Some(dst)
            }
            _ => None,
        }
    }
}

/// The call of `partial` that is handed to who runs it in a thread.
fn handed_on(e: &ast::ExprCall) -> Option<&ast::ExprCall> {
    let Expr::Attribute(callee) = e.func.as_ref() else {
        return None;
    };
    let runs = ["to_thread", "run_in_executor", "run_sync", "submit"];
    if !runs.contains(&callee.attr.as_str()) || !e.arguments.keywords.is_empty() {
        return None;
    }
    e.arguments.args.iter().find_map(|arg| match arg {
        Expr::Call(call) => {
            let name = crate::types::dotted(&call.func)?;
            (name.rsplit('.').next() == Some("partial")).then_some(call)
        }
        _ => None,
    })
}

/// `super()` and `super(C, self)`
fn is_super(expression: &Expr) -> bool {
    matches!(expression, Expr::Call(call)
        if matches!(call.func.as_ref(), Expr::Name(name) if name.id.as_str() == "super"))
}

/// `Store(…)`, `pg.Pool(…)`: names with a capital are those of classes.
pub(super) fn is_class_name(callee: &Expr) -> bool {
    let name = match callee {
        Expr::Name(name) => name.id.as_str(),
        Expr::Attribute(attribute) => attribute.attr.as_str(),
        // `Queue[int]()`
        Expr::Subscript(subscript) => match subscript.value.as_ref() {
            Expr::Name(name) => name.id.as_str(),
            _ => return false,
        },
        _ => return false,
    };
    let name = name.trim_start_matches('_');
    let capital = name.chars().next().is_some_and(char::is_uppercase);
    capital && (name.len() == 1 || name.chars().any(char::is_lowercase))
}
