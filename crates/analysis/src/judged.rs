//! Was it judged where a path leads?
//!
//! Paths are resolved for many reasons: to find a version, to tell files from folders, to have
//! one name for one folder. There is something to escape from only where the result is held
//! against something: a folder that it has to be in, a path that it has to be, a kind of entry
//! that it must not be. Which functions and methods ask that is said by models (`judged-by`).
//! The question may stand in a function that is given the result, or in a function inside.

use toctou_core::ir::Term;

use crate::calls::CallView;
use crate::effect::{Act, Deps, Event, Source};
use crate::entity::EntityId;
use crate::interp::Interp;
use crate::summary::Summary;
use crate::sym::{Sym, SymKind};

impl Interp<'_, '_, '_> {
    /// What a call asks about, if it is one that asks where something lies.
    pub(crate) fn note_judging(&mut self, view: &CallView<'_>, exts: &[EntityId]) {
        if !self.is_judging(view, exts) {
            return;
        }
        let mut deps = Deps::default();
        for given in view.args.iter().chain(&view.recv) {
            deps.extend(&self.deps_of(*given));
        }
        self.judged.extend(&deps);
    }

    /// Is it a call that asks where something lies, or whether it is a link?
    pub(crate) fn is_judging(&self, view: &CallView<'_>, exts: &[EntityId]) -> bool {
        let judges = &self.cx.words.judges;
        let named = |e: &EntityId| {
            let path = self.cx.names.text(self.cx.entities.get(*e).path);
            let last = path.rsplit('.').next().unwrap_or(path);
            self.cx
                .names
                .find(last)
                .is_some_and(|n| judges.contains(&n))
        };
        view.method.is_some_and(|m| judges.contains(&m)) || exts.iter().any(named)
    }

    /// Marks the reads that were judged, and hands the rest to the callers.
    pub(crate) fn settle_judged(&mut self) {
        let mut judged = std::mem::take(&mut self.judged);
        for block in &self.function.blocks {
            let Term::Branch { cond, .. } = block.term else {
                continue;
            };
            let mut sym = self.val(cond);
            while let SymKind::Not(inner) = self.cx.syms.kind(sym) {
                sym = *inner;
            }
            if let SymKind::Eq(a, b) = *self.cx.syms.kind(sym)
                && !self.is_constant(a)
                && !self.is_constant(b)
            {
                judged.extend(&self.deps_of(sym));
            }
        }
        for (i, event) in self.events.iter_mut().enumerate() {
            event.judged |= event.act == Act::Resolve && judged.has_event(i as u32);
        }
        self.judged = judged;
    }

    /// Is the path that is used the one that was resolved, or below what it was resolved to?
    pub(crate) fn is_of_path(&self, r: u32, read: &Event, write: &Event) -> bool {
        let parts = self.cx.syms.path_parts(write.loc.key);
        let from = |part: &Sym| self.deps_of(*part).has_event(r);
        read.loc.key == write.loc.key
            || parts.first().is_some_and(from)
            || write.key_deps.has_event(r)
    }

    pub(crate) fn hand_on_judged(&self, summary: &mut Summary) {
        let outside = |source: Source| !matches!(source, Source::Event(_));
        let deps = self.judged.iter().filter(|dep| outside(dep.source));
        summary.judged = deps.collect();
    }
}
