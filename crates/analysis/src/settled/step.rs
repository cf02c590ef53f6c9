//! One function: which of its blocks run, and what its registers hold there.

use std::rc::Rc;

use smallvec::{SmallVec, smallvec};
use toctou_core::Name;
use toctou_core::ir::{
    BinOp, BlockId, CallKind, Callee, Cell, Dispatch, FuncId, FuncKind, Function, Key, Op, Term,
    Var, VarKind,
};

use super::shape::{Kept, Shape};
use super::value::Value;
use super::{Given, Slot, Solver};
use crate::linkage::{Binding, TypeTarget};
use crate::points_to::Obj;

/// What going through a function has told.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Learnt {
    Nothing,
    /// Everything before it was asked for: another time would say the same.
    InTime,
    /// Something after it was asked for.
    Late,
}

/// What the registers that are followed by the way taken hold.
type Ways = SmallVec<[Value; 8]>;

pub(super) struct Look<'s, 'e, 'a, 'm> {
    solver: &'s mut Solver<'e, 'a, 'm>,
    id: FuncId,
    function: &'a Function,
    shape: Rc<Shape>,
    /// Everything is anything.
    pub(super) coarse: bool,
    /// One event loop, and everything that is not empty is true.
    script: bool,
    /// Registers that are set in one place.
    values: Vec<Value>,
    /// The others, at the start of each block that runs.
    entries: Vec<Option<Ways>>,
    local: Ways,
    call: u32,
    /// The block and instruction at hand.
    block: u32,
    at: u32,
    changed: bool,
    /// … about what was asked for before, so that the answers were not the last.
    late: bool,
    /// Registers have changed in this pass, or what several functions see.
    fresh: bool,
    /// How many blocks were gone through so far.
    clock: u32,
    /// … when something changed that was asked for before.
    late_at: u32,
    states: Vec<State>,
}

/// What is known of a block.
#[derive(Clone, Copy, Default)]
struct State {
    /// When it was gone through, and when there was something new at its start.
    ran: u32,
    entered: u32,
    end: End,
}

#[derive(Clone, Copy, Default)]
enum End {
    #[default]
    Straight,
    /// Nothing is known of the condition yet.
    Unset,
    Branch(Option<bool>),
}

impl State {
    /// Another time could say something else.
    fn is_due(self, late_at: u32) -> bool {
        self.ran <= self.entered.max(late_at)
    }
}

impl<'s, 'e, 'a, 'm> Look<'s, 'e, 'a, 'm> {
    pub(super) fn new(solver: &'s mut Solver<'e, 'a, 'm>, id: FuncId, coarse: bool) -> Self {
        let program = solver.env.program;
        let function = program.function(id);
        let module = program.function_module[id.0 as usize];
        let shape = Rc::clone(
            solver.shapes[id.0 as usize].get_or_insert_with(|| Rc::new(Shape::new(function))),
        );
        let mut look = Self {
            script: program.modules[module.0 as usize].dispatch == Dispatch::Await,
            values: vec![Value::Unset; function.vars.len()],
            entries: vec![None; function.blocks.len()],
            local: Ways::new(),
            call: 0,
            block: 0,
            at: 0,
            changed: false,
            late: false,
            fresh: false,
            clock: 0,
            late_at: 0,
            states: vec![State::default(); function.blocks.len()],
            shape,
            solver,
            id,
            function,
            coarse,
        };
        look.enter();
        look
    }

    /// What holds before the first instruction.
    fn enter(&mut self) {
        let mut ways: Ways = smallvec![Value::Null; self.shape.several.len()];
        let function = self.function;
        for (i, param) in function.params.iter().enumerate() {
            let given = self.solver.given[self.id.0 as usize][i];
            let value = self.join(
                given.value,
                if given.absent {
                    Value::Null
                } else {
                    Value::Unset
                },
            );
            if let Kept::Several(number) = self.shape.kept(*param) {
                ways[number] = value;
            }
            if function.vars[param.0 as usize].captured {
                let slot = self.variable(Cell {
                    owner: self.id,
                    var: *param,
                });
                self.solver.write(slot, value);
            }
        }
        if let Some(first) = self.entries.first_mut() {
            *first = Some(ways);
        }
    }

    /// Once through all blocks that run.
    pub(super) fn pass(&mut self) -> Learnt {
        self.changed = false;
        self.late = false;
        self.fresh = false;
        self.solver.own_reads_change = false;
        for b in 0..self.function.blocks.len() {
            if let Some(entry) = &self.entries[b]
                && (self.fresh || self.states[b].is_due(self.late_at))
            {
                self.local.clone_from(entry);
                self.clock += 1;
                self.states[b].ran = self.clock;
                self.block(b as u32);
                if std::mem::take(&mut self.solver.own_reads_change) {
                    self.note_late();
                }
            }
        }
        match self.late {
            _ if !self.changed => Learnt::Nothing,
            true => Learnt::Late,
            false => Learnt::InTime,
        }
    }

