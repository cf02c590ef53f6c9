//! What values are and where they came from.

use std::rc::Rc;

use super::Interp;
use super::marks::Marked;
use super::sets::Turn;
use crate::cfg::Control;
use crate::effect::{
    Act, Dep, Deps, Event, Growing, Source, word_of_answer, word_of_choice, word_of_field,
};
use crate::sym::{self, CallSym, CalleeSym, Sym, SymKind};
use smallvec::SmallVec;
use toctou_core::Name;
use toctou_core::finding::ResourceKind;
use toctou_core::ir::{BlockId, Term, Var};

/// More names than this for one file say nothing any more.
const MAX_VARIANTS: usize = 8;

impl<'c, 'a, 'm> Interp<'c, 'a, 'm> {
    /// What is compared with a value is a value, too: of a query for one column, that column.
    pub(super) fn note_column(&mut self, value: Sym, with: Sym, result: Sym) {
        if matches!(self.cx.syms.kind(with), SymKind::Null) {
            return;
        }
        let column = |dep: Dep| match self.columns_of(dep)? {
            [one] => Some(Dep {
                attr: Some(*one),
                ..dep
            }),
            _ => None,
        };
        let deps: Deps = self.deps_of(value).iter().filter_map(column).collect();
        self.add_deps(result, &deps);
    }

    /// `row[0]` is the first column that was asked for.
    pub(super) fn note_column_at(&mut self, row: Sym, at: usize, result: Sym) {
        let column = |dep: Dep| {
            let attr = Some(*self.columns_of(dep)?.get(at)?);
            Some(Dep { attr, ..dep })
        };
        let deps: Deps = self.deps_of(row).iter().filter_map(column).collect();
        self.add_deps(result, &deps);
    }

    /// Of rows that were read as they are, the columns that were asked for by name.
    fn columns_of(&self, dep: Dep) -> Option<&[Name]> {
        let Source::Event(e) = dep.source else {
            return None;
        };
        let row = self.events.get(e as usize)?.row.as_ref()?;
        let all = |c: &Name| self.cx.names.text(*c) == "*";
        let plain = dep.attr.is_none() && !row.aggregate && !row.insert;
        (plain && !row.columns.iter().any(all)).then_some(row.columns.as_slice())
    }

    /// One of several values: the one that says most, if the others are defaults.
    pub(crate) fn join_syms(&mut self, options: &[Sym], salt: u64) -> Sym {
        let mut distinct: Vec<Sym> = Vec::new();
        for &s in options {
            if !matches!(self.cx.syms.kind(s), SymKind::Null) && !distinct.contains(&s) {
                distinct.push(s);
            }
        }
        match distinct.as_slice() {
            [] => self.cx.syms.null(),
            [one] => *one,
            many if self.is_tuples(many) => {
                let many = many.to_vec();
                self.join_tuples(&many, salt)
            }
            many => {
                let places: Vec<Sym> = many
                    .iter()
                    .copied()
                    .filter(|&s| !self.is_default(s))
                    .collect();
                if let [one] = places.as_slice()
                    && self.cx.may_be_shared(*one)
                    && !matches!(self.cx.syms.kind(*one), SymKind::Param(_))
                {
                    return *one;
                }
                let site = sym::through(sym::site(self.id, 0xff_ffff), salt);
                // Whichever way was taken, nobody else has it.
                let fresh = many.iter().all(|s| self.cx.syms.is_fresh(*s));
                let joined = if fresh {
                    self.cx.syms.make(SymKind::Fresh(site))
                } else {
                    self.cx.syms.unknown(site)
                };
                let options = self.alternatives.entry(joined).or_default();
                for &s in many {
                    if s != joined && options.len() < 4 && !options.contains(&s) {
                        options.push(s);
                    }
                }
                let mut deps = Deps::default();
                for &s in many {
                    if s != joined {
                        deps.extend(&self.deps_of(s));
                    }
                }
                self.add_deps(joined, &deps);
                joined
            }
        }
    }

    /// Is it the first of two that decides which of them it is?
    pub(super) fn is_chosen_by_first(&self, from: &[Var]) -> bool {
        let [first, _] = *from else { return false };
        self.cfg.preds[self.at.block as usize].iter().any(|&pred| {
            let term = &self.function.blocks[pred as usize].term;
            matches!(term, Term::Branch { cond, .. } if *cond == first)
        })
    }

