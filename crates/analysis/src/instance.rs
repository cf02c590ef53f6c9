//! A callee's summary in its caller's terms: places, values and dependencies
//! are rewritten, events and windows are put in at the call.

use crate::calls::{Entry, MAX_DEPTH};
use crate::effect::{
    Dep, Deps, Event, Frame, Loc, Lock, Row, Source, Window, event_of_word, word_of_event,
};
use crate::interp::sets::{Turn, Union};
use crate::interp::{InnerWindow, Interp};
use crate::summary::{Summary, SymCall};
use crate::sym::{self, Sym, SymKind};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use std::rc::Rc;
use toctou_core::Name;
use toctou_core::finding::ResourceKind;
use toctou_core::ir::{Cell, FuncId, FuncKind, Var};

impl<'a> Interp<'_, 'a, '_> {
    pub(crate) fn enter_events(&mut self, summary: &Summary, inst: &mut Instance<'_>) {
        let number = self.ordinal;
        for (i, e) in summary.events.iter().enumerate() {
            inst.entered = i as u32;
            if e.local || e.search {
                continue;
            }
            if let Some(later) = &e.later {
                if let Some(id) = self.enter_statement(e, later, inst) {
                    inst.map[i] = id;
                }
                continue;
            }
            // To say it in our terms would be for nothing.
            if !self.has_room(e.loc.kind, e.trail.depth() + 1) {
                self.event_count += 1;
                continue;
            }
            let mut key = match self.set_by(summary, e, inst) {
                Some(field) => field,
                None => self.rewrite(e.loc.key, inst),
            };
            if e.loc.kind == ResourceKind::File {
                key = self.path_of(key);
            }
            let entry = e.loc.entry.map(|s| self.rewrite(s, inst));
            let loc = Loc {
                kind: e.loc.kind,
                key,
                entry,
            };
            if !self.is_visible(loc) {
                // Its value may still carry what it was given.
                let data = self.map_deps(&e.data, inst);
                if e.act.is_write() {
                    let value = e.value.map(|v| self.rewrite(v, inst));
                    match e.loc.kind {
                        ResourceKind::Memory => self.taint(key, &data),
                        ResourceKind::File => {
                            let file = self.cx.syms.temporary(key);
                            self.file_data.entry(file).or_default().add(&data, value);
                        }
                        _ => {}
                    }
                } else if e.act.is_read() && e.loc.kind == ResourceKind::Memory {
                    inst.tables.owned.insert(i as u32, key);
                }
                continue;
            }
            // Rows and tests have ways of their own to say what they rest on.
            inst.tables.narrow = !matches!(loc.kind, ResourceKind::File | ResourceKind::Memory);
            let mut data = self.map_deps(&e.data, inst);
            inst.tables.narrow = true;
            // Nobody asks for these before all is known.
            let (key_deps, ctrl) = if self.last_round {
                let key_deps = self.map_deps(&e.key_deps, inst);
                (key_deps, self.map_deps(&e.ctrl, inst))
            } else {
                (Deps::default(), Deps::default())
            };
            let row = e.row.as_ref().map(|r| self.map_row(r, inst));
            inst.tables.narrow = false;
            let value = e.value.map(|v| self.rewrite(v, inst));
            // A field that is set only where its object is made, and that object is ours.
            if let Some(value) = value.filter(|v| e.value != Some(*v))
                && loc.kind == ResourceKind::File
                && !self.cx.may_be_shared(value)
            {
                data.extend(&self.deps_of(value));
            }
            if e.act.is_write() {
                match loc.kind {
                    ResourceKind::Memory => self.taint(key, &data),
                    ResourceKind::File => {
                        self.file_data.entry(key).or_default().add(&data, value);
                    }
                    _ => {}
                }
            }
            let lock = inst.entry.locks.first().cloned().or_else(|| e.lock.clone());
            let event = Event {
                act: e.act,
                mode: e.mode,
                loc,
                data,
                value,
                key_deps,
                ctrl,
                row,
                later: None,
                at: self.at,
                trail: Frame::new(self.id, self.span, Some(Rc::clone(&e.trail))),
                yields_before: e.yields_before || inst.entry.yields_before,
                yields_after: e.yields_after,
                lock,
                call: Some(number),
                duck: e.duck,
                constant: e.constant,
                collection: e.collection,
                judged: e.judged,
                copies: e.copies,
                puts_back: e.puts_back,
                local: false,
                site: sym::through(e.site, inst.site),
                idempotent: e.idempotent,
                lease: e.lease,
                empties: e.empties,
                search: e.search,
                in_handler: e.in_handler,
                free: e.free,
                swaps: e.swaps,
                aged: e.aged,
            };
            if e.trail.depth() > 24 {
                continue;
            }
            if let Some(id) = self.push(event) {
                inst.map[i] = id;
            }
        }
        inst.entered = u32::MAX;
        // What a container or variable was given below is known here, too.
        for e in summary
            .events
            .iter()
            .filter(|e| e.loc.kind == ResourceKind::Memory && e.act == crate::effect::Act::Write)
        {
            if let SymKind::VarLoc(cell) = self.cx.syms.kind(e.loc.key)
                && cell.owner == self.id
            {
                self.closure_store(e, inst);
            }
        }
    }

