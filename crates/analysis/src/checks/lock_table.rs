//! Tables of locks, one entry per caller or key, and what takes entries out.

use rustc_hash::{FxHashMap, FxHashSet};
use toctou_core::Span;
use toctou_core::finding::EntryKind;
use toctou_core::ir::{Callee, FuncId, Op};

use crate::context::{Context, DefectKind};
use crate::entity::EntityId;
use crate::points_to::Obj;

use super::flow::{Base, Defs, Place, Words};

/// A flaw of a lock: what, of which place, where, and the step before it.
pub type Found = (DefectKind, Place, FuncId, Span, Option<(FuncId, Span)>);

/// Entries that are taken out without asking, and where, by the functions that
/// do it and those round them.
pub type Removals = FxHashMap<FuncId, Vec<(Place, FuncId, Span)>>;

/// Tables of locks whose entries a timer removes, whether or not they are held.
pub fn timers(
    cx: &mut Context<'_, '_>,
    words: &Words,
    removals: &Removals,
    found: &mut Vec<Found>,
) {
    let mut timers: Vec<(FuncId, FuncId, Span)> = cx
        .entries
        .iter()
        .filter(|e| e.kind == EntryKind::Timer)
        .map(|e| (e.handler, e.func, e.span))
        .collect();
    timers.sort_unstable();
    timers.dedup();
    timers.retain(|t| removals.contains_key(&t.0));
    if timers.is_empty() {
        return;
    }
    let tables = lock_tables(cx, words);
    for (handler, func, span) in timers {
        for (place, at, removal) in &removals[&handler] {
            if *at == handler && tables.contains(&place.base) {
                found.push((
                    DefectKind::DropsLive,
                    *place,
                    handler,
                    *removal,
                    Some((func, span)),
                ));
            }
        }
    }
}

/// Containers that somebody puts locks into.
fn lock_tables(cx: &mut Context<'_, '_>, words: &Words) -> FxHashSet<Base> {
    let mut out = FxHashSet::default();
    let mut known: FxHashMap<EntityId, bool> = FxHashMap::default();
    let program = cx.program;
    for (f, function) in program.functions.iter().enumerate() {
        let id = FuncId(f as u32);
        let sets = function.blocks.iter().flat_map(|b| &b.insts).any(|i| {
            matches!(&i.op, Op::Call { callee: Callee::Method { name, .. }, .. }
                if Some(*name) == words.set)
        });
        if !sets {
            continue;
        }
        let defs = Defs::new(id, function, words);
        for inst in function.blocks.iter().flat_map(|b| &b.insts) {
            let Some((
                Place {
                    base,
                    entry: Some(_),
                },
                value,
            )) = defs.stored(&inst.op)
            else {
                continue;
            };
            let objects: Vec<Obj> = cx.points_to.objects(cx.points_to.node(id, value)).collect();
            for object in objects {
                let lock = match object {
                    Obj::Ext(e) => *known.entry(e).or_insert_with(|| is_lock(cx, e)),
                    Obj::Instance(c) => {
                        let name = cx.names.text(program.classes[c.0 as usize].name);
                        ["Mutex", "Semaphore", "Lock"]
                            .iter()
                            .any(|w| name.ends_with(w))
                    }
                    _ => false,
                };
                if lock {
                    out.insert(base);
                }
            }
        }
    }
    out
}

/// Is there a method by which objects of this type are taken as a lock?
fn is_lock(cx: &mut Context<'_, '_>, e: EntityId) -> bool {
    let ways = ["acquire", "lock", "runExclusive", "use", "wait", "execute"];
    ways.iter().any(|way| {
        let Some(way) = cx.names.find(way) else {
            return false;
        };
        let Some(member) = cx.entities.member(e, way, &mut cx.names) else {
            return false;
        };
        let rules = cx.library.calls(member, &mut cx.entities, &mut cx.names);
        rules
            .iter()
            .flat_map(|r| &r.effects)
            .any(|e| e.effect.r#do == toctou_models::Do::Lock)
    })
}
