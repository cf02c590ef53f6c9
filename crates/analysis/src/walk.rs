//! All ways from a read to a write, and what is met on them.

use std::collections::VecDeque;

use rustc_hash::FxHashSet;
use toctou_core::Span;
use toctou_core::finding::ResourceKind;
use toctou_core::ir::Op;

use crate::effect::{Act, Event, Loc, Pos};
use crate::interp::Interp;
use crate::sym::{Sym, SymKind};

/// What a walk from a read to a write met.
pub(crate) struct Walk {
    pub(crate) reached: bool,
    pub(crate) yielded: bool,
    pub(crate) gap: Option<Span>,
    pub(crate) broken: u64,
    pub(crate) other_writes: bool,
    /// Callees keep files that have nothing to do with the entry.
    pub(crate) files_aside: bool,
    /// Something is started or connected that does not end by itself.
    pub(crate) opens: bool,
    /// Somebody outside is told something.
    pub(crate) sends: bool,
    /// Something is called, or a loop goes round.
    pub(crate) calls: bool,
}

impl Interp<'_, '_, '_> {
    /// All ways from a read to a write that do not pass the read again, a
    /// second look at the same thing, or a claim of it.
    pub(crate) fn walk(&self, r: usize, w: usize) -> Walk {
        self.walk_past(r, w, |_| false)
    }

    /// Is the write made before anybody else can run, on every way from the read?
    pub(crate) fn is_at_once(&self, r: usize, w: usize) -> bool {
        let walk = self.walk_past(r, w, |_| true);
        walk.reached && !walk.yielded
    }

    pub(crate) fn walk_past(&self, r: usize, w: usize, passed: impl Fn(&Event) -> bool) -> Walk {
        let (read, write) = (&self.events[r], &self.events[w]);
        let mut result = Walk {
            reached: false,
            yielded: false,
            gap: None,
            broken: 0,
            other_writes: false,
            files_aside: false,
            opens: false,
            sends: false,
            calls: self.is_call(read.at),
        };
        let mut stops: FxHashSet<Pos> = FxHashSet::default();
        let mut claims: FxHashSet<Pos> = FxHashSet::default();
        let mut others: FxHashSet<Pos> = FxHashSet::default();
        let mut opened: FxHashSet<Pos> = FxHashSet::default();
        let mut aside: FxHashSet<Pos> = FxHashSet::default();
        let mut sent: FxHashSet<Pos> = FxHashSet::default();
        stops.insert(read.at);
        let data = write
            .data
            .on_event(r as u32)
            .any(|d| !d.implicit && !d.asked);
        let part = self.attribute(read, write).filter(|_| self.guarded);
        for (i, e) in self.events.iter().enumerate() {
            if i == r || i == w || e.at == write.at || e.at == read.at || passed(e) {
                continue;
            }
            let trusted = |i: u32| write.data.has_event(i) || !data && write.ctrl.has_event(i);
            // To find an entry again is not to look again at what is in it.
            let again = match part {
                Some(name) if e.loc == read.loc => self.trusts_attribute(write, i as u32, name),
                Some(_) => e.loc == write.loc,
                None => e.loc == read.loc,
            };
            if e.act.is_read() && again && trusted(i as u32) {
                stops.insert(e.at);
            }
            // What is opened below, after a check there, is a window there.
            let checked_below = || {
                e.call.is_some()
                    && e.ctrl.events().any(|(c, _)| {
                        let check = &self.events[c as usize];
                        check.call == e.call && check.loc.kind == ResourceKind::Memory
                    })
            };
            if e.act == Act::Open && !checked_below() {
                others.insert(e.at);
                if e.loc.kind == ResourceKind::External {
                    opened.insert(e.at);
                }
            }
            if e.act == Act::Send {
                sent.insert(e.at);
            }
            if e.act.is_write() {
                if e.loc == read.loc && e.loc.kind == ResourceKind::Memory {
                    claims.insert(e.at);
                } else if e.loc != read.loc && !e.local && hurts_twice(e) {
                    if self.is_file_aside(e, read.loc) {
                        aside.insert(e.at);
                    } else {
                        others.insert(e.at);
                    }
                }
            }
        }
        let same_block = read.at.block == write.at.block;
        let mut seen: FxHashSet<(u32, bool)> = FxHashSet::default();
        let mut work: VecDeque<(u32, u32, bool, Option<Span>)> = VecDeque::new();
        work.push_back((
            read.at.block,
            read.at.inst + 1,
            read.yields_after,
            read.yields_after.then_some(read.trail.span),
        ));
        if same_block && read.at.inst == write.at.inst {
            // Two accesses of one call: in the order of the events.
            if r < w {
                result.reached = true;
                result.yielded = read.yields_after || write.yields_before;
            }
            return result;
        }
        // A throw from the reading instruction itself leads to the handler.
        if let Some(handler) = self.function.blocks[read.at.block as usize].handler {
            work.push_back((handler.0, 0, read.yields_after, None));
        }
        let leads = self.leads_past(write.at, &stops);
        let mut budget = 20_000;
        while let Some((block, from, mut yielded, mut gap)) = work.pop_front() {
            let last = block == write.at.block && from <= write.at.inst;
            if !last
                && !self.cfg.succs[block as usize]
                    .iter()
                    .any(|e| leads[e.to.0 as usize])
            {
                continue;
            }
            let insts = self.function.blocks[block as usize].insts.len() as u32;
            let mut stopped = false;
            for i in from..insts {
                budget -= 1;
                let at = Pos { block, inst: i };
                if at == write.at {
                    result.reached = true;
                    let y = yielded || write.yields_before;
                    if y && !result.yielded {
                        result.yielded = true;
                        result.gap = gap.or(write.yields_before.then_some(write.trail.span));
                    }
                    stopped = true;
                    break;
                }
                if stops.contains(&at) || (!yielded && claims.contains(&at)) {
                    stopped = true;
                    break;
                }
                if others.contains(&at) {
                    result.other_writes = true;
                    result.opens |= opened.contains(&at);
                }
                result.files_aside |= aside.contains(&at);
                result.sends |= sent.contains(&at);
                result.calls |= self.is_call(at);
                result.broken |= self.given_back_at(at);
                if let Some(span) = self.yields.get(&at) {
                    yielded = true;
                    gap = gap.or(Some(*span));
                }
            }
            if stopped || budget <= 0 {
                continue;
            }
            for edge in &self.cfg.succs[block as usize] {
                if leads[edge.to.0 as usize] && seen.insert((edge.to.0, yielded)) {
                    result.calls |= edge.to.0 <= block;
                    work.push_back((edge.to.0, 0, yielded, gap));
                }
            }
        }
        result
    }

    fn is_call(&self, at: Pos) -> bool {
        let inst = self.function.blocks[at.block as usize]
            .insts
            .get(at.inst as usize);
        inst.is_some_and(|i| matches!(i.op, Op::Call { .. } | Op::TaggedTemplate { .. }))
    }

    /// A file that a callee keeps for itself (a log, its settings), the same one whatever
    /// entry of a table is looked up here: it is not what the entry is made of.
    fn is_file_aside(&self, e: &Event, entry: Loc) -> bool {
        let SymKind::Index(_, key) = *self.cx.syms.kind(entry.key) else {
            return false;
        };
        let syms = &self.cx.syms;
        let own = |part: Sym| match syms.kind(part) {
            SymKind::Fresh(_) | SymKind::Unknown(_) => true,
            SymKind::Param(_) | SymKind::Cell(_) => syms.contains(key, part),
            _ => false,
        };
        e.loc.kind == ResourceKind::File && e.call.is_some() && !syms.any(e.loc.key, own)
    }

    /// Blocks from whose start a block can be reached, itself included.
    pub(crate) fn leads_to(&self, block: u32) -> Vec<bool> {
        self.leads_past(Pos { block, inst: 0 }, &FxHashSet::default())
    }

    /// Blocks from whose start a place can be reached without one that stops. What is done on other
    /// ways is not done between the two: a lock in a loop is given back before the next round.
    fn leads_past(&self, to: Pos, stops: &FxHashSet<Pos>) -> Vec<bool> {
        let mut leads = vec![false; self.function.blocks.len()];
        let stopped_before = |stop: &Pos| stop.block == to.block && stop.inst < to.inst;
        if stops.iter().any(stopped_before) {
            // Only from within the block itself.
            return leads;
        }
        leads[to.block as usize] = true;
        let mut work = vec![to.block];
        while let Some(b) = work.pop() {
            for &p in &self.cfg.preds[b as usize] {
                if stops.iter().any(|stop| stop.block == p) {
                    continue;
                }
                if !std::mem::replace(&mut leads[p as usize], true) {
                    work.push(p);
                }
            }
        }
        leads
    }
}

/// Would doing this twice be more than waste?
pub(crate) fn hurts_twice(e: &Event) -> bool {
    match e.loc.kind {
        // A number that was raised twice (hits, failures) says that it was done twice.
        // What a callee notes down for itself (calls it has let through) says no more.
        ResourceKind::Memory => e.act == Act::Append && !e.in_handler && e.call.is_none(),
        ResourceKind::External => e.act == Act::Send,
        // Gone is gone, and set to the same is the same.
        ResourceKind::Row => e.act != Act::Delete && !is_set_to_constants(e),
        _ => true,
    }
}

fn is_set_to_constants(e: &Event) -> bool {
    e.data.is_empty()
        && e.act == Act::Write
        && e.row
            .as_ref()
            .is_some_and(|row| !row.insert && row.relative.is_empty())
}