    /// `a ?? b`. Where it is not known which, the same two give the same one again, unless
    /// one of them was read from what others change.
    pub(crate) fn either(&mut self, left: Sym, right: Sym, dst: Var) -> Sym {
        let joined = self.join_syms(&[left, right], u64::from(dst.0));
        let unknown = matches!(self.cx.syms.kind(joined), SymKind::Unknown(_));
        if !unknown || self.deps_of(joined).events().next().is_some() {
            return joined;
        }
        let callee = CalleeSym::Method(self.cx.words.either);
        let same = self.cx.syms.make(SymKind::Call(Box::new(CallSym {
            callee,
            recv: None,
            args: [left, right].into(),
        })));
        if let Some(options) = self.alternatives.get(&joined).cloned() {
            self.alternatives.insert(same, options);
        }
        same
    }

    /// What a value, or a name that is made with it, can be where it differs by the way taken.
    pub(crate) fn variants(&mut self, sym: Sym) -> Vec<Sym> {
        let Some(mut all) = self.alternatives.get(&sym).cloned() else {
            return self.made_with_variants(sym);
        };
        for known in all.clone() {
            for more in self.made_with_variants(known) {
                if !all.contains(&more) && all.len() < MAX_VARIANTS {
                    all.push(more);
                }
            }
        }
        all
    }

    /// The same name with what one of its parts can be.
    fn made_with_variants(&mut self, sym: Sym) -> Vec<Sym> {
        let (SymKind::Join(parts) | SymKind::Concat(parts)) = self.cx.syms.kind(sym).clone() else {
            return Vec::new();
        };
        let differs = parts.iter().position(|p| self.alternatives.contains_key(p));
        let Some(i) = differs else { return Vec::new() };
        let options = self.alternatives[&parts[i]].clone();
        let is_path = matches!(self.cx.syms.kind(sym), SymKind::Join(_));
        let with = |option: Sym| {
            let mut parts = parts.to_vec();
            parts[i] = option;
            if is_path {
                self.cx.syms.join(parts)
            } else {
                self.concat(parts)
            }
        };
        options.into_iter().map(with).collect()
    }

    /// Are these all several results in one?
    pub(crate) fn is_tuples(&self, syms: &[Sym]) -> bool {
        let first = self.cx.words.first;
        syms.iter().all(|s| {
            matches!(self.cx.syms.kind(*s), SymKind::Object(fields)
                if fields.first().is_some_and(|(name, _)| *name == first))
        })
    }

    /// One of several tuples, result by result.
    fn join_tuples(&mut self, tuples: &[Sym], salt: u64) -> Sym {
        let SymKind::Object(shape) = self.cx.syms.kind(tuples[0]).clone() else {
            return tuples[0];
        };
        let mut out: Vec<(Name, Sym)> = Vec::with_capacity(shape.len());
        for (i, (name, _)) in shape.iter().enumerate() {
            let options: Vec<Sym> = tuples
                .iter()
                .map(|t| self.cx.syms.field(*t, *name))
                .collect();
            let joined = self.join_syms(&options, sym::through(salt, i as u64 + 1));
            out.push((*name, joined));
        }
        self.cx.syms.make(SymKind::Object(out.into()))
    }

    /// A constant, a fresh object, `Promise.resolve()`: what stands in for a missing value.
    pub(crate) fn is_default(&self, s: Sym) -> bool {
        match self.cx.syms.kind(s) {
            SymKind::Str(_)
            | SymKind::Num(_)
            | SymKind::Bool(_)
            | SymKind::Object(_)
            | SymKind::Array(_)
            | SymKind::New(..) => true,
            SymKind::Call(call) => {
                let static_call = call
                    .recv
                    .is_some_and(|r| matches!(self.cx.syms.kind(r), SymKind::Ext(_)));
                static_call && call.args.is_empty()
            }
            _ => false,
        }
    }

    pub fn add_deps(&mut self, sym: Sym, deps: &Deps) {
        if deps.is_empty() || self.is_constant(sym) {
            return;
        }
        let known = self.deps.entry(sym).or_default();
        if self.cx.sets.get_mut().extend(known, deps) {
            self.note_change_of(sym);
        }
    }

