//! Calls: who is called, and what a callee's summary means here.

use std::rc::Rc;

use rustc_hash::FxHashMap;
use toctou_core::ir::{CallKind, Callee, FuncId, FuncKind, Op, Term, Var};
use toctou_core::{FileRole, Name};

use crate::effect::{Deps, Lock, LockKind};
use crate::entity::EntityId;
use crate::instance::Instance;
use crate::interp::{Acquire, Interp, Release};
use crate::summary::SymCall;
use crate::sym::{self, CallSym, CalleeSym, NewOf, Sym, SymKind};

/// More candidates than this and a call says nothing about any of them.
const MAX_TARGETS: usize = 96;
/// … if each of them has a name of its own.
const MAX_TOOLS: usize = 1_024;
/// A value that can be this many functions came out of a table of handlers.
const MIN_TABLE: usize = 4;
pub(crate) const MAX_DEPTH: u8 = 8;

/// A call as the models see it.
pub struct CallView<'x> {
    pub dst: Var,
    pub recv: Option<Sym>,
    pub method: Option<Name>,
    pub args: &'x [Sym],
    pub arg_vars: Vec<Var>,
    /// Arguments that are passed by name.
    pub named: &'x [(Name, Var, Sym)],
    pub entity: Option<EntityId>,
    pub number: u32,
    pub kind: CallKind,
}

/// How a callee is entered.
#[derive(Clone, Default)]
pub struct Entry {
    pub recv: Option<Sym>,
    pub args: Vec<Sym>,
    /// Arguments by name; in the callee, those that no parameter has the name of.
    pub named: Vec<(Name, Sym)>,
    /// What stands for the result where only a caller knows who is called.
    pub value: Option<Sym>,
    pub bound: Option<Rc<[Sym]>>,
    pub locks: Vec<Rc<Lock>>,
    pub yields_before: bool,
    pub detached: bool,
    /// Runs beside the caller: `go f()`.
    pub spawned: bool,
    pub label: Option<Name>,
    pub depth: u8,
    /// In a thread of its own.
    pub thread: bool,
}

