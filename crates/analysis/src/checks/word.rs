//! What a place holds, by its declared type: a word, or more than that.
//!
//! A number or a truth value is read and written in one step. Who reads it while another sets it
//! has the old or the new one, and each was right a moment ago. Of a text, a list, an interface or
//! a struct a reader can have a half; what a pointer leads to may not be made yet; and a map can
//! be in the middle of growing.

use crate::context::Context;
use crate::interp::access::Spot;
use crate::linkage::TypeTarget;

/// Is a place declared to hold no more than a number or a truth value?
pub(super) fn is_word(cx: &mut Context<'_, '_>, spot: Spot) -> bool {
    let (module, ty) = match spot {
        Spot::Field(class, name) => {
            let fields = &cx.program.classes[class.0 as usize].fields;
            if fields.iter().any(|f| f.name == name && f.word) {
                return true;
            }
            let found = cx.linkage.field_type(cx.program, &cx.entities, class, name);
            let Some((module, ty)) = found else {
                return false;
            };
            (module, ty.clone())
        }
        Spot::Variable(cell) => {
            let info = &cx.program.function(cell.owner).vars[cell.var.0 as usize];
            let module = cx.program.function_module[cell.owner.0 as usize];
            match info.ty.as_deref() {
                Some(ty) => (module, ty.clone()),
                None => return info.word,
            }
        }
        _ => return false,
    };
    let target = cx
        .linkage
        .type_target(cx.program, module, &ty, &mut cx.names, &mut cx.entities);
    match target {
        Some(TypeTarget::Class(class)) if ty.element.is_none() => {
            let class = &cx.program.classes[class.0 as usize];
            // Some of several, old and new ones beside each other, are each as good.
            let words = !class.fields.is_empty() && class.fields.iter().all(|f| f.word);
            class.word || words && !class.is_interface
        }
        _ => false,
    }
}
