//! Which windows clients can reach, and by which way: the analysis's answer.

use std::rc::Rc;

use rustc_hash::{FxHashMap, FxHashSet};
use toctou_core::finding::{EntryKind, ResourceKind};
use toctou_core::ir::FuncId;
use toctou_core::{FileRole, Name, Span};
use toctou_models::{LockScope, Mode};

use crate::context::{Context, DefectKind, FoundEntry, Thread};
use crate::effect::{Act, Frame, Loc, Lock, Row, Window};
use crate::order;
use crate::place::plain;
use crate::roots::{
    activations, handlers_at_once, has_threads, is_constructor, is_served, is_server, is_shared,
    is_shared_place, module_groups, offloads_unknown, roots, thread_of, wrapped,
};
use crate::sym::{Sym, SymKind};

/// A place in the program.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Spot {
    pub func: FuncId,
    pub span: Span,
}

/// How a client gets to a window.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Reach {
    pub kind: EntryKind,
    pub name: String,
    pub registered: Spot,
    /// Functions on the way, the handler first, the meeting function last.
    pub via: Vec<FuncId>,
}

#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct RowFacts {
    pub columns: Vec<String>,
    pub relative: Vec<String>,
    pub conditions: Vec<String>,
    pub insert: bool,
    pub locking: bool,
    pub returning: bool,
    pub aggregate: bool,
    pub unique: bool,
    pub looked_at: bool,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LockFacts {
    pub key: String,
    pub host: bool,
    pub lease: bool,
    pub transaction: bool,
    pub spot: Spot,
}

/// A window that is open, with everything a rule needs to know about it.
#[derive(Clone, Debug)]
pub struct ReachedWindow {
    pub kind: ResourceKind,
    /// The resource as the meeting function names it.
    pub key: String,
    pub entry: Option<String>,
    /// Calls from the meeting function to the access, the access last.
    pub read: Vec<Spot>,
    pub write: Vec<Spot>,
    pub read_act: Act,
    pub write_act: Act,
    pub write_mode: Mode,
    pub through_memory: bool,
    /// It was read when the process started, and kept in memory since.
    pub kept: bool,
    pub path_check: bool,
    /// The file that a snapshot of memory is written to.
    pub snapshot: Option<String>,
    /// The code round it has handlers that clients reach.
    pub in_server: bool,
    /// One process serves all clients, since it has the port.
    pub one_process: bool,
    pub meet: FuncId,
    pub gap: Option<Span>,
    pub data: bool,
    /// Whether the write happens depends on what was read.
    pub tested: bool,
    /// … by a comparison (`<`, `>=`).
    pub compared: bool,
    /// … with a limit, and then there is one more of it.
    pub counted: bool,
    /// … and it is made less by as much as there had to be.
    pub spent: bool,
    /// It is a number that is reckoned from what was read.
    pub reckoned: bool,
    /// One of several states was looked for, and another is set.
    pub passed_on: bool,
    /// Only where there is a value already is it replaced.
    pub renews: bool,
    /// It is made anew because it was too old.
    pub aged: bool,
    /// It is removed because it was too old, and used otherwise.
    pub expired: bool,
    /// What is stored under a name is made from what the name is made from, and handed out
    /// where it is there already.
    pub memo: bool,
    /// Others change parts of what is in this place.
    pub changed_within: bool,
    /// A place is found empty and filled at once: only threads can come between.
    /// Something is started between them that does not end by itself.
    pub opens: bool,
    pub latched: bool,
    /// The server has been here before it lets anybody in.
    pub early: bool,
    pub keyed: bool,
    pub checked: Vec<String>,
    /// Of what was checked, somebody in the program changes something.
    pub checked_changes: bool,
    /// What of it is set when the program makes the row, and by no statement after that.
    pub checked_final: Vec<String>,
    /// Those that a statement of the program is seen to set in rows that are there.
    pub checked_changed: Vec<String>,
    /// Attributes of what was read that a condition beside the write asks about.
    pub weighed: Vec<String>,
    /// Attributes of what was read that are in what is written; `None` if it may be all of it.
    pub carried: Option<Vec<String>>,
    pub read_row: Option<RowFacts>,
    pub write_row: Option<RowFacts>,
    pub constant: bool,
    /// Everybody writes the same there.
    pub alike: bool,
    /// The place is emptied: `null`, `false`.
    pub clears: bool,
    /// The file that is removed is a lock that is taken afterwards.
    pub steals: bool,
    pub in_process: bool,
    pub cross_process: bool,
    pub accidental: bool,
    pub closed_by: Option<LockFacts>,
    /// A lock closes it, unless it was waited for in vain and all the same gone on.
    pub hoped: bool,
    /// It is all in one transaction, on a connection that other calls use as well.
    pub shared_connection: bool,
    pub partial: Option<LockFacts>,
    pub other_writes: bool,
    /// What was read is what the function gives back, and is plain data: a cache.
    pub given_back: bool,
    pub duck: bool,
    pub detached: bool,
    pub write_in_handler: bool,
    pub puts_back: bool,
    /// What was read is handed on, and then the place is emptied.
    pub drains: bool,
    /// What was read is changed and given, whole, to the call that writes it.
    pub handed_back: bool,
    /// The same server changes what paths lead to: it makes links, moves, runs commands.
    pub relinked: bool,
    /// All that was looked at is what kind of thing it is, or how old.
    pub aside: bool,
    /// The write happens where the check said yes (`true`) or no (`false`).
    pub write_positive: Option<bool>,
    /// It was read, deleted in any case, and judged only then.
    pub taken: bool,
    /// Where the write does not happen, the caller is told no.
    pub refuses: bool,
    /// The read decided only whether to wait before the write.
    pub waits: bool,
    /// In no other function does what was read there come to a write of it.
    pub lone: bool,
    pub reached_by: Vec<Reach>,
    pub role: FileRole,
}

