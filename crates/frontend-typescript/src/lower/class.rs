//! Classes.
//!
//! Field initialisers run in the constructor, so they are lowered into it;
//! a class that has some but no constructor gets one. Static ones run where
//! the class stands.

use oxc_ast::ast::{
    AccessorProperty, Class as ClassNode, ClassElement, Decorator, Expression, FormalParameters,
    MethodDefinition, MethodDefinitionKind, PropertyDefinition, PropertyKey,
};
use oxc_span::GetSpan;
use toctou_core::ir::{
    Arg, CallKind, Callee, Class, ClassId, Field, FuncKind, Op, TypeDef, TypeRef, Var,
};
use toctou_core::{Name, Span};

use super::function::{Body, Parts};
use super::{Hint, Lower, peel, span};
use crate::scope::EXPORTED;
use crate::types;

/// What a constructor has to set: parameter properties, then fields.
#[derive(Clone, Copy)]
pub(super) struct Fields<'a> {
    class: &'a ClassNode<'a>,
    id: ClassId,
    params: Option<&'a FormalParameters<'a>>,
}

/// A property or accessor of a class body, in one shape.
struct Property<'a> {
    key: &'a PropertyKey<'a>,
    value: Option<&'a Expression<'a>>,
    is_static: bool,
    span: Span,
}

fn property<'a>(element: &'a ClassElement<'a>) -> Option<Property<'a>> {
    match element {
        ClassElement::PropertyDefinition(p) => Some(Property {
            key: &p.key,
            value: p.value.as_ref(),
            is_static: p.r#static,
            span: span(p.span),
        }),
        ClassElement::AccessorProperty(p) => Some(Property {
            key: &p.key,
            value: p.value.as_ref(),
            is_static: p.r#static,
            span: span(p.span),
        }),
        _ => None,
    }
}

