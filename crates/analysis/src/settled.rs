//! Conditions that are settled before anybody calls: a parameter that every call gives the same
//! constant or leaves out, a function that always gives one text, a field that every constructor
//! fills. What stands behind the other way never runs.
//!
//! Conditional constant propagation over the whole program. Values only ever become less known,
//! so each function is looked at a few times; one whose inputs change too often is taken to be
//! anything.

mod callers;
mod filled;
mod shape;
mod slots;
mod step;
mod value;

use std::rc::Rc;

use rustc_hash::{FxHashMap, FxHashSet};
use toctou_core::Name;
use toctou_core::ir::{Callee, Cell, ClassId, FuncId, FuncKind, Function, Key, Op, Term, Var};

use crate::cfg::Cfg;
use crate::points_to::{Env, Obj, PointsTo};
use shape::Shape;
use slots::{Slot, Slots};
use step::Learnt;
use value::Value;

/// A function that is looked at more often than this is taken to be anything.
const MAX_ROUNDS: u8 = 12;
/// … and one that is gone through more often, from then on.
const MAX_PASSES: u32 = 16;

/// Which way conditions go, where that is settled.
#[derive(Default)]
pub struct Settled {
    decided: FxHashMap<(FuncId, u32), bool>,
}

impl Settled {
    pub fn way(&self, f: FuncId, block: u32) -> Option<bool> {
        self.decided.get(&(f, block)).copied()
    }

    pub(crate) fn solve(env: &mut Env<'_, '_>, points_to: &PointsTo) -> Self {
        let open = callers::open(env, points_to);
        let mut solver = Solver::new(env, points_to, open);
        solver.run();
        let mut settled = solver.answer();
        for (place, way) in filled::ways(env, points_to) {
            settled.decided.entry(place).or_insert(way);
        }
        settled
    }
}

/// What a parameter is given.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
struct Given {
    value: Value,
    /// Some call leaves it out.
    absent: bool,
}

struct Solver<'e, 'a, 'm> {
    env: &'e Env<'a, 'm>,
    points_to: &'e PointsTo,
    open: Vec<bool>,
    slots: Slots,
    shapes: Vec<Option<Rc<Shape>>>,
    /// Something changed that the function at hand has asked for.
    own_reads_change: bool,
    given: Vec<Vec<Given>>,
    live: Vec<bool>,
    rounds: Vec<u8>,
    /// What is unset is taken to be anything.
    forced: Vec<bool>,
    queue: std::collections::VecDeque<FuncId>,
    queued: Vec<bool>,
    /// The function at hand.
    current: FuncId,
    /// Branches of each function, and where they went: settled, or not.
    ways: Vec<Vec<(u32, Option<bool>)>>,
    unset: Vec<bool>,
    /// Fields that a constructor fills on every way.
    filled: FxHashMap<FuncId, FxHashSet<Name>>,
    /// Classes whose fields are set by names that are not written.
    dynamic: FxHashSet<ClassId>,
    /// Objects that others may change.
    shared_parts: FxHashSet<u32>,
    /// The fields that objects are written out with.
    parts: FxHashSet<(u32, Name)>,
    /// Variables of modules that are set from outside.
    assigned_outside: FxHashSet<Name>,
    /// Variables whose addresses somebody has.
    lent: FxHashSet<Cell>,
}

impl<'e, 'a, 'm> Solver<'e, 'a, 'm> {
    fn new(env: &'e Env<'a, 'm>, points_to: &'e PointsTo, open: Vec<bool>) -> Self {
        let program = env.program;
        let count = program.functions.len();
        let given = |f: &Function| vec![Given::default(); f.params.len()];
        let mut solver = Self {
            given: program.functions.iter().map(given).collect(),
            env,
            points_to,
            slots: Slots::new(count, points_to.count(), env.names.len()),
            shapes: vec![None; count],
            own_reads_change: false,
            live: vec![false; count],
            rounds: vec![0; count],
            forced: vec![false; count],
            queue: std::collections::VecDeque::new(),
            queued: vec![false; count],
            current: FuncId(0),
            ways: vec![Vec::new(); count],
            unset: vec![false; count],
            filled: FxHashMap::default(),
            dynamic: FxHashSet::default(),
            shared_parts: FxHashSet::default(),
            parts: FxHashSet::default(),
            assigned_outside: FxHashSet::default(),
            lent: FxHashSet::default(),
            open,
        };
        solver.prepare();
        solver
    }

    fn run(&mut self) {
        for f in 0..self.open.len() {
            if self.open[f] {
                let any = Given {
                    value: Value::Any,
                    absent: true,
                };
                self.given[f].fill(any);
                self.enqueue(FuncId(f as u32));
            }
        }
        loop {
            while let Some(f) = self.queue.pop_front() {
                self.queued[f.0 as usize] = false;
                self.look_at(f);
            }
            // Who waits for a value that never comes goes on with any.
            let stuck: Vec<FuncId> = (0..self.unset.len())
                .filter(|f| self.unset[*f] && !self.forced[*f])
                .map(|f| FuncId(f as u32))
                .collect();
            if stuck.is_empty() {
                return;
            }
            for f in stuck {
                self.forced[f.0 as usize] = true;
                self.enqueue(f);
            }
        }
    }

    fn enqueue(&mut self, f: FuncId) {
        self.live[f.0 as usize] = true;
        if !std::mem::replace(&mut self.queued[f.0 as usize], true) {
            self.queue.push_back(f);
        }
    }

    fn read(&mut self, slot: Slot, reader: FuncId) -> Value {
        self.slots.read(slot, reader)
    }