/// A flaw that is not a window.
#[derive(Clone, Debug)]
pub struct Defect {
    pub kind: DefectKind,
    pub spot: Spot,
    /// The step before it that it goes with.
    pub first: Option<Spot>,
    pub resource: ResourceKind,
    pub in_process: bool,
    pub cross_process: bool,
    pub duck: bool,
    /// A number or a truth value is set by one and read by others, and nobody loses any.
    pub word: bool,
    pub key: String,
    pub reached_by: Vec<Reach>,
    pub role: FileRole,
    /// The code round it has handlers that clients reach.
    pub in_server: bool,
}

/// What the analysis found.
#[derive(Debug, Default)]
pub struct Analysis {
    pub windows: Vec<ReachedWindow>,
    pub defects: Vec<Defect>,
    pub entries: Vec<Reach>,
    unknown: Vec<(String, u32)>,
    /// Values that can be more functions or objects than were followed.
    pub cut_off: usize,
    /// Column sets that cannot be there twice, by table.
    pub unique: std::collections::BTreeMap<String, Vec<Vec<String>>>,
    /// Tables whose definition was seen.
    pub defined: std::collections::BTreeSet<String>,
}

impl Analysis {
    pub fn entry_point_count(&self) -> usize {
        self.entries.len()
    }

    /// Can no two rows of this table have the same in these columns?
    pub fn is_unique(&self, table: &str, columns: &[String]) -> bool {
        let columns: Vec<String> = columns.iter().map(|c| plain(c)).collect();
        let within =
            |set: &Vec<String>| !set.is_empty() && set.iter().all(|c| columns.contains(&plain(c)));
        let mut tables = self.unique.iter().filter(|(t, _)| is_same_table(t, table));
        tables.any(|(_, sets)| sets.iter().any(within))
    }

    /// Was the definition of this table seen?
    pub fn is_defined(&self, table: &str) -> bool {
        self.defined.iter().any(|t| is_same_table(t, table))
    }

    /// Library calls that no model speaks of, most frequent first.
    pub fn unknown_calls(&self) -> Vec<(String, u32)> {
        self.unknown.clone()
    }
}

