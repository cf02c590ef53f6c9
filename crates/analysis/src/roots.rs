//! Where calls come in: handlers, what is started, what nobody is seen to call;
//! by how many threads, and what they share.

use rustc_hash::{FxHashMap, FxHashSet};
use toctou_core::finding::{EntryKind, ResourceKind};
use toctou_core::ir::{
    ClassId, Dispatch, ExportTarget, FuncId, FuncKind, Literal, Op, Program, Target, Var,
};
use toctou_core::{Name, Span};

use crate::context::{Context, FoundEntry, Thread};
use crate::effect::Window;
use crate::order;
use crate::sym::{Sym, SymKind};

pub(crate) fn has_threads(cx: &Context<'_, '_>, root: &FoundEntry) -> bool {
    let module = cx.program.function_module[root.handler.0 as usize];
    matches!(
        cx.program.modules[module.0 as usize].dispatch,
        Dispatch::Threads { .. }
    )
}

/// Does some wrapper run what it was given in a thread, and is not seen to be
/// given anything? Then handlers may be what a library gives it.
pub(crate) fn offloads_unknown(cx: &Context<'_, '_>) -> bool {
    cx.summaries.iter().flatten().any(|summary| {
        summary.sym_calls.iter().any(|call| {
            let SymKind::Cell(cell) = *cx.syms.kind(call.callee) else {
                return false;
            };
            call.thread
                && cx
                    .points_to
                    .functions(cell.owner, cell.var)
                    .next()
                    .is_none()
        })
    })
}

/// Does the handler have a thread of its own, and is that sure?
pub(crate) fn thread_of(cx: &Context<'_, '_>, root: &FoundEntry, offloads: bool) -> Option<bool> {
    let is_async = cx.program.function(root.handler).is_async;
    match root.thread {
        Some(Thread::All) => return Some(true),
        Some(Thread::Synchronous) => return (!is_async).then_some(true),
        None => {}
    }
    if is_async || !is_served(root.kind) || root.serial {
        return None;
    }
    let module = cx.program.function_module[root.func.0 as usize];
    match cx.program.modules[module.0 as usize].dispatch {
        Dispatch::Threads {
            handlers: Some(true),
        } => Some(true),
        Dispatch::Threads { handlers: None } => Some(false),
        Dispatch::Threads { .. } if offloads => Some(false),
        _ => None,
    }
}

/// How many handlers of this kind are under way at once, if that is bounded.
/// Routes are served by somebody else than the SDK.
pub(crate) fn handlers_at_once(cx: &Context<'_, '_>, root: &FoundEntry) -> Option<u32> {
    let module = cx.program.function_module[root.func.0 as usize];
    match cx.program.modules[module.0 as usize].dispatch {
        Dispatch::Bounded { handlers } if is_served(root.kind) && root.kind != EntryKind::Route => {
            Some(handlers)
        }
        _ => None,
    }
}

pub(crate) fn is_served(kind: EntryKind) -> bool {
    matches!(
        kind,
        EntryKind::Tool
            | EntryKind::Resource
            | EntryKind::Prompt
            | EntryKind::Request
            | EntryKind::Route
    )
}

/// Classes of the program that extend a library's handler class, or have its methods.
pub(crate) fn class_entries(cx: &mut Context<'_, '_>) {
    let program = cx.program;
    for (c, class) in program.classes.iter().enumerate() {
        let mut models: Vec<toctou_models::ClassEntryModelRef> = Vec::new();
        if let Some(crate::linkage::TypeTarget::Ext(e)) = cx.linkage.superclass(ClassId(c as u32)) {
            let extended = cx.library.class_entries(e, &cx.entities, &cx.names);
            models.extend(extended.iter().cloned());
        }
        let has = |m: &String| class.methods.iter().any(|(n, _)| cx.names.text(*n) == m);
        if !class.is_interface {
            let any = cx.library.any_class_entries().iter();
            models.extend(any.filter(|model| model.methods.iter().all(has)).cloned());
        }
        for model in models {
            for (name, f) in &class.methods {
                if model.methods.iter().any(|m| m == cx.names.text(*name)) {
                    cx.entries.push(FoundEntry {
                        kind: model.kind,
                        name: Some(cx.names.text(class.name).to_owned()),
                        handler: *f,
                        func: *f,
                        span: program.function(*f).name_span,
                        dispatches: false,
                        thread: None,
                        serial: false,
                    });
                }
            }
        }
    }
}

