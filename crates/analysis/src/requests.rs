//! Servers without an SDK: a loop takes messages from standard input, one after
//! the other, and what it calls with one is a handler; or a function is called with each.

use toctou_core::Name;
use toctou_core::finding::{EntryKind, ResourceKind};
use toctou_core::ir::{FuncId, Function, Key, Literal, Op, Var};

use crate::calls::CallView;
use crate::context::{Context, FoundEntry};
use crate::effect::Act;
use crate::interp::Interp;
use crate::order;
use crate::sym::{Sym, SymKind};

/// Something is called with a message of a client.
#[derive(Clone, Debug)]
pub struct Request {
    pub entry: FoundEntry,
    /// The code must know this word, or it serves something else.
    pub word: Name,
    /// So many calls below the handler at most.
    within: usize,
}

const MAX_REQUESTS: usize = 256;
/// Who listens for messages hands them to who tells methods apart, and that is not far. A library
/// that is part of a bundle has a listener, too, and everything is somewhere below it.
const NEAR: usize = 4;
/// Functions within a task that are looked through for what it takes along.
const MAX_INNER: usize = 32;

impl Interp<'_, '_, '_> {
    /// Do the arguments of a call come from a client's message?
    pub(crate) fn note_request(&mut self, funcs: &[FuncId], view: &CallView<'_>) {
        if !self.receives || !self.last_round || self.cx.requests.len() >= MAX_REQUESTS {
            return;
        }
        let given = view.args.iter().chain(view.named.iter().map(|n| &n.2));
        let given: Vec<Sym> = given.copied().collect();
        let Some(word) = self.word_of(&given) else {
            return;
        };
        for &handler in funcs {
            let serial = self.is_waited_for(handler, view);
            self.push_message(handler, word, serial);
        }
    }

    /// A function that is given the messages here. `serial`: the next one waits for it.
    fn push_message(&mut self, handler: FuncId, word: Name, serial: bool) {
        let entry = FoundEntry {
            kind: EntryKind::Tool,
            name: None,
            handler,
            func: self.id,
            span: self.span,
            dispatches: true,
            thread: None,
            serial,
        };
        self.push_request(Request {
            entry,
            word,
            within: usize::MAX,
        });
    }

    /// Is a message among what a task takes along? Then it is the handler, and the next message
    /// does not wait for it.
    pub(crate) fn note_spawned_request(&mut self, handler: FuncId) {
        if !self.receives || !self.last_round || self.cx.requests.len() >= MAX_REQUESTS {
            return;
        }
        let mut taken: Vec<Var> = Vec::new();
        let mut stack = vec![handler];
        let mut seen = vec![handler];
        while let Some(f) = stack.pop() {
            let function = self.cx.program.function(f);
            for inst in function.blocks.iter().flat_map(|b| &b.insts) {
                match inst.op {
                    Op::LoadVar { cell, .. } if cell.owner == self.id => taken.push(cell.var),
                    Op::Func { func, .. } if seen.len() < MAX_INNER && !seen.contains(&func) => {
                        seen.push(func);
                        stack.push(func);
                    }
                    _ => {}
                }
            }
        }
        taken.sort_unstable();
        taken.dedup();
        let values: Vec<Sym> = taken.iter().map(|v| self.val(*v)).collect();
        if let Some(word) = self.word_of(&values) {
            self.push_message(handler, word, false);
        }
    }

    /// Which word stands for the messages that one of these values came from?
    fn word_of(&mut self, values: &[Sym]) -> Option<Name> {
        let events = values
            .iter()
            .flat_map(|s| self.deps_of(*s).events().collect::<Vec<_>>());
        events.into_iter().find_map(|(e, _)| {
            let event = &self.events[e as usize];
            let received = event.act == Act::Read && event.loc.kind == ResourceKind::External;
            match self.cx.syms.kind(event.loc.key) {
                SymKind::Str(word) if received => Some(*word),
                _ => None,
            }
        })
    }

    /// A function is called with every message, if the code behind it knows the word.
    pub(crate) fn add_request(&mut self, entry: FoundEntry, word: &str) {
        if self.cx.requests.len() < MAX_REQUESTS {
            let word = self.cx.names.intern(word);
            self.push_request(Request {
                entry,
                word,
                within: NEAR,
            });
        }
    }

    fn push_request(&mut self, new: Request) {
        let (handler, func) = (new.entry.handler, new.entry.func);
        let same = |r: &Request| r.entry.handler == handler && r.entry.func == func;
        if !self.cx.requests.iter().any(same) {
            self.cx.requests.push(new);
        }
    }

    /// Does the next message wait until this one is done?
    fn is_waited_for(&self, handler: FuncId, view: &CallView<'_>) -> bool {
        let mut insts = self.function.blocks.iter().flat_map(|b| &b.insts);
        !self.cx.program.function(handler).is_async
            || insts.any(|i| matches!(i.op, Op::Await { src, .. } if src == view.dst))
    }
}