    /// From here on, everything is anything.
    pub(super) fn give_up(&mut self) {
        self.coarse = true;
        self.late_at = self.clock;
    }

    fn note_late(&mut self) {
        self.late = true;
        self.fresh = true;
        self.late_at = self.clock;
    }

    pub(super) fn end(self) -> (Vec<(u32, Option<bool>)>, bool) {
        let unset = self.states.iter().any(|s| matches!(s.end, End::Unset));
        let ways = (0..).zip(&self.states).filter_map(|(b, s)| match s.end {
            End::Branch(way) => Some((b, way)),
            _ => None,
        });
        (ways.collect(), unset)
    }

    fn block(&mut self, b: u32) {
        let function = self.function;
        let block = &function.blocks[b as usize];
        self.call = self.shape.calls[b as usize];
        self.block = b;
        self.at = self.shape.starts[b as usize];
        if let Some(handler) = block.handler {
            self.go(handler);
        }
        for inst in &block.insts {
            self.step(&inst.op);
            if let (Some(handler), Some(dst)) = (block.handler, inst.op.dst())
                && matches!(self.shape.kept(dst), Kept::Several(_))
            {
                self.go(handler);
            }
            self.at += 1;
        }
        match &block.term {
            Term::Goto(to) => self.go(*to),
            Term::Multi(all) => all.iter().for_each(|to| self.go(*to)),
            Term::Branch {
                cond,
                then,
                otherwise,
            } => {
                let value = self.value(*cond);
                if value == Value::Unset {
                    self.states[b as usize].end = End::Unset;
                    return;
                }
                let way = value.truth(self.solver.env.names);
                self.states[b as usize].end = End::Branch(way);
                if way != Some(false) {
                    self.go(*then);
                }
                if way != Some(true) {
                    self.go(*otherwise);
                }
            }
            Term::Return(v) => {
                let value = v.map_or(Value::Null, |v| self.value(v));
                self.solver.write(Slot::Result(self.id), value);
            }
            Term::Throw(_) => {}
        }
    }

    fn go(&mut self, to: BlockId) {
        let names = &*self.solver.env.names;
        let mut changed = false;
        match self.entries.get_mut(to.0 as usize) {
            Some(slot @ None) => {
                *slot = Some(self.local.clone());
                changed = true;
            }
            Some(Some(ways)) => {
                for (old, value) in ways.iter_mut().zip(&self.local) {
                    if *old != *value {
                        let new = old.join(*value, names);
                        changed |= *old != new;
                        *old = new;
                    }
                }
            }
            None => {}
        }
        if changed {
            self.changed = true;
            self.late |= to.0 <= self.block;
            self.states[to.0 as usize].entered = self.clock;
        }
    }

    fn join(&self, a: Value, b: Value) -> Value {
        a.join(b, self.solver.env.names)
    }

    fn value(&self, v: Var) -> Value {
        let value = match self.shape.kept(v) {
            _ if self.coarse => Value::Any,
            Kept::Lost => Value::Any,
            Kept::Several(number) => self.local[number],
            Kept::Once => self.values[v.0 as usize],
        };
        match value {
            Value::Unset if self.solver.forced[self.id.0 as usize] => Value::Any,
            value => value,
        }
    }

    fn set(&mut self, dst: Var, value: Value) {
        match self.shape.kept(dst) {
            Kept::Several(number) => self.local[number] = value,
            kept => {
                let old = self.values[dst.0 as usize];
                if old == value {
                    return;
                }
                let new = self.join(old, value);
                if old != new {
                    self.values[dst.0 as usize] = new;
                    self.changed = true;
                    // Nobody hears of what was lost.
                    if kept == Kept::Once {
                        self.fresh = true;
                        if self.shape.is_used_by(dst, self.at) {
                            self.note_late();
                        }
                    }
                }
            }
        }
    }

    fn variable(&self, cell: Cell) -> Slot {
        Slot::Variable(self.solver.points_to.number(cell))
    }