impl<'a> Interp<'_, 'a, '_> {
    #[allow(clippy::too_many_arguments)]
    pub fn call(
        &mut self,
        number: u32,
        dst: Var,
        callee: &Callee,
        args: &[Sym],
        named: &[(Name, Var, Sym)],
        kind: CallKind,
        awaited: bool,
    ) -> Sym {
        let (recv, method, value) = match callee {
            Callee::Method { obj, name } => (Some(self.val(*obj)), Some(*name), None),
            Callee::Value(v) => (None, None, Some(self.val(*v))),
            Callee::Super(_) => (Some(self.cx.syms.make(SymKind::This)), None, None),
        };
        if let Some(done) = self.release_call(recv, method, value) {
            return done;
        }
        let arg_vars = self.arg_vars();
        let view = CallView {
            dst,
            recv,
            method,
            args,
            arg_vars,
            named,
            entity: None,
            number,
            kind,
        };
        let fallback = self.call_sym(&view, value);

        // Something only a caller knows.
        if let Some(value) = value
            && self.is_callers(value)
        {
            self.symbolic_call(value, &view, fallback);
            return fallback;
        }

        let (funcs, exts) = self.cx.points_to.targets(self.id, number);
        let (mut funcs, exts) = (funcs.to_vec(), exts.to_vec());
        self.note_judging(&view, &exts);
        let mut bound: Option<Rc<[Sym]>> = None;
        match value.map(|v| self.cx.syms.kind(v)) {
            Some(SymKind::Func(f)) => funcs = vec![*f],
            Some(SymKind::Bound(f, env)) => {
                bound = Some(env.to_vec().into());
                funcs = vec![*f];
            }
            _ => {}
        }
        if exts.is_empty() {
            self.note_result(dst, &funcs);
        }
        // What a decorator gives back stands for what it was given.
        let stands_for = args.first().filter(|_| kind == CallKind::Decorate);
        if self.register_entries(&view, &exts) {
            return stands_for.copied().unwrap_or(fallback);
        }

        self.note_request(&funcs, &view);
        if kind == CallKind::New || method.is_none() && self.are_constructors(&funcs) {
            return self.construct(&view, &funcs, &exts, awaited);
        }
        let labels = self.labels(callee, &funcs);
        // Tools are many; functions of one name that have nothing else in common are noise.
        let most = if labels.len() * 2 > funcs.len() {
            MAX_TOOLS
        } else {
            MAX_TARGETS
        };
        if funcs.len() > most {
            funcs.clear();
        }
        let mut results = Vec::new();
        if value.is_some() && funcs.len() >= MIN_TABLE && self.last_round {
            self.dispatched.push((self.at, funcs.clone()));
        }
        for f in &funcs {
            let args = self.bound_args(*f, &view);
            self.note_maker(*f, &args);
            let entry = Entry {
                recv,
                args,
                named: by_name(&view),
                bound: bound.clone(),
                detached: !awaited,
                spawned: kind == CallKind::Spawn,
                label: labels.get(f).copied(),
                ..Entry::default()
            };
            results.push(self.enter(*f, entry));
            // A promise that is handed on takes its failure along.
            let handed_on = matches!(
                self.function.blocks[self.at.block as usize].term,
                Term::Return(Some(v)) if v == dst
            );
            let fails = self.cx.summaries[f.0 as usize]
                .as_ref()
                .is_none_or(|s| s.may_throw);
            if handed_on && fails {
                self.failing.push(self.at);
            }
        }
        for &e in &exts {
            // An instance that is called itself is the receiver.
            let called = value.filter(|_| self.cx.entities.get(e).instance);
            let view = CallView {
                recv: view.recv.or(called),
                entity: Some(e),
                arg_vars: view.arg_vars.clone(),
                ..view
            };
            if let Some(sym) = self.external(&view, fallback) {
                results.push(sym);
                break;
            }
        }
        if let (true, Some(&stands_for)) = (results.is_empty(), stands_for) {
            results.push(stands_for);
        }
        if results.is_empty() {
            results.push(self.unmodelled(&view, &exts, fallback));
        }
        match results.as_slice() {
            [one] => *one,
            many => {
                let site = self.site();
                let joined = self.cx.syms.unknown(site);
                let mut deps = Deps::default();
                for s in many {
                    deps.extend(&self.deps_of(*s));
                }
                self.add_deps(joined, &deps);
                joined
            }
        }
    }

    pub(crate) fn arg_vars(&self) -> Vec<Var> {
        match &self.function.blocks[self.at.block as usize].insts[self.at.inst as usize].op {
            toctou_core::ir::Op::Call { args, .. } => args
                .iter()
                .filter(|a| a.name.is_none())
                .map(|a| a.value)
                .collect(),
            _ => Vec::new(),
        }
    }

    /// Arguments that the caller left out have the values that the callee says.
    fn fill_in(&mut self, f: FuncId, args: &mut Vec<Sym>) {
        for i in 0..self.cx.program.function(f).params.len() {
            let given = args.get(i).copied();
            if given.is_some_and(|s| !matches!(self.cx.syms.kind(s), SymKind::Null)) {
                continue;
            }
            if let Some(default) = self.cx.default_of(f, i) {
                while args.len() <= i {
                    args.push(self.cx.syms.null());
                }
                args[i] = default;
            }
        }
    }

    /// A class is called by its name alone, without a word for it.
    fn are_constructors(&self, funcs: &[FuncId]) -> bool {
        let program = self.cx.program;
        !funcs.is_empty()
            && funcs
                .iter()
                .all(|f| program.function(*f).kind == FuncKind::Constructor)
    }

    /// The arguments in the order of the callee's parameters.
    fn bound_args(&mut self, f: FuncId, view: &CallView<'_>) -> Vec<Sym> {
        let mut entry = Entry {
            args: view.args.to_vec(),
            named: by_name(view),
            ..Entry::default()
        };
        self.place_named(f, &mut entry);
        self.spread_args(f, view, &mut entry.args);
        entry.args
    }