impl Interp<'_, '_, '_> {
    /// What is called out of a table without a lock is a handler of its own.
    pub(crate) fn note_tables(&mut self) {
        if !self.acquires.is_empty() {
            return;
        }
        for (_, funcs) in std::mem::take(&mut self.dispatched) {
            let known = |t: &(FuncId, Vec<FuncId>)| t.0 == self.id && t.1 == funcs;
            if !self.cx.tables.iter().any(known) {
                self.cx.tables.push((self.id, funcs));
            }
        }
    }
}

/// Of a handler that serves all tools out of a table, each of those by itself.
pub(crate) fn table_entries(
    cx: &Context<'_, '_>,
    roots: &[FoundEntry],
    edges: &[Vec<u32>],
) -> Vec<FoundEntry> {
    let mut out: Vec<FoundEntry> = Vec::new();
    for root in roots.iter().filter(|r| r.dispatches) {
        let near = |f: FuncId| f == root.handler || edges[root.handler.0 as usize].contains(&f.0);
        for (_, funcs) in cx.tables.iter().filter(|t| near(t.0)) {
            for &handler in funcs {
                let new = !out
                    .iter()
                    .any(|e| e.handler == handler && e.func == root.func);
                if new && handler != root.handler {
                    out.push(FoundEntry {
                        name: Some(cx.program.qualified_name(handler)),
                        handler,
                        dispatches: false,
                        ..root.clone()
                    });
                }
            }
        }
    }
    out
}

/// The handlers among what was called with a message: those that know the word
/// themselves or by what they call; if none does, those whose module knows it.
pub(crate) fn handlers(cx: &Context<'_, '_>, edges: &[Vec<u32>]) -> Vec<FoundEntry> {
    let knows = |word: Name, f: usize| mentions(&cx.program.functions[f], word);
    let mut sure = Vec::new();
    let mut near = Vec::new();
    for r in &cx.requests {
        let below = order::reachable_within(edges, [r.entry.handler], r.within);
        let by_itself = (0..below.len()).any(|f| below[f] && knows(r.word, f));
        let module = cx.program.function_module[r.entry.handler.0 as usize];
        let of_module = |f: &usize| cx.program.function_module[*f] == module;
        if by_itself {
            sure.push(r.entry.clone());
        } else if r.within > NEAR && (0..below.len()).filter(of_module).any(|f| knows(r.word, f)) {
            near.push(r.entry.clone());
        }
    }
    if sure.is_empty() { near } else { sure }
}

fn mentions(function: &Function, word: Name) -> bool {
    function
        .blocks
        .iter()
        .flat_map(|b| &b.insts)
        .any(|inst| match &inst.op {
            Op::Const {
                value: Literal::Str(text),
                ..
            } => *text == word,
            Op::Object { fields, .. } => fields
                .iter()
                .any(|(key, _)| matches!(key, Key::Name(name) if *name == word)),
            _ => false,
        })
}