/// What a runtime calls of what a module exports: methods of an object (`export default { fetch }`),
/// or, where files are handlers, the function itself.
pub(crate) fn export_entries(cx: &mut Context<'_, '_>) {
    let program = cx.program;
    for module in &program.modules {
        let imports = |modules: &[String]| {
            let names = module.imports.iter().map(|i| cx.names.text(i.specifier));
            names
                .into_iter()
                .any(|name| modules.iter().any(|m| m == name))
        };
        for (export, target) in &module.exports {
            let ExportTarget::Local(var) = target else {
                continue;
            };
            let named = |list: &[String], name| list.iter().any(|n| n == cx.names.text(name));
            let mut found: Vec<(EntryKind, Name, FuncId)> = Vec::new();
            for (modules, model) in cx.library.export_entries() {
                if model.methods.is_empty() && named(&model.names, *export) && imports(modules) {
                    let funcs = cx.points_to.functions(module.init, *var);
                    found.extend(funcs.map(|f| (model.kind, program.function(f).name, f)));
                }
            }
            for (method, f) in cx.points_to.function_fields(module.init, *var) {
                let mut models = cx.library.export_entries();
                let model =
                    models.find(|(_, m)| named(&m.names, *export) && named(&m.methods, method));
                found.extend(model.map(|(_, m)| (m.kind, method, f)));
            }
            for (kind, name, f) in found {
                cx.entries.push(FoundEntry {
                    kind,
                    name: Some(cx.names.text(name).to_owned()),
                    handler: f,
                    func: f,
                    span: program.function(f).name_span,
                    dispatches: false,
                    thread: None,
                    serial: false,
                });
            }
        }
    }
}

/// Functions that are handlers because of what they are marked with.
pub(crate) fn marked_entries(cx: &mut Context<'_, '_>) {
    let program = cx.program;
    for (f, function) in program.functions.iter().enumerate() {
        let id = FuncId(f as u32);
        for mark in &function.decorators {
            let ty = toctou_core::ir::TypeRef {
                name: *mark,
                element: None,
            };
            let Some(crate::linkage::TypeTarget::Ext(e)) = cx.linkage.type_target(
                program,
                program.function_module[f],
                &ty,
                &mut cx.names,
                &mut cx.entities,
            ) else {
                continue;
            };
            let text = cx.names.text(function.name).to_owned();
            let shown = program.qualified_name(id);
            for model in cx.library.marked_entries(e, &cx.entities, &cx.names) {
                if !model.methods.is_empty() && !model.methods.contains(&text) {
                    continue;
                }
                cx.entries.push(FoundEntry {
                    kind: model.kind,
                    name: (!model.dispatches).then(|| {
                        if model.methods.is_empty() {
                            text.clone()
                        } else {
                            shown.clone()
                        }
                    }),
                    handler: id,
                    func: id,
                    span: function.name_span,
                    dispatches: model.dispatches,
                    thread: None,
                    serial: false,
                });
            }
        }
    }
}

/// Who imports whom, in both directions.
fn module_neighbours(program: &Program) -> Vec<Vec<u32>> {
    let mut near: Vec<Vec<u32>> = vec![Vec::new(); program.modules.len()];
    for (m, module) in program.modules.iter().enumerate() {
        let targets = module
            .imports
            .iter()
            .map(|i| i.target.as_ref())
            .chain(module.exports.iter().map(|(_, e)| match e {
                ExportTarget::From { target, .. } => target.as_ref(),
                ExportTarget::Local(_) => None,
            }))
            .chain(module.star_exports.iter().map(|(_, t)| t.as_ref()));
        for target in targets.flatten() {
            if let Target::Module(t) = target {
                near[m].push(t.0);
                near[t.0 as usize].push(m as u32);
            }
        }
    }
    near
}

/// For every module the first one of those that it is connected with by imports.
pub(crate) fn module_groups(program: &Program) -> Vec<u32> {
    let near = module_neighbours(program);
    let mut group = vec![u32::MAX; near.len()];
    for first in 0..near.len() as u32 {
        let mut work = vec![first];
        while let Some(m) = work.pop() {
            if group[m as usize] == u32::MAX {
                group[m as usize] = first;
                work.extend(&near[m as usize]);
            }
        }
    }
    group
}

/// Does the program register handlers? If not, exported functions stand for them.
pub(crate) fn is_server(roots: &[FoundEntry]) -> bool {
    roots.iter().any(|root| is_served(root.kind))
}

/// Handlers; start-up code; and functions that nobody is seen to call.
pub(crate) fn roots(cx: &Context<'_, '_>, entries: Vec<FoundEntry>) -> Vec<FoundEntry> {
    let mut roots = entries;
    roots.sort_by(|a, b| {
        (a.func, a.span, a.handler, &a.name).cmp(&(b.func, b.span, b.handler, &b.name))
    });
    let handlers: FxHashSet<FuncId> = roots.iter().map(|r| r.handler).collect();
    for (f, function) in cx.program.functions.iter().enumerate() {
        let id = FuncId(f as u32);
        if cx.summaries[f].is_none() {
            continue;
        }
        if function.kind == FuncKind::ModuleInit {
            roots.push(startup(cx, id));
            continue;
        }
        if handlers.contains(&id) || cx.entered.contains(&id) {
            continue;
        }
        // Who would call it, and on what?
        let module = cx.program.function_module[f];
        if cx.program.modules[module.0 as usize].closed && cx.started.has_no_object(function) {
            continue;
        }
        roots.push(FoundEntry {
            kind: EntryKind::Export,
            name: Some(cx.program.qualified_name(id)),
            handler: id,
            func: id,
            span: function.name_span,
            dispatches: false,
            thread: None,
            serial: false,
        });
    }
    roots
}

