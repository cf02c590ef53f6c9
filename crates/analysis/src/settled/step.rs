//! One function: which of its blocks run, and what its registers hold there.

use rustc_hash::{FxHashMap, FxHashSet};
use toctou_core::Name;
use toctou_core::ir::{
    BinOp, BlockId, CallKind, Callee, Cell, Dispatch, FuncId, FuncKind, Function, Key, Op, Term,
    Var, VarKind,
};

use super::value::Value;
use super::{Given, Slot, Solver, lent};
use crate::linkage::{Binding, TypeTarget};
use crate::points_to::Obj;

/// Variables that are set in several places, and followed by the way taken.
const MAX_SEVERAL: usize = 24;

type Ways = FxHashMap<Var, Value>;

pub(super) struct Look<'s, 'e, 'a, 'm> {
    solver: &'s mut Solver<'e, 'a, 'm>,
    id: FuncId,
    function: &'a Function,
    /// Everything is anything.
    pub(super) coarse: bool,
    /// One event loop, and everything that is not empty is true.
    script: bool,
    /// Registers that are set in one place.
    values: Vec<Value>,
    several: FxHashSet<Var>,
    lost: FxHashSet<Var>,
    awaited: FxHashSet<Var>,
    /// The others, at the start of each block that runs.
    entries: Vec<Option<Ways>>,
    calls: Vec<u32>,
    local: Ways,
    call: u32,
    changed: bool,
    ways: FxHashMap<u32, Option<bool>>,
    unset: bool,
}

impl<'s, 'e, 'a, 'm> Look<'s, 'e, 'a, 'm> {
    pub(super) fn new(solver: &'s mut Solver<'e, 'a, 'm>, id: FuncId, coarse: bool) -> Self {
        let program = solver.env.program;
        let function = program.function(id);
        let module = program.function_module[id.0 as usize];
        let mut once: FxHashSet<Var> = function.params.iter().copied().collect();
        let mut several: Vec<Var> = function.params.clone();
        let mut awaited = FxHashSet::default();
        let mut calls = Vec::with_capacity(function.blocks.len());
        let mut call = 0;
        for block in &function.blocks {
            calls.push(call);
            for inst in &block.insts {
                if let Some(dst) = inst.op.dst()
                    && !once.insert(dst)
                {
                    several.push(dst);
                }
                match &inst.op {
                    Op::Call { .. } | Op::TaggedTemplate { .. } => call += 1,
                    Op::Await { src, .. } => {
                        awaited.insert(*src);
                    }
                    _ => {}
                }
            }
        }
        // A variable that is not set where it is declared.
        for (v, info) in function.vars.iter().enumerate() {
            if info.kind == VarKind::Let && !info.captured {
                several.push(Var(v as u32));
            }
        }
        let mut seen = FxHashSet::default();
        several.retain(|v| seen.insert(*v));
        let lost = several.split_off(several.len().min(MAX_SEVERAL));
        let lost = lost.into_iter().chain(lent(function));
        let mut look = Self {
            script: program.modules[module.0 as usize].dispatch == Dispatch::Await,
            values: vec![Value::Unset; function.vars.len()],
            several: several.iter().copied().collect(),
            lost: lost.collect(),
            awaited,
            entries: vec![None; function.blocks.len()],
            calls,
            local: Ways::default(),
            call: 0,
            changed: false,
            ways: FxHashMap::default(),
            unset: false,
            solver,
            id,
            function,
            coarse,
        };
        look.enter(&several);
        look
    }

    /// What holds before the first instruction.
    fn enter(&mut self, several: &[Var]) {
        let mut ways: Ways = several.iter().map(|v| (*v, Value::Null)).collect();
        let given = self.solver.given[self.id.0 as usize].clone();
        for (param, given) in self.function.params.iter().zip(given) {
            let value = self.join(
                given.value,
                if given.absent {
                    Value::Null
                } else {
                    Value::Unset
                },
            );
            ways.insert(*param, value);
            if self.function.vars[param.0 as usize].captured {
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

    /// Once through all blocks that run. Was something learnt?
    pub(super) fn pass(&mut self) -> bool {
        self.changed = false;
        self.unset = false;
        for b in 0..self.function.blocks.len() {
            if let Some(entry) = &self.entries[b] {
                self.local = entry.clone();
                self.block(b as u32);
            }
        }
        self.changed
    }

    pub(super) fn end(self) -> (Vec<(u32, Option<bool>)>, bool) {
        let mut ways: Vec<(u32, Option<bool>)> = self.ways.into_iter().collect();
        ways.sort_unstable();
        (ways, self.unset)
    }

    fn block(&mut self, b: u32) {
        let function = self.function;
        let block = &function.blocks[b as usize];
        self.call = self.calls[b as usize];
        if let Some(handler) = block.handler {
            self.go(handler);
        }
        for inst in &block.insts {
            self.step(&inst.op);
            if let (Some(handler), Some(dst)) = (block.handler, inst.op.dst())
                && self.several.contains(&dst)
            {
                self.go(handler);
            }
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
                    self.unset = true;
                    return;
                }
                let way = value.truth(self.solver.env.names);
                self.ways.insert(b, way);
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
        match self.entries.get_mut(to.0 as usize) {
            Some(slot @ None) => {
                *slot = Some(self.local.clone());
                self.changed = true;
            }
            Some(Some(ways)) => {
                for (var, value) in &self.local {
                    let old = ways.entry(*var).or_default();
                    let new = old.join(*value, names);
                    self.changed |= *old != new;
                    *old = new;
                }
            }
            None => {}
        }
    }

    fn join(&self, a: Value, b: Value) -> Value {
        a.join(b, self.solver.env.names)
    }

    fn value(&self, v: Var) -> Value {
        let value = if self.coarse || self.lost.contains(&v) {
            Value::Any
        } else {
            let local = self.local.get(&v).copied();
            local.unwrap_or(self.values[v.0 as usize])
        };
        match value {
            Value::Unset if self.solver.forced[self.id.0 as usize] => Value::Any,
            value => value,
        }
    }

    fn set(&mut self, dst: Var, value: Value) {
        if self.several.contains(&dst) {
            self.local.insert(dst, value);
            return;
        }
        let new = self.join(self.values[dst.0 as usize], value);
        self.changed |= self.values[dst.0 as usize] != new;
        self.values[dst.0 as usize] = new;
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
                    let part = solver.read(Slot::Part(node, field), self.id);
                    let part = if part == Value::Unset {
                        Value::Null
                    } else {
                        part
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
            let later = target.is_async && !self.awaited.contains(&dst);
            let value = if later || target.is_generator {
                Value::Any
            } else {
                self.solver.read(Slot::Result(f), self.id)
            };
            result = self.join(result, value);
        }
        match kind {
            CallKind::New if self.script => Value::Thing,
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
        }
    }
}