/// One table has several names: `user_settings` in SQL, `prisma.userSettings` in the code, and
/// `UserSetting` as a class.
fn is_same_table(one: &str, other: &str) -> bool {
    let bare = |name: &str| {
        let name = plain(name.rsplit('.').next().unwrap_or(name));
        name.strip_suffix('s').map(str::to_owned).unwrap_or(name)
    };
    bare(one) == bare(other)
}

/// A task that a handler starts is reached by the handler: that it is a task of its own is no
/// other way to get there. Of one that something else starts, all that is to be said is that it
/// runs: who starts it does not do its work.
fn drop_started(list: &mut Vec<Reach>) {
    let passed: FxHashSet<FuncId> = (list.iter())
        .filter(|r| is_served(r.kind))
        .flat_map(|r| r.via.iter().copied())
        .collect();
    list.retain(|r| r.kind != EntryKind::Timer || !passed.contains(&r.registered.func));
    let started: FxHashSet<FuncId> = (list.iter())
        .filter(|r| r.kind == EntryKind::Timer)
        .map(|r| r.registered.func)
        .collect();
    list.retain(|r| {
        let starts = matches!(r.kind, EntryKind::Export | EntryKind::Startup);
        !starts || !r.via.iter().any(|f| started.contains(f))
    });
}

/// Entry points that a call graph can have before the rest is only counted.
const MAX_REACHES: usize = 60;

