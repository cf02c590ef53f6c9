//! Locks that are surely held, and where; and locks that are not given back.
//!
//! A forward analysis over the control flow: a lock counts at a place only if
//! every way to it holds it. Hand-made locks (flags, promise chains, lock files)
//! come in as acquisitions like those of a library.

mod begun;
mod chosen;
mod marked;
mod passes;
mod whichever;

use std::collections::VecDeque;
use std::rc::Rc;

use rustc_hash::{FxHashMap, FxHashSet};
use toctou_core::Span;
use toctou_core::finding::ResourceKind;
use toctou_core::ir::{BinOp, Inst, Op, Term, Var};
use toctou_models::LockScope;

use crate::context::{DefectKind, FoundDefect};
use crate::effect::{Act, Loc, Lock, LockKind, Pos, Window};
use crate::interp::access::Owner;
use crate::interp::{Acquire, Interp, Release};
use crate::sym::{self, Sym, SymKind};

/// Locks of one function are a set of bits.
pub(crate) const MAX_ACQUIRES: usize = 64;

/// Which locks are surely held where.
pub(crate) struct Held {
    pub(crate) at_entry: Vec<u64>,
    /// Bits taken and given back, by position, in order.
    pub(crate) changes: FxHashMap<Pos, (u64, u64)>,
    pub(crate) any: bool,
    /// As `at_entry`, if nobody who waits for a lock were ever refused.
    hoped: Vec<u64>,
    passes: Vec<passes::Pass>,
    /// Permits that nobody here gives back: what was taken is for others to give.
    lone: u64,
    /// Transactions that the rounds of a loop begin, by the loop's head: held behind it.
    after_loops: FxHashMap<u32, u64>,
}

/// For each acquisition, those that stand for the same: one lock taken by one
/// way of a branch and one by the other, as each platform has it.
fn either_or(interp: &Interp<'_, '_, '_>) -> Vec<u64> {
    let acquires: Vec<&Acquire> = interp.acquires.iter().take(MAX_ACQUIRES).collect();
    let mut same: Vec<u64> = (0..acquires.len()).map(|i| 1 << i).collect();
    for (i, a) in acquires.iter().enumerate() {
        for (j, b) in acquires.iter().enumerate().take(i) {
            let alike = a.lock.kind == LockKind::Library
                && b.lock.kind == LockKind::Library
                && a.lock.scope == b.lock.scope
                && a.lock.shared == b.lock.shared
                && !a.if_true
                && !b.if_true;
            if alike && are_alternatives(interp, a.at.block, b.at.block) {
                same[i] |= 1 << j;
                same[j] |= 1 << i;
            }
        }
    }
    same
}

/// Locks of libraries that are waited for, where a failure to get them is caught.
fn may_go_on_without(interp: &Interp<'_, '_, '_>) -> u64 {
    let mut bits = 0;
    for (i, a) in interp.acquires.iter().enumerate().take(MAX_ACQUIRES) {
        let caught = interp.function.blocks[a.at.block as usize]
            .handler
            .is_some();
        let waits = a.lock.kind == LockKind::Library && !a.lock.at_once && !a.lock.shared;
        if caught && waits && !a.if_true {
            bits |= 1 << i;
        }
    }
    bits
}

/// Does one branch lead to the one or to the other?
fn are_alternatives(interp: &Interp<'_, '_, '_>, a: u32, b: u32) -> bool {
    let other = interp.cfg.controls_of(b);
    interp.cfg.controls_of(a).iter().any(|c| {
        c.way < 2
            && other
                .iter()
                .any(|o| o.block == c.block && o.way == 1 - c.way)
    })
}