    /// [`Deps::as_implicit`], which is asked of the same sets again and again.
    pub(crate) fn as_implicit(&self, deps: &Deps) -> Deps {
        self.turned(deps, Turn::Implicit, Deps::as_implicit)
    }

    pub(crate) fn turned(&self, deps: &Deps, turn: Turn, make: impl FnOnce(&Deps) -> Deps) -> Deps {
        self.cx.sets.borrow_mut().turned(deps, turn, make)
    }

    /// More is known of a term. What was made from it, if anybody has asked for that, is not
    /// true any more.
    pub(crate) fn note_change_of(&mut self, sym: Sym) {
        self.changes += u32::from(self.cx.marks.note(sym));
    }

    pub fn is_constant(&self, sym: Sym) -> bool {
        matches!(
            self.cx.syms.kind(sym),
            SymKind::Str(_)
                | SymKind::Num(_)
                | SymKind::Bool(_)
                | SymKind::Null
                | SymKind::Ext(_)
                | SymKind::Func(_)
                | SymKind::Class(_)
                | SymKind::Namespace(_)
        )
    }

    pub(crate) fn is_of_memory(&self, event: u32) -> bool {
        self.events[event as usize].loc.kind == ResourceKind::Memory
    }

    /// What a value was derived from.
    pub fn deps_of(&self, sym: Sym) -> Deps {
        if self.is_constant(sym) {
            return Deps::default();
        }
        // Most values are plain: nothing is known, and nothing is below them.
        if !self.cx.marks.is_known(sym)
            && let Some(deps) = self.deps_of_leaf(sym)
        {
            self.cx.marks.ask(sym);
            return deps;
        }
        if let Some((changes, known)) = self.derived.borrow().get(&sym)
            && *changes == self.changes
        {
            return known.clone();
        }
        let mut words = self.scratch.take();
        words.clear();
        self.collect_deps(sym, &mut words, &mut self.cx.marks.asked(), true, 0);
        let deps = self.cx.sets.borrow_mut().of(&mut words);
        self.scratch.replace(words);
        let mut derived = self.derived.borrow_mut();
        derived.insert(sym, (self.changes, deps.clone()));
        deps
    }

    /// What a term without parts depends on, if nothing else is known of it.
    fn deps_of_leaf(&self, sym: Sym) -> Option<Deps> {
        match self.cx.syms.kind(sym) {
            SymKind::Param(i) => Some(Deps::one(Dep::on(Source::Param(*i)))),
            SymKind::Cell(cell) if self.cx.is_module_cell(*cell) => Some(Deps::default()),
            SymKind::This
            | SymKind::VarLoc(_)
            | SymKind::New(..)
            | SymKind::Fresh(_)
            | SymKind::Handle(_)
            | SymKind::Unknown(_) => Some(Deps::default()),
            _ => None,
        }
    }

    /// It is what somebody outside answered.
    pub(crate) fn note_answer(&mut self, sym: Sym) {
        if self.answers.insert(sym) {
            self.note_change_of(sym);
        }
    }

    /// It is what a store gave.
    pub(crate) fn note_stored(&mut self, sym: Sym) {
        if self.from_stores.insert(sym) {
            self.note_change_of(sym);
        }
    }

    /// It is rows that a database gave, as they are: what is counted or summed up is made by
    /// the question, too.
    pub(crate) fn note_rows(&mut self, sym: Sym, read: u32) {
        let row = self.events[read as usize].row.as_ref();
        if row.is_none_or(|r| !r.aggregate) {
            self.note_stored(sym);
            if self.from_tables.insert(sym) {
                self.note_change_of(sym);
            }
        }
    }

    /// What a store was asked for decides what it gave, and not how it was opened: much is
    /// done with a connection before the first question.
    fn collect_asked(&self, call: &CallSym, out: &mut Vec<u64>, asked: &mut Marked, depth: u32) {
        let mut at = Some(call);
        while let Some(call) = at {
            for arg in &call.args {
                self.collect_deps(*arg, out, asked, true, depth + 1);
            }
            at = match call.recv.map(|recv| self.cx.syms.kind(recv)) {
                Some(SymKind::Call(recv)) => Some(&**recv),
                _ => None,
            };
        }
    }

