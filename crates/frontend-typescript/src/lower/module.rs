//! The top level: imports, exports, CommonJS.

use oxc_ast::ast::{
    Declaration, ExportDefaultDeclaration, ExportDefaultDeclarationKind, ImportDeclaration,
    ImportDeclarationSpecifier, ModuleDeclaration, ModuleExportName, Program, Statement,
    TSImportEqualsDeclaration, TSModuleReference, TSTypeName,
};
use oxc_syntax::symbol::SymbolId;
use toctou_core::ir::{ExportTarget, FuncKind, Import, ImportedName, Term, TypeDef, Var, VarKind};
use toctou_core::{Name, Span};

use super::{Hint, Lower, span};
use crate::directives;
use crate::scope::EXPORTED;

impl<'a> Lower<'a, '_> {
    pub(super) fn program(&mut self, program: &'a Program<'a>) {
        let at = span(program.span);
        let name = self.names.intern("<module>");
        self.new_function(name, FuncKind::ModuleInit, at);
        if let Some(slot) = self
            .scope_state
            .get_mut(self.scoping.root_scope_id().index())
        {
            *slot = 0;
        }
        // Imports are bound, and exports known, before anything runs.
        let own = self.own_statements(program);
        for statement in own.iter().copied().flatten() {
            self.announce(statement);
        }
        for list in &own {
            self.hoist(list);
        }
        for list in &own {
            self.statement_list(list);
        }
        self.end(Span::new(at.end, at.end), Term::Return(None));
        self.module.directives = directives::collect(self.text, &program.comments);
        let blocks = std::mem::take(&mut self.f.blocks);
        let blocks = self.finished_blocks(blocks);
        if let Some(function) = self.module.functions.first_mut() {
            function.vars = std::mem::take(&mut self.f.vars);
            function.blocks = blocks;
            function.detours = std::mem::take(&mut self.f.detours);
            function.name_span = Span::new(at.start, at.start);
        }
    }

    fn announce(&mut self, statement: &'a Statement<'a>) {
        match statement {
            Statement::ImportDeclaration(import) => self.import(import),
            Statement::ExportDeclaration(export) => {
                for (_, symbol) in self.declared(&export.declaration) {
                    self.symbols.set(symbol, EXPORTED);
                }
                if let Some(symbol) = export.declaration.id().and_then(|id| id.symbol_id.get()) {
                    self.symbols.set(symbol, EXPORTED);
                }
            }
            Statement::ExportNamedDeclaration(export) => {
                for specifier in &export.specifiers {
                    if let Some(symbol) = self.exported_symbol(&specifier.local) {
                        self.symbols.set(symbol, EXPORTED);
                    }
                }
            }
            Statement::ExportDefaultDeclaration(export) => {
                let symbol = match &export.declaration {
                    ExportDefaultDeclarationKind::FunctionDeclaration(f) => {
                        f.id.as_ref().and_then(|id| id.symbol_id.get())
                    }
                    ExportDefaultDeclarationKind::ClassDeclaration(c) => {
                        c.id.as_ref().and_then(|id| id.symbol_id.get())
                    }
                    ExportDefaultDeclarationKind::Identifier(id) => self.symbol_of(id),
                    _ => None,
                };
                if let Some(symbol) = symbol {
                    self.symbols.set(symbol, EXPORTED);
                }
            }
            _ => {}
        }
    }

    fn exported_symbol(&self, name: &ModuleExportName<'a>) -> Option<SymbolId> {
        match name {
            ModuleExportName::IdentifierReference(id) => self.symbol_of(id).or_else(|| {
                // A name that is only a type has no value reference.
                self.scoping.get_root_binding(id.name)
            }),
            ModuleExportName::IdentifierName(id) => self.scoping.get_root_binding(id.name),
            ModuleExportName::StringLiteral(_) => None,
        }
    }

    fn import(&mut self, import: &'a ImportDeclaration<'a>) {
        let specifier = self.names.intern(import.source.value.as_str());
        // For what it does when it is loaded.
        if import.specifiers.is_none() {
            self.namespace_var(import.source.value.as_str());
        }
        for item in import.specifiers.iter().flatten() {
            let name = match item {
                ImportDeclarationSpecifier::ImportSpecifier(s) => {
                    match s.imported.name().as_str() {
                        "default" => ImportedName::Default,
                        text => ImportedName::Named(self.names.intern(text)),
                    }
                }
                ImportDeclarationSpecifier::ImportDefaultSpecifier(_) => ImportedName::Default,
                ImportDeclarationSpecifier::ImportNamespaceSpecifier(_) => ImportedName::Namespace,
            };
            let local = item.local();
            if let Some(symbol) = local.symbol_id.get() {
                self.add_import(symbol, local.name.as_str(), specifier, name);
            }
        }
    }

    pub(super) fn add_import(
        &mut self,
        symbol: SymbolId,
        local: &str,
        specifier: Name,
        name: ImportedName,
    ) {
        let Some(var) = self.top_level(symbol) else {
            return;
        };
        // TypeScript lets an import share its name with a local; the import it is.
        if let Some(info) = self.init().vars.get_mut(var.0 as usize) {
            info.kind = VarKind::Import;
        }
        self.module.imports.push(Import {
            var,
            specifier,
            name,
            target: None,
        });
        let local = self.names.intern(local);
        self.module.types.push((local, TypeDef::Import(var)));
    }

    /// The register that holds the namespace of a module which is loaded by a
    /// call: one for all its `require`s and `import()`s.
    pub(super) fn namespace_var(&mut self, specifier: &str) -> Var {
        let specifier = self.names.intern(specifier);
        if let Some(&var) = self.requires.get(&specifier) {
            return var;
        }
        let var = self.top_level_var(specifier, VarKind::Import);
        self.requires.insert(specifier, var);
        self.module.imports.push(Import {
            var,
            specifier,
            name: ImportedName::Namespace,
            target: None,
        });
        var
    }

    pub(super) fn import_equals(&mut self, d: &'a TSImportEqualsDeclaration<'a>) {
        let Some(symbol) = d.id.symbol_id.get() else {
            return;
        };
        let at = span(d.span);
        match &d.module_reference {
            TSModuleReference::ExternalModuleReference(module) => {
                let specifier = self.names.intern(module.expression.value.as_str());
                self.add_import(
                    symbol,
                    d.id.name.as_str(),
                    specifier,
                    ImportedName::Namespace,
                );
            }
            TSModuleReference::IdentifierReference(id) => {
                let value = self.read(id);
                self.declare_symbol(symbol, value, at);
            }
            TSModuleReference::QualifiedName(name) => {
                let mut path = vec![name.right.name.as_str()];
                let mut left = &name.left;
                while let TSTypeName::QualifiedName(name) = left {
                    path.push(name.right.name.as_str());
                    left = &name.left;
                }
                let mut value = match left {
                    TSTypeName::IdentifierReference(id) => self.read(id),
                    _ => self.this(at),
                };
                while let Some(text) = path.pop() {
                    let field = self.names.intern(text);
                    value = self.get_field(at, value, field);
                }
                self.declare_symbol(symbol, value, at);
            }
        }
    }

    pub(super) fn module_declaration(&mut self, declaration: &'a ModuleDeclaration<'a>) {
        match declaration {
            ModuleDeclaration::ImportDeclaration(_)
            | ModuleDeclaration::TSNamespaceExportDeclaration(_) => {}
            ModuleDeclaration::ExportDeclaration(export) => {
                self.declaration(&export.declaration);
                if !self.export_from_namespace(&export.declaration) {
                    self.export_declared(&export.declaration);
                }
            }
            ModuleDeclaration::ExportNamedDeclaration(export) => {
                for specifier in &export.specifiers {
                    if let Some(symbol) = self.exported_symbol(&specifier.local)
                        && self.scoping.symbol_flags(symbol).intersects(
                            oxc_syntax::symbol::SymbolFlags::Value
                                | oxc_syntax::symbol::SymbolFlags::Import
                                | oxc_syntax::symbol::SymbolFlags::TypeImport,
                        )
                        && let Some(var) = self.top_level(symbol)
                    {
                        let name = self.names.intern(specifier.exported.name().as_str());
                        self.export(name, ExportTarget::Local(var));
                    }
                }
            }
            ModuleDeclaration::ExportFromDeclaration(export) => {
                let specifier = self.names.intern(export.source.value.as_str());
                for item in &export.specifiers {
                    let name = match item.local.name().as_str() {
                        "default" => ImportedName::Default,
                        text => ImportedName::Named(self.names.intern(text)),
                    };
                    let exported = self.names.intern(item.exported.name().as_str());
                    self.export(
                        exported,
                        ExportTarget::From {
                            specifier,
                            name,
                            target: None,
                        },
                    );
                }
            }
            ModuleDeclaration::ExportAllDeclaration(export) => {
                let specifier = self.names.intern(export.source.value.as_str());
                match &export.exported {
                    None => self.module.star_exports.push((specifier, None)),
                    Some(exported) => {
                        let exported = self.names.intern(exported.name().as_str());
                        self.export(
                            exported,
                            ExportTarget::From {
                                specifier,
                                name: ImportedName::Namespace,
                                target: None,
                            },
                        );
                    }
                }
            }
            ModuleDeclaration::ExportDefaultDeclaration(export) => self.export_default(export),
            ModuleDeclaration::TSExportAssignment(export) => {
                self.export_value(&export.expression, span(export.span));
            }
        }
    }

    pub(super) fn export(&mut self, name: Name, target: ExportTarget) {
        self.module.exports.push((name, target));
    }

    fn export_declared(&mut self, declaration: &Declaration<'a>) {
        for (name, symbol) in self.declared(declaration) {
            if let Some(var) = self.top_level(symbol) {
                self.export(name, ExportTarget::Local(var));
            }
        }
    }

    /// `export default function f() {}` is hoisted like any other.
    pub(super) fn hoist_default(&mut self, export: &'a ExportDefaultDeclaration<'a>) {
        let ExportDefaultDeclarationKind::FunctionDeclaration(function) = &export.declaration
        else {
            return;
        };
        if function.body.is_none() {
            return;
        }
        let default = self.names.intern("default");
        if let Some(symbol) = function.id.as_ref().and_then(|id| id.symbol_id.get()) {
            self.function_declaration(function);
            if let Some(var) = self.top_level(symbol) {
                self.export(default, ExportTarget::Local(var));
            }
            return;
        }
        let hint = self.default_hint(export.span);
        let value = self.function_value(function, FuncKind::Function, Some(hint));
        self.export_new(default, VarKind::Const, value, span(export.span));
    }

    fn default_hint(&mut self, at: oxc_span::Span) -> Hint {
        let keyword = oxc_span::Span::new(at.start, (at.start + 14).min(at.end));
        let mut hint = self.hint("default", keyword);
        hint.exported = true;
        hint
    }

    fn export_default(&mut self, export: &'a ExportDefaultDeclaration<'a>) {
        let at = span(export.span);
        let default = self.names.intern("default");
        match &export.declaration {
            ExportDefaultDeclarationKind::FunctionDeclaration(_) => {}
            ExportDefaultDeclarationKind::TSInterfaceDeclaration(d) => self.interface(d),
            ExportDefaultDeclarationKind::ClassDeclaration(class) => {
                if let Some(symbol) = class.id.as_ref().and_then(|id| id.symbol_id.get()) {
                    self.class_declaration(class);
                    if let Some(var) = self.top_level(symbol) {
                        self.export(default, ExportTarget::Local(var));
                    }
                } else {
                    let hint = self.default_hint(export.span);
                    let value = self.class_value(class, Some(hint));
                    self.export_new(default, VarKind::Const, value, at);
                }
            }
            other => {
                if let Some(e) = other.as_expression() {
                    if let Some(var) = self.constant_top_level(e) {
                        self.export(default, ExportTarget::Local(var));
                        return;
                    }
                    let hint = self.default_hint(export.span);
                    let value = self.expr_named(e, Some(hint));
                    self.export_new(default, VarKind::Const, value, at);
                }
            }
        }
    }
}
