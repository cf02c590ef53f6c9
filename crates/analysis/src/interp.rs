//! One function at a time: values, events, calls.
//!
//! Values are symbols and do not depend on the path taken; what they were
//! derived from is kept per symbol. Events (reads and writes of things that
//! may be shared) do have a place in the control flow. Summaries of callees
//! are put in at their call, in this function's terms.

pub(crate) mod access;
mod age;
mod by_value;
mod fields;
mod flow;
pub(crate) mod marks;
mod memory;
mod origin;
mod prepare;
mod published;
mod ready;
pub(crate) mod sets;
mod taken;
mod threads;
mod values;
mod vars;

use std::cell::RefCell;
use std::rc::Rc;

use rustc_hash::{FxHashMap, FxHashSet};
use toctou_core::finding::ResourceKind;
use toctou_core::ir::{BinOp, Callee, Dispatch, FuncId, FuncKind, Function, Key, Literal, Op, Var};
use toctou_core::{Name, Span};
use toctou_models::Mode;

use crate::cfg::Cfg;
use crate::context::Context;
use crate::effect::{Act, Dep, Deps, Event, Frame, Loc, Lock, Pos, Source, Window};
use crate::room::Room;
use crate::summary::{Summary, SymCall};
use crate::sym::{self, CallSym, CalleeSym, NewOf, Site, Sym, SymKind};
use vars::VarSet;

/// Functions that do more than this are cut off; nobody reads a report that long.
pub const MAX_EVENTS: usize = 500;
/// What outlives the process keeps some room when memory has used up its own.
pub const MAX_STORED: usize = 800;
/// From this many on, only what is near is taken.
const MAX_DEEP: usize = 250;
const DEEP: usize = 4;
const MAX_PICKED: usize = 64;
const MAX_SYM_CALLS: usize = 24;

/// A lock taken at a place.
pub struct Acquire {
    pub at: Pos,
    pub lock: Rc<Lock>,
    /// What gives it back.
    pub handle: Option<Sym>,
    /// Held only where the result is true.
    pub if_true: bool,
}

/// A lock given back at a place.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Release {
    Handle(Sym),
    Key(Sym),
    /// The end of any transaction.
    Transaction,
}

/// What was written to a file.
#[derive(Clone, Default)]
pub struct Written {
    pub deps: Deps,
    pub value: Option<Sym>,
}

impl Written {
    pub fn add(&mut self, deps: &Deps, value: Option<Sym>) {
        self.deps.extend(deps);
        self.value = value.or(self.value);
    }
}

pub struct InnerWindow {
    pub at: Pos,
    pub window: Window,
    pub locks: Vec<Rc<Lock>>,
}

/// What conditions depend on, and what decides about blocks, in one round.
#[derive(Default)]
struct Conditions {
    round: u32,
    controls: FxHashMap<crate::cfg::Control, Deps>,
    blocks: FxHashMap<u32, Rc<Deps>>,
}

impl Conditions {
    fn clear(&mut self) {
        self.controls.clear();
        self.blocks.clear();
    }
}

