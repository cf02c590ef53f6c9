//! Enums and namespaces: objects that TypeScript builds.

use oxc_ast::ast::{
    Declaration, TSEnumDeclaration, TSEnumMemberName, TSNamespaceDeclaration,
    TSNamespaceDeclarationBody,
};
use oxc_syntax::symbol::{SymbolFlags, SymbolId};
use toctou_core::Name;
use toctou_core::ir::{Key, Literal, Op};

use super::{Lower, MAX_DEPTH, span};
use crate::scope::REFERENCED;

impl<'a> Lower<'a, '_> {
    pub(super) fn enumeration(&mut self, d: &'a TSEnumDeclaration<'a>) {
        let at = span(d.span);
        let mut fields = Vec::with_capacity(d.body.members.len());
        let mut next: Option<i64> = Some(0);
        for member in &d.body.members {
            let member_at = span(member.span);
            let text = match &member.id {
                TSEnumMemberName::Identifier(id) => id.name.as_str(),
                TSEnumMemberName::String(lit) | TSEnumMemberName::ComputedString(lit) => {
                    lit.value.as_str()
                }
                TSEnumMemberName::ComputedTemplateString(lit) => {
                    lit.single_quasi().map_or("", |text| text.as_str())
                }
            };
            let value = match (&member.initializer, next) {
                (Some(init), _) => {
                    next = match init {
                        oxc_ast::ast::Expression::NumericLiteral(lit)
                            if lit.value.abs() < 9e15 && lit.value.fract() == 0.0 =>
                        {
                            Some(lit.value as i64 + 1)
                        }
                        _ => None,
                    };
                    self.expr(init)
                }
                (None, Some(number)) => {
                    next = Some(number + 1);
                    let name = self.names.intern(&number.to_string());
                    self.constant(member_at, Literal::Num(name))
                }
                (None, None) => self.constant(member_at, Literal::Other),
            };
            // Later members can use earlier ones by their bare name.
            let symbol = d
                .body
                .scope_id
                .get()
                .and_then(|scope| self.scoping.get_binding(scope, text.into()));
            if let Some(symbol) = symbol
                && self.symbols.has(symbol, REFERENCED)
            {
                self.write_symbol(symbol, value, member_at);
            }
            let name = self.names.intern(text);
            fields.push((Key::Name(name), value));
        }
        let dst = self.temp();
        self.emit(at, Op::Object { dst, fields });
        if let Some(symbol) = d.id.symbol_id.get() {
            self.declare_symbol(symbol, dst, at);
        }
    }

    /// The body runs where it stands; what it exports becomes an object.
    pub(super) fn namespace(&mut self, d: &'a TSNamespaceDeclaration<'a>) {
        if d.declare || self.depth >= MAX_DEPTH {
            return;
        }
        self.depth += 1;
        let at = span(d.span);
        let outer = self.namespace.replace(Vec::new());
        let prefix = self.namespace_prefix.len();
        self.namespace_prefix.push_str(d.id.name.as_str());
        self.namespace_prefix.push('.');
        match &d.body {
            TSNamespaceDeclarationBody::TSModuleBlock(block) => self.statements(&block.body),
            TSNamespaceDeclarationBody::TSNamespaceDeclaration(inner) => {
                self.namespace(inner);
                if let Some(symbol) = inner.id.symbol_id.get() {
                    let name = self.names.intern(inner.id.name.as_str());
                    self.namespace_export(name, symbol);
                }
            }
        }
        self.namespace_prefix.truncate(prefix);
        let exports = std::mem::replace(&mut self.namespace, outer).unwrap_or_default();
        self.depth -= 1;
        let Some(symbol) = d.id.symbol_id.get() else {
            return;
        };
        let mut fields = Vec::with_capacity(exports.len());
        for (name, exported) in exports {
            if let Some(value) = self.read_symbol(exported, at) {
                fields.push((name, value));
            }
        }
        // `class A {}` and `namespace A {}` are one value.
        let merged = self
            .scoping
            .symbol_flags(symbol)
            .intersects(SymbolFlags::Function | SymbolFlags::Class | SymbolFlags::Enum);
        if merged {
            if let Some(obj) = self.read_symbol(symbol, at) {
                for (field, value) in fields {
                    self.emit(at, Op::SetField { obj, field, value });
                }
            }
            return;
        }
        let fields = fields
            .into_iter()
            .map(|(name, value)| (Key::Name(name), value))
            .collect();
        let dst = self.temp();
        self.emit(at, Op::Object { dst, fields });
        self.declare_symbol(symbol, dst, at);
    }

    fn namespace_export(&mut self, name: Name, symbol: SymbolId) {
        if let Some(exports) = &mut self.namespace {
            exports.push((name, symbol));
        }
    }

    /// `export` inside a namespace. False at the top level of a module.
    pub(super) fn export_from_namespace(&mut self, declaration: &Declaration<'a>) -> bool {
        if self.namespace.is_none() {
            return false;
        }
        for (name, symbol) in self.declared(declaration) {
            self.namespace_export(name, symbol);
        }
        true
    }

    /// The values that a declaration declares.
    pub(super) fn declared(&mut self, declaration: &Declaration<'a>) -> Vec<(Name, SymbolId)> {
        let mut out = Vec::new();
        match declaration {
            Declaration::VariableDeclaration(d) => {
                for declarator in &d.declarations {
                    for id in declarator.id.get_binding_identifiers() {
                        if let Some(symbol) = id.symbol_id.get() {
                            out.push((self.names.intern(id.name.as_str()), symbol));
                        }
                    }
                }
            }
            Declaration::TSTypeAliasDeclaration(_) | Declaration::TSInterfaceDeclaration(_) => {}
            other => {
                if let Some(id) = other.id()
                    && let Some(symbol) = id.symbol_id.get()
                {
                    out.push((self.names.intern(id.name.as_str()), symbol));
                }
            }
        }
        out
    }
}
