//! State that a process keeps: loaded from a file when it starts, changed in
//! memory by its calls, and written back whole. Within the process all calls
//! share the copy, so nothing is lost; but a second process has a copy of its
//! own, and each writes over what the other has added since both were started.
//!
//! The load and the write are in different calls, often far apart, so no
//! function sees both: this looks at the whole program, when all summaries are
//! there. Where a call loads the file itself before it writes, be it only the
//! first time, the ordinary windows have it. That another call loads it (one
//! that asks for another folder, one that begins a session) changes nothing.

use std::rc::Rc;

use rustc_hash::{FxHashMap, FxHashSet};
use toctou_core::finding::{EntryKind, ResourceKind};
use toctou_core::ir::{Cell, ClassId, FuncId, FuncKind, Op};
use toctou_core::{FileRole, Name, Span};
use toctou_models::Mode;

use crate::cfg::Cfg;
use crate::context::{Context, FoundEntry};
use crate::effect::{Act, Dep, Event, Pos, Source, Trail, Window};
use crate::made::Made;
use crate::order;
use crate::roots::is_served;
use crate::sym::{self, Sym, SymKind};

/// Where in memory the copy is kept, the same for all functions that see it.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Keeper {
    Field(ClassId, Name),
    Variable(Cell),
}

/// A file was read into memory.
struct Load {
    trail: Trail,
    site: u64,
    /// A call may do so as well.
    again: bool,
}

type Loads = FxHashMap<(Keeper, Sym, Option<ClassId>), Load>;

/// The windows of this kind.
pub(crate) fn windows(
    cx: &mut Context<'_, '_>,
    roots: &[FoundEntry],
    edges: &[Vec<u32>],
) -> Vec<Rc<Window>> {
    let served = roots
        .iter()
        .filter(|r| is_served(r.kind))
        .map(|r| r.handler);
    let called = order::reachable(edges, served);
    let begun = roots
        .iter()
        .filter(|r| r.kind == EntryKind::Startup && role(cx, r.handler) == FileRole::Product);
    let begun = order::reachable(edges, begun.map(|r| r.handler));
    let changes = changes(cx, &called);
    let loads = loads(cx, &begun, &called, &changes);
    if loads.is_empty() {
        return Vec::new();
    }
    // Where the file's name and the copy are first known together.
    let mut nearest: FxHashMap<(FuncId, Span), (FuncId, Event, &Load)> = FxHashMap::default();
    for f in (0..cx.summaries.len() as u32).map(FuncId) {
        if !called[f.0 as usize] || role(cx, f) != FileRole::Product {
            continue;
        }
        let Some(summary) = cx.summaries[f.0 as usize].clone() else {
            continue;
        };
        for write in summary.events.iter().filter(|e| is_whole(e)) {
            let Some(load) = loaded(cx, f, write, &loads) else {
                continue;
            };
            let last = write.trail.last();
            let depth = write.trail.depth();
            let best = nearest
                .entry((last.func, last.span))
                .or_insert_with(|| (f, write.clone(), load));
            if depth < best.1.trail.depth() {
                *best = (f, write.clone(), load);
            }
        }
    }
    let mut out: Vec<Rc<Window>> = nearest
        .into_values()
        .filter(|(_, write, load)| !load.again || !is_loaded_before(cx, &called, load, write))
        .map(|(f, write, load)| {
            let id = sym::through(load.site, write.site);
            let mut window = Window::between_processes(f, &load.trail, &write, id);
            window.through_memory = true;
            Rc::new(window)
        })
        .collect();
    out.sort_by_key(|w| (w.meet, w.write.span, w.id));
    out
}

fn role(cx: &Context<'_, '_>, f: FuncId) -> FileRole {
    cx.program.file_of(f).role
}

/// Is all of a file replaced, and by its name, which others use too?
fn is_whole(e: &Event) -> bool {
    e.loc.kind == ResourceKind::File
        && e.act == Act::Write
        && matches!(e.mode, Mode::Blind | Mode::Replace)
        && !e.constant
}

