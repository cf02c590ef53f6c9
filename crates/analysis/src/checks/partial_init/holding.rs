//! The registers and own variables that hold one value, and what is done with it.

use rustc_hash::FxHashSet;
use toctou_core::Name;
use toctou_core::ir::{Callee, Cell, FuncId, Function, Op, Var};

pub struct Holding {
    vars: FxHashSet<Var>,
    cells: FxHashSet<Cell>,
    first: Var,
}

pub enum Use {
    None,
    /// A method of it is called.
    Called(Name),
    /// An argument of a call.
    Given,
    /// Put where it outlives the function, or where an inner function has it.
    Kept,
    /// Its scope begins: the language closes it.
    Entered,
    /// Looked at.
    Seen,
}

impl Holding {
    pub fn new(id: FuncId, function: &Function, value: Var) -> Self {
        let mut out = Self {
            vars: FxHashSet::default(),
            cells: FxHashSet::default(),
            first: value,
        };
        out.vars.insert(value);
        // Copies follow what they copy, nearly always: three rounds do for the rest.
        for _ in 0..3 {
            for inst in function.blocks.iter().flat_map(|b| &b.insts) {
                match &inst.op {
                    Op::Copy { dst, src } | Op::Await { dst, src } if out.vars.contains(src) => {
                        out.vars.insert(*dst);
                    }
                    Op::Phi { dst, from } if from.iter().any(|v| out.vars.contains(v)) => {
                        out.vars.insert(*dst);
                    }
                    Op::StoreVar { cell, value }
                        if cell.owner == id && out.vars.contains(value) =>
                    {
                        out.cells.insert(*cell);
                    }
                    Op::LoadVar { dst, cell } if out.cells.contains(cell) => {
                        out.vars.insert(*dst);
                    }
                    _ => {}
                }
            }
        }
        out
    }

    pub fn has(&self, v: Var) -> bool {
        self.vars.contains(&v)
    }

    /// The register that has a name in the source.
    pub fn name(&self, function: &Function) -> Var {
        let mut named: Vec<Var> = self
            .vars
            .iter()
            .copied()
            .chain(self.cells.iter().map(|c| c.var))
            .filter(|v| function.vars[v.0 as usize].name.is_some())
            .collect();
        named.sort_unstable();
        named.first().copied().unwrap_or(self.first)
    }

    pub fn use_of(&self, op: &Op) -> Use {
        match op {
            Op::Call { callee, args, .. } => {
                if args.iter().any(|a| self.has(a.value)) {
                    return Use::Given;
                }
                match callee {
                    Callee::Method { obj, name } if self.has(*obj) => Use::Called(*name),
                    Callee::Value(v) if self.has(*v) => Use::Seen,
                    _ => Use::None,
                }
            }
            Op::SetField { value, .. } | Op::SetIndex { value, .. } if self.has(*value) => {
                Use::Kept
            }
            Op::StoreVar { cell, value } if self.has(*value) && !self.cells.contains(cell) => {
                Use::Kept
            }
            Op::Object { fields, .. } if fields.iter().any(|f| self.has(f.1)) => Use::Kept,
            Op::Array { items, .. } if items.iter().any(|a| self.has(a.value)) => Use::Kept,
            Op::YieldValue { value, .. } if self.has(*value) => Use::Kept,
            // An inner function may close it.
            Op::Func { .. } if !self.cells.is_empty() => Use::Entered,
            Op::Enter { resource, .. } | Op::Exit { resource } if self.has(*resource) => {
                Use::Entered
            }
            Op::TaggedTemplate { values, .. } if values.iter().any(|v| self.has(*v)) => Use::Given,
            Op::GetField { obj, .. } | Op::GetIndex { obj, .. } if self.has(*obj) => Use::Seen,
            Op::Not { src, .. } | Op::Element { of: src, .. } if self.has(*src) => Use::Seen,
            Op::Binary { left, right, .. } if self.has(*left) || self.has(*right) => Use::Seen,
            Op::Copy { src, .. } | Op::Await { src, .. } if self.has(*src) => Use::Seen,
            Op::LoadVar { cell, .. } if self.cells.contains(cell) => Use::Seen,
            _ => Use::None,
        }
    }
}