pub fn report(mut cx: Context<'_, '_>, edges: &[Vec<u32>]) -> Analysis {
    let mut entries = std::mem::take(&mut cx.entries);
    let asked = crate::requests::handlers(&cx, edges);
    // A task for each message: that it is a task is no other way to get there.
    entries.retain(|e| e.kind != EntryKind::Timer || !asked.iter().any(|r| r.handler == e.handler));
    entries.extend(asked);
    entries.extend(crate::requests::table_entries(&cx, &entries, edges));
    cx.started.set_apart(cx.program, &mut entries);
    cx.written = crate::alike::written(&cx);
    let mut roots = roots(&cx, entries);
    let told = wrapped(&cx, &mut roots);
    let unasked = |kind| matches!(kind, EntryKind::Export | EntryKind::Startup);
    let asked = roots.iter().filter(|r| !unasked(r.kind));
    let on_request = order::reachable(edges, asked.map(|r| r.handler));
    cx.early = crate::early::functions(&mut cx, &roots, &on_request);
    let activations = activations(&cx, &roots, edges);
    // A text that a client brings along can be any.
    let brought = |root: &FoundEntry| {
        let summary = cx.summaries[root.handler.0 as usize].as_ref();
        summary.is_some_and(|s| s.events.iter().any(|e| e.later.is_some()))
    };
    let mut called = roots.iter().filter(|r| r.kind != EntryKind::Export);
    cx.unread_statements |= called.any(brought);
    // What runs in threads that were started, beside handlers.
    let spawned = cx.plain.iter().flat_map(|p| &p.calls).filter(|c| c.spawned);
    let beside = order::reachable(edges, spawned.map(|c| c.callee));
    let offloads = offloads_unknown(&cx);
    let mut merged: FxHashMap<Key, usize> = FxHashMap::default();
    let mut windows: Vec<ReachedWindow> = Vec::new();
    let mut one_by_one: FxHashSet<usize> = FxHashSet::default();
    let mut asked: FxHashMap<usize, ForClients> = FxHashMap::default();
    for root in &roots {
        let Some(summary) = cx.summaries[root.handler.0 as usize].clone() else {
            continue;
        };
        let in_turn = handlers_at_once(&cx, root) == Some(1);
        let thread = thread_of(&cx, root, offloads);
        // A thread that is started once has nobody beside it who does the same.
        let lone = root.thread == Some(Thread::All)
            && root.kind == EntryKind::Timer
            && !activations.functions[root.func.0 as usize];
        for w in &summary.windows {
            let mut w = Rc::clone(w);
            let alone = lone && w.loc.kind == ResourceKind::Memory;
            if let Some(sure) = thread
                && w.accidental
                && !alone
            {
                let w = Rc::make_mut(&mut w);
                w.in_thread();
                w.duck |= !sure;
            }
            // Who makes one thread of his own for all his callers expects them to have theirs.
            if root.kind == EntryKind::Export && w.accidental && w.opens && has_threads(&cx, root) {
                let w = Rc::make_mut(&mut w);
                w.in_thread();
                w.duck = true;
            }
            // No thread comes here, so nobody does.
            if w.latched && !w.in_process {
                continue;
            }
            let beside = beside[w.meet.0 as usize];
            if root.serial || in_turn && !w.detached && w.in_process && !beside {
                let w = Rc::make_mut(&mut w);
                (w.in_process, w.accidental) = (false, false);
                if !w.cross_process {
                    continue;
                }
            }
            if let Some(connection) = w.connection
                && w.in_process
                && !is_shared_place(&cx, &w, connection, root, &activations)
            {
                let w = Rc::make_mut(&mut w);
                w.in_process = false;
                if !w.cross_process && !w.accidental {
                    continue;
                }
            }
            let w = &w;
            if !is_shared(&cx, w, root, &activations) {
                continue;
            }
            // A script that drives the product says nothing about who else does.
            let role = cx.program.file_of(root.handler).role;
            if role != FileRole::Product && role != cx.program.file_of(w.meet).role {
                continue;
            }
            let reach = reach_of(&cx, root, w);
            let key = Key {
                meet: w.meet,
                read: w.read.span,
                write: w.write.span,
                deep_read: w.read.last().span,
                deep_write: w.write.last().span,
            };
            if is_served(root.kind) {
                let i = merged.get(&key).copied().unwrap_or(windows.len());
                asked.entry(i).or_default().meet(&cx, w);
            }
            match merged.get(&key) {
                // Where clients get in one after the other, that `main` leads there too says
                // nothing about others at the same time.
                Some(i) if one_by_one.contains(i) && !is_served(root.kind) => {}
                Some(&i) => {
                    if !root.serial {
                        one_by_one.remove(&i);
                    }
                    merge(&mut windows[i], w, reach, &cx);
                }
                None => {
                    if root.serial {
                        one_by_one.insert(windows.len());
                    }
                    merged.insert(key, windows.len());
                    windows.push(reached(&cx, w, reach));
                }
            }
        }
    }
    for (i, clients) in asked {
        clients.settle(&mut windows[i]);
    }
    let callers = order::reverse(edges);
    for w in crate::kept::windows(&mut cx, &roots, edges) {
        let leads = order::reachable(&callers, [w.meet]);
        let mut reach = roots
            .iter()
            .filter(|r| is_served(r.kind) && leads[r.handler.0 as usize])
            .map(|root| reach_of(&cx, root, &w));
        let Some(first) = reach.next() else { continue };
        let mut found = reached(&cx, &w, first);
        found.kept = true;
        found.reached_by.extend(reach);
        windows.push(found);
    }
    let in_server = is_server(&roots);
    let one_process = crate::early::is_one_process(&cx);
    let group = module_groups(cx.program);
    let group_of = |f: FuncId| group[cx.program.function_module[f.0 as usize].0 as usize];
    let relinked: FxHashSet<u32> = cx
        .relinkers
        .iter()
        .filter(|f| cx.program.file_of(**f).role == FileRole::Product)
        // What runs at start, or from a command line, is not the client's to use.
        .filter(|f| activations.functions[f.0 as usize])
        .map(|f| group_of(*f))
        .collect();
    for w in &mut windows {
        w.relinked = relinked.contains(&group_of(w.meet));
        w.in_server = in_server;
        w.one_process = one_process;
        drop_started(&mut w.reached_by);
        w.reached_by.sort();
        w.reached_by
            .dedup_by(|a, b| a.kind == b.kind && a.name == b.name && a.registered == b.registered);
        w.reached_by.truncate(MAX_REACHES);
    }
    windows.sort_by_key(|w| {
        (
            w.write.first().copied(),
            w.read.first().copied(),
            w.write.last().copied(),
            w.read.last().copied(),
        )
    });
    drop_echoes(&mut windows);
    mark_lone(&mut windows);
    // What a wrapper calls for one handler, it does not call for the others.
    let mut callers = order::reverse(edges);
    for (wrapper, handler) in told {
        callers[handler.0 as usize].retain(|c| *c != wrapper.0);
    }
    let defects = defects(&cx, &roots, &callers, in_server);
    let mut unknown: Vec<(String, u32)> = cx.unknown_calls.drain().collect();
    unknown.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    let mut listed: Vec<Reach> = roots
        .iter()
        .filter(|r| r.kind != EntryKind::Startup)
        .filter(|r| r.kind != EntryKind::Export || !is_constructor(&cx, r.handler))
        .map(|r| entry_reach(&cx, r, Vec::new()))
        .collect();
    listed.sort();
    listed.dedup();
    Analysis {
        windows,
        defects,
        entries: listed,
        unknown,
        cut_off: cx.points_to.cut_off(),
        unique: cx.unique.into_iter().collect(),
        defined: cx.defined,
    }
}

