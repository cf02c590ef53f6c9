//! What a function leaves for its callers, made as small as it can be.

use std::collections::hash_map::Entry;
use std::rc::Rc;

use rustc_hash::{FxHashMap, FxHashSet};
use toctou_core::finding::ResourceKind;
use toctou_core::ir::{FuncKind, Op, Term, Var};
use toctou_models::{LockScope, Mode};

use crate::effect::{Act, Dep, Deps, End, Event, Loc, Lock, LockKind, Pos, Source, Window};
use crate::held::{Held, MAX_ACQUIRES};
use crate::interp::{Interp, Release};
use crate::summary::Summary;
use crate::sym::{self, Sym, SymKind};

/// Of an object with more parts than this, only the whole is known.
const MAX_PARTS: usize = 64;

impl Interp<'_, '_, '_> {
    pub(crate) fn summarise(mut self, held: &Held, windows: Vec<Rc<Window>>) -> Summary {
        let first_yield = self.yield_order();
        let init = self.function.kind == FuncKind::ModuleInit;
        let mut summary = Summary {
            windows,
            yields: self.function.is_async
                || !self.yields.is_empty()
                || self.calls_yielding
                || self.function.is_generator,
            may_throw: false,
            ..Summary::default()
        };
        let id = self.id;
        let normal = crate::checks::code::without_failure(self.function);
        for e in &mut self.events {
            e.in_handler |= !normal[e.at.block as usize];
            let (before, after) = first_yield.around(e.at);
            e.yields_before |= before;
            e.yields_after |= after;
            e.local = match self.cx.syms.kind(self.cx.syms.root(e.loc.key)) {
                SymKind::VarLoc(cell) | SymKind::Cell(cell) => {
                    e.loc.kind == ResourceKind::Memory && cell.owner == id && !init
                }
                _ => false,
            };
        }
        // A lock round the access that is given back before we return is ours alone.
        if held.any {
            let locks: Vec<Option<Rc<Lock>>> = self
                .events
                .iter()
                .map(|e| {
                    let bits = held.at(e.at);
                    self.acquires
                        .iter()
                        .enumerate()
                        .take(MAX_ACQUIRES)
                        .find(|(i, _)| bits >> i & 1 == 1)
                        .map(|(_, a)| Rc::clone(&a.lock))
                })
                .collect();
            for (e, lock) in self.events.iter_mut().zip(locks) {
                if e.lock.is_none() {
                    e.lock = lock;
                }
            }
        }
        self.returns(&mut summary, held);
        self.throws(&mut summary);
        self.turns(&mut summary);
        for (at, mut call) in std::mem::take(&mut self.sym_calls) {
            // Who starts a task gives no lock along.
            if !call.spawned {
                let bits = held.at(at);
                for (i, a) in self.acquires.iter().enumerate().take(MAX_ACQUIRES) {
                    if bits >> i & 1 == 1 {
                        call.locks.push(Rc::clone(&a.lock));
                    }
                }
                call.locks.extend(self.hoped_locks(held.hoped_at(at)));
            }
            call.yields_before |= first_yield.around(at).0;
            summary.sym_calls.push(call);
        }
        let begins = |a: &crate::interp::Acquire| a.lock.kind.is_transaction();
        summary.ends_transaction = self.ends_transaction() && !self.acquires.iter().any(begins);
        for (_, release) in &self.releases {
            if let Release::Key(key) = release
                && !self.acquires.iter().any(|a| a.lock.key == *key)
            {
                summary.releases.push(*key);
            }
        }
        for (i, a) in self.acquires.iter().enumerate().take(MAX_ACQUIRES) {
            if a.lock.lease {
                let mut waits: Vec<Pos> = self.yields.keys().copied().collect();
                // Who calls is held up by the call, where nobody gives way.
                if self.is_racy() {
                    waits.extend(crate::checks::code::calls(self.function).map(|c| c.0));
                }
                waits.retain(|at| held.at(*at) >> i & 1 == 1 && !self.is_part_of_release(*at, a));
                waits.sort_unstable();
                summary.leases.push((Rc::clone(&a.lock), waits));
            }
        }
        summary.ages = std::mem::take(&mut self.ages);
        summary.events = self.events;
        compress(&mut summary);
        summary
    }

    /// A flag that is set for the caller, or cleared for whoever waits.
    fn turns(&mut self, summary: &mut Summary) {
        if let Some(base) = self.cx.turns.taken(self.id) {
            let key = base.symbol(self.cx);
            summary.leaves_held.push((
                Rc::new(Lock {
                    key,
                    scope: LockScope::Process,
                    kind: LockKind::Chain,
                    lease: false,
                    shared: false,
                    once: false,
                    at_once: false,
                    keyed: false,
                    hoped: false,
                    counted: false,
                    func: self.id,
                    span: self.function.name_span,
                }),
                false,
            ));
        }
        for base in self.cx.turns.given(self.id).to_vec() {
            let key = base.symbol(self.cx);
            if !summary.releases.contains(&key) {
                summary.releases.push(key);
            }
        }
    }

    fn ends_transaction(&self) -> bool {
        let ends = |r: &(Pos, Release)| matches!(r.1, Release::Transaction);
        self.releases.iter().any(ends)
    }

    /// The places where a generator hands a value out, and the values.
    fn handed_out(&self) -> Vec<(Pos, Var)> {
        let mut out = Vec::new();
        if !self.function.is_generator {
            return out;
        }
        for &b in &self.cfg.rpo {
            let insts = &self.function.blocks[b as usize].insts;
            for (i, inst) in insts.iter().enumerate() {
                if let Op::YieldValue { value, .. } = inst.op {
                    let at = Pos {
                        block: b,
                        inst: i as u32,
                    };
                    out.push((at, value));
                }
            }
        }
        out
    }

    pub(crate) fn returns(&mut self, summary: &mut Summary, held: &Held) {
        let mut values: Vec<Sym> = Vec::new();
        let mut several = 0;
        let mut all_held = u64::MAX;
        let mut true_held = u64::MAX;
        let mut gives_false = false;
        let mut exits = 0;
        let out = self.handed_out();
        let locks = held.any && out.iter().any(|(at, _)| held.at(*at) != 0);
        for (at, value) in out {
            // A generator's caller goes on where it hands something out.
            exits += 1;
            several += 1;
            let sym = self.val(value);
            summary.ret_deps.extend(&self.deps_of(sym));
            // One that locks, and lets pass who has the lock already, is a lock.
            if !locks || held.at(at) != 0 {
                all_held &= held.at(at);
            }
            if !matches!(self.cx.syms.kind(sym), SymKind::Null) && !values.contains(&sym) {
                values.push(sym);
            }
        }
        let generator = exits > 0;
        for (b, block) in self.function.blocks.iter().enumerate() {
            if generator {
                break;
            }
            let Term::Return(value) = block.term else {
                continue;
            };
            if self.cfg.preds[b].is_empty() && b != 0 {
                continue;
            }
            exits += 1;
            let sym = match value {
                Some(v) => self.val(v),
                None => self.cx.syms.null(),
            };
            several += 1;
            summary
                .ret_deps
                .extend(&self.control_deps(b as u32).as_implicit());
            summary.ret_deps.extend(&self.deps_of(sym));
            let bits = held.at_end(b as u32, block.insts.len());
            let falsy = matches!(self.cx.syms.kind(sym), SymKind::Bool(false) | SymKind::Null);
            all_held &= bits;
            if !falsy {
                true_held &= bits;
            }
            gives_false |= matches!(self.cx.syms.kind(sym), SymKind::Bool(false));
            if !matches!(self.cx.syms.kind(sym), SymKind::Null) && !values.contains(&sym) {
                values.push(sym);
            }
        }
        if several <= 1 {
            // One way out: nothing decided about it.
            let mut deps = Deps::default();
            for v in &values {
                deps.extend(&self.deps_of(*v));
            }
            summary.ret_deps = deps;
        }
        for r in self.free_names(&summary.ret_deps) {
            self.events[r as usize].free = true;
            summary.ret_deps.insert(Dep {
                implicit: true,
                ..Dep::on(Source::Event(r))
            });
            summary.alternatives = match values.as_slice() {
                [one] => self.variants(*one),
                many => many.iter().copied().take(4).collect(),
            };
        }
        summary.answers = self.is_answer(&summary.ret_deps);
        summary.ret = match values.as_slice() {
            [] => None,
            [one]
                if !matches!(self.cx.syms.kind(*one), SymKind::Unknown(_))
                    && !self.is_cleaned(*one) =>
            {
                Some(*one)
            }
            many if self.is_tuples(many) => Some(self.returned_tuple(many)),
            many if let Some(one) = self.one_of_a_kind(many) => Some(one),
            many => {
                let fresh = many.iter().all(|v| self.cx.syms.is_fresh(*v));
                let site = sym::through(sym::site(self.id, 0xff_fffe), 1);
                // The same function of the same arguments gives the same value.
                let params: Vec<Sym> = (0..self.function.params.len() as u32)
                    .map(|i| self.cx.syms.make(SymKind::Param(i)))
                    .collect();
                Some(if fresh {
                    self.cx.syms.make(SymKind::Fresh(site))
                } else {
                    let this = self.cx.syms.make(SymKind::This);
                    self.cx
                        .syms
                        .make(SymKind::Call(Box::new(crate::sym::CallSym {
                            callee: crate::sym::CalleeSym::Func(self.id),
                            recv: self.function.class.map(|_| this),
                            args: params.into(),
                        })))
                })
            }
        };
        summary.fields = self.fields_set();
        if let Some(ret) = summary.ret {
            summary.ret_parts = self.parts(ret);
            summary.made = self.made_in_result(ret);
            summary.kept = self.kept_in_result(&values, ret);
            summary.known_as = self.known_results(&values, ret);
        }
        // Where a guard is a value, who gets none and goes on chose to.
        if self.guarded && !gives_false && true_held != u64::MAX {
            all_held = true_held;
        }
        let ends = self.ends_transaction();
        if exits > 0 && held.any {
            for (i, a) in self.acquires.iter().enumerate().take(MAX_ACQUIRES) {
                let bit = 1 << i;
                // What begins a transaction and never ends it leaves that to its caller. A
                // generator ends it when its caller is done.
                let over = a.lock.kind.is_transaction() && ends && !generator;
                if a.lock.kind == LockKind::Flag || over {
                    continue;
                }
                if all_held & bit != 0 {
                    summary.leaves_held.push((Rc::clone(&a.lock), false));
                } else if !generator && true_held != u64::MAX && true_held & bit != 0 {
                    summary.leaves_held.push((Rc::clone(&a.lock), true));
                }
            }
        }
    }

    /// Is it a parameter that was changed step by step, each where it applied? Then the steps
    /// say less than who took them.
    fn is_cleaned(&self, value: Sym) -> bool {
        let of_param = |sym| matches!(self.cx.syms.kind(sym), SymKind::Param(_));
        self.cx.syms.normalisers.contains(&self.id)
            && !self.several.is_empty()
            && self.cx.syms.any(value, of_param)
    }

    /// What stands in an object or a list that is written out, and in those inside of it. A
    /// caller that takes a part has not taken the others.
    fn parts(&self, whole: Sym) -> Vec<(Sym, Deps)> {
        let mut out = Vec::new();
        let mut stack = vec![whole];
        while let Some(sym) = stack.pop() {
            let children: Vec<Sym> = match self.cx.syms.kind(sym) {
                SymKind::Object(fields) => fields.iter().map(|field| field.1).collect(),
                SymKind::Array(items) => items.to_vec(),
                _ => continue,
            };
            for child in children {
                let deps = self.deps_of(child);
                if !deps.is_empty() && out.len() < MAX_PARTS {
                    out.push((child, deps));
                    stack.push(child);
                }
            }
        }
        out
    }

    /// Does all that the caller or memory had to do with it go through a question?
    fn is_answer(&self, deps: &Deps) -> bool {
        let mut asked = false;
        for dep in deps.iter().filter(|d| !d.implicit) {
            match dep.source {
                Source::Event(e) if !self.is_of_memory(e) => {}
                _ if !dep.asked => return false,
                _ => asked = true,
            }
        }
        asked
    }

    /// Several results in one, each by itself: the same function of the same
    /// arguments gives the same values.
    fn returned_tuple(&mut self, tuples: &[Sym]) -> Sym {
        let SymKind::Object(shape) = self.cx.syms.kind(tuples[0]).clone() else {
            return tuples[0];
        };
        let params: Vec<Sym> = (0..self.function.params.len() as u32)
            .map(|i| self.cx.syms.make(SymKind::Param(i)))
            .collect();
        let this = self.cx.syms.make(SymKind::This);
        let call = self
            .cx
            .syms
            .make(SymKind::Call(Box::new(crate::sym::CallSym {
                callee: crate::sym::CalleeSym::Func(self.id),
                recv: self.function.class.map(|_| this),
                args: params.into(),
            })));
        let mut out = Vec::with_capacity(shape.len());
        for (i, (name, _)) in shape.iter().enumerate() {
            let mut options: Vec<Sym> = Vec::new();
            for tuple in tuples {
                let value = self.cx.syms.field(*tuple, *name);
                if !matches!(self.cx.syms.kind(value), SymKind::Null) && !options.contains(&value) {
                    options.push(value);
                }
            }
            let value = match options.as_slice() {
                [] => self.cx.syms.null(),
                [one] if !matches!(self.cx.syms.kind(*one), SymKind::Unknown(_)) => *one,
                _ if i == 0 => call,
                _ => self.cx.syms.make(SymKind::Field(call, *name)),
            };
            out.push((*name, value));
        }
        self.cx.syms.make(SymKind::Object(out.into()))
    }

    pub(crate) fn throws(&mut self, summary: &mut Summary) {
        for (b, block) in self.function.blocks.iter().enumerate() {
            if block.handler.is_some() {
                continue;
            }
            if matches!(block.term, Term::Throw(_)) {
                summary.may_throw = true;
                summary.throw_deps.extend(&self.control_deps(b as u32));
            }
        }
        summary.may_throw |= self
            .failing
            .iter()
            .any(|at| self.function.blocks[at.block as usize].handler.is_none());
        for (at, gate) in &self.gates {
            if self.function.blocks[at.block as usize].handler.is_none() {
                summary.throw_deps.extend(gate);
            }
        }
        self.hand_on_judged(summary);
    }

    /// For each block: can somebody have run before it begins, and after it ends?
    pub(crate) fn yield_order(&self) -> YieldOrder {
        let n = self.function.blocks.len();
        let mut order = YieldOrder {
            before: vec![false; n],
            after: vec![false; n],
            yields: self.yields.keys().copied().collect(),
        };
        if order.yields.is_empty() {
            return order;
        }
        let yielding: FxHashSet<u32> = order.yields.iter().map(|p| p.block).collect();
        let mut work: Vec<u32> = yielding.iter().copied().collect();
        work.sort_unstable();
        while let Some(b) = work.pop() {
            for e in &self.cfg.succs[b as usize] {
                if !order.before[e.to.0 as usize] {
                    order.before[e.to.0 as usize] = true;
                    work.push(e.to.0);
                }
            }
        }
        let mut work: Vec<u32> = yielding.into_iter().collect();
        work.sort_unstable();
        while let Some(b) = work.pop() {
            for p in &self.cfg.preds[b as usize] {
                if !order.after[*p as usize] {
                    order.after[*p as usize] = true;
                    work.push(*p);
                }
            }
        }
        order.yields.sort_unstable();
        order
    }
}

