//! From events to windows: which reads does a write trust, and can somebody
//! come between?

use std::rc::Rc;

use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;
use toctou_core::Name;
use toctou_core::finding::ResourceKind;
use toctou_core::ir::{BlockId, Callee, Op, Term, Var};
use toctou_models::Mode;

use crate::effect::{Act, Deps, Event, Loc, LockKind, Pos, Window};
use crate::held::{Held, MAX_ACQUIRES};
use crate::interp::Interp;
use crate::latch::Latch;
use crate::room::{MAX_WINDOWS, Room};
use crate::summary::Summary;
use crate::sym::{self, Sym, SymKind};

pub fn finish(mut interp: Interp<'_, '_, '_>) -> Summary {
    interp.settle();
    interp.note_conflicts();
    interp.note_counts();
    interp.note_swaps();
    interp.settle_judged();
    let ctrl = interp.event_controls();
    let sets = interp.cx.sets.get_mut();
    for (event, deps) in interp.events.iter_mut().zip(ctrl) {
        sets.extend(&mut event.ctrl, &deps);
    }
    interp.index_events();
    interp.flag_locks();
    let held = Held::new(&interp);
    interp.note_tables();
    let mut windows: Vec<Rc<Window>> = Vec::new();
    let latches = interp.latches(&held);
    interp.own_windows(&held, &latches, &mut windows);
    interp.inner_windows(&held, &latches, &mut windows);
    let mut windows = distinct(windows);
    // Open ones first: if there are too many, those that are atomic by accident go.
    windows.sort_by_key(|w| !(w.in_process || w.cross_process));
    let mut room = Room::default();
    windows.retain(|w| {
        let has = room.has_for(w.label, w);
        if has {
            room.take(w.label);
        }
        has
    });
    interp.lock_defects(&held);
    interp.settle_accesses(&held);
    interp.summarise(&held, windows)
}

/// Attributes that were looked at.
type Checked = SmallVec<[Name; 4]>;

/// What tells of an event whether it can be the first half of a window.
#[derive(Clone, Copy)]
struct Side {
    call: Option<u32>,
    is_read: bool,
    is_write: bool,
}

impl Side {
    fn of(event: &Event) -> Self {
        Self {
            call: event.call,
            is_read: event.act.is_read(),
            is_write: event.act == Act::Write,
        }
    }

    /// Can they be a window at all? What one call does is told by its summary, and what comes first
    /// is a read, or the writing of a temporary file that is put in place then.
    fn can_pair(self, write: &Event) -> bool {
        let puts_in_place = write.mode == Mode::Replace && write.act == Act::Delete;
        (self.call.is_none() || self.call != write.call)
            && (self.is_read || self.is_write && puts_in_place)
    }
}

/// Attributes that one condition is about.
const MAX_WEIGHED: usize = 3;
/// Blocks between a test and the `throw` that it leads to.
const MAX_REFUSAL: usize = 4;