    /// Arguments by name go where the callee has a parameter of that name.
    fn place_named(&mut self, f: FuncId, entry: &mut Entry) {
        if entry.named.is_empty() {
            return;
        }
        let callee = self.cx.program.function(f);
        let null = self.cx.syms.null();
        let args = &mut entry.args;
        entry.named.retain(|(name, sym)| {
            let named = |p: &Var| callee.vars.get(p.0 as usize).and_then(|info| info.name);
            let Some(i) = callee.params.iter().position(|p| named(p) == Some(*name)) else {
                return true;
            };
            if args.len() <= i {
                args.resize(i + 1, null);
            }
            args[i] = *sym;
            false
        });
    }

    /// `f(**options)`: parameters that nothing else was given for are its fields.
    fn spread_args(&mut self, f: FuncId, view: &CallView<'_>, args: &mut Vec<Sym>) {
        let spread = self.cx.words.spread;
        let Some((_, _, options)) = view.named.iter().find(|n| n.0 == spread) else {
            return;
        };
        let callee = self.cx.program.function(f);
        for (i, param) in callee.params.iter().enumerate() {
            let name = callee.vars.get(param.0 as usize).and_then(|info| info.name);
            let Some(name) = name.filter(|_| i >= view.args.len()) else {
                continue;
            };
            if view.named.iter().any(|n| n.0 == name) {
                continue;
            }
            if let Some(value) = self.option(*options, name) {
                while args.len() <= i {
                    args.push(self.cx.syms.null());
                }
                args[i] = value;
            }
        }
    }

    /// A field of an object of options, if it can have it: of one that is
    /// written out, those that are written or set later.
    pub(crate) fn option(&mut self, options: Sym, field: Name) -> Option<Sym> {
        let place = self.cx.syms.make(SymKind::Field(options, field));
        if let Some(values) = self.stored.get(&place) {
            return Some(match values.as_slice() {
                [one] => *one,
                _ => place,
            });
        }
        if let SymKind::Object(fields) = self.cx.syms.kind(options)
            && !fields.iter().any(|(name, _)| *name == field)
        {
            return None;
        }
        Some(self.cx.syms.field(options, field))
    }

    pub(crate) fn call_sym(&mut self, view: &CallView<'_>, value: Option<Sym>) -> Sym {
        let callee = match (view.method, value) {
            (Some(name), _) => CalleeSym::Method(name),
            (None, Some(v)) => CalleeSym::Value(v),
            (None, None) => CalleeSym::Method(self.cx.words.op),
        };
        if view.args.len() > 32 {
            let site = self.site();
            return self.cx.syms.unknown(site);
        }
        let mut args = view.args.to_vec();
        if !view.named.is_empty() {
            let named = view.named.iter().map(|(name, _, sym)| (*name, *sym));
            args.push(self.cx.keyword_object(named));
        }
        self.cx.syms.make(SymKind::Call(Box::new(CallSym {
            callee,
            recv: view.recv,
            args: args.into(),
        })))
    }

    /// `release()`, `lock.release()` of something that an acquisition returned.
    fn release_call(
        &mut self,
        recv: Option<Sym>,
        method: Option<Name>,
        value: Option<Sym>,
    ) -> Option<Sym> {
        let handle = match (value, recv, method) {
            (Some(v), _, _) if matches!(self.cx.syms.kind(v), SymKind::Handle(_)) => v,
            (None, Some(r), Some(m)) if matches!(self.cx.syms.kind(r), SymKind::Handle(_)) => {
                if !self.cx.words.release.contains(&m) {
                    return None;
                }
                r
            }
            _ => return None,
        };
        self.releases.push((self.at, Release::Handle(handle)));
        Some(self.cx.syms.null())
    }

    /// A parameter, a field of one, or a parameter of an enclosing function.
    pub(crate) fn is_callers(&self, value: Sym) -> bool {
        match self.cx.syms.kind(self.cx.syms.root(value)) {
            SymKind::Param(_) => true,
            SymKind::Cell(cell) => cell.owner != self.id && self.cx.param_cells.contains_key(cell),
            _ => false,
        }
    }

