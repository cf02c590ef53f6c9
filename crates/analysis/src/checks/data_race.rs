//! Memory that several threads use, with nothing that keeps them apart.
//!
//! From every place where a thread begins (handlers, `go` statements, and
//! methods that others may call) all calls are followed, with the locks that
//! are held on the way and with what is known to be the caller's own. Two
//! accesses of one variable, one of them a write, race if no lock is common to
//! both. That both happen at once must be plain: both are reached by clients,
//! or somebody took a lock for the same variable elsewhere, which says so.

use rustc_hash::{FxHashMap, FxHashSet};
use toctou_core::finding::{EntryKind, ResourceKind};
use toctou_core::ir::{Callee, FuncId, FuncKind, Op};
use toctou_core::{FileRole, Name};

use super::at_start::AtStart;
use super::threads::{self, Threads};
use super::word::is_word;
use crate::context::{Context, DefectKind, FoundDefect};
use crate::interp::access::{HeldLock, Owner, Passed, Spot};
use crate::roots::{handlers_at_once, is_server};
use crate::sym::SymKind;

/// Ways into one function that are told apart.
const MAX_WAYS: usize = 6;
/// … that differ only in what comes after.
const MAX_ALIKE: usize = 3;
/// Accesses of one variable that are held against each other.
const MAX_SEEN: usize = 160;
/// Calls that are followed from one root.
const MAX_STEPS: usize = 12_000;
const MAX_DEPTH: u32 = 14;

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Start {
    /// A client can have any number of these under way.
    Handler,
    /// A client can have one of all of these under way.
    InTurn,
    /// A thread that is started once.
    Thread,
    /// Any number of them are started.
    Threads,
    /// Somebody may call it.
    Export,
}

#[derive(Clone)]
struct Seen {
    func: FuncId,
    index: usize,
    start: Start,
    root: FuncId,
    locks: Vec<HeldLock>,
    /// No other thread that began there comes by: there is one, or each has its own object, and
    /// this is by way of it.
    mine: bool,
    /// Threads that are started after it, by whom it is done.
    before: Vec<FuncId>,
    /// What a thread looks at before it goes on to its work.
    first: bool,
    /// It is done again and again.
    again: bool,
}

/// Where a thread begins.
struct Root {
    func: FuncId,
    start: Start,
    /// Each has an object of its own.
    own: bool,
    /// No other is started while it runs.
    single: bool,
    /// Who has waited for it comes after it.
    joined: Vec<HeldLock>,
}

/// Parameters that are told apart.
const PARAMS: u32 = 21;

/// Is a parameter shared (0), what is in it (1), or what that leads to (2)?
fn is_in(mask: u64, param: u32, how: u32) -> bool {
    param < PARAMS && mask >> (param + PARAMS * how) & 1 == 1
}

/// What is known of the whole program.
struct Around {
    /// Functions that can be under way many times.
    many: FxHashSet<FuncId>,
    /// What runs because of clients, in threads that they start as well.
    served: FxHashSet<FuncId>,
    at_start: AtStart,
    threads: Threads,
}

/// Whose the object is that a method is called on.
#[derive(Clone, Copy, PartialEq, Eq)]
enum This {
    Own,
    /// Everybody's, to look at.
    Published,
    Shared,
    /// … by those who know the thread's, of which there is one.
    Thread,
}

/// How a function is reached.
#[derive(Clone)]
struct Way {
    func: FuncId,
    this: This,
    args: u64,
    locks: Vec<HeldLock>,
    before: Vec<FuncId>,
    /// In a loop, here or above.
    again: bool,
}

