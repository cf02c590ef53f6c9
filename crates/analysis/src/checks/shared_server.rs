//! One server (or stateless transport) for many HTTP clients.
//!
//! Models say which calls bind an object to one client (`takes-over`). Such a
//! call in code that runs for a request, on an object that was there before
//! the request, takes the object away from the client before.

use rustc_hash::{FxHashMap, FxHashSet};
use toctou_core::Span;
use toctou_core::finding::{EntryKind, ResourceKind};
use toctou_core::ir::{CallKind, Callee, Cell, ClassId, FuncId, Key, Literal, Op, Var};
use toctou_models::PlaceBase;

use crate::checks::code;
use crate::context::{Context, DefectKind, FoundDefect};
use crate::library::EffectRule;
use crate::linkage::Binding;
use crate::order;
use crate::sym::SymKind;

/// How far a value is followed back.
const MAX_STEPS: u32 = 12;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Life {
    /// It was there before the request.
    Longer,
    /// Made for the request.
    Request,
    Unknown,
}

struct Found {
    func: FuncId,
    span: Span,
    recv: Var,
    arg: Option<Var>,
    conditional: bool,
}

pub fn check(cx: &mut Context<'_, '_>, edges: &[Vec<u32>]) {
    let routes: Vec<FuncId> = cx
        .entries
        .iter()
        .filter(|e| e.kind == EntryKind::Route)
        .map(|e| e.handler)
        .collect();
    if routes.is_empty() {
        return;
    }
    let per_request = order::reachable(edges, routes);
    let found = candidates(cx, &per_request);
    if found.is_empty() {
        return;
    }
    let lives = Lives::new(cx, per_request);
    let mut out = Vec::new();
    for c in found {
        // A server that is bound to a transport which also stays is bound once,
        // or refuses the second time.
        if lives.of(cx, c.func, c.recv, 0) != Life::Longer
            || c.arg
                .is_some_and(|arg| !c.conditional && lives.of(cx, c.func, arg, 0) == Life::Longer)
        {
            continue;
        }
        let key = named(cx, c.func, c.recv);
        out.push(FoundDefect {
            kind: DefectKind::SharedServer,
            func: c.func,
            span: c.span,
            first: None,
            key,
            resource: ResourceKind::Memory,
            in_process: true,
            cross_process: false,
            duck: c.conditional,
            word: false,
        });
    }
    cx.defects.extend(out);
}

fn candidates(cx: &mut Context<'_, '_>, per_request: &[bool]) -> Vec<Found> {
    let program = cx.program;
    let mut out = Vec::new();
    for f in (0..program.functions.len()).filter(|&f| per_request[f]) {
        let id = FuncId(f as u32);
        for (_, call, inst) in code::calls(program.function(id)) {
            let Op::Call {
                callee: Callee::Method { obj, .. },
                args,
                ..
            } = &inst.op
            else {
                continue;
            };
            for (_, rule) in code::models(cx, id, call) {
                for e in rule.effects.iter().filter(|e| e.effect.takes_over) {
                    if holds(cx, e, id, *obj) {
                        out.push(Found {
                            func: id,
                            span: inst.span,
                            recv: *obj,
                            arg: args.first().map(|a| a.value),
                            conditional: !e.when.is_empty(),
                        });
                    }
                }
            }
        }
    }
    out
}

/// Conditions on what the receiver was made with: only what the source says in so many words.
fn holds(cx: &mut Context<'_, '_>, effect: &EffectRule, f: FuncId, recv: Var) -> bool {
    effect.when.iter().all(|w| {
        let PlaceBase::RecvArg(i) = w.place.base else {
            return false;
        };
        let (Some(field), Some(false)) = (w.place.fields.first(), w.when.present) else {
            return false;
        };
        lacks(cx, f, recv, i, field)
    })
}

/// Was the object in a register made with an argument that has no such field?
fn lacks(cx: &mut Context<'_, '_>, f: FuncId, v: Var, arg: usize, field: &str) -> bool {
    let (mut f, mut v) = (f, v);
    for _ in 0..MAX_STEPS {
        match cx.definition(f, v).map(|i| &i.op) {
            Some(Op::Copy { src, .. }) => v = *src,
            Some(Op::LoadVar { cell, .. }) => {
                let Some((owner, value)) = cx.only_store(*cell) else {
                    return false;
                };
                (f, v) = (owner, value);
            }
            Some(Op::Call {
                kind: CallKind::New,
                args,
                ..
            }) => {
                let Some(a) = args.get(arg) else {
                    return true;
                };
                let Some(Op::Object { fields, .. }) = cx.definition(f, a.value).map(|i| &i.op)
                else {
                    return false;
                };
                if fields.iter().any(|(k, _)| !matches!(k, Key::Name(_))) {
                    return false;
                }
                let value = fields
                    .iter()
                    .find(|(k, _)| matches!(k, Key::Name(n) if cx.names.text(*n) == field));
                return match value {
                    None => true,
                    Some((_, v)) => {
                        let v = *v;
                        matches!(
                            cx.definition(f, v).map(|i| &i.op),
                            Some(Op::Const {
                                value: Literal::Null,
                                ..
                            })
                        )
                    }
                };
            }
            _ => return false,
        }
    }
    false
}