pub struct Interp<'c, 'a, 'm> {
    pub cx: &'c mut Context<'a, 'm>,
    pub id: FuncId,
    pub function: &'a Function,
    pub cfg: Cfg,
    pub vals: Vec<Sym>,
    assigned: Vec<u32>,
    /// Variables that are set in several places; what they are in this block,
    /// and were at the end of others.
    pub(crate) several: FxHashSet<Var>,
    /// Where they are set; none of those that other functions set as well.
    set_in: FxHashMap<Var, Vec<u32>>,
    local: FxHashMap<Var, Sym>,
    exits: FxHashMap<u32, FxHashMap<Var, Sym>>,
    round: u32,
    /// The first of two rounds only finds out what values depend on.
    pub last_round: bool,
    pub deps: FxHashMap<Sym, Deps>,
    /// What a value that differs by the way taken can be.
    pub alternatives: FxHashMap<Sym, Vec<Sym>>,
    /// Values that a variable has where a test says so, and nothing elsewhere; with the tests.
    pub picked: Vec<(Sym, Rc<Deps>)>,
    pub(crate) below: FxHashMap<Sym, Deps>,
    /// How often something was found that changes what a value depends on.
    pub(crate) changes: u32,
    /// Values that are the time, or made of it.
    clocks: FxHashSet<Sym>,
    /// What the function was given and compares with the time.
    pub(crate) ages: Vec<Option<u32>>,
    /// Values that were put into a place in memory, by this function or below.
    pub stored: FxHashMap<Sym, Vec<Sym>>,
    /// What the files written here hold, also those that nobody else can name.
    pub file_data: FxHashMap<Sym, Written>,
    pub events: Vec<Event>,
    /// Calls and what they do, in order; when all events are known.
    pub(crate) by_call: Vec<(u32, u32)>,
    /// Reads of rows and entries, by where they are, if something of the kind is deleted.
    pub(crate) stored_reads: FxHashMap<Loc, Vec<u32>>,
    event_ids: FxHashMap<(u32, u32), u32>,
    pub(crate) event_count: u32,
    pub acquires: Vec<Acquire>,
    pub releases: Vec<(Pos, Release)>,
    pub yields: FxHashMap<Pos, Span>,
    pub sym_calls: Vec<(Pos, SymCall)>,
    pub windows: Vec<InnerWindow>,
    pub(crate) room: Room,
    pub gates: Vec<(Pos, Deps)>,
    /// What was asked about where it lies.
    pub judged: Deps,
    /// Registers whose value is the receiver of a further call, or used at all.
    pub(crate) receivers: VarSet,
    /// Of these, receivers of a call that does not wait for a promise in its own way.
    pub(crate) asked_for_more: VarSet,
    /// Chains that were run.
    pub(crate) ran: FxHashSet<Sym>,
    pub(crate) awaited: VarSet,
    /// What somebody outside answered: not made from what the question was made from, it says
    /// how things are there.
    answers: FxHashSet<Sym>,
    /// What stores gave.
    from_stores: FxHashSet<Sym>,
    /// Of these, rows.
    from_tables: FxHashSet<Sym>,
    /// What nobody but the call and who called it can have set.
    pub(crate) own: FxHashSet<Sym>,
    /// Fields of what is in lists that functions made entry by entry, which are another at every call.
    pub(crate) new_parts: FxHashSet<(Sym, Name)>,
    /// Receivers that were used as tables.
    pub tables: FxHashSet<Sym>,
    /// The statement at hand stands further below.
    pub(crate) through: Option<crate::later::Below>,
    /// What conditions depend on, asked for once a round.
    conditions: RefCell<Conditions>,
    /// What values were derived from, when it was asked, and after how many changes that was.
    derived: RefCell<FxHashMap<Sym, (u32, Deps)>>,
    /// What values that were handed to callees mean there, and after how many changes that was.
    pub(crate) handed_over: FxHashMap<(Sym, u64), (u32, Deps)>,
    /// Where dependencies are put together.
    pub(crate) scratch: RefCell<Vec<u64>>,
    /// Tables that callees were put in with, for the next.
    pub(crate) spare_tables: Vec<crate::instance::Tables>,
    /// Fields that this function sets.
    set_fields: FxHashSet<Name>,
    pub(crate) used: VarSet,
    /// Current instruction.
    pub at: Pos,
    pub ordinal: u32,
    pub span: Span,
    call_ordinals: Vec<u32>,
    pub anywhere: bool,
    /// Only what is behind a lock or the like is shared and can change.
    pub guarded: bool,
    pub is_product: bool,
    pub calls_yielding: bool,
    /// Calls of one of many functions.
    pub(crate) dispatched: Vec<(Pos, Vec<FuncId>)>,
    /// A message of a client was taken in.
    pub(crate) receives: bool,
    pub chain_poison: Vec<(Span, Sym)>,
    /// Results of functions that never fail.
    pub sure: FxHashSet<Sym>,
    /// Instructions that can fail.
    pub failing: Vec<Pos>,
    /// Registers of resources that are held for a scope.
    pub(crate) resources: FxHashSet<Var>,
    /// Plain accesses to memory, and calls, for the check for data races.
    pub(crate) plain: access::Accesses,
    /// What was put into lists and tables that were made here or given back by what is called.
    pub(crate) kept: FxHashMap<Sym, Vec<Sym>>,
    /// What results of calls can be, of the places that others know.
    pub(crate) known_as: FxHashMap<Sym, Vec<Sym>>,
    /// Values of which it was said what type they are: the register that has it.
    pub(crate) asserted: FxHashMap<Sym, Option<Var>>,
    /// Places that something new is put into, or nothing.
    pub(crate) emptied: Vec<(Sym, Pos)>,
    /// Results of calls that are structs themselves.
    pub(crate) by_value: FxHashSet<Var>,
}