/// How a window stands where clients lead to it.
#[derive(Default)]
struct ForClients {
    open: bool,
    closed_by: Option<LockFacts>,
}

impl ForClients {
    fn meet(&mut self, cx: &Context<'_, '_>, w: &Window) {
        self.open |= w.in_process;
        if self.closed_by.is_none() {
            self.closed_by = w.closed_by.as_ref().map(|l| lock_facts(cx, l));
        }
    }

    /// A command that does the same without the lock is a process of its own, so no call meets
    /// it here.
    fn settle(self, w: &mut ReachedWindow) {
        let unasked = |r: &Reach| matches!(r.kind, EntryKind::Export | EntryKind::Startup);
        let ours = w.reached_by.iter().all(|r| is_served(r.kind) || unasked(r));
        if self.closed_by.is_some() && !self.open && w.in_process && ours {
            w.in_process = false;
            w.closed_by = self.closed_by;
        }
    }
}

/// Says of each window whether another function has one on the same thing.
fn mark_lone(windows: &mut [ReachedWindow]) {
    let mut meets: FxHashMap<(ResourceKind, String), Option<FuncId>> = FxHashMap::default();
    for w in windows.iter() {
        let one = meets.entry((w.kind, w.key.clone())).or_insert(Some(w.meet));
        if *one != Some(w.meet) {
            *one = None;
        }
    }
    for w in windows {
        let one = meets.get(&(w.kind, w.key.clone()));
        w.lone = one.is_some_and(Option::is_some);
    }
}

/// A value that a process keeps is read once and written from many places:
/// where the nearest pair is shown, the others say the same again.
fn drop_echoes(windows: &mut Vec<ReachedWindow>) {
    let mut nearest: FxHashMap<(Spot, Spot), usize> = FxHashMap::default();
    let ends = |w: &ReachedWindow| Some((*w.read.last()?, *w.write.last()?));
    for w in windows.iter() {
        if let Some(key) = ends(w) {
            let depth = w.read.len() + w.write.len();
            let best = nearest.entry(key).or_insert(depth);
            *best = (*best).min(depth);
        }
    }
    let mut rewritten: FxHashMap<_, bool> = FxHashMap::default();
    for w in windows.iter().filter(|w| w.write_mode == Mode::Rewrite) {
        let served = rewritten.entry(w.key.clone()).or_insert(false);
        *served |= is_reached(w);
    }
    // What all processes have open is one thing to mend, however often it is written.
    windows.retain(|w| {
        w.write_mode != Mode::Rewrite
            || match rewritten.get_mut(&w.key) {
                Some(served) if !*served || is_reached(w) => {
                    rewritten.remove(&w.key);
                    true
                }
                _ => false,
            }
    });
    windows.retain(|w| {
        !w.through_memory || ends(w).is_none_or(|key| nearest[&key] == w.read.len() + w.write.len())
    });
}

