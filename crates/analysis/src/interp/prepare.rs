//! What is known of a function before it is gone through: which registers are used, and how, and
//! which are set in several places.

use rustc_hash::FxHashSet;
use toctou_core::ir::{Callee, Op, Term, Var};

use super::Interp;
use super::vars::VarSet;
use crate::sym::SymKind;

impl Interp<'_, '_, '_> {
    pub(super) fn prepare(&mut self) {
        let mut calls = 0;
        let mut once = VarSet::of(self.function.vars.len());
        once.extend(self.function.params.iter().copied());
        for block in &self.function.blocks {
            self.call_ordinals.push(calls);
            for inst in &block.insts {
                if let Some(v) = self.sets(&inst.op)
                    && !once.insert(v)
                {
                    self.several.insert(v);
                }
                match &inst.op {
                    Op::Call { callee, args, .. } => {
                        calls += 1;
                        match callee {
                            Callee::Method { obj, name } => {
                                self.receivers.insert(*obj);
                                let w = &self.cx.words;
                                if ![w.then, w.catch, w.finally].contains(name) {
                                    self.asked_for_more.insert(*obj);
                                }
                                self.used.insert(*obj);
                            }
                            Callee::Value(v) => {
                                self.used.insert(*v);
                            }
                            Callee::Super(_) => {}
                        }
                        self.used.extend(args.iter().map(|a| a.value));
                    }
                    Op::TaggedTemplate { values, .. } => {
                        calls += 1;
                        self.used.extend(values.iter().copied());
                    }
                    Op::Await { src, .. } => {
                        self.awaited.insert(*src);
                        self.used.insert(*src);
                    }
                    Op::Copy { src, .. }
                    | Op::Not { src, .. }
                    | Op::Element { of: src, .. }
                    | Op::StoreVar { value: src, .. }
                    | Op::YieldValue { value: src, .. }
                    | Op::Enter { resource: src, .. } => {
                        self.used.insert(*src);
                    }
                    Op::GetField { obj, .. } => {
                        self.used.insert(*obj);
                    }
                    Op::GetIndex { obj, index, .. } => {
                        self.used.extend([*obj, *index]);
                    }
                    Op::SetField { value, field, .. } => {
                        self.used.insert(*value);
                        self.set_fields.insert(*field);
                    }
                    Op::SetIndex { value, .. } => {
                        self.used.insert(*value);
                    }
                    Op::Object { fields, .. } => {
                        self.used.extend(fields.iter().map(|f| f.1));
                    }
                    Op::Array { items, .. } => {
                        self.used.extend(items.iter().map(|a| a.value));
                    }
                    Op::Concat { parts: from, .. }
                    | Op::Phi { from, .. }
                    | Op::Opaque { from, .. } => self.used.extend(from.iter().copied()),
                    Op::Binary { left, right, .. } => self.used.extend([*left, *right]),
                    Op::Const { .. }
                    | Op::Func { .. }
                    | Op::Class { .. }
                    | Op::Global { .. }
                    | Op::LoadVar { .. }
                    | Op::This { .. }
                    | Op::Delete { .. }
                    | Op::Exit { .. }
                    | Op::Catch { .. } => {}
                }
            }
            match &block.term {
                Term::Branch { cond, .. } => {
                    self.used.insert(*cond);
                }
                Term::Return(Some(v)) | Term::Throw(v) => {
                    self.used.insert(*v);
                }
                _ => {}
            }
        }
        self.note_where_set();
        for (i, param) in self.function.params.iter().enumerate() {
            let sym = self.cx.syms.make(SymKind::Param(i as u32));
            self.vals[param.0 as usize] = sym;
            // A parameter that is set again joins what it is set to.
            self.assigned[param.0 as usize] = u32::MAX;
        }
    }

    /// The variable that an instruction sets.
    pub(crate) fn sets(&self, op: &Op) -> Option<Var> {
        match op {
            Op::StoreVar { cell, .. } if cell.owner == self.id => Some(cell.var),
            op => op.dst(),
        }
    }

    fn note_where_set(&mut self) {
        if self.several.is_empty() {
            return;
        }
        let mut cells: FxHashSet<Var> = FxHashSet::default();
        for (b, block) in self.function.blocks.iter().enumerate() {
            for inst in &block.insts {
                let Some(v) = self.sets(&inst.op).filter(|v| self.several.contains(v)) else {
                    continue;
                };
                self.set_in.entry(v).or_default().push(b as u32);
                if matches!(inst.op, Op::StoreVar { .. }) {
                    cells.insert(v);
                }
            }
        }
        self.set_in.retain(|v, _| !cells.contains(v));
    }

    pub(super) fn needs_two_rounds(&self) -> bool {
        self.cfg.has_loop
            || self.function.blocks.iter().flat_map(|b| &b.insts).any(|i| {
                matches!(
                    i.op,
                    Op::StoreVar { .. }
                        | Op::SetField { .. }
                        | Op::SetIndex { .. }
                        | Op::Catch { .. }
                )
            })
    }
}