impl<'c, 'a, 'm> Interp<'c, 'a, 'm> {
    pub fn run(cx: &'c mut Context<'a, 'm>, id: FuncId) -> Summary {
        let function = cx.program.function(id);
        let cfg = Cfg::deciding(function, |b, block| {
            let has = cx
                .points_to
                .tests_for_a_method(cx.program, &cx.linkage, id, block);
            has.then_some(true).or_else(|| cx.settled.way(id, b))
        });
        let module = cx.program.function_module[id.0 as usize];
        let dispatch = cx.program.modules[module.0 as usize].dispatch;
        let anywhere = dispatch.is_unguarded() || dispatch == Dispatch::Guarded;
        let null = cx.syms.null();
        cx.marks.begin();
        cx.sets.get_mut().clear();
        let mut interp = Interp {
            vals: vec![null; function.vars.len()],
            assigned: vec![0; function.vars.len()],
            several: FxHashSet::default(),
            set_in: FxHashMap::default(),
            clocks: FxHashSet::default(),
            ages: Vec::new(),
            local: FxHashMap::default(),
            exits: FxHashMap::default(),
            round: 0,
            last_round: false,
            deps: FxHashMap::default(),
            alternatives: FxHashMap::default(),
            picked: Vec::new(),
            below: FxHashMap::default(),
            changes: 0,
            stored: FxHashMap::default(),
            file_data: FxHashMap::default(),
            events: Vec::new(),
            by_call: Vec::new(),
            stored_reads: FxHashMap::default(),
            event_ids: FxHashMap::default(),
            event_count: 0,
            acquires: Vec::new(),
            releases: Vec::new(),
            yields: FxHashMap::default(),
            sym_calls: Vec::new(),
            windows: Vec::new(),
            room: Room::default(),
            gates: Vec::new(),
            judged: Deps::default(),
            receivers: VarSet::of(function.vars.len()),
            asked_for_more: VarSet::default(),
            ran: FxHashSet::default(),
            awaited: VarSet::default(),
            answers: FxHashSet::default(),
            from_stores: FxHashSet::default(),
            from_tables: FxHashSet::default(),
            own: FxHashSet::default(),
            new_parts: FxHashSet::default(),
            tables: FxHashSet::default(),
            through: None,
            conditions: RefCell::default(),
            derived: RefCell::default(),
            handed_over: FxHashMap::default(),
            scratch: RefCell::default(),
            spare_tables: Vec::new(),
            set_fields: FxHashSet::default(),
            used: VarSet::of(function.vars.len()),
            at: Pos { block: 0, inst: 0 },
            ordinal: 0,
            span: function.span,
            call_ordinals: Vec::new(),
            anywhere,
            guarded: dispatch == Dispatch::Guarded,
            is_product: cx.program.file_of(id).role == toctou_core::FileRole::Product,
            calls_yielding: false,
            dispatched: Vec::new(),
            receives: false,
            chain_poison: Vec::new(),
            sure: FxHashSet::default(),
            failing: Vec::new(),
            resources: FxHashSet::default(),
            plain: access::Accesses::default(),
            kept: FxHashMap::default(),
            known_as: FxHashMap::default(),
            asserted: FxHashMap::default(),
            emptied: Vec::new(),
            by_value: FxHashSet::default(),
            cx,
            id,
            function,
            cfg,
        };
        interp.prepare();
        let rounds = if interp.needs_two_rounds() { 2 } else { 1 };
        for round in 1..=rounds {
            interp.last_round = round == rounds;
            interp.one_round();
        }
        crate::windows::finish(interp)
    }

