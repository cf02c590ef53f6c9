//! Do a read and a write mean the same thing, and does the write itself make
//! sure that what was read still holds?

use std::cell::Cell;
use std::rc::Rc;

use rustc_hash::FxHashSet;
use toctou_core::Name;
use toctou_core::finding::ResourceKind;
use toctou_core::ir::{BinOp, Callee, Op, Var};
use toctou_models::Mode;

use crate::effect::{Act, Dep, Deps, Event, Pos, Row, Source};
use crate::interp::Interp;
use crate::sym::{self, CalleeSym, Sym, SymKind};

/// Parts of two paths that are compared with each other.
const MAX_COMPARED: u32 = 64;

impl Interp<'_, '_, '_> {
    /// A name with a counter or the like in it is another one at every call.
    pub(crate) fn changes_by_call(&self, name: Sym) -> bool {
        let mut stack = vec![name];
        let mut budget = 64;
        while let Some(s) = stack.pop() {
            budget -= 1;
            if budget == 0 {
                return false;
            }
            let counter = match self.cx.syms.kind(s) {
                SymKind::Field(base, field) => {
                    self.cx.counted_fields.contains(field) || self.is_new_part(*base, *field)
                }
                SymKind::Cell(cell) | SymKind::VarLoc(cell) => self.cx.mutable_cells.contains(cell),
                _ => false,
            };
            if counter {
                return true;
            }
            sym::for_each_child(self.cx.syms.kind(s), |c| stack.push(c));
        }
        false
    }

    /// Is it what a function put anew into each of the objects that a list was made of?
    fn is_new_part(&self, object: Sym, field: Name) -> bool {
        match self.cx.syms.kind(object) {
            SymKind::Element(list) | SymKind::Index(list, _) => {
                self.new_parts.contains(&(*list, field))
            }
            _ => false,
        }
    }

    /// Does the call that contains the write look for itself, before it writes?
    /// With `data`, does it make the new value from what it sees then?
    pub(crate) fn looks_again(&self, read: &Event, w: usize, data: bool) -> bool {
        let write = &self.events[w];
        // That an entry is there says nothing about what is in it.
        let part = self.attribute(read, write).filter(|_| self.guarded);
        let looks = |i: u32| {
            let e = &self.events[i as usize];
            // Of rows, it looks at those that it writes, however they were found.
            let rows = || e.loc.kind == ResourceKind::Row && e.loc.key == read.loc.key;
            let same = || match data && rows() {
                // What is written is made of what it sees then, and of nothing seen before.
                true => self.asks_for(e, write) && !self.asks_for(read, write),
                false => e.loc == read.loc || rows(),
            };
            e.act.is_read()
                && same()
                && part.is_none_or(|name| self.trusts_attribute(write, i, name))
                && (write.data.has_event(i) || !data && write.ctrl.has_event(i))
        };
        write
            .call
            .is_some_and(|call| self.events_of(call).any(looks))
    }

    /// Does a query ask for a column that a statement writes?
    fn asks_for(&self, query: &Event, write: &Event) -> bool {
        let (Some(asked), Some(written)) = (&query.row, &write.row) else {
            return true;
        };
        let all = |c: &Name| self.cx.names.text(*c) == "*" || written.columns.contains(c);
        asked.columns.is_empty() || asked.columns.iter().any(all)
    }

    /// `x = fresh || x`: what the statement itself reads, nobody has come between.
    pub(crate) fn reads_in_place(&self, read: &Event, w: usize) -> bool {
        let write = &self.events[w];
        read.loc.kind == ResourceKind::Memory
            && write.call.is_none()
            && self.events.iter().enumerate().any(|(i, e)| {
                e.call.is_none()
                    && e.act == Act::Read
                    && e.loc == read.loc
                    && e.trail.span != read.trail.span
                    && e.is_within(write)
                    && write.data.has_event(i as u32)
                    && !self.walk(i, w).yielded
            })
    }

    /// `if (old === text) return; write(text)`: to leave out a write that changes nothing is to
    /// make it.
    pub(crate) fn is_unless_same(&self, r: usize, write: &Event) -> bool {
        let Some(value) = write.value else {
            return false;
        };
        // Of two who find a row open and close it, each may do more than that.
        let row = write.loc.kind == ResourceKind::Row;
        if row && (self.is_constant(value) || self.does_more(r as u32, write)) {
            return false;
        }
        self.decisions(write.at.block)
            .iter()
            .any(|&(_, sym, same)| {
                let SymKind::Eq(a, b) = *self.cx.syms.kind(sym) else {
                    return false;
                };
                let old = |s: Sym| {
                    let deps = self.deps_of(s);
                    let of_it = deps.has_event(r as u32);
                    of_it && (!row || self.is_all_that_was_asked(r as u32, &deps, write))
                };
                !same && (a == value && old(b) || b == value && old(a))
            })
    }

    /// Does what was read decide about something else that is done before the write? A file that is
    /// moved, and then its row: the second finds it moved already.
    fn does_more(&self, r: u32, write: &Event) -> bool {
        let leads = self.leads_to(write.at.block);
        self.events.iter().any(|e| {
            e.act.is_write()
                && e.loc.kind != ResourceKind::Memory
                && e.loc.key != write.loc.key
                && (leads[e.at.block as usize] && e.at < write.at)
                && self.control_deps(e.at.block).has_event(r)
        })
    }

    /// Of the row that an event read, was nothing asked but whether there is one, and this?
    fn is_all_that_was_asked(&self, r: u32, this: &Deps, write: &Event) -> bool {
        let others = self.cx.words.others;
        let asked = write.ctrl.on_event(r).filter_map(|d| d.attr);
        let mut asked = asked.filter(|a| !others.contains(a));
        asked.all(|a| this.on_event(r).any(|d| d.attr == Some(a)))
    }

    /// How much there is in memory was compared with a limit, and then there is more of it:
    /// an entry is added, a number is raised. Nothing is lost by that, but two pass the test.
    pub(crate) fn counts_up(&self, r: usize, w: usize) -> bool {
        let (read, write) = (&self.events[r], &self.events[w]);
        let memory = read.loc.kind == ResourceKind::Memory && write.loc.kind == read.loc.kind;
        let own = read.call.is_none() && write.call.is_none();
        if !memory || !own || read.act != Act::Read {
            return false;
        }
        let place = write.loc.key == read.loc.key;
        let entry = place && write.loc.entry.is_some()
            || matches!(self.cx.syms.kind(write.loc.key), SymKind::Index(base, _) if *base == read.loc.key);
        // Most are about other places, and what is compared with what takes long to find out.
        if !place && !entry {
            return false;
        }
        if self.runs_out(r, write) {
            return write.loc == read.loc && self.reads_in_place(read, w);
        }
        if !self.is_limited(r, write) {
            return false;
        }
        match write.act {
            Act::Append => place && !self.is_there_already(write),
            Act::Write => {
                entry
                    || write.loc == read.loc
                        && (self.is_raised(write) || self.is_spent(r, write))
                        && self.reads_in_place(read, w)
            }
            _ => false,
        }
    }

    /// What was put under a name of its own before is not one more when it is put there again.
    fn is_there_already(&self, write: &Event) -> bool {
        let first = |e: &Event| {
            e.act == Act::Append
                && e.mode == Mode::Exclusive
                && e.loc == write.loc
                && e.at != write.at
        };
        write.mode == Mode::Exclusive
            && (self.events.iter()).any(|e| first(e) && self.is_before(e, write))
    }

    /// A list was searched for an entry, and since there is none it is added. Nothing is lost by
    /// that, but then it is there twice.
    pub(crate) fn is_searched(&self, r: usize, write: &Event) -> bool {
        let read = &self.events[r];
        let own = read.call.is_none() && write.call.is_none();
        let added = write.act == Act::Append && write.mode != Mode::Exclusive;
        if !own || !added || write.loc.kind != ResourceKind::Memory {
            return false;
        }
        match read.act {
            Act::Check => {
                matches!(self.cx.syms.kind(read.loc.key), SymKind::Index(list, _) if *list == write.loc.key)
                    && self.said_at(r, write.at.block).1 == Some(false)
            }
            Act::Read => read.loc == write.loc && self.is_gone_through(r, write),
            _ => false,
        }
    }

    /// Was each of what is in a list compared with something, and none is the same?
    fn is_gone_through(&self, r: usize, write: &Event) -> bool {
        let of_list = |s: Sym| self.deps_of(s).has_event(r as u32);
        let decisions = self.decisions(write.at.block);
        decisions
            .iter()
            .any(|&(_, sym, holds)| match *self.cx.syms.kind(sym) {
                SymKind::Eq(a, b) => {
                    let constant = self.is_constant(a) || self.is_constant(b);
                    !holds && !constant && of_list(a) != of_list(b)
                }
                _ => false,
            })
    }

    /// Is something added to what was there? (`active--` at the end gives a place back.)
    fn is_raised(&self, write: &Event) -> bool {
        matches!(self.combined(write), Some((BinOp::Add, ..)))
    }

    /// Is there less of it by as much as there had to be? (`if (balance < n) throw …; balance -= n`)
    pub(crate) fn is_spent(&self, r: usize, write: &Event) -> bool {
        let Some((BinOp::Arith, left, right)) = self.combined(write) else {
            return false;
        };
        let limits = self.limits(r, write);
        limits.contains(&self.val(left))
            || limits.contains(&self.val(right))
            || self.runs_out(r, write)
    }

    /// Whoever finds that there is none left is refused, and then there is one less:
    /// `if (credits <= 0) throw …; credits--`. (Who raises it, too, gives back what it took.)
    fn runs_out(&self, r: usize, write: &Event) -> bool {
        let Some((BinOp::Arith, _, taken)) = self.combined(write) else {
            return false;
        };
        let number = |s: Sym| match *self.cx.syms.kind(s) {
            SymKind::Num(n) => Some(self.cx.names.text(n)),
            _ => None,
        };
        let raises = |e: &Event| e.act == Act::Write && e.loc == write.loc && self.is_raised(e);
        if number(self.val(taken)).is_none() || self.events.iter().any(raises) {
            return false;
        }
        let left = |s: Sym| self.deps_of(s).has_event(r as u32);
        let none = |s: Sym| matches!(number(s), Some("0" | "1"));
        let compared = |a: Sym, b: Sym| left(a) && none(b) || left(b) && none(a);
        let asked = |sym: Sym| match self.cx.syms.kind(sym) {
            SymKind::Eq(a, b) => compared(*a, *b),
            SymKind::Call(call) if call.callee == CalleeSym::Method(self.cx.words.op) => {
                matches!(*call.args, [a, b] if compared(a, b))
            }
            _ => false,
        };
        self.decisions(write.at.block)
            .iter()
            .any(|&(control, sym, _)| {
                asked(sym) && self.is_refused_otherwise(control, write.at.block)
            })
    }

    /// Is it reckoned from what was read: a number that is less or more than the old one?
    pub(crate) fn is_reckoned(&self, r: usize, write: &Event) -> bool {
        let old = |var: Var| self.deps_of(self.val(var)).has_event(r as u32);
        matches!(self.combined(write), Some((BinOp::Add | BinOp::Arith, a, b)) if old(a) || old(b))
    }

    /// Of what two values and how is it made, what is written here?
    fn combined(&self, write: &Event) -> Option<(BinOp, Var, Var)> {
        let value = self.set_to(write)?;
        let mut all = self.function.blocks.iter().flat_map(|b| &b.insts);
        all.find_map(|inst| match inst.op {
            Op::Binary {
                dst,
                op,
                left,
                right,
            } if dst == value => Some((op, left, right)),
            _ => None,
        })
    }

    /// What a statement of this function sets a place to.
    fn set_to(&self, write: &Event) -> Option<Var> {
        let insts = &self.function.blocks[write.at.block as usize].insts;
        match insts.get(write.at.inst as usize)?.op {
            Op::StoreVar { value, .. }
            | Op::SetField { value, .. }
            | Op::SetIndex { value, .. } => Some(value),
            // `table.set(key, value)`
            Op::Call { ref args, .. } => args.last().map(|arg| arg.value),
            _ => None,
        }
    }

    /// Is it one of several states that was looked for, and another that is set? Whoever finds it
    /// in the first state takes it for itself: a task that is open, a job that is queued.
    pub(crate) fn is_passed_on(&self, r: usize, write: &Event) -> bool {
        let set = self.set_to(write).map(|var| self.val(var));
        let Some(next) = set.filter(|v| self.is_state(*v)) else {
            return false;
        };
        let decisions = self.decisions(write.at.block);
        decisions.iter().any(|&(_, sym, holds)| {
            let SymKind::Eq(a, b) = *self.cx.syms.kind(sym) else {
                return false;
            };
            let read = |s: Sym| self.deps_of(s).has_event(r as u32);
            let state = |s: Sym| self.is_state(s) && s != next;
            holds && (read(a) && state(b) || read(b) && state(a))
        })
    }

    /// A word or a member of an enumeration. (Of yes and no, one says that it is done.)
    fn is_state(&self, sym: Sym) -> bool {
        match *self.cx.syms.kind(sym) {
            SymKind::Str(text) => !self.cx.names.text(text).is_empty(),
            SymKind::Field(base, _) => matches!(self.cx.syms.kind(base), SymKind::Class(_)),
            _ => false,
        }
    }

    /// A collection in memory, gone through with pauses, and written out whole.
    pub(crate) fn is_snapshot(&self, r: u32, write: &Event, data: bool) -> bool {
        let read = &self.events[r as usize];
        data && read.act == Act::Read
            && read.loc.kind == ResourceKind::Memory
            // What is far below is what somebody's validator or cache goes through.
            && read.trail.depth() <= 2
            && write.loc.kind == ResourceKind::File
            && write.act == Act::Write
            && read.collection
            // A file for each of its entries is written from that entry, not from the whole.
            && !write.key_deps.iter().any(|d| {
                matches!(d.source, Source::Param(_)) || d.source == Source::Event(r)
            })
    }

    pub(crate) fn same_place(&self, read: &Event, write: &Event, r: u32) -> bool {
        if read.loc.kind != write.loc.kind {
            return false;
        }
        match read.loc.kind {
            ResourceKind::File => {
                read.loc.key == write.loc.key
                    || self.is_same_record(read.loc.key, write.loc.key, r)
                    || self.is_carried(write, r) && self.may_be_same(read, write)
                    || (read.act == Act::List && self.is_listed(read, write, r))
            }
            ResourceKind::Row => read.loc.key == write.loc.key && self.same_row(read, write, r),
            ResourceKind::Kv => {
                let same = read.loc.key == write.loc.key
                    || self.is_carried(write, r)
                        && self.is_same_record(read.loc.key, write.loc.key, r);
                same && read.loc.entry == write.loc.entry
            }
            ResourceKind::Memory => {
                read.loc.key == write.loc.key
                    || self.is_under_own_key(read, write, r)
                    || self.is_attribute_seen(read, write, r)
            }
            _ => false,
        }
    }

    /// Of an entry that was read as a whole, which attribute of it is written?
    pub(crate) fn attribute(&self, read: &Event, write: &Event) -> Option<Name> {
        let memory = read.loc.kind == ResourceKind::Memory && write.loc.kind == read.loc.kind;
        let entry = matches!(self.cx.syms.kind(read.loc.key), SymKind::Index(..));
        match *self.cx.syms.kind(write.loc.key) {
            SymKind::Field(base, name) if memory && entry && base == read.loc.key => {
                Some(name).filter(|n| *n != self.cx.words.content)
            }
            _ => None,
        }
    }

    /// `let t = tasks.get(id).cloned(); if t.owner …; tasks.get_mut(id).owner = me`: what was
    /// looked at is the attribute that is set.
    fn is_attribute_seen(&self, read: &Event, write: &Event, r: u32) -> bool {
        self.guarded
            && self.attribute(read, write).is_some_and(|name| {
                let mut deps = write.ctrl.on_event(r).chain(write.data.on_event(r));
                deps.any(|d| d.attr == Some(name))
            })
    }

    /// Was an attribute of what an event read looked at, after that, for the write?
    pub(crate) fn trusts_attribute(&self, write: &Event, i: u32, name: Name) -> bool {
        let of_it = |d: Dep| d.source == Source::Event(i) && d.attr == Some(name);
        if write.call.is_some() && self.events[i as usize].call == write.call {
            return write.ctrl.iter().chain(write.data.iter()).any(of_it);
        }
        // What is read twice is one term: only its place tells which one was tested.
        let seen = self.events[i as usize].at.block;
        self.decisions(write.at.block)
            .iter()
            .any(|&(control, sym, _)| {
                let before = seen == control.block || self.cfg.dominates(seen, control.block);
                before && self.deps_of(sym).iter().any(of_it)
            })
    }

    /// `let t = tasks.get(id); …; tasks.insert(t.id, t)`: what was read under a name that
    /// somebody gave is put back under the name that it has itself.
    fn is_under_own_key(&self, read: &Event, write: &Event, r: u32) -> bool {
        let (SymKind::Index(from, _), SymKind::Index(to, own)) = (
            self.cx.syms.kind(read.loc.key),
            self.cx.syms.kind(write.loc.key),
        ) else {
            return false;
        };
        let (SymKind::Field(record, _) | SymKind::Index(record, _)) = self.cx.syms.kind(*own)
        else {
            return false;
        };
        let whole =
            |d: Dep| d.source == Source::Event(r) && !d.implicit && !d.asked && d.attr.is_none();
        from == to && write.data.iter().any(whole) && self.deps_of(*record).iter().any(whole)
    }

    /// Is what was read changed here, and given as a whole to the call that writes it?
    pub(crate) fn is_handed_back(&self, r: u32, write: &Event) -> bool {
        let at = |pos: crate::effect::Pos| {
            let block = self.function.blocks.get(pos.block as usize)?;
            block.insts.get(pos.inst as usize)
        };
        let Some(Op::Call { args, .. }) = at(write.at).map(|inst| &inst.op) else {
            return false;
        };
        let is_of_read = |s: Sym, whole: bool| {
            self.deps_of(s).iter().any(|d| {
                d.source == Source::Event(r)
                    && !d.implicit
                    && !d.asked
                    && (!whole || d.attr.is_none())
            })
        };
        // A function that is given has along what it uses.
        let of_read = |v: Var, whole: bool| match self.cx.syms.kind(self.val(v)) {
            SymKind::Bound(_, env) => env.iter().any(|s| is_of_read(*s, whole)),
            _ => is_of_read(self.val(v), whole),
        };
        let mut insts = self.function.blocks.iter().flat_map(|b| &b.insts);
        let given = |whole: bool| args.iter().any(|a| of_read(a.value, whole));
        let syms = &self.cx.syms;
        let holds = |v: Var| {
            args.iter()
                .any(|a| syms.contains(self.val(a.value), self.val(v)))
        };
        let changes = |op: &Op| match op {
            Op::SetField { obj, .. } => given(true) && of_read(*obj, false),
            // `[...list, entry]`: a part of it, with something more.
            Op::Array { items, .. } => {
                let mut spread = items.iter().filter(|item| item.spread);
                items.len() > 1 && given(false) && spread.any(|item| of_read(item.value, false))
            }
            // `list[i] = entry`, `list.filter(…)`: the part of it that is given, with a change.
            Op::SetIndex { obj, .. } => of_read(*obj, false) && holds(*obj),
            Op::Call {
                dst,
                callee: Callee::Method { obj, name },
                ..
            } => {
                self.cx.library.makes_list(*name, &self.cx.names)
                    && of_read(*obj, false)
                    && holds(*dst)
            }
            _ => false,
        };
        write.call.is_some() && insts.any(|inst| changes(&inst.op))
    }

    /// Is what was read part of what is written?
    fn is_carried(&self, write: &Event, r: u32) -> bool {
        write.act == Act::Write
            && (write.data.on_event(r)).any(|d| !d.implicit && !d.asked && !d.shared)
    }

    /// Is the path that is written the one that was read, on some way there? A name that is set
    /// again on another way (`if (copy) path = other`) still is what it was on this one.
    fn may_be_same(&self, read: &Event, write: &Event) -> bool {
        let kept = |value: Sym, joined: Sym| {
            let mut vars = (0..self.vals.len() as u32).map(Var);
            let var = vars.find(|v| self.several.contains(v) && self.vals[v.0 as usize] == joined);
            var.is_none_or(|var| self.is_kept(var, value, read.at, write.at))
        };
        self.is_option(read.loc.key, write.loc.key, &kept, &Cell::new(MAX_COMPARED))
    }

    fn is_option(
        &self,
        a: Sym,
        b: Sym,
        kept: &impl Fn(Sym, Sym) -> bool,
        left: &Cell<u32>,
    ) -> bool {
        if a == b {
            return true;
        }
        let Some(rest) = left.get().checked_sub(1) else {
            return false;
        };
        left.set(rest);
        if let Some(options) = self.alternatives.get(&b) {
            return options.contains(&a) && kept(a, b);
        }
        let same = |x: Sym, y: Sym| self.is_option(x, y, kept, left);
        let all =
            |x: &[Sym], y: &[Sym]| x.len() == y.len() && x.iter().zip(y).all(|(x, y)| same(*x, *y));
        match (self.cx.syms.kind(a), self.cx.syms.kind(b)) {
            (SymKind::Join(x), SymKind::Join(y)) | (SymKind::Concat(x), SymKind::Concat(y)) => {
                all(x, y)
            }
            (SymKind::Call(x), SymKind::Call(y)) => {
                let recv = match (x.recv, y.recv) {
                    (Some(x), Some(y)) => same(x, y),
                    (x, y) => x == y,
                };
                x.callee == y.callee && recv && all(&x.args, &y.args)
            }
            _ => false,
        }
    }

    /// Is there a way between two places on which a variable is set to nothing but this value?
    fn is_kept(&self, var: Var, value: Sym, from: Pos, to: Pos) -> bool {
        let mut seen: FxHashSet<u32> = FxHashSet::default();
        let mut work = vec![(from.block, from.inst + 1)];
        while let Some((block, start)) = work.pop() {
            let insts = &self.function.blocks[block as usize].insts;
            let ends = |at: u32| block == to.block && at == to.inst;
            let sets = |at: u32| {
                let op = &insts[at as usize].op;
                let same = matches!(op, Op::Copy { src, .. } if self.val(*src) == value);
                self.sets(op) == Some(var) && !same
            };
            match (start..insts.len() as u32).find(|at| ends(*at) || sets(*at)) {
                Some(at) if ends(at) => return true,
                Some(_) => continue,
                None => {}
            }
            let next = self.cfg.succs[block as usize].iter().map(|edge| edge.to.0);
            work.extend(next.filter(|b| seen.insert(*b)).map(|b| (b, 0)));
        }
        false
    }

    /// Two paths that differ only in a part that the second took from what was
    /// read at the first: `${id}.json`, and `${task.id}.json` of the task in it.
    pub(crate) fn is_same_record(&self, a: Sym, b: Sym, r: u32) -> bool {
        let (a, b) = (self.cx.syms.path_parts(a), self.cx.syms.path_parts(b));
        let from_read = |s: Sym| {
            self.deps_of(s)
                .events()
                .any(|(e, attr)| e == r && attr.is_some())
        };
        let same_part = |a: Sym, b: Sym| {
            a == b
                || match (self.cx.syms.kind(a), self.cx.syms.kind(b)) {
                    (SymKind::Concat(x), SymKind::Concat(y)) => {
                        x.len() == y.len()
                            && x.iter().zip(y.iter()).all(|(p, q)| p == q || from_read(*q))
                    }
                    _ => false,
                }
        };
        // In one folder, whether its name is joined to the file's or put before it.
        let beside = |a: Sym, b: Sym| match (self.cx.syms.kind(a), self.cx.syms.kind(b)) {
            (SymKind::Concat(x), SymKind::Concat(y)) => x.len() > 1 && x.first() == y.first(),
            _ => false,
        };
        (a.len() > 1 || beside(a[0], b[0]))
            && a.len() == b.len()
            && a.iter().zip(&b).all(|(p, q)| same_part(*p, *q))
    }

    /// A folder was listed: is what is written one of the names in it? A listing says nothing
    /// about what lies deeper, unless a name for a new folder was made from it.
    fn is_listed(&self, read: &Event, write: &Event, r: u32) -> bool {
        let path = self.cx.syms.path_parts(write.loc.key);
        let folder = self.cx.syms.path_parts(read.loc.key);
        if path.len() <= folder.len() || path[..folder.len()] != folder[..] {
            return false;
        }
        let found = self.is_found_name(path[folder.len()]);
        // … or what was found by it is read and written back.
        let carried = |d: Dep| d.source == Source::Event(r) && !d.implicit && !d.asked;
        let made = write.key_deps.has_event(r) && !found || write.data.iter().any(carried);
        made || path.len() == folder.len() + 1
    }

    /// Is it a name as it was found, and none that was made?
    fn is_found_name(&self, name: Sym) -> bool {
        matches!(
            self.cx.syms.kind(name),
            SymKind::Field(..) | SymKind::Index(..) | SymKind::Element(_)
        )
    }

    /// A listing says which names there are, and nothing of what is in the files: what is
    /// written is made of them only if a file was read on the way.
    pub(crate) fn is_of_names_only(&self, r: u32, write: &Event) -> bool {
        let read = &self.events[r as usize];
        let content = |e: &Event| e.act == Act::Read && e.loc.kind == ResourceKind::File;
        read.act == Act::List
            && read.loc.kind == ResourceKind::File
            && !write.data.iter().any(|d| match d.source {
                Source::Event(e) => !d.implicit && !d.asked && content(&self.events[e as usize]),
                _ => false,
            })
    }

    /// Is the name of what is written made from a listing of its folder?
    pub(crate) fn is_named_by_listing(&self, r: u32, write: &Event) -> bool {
        let path = self.cx.syms.path_parts(write.loc.key);
        let folder = self.cx.syms.path_parts(self.events[r as usize].loc.key);
        let name = path.get(folder.len());
        write.key_deps.has_event(r) && name.is_some_and(|name| !self.is_found_name(*name))
    }

    pub(crate) fn same_row(&self, read: &Event, write: &Event, r: u32) -> bool {
        // Any row was looked at, and one is changed that somebody has named.
        let sampled = read.row.as_ref().is_some_and(|row| row.sample);
        let made = write
            .data
            .iter()
            .any(|d| d.source == Source::Event(r) && !d.implicit);
        let found =
            |row: &Row| row.insert && !made || row.conditions.iter().any(|c| c.1.has_event(r));
        if sampled
            && !write.row.as_deref().is_some_and(found)
            && let Some(SymKind::Object(named)) = write.loc.entry.map(|e| self.cx.syms.kind(e))
            && named.iter().any(|(_, value)| !self.is_constant(*value))
        {
            return false;
        }
        let (Some(a), Some(b)) = (read.loc.entry, write.loc.entry) else {
            return true;
        };
        // The row that is written was found by the read.
        if let Some(row) = &write.row
            && row
                .conditions
                .iter()
                .any(|(_, d)| d.events().any(|(e, _)| e == r))
        {
            return true;
        }
        let (SymKind::Object(a), SymKind::Object(b)) = (self.cx.syms.kind(a), self.cx.syms.kind(b))
        else {
            return a == b;
        };
        let counted = read.row.as_ref().is_some_and(|r| r.aggregate);
        let inserts = write.row.as_ref().is_some_and(|row| row.insert);
        // … or has the key of what was read: `INSERT … ON CONFLICT` with `task.id`.
        let is_key = |c: &Name| {
            let keys: Vec<Name> = a.iter().map(|(k, _)| *k).collect();
            self.cx.names.text(*c).eq_ignore_ascii_case("id") || self.has_column(&keys, *c)
        };
        let from_read = |c: &Name, value: Sym| {
            self.deps_of(value).iter().any(|d| {
                d.source == Source::Event(r)
                    && !d.implicit
                    && d.attr.is_some_and(|attr| self.has_column(&[*c], attr))
            })
        };
        if write.mode == Mode::Upsert && b.iter().any(|(c, v)| is_key(c) && from_read(c, *v)) {
            return true;
        }
        let mut common = 0;
        for (column, value) in a.iter() {
            if let Some((_, other)) = b.iter().find(|(c, _)| c == column) {
                common += 1;
                // Who is among those that were counted, the caller says.
                let joins = counted && inserts && self.is_constant(*value);
                if other == value || joins && matches!(self.cx.syms.kind(*other), SymKind::Param(_))
                {
                    return true;
                }
            }
        }
        // Rows were counted by a column: one more is inserted, or moved among them.
        let joins = write.row.as_ref().is_some_and(|row| {
            row.insert
                || a.iter()
                    .any(|(column, _)| self.has_column(&row.columns, *column))
        });
        common == 0 && joins && counted
    }

    /// The statement itself makes sure that what was read still holds.
    pub(crate) fn is_closed_by_itself(
        &self,
        read: &Event,
        write: &Event,
        r: u32,
        data: bool,
        checked: &[Name],
    ) -> bool {
        match write.mode {
            Mode::Exclusive => return true,
            // One row's conflict says nothing about a sum over many.
            Mode::Upsert if !data && !read.row.as_ref().is_some_and(|r| r.aggregate) => {
                return true;
            }
            // An append loses nothing.
            _ if write.act == Act::Append => return true,
            _ => {}
        }
        let Some(row) = &write.row else {
            return match write.mode {
                // INCR after a separate test is still a race; after a mere look it is not.
                Mode::Atomic => checked.is_empty() && !matches!(read.act, Act::Read),
                Mode::Conditional => true,
                _ => false,
            };
        };
        // An object that was read to be changed, and locked by that, is the session's until it ends.
        let held = |r: &Rc<Row>| r.locking && r.record;
        if row.record && read.row.as_ref().is_some_and(held) {
            return true;
        }
        // Compare and swap: a column is compared with what was read.
        let cas = row.conditions.iter().any(|(column, deps)| {
            deps.events()
                .any(|(e, attr)| e == r && attr == Some(*column))
        }) && row.conditions.len() > 1;
        if cas {
            return true;
        }
        let conditions: Vec<Name> = row.conditions.iter().map(|c| c.0).collect();
        // … or with what the caller says was read, which was tested here: a version, which every
        // change makes another one. (`? IS NULL OR version = ?` asks for none where none is said.)
        let equal: Vec<Name> = match write.loc.entry.map(|e| self.cx.syms.kind(e)) {
            Some(SymKind::Object(fields)) => fields.iter().map(|(name, _)| *name).collect(),
            _ => Vec::new(),
        };
        let versioned = |n: &Name| {
            is_version(self.cx.names.text(*n))
                && self.has_column(&equal, *n)
                && self.has_column(&row.columns, *n)
        };
        if !row.insert && checked.iter().any(versioned) {
            return true;
        }
        let real: Vec<&Name> = checked
            .iter()
            .filter(|n| {
                !matches!(
                    self.cx.names.text(**n),
                    "rows" | "0" | "rowCount" | "changes" | "data" | "error" | "results" | "count"
                )
            })
            .collect();
        if !real.is_empty() && !data && real.iter().all(|n| self.has_column(&conditions, **n)) {
            return true;
        }
        // A state that was looked at is asked for again, with other things or without.
        let keys: Vec<Name> = match read.loc.entry.map(|e| self.cx.syms.kind(e)) {
            Some(SymKind::Object(fields)) => fields.iter().map(|(name, _)| *name).collect(),
            _ => Vec::new(),
        };
        let again = |n: &Name| self.has_column(&conditions, *n) && !self.has_column(&keys, *n);
        if !data && !row.insert && real.iter().any(|n| again(n)) {
            return true;
        }
        // However many rows it says it changed: it did not ask for the state by which they were chosen.
        if self.claims(read, write) {
            return false;
        }
        if write.mode == Mode::Conditional && real.is_empty() && !data {
            return true;
        }
        // Which rows go is asked by the statement itself: `DELETE … WHERE x NOT IN (SELECT …)`.
        if row.unique && write.act == Act::Delete && !data {
            return true;
        }
        // That a row exists is not a race with changing it: nothing is changed if it is gone.
        let counted = read.row.as_ref().is_some_and(|r| r.aggregate);
        let existence = real.is_empty() && !data && !counted;
        if existence && !row.insert {
            let consumes = write.act == Act::Delete && !row.returning && !row.looked_at;
            return !consumes;
        }
        // Values that the database computes are not lost …
        if write.mode == Mode::Atomic && data && real.is_empty() {
            return true;
        }
        row.unique && row.insert
    }

    /// The read chose rows by a column's value, and the write changes that column
    /// without asking for the value again: `WHERE status = 'pending'`, and then
    /// `SET status = 'running' WHERE id = ?`. Two can take the same row.
    pub(crate) fn claims(&self, read: &Event, write: &Event) -> bool {
        let (Some(entry), Some(row)) = (read.loc.entry, &write.row) else {
            return false;
        };
        let SymKind::Object(chosen) = self.cx.syms.kind(entry) else {
            return false;
        };
        !row.insert
            && write.act == Act::Write
            && chosen.iter().any(|(column, value)| {
                self.is_constant(*value)
                    && row.columns.contains(column)
                    && !row.conditions.iter().any(|c| c.0 == *column)
            })
    }

    /// `ownerId` is checked where `owner_id` is a condition.
    pub(crate) fn has_column(&self, columns: &[Name], name: Name) -> bool {
        let wanted = plain(self.cx.names.text(name));
        columns
            .iter()
            .any(|c| plain(self.cx.names.text(*c)) == wanted)
    }
}

/// What counts the changes of a row, by its name: `version`, `lock_version`, `revision`.
fn is_version(name: &str) -> bool {
    let name = plain(name);
    let words = ["version", "revision", "generation", "etag"];
    words.iter().any(|word| name.ends_with(word)) || name == "rev"
}

/// `ownerId`, `owner_id` and `OWNER_ID` are one name.
pub fn plain(name: &str) -> String {
    name.chars()
        .filter(|c| *c != '_' && *c != '-')
        .flat_map(char::to_lowercase)
        .collect()
}