    /// The field that a constructor sets, and not what it is known by then.
    fn set_by(&mut self, summary: &Summary, e: &Event, inst: &Instance<'_>) -> Option<Sym> {
        let SymKind::Field(base, name) = *self.cx.syms.kind(e.loc.key) else {
            return None;
        };
        let sets = e.loc.kind == ResourceKind::Memory
            && matches!(self.cx.syms.kind(base), SymKind::This)
            && summary.fields.iter().any(|field| field.0 == name);
        let object = inst.entry.recv.filter(|_| sets)?;
        Some(self.cx.syms.make(SymKind::Field(object, name)))
    }

    /// A closure set one of our variables: `new Promise(r => { release = r })`.
    pub(crate) fn closure_store(&mut self, event: &Event, inst: &mut Instance<'_>) {
        for dep in event.data.iter() {
            if let Source::Param(i) = dep.source
                && let Some(&arg) = inst.entry.args.get(i as usize)
                && matches!(self.cx.syms.kind(arg), SymKind::Handle(_))
            {
                let list = self.stored.entry(event.loc.key).or_default();
                if !list.contains(&arg) {
                    list.push(arg);
                }
            }
        }
    }

    /// Can anybody but this activation see the place?
    pub fn is_visible(&self, loc: Loc) -> bool {
        match loc.kind {
            ResourceKind::Memory => {
                self.cx.may_be_shared(loc.key) && !self.cx.syms.is_of_fresh_entry(loc.key)
            }
            ResourceKind::File => {
                !self.cx.syms.is_fresh(loc.key)
                    && !matches!(self.cx.syms.kind(loc.key), SymKind::Null | SymKind::New(..))
            }
            ResourceKind::Row | ResourceKind::Kv => !self.cx.syms.is_fresh(loc.key),
            _ => true,
        }
    }

    pub(crate) fn enter_windows(&mut self, summary: &Summary, inst: &mut Instance<'_>) {
        if summary.windows.is_empty() {
            return;
        }
        let here = self.label(self.at.block);
        for w in &summary.windows {
            if !self.room.has_for(here.or(inst.entry.label).or(w.label), w) {
                continue;
            }
            let key = self.rewrite(w.loc.key, inst);
            let entry = w.loc.entry.map(|s| self.rewrite(s, inst));
            let loc = Loc {
                kind: w.loc.kind,
                key,
                entry,
            };
            if !self.is_visible(loc) {
                continue;
            }
            let depth = w.path.as_ref().map_or(0, |p| p.depth());
            // What is atomic only by accident is worth a look near its handler.
            let open = w.in_process || w.cross_process || self.cx.has_threads;
            if depth > 16 || !open && depth > 1 {
                continue;
            }
            let mut window = Window::clone(w);
            if inst.entry.thread {
                window.in_thread();
            }
            window.loc = loc;
            window.snapshot = window.snapshot.map(|s| self.rewrite(s, inst));
            window.connection = window.connection.map(|s| self.rewrite(s, inst));
            window.path = Some(Frame::new(self.id, self.span, w.path.clone()));
            window.label = inst.entry.label.or(window.label);
            self.room.take(here.or(window.label));
            window.detached |= inst.entry.detached && summary.yields || inst.entry.spawned;
            self.windows.push(InnerWindow {
                at: self.at,
                window,
                locks: inst.entry.locks.clone(),
            });
        }
    }