/// A caller need not know how often a function makes the same access: equal
/// events become one, or what every handler calls would grow without end.
pub(crate) fn compress(summary: &mut Summary) {
    let wanted = wanted(summary);
    let events = &mut summary.events;
    let mut first: FxHashMap<Access, u32> = FxHashMap::default();
    let mut map: Vec<u32> = Vec::with_capacity(events.len());
    let mut kept = 0;
    for (i, wanted) in wanted.into_iter().enumerate() {
        if !wanted {
            map.push(u32::MAX);
            continue;
        }
        let (before, rest) = events.split_at_mut(i);
        let e = &rest[0];
        let same = match first.entry(access(e)) {
            Entry::Occupied(same) => *same.get(),
            Entry::Vacant(new) => {
                new.insert(kept);
                map.push(kept);
                events.swap(kept as usize, i);
                kept += 1;
                continue;
            }
        };
        map.push(same);
        let old = &mut before[same as usize];
        old.data.extend(&e.data);
        old.key_deps.extend(&e.key_deps);
        old.ctrl.extend(&e.ctrl);
        old.yields_before |= e.yields_before;
        old.yields_after |= e.yields_after;
        old.judged |= e.judged;
    }
    events.truncate(kept as usize);
    events.shrink_to_fit();
    renumber(summary, &map);
}