    /// `whole`: the value with all its parts, not only where it came from. Of
    /// `a.b`, what was put into other parts of `a` says nothing.
    fn collect_deps(
        &self,
        sym: Sym,
        out: &mut Vec<u64>,
        asked: &mut Marked,
        whole: bool,
        depth: u32,
    ) {
        if self.is_constant(sym) {
            return;
        }
        asked.mark(sym, self.cx.marks.turn());
        let is_known = self.cx.marks.is_known(sym);
        let begin = out.len();
        if is_known {
            if let Some(known) = self.deps.get(&sym) {
                out.extend_from_slice(known.words());
            }
            if let Some(inner) = self.below.get(&sym).filter(|_| whole) {
                out.extend_from_slice(inner.words());
            }
        }
        if depth > 12 {
            return;
        }
        match self.cx.syms.kind(sym) {
            SymKind::Param(i) => out.push(Dep::on(Source::Param(*i)).pack()),
            SymKind::Cell(cell) if !self.cx.is_module_cell(*cell) => {
                out.push(Dep::on(Source::Cell(self.cx.points_to.number(*cell))).pack());
            }
            SymKind::Field(base, name) => {
                let start = out.len();
                self.collect_deps(*base, out, asked, false, depth + 1);
                if !self.cx.words.wrappers.contains(name) {
                    for word in &mut out[start..] {
                        *word = word_of_field(*word, *name);
                    }
                }
            }
            SymKind::Call(call) if matches!(call.callee, CalleeSym::Method(m) if self.cx.words.asides.contains(&m)) =>
            {
                let start = out.len();
                sym::for_each_child(self.cx.syms.kind(sym), |c| {
                    self.collect_deps(c, out, asked, true, depth + 1);
                });
                if let CalleeSym::Method(name) = call.callee {
                    for word in &mut out[start..] {
                        *word = word_of_field(*word, name);
                    }
                }
            }
            SymKind::Call(call) if is_known && self.from_stores.contains(&sym) => {
                let start = out.len();
                self.collect_asked(call, out, asked, depth);
                // The key says which row it is, and is no part of what is in it.
                if self.from_tables.contains(&sym) {
                    for word in &mut out[start..] {
                        *word = word_of_choice(*word);
                    }
                }
            }
            // The index chooses the element, the base holds it.
            SymKind::Index(base, _) | SymKind::Element(base) => {
                self.collect_deps(*base, out, asked, true, depth + 1);
            }
            kind => {
                sym::for_each_child(kind, |c| self.collect_deps(c, out, asked, true, depth + 1));
            }
        }
        if is_known && self.answers.contains(&sym) {
            for word in &mut out[begin..] {
                *word = word_of_answer(*word, |e| self.is_of_memory(e));
            }
        }
        // Terms share parts: a long list is mostly repetition.
        if out.len() - begin > 256 {
            let mut own = out.split_off(begin);
            own.sort();
            own.dedup();
            out.append(&mut own);
        }
    }

    /// All values are known: conditions are asked anew.
    pub fn settle(&mut self) {
        self.conditions.get_mut().clear();
    }

    /// What decides whether a block runs.
    pub fn control_deps(&self, block: u32) -> Rc<Deps> {
        let mut conditions = self.conditions.borrow_mut();
        let conditions = &mut *conditions;
        if conditions.round != self.round {
            conditions.round = self.round;
            conditions.clear();
        }
        if let Some(known) = conditions.blocks.get(&block) {
            return Rc::clone(known);
        }
        let mut all: SmallVec<[Deps; 8]> = SmallVec::new();
        for control in self.cfg.controls_of(block).iter() {
            let deps = conditions
                .controls
                .entry(*control)
                .or_insert_with(|| self.condition_deps(control.block, control.way));
            if !deps.is_empty() && !all.contains(deps) {
                all.push(deps.clone());
            }
        }
        // One is handed on as it is: others may have it, too.
        let out = Rc::new(match all.as_slice() {
            [one] => one.clone(),
            many => {
                let mut out = Growing::new();
                many.iter().for_each(|deps| out.extend(deps));
                self.cx.sets.borrow_mut().own(out.end())
            }
        });
        conditions.blocks.insert(block, Rc::clone(&out));
        out
    }