/// What calls do to fields and variables.
#[derive(Default)]
struct Changes {
    /// What was only read when the process started is the same for all.
    changed: FxHashSet<Keeper>,
    /// Only ever set as a whole to what somebody gives, with nothing in it of what was there: a token.
    replaced: FxHashSet<Keeper>,
}

fn changes(cx: &Context<'_, '_>, called: &[bool]) -> Changes {
    let mut out = Changes::default();
    let mut in_part: FxHashSet<Keeper> = FxHashSet::default();
    for f in (0..cx.summaries.len() as u32).map(FuncId) {
        let Some(summary) = cx.summaries[f.0 as usize].as_ref() else {
            continue;
        };
        if !called[f.0 as usize] {
            continue;
        }
        for event in &summary.events {
            if event.loc.kind != ResourceKind::Memory || !event.act.is_write() {
                continue;
            }
            let Some(keeper) = keeper(cx, f, event.loc.key) else {
                continue;
            };
            out.changed.insert(keeper);
            let of_itself = |(e, _): (u32, Option<Name>)| {
                let read = summary.events.get(e as usize);
                read.is_some_and(|read| self::keeper(cx, f, read.loc.key) == Some(keeper))
            };
            let whole = is_place(cx, event.loc.key) && event.act == Act::Write;
            let given = |d: Dep| matches!(d.source, Source::Param(_)) && !d.implicit;
            if !whole || event.data.events().any(of_itself) {
                in_part.insert(keeper);
            } else if event.call.is_none() && event.data.iter().any(given) {
                out.replaced.insert(keeper);
            }
        }
    }
    out.replaced.retain(|keeper| !in_part.contains(keeper));
    out
}

/// Is it all of a field or variable, and no entry or part of what is in it?
fn is_place(cx: &Context<'_, '_>, place: Sym) -> bool {
    match *cx.syms.kind(place) {
        SymKind::Field(base, _) => matches!(cx.syms.kind(base), SymKind::This),
        SymKind::VarLoc(_) | SymKind::Cell(_) => true,
        _ => false,
    }
}

/// Is there a call that loads the file and then writes it?
fn is_loaded_before(cx: &Context<'_, '_>, called: &[bool], load: &Load, write: &Event) -> bool {
    let is_at = |e: &Event, trail: &Trail| {
        let (here, there) = (e.trail.last(), trail.last());
        (here.func, here.span) == (there.func, there.span)
    };
    (0..cx.summaries.len()).any(|f| {
        let Some(summary) = cx.summaries[f].as_ref().filter(|_| called[f]) else {
            return false;
        };
        let of_load = |e: &&Event| e.act == Act::Read && is_at(e, &load.trail);
        let of_write = |e: &&Event| e.act == Act::Write && is_at(e, &write.trail);
        let writes: Vec<&Event> = summary.events.iter().filter(of_write).collect();
        let mut reads = summary.events.iter().filter(of_load).peekable();
        if writes.is_empty() || reads.peek().is_none() {
            return false;
        }
        let cfg = Cfg::new(cx.program.function(FuncId(f as u32)));
        reads.any(|read| {
            // What one call does, the function that it calls is asked.
            let apart = |w: &&&Event| read.call.is_none() || read.call != w.call;
            let mut later = writes.iter().filter(apart);
            later.any(|write| leads_to(&cfg, read.at, write.at))
        })
    })
}

fn leads_to(cfg: &Cfg, from: Pos, to: Pos) -> bool {
    if from.block == to.block && from.inst < to.inst {
        return true;
    }
    let mut seen: FxHashSet<u32> = FxHashSet::default();
    let mut work = vec![from.block];
    while let Some(block) = work.pop() {
        let next = cfg.succs[block as usize].iter().map(|edge| edge.to.0);
        for next in next.filter(|b| seen.insert(*b)) {
            if next == to.block {
                return true;
            }
            work.push(next);
        }
    }
    false
}

