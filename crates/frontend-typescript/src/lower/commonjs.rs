//! Exports that are values: `module.exports`, `exports.x`, `export default`.
//!
//! The export table names variables, so a value that no variable of the
//! source holds gets one of its own at top level.

use oxc_ast::ast::{Expression, ObjectPropertyKind, SimpleAssignmentTarget};
use oxc_span::GetSpan;
use toctou_core::ir::{Cell, ExportTarget, FuncId, Op, Var, VarKind};
use toctou_core::{Name, Span};

use super::{Hint, Lower, peel, span};
use crate::scope::MUTATED;

impl<'a> Lower<'a, '_> {
    /// The register of a top-level variable that never changes: it can be
    /// exported itself, where any other value needs a variable of its own.
    pub(super) fn constant_top_level(&mut self, e: &Expression<'a>) -> Option<Var> {
        let Expression::Identifier(id) = peel(e) else {
            return None;
        };
        let symbol = self.symbol_of(id)?;
        if self.symbols.has(symbol, MUTATED) {
            return None;
        }
        self.top_level(symbol)
    }

    /// Exports a value that no variable of the source holds.
    pub(super) fn export_new(&mut self, name: Name, kind: VarKind, value: Var, at: Span) {
        let var = match self.cjs_exports.get(&name) {
            Some(&var) => var,
            None => {
                let var = self.top_level_var(name, kind);
                self.cjs_exports.insert(name, var);
                self.export(name, ExportTarget::Local(var));
                var
            }
        };
        let cell = Cell {
            owner: FuncId(0),
            var,
        };
        self.emit(at, Op::StoreVar { cell, value });
    }

    /// `module.exports = value` and `export = value`: the default, and each
    /// property of an object literal under its own name.
    pub(super) fn export_value(&mut self, value: &'a Expression<'a>, at: Span) -> Var {
        let default = self.names.intern("default");
        if let Expression::ObjectExpression(object) = peel(value) {
            let var = self.expr(value);
            for property in &object.properties {
                if let ObjectPropertyKind::ObjectProperty(p) = property
                    && let Some(name) = self.static_key(&p.key)
                {
                    let property_at = span(p.span);
                    match self.constant_top_level(&p.value) {
                        Some(local) => self.export(name, ExportTarget::Local(local)),
                        None => {
                            let item = self.get_field(property_at, var, name);
                            self.export_new(name, VarKind::Let, item, property_at);
                        }
                    }
                }
            }
            self.export_new(default, VarKind::Let, var, at);
            return var;
        }
        if let Some(local) = self.constant_top_level(value) {
            self.export(default, ExportTarget::Local(local));
            return self.expr(value);
        }
        let hint = Hint {
            name: default,
            span: at,
            exported: true,
        };
        let var = self.expr_named(value, Some(hint));
        self.export_new(default, VarKind::Let, var, at);
        var
    }

    /// `exports.x = …`, `module.exports.x = …`, `module.exports = …`.
    pub(super) fn commonjs_export(
        &mut self,
        target: &SimpleAssignmentTarget<'a>,
        value: &'a Expression<'a>,
        at: Span,
    ) -> Option<Var> {
        let SimpleAssignmentTarget::StaticMemberExpression(member) = target else {
            return None;
        };
        let is_module_exports = |this: &Self, object: &Expression<'a>, property: &str| {
            property == "exports" && this.is_global(object, "module")
        };
        if is_module_exports(self, &member.object, member.property.name.as_str()) {
            return Some(self.export_value(value, at));
        }
        let is_exports = match peel(&member.object) {
            Expression::StaticMemberExpression(inner) => {
                is_module_exports(self, &inner.object, inner.property.name.as_str())
            }
            other => self.is_global(other, "exports"),
        };
        if !is_exports {
            return None;
        }
        let name = self.names.intern(member.property.name.as_str());
        if let Some(local) = self.constant_top_level(value) {
            self.export(name, ExportTarget::Local(local));
            return Some(self.expr(value));
        }
        let hint = Hint {
            name,
            span: span(member.property.span()),
            exported: true,
        };
        let var = self.expr_named(value, Some(hint));
        self.export_new(name, VarKind::Let, var, at);
        Some(var)
    }
}
