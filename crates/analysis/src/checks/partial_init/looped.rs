//! Things that are opened one after the other and collected in a list.

use rustc_hash::FxHashSet;
use toctou_core::ir::{Callee, Inst, Op};

use crate::checks::partial_init::holding::Holding;
use crate::checks::partial_init::{Leak, Walk};
use crate::effect::Pos;

impl Walk<'_, '_, '_> {
    /// Opened in a loop and collected: a later turn fails.
    pub fn in_loop(&mut self, at: Pos, inst: &Inst) -> Option<Leak> {
        let dst = inst.op.dst()?;
        let held = Holding::new(self.id, self.function, dst);
        let block = &self.function.blocks[at.block as usize];
        let list = block.insts[at.inst as usize..]
            .iter()
            .find_map(|i| match &i.op {
                Op::Call {
                    callee: Callee::Method { obj, .. },
                    args,
                    ..
                } if args.iter().any(|a| held.has(a.value)) => Some(*obj),
                _ => None,
            })?;
        let made = self.cx.definition(self.id, list)?;
        if !matches!(made.op, Op::Array { .. }) {
            return None;
        }
        // Comes back here; and later somebody goes through the list and closes.
        let mut seen = FxHashSet::default();
        let mut work: Vec<u32> = block.term.successors().iter().map(|t| t.0).collect();
        let mut again = false;
        let mut closed = false;
        let all = Holding::new(self.id, self.function, list);
        while let Some(b) = work.pop() {
            again |= b == at.block;
            if !seen.insert(b) {
                continue;
            }
            let block = &self.function.blocks[b as usize];
            for i in &block.insts {
                if let Op::Call {
                    callee: Callee::Method { obj, name },
                    ..
                } = &i.op
                    && self.is_close(*name)
                    && let Some(Op::Element { of, .. }) =
                        self.cx.definition(self.id, *obj).map(|i| &i.op)
                {
                    closed |= all.has(*of);
                }
            }
            work.extend(block.term.successors().iter().map(|t| t.0));
        }
        (again && closed && !self.is_covered(block.handler, &all))
            .then_some((inst.span, None, list))
    }
}