/// A wrapper calls what it was made with: `server.tool("x", timed(handler))`.
/// Where the analysis lost sight of which function that is, all that were ever
/// given to the wrapper are taken to be reached by it. Comes back: wrappers, and
/// what they call for one handler and not for the others.
pub(crate) fn wrapped(
    cx: &Context<'_, '_>,
    roots: &mut Vec<FoundEntry>,
) -> FxHashSet<(FuncId, FuncId)> {
    const MAX_EACH: usize = 256;
    let names = names_beside(cx.program);
    let mut registered: FxHashMap<(FuncId, Span), Vec<FuncId>> = FxHashMap::default();
    for root in roots.iter() {
        let at = (root.func, root.span);
        registered.entry(at).or_default().push(root.handler);
    }
    let mut told: FxHashSet<(FuncId, FuncId)> = FxHashSet::default();
    let mut lost: FxHashSet<FuncId> = FxHashSet::default();
    let mut seen: FxHashSet<(FuncId, FuncId, Span)> = FxHashSet::default();
    let mut at = 0;
    let first = roots.len();
    while at < roots.len() && roots.len() < first + 4_096 {
        let root = roots[at].clone();
        at += 1;
        for given in given_to(cx, &root) {
            let same = registered.get(&(root.func, root.span));
            let says = |f: &FuncId| *f != root.handler && given.contains(f);
            if same.is_some_and(|handlers| handlers.iter().any(says)) {
                told.extend(given.iter().map(|f| (root.handler, *f)));
                continue;
            }
            lost.insert(root.handler);
            for f in given.into_iter().take(MAX_EACH) {
                if seen.insert((f, root.func, root.span)) {
                    let beside = names.get(&f).map(|name| cx.names.text(*name).to_owned());
                    roots.push(FoundEntry {
                        handler: f,
                        name: root.name.clone().or(beside),
                        ..root.clone()
                    });
                }
            }
        }
    }
    told.retain(|(wrapper, _)| !lost.contains(wrapper));
    told
}

/// `register(server, "add", {}, async (args) => …)`: the text that a function is handed on with.
fn names_beside(program: &Program) -> FxHashMap<FuncId, Name> {
    let mut out = FxHashMap::default();
    for function in &program.functions {
        let mut texts: FxHashMap<Var, Name> = FxHashMap::default();
        let mut funcs: FxHashMap<Var, FuncId> = FxHashMap::default();
        for inst in function.blocks.iter().flat_map(|b| &b.insts) {
            match &inst.op {
                Op::Const {
                    dst,
                    value: Literal::Str(text),
                } => {
                    texts.insert(*dst, *text);
                }
                Op::Func { dst, func } => {
                    funcs.insert(*dst, *func);
                }
                Op::Call { args, .. } => {
                    let text = args.iter().find_map(|a| texts.get(&a.value));
                    let given = args.iter().filter_map(|a| funcs.get(&a.value));
                    if let Some(text) = text {
                        out.extend(given.map(|f| (*f, *text)));
                    }
                }
                _ => {}
            }
        }
    }
    out
}

/// What a handler's makers were given, for each variable that it calls.
fn given_to(cx: &Context<'_, '_>, root: &FoundEntry) -> Vec<Vec<FuncId>> {
    let Some(summary) = &cx.summaries[root.handler.0 as usize] else {
        return Vec::new();
    };
    if !is_served(root.kind) {
        return Vec::new();
    }
    let open = summary.sym_calls.iter().filter(|c| c.locks.is_empty());
    open.filter_map(|call| match *cx.syms.kind(cx.syms.root(call.callee)) {
        SymKind::Cell(cell) => Some(cx.points_to.functions(cell.owner, cell.var).collect()),
        _ => None,
    })
    .collect()
}

fn startup(cx: &Context<'_, '_>, id: FuncId) -> FoundEntry {
    FoundEntry {
        kind: EntryKind::Startup,
        name: Some(cx.program.file_of(id).path.to_string()),
        handler: id,
        func: id,
        span: Span::new(0, 0),
        dispatches: false,
        thread: None,
        serial: false,
    }
}