fn is_reached(w: &ReachedWindow) -> bool {
    w.reached_by.iter().any(|r| is_served(r.kind))
}

#[derive(PartialEq, Eq, Hash)]
struct Key {
    meet: FuncId,
    read: Span,
    write: Span,
    deep_read: Span,
    deep_write: Span,
}

fn entry_reach(cx: &Context<'_, '_>, root: &FoundEntry, via: Vec<FuncId>) -> Reach {
    Reach {
        kind: root.kind,
        name: root.name.clone().unwrap_or_else(|| handler_name(cx, root)),
        registered: Spot {
            func: root.func,
            span: root.span,
        },
        via,
    }
}

/// A name for a handler that was registered without one that we can read.
fn handler_name(cx: &Context<'_, '_>, root: &FoundEntry) -> String {
    let name = cx.program.qualified_name(root.handler);
    if !name.starts_with('<') {
        return name;
    }
    if root.dispatches && root.kind == EntryKind::Tool {
        return "tools/call".to_owned();
    }
    let file = cx.program.file_of(root.func);
    format!("{}:{}", file.path, file.line(root.span.start))
}

fn reach_of(cx: &Context<'_, '_>, root: &FoundEntry, w: &Window) -> Reach {
    let mut via = vec![root.handler];
    let mut at = w.path.as_ref();
    while let Some(frame) = at {
        if via.last() != Some(&frame.func) {
            via.push(frame.func);
        }
        at = frame.next.as_ref();
    }
    if via.last() != Some(&w.meet) {
        via.push(w.meet);
    }
    let mut reach = entry_reach(cx, root, via);
    if (root.dispatches || root.name.is_none())
        && let Some(label) = w.label
    {
        reach.name = cx.names.text(label).to_owned();
    }
    reach
}

fn spots(trail: &Rc<Frame>) -> Vec<Spot> {
    let mut out = Vec::new();
    let mut at = Some(trail);
    while let Some(frame) = at {
        out.push(Spot {
            func: frame.func,
            span: frame.span,
        });
        at = frame.next.as_ref();
    }
    out
}

fn row_facts(cx: &Context<'_, '_>, row: &Rc<Row>) -> RowFacts {
    let texts = |list: &[toctou_core::Name]| {
        list.iter()
            .map(|n| cx.names.text(*n).to_owned())
            .collect::<Vec<_>>()
    };
    RowFacts {
        columns: texts(&row.columns),
        relative: texts(&row.relative),
        conditions: row
            .conditions
            .iter()
            .map(|c| cx.names.text(c.0).to_owned())
            .collect(),
        insert: row.insert,
        locking: row.locking,
        returning: row.returning,
        aggregate: row.aggregate,
        unique: row.unique,
        looked_at: row.looked_at,
    }
}

/// May somebody change this column of rows that are there?
fn changes(cx: &Context<'_, '_>, w: &Window, column: Name) -> bool {
    // A table that is reached by a variable may have other names elsewhere.
    let named = matches!(cx.syms.kind(w.loc.key), SymKind::Str(_) | SymKind::Class(_));
    if w.loc.kind != ResourceKind::Row || !named {
        return true;
    }
    match cx.updated.get(&w.loc.key) {
        Some(Some(columns)) => columns.contains(&plain(cx.names.text(column))),
        Some(None) => true,
        None => false,
    }
}

/// A column that nobody ever changes is as it was when it was checked.
fn checked_changes(cx: &Context<'_, '_>, w: &Window) -> bool {
    w.checked.is_empty() || w.checked.iter().any(|c| changes(cx, w, *c))
}

/// Only who makes the rows of a table knows all that is done to them.
fn checked_final(cx: &Context<'_, '_>, w: &Window) -> Vec<String> {
    if cx.unread_statements || !cx.inserted.contains(&w.loc.key) {
        return Vec::new();
    }
    let same = w.checked.iter().filter(|c| !changes(cx, w, **c));
    same.map(|c| cx.names.text(*c).to_owned()).collect()
}