    fn one_round(&mut self) {
        self.round += 1;
        for (i, param) in self.function.params.iter().enumerate() {
            self.vals[param.0 as usize] = self.cx.syms.make(SymKind::Param(i as u32));
        }
        self.acquires.clear();
        self.releases.clear();
        self.ran.clear();
        self.sym_calls.clear();
        self.windows.clear();
        self.room = Room::default();
        self.gates.clear();
        self.judged = Deps::default();
        self.picked.clear();
        self.yields.clear();
        self.chain_poison.clear();
        self.failing.clear();
        self.plain = access::Accesses::default();
        self.emptied.clear();
        let function = self.function;
        let mut ordinal_base = vec![0u32; function.blocks.len()];
        let mut total = 0;
        for (b, block) in function.blocks.iter().enumerate() {
            ordinal_base[b] = total;
            total += block.insts.len() as u32 + 1;
        }
        let mut done = vec![false; function.blocks.len()];
        for b in self.cfg.rpo.clone() {
            let block = &function.blocks[b as usize];
            let mut call = self.call_ordinals[b as usize];
            self.local = self.known_at(b, &done);
            done[b as usize] = true;
            for (i, inst) in block.insts.iter().enumerate() {
                self.at = Pos {
                    block: b,
                    inst: i as u32,
                };
                self.ordinal = ordinal_base[b as usize] + i as u32;
                self.span = inst.span;
                self.event_count = 0;
                self.step(&inst.op, call);
                if matches!(inst.op, Op::Call { .. } | Op::TaggedTemplate { .. }) {
                    call += 1;
                }
            }
            if !self.local.is_empty() {
                self.exits.insert(b, std::mem::take(&mut self.local));
            }
        }
        self.exits.clear();
    }

    pub fn site(&self) -> Site {
        sym::site(self.id, self.ordinal)
    }

    pub fn val(&self, v: Var) -> Sym {
        // A variable with several values has one of them just after it was set.
        match self.local.get(&v) {
            Some(sym) => *sym,
            None => self.vals[v.0 as usize],
        }
    }

    pub(crate) fn set(&mut self, v: Var, sym: Sym) {
        let i = v.0 as usize;
        if self.assigned[i] == self.round || self.assigned[i] == u32::MAX {
            let old = self.vals[i];
            // `path = normalize(path)`: what comes after means the new one.
            self.vals[i] = if self.cx.syms.contains(sym, old) && !self.is_constant(old) {
                self.note_replaced(sym, old);
                sym
            } else {
                self.join_syms(&[old, sym], v.0 as u64)
            };
            if self.vals[i] == sym && matches!(self.cx.syms.kind(old), SymKind::Null) {
                self.note_picked(sym);
            }
        } else {
            self.assigned[i] = self.round;
            self.vals[i] = sym;
        }
        if self.several.contains(&v) {
            self.local.insert(v, sym);
        }
        // Which of several assignments ran is itself information.
        if let SymKind::Unknown(_) = self.cx.syms.kind(self.vals[i]) {
            let ctrl = self.as_implicit(&self.control_deps(self.at.block));
            let sym = self.vals[i];
            self.add_deps(sym, &ctrl);
        }
    }

    /// `var next`, and `if task.open { next = task; break }`: what was tested has chosen it.
    fn note_picked(&mut self, sym: Sym) {
        let ctrl = self.control_deps(self.at.block);
        if ctrl.events().next().is_some() && self.picked.len() < MAX_PICKED {
            self.picked.push((sym, ctrl));
        }
    }

