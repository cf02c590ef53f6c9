//! Statements whose text only a caller knows: a program's own `run(sql, params)`.
//! They wait in the summary, as an event without a meaning, for a caller who has the text.

use std::rc::Rc;

use rustc_hash::FxHashSet;
use toctou_core::Name;
use toctou_core::finding::ResourceKind;
use toctou_core::ir::{Callee, Op, Var};

use crate::effect::{Act, Deps, Event, Loc, Lock, Trail};
use crate::instance::Instance;
use crate::interp::Interp;
use crate::rows::Run;
use crate::sym::{self, CalleeSym, Site, Sym, SymKind};

/// What is known of the statement without its text, which is the key of the event.
#[derive(Clone, Debug)]
pub struct Later {
    pub params: Option<Sym>,
    pub run: Run,
}

/// The call through which a statement is run that stands further below.
#[derive(Clone)]
pub struct Below {
    trail: Trail,
    site: Site,
    ctrl: Deps,
    lock: Option<Rc<Lock>>,
    yields: (bool, bool),
    in_handler: bool,
    call: u32,
}

impl Below {
    pub fn put(&self, event: &mut Event) {
        event.trail = Rc::clone(&self.trail);
        event.site = self.site;
        event.ctrl = self.ctrl.clone();
        event.lock = self.lock.clone();
        (event.yields_before, event.yields_after) = self.yields;
        event.in_handler = self.in_handler;
        event.call = Some(self.call);
    }
}

impl Interp<'_, '_, '_> {
    /// A text that cannot be read here: it waits for a caller, or may be anything.
    pub(crate) fn unread(
        &mut self,
        text: Option<Sym>,
        params: Option<Sym>,
        run: Run,
    ) -> Option<u32> {
        let Some(text) = text else {
            self.cx.unread_statements |= self.last_round && self.is_product;
            return None;
        };
        if self.is_callers(text) {
            let mut event = self.event(
                Act::Statement,
                Loc {
                    kind: ResourceKind::Row,
                    key: text,
                    entry: None,
                },
            );
            event.later = Some(Rc::new(Later { params, run }));
            return self.push(event);
        }
        // What nobody outside has brought, and does not begin like a change, is a query that is
        // put together, or a script that makes the tables.
        if self.last_round && self.cx.syms.as_str(text).is_none() {
            for part in self.changes_in(text) {
                let part = self.cx.names.text(part).to_owned();
                self.note_unread(&part);
            }
        }
        None
    }

    /// What there is in a text that begins like a change, whichever of several it is.
    fn changes_in(&self, text: Sym) -> Vec<Name> {
        let mut found = Vec::new();
        let several = self.alternatives.get(&text).into_iter().flatten();
        for text in several.copied().chain([text]) {
            self.cx.syms.each(text, |part| {
                if let Some(name) = self.cx.syms.as_str(part)
                    && let Some(first) = self.cx.names.text(name).split_whitespace().next()
                    && crate::rows::is_change(first)
                {
                    found.push(name);
                }
            });
        }
        found
    }

    /// A statement of a callee, with the text that it is given here.
    pub(crate) fn enter_statement(
        &mut self,
        e: &Event,
        later: &Later,
        inst: &mut Instance<'_>,
    ) -> Option<u32> {
        let text = self.rewrite(e.loc.key, inst);
        let params = later.params.map(|p| self.given_params(p, inst));
        let run = Run {
            connection: later.run.connection.map(|c| self.rewrite(c, inst)),
            ..later.run
        };
        let below = Below {
            // Where the text stands is where it happens, for who reads about it.
            trail: self.frame(),
            site: sym::through(e.site, inst.site),
            ctrl: self.map_deps(&e.ctrl, inst),
            lock: inst.entry.locks.first().cloned().or_else(|| e.lock.clone()),
            yields: (e.yields_before || inst.entry.yields_before, e.yields_after),
            in_handler: e.in_handler,
            call: self.ordinal,
        };
        let outer = self.through.replace(below);
        let read = match self.text_of(text) {
            Some((text, holes)) => {
                let inst =
                    &self.function.blocks[self.at.block as usize].insts[self.at.inst as usize];
                let looked_at = inst.op.dst().is_some_and(|dst| self.is_looked_at(dst));
                let params = params.map(|p| self.plain_params(p));
                self.sql_text(&text, &holes, params, looked_at, run)
            }
            None => self.unread(Some(text), params, run),
        };
        self.through = outer;
        read
    }

    /// What stands for the parameters of a statement of a callee, here. `run(sql, ...rest)` has
    /// been given all that comes from there on, and not only what comes first.
    fn given_params(&mut self, params: Sym, inst: &mut Instance<'_>) -> Sym {
        let is_rest =
            |s: Sym| matches!(*self.cx.syms.kind(s), SymKind::Param(i) if Some(i) == inst.rest);
        let before: Vec<Sym> = match self.cx.syms.kind(params) {
            _ if is_rest(params) => Vec::new(),
            SymKind::Array(items) if items.last().is_some_and(|s| is_rest(*s)) => {
                items[..items.len() - 1].to_vec()
            }
            _ => return self.rewrite(params, inst),
        };
        let mut all: Vec<Sym> = before.iter().map(|s| self.rewrite(*s, inst)).collect();
        let first = inst.rest.unwrap_or_default() as usize;
        all.extend(inst.entry.args.iter().skip(first));
        self.cx.syms.make(SymKind::Array(all.into()))
    }

    /// `run(a, b)` and `run([a, b])` mean the same; a callback after them is no parameter.
    pub(crate) fn plain_params(&mut self, params: Sym) -> Sym {
        let SymKind::Array(items) = self.cx.syms.kind(params) else {
            return params;
        };
        let is_callback = |s: &Sym| {
            matches!(
                self.cx.syms.kind(*s),
                SymKind::Func(_) | SymKind::Bound(..) | SymKind::Handle(_)
            )
        };
        let count = items.len() - usize::from(items.last().is_some_and(is_callback));
        match items[..count] {
            [one]
                if matches!(
                    self.cx.syms.kind(one),
                    SymKind::Array(_) | SymKind::Object(_)
                ) =>
            {
                one
            }
            _ if count == items.len() => params,
            _ => {
                let rest: Box<[Sym]> = items[..count].into();
                self.cx.syms.make(SymKind::Array(rest))
            }
        }
    }
}

