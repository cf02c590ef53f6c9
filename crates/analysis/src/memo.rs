//! Writes that cost a call that comes between nothing: what is kept so as not to be made twice,
//! and what is replaced only if it still is what it was.

use toctou_core::finding::ResourceKind;

use crate::effect::{Act, Dep, Deps, Event, Source};
use crate::interp::Interp;
use crate::sym::SymKind;

impl Interp<'_, '_, '_> {
    /// `if (exists(f(key))) return read(f(key)); … write(f(key), await ask(key))`: both get the
    /// same answer. What a caller gave beside the key, and what is made here, is not in the name.
    pub(crate) fn is_memo(&self, read: &Event, write: &Event) -> bool {
        let given = |deps: &Deps| -> Vec<Dep> {
            let is_given = |d: &Dep| !d.implicit && matches!(d.source, Source::Param(_));
            deps.iter().filter(is_given).collect()
        };
        let name = given(&self.deps_of(write.loc.key));
        let value = given(&write.data);
        // Of an answer, the first field that was taken is the answer's own.
        let is_in_name = |d: &Dep| {
            let same = |n: &Dep| n.attr == d.attr || d.asked && n.attr.is_none();
            name.iter().any(|n| n.source == d.source && same(n))
        };
        let asks = |e: u32| self.events[e as usize].loc.kind == ResourceKind::External;
        let answered = value.iter().any(|d| d.asked) || write.data.events().any(|(e, _)| asks(e));
        let from_name = answered && value.iter().all(is_in_name);
        let handed_out = |(i, e): (usize, &Event)| {
            e.act == Act::Read && e.loc == read.loc && self.is_given_back(i)
        };
        from_name
            && write.act == Act::Write
            && read.loc == write.loc
            && self.events.iter().enumerate().any(handed_out)
    }

    /// `if (this.current === before) this.current = next`, with nobody able to run between.
    pub(crate) fn note_swaps(&mut self) {
        let swaps = |w: usize| {
            let write = &self.events[w];
            let place = write.loc.key;
            let own = write.loc.kind == ResourceKind::Memory
                && write.act == Act::Write
                && write.call.is_none();
            own && self
                .decisions(write.at.block)
                .iter()
                .any(|&(control, sym, same)| {
                    let way = &self.cfg.succs[control.block as usize][usize::from(control.way)];
                    let always = self.cfg.dominates(way.to.0, write.at.block);
                    let SymKind::Eq(a, b) = *self.cx.syms.kind(sym) else {
                        return false;
                    };
                    let compared = self.is_value_of(a, place) && !self.is_constant(b)
                        || self.is_value_of(b, place) && !self.is_constant(a);
                    (same && compared && always)
                        && self.deps_of(sym).events().any(|(e, _)| {
                            self.events[e as usize].loc == write.loc
                                && self.is_at_once(e as usize, w)
                        })
                })
        };
        let found: Vec<usize> = (0..self.events.len()).filter(|w| swaps(*w)).collect();
        for w in found {
            self.events[w].swaps = true;
        }
    }
}