    /// `name = name + "_1"` where something was there: elsewhere it is the old one.
    fn note_replaced(&mut self, sym: Sym, old: Sym) {
        let ctrl = self.as_implicit(&self.control_deps(self.at.block));
        if sym == old || ctrl.events().next().is_none() {
            return;
        }
        self.add_deps(sym, &ctrl);
        let options = self.alternatives.entry(sym).or_default();
        if options.len() < 4 && !options.contains(&old) {
            options.push(old);
        }
    }

    // --- instructions ---

    fn step(&mut self, op: &'a Op, call: u32) {
        match op {
            Op::Const { dst, value } => {
                let kind = match value {
                    Literal::Str(n) => SymKind::Str(*n),
                    Literal::Num(n) => SymKind::Num(*n),
                    Literal::Bool(b) => SymKind::Bool(*b),
                    Literal::Null => SymKind::Null,
                    Literal::Other => SymKind::Unknown(self.site()),
                };
                let sym = self.cx.syms.make(kind);
                self.set(*dst, sym);
            }
            Op::Copy { dst, src } => {
                let sym = self.val(*src);
                self.note_assertion(*dst, sym);
                self.set(*dst, sym);
            }
            Op::Func { dst, func } => {
                let sym = self.cx.syms.make(SymKind::Func(*func));
                self.set(*dst, sym);
            }
            Op::Class { dst, class } => {
                let sym = self.cx.syms.make(SymKind::Class(*class));
                self.set(*dst, sym);
            }
            Op::Global { dst, name } => {
                let module = self.cx.names.intern(crate::entity::GLOBAL);
                let entity = crate::entity::Entity {
                    module,
                    path: *name,
                    instance: false,
                };
                let e = self.cx.entities.make(entity);
                let sym = self.cx.syms.make(SymKind::Ext(e));
                self.set(*dst, sym);
            }
            Op::LoadVar { dst, cell } => {
                self.variable_access(*cell, false);
                self.note_glance(*dst);
                let sym = self.load(*cell);
                self.set(*dst, sym);
            }
            Op::StoreVar { cell, value } => {
                self.variable_access(*cell, true);
                if self.is_racy() {
                    let place = self.cx.syms.make(SymKind::VarLoc(*cell));
                    let value = self.val(*value);
                    self.note_new_value(place, value);
                }
                if self.cx.is_module_cell(*cell) {
                    let place = self.cx.syms.make(SymKind::Cell(*cell));
                    let value = self.val(*value);
                    self.note_emptied(place, Some(value));
                }
                self.store(*cell, *value);
            }
            Op::This { dst } => {
                let sym = self.cx.syms.make(SymKind::This);
                self.set(*dst, sym);
            }
            Op::GetField { dst, obj, field } => {
                let base = self.val(*obj);
                self.field_access(*obj, base, *field, false);
                self.note_glance(*dst);
                self.note_copy(*dst, *obj, base, *field);
                let sym = self.get_field(base, *field);
                self.set(*dst, sym);
            }
            Op::SetField { obj, field, value } => {
                let base = self.val(*obj);
                self.field_access(*obj, base, *field, true);
                let place = self.cx.syms.make(SymKind::Field(base, *field));
                let value = self.val(*value);
                self.note_new_value(place, value);
                self.note_set(*obj, base, *field, value);
                if self.is_copy(*obj, base) || self.is_own_to_thread(*obj) {
                    let data = self.deps_of(value);
                    self.taint(place, &data);
                } else {
                    self.note_emptied(place, Some(value));
                    self.write_memory(place, value, Mode::Blind);
                }
                self.record_write(base, *field, value);
            }
            Op::GetIndex { dst, obj, index } => {
                let (base, index) = (self.val(*obj), self.val(*index));
                self.content_access(base, false);
                let sym = match self.cx.syms.kind(index) {
                    SymKind::Str(name) => {
                        let name = *name;
                        self.get_field(base, name)
                    }
                    _ => self.get_index(base, index),
                };
                self.set(*dst, sym);
            }
            Op::SetIndex { obj, index, value } => {
                let (base, index) = (self.val(*obj), self.val(*index));
                self.entry_set(*obj, base);
                let place = match self.cx.syms.kind(index) {
                    SymKind::Str(name) => SymKind::Field(base, *name),
                    _ => SymKind::Index(base, index),
                };
                let place = self.cx.syms.make(place);
                let value = self.val(*value);
                self.note_kept(base, value);
                self.write_memory(place, value, Mode::Blind);
            }
            Op::Delete { obj, key } => {
                let base = self.val(*obj);
                self.entry_set(*obj, base);
                let place = match key {
                    Ok(name) => SymKind::Field(base, *name),
                    Err(index) => SymKind::Index(base, self.val(*index)),
                };
                let place = self.cx.syms.make(place);
                self.note_emptied(place, None);
                if self.cx.may_be_shared(place) {
                    let loc = Loc {
                        kind: ResourceKind::Memory,
                        key: place,
                        entry: None,
                    };
                    let event = self.event(Act::Delete, loc);
                    self.push(event);
                }
            }
            Op::Object { dst, fields } => self.object(*dst, fields),
            Op::Array { dst, items } => {
                let syms: Vec<Sym> = items.iter().map(|a| self.val(a.value)).collect();
                let sym = if items.iter().any(|a| a.spread) || syms.len() > 64 {
                    let sym = self.cx.syms.make(SymKind::New(self.site(), NewOf::Other));
                    let mut deps = Deps::default();
                    for s in syms {
                        deps.extend(&self.deps_of(s));
                    }
                    self.add_deps(sym, &deps);
                    sym
                } else if syms.is_empty() {
                    self.cx.syms.make(SymKind::New(self.site(), NewOf::Other))
                } else {
                    self.cx.syms.make(SymKind::Array(syms.into()))
                };
                self.set(*dst, sym);
            }
            Op::Concat { dst, parts } => {
                let syms: Vec<Sym> = parts.iter().map(|v| self.val(*v)).collect();
                let sym = self.concat(syms);
                self.set(*dst, sym);
            }
            Op::Binary {
                dst,
                op,
                left,
                right,
            } => {
                let (l, r) = (self.val(*left), self.val(*right));
                let sym = match op {
                    BinOp::Eq => self.cx.syms.make(SymKind::Eq(l, r)),
                    BinOp::Ne => {
                        let eq = self.cx.syms.make(SymKind::Eq(l, r));
                        self.cx.syms.make(SymKind::Not(eq))
                    }
                    BinOp::Either => self.either(l, r, *dst),
                    BinOp::Compare | BinOp::Add | BinOp::Arith | BinOp::Test => {
                        let callee = CalleeSym::Method(self.cx.words.op);
                        self.cx.syms.make(SymKind::Call(Box::new(CallSym {
                            callee,
                            recv: None,
                            args: [l, r].into(),
                        })))
                    }
                };
                if matches!(op, BinOp::Compare | BinOp::Arith) {
                    self.note_compared(l, r);
                }
                if matches!(op, BinOp::Eq | BinOp::Ne | BinOp::Compare) {
                    self.note_column(l, r, sym);
                    self.note_column(r, l, sym);
                }
                self.set(*dst, sym);
            }
            Op::Not { dst, src } => {
                let sym = self.val(*src);
                let sym = self.cx.syms.make(SymKind::Not(sym));
                self.set(*dst, sym);
            }
            // A default: whatever the caller gives is what the parameter is.
            Op::Phi { dst, from }
                if from.first() == Some(dst) && self.function.params.contains(dst) => {}
            Op::Phi { dst, from } if self.is_chosen_by_first(from) => {
                let (left, right) = (self.val(from[0]), self.val(from[1]));
                let sym = self.either(left, right, *dst);
                self.set(*dst, sym);
            }
            Op::Phi { dst, from } => {
                let syms: Vec<Sym> = from.iter().map(|v| self.val(*v)).collect();
                let sym = self.join_syms(&syms, u64::from(dst.0));
                self.set(*dst, sym);
            }
            Op::Call {
                dst,
                callee,
                args,
                kind,
            } => {
                let named: Vec<(Name, Var, Sym)> = args
                    .iter()
                    .filter_map(|a| Some((a.name?, a.value, self.val(a.value))))
                    .collect();
                let args: Vec<Sym> = args
                    .iter()
                    .filter(|a| a.name.is_none())
                    .map(|a| self.val(a.value))
                    .collect();
                let awaited = self.used.contains(*dst);
                let before = self.acquires.len();
                let sym = self.call(call, *dst, callee, &args, &named, *kind, awaited);
                // What entering a resource takes, leaving it gives back.
                if let Callee::Method { obj, .. } = callee
                    && self.resources.contains(obj)
                {
                    let resource = self.val(*obj);
                    for acquire in &mut self.acquires[before..] {
                        acquire.handle = Some(resource);
                    }
                }
                self.set(*dst, sym);
            }
            Op::TaggedTemplate {
                dst,
                tag,
                strings,
                values,
            } => {
                let sym = self.tagged(call, *dst, tag, strings, values);
                self.set(*dst, sym);
            }
            Op::Await { dst, src } => {
                let sym = self.val(*src);
                self.yields.insert(self.at, self.span);
                if !self.sure.contains(&sym) {
                    self.failing.push(self.at);
                }
                self.awaited(sym);
                let sym = self.settled(sym);
                self.set(*dst, sym);
            }
            Op::YieldValue { dst, value } => {
                self.yields.insert(self.at, self.span);
                let _ = value;
                let sym = self.cx.syms.unknown(self.site());
                self.set(*dst, sym);
            }
            Op::Element { dst, of, keys } => {
                let base = self.val(*of);
                self.content_access(base, false);
                let sym = if *keys {
                    let sym = self.cx.syms.unknown(self.site());
                    let deps = self.deps_of(base);
                    self.add_deps(sym, &deps);
                    sym
                } else {
                    self.read_all(base);
                    if self.last_round && matches!(self.cx.syms.kind(base), SymKind::Cell(_)) {
                        let step = (self.id, self.at, base, self.span);
                        self.cx.gone_through.push(step);
                    }
                    self.element(base)
                };
                self.set(*dst, sym);
            }
            Op::Enter { dst, resource } => {
                let sym = self.val(*resource);
                self.resources.insert(*dst);
                self.set(*dst, sym);
            }
            Op::Exit { resource } => {
                let sym = self.val(*resource);
                self.releases.push((self.at, Release::Handle(sym)));
            }
            Op::Catch { dst } => {
                let sym = self.cx.syms.unknown(self.site());
                let mut deps = Deps::default();
                for (i, event) in self.events.iter().enumerate() {
                    let from = event.at.block as usize;
                    let here = self.function.blocks[from].handler.map(|b| b.0);
                    if self.answers_by_failing(event) && here == Some(self.at.block) {
                        deps.insert(Dep::on(Source::Event(i as u32)));
                    }
                }
                self.add_deps(sym, &deps);
                self.set(*dst, sym);
            }
            Op::Opaque { dst, from } => {
                let sym = self.cx.syms.unknown(self.site());
                let mut deps = Deps::default();
                for v in from {
                    deps.extend(&self.deps_of(self.val(*v)));
                }
                self.add_deps(sym, &deps);
                self.set(*dst, sym);
            }
        }
    }