impl Held {
    pub(crate) fn new(interp: &Interp<'_, '_, '_>) -> Self {
        let n = interp.function.blocks.len();
        let any = !interp.acquires.is_empty();
        let mut held = Self {
            at_entry: vec![u64::MAX; n],
            changes: FxHashMap::default(),
            any,
            hoped: Vec::new(),
            passes: Vec::new(),
            lone: 0,
            after_loops: FxHashMap::default(),
        };
        if !any {
            held.at_entry = Vec::new();
            return held;
        }
        let mut if_true: Vec<(Sym, u64)> = Vec::new();
        let same = either_or(interp);
        for (i, a) in interp.acquires.iter().enumerate().take(MAX_ACQUIRES) {
            if a.if_true {
                if let Some(handle) = a.handle {
                    if_true.push((handle, 1 << i));
                }
            } else {
                held.changes.entry(a.at).or_default().0 |= same[i];
                let elsewhere = [
                    begun::unless_begun(interp, a),
                    begun::unless_empty(interp, a),
                    // Who waits is handed what others take.
                    interp.cx.turns.handed_at(interp.id, a.at),
                ];
                for at in elsewhere.into_iter().flatten() {
                    held.changes.entry(at).or_default().0 |= same[i];
                }
            }
        }
        for (at, release) in &interp.releases {
            let mut bits = 0;
            for (i, a) in interp.acquires.iter().enumerate().take(MAX_ACQUIRES) {
                if is_release(a, release) {
                    bits |= same[i];
                }
            }
            held.changes.entry(*at).or_default().1 |= bits;
        }
        for (i, a) in interp.acquires.iter().enumerate().take(MAX_ACQUIRES) {
            let gives = |(_, release): &(Pos, Release)| is_release(a, release);
            // … or that are of this call alone.
            let own = match *interp.cx.syms.kind(interp.cx.syms.root(a.lock.key)) {
                SymKind::Cell(cell) => cell.owner == interp.id && !interp.cx.is_module_cell(cell),
                _ => false,
            };
            if a.lock.counted && (own || !interp.releases.iter().any(gives)) {
                held.lone |= 1 << i;
            }
        }
        // Removing the lock file gives the lock back.
        for e in &interp.events {
            if e.act == Act::Delete && e.loc.kind == ResourceKind::File {
                for (i, a) in interp.acquires.iter().enumerate().take(MAX_ACQUIRES) {
                    if a.lock.kind == LockKind::File && a.lock.key == e.loc.key {
                        held.changes.entry(e.at).or_default().1 |= 1 << i;
                    }
                }
            }
        }
        held.after_loops = begun::begun_in_loops(interp, &held);
        held.flow(interp, &if_true, 0);
        held.passes = passes::passes(interp, &held);
        held.passes.extend(marked::passes(interp, &held));
        if !held.passes.is_empty() {
            held.flow(interp, &if_true, 0);
        }
        let waits = may_go_on_without(interp);
        let chosen = chosen::passes(interp);
        if waits != 0 || !chosen.is_empty() {
            let sure = std::mem::take(&mut held.at_entry);
            let known = held.passes.len();
            held.passes.extend(chosen);
            held.flow(interp, &if_true, waits);
            held.passes.truncate(known);
            held.hoped = std::mem::replace(&mut held.at_entry, sure);
        }
        held
    }

    /// `hoped`: locks that are taken to be had even where taking them failed.
    fn flow(&mut self, interp: &Interp<'_, '_, '_>, if_true: &[(Sym, u64)], hoped: u64) {
        let blocks = &interp.function.blocks;
        self.at_entry = vec![u64::MAX; blocks.len()];
        if blocks.is_empty() {
            return;
        }
        self.at_entry[0] = 0;
        let mut work: VecDeque<u32> = interp.cfg.rpo.iter().copied().collect();
        let mut queued: FxHashSet<u32> = work.iter().copied().collect();
        let mut budget = blocks.len() * 70 + 1000;
        while let Some(b) = work.pop_front() {
            queued.remove(&b);
            budget -= 1;
            if budget == 0 {
                // Give up on the safe side: nothing is held.
                self.at_entry.iter_mut().for_each(|h| *h = 0);
                return;
            }
            if self.at_entry[b as usize] == u64::MAX && b != 0 {
                continue;
            }
            let mut state = self.at_entry[b as usize];
            let mut thrown = state;
            let mut sought = 0;
            // Behind the last instruction stands what the branch decides.
            for i in 0..=blocks[b as usize].insts.len() {
                let at = Pos {
                    block: b,
                    inst: i as u32,
                };
                if let Some((take, give)) = self.changes.get(&at) {
                    state = (state & !give) | take;
                    sought |= take & hoped;
                    // A failed acquisition took nothing; a failed release is taken as done.
                    thrown &= state | take;
                    thrown &= !give;
                }
                thrown &= state;
            }
            for edge in &interp.cfg.succs[b as usize] {
                let mut out = if edge.kind == crate::cfg::EdgeKind::Handler {
                    thrown | sought
                } else {
                    state
                };
                if let Term::Branch { cond, .. } = blocks[b as usize].term {
                    let (sym, positive) = match interp.cx.syms.kind(interp.val(cond)) {
                        SymKind::Not(inner) => (*inner, false),
                        _ => (interp.val(cond), true),
                    };
                    let taken = match edge.kind {
                        crate::cfg::EdgeKind::Then => positive,
                        crate::cfg::EdgeKind::Otherwise => !positive,
                        _ => false,
                    };
                    for (handle, bits) in if_true {
                        if taken && *handle == sym {
                            out |= bits;
                        }
                    }
                }
                for pass in &self.passes {
                    if pass.from == b && pass.to == edge.to.0 {
                        out |= pass.bits;
                    }
                }
                if let Some(begun) = self.after_loops.get(&b)
                    && !begun::is_in_loop(interp, b, edge.to.0)
                {
                    out |= begun;
                }
                let to = edge.to.0 as usize;
                let mut new = self.at_entry[to] & out;
                // A lock that is sought in a loop, which gives up by failing,
                // is held after the loop although the last round may have ended.
                new |= self.sought_in_loop(interp, b, edge.to.0, out, self.at_entry[to]);
                if new != self.at_entry[to] {
                    self.at_entry[to] = new;
                    if queued.insert(edge.to.0) {
                        work.push_back(edge.to.0);
                    }
                }
            }
        }
    }

