//! Names: which variable is meant, and how it is read and written.

use toctou_core::Span;
use toctou_core::ir::{Cell, Op, TypeRef, Var, VarInfo, VarKind};

use super::{Lower, State};

enum Place {
    Register(Var),
    Cell(Cell),
    This,
    ClassName,
    Global,
}

impl<'a> Lower<'a> {
    fn state_of(&self, scope: usize) -> Option<usize> {
        if self.f.scope == scope {
            return Some(self.outer.len());
        }
        self.outer.iter().rposition(|state| state.scope == scope)
    }

    pub(super) fn state_mut(&mut self, index: usize) -> Option<&mut State<'a>> {
        if index == self.outer.len() {
            Some(&mut self.f)
        } else {
            self.outer.get_mut(index)
        }
    }

    fn place(&mut self, name: &'a str) -> Place {
        if self
            .f
            .class_names
            .last()
            .is_some_and(|names| names.contains_key(name))
        {
            return Place::ClassName;
        }
        let Some(owner) = self.scopes.owner(self.f.scope, name) else {
            return Place::Global;
        };
        let Some(index) = self.state_of(owner) else {
            return Place::Global;
        };
        let Some(symbol) = self.scopes.list[owner].symbols.get(name) else {
            return Place::Global;
        };
        let (captured, slot, bound) = (symbol.captured, symbol.slot, symbol.bound);
        if bound <= 1 && self.state_mut(index).is_some_and(|s| s.this == Some(name)) {
            return Place::This;
        }
        let cell = match slot {
            Some(cell) => cell,
            None => {
                let kind = if bound > 1 {
                    VarKind::Let
                } else {
                    VarKind::Const
                };
                match self.make_slot(owner, name, kind) {
                    Some(cell) => cell,
                    None => return Place::Global,
                }
            }
        };
        if captured {
            Place::Cell(cell)
        } else if owner == self.f.scope {
            Place::Register(cell.var)
        } else {
            // A class body's expression, set by the constructor: it does not see this.
            Place::Global
        }
    }

    /// A register for a variable, in the function that owns it.
    pub(super) fn make_slot(&mut self, owner: usize, name: &'a str, kind: VarKind) -> Option<Cell> {
        let index = self.state_of(owner)?;
        let captured = self.scopes.list[owner].symbols.get(name)?.captured;
        let interned = self.names.intern(name);
        let state = self.state_mut(index)?;
        let var = state.var(VarInfo {
            name: Some(interned),
            kind,
            captured,
            lent: false,
            word: false,
            ty: None,
        });
        let cell = Cell {
            owner: state.id,
            var,
        };
        self.scopes.list[owner].symbols.get_mut(name)?.slot = Some(cell);
        Some(cell)
    }

    pub(super) fn read(&mut self, name: &'a str, at: Span) -> Var {
        match self.place(name) {
            Place::Register(var) => var,
            Place::Cell(cell) => {
                let dst = self.temp();
                self.emit(at, Op::LoadVar { dst, cell });
                dst
            }
            Place::This => self.this(at),
            Place::ClassName => {
                let names = self.f.class_names.last();
                let var = names.and_then(|names| names.get(name)).copied();
                match var {
                    Some(var) => var,
                    None => self.null(at),
                }
            }
            Place::Global => self.global(at, name),
        }
    }

    pub(super) fn write(&mut self, name: &'a str, value: Var, at: Span) {
        if let Some(names) = self.f.class_names.last_mut() {
            names.insert(name, value);
            return;
        }
        match self.place(name) {
            Place::Register(dst) => self.emit(at, Op::Copy { dst, src: value }),
            Place::Cell(cell) => self.emit(at, Op::StoreVar { cell, value }),
            Place::This | Place::ClassName | Place::Global => {}
        }
    }

    /// Says what an annotation says about a variable.
    pub(super) fn set_type(&mut self, name: &'a str, ty: Option<TypeRef>) {
        if ty.is_none() || !self.f.class_names.is_empty() {
            return;
        }
        let cell = match self.place(name) {
            Place::Register(var) => Cell {
                owner: self.f.id,
                var,
            },
            Place::Cell(cell) => cell,
            Place::This | Place::ClassName | Place::Global => return,
        };
        let state = if self.f.id == cell.owner {
            Some(&mut self.f)
        } else {
            self.outer.iter_mut().find(|s| s.id == cell.owner)
        };
        if let Some(info) = state.and_then(|s| s.vars.get_mut(cell.var.0 as usize))
            && info.ty.is_none()
        {
            info.ty = ty.map(Box::new);
        }
    }
}