fn checked_changed(cx: &Context<'_, '_>, w: &Window) -> Vec<String> {
    let Some(Some(columns)) = cx.updated.get(&w.loc.key) else {
        return Vec::new();
    };
    let named = w.checked.iter().map(|c| cx.names.text(*c));
    let set = named.filter(|c| columns.contains(&plain(c)));
    set.map(str::to_owned).collect()
}

fn lock_facts(cx: &Context<'_, '_>, lock: &Rc<Lock>) -> LockFacts {
    LockFacts {
        key: cx.display(lock.key, lock.func),
        host: lock.scope == LockScope::Host,
        lease: lock.lease,
        transaction: lock.kind.is_transaction(),
        spot: Spot {
            func: lock.func,
            span: lock.span,
        },
    }
}

fn reached(cx: &Context<'_, '_>, w: &Rc<Window>, reach: Reach) -> ReachedWindow {
    let (key, entry) = names_at_meet(cx, w);
    ReachedWindow {
        kind: w.loc.kind,
        key,
        entry,
        read: spots(&w.read),
        write: spots(&w.write),
        read_act: w.read_act,
        write_act: w.write_act,
        write_mode: w.write_mode,
        through_memory: w.through_memory,
        kept: false,
        path_check: w.path_check,
        snapshot: w.snapshot.map(|s| cx.display(s, w.meet)),
        in_server: false,
        one_process: false,
        meet: w.meet,
        gap: w.gap,
        data: w.data,
        tested: w.tested,
        compared: w.compared,
        counted: w.counted,
        spent: w.spent,
        reckoned: w.reckoned,
        passed_on: w.passed_on,
        renews: w.renews,
        aged: w.aged,
        expired: w.expired,
        memo: w.memo,
        changed_within: match cx.syms.kind(w.loc.key) {
            SymKind::VarLoc(cell) => cx.changed_cells.contains(cell),
            SymKind::Field(_, name) => cx.changed_fields.contains(name),
            _ => false,
        },
        opens: w.opens,
        latched: w.latched,
        early: cx.early.contains(&w.meet) && is_one_place(cx, w),
        keyed: w.keyed,
        checked: w
            .checked
            .iter()
            .map(|n| cx.names.text(*n).to_owned())
            .collect(),
        checked_changes: checked_changes(cx, w),
        checked_final: checked_final(cx, w),
        checked_changed: checked_changed(cx, w),
        weighed: w
            .weighed
            .iter()
            .map(|c| cx.names.text(*c).to_owned())
            .collect(),
        carried: w.carried.as_ref().map(|names| {
            let texts = names.iter().map(|n| cx.names.text(*n).to_owned());
            texts.collect()
        }),
        read_row: w.read_row.as_ref().map(|r| row_facts(cx, r)),
        write_row: w.write_row.as_ref().map(|r| row_facts(cx, r)),
        constant: w.constant,
        alike: is_alike(cx, w),
        clears: w.clears,
        steals: w.steals,
        in_process: w.in_process && reach.kind != EntryKind::Startup,
        cross_process: w.cross_process,
        accidental: w.accidental,
        closed_by: w.closed_by.as_ref().map(|l| lock_facts(cx, l)),
        shared_connection: w.connection.is_some(),
        partial: w.partial.as_ref().map(|l| lock_facts(cx, l)),
        other_writes: w.other_writes,
        given_back: w.given_back,
        duck: w.duck,
        detached: w.detached,
        write_in_handler: w.write_in_handler,
        puts_back: w.puts_back,
        drains: w.drains,
        handed_back: w.handed_back,
        relinked: false,
        aside: w.aside,
        write_positive: w.positive,
        taken: w.taken,
        refuses: w.refuses,
        waits: w.waits,
        hoped: w.hoped,
        lone: false,
        role: cx.program.file_of(w.meet).role,
        reached_by: vec![reach],
    }
}