pub(crate) fn check(cx: &mut Context<'_, '_>, edges: &[Vec<u32>]) {
    if cx.plain.iter().all(|p| p.accesses.is_empty()) {
        return;
    }
    let mut places: FxHashMap<(Spot, bool), Vec<Seen>> = FxHashMap::default();
    let roots = roots(cx);
    let served = roots.iter().filter(|r| r.start != Start::Export);
    let served: Vec<FuncId> = served.map(|r| r.func).collect();
    let mut around = Around {
        many: many(cx, &roots),
        served: served_by(cx, &roots),
        at_start: AtStart::new(cx, edges, &served),
        threads: Threads::new(cx),
    };
    for root in &roots {
        follow(cx, root, &mut around, &mut places);
    }
    let mut found: Vec<(FoundDefect, Spot)> = Vec::new();
    let mut keys: Vec<(Spot, bool)> = places.keys().copied().collect();
    keys.sort_unstable();
    for key in keys {
        let word = !key.1 && is_word(cx, key.0);
        if let Some(defect) = race(cx, &places[&key], &around.served, word) {
            found.push((defect, key.0));
        }
    }
    // Of several fields, one that is more than a word stands for them.
    found.sort_by_key(|(defect, _)| defect.word);
    // Fields that one function uses without a lock are one thing to mend.
    let mut told: FxHashSet<(FuncId, Option<toctou_core::ir::ClassId>)> = FxHashSet::default();
    for (defect, spot) in found {
        let class = match spot {
            Spot::Field(class, _) | Spot::Object(class) => Some(class),
            Spot::Variable(_) | Spot::Site(..) | Spot::Ready(..) | Spot::Joined(..) => None,
        };
        if class.is_none() || told.insert((defect.func, class)) {
            cx.defects.push(defect);
        }
    }
}

/// Where threads begin.
fn roots(cx: &Context<'_, '_>) -> Vec<Root> {
    let mut threads: FxHashMap<FuncId, Vec<(FuncId, &Passed)>> = FxHashMap::default();
    let mut starts: FxHashMap<FuncId, Start> = FxHashMap::default();
    let mut handlers: Vec<FuncId> = Vec::new();
    for entry in &cx.entries {
        let start = match entry.kind {
            EntryKind::Startup | EntryKind::Export => continue,
            EntryKind::Timer => Start::Thread,
            _ if handlers_at_once(cx, entry) == Some(1) => Start::InTurn,
            _ => Start::Handler,
        };
        let slot = starts.entry(entry.handler).or_insert(start);
        *slot = (*slot).min(start);
        if matches!(start, Start::Handler | Start::InTurn) {
            handlers.push(entry.handler);
        }
    }
    let many = reached(cx, handlers);
    // A program calls what it has. Who else would call a method that it does not even name?
    let named = is_server(&cx.entries).then(|| named(cx));
    let mut handed_back: Vec<FuncId> = Vec::new();
    for (f, function) in cx.program.functions.iter().enumerate() {
        let id = FuncId(f as u32);
        if cx.program.file_of(id).role != FileRole::Product {
            continue;
        }
        for call in cx.plain[f].calls.iter().filter(|c| c.spawned) {
            threads.entry(call.callee).or_default().push((id, call));
            let start = if call.repeated || many.contains(&id) {
                Start::Threads
            } else {
                Start::Thread
            };
            let slot = starts.entry(call.callee).or_insert(start);
            *slot = match (*slot, start) {
                (Start::Thread, Start::Threads) => Start::Threads,
                (old, _) => old,
            };
        }
        // What a function gives back to be called is called by somebody.
        if let Some(ret) = cx.summaries[f].as_ref().and_then(|s| s.ret)
            && let SymKind::Func(given) = *cx.syms.kind(ret)
            && !cx.entered.contains(&given)
        {
            handed_back.push(given);
        }
        let callable = function.class.is_some()
            && function.exported
            && function.kind == FuncKind::Method
            && !cx.entered.contains(&id)
            && !cx.started.has_no_object(function)
            && named
                .as_ref()
                .is_none_or(|names| names.contains(&function.name));
        if callable {
            starts.entry(id).or_insert(Start::Export);
        }
    }
    handed_back.retain(|f| !starts.contains_key(f));
    let mut roots: Vec<(FuncId, Start)> = starts.into_iter().collect();
    roots.sort_unstable();
    // Last, so that of two equal ways the one that is sure to be taken is shown.
    handed_back.sort_unstable();
    handed_back.dedup();
    roots.extend(handed_back.into_iter().map(|f| (f, Start::Export)));
    let callers = threads::callers(cx);
    let root = |(func, start)| {
        let from = threads.get(&func).map_or(&[][..], Vec::as_slice);
        Root {
            func,
            start,
            own: threads::has_own_object(cx, from, &callers),
            single: !from.is_empty() && from.iter().all(|(_, call)| call.single),
            joined: threads::joined(from),
        }
    };
    roots.into_iter().map(root).collect()
}

