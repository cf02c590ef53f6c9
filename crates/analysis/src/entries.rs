//! Calls that register handlers: where clients get in.

use crate::calls::CallView;
use crate::context::{FoundEntry, Thread};
use crate::entity::EntityId;
use crate::interp::Interp;
use crate::library::EntryRule;
use crate::points_to::ObjId;
use crate::sym::{Sym, SymKind};
use std::rc::Rc;
use toctou_core::Name;
use toctou_core::finding::EntryKind;
use toctou_core::ir::{CallKind, FuncId, Var};
use toctou_models::{PlaceBase, PlaceExpr};

impl Interp<'_, '_, '_> {
    // --- entry points ---

    /// Does the call register handlers? They are then not called by it.
    pub fn register_entries(&mut self, view: &CallView<'_>, exts: &[EntityId]) -> bool {
        let mut rules: Vec<Rc<EntryRule>> = Vec::new();
        for &e in exts {
            rules.extend(
                self.cx
                    .library
                    .entries(e, &self.cx.entities, &self.cx.names)
                    .iter()
                    .cloned(),
            );
        }
        if rules.is_empty()
            && view.kind != CallKind::New
            && let Some(method) = view.method
        {
            let funcs = self.cx.points_to.targets(self.id, view.number).0;
            if funcs.is_empty() {
                rules.extend(
                    self.cx
                        .library
                        .duck_entries(method, &self.cx.names)
                        .iter()
                        .cloned(),
                );
            }
        }
        for rule in rules {
            if view.args.len() + view.named.len() < rule.min_args {
                if self.register_results(&rule, view) {
                    return true;
                }
                continue;
            }
            if !rule.when.iter().all(|w| self.when_holds(w, view)) {
                continue;
            }
            if self.register(&rule, view) && !rule.converts && rule.word.is_none() {
                return true;
            }
        }
        false
    }

    /// `AddTool(search())`: one call gives all that is wanted, and the handler among it.
    fn register_results(&mut self, rule: &EntryRule, view: &CallView<'_>) -> bool {
        let (PlaceBase::Arg(number), &[var]) = (&rule.handler.base, view.arg_vars.as_slice())
        else {
            return false;
        };
        if !rule.handler.fields.is_empty() || !view.named.is_empty() {
            return false;
        }
        let field = self.cx.names.intern(&format!("#{number}"));
        let found = self.cx.points_to.field_functions(self.id, var, &[field]);
        let handlers = self.named_beside(found);
        self.add_handlers(rule, view, None, handlers)
    }

    pub(crate) fn register(&mut self, rule: &EntryRule, view: &CallView<'_>) -> bool {
        let name = rule
            .name
            .as_ref()
            .and_then(|p| self.place(p, view))
            .and_then(|s| self.entry_name(s));
        let handlers = if let PlaceBase::Args(first) = rule.handler.base {
            let mut found = Vec::new();
            for var in view.arg_vars.iter().skip(first) {
                found.extend(self.functions_at(*var, &rule.handler));
            }
            self.named_beside(found)
        } else if let Some(handler) = self.place(&rule.handler, view) {
            self.handlers(handler, &rule.handler, view)
        } else {
            return false;
        };
        self.add_handlers(rule, view, name, handlers)
    }

    fn add_handlers(
        &mut self,
        rule: &EntryRule,
        view: &CallView<'_>,
        name: Option<String>,
        handlers: Vec<(FuncId, Option<String>)>,
    ) -> bool {
        let found = !handlers.is_empty();
        // What is decorated is called by its own name, if no other is given;
        // of a wrapper and what it wraps, the latter's.
        let name = name.or_else(|| {
            let (f, _) = handlers
                .last()
                .filter(|_| view.kind == CallKind::Decorate)?;
            let name = self.cx.program.function(*f).name;
            Some(self.cx.names.text(name).to_owned())
        });
        for (f, own_name) in handlers {
            let entry = FoundEntry {
                kind: rule.kind,
                name: name.clone().or(own_name),
                handler: f,
                func: self.id,
                span: self.span,
                dispatches: rule.dispatches,
                thread: rule.thread.then_some(Thread::Synchronous),
                serial: false,
            };
            match &rule.word {
                Some(word) => self.add_request(entry, word),
                None => self.add_entry(entry),
            }
        }
        found
    }

    pub(crate) fn add_entry(&mut self, entry: FoundEntry) {
        let same = |e: &FoundEntry| {
            e.handler == entry.handler
                && e.name == entry.name
                && e.span == entry.span
                && e.func == entry.func
        };
        if let Some(old) = self.cx.entries.iter_mut().rev().take(64).find(|e| same(e)) {
            *old = entry;
        } else {
            self.cx.entries.push(entry);
        }
    }

    pub(crate) fn entry_name(&self, sym: Sym) -> Option<String> {
        self.constant_text(sym)
    }

    fn name_beside(&mut self, f: FuncId) -> Option<String> {
        let name = self.cx.name_beside(f)?;
        Some(self.cx.names.text(name).to_owned())
    }

    /// The functions at a handler's place: itself, those wrapped in a call, those in a table.
    pub(crate) fn handlers(
        &mut self,
        sym: Sym,
        place: &PlaceExpr,
        view: &CallView<'_>,
    ) -> Vec<(FuncId, Option<String>)> {
        let mut out = Vec::new();
        match self.cx.syms.kind(sym).clone() {
            SymKind::Func(f) => out.push((f, None)),
            SymKind::Bound(..) => self.wrapped_handlers(sym, 0, &mut out),
            // wrap(async (args) => …) by a function that we know nothing about.
            SymKind::Call(call) => {
                for a in &call.args {
                    if let SymKind::Func(f) = self.cx.syms.kind(*a) {
                        out.push((*f, None));
                    }
                }
            }
            _ => {}
        }
        if !out.is_empty() {
            return out;
        }
        let Some(var) = self.base_var(place, view) else {
            return out;
        };
        if place.fields.is_empty() {
            let mut funcs: Vec<FuncId> = self.cx.points_to.functions(self.id, var).collect();
            if funcs.is_empty() {
                let listed = self.cx.points_to.field_functions(self.id, var, &[]);
                funcs.extend(listed.into_iter().map(|(_, f)| f));
            }
            for f in funcs {
                let name = self.name_beside(f);
                out.push((f, name));
            }
            return out;
        }
        let found = self.functions_at(var, place);
        self.named_beside(found)
    }

    /// The functions in the fields of a place that begins at a variable.
    fn functions_at(&mut self, var: Var, place: &PlaceExpr) -> Vec<(ObjId, FuncId)> {
        let mut path: Vec<Name> = Vec::with_capacity(place.fields.len());
        for field in &place.fields {
            path.push(self.cx.names.intern(field));
        }
        self.cx.points_to.field_functions(self.id, var, &path)
    }

    fn named_beside(&mut self, found: Vec<(ObjId, FuncId)>) -> Vec<(FuncId, Option<String>)> {
        let mut named = Vec::with_capacity(found.len());
        for (_, f) in found {
            named.push((f, self.name_beside(f)));
        }
        named
    }

    /// A wrapper's closure, and what it was given to wrap.
    fn wrapped_handlers(&mut self, sym: Sym, depth: u32, out: &mut Vec<(FuncId, Option<String>)>) {
        let SymKind::Bound(f, env) = self.cx.syms.kind(sym).clone() else {
            return;
        };
        out.push((f, None));
        // Behind the wrapper's lock, what it wraps is not reached without it.
        let locks = self.cx.summaries[f.0 as usize]
            .as_ref()
            .is_some_and(|s| s.sym_calls.iter().any(|c| !c.locks.is_empty()));
        for &a in &env {
            match *self.cx.syms.kind(a) {
                SymKind::Func(inner) if locks => {
                    self.cx.entered.insert(inner);
                }
                SymKind::Func(inner) => out.push((inner, None)),
                SymKind::Bound(..) if !locks && depth < 8 => {
                    self.wrapped_handlers(a, depth + 1, out);
                }
                _ => {}
            }
        }
    }

    /// A function that something else calls, some time, any number of times.
    pub(crate) fn later(
        &mut self,
        callee: Sym,
        var: Option<Var>,
        view: &CallView<'_>,
        thread: bool,
    ) {
        let mut funcs: Vec<FuncId> = Vec::new();
        match self.cx.syms.kind(callee) {
            SymKind::Func(f) | SymKind::Bound(f, _) => funcs.push(*f),
            _ => {
                if let Some(v) = var {
                    funcs.extend(self.cx.points_to.functions(self.id, v));
                }
            }
        }
        let name = view.method.map(|m| self.cx.names.text(m).to_owned());
        for f in funcs {
            let entry = crate::calls::Entry {
                spawned: true,
                ..Default::default()
            };
            self.note_call(f, &entry);
            self.note_spawned_request(f);
            self.add_entry(FoundEntry {
                kind: EntryKind::Timer,
                name: name.clone(),
                handler: f,
                func: self.id,
                span: self.span,
                dispatches: false,
                thread: thread.then_some(Thread::All),
                serial: false,
            });
        }
    }
}