/// The columns of `SET ${parts.join(", ")}` inside a closure, if all parts are texts that are
/// written out where the list is made: there, and where something is pushed into it.
impl Interp<'_, '_, '_> {
    pub(crate) fn listed_columns(&mut self, joined: Sym) -> Option<Vec<Name>> {
        let SymKind::Call(call) = self.cx.syms.kind(joined) else {
            return None;
        };
        let join = self.cx.names.find("join")?;
        let SymKind::Cell(list) = *self.cx.syms.kind(call.recv?) else {
            return None;
        };
        if call.callee != CalleeSym::Method(join) {
            return None;
        }
        let function = self.cx.program.function(list.owner);
        let insts = || function.blocks.iter().flat_map(|b| &b.insts);
        let lists: FxHashSet<Var> = insts()
            .filter_map(|inst| match inst.op {
                Op::LoadVar { dst, cell } if cell == list => Some(dst),
                Op::StoreVar { cell, value } if cell == list => Some(value),
                _ => None,
            })
            .collect();
        let push = self.cx.names.find("push");
        let mut made = 0;
        let mut parts: Vec<Var> = Vec::new();
        for inst in insts() {
            match &inst.op {
                Op::Array { dst, items } if lists.contains(dst) => {
                    made += 1;
                    parts.extend(items.iter().map(|a| a.value));
                }
                Op::Call { callee, args, .. } => {
                    if let Callee::Method { obj, name } = callee
                        && lists.contains(obj)
                        && Some(*name) == push
                    {
                        parts.extend(args.iter().map(|a| a.value));
                    }
                    // Somebody else may add to it.
                    if args.iter().any(|a| lists.contains(&a.value)) {
                        return None;
                    }
                }
                _ => {}
            }
        }
        if made != 1 {
            return None;
        }
        let mut columns = Vec::with_capacity(parts.len());
        for part in parts {
            let text = self.cx.constant_text_of(list.owner, part)?;
            let (column, _) = text.split_once('=')?;
            columns.push(self.cx.names.intern(column.trim().trim_matches(['"', '`'])));
        }
        Some(columns)
    }
}
