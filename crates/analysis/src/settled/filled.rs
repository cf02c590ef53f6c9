//! Fields that are never empty, in languages where an object is made by writing it out.
//!
//! `&Service{now: time.Now}` is the only way in which the program makes one, and nobody sets the
//! field to nothing: then `if s.now == nil { s.now = time.Now }` is a guard for those who make it
//! in another way, and nothing is ever written there.

use rustc_hash::{FxHashMap, FxHashSet};
use toctou_core::ir::{
    BinOp, ClassId, FuncId, Function, Key, Literal, Op, Program, Term, Var, VarKind,
};
use toctou_core::{FileRole, Name};

use crate::points_to::{Env, Obj, PointsTo};

/// How far a value is followed to what made it.
const MAX_STEPS: u32 = 6;

type Defs<'f> = FxHashMap<Var, Vec<&'f Op>>;

/// Which way tests go that ask whether there is something in such a field.
pub(super) fn ways(env: &Env<'_, '_>, points_to: &PointsTo) -> Vec<((FuncId, u32), bool)> {
    let program = env.program;
    let tests = tests(program, points_to);
    if tests.is_empty() {
        return Vec::new();
    }
    let asked: FxHashSet<(ClassId, Name)> = tests.iter().map(|t| t.field).collect();
    let full = full(env, points_to, &asked);
    let answer = |t: &Test| full.contains(&t.field).then_some((t.place, !t.for_nothing));
    tests.iter().filter_map(answer).collect()
}

struct Test {
    place: (FuncId, u32),
    field: (ClassId, Name),
    /// `== nil`, not `!= nil`.
    for_nothing: bool,
}

/// Functions of the product in which objects are written out.
fn functions(program: &Program) -> impl Iterator<Item = (FuncId, &Function)> {
    let all = program.functions.iter().enumerate();
    all.filter(|(f, _)| {
        let module = program.function_module[*f];
        program.modules[module.0 as usize].dispatch.is_unguarded()
            && program.file_of(FuncId(*f as u32)).role == FileRole::Product
    })
    .map(|(f, function)| (FuncId(f as u32), function))
}

fn defs(function: &Function) -> Defs<'_> {
    let mut out: Defs<'_> = FxHashMap::default();
    for inst in function.blocks.iter().flat_map(|b| &b.insts) {
        if let Some(dst) = inst.op.dst() {
            out.entry(dst).or_default().push(&inst.op);
        }
    }
    out
}

fn only<'f>(defs: &Defs<'f>, v: Var) -> Option<&'f Op> {
    match defs.get(&v)?.as_slice() {
        [one] => Some(one),
        _ => None,
    }
}

fn is_null(defs: &Defs<'_>, v: Var) -> bool {
    let null = |op: &Op| {
        matches!(
            op,
            Op::Const {
                value: Literal::Null,
                ..
            }
        )
    };
    only(defs, v).is_some_and(null)
}

fn tests(program: &Program, points_to: &PointsTo) -> Vec<Test> {
    let mut out = Vec::new();
    for (id, function) in functions(program) {
        let branches = (0..)
            .zip(&function.blocks)
            .filter_map(|(b, block)| match block.term {
                Term::Branch { cond, .. } => Some((b, cond)),
                _ => None,
            });
        let branches: Vec<(u32, Var)> = branches.collect();
        if branches.is_empty() {
            continue;
        }
        let defs = defs(function);
        for (block, cond) in branches {
            let Some(Op::Binary {
                op, left, right, ..
            }) = only(&defs, cond)
            else {
                continue;
            };
            let for_nothing = match op {
                BinOp::Eq => true,
                BinOp::Ne => false,
                _ => continue,
            };
            let Some(Op::GetField { obj, field, .. }) = only(&defs, *left) else {
                continue;
            };
            let class = points_to.only_class(id, *obj);
            if let Some(class) = class.filter(|_| is_null(&defs, *right)) {
                out.push(Test {
                    place: (id, block),
                    field: (class, *field),
                    for_nothing,
                });
            }
        }
    }
    out
}

