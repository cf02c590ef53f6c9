//! Names: which register, cell or import one means, reading and writing it.

use toctou_core::ir::{
    Cell, FuncId, Import, ImportedName, Op, TypeDef, TypeRef, Var, VarInfo, VarKind,
};
use toctou_core::{Name, Span};
use tree_sitter::Node;

use super::{Lower, span};

/// Where a local variable lives.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Slot {
    Register(FuncId, Var),
    Cell(Cell),
    /// The receiver of the method.
    This,
    /// A type or something else that has no value.
    Nothing,
}

/// The specifier of what other files of the package declare.
pub(crate) const SIBLING: &str = ".";

const BUILTIN_TYPES: &[&str] = &[
    "any",
    "bool",
    "byte",
    "comparable",
    "complex128",
    "complex64",
    "error",
    "float32",
    "float64",
    "int",
    "int16",
    "int32",
    "int64",
    "int8",
    "rune",
    "string",
    "uint",
    "uint16",
    "uint32",
    "uint64",
    "uint8",
    "uintptr",
];

const BUILTIN_FUNCTIONS: &[&str] = &[
    "append", "cap", "clear", "close", "complex", "copy", "delete", "imag", "len", "make", "max",
    "min", "new", "panic", "print", "println", "real", "recover",
];

pub(super) fn is_builtin_type(name: &str) -> bool {
    BUILTIN_TYPES.contains(&name)
}

/// A number or a truth value. (A text is two words, an interface as well.)
pub(super) fn is_word_type(name: &str) -> bool {
    let wide = [
        "any",
        "comparable",
        "complex128",
        "complex64",
        "error",
        "string",
    ];
    is_builtin_type(name) && !wide.contains(&name)
}

impl<'t> Lower<'t> {
    pub(super) fn open_scope(&mut self) -> usize {
        self.scope += 1;
        self.declared.len()
    }

    pub(super) fn close_scope(&mut self, mark: usize) {
        self.scope -= 1;
        for name in self.declared.drain(mark..) {
            if let Some(slots) = self.locals.get_mut(&name) {
                slots.pop();
            }
        }
    }

    pub(super) fn local(&self, name: Name) -> Option<Slot> {
        Some(self.locals.get(&name)?.last()?.0)
    }

    /// Did the innermost scope declare this name?
    pub(super) fn in_this_scope(&self, name: Name) -> bool {
        self.locals
            .get(&name)
            .and_then(|slots| slots.last())
            .is_some_and(|(_, scope)| *scope == self.scope)
    }

    pub(super) fn bind(&mut self, name: Name, slot: Slot) {
        let scope = self.scope;
        self.locals.entry(name).or_default().push((slot, scope));
        self.declared.push(name);
    }

    /// Declares a local variable; it has no value yet.
    pub(super) fn declare(&mut self, name: Name, ty: Option<TypeRef>, kind: VarKind) -> Slot {
        let captured = self
            .captures
            .deeper(self.names.text(name), self.f.literal_depth);
        let var = self.f.var(VarInfo {
            name: Some(name),
            kind,
            captured,
            lent: false,
            word: false,
            ty: ty.map(Box::new),
        });
        let slot = if captured {
            Slot::Cell(Cell {
                owner: self.f.id,
                var,
            })
        } else {
            Slot::Register(self.f.id, var)
        };
        self.bind(name, slot);
        slot
    }

    pub(super) fn store(&mut self, slot: Slot, value: Var, at: Span) {
        match slot {
            Slot::Register(owner, dst) if owner == self.f.id => {
                self.emit(at, Op::Copy { dst, src: value });
            }
            Slot::Cell(cell) => self.emit(at, Op::StoreVar { cell, value }),
            Slot::Register(..) | Slot::This | Slot::Nothing => {}
        }
    }

    pub(super) fn load(&mut self, slot: Slot, at: Span) -> Var {
        let dst = self.temp();
        let op = match slot {
            // `f(x, g(&x))`: the first argument is the value before.
            Slot::Register(owner, src) if owner == self.f.id => Op::Copy { dst, src },
            Slot::Cell(cell) => Op::LoadVar { dst, cell },
            Slot::This => Op::This { dst },
            Slot::Register(..) | Slot::Nothing => Op::Opaque {
                dst,
                from: Vec::new(),
            },
        };
        self.emit(at, op);
        dst
    }

