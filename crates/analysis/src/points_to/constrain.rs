//! What each instruction says about who holds what.

use smallvec::SmallVec;
use toctou_core::Name;
use toctou_core::ir::{
    Arg, CallKind, Callee, Cell, FuncId, FuncKind, Function, Key, Op, Term, Var,
};

use super::{Args, CallSite, Env, Named, Obj, Solver, Use, constructor, enclosing_class};
use crate::entity::{Entity, GLOBAL};
use crate::linkage::{Binding, TypeTarget};

impl Solver {
    pub(super) fn constrain(&mut self, env: &mut Env<'_, '_>, id: FuncId) {
        self.call_base.push(self.calls.len() as u32);
        let program = env.program;
        let function = program.function(id);
        let module = program.function_module[id.0 as usize];
        for (v, info) in function.vars.iter().enumerate() {
            let node = self.node(id, Var(v as u32));
            if let Some(ty) = &info.ty {
                self.seed(env, node, module, ty);
            }
            if let Some(&binding) = env.linkage.imported.get(&Cell {
                owner: id,
                var: Var(v as u32),
            }) {
                match binding {
                    Binding::Cell(cell) => {
                        let from = self.node(cell.owner, cell.var);
                        self.copy(from, node);
                    }
                    Binding::Namespace(m) => {
                        let obj = self.obj(Obj::Namespace(m));
                        self.add(node, obj);
                    }
                    Binding::Ext(e) => {
                        let obj = self.obj(Obj::Ext(e));
                        self.add(node, obj);
                    }
                }
            }
        }
        if let Some(ty) = &function.return_type {
            let ret = self.rets[id.0 as usize];
            self.seed(env, ret, module, ty);
        }
        if function.kind == FuncKind::Arrow
            && let Some(parent) = function.parent
        {
            let (from, to) = (self.this[parent.0 as usize], self.this[id.0 as usize]);
            self.copy(from, to);
        }
        let mut strings = vec![None; function.vars.len()];
        for block in &function.blocks {
            for inst in &block.insts {
                self.inst(env, id, function, &inst.op, &mut strings);
            }
            if let Term::Return(Some(v)) = block.term {
                let (from, to) = (self.node(id, v), self.rets[id.0 as usize]);
                self.copy(from, to);
            }
        }
    }