    /// `catch (e) { reject(e) }`: who is told of a failure does not fail by it.
    fn tells_of_failure(&self) -> bool {
        let insts = &self.function.blocks[self.at.block as usize].insts;
        let Some(Op::Call { args, .. }) = insts.get(self.at.inst as usize).map(|i| &i.op) else {
            return false;
        };
        let blocks = self.function.blocks.iter();
        let mut caught = blocks.filter_map(|b| match b.insts.first()?.op {
            Op::Catch { dst } => Some(self.val(dst)),
            _ => None,
        });
        matches!(&**args, [told] if caught.any(|c| c == self.val(told.value)))
    }

    fn symbolic_call(&mut self, callee: Sym, view: &CallView<'_>, value: Sym) {
        let arg_deps = view.args.iter().map(|a| self.deps_of(*a)).collect();
        let call = SymCall {
            callee,
            args: view.args.to_vec(),
            arg_deps,
            named: by_name(view),
            rest: self.rest_of(view),
            value: Some(value),
            locks: Vec::new(),
            yields_before: false,
            func: self.id,
            span: self.span,
            depth: 0,
            thread: false,
            spawned: false,
        };
        self.calls_yielding = true;
        if !self.tells_of_failure() {
            self.failing.push(self.at);
        }
        self.push_sym_call(call);
        self.note_wrapped(callee, view);
    }

    /// A closure that is handed out calls what its maker was given: whoever calls the closure, it
    /// is that which runs. (A parameter of its own is known to who calls it.)
    fn note_wrapped(&mut self, callee: Sym, view: &CallView<'_>) {
        let captured = matches!(self.cx.syms.kind(callee), SymKind::Cell(c) if c.owner != self.id);
        if !captured || !self.is_racy() {
            return;
        }
        let (funcs, _) = self.cx.points_to.targets(self.id, view.number);
        let mut funcs = funcs.to_vec();
        funcs.truncate(MAX_TARGETS);
        // What is a closure itself has variables of whoever made it, and that may be anybody.
        let program = self.cx.program;
        let is_closure = |f: FuncId| {
            let parent = program.function(f).parent;
            parent.is_some_and(|p| program.function(p).kind != FuncKind::ModuleInit)
        };
        funcs.retain(|f| !is_closure(*f));
        for f in funcs {
            let entry = Entry {
                args: view.args.to_vec(),
                ..Entry::default()
            };
            self.note_call(f, &entry);
        }
    }

    /// The parameter that takes the rest, if it is handed on as what it was: `f(*rest)`.
    fn rest_of(&self, view: &CallView<'_>) -> Option<u32> {
        let inst = &self.function.blocks[self.at.block as usize].insts[self.at.inst as usize];
        let toctou_core::ir::Op::Call { args, .. } = &inst.op else {
            return None;
        };
        let last = args.iter().rfind(|a| a.name.is_none())?;
        match self.cx.syms.kind(*view.args.last()?) {
            SymKind::Param(i) if last.spread && self.function.has_rest => Some(*i),
            _ => None,
        }
    }

    /// What tells the functions apart that a dispatcher's one call leads to.
    fn labels(&mut self, callee: &Callee, funcs: &[FuncId]) -> FxHashMap<FuncId, Name> {
        if funcs.len() < 2 {
            return FxHashMap::default();
        }
        let keys = self.table_labels(callee);
        if !keys.is_empty() {
            return keys;
        }
        let named = funcs.iter().map(|f| (*f, self.cx.name_beside(*f)));
        named.filter_map(|(f, name)| Some((f, name?))).collect()
    }

    /// The keys of a table of functions, when one of them is called by a computed key.
    fn table_labels(&self, callee: &Callee) -> FxHashMap<FuncId, Name> {
        let mut out = FxHashMap::default();
        let Callee::Value(v) = callee else { return out };
        // handlers[name](…): the register was loaded from a table just before.
        let block = &self.function.blocks[self.at.block as usize];
        for inst in &block.insts[..self.at.inst as usize] {
            if let toctou_core::ir::Op::GetIndex { dst, obj, .. } = &inst.op
                && dst == v
            {
                for (name, f) in self.cx.points_to.function_fields(self.id, *obj) {
                    out.insert(f, name);
                }
            }
        }
        out
    }

