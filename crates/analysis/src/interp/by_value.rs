//! What comes back from a call is a copy, if the callee gives back a struct and not a reference.
//! Who makes a copy reads all of it.

use super::Interp;
use crate::checks::operands;
use crate::linkage::TypeTarget;
use crate::sym::{Sym, SymKind};
use toctou_core::Name;
use toctou_core::ir::{BinOp, FuncId, Literal, Op, Term, Var};

/// How far it is looked what becomes of a value.
const NEAR: usize = 16;

impl Interp<'_, '_, '_> {
    /// Who is called gives back a struct itself: the caller has a copy.
    pub(crate) fn note_result(&mut self, dst: Var, callees: &[FuncId]) {
        if self.is_racy() && !callees.is_empty() && callees.iter().all(|f| self.gives_struct(*f)) {
            self.by_value.insert(dst);
        }
    }

    /// `status := s.status`, `return s.status`: not a part of the struct is read, but the whole.
    pub(crate) fn note_copy(&mut self, dst: Var, obj: Var, base: Sym, field: Name) {
        if !self.is_racy() || !self.goes_on(dst) || self.is_copy(obj, base) {
            return;
        }
        let base = self.origin(base);
        let whole = self.cx.syms.make(SymKind::Field(base, field));
        if self.is_plain_struct(whole) {
            self.survey_object(whole);
        }
    }

    /// `if s.conn != nil`: of what was just read, all that is asked is whether there is anything.
    pub(crate) fn note_glance(&mut self, value: Var) {
        let noted = self.plain.accesses.last();
        if !noted.is_some_and(|a| !a.write && a.at == self.at) {
            return;
        }
        let glance = self.is_only_asked_for(value);
        if let Some(access) = self.plain.accesses.last_mut() {
            access.glance = glance;
        }
    }

    fn is_only_asked_for(&self, value: Var) -> bool {
        let block = &self.function.blocks[self.at.block as usize];
        let nothing = |var: Var| {
            block.insts.iter().any(|inst| {
                let Op::Const { dst, value } = &inst.op else {
                    return false;
                };
                *dst == var && *value == Literal::Null
            })
        };
        let mut asked = false;
        for inst in block.insts.iter().skip(self.at.inst as usize + 1) {
            match inst.op {
                Op::Binary {
                    op: BinOp::Eq | BinOp::Ne,
                    left,
                    right,
                    ..
                } if left == value && nothing(right) || right == value && nothing(left) => {
                    asked = true;
                }
                _ if operands(&inst.op).contains(&value) => return false,
                _ => {}
            }
        }
        let ends = match block.term {
            Term::Branch { cond, .. } => Some(cond),
            Term::Return(value) => value,
            Term::Throw(value) => Some(value),
            Term::Goto(_) | Term::Multi(_) => None,
        };
        asked && ends != Some(value)
    }

    /// Does a value that was just read go somewhere, and is not only looked into?
    fn goes_on(&self, value: Var) -> bool {
        let block = &self.function.blocks[self.at.block as usize];
        let named = |v: &Var| self.function.vars[v.0 as usize].name.is_some();
        let rest = block
            .insts
            .iter()
            .skip(self.at.inst as usize + 1)
            .take(NEAR);
        let mut goes = rest.map(|inst| match &inst.op {
            Op::Copy { dst, src } => *src == value && named(dst),
            Op::Object { fields, .. } => fields.iter().any(|(_, v)| *v == value),
            Op::StoreVar { value: v, .. } => *v == value,
            _ => false,
        });
        matches!(block.term, Term::Return(Some(v)) if v == value) || goes.any(|g| g)
    }

    fn gives_struct(&mut self, f: FuncId) -> bool {
        let cx = &mut *self.cx;
        let Some(ty) = &cx.program.function(f).return_type else {
            return false;
        };
        let module = cx.program.function_module[f.0 as usize];
        let target =
            cx.linkage
                .type_target(cx.program, module, ty, &mut cx.names, &mut cx.entities);
        match target {
            Some(TypeTarget::Class(class)) if ty.element.is_none() => {
                let class = &cx.program.classes[class.0 as usize];
                !class.is_interface && !class.fields.is_empty()
            }
            _ => false,
        }
    }
}
