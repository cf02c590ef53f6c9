//! A call tests that nothing is closed, gives way, and then registers what
//! closing would have had to see.
//!
//! The flag is known by its name and by a function that sets it to `true`.
//! That function (the closer) also goes through, waits for or ends another
//! place; a call that writes to that place after a test of the flag, with an
//! `await` between and no second test after it, can be missed.

use rustc_hash::{FxHashMap, FxHashSet};
use toctou_core::finding::ResourceKind;
use toctou_core::ir::{Callee, Cell, ClassId, FuncId, Function, Literal, Op, Term, Var};
use toctou_core::{FileRole, Name};
use toctou_models::Do;

use crate::checks::code;
use crate::context::{Context, DefectKind, FoundDefect};
use crate::effect::{Act, Event, Pos};
use crate::sym::{Sym, SymKind};

const FLAGS: &[&str] = &[
    "closed",
    "closing",
    "stopped",
    "stopping",
    "shutdown",
    "shutting",
    "disposed",
    "disposing",
    "destroyed",
    "terminated",
];

/// Methods that only forget what was registered: nobody waits for it.
const FORGETS: &[&str] = &["clear", "delete", "set", "add", "push"];

/// Does a name say that something is closed or about to be?
pub(crate) fn is_closing(name: &str) -> bool {
    code::mentions(name, FLAGS)
}

/// A place, and the class whose `this` it hangs from.
type Place = (Option<ClassId>, Sym);

pub fn check(cx: &mut Context<'_, '_>, _: &[Vec<u32>]) {
    let closers = closers(cx);
    if closers.is_empty() {
        return;
    }
    let mut out = Vec::new();
    for f in 0..cx.program.functions.len() {
        let id = FuncId(f as u32);
        let Some(summary) = cx.summaries[f].clone() else {
            continue;
        };
        if cx.program.file_of(id).role != FileRole::Product {
            continue;
        }
        let mut done = FxHashSet::default();
        for (r, read) in summary.events.iter().enumerate() {
            let Some(place) = flag(cx, id, read).filter(|_| read.act.is_read()) else {
                continue;
            };
            let Some(by) = closers.get(&place).filter(|by| !by.contains(&id)) else {
                continue;
            };
            for write in &summary.events {
                if !registers(write, r as u32) || again_below(&summary.events, read, write) {
                    continue;
                }
                let Some((class, held)) = container(cx, id, write.loc.key) else {
                    continue;
                };
                if class != place.0 || held == place.1 || !done.insert((write.at, held)) {
                    continue;
                }
                let Some(waits) = seen_by(cx, by, held) else {
                    continue;
                };
                if passes(cx, id, &summary.events, read, write) && !takes_lock(cx, id) {
                    out.push(FoundDefect {
                        kind: DefectKind::CloseRace,
                        func: id,
                        span: write.trail.span,
                        first: Some((id, read.trail.span)),
                        key: held,
                        resource: ResourceKind::Memory,
                        in_process: true,
                        cross_process: false,
                        duck: !waits,
                        word: false,
                    });
                }
            }
        }
    }
    cx.defects.extend(out);
}

/// Who sets which flag.
fn closers(cx: &mut Context<'_, '_>) -> FxHashMap<Place, Vec<FuncId>> {
    let program = cx.program;
    let mut out: FxHashMap<Place, Vec<FuncId>> = FxHashMap::default();
    for f in 0..program.functions.len() {
        let id = FuncId(f as u32);
        let Some(summary) = cx.summaries[f].clone() else {
            continue;
        };
        for e in summary.events.iter().filter(|e| e.act == Act::Write) {
            let Some(place) = flag(cx, id, e) else {
                continue;
            };
            let block = &program.function(id).blocks[e.at.block as usize];
            let value = match block.insts.get(e.at.inst as usize).map(|i| &i.op) {
                Some(Op::SetField { value, .. } | Op::StoreVar { value, .. }) => *value,
                _ => continue,
            };
            let set = matches!(
                cx.definition(id, value).map(|i| &i.op),
                Some(Op::Const {
                    value: Literal::Bool(true),
                    ..
                })
            );
            let list = out.entry(place).or_default();
            if set && !list.contains(&id) {
                list.push(id);
            }
        }
    }
    out.retain(|_, list| !list.is_empty());
    out
}

/// The flag that an access of the function itself is about.
fn flag(cx: &Context<'_, '_>, f: FuncId, e: &Event) -> Option<Place> {
    if e.loc.kind != ResourceKind::Memory || e.call.is_some() {
        return None;
    }
    let name = match cx.syms.kind(e.loc.key) {
        SymKind::Field(_, name) => Some(*name),
        SymKind::VarLoc(cell) => variable(cx, *cell),
        _ => None,
    }?;
    code::mentions(cx.names.text(name), FLAGS).then(|| container(cx, f, e.loc.key))?
}

fn variable(cx: &Context<'_, '_>, cell: Cell) -> Option<Name> {
    cx.program.function(cell.owner).vars[cell.var.0 as usize].name
}

/// `this.running` of `this.running[x]`, with the class; a variable that outlives calls.
fn container(cx: &Context<'_, '_>, f: FuncId, key: Sym) -> Option<Place> {
    let mut at = key;
    loop {
        match cx.syms.kind(at) {
            SymKind::Index(base, _) | SymKind::Element(base) => at = *base,
            SymKind::Field(base, _) if matches!(cx.syms.kind(*base), SymKind::This) => {
                return Some((Some(class_of(cx, f)?), at));
            }
            SymKind::VarLoc(cell) | SymKind::Cell(cell) if cell.owner != f => {
                return Some((None, at));
            }
            _ => return None,
        }
    }
}