    fn construct(
        &mut self,
        view: &CallView<'_>,
        funcs: &[FuncId],
        exts: &[EntityId],
        awaited: bool,
    ) -> Sym {
        let class = funcs
            .iter()
            .find_map(|f| self.cx.program.function(*f).class);
        let of = match (class, exts.first()) {
            (Some(c), _) => NewOf::Class(c),
            (None, Some(e)) => {
                let e = self
                    .cx
                    .library
                    .instance_of(*e, &mut self.cx.entities, &mut self.cx.names);
                NewOf::Ext(e)
            }
            (None, None) => NewOf::Other,
        };
        let site = self.site();
        let sym = self.cx.syms.make(SymKind::New(site, of));
        let mut deps = Deps::default();
        for a in view.args.iter().chain(view.named.iter().map(|n| &n.2)) {
            deps.extend(&self.deps_of(*a));
        }
        self.add_deps(sym, &deps);
        for f in funcs {
            let entry = Entry {
                recv: Some(sym),
                args: self.bound_args(*f, view),
                detached: !awaited,
                ..Entry::default()
            };
            self.enter(*f, entry);
        }
        for &e in exts {
            let view = CallView {
                entity: Some(e),
                arg_vars: view.arg_vars.clone(),
                ..*view
            };
            if let Some(result) = self.external(&view, sym) {
                return result;
            }
        }
        sym
    }

    /// A function argument is called by a library, or by something unknown.
    pub fn call_back(&mut self, callee: Sym, var: Option<Var>, entry: Entry) -> Option<Sym> {
        match self.cx.syms.kind(callee) {
            SymKind::Func(f) => {
                let f = *f;
                return Some(self.enter(f, entry));
            }
            SymKind::Bound(f, env) => {
                let (f, env) = (*f, env.to_vec());
                return Some(self.enter(
                    f,
                    Entry {
                        bound: Some(env.into()),
                        ..entry
                    },
                ));
            }
            SymKind::Handle(site) => {
                // `resolve(value)`: the promise made there holds the value.
                let kind = SymKind::New(*site, NewOf::Ext(self.cx.words.promise));
                let promise = self.cx.syms.make(kind);
                for arg in &entry.args {
                    let deps = self.deps_of(*arg);
                    self.add_deps(promise, &deps);
                }
                self.releases.push((self.at, Release::Handle(callee)));
                return None;
            }
            _ => {}
        }
        if self.is_callers(callee) {
            let arg_deps = entry.args.iter().map(|a| self.deps_of(*a)).collect();
            let call = SymCall {
                callee,
                args: entry.args.clone(),
                arg_deps,
                named: entry.named,
                rest: None,
                value: entry.value,
                locks: entry.locks,
                yields_before: entry.yields_before,
                func: self.id,
                span: self.span,
                depth: entry.depth,
                thread: entry.thread,
                spawned: entry.spawned,
            };
            self.calls_yielding = true;
            self.push_sym_call(call);
            return None;
        }
        let mut funcs: Vec<FuncId> = var
            .map(|v| self.cx.points_to.functions(self.id, v).collect())
            .unwrap_or_default();
        funcs.truncate(MAX_TARGETS);
        let recv = match self.cx.syms.kind(callee) {
            SymKind::Field(base, _) => Some(*base),
            SymKind::Call(call) => call.args.first().copied(),
            _ => entry.recv,
        };
        let mut result = None;
        for f in funcs {
            result = Some(self.enter(
                f,
                Entry {
                    recv,
                    ..entry.clone()
                },
            ));
        }
        result
    }

