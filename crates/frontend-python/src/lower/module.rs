//! The top level of a file: imports, and everything it has for others.

use ruff_python_ast::{self as ast, Stmt};
use toctou_core::ir::{
    Cell, ExportTarget, FuncId, FuncKind, Import, ImportedName, Op, Term, TypeDef, Var, VarInfo,
    VarKind,
};
use toctou_core::{Name, Span};

use super::{Lower, State, at, maker_of};

impl<'a> Lower<'a> {
    pub(super) fn program(&mut self, body: &'a [Stmt]) {
        let name = self.names.intern("<module>");
        let span = Span::new(0, self.text.len() as u32);
        self.new_function(name, FuncKind::ModuleInit, span);
        self.statements(body);
        let end = Span::new(span.end, span.end);
        self.end(end, Term::Return(None));
        let mut exports: Vec<(&'a str, Var)> = self.scopes.list[0]
            .symbols
            .iter()
            .filter_map(|(name, symbol)| Some((*name, symbol.slot?.var)))
            .collect();
        exports.sort_unstable_by_key(|(_, var)| var.0);
        for (name, var) in exports {
            let name = self.names.intern(name);
            self.module.exports.push((name, ExportTarget::Local(var)));
        }
        for (name, var) in std::mem::take(&mut self.makers) {
            let text = maker_of(self.names.text(name));
            let name = self.names.intern(&text);
            self.module.exports.push((name, ExportTarget::Local(var)));
        }
        let done = std::mem::replace(&mut self.f, State::new(FuncId(0), 0));
        if let Some(init) = self.module.functions.first_mut() {
            init.vars = done.vars;
            init.blocks = done.blocks;
            init.detours = done.detours;
        }
    }

    pub(super) fn import(&mut self, s: &'a ast::StmtImport) {
        for alias in &s.names {
            let path = alias.name.as_str();
            // `import a.b` binds `a`.
            let (name, specifier) = match &alias.asname {
                Some(name) => (name.as_str(), path),
                None => {
                    let head = path.split('.').next().unwrap_or(path);
                    (head, head)
                }
            };
            self.imported(name, specifier, None, at(alias));
            if specifier != path {
                self.loaded(path);
            }
        }
    }

    /// `import a.b` runs `a.b`, though it binds `a`.
    fn loaded(&mut self, path: &str) {
        let specifier = self.names.intern(path);
        if self.imports.contains_key(&(specifier, None)) {
            return;
        }
        let info = VarInfo {
            name: None,
            kind: VarKind::Import,
            captured: true,
            lent: false,
            word: false,
            ty: None,
        };
        if let Some(top) = self.state_mut(0) {
            let var = top.var(info);
            self.imports.insert((specifier, None), var);
            self.add_import(var, specifier, None);
        }
    }

    pub(super) fn import_from(&mut self, s: &'a ast::StmtImportFrom) {
        let mut specifier = ".".repeat(s.level.min(64) as usize);
        if let Some(module) = &s.module {
            specifier.push_str(module.as_str());
        }
        for alias in &s.names {
            if alias.name.as_str() == "*" {
                let name = self.names.intern(&specifier);
                self.module.star_exports.push((name, None));
                continue;
            }
            let bound = alias.asname.as_ref().unwrap_or(&alias.name);
            self.imported(
                bound.as_str(),
                &specifier,
                Some(alias.name.as_str()),
                at(alias),
            );
        }
    }

    fn imported(&mut self, name: &'a str, specifier: &str, of: Option<&str>, span: Span) {
        let specifier = self.names.intern(specifier);
        let of = of.map(|of| self.names.intern(of));
        let symbol = self.scopes.list[0].symbols.get(name);
        let once = symbol.is_some_and(|s| s.bound == 1 && s.imported);
        if self.f.scope == 0 && self.f.class_names.is_empty() && once {
            let slot = symbol.and_then(|s| s.slot);
            if slot.is_some_and(|cell| self.is_import(cell.var)) {
                return;
            }
            if let Some(cell) = self.make_slot(0, name, VarKind::Import) {
                self.add_import(cell.var, specifier, of);
                self.type_import(name, cell.var);
            }
            return;
        }
        // Inside a function, or one of several meanings of the name.
        let var = match self.imports.get(&(specifier, of)) {
            Some(&var) => var,
            None => {
                let interned = self.names.intern(name);
                let info = VarInfo {
                    name: Some(interned),
                    kind: VarKind::Import,
                    captured: true,
                    lent: false,
                    word: false,
                    ty: None,
                };
                let Some(top) = self.state_mut(0) else {
                    return;
                };
                let var = top.var(info);
                self.imports.insert((specifier, of), var);
                self.add_import(var, specifier, of);
                var
            }
        };
        self.type_import(name, var);
        let dst = self.temp();
        let cell = Cell {
            owner: FuncId(0),
            var,
        };
        self.emit(span, Op::LoadVar { dst, cell });
        self.write(name, dst, span);
    }

    fn is_import(&mut self, var: Var) -> bool {
        self.state_mut(0)
            .and_then(|top| top.vars.get(var.0 as usize))
            .is_some_and(|info| info.kind == VarKind::Import)
    }

    fn add_import(&mut self, var: Var, specifier: Name, of: Option<Name>) {
        self.module.imports.push(Import {
            var,
            specifier,
            name: match of {
                Some(name) => ImportedName::Named(name),
                None => ImportedName::Namespace,
            },
            target: None,
        });
    }

    fn type_import(&mut self, name: &str, var: Var) {
        let name = self.names.intern(name);
        if self.typed.insert(name) {
            self.module.types.push((name, TypeDef::Import(var)));
        }
    }
}
