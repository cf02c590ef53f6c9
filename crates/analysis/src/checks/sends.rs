//! Something that cannot be taken back is sent, and nothing tells the second
//! try from the first.
//!
//! Clients repeat calls, so a handler that sends is enough. Two things are
//! looked for besides, because they decide how sure the finding is: a lock
//! that is held on every way to the sending (somebody thought of it), and a
//! loop that tries again when the sending fails (somebody did not).

use std::collections::BTreeMap;

use rustc_hash::FxHashSet;
use toctou_core::Span;
use toctou_core::finding::ResourceKind;
use toctou_core::ir::{FuncId, Op};

use crate::cfg::Cfg;
use crate::context::{Context, DefectKind, FoundDefect};
use crate::effect::{Act, Event, Pos};
use crate::sym::Sym;

use super::flow;

struct Sending {
    key: Sym,
    duck: bool,
    /// Reached without a lock.
    free: bool,
    /// Where a failure makes it run again.
    again: Option<(FuncId, Span)>,
}

pub(super) fn check(cx: &mut Context<'_, '_>, _: &[Vec<u32>]) {
    let mut sendings: BTreeMap<(FuncId, Span), Sending> = BTreeMap::new();
    let is_sent = |e: &Event| e.act == Act::Send && !e.idempotent;
    let mut senders: Vec<FuncId> = Vec::new();
    for (f, summary) in cx.summaries.iter().enumerate() {
        let Some(summary) = summary else { continue };
        let mut any = false;
        for e in summary.events.iter().filter(|e| is_sent(e)) {
            any = true;
            if e.call.is_none() {
                sendings
                    .entry((FuncId(f as u32), e.trail.span))
                    .or_insert(Sending {
                        key: e.loc.key,
                        duck: e.duck,
                        free: false,
                        again: None,
                    });
            }
        }
        if any {
            senders.push(FuncId(f as u32));
        }
    }
    if sendings.is_empty() {
        return;
    }
    let roots: FxHashSet<FuncId> = flow::roots(cx).into_iter().collect();
    let retriers = retriers(cx);
    for &f in &senders {
        let Some(summary) = &cx.summaries[f.0 as usize] else {
            continue;
        };
        let function = cx.program.function(f);
        let retried = flow::retried(function, &Cfg::new(function));
        for e in summary.events.iter().filter(|e| is_sent(e)) {
            let access = e.trail.last();
            let Some(sending) = sendings.get_mut(&(access.func, access.span)) else {
                continue;
            };
            sending.free |= roots.contains(&f) && e.lock.is_none();
            let again = retried.contains(&e.at.block) || is_handed_to(cx, f, e, &retriers);
            if again && sending.again.is_none() {
                sending.again = Some((f, e.trail.span));
            }
        }
    }
    for ((func, span), s) in sendings {
        // Under a lock on every way, and tried once: somebody took care.
        if !s.free && s.again.is_none() {
            continue;
        }
        cx.defects.push(FoundDefect {
            kind: DefectKind::SendTwice,
            func,
            span,
            first: s.again,
            key: s.key,
            resource: ResourceKind::External,
            in_process: true,
            cross_process: true,
            duck: s.duck,
            word: false,
        });
    }
}

/// Functions that call a function they are given again when it fails.
fn retriers(cx: &Context<'_, '_>) -> FxHashSet<FuncId> {
    let mut out = FxHashSet::default();
    for (f, summary) in cx.summaries.iter().enumerate() {
        let id = FuncId(f as u32);
        let Some(summary) = summary else { continue };
        if !summary.sym_calls.iter().any(|c| c.func == id) {
            continue;
        }
        let function = cx.program.function(id);
        let retried = flow::retried(function, &Cfg::new(function));
        let calls = |b: u32| {
            function.blocks[b as usize].insts.iter().any(|i| {
                matches!(i.op, Op::Call { .. })
                    && summary
                        .sym_calls
                        .iter()
                        .any(|c| c.func == id && c.span == i.span)
            })
        };
        if retried.iter().any(|b| calls(*b)) {
            out.insert(id);
        }
    }
    out
}

/// Does the sending stand in a function that is handed to one which tries again?
fn is_handed_to(cx: &Context<'_, '_>, f: FuncId, e: &Event, retriers: &FxHashSet<FuncId>) -> bool {
    let Some(next) = &e.trail.next else {
        return false;
    };
    if retriers.is_empty() || retriers.contains(&next.func) {
        return false;
    }
    call_number(cx, f, e.at).is_some_and(|n| {
        cx.points_to
            .targets(f, n)
            .0
            .iter()
            .any(|t| retriers.contains(t))
    })
}

/// The how-manieth call of a function stands at a place.
pub(super) fn call_number(cx: &Context<'_, '_>, f: FuncId, at: Pos) -> Option<u32> {
    let mut n = 0;
    for (b, block) in cx.program.function(f).blocks.iter().enumerate() {
        for (i, inst) in block.insts.iter().enumerate() {
            let call = matches!(inst.op, Op::Call { .. } | Op::TaggedTemplate { .. });
            if (b as u32, i as u32) == (at.block, at.inst) {
                return call.then_some(n);
            }
            n += u32::from(call);
        }
    }
    None
}