/// The names of methods and fields that the product uses.
fn named(cx: &Context<'_, '_>) -> FxHashSet<Name> {
    let mut names = FxHashSet::default();
    for (f, function) in cx.program.functions.iter().enumerate() {
        if cx.program.file_of(FuncId(f as u32)).role != FileRole::Product {
            continue;
        }
        for inst in function.blocks.iter().flat_map(|b| &b.insts) {
            match &inst.op {
                Op::Call {
                    callee: Callee::Method { name, .. },
                    ..
                }
                | Op::GetField { field: name, .. } => {
                    names.insert(*name);
                }
                _ => {}
            }
        }
    }
    names
}

fn served_by(cx: &Context<'_, '_>, roots: &[Root]) -> FxHashSet<FuncId> {
    let client = |r: &&Root| matches!(r.start, Start::Handler | Start::InTurn);
    reached(cx, roots.iter().filter(client).map(|r| r.func).collect())
}

/// Functions that can be under way many times: their variables are not shared.
fn many(cx: &Context<'_, '_>, roots: &[Root]) -> FxHashSet<FuncId> {
    let many = |r: &&Root| matches!(r.start, Start::Handler | Start::InTurn | Start::Threads);
    reached(cx, roots.iter().filter(many).map(|r| r.func).collect())
}

pub(super) fn reached(cx: &Context<'_, '_>, mut work: Vec<FuncId>) -> FxHashSet<FuncId> {
    let mut seen: FxHashSet<FuncId> = FxHashSet::default();
    while let Some(f) = work.pop() {
        if seen.insert(f) {
            work.extend(cx.plain[f.0 as usize].calls.iter().map(|c| c.callee));
        }
    }
    seen
}

/// Is a way into a function another one than those that are known?
fn worth(known: &[Way], mut way: Way) -> Option<Way> {
    let alike = |a: &Way, b: &Way| a.this == b.this && a.args == b.args && a.locks == b.locks;
    // What is done before fewer threads, and more often, meets more.
    let covers = |w: &&Way| {
        let fewer = w.before.iter().all(|r| way.before.contains(r));
        alike(w, &way) && fewer && (w.again || !way.again)
    };
    if known.iter().any(|w| covers(&w)) {
        return None;
    }
    let same = known.iter().filter(|w| alike(w, &way)).count();
    let kinds = (0..known.len()).filter(|i| !known[..*i].iter().any(|w| alike(w, &known[*i])));
    if same == 0 && kinds.count() >= MAX_WAYS {
        return None;
    }
    if same >= MAX_ALIKE {
        way.before.clear();
    }
    Some(way)
}

