//! Two writes that belong together, and nothing that holds them together.
//!
//! Looked for in the summaries of handlers, because only there all the
//! transactions are known that callers open round a helper. The two writes are
//! reported where the ways to them part.
//!
//! That two writes belong together is not written anywhere. Three shapes say
//! it beyond doubt, or nearly: a column of one table changes for two keys by
//! what was there (a transfer), a record goes from one table to another (a
//! move). The third, rows of two tables under one key, is often meant and
//! often not: it is for those who want to see more. So are two writes in the
//! rounds of a loop: mostly each round is for a record of its own.

use std::rc::Rc;

use rustc_hash::FxHashSet;
use toctou_core::finding::ResourceKind;
use toctou_core::ir::FuncId;
use toctou_core::{FileRole, Name, Span};
use toctou_models::{LockScope, Mode};

use crate::cfg::Cfg;
use crate::context::{Context, DefectKind, FoundDefect};
use crate::effect::{Act, Event, Frame, Lock, Pos, Source};
use crate::summary::Summary;
use crate::sym::{Sym, SymKind};

use super::flow;
use super::transactions::Speaks;

/// Handlers that write more rows than this are imports and migrations.
const MAX_WRITES: usize = 60;

pub(super) fn check(cx: &mut Context<'_, '_>, _: &[Vec<u32>]) {
    let mut found: Vec<FoundDefect> = Vec::new();
    let mut speaks = Speaks::default();
    let mut seen: FxHashSet<(FuncId, Span, Span)> = FxHashSet::default();
    for root in flow::roots(cx) {
        if cx.program.file_of(root).role != FileRole::Product {
            continue;
        }
        let Some(summary) = cx.summaries[root.0 as usize].clone() else {
            continue;
        };
        let writes: Vec<&Event> = summary
            .events
            .iter()
            .filter(|e| is_step(e) && is_named(cx, e.loc.key))
            .collect();
        if writes.len() < 2 || writes.len() > MAX_WRITES {
            continue;
        }
        for (i, a) in writes.iter().enumerate() {
            for b in writes.iter().skip(i + 1) {
                let Some(kind) = belong_together(cx, &summary, a, b) else {
                    continue;
                };
                let Some((meet, first, second)) = part(&a.trail, &b.trail) else {
                    continue;
                };
                let pair = (meet, first.span, second.span);
                if !seen.contains(&pair)
                    && let Some(defect) =
                        judge(cx, &mut speaks, (kind, meet), (a, first), (b, second))
                {
                    seen.insert(pair);
                    found.push(defect);
                }
            }
        }
    }
    // The second write of one pair may be the first of another: one finding each.
    let mut placed: FxHashSet<(FuncId, Span)> = FxHashSet::default();
    found.sort_by_key(|d| (d.kind, d.func, d.span, d.first));
    found.retain(|d| placed.insert((d.func, d.span)));
    cx.defects.extend(found);
}

fn is_step(e: &Event) -> bool {
    e.loc.kind == ResourceKind::Row
        && matches!(e.act, Act::Write | Act::Delete)
        && e.mode != Mode::Upsert
        && !e.in_handler
}

/// A table that the source names; one that is computed may be any.
fn is_named(cx: &Context<'_, '_>, table: Sym) -> bool {
    let root = cx.syms.kind(cx.syms.root(table));
    matches!(
        root,
        SymKind::Str(_) | SymKind::Cell(_) | SymKind::VarLoc(_) | SymKind::Ext(_) | SymKind::This
    )
}

/// The function in which the ways to two accesses part, and the two frames there.
fn part<'t>(a: &'t Rc<Frame>, b: &'t Rc<Frame>) -> Option<(FuncId, &'t Frame, &'t Frame)> {
    let (mut a, mut b) = (a, b);
    loop {
        if a.func != b.func {
            return None;
        }
        if a.span != b.span {
            return Some((a.func, a, b));
        }
        a = a.next.as_ref()?;
        b = b.next.as_ref()?;
    }
}