impl<'a> Lower<'a, '_> {
    pub(super) fn class_declaration(&mut self, class: &'a ClassNode<'a>) {
        let Some(id) = &class.id else { return };
        let mut hint = self.hint(id.name.as_str(), id.span);
        hint.exported = id
            .symbol_id
            .get()
            .is_some_and(|symbol| self.symbols.has(symbol, EXPORTED));
        self.class_value(class, Some(hint));
    }

    pub(super) fn class_value(&mut self, class: &'a ClassNode<'a>, hint: Option<Hint>) -> Var {
        let at = span(class.span);
        let exported = hint.is_some_and(|hint| hint.exported);
        let name = match (&class.id, hint) {
            (Some(id), _) => self.names.intern(id.name.as_str()),
            (None, Some(hint)) => hint.name,
            (None, None) => self.names.intern("<anonymous>"),
        };
        let symbol = class.id.as_ref().and_then(|id| id.symbol_id.get());
        if class.declare {
            let dst = self.temp();
            self.emit(at, Op::Global { dst, name });
            if let Some(symbol) = symbol {
                self.write_symbol(symbol, dst, at);
            }
        }
        let extends = class.heritage_expression().and_then(|e| {
            let name = types::dotted(&mut self.names, e);
            if name.is_none() {
                self.expr(e);
            }
            name
        });
        let implements = class
            .implements
            .iter()
            .filter_map(|i| types::type_name(&mut self.names, &i.expression))
            .collect();
        let fields = self.type_arguments(class.heritage_type_arguments());
        let id = self.new_class(Class {
            name,
            is_interface: class.declare,
            extends,
            implements,
            constructor: None,
            methods: Vec::new(),
            fields,
            word: false,
            table: None,
            unique: Vec::new(),
            exported,
            span: at,
        });
        if class.is_declaration() {
            self.type_def(name, TypeDef::Class(id));
        }
        let dst = self.temp();
        if !class.declare {
            self.emit(at, Op::Class { dst, class: id });
            if let Some(symbol) = symbol {
                self.write_symbol(symbol, dst, at);
            }
        }
        self.members(class, id);
        self.static_parts(class, id, dst);
        dst
    }

    pub(super) fn new_class(&mut self, class: Class) -> ClassId {
        let id = ClassId(self.module.classes.len() as u32);
        self.module.classes.push(class);
        id
    }

    pub(super) fn type_def(&mut self, name: Name, def: TypeDef) {
        // Types inside functions cannot be named from outside.
        if !self.outer.is_empty() {
            return;
        }
        let name = if self.namespace_prefix.is_empty() {
            name
        } else {
            let text = format!("{}{}", self.namespace_prefix, self.names.text(name));
            self.names.intern(&text)
        };
        self.module.types.push((name, def));
    }

    fn members(&mut self, class: &'a ClassNode<'a>, id: ClassId) {
        let mut constructor = None;
        let mut needs_constructor = false;
        for element in &class.body.body {
            match element {
                ClassElement::MethodDefinition(method) => {
                    if method.kind == MethodDefinitionKind::Constructor {
                        if method.value.body.is_some() {
                            constructor = Some(&**method);
                        }
                        self.parameter_properties(&method.value.params, id);
                    } else {
                        self.method(method, id);
                    }
                }
                ClassElement::PropertyDefinition(p) => {
                    self.property_field(p, id);
                    needs_constructor |= p.value.is_some() && !p.r#static;
                }
                ClassElement::AccessorProperty(p) => {
                    self.accessor_field(p, id);
                    needs_constructor |= p.value.is_some() && !p.r#static;
                }
                ClassElement::StaticBlock(_) | ClassElement::TSIndexSignature(_) => {}
            }
        }
        let fields = |params| Some(Fields { class, id, params });
        let derived = class.heritage.is_some();
        let func = if let Some(method) = constructor {
            let name = self.names.intern("constructor");
            let hint = Hint {
                name,
                span: span(method.key.span()),
                exported: false,
            };
            let mut parts = self.function_parts(&method.value, FuncKind::Constructor, Some(hint));
            parts.class = Some(id);
            parts.span = span(method.span);
            parts.fields = fields(Some(&*method.value.params));
            parts.derived = derived;
            self.function(parts)
        } else if needs_constructor && !class.declare {
            let name = self.names.intern("constructor");
            let at = class
                .id
                .as_ref()
                .map_or(span(class.span), |id| span(id.span));
            self.function(Parts {
                kind: FuncKind::Constructor,
                hint: Hint {
                    name,
                    span: at,
                    exported: false,
                },
                span: span(class.span),
                scope: None,
                params: None,
                body: Body::Implied,
                is_async: false,
                is_generator: false,
                return_type: None,
                class: Some(id),
                decorators: Vec::new(),
                own_name: None,
                fields: fields(None),
                derived,
            })
        } else {
            return;
        };
        if let Some(class) = self.class_mut(id) {
            class.constructor = Some(func);
        }
    }

    /// `constructor(...args) { super(...args); <fields> }`
    pub(super) fn implied_constructor(&mut self, parts: &Parts<'a>) {
        if !parts.derived {
            return;
        }
        let args = vec![Arg {
            value: Var(0),
            spread: true,
            name: None,
        }];
        let dst = self.temp();
        self.emit(
            parts.hint.span,
            Op::Call {
                dst,
                callee: Callee::Super(None),
                args: args.into(),
                kind: CallKind::Plain,
            },
        );
    }

    fn method(&mut self, method: &'a MethodDefinition<'a>, id: ClassId) {
        let name = self.member_name(&method.key);
        if method.value.body.is_none() {
            // One of several signatures of a method that follows.
            if !method.r#type.is_abstract() && self.class_mut(id).is_some_and(|c| !c.is_interface) {
                return;
            }
            // Abstract or ambient: only its type is known.
            let ty = types::annotation(&mut self.names, method.value.return_type.as_deref());
            self.add_field(id, name, ty, method.r#static, false, span(method.span));
            return;
        }
        let kind = match method.kind {
            MethodDefinitionKind::Get => FuncKind::Getter,
            MethodDefinitionKind::Set => FuncKind::Setter,
            _ if method.r#static => FuncKind::StaticMethod,
            _ => FuncKind::Method,
        };
        let hint = Hint {
            name,
            span: span(method.key.span()),
            exported: false,
        };
        let mut parts = self.function_parts(&method.value, kind, Some(hint));
        parts.class = Some(id);
        parts.span = span(method.span);
        parts.decorators = self.decorators(&method.decorators);
        let func = self.function(parts);
        if let Some(class) = self.class_mut(id) {
            class.methods.push((name, func));
        }
    }

    fn decorators(&mut self, decorators: &'a [Decorator<'a>]) -> Vec<Name> {
        decorators
            .iter()
            .filter_map(|decorator| {
                let callee = match peel(&decorator.expression) {
                    Expression::CallExpression(call) => &call.callee,
                    other => other,
                };
                types::dotted(&mut self.names, callee)
            })
            .collect()
    }

    fn member_name(&mut self, key: &PropertyKey<'a>) -> Name {
        self.static_key(key)
            .unwrap_or_else(|| self.names.intern("[computed]"))
    }

    fn add_field(
        &mut self,
        id: ClassId,
        name: Name,
        ty: Option<TypeRef>,
        is_static: bool,
        read_only: bool,
        span: Span,
    ) {
        if let Some(class) = self.class_mut(id) {
            class.fields.push(Field {
                name,
                ty,
                is_static,
                read_only,
                word: false,
                span,
            });
        }
    }

    fn property_field(&mut self, p: &'a PropertyDefinition<'a>, id: ClassId) {
        let name = self.member_name(&p.key);
        let ty = types::annotation(&mut self.names, p.type_annotation.as_deref())
            .or_else(|| types::of_initialiser(&mut self.names, p.value.as_ref()?));
        self.add_field(id, name, ty, p.r#static, p.readonly, span(p.span));
    }

    fn accessor_field(&mut self, p: &'a AccessorProperty<'a>, id: ClassId) {
        let name = self.member_name(&p.key);
        let ty = types::annotation(&mut self.names, p.type_annotation.as_deref())
            .or_else(|| types::of_initialiser(&mut self.names, p.value.as_ref()?));
        self.add_field(id, name, ty, p.r#static, false, span(p.span));
    }

    /// `constructor(private store: Store)` declares a field.
    fn parameter_properties(&mut self, params: &'a FormalParameters<'a>, id: ClassId) {
        for param in &params.items {
            if !param.has_modifier() {
                continue;
            }
            let Some(binding) = param.pattern.get_binding_identifier() else {
                continue;
            };
            let name = self.names.intern(binding.name.as_str());
            let ty = types::annotation(&mut self.names, param.type_annotation.as_deref())
                .or_else(|| types::of_initialiser(&mut self.names, param.initializer.as_deref()?));
            self.add_field(id, name, ty, false, param.readonly, span(param.span));
        }
    }

    /// Sets the fields, in the constructor that is being lowered.
    pub(super) fn initialise(&mut self, fields: Fields<'a>) {
        for param in fields.params.iter().flat_map(|params| &params.items) {
            let Some(binding) = param.pattern.get_binding_identifier() else {
                continue;
            };
            let at = span(binding.span);
            if param.has_modifier()
                && let Some(symbol) = binding.symbol_id.get()
                && let Some(value) = self.read_symbol(symbol, at)
            {
                let obj = self.this(at);
                let field = self.names.intern(binding.name.as_str());
                self.emit(at, Op::SetField { obj, field, value });
            }
        }
        for element in &fields.class.body.body {
            if let Some(p) = property(element)
                && !p.is_static
            {
                self.initialise_one(&p, fields.id, None);
            }
        }
    }

    fn initialise_one(&mut self, p: &Property<'a>, id: ClassId, on: Option<Var>) {
        let Some(init) = p.value else { return };
        let name = self.static_key(p.key);
        let hint = Hint {
            name: self.member_name(p.key),
            span: span(p.key.span()),
            exported: false,
        };
        // A function in a field is a method by another name.
        let mut parts = match peel(init) {
            Expression::ArrowFunctionExpression(arrow) => Some(self.arrow_parts(arrow, Some(hint))),
            Expression::FunctionExpression(function) => {
                Some(self.function_parts(function, FuncKind::Function, Some(hint)))
            }
            _ => None,
        };
        let value = match parts.take() {
            Some(mut parts) => {
                parts.class = Some(id);
                let func = self.function(parts);
                if let Some(class) = self.class_mut(id) {
                    class.methods.push((hint.name, func));
                }
                let dst = self.temp();
                self.emit(p.span, Op::Func { dst, func });
                dst
            }
            None => self.expr_named(init, Some(hint)),
        };
        let obj = match on {
            Some(class) => class,
            None => self.this(p.span),
        };
        match (name, p.key.as_expression()) {
            (Some(field), _) => self.emit(p.span, Op::SetField { obj, field, value }),
            (None, Some(key)) => {
                let index = self.expr(key);
                self.emit(p.span, Op::SetIndex { obj, index, value });
            }
            (None, None) => {}
        }
    }

    fn static_parts(&mut self, class: &'a ClassNode<'a>, id: ClassId, value: Var) {
        if class.declare {
            return;
        }
        let this = self.f.this.replace(value);
        for element in &class.body.body {
            if let ClassElement::StaticBlock(block) = element {
                self.statements(&block.body);
            } else if let Some(p) = property(element)
                && p.is_static
            {
                self.initialise_one(&p, id, Some(value));
            }
        }
        self.f.this = this;
    }
}