fn loads(cx: &mut Context<'_, '_>, begun: &[bool], called: &[bool], changes: &Changes) -> Loads {
    let at_start = |f: FuncId| begun[f.0 as usize];
    let again = |f: FuncId| called[f.0 as usize];
    let mut out = Loads::default();
    // One that no call does says more.
    let mut note = |key: (Keeper, Sym, Option<ClassId>), load: Load| {
        if load.again && changes.replaced.contains(&key.0) {
            return;
        }
        let known = out.entry(key).or_insert_with(|| Load {
            trail: Rc::clone(&load.trail),
            ..load
        });
        if known.again && !load.again {
            *known = load;
        }
    };
    for f in (0..cx.summaries.len() as u32).map(FuncId) {
        let Some(summary) = cx.summaries[f.0 as usize].clone() else {
            continue;
        };
        if !at_start(f) {
            continue;
        }
        for kept in &summary.events {
            // Set, or put to what is there: `notes.extend(loaded)`.
            let put = matches!(kept.act, Act::Write | Act::Append);
            if kept.loc.kind != ResourceKind::Memory || !put {
                continue;
            }
            let Some(keeper) = keeper(cx, f, kept.loc.key) else {
                continue;
            };
            for dep in kept.data.iter().filter(|d| !d.implicit && !d.asked) {
                let Source::Event(r) = dep.source else {
                    continue;
                };
                let Some(read) = summary.events.get(r as usize) else {
                    continue;
                };
                if read.loc.kind != ResourceKind::File
                    || read.act != Act::Read
                    || !at_start(read.trail.last().func)
                {
                    continue;
                }
                if let Some((file, class)) = file(cx, f, read.loc.key) {
                    let load = Load {
                        trail: Rc::clone(&read.trail),
                        site: read.site,
                        again: again(f) || again(read.trail.last().func),
                    };
                    // What calls do to it is known by the name that the function has for it.
                    if load.again && kept.call.is_some() {
                        continue;
                    }
                    note((keeper, file, class), load);
                }
            }
        }
    }
    for made in std::mem::take(&mut cx.made) {
        if !at_start(made.func) || role(cx, made.func) != FileRole::Product {
            continue;
        }
        for loaded in &made.loaded {
            if !at_start(loaded.trail.last().func) {
                continue;
            }
            let keeper = Keeper::Field(made.class, loaded.field);
            if !changes.changed.contains(&keeper) && !cx.is_holder_field(loaded.field) {
                continue;
            }
            let load = || Load {
                trail: Rc::clone(&loaded.trail),
                site: loaded.site,
                again: again(made.func) || again(loaded.trail.last().func),
            };
            // By what the object knows it, and by a name that everybody knows.
            if let Some((file, own)) = of_object(cx, &made, loaded.file) {
                note((keeper, file, own.then_some(made.class)), load());
            }
            if let Some((file, None)) = file(cx, made.func, loaded.file) {
                note((keeper, file, None), load());
            }
        }
    }
    out
}

/// A file's name in terms of the object that is made: what its fields hold is known by them.
fn of_object(cx: &mut Context<'_, '_>, made: &Made, key: Sym) -> Option<(Sym, bool)> {
    let this = cx.syms.make(SymKind::This);
    if let Some((field, _)) = made.fields.iter().find(|(_, value)| *value == key) {
        return Some((cx.syms.make(SymKind::Field(this, *field)), true));
    }
    let key = cx
        .syms
        .rewrite(key, &mut FxHashMap::default(), &mut |syms, s| {
            let (field, _) = made.fields.iter().find(|(_, value)| *value == s)?;
            Some(syms.make(SymKind::Field(this, *field)))
        });
    is_common(cx, key).map(|own| (key, own))
}