    /// Bits of file locks that one way into `to` holds and the other, the
    /// exhausted loop's, does not.
    pub(crate) fn sought_in_loop(
        &self,
        interp: &Interp<'_, '_, '_>,
        from: u32,
        to: u32,
        out: u64,
        before: u64,
    ) -> u64 {
        if before == u64::MAX {
            return 0;
        }
        let differing = (out | before) & !(out & before);
        if differing == 0 {
            return 0;
        }
        let mut keep = 0;
        for (i, a) in interp.acquires.iter().enumerate().take(MAX_ACQUIRES) {
            let bit = 1 << i;
            if differing & bit == 0 || a.lock.kind != LockKind::File {
                continue;
            }
            // The acquisition stands in a loop whose head leads here when it is exhausted.
            let in_loop = |head: u32| {
                interp.cfg.dominates(head, a.at.block)
                    && interp.cfg.preds[head as usize]
                        .iter()
                        .any(|p| interp.cfg.dominates(head, *p))
            };
            let exhausted = if out & bit == 0 {
                in_loop(from)
            } else {
                interp.cfg.preds[to as usize]
                    .iter()
                    .any(|p| *p != from && in_loop(*p))
            };
            let gives_up = interp
                .function
                .blocks
                .iter()
                .any(|b| matches!(b.term, Term::Throw(_)));
            if exhausted && gives_up {
                keep |= bit;
            }
        }
        keep
    }

    /// Held when the instruction at `at` runs.
    pub(crate) fn at(&self, at: Pos) -> u64 {
        self.taken_at(at) & !self.lone
    }

    /// Taken, and not given back, when the instruction at `at` runs.
    fn taken_at(&self, at: Pos) -> u64 {
        if !self.any {
            return 0;
        }
        self.state_at(self.at_entry[at.block as usize], at)
    }

    /// Not held for sure: who waited for it in vain goes on without, or a list says who takes it.
    pub(crate) fn hoped_at(&self, at: Pos) -> u64 {
        match self.hoped.get(at.block as usize) {
            Some(state) => self.state_at(*state, at) & !self.at(at),
            None => 0,
        }
    }

    /// Is it a way of those who have the lock already?
    fn is_passed(&self, interp: &Interp<'_, '_, '_>, block: u32, bit: u64) -> bool {
        let past = |p: &passes::Pass| p.bits & bit != 0 && interp.cfg.dominates(p.to, block);
        self.passes.iter().any(past)
    }

    fn state_at(&self, mut state: u64, at: Pos) -> u64 {
        if state == u64::MAX {
            return 0;
        }
        for i in 0..at.inst {
            if let Some((take, give)) = self.changes.get(&Pos {
                block: at.block,
                inst: i,
            }) {
                state = (state & !give) | take;
            }
        }
        state
    }

    pub(crate) fn at_end(&self, block: u32, insts: usize) -> u64 {
        self.taken_at(Pos {
            block,
            inst: insts as u32,
        })
    }

