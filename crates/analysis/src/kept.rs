//! State that a process keeps: loaded from a file when it starts, changed in
//! memory by its calls, and written back whole. Within the process all calls
//! share the copy, so nothing is lost; but a second process has a copy of its
//! own, and each writes over what the other has added since both were started.
//!
//! The load and the write are in different calls, often far apart, so no
//! function sees both: this looks at the whole program, when all summaries are
//! there. Where a call loads the file itself, be it only the first time, the
//! ordinary windows have it.

use std::rc::Rc;

use rustc_hash::{FxHashMap, FxHashSet};
use toctou_core::finding::{EntryKind, ResourceKind};
use toctou_core::ir::{Cell, ClassId, FuncId, FuncKind, Op};
use toctou_core::{FileRole, Name, Span};
use toctou_models::Mode;

use crate::context::{Context, FoundEntry};
use crate::effect::{Act, Event, Source, Trail, Window};
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
    let at_start = |f: FuncId| begun[f.0 as usize] && !called[f.0 as usize];
    let changed = changed(cx, &called);
    let loads = loads(cx, at_start, &changed);
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

/// Fields that calls change. What was only read when the process started is the same for all.
fn changed(cx: &Context<'_, '_>, called: &[bool]) -> FxHashSet<Keeper> {
    let mut out = FxHashSet::default();
    for f in (0..cx.summaries.len() as u32).map(FuncId) {
        let Some(summary) = cx.summaries[f.0 as usize].as_ref() else {
            continue;
        };
        if !called[f.0 as usize] {
            continue;
        }
        for event in &summary.events {
            if event.loc.kind == ResourceKind::Memory
                && event.act.is_write()
                && let Some(keeper) = keeper(cx, f, event.loc.key)
            {
                out.insert(keeper);
            }
        }
    }
    out
}

fn loads(
    cx: &mut Context<'_, '_>,
    at_start: impl Fn(FuncId) -> bool,
    changed: &FxHashSet<Keeper>,
) -> Loads {
    let mut out = Loads::default();
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
                    out.entry((keeper, file, class)).or_insert(Load {
                        trail: Rc::clone(&read.trail),
                        site: read.site,
                    });
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
            if !changed.contains(&keeper) && !cx.is_holder_field(loaded.field) {
                continue;
            }
            let load = || Load {
                trail: Rc::clone(&loaded.trail),
                site: loaded.site,
            };
            // By what the object knows it, and by a name that everybody knows.
            if let Some((file, own)) = of_object(cx, &made, loaded.file) {
                let class = own.then_some(made.class);
                out.entry((keeper, file, class)).or_insert_with(load);
            }
            if let Some((file, None)) = file(cx, made.func, loaded.file) {
                out.entry((keeper, file, None)).or_insert_with(load);
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
