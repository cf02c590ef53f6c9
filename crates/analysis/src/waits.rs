//! Who finds a limit reached waits, and then counts himself in without a second look:
//! `if len(calls) >= most: await sleep(…)`, and then `calls.append(now)`. The write follows
//! whichever way the test went, so it is not decided by it; but all who wait at the same time
//! have seen the same, and all go on.

use toctou_core::finding::ResourceKind;
use toctou_core::ir::Term;

use crate::effect::{Act, Event};
use crate::interp::Interp;

/// Limiters are small: in what is larger than this, none is looked for.
const MAX_YIELDS: usize = 16;
const MAX_BLOCKS: usize = 200;

impl Interp<'_, '_, '_> {
    /// The reads of a place in memory that decided whether to wait before it is written.
    pub(crate) fn waited_for(&self, write: &Event) -> Vec<u32> {
        let mut out = Vec::new();
        let counts = write.loc.kind == ResourceKind::Memory
            && matches!(write.act, Act::Write | Act::Append)
            && write.call.is_none();
        let small = self.yields.len() <= MAX_YIELDS && self.function.blocks.len() <= MAX_BLOCKS;
        if !counts || !small || self.yields.is_empty() || self.is_decided_by_place(write) {
            return out;
        }
        let leads = self.leads_to(write.at.block);
        for wait in self.yields.keys().filter(|at| leads[at.block as usize]) {
            for control in self.cfg.controls_of(wait.block).iter() {
                let decides = control.way < 2
                    && control.block != wait.block
                    && self.cfg.dominates(control.block, write.at.block)
                    && !self.cfg.dominates(wait.block, write.at.block);
                // In a loop it looks again.
                if !decides || self.leads_to(control.block)[wait.block as usize] {
                    continue;
                }
                for r in self.reads_in(control.block, write) {
                    if !out.contains(&r) {
                        out.push(r);
                    }
                }
            }
        }
        out.sort_unstable();
        out
    }

    /// Does a test of the place decide about the write itself?
    fn is_decided_by_place(&self, write: &Event) -> bool {
        let same = |e: u32| self.events[e as usize].loc == write.loc;
        write.ctrl.events().any(|(e, _)| same(e))
    }

    /// The reads of the written place that a branch depends on.
    fn reads_in(&self, block: u32, write: &Event) -> Vec<u32> {
        let Term::Branch { cond, .. } = self.function.blocks[block as usize].term else {
            return Vec::new();
        };
        let deps = self.deps_of(self.val(cond));
        let reads = deps.events().filter(|(e, _)| {
            let read = &self.events[*e as usize];
            read.act.is_read() && read.loc == write.loc && read.call.is_none()
        });
        reads.map(|(e, _)| e).collect()
    }
}
