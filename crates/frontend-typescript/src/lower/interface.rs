//! Interfaces and type aliases: classes without code, for their fields' types.

use oxc_ast::ast::{
    TSInterfaceDeclaration, TSSignature, TSType, TSTypeAliasDeclaration,
    TSTypeParameterInstantiation,
};
use oxc_span::GetSpan;
use toctou_core::Name;
use toctou_core::ir::{Class, Field, TypeDef, TypeRef, type_argument};

use super::{Lower, span};
use crate::scope::EXPORTED;
use crate::types;

impl<'a> Lower<'a, '_> {
    pub(super) fn interface(&mut self, d: &'a TSInterfaceDeclaration<'a>) {
        let name = self.names.intern(d.id.name.as_str());
        let mut parents: Vec<Name> = d
            .extends
            .iter()
            .filter_map(|e| types::type_name(&mut self.names, &e.type_name))
            .collect();
        let extends = if parents.is_empty() {
            None
        } else {
            Some(parents.remove(0))
        };
        let exported =
            d.id.symbol_id
                .get()
                .is_some_and(|symbol| self.symbols.has(symbol, EXPORTED));
        let fields = self.signatures(&d.body.body);
        let id = self.new_class(Class {
            name,
            is_interface: true,
            extends,
            implements: parents,
            constructor: None,
            methods: Vec::new(),
            fields,
            word: false,
            table: None,
            unique: Vec::new(),
            exported,
            span: span(d.span),
        });
        self.type_def(name, TypeDef::Class(id));
    }

    pub(super) fn type_alias(&mut self, d: &'a TSTypeAliasDeclaration<'a>) {
        let name = self.names.intern(d.id.name.as_str());
        // `A & { … }` has fields of its own and those of `A`.
        let (members, extends) = match &d.type_annotation {
            TSType::TSTypeLiteral(literal) => (Some(&literal.members), None),
            TSType::TSIntersectionType(both) => {
                let literal = both.types.iter().find_map(|ty| match ty {
                    TSType::TSTypeLiteral(literal) => Some(&literal.members),
                    _ => None,
                });
                let named = both
                    .types
                    .iter()
                    .find_map(|ty| types::type_ref(&mut self.names, ty));
                (literal, named.map(|ty| ty.name))
            }
            _ => (None, None),
        };
        let Some(members) = members else {
            if let Some(ty) = types::type_ref(&mut self.names, &d.type_annotation) {
                self.type_def(name, TypeDef::Alias(ty));
            }
            return;
        };
        let fields = self.signatures(members);
        let exported =
            d.id.symbol_id
                .get()
                .is_some_and(|symbol| self.symbols.has(symbol, EXPORTED));
        let id = self.new_class(Class {
            name,
            is_interface: true,
            extends,
            implements: Vec::new(),
            constructor: None,
            methods: Vec::new(),
            fields,
            word: false,
            table: None,
            unique: Vec::new(),
            exported,
            span: span(d.span),
        });
        self.type_def(name, TypeDef::Class(id));
    }

    /// The types that a class gives to what it extends, as fields of its own.
    pub(super) fn type_arguments(
        &mut self,
        args: Option<&'a TSTypeParameterInstantiation<'a>>,
    ) -> Vec<Field> {
        let mut fields = Vec::new();
        for (i, ty) in args.into_iter().flat_map(|a| &a.params).enumerate() {
            let at = span(ty.span());
            let Some(ty) = self.stated_type(ty) else {
                continue;
            };
            fields.push(Field {
                name: self.names.intern(&type_argument(i as u32)),
                ty: Some(ty),
                is_static: false,
                read_only: true,
                word: false,
                span: at,
            });
        }
        fields
    }

    /// A type, also one that is written out where it stands: `env: { KV: KVNamespace }`.
    pub(super) fn stated_type(&mut self, ty: &'a TSType<'a>) -> Option<TypeRef> {
        let TSType::TSTypeLiteral(literal) = ty else {
            return types::type_ref(&mut self.names, ty);
        };
        let fields = self.signatures(&literal.members);
        if fields.iter().all(|f| f.ty.is_none()) {
            return None;
        }
        let at = span(literal.span);
        let name = self.names.intern(&format!("<type {}>", at.start));
        let id = self.new_class(Class {
            name,
            is_interface: true,
            extends: None,
            implements: Vec::new(),
            constructor: None,
            methods: Vec::new(),
            fields,
            word: false,
            table: None,
            unique: Vec::new(),
            exported: false,
            span: at,
        });
        self.module.types.push((name, TypeDef::Class(id)));
        Some(TypeRef {
            name,
            element: None,
        })
    }

    /// A method of an interface is a field of the type it returns.
    fn signatures(&mut self, list: &'a [TSSignature<'a>]) -> Vec<Field> {
        let mut fields = Vec::with_capacity(list.len());
        for signature in list {
            let (key, ty, read_only, at) = match signature {
                TSSignature::TSPropertySignature(p) => {
                    let ty = types::annotation(&mut self.names, p.type_annotation.as_deref());
                    (&p.key, ty, p.readonly, p.span)
                }
                TSSignature::TSMethodSignature(m) => {
                    let ty = types::annotation(&mut self.names, m.return_type.as_deref());
                    (&m.key, ty, false, m.span)
                }
                _ => continue,
            };
            let Some(name) = self.static_key(key) else {
                continue;
            };
            fields.push(Field {
                name,
                ty,
                is_static: false,
                read_only,
                word: false,
                span: span(at),
            });
        }
        fields
    }
}