    /// Puts a callee's summary in at this call. The result is its value here.
    pub fn enter(&mut self, f: FuncId, entry: Entry) -> Sym {
        let callee = self.cx.program.function(f);
        let site = self.site();
        let mut entry = entry;
        self.place_named(f, &mut entry);
        self.note_call(f, &entry);
        if self.is_product && f != self.id {
            self.cx.entered.insert(f);
        }
        // What an example or script makes the product do is its own business.
        let outside = !self.is_product && self.cx.program.file_of(f).role == FileRole::Product;
        let summary = if outside {
            None
        } else {
            self.cx.summaries[f.0 as usize].clone()
        };
        let Some(summary) = summary else {
            // Recursive: not known yet.
            self.calls_yielding |= callee.is_async;
            let sym = self.cx.syms.unknown(sym::through(site, u64::from(f.0)));
            let mut deps = Deps::default();
            for a in &entry.args {
                deps.extend(&self.deps_of(*a));
            }
            self.add_deps(sym, &deps);
            return sym;
        };
        if entry.depth > MAX_DEPTH {
            return self.cx.syms.unknown(site);
        }
        self.fill_in(f, &mut entry.args);
        if summary.may_throw && !callee.is_async {
            self.failing.push(self.at);
        }
        self.calls_yielding |= summary.yields;
        for &given in &summary.ages {
            let given = match given {
                Some(i) => entry.args.get(i as usize).copied(),
                None => entry.recv,
            };
            if let Some(sym) = given {
                self.note_age(sym);
            }
        }
        let lexical_this = callee.kind == FuncKind::Arrow && self.is_lexically_inside(f);
        let mut inst = Instance {
            entry: &entry,
            lexical_this,
            parent: callee.parent,
            rest: (callee.params.len() as u32)
                .checked_sub(1)
                .filter(|_| callee.has_rest),
            site,
            tables: self.spare_tables.pop().unwrap_or_default(),
            results: FxHashMap::default(),
            map: vec![u32::MAX; summary.events.len()],
            entered: u32::MAX,
        };
        if let Some(object) = entry.recv.filter(|_| !summary.fields.is_empty()) {
            let fields = self.map_fields(&summary.fields, &mut inst);
            self.note_fields(object, fields);
        }
        // What is not waited for runs beside us, not before what comes next.
        if !(entry.spawned || entry.detached && callee.is_async) {
            self.enter_events(&summary, &mut inst);
        }
        if self.last_round {
            self.enter_windows(&summary, &mut inst);
        }
        if self.last_round {
            let gate = self.map_deps(&summary.throw_deps, &mut inst);
            if !gate.is_empty() {
                self.gates.push((self.at, gate));
            }
            let judged = self.map_deps(&summary.judged, &mut inst);
            self.judged.extend(&judged);
        }
        for call in &summary.sym_calls {
            self.enter_sym_call(call, &mut inst);
        }
        if !inst.results.is_empty() {
            inst.tables.forget_deps();
        }
        for key in &summary.releases {
            let key = self.rewrite(*key, &mut inst);
            self.releases.push((self.at, Release::Key(key)));
        }
        if summary.ends_transaction {
            self.releases.push((self.at, Release::Transaction));
        }
        let mut result = match summary.ret {
            Some(ret) => self.rewrite_ret(ret, &mut inst),
            // A promise of nothing is something.
            None if callee.is_async => self.cx.syms.unknown(site),
            None => self.cx.syms.null(),
        };
        for alternative in &summary.alternatives {
            let known = self.rewrite(*alternative, &mut inst);
            if known != result {
                let options = self.alternatives.entry(result).or_default();
                if !options.contains(&known) {
                    options.push(known);
                }
            }
        }
        for (object, fields) in &summary.made {
            let object = self.rewrite(*object, &mut inst);
            let fields = self.map_fields(fields, &mut inst);
            self.note_fields(object, fields);
        }
        for (list, item) in &summary.kept {
            let list = self.rewrite(*list, &mut inst);
            let item = self.rewrite(*item, &mut inst);
            self.note_kept(list, item);
        }
        for (part, place) in &summary.known_as {
            let part = self.rewrite(*part, &mut inst);
            let place = self.rewrite(*place, &mut inst);
            self.note_known_as(part, place);
        }
        let deps = self.map_deps(&summary.ret_deps, &mut inst);
        for (part, deps) in &summary.ret_parts {
            let part = self.rewrite(*part, &mut inst);
            let deps = self.map_deps(deps, &mut inst);
            self.add_deps(part, &deps);
        }
        if !summary.leaves_held.is_empty() {
            let handle = self
                .cx
                .syms
                .make(SymKind::Handle(sym::through(site, u64::from(f.0))));
            let mut guard = false;
            for (lock, if_true) in &summary.leaves_held {
                let lock = self.map_lock(lock, &mut inst);
                // A guard that is handed on goes on standing for what is locked,
                // by itself or as a part of what is handed on.
                let is_guard = lock.key == result
                    || matches!(
                        self.cx.syms.kind(result),
                        SymKind::Object(_) | SymKind::Array(_)
                    ) && self.cx.syms.contains(result, lock.key)
                    // `with transaction() as connection`: over when the connection is left.
                    || callee.is_generator && lock.kind.is_transaction() && summary.ret.is_some();
                guard |= is_guard;
                self.acquires.push(Acquire {
                    at: self.at,
                    lock,
                    handle: Some(if is_guard { result } else { handle }),
                    if_true: *if_true,
                });
            }
            if !guard {
                result = handle;
            }
        }
        self.spare_tables.push(inst.tables.emptied());
        if self.is_tuples(&[result])
            && let SymKind::Object(fields) = self.cx.syms.kind(result).clone()
        {
            for (_, value) in &fields {
                self.add_deps(*value, &deps);
            }
        }
        self.add_deps(result, &deps);
        if summary.answers {
            self.note_answer(result);
        }
        if !summary.may_throw {
            self.sure.insert(result);
        }
        result
    }