    pub(crate) fn enter_sym_call(&mut self, call: &SymCall, inst: &mut Instance<'_>) {
        let callee = self.rewrite(call.callee, inst);
        let depth = call.depth.max(inst.entry.depth) + 1;
        // Most of them are for a caller of ours to know, and there are enough of these already.
        if depth > MAX_DEPTH || !self.has_room_for_call_of(callee) {
            return;
        }
        let mut args: Vec<Sym> = call.args.iter().map(|a| self.rewrite(*a, inst)).collect();
        if let Some(first) = call.rest {
            args.pop();
            args.extend(inst.entry.args.iter().skip(first as usize));
        }
        let own = call.args.len() - usize::from(call.rest.is_some());
        for (sym, deps) in args.iter().zip(&call.arg_deps).take(own) {
            let deps = self.map_deps(deps, inst);
            self.add_deps(*sym, &deps);
        }
        let mut named: Vec<(Name, Sym)> = Vec::new();
        for &(name, sym) in &call.named {
            // `f(**rest)` hands on what had no parameter of its own.
            if name == self.cx.words.spread && matches!(self.cx.syms.kind(sym), SymKind::Param(_)) {
                named.extend(&inst.entry.named);
            } else {
                named.push((name, self.rewrite(sym, inst)));
            }
        }
        let value = call.value.map(|v| self.rewrite(v, inst));
        let mut locks: Vec<Rc<Lock>> = call.locks.iter().map(|l| self.map_lock(l, inst)).collect();
        locks.extend(inst.entry.locks.iter().cloned());
        let entry = Entry {
            recv: None,
            args,
            named,
            value,
            bound: None,
            locks,
            yields_before: call.yields_before || inst.entry.yields_before,
            detached: inst.entry.detached,
            spawned: inst.entry.spawned || call.spawned,
            label: inst.entry.label,
            depth,
            thread: inst.entry.thread || call.thread,
        };
        let var = self.handed_by(call.callee, callee);
        let result = self.call_back(callee, var, entry);
        // What the callback gave back is what the call of it gave back.
        if let Some(result) = result {
            let deps = self.deps_of(result);
            if let (Some(own), Some(value)) = (call.value, value) {
                self.add_deps(value, &deps);
                inst.tables.cache.insert(own, result);
            }
            inst.results.entry(callee).or_default().extend(&deps);
        }
    }

    /// The register that holds what the callee was given for a parameter, if it came out of a
    /// table of functions, or is a method of something.
    fn handed_by(&self, param: Sym, value: Sym) -> Option<Var> {
        let SymKind::Param(i) = *self.cx.syms.kind(param) else {
            return None;
        };
        let var = *self.arg_vars().get(i as usize)?;
        let syms = &self.cx.syms;
        let is_entry = |s| matches!(syms.kind(s), SymKind::Index(..) | SymKind::Element(_));
        let found = matches!(syms.kind(value), SymKind::Field(..) | SymKind::Call(_))
            || syms.any(value, is_entry);
        (self.val(var) == value && found).then_some(var)
    }

    pub(crate) fn map_lock(&mut self, lock: &Rc<Lock>, inst: &mut Instance<'_>) -> Rc<Lock> {
        let key = self.rewrite(lock.key, inst);
        if key == lock.key {
            return Rc::clone(lock);
        }
        Rc::new(Lock {
            key,
            ..Lock::clone(lock)
        })
    }

    pub(crate) fn map_row(&mut self, row: &Rc<Row>, inst: &mut Instance<'_>) -> Rc<Row> {
        if row.conditions.is_empty() && row.document.is_none() {
            return Rc::clone(row);
        }
        let mut new = Row::clone(row);
        if let Some(document) = row.document {
            let given = self.rewrite(document, inst);
            if given != document {
                new.columns.clear();
                new.relative.clear();
                self.update_columns(given, &mut new);
            }
        }
        for (_, deps) in &mut new.conditions {
            *deps = self.map_deps(deps, inst);
        }
        Rc::new(new)
    }