    fn inst(
        &mut self,
        env: &mut Env<'_, '_>,
        id: FuncId,
        function: &Function,
        op: &Op,
        strings: &mut [Option<Name>],
    ) {
        let n = |pt: &Self, v: Var| pt.node(id, v);
        match op {
            Op::Const { dst, value } => {
                if let toctou_core::ir::Literal::Str(text) = value {
                    strings[dst.0 as usize] = Some(*text);
                }
            }
            Op::Copy { dst, src } | Op::Await { dst, src } | Op::Enter { dst, resource: src } => {
                let (a, b) = (n(self, *src), n(self, *dst));
                self.copy(a, b);
            }
            Op::Phi { dst, from } => {
                for v in from {
                    let (a, b) = (n(self, *v), n(self, *dst));
                    self.copy(a, b);
                }
            }
            Op::Binary {
                dst,
                op: toctou_core::ir::BinOp::Either,
                left,
                right,
            } => {
                for v in [left, right] {
                    let (a, b) = (n(self, *v), n(self, *dst));
                    self.copy(a, b);
                }
            }
            Op::Func { dst, func } => {
                let obj = self.obj(Obj::Func(*func));
                let node = n(self, *dst);
                self.add(node, obj);
            }
            Op::Class { dst, class } => {
                let obj = self.obj(Obj::Class(*class));
                let node = n(self, *dst);
                self.add(node, obj);
            }
            Op::Global { dst, name } => {
                let module = env.names.intern(GLOBAL);
                let entity = env.entities.make(Entity {
                    module,
                    path: *name,
                    instance: false,
                });
                let obj = self.obj(Obj::Ext(entity));
                let node = n(self, *dst);
                self.add(node, obj);
            }
            Op::LoadVar { dst, cell } => {
                let (a, b) = (self.node(cell.owner, cell.var), n(self, *dst));
                self.copy(a, b);
            }
            Op::StoreVar { cell, value } => {
                let (a, b) = (n(self, *value), self.node(cell.owner, cell.var));
                self.copy(a, b);
            }
            Op::This { dst } => {
                let (a, b) = (self.this[id.0 as usize], n(self, *dst));
                self.copy(a, b);
            }
            Op::GetField { dst, obj, field } => {
                let (node, dst) = (n(self, *obj), n(self, *dst));
                self.on(env, node, Use::Get { field: *field, dst });
            }
            Op::SetField { obj, field, value } => {
                let (node, value) = (n(self, *obj), n(self, *value));
                self.on(
                    env,
                    node,
                    Use::Set {
                        field: *field,
                        value,
                    },
                );
            }
            Op::GetIndex { dst, obj, index } => {
                let (node, dst) = (n(self, *obj), n(self, *dst));
                let what = match strings[index.0 as usize] {
                    Some(field) => Use::Get { field, dst },
                    None => Use::GetAny { dst },
                };
                self.on(env, node, what);
            }
            Op::SetIndex { obj, index, value } => {
                let (node, value) = (n(self, *obj), n(self, *value));
                let what = match strings[index.0 as usize] {
                    Some(field) => Use::Set { field, value },
                    None => Use::SetAny { value },
                };
                self.on(env, node, what);
            }
            Op::Object { dst, fields } => {
                let typed = function.vars[dst.0 as usize].ty.is_some();
                let dst = n(self, *dst);
                let obj = self.obj(Obj::Literal(dst.0));
                self.add(dst, obj);
                for (key, value) in fields {
                    let value = n(self, *value);
                    match key {
                        Key::Name(name) => {
                            let field = self.field(env, obj, *name);
                            self.copy(value, field);
                            // `T{…}` is an instance of the type that it names.
                            if typed {
                                let field = *name;
                                self.on(env, dst, Use::Set { field, value });
                            }
                        }
                        Key::Computed(_) => {
                            let elem = self.elem(obj);
                            self.copy(value, elem);
                        }
                        // Fields of the spread object are the literal's too.
                        Key::Spread => self.copy(value, dst),
                    }
                }
            }
            Op::Array { dst, items } => {
                let dst = n(self, *dst);
                let obj = self.obj(Obj::Array(dst.0));
                self.add(dst, obj);
                let elem = self.elem(obj);
                for item in items {
                    let value = n(self, item.value);
                    if item.spread {
                        self.on(env, value, Use::Element { dst: elem });
                    } else {
                        self.copy(value, elem);
                    }
                }
            }
            Op::Element {
                dst,
                of,
                keys: false,
            } => {
                let (node, dst) = (n(self, *of), n(self, *dst));
                self.on(env, node, Use::Element { dst });
            }
            Op::Call {
                dst,
                callee,
                args,
                kind,
            } => {
                self.call(env, id, function, *dst, callee, args, *kind);
            }
            Op::TaggedTemplate {
                dst, tag, values, ..
            } => {
                let args: Vec<Arg> = values
                    .iter()
                    .map(|v| Arg {
                        value: *v,
                        spread: false,
                        name: None,
                    })
                    .collect();
                self.call(env, id, function, *dst, tag, &args, CallKind::Plain);
            }
            Op::YieldValue { value, .. } => {
                let (a, b) = (n(self, *value), self.rets[id.0 as usize]);
                self.copy(a, b);
            }
            Op::Element { .. }
            | Op::Delete { .. }
            | Op::Concat { .. }
            | Op::Binary { .. }
            | Op::Not { .. }
            | Op::Exit { .. }
            | Op::Catch { .. }
            | Op::Opaque { .. } => {}
        }
    }

    #[allow(clippy::too_many_arguments)]
    fn call(
        &mut self,
        env: &mut Env<'_, '_>,
        id: FuncId,
        function: &Function,
        dst: Var,
        callee: &Callee,
        args: &[Arg],
        kind: CallKind,
    ) {
        let index = self.calls.len() as u32;
        let (recv, method) = match callee {
            Callee::Method { obj, name } => (Some(self.node(id, *obj)), Some(*name)),
            Callee::Value(_) => (None, None),
            Callee::Super(_) => (Some(self.this[id.0 as usize]), None),
        };
        let start = self.args.len() as u32;
        let mut named = Named::new();
        for arg in args {
            let node = self.node(id, arg.value);
            match arg.name {
                Some(name) => named.push((name, node)),
                None => self.args.push(node),
            }
        }
        let site = CallSite {
            func: id,
            dst: self.node(id, dst),
            args: Args {
                start,
                count: self.args.len() as u32 - start,
            },
            named: (!named.is_empty()).then(|| Box::new(named)),
            spread: args.iter().any(|a| a.spread),
            recv,
            method,
            kind,
            funcs: SmallVec::new(),
            exts: SmallVec::new(),
            ducked: false,
            by_name: false,
        };
        self.calls.push(site);
        match callee {
            Callee::Value(v) => {
                let node = self.node(id, *v);
                self.on(env, node, Use::Callee(index));
            }
            Callee::Method { .. } => {
                if let Some(recv) = recv {
                    self.on(env, recv, Use::Receiver(index));
                }
            }
            Callee::Super(name) => {
                let class = enclosing_class(env.program, id, function);
                if let Some(TypeTarget::Class(parent)) =
                    class.and_then(|c| env.linkage.superclass(c))
                {
                    let target = match name {
                        None => constructor(env, parent),
                        Some(name) => env.linkage.method(env.program, parent, *name),
                    };
                    if let Some(target) = target {
                        self.invoke(index, target);
                    }
                }
            }
        }
    }
}