    fn write(&mut self, slot: Slot, value: Value) {
        let Some(readers) = self.slots.write(slot, value, self.env.names) else {
            return;
        };
        for &f in readers {
            self.live[f.0 as usize] = true;
            self.own_reads_change |= f == self.current;
            if !std::mem::replace(&mut self.queued[f.0 as usize], true) {
                self.queue.push_back(f);
            }
        }
    }

    /// Goes through the blocks that can run, until nothing new is learnt.
    fn look_at(&mut self, f: FuncId) {
        let rounds = &mut self.rounds[f.0 as usize];
        *rounds = rounds.saturating_add(1);
        if *rounds > MAX_ROUNDS + 1 {
            return;
        }
        let coarse = *rounds > MAX_ROUNDS;
        self.current = f;
        let mut look = step::Look::new(self, f, coarse);
        let mut passes = 0;
        loop {
            let learnt = look.pass();
            if learnt == Learnt::Nothing {
                break;
            }
            passes += 1;
            if passes > MAX_PASSES && !look.coarse {
                look.give_up();
            }
            if learnt == Learnt::InTime && !look.coarse {
                break;
            }
        }
        let (ways, unset) = look.end();
        self.ways[f.0 as usize] = ways;
        self.unset[f.0 as usize] = unset;
    }

    fn answer(self) -> Settled {
        let mut decided = FxHashMap::default();
        for (f, ways) in self.ways.iter().enumerate() {
            for (block, way) in ways {
                if let Some(way) = way {
                    decided.insert((FuncId(f as u32), *block), *way);
                }
            }
        }
        Settled { decided }
    }

    /// What the whole program says about its objects.
    fn prepare(&mut self) {
        let program = self.env.program;
        for (f, function) in program.functions.iter().enumerate() {
            let id = FuncId(f as u32);
            let mut call = 0;
            for inst in function.blocks.iter().flat_map(|b| &b.insts) {
                match &inst.op {
                    Op::LoadVar { dst, cell } if function.vars[dst.0 as usize].lent => {
                        self.lend(*cell);
                    }
                    Op::SetIndex { obj, .. } => self.set_from_outside(id, *obj),
                    Op::SetField { obj, field, .. } => {
                        let objects = self.points_to.objects(self.points_to.node(id, *obj));
                        if objects.into_iter().any(|o| matches!(o, Obj::Namespace(_))) {
                            self.assigned_outside.insert(*field);
                        }
                    }
                    Op::Object { dst, fields } => {
                        let node = self.points_to.node(id, *dst).number();
                        for (key, _) in fields {
                            match key {
                                Key::Name(name) => self.parts.insert((node, *name)),
                                _ => self.shared_parts.insert(node),
                            };
                        }
                    }
                    Op::Call { args, callee, .. } => {
                        // A library may change what it is given.
                        let known = !self.points_to.targets(id, call).0.is_empty();
                        if !known && !self.is_of_function(id, callee) {
                            args.iter().for_each(|a| self.set_from_outside(id, a.value));
                        }
                        call += 1;
                    }
                    Op::TaggedTemplate { .. } => call += 1,
                    _ => {}
                }
            }
        }
    }

    /// `f.bind(this)`: a function is made ready, and nothing is done to what it gets.
    fn is_of_function(&self, f: FuncId, callee: &Callee) -> bool {
        let Callee::Method { obj, .. } = callee else {
            return false;
        };
        let node = self.points_to.node(f, *obj);
        let mut objects = self.points_to.objects(node).peekable();
        objects.peek().is_some() && objects.all(|o| matches!(o, Obj::Func(_)))
    }

    fn lend(&mut self, cell: Cell) {
        self.lent.insert(cell);
        let owner = self.env.program.function(cell.owner);
        if owner.kind == FuncKind::ModuleInit {
            self.assigned_outside
                .extend(owner.vars[cell.var.0 as usize].name);
        }
    }

    fn set_from_outside(&mut self, f: FuncId, var: Var) {
        for object in self.points_to.objects(self.points_to.node(f, var)) {
            match object {
                Obj::Instance(class) => {
                    self.dynamic.insert(class);
                }
                Obj::Literal(node) => {
                    self.shared_parts.insert(node);
                }
                _ => {}
            }
        }
    }

    /// Does every way through the constructor set the field?
    fn is_filled(&mut self, constructor: FuncId, field: Name) -> bool {
        let program = self.env.program;
        let filled = self.filled.entry(constructor).or_insert_with(|| {
            let function = program.function(constructor);
            let cfg = Cfg::new(function);
            let mut this: FxHashSet<Var> = FxHashSet::default();
            let mut found = FxHashSet::default();
            let ends: Vec<u32> = (0..function.blocks.len() as u32)
                .filter(|b| matches!(function.blocks[*b as usize].term, Term::Return(_)))
                .collect();
            for (b, block) in function.blocks.iter().enumerate() {
                for inst in &block.insts {
                    match &inst.op {
                        Op::This { dst } => {
                            this.insert(*dst);
                        }
                        Op::SetField { obj, field, .. }
                            if this.contains(obj)
                                && ends.iter().all(|e| cfg.dominates(b as u32, *e)) =>
                        {
                            found.insert(*field);
                        }
                        _ => {}
                    }
                }
            }
            found
        });
        filled.contains(&field)
    }
}

/// Variables of a function whose addresses somebody has.
fn lent(function: &Function) -> impl Iterator<Item = Var> {
    let is_lent = |v: &Var| function.vars[v.0 as usize].lent;
    let own = (0..function.vars.len() as u32).map(Var).filter(is_lent);
    let insts = function.blocks.iter().flat_map(|b| &b.insts);
    own.chain(insts.filter_map(move |inst| match &inst.op {
        Op::Copy { dst, src } => is_lent(dst).then_some(*src),
        _ => None,
    }))
}