    /// A callee's dependencies in our terms.
    pub(crate) fn map_deps(&mut self, deps: &Deps, inst: &mut Instance<'_>) -> Deps {
        if deps.is_empty() {
            return Deps::default();
        }
        let narrow = inst.tables.narrow && !inst.tables.owned.is_empty();
        let address = deps.address().filter(|_| !narrow);
        if let Some(known) = address.and_then(|at| inst.tables.mapped.get(&at))
            && known.changes.is_none_or(|changes| changes == self.changes)
        {
            return known.deps.clone();
        }
        let mut out = Union::default();
        let mut before = u32::MAX;
        let mut places: SmallVec<[Sym; 16]> = SmallVec::new();
        let mut is_whole = true;
        let mut reads_memory = false;
        for &word in deps.words() {
            let Some(event) = event_of_word(word) else {
                if let Some(known) = inst.tables.refined.get(&word) {
                    out.extend(known, self.cx.sets.get_mut());
                } else {
                    let refined = self.map_outer(Dep::unpack(word), inst);
                    out.extend(&refined, self.cx.sets.get_mut());
                    inst.tables.refined.insert(word, refined);
                }
                continue;
            };
            let id = inst.map.get(event as usize).copied().unwrap_or(u32::MAX);
            is_whole &= event < inst.entered;
            if id == u32::MAX {
                // What the callee read of an object of ours is what we have put there.
                if let Some(&place) = inst.tables.owned.get(&event)
                    && !narrow
                {
                    reads_memory = true;
                    let given = self.deps_of(place);
                    let refined = self.refine(given, Dep::unpack(word));
                    out.extend(&refined, self.cx.sets.get_mut());
                }
                continue;
            }
            out.insert(word_of_event(word, id));
            // Of one event there can be several attributes, one after the other.
            if std::mem::replace(&mut before, id) == id {
                continue;
            }
            // What a place in memory was given here, the callee read there.
            let event = &self.events[id as usize];
            if event.loc.kind == ResourceKind::Memory && event.act.is_read() {
                reads_memory = true;
                let place = event.loc.key;
                if places.contains(&place) {
                    continue;
                }
                places.push(place);
                self.cx.marks.ask(place);
                if !self.cx.marks.is_known(place) {
                    continue;
                }
                let given = [self.deps.get(&place), self.below.get(&place)];
                for given in given.into_iter().flatten() {
                    out.extend(given, self.cx.sets.get_mut());
                }
            }
        }
        let out = out.end(self.cx.sets.get_mut());
        if let Some(address) = address.filter(|_| is_whole) {
            let known = Mapped {
                deps: out.clone(),
                changes: reads_memory.then_some(self.changes),
            };
            inst.tables.mapped.insert(address, known);
        }
        out
    }

    /// What an argument, or a variable of ours, depends on.
    fn map_outer(&mut self, dep: Dep, inst: &Instance<'_>) -> Deps {
        let value = match dep.source {
            Source::Param(i) => match inst.entry.args.get(i as usize) {
                Some(arg) => *arg,
                None => return Deps::default(),
            },
            Source::Cell(number) => {
                let known = self.cx.points_to.cell(number).and_then(|cell| {
                    inst.bound_arg(cell, &self.cx.param_cells)
                        .or_else(|| (cell.owner == self.id).then(|| self.vals[cell.var.0 as usize]))
                });
                match known {
                    Some(value) => value,
                    None => return Deps::one(dep),
                }
            }
            Source::Event(_) => return Deps::default(),
        };
        if let Some(results) = inst.results.get(&value) {
            let mut deps = self.deps_of(value);
            self.cx.sets.get_mut().extend(&mut deps, results);
            return self.refine(deps, dep);
        }
        // The same values are handed to one callee after the other.
        let key = (value, dep.manner());
        if let Some((changes, known)) = self.handed_over.get(&key)
            && *changes == self.changes
        {
            return known.clone();
        }
        let deps = self.refine(self.deps_of(value), dep);
        self.handed_over.insert(key, (self.changes, deps.clone()));
        deps
    }

    /// What the callee did with a value of ours is true of what the value came from.
    pub(crate) fn refine(&self, deps: Deps, dep: Dep) -> Deps {
        let deps = match dep.attr {
            Some(attr) if !self.cx.words.wrappers.contains(&attr) => {
                let field = |d: &Deps| d.field(attr);
                self.turned(&deps, Turn::Field(attr), field)
            }
            _ => deps,
        };
        let deps = if dep.shared {
            self.turned(&deps, Turn::Shared, Deps::through_memory)
        } else {
            deps
        };
        let deps = if dep.chosen {
            self.turned(&deps, Turn::Chosen, Deps::as_chosen)
        } else if dep.asked {
            deps.as_asked(|e| self.is_of_memory(e))
        } else {
            deps
        };
        if dep.implicit {
            self.as_implicit(&deps)
        } else {
            deps
        }
    }

    pub(crate) fn map_fields(
        &mut self,
        fields: &[(Name, Sym)],
        inst: &mut Instance<'_>,
    ) -> Vec<(Name, Sym)> {
        let map = |&(name, value): &(Name, Sym)| (name, self.rewrite(value, inst));
        fields.iter().map(map).collect()
    }