    pub(crate) fn condition_deps(&self, block: u32, way: u8) -> Deps {
        let b = &self.function.blocks[block as usize];
        if way < 2 {
            if let Term::Branch { cond, .. } = b.term {
                let cond = self.val(cond);
                let deps = self.deps_of(cond);
                return if self.asks_for_object(cond) {
                    let whole = |d: Dep| Dep {
                        attr: d.attr.filter(|_| d.implicit),
                        ..d
                    };
                    deps.iter().map(whole).collect()
                } else {
                    deps
                };
            }
            return Deps::default();
        }
        // Whether an instruction failed: its own reads decided that.
        let mut out = Deps::default();
        if b.handler.is_some() {
            for (i, event) in self.events.iter().enumerate() {
                let asks = match event.act {
                    Act::Check | Act::Resolve => true,
                    Act::Read => way == 3,
                    _ => false,
                };
                if event.at.block == block && asks && self.answers_by_failing(event) {
                    out.insert(Dep::on(Source::Event(i as u32)));
                }
            }
        }
        out
    }

    /// `if (!task)`, for a task that is written out part by part: whether it is there has
    /// nothing to do with what is in it.
    fn asks_for_object(&self, cond: Sym) -> bool {
        let mut sym = cond;
        for _ in 0..4 {
            match self.cx.syms.kind(sym) {
                SymKind::Not(inner) => sym = *inner,
                SymKind::Eq(a, b) if matches!(self.cx.syms.kind(*b), SymKind::Null) => sym = *a,
                SymKind::New(..) => return true,
                kind => return matches!(kind, SymKind::Object(fields) if fields.len() > 1),
            }
        }
        false
    }

    /// Does it fail where there is nothing? A query finds no rows, and a variable has some
    /// value; a file that is not there, or an object that has to be, is an error.
    pub(crate) fn answers_by_failing(&self, event: &Event) -> bool {
        let named = event.loc.kind == ResourceKind::Memory
            && !matches!(self.cx.syms.kind(event.loc.key), SymKind::Index(..));
        event.act.is_read() && !named && event.row.as_ref().is_none_or(|row| row.record)
    }

    /// Text in pieces. Constant neighbours are one constant.
    pub(crate) fn concat(&mut self, parts: Vec<Sym>) -> Sym {
        let mut out: Vec<Sym> = Vec::with_capacity(parts.len());
        for part in parts {
            let flat: Vec<Sym> = match self.cx.syms.kind(part) {
                SymKind::Concat(inner) => inner.to_vec(),
                _ => vec![part],
            };
            for p in flat {
                if let (Some(&last), Some(b)) = (out.last(), self.cx.syms.as_str(p))
                    && let Some(a) = self.cx.syms.as_str(last)
                {
                    let text = format!("{}{}", self.cx.names.text(a), self.cx.names.text(b));
                    if text.len() < 100_000 {
                        let name = self.cx.names.intern(&text);
                        let merged = self.cx.syms.make(SymKind::Str(name));
                        out.pop();
                        out.push(merged);
                        continue;
                    }
                }
                out.push(p);
            }
        }
        match out.as_slice() {
            [one] => *one,
            _ => self.cx.syms.make(SymKind::Concat(out.into())),
        }
    }

    /// A path that is put together as a text is the one that is joined: `${dir}/${name}.json` is
    /// `join(dir, `${name}.json`)`. Folders that are constants stay together.
    pub(crate) fn path_of(&mut self, path: Sym) -> Sym {
        let SymKind::Concat(parts) = self.cx.syms.kind(path).clone() else {
            return path;
        };
        let mut steps: Vec<Vec<Sym>> = Vec::new();
        let mut step: Vec<Sym> = Vec::new();
        for (i, part) in parts.iter().enumerate() {
            let (first, last) = (i == 0, i + 1 == parts.len());
            let text = self.cx.syms.as_str(*part).map(|t| self.cx.names.text(t));
            // Of `/${name}`, the slash is all that is known.
            let Some(text) = text.filter(|t| t.contains('/') && (!first || *t != "/")) else {
                step.push(*part);
                continue;
            };
            // What goes before ends at the first slash, and what follows begins after the last.
            let text = text.to_owned();
            let (before, rest) = match text.split_once('/') {
                Some(cut) if !first => cut,
                _ => ("", text.as_str()),
            };
            let (folders, after) = match rest.rsplit_once('/') {
                Some(cut) if !last => cut,
                _ if last => (rest, ""),
                _ => ("", rest),
            };
            step.extend(self.text(before));
            steps.push(std::mem::take(&mut step));
            steps.push(self.text(folders).into_iter().collect());
            step.extend(self.text(after));
        }
        steps.push(step);
        steps.retain(|step| !step.is_empty());
        let joined = steps.into_iter().map(|step| self.concat(step)).collect();
        self.cx.syms.join(joined)
    }