/// All accesses below a root, with what is held there.
fn follow(
    cx: &Context<'_, '_>,
    root: &Root,
    around: &mut Around,
    places: &mut FxHashMap<(Spot, bool), Vec<Seen>>,
) {
    let start = root.start;
    let mut ways: FxHashMap<FuncId, Vec<Way>> = FxHashMap::default();
    let first = Way {
        func: root.func,
        this: if root.own { This::Thread } else { This::Shared },
        args: 0,
        locks: root.joined.clone(),
        before: Vec::new(),
        again: false,
    };
    let mut work: Vec<(Way, u32)> = vec![(first, 0)];
    let mut steps = 0;
    let is_new = |field: Name| cx.published.get(&field) == Some(&true);
    while let Some((way, depth)) = work.pop() {
        let known = ways.entry(way.func).or_default();
        let Some(way) = worth(known, way) else {
            continue;
        };
        known.push(way.clone());
        steps += 1;
        if steps > MAX_STEPS {
            return;
        }
        let Way {
            func,
            this,
            args,
            locks,
            before,
            again,
        } = way;
        // By its name, it is for those who hold the lock already.
        let name = cx.names.text(cx.program.function(func).name);
        if name.ends_with("Locked") || name.ends_with("_locked") {
            continue;
        }
        let plain = &cx.plain[func.0 as usize];
        let client = matches!(start, Start::Handler | Start::InTurn);
        let many = &around.many;
        let shared = |owner: Owner| match owner {
            Owner::This => matches!(this, This::Shared | This::Thread),
            Owner::Param(i) => is_in(args, i, 0),
            Owner::Within(i) => is_in(args, i, 0) || is_in(args, i, 1),
            Owner::Beyond(i) => (0..3).any(|how| is_in(args, i, how)),
            Owner::Variable(cell) => {
                cx.is_module_cell(cell)
                    || !ways.contains_key(&cell.owner)
                        && !many.contains(&cell.owner)
                        && (client || !cx.looped_cells.contains(&cell))
            }
            Owner::Published(field) => !is_new(field),
            Owner::Own => false,
        };
        for (index, access) in plain.accesses.iter().enumerate() {
            let captured =
                matches!(access.owner, Owner::Variable(cell) if !cx.is_module_cell(cell));
            // A variable that a thread shares with the function that started it:
            // who waits for whom is not known.
            // It hangs from something that was there before the first client came.
            let found = || {
                let within = access.within.filter(|_| start == Start::Handler);
                within.is_some_and(|v| around.at_start.made(cx, func, v))
            };
            let looked_at = match access.owner {
                Owner::Published(_) => true,
                Owner::This => this == This::Published,
                _ => false,
            };
            let shared = shared(access.owner) || looked_at && access.write || found();
            if !shared || captured && !client {
                continue;
            }
            let mut held = locks.clone();
            held.extend(access.locks.iter().copied());
            let mine = root.single || this == This::Thread && access.owner == Owner::This;
            let mut ahead = around.threads.started_after(cx, func, access.at);
            ahead.extend(before.iter().copied());
            let again = again || around.threads.is_looped(cx, func, access.at);
            let first = depth == 0 && !access.write && around.threads.is_ahead(cx, func, access.at);
            let list = places.entry((access.spot, access.content)).or_default();
            let same = list.iter().any(|s| {
                (s.func, s.index, s.start) == (func, index, start)
                    && s.locks == held
                    && s.mine == mine
                    && (s.again || !again)
                    && s.before.iter().all(|r| ahead.contains(r))
            });
            if !same && list.len() < MAX_SEEN {
                list.push(Seen {
                    func,
                    index,
                    start,
                    root: root.func,
                    locks: held,
                    mine,
                    before: ahead,
                    first,
                    again,
                });
            }
        }
        if depth >= MAX_DEPTH {
            continue;
        }
        for call in plain.calls.iter().filter(|c| !c.spawned) {
            let mut mask = 0;
            for (i, arg) in call.args.iter().enumerate().take(PARAMS as usize) {
                let (things, parts) = call.inside.get(i).copied().unwrap_or((*arg, *arg));
                for (how, owner) in [*arg, things, parts].into_iter().enumerate() {
                    if shared(owner) {
                        mask |= 1 << (i as u32 + PARAMS * how as u32);
                    }
                }
            }
            let mut held = locks.clone();
            held.extend(call.locks.iter().copied());
            held.sort_unstable();
            held.dedup();
            let on = match call.this {
                Owner::Published(field) if is_new(field) => This::Published,
                Owner::This => this,
                owner if shared(owner) => This::Shared,
                _ => This::Own,
            };
            let mut ahead = around.threads.started_after(cx, func, call.at);
            ahead.extend(before.iter().copied());
            ahead.sort_unstable();
            ahead.dedup();
            let way = Way {
                func: call.callee,
                this: on,
                args: mask,
                locks: held,
                before: ahead,
                again: again || !client && call.repeated,
            };
            work.push((way, depth + 1));
        }
    }
}

/// Nothing is held. (To have waited for somebody is not to hold anything.)
fn is_bare(s: &Seen) -> bool {
    let waited = |l: &HeldLock| matches!(l.spot, Spot::Joined(..));
    s.locks.iter().all(waited)
}