    fn element(&mut self, base: Sym) -> Sym {
        if let SymKind::Array(items) = self.cx.syms.kind(base) {
            let items = items.clone();
            return self.join_syms(&items, self.site());
        }
        self.cx.syms.make(SymKind::Element(base))
    }

    fn object(&mut self, dst: Var, fields: &[(Key, Var)]) {
        let spread = fields.iter().any(|(k, _)| !matches!(k, Key::Name(_)));
        let sym = if fields.is_empty() || fields.len() > 64 {
            self.cx.syms.make(SymKind::New(self.site(), NewOf::Other))
        } else {
            let mut out: Vec<(Name, Sym)> = Vec::new();
            for (key, value) in fields {
                let value = self.val(*value);
                if let Key::Name(name) = key {
                    out.push((*name, value));
                } else if let SymKind::Object(inner) = self.cx.syms.kind(value) {
                    out.extend(inner.iter().copied());
                } else if fields.len() == 1 && matches!(key, Key::Spread) {
                    // A copy: its fields are its own, what they hold is not.
                    out.extend(self.cx.syms.rest.map(|rest| (rest, value)));
                }
            }
            self.cx.syms.make(SymKind::Object(out.into()))
        };
        if spread || fields.len() > 64 {
            let mut deps = Deps::default();
            for (_, value) in fields {
                deps.extend(&self.deps_of(self.val(*value)));
            }
            self.add_deps(sym, &deps);
        }
        self.set(dst, sym);
        self.note_made(dst, fields);
    }