/// The load of the copy that a write writes back.
fn loaded<'l>(
    cx: &mut Context<'_, '_>,
    f: FuncId,
    write: &Event,
    loads: &'l Loads,
) -> Option<&'l Load> {
    let value = write.value?;
    let (file, class) = file(cx, f, write.loc.key)?;
    if cx.is_own_to_process(write.loc.key) {
        return None;
    }
    let mut stack = vec![value];
    let mut budget = 256;
    while let Some(s) = stack.pop() {
        if let Some(keeper) = keeper(cx, f, s)
            && let Some(load) = loads.get(&(keeper, file, class))
        {
            return Some(load);
        }
        budget -= 1;
        if budget == 0 {
            return None;
        }
        sym::for_each_child(cx.syms.kind(s), |c| stack.push(c));
    }
    None
}

/// Of an entry or a part, what holds it.
fn keeper(cx: &Context<'_, '_>, f: FuncId, place: Sym) -> Option<Keeper> {
    let mut at = place;
    let mut found = None;
    loop {
        match *cx.syms.kind(at) {
            SymKind::Index(base, _) | SymKind::Element(base) => at = base,
            SymKind::Field(base, name) => {
                if matches!(cx.syms.kind(base), SymKind::This) {
                    let class = crate::roots::enclosing_class(cx, f)?;
                    found = Some(Keeper::Field(class, name));
                }
                at = base;
            }
            SymKind::VarLoc(cell) | SymKind::Cell(cell) => {
                return cx.is_module_cell(cell).then_some(Keeper::Variable(cell));
            }
            _ => return found,
        }
    }
}

/// A file's name, if it means the same in every function: made of constants,
/// of variables of modules, or of fields of one class.
fn file(cx: &mut Context<'_, '_>, f: FuncId, key: Sym) -> Option<(Sym, Option<ClassId>)> {
    let key = by_fields(cx, f, key);
    let class = if is_common(cx, key)? {
        Some(crate::roots::enclosing_class(cx, f)?)
    } else {
        None
    };
    Some((key, class))
}

/// Is a name made of nothing that only one call knows? Then: of fields of `this`, too?
fn is_common(cx: &Context<'_, '_>, key: Sym) -> Option<bool> {
    let mut own = false;
    let mut stack = vec![key];
    let mut budget = 64;
    while let Some(s) = stack.pop() {
        budget -= 1;
        match cx.syms.kind(s) {
            SymKind::This => own = true,
            SymKind::Cell(cell) | SymKind::VarLoc(cell) if cx.is_module_cell(*cell) => {}
            SymKind::Cell(_)
            | SymKind::VarLoc(_)
            | SymKind::Param(_)
            | SymKind::Unknown(_)
            | SymKind::Fresh(_)
            | SymKind::New(..)
            | SymKind::Handle(_) => return None,
            kind => sym::for_each_child(kind, |c| stack.push(c)),
        }
        if budget == 0 {
            return None;
        }
    }
    Some(own)
}

/// In a constructor, what it was given is in the fields that it puts it into.
fn by_fields(cx: &mut Context<'_, '_>, f: FuncId, key: Sym) -> Sym {
    let function = cx.program.function(f);
    if function.kind != FuncKind::Constructor {
        return key;
    }
    let mut kept: FxHashMap<u32, Name> = FxHashMap::default();
    for inst in function.blocks.iter().flat_map(|b| &b.insts) {
        if let Op::SetField { field, value, .. } = &inst.op
            && let Some(i) = function.params.iter().position(|p| p == value)
        {
            kept.entry(i as u32).or_insert(*field);
        }
    }
    let this = cx.syms.make(SymKind::This);
    cx.syms
        .rewrite(key, &mut FxHashMap::default(), &mut |syms, s| {
            let SymKind::Param(i) = *syms.kind(s) else {
                return None;
            };
            let field = *kept.get(&i)?;
            Some(syms.make(SymKind::Field(this, field)))
        })
}