/// Does one lock keep two accesses apart?
fn apart(a: &Seen, b: &Seen) -> bool {
    a.locks.iter().any(|x| {
        b.locks
            .iter()
            .any(|y| x.spot == y.spot && !(x.shared && y.shared))
    }) || a.locks.iter().chain(&b.locks).any(|l| l.once)
}

/// Is one done before the thread is started that does the other?
fn ordered(a: &Seen, b: &Seen) -> bool {
    // An older one may still be at work, but is past its beginning.
    let after = |a: &Seen, b: &Seen| b.first && a.before.contains(&b.root);
    after(a, b) || after(b, a)
}

fn at_once(a: &Seen, b: &Seen) -> bool {
    if a.root == b.root && a.mine && b.mine || ordered(a, b) {
        return false;
    }
    match (a.start, b.start) {
        (Start::Thread, Start::Thread) => a.root != b.root,
        (Start::InTurn, Start::InTurn) => false,
        _ => true,
    }
}

/// `word`: the place holds a number or a truth value.
fn race(
    cx: &Context<'_, '_>,
    list: &[Seen],
    served: &FxHashSet<FuncId>,
    word: bool,
) -> Option<FoundDefect> {
    let access = |s: &Seen| &cx.plain[s.func.0 as usize].accesses[s.index];
    let guarded = list.iter().any(|s| {
        s.locks.iter().any(|l| {
            // Of the same object, or at least not of something that happens to be held.
            !l.once
                && match (l.spot, access(s).spot) {
                    (Spot::Field(a, _) | Spot::Object(a), Spot::Field(b, _)) => a == b,
                    (Spot::Variable(_), Spot::Variable(_)) => true,
                    _ => false,
                }
        })
    });
    let mut best: Option<(u32, &Seen, &Seen)> = None;
    for (i, a) in list.iter().enumerate() {
        if !access(a).write {
            continue;
        }
        for (j, b) in list.iter().enumerate() {
            let same = i == j;
            if same && a.start == Start::Thread || apart(a, b) || !at_once(a, b) {
                continue;
            }
            // Entries of a slice that each thread has its own of are no race.
            let content = access(a).content;
            let clients = |s: &Seen| match s.start {
                Start::Handler | Start::InTurn => true,
                Start::Threads => !content,
                Start::Thread | Start::Export => false,
            };
            let threads = |s: &Seen| !matches!(s.start, Start::Export);
            // Nobody took a lock: clients must reach both, or clients and a thread.
            let plain = guarded
                || clients(a) && clients(b)
                || (clients(a) || clients(b)) && threads(a) && threads(b);
            if !plain {
                continue;
            }
            // Of a word nobody sees a half. One that is made from the last can be lost, though.
            let both = access(a).write && access(b).write;
            let lost = both && (access(a).from_old || access(b).from_old);
            let mild = word && !lost || access(b).glance;
            // The side without a lock is the one to mend.
            let bare = |s: &Seen| u32::from(is_bare(s));
            let rank = u32::from(!mild) * 16
                + u32::from(threads(a) && threads(b)) * 8
                + u32::from(clients(a) || clients(b)) * 4
                + bare(a).max(bare(b)) * 2
                + u32::from(!same);
            if best.is_none_or(|(r, _, _)| rank > r) {
                best = Some((rank, a, b));
            }
        }
    }
    let (rank, a, b) = best?;
    let (at, other) = if is_bare(b) && !is_bare(a) {
        (b, a)
    } else {
        (a, b)
    };
    // A thread of the server's own, which does it all the time (not once, to begin with), meets a
    // client's call: that is where a client gets in.
    let thread = matches!(at.start, Start::Thread | Start::Threads) && at.again;
    let own = thread && !served.contains(&at.func);
    let (at, other) = if own && served.contains(&other.func) {
        (other, at)
    } else {
        (at, other)
    };
    Some(FoundDefect {
        kind: DefectKind::DataRace,
        func: at.func,
        span: access(at).span,
        first: Some((other.func, access(other).span)),
        key: access(at).key,
        resource: ResourceKind::Memory,
        in_process: true,
        cross_process: false,
        duck: at.start == Start::Export && other.start == Start::Export && !guarded,
        word: rank < 16,
    })
}