fn class_of(cx: &Context<'_, '_>, f: FuncId) -> Option<ClassId> {
    let mut at = Some(f);
    for _ in 0..32 {
        let function = cx.program.function(at?);
        if function.class.is_some() {
            return function.class;
        }
        at = function.parent;
    }
    None
}

/// Makes something known that was not, because the test said so.
fn registers(e: &Event, read: u32) -> bool {
    e.loc.kind == ResourceKind::Memory
        && matches!(e.act, Act::Write | Act::Append)
        && !e.constant
        && !e.in_handler
        && e.lock.is_none()
        && e.ctrl.events().any(|(i, _)| i == read)
}

/// The callee that registers tests the flag itself.
fn again_below(events: &[Event], read: &Event, write: &Event) -> bool {
    write.call.is_some()
        && events
            .iter()
            .any(|e| e.act.is_read() && e.call == write.call && e.loc == read.loc)
}

fn takes_lock(cx: &mut Context<'_, '_>, f: FuncId) -> bool {
    code::calls(cx.program.function(f)).any(|(_, n, _)| {
        code::models(cx, f, n)
            .iter()
            .any(|(_, r)| r.effects.iter().any(|e| e.effect.r#do == Do::Lock))
    })
}

/// Does a closer look at the place: `true` if it waits for or ends what is in
/// it, `false` if it only empties it.
fn seen_by(cx: &Context<'_, '_>, by: &[FuncId], held: Sym) -> Option<bool> {
    let mut seen = None;
    for g in by {
        let function = cx.program.function(*g);
        let mut loaded: FxHashSet<Var> = FxHashSet::default();
        for inst in function.blocks.iter().flat_map(|b| &b.insts) {
            let dst = match (&inst.op, cx.syms.kind(held)) {
                (Op::GetField { dst, field, .. }, SymKind::Field(_, name)) if field == name => *dst,
                (Op::LoadVar { dst, cell }, SymKind::VarLoc(c) | SymKind::Cell(c)) if cell == c => {
                    *dst
                }
                _ => continue,
            };
            loaded.insert(dst);
            seen = seen.or(Some(false));
        }
        let waits = function
            .blocks
            .iter()
            .flat_map(|b| &b.insts)
            .any(|i| match &i.op {
                Op::Call { callee, args, .. } => {
                    let method = match callee {
                        Callee::Method { obj, name } if loaded.contains(obj) => {
                            !code::mentions(cx.names.text(*name), FORGETS)
                        }
                        _ => false,
                    };
                    method || args.iter().any(|a| loaded.contains(&a.value))
                }
                Op::Element { of, .. } | Op::Await { src: of, .. } => loaded.contains(of),
                Op::Array { items, .. } => items.iter().any(|a| loaded.contains(&a.value)),
                _ => false,
            });
        if waits {
            return Some(true);
        }
    }
    seen
}

/// Is there a way from the test to the registration on which somebody can run,
/// and the flag is not tested again after that?
fn passes(
    cx: &mut Context<'_, '_>,
    f: FuncId,
    events: &[Event],
    read: &Event,
    write: &Event,
) -> bool {
    let function = cx.program.function(f);
    let Some((open, closed)) = ways(cx, f, function, read.at) else {
        return false;
    };
    let tests: FxHashSet<Pos> = events
        .iter()
        .filter(|e| e.act.is_read() && e.loc == read.loc)
        .map(|e| e.at)
        .collect();
    // Where it is closed, the registration must not be reached.
    !reaches(function, closed, write.at, None) && reaches(function, open, write.at, Some(&tests))
}

/// The branch that a flag decides: where it goes while open, and once closed.
fn ways(cx: &mut Context<'_, '_>, f: FuncId, function: &Function, at: Pos) -> Option<(u32, u32)> {
    let value = function.blocks[at.block as usize]
        .insts
        .get(at.inst as usize)?
        .op
        .dst()?;
    for block in &function.blocks {
        let Term::Branch {
            cond,
            then,
            otherwise,
        } = &block.term
        else {
            continue;
        };
        let mut v = *cond;
        let mut straight = true;
        for _ in 0..4 {
            if v == value {
                let (closed, open) = if straight {
                    (then, otherwise)
                } else {
                    (otherwise, then)
                };
                return Some((open.0, closed.0));
            }
            match cx.definition(f, v).map(|i| &i.op) {
                Some(Op::Not { src, .. }) => {
                    v = *src;
                    straight = !straight;
                }
                Some(Op::Copy { src, .. }) => v = *src,
                _ => break,
            }
        }
    }
    None
}

/// With `tests`: having given way after the last of them.
fn reaches(function: &Function, from: u32, to: Pos, tests: Option<&FxHashSet<Pos>>) -> bool {
    let mut seen = FxHashSet::default();
    let mut work = vec![(from, tests.is_none())];
    while let Some((b, mut gave_way)) = work.pop() {
        if !seen.insert((b, gave_way)) {
            continue;
        }
        let block = &function.blocks[b as usize];
        for (i, inst) in block.insts.iter().enumerate() {
            let at = Pos {
                block: b,
                inst: i as u32,
            };
            if at == to && gave_way {
                return true;
            }
            if let Some(tests) = tests {
                if tests.contains(&at) {
                    gave_way = false;
                } else if matches!(inst.op, Op::Await { .. } | Op::YieldValue { .. }) {
                    gave_way = true;
                }
            }
        }
        work.extend(block.term.successors().iter().map(|t| (t.0, gave_way)));
    }
    false
}