    fn is_param(&self, sym: Sym) -> bool {
        matches!(self.cx.syms.kind(sym), SymKind::Param(_))
    }

    // --- events ---

    pub fn frame(&self) -> Rc<Frame> {
        Frame::new(self.id, self.span, None)
    }

    pub fn event(&self, act: Act, loc: Loc) -> Event {
        let mut event = Event {
            act,
            mode: Mode::Blind,
            loc,
            data: Deps::default(),
            value: None,
            key_deps: Deps::default(),
            ctrl: Deps::default(),
            row: None,
            later: None,
            at: self.at,
            trail: self.frame(),
            yields_before: false,
            yields_after: false,
            lock: None,
            call: None,
            duck: false,
            constant: false,
            collection: false,
            judged: false,
            copies: false,
            puts_back: false,
            local: false,
            site: self.site(),
            idempotent: false,
            lease: false,
            empties: None,
            search: false,
            in_handler: false,
            free: false,
            swaps: false,
            aged: None,
        };
        if let Some(below) = &self.through {
            below.put(&mut event);
        }
        event
    }

    /// Adds an event; the same instruction's events keep their numbers from
    /// round to round, because values remember them.
    pub fn push(&mut self, event: Event) -> Option<u32> {
        if event.loc.kind == ResourceKind::Memory
            && event.act.is_write()
            && self.function.kind != FuncKind::ModuleInit
        {
            self.note_change(event.loc.key);
        }
        self.receives |= event.loc.kind == ResourceKind::External && event.act == Act::Read;
        let has_room = self.has_room(event.loc.kind, event.trail.depth());
        let key = (self.ordinal, self.event_count);
        self.event_count += 1;
        if let Some(&id) = self.event_ids.get(&key) {
            let old = std::mem::replace(&mut self.events[id as usize], event);
            // Of an answer it matters what was asked about.
            self.changes += u32::from(old.loc.kind != self.events[id as usize].loc.kind);
            return Some(id);
        }
        if !has_room {
            return None;
        }
        let id = self.events.len() as u32;
        self.events.push(event);
        self.event_ids.insert(key, id);
        Some(id)
    }

    /// Would the next event be kept?
    pub(crate) fn has_room(&self, kind: ResourceKind, depth: usize) -> bool {
        let stored = matches!(
            kind,
            ResourceKind::File | ResourceKind::Row | ResourceKind::Kv
        );
        let room = match stored {
            // What is far below says least about what is done here.
            _ if depth > DEEP => MAX_DEEP,
            true => MAX_STORED,
            false => MAX_EVENTS,
        };
        self.events.len() < room
            || self
                .event_ids
                .contains_key(&(self.ordinal, self.event_count))
    }

    pub fn push_sym_call(&mut self, call: SymCall) {
        if self.sym_calls.len() < MAX_SYM_CALLS {
            self.sym_calls.push((self.at, call));
        }
    }

    /// Would a call of that be kept for our callers, if it is they who know what it is?
    pub(crate) fn has_room_for_call_of(&mut self, callee: Sym) -> bool {
        let full = self.sym_calls.len() >= MAX_SYM_CALLS && self.is_callers(callee);
        self.calls_yielding |= full;
        !full
    }
}
