//! Windows whose write does not wait for the answer: what was read is deleted
//! and then judged, or judged to choose another place than the one looked at.

use rustc_hash::FxHashSet;
use toctou_core::Name;
use toctou_core::finding::ResourceKind;
use toctou_core::ir::{Op, Term, Var};
use toctou_models::Mode;

use crate::cfg::{Control, EdgeKind};
use crate::effect::{Act, Dep, Deps, Event, Loc, Pos, Source, Window};
use crate::held::{Held, MAX_ACQUIRES};
use crate::interp::Interp;
use crate::sym::{self, CalleeSym, SymKind};

/// Who looks at more names than this does something else than to choose one.
const MAX_NAMES: usize = 8;

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
        let reads = self.stored_reads.get(&write.loc);
        for r in reads.into_iter().flatten().map(|r| *r as usize) {
            let read = &self.events[r];
            let same = (read.loc.kind == ResourceKind::Kv || read.loc.entry.is_some())
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
            self.events_of(call).any(|e| {
                let e = &self.events[e as usize];
                e.act == like.act && e.loc == like.loc && e.trail.last() == like.trail.last()
            })
        };
        also(first, write) && also(second, read)
    }

    /// Is the place looked at only after it was written, and so before the next round of a loop?
    /// Or after it was opened for the write: who opens it once more has looked before. (What was
    /// to be created and is there, another has opened.)
    pub(crate) fn looks_after(&self, read: &Event, write: &Event) -> bool {
        let created = |at: Pos| {
            let exclusive = |e: &Event| e.mode == Mode::Exclusive && e.loc == write.loc;
            self.events.iter().any(|e| e.at == at && exclusive(e))
        };
        let opened = |e: &Event| {
            let before = e.act == Act::Open && e.loc == write.loc && self.is_before(e, write);
            before && !created(e.at)
        };
        let (before, after): (Vec<&Event>, Vec<&Event>) = self
            .events
            .iter()
            .filter(|e| opened(e))
            .partition(|e| self.is_before(e, read));
        self.is_before(write, read)
            || !before.is_empty() && !after.iter().any(|e| self.is_before(read, e))
    }

    /// Is it another file than the one that was looked at, whichever way leads here? One that was
    /// created meanwhile, where there was none any more.
    pub(crate) fn is_made_anew(&self, read: &Event, write: &Event) -> bool {
        if write.loc.kind != ResourceKind::File {
            return false;
        }
        let made = |e: &&Event| {
            e.mode == Mode::Exclusive
                && e.act == Act::Write
                && e.loc == write.loc
                && e.at != write.at
        };
        let made: Vec<Pos> = self.events.iter().filter(made).map(|e| e.at).collect();
        if made.is_empty() {
            return false;
        }
        let mut seen: FxHashSet<u32> = FxHashSet::default();
        let mut work = vec![(read.at.block, read.at.inst + 1)];
        while let Some((block, start)) = work.pop() {
            let here = |at: &Pos| at.block == block && at.inst >= start;
            let first = made.iter().filter(|at| here(at)).map(|at| at.inst).min();
            if here(&write.at) && first.is_none_or(|first| write.at.inst < first) {
                return false;
            }
            // Where it could not be created, what is there is what was there.
            let next = self.cfg.succs[block as usize].iter();
            let next = next.filter(|edge| first.is_none() || edge.kind == EdgeKind::Handler);
            work.extend(next.map(|edge| (edge.to.0, 0)).filter(|n| seen.insert(n.0)));
        }
        true
    }

    /// A handler of failures, for what was written and then looked at, does not ask whether it
    /// is there: it puts things back. (What could not be created since it is there is another's.)
    pub(crate) fn puts_right(&self, r: usize, write: &Event) -> bool {
        let read = &self.events[r];
        let created = |event: &Event| {
            let first = |e: &Event| e.mode == Mode::Exclusive && e.loc == event.loc;
            first(event) || (self.events.iter()).any(|e| first(e) && self.is_before(e, event))
        };
        self.is_handler_block(write.at.block)
            && self.events.iter().enumerate().any(|(e, event)| {
                event.act.is_write()
                    && event.loc == read.loc
                    && !created(event)
                    && event.at != write.at
                    && !self.is_handler_block(event.at.block)
                    && !self.is_before(read, event)
                    && self.walk(e, r).reached
            })
    }

    /// `if let Err(e) = write(path, new) { write(path, old) }`: what was there before is put back,
    /// and only because the file system has failed to do what it was told. No other call makes
    /// it fail.
    pub(crate) fn restores(&self, r: u32, write: &Event) -> bool {
        let read = &self.events[r as usize];
        if read.loc.kind != ResourceKind::File || read.loc != write.loc || write.act != Act::Write {
            return false;
        }
        // Read twice, it is one term.
        let of_file = |source: Source| match source {
            Source::Event(e) => {
                let event = &self.events[e as usize];
                event.act == Act::Read && event.loc == write.loc
            }
            _ => false,
        };
        if !(write.data.iter().filter(|d| !d.implicit && !d.asked)).all(|d| of_file(d.source)) {
            return false;
        }
        let failed = |cond: Var| {
            self.events.iter().any(|e| {
                let touches = e.loc == write.loc && (e.act == Act::Read || e.act == Act::Write);
                touches && e.call.is_none() && e.at != write.at && self.is_given_by(cond, e.at)
            })
        };
        self.cfg.controls_of(write.at.block).iter().any(|control| {
            let block = &self.function.blocks[control.block as usize];
            control.way == 1 && matches!(block.term, Term::Branch { cond, .. } if failed(cond))
        })
    }

    /// Is a register what a call gave back, waited for or not?
    fn is_given_by(&self, var: Var, call: Pos) -> bool {
        let block = &self.function.blocks[call.block as usize];
        let Some(dst) = block.insts.get(call.inst as usize).and_then(|i| i.op.dst()) else {
            return false;
        };
        let mut insts = self.function.blocks.iter().flat_map(|b| &b.insts);
        dst == var
            || insts.any(|i| matches!(i.op, Op::Await { dst: d, src } if d == var && src == dst))
    }

    /// A callee tested it, took it and only then gave the lock back (`if running[k] { return
    /// false }; running[k] = true`). It is that claim which a later delete ends: nobody else
    /// got through the test.
    pub(crate) fn is_claimed(&self, r: usize, write: &Event) -> bool {
        let read = &self.events[r];
        let Some(lock) = &read.lock else {
            return false;
        };
        let claims = |e: &Event| {
            let held = e.lock.as_ref();
            e.call == read.call
                && e.loc == read.loc
                && e.act.is_write()
                && e.ctrl.has_event(r as u32)
                && held.is_some_and(|l| (l.func, l.span) == (lock.func, lock.span))
        };
        read.call.is_some() && read.call != write.call && self.events.iter().any(claims)
    }

    pub(crate) fn is_before(&self, first: &Event, second: &Event) -> bool {
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
        by_choice && read.loc == write.loc && (read.free || self.passes_over(r))
    }

    /// Is a variable set to something else where what was looked at is there?
    fn passes_over(&self, r: u32) -> bool {
        self.function.blocks.iter().enumerate().any(|(b, block)| {
            let sets = block
                .insts
                .iter()
                .any(|i| i.op.dst().is_some_and(|v| self.several.contains(&v)));
            let controls = self.cfg.controls_of(b as u32);
            sets && controls.iter().any(|c| self.is_there(c, r) == Some(true))
        })
    }

    /// The events that look whether the name that is given back is free.
    pub(crate) fn free_names(&self, ret_deps: &Deps) -> Vec<u32> {
        let mut out = Vec::new();
        let looks =
            |e: &Event| e.act == Act::Check && e.loc.kind == ResourceKind::File && e.call.is_none();
        let names = self.events.iter().enumerate().filter(|(_, e)| looks(e));
        for (r, _) in names.take(MAX_NAMES) {
            let r = r as u32;
            let decided = |d: Dep| d.implicit && d.source == Source::Event(r);
            let replaced = ret_deps.iter().any(decided) && self.passes_over(r);
            if replaced || self.gives_back_absent(r) {
                out.push(r);
            }
        }
        out
    }

    /// `if not path.exists(): return path`
    fn gives_back_absent(&self, r: u32) -> bool {
        let key = self.events[r as usize].loc.key;
        self.function.blocks.iter().enumerate().any(|(b, block)| {
            let Term::Return(Some(v)) = block.term else {
                return false;
            };
            let value = self.val(v);
            !self.is_constant(value)
                && self.cx.syms.contains(key, value)
                && (self.cfg.controls_of(b as u32).iter())
                    .any(|c| self.is_there(c, r) == Some(false))
        })
    }

    /// Does it get here only if what is there is no folder?
    pub(crate) fn is_no_folder(&self, loc: Loc) -> bool {
        let syms = &self.cx.syms;
        self.cfg.controls_of(self.at.block).iter().any(|control| {
            let Term::Branch { cond, .. } = self.function.blocks[control.block as usize].term
            else {
                return false;
            };
            let mut sym = self.val(cond);
            let mut no = control.way == 1;
            while let SymKind::Not(inner) = syms.kind(sym) {
                sym = *inner;
                no = !no;
            }
            let asks = matches!(syms.kind(sym), SymKind::Call(call)
                if matches!(call.callee, CalleeSym::Method(m) if self.cx.words.folders.contains(&m)));
            let deps = self.deps_of(sym);
            let mut asked = deps.events();
            control.way < 2
                && no
                && asks
                && asked.any(|(e, _)| self.events[e as usize].loc.key == loc.key)
        })
    }

    /// Is that way taken where what was looked at is there, or where it is not?
    fn is_there(&self, control: &Control, r: u32) -> Option<bool> {
        let Term::Branch { cond, .. } = self.function.blocks[control.block as usize].term else {
            return None;
        };
        let mut sym = self.val(cond);
        let mut yes = control.way == 0;
        while let SymKind::Not(inner) = self.cx.syms.kind(sym) {
            sym = *inner;
            yes = !yes;
        }
        let asides = &self.cx.words.asides;
        let is_asked =
            |(e, attr): (u32, Option<Name>)| e == r && attr.is_none_or(|a| !asides.contains(&a));
        let asked = self.deps_of(sym).events().any(is_asked);
        (control.way < 2 && asked).then_some(yes)
    }

    /// A library reads, changes and writes back in one call, and another process does the same.
    pub(crate) fn rewritten(&self, w: usize, held: &Held) -> Option<Window> {
        let write = &self.events[w];
        let id = sym::through(write.site, write.site);
        let mut window = Window::between_processes(self.id, &write.trail, write, id);
        window.label = self.label(write.at.block);
        window.write_in_handler = self.is_handler_block(write.at.block);
        let bits = held.at(write.at);
        for (i, a) in self.acquires.iter().enumerate().take(MAX_ACQUIRES) {
            if bits >> i & 1 == 1 {
                self.protect(&mut window, &a.lock);
            }
        }
        self.is_open(&window).then_some(window)
    }
}
