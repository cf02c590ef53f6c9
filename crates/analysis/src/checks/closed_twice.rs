//! What must be closed once, and is closed in two functions that know nothing of each other.
//!
//! Closing a channel a second time ends the process. Two functions that close the same field with
//! no lock, no `Once` and no other step that only one of them passes meet when a call ends while
//! the whole is shut down.

use rustc_hash::{FxHashMap, FxHashSet};
use toctou_core::FileRole;
use toctou_core::finding::{EntryKind, ResourceKind};
use toctou_core::ir::FuncId;
use toctou_models::Do;

use super::data_race::reached;
use super::lifetime::{before, held_by_callers, kept_apart};
use crate::context::{Context, DefectKind, FoundDefect};
use crate::effect::Act;
use crate::interp::access::{HeldLock, Spot, Step};

pub(crate) fn check(cx: &mut Context<'_, '_>, _edges: &[Vec<u32>]) {
    let mut places: FxHashMap<Spot, Vec<(FuncId, &Step)>> = FxHashMap::default();
    for (f, plain) in cx.plain.iter().enumerate() {
        let id = FuncId(f as u32);
        if cx.program.file_of(id).role != FileRole::Product {
            continue;
        }
        for step in plain.life.iter().filter(|s| s.what == Do::Close) {
            if let Some(spot) = step.only_once
                && !is_taken(cx, id, step)
            {
                places.entry(spot).or_default().push((id, step));
            }
        }
    }
    places.retain(|_, list| list.iter().any(|(f, _)| *f != list[0].0));
    if places.is_empty() {
        return;
    }
    let clients = cx
        .entries
        .iter()
        .filter(|e| !matches!(e.kind, EntryKind::Startup | EntryKind::Export));
    let by_clients = reached(cx, clients.map(|e| e.handler).collect());
    let callers = held_by_callers(cx);
    let mut spots: Vec<Spot> = places.keys().copied().collect();
    spots.sort_unstable();
    let mut found = Vec::new();
    for spot in spots {
        found.extend(twice(&places[&spot], &by_clients, &callers));
    }
    cx.defects.extend(found);
}

/// Was it taken out of a table before, so that nobody else finds it?
fn is_taken(cx: &Context<'_, '_>, f: FuncId, close: &Step) -> bool {
    let summary = cx.summaries[f.0 as usize].as_ref();
    summary.is_some_and(|s| {
        s.events.iter().any(|e| {
            e.act == Act::Delete
                && e.loc.kind == ResourceKind::Memory
                && before(cx, f, e.at, close.at)
        })
    })
}

fn twice(
    list: &[(FuncId, &Step)],
    by_clients: &FxHashSet<FuncId>,
    callers: &[Vec<HeldLock>],
) -> Option<FoundDefect> {
    let locks = |f: FuncId, step: &Step| -> Vec<HeldLock> {
        let own = step.locks.iter().map(|(lock, _)| *lock);
        own.chain(callers[f.0 as usize].iter().copied()).collect()
    };
    for (f, close) in list.iter().filter(|(f, _)| by_clients.contains(f)) {
        let here = locks(*f, close);
        let other = list.iter().find(|(g, step)| {
            let there = locks(*g, step);
            g != f && !here.iter().chain(&there).any(|l| l.once) && !kept_apart(&here, &there)
        });
        if let Some((g, step)) = other {
            return Some(FoundDefect {
                kind: DefectKind::ClosedTwice,
                func: *f,
                span: close.span,
                first: Some((*g, step.span)),
                key: close.key,
                resource: ResourceKind::External,
                in_process: true,
                cross_process: false,
                duck: false,
                word: false,
            });
        }
    }
    None
}
