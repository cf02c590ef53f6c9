//! What a variable that is set in several places is at the beginning of a block.
//!
//! Values are kept with variables, not with places in the code, so what is set on one branch
//! would be seen on the other. Where all ways into a block bring the same value, it is that.

use rustc_hash::FxHashMap;
use toctou_core::ir::Var;

use super::Interp;
use crate::cfg::EdgeKind;
use crate::sym::Sym;

/// Past this many, following them costs more than it tells.
const MAX_KNOWN: usize = 64;

impl Interp<'_, '_, '_> {
    pub(super) fn known_at(&self, block: u32, done: &[bool]) -> FxHashMap<Var, Sym> {
        let preds = self.cfg.preds[block as usize].as_slice();
        if let [one] = preds {
            return self.exits.get(one).cloned().unwrap_or_default();
        }
        let mut ends = Vec::with_capacity(preds.len());
        let mut loops = false;
        for &pred in preds {
            if done[pred as usize] {
                match self.exits.get(&pred) {
                    Some(end) => ends.push((pred, end)),
                    None => return FxHashMap::default(),
                }
            } else if self.cfg.dominates(block, pred) {
                loops = true;
            } else {
                return FxHashMap::default();
            }
        }
        let Some(&(_, first)) = ends.iter().min_by_key(|(_, end)| end.len()) else {
            return FxHashMap::default();
        };
        if first.len() > MAX_KNOWN {
            return FxHashMap::default();
        }
        first
            .iter()
            .filter(|&(v, sym)| {
                let Some(set_in) = self.set_in.get(v) else {
                    return false;
                };
                // What the rounds of a loop make of it is not known before they are looked at.
                let kept = !loops || !set_in.iter().any(|&b| self.cfg.dominates(block, b));
                kept && ends.iter().all(|&(pred, end)| {
                    // Who fails has it from before or after it was set.
                    let failed = set_in.contains(&pred) && self.may_fail_into(pred, block);
                    end.get(v) == Some(sym) && !failed
                })
            })
            .map(|(v, sym)| (*v, *sym))
            .collect()
    }

    fn may_fail_into(&self, pred: u32, block: u32) -> bool {
        self.cfg.succs[pred as usize]
            .iter()
            .any(|edge| edge.to.0 == block && edge.kind == EdgeKind::Handler)
    }
}