    pub(crate) fn rewrite(&mut self, sym: Sym, inst: &mut Instance<'_>) -> Sym {
        let this_id = self.id;
        let vals = &self.vals;
        let params = &self.cx.param_cells;
        let mut cache = std::mem::take(&mut inst.tables.cache);
        let shared = &*inst;
        let new = self
            .cx
            .syms
            .rewrite(sym, &mut cache, &mut |syms, s| match syms.kind(s) {
                SymKind::Param(i) => Some(match shared.entry.args.get(*i as usize) {
                    Some(arg) => *arg,
                    None => syms.null(),
                }),
                SymKind::This => {
                    if shared.lexical_this {
                        Some(s)
                    } else {
                        Some(match shared.entry.recv {
                            Some(recv) => recv,
                            None => syms.unknown(sym::through(shared.site, 0x7415)),
                        })
                    }
                }
                SymKind::Cell(cell) => {
                    let cell = *cell;
                    if let Some(bound) = shared.bound_arg(cell, params) {
                        return Some(bound);
                    }
                    if cell.owner == this_id {
                        let value = vals[cell.var.0 as usize];
                        // A variable without a value that says more stays itself.
                        if !matches!(syms.kind(value), SymKind::Null) {
                            return Some(value);
                        }
                    }
                    Some(s)
                }
                SymKind::Unknown(site) => {
                    let site = sym::through(*site, shared.site);
                    Some(syms.unknown(site))
                }
                SymKind::New(site, of) => {
                    let kind = SymKind::New(sym::through(*site, shared.site), *of);
                    Some(syms.make(kind))
                }
                SymKind::Fresh(site) => {
                    let kind = SymKind::Fresh(sym::through(*site, shared.site));
                    Some(syms.make(kind))
                }
                SymKind::Handle(site) => {
                    let kind = SymKind::Handle(sym::through(*site, shared.site));
                    Some(syms.make(kind))
                }
                _ => None,
            });
        inst.tables.cache = cache;
        new
    }

    /// A returned closure remembers the arguments of the call that made it.
    pub(crate) fn rewrite_ret(&mut self, ret: Sym, inst: &mut Instance<'_>) -> Sym {
        if let SymKind::Func(g) = *self.cx.syms.kind(ret)
            && !inst.entry.args.is_empty()
        {
            return self
                .cx
                .syms
                .make(SymKind::Bound(g, inst.entry.args.clone().into()));
        }
        self.rewrite(ret, inst)
    }

    pub(crate) fn is_lexically_inside(&self, f: FuncId) -> bool {
        let mut at = self.cx.program.function(f).parent;
        let mut budget = 64;
        while let Some(p) = at {
            if p == self.id {
                return true;
            }
            // Only arrows pass their surroundings' `this` on.
            if self.cx.program.function(p).kind != FuncKind::Arrow || budget == 0 {
                return false;
            }
            budget -= 1;
            at = self.cx.program.function(p).parent;
        }
        false
    }
}

/// One use of a summary.
pub(crate) struct Instance<'e> {
    pub(crate) entry: &'e Entry,
    pub(crate) lexical_this: bool,
    pub(crate) parent: Option<FuncId>,
    /// The parameter that takes all arguments from its place on.
    pub(crate) rest: Option<u32>,
    pub(crate) site: sym::Site,
    pub(crate) tables: Tables,
    /// What functions that were handed in depend on when they were called.
    pub(crate) results: FxHashMap<Sym, Deps>,
    pub(crate) map: Vec<u32>,
    /// Of the callee's events, those before this one have been put in.
    pub(crate) entered: u32,
}

/// What of a callee was said in our terms already.
#[derive(Default)]
pub(crate) struct Tables {
    cache: FxHashMap<Sym, Sym>,
    /// What arguments and our variables depend on, asked for again and again.
    refined: FxHashMap<u64, Deps>,
    /// Sets of the callee, by their address: many of its events depend on the same.
    mapped: FxHashMap<usize, Mapped>,
    /// Events of the callee that read what nobody but us can see, and the places.
    owned: FxHashMap<u32, Sym>,
    /// … which are left aside just now.
    narrow: bool,
}

impl Tables {
    /// Nothing is true any more of what was said of dependencies.
    pub(crate) fn forget_deps(&mut self) {
        self.refined.clear();
        self.mapped.clear();
    }

    /// Empty again, for the next call.
    pub(crate) fn emptied(mut self) -> Self {
        self.cache.clear();
        self.owned.clear();
        self.forget_deps();
        self
    }
}

pub(crate) struct Mapped {
    deps: Deps,
    /// Good for as long as no value of ours is found to depend on more; always, if none was asked.
    changes: Option<u32>,
}

impl Instance<'_> {
    /// A variable of the function that made this closure, if we know what it was called with.
    fn bound_arg(&self, cell: Cell, params: &FxHashMap<Cell, u32>) -> Option<Sym> {
        let bound = self.entry.bound.as_ref()?;
        if Some(cell.owner) != self.parent {
            return None;
        }
        bound.get(*params.get(&cell)? as usize).copied()
    }
}