    fn step(&mut self, op: &Op) {
        let value = match op {
            Op::Const { value, .. } => Value::of(value),
            Op::Copy { src, .. } | Op::Await { src, .. } | Op::Enter { resource: src, .. } => {
                self.value(*src)
            }
            Op::Not { src, .. } => self.value(*src).not(self.solver.env.names),
            Op::Func { .. } | Op::Class { .. } | Op::This { .. } => Value::Thing,
            Op::Object { dst, fields } => self.object(*dst, fields),
            Op::Array { .. } if self.script => Value::Thing,
            Op::LoadVar { cell, .. } => self.load(*cell),
            Op::StoreVar { cell, value } => {
                let (slot, value) = (self.variable(*cell), self.value(*value));
                self.solver.write(slot, value);
                return;
            }
            Op::SetField { field, value, .. } => {
                let value = self.value(*value);
                self.solver.write(Slot::Field(*field), value);
                return;
            }
            Op::Delete { key: Ok(field), .. } => {
                self.solver.write(Slot::Field(*field), Value::Null);
                return;
            }
            Op::GetField { obj, field, .. } => self.field(*obj, *field),
            Op::Phi { dst, from } => self.either(*dst, from),
            Op::Binary {
                op, left, right, ..
            } => self.binary(*op, *left, *right),
            Op::Call {
                dst,
                callee,
                args,
                kind,
            } => {
                let value = self.called(*dst, callee, args, *kind);
                self.call += 1;
                value
            }
            Op::TaggedTemplate { .. } => {
                self.call += 1;
                Value::Any
            }
            _ => Value::Any,
        };
        if let Some(dst) = op.dst() {
            self.set(dst, value);
        }
    }

    fn object(&mut self, dst: Var, fields: &[(Key, Var)]) -> Value {
        let node = self.solver.points_to.node(self.id, dst).number();
        for (key, value) in fields {
            if let Key::Name(name) = key {
                let value = self.value(*value);
                self.solver.write(Slot::Part(node, *name), value);
            }
        }
        if self.script {
            Value::Thing
        } else {
            Value::Any
        }
    }

    /// A parameter and its default, or the values of two ways.
    fn either(&mut self, dst: Var, from: &[Var]) -> Value {
        let param = self.function.params.iter().position(|p| *p == dst);
        let mut value = Value::Unset;
        for v in from {
            let part = match param {
                Some(i) if *v == dst => self.solver.given[self.id.0 as usize][i].value,
                _ => self.value(*v),
            };
            value = self.join(value, part);
        }
        match param {
            // Everybody gives something.
            Some(i) if from.contains(&dst) => {
                let Given {
                    value: given,
                    absent,
                } = self.solver.given[self.id.0 as usize][i];
                let sure = given.truth(self.solver.env.names) == Some(true);
                if sure && !absent { given } else { value }
            }
            _ => value,
        }
    }

    fn binary(&self, op: BinOp, left: Var, right: Var) -> Value {
        let names = &*self.solver.env.names;
        let (left, right) = (self.value(left), self.value(right));
        match op {
            BinOp::Eq => left.equals(right, !self.script, names),
            BinOp::Ne => left.equals(right, !self.script, names).not(names),
            BinOp::Either => match (left.truth(names), right.truth(names)) {
                (Some(true), Some(true)) => Value::Yes,
                _ => Value::Any,
            },
            _ => Value::Any,
        }
    }

    fn load(&mut self, cell: Cell) -> Value {
        let program = self.solver.env.program;
        let owner = program.function(cell.owner);
        let info = &owner.vars[cell.var.0 as usize];
        if info.kind == VarKind::Import {
            return match self.solver.env.linkage.imported.get(&cell) {
                Some(Binding::Cell(other)) if *other != cell => {
                    let other_kind = program.function(other.owner).vars[other.var.0 as usize].kind;
                    if other_kind == VarKind::Import {
                        return Value::Any;
                    }
                    self.load(*other)
                }
                Some(Binding::Namespace(_)) => Value::Thing,
                _ => Value::Any,
            };
        }
        if self.solver.lent.contains(&cell) {
            return Value::Any;
        }
        let outside = |name: Name| self.solver.assigned_outside.contains(&name);
        if owner.kind == FuncKind::ModuleInit && info.name.is_some_and(outside) {
            return Value::Any;
        }
        let kind = info.kind;
        let slot = self.variable(cell);
        let value = self.solver.read(slot, self.id);
        match kind {
            // It may be asked for before it is set.
            VarKind::Let => self.join(value, Value::Null),
            _ => value,
        }
    }