impl Interp<'_, '_, '_> {
    /// What is looked up of all events, again and again.
    fn index_events(&mut self) {
        let events = self.events.iter().enumerate();
        self.by_call = events
            .filter_map(|(i, e)| Some((e.call?, i as u32)))
            .collect();
        self.by_call.sort_unstable();
        let stored = |e: &Event| matches!(e.loc.kind, ResourceKind::Kv | ResourceKind::Row);
        let is_delete = |e: &Event| e.act == Act::Delete && stored(e);
        if self.events.iter().any(is_delete) {
            let reads = (0..).zip(&self.events);
            for (r, e) in reads.filter(|(_, e)| e.act == Act::Read && stored(e)) {
                self.stored_reads.entry(e.loc).or_default().push(r);
            }
        }
    }

    /// What one call does, when all events are known.
    pub(crate) fn events_of(&self, call: u32) -> impl Iterator<Item = u32> {
        let first = self.by_call.partition_point(|e| e.0 < call);
        let events = self.by_call[first..].iter();
        events.take_while(move |e| e.0 == call).map(|e| e.1)
    }

    /// What decides about each event, in this function.
    pub(crate) fn event_controls(&mut self) -> Vec<Deps> {
        let mut out: Vec<Deps> = Vec::with_capacity(self.events.len());
        // Of one call there are many, and the same decides about all of them.
        let mut before: Option<(Pos, Deps)> = None;
        for e in &self.events {
            let stored = matches!(e.loc.kind, ResourceKind::File | ResourceKind::Row);
            let asked = e.act.is_write() || e.act == Act::Open || e.act == Act::Read && stored;
            if !asked {
                out.push(Deps::default());
                continue;
            }
            if let Some((at, deps)) = &before
                && *at == e.at
            {
                out.push(deps.clone());
                continue;
            }
            let mut deps = Deps::clone(&self.control_deps(e.at.block));
            for (at, gate) in &self.gates {
                let before = at.block == e.at.block && at.inst < e.at.inst
                    || at.block != e.at.block && self.cfg.dominates(at.block, e.at.block);
                if before {
                    deps.extend_within(gate);
                }
            }
            before = Some((e.at, deps.clone()));
            out.push(deps);
        }
        out
    }

    pub(crate) fn own_windows(&self, held: &Held, latches: &[Latch], out: &mut Vec<Rc<Window>>) {
        const NONE: usize = usize::MAX;
        // Which pair of the write at hand is the one with this read?
        let mut pair_of = vec![NONE; self.events.len()];
        let mut pairs: Vec<(u32, bool, bool, Checked)> = Vec::new();
        let mut direct: Vec<u32> = Vec::new();
        // Sets are long, and most of what is in them is no partner.
        let sides: Vec<Side> = self.events.iter().map(Side::of).collect();
        for (w, write) in self.events.iter().enumerate() {
            if out.len() >= MAX_WINDOWS {
                return;
            }
            let uses_path = write.loc.kind == ResourceKind::File
                && matches!(
                    write.act,
                    Act::Read | Act::Write | Act::Append | Act::Delete
                );
            if !write.act.is_write() && !uses_path {
                continue;
            }
            if write.mode == Mode::Rewrite && write.call.is_none() {
                out.extend(self.rewritten(w, held).map(Rc::new));
                continue;
            }
            direct.clear();
            let others = self.cx.words.others;
            let can_pair = |r: u32| sides[r as usize].can_pair(write);
            let mut note = |r: u32, data: bool, keyed: bool, attr: Option<Name>| {
                if !can_pair(r) {
                    return;
                }
                // That it went well is nothing that was looked at.
                let attr = attr.filter(|a| !others.contains(a));
                let pair = &mut pair_of[r as usize];
                if *pair == NONE {
                    *pair = pairs.len();
                    pairs.push((r, false, false, Checked::new()));
                }
                let slot = &mut pairs[*pair];
                slot.1 |= data;
                slot.2 |= keyed;
                if let Some(a) = attr
                    && !data
                    && !slot.3.contains(&a)
                {
                    slot.3.push(a);
                }
            };
            if write.act.is_write() {
                for dep in write.data.on_events(can_pair).filter(|d| !d.1.asked) {
                    let (r, dep) = dep;
                    note(r, !dep.implicit, false, dep.attr);
                    if !dep.shared && !dep.implicit {
                        direct.push(r);
                    }
                }
                for (r, dep) in write.ctrl.on_events(can_pair) {
                    note(r, false, false, dep.attr);
                }
            }
            for (r, _) in write.key_deps.on_events(can_pair) {
                note(r, false, true, None);
            }
            for (r, attr) in self.picked_for(write) {
                note(r, false, true, attr);
            }
            if !write.act.is_write() {
                // A path that was judged before it is read by name.
                for (r, _) in write.ctrl.events() {
                    if self.events[r as usize].act == Act::Resolve {
                        note(r, false, false, None);
                    }
                }
            }
            let taken = self.taken_by(w);
            for &(r, attr) in &taken {
                note(r, false, false, attr);
            }
            let drained = self.drained_by(w);
            for &r in &drained {
                note(r, false, false, None);
            }
            let waited = self.waited_for(write);
            for &r in &waited {
                note(r, false, false, None);
            }
            // A temporary file with a fixed name: written, then renamed.
            if write.act == Act::Delete && write.mode == Mode::Replace {
                // Who creates it exclusively shares it with nobody.
                let own = |e: &Event| e.loc == write.loc && e.mode == Mode::Exclusive;
                let shared = !self.events.iter().any(own);
                for (r, e) in self.events.iter().enumerate() {
                    if shared && e.act == Act::Write && e.loc == write.loc && r != w {
                        note(r as u32, false, false, None);
                    }
                }
            }
            for (r, data, keyed, checked) in pairs.drain(..) {
                pair_of[r as usize] = NONE;
                // Memory that was read, changed and read again is as fresh as can be.
                let stale = direct.contains(&r)
                    || self.events[r as usize].loc.kind != ResourceKind::Memory
                    || write.loc.kind == ResourceKind::File;
                let data = data && stale;
                if !data
                    && !keyed
                    && !write.ctrl.has_event(r)
                    && !write.data.on_event(r).any(|d| d.implicit)
                    && self.events[r as usize].act != Act::Write
                    && !taken.iter().any(|t| t.0 == r)
                    && !waited.contains(&r)
                    && !drained.contains(&r)
                {
                    continue;
                }
                if let Some(mut window) = self.pair(r as usize, w, data, keyed, checked, held) {
                    // What goes through memory that this process shares is there for
                    // all its calls: only another process can be overwritten by it.
                    if data && !direct.contains(&r) && window.cross_process {
                        // … unless every call reads it in anew.
                        let once = self.events[r as usize]
                            .ctrl
                            .events()
                            .any(|(e, _)| self.events[e as usize].loc.kind == ResourceKind::Memory);
                        window.in_process &= !once;
                        window.through_memory = true;
                    }
                    // A flag that is set before anybody else can run keeps no thread out.
                    let threads = window.accidental && self.cx.has_threads;
                    let latched = self.is_latched(latches, write.at, write.loc, Some(r as usize));
                    window.latched = latched && !window.opens;
                    if !self.is_open(&window)
                        || latched && !threads
                        || out.len() >= MAX_WINDOWS / 2
                            && !window.in_process
                            && !window.cross_process
                    {
                        continue;
                    }
                    out.push(Rc::new(window));
                }
            }
        }
    }

    pub(crate) fn pair(
        &self,
        r: usize,
        w: usize,
        data: bool,
        keyed: bool,
        checked: Checked,
        held: &Held,
    ) -> Option<Window> {
        let (read, write) = (&self.events[r], &self.events[w]);
        if r == w || !Side::of(read).can_pair(write) {
            return None;
        }
        if self.guarded
            && write.loc.kind == ResourceKind::Memory
            && !self.cx.is_behind_holder(write.loc.key, self.id)
        {
            return None;
        }
        let temp = read.act == Act::Write;
        let mut tests = (write.ctrl.on_event(r as u32))
            .chain(write.data.on_event(r as u32).filter(|d| d.implicit))
            .peekable();
        let tested = tests.peek().is_some();
        // To ask whether a path resolves at all is not to judge where it leads.
        let judged = tests.any(|d| d.attr.is_none_or(|a| !self.cx.words.others.contains(&a)));
        let resolved = read.act == Act::Resolve
            && tested
            && judged
            && write.loc.kind == ResourceKind::File
            && (keyed || read.loc.key == write.loc.key);
        // It was not asked where it leads, or another path is used that only has its name.
        if resolved && !(read.judged && self.is_of_path(r as u32, read, write)) {
            return None;
        }
        // Who writes it has resolved and judged it, too: the window is there.
        if resolved && self.is_resolved_below(r, write) {
            return None;
        }
        let path_check = resolved;
        let snapshot = self.is_snapshot(r as u32, write, data);
        let counted = tested && self.counts_up(r, w);
        let searched = tested && self.is_searched(r, write);
        let drains = write.empties.is_some() && self.drained_by(w).contains(&(r as u32));
        let names_only = data && self.is_of_names_only(r as u32, write);
        if names_only && !self.is_named_by_listing(r as u32, write) {
            return None;
        }
        let data = data && !counted && !names_only && self.may_be_handed(r as u32, read, write);
        let chosen = keyed && self.chose_another(r as u32, write);
        if temp {
            let near = read.call.is_none() || write.call.is_none();
            if !near {
                return None;
            }
            if self.changes_by_call(write.loc.key) {
                return None;
            }
        } else {
            if !write.act.is_write() && !path_check {
                return None;
            }
            let other = !path_check && !snapshot && !counted && !searched && !drains;
            if other && !self.same_place(read, write, r as u32) {
                return None;
            }
            if path_check && read.loc.kind != ResourceKind::File {
                return None;
            }
            // Only the choice of the place depends on it: a listing, then a name made from it.
            if keyed && !data && checked.is_empty() && !path_check && !chosen {
                let controls = write.ctrl.has_event(r as u32);
                if !controls && read.act != Act::List && !self.claims(read, write) {
                    return None;
                }
            }
        }
        // That a value somewhere below decided about a write somewhere else
        // below says little: checks and what they guard stand close together.
        if read.loc.kind == ResourceKind::Memory && !snapshot && !data && read.trail.depth() > 1 {
            let levels = |event: &Event| event.trail.levels(self.cx.program);
            if levels(read) > 1 && (levels(read) > 2 || levels(write) > 2) {
                return None;
            }
        }
        if !temp && self.is_made_anew(read, write) {
            return None;
        }
        let taken = !tested && self.taken_by(w).iter().any(|t| t.0 as usize == r);
        let looked = read.loc.kind == ResourceKind::File && !temp && !data;
        if looked && (self.looks_after(read, write) || self.puts_right(r, write)) {
            return None;
        }
        if read.act == Act::List && self.is_read_anew(write) {
            return None;
        }
        let fresh = matches!(read.loc.kind, ResourceKind::Memory | ResourceKind::Row);
        if (!data || fresh) && self.looks_again(read, w, data) {
            return None;
        }
        if !data && self.is_unless_same(r, write) {
            return None;
        }
        if data && self.restores(r as u32, write) {
            return None;
        }
        if !data && self.is_claimed(r, write) {
            return None;
        }
        if data && self.reads_in_place(read, w) {
            return None;
        }
        // Whoever was quicker is not overwritten.
        if write.swaps && read.loc.kind == ResourceKind::Memory {
            return None;
        }
        // Waiting for what another call has begun, and keeping it, is the cure.
        if write.copies && !data {
            return None;
        }
        // What a callee has looked up last, and given back, is put where it was.
        if write.puts_back && self.is_kept_at_once(read, write) {
            return None;
        }
        let waits = !tested && !data && self.waited_for(write).contains(&(r as u32));
        let closed = self.is_closed_by_itself(read, write, r as u32, data, &checked);
        if closed && !counted && !waits && !searched {
            return None;
        }
        let walk = if counted {
            // What the statement reads to add to it is no second test.
            self.walk_past(r, w, |e| e.is_within(write))
        } else {
            self.walk(r, w)
        };
        if !walk.reached
            || snapshot && !(walk.yielded || self.guarded)
            || (searched || drains) && !walk.yielded
        {
            return None;
        }
        // Asked last, since all events are looked at for it.
        if self.is_done_by_both(read, write) {
            return None;
        }
        let both = held.at(read.at) & held.at(write.at) & !walk.broken;
        let shared_by_processes = matches!(
            read.loc.kind,
            ResourceKind::File | ResourceKind::Row | ResourceKind::Kv
        ) && !self.cx.is_own_to_process(read.loc.key);
        // What was there, and is replaced, is no cache that missed.
        let given_back = self.is_given_back(r)
            && !self.cx.holds_holders(write.loc.key)
            && self.said_at(r, write.at.block).0 != Some(true);
        let write_in_handler = write.in_handler || self.is_handler_block(write.at.block);
        let mut window = Window {
            // A snapshot races on what it was taken of, a count on what is counted.
            loc: if snapshot || counted || drains {
                read.loc
            } else {
                write.loc
            },
            through_memory: false,
            path_check,
            snapshot: snapshot.then_some(write.loc.key),
            read: Rc::clone(&read.trail),
            write: Rc::clone(&write.trail),
            read_act: read.act,
            write_act: write.act,
            write_mode: write.mode,
            meet: self.id,
            gap: walk.gap,
            data: data || drains,
            tested,
            compared: self.is_compared(r, write),
            counted,
            spent: counted && self.is_spent(r, write),
            reckoned: data && self.is_reckoned(r, write),
            passed_on: tested && !data && self.is_passed_on(r, write),
            renews: tested && self.renews(r, write),
            aged: tested
                && !data
                && !walk.opens
                && write.act == Act::Write
                && self.is_aged(r, write, walk.sends),
            expired: tested && self.is_expired(r, write),
            memo: looked && self.is_memo(read, write),
            keyed,
            checked: checked.to_vec(),
            weighed: self.weighed(r as u32, write),
            carried: self.carried(r as u32, write),
            read_row: read.row.clone(),
            write_row: write.row.clone(),
            constant: write.constant,
            alike: looked
                && write.act == Act::Write
                && write.value.is_some_and(|v| self.is_alike(v, write.loc)),
            clears: write.idempotent,
            steals: tested
                && write.act == Act::Delete
                && self.takes_next(write.loc, write.at, held),
            in_process: walk.yielded || self.anywhere,
            cross_process: shared_by_processes,
            accidental: !walk.yielded && !self.anywhere,
            tight: !walk.calls && read.call.is_none() && write.call.is_none(),
            closed_by: None,
            hoped: false,
            connection: None,
            partial: read.lock.clone().or_else(|| write.lock.clone()),
            other_writes: walk.other_writes || walk.files_aside && !given_back,
            given_back,
            opens: walk.opens,
            latched: false,
            duck: read.duck || write.duck,
            path: None,
            label: self.label(write.at.block),
            detached: false,
            write_in_handler,
            puts_back: write.puts_back
                && (write_in_handler
                    || matches!(self.cx.syms.kind(write.loc.key), SymKind::Index(..))),
            drains,
            handed_back: data && self.is_handed_back(r as u32, write),
            aside: read.act == Act::Check
                && !checked.is_empty()
                && checked.iter().all(|c| self.cx.words.asides.contains(c)),
            positive: if chosen {
                Some(false)
            } else {
                self.polarity(r, write)
            },
            taken,
            refuses: self.refuses(r, write, searched),
            waits,
            id: sym::through(read.site, write.site),
        };
        for (i, a) in self.acquires.iter().enumerate().take(MAX_ACQUIRES) {
            if both >> i & 1 == 1 {
                self.protect(&mut window, &a.lock);
            } else if held.at(write.at) >> i & 1 == 1 || held.at(read.at) >> i & 1 == 1 {
                window.partial = Some(Rc::clone(&a.lock));
            }
        }
        let hoped = held.hoped_at(read.at) & held.hoped_at(write.at) & !walk.broken;
        self.protect_hoped(&mut window, hoped);
        self.is_open(&window).then_some(window)
    }

    /// Does the call that writes a file make it of what it reads there itself? A listing has then
    /// only said which one.
    fn is_read_anew(&self, write: &Event) -> bool {
        let anew = |i: u32| {
            let e = &self.events[i as usize];
            e.act == Act::Read && e.loc == write.loc && write.data.has_event(i)
        };
        write.loc.kind == ResourceKind::File
            && write
                .call
                .is_some_and(|call| self.events_of(call).any(anew))
    }

    /// Can the call that writes have been given what was read here? Two who read one path have one
    /// value, so what the callee has read for itself looks as if it was read here.
    fn may_be_handed(&self, r: u32, read: &Event, write: &Event) -> bool {
        let block = &self.function.blocks[write.at.block as usize];
        let (Some(call), Some(inst)) = (write.call, block.insts.get(write.at.inst as usize)) else {
            return true;
        };
        let Op::Call { callee, args, .. } = &inst.op else {
            return true;
        };
        let anew = |(i, e): (usize, &Event)| {
            e.call == Some(call)
                && e.act == Act::Read
                && e.loc == read.loc
                && write.data.has_event(i as u32)
        };
        // What goes by way of memory, or is seen by a function that stands here, is not given.
        let hidden = |(i, e): (usize, &Event)| {
            e.loc.kind == ResourceKind::Memory && write.data.has_event(i as u32)
        };
        let syms = &self.cx.syms;
        let is_given = |v: Var| {
            let value = self.val(v);
            let sees = |s| matches!(syms.kind(s), SymKind::Func(_) | SymKind::Bound(..));
            self.deps_of(value).has_event(r) || syms.any(value, sees)
        };
        let of = match callee {
            Callee::Method { obj, .. } => Some(*obj),
            _ => None,
        };
        let below = write.trail.next.as_ref();
        let inner = below.is_some_and(|f| self.cx.program.function(f.func).parent == Some(self.id));
        let mut events = self.events.iter().enumerate();
        read.loc.kind != ResourceKind::File
            || read.call == write.call
            || inner
            || args.iter().map(|a| a.value).chain(of).any(is_given)
            || events.clone().any(hidden)
            || !events.any(anew)
    }

    /// Does the call that uses a path judge by itself where it leads?
    fn is_resolved_below(&self, r: usize, write: &Event) -> bool {
        let below = |(i, e): (usize, &Event)| {
            i != r
                && e.call == write.call
                && e.act == Act::Resolve
                && e.judged
                && write.ctrl.has_event(i as u32)
        };
        write.call.is_some() && self.events.iter().enumerate().any(below)
    }

    /// Is a file a lock that is taken after this place, by creating it?
    fn takes_next(&self, file: Loc, at: Pos, held: &Held) -> bool {
        let acquires = self.acquires.iter().take(MAX_ACQUIRES).enumerate();
        file.kind == ResourceKind::File
            && acquires
                .filter(|(_, a)| a.lock.kind == LockKind::File && a.lock.key == file.key)
                .any(|(i, a)| {
                    let mine = held.at(at) >> i & 1 == 1;
                    !mine && self.leads_to(a.at.block)[at.block as usize]
                })
    }

    /// Is nothing waited for between the two but the call that reads?
    fn is_kept_at_once(&self, read: &Event, write: &Event) -> bool {
        let between = |at: &crate::effect::Pos| *at > read.at && *at < write.at;
        let last = |e: &Event| {
            e.call == read.call && e.loc == write.loc && e.act.is_read() && !e.yields_after
        };
        read.call.is_some()
            && read.at.block == write.at.block
            && self.yields.keys().filter(|at| between(at)).count() <= 1
            && self.events.iter().any(last)
    }

    /// The tests by which the row that is written was chosen among those that were read.
    fn picked_for(&self, write: &Event) -> Vec<(u32, Option<Name>)> {
        let Some(entry) = write.loc.entry.filter(|_| write.act.is_write()) else {
            return Vec::new();
        };
        if write.loc.kind != ResourceKind::Row {
            return Vec::new();
        }
        self.picked
            .iter()
            .filter(|(one, _)| self.cx.syms.contains(entry, *one))
            .flat_map(|(_, tests)| tests.events())
            .filter(|(r, _)| write.key_deps.has_event(*r))
            .collect()
    }

    /// Does the function give back what was read, and not only whether it was there?
    pub(crate) fn is_given_back(&self, r: usize) -> bool {
        let others = self.cx.words.others;
        self.function.blocks.iter().any(|block| {
            let Term::Return(Some(v)) = block.term else {
                return false;
            };
            self.deps_of(self.val(v)).iter().any(|d| {
                d.source == crate::effect::Source::Event(r as u32)
                    && !d.implicit
                    && d.attr.is_none_or(|a| !others.contains(&a))
            })
        })
    }

    /// Does the write happen only where there is a value already, whatever it is?
    fn renews(&self, r: usize, write: &Event) -> bool {
        let mut asked = self
            .decisions(write.at.block)
            .into_iter()
            .filter(|(_, sym, _)| self.deps_of(*sym).has_event(r as u32))
            .map(|(_, sym, yes)| yes && self.is_value_of(sym, write.loc.key));
        asked.next() == Some(true) && asked.all(|there| there)
    }

    /// Is what was read compared with a limit, and whoever is above it refused?
    pub(crate) fn is_limited(&self, r: usize, write: &Event) -> bool {
        !self.limits(r, write).is_empty()
    }

    /// The limits that what was read is compared with, where whoever is above them is refused.
    pub(crate) fn limits(&self, r: usize, write: &Event) -> Vec<Sym> {
        self.decisions(write.at.block)
            .iter()
            .filter_map(|&(control, sym, _)| {
                let SymKind::Call(call) = self.cx.syms.kind(sym) else {
                    return None;
                };
                let [left, right] = *call.args else {
                    return None;
                };
                let seen = self.events[r].at.block;
                let before = seen == control.block || self.cfg.dominates(seen, control.block);
                let counted = |s: Sym| before && self.deps_of(s).has_event(r as u32);
                let limit = |s: Sym| {
                    !self.is_empty_value(s)
                        && !counted(s)
                        && !self.is_age(left)
                        && !self.is_age(right)
                        && !matches!(self.cx.syms.kind(s), SymKind::Str(_) | SymKind::Bool(_))
                };
                if call.callee != crate::sym::CalleeSym::Method(self.cx.words.op) {
                    return None;
                }
                let found = match (counted(left) && limit(right), counted(right) && limit(left)) {
                    (true, _) => Some(right),
                    (_, true) => Some(left),
                    _ => None,
                };
                found.filter(|_| self.is_refused_otherwise(control, write.at.block))
            })
            .collect()
    }

    /// Does the other way out of a condition end there, rather than go on with the rest? A
    /// cache that is full is no limit for anybody.
    pub(crate) fn is_refused_otherwise(&self, control: crate::cfg::Control, block: u32) -> bool {
        let ways = &self.cfg.succs[control.block as usize];
        let Some(other) = ways.get(usize::from(control.way == 0)) else {
            return false;
        };
        let mut seen = vec![false; self.cfg.succs.len()];
        let mut work = vec![block];
        while let Some(at) = work.pop() {
            if at == other.to.0 {
                return false;
            }
            if !std::mem::replace(&mut seen[at as usize], true) {
                work.extend(self.cfg.succs[at as usize].iter().map(|edge| edge.to.0));
            }
        }
        true
    }

    /// The attributes of what was read that are asked about here, or by a call before the write
    /// that fails otherwise. (What the call that writes asks is its own affair.)
    fn weighed(&self, r: u32, write: &Event) -> Vec<Name> {
        let here = self.decisions(write.at.block);
        let asked = here.iter().map(|(_, sym, _)| self.deps_of(*sym));
        let before = |at: &Pos| {
            at.block == write.at.block && at.inst < write.at.inst
                || at.block != write.at.block && self.cfg.dominates(at.block, write.at.block)
        };
        let gates = self.gates.iter().filter(|(at, _)| before(at));
        // What one column was asked for is that column.
        let row = self.events[r as usize].row.as_deref();
        let column = row.and_then(|row| match row.columns[..] {
            [one] => Some(one),
            _ => None,
        });
        let mut out: Vec<Name> = Vec::new();
        for deps in asked.chain(gates.map(|(_, gate)| gate.clone())) {
            let of_read = deps.events().filter(|(e, _)| *e == r);
            let attrs: FxHashSet<_> = of_read.map(|(_, a)| a.or(column)).collect();
            // Who asks about all of it, or about all of them, asks whether it is there.
            if attrs.len() <= MAX_WEIGHED && !attrs.contains(&None) {
                out.extend(attrs.into_iter().flatten());
            }
        }
        out.sort_unstable();
        out.dedup();
        out
    }

    /// Which attributes of what was read are in what is written, if it is known which.
    fn carried(&self, r: u32, write: &Event) -> Option<Vec<Name>> {
        let data = write.data.on_event(r).filter(|d| !d.implicit && !d.asked);
        let mut out: Vec<Name> = data.map(|d| d.attr).collect::<Option<_>>()?;
        // That it went well is no part of what was read.
        out.retain(|attr| !self.cx.words.others.contains(attr));
        out.sort_unstable();
        out.dedup();
        Some(out)
    }

    /// Is what was read compared, to decide about the write?
    pub(crate) fn is_compared(&self, r: usize, write: &Event) -> bool {
        self.cfg.controls_of(write.at.block).iter().any(|control| {
            let Term::Branch { cond, .. } = self.function.blocks[control.block as usize].term
            else {
                return false;
            };
            let sym = self.val(cond);
            let op = matches!(self.cx.syms.kind(sym), SymKind::Call(call)
                if call.callee == crate::sym::CalleeSym::Method(self.cx.words.op));
            op && self.deps_of(sym).has_event(r as u32)
        })
    }

    /// Is a caller turned away by what was read, where the write does not happen?
    fn refuses(&self, r: usize, write: &Event, searched: bool) -> bool {
        let blocks = &self.function.blocks;
        // Who is told that there is none is not told that somebody else has it.
        let taken = searched || self.polarity(r, write) == Some(false);
        let throws = |from: BlockId| {
            let next = |at: &BlockId| match blocks[at.0 as usize].term {
                Term::Goto(next) => Some(next),
                _ => None,
            };
            let mut way = std::iter::successors(Some(from), next).take(MAX_REFUSAL);
            way.any(|at| match blocks[at.0 as usize].term {
                Term::Throw(_) => true,
                Term::Return(Some(answer)) => taken && self.is_told_no(answer),
                _ => false,
            })
        };
        self.cfg.controls_of(write.at.block).iter().any(|control| {
            let Term::Branch {
                cond,
                then,
                otherwise,
            } = blocks[control.block as usize].term
            else {
                return false;
            };
            let other = if control.way == 0 { otherwise } else { then };
            self.deps_of(self.val(cond)).has_event(r as u32) && throws(other)
        })
    }

    /// An answer that was made up for it, with nothing in it that was read.
    fn is_told_no(&self, answer: Var) -> bool {
        let sym = self.val(answer);
        let made_up = match self.cx.syms.kind(sym) {
            SymKind::Str(text) => !self.cx.names.text(*text).is_empty(),
            SymKind::Concat(_) | SymKind::Object(_) => true,
            SymKind::Array(items) => !items.is_empty(),
            _ => false,
        };
        made_up && self.deps_of(sym).events().next().is_none()
    }

    /// Does the write happen where what was read is there, or where it is not?
    pub(crate) fn polarity(&self, r: usize, write: &Event) -> Option<bool> {
        let (plainly, somehow) = self.said_at(r, write.at.block);
        plainly.or(somehow)
    }

    /// Is a block reached where what was read is there, or where it is not? Said by a
    /// comparison of it that every way there passes, and by whatever was made of it.
    pub(crate) fn said_at(&self, r: usize, at: u32) -> (Option<bool>, Option<bool>) {
        let read = &self.events[r];
        let mut found = None;
        let mut plainly = None;
        for control in self.cfg.controls_of(at).iter() {
            let block = &self.function.blocks[control.block as usize];
            let said = if control.way < 2 {
                let Term::Branch {
                    cond,
                    then,
                    otherwise,
                } = block.term
                else {
                    continue;
                };
                let next = if control.way == 0 { then } else { otherwise };
                let mut sym = self.val(cond);
                let deps = self.deps_of(sym);
                if !deps.events().any(|(e, _)| e as usize == r) {
                    continue;
                }
                // The error that came with it is asked: yes means no.
                let error = read.loc.kind != ResourceKind::Memory
                    && deps.events().all(|(e, attr)| {
                        e as usize != r || attr.is_some_and(|a| self.cx.words.others.contains(&a))
                    });
                let mut yes = (control.way == 0) != error;
                while let SymKind::Not(inner) = self.cx.syms.kind(sym) {
                    sym = *inner;
                    yes = !yes;
                }
                let said = match self.cx.syms.kind(sym) {
                    // `error.code === "ENOENT"`, `rows.length === 0`: yes means no.
                    SymKind::Eq(..) => !yes,
                    _ => yes,
                };
                let itself = |side: Sym| {
                    self.cx.syms.contains(side, read.loc.key)
                        && !matches!(self.cx.syms.kind(side), SymKind::Call(_))
                };
                // That it is another than it should be says that there is one.
                if let SymKind::Eq(a, b) = *self.cx.syms.kind(sym)
                    && (itself(a) && self.is_constant(b) || itself(b) && self.is_constant(a))
                    && self.cfg.dominates(next.0, at)
                {
                    plainly = Some(said);
                }
                said
            } else if control.block == read.at.block {
                control.way == 2
            } else {
                continue;
            };
            found = Some(said);
        }
        (plainly, found)
    }

    pub(crate) fn is_handler_block(&self, block: u32) -> bool {
        self.function
            .blocks
            .iter()
            .filter_map(|b| b.handler)
            .any(|h| self.cfg.dominates(h.0, block))
    }

    pub(crate) fn is_open(&self, window: &Window) -> bool {
        window.in_process || window.cross_process || window.accidental
    }

    /// Windows of callees, with the locks that are held here.
    pub(crate) fn inner_windows(
        &mut self,
        held: &Held,
        latches: &[Latch],
        out: &mut Vec<Rc<Window>>,
    ) {
        let inner = std::mem::take(&mut self.windows);
        for w in inner {
            let mut window = w.window;
            if !window.detached {
                let bits = held.at(w.at);
                for (i, a) in self.acquires.iter().enumerate().take(MAX_ACQUIRES) {
                    if bits >> i & 1 == 1 {
                        self.protect(&mut window, &a.lock);
                    }
                }
                self.protect_hoped(&mut window, held.hoped_at(w.at));
            }
            for lock in &w.locks {
                self.protect(&mut window, lock);
            }
            if !self.is_open(&window) || self.is_latched(latches, w.at, window.loc, None) {
                continue;
            }
            if window.tested && window.write_act == Act::Delete {
                window.steals |= self.takes_next(window.loc, w.at, held);
            }
            if let Some(label) = self.label(w.at.block) {
                window.label = Some(label);
            }
            out.push(Rc::new(window));
        }
    }
}

/// The same pair of accesses, by several ways through the callees, is one
/// window: the shortest way shows it best.
fn distinct(windows: Vec<Rc<Window>>) -> Vec<Rc<Window>> {
    let mut best: FxHashMap<_, usize> = FxHashMap::default();
    let mut out: Vec<Rc<Window>> = Vec::with_capacity(windows.len());
    for w in windows {
        let key = (
            w.meet,
            w.read.span,
            w.write.span,
            w.read.last(),
            w.write.last(),
            w.loc,
            w.label,
            (w.in_process, w.cross_process, w.hoped),
        );
        let depth = |w: &Window| w.path.as_ref().map_or(0, |p| p.depth());
        match best.get(&key) {
            Some(&i) => {
                if depth(&w) < depth(&out[i]) {
                    out[i] = w;
                }
            }
            None => {
                best.insert(key, out.len());
                out.push(w);
            }
        }
    }
    out
}
