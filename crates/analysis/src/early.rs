//! What a server has done before it lets anybody in.
//!
//! `await store.init(); await server.connect(transport);`: what `init` finds empty and fills is
//! filled when the first call comes, whoever asks again.

use rustc_hash::{FxHashMap, FxHashSet};
use toctou_core::FileRole;
use toctou_core::finding::EntryKind;
use toctou_core::ir::{FuncId, Function, Op, Term, Var};
use toctou_models::{Do, Door};

use crate::cfg::Cfg;
use crate::checks::code;
use crate::context::{Context, FoundEntry};
use crate::effect::Pos;
use crate::entity::EntityId;
use crate::interp::Interp;

/// A program that connects servers in more places than this is looked at no further.
const MAX_DOORS: usize = 8;
/// How far up it is followed who starts the server, and how far down what was done before.
const MAX_STEPS: usize = 8;

/// Functions that have run to their end before the first client is heard. `on_request`: what
/// calls, requests and events lead to.
pub(crate) fn functions(
    cx: &mut Context<'_, '_>,
    roots: &[FoundEntry],
    on_request: &[bool],
) -> FxHashSet<FuncId> {
    let mut doors = doors(cx);
    // Where each client has a connection made for it, others were there before.
    let on_request = doors.iter().any(|(f, _)| on_request[f.0 as usize]);
    if doors.len() > MAX_DOORS || on_request {
        doors.clear();
    }
    let readied = readied(cx, roots);
    if doors.is_empty() && readied.is_empty() {
        return FxHashSet::default();
    }
    let early = Early {
        cx,
        callers: callers(cx),
    };
    // A server that starts in several ways has done only what it does on each of them.
    let mut each = doors.iter().map(|door| early.before(*door));
    let mut common = each.next().unwrap_or_default();
    for other in each {
        common.retain(|f| other.contains(f));
    }
    for door in readied {
        common.extend(early.before(door));
    }
    common
}

/// A program whose doors are all ports is one process for all its clients: a second one would
/// find the port taken.
pub(crate) fn is_one_process(cx: &Context<'_, '_>) -> bool {
    !cx.doors.is_empty() && cx.doors.iter().all(|door| *door == Door::Port)
}

impl Interp<'_, '_, '_> {
    /// A call lets clients in.
    pub(crate) fn note_door(&mut self, door: Option<Door>) {
        if let Some(door) = door
            && self.last_round
            && self.cx.program.file_of(self.id).role == FileRole::Product
            && !self.cx.doors.contains(&door)
        {
            self.cx.doors.push(door);
        }
    }
}

/// Where a function that a library calls at the start, and that waits in its middle until the
/// end, has done its first half.
fn readied(cx: &Context<'_, '_>, roots: &[FoundEntry]) -> Vec<Place> {
    let starts = |r: &&FoundEntry| {
        let handler = cx.program.function(r.handler);
        r.kind == EntryKind::Startup && handler.is_generator
    };
    let first_yield = |r: &FoundEntry| {
        let blocks = cx.program.function(r.handler).blocks.iter().enumerate();
        blocks
            .flat_map(|(b, block)| {
                let insts = block.insts.iter().enumerate();
                insts.map(move |(i, inst)| (b as u32, i as u32, inst))
            })
            .find(|(_, _, inst)| matches!(inst.op, Op::YieldValue { .. }))
            .map(|(block, inst, _)| (r.handler, Pos { block, inst }))
    };
    roots
        .iter()
        .filter(starts)
        .filter_map(first_yield)
        .collect()
}

/// A place in the code.
type Place = (FuncId, Pos);