    pub(crate) fn given_back(&self, at: Pos) -> u64 {
        self.changes.get(&at).map_or(0, |c| c.1)
    }
}

pub(crate) fn is_release(a: &Acquire, release: &Release) -> bool {
    match release {
        // Part of what a call gave back, a guard still stands for its lock.
        Release::Handle(h) => a.handle == Some(*h) || a.lock.key == *h,
        Release::Key(k) => a.lock.key == *k,
        Release::Transaction => {
            a.lock.kind.is_transaction() || (a.lock.kind == LockKind::Library && a.handle.is_none())
        }
    }
}

impl Interp<'_, '_, '_> {
    /// A flag that is tested and then set without giving way is a lock until it is cleared.
    pub(crate) fn flag_locks(&mut self) {
        let mut found: Vec<(Pos, Loc, Span, Vec<Pos>)> = Vec::new();
        if self.anywhere {
            return;
        }
        for (w, e) in self.events.iter().enumerate() {
            let sets = e.loc.kind == ResourceKind::Memory
                && e.act == Act::Write
                && !e.idempotent
                && e.call.is_none();
            if !sets {
                continue;
            }
            let cleared: Vec<Pos> = self
                .events
                .iter()
                .filter(|c| c.loc == e.loc && c.act == Act::Write && c.idempotent)
                .map(|c| c.at)
                .collect();
            if cleared.is_empty() {
                continue;
            }
            let tested = self.cx.turns.is_waited_for(self.id, e.at)
                || e.ctrl.events().any(|(r, _)| {
                    let read = &self.events[r as usize];
                    read.loc == e.loc && {
                        let walk = self.walk(r as usize, w);
                        walk.reached && !walk.yielded
                    }
                });
            if tested {
                found.push((e.at, e.loc, e.trail.span, cleared));
            }
        }
        for (at, loc, span, cleared) in found {
            let handle = self.cx.syms.make(SymKind::Handle(sym::through(
                self.site(),
                u64::from(at.block) << 20 | u64::from(at.inst),
            )));
            self.acquires.push(Acquire {
                at,
                lock: Rc::new(Lock {
                    key: loc.key,
                    scope: LockScope::Process,
                    kind: LockKind::Flag,
                    lease: false,
                    shared: false,
                    once: false,
                    at_once: false,
                    keyed: false,
                    hoped: false,
                    counted: false,
                    func: self.id,
                    span,
                }),
                handle: Some(handle),
                if_true: false,
            });
            for c in cleared {
                self.releases.push((c, Release::Handle(handle)));
            }
        }
    }

    pub(crate) fn lock_defects(&mut self, held: &Held) {
        for (span, key) in std::mem::take(&mut self.chain_poison) {
            // The new tail is the one to mend, where it is stored by a statement of its own.
            let stored = self
                .events
                .iter()
                .find(|e| e.act == Act::Write && e.loc.key == key);
            let span = stored.map_or(span, |e| e.trail.span);
            self.lock_defect(DefectKind::PoisonedChain, span, key);
        }
        // Where what holds a lock is dropped on every way out, so is the lock.
        if !held.any || self.guarded {
            return;
        }
        let mut found = Vec::new();
        for (i, a) in self.acquires.iter().enumerate().take(MAX_ACQUIRES) {
            let bit = 1u64 << i;
            // A guard gives its lock back on every way out.
            let guard = a.handle == Some(a.lock.key);
            // What this call has made for itself, nobody else waits for.
            let own = self.is_racy() && self.owner_of(a.lock.key) == Owner::Own;
            let lone = held.lone & bit != 0;
            if a.if_true
                || guard
                || own
                || lone
                || a.lock.kind == LockKind::Flag
                || a.lock.kind.is_transaction()
            {
                continue;
            }
            let released = self.releases.iter().any(|(_, r)| is_release(a, r))
                || held.changes.values().any(|c| c.1 & bit != 0);
            if !released {
                continue;
            }
            // An instruction that can fail, with the lock held and nobody to give it back.
            let mut skipped = false;
            for (b, block) in self.function.blocks.iter().enumerate() {
                if block.handler.is_some() || held.is_passed(self, b as u32, bit) {
                    continue;
                }
                for (n, inst) in block.insts.iter().enumerate() {
                    let at = Pos {
                        block: b as u32,
                        inst: n as u32,
                    };
                    let fails = matches!(inst.op, Op::Await { .. }) && self.failing.contains(&at);
                    if fails
                        && at > a.at
                        && held.at(at) & bit != 0
                        && held.given_back(at) & bit == 0
                        && !self.is_part_of_release(at, a)
                    {
                        skipped = true;
                    }
                }
                if matches!(block.term, Term::Throw(_))
                    && held.at_end(b as u32, block.insts.len()) & bit != 0
                    && !self.says_not_taken(b as u32, a.at)
                {
                    skipped = true;
                }
            }
            if skipped || self.fails_holding(held, bit) {
                // Taken below us: the call that took it is what can be shown here.
                let span = if a.lock.func == self.id {
                    a.lock.span
                } else {
                    self.function.blocks[a.at.block as usize].insts[a.at.inst as usize].span
                };
                found.push((span, a.lock.key));
            }
        }
        for (span, key) in found {
            self.lock_defect(DefectKind::NotReleased, span, key);
        }
    }

    /// `if (!taken) throw …`, where `taken` is what taking the lock gave, or is set just after it:
    /// who gets there has no lock.
    fn says_not_taken(&self, block: u32, taken: Pos) -> bool {
        self.cfg.controls_of(block).iter().any(|control| {
            let Term::Branch { cond, .. } = self.function.blocks[control.block as usize].term
            else {
                return false;
            };
            let (var, truth) = self.tested(cond);
            control.way < 2 && (control.way == 0) != truth && self.is_set_by_taking(var, taken)
        })
    }

    /// What a condition tests, and whether the condition holds where that is true.
    fn tested(&self, cond: Var) -> (Var, bool) {
        let (mut var, mut truth) = (cond, true);
        for _ in 0..8 {
            let mut defs = self
                .function
                .blocks
                .iter()
                .flat_map(|b| &b.insts)
                .filter(|inst| inst.op.dst() == Some(var));
            let (Some(def), None) = (defs.next(), defs.next()) else {
                break;
            };
            match def.op {
                Op::Not { src, .. } => (var, truth) = (src, !truth),
                Op::Binary {
                    op: op @ (BinOp::Eq | BinOp::Ne),
                    left,
                    right,
                    ..
                } if self.is_empty_value(self.val(right)) => {
                    (var, truth) = (left, truth == (op == BinOp::Ne));
                }
                Op::Copy { src, .. } => var = src,
                _ => break,
            }
        }
        (var, truth)
    }

    /// Is a variable given its value by an instruction, or only after it?
    fn is_set_by_taking(&self, var: Var, taken: Pos) -> bool {
        let lock = &self.function.blocks[taken.block as usize].insts[taken.inst as usize];
        let result = lock.op.dst();
        self.function.blocks.iter().enumerate().any(|(b, block)| {
            block.insts.iter().enumerate().any(|(i, inst)| {
                let (b, i) = (b as u32, i as u32);
                let given = match inst.op {
                    Op::Copy { dst, src } if dst == var => Some(src) == result,
                    ref op => op.dst() == Some(var) && (b, i) == (taken.block, taken.inst),
                };
                let after = if b == taken.block {
                    i > taken.inst
                } else {
                    self.cfg.dominates(taken.block, b)
                };
                given || inst.op.dst() == Some(var) && after
            })
        })
    }

    /// Where failures are returned: is the lock still held where one is, although
    /// it is given back where all went well?
    fn fails_holding(&self, held: &Held, bit: u64) -> bool {
        let (mut well, mut failed) = (None, false);
        for (b, block) in self.function.blocks.iter().enumerate() {
            let Term::Return(Some(value)) = block.term else {
                continue;
            };
            if !self.anywhere || self.cfg.preds[b].is_empty() && b != 0 {
                continue;
            }
            let last = match self.cx.syms.kind(self.val(value)) {
                SymKind::Object(fields) => fields.last().map(|(_, sym)| *sym),
                _ => None,
            };
            let last = last.unwrap_or_else(|| self.val(value));
            let is_held = held.at_end(b as u32, block.insts.len()) & bit != 0;
            match self.cx.syms.kind(last) {
                SymKind::Null => well = Some(well.unwrap_or(true) && !is_held),
                SymKind::Call(_)
                | SymKind::Field(..)
                | SymKind::Ext(_)
                | SymKind::Fresh(_)
                | SymKind::Unknown(_) => failed |= is_held,
                _ => {}
            }
        }
        failed && well == Some(true)
    }

    pub(crate) fn lock_defect(&mut self, kind: DefectKind, span: Span, key: Sym) {
        self.cx.defects.push(FoundDefect {
            kind,
            func: self.id,
            span,
            first: None,
            key,
            resource: ResourceKind::Lock,
            in_process: true,
            cross_process: false,
            duck: false,
            word: false,
        });
    }

    /// `await release()`: the wait belongs to the release; and `await` of the acquisition itself.
    pub(crate) fn is_part_of_release(&self, at: Pos, a: &Acquire) -> bool {
        let block = &self.function.blocks[at.block as usize];
        let Op::Await { src, .. } = block.insts[at.inst as usize].op else {
            return false;
        };
        for (i, inst) in block.insts[..at.inst as usize].iter().enumerate() {
            if inst.op.dst() == Some(src) {
                let made = Pos {
                    block: at.block,
                    inst: i as u32,
                };
                return made == a.at
                    || self.given_back_at(made) != 0
                    || self.is_given_what_is_made(inst, a.at);
            }
        }
        Some(self.val(src)) == a.handle
    }

    /// `await wait_for(lock.acquire(), 5)`: what fails then is the acquisition.
    fn is_given_what_is_made(&self, call: &Inst, at: Pos) -> bool {
        let made = self.function.blocks[at.block as usize].insts[at.inst as usize]
            .op
            .dst();
        match &call.op {
            Op::Call { args, .. } => args.iter().any(|arg| Some(arg.value) == made),
            _ => false,
        }
    }

    pub(crate) fn given_back_at(&self, at: Pos) -> u64 {
        if self.acquires.is_empty() {
            return 0;
        }
        let mut bits = 0;
        for (p, release) in &self.releases {
            if *p == at {
                for (i, a) in self.acquires.iter().enumerate().take(MAX_ACQUIRES) {
                    if is_release(a, release) {
                        bits |= 1 << i;
                    }
                }
            }
        }
        bits
    }

    /// A lock that is held from the read to the write.
    pub(crate) fn protect(&self, window: &mut Window, lock: &Rc<Lock>) {
        if lock.hoped {
            let mut closed = window.clone();
            self.close(&mut closed, lock);
            window.hoped |= !self.is_open(&closed);
        } else {
            self.close(window, lock);
        }
    }

    /// Locks that are held here if those who waited for them got them.
    pub(crate) fn protect_hoped(&self, window: &mut Window, hoped: u64) {
        for lock in self.hoped_locks(hoped) {
            self.protect(window, &lock);
        }
    }

    pub(crate) fn hoped_locks(&self, hoped: u64) -> impl Iterator<Item = Rc<Lock>> {
        let acquires = self.acquires.iter().take(MAX_ACQUIRES).enumerate();
        acquires
            .filter(move |(i, _)| hoped >> i & 1 == 1)
            .map(|(_, a)| {
                Rc::new(Lock {
                    hoped: true,
                    ..Lock::clone(&a.lock)
                })
            })
    }

    fn close(&self, window: &mut Window, lock: &Rc<Lock>) {
        // One that others hold beside us keeps nobody out.
        if lock.shared {
            return;
        }
        // A lock that every call makes for itself keeps nobody out. One that other
        // processes see is about a file, whichever object stands for it here.
        match self.cx.syms.kind(self.cx.syms.root(lock.key)) {
            SymKind::Fresh(_) => return,
            SymKind::New(..) if lock.scope == LockScope::Process => return,
            _ => {}
        }
        let (process, host) = match lock.kind {
            LockKind::Transaction(serial) => {
                let adequate = serial || window.read_row.as_ref().is_some_and(|r| r.locking);
                (adequate, adequate)
            }
            LockKind::Connection => {
                window.cross_process = false;
                window.accidental = false;
                window.connection.get_or_insert(lock.key);
                return;
            }
            _ => (true, lock.scope == LockScope::Host),
        };
        if host {
            window.in_process = false;
            window.cross_process = false;
            window.accidental = false;
        } else if process {
            if window.in_process {
                window.closed_by = Some(Rc::clone(lock));
            }
            window.in_process = false;
            window.accidental = false;
        }
    }
}