    fn load_top(&mut self, var: Var, at: Span) -> Var {
        let dst = self.temp();
        let cell = Cell {
            owner: FuncId(0),
            var,
        };
        self.emit(at, Op::LoadVar { dst, cell });
        dst
    }

    pub(super) fn read(&mut self, node: Node<'_>) -> Var {
        let at = span(node);
        let name = self.name(node);
        self.read_name(name, at)
    }

    pub(super) fn read_name(&mut self, name: Name, at: Span) -> Var {
        if let Some(slot) = self.local(name) {
            return self.load(slot, at);
        }
        if let Some(&var) = self.package.get(&name) {
            return self.load_top(var, at);
        }
        if let Some(&var) = self.imported.get(&name) {
            return self.load_top(var, at);
        }
        let text = self.names.text(name);
        if text == "_" {
            return self.null(at);
        }
        if BUILTIN_FUNCTIONS.contains(&text) || is_builtin_type(text) {
            let dst = self.temp();
            self.emit(at, Op::Global { dst, name });
            return dst;
        }
        let var = self.sibling(name);
        self.load_top(var, at)
    }

    pub(super) fn write_name(&mut self, name: Name, value: Var, at: Span) {
        if self.names.text(name) == "_" {
            return;
        }
        if let Some(slot) = self.local(name) {
            self.store(slot, value, at);
            return;
        }
        let var = match self.package.get(&name) {
            Some(&var) => var,
            None => self.sibling(name),
        };
        let cell = Cell {
            owner: FuncId(0),
            var,
        };
        self.emit(at, Op::StoreVar { cell, value });
    }

    /// Is this name a variable, rather than a package, a type or a function?
    pub(super) fn is_local(&self, name: Name) -> bool {
        self.local(name).is_some_and(|slot| slot != Slot::Nothing)
    }

    pub(super) fn is_import(&self, name: Name) -> bool {
        self.local(name).is_none()
            && !self.package.contains_key(&name)
            && self.imported.contains_key(&name)
    }

    /// A name that this file does not declare: another of the package does.
    pub(super) fn sibling(&mut self, name: Name) -> Var {
        if let Some(&var) = self.siblings.get(&name) {
            return var;
        }
        // `import "github.com/x/go-redis"` declares `redis`.
        if let Some(var) = self.package_named(name) {
            self.siblings.insert(name, var);
            return var;
        }
        let specifier = self.names.intern(SIBLING);
        let var = self.import(name, specifier, ImportedName::Named(name));
        self.siblings.insert(name, var);
        if self.typed.insert(name) {
            self.module.types.push((name, TypeDef::Import(var)));
        }
        var
    }

    /// A package whose path only contains its name: `go-redis/v9` is `redis`.
    fn package_named(&mut self, name: Name) -> Option<Var> {
        let text = self.names.text(name);
        let found = self.module.imports.iter().find(|import| {
            let path = self.names.text(import.specifier);
            import.name == ImportedName::Namespace
                && text.len() > 2
                && path
                    .rsplit('/')
                    .take(2)
                    .any(|part| part.split(['-', '.', '_']).any(|word| word == text))
        })?;
        let var = found.var;
        if self.typed.insert(name) {
            self.module.types.push((name, TypeDef::Import(var)));
        }
        Some(var)
    }

    /// A register of the top level that holds what is imported.
    pub(super) fn import(&mut self, local: Name, specifier: Name, name: ImportedName) -> Var {
        let info = VarInfo {
            name: Some(local),
            kind: VarKind::Import,
            captured: true,
            lent: false,
            word: false,
            ty: None,
        };
        let var = match self.outer.first_mut() {
            Some(top) => top.var(info),
            None => self.f.var(info),
        };
        self.module.imports.push(Import {
            var,
            specifier,
            name,
            target: None,
        });
        var
    }
}