/// Is the place the same whoever calls the function where read and write meet? (Of memory, that
/// it has a name of its own is what makes it shared.)
fn is_one_place(cx: &Context<'_, '_>, w: &Rc<Window>) -> bool {
    let given = |part: Sym| matches!(cx.syms.kind(part), SymKind::Param(_) | SymKind::Unknown(_));
    w.loc.kind == ResourceKind::Memory || !cx.syms.any(meets_at(cx, w).key, given)
}

/// The place in the words of the function where read and write meet: the summary that holds the
/// window in its own terms.
fn meets_at(cx: &Context<'_, '_>, w: &Rc<Window>) -> Loc {
    let own = cx.summaries[w.meet.0 as usize]
        .as_ref()
        .and_then(|s| s.windows.iter().find(|o| o.id == w.id && o.path.is_none()));
    own.map_or(w.loc, |own| own.loc)
}

/// Does nobody write anything else there?
fn is_alike(cx: &Context<'_, '_>, w: &Window) -> bool {
    let name = crate::alike::name(&cx.syms, w.loc.key);
    w.alike && name.is_some_and(|name| !cx.written.contains(&name))
}

fn merge(into: &mut ReachedWindow, w: &Rc<Window>, reach: Reach, cx: &Context<'_, '_>) {
    into.in_process |= w.in_process && reach.kind != EntryKind::Startup;
    into.cross_process |= w.cross_process;
    into.alike &= is_alike(cx, w);
    into.hoped &= w.hoped;
    // The task itself waits for what it does; who starts it does not.
    if reach.kind != EntryKind::Timer && into.reached_by.iter().all(|r| r.kind == EntryKind::Timer)
    {
        into.detached = w.detached;
    }
    // Open on one way in: what closes it on another does not help.
    if w.closed_by.is_none() && w.in_process {
        into.closed_by = None;
    }
    if into.partial.is_none() {
        into.partial = w.partial.as_ref().map(|l| lock_facts(cx, l));
    }
    into.reached_by.push(reach);
}

fn names_at_meet(cx: &Context<'_, '_>, w: &Rc<Window>) -> (String, Option<String>) {
    let (loc, from) = (meets_at(cx, w), w.meet);
    let text = |s: Sym| cx.display(s, from);
    let key = match cx.syms.kind(loc.key) {
        SymKind::Str(n) => cx.names.text(*n).to_owned(),
        _ => text(loc.key),
    };
    let entry = loc.entry.and_then(|e| match cx.syms.kind(e) {
        SymKind::Object(fields) => fields
            .first()
            .map(|(n, v)| format!("{} = {}", cx.names.text(*n), cx.display(*v, from))),
        _ => Some(text(e)),
    });
    (key, entry)
}

fn defects(
    cx: &Context<'_, '_>,
    roots: &[FoundEntry],
    callers: &[Vec<u32>],
    in_server: bool,
) -> Vec<Defect> {
    let mut out: Vec<Defect> = Vec::new();
    let mut seen = FxHashSet::default();
    for d in &cx.defects {
        if !seen.insert((d.kind, d.func, d.span)) {
            continue;
        }
        // The place of a missing limit is a registration; what runs is below the handler.
        let at = match (d.kind, d.first) {
            (DefectKind::NoLimit, Some((func, _))) => func,
            _ => d.func,
        };
        let leads = order::reachable(callers, [at]);
        let mut reached_by: Vec<Reach> = roots
            .iter()
            .filter(|r| r.kind != EntryKind::Startup && leads[r.handler.0 as usize])
            .take(8)
            .map(|r| entry_reach(cx, r, vec![r.handler, at]))
            .collect();
        reached_by.sort();
        out.push(Defect {
            kind: d.kind,
            spot: Spot {
                func: d.func,
                span: d.span,
            },
            first: d.first.map(|(func, span)| Spot { func, span }),
            resource: d.resource,
            in_process: d.in_process,
            cross_process: d.cross_process,
            duck: d.duck,
            word: d.word,
            key: cx.display(d.key, d.func),
            role: cx.program.file_of(d.func).role,
            in_server,
            reached_by,
        });
    }
    out.sort_by_key(|d| d.spot);
    out
}