fn judge(
    cx: &Context<'_, '_>,
    speaks: &mut Speaks,
    (kind, meet): (DefectKind, FuncId),
    (a, first): (&Event, &Frame),
    (b, second): (&Event, &Frame),
) -> Option<FoundDefect> {
    if is_held(cx, a) || is_held(cx, b) {
        return None;
    }
    let mut frame = Some(&a.trail);
    while let Some(at) = frame {
        if speaks.of_transactions(cx, at.func) {
            return None;
        }
        frame = at.next.as_ref();
    }
    // Where the two stand in the function in which they meet.
    let summary = cx.summaries[meet.0 as usize].clone()?;
    let own = |e: &Event, frame: &Frame| -> Option<Pos> {
        let access = e.trail.last();
        summary
            .events
            .iter()
            .find(|o| {
                let last = o.trail.last();
                o.trail.span == frame.span
                    && (last.func, last.span, o.act) == (access.func, access.span, e.act)
            })
            .map(|o| o.at)
    };
    let (from, to) = (own(a, first)?, own(b, second)?);
    let function = cx.program.function(meet);
    let cfg = Cfg::new(function);
    let (waited, first, second) = match flow::between(function, &cfg, from, to, |_| false) {
        Some(waited) => (waited, first, second),
        None => (
            flow::between(function, &cfg, to, from, |_| false)?,
            second,
            first,
        ),
    };
    // What makes good for a failure of the first is not its other half.
    let handled = |at: Pos| cfg.controls_of(at.block).iter().any(|c| c.way == 3);
    if handled(from) != handled(to) {
        return None;
    }
    let locked = a.lock.is_some() && b.lock.is_some();
    let again = |at: Pos| flow::between(function, &cfg, at, at, |_| false).is_some();
    let each_round = again(from) || again(to);
    Some(FoundDefect {
        kind: if locked || each_round {
            DefectKind::RelatedSteps
        } else {
            kind
        },
        func: meet,
        span: second.span,
        first: Some((meet, first.span)),
        key: a.loc.key,
        resource: ResourceKind::Row,
        in_process: (waited || first.next.is_some() || second.next.is_some()) && !locked,
        cross_process: true,
        duck: a.duck || b.duck,
        word: false,
    })
}

/// In a transaction, or under a lock that other processes respect, here or on the way.
fn is_held(cx: &Context<'_, '_>, e: &Event) -> bool {
    let holds = |lock: &Option<Rc<Lock>>| {
        lock.as_ref()
            .is_some_and(|l| l.kind.is_transaction() || l.scope == LockScope::Host)
    };
    if holds(&e.lock) {
        return true;
    }
    // A lock of a caller hides what is held below it.
    let access = e.trail.last();
    let mut frame = Some(&e.trail);
    while let Some(at) = frame {
        if let Some(summary) = &cx.summaries[at.func.0 as usize] {
            let below = summary.events.iter().any(|o| {
                let last = o.trail.last();
                (last.func, last.span) == (access.func, access.span) && holds(&o.lock)
            });
            if below {
                return true;
            }
        }
        frame = at.next.as_ref();
    }
    false
}

fn belong_together(
    cx: &Context<'_, '_>,
    summary: &Summary,
    a: &Event,
    b: &Event,
) -> Option<DefectKind> {
    if is_transfer(cx, summary, a, b) || is_move(cx, summary, a, b) || is_move(cx, summary, b, a) {
        return Some(DefectKind::MultiStep);
    }
    is_related(cx, a, b).then_some(DefectKind::RelatedSteps)
}

fn fields(cx: &Context<'_, '_>, e: &Event) -> Vec<(Name, Sym)> {
    match e.loc.entry.map(|s| cx.syms.kind(s)) {
        Some(SymKind::Object(fields)) => fields.to_vec(),
        _ => Vec::new(),
    }
}

fn is_constant(cx: &Context<'_, '_>, s: Sym) -> bool {
    matches!(
        cx.syms.kind(s),
        SymKind::Str(_) | SymKind::Num(_) | SymKind::Bool(_) | SymKind::Null
    )
}

