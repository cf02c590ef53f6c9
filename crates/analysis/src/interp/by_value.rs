//! What comes back from a call is a copy, if the callee gives back a struct and not a reference.

use super::Interp;
use crate::linkage::TypeTarget;
use toctou_core::ir::{FuncId, Var};

impl Interp<'_, '_, '_> {
    /// Who is called gives back a struct itself: the caller has a copy.
    pub(crate) fn note_result(&mut self, dst: Var, callees: &[FuncId]) {
        if self.is_racy() && !callees.is_empty() && callees.iter().all(|f| self.gives_struct(*f)) {
            self.by_value.insert(dst);
        }
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
