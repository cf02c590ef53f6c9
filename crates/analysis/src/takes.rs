//! Windows whose write does not wait for the answer: what was read is deleted
//! and then judged, or judged to choose another place than the one looked at.

use std::rc::Rc;

use toctou_core::Name;
use toctou_core::finding::ResourceKind;
use toctou_core::ir::Term;

use crate::effect::{Act, Event, Window};
use crate::held::{Held, MAX_ACQUIRES};
use crate::interp::Interp;
use crate::sym::{self, SymKind};

impl Interp<'_, '_, '_> {
    /// Reads of what a delete takes away, that are judged after it: whoever read
    /// it before the delete goes on as if he alone had it.
    pub(crate) fn taken_by(&self, w: usize) -> Vec<(u32, Option<Name>)> {
        let write = &self.events[w];
        let stored = matches!(write.loc.kind, ResourceKind::Kv | ResourceKind::Row);
        let asked = write
            .row
            .as_ref()
            .is_some_and(|r| r.looked_at || r.returning);
        if write.act != Act::Delete || !stored || asked {
            return Vec::new();
        }
        let mut out = Vec::new();
        for (r, read) in self.events.iter().enumerate() {
            let same = read.act == Act::Read
                && read.loc == write.loc
                && (read.loc.kind == ResourceKind::Kv || read.loc.entry.is_some())
                && (read.call.is_none() || read.call != write.call)
                && self.is_before(read, write);
            if !same {
                continue;
            }
            for (b, block) in self.function.blocks.iter().enumerate() {
                let Term::Branch { cond, .. } = block.term else {
                    continue;
                };
                if !self.cfg.dominates(write.at.block, b as u32) {
                    continue;
                }
                let asked = self.deps_of(self.val(cond));
                out.extend(asked.events().filter(|(e, _)| *e as usize == r));
            }
        }
        out
    }

    /// Two calls, each of which reads and writes: what they make of that is told below.
    pub(crate) fn is_done_by_both(&self, read: &Event, write: &Event) -> bool {
        let (Some(first), Some(second)) = (read.call, write.call) else {
            return false;
        };
        if first == second {
            return false;
        }
        let also = |call: u32, like: &Event| {
            let end = like.trail.last();
            self.events.iter().any(|e| {
                e.call == Some(call)
                    && e.act == like.act
                    && e.loc == like.loc
                    && (e.trail.last().func, e.trail.last().span) == (end.func, end.span)
            })
        };
        also(first, write) && also(second, read)
    }

    /// Is the place looked at only after it was written, and so before the next round of a loop?
    pub(crate) fn looks_after(&self, read: &Event, write: &Event) -> bool {
        self.is_before(write, read)
            || self.events.iter().any(|e| {
                e.act == Act::Open
                    && e.loc == write.loc
                    && self.is_before(e, read)
                    && self.is_before(e, write)
            })
    }

    /// A handler of failures, for what was written and then looked at, does not ask whether it
    /// is there: it puts things back.
    pub(crate) fn puts_right(&self, r: usize, write: &Event) -> bool {
        let read = &self.events[r];
        self.is_handler_block(write.at.block)
            && self.events.iter().enumerate().any(|(e, event)| {
                event.act.is_write()
                    && event.loc == read.loc
                    && event.at != write.at
                    && !self.is_handler_block(event.at.block)
                    && !self.is_before(read, event)
                    && self.walk(e, r).reached
            })
    }

    fn is_before(&self, first: &Event, second: &Event) -> bool {
        if first.at.block == second.at.block {
            return first.at.inst < second.at.inst;
        }
        self.cfg.dominates(first.at.block, second.at.block)
    }

    /// `if path.exists(): path = another`: what was looked at is written where it was not there.
    pub(crate) fn chose_another(&self, r: u32, write: &Event) -> bool {
        let read = &self.events[r as usize];
        let by_choice = write
            .key_deps
            .iter()
            .any(|d| d.implicit && d.source == crate::effect::Source::Event(r));
        if !by_choice || read.loc != write.loc {
            return false;
        }
        self.function.blocks.iter().enumerate().any(|(b, block)| {
            let sets = block
                .insts
                .iter()
                .any(|i| i.op.dst().is_some_and(|v| self.several.contains(&v)));
            sets && self.cfg.controls_of(b as u32).iter().any(|control| {
                let Term::Branch { cond, .. } = self.function.blocks[control.block as usize].term
                else {
                    return false;
                };
                let mut sym = self.val(cond);
                let mut yes = control.way == 0;
                while let SymKind::Not(inner) = self.cx.syms.kind(sym) {
                    sym = *inner;
                    yes = !yes;
                }
                control.way < 2 && yes && self.deps_of(sym).has_event(r)
            })
        })
    }

    /// A library reads, changes and writes back in one call, and another process does the same.
    pub(crate) fn rewritten(&self, w: usize, held: &Held) -> Option<Window> {
        let write = &self.events[w];
        let mut window = Window {
            loc: write.loc,
            through_memory: false,
            path_check: false,
            snapshot: None,
            read: Rc::clone(&write.trail),
            write: Rc::clone(&write.trail),
            read_act: Act::Read,
            write_act: write.act,
            write_mode: write.mode,
            meet: self.id,
            gap: None,
            data: true,
            tested: false,
            compared: false,
            keyed: false,
            checked: Vec::new(),
            read_row: None,
            write_row: None,
            constant: false,
            clears: false,
            in_process: false,
            cross_process: true,
            accidental: false,
            closed_by: None,
            connection: None,
            partial: None,
            other_writes: false,
            given_back: false,
            opens: false,
            duck: write.duck,
            path: None,
            label: self.label(write.at.block),
            detached: false,
            write_in_handler: self.is_handler_block(write.at.block),
            puts_back: false,
            aside: false,
            positive: None,
            taken: false,
            id: sym::through(write.site, write.site),
        };
        let bits = held.at(write.at);
        for (i, a) in self.acquires.iter().enumerate().take(MAX_ACQUIRES) {
            if bits >> i & 1 == 1 {
                self.protect(&mut window, &a.lock);
            }
        }
        self.is_open(&window).then_some(window)
    }
}