/// One column of one table, changed by what was there, for two keys.
fn is_transfer(cx: &Context<'_, '_>, summary: &Summary, a: &Event, b: &Event) -> bool {
    if a.act != Act::Write || b.act != Act::Write || a.loc.key != b.loc.key {
        return false;
    }
    let (Some(row_a), Some(row_b)) = (&a.row, &b.row) else {
        return false;
    };
    if row_a.insert || row_b.insert {
        return false;
    }
    let derived = |e: &Event, column: Name| {
        e.row.as_ref().is_some_and(|r| r.relative.contains(&column))
            || e.data.events().any(|(r, attr)| {
                let read = &summary.events[r as usize];
                read.act == Act::Read
                    && read.loc.key == e.loc.key
                    && attr == Some(column)
                    && fields(cx, read).iter().any(|f| fields(cx, e).contains(f))
            })
    };
    let column = row_a
        .columns
        .iter()
        .any(|c| row_b.columns.contains(c) && derived(a, *c) && derived(b, *c));
    column && {
        let other = fields(cx, b);
        fields(cx, a).iter().any(|(column, value)| {
            other.iter().any(|(c, v)| {
                c == column && v != value && !is_constant(cx, *v) && !is_constant(cx, *value)
            })
        })
    }
}

/// A row that was read is put into another table and taken out of its own. A line that tells
/// of what was removed has columns of its own, and may say what the row was; it is not the row.
fn is_move(cx: &Context<'_, '_>, summary: &Summary, put: &Event, taken: &Event) -> bool {
    let inserts = put.act == Act::Write && put.row.as_ref().is_some_and(|r| r.insert);
    if !inserts || taken.act != Act::Delete || put.loc.key == taken.loc.key || is_log(cx, put) {
        return false;
    }
    let columns = put.row.as_ref().map_or(&[][..], |r| &r.columns);
    let keys = fields(cx, taken);
    let found_by_key = |r: u32| {
        let read = &summary.events[r as usize];
        read.act == Act::Read
            && read.loc.key == taken.loc.key
            && fields(cx, read)
                .iter()
                .any(|f| keys.contains(f) && !is_constant(cx, f.1))
    };
    // The whole record under its own key, or so much of it that it is the same in another place.
    let mut whole = false;
    let mut attributes: FxHashSet<Name> = FxHashSet::default();
    for dep in put.data.iter().filter(|d| !d.implicit && !d.asked) {
        if let Source::Event(r) = dep.source
            && found_by_key(r)
        {
            whole |= dep.attr.is_none();
            attributes.extend(dep.attr);
        }
    }
    let keyed = || keys.iter().all(|(key, _)| columns.contains(key));
    let kept = attributes.iter().filter(|a| columns.contains(a)).count();
    whole && (columns.is_empty() || keyed()) || kept >= 2 && attributes.len() >= 3
}

/// Rows of two tables that are made, or taken away, under one key.
fn is_related(cx: &Context<'_, '_>, a: &Event, b: &Event) -> bool {
    let made = |e: &Event| e.act == Act::Write && e.row.as_ref().is_some_and(|r| r.insert);
    let both_made = made(a) && made(b);
    let both_taken = a.act == Act::Delete && b.act == Act::Delete;
    if a.loc.key == b.loc.key || !both_made && !both_taken || is_log(cx, a) || is_log(cx, b) {
        return false;
    }
    let other = fields(cx, b);
    fields(cx, a).iter().any(|(column, value)| {
        // What is made must share an identity, not any value.
        let names = both_taken || cx.syms.is_fresh(*value) || is_key(cx.names.text(*column));
        names && !is_constant(cx, *value) && other.iter().any(|(_, v)| v == value)
    })
}

fn is_key(column: &str) -> bool {
    let column = column.to_ascii_lowercase();
    column == "id" || column == "uuid" || column == "key"
}

/// A table that is only added to, by its name.
fn is_log(cx: &Context<'_, '_>, e: &Event) -> bool {
    let SymKind::Str(name) = cx.syms.kind(e.loc.key) else {
        return false;
    };
    let name = cx.names.text(*name).to_ascii_lowercase();
    ["log", "audit", "history", "event", "metric", "fts"]
        .iter()
        .any(|w| name.contains(w))
}