/// Functions that run once per call of a handler, and classes that live no longer than that.
pub(crate) struct Activations {
    pub(crate) functions: Vec<bool>,
    pub(crate) short_lived: FxHashSet<ClassId>,
}

pub(crate) fn activations(
    cx: &Context<'_, '_>,
    roots: &[FoundEntry],
    edges: &[Vec<u32>],
) -> Activations {
    let handlers = roots
        .iter()
        .filter(|r| r.kind != EntryKind::Startup && r.kind != EntryKind::Export)
        .map(|r| r.handler);
    let functions = order::reachable(edges, handlers);
    let mut inside: FxHashSet<ClassId> = FxHashSet::default();
    let mut outside: FxHashSet<ClassId> = FxHashSet::default();
    for (f, function) in cx.program.functions.iter().enumerate() {
        if cx.summaries[f].is_none() {
            continue;
        }
        let mut call = 0;
        for inst in function.blocks.iter().flat_map(|b| &b.insts) {
            let kind = match &inst.op {
                Op::Call { kind, .. } => *kind,
                Op::TaggedTemplate { .. } => toctou_core::ir::CallKind::Plain,
                _ => continue,
            };
            if kind == toctou_core::ir::CallKind::New {
                for t in cx.points_to.targets(FuncId(f as u32), call).0 {
                    if let Some(class) = cx.program.function(*t).class {
                        if functions[f] {
                            inside.insert(class);
                        } else {
                            outside.insert(class);
                        }
                    }
                }
            }
            call += 1;
        }
    }
    Activations {
        functions,
        short_lived: inside.difference(&outside).copied().collect(),
    }
}

/// Can two calls of this entry point (or of two of them) mean the same place?
pub(crate) fn is_shared(
    cx: &Context<'_, '_>,
    w: &Window,
    root: &FoundEntry,
    activations: &Activations,
) -> bool {
    if w.loc.kind != ResourceKind::Memory {
        // Of objects that nobody is seen to make, only what all of them share counts.
        return root.kind != EntryKind::Export || !is_constructor(cx, root.handler);
    }
    let module = cx.program.function_module[w.meet.0 as usize];
    let threads = cx.program.modules[module.0 as usize]
        .dispatch
        .is_unguarded();
    // Where nobody gives way, all code that changes anything would be suspect:
    // that somebody took a lock for it says that threads share it.
    if threads && root.kind == EntryKind::Export && w.partial.is_none() {
        return false;
    }
    is_shared_place(cx, w, w.loc.key, root, activations)
}

/// The same for a thing in memory, by the place where it is kept.
pub(crate) fn is_shared_place(
    cx: &Context<'_, '_>,
    w: &Window,
    place: Sym,
    root: &FoundEntry,
    activations: &Activations,
) -> bool {
    let module = cx.program.function_module[w.meet.0 as usize];
    let threads = cx.program.modules[module.0 as usize]
        .dispatch
        .is_unguarded();
    match cx.syms.kind(cx.syms.root(place)) {
        SymKind::VarLoc(cell) | SymKind::Cell(cell) => {
            // A variable of a function that this call runs is this call's.
            let mut ours = root.handler == cell.owner || w.meet == cell.owner;
            let mut at = w.path.as_ref();
            while let Some(frame) = at {
                ours |= frame.func == cell.owner;
                at = frame.next.as_ref();
            }
            cx.is_module_cell(*cell)
                || !(activations.functions[cell.owner.0 as usize] || threads && ours)
        }
        // An object that is being made is its maker's.
        SymKind::This if is_constructor(cx, root.handler) => false,
        // So is one that a call makes for itself, unless it is made for sharing: what is there
        // first at the first call, and kept then, has a lock inside for those that come later.
        SymKind::This => {
            let class = enclosing_class(cx, root.handler);
            class.is_none_or(|c| !activations.short_lived.contains(&c))
                || cx.is_behind_holder(place, root.handler)
        }
        // What a class has for all its objects.
        SymKind::Class(_) => true,
        // What a handler is given is its own, unless it is made for sharing.
        SymKind::Param(_) => cx.is_behind_holder(place, root.handler),
        _ => false,
    }
}

pub(crate) fn is_constructor(cx: &Context<'_, '_>, f: FuncId) -> bool {
    cx.program.function(f).kind == FuncKind::Constructor
}

pub(crate) fn enclosing_class(cx: &Context<'_, '_>, f: FuncId) -> Option<ClassId> {
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

/// A handler that is registered under a name is no second one where it was only made.
pub(crate) fn drop_nameless(cx: &mut Context<'_, '_>) {
    let named: FxHashSet<FuncId> = cx
        .entries
        .iter()
        .filter(|e| e.name.is_some())
        .map(|e| e.handler)
        .collect();
    cx.entries
        .retain(|e| e.name.is_some() || e.kind != EntryKind::Route || !named.contains(&e.handler));
}
