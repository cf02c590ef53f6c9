//! Which calls open something, as far as models know.

use toctou_core::ir::{FuncId, Function, Inst, Op};
use toctou_models::Do;

use crate::checks::code;
use crate::checks::partial_init::CLOSES;
use crate::context::Context;
use crate::entity::EntityId;

/// Models say that it opens, or that what one has to wait for can be closed.
pub fn opens(cx: &mut Context<'_, '_>, f: FuncId, n: u32, inst: &Inst) -> bool {
    if !matches!(inst.op, Op::Call { .. }) {
        return false;
    }
    let rules = code::models(cx, f, n);
    rules.iter().any(|(_, r)| {
        r.effects.iter().any(|e| e.effect.r#do == Do::Open)
            || r.result_type.is_some_and(|ty| {
                let function = cx.program.function(f);
                is_awaited(function, inst) && is_closable(cx, ty)
            })
    })
}

pub fn is_awaited(function: &Function, call: &Inst) -> bool {
    let dst = call.op.dst();
    let mut insts = function.blocks.iter().flat_map(|b| &b.insts);
    insts.any(|i| matches!(i.op, Op::Await { src, .. } if Some(src) == dst))
}

fn is_closable(cx: &mut Context<'_, '_>, ty: EntityId) -> bool {
    CLOSES.iter().any(|word| {
        let name = cx.names.intern(word);
        let member = cx.entities.member(ty, name, &mut cx.names);
        member.is_some_and(|m| {
            let rules = cx.library.calls(m, &mut cx.entities, &mut cx.names);
            rules
                .iter()
                .any(|r| r.effects.iter().any(|e| e.effect.r#do == Do::Close))
        })
    })
}