/// What makes two events the same access to a caller.
type Access = (Loc, End, Act, Mode, bool);

fn access(e: &Event) -> Access {
    (e.loc, e.trail.last(), e.act, e.mode, e.lock.is_some())
}

/// Events have other numbers now. Most of what a function does depends on the same few sets:
/// each is kept once, and callers need to say it in their terms only once.
fn renumber(summary: &mut Summary, map: &[u32]) {
    let same = summary.events.len() == map.len();
    let mut known: FxHashMap<Deps, Deps> = FxHashMap::default();
    // Most stand at one address, too. Those are kept for as long as they are looked up by it.
    let mut seen: FxHashMap<usize, (Deps, Deps)> = FxHashMap::default();
    let mut renumber = |deps: &mut Deps| {
        let Some(address) = deps.address() else {
            if !same {
                *deps = deps.renumbered(map);
            }
            return;
        };
        if let Some((_, new)) = seen.get(&address) {
            deps.clone_from(new);
            return;
        }
        let new = known.entry(deps.clone()).or_insert_with(|| {
            if same {
                deps.clone()
            } else {
                deps.renumbered(map)
            }
        });
        let new = new.clone();
        let old = std::mem::replace(deps, new.clone());
        seen.insert(address, (old, new));
    };
    for e in &mut summary.events {
        renumber(&mut e.data);
        renumber(&mut e.key_deps);
        renumber(&mut e.ctrl);
        if !same
            && let Some(row) = &mut e.row
            && row.conditions.iter().any(|c| !c.1.is_empty())
        {
            let mut new = crate::effect::Row::clone(row);
            new.conditions.iter_mut().for_each(|c| renumber(&mut c.1));
            *row = Rc::new(new);
        }
    }
    renumber(&mut summary.ret_deps);
    for (_, deps) in &mut summary.ret_parts {
        renumber(deps);
    }
    renumber(&mut summary.throw_deps);
    for call in &mut summary.sym_calls {
        call.arg_deps.iter_mut().for_each(&mut renumber);
    }
}

