//! Variables: which register or cell a symbol lives in, reading and writing it.

use oxc_ast::ast::{Expression, IdentifierReference};
use oxc_syntax::symbol::{SymbolFlags, SymbolId};
use toctou_core::ir::{Cell, FuncId, Op, TypeRef, Var, VarInfo, VarKind};
use toctou_core::{Name, Span};

use super::{Hint, Lower, State, span};
use crate::scope::{CAPTURED, MUTATED};

/// Where a variable lives.
#[derive(Clone, Copy)]
pub(super) enum Place {
    Register(Var),
    Cell(Cell),
}

impl<'a> Lower<'a, '_> {
    /// The state of a function by its depth: the innermost is the current one.
    pub(super) fn state(&mut self, index: usize) -> Option<&mut State<'a>> {
        if index == self.outer.len() {
            Some(&mut self.f)
        } else {
            self.outer.get_mut(index)
        }
    }

    /// The top-level code's state.
    pub(super) fn init(&mut self) -> &mut State<'a> {
        match self.outer.first_mut() {
            Some(init) => init,
            None => &mut self.f,
        }
    }

    /// A new captured variable of the top level that the source has no name for.
    pub(super) fn top_level_var(&mut self, name: Name, kind: VarKind) -> Var {
        self.init().var(VarInfo {
            name: Some(name),
            kind,
            captured: true,
            lent: false,
            word: false,
            ty: None,
        })
    }

    pub(super) fn symbol_of(&self, id: &IdentifierReference<'_>) -> Option<SymbolId> {
        let reference = id.reference_id.get()?;
        self.scoping.get_reference(reference).symbol_id()
    }

    pub(super) fn is_global(&self, expression: &Expression<'_>, name: &str) -> bool {
        matches!(expression, Expression::Identifier(id)
            if id.name.as_str() == name && self.symbol_of(id).is_none())
    }

    /// Register of a symbol; made when first touched, in the function that owns it.
    pub(super) fn place(&mut self, symbol: SymbolId) -> Option<Place> {
        let captured = self.symbols.has(symbol, CAPTURED);
        let cell = match self.slots.get(symbol.index()).copied().flatten() {
            Some(cell) => cell,
            None => {
                let scope = self.symbols.owner(symbol);
                let index = *self.scope_state.get(scope)? as usize;
                let name = self.names.intern(self.scoping.symbol_name(symbol));
                let kind = self.var_kind(symbol);
                let state = self.state(index)?;
                let var = state.var(VarInfo {
                    name: Some(name),
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
                self.slots[symbol.index()] = Some(cell);
                cell
            }
        };
        if captured {
            Some(Place::Cell(cell))
        } else if cell.owner == self.f.id {
            Some(Place::Register(cell.var))
        } else {
            None
        }
    }

    pub(super) fn var_kind(&self, symbol: SymbolId) -> VarKind {
        let flags = self.scoping.symbol_flags(symbol);
        if flags.intersects(SymbolFlags::Import | SymbolFlags::TypeImport) {
            VarKind::Import
        } else if flags.contains(SymbolFlags::ConstVariable)
            || (!self.symbols.has(symbol, MUTATED)
                && (!flags.is_variable() || flags.is_catch_variable()))
        {
            VarKind::Const
        } else {
            VarKind::Let
        }
    }

    /// The register of a top-level symbol, for the import and export tables.
    pub(super) fn top_level(&mut self, symbol: SymbolId) -> Option<Var> {
        match self.place(symbol)? {
            Place::Cell(cell) if cell.owner == FuncId(0) => Some(cell.var),
            Place::Cell(_) | Place::Register(_) => None,
        }
    }

    pub(super) fn read_symbol(&mut self, symbol: SymbolId, at: Span) -> Option<Var> {
        match self.place(symbol)? {
            Place::Cell(cell) => {
                let dst = self.temp();
                self.emit(at, Op::LoadVar { dst, cell });
                Some(dst)
            }
            // `f(x, x++)`: the first argument is the value before.
            Place::Register(src) if self.symbols.has(symbol, MUTATED) => {
                let dst = self.temp();
                self.emit(at, Op::Copy { dst, src });
                Some(dst)
            }
            Place::Register(var) => Some(var),
        }
    }

    pub(super) fn write_symbol(&mut self, symbol: SymbolId, value: Var, at: Span) {
        match self.place(symbol) {
            Some(Place::Cell(cell)) => self.emit(at, Op::StoreVar { cell, value }),
            Some(Place::Register(dst)) => self.emit(at, Op::Copy { dst, src: value }),
            None => {}
        }
    }

    /// Declares a variable with its first value. Where the value was computed
    /// by the last instruction, that instruction writes the variable itself.
    pub(super) fn declare_symbol(&mut self, symbol: SymbolId, value: Var, at: Span) {
        let place = self.place(symbol);
        let own = match place {
            Some(Place::Register(var)) => Some(var),
            Some(Place::Cell(cell)) if cell.owner == self.f.id => Some(cell.var),
            Some(Place::Cell(_)) | None => None,
        };
        if !self.symbols.has(symbol, MUTATED)
            && let Some(info) = own.and_then(|var| self.f.vars.get_mut(var.0 as usize))
        {
            // A `let` or parameter that nobody assigns again.
            info.kind = VarKind::Const;
        }
        if let Some(Place::Register(dst)) = place
            && self.retarget(value, dst)
        {
            return;
        }
        self.write_symbol(symbol, value, at);
    }

    pub(super) fn retarget(&mut self, from: Var, to: Var) -> bool {
        let is_temp = self
            .f
            .vars
            .get(from.0 as usize)
            .is_some_and(|info| info.kind == VarKind::Temp);
        let last = self
            .f
            .current
            .and_then(|b| self.f.blocks.get_mut(b.0 as usize))
            .and_then(|b| b.insts.last_mut());
        match last.and_then(|inst| dst_mut(&mut inst.op)) {
            Some(dst) if is_temp && *dst == from => {
                *dst = to;
                true
            }
            _ => false,
        }
    }

    pub(super) fn read(&mut self, id: &IdentifierReference<'a>) -> Var {
        let at = span(id.span);
        if let Some(symbol) = self.symbol_of(id)
            && let Some(var) = self.read_symbol(symbol, at)
        {
            return var;
        }
        match id.name.as_str() {
            "undefined" => self.null(at),
            "arguments" if !self.outer.is_empty() => self.opaque(at, Vec::new()),
            name => self.global(at, name),
        }
    }

    pub(super) fn write(&mut self, id: &IdentifierReference<'a>, value: Var) {
        let at = span(id.span);
        if let Some(symbol) = self.symbol_of(id) {
            self.write_symbol(symbol, value, at);
        } else {
            // Assigning to an undeclared name makes a property of the global object.
            let obj = self.global(at, "globalThis");
            let field = self.names.intern(id.name.as_str());
            self.emit(at, Op::SetField { obj, field, value });
        }
    }

    pub(super) fn set_type(&mut self, symbol: SymbolId, ty: Option<TypeRef>) {
        if ty.is_none() || self.place(symbol).is_none() {
            return;
        }
        let Some(cell) = self.slots.get(symbol.index()).copied().flatten() else {
            return;
        };
        let index = self
            .scope_state
            .get(self.symbols.owner(symbol))
            .map_or(usize::MAX, |&i| i as usize);
        if let Some(info) = self
            .state(index)
            .and_then(|state| state.vars.get_mut(cell.var.0 as usize))
        {
            info.ty = ty.map(Box::new);
        }
    }

    pub(super) fn hint(&mut self, name: &str, at: oxc_span::Span) -> Hint {
        Hint {
            name: self.names.intern(name),
            span: span(at),
            exported: false,
        }
    }
}

fn dst_mut(op: &mut Op) -> Option<&mut Var> {
    match op {
        Op::Const { dst, .. }
        | Op::Copy { dst, .. }
        | Op::Func { dst, .. }
        | Op::Class { dst, .. }
        | Op::Global { dst, .. }
        | Op::LoadVar { dst, .. }
        | Op::This { dst }
        | Op::GetField { dst, .. }
        | Op::GetIndex { dst, .. }
        | Op::Object { dst, .. }
        | Op::Array { dst, .. }
        | Op::Concat { dst, .. }
        | Op::Binary { dst, .. }
        | Op::Not { dst, .. }
        | Op::Phi { dst, .. }
        | Op::Call { dst, .. }
        | Op::TaggedTemplate { dst, .. }
        | Op::Await { dst, .. }
        | Op::Element { dst, .. }
        | Op::YieldValue { dst, .. }
        | Op::Enter { dst, .. }
        | Op::Catch { dst }
        | Op::Opaque { dst, .. } => Some(dst),
        Op::StoreVar { .. }
        | Op::SetField { .. }
        | Op::SetIndex { .. }
        | Op::Delete { .. }
        | Op::Exit { .. } => None,
    }
}
