//! A record overwritten by key with what the caller sent, and no version in
//! the condition.
//!
//! The read that the new value rests on was made by another call, long ago, by
//! whoever sends it now. So there is no window in the server, and nothing but
//! the statement itself to look at. Where the server itself reads the record
//! first, a window says more, and this is silent.

use toctou_core::finding::ResourceKind;
use toctou_core::ir::FuncId;
use toctou_models::Mode;

use crate::context::{Context, DefectKind, FoundDefect};
use crate::effect::{Act, Event, Source};
use crate::summary::Summary;

pub(super) fn check(cx: &mut Context<'_, '_>, _: &[Vec<u32>]) {
    let mut found = Vec::new();
    for (f, summary) in cx.summaries.iter().enumerate() {
        let Some(summary) = summary else { continue };
        for e in &summary.events {
            if e.call.is_none() && is_blind(cx, summary, e) {
                found.push(FoundDefect {
                    kind: DefectKind::BlindUpdate,
                    func: FuncId(f as u32),
                    span: e.trail.span,
                    first: None,
                    key: e.loc.key,
                    resource: ResourceKind::Row,
                    in_process: true,
                    cross_process: true,
                    duck: e.duck,
                    word: false,
                });
            }
        }
    }
    cx.defects.extend(found);
}

fn is_blind(cx: &Context<'_, '_>, summary: &Summary, e: &Event) -> bool {
    if e.act != Act::Write || e.loc.kind != ResourceKind::Row || e.mode != Mode::Blind {
        return false;
    }
    let Some(row) = &e.row else { return false };
    if row.insert || !row.relative.is_empty() || row.conditions.len() != 1 {
        return false;
    }
    // The row was made by this call: nobody has read it yet.
    if e.loc.entry.is_none_or(|k| cx.syms.is_fresh(k)) {
        return false;
    }
    let sent = e
        .data
        .iter()
        .any(|d| matches!(d.source, Source::Param(_) | Source::Cell(_)));
    let same_table = |r: u32| summary.events[r as usize].loc.key == e.loc.key;
    let looked = e
        .data
        .events()
        .chain(e.ctrl.events())
        .any(|(r, _)| same_table(r));
    sent && !looked && !summary.windows.iter().any(|w| w.write.span == e.trail.span)
}