/// Where servers are connected: an object is opened for a client. (One that is only used for a
/// request was opened before.)
fn doors(cx: &mut Context<'_, '_>) -> Vec<Place> {
    let program = cx.program;
    let mut known: FxHashMap<EntityId, bool> = FxHashMap::default();
    let mut out = Vec::new();
    for f in (0..program.functions.len() as u32).map(FuncId) {
        if program.file_of(f).role != FileRole::Product {
            continue;
        }
        for (at, call, _) in code::calls(program.function(f)) {
            let exts = cx.points_to.targets(f, call).1;
            let lets_in = exts.iter().any(|e| {
                *known.entry(*e).or_insert_with(|| {
                    let rules = cx.library.calls(*e, &mut cx.entities, &mut cx.names);
                    if rules.iter().any(|r| r.lets_in.is_some()) {
                        return true;
                    }
                    let effects = rules.iter().flat_map(|r| r.effects.iter());
                    effects
                        .into_iter()
                        .any(|e| e.effect.takes_over && e.effect.r#do == Do::Open)
                })
            });
            if lets_in {
                out.push((f, at));
            }
        }
    }
    out
}

/// Where each function of the product is called, by the product.
fn callers(cx: &Context<'_, '_>) -> FxHashMap<FuncId, Vec<Place>> {
    let program = cx.program;
    let mut out: FxHashMap<FuncId, Vec<Place>> = FxHashMap::default();
    for f in (0..program.functions.len() as u32).map(FuncId) {
        if program.file_of(f).role != FileRole::Product {
            continue;
        }
        for (at, call, _) in code::calls(program.function(f)) {
            for target in cx.points_to.targets(f, call).0 {
                out.entry(*target).or_default().push((f, at));
            }
        }
    }
    out
}

struct Early<'c, 'a, 'm> {
    cx: &'c Context<'a, 'm>,
    callers: FxHashMap<FuncId, Vec<Place>>,
}

impl Early<'_, '_, '_> {
    /// What has run before a place in the code is reached for the first time.
    fn before(&self, door: Place) -> FxHashSet<FuncId> {
        let mut found = FxHashSet::default();
        let mut at = Some(door);
        for _ in 0..MAX_STEPS {
            let Some((f, pos)) = at else { break };
            let function = self.cx.program.function(f);
            let before = Cfg::new(function).dominators_of(&[pos.block]);
            let first = |call: Pos| {
                before.contains(&call.block) && (call.block != pos.block || call.inst < pos.inst)
            };
            self.run(f, first, &mut found);
            // One who is called from several places may be called without the rest.
            at = match self.callers.get(&f).map(Vec::as_slice) {
                Some([only]) if only.0 != f => Some(*only),
                _ => None,
            };
        }
        found
    }

    /// The calls of a function that are made in any case, and all that these do in any case.
    fn run(&self, f: FuncId, first: impl Fn(Pos) -> bool, found: &mut FxHashSet<FuncId>) {
        let mut work: Vec<(FuncId, usize)> = Vec::new();
        self.called(f, first, |g| work.push((g, 0)));
        while let Some((g, steps)) = work.pop() {
            if !found.insert(g) || steps == MAX_STEPS {
                continue;
            }
            let function = self.cx.program.function(g);
            let ends: Vec<u32> = (0..function.blocks.len() as u32)
                .filter(|b| matches!(function.blocks[*b as usize].term, Term::Return(_)))
                .collect();
            let always = Cfg::new(function).dominators_of(&ends);
            let such = |call: Pos| always.contains(&call.block);
            self.called(g, such, |h| work.push((h, steps + 1)));
        }
    }

    /// Whom a function calls at such places, and waits for.
    fn called(&self, f: FuncId, such: impl Fn(Pos) -> bool, mut each: impl FnMut(FuncId)) {
        let function = self.cx.program.function(f);
        let awaited = awaited(function);
        for (at, call, inst) in code::calls(function) {
            // Of several it may be another one.
            let [target] = self.cx.points_to.targets(f, call).0 else {
                continue;
            };
            let waits =
                |dst: Var| !self.cx.program.function(*target).is_async || awaited.contains(&dst);
            if matches!(inst.op, Op::Call { dst, .. } if waits(dst)) && such(at) {
                each(*target);
            }
        }
    }
}

/// What is waited for, here or, if it is handed on, by the caller.
fn awaited(function: &Function) -> FxHashSet<Var> {
    let insts = function.blocks.iter().flat_map(|b| &b.insts);
    let here = insts.filter_map(|inst| match inst.op {
        Op::Await { src, .. } => Some(src),
        _ => None,
    });
    let later = function.blocks.iter().filter_map(|block| match block.term {
        Term::Return(var) => var,
        _ => None,
    });
    here.chain(later).collect()
}
