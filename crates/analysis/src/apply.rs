//! Library models, applied to a call: what it does, whom it calls, what comes back.

use std::rc::Rc;

use toctou_core::Name;
use toctou_core::finding::ResourceKind;
use toctou_core::ir::{CallKind, Callee, Op, Var};
use toctou_models::{CallbackTime, Do, Mode, Param, PlaceBase, PlaceExpr};

use crate::calls::{CallView, Entry};
use crate::effect::{Act, Deps, Loc};
use crate::entity::EntityId;
use crate::interp::{Interp, Release};
use crate::library::{Call, EffectRule, ResultRule, WhenRule};
use crate::sym::{self, CallSym, CalleeSym, NewOf, Sym, SymKind};

impl Interp<'_, '_, '_> {
    /// A call of a library's function. `None` if no model speaks of it.
    pub fn external(&mut self, view: &CallView<'_>, fallback: Sym) -> Option<Sym> {
        let entity = view.entity?;
        let rules = self
            .cx
            .library
            .calls(entity, &mut self.cx.entities, &mut self.cx.names);
        let rule = rules.iter().find(|r| self.rule_holds(r, view))?;
        Some(self.use_rule(rule, view, fallback))
    }

    /// A call that no model of a known type speaks of.
    pub fn unmodelled(&mut self, view: &CallView<'_>, exts: &[EntityId], fallback: Sym) -> Sym {
        if let Some(sym) = self.sql_call(view, fallback) {
            return sym;
        }
        if let Some(sym) = self.built_call(view, fallback) {
            return sym;
        }
        if let Some(method) = view.method {
            // So is what a table is asked for.
            if view.recv.is_some_and(|recv| self.is_being_built(recv)) {
                return self.chain_call(view, fallback).unwrap_or(fallback);
            }
            // A chain of a known library is that library's, whatever others call their methods.
            if view.recv.is_some_and(|recv| self.is_begun_by_library(recv))
                && let Some(sym) = self.chain_call(view, fallback)
            {
                return sym;
            }
            let rules = self
                .cx
                .library
                .methods(method, &mut self.cx.entities, &mut self.cx.names);
            if let Some(rule) = rules.iter().find(|r| self.rule_holds(r, view)) {
                return self.use_rule(rule, view, fallback);
            }
            if let Some(sym) = self.chain_call(view, fallback) {
                return sym;
            }
        }
        for &e in exts {
            let entity = self.cx.entities.get(e);
            let text = format!(
                "{}.{}",
                self.cx.names.text(entity.module),
                self.cx.names.text(entity.path)
            );
            *self.cx.unknown_calls.entry(text).or_default() += 1;
        }
        // Functions it is given are taken to be called, with parts of the rest.
        for (i, &arg) in view.args.iter().enumerate() {
            let param = fallback;
            let entry = Entry {
                args: vec![param; 3],
                yields_before: true,
                ..Entry::default()
            };
            let var = view.arg_vars.get(i).copied();
            if let Some(result) = self.call_back_if_function(arg, var, entry) {
                let deps = self.deps_of(result);
                self.add_deps(fallback, &deps);
            }
        }
        // A method of a local object may put its arguments into it.
        if let Some(recv) = view.recv
            && !self.is_constant(recv)
            && !matches!(self.cx.syms.kind(recv), SymKind::This | SymKind::Param(_))
        {
            let mut deps = Deps::default();
            for a in view.args {
                deps.extend(&self.deps_of(*a));
            }
            if !deps.is_empty() {
                let inside = self.cx.syms.make(SymKind::Element(recv));
                self.taint(inside, &deps);
            }
        }
        // Whoever is waited for asks somebody.
        if self.awaited.contains(view.dst) {
            self.note_answer(fallback);
        }
        fallback
    }

    fn call_back_if_function(&mut self, arg: Sym, var: Option<Var>, entry: Entry) -> Option<Sym> {
        let is_function = match self.cx.syms.kind(arg) {
            SymKind::Func(_) | SymKind::Bound(..) => true,
            // What it was given is for the caller to say, if it is one.
            SymKind::Param(_) => {
                var.is_some_and(|v| self.cx.points_to.functions(self.id, v).next().is_some())
            }
            _ => false,
        };
        if is_function {
            return self.call_back(arg, var, entry);
        }
        None
    }

    pub(crate) fn rule_holds(&mut self, rule: &Call, view: &CallView<'_>) -> bool {
        if rule.known_table && !view.recv.is_some_and(|r| self.tables.contains(&r)) {
            return false;
        }
        if rule.by_hand && self.is_scoped() {
            return false;
        }
        let count = view.args.len() + view.named.len();
        count >= rule.min_args
            && count <= rule.max_args
            && rule.when.iter().all(|w| self.when_holds(w, view))
    }

    pub(crate) fn when_holds(&mut self, w: &WhenRule, view: &CallView<'_>) -> bool {
        let sym = self.place(&w.place, view);
        let known = sym.filter(|s| {
            // What a call was given, or called on, is there, be it a field: `File::open(&self.path)`.
            let given = is_made(&w.place) && !matches!(self.cx.syms.kind(*s), SymKind::Null);
            given || self.is_written_out(&w.place, view) || !self.is_absent(*s)
        });
        let mut holds = true;
        if !w.when.is.is_empty() {
            // `null` is a value if somebody has written it.
            let text = sym.and_then(|s| match self.cx.syms.kind(s) {
                SymKind::Null => Some("null".to_owned()),
                _ => known.and_then(|s| self.constant_text(s)),
            });
            holds &= text.is_some_and(|t| w.when.is.contains(&t));
        }
        if !w.when.contains.is_empty() {
            holds &= known.is_some_and(|s| self.mentions(s, &w.when.contains));
        }
        if let Some(present) = w.when.present {
            holds &= known.is_some() == present;
        }
        if w.when.record {
            holds &= known.is_some_and(|s| self.record_class(s).is_some());
        }
        if w.when.row {
            holds &= sym.is_some_and(|s| self.row_table(s, view).is_some());
        }
        if w.when.fresh {
            holds &= sym.is_some_and(|s| self.cx.syms.is_fresh(s));
        }
        if !w.when.imports.is_empty() {
            holds &= self.cx.imports_any(&w.when.imports);
        }
        if !w.when.texts.is_empty() {
            let begins = |name: &str| w.when.texts.iter().any(|t| name.starts_with(t.as_str()));
            holds &= self.cx.names.iter().any(begins);
        }
        holds != w.when.not
    }

    /// Is the receiver held for a scope, which lets go of it at its end?
    fn is_scoped(&self) -> bool {
        let inst = &self.function.blocks[self.at.block as usize].insts[self.at.inst as usize];
        match &inst.op {
            toctou_core::ir::Op::Call {
                callee: Callee::Method { obj, .. },
                ..
            } => self.resources.contains(obj),
            _ => false,
        }
    }

    /// Is it a field of an object that the call is given as `{ field: … }`?
    fn is_written_out(&mut self, place: &PlaceExpr, view: &CallView<'_>) -> bool {
        let [field] = place.fields.as_slice() else {
            return false;
        };
        let whole = PlaceExpr {
            fields: Vec::new(),
            ..place.clone()
        };
        let Some(whole) = self.place(&whole, view) else {
            return false;
        };
        let SymKind::Object(fields) = self.cx.syms.kind(whole) else {
            return false;
        };
        let given = |(name, value): &(Name, Sym)| {
            self.cx.names.text(*name) == field
                && !matches!(self.cx.syms.kind(*value), SymKind::Null)
        };
        fields.iter().any(given)
    }

    /// `with open_it():`
    fn is_held_for_scope(&self, var: Var) -> bool {
        let mut insts = self.function.blocks.iter().flat_map(|b| &b.insts);
        insts
            .any(|i| matches!(i.op, toctou_core::ir::Op::Enter { resource, .. } if resource == var))
    }

    fn is_absent(&self, sym: Sym) -> bool {
        match self.cx.syms.kind(sym) {
            SymKind::Null => true,
            SymKind::Field(base, _) => !matches!(
                self.cx.syms.kind(*base),
                SymKind::Ext(_) | SymKind::Field(..) | SymKind::Cell(_)
            ),
            _ => false,
        }
    }

    /// Is a method of one of these names called in this function?
    fn calls_one_of(&self, names: &[String]) -> bool {
        let is_one = |name| names.iter().any(|n| n == self.cx.names.text(name));
        let mut insts = self.function.blocks.iter().flat_map(|b| &b.insts);
        !names.is_empty()
            && insts.any(|inst| {
                matches!(&inst.op, Op::Call { callee: Callee::Method { name, .. }, .. } if is_one(*name))
            })
    }

    /// Is there something at a place of the call? Options that were handed
    /// through from a caller get the benefit of the doubt.
    pub(crate) fn is_given(&mut self, place: &PlaceExpr, view: &CallView<'_>) -> bool {
        let Some(sym) = self.place(place, view) else {
            return false;
        };
        let mut whole = place.clone();
        whole.fields.clear();
        let whole = self.place(&whole, view);
        if matches!(self.cx.syms.kind(sym), SymKind::Null) {
            return false;
        }
        // Nothing was seen to be put there.
        let mut base = sym;
        while let SymKind::Field(of, _) = self.cx.syms.kind(base) {
            base = *of;
            if Some(base) == whole {
                let made = matches!(
                    self.cx.syms.kind(base),
                    SymKind::Object(_) | SymKind::New(..)
                );
                return !matches!(place.base, PlaceBase::Arg(0)) && !made;
            }
        }
        true
    }

    pub fn constant_text(&self, sym: Sym) -> Option<String> {
        match self.cx.syms.kind(sym) {
            SymKind::Str(n) | SymKind::Num(n) => Some(self.cx.names.text(*n).to_owned()),
            SymKind::Bool(b) => Some(b.to_string()),
            _ => None,
        }
    }

    /// Does a constant, or the name of a symbolic one, contain one of the words?
    fn mentions(&self, sym: Sym, words: &[String]) -> bool {
        let mut stack = vec![sym];
        let mut budget = 64;
        while let Some(s) = stack.pop() {
            budget -= 1;
            if budget == 0 {
                return false;
            }
            let text = match self.cx.syms.kind(s) {
                SymKind::Str(n) | SymKind::Num(n) | SymKind::Field(_, n) => {
                    Some(self.cx.names.text(*n))
                }
                SymKind::Ext(e) => Some(self.cx.names.text(self.cx.entities.get(*e).path)),
                _ => None,
            };
            if text.is_some_and(|t| words.iter().any(|w| t.contains(w.as_str()))) {
                return true;
            }
            crate::sym::for_each_child(self.cx.syms.kind(s), |c| stack.push(c));
        }
        false
    }

    /// The value at a place of the call.
    pub fn place(&mut self, place: &PlaceExpr, view: &CallView<'_>) -> Option<Sym> {
        let mut sym = match &place.base {
            PlaceBase::Arg(i) => match self.named(place, view) {
                Some((_, sym)) => sym,
                None => view.args.get(*i).copied()?,
            },
            // `f(query, list...)`
            PlaceBase::Args(i) if view.args.len() == *i + 1 && self.is_spread(*i) => view.args[*i],
            PlaceBase::Args(i) => {
                let rest: Box<[Sym]> = view.args.get(*i..).unwrap_or_default().into();
                self.cx.syms.make(SymKind::Array(rest))
            }
            PlaceBase::Last => view.args.last().copied()?,
            PlaceBase::Recv => view.recv?,
            PlaceBase::RecvArg(i) => {
                let keyword = place.keyword.as_ref().map(|k| self.cx.names.intern(k));
                self.made_arg(view.recv?, *i, keyword)?
            }
            PlaceBase::RecvRecv => match self.cx.syms.kind(view.recv?) {
                SymKind::Call(call) => call.recv?,
                _ => return None,
            },
            PlaceBase::Const(text) => {
                let name = self.cx.names.intern(text);
                self.cx.syms.make(SymKind::Str(name))
            }
            PlaceBase::Result => self.vals[view.dst.0 as usize],
            PlaceBase::Step(..) | PlaceBase::Start | PlaceBase::StartArg(_) => return None,
        };
        for field in &place.fields {
            sym = match self.made_of(sym, field) {
                Some(made) => made?,
                None => {
                    let name = self.cx.names.intern(field);
                    self.cx.syms.field(sym, name)
                }
            };
        }
        Some(sym)
    }

    /// An argument of the call that made a value.
    fn made_arg(&self, sym: Sym, i: usize, keyword: Option<Name>) -> Option<Sym> {
        let args: &[Sym] = match self.cx.syms.kind(sym) {
            SymKind::Call(call) => &call.args,
            SymKind::Cell(cell) => self.cx.made_with.get(cell)?,
            SymKind::Field(base, name) => self.cx.made_in_field(*base, *name)?,
            _ => return None,
        };
        let keywords = args.last().and_then(|last| self.cx.keywords(*last));
        if let (Some(keywords), Some(keyword)) = (keywords, keyword)
            && let Some((_, sym)) = keywords.iter().find(|(name, _)| *name == keyword)
        {
            return Some(*sym);
        }
        let count = args.len() - usize::from(keywords.is_some());
        args[..count].get(i).copied()
    }

    /// `arg1.arg0`, `arg1.recv`: of the call that made a value, an argument or
    /// the receiver. The outer `None`: the field is an ordinary one.
    fn made_of(&self, sym: Sym, field: &str) -> Option<Option<Sym>> {
        if field == "recv" {
            let SymKind::Call(call) = self.cx.syms.kind(sym) else {
                return Some(None);
            };
            let object = |s: &Sym| !matches!(self.cx.syms.kind(*s), SymKind::Ext(_));
            return Some(call.recv.filter(object));
        }
        let number = field.strip_prefix("arg")?.parse().ok()?;
        Some(self.made_arg(sym, number, None))
    }

    /// The argument that is passed by the name in a place.
    fn named(&mut self, place: &PlaceExpr, view: &CallView<'_>) -> Option<(Var, Sym)> {
        if view.named.is_empty() {
            return None;
        }
        let keyword = self.cx.names.intern(place.keyword.as_ref()?);
        if let Some((_, var, sym)) = view.named.iter().find(|(name, ..)| *name == keyword) {
            return Some((*var, *sym));
        }
        // One of `**options`, if it is not given by its position.
        let by_position = matches!(place.base, PlaceBase::Arg(i) if i < view.args.len());
        let spread = self.cx.words.spread;
        let (_, var, options) = view.named.iter().find(|(name, ..)| *name == spread)?;
        if by_position {
            return None;
        }
        Some((*var, self.option(*options, keyword)?))
    }

    /// The register at the base of a place.
    pub(crate) fn base_var(&mut self, place: &PlaceExpr, view: &CallView<'_>) -> Option<Var> {
        match place.base {
            PlaceBase::Arg(i) => match self.named(place, view) {
                Some((var, _)) => Some(var),
                None => view.arg_vars.get(i).copied(),
            },
            PlaceBase::Last => view.arg_vars.last().copied(),
            _ => None,
        }
    }

    pub(crate) fn place_var(&mut self, place: &PlaceExpr, view: &CallView<'_>) -> Option<Var> {
        if !place.fields.is_empty() {
            return None;
        }
        self.base_var(place, view)
    }

    pub(crate) fn use_rule(&mut self, rule: &Rc<Call>, view: &CallView<'_>, fallback: Sym) -> Sym {
        let fallback = self.without_filled(rule, fallback);
        self.note_door(rule.lets_in);
        let mut read: Option<u32> = None;
        let mut result: Option<Sym> = None;
        let mut entry_lock: Option<Sym> = None;
        let mut callback_results: Vec<Sym> = Vec::new();
        for effect in &rule.effects {
            if !effect.when.iter().all(|w| self.when_holds(w, view)) {
                continue;
            }
            match effect.effect.r#do {
                Do::Lock => {
                    let handle = self.lock_effect(effect, view, rule, &mut callback_results);
                    match rule.result {
                        // What comes back has nothing to do with the lock.
                        ResultRule::None => {}
                        // What was read is the guard, too.
                        ResultRule::Read => entry_lock = handle,
                        _ => result = handle.or(result),
                    }
                }
                Do::Unlock => {
                    let key = effect.key.as_ref().and_then(|p| self.place(p, view));
                    if let Some(key) = key {
                        self.releases.push((self.at, Release::Key(key)));
                    }
                }
                Do::Begin => self.begin(effect, view, &mut callback_results),
                Do::Commit | Do::Rollback => {
                    self.releases.push((self.at, Release::Transaction));
                }
                Do::Sql => {
                    let event = self.sql_effect(effect, view);
                    read = event.or(read);
                }
                Do::Close | Do::Enroll | Do::Join => self.life(effect, view),
                Do::Change => {
                    let key = effect.key.as_ref().and_then(|p| self.place(p, view));
                    if let Some(key) = key.or(view.recv) {
                        self.content_access(key, true);
                    }
                }
                Do::Survey => {
                    let key = effect.key.as_ref().and_then(|p| self.place(p, view));
                    if let Some(key) = key.or(view.recv) {
                        self.survey(key);
                    }
                }
                Do::Count => {
                    let key = effect.key.as_ref().and_then(|p| self.place(p, view));
                    if let Some(key) = key.or(view.recv) {
                        self.size_access(key);
                    }
                }
                _ => {
                    if matches!(effect.effect.r#do, Do::Use | Do::Open) {
                        self.life(effect, view);
                    }
                    if effect.effect.indivisible {
                        self.indivisible_access(effect, view);
                    }
                    self.note_published(effect, view);
                    let event = self.plain_effect(effect, view, rule.duck && !rule.sure);
                    read = event.or(read);
                }
            }
        }
        // Callbacks and the result of a call that reads depend on what was read.
        let value = self.result_of(rule, view, fallback, read, result);
        self.note_clock(rule, view, value);
        if entry_lock.is_some() {
            for a in &mut self.acquires {
                if a.handle == entry_lock {
                    a.handle = Some(value);
                }
            }
        }
        if rule.own {
            self.own.insert(value);
        }
        self.fill(rule, view, value);
        self.callbacks(rule, view, value, &mut callback_results);
        if let ([one], ResultRule::Returned) = (callback_results.as_slice(), rule.result)
            && self.is_of_given(rule, view, *one)
        {
            return *one;
        }
        for r in callback_results {
            let deps = self.deps_of(r);
            self.add_deps(value, &deps);
            self.note_new_parts(value, r);
        }
        if let SymKind::New(_, NewOf::Ext(e)) = *self.cx.syms.kind(value)
            && e == self.cx.words.promise
        {
            self.calls_yielding = true;
        }
        value
    }

    /// `files.map((f) => ({ f, draft: f.path + randomUUID() }))`: whoever calls has drafts of its own.
    fn note_new_parts(&mut self, list: Sym, one: Sym) {
        if let SymKind::Object(fields) = self.cx.syms.kind(one) {
            let new = fields.iter().filter(|(_, v)| self.cx.syms.is_fresh(*v));
            self.new_parts.extend(new.map(|(name, _)| (list, *name)));
        }
    }

    /// `found.map(|v| v.id)` is the `id` of what was found. `found.map(|_| 1)` is that only where
    /// something was found, and that is asked of the call.
    fn is_of_given(&self, rule: &Call, view: &CallView<'_>, returned: Sym) -> bool {
        let mut params = rule.callbacks.iter().flat_map(|c| &c.callback.params);
        let given = params.any(|p| matches!(p, Param::Receiver));
        !given || view.recv.is_none_or(|r| self.cx.syms.contains(returned, r))
    }

    fn result_of(
        &mut self,
        rule: &Rc<Call>,
        view: &CallView<'_>,
        fallback: Sym,
        read: Option<u32>,
        given: Option<Sym>,
    ) -> Sym {
        if let Some(sym) = given {
            return sym;
        }
        let site = self.site();
        let sym = match rule.result {
            ResultRule::Fresh => self.cx.syms.make(SymKind::Fresh(site)),
            ResultRule::Join => self.cx.syms.join(view.args.to_vec()),
            ResultRule::Below => {
                let parts = view.recv.into_iter().chain(view.args.iter().copied());
                self.cx.syms.join(parts.collect())
            }
            ResultRule::Copy
            | ResultRule::Returned
            | ResultRule::Values
            | ResultRule::Pairs
            | ResultRule::Member
            | ResultRule::Members
            | ResultRule::Table
            | ResultRule::Makes => fallback,
            // What was done to a promise matters: `catch` swallows, `then` chains.
            ResultRule::Recv if self.is_promise_method(view) => fallback,
            ResultRule::Recv | ResultRule::Entries => view.recv.unwrap_or(fallback),
            ResultRule::Either => self.or_given(view).unwrap_or(fallback),
            ResultRule::Arg(i) => view.args.get(i).copied().unwrap_or(fallback),
            ResultRule::Element => match view.recv {
                Some(recv) => self.cx.syms.make(SymKind::Element(recv)),
                None => fallback,
            },
            ResultRule::Array => match view.args {
                [one] => *one,
                many => self.cx.syms.make(SymKind::Array(many.into())),
            },
            ResultRule::None => self.cx.syms.unknown(site),
            ResultRule::Made => self.made_with(view),
            ResultRule::Added => self.added(view).unwrap_or(fallback),
            ResultRule::Format => self.formatted(view.args).unwrap_or(fallback),
            ResultRule::Default if rule.asks_outside() => {
                self.note_answer(fallback);
                fallback
            }
            ResultRule::Read | ResultRule::Published | ResultRule::Default => {
                // An entry of a shared container is that place itself.
                match read.map(|r| &self.events[r as usize]) {
                    Some(e) if e.loc.kind == ResourceKind::Memory && e.act == Act::Read => {
                        let key = e.loc.key;
                        match rule.result {
                            ResultRule::Published => {
                                let published = self.cx.words.published;
                                self.cx.syms.make(SymKind::Field(key, published))
                            }
                            _ => key,
                        }
                    }
                    _ => fallback,
                }
            }
        };
        if let Some(read) = read
            && rule.result != ResultRule::None
        {
            self.add_deps(sym, &Deps::event(read));
            let stored = self.events[read as usize].loc.kind != ResourceKind::Memory;
            if stored && matches!(rule.result, ResultRule::Read | ResultRule::Default) {
                self.note_stored(sym);
                if self.events[read as usize].loc.kind == ResourceKind::Row {
                    self.note_rows(sym, read);
                }
            }
        }
        sym
    }

    /// The receiver, or what was given for it: `sent.unwrap_or(old)` is the old one where nothing
    /// was sent.
    fn or_given(&mut self, view: &CallView<'_>) -> Option<Sym> {
        let (recv, &[other, ..]) = (view.recv?, view.args) else {
            return view.recv;
        };
        // Nothing comes with the other one that is not in the first: it was made of that.
        let more = self.deps_of(other);
        if !self.deps_of(recv).extend(&more) {
            return Some(recv);
        }
        let block = &self.function.blocks[self.at.block as usize];
        let dst = block.insts.get(self.at.inst as usize)?.op.dst()?;
        Some(self.either(recv, other, dst))
    }

    /// A thing by its arguments: a lock on a path is the lock of that path.
    fn made_with(&mut self, view: &CallView<'_>) -> Sym {
        let mut args = view.args.to_vec();
        if !view.named.is_empty() {
            let named = view.named.iter().map(|(name, _, sym)| (*name, *sym));
            args.push(self.cx.keyword_object(named));
        }
        let callee = match view.entity {
            Some(e) => CalleeSym::Value(self.cx.syms.make(SymKind::Ext(e))),
            None => CalleeSym::Method(self.cx.words.op),
        };
        self.cx.syms.make(SymKind::Call(Box::new(CallSym {
            callee,
            recv: view.recv.filter(|_| view.entity.is_none()),
            args: args.into(),
        })))
    }

    /// What the call says goes into the variables whose addresses it was given.
    fn fill(&mut self, rule: &Call, view: &CallView<'_>, value: Sym) {
        let Some(place) = &rule.fills else { return };
        let vars = match place.base {
            PlaceBase::Arg(i) => view.arg_vars.get(i..=i),
            PlaceBase::Args(i) => view.arg_vars.get(i..),
            _ => None,
        };
        let deps = self.deps_of(value);
        let block = &self.function.blocks[self.at.block as usize];
        let vars = vars.unwrap_or_default();
        let count = vars.len();
        let mut filled: Vec<(usize, Var)> = Vec::new();
        for (i, var) in vars.iter().enumerate() {
            // The register was loaded just before: from where?
            let load = block.insts[..self.at.inst as usize]
                .iter()
                .rev()
                .find(|inst| inst.op.dst() == Some(*var));
            match load.map(|inst| &inst.op) {
                Some(toctou_core::ir::Op::Copy { src, .. }) => filled.push((i, *src)),
                Some(toctou_core::ir::Op::LoadVar { cell, .. }) if cell.owner == self.id => {
                    filled.push((i, cell.var));
                }
                load => {
                    let sym = self.val(*var);
                    let column = self.column_of(&deps, i, count);
                    self.add_deps(sym, &column);
                    // Of what holds it, the field's name says which part is meant.
                    self.taint(sym, &deps);
                    if let Some(toctou_core::ir::Op::GetField { obj, field, .. }) = load {
                        self.fill_field(*obj, *field, i, &column);
                    }
                }
            }
        }
        for (i, var) in filled {
            let site = sym::through(self.site(), i as u64 + 1);
            let sym = self.cx.syms.unknown(site);
            let deps = self.column_of(&deps, i, count);
            self.add_deps(sym, &deps);
            self.set(var, sym);
        }
    }

    /// `append(list, a, b)` is `list + [a, b]`, and `append(list, more...)` is `list + more`.
    fn added(&mut self, view: &CallView<'_>) -> Option<Sym> {
        let (list, more) = view.args.split_first()?;
        let more = match more {
            [] => return Some(*list),
            [one] if self.is_spread(1) => *one,
            more => self.cx.syms.make(SymKind::Array(more.into())),
        };
        Some(self.cx.syms.make(SymKind::Call(Box::new(CallSym {
            callee: CalleeSym::Method(self.cx.words.op),
            recv: None,
            args: [*list, more].into(),
        }))))
    }

    /// Is the argument of the call that is interpreted a list of arguments?
    fn is_spread(&self, index: usize) -> bool {
        let inst = &self.function.blocks[self.at.block as usize].insts[self.at.inst as usize];
        match &inst.op {
            toctou_core::ir::Op::Call { args, .. } => args.get(index).is_some_and(|a| a.spread),
            _ => false,
        }
    }

    /// What a call fills is none of what its result is made of: `err := row.Scan(&a.id)`.
    fn without_filled(&mut self, rule: &Call, value: Sym) -> Sym {
        let (Some(place), SymKind::Call(call)) = (&rule.fills, self.cx.syms.kind(value)) else {
            return value;
        };
        let mut call = call.clone();
        let null = self.cx.syms.null();
        let filled = match place.base {
            PlaceBase::Arg(i) => call.args.get_mut(i..=i),
            PlaceBase::Args(i) => call.args.get_mut(i..),
            _ => None,
        };
        filled.unwrap_or_default().fill(null);
        self.cx.syms.make(SymKind::Call(call))
    }

    /// The variables of a `Scan` are the columns of its `SELECT`, in order.
    fn column_of(&self, deps: &Deps, index: usize, count: usize) -> Deps {
        deps.iter()
            .map(|dep| {
                let row = match dep.source {
                    crate::effect::Source::Event(e) => self.events[e as usize].row.as_ref(),
                    _ => None,
                };
                match row {
                    Some(row) if row.columns.len() == count => crate::effect::Dep {
                        attr: row.columns.get(index).copied(),
                        ..dep
                    },
                    _ => dep,
                }
            })
            .collect()
    }

    fn is_promise_method(&self, view: &CallView<'_>) -> bool {
        let w = &self.cx.words;
        view.method
            .is_some_and(|m| m == w.then || m == w.catch || m == w.finally)
    }

    fn callbacks(
        &mut self,
        rule: &Rc<Call>,
        view: &CallView<'_>,
        value: Sym,
        results: &mut Vec<Sym>,
    ) {
        for c in &rule.callbacks {
            // What runs under the effect's lock or transaction has run.
            if rule
                .effects
                .iter()
                .any(|e| e.callback.as_ref() == Some(&c.place))
            {
                continue;
            }
            let Some(callee) = self.place(&c.place, view) else {
                continue;
            };
            let var = self.place_var(&c.place, view);
            if c.callback.time == CallbackTime::Later {
                self.later(callee, var, view, c.callback.thread);
                continue;
            }
            // A task of its own, and one for each call of who starts it: what that one's
            // callers share, the tasks that they start share as well.
            if c.callback.time == CallbackTime::Beside {
                self.later(callee, var, view, c.callback.thread);
                let entry = Entry {
                    spawned: true,
                    thread: c.callback.thread,
                    ..Entry::default()
                };
                self.call_back(callee, var, entry);
                continue;
            }
            let site = self.site();
            let mut args: Vec<Sym> = Vec::new();
            for p in &c.callback.params {
                args.push(match p {
                    Param::None => self.cx.syms.null(),
                    Param::Result => value,
                    Param::Receiver | Param::Client => view.recv.unwrap_or(value),
                    Param::Element => match view.recv {
                        Some(recv) => self.cx.syms.make(SymKind::Element(recv)),
                        None => value,
                    },
                    Param::Resolve => self.cx.syms.make(SymKind::Handle(site)),
                    Param::Reject => self.cx.syms.null(),
                });
            }
            // `setTimeout(f, ms, a, b)`: the rest is handed on.
            if let Some(SymKind::Array(more)) = c
                .args
                .as_ref()
                .and_then(|p| self.place(p, view))
                .map(|s| self.cx.syms.kind(s))
            {
                args.extend(more.iter().copied());
            }
            // What the library puts in front has no register here.
            if c.callback.params.is_empty()
                && let Some(result) = self.call_library_back(callee, var, &args, view)
            {
                if c.callback.returns {
                    results.push(result);
                }
                continue;
            }
            let locks = self.chain_lock(view, rule).into_iter().collect();
            let entry = Entry {
                args,
                locks,
                yields_before: c.callback.time == CallbackTime::After,
                thread: c.callback.thread,
                ..Entry::default()
            };
            if c.callback.time == CallbackTime::After {
                self.calls_yielding = true;
            }
            if let Some(result) = self.call_back(callee, var, entry)
                && c.callback.returns
            {
                results.push(result);
            }
        }
    }

    /// Reads, writes and the like, as one model line says.
    fn plain_effect(
        &mut self,
        effect: &EffectRule,
        view: &CallView<'_>,
        duck: bool,
    ) -> Option<u32> {
        let e = &effect.effect;
        let kind = e.resource.unwrap_or(match e.r#do {
            Do::Send | Do::Use | Do::Open | Do::Receive => ResourceKind::External,
            _ => ResourceKind::File,
        });
        let key = match &effect.key {
            Some(p) => match self.place(p, view) {
                Some(key) => key,
                // What made an argument is not known: so is the place. A table is known by the way
                // to it as well, whoever opened it.
                None if p.fields.is_empty()
                    || kind == ResourceKind::Row && matches!(p.base, PlaceBase::RecvArg(_)) =>
                {
                    view.recv?
                }
                None => self.cx.syms.unknown(self.site()),
            },
            None => view.recv.unwrap_or_else(|| self.cx.syms.null()),
        };
        if kind == ResourceKind::Row {
            return self.row_effect(effect, view, key, duck);
        }
        let key = match kind {
            ResourceKind::File => self.path_of(key),
            _ => key,
        };
        // A program of the server's own choice makes no links for a client.
        if e.relinks
            && self
                .deps_of(key)
                .iter()
                .any(|d| !matches!(d.source, crate::effect::Source::Event(_)))
        {
            self.cx.relinkers.insert(self.id);
        }
        let entry = effect.entry.as_ref().and_then(|p| self.place(p, view));
        let loc = match (kind, entry) {
            (ResourceKind::Memory, Some(entry)) => {
                let key = self.cx.syms.index(key, entry, &self.cx.names);
                Loc {
                    kind,
                    key,
                    entry: None,
                }
            }
            _ => Loc { kind, key, entry },
        };
        let act = match e.r#do {
            Do::Read | Do::Receive => Act::Read,
            Do::Check | Do::Search => Act::Check,
            Do::Resolve => Act::Resolve,
            Do::List => Act::List,
            Do::Append => Act::Append,
            Do::Delete => Act::Delete,
            Do::Ensure => Act::Ensure,
            Do::Send => Act::Send,
            Do::Use => Act::Use,
            Do::Open => Act::Open,
            Do::Rename => {
                return self.rename(loc, effect, view);
            }
            _ => Act::Write,
        };
        // What is opened for a scope is closed at its end: doing that twice leaves nothing behind.
        if act == Act::Open && kind == ResourceKind::External && self.is_held_for_scope(view.dst) {
            return None;
        }
        let value = effect.value.as_ref().and_then(|p| self.place(p, view));
        // Under a name that nobody else has it is one more, and nobody's loss.
        let adds = kind == ResourceKind::Memory
            && act == Act::Write
            && entry.is_some()
            && self.cx.syms.is_of_fresh_entry(loc.key);
        let held_by = loc.key;
        let (act, loc) = if adds {
            (Act::Append, Loc { key, ..loc })
        } else {
            (act, loc)
        };
        if kind == ResourceKind::Memory {
            if !self.cx.may_be_shared(loc.key) {
                if let Some(v) = value {
                    let deps = self.deps_of(v);
                    self.taint(loc.key, &deps);
                    let list = self.stored.entry(loc.key).or_default();
                    if !list.contains(&v) && list.len() < crate::texts::MAX_ITEMS {
                        list.push(v);
                    }
                }
                return None;
            }
            if (adds || act == Act::Write)
                && let Some(v) = value
            {
                let list = self.stored.entry(held_by).or_default();
                if !list.contains(&v) && list.len() < 8 {
                    list.push(v);
                }
            }
        }
        // Whose list it is that a caller has handed in, the caller knows.
        let search = e.r#do == Do::Search;
        let root = self.cx.syms.root(loc.key);
        if search && matches!(self.cx.syms.kind(root), SymKind::Param(_)) {
            return None;
        }
        let mut event = self.event(act, loc);
        event.search = search;
        event.mode = match e.mode {
            // Who does not ask whether it was swapped goes on as if it were.
            Mode::Conditional if effect.filter.is_some() && !self.is_looked_at(view.dst) => {
                Mode::Atomic
            }
            _ if adds => Mode::Exclusive,
            mode => mode,
        };
        event.duck = duck;
        event.key_deps = self.deps_of(loc.key);
        if let Some(v) = value {
            event.data = self.deps_of(v);
            event.constant = self.is_constant(v) || self.is_template(v, loc);
            event.puts_back = kind == ResourceKind::Memory && v == loc.key;
        }
        // `if path.is_symlink()`: the call itself is the question.
        event.judged = act == Act::Resolve && self.is_judging(view, view.entity.as_slice());
        event.idempotent = effect.idempotency.iter().any(|p| self.is_given(p, view))
            || self.calls_one_of(&effect.effect.idempotency_by);
        event.lease = effect.effect.lease;
        let whole = kind == ResourceKind::Memory && act == Act::Delete && entry.is_none();
        event.empties = whole.then_some(true);
        if kind == ResourceKind::File && act == Act::Write {
            event.value = value;
            let file = self.cx.syms.temporary(loc.key);
            let written = self.file_data.entry(file).or_default();
            written.add(&event.data, value);
        }
        if !self.is_visible(loc) {
            return None;
        }
        let data = event.data.clone();
        // `let to = if … { a } else { b }`: either may be the one that is written.
        if kind == ResourceKind::File && act.is_write() {
            for key in self.variants(loc.key) {
                let other = Loc { key, ..loc };
                if self.is_visible(other) {
                    let mut event = event.clone();
                    event.loc = other;
                    self.push(event);
                }
            }
        }
        let id = self.push(event);
        if kind == ResourceKind::Memory && act.is_write() {
            self.taint(loc.key, &data);
        }
        if kind == ResourceKind::File && e.mode == Mode::Exclusive && act == Act::Write {
            self.file_lock(loc.key);
        }
        id
    }

    /// Is it what another file holds, whoever calls? Then two calls write the same.
    fn is_template(&self, value: Sym, to: Loc) -> bool {
        let deps = self.deps_of(value);
        let from_file = |d: crate::effect::Dep| match d.source {
            crate::effect::Source::Event(e) => {
                let read = &self.events[e as usize];
                read.act == Act::Read && read.loc.kind == ResourceKind::File && read.loc != to
            }
            _ => false,
        };
        let syms = &self.cx.syms;
        // The part of it that the caller asked for is another one for each.
        let is_chosen = syms.any(value, |s| matches!(syms.kind(s), SymKind::Param(_)));
        !deps.is_empty()
            && !is_chosen
            && !syms.is_fresh(value)
            && deps.iter().filter(|d| !d.implicit).all(from_file)
    }

    fn rename(&mut self, from: Loc, effect: &EffectRule, view: &CallView<'_>) -> Option<u32> {
        let to = effect.value.as_ref().and_then(|p| self.place(p, view))?;
        let to = match from.kind {
            ResourceKind::File => self.path_of(to),
            _ => to,
        };
        let file = self.cx.syms.temporary(from.key);
        let written = self.file_data.get(&file).cloned().unwrap_or_default();
        // A folder that is moved brings its links along. A file does not, that was written here or
        // found to be one.
        if self.last_round
            && !self.file_data.contains_key(&file)
            && from.kind == ResourceKind::File
            && !self.is_no_folder(from)
        {
            self.cx.relinkers.insert(self.id);
        }
        if self.is_visible(from) {
            let mut event = self.event(Act::Delete, from);
            event.key_deps = self.deps_of(from.key);
            event.mode = Mode::Replace;
            self.push(event);
        }
        let loc = Loc {
            kind: from.kind,
            key: to,
            entry: None,
        };
        if !self.is_visible(loc) {
            return None;
        }
        let mut event = self.event(Act::Write, loc);
        event.mode = if effect.effect.mode == Mode::Blind {
            Mode::Replace
        } else {
            effect.effect.mode
        };
        event.key_deps = self.deps_of(to);
        // What the renamed file holds is what the new one holds.
        event.data = written.deps;
        event.value = written.value;
        self.push(event)
    }

    pub fn tagged(
        &mut self,
        number: u32,
        dst: Var,
        tag: &Callee,
        strings: &[Name],
        values: &[Var],
    ) -> Sym {
        let values: Vec<Sym> = values.iter().map(|v| self.val(*v)).collect();
        let text = self.template_text(strings);
        if toctou_models::sql::looks_like_sql(&text) {
            let site = self.site();
            let sym = self.cx.syms.unknown(site);
            let mut deps = Deps::default();
            for v in &values {
                deps.extend(&self.deps_of(*v));
            }
            self.add_deps(sym, &deps);
            let looked_at = self.is_looked_at(dst);
            let run = crate::rows::Run::default();
            if let Some(read) = self.sql_text(&text, &values, None, looked_at, run) {
                self.add_deps(sym, &Deps::event(read));
            }
            return sym;
        }
        let args = values;
        self.call(number, dst, tag, &args, &[], CallKind::Plain, true)
    }

    fn template_text(&self, strings: &[Name]) -> String {
        let mut text = String::new();
        for (i, s) in strings.iter().enumerate() {
            if i > 0 {
                text.push_str(&format!("toctou_hole_{}", i - 1));
            }
            text.push_str(self.cx.names.text(*s));
        }
        text
    }
}

/// Does the place name something that the call was given which made a value: `arg0.arg0`?
fn is_made(place: &PlaceExpr) -> bool {
    let of_call = |f: &String| {
        f == "recv"
            || f.strip_prefix("arg")
                .is_some_and(|n| n.parse::<usize>().is_ok())
    };
    place.fields.last().is_some_and(of_call)
}