/// How long things live, seen from a request.
struct Lives {
    per_request: Vec<bool>,
    /// Where captured variables are set.
    stores: FxHashMap<Cell, Vec<(FuncId, Var)>>,
    /// Fields that code which runs for a request sets.
    set_fields: FxHashSet<toctou_core::Name>,
    /// Classes that code which runs for a request makes objects of.
    made: FxHashSet<ClassId>,
    /// Arguments of the calls of a function.
    callers: FxHashMap<FuncId, Vec<(FuncId, Vec<Var>)>>,
}

impl Lives {
    fn new(cx: &Context<'_, '_>, per_request: Vec<bool>) -> Self {
        let mut lives = Self {
            per_request,
            stores: FxHashMap::default(),
            set_fields: FxHashSet::default(),
            made: FxHashSet::default(),
            callers: FxHashMap::default(),
        };
        for (f, function) in cx.program.functions.iter().enumerate() {
            let id = FuncId(f as u32);
            let inside = lives.per_request[f];
            for inst in function.blocks.iter().flat_map(|b| &b.insts) {
                match &inst.op {
                    Op::StoreVar { cell, value } => {
                        lives.stores.entry(*cell).or_default().push((id, *value));
                    }
                    Op::SetField { field, .. } if inside => {
                        lives.set_fields.insert(*field);
                    }
                    _ => {}
                }
            }
            for (_, call, inst) in code::calls(function) {
                let Op::Call { args, kind, .. } = &inst.op else {
                    continue;
                };
                for t in cx.points_to.targets(id, call).0 {
                    if *kind == CallKind::New
                        && inside
                        && let Some(class) = cx.program.function(*t).class
                    {
                        lives.made.insert(class);
                    }
                    if lives.per_request[t.0 as usize] {
                        let args = args.iter().map(|a| a.value).collect();
                        lives.callers.entry(*t).or_default().push((id, args));
                    }
                }
            }
        }
        lives
    }

    fn of(&self, cx: &mut Context<'_, '_>, f: FuncId, v: Var, depth: u32) -> Life {
        if depth > MAX_STEPS {
            return Life::Unknown;
        }
        let function = cx.program.function(f);
        if let Some(i) = function.params.iter().position(|p| *p == v) {
            return self.of_param(cx, f, i, depth);
        }
        let Some(inst) = cx.definition(f, v) else {
            return Life::Unknown;
        };
        match &inst.op {
            Op::Copy { src, .. } | Op::Await { src, .. } => self.of(cx, f, *src, depth + 1),
            Op::GetField { obj, field, .. } if !self.set_fields.contains(field) => {
                self.of(cx, f, *obj, depth + 1)
            }
            Op::This { .. } => {
                let mut at = Some(f);
                for _ in 0..32 {
                    let Some(id) = at else { break };
                    let function = cx.program.function(id);
                    if let Some(class) = function.class {
                        return if self.made.contains(&class) {
                            Life::Unknown
                        } else {
                            Life::Longer
                        };
                    }
                    at = function.parent;
                }
                Life::Unknown
            }
            Op::LoadVar { cell, .. } => self.of_cell(cx, *cell, depth),
            Op::Call {
                kind: CallKind::New,
                ..
            } => {
                if self.per_request[f.0 as usize] {
                    Life::Request
                } else {
                    Life::Longer
                }
            }
            _ => Life::Unknown,
        }
    }

    fn of_cell(&self, cx: &mut Context<'_, '_>, cell: Cell, depth: u32) -> Life {
        if let Some(Binding::Cell(c)) = cx.linkage.imported.get(&cell).copied() {
            return self.of_cell(cx, c, depth + 1);
        }
        let Some(stores) = self.stores.get(&cell) else {
            return Life::Unknown;
        };
        // Set before any request: whatever it is, it stays.
        if stores.iter().all(|s| !self.per_request[s.0.0 as usize]) {
            return Life::Longer;
        }
        match stores.as_slice() {
            [(f, v)] => self.of(cx, *f, *v, depth + 1),
            _ => Life::Unknown,
        }
    }

    /// What every caller hands over.
    fn of_param(&self, cx: &mut Context<'_, '_>, f: FuncId, i: usize, depth: u32) -> Life {
        let Some(callers) = self.callers.get(&f) else {
            return Life::Unknown;
        };
        let mut life = None;
        for (caller, args) in callers.iter().take(20) {
            let Some(arg) = args.get(i) else {
                return Life::Unknown;
            };
            let one = self.of(cx, *caller, *arg, depth + 3);
            if life.is_some_and(|l| l != one) {
                return Life::Unknown;
            }
            life = Some(one);
        }
        life.unwrap_or(Life::Unknown)
    }
}

/// The receiver by its name in the source.
fn named(cx: &mut Context<'_, '_>, f: FuncId, v: Var) -> crate::sym::Sym {
    let kind = match cx.definition(f, v).map(|i| &i.op) {
        Some(Op::LoadVar { cell, .. }) => SymKind::Cell(*cell),
        Some(Op::GetField { obj, field, .. }) => {
            let (obj, field) = (*obj, *field);
            let base = match cx.definition(f, obj).map(|i| &i.op) {
                Some(Op::This { .. }) => SymKind::This,
                Some(Op::LoadVar { cell, .. }) => SymKind::Cell(*cell),
                _ => SymKind::Null,
            };
            let base = cx.syms.make(base);
            return cx.syms.field(base, field);
        }
        _ => match cx.program.function(f).params.iter().position(|p| *p == v) {
            Some(i) => SymKind::Param(i as u32),
            None => SymKind::Null,
        },
    };
    cx.syms.make(kind)
}