    /// Is the awaited value the tail of a promise chain that we have just put
    /// ourselves at the end of? Then the wait is the acquisition of a lock.
    pub fn awaited(&mut self, value: Sym) {
        self.chain_wait(value);
    }

    /// What comes out of a promise that is made here is not the promise.
    pub fn settled(&mut self, value: Sym) -> Sym {
        if let SymKind::New(site, NewOf::Ext(e)) = *self.cx.syms.kind(value)
            && e == self.cx.words.promise
        {
            let deps = self.deps_of(value);
            let out = self.cx.syms.unknown(sym::through(site, 0xa3a17));
            self.add_deps(out, &deps);
            return out;
        }
        value
    }

    fn chain_wait(&mut self, value: Sym) {
        let value = self.place_of(value);
        let Some(values) = self.stored.get(&value).cloned() else {
            return;
        };
        if !self.cx.may_be_shared(value) {
            return;
        }
        let Some(handle) = values.iter().find_map(|v| self.promise_in(*v)) else {
            return;
        };
        let lock = Rc::new(Lock {
            key: value,
            scope: toctou_models::LockScope::Process,
            kind: LockKind::Chain,
            lease: false,
            shared: false,
            once: false,
            at_once: false,
            keyed: false,
            hoped: false,
            counted: false,
            func: self.id,
            span: self.span,
        });
        self.acquires.push(Acquire {
            at: self.at,
            lock,
            handle: Some(handle),
            if_true: false,
        });
    }

    /// The resolver of a promise that is made here and stands in `value`.
    fn promise_in(&mut self, value: Sym) -> Option<Sym> {
        let mut stack = vec![value];
        let mut budget = 64;
        while let Some(s) = stack.pop() {
            budget -= 1;
            if budget == 0 {
                return None;
            }
            match self.cx.syms.kind(s).clone() {
                SymKind::New(site, NewOf::Ext(e)) if e == self.cx.words.promise => {
                    return Some(self.cx.syms.make(SymKind::Handle(site)));
                }
                SymKind::Func(g) => {
                    let ret = self.cx.summaries[g.0 as usize].as_ref().and_then(|s| s.ret);
                    if let Some(ret) = ret
                        && let SymKind::Cell(cell) = *self.cx.syms.kind(ret)
                        && cell.owner == self.id
                    {
                        stack.push(self.vals[cell.var.0 as usize]);
                    }
                }
                kind => sym::for_each_child(&kind, |c| stack.push(c)),
            }
        }
        None
    }
}

fn by_name(view: &CallView<'_>) -> Vec<(Name, Sym)> {
    view.named
        .iter()
        .map(|(name, _, sym)| (*name, *sym))
        .collect()
}
