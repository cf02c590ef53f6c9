//! Member accesses and calls: `a.b(c)[d]?.e(f)`.
//!
//! Builder and promise chains run to thousands of links in generated code, and
//! the tree is as deep as they are long. So the links are put on a stack and
//! applied one by one from the innermost.

use oxc_ast::ast::{
    Argument, CallExpression, ChainElement, ComputedMemberExpression, Expression, ImportExpression,
    NewExpression, PrivateFieldExpression, StaticMemberExpression, TaggedTemplateExpression,
};
use oxc_span::GetSpan;
use toctou_core::ir::{Arg, CallKind, Callee, Cell, FuncId, Literal, Op, Var};
use toctou_core::{Name, Span};

use super::{Hint, Lower, peel, span, webpack};

#[derive(Clone, Copy)]
pub(super) enum Link<'a> {
    Static(&'a StaticMemberExpression<'a>),
    Computed(&'a ComputedMemberExpression<'a>),
    Private(&'a PrivateFieldExpression<'a>),
    Call(&'a CallExpression<'a>),
    Tag(&'a TaggedTemplateExpression<'a>),
}

/// What the links applied so far stand for. A field is not read before it is
/// known that it is not called.
enum Operand {
    Value(Var),
    Field { obj: Var, name: Name, at: Span },
    Super,
    SuperField { name: Name, at: Span },
}