    fn field(&mut self, obj: Var, field: Name) -> Value {
        match self.value(obj) {
            Value::Unset => return Value::Unset,
            Value::Thing => {}
            _ => return Value::Any,
        }
        let solver = &mut *self.solver;
        let (env, points_to) = (solver.env, solver.points_to);
        let later = solver.read(Slot::Field(field), self.id);
        let mut value = Value::Unset;
        let mut any = true;
        for object in points_to.objects(points_to.node(self.id, obj)) {
            // A type that is written down says nothing about what is there.
            if let Obj::Instance(class) = object
                && env.program.classes[class.0 as usize].is_interface
            {
                continue;
            }
            any = false;
            let part = match object {
                Obj::Instance(class) => {
                    if let Some(f) = env.linkage.method(env.program, class, field) {
                        match env.program.function(f).kind {
                            FuncKind::Getter | FuncKind::Setter => Value::Any,
                            _ => Value::Thing,
                        }
                    } else if solver.dynamic.contains(&class) || later == Value::Unset {
                        Value::Any
                    } else {
                        let mut at = Some(class);
                        let mut filled = Value::Null;
                        for _ in 0..16 {
                            let Some(c) = at else { break };
                            let constructor = env.program.classes[c.0 as usize].constructor;
                            if constructor.is_some_and(|f| solver.is_filled(f, field)) {
                                filled = Value::Unset;
                            }
                            at = match env.linkage.superclass(c) {
                                Some(TypeTarget::Class(next)) => Some(next),
                                Some(TypeTarget::Ext(_)) => {
                                    filled = Value::Any;
                                    None
                                }
                                None => None,
                            };
                        }
                        later.join(filled, env.names)
                    }
                }
                Obj::Literal(node) if !solver.shared_parts.contains(&node) => {
                    let part = if solver.parts.contains(&(node, field)) {
                        solver.read(Slot::Part(node, field), self.id)
                    } else {
                        Value::Null
                    };
                    part.join(later, env.names)
                }
                _ => Value::Any,
            };
            value = value.join(part, env.names);
        }
        if any { Value::Any } else { value }
    }

    fn called(
        &mut self,
        dst: Var,
        callee: &Callee,
        args: &[toctou_core::ir::Arg],
        kind: CallKind,
    ) -> Value {
        let points_to = self.solver.points_to;
        let (funcs, exts) = points_to.targets(self.id, self.call);
        let unknown = args.iter().any(|a| a.spread) || matches!(callee, Callee::Super(_));
        let mut result = Value::Unset;
        for &f in funcs {
            self.give(f, args, unknown);
            let target = self.solver.env.program.function(f);
            let later = target.is_async && !self.shape.is_awaited(dst);
            let value = if later || target.is_generator {
                Value::Any
            } else {
                self.solver.read(Slot::Result(f), self.id)
            };
            result = self.join(result, value);
        }
        match kind {
            CallKind::New if self.script => Value::Thing,
            CallKind::Plain if funcs.is_empty() => self.text(callee).unwrap_or(Value::Any),
            CallKind::Plain
                if !funcs.is_empty()
                    && exts.is_empty()
                    && !points_to.is_guessed(self.id, self.call)
                    && !funcs.iter().any(|f| self.is_constructor(*f)) =>
            {
                result
            }
            _ => Value::Any,
        }
    }

    /// `kind.toLowerCase()`, for a text that is known.
    fn text(&self, callee: &Callee) -> Option<Value> {
        let Callee::Method { obj, name } = callee else {
            return None;
        };
        let (names, library) = (&*self.solver.env.names, &*self.solver.env.library);
        match self.value(*obj) {
            Value::Unset => Some(Value::Unset),
            Value::Str(text) => {
                let letters = library.letters(names.text(*name))?;
                names.find(&letters.apply(names.text(text))).map(Value::Str)
            }
            _ => None,
        }
    }

    fn is_constructor(&self, f: FuncId) -> bool {
        self.solver.env.program.function(f).kind == FuncKind::Constructor
    }

    /// The arguments of a call, for whom it calls.
    fn give(&mut self, f: FuncId, args: &[toctou_core::ir::Arg], unknown: bool) {
        if self.solver.open[f.0 as usize] {
            return;
        }
        let program = self.solver.env.program;
        let target = program.function(f);
        let names = &*self.solver.env.names;
        let spread = |a: &toctou_core::ir::Arg| {
            a.name
                .is_some_and(|n| names.text(n) == toctou_core::ir::KEYWORDS)
        };
        let unknown = unknown || args.iter().any(spread);
        let mut by_place = args.iter().filter(|a| a.name.is_none());
        let mut changed = !self.solver.live[f.0 as usize];
        for (i, param) in target.params.iter().enumerate() {
            let name = target.vars[param.0 as usize].name;
            let by_name = args.iter().find(|a| a.name.is_some() && a.name == name);
            let arg = by_place.next().or(by_name);
            let new = match arg {
                _ if unknown => Given {
                    value: Value::Any,
                    absent: true,
                },
                Some(arg) => Given {
                    value: self.value(arg.value),
                    absent: false,
                },
                None => Given {
                    value: Value::Unset,
                    absent: true,
                },
            };
            let old = self.solver.given[f.0 as usize][i];
            let joined = Given {
                value: old.value.join(new.value, names),
                absent: old.absent || new.absent,
            };
            changed |= old != joined;
            self.solver.given[f.0 as usize][i] = joined;
        }
        if changed {
            self.solver.enqueue(f);
            if f == self.id {
                self.late_at = self.clock;
            }
        }
    }
}
