//! Work that is counted in after the test that would have kept it out.
//!
//! A call tests under a lock that nothing is closed, gives the lock back, and only then counts
//! itself in; who closes sets the flag under the same lock and waits for the count. In between it
//! sees a count of zero, and the work begins when all is said to be done.

use toctou_core::FileRole;
use toctou_core::finding::ResourceKind;
use toctou_core::ir::FuncId;
use toctou_models::Do;

use crate::context::{Context, DefectKind, FoundDefect};
use crate::effect::Pos;
use crate::interp::access::Step;
use crate::sym::{Sym, SymKind};

pub(crate) fn check(cx: &mut Context<'_, '_>, _edges: &[Vec<u32>]) {
    let mut found = Vec::new();
    for f in 0..cx.program.functions.len() {
        let id = FuncId(f as u32);
        if cx.program.file_of(id).role != FileRole::Product || cx.plain[f].flags.is_empty() {
            continue;
        }
        counted_late(cx, id, &mut found);
    }
    cx.defects.extend(found);
}

/// A place where work is counted in, as a function sees it: by itself or by a call.
struct Counted<'c> {
    at: Pos,
    func: FuncId,
    step: &'c Step,
    /// In the same acquisition as what stands round it.
    own: bool,
}

fn counted_late(cx: &Context<'_, '_>, f: FuncId, out: &mut Vec<FoundDefect>) {
    let plain = &cx.plain[f.0 as usize];
    let function = cx.program.function(f);
    let tests: Vec<&Step> = plain
        .flags
        .iter()
        .filter(|(sets, step)| !sets && !step.locks.is_empty())
        .map(|(_, step)| step)
        .collect();
    if tests.is_empty() {
        return;
    }
    let mut counted: Vec<Counted<'_>> = enrolled(cx, f)
        .map(|step| Counted {
            at: step.at,
            func: f,
            step,
            own: true,
        })
        .collect();
    for call in plain.calls.iter().filter(|c| !c.spawned) {
        let callee = &cx.plain[call.callee.0 as usize];
        let same = call
            .recv
            .is_some_and(|r| matches!(cx.syms.kind(r), SymKind::This))
            && cx.program.function(call.callee).class == function.class;
        // One that looks for itself, or is called under the lock, is not late.
        if same && callee.flags.iter().all(|(sets, _)| *sets) && call.locks.is_empty() {
            counted.extend(enrolled(cx, call.callee).map(|step| Counted {
                at: call.at,
                func: call.callee,
                step,
                own: false,
            }));
        }
    }
    for count in counted {
        let before = tests
            .iter()
            .filter(|t| super::lifetime::before(cx, f, t.at, count.at));
        let mut last: Option<&Step> = None;
        let mut together = false;
        for test in before {
            last = Some(test);
            together |= count.own
                && count
                    .step
                    .locks
                    .iter()
                    .any(|(_, by)| test.locks.iter().any(|(_, b)| b == by));
        }
        let Some(test) = last.filter(|_| !together) else {
            continue;
        };
        let Some(class) = function.class else {
            continue;
        };
        if !is_waited_for(cx, class, f, test, count.step.key) {
            continue;
        }
        out.push(FoundDefect {
            kind: DefectKind::CountedLate,
            func: count.func,
            span: count.step.span,
            first: Some((f, test.span)),
            key: count.step.key,
            resource: ResourceKind::Memory,
            in_process: true,
            cross_process: false,
            duck: false,
            word: false,
        });
        return;
    }
}

fn enrolled<'c>(cx: &'c Context<'_, '_>, f: FuncId) -> impl Iterator<Item = &'c Step> {
    cx.plain[f.0 as usize]
        .life
        .iter()
        .filter(|s| s.what == Do::Enroll && is_of_this(cx, s.key))
}

fn is_of_this(cx: &Context<'_, '_>, key: Sym) -> bool {
    matches!(*cx.syms.kind(key), SymKind::Field(base, _) if matches!(cx.syms.kind(base), SymKind::This))
}

/// Does a method of the class set the flag under a lock of the test, and then wait for the count?
fn is_waited_for(
    cx: &Context<'_, '_>,
    class: toctou_core::ir::ClassId,
    user: FuncId,
    test: &Step,
    count: Sym,
) -> bool {
    let methods = cx.program.classes[class.0 as usize].methods.iter();
    methods.filter(|(_, g)| *g != user).any(|(_, g)| {
        let plain = &cx.plain[g.0 as usize];
        let sets = plain.flags.iter().any(|(sets, set)| {
            *sets
                && set.key == test.key
                && set.locks.iter().any(|(lock, _)| {
                    !lock.shared && test.locks.iter().any(|(l, _)| l.spot == lock.spot)
                })
        });
        sets && plain
            .life
            .iter()
            .any(|s| s.what == Do::Join && s.key == count)
    })
}