/// Of the fields that are asked for, those that every object is written out with and that nobody
/// empties.
fn full(
    env: &Env<'_, '_>,
    points_to: &PointsTo,
    asked: &FxHashSet<(ClassId, Name)>,
) -> FxHashSet<(ClassId, Name)> {
    let program = env.program;
    let mut made: FxHashSet<ClassId> = FxHashSet::default();
    let mut open: FxHashSet<(ClassId, Name)> = FxHashSet::default();
    let classes: FxHashSet<ClassId> = asked.iter().map(|a| a.0).collect();
    for (id, function) in functions(program) {
        let mut known: Option<Defs<'_>> = None;
        for inst in function.blocks.iter().flat_map(|b| &b.insts) {
            let (var, set) = match &inst.op {
                Op::Object { dst, .. } => (*dst, None),
                Op::SetField { obj, field, value } => (*obj, Some((*field, *value))),
                _ => continue,
            };
            let objects = points_to.objects(points_to.node(id, var));
            let of: Vec<ClassId> = objects
                .filter_map(|o| match o {
                    Obj::Instance(c) if classes.contains(&c) => Some(c),
                    _ => None,
                })
                .collect();
            if of.is_empty() {
                continue;
            }
            let defs = known.get_or_insert_with(|| defs(function));
            for class in of {
                match (&inst.op, set) {
                    (_, Some((field, value))) if is_null(defs, value) => {
                        open.insert((class, field));
                    }
                    (Op::Object { fields, .. }, None) => {
                        made.insert(class);
                        for &(_, name) in asked.iter().filter(|a| a.0 == class) {
                            let given = fields.iter().find(|(k, _)| *k == Key::Name(name));
                            let there = given.is_some_and(|(_, v)| is_there(program, defs, *v, 0));
                            if !there {
                                open.insert((class, name));
                            }
                        }
                    }
                    _ => {}
                }
            }
        }
    }
    let parts = parts(program);
    let whole = |c: ClassId| {
        let name = program.names.text(program.classes[c.0 as usize].name);
        !parts.contains(last_part(name))
    };
    let full = asked.iter().filter(|a| made.contains(&a.0) && whole(a.0));
    full.filter(|a| !open.contains(a)).copied().collect()
}

/// Is a value made here, so that it is not nothing?
fn is_there(program: &Program, defs: &Defs<'_>, v: Var, steps: u32) -> bool {
    let Some(ops) = defs.get(&v).filter(|_| steps < MAX_STEPS) else {
        return false;
    };
    ops.iter().all(|op| match op {
        Op::Object { .. } | Op::Array { .. } | Op::Func { .. } => true,
        // What makes something gives it back; where it can fail, that is the first of two results.
        Op::Call { .. } => true,
        // `time.Now`, of a package.
        Op::GetField { obj, .. } => match only(defs, *obj) {
            Some(Op::LoadVar { cell, .. }) => {
                let owner = program.function(cell.owner);
                owner.vars[cell.var.0 as usize].kind == VarKind::Import
            }
            _ => false,
        },
        Op::Copy { src, .. } => is_there(program, defs, *src, steps + 1),
        // `if logger == nil { logger = … }`: of what was given and what is put in its place.
        Op::Phi { from, .. } => {
            let given = |v: &Var| !defs.contains_key(v);
            from.iter().any(|v| is_there(program, defs, *v, steps + 1))
                && from
                    .iter()
                    .all(|v| given(v) || is_there(program, defs, *v, steps + 1))
        }
        _ => false,
    })
}

/// Names of types that stand in others by value: such an object is made with the other, empty.
fn parts(program: &Program) -> FxHashSet<&str> {
    let mut out = FxHashSet::default();
    let fields = program.classes.iter().flat_map(|class| &class.fields);
    for ty in fields.filter_map(|f| f.ty.as_ref()) {
        let mut at = ty;
        let mut pointer = false;
        while let Some(inner) = at.element.as_deref() {
            pointer = program.names.text(at.name) == "*";
            at = inner;
        }
        if !pointer {
            out.insert(last_part(program.names.text(at.name)));
        }
    }
    out
}

fn last_part(name: &str) -> &str {
    name.rsplit('.').next().unwrap_or(name)
}