    fn text(&mut self, text: &str) -> Option<Sym> {
        let name = (!text.is_empty()).then(|| self.cx.names.intern(text))?;
        Some(self.cx.syms.make(SymKind::Str(name)))
    }

    /// The name that a dispatcher compared a request's field with, if that
    /// decides about this block.
    pub fn label(&self, block: u32) -> Option<Name> {
        let mut found: Option<(u32, Name)> = None;
        for control in self.cfg.controls_of(block).iter() {
            let Term::Branch { cond, .. } = self.function.blocks[control.block as usize].term
            else {
                continue;
            };
            let (cond, wanted) = self.positive(cond);
            if control.way != wanted {
                continue;
            }
            // Only inside the branch: what follows it belongs to all.
            let Some(inside) = self.cfg.succs[control.block as usize].get(wanted as usize) else {
                continue;
            };
            if !self.cfg.dominates(inside.to.0, block) {
                continue;
            }
            if let SymKind::Eq(a, b) = self.cx.syms.kind(cond) {
                let (value, text) = match (self.cx.syms.as_str(*a), self.cx.syms.as_str(*b)) {
                    (None, Some(text)) => (*a, text),
                    (Some(text), None) => (*b, text),
                    _ => continue,
                };
                if !self.only_by_cases(inside.to, value) {
                    continue;
                }
                let root = self.cx.syms.root(value);
                if matches!(
                    self.cx.syms.kind(root),
                    SymKind::Param(_) | SymKind::Cell(_)
                ) && found.is_none_or(|(b, _)| control.block < b)
                {
                    found = Some((control.block, text));
                }
            }
        }
        found.map(|(_, name)| name)
    }

    /// The conditions that decide about a block, without their `not`, and whether each holds there.
    pub(crate) fn decisions(&self, block: u32) -> Vec<(Control, Sym, bool)> {
        let controls = self.cfg.controls_of(block);
        let asked = controls.iter().filter(|control| control.way < 2);
        asked
            .filter_map(|&control| {
                let term = &self.function.blocks[control.block as usize].term;
                let Term::Branch { cond, .. } = *term else {
                    return None;
                };
                let (mut sym, mut holds) = (self.val(cond), control.way == 0);
                while let SymKind::Not(inner) = self.cx.syms.kind(sym) {
                    (sym, holds) = (*inner, !holds);
                }
                Some((control, sym, holds))
            })
            .collect()
    }

    /// A condition without its `not`, and the way out where it holds.
    fn positive(&self, cond: Var) -> (Sym, u8) {
        let cond = self.val(cond);
        match self.cx.syms.kind(cond) {
            SymKind::Not(inner) => (*inner, 1),
            _ => (cond, 0),
        }
    }

    /// Is the block reached only where the value is equal to something, be it
    /// through the empty bodies of other cases?
    fn only_by_cases(&self, block: BlockId, value: Sym) -> bool {
        let mut work = vec![block];
        let mut seen = 0;
        while let Some(to) = work.pop() {
            seen += 1;
            for &from in &self.cfg.preds[to.0 as usize] {
                let code = &self.function.blocks[from as usize];
                if code.insts.is_empty() && code.term == Term::Goto(to) && seen < 100 {
                    work.push(BlockId(from));
                } else if !self.is_case(from, to, value) {
                    return false;
                }
            }
        }
        true
    }

    /// Is that edge taken because the value is equal to something?
    fn is_case(&self, from: u32, to: BlockId, value: Sym) -> bool {
        let Term::Branch { cond, .. } = self.function.blocks[from as usize].term else {
            return false;
        };
        let (cond, wanted) = self.positive(cond);
        let way = self.cfg.succs[from as usize].get(wanted as usize);
        way.is_some_and(|edge| edge.to == to)
            && matches!(self.cx.syms.kind(cond), SymKind::Eq(a, b) if *a == value || *b == value)
    }
}