impl<'a> Lower<'a, '_> {
    pub(super) fn chain_value(&mut self, expression: &'a Expression<'a>) -> Var {
        let at = Self::span_of(expression);
        let operand = self.chain(expression);
        self.operand_value(operand, at)
    }

    fn operand_value(&mut self, operand: Operand, at: Span) -> Var {
        match operand {
            Operand::Value(var) => var,
            Operand::Field { obj, name, at } => self.get_field(at, obj, name),
            Operand::Super => self.this(at),
            Operand::SuperField { name, at } => {
                let obj = self.this(at);
                self.get_field(at, obj, name)
            }
        }
    }

    fn chain(&mut self, expression: &'a Expression<'a>) -> Operand {
        let floor = self.links.len();
        let mut base = peel(expression);
        loop {
            base = match base {
                Expression::StaticMemberExpression(e) => {
                    self.links.push(Link::Static(e));
                    &e.object
                }
                Expression::ComputedMemberExpression(e) => {
                    self.links.push(Link::Computed(e));
                    &e.object
                }
                Expression::PrivateFieldExpression(e) => {
                    self.links.push(Link::Private(e));
                    &e.object
                }
                Expression::CallExpression(e) if let Some(module) = self.handed_on(e) => module,
                Expression::CallExpression(e) if self.required(e).is_none() => {
                    self.links.push(Link::Call(e));
                    &e.callee
                }
                Expression::TaggedTemplateExpression(e) => {
                    self.links.push(Link::Tag(e));
                    &e.tag
                }
                Expression::ChainExpression(e) => match &e.expression {
                    ChainElement::CallExpression(e) => {
                        self.links.push(Link::Call(e));
                        &e.callee
                    }
                    ChainElement::TSNonNullExpression(e) => &e.expression,
                    ChainElement::StaticMemberExpression(e) => {
                        self.links.push(Link::Static(e));
                        &e.object
                    }
                    ChainElement::ComputedMemberExpression(e) => {
                        self.links.push(Link::Computed(e));
                        &e.object
                    }
                    ChainElement::PrivateFieldExpression(e) => {
                        self.links.push(Link::Private(e));
                        &e.object
                    }
                },
                _ => break,
            };
            base = peel(base);
        }
        let mut operand = self.chain_base(base);
        while self.links.len() > floor {
            let Some(link) = self.links.pop() else { break };
            operand = self.link(link, operand);
        }
        operand
    }

    fn chain_base(&mut self, base: &'a Expression<'a>) -> Operand {
        match base {
            Expression::Super(_) => Operand::Super,
            Expression::CallExpression(call) => match self.required(call) {
                Some(specifier) => {
                    Operand::Value(self.namespace_import(specifier, span(call.span)))
                }
                None => Operand::Value(self.opaque(span(call.span), Vec::new())),
            },
            // Compiled code calls `(0, m.f)(x)`: still the function `f` of `m`.
            Expression::SequenceExpression(sequence) => {
                let Some((last, rest)) = sequence.expressions.split_last() else {
                    return Operand::Value(self.null(span(sequence.span)));
                };
                for e in rest {
                    self.expr(e);
                }
                match peel(last) {
                    Expression::StaticMemberExpression(_) => self.chain(last),
                    _ => Operand::Value(self.expr(last)),
                }
            }
            _ => Operand::Value(self.expr(base)),
        }
    }

    fn link(&mut self, link: Link<'a>, operand: Operand) -> Operand {
        match link {
            Link::Static(e) => {
                let name = self.names.intern(e.property.name.as_str());
                self.field(operand, name, span(e.span))
            }
            Link::Private(e) => {
                let text = format!("#{}", e.field.name);
                let name = self.names.intern(&text);
                self.field(operand, name, span(e.span))
            }
            Link::Computed(e) => {
                let at = span(e.span);
                if let Some(name) = self.string_index(&e.expression) {
                    return self.field(operand, name, at);
                }
                let obj = self.operand_value(operand, at);
                let index = self.expr(&e.expression);
                let dst = self.temp();
                self.emit(at, Op::GetIndex { dst, obj, index });
                Operand::Value(dst)
            }
            Link::Call(call) => self.call(call, operand),
            Link::Tag(e) => {
                let at = span(e.span);
                let tag = self.callee(operand, at);
                let strings = e
                    .quasi
                    .quasis
                    .iter()
                    .map(|q| {
                        self.names
                            .intern(q.value.cooked.unwrap_or(q.value.raw).as_str())
                    })
                    .collect();
                let values = e.quasi.expressions.iter().map(|e| self.expr(e)).collect();
                let dst = self.temp();
                self.emit(
                    at,
                    Op::TaggedTemplate {
                        dst,
                        tag,
                        strings,
                        values,
                    },
                );
                Operand::Value(dst)
            }
        }
    }

    fn field(&mut self, operand: Operand, name: Name, at: Span) -> Operand {
        match operand {
            Operand::Super => Operand::SuperField { name, at },
            other => {
                let obj = self.operand_value(other, at);
                Operand::Field { obj, name, at }
            }
        }
    }

    /// `a["b"]` is `a.b`.
    pub(super) fn string_index(&mut self, index: &Expression<'a>) -> Option<Name> {
        match peel(index) {
            Expression::StringLiteral(lit) => Some(self.names.intern(lit.value.as_str())),
            Expression::TemplateLiteral(lit) if lit.expressions.is_empty() => {
                let text = lit.single_quasi()?;
                Some(self.names.intern(text.as_str()))
            }
            _ => None,
        }
    }

    fn callee(&mut self, operand: Operand, at: Span) -> Callee {
        match operand {
            Operand::Value(var) => Callee::Value(var),
            Operand::Field { obj, name, .. } => Callee::Method { obj, name },
            Operand::Super => Callee::Value(self.this(at)),
            Operand::SuperField { name, .. } => Callee::Super(Some(name)),
        }
    }

    fn call(&mut self, call: &'a CallExpression<'a>, operand: Operand) -> Operand {
        let at = span(call.span);
        let is_super = matches!(operand, Operand::Super);
        let callee = if is_super {
            Callee::Super(None)
        } else {
            self.callee(operand, at)
        };
        let args = self.args(&call.arguments);
        let dst = self.temp();
        self.emit(
            at,
            Op::Call {
                dst,
                callee,
                args: args.into(),
                kind: CallKind::Plain,
            },
        );
        if is_super && let Some(fields) = self.f.fields.take() {
            self.initialise(fields);
        }
        Operand::Value(dst)
    }

    pub(super) fn new_expression(&mut self, new: &'a NewExpression<'a>) -> Var {
        let at = span(new.span);
        let operand = self.chain(&new.callee);
        let callee = self.callee(operand, at);
        let args = self.args(&new.arguments);
        let dst = self.temp();
        self.emit(
            at,
            Op::Call {
                dst,
                callee,
                args: args.into(),
                kind: CallKind::New,
            },
        );
        dst
    }

    pub(super) fn args(&mut self, arguments: &'a [Argument<'a>]) -> Vec<Arg> {
        let mut args = Vec::with_capacity(arguments.len());
        for argument in arguments {
            let (value, spread) = match argument {
                Argument::SpreadElement(e) => (self.expr(&e.argument), true),
                other => match other.as_expression() {
                    Some(e) => {
                        let hint = self.callback_hint(arguments, e);
                        (self.expr_named(e, hint), false)
                    }
                    None => continue,
                },
            };
            args.push(Arg {
                value,
                spread,
                name: None,
            });
        }
        args
    }

    /// `server.tool("delete_file", …, cb)`: the callback is best known as `delete_file`.
    fn callback_hint(
        &mut self,
        arguments: &'a [Argument<'a>],
        argument: &Expression<'a>,
    ) -> Option<Hint> {
        let at = match peel(argument) {
            Expression::ArrowFunctionExpression(f) => {
                oxc_span::Span::new(f.span.start, f.params.span.end)
            }
            Expression::FunctionExpression(f) if f.id.is_none() => {
                oxc_span::Span::new(f.span.start, f.params.span.end)
            }
            _ => return None,
        };
        let label = match arguments
            .first()
            .and_then(Argument::as_expression)
            .map(peel)
        {
            Some(Expression::StringLiteral(lit)) if !lit.value.is_empty() => lit.value.as_str(),
            _ => "<callback>",
        };
        Some(self.hint(label, at))
    }

    pub(super) fn delete(&mut self, at: Span, argument: &'a Expression<'a>) -> Var {
        let Some((obj, last)) = self.chain_to_delete(argument) else {
            self.expr(argument);
            return self.constant(at, Literal::Bool(true));
        };
        let key = match last {
            Link::Static(e) => Ok(self.names.intern(e.property.name.as_str())),
            Link::Private(e) => {
                let text = format!("#{}", e.field.name);
                Ok(self.names.intern(&text))
            }
            Link::Computed(e) => match self.string_index(&e.expression) {
                Some(name) => Ok(name),
                None => Err(self.expr(&e.expression)),
            },
            Link::Call(_) | Link::Tag(_) => return self.constant(at, Literal::Bool(true)),
        };
        self.emit(at, Op::Delete { obj, key });
        self.constant(at, Literal::Bool(true))
    }

    /// The object and the last link of `a.b.c`, which is not read but deleted.
    fn chain_to_delete(&mut self, argument: &'a Expression<'a>) -> Option<(Var, Link<'a>)> {
        let (object, last) = match peel(argument) {
            Expression::StaticMemberExpression(e) => (&e.object, Link::Static(e)),
            Expression::ComputedMemberExpression(e) => (&e.object, Link::Computed(e)),
            Expression::PrivateFieldExpression(e) => (&e.object, Link::Private(e)),
            Expression::ChainExpression(e) => match &e.expression {
                ChainElement::StaticMemberExpression(e) => (&e.object, Link::Static(e)),
                ChainElement::ComputedMemberExpression(e) => (&e.object, Link::Computed(e)),
                ChainElement::PrivateFieldExpression(e) => (&e.object, Link::Private(e)),
                _ => return None,
            },
            _ => return None,
        };
        Some((self.expr(object), last))
    }

    /// The specifier of `require("x")`, if that is what the call is or was before bundling.
    fn required(&self, call: &CallExpression<'a>) -> Option<&'a str> {
        let call = in_helper(call).unwrap_or(call);
        if let Some(package) = self.bundled(call) {
            return Some(package);
        }
        let is_bundled = self.webpack.is_some() && webpack::is_require(&call.callee);
        if call.arguments.len() != 1 || !is_bundled && !self.is_global(&call.callee, "require") {
            return None;
        }
        match call.arguments.first()?.as_expression()? {
            // The bundle's own modules have paths or numbers.
            Expression::StringLiteral(lit) if is_bundled && lit.value.starts_with(['.', '/']) => {
                None
            }
            Expression::StringLiteral(lit) => Some(lit.value.as_str()),
            Expression::TemplateLiteral(lit) => lit.single_quasi().map(|text| text.as_str()),
            _ => None,
        }
    }

    /// `import("x")`: the namespace, which the `await` round it hands on.
    pub(super) fn import_expression(&mut self, e: &'a ImportExpression<'a>) -> Var {
        let at = span(e.span);
        match peel(&e.source) {
            Expression::StringLiteral(lit) => self.namespace_import(lit.value.as_str(), at),
            Expression::TemplateLiteral(lit) if lit.expressions.is_empty() => {
                let text = lit.single_quasi().map_or("", |text| text.as_str());
                self.namespace_import(text, at)
            }
            other => {
                let source = self.expr(other);
                self.opaque(span(e.source.span()), vec![source])
            }
        }
    }

    fn namespace_import(&mut self, specifier: &str, at: Span) -> Var {
        let var = self.namespace_var(specifier);
        let dst = self.temp();
        let cell = Cell {
            owner: FuncId(0),
            var,
        };
        self.emit(at, Op::LoadVar { dst, cell });
        dst
    }
}

/// What compilers write round `require` for a module of the other system.
const HELPERS: &[&str] = &[
    "__toESM",
    "__importStar",
    "__importDefault",
    "_interopRequireWildcard",
    "_interopRequireDefault",
    "_interop_require_wildcard",
    "_interop_require_default",
    "_interopNamespaceDefault",
];

/// The call in `__toESM(require("x"))`: what it gives is the module.
fn in_helper<'e, 'a>(call: &'e CallExpression<'a>) -> Option<&'e CallExpression<'a>> {
    let name = match peel(&call.callee) {
        Expression::Identifier(id) => id.name.as_str(),
        Expression::StaticMemberExpression(e) => e.property.name.as_str(),
        _ => return None,
    };
    match call.arguments.first()?.as_expression()? {
        Expression::CallExpression(inner) if HELPERS.contains(&name) => Some(inner),
        _ => None,
    }
}