/// Calls between an access to memory and the last function that hears of it.
const MAX_MEMORY_DEPTH: usize = 3;

/// Events that a caller can make something of: writes, checks (they may fail),
/// and the reads that something it sees depends on.
pub(crate) fn wanted(summary: &Summary) -> Vec<bool> {
    let n = summary.events.len();
    let mut wanted = vec![false; n];
    let mut note = |deps: &Deps| {
        for (e, _) in deps.events() {
            if let Some(slot) = wanted.get_mut(e as usize) {
                *slot = true;
            }
        }
    };
    note(&summary.ret_deps);
    summary.ret_parts.iter().for_each(|part| note(&part.1));
    note(&summary.throw_deps);
    for call in &summary.sym_calls {
        call.arg_deps.iter().for_each(&mut note);
    }
    let stays =
        |e: &Event| !e.local && (!e.act.is_read() || matches!(e.act, Act::Check | Act::Resolve));
    for e in summary.events.iter().filter(|e| stays(e)) {
        note(&e.data);
        note(&e.key_deps);
        note(&e.ctrl);
        if let Some(row) = &e.row {
            row.conditions.iter().for_each(|c| note(&c.1));
        }
    }
    for (i, e) in summary.events.iter().enumerate() {
        // What happens to memory far below is settled there: such windows are short.
        let near = e.loc.kind != ResourceKind::Memory || e.trail.depth() <= MAX_MEMORY_DEPTH;
        let mine = e.local && e.act == Act::Write;
        wanted[i] = near && (!e.local && (wanted[i] || stays(e)) || mine);
    }
    wanted
}

pub(crate) struct YieldOrder {
    pub(crate) before: Vec<bool>,
    pub(crate) after: Vec<bool>,
    pub(crate) yields: Vec<Pos>,
}

impl YieldOrder {
    pub(crate) fn around(&self, at: Pos) -> (bool, bool) {
        if self.yields.is_empty() {
            return (false, false);
        }
        let in_block =
            |f: &dyn Fn(&Pos) -> bool| self.yields.iter().any(|y| y.block == at.block && f(y));
        (
            self.before[at.block as usize] || in_block(&|y| y.inst < at.inst),
            self.after[at.block as usize] || in_block(&|y| y.inst > at.inst),
        )
    }
}
