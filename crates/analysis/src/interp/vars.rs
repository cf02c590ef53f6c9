//! Sets of registers.

use toctou_core::ir::Var;

/// A function's registers are numbered from 0: one flag for each.
#[derive(Default)]
pub(crate) struct VarSet(Vec<bool>);

impl VarSet {
    /// Of a function with so many registers.
    pub(crate) fn of(count: usize) -> Self {
        Self(vec![false; count])
    }

    /// Was it not there before?
    pub(crate) fn insert(&mut self, var: Var) -> bool {
        let i = var.0 as usize;
        if i >= self.0.len() {
            self.0.resize(i + 1, false);
        }
        !std::mem::replace(&mut self.0[i], true)
    }

    pub(crate) fn contains(&self, var: Var) -> bool {
        self.0.get(var.0 as usize).is_some_and(|is_in| *is_in)
    }

    pub(crate) fn extend(&mut self, vars: impl IntoIterator<Item = Var>) {
        for var in vars {
            self.insert(var);
        }
    }
}
