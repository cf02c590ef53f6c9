//! What was handed on is emptied after a wait: `await send(items); items = []`. The write takes
//! nothing from the read and is not decided by it, but it trusts that nothing was added since.
//! Whoever takes the list away first, and then waits, is right.

use toctou_core::finding::ResourceKind;
use toctou_core::ir::{Arg, CallKind, Callee, Op, Var};

use crate::effect::{Act, Event, Source};
use crate::interp::Interp;
use crate::sym::{Sym, SymKind};

/// Buffers are emptied by small functions: in what is larger than this, none is looked for.
const MAX_YIELDS: usize = 32;

impl Interp<'_, '_, '_> {
    /// Does the instruction at hand store a collection that is written out with nothing in it?
    pub(crate) fn stores_empty_collection(&self) -> Option<bool> {
        let insts = &self.function.blocks[self.at.block as usize].insts;
        let value = match insts.get(self.at.inst as usize).map(|inst| &inst.op) {
            Some(Op::StoreVar { value, .. } | Op::SetField { value, .. }) => *value,
            _ => return None,
        };
        let before = insts[..self.at.inst as usize].iter().rev();
        let made = before
            .map(|inst| &inst.op)
            .find(|op| op.dst() == Some(value));
        match made {
            Some(Op::Array { items, .. }) => items.is_empty().then_some(true),
            Some(Op::Object { fields, .. }) => fields.is_empty().then_some(true),
            Some(Op::Call { kind, args, .. }) => {
                (*kind == CallKind::New && args.is_empty()).then_some(false)
            }
            _ => None,
        }
    }

    /// The collection that is emptied: by another in its place, by its length, or as a whole.
    fn emptied_place(&self, write: &Event) -> Option<Sym> {
        let shared = write.empties.is_some() && write.loc.kind == ResourceKind::Memory;
        if !shared || write.loc.entry.is_some() {
            return None;
        }
        match *self.cx.syms.kind(write.loc.key) {
            SymKind::Field(list, field) if field == self.cx.words.length => Some(list),
            SymKind::Field(..) | SymKind::VarLoc(_) | SymKind::Cell(_) => Some(write.loc.key),
            _ => None,
        }
    }

    /// The reads of a collection in memory whose content was handed on before it is emptied.
    pub(crate) fn drained_by(&self, w: usize) -> Vec<u32> {
        let write = &self.events[w];
        let Some(place) = self.emptied_place(write) else {
            return Vec::new();
        };
        if self.anywhere || self.yields.is_empty() || self.yields.len() > MAX_YIELDS {
            return Vec::new();
        }
        // What only may be a collection has to be gone through to be one.
        let is_list = write.act == Act::Write && write.empties == Some(true);
        let mut out = Vec::new();
        for (r, read) in self.events.iter().enumerate() {
            let key = read.loc.key;
            let same = read.loc.kind == ResourceKind::Memory
                && matches!(read.act, Act::Read | Act::List)
                && read.loc.entry.is_none()
                && (key == place || self.is_value_of(key, place) || self.is_value_of(place, key));
            let whole = read.collection || read.act == Act::List;
            if same && (whole || is_list) && self.is_handed_on(r as u32, write) {
                out.push(r as u32);
            }
        }
        out
    }

    /// Is what was read given to a call that is waited for, on the way to the write? (To wait for
    /// each of its elements to close is to be done with them, and what is handed on in callbacks
    /// may be anything.)
    fn is_handed_on(&self, r: u32, write: &Event) -> bool {
        let read = &self.events[r as usize];
        let leads = self.leads_to(write.at.block);
        let insts = || self.function.blocks.iter().flat_map(|b| &b.insts);
        let made = |v: Var| insts().map(|i| &i.op).find(|op| op.dst() == Some(v));
        let of_read = |s: Sym| {
            let deps = self.deps_of(s);
            let mut whole = deps.iter();
            whole.any(|d| d.source == Source::Event(r) && !d.implicit && !d.asked)
        };
        let called_back = |v: Var| match made(v) {
            Some(Op::Call { args, .. }) => {
                let is_function = |a: &Arg| matches!(made(a.value), Some(Op::Func { .. }));
                args.iter().any(is_function)
            }
            _ => false,
        };
        let takes = |v: Var| match made(v) {
            Some(Op::Call { callee, args, .. }) => {
                let own = matches!(callee, Callee::Method { obj, .. } if of_read(self.val(*obj)));
                let given = |a: &Arg| of_read(self.val(a.value)) && !called_back(a.value);
                !own && args.iter().any(given)
            }
            _ => false,
        };
        self.function.blocks.iter().enumerate().any(|(b, block)| {
            let behind = b as u32 == read.at.block || self.cfg.dominates(read.at.block, b as u32);
            behind
                && (leads[b] || b as u32 == write.at.block)
                && (block.insts.iter()).any(|inst| match inst.op {
                    Op::Await { src, .. } => takes(src),
                    _ => false,
                })
        })
    }
}
