//! Rows as objects: classes that are tables, statements that are built in one
//! place and run in another, objects that are written back when they are changed.

use std::rc::Rc;

use rustc_hash::{FxHashMap, FxHashSet};
use toctou_core::Name;
use toctou_core::finding::ResourceKind;
use toctou_core::ir::{Arg, Callee, ClassId, FuncId, Literal, Op, Var};

use crate::calls::CallView;
use crate::context::Context;
use crate::effect::{Act, Deps, Event, Loc, Pos, Row};
use crate::interp::Interp;
use crate::linkage::TypeTarget;
use crate::sym::{CalleeSym, NewOf, Sym, SymKind};

impl Context<'_, '_> {
    /// Is the class a table, by what it extends or by a field that says so?
    pub(crate) fn is_record(&self, class: ClassId) -> bool {
        let mut at = class;
        for _ in 0..16 {
            let fields = &self.program.classes[at.0 as usize].fields;
            let marked =
                |f: &toctou_core::ir::Field| self.library.is_record_field(f.name, &self.names);
            if fields.iter().any(marked) {
                return true;
            }
            match self.linkage.superclass(at) {
                Some(TypeTarget::Class(next)) => at = next,
                Some(TypeTarget::Ext(e)) => {
                    return self.library.is_record(e, &self.entities, &self.names);
                }
                None => return false,
            }
        }
        false
    }

    /// Is an attribute of this name written back with the row? What the class of a table does not
    /// speak of is hung on the object for somebody else to find.
    pub(crate) fn may_have_column(&self, class: ClassId, name: Name) -> bool {
        let mut at = class;
        for _ in 0..16 {
            let class = &self.program.classes[at.0 as usize];
            let speaks = class.fields.iter().any(|f| f.name == name)
                || class.methods.iter().any(|(method, _)| *method == name)
                || self.class_bodies.contains(&(at, name));
            // What else it is made of is not followed.
            if speaks || !class.implements.is_empty() {
                return true;
            }
            match self.linkage.superclass(at) {
                Some(TypeTarget::Class(next)) => at = next,
                Some(TypeTarget::Ext(e)) => {
                    return !self.library.is_record(e, &self.entities, &self.names);
                }
                // `Base = declarative_base()`
                None => return false,
            }
        }
        true
    }
}

/// Columns of records that their class says to be unique, alone or together, each with its table.
pub(crate) fn unique_columns(cx: &mut Context<'_, '_>) -> Vec<(String, Vec<String>)> {
    let program = cx.program;
    let mut found = Vec::new();
    for (f, function) in program.functions.iter().enumerate() {
        let mut said = Said::default();
        for inst in function.blocks.iter().flat_map(|b| &b.insts) {
            if let Op::Class { dst, class } = inst.op
                && cx.is_record(class)
            {
                said.classes.insert(dst, class);
            }
            said.note(&inst.op);
            let Op::SetField { obj, field, value } = inst.op else {
                continue;
            };
            let Some(class) = said.classes.get(&obj) else {
                continue;
            };
            cx.class_bodies.insert((*class, field));
            let table = program.classes[class.0 as usize].name;
            let listed = said.lists.get(&value).map_or(&[][..], Vec::as_slice);
            for made in std::iter::once(&value).chain(listed) {
                let Some((call, args)) = said.made.get(made) else {
                    continue;
                };
                for &e in cx.points_to.targets(FuncId(f as u32), *call).1 {
                    let rules = cx.library.calls(e, &mut cx.entities, &mut cx.names);
                    let text = |n: Name| cx.names.text(n).to_owned();
                    let alone = args
                        .iter()
                        .filter(|a| said.yes.contains(&a.value))
                        .any(|a| {
                            let name = a.name.map(text).unwrap_or_default();
                            rules.iter().any(|r| r.unique_if.contains(&name))
                        });
                    let mut columns = Vec::new();
                    if alone {
                        columns.push(text(field));
                    } else if rules.iter().any(|r| r.unique_over) {
                        let plain = args.iter().filter(|a| a.name.is_none());
                        columns.extend(
                            plain
                                .filter_map(|a| said.texts.get(&a.value))
                                .map(|n| text(*n)),
                        );
                    }
                    if !columns.is_empty() {
                        found.push((text(table), columns));
                    }
                }
            }
        }
    }
    found
}

/// What a class body has written down so far.
#[derive(Default)]
struct Said<'a> {
    classes: FxHashMap<Var, ClassId>,
    yes: FxHashSet<Var>,
    texts: FxHashMap<Var, Name>,
    made: FxHashMap<Var, (u32, &'a [Arg])>,
    lists: FxHashMap<Var, Vec<Var>>,
    calls: u32,
}

impl<'a> Said<'a> {
    fn note(&mut self, op: &'a Op) {
        match op {
            Op::Const { dst, value } => match value {
                Literal::Bool(true) => {
                    self.yes.insert(*dst);
                }
                Literal::Str(text) => {
                    self.texts.insert(*dst, *text);
                }
                _ => {}
            },
            Op::Call { dst, args, .. } => {
                // One without a word says nothing of this kind.
                let says =
                    |a: &Arg| self.yes.contains(&a.value) || self.texts.contains_key(&a.value);
                if args.iter().any(says) {
                    self.made.insert(*dst, (self.calls, args));
                }
                self.calls += 1;
            }
            Op::TaggedTemplate { .. } => self.calls += 1,
            Op::Array { dst, items } => {
                let items = items.iter().map(|i| i.value);
                self.lists.insert(*dst, items.collect());
            }
            _ => {}
        }
    }
}

impl Interp<'_, '_, '_> {
    /// The class of a record that is made here, or that is itself meant.
    pub(crate) fn record_class(&self, sym: Sym) -> Option<ClassId> {
        let class = match self.cx.syms.kind(sym) {
            SymKind::Class(class) | SymKind::New(_, NewOf::Class(class)) => *class,
            _ => return None,
        };
        self.cx.is_record(class).then_some(class)
    }

    /// A table by its class, whether that, one of its columns or an object of it is given.
    pub(crate) fn table_of(&mut self, sym: Sym) -> Sym {
        let class = match *self.cx.syms.kind(sym) {
            SymKind::Field(base, _) => self.record_class(base),
            _ => self.record_class(sym),
        };
        match class {
            Some(class) => self.cx.syms.make(SymKind::Class(class)),
            None => self.table_below(sym).unwrap_or(sym),
        }
    }

    /// A call that is given a statement to run: `session.execute(select(Task))`.
    pub(crate) fn built_call(&mut self, view: &CallView<'_>, fallback: Sym) -> Option<Sym> {
        let given = *view.args.first()?;
        let mut statements = vec![given];
        statements.extend(self.alternatives.get(&given).into_iter().flatten());
        for statement in statements {
            let Some((steps, start)) = self.chain_steps(statement) else {
                continue;
            };
            let Some(rule) = self.chain_rule(&steps, true) else {
                continue;
            };
            if rule.steps.first() != Some(&steps[0].0) || !self.begins_in_library(steps[0].1) {
                continue;
            }
            if let Some(read) = self.run_chain(&rule, &steps, start, view.dst) {
                self.add_deps(fallback, &Deps::event(read));
            }
            return Some(fallback);
        }
        None
    }

    /// Is it a function of a library that is called?
    fn begins_in_library(&self, call: Sym) -> bool {
        let SymKind::Call(call) = self.cx.syms.kind(call) else {
            return false;
        };
        let of = match call.callee {
            CalleeSym::Value(v) => Some(v),
            CalleeSym::Method(_) => call.recv,
            CalleeSym::Func(_) => None,
        };
        of.is_some_and(|s| matches!(self.cx.syms.kind(s), SymKind::Ext(_)))
    }

    /// A column of a row that was read here is set: the session writes it back.
    pub(crate) fn record_write(&mut self, object: Sym, column: Name, value: Sym) {
        // What is made of rows is no row, unless its class is a table.
        if let SymKind::New(_, NewOf::Class(class)) = *self.cx.syms.kind(object)
            && !self.cx.is_record(class)
        {
            return;
        }
        let of_object = self.deps_of(object);
        let read = of_object.iter().find_map(|d| match d.source {
            crate::effect::Source::Event(e) if !d.implicit && d.attr.is_none() => {
                let event = &self.events[e as usize];
                let record = event.row.as_ref().is_some_and(|r| r.record);
                (event.call.is_none() && event.act == Act::Read && record).then_some(event.loc)
            }
            _ => None,
        });
        let Some(read) = read else { return };
        if let SymKind::Class(class) = *self.cx.syms.kind(read.key)
            && !self.cx.may_have_column(class, column)
        {
            return;
        }
        let id = self.cx.names.intern("id");
        let row = Row {
            columns: vec![column],
            conditions: vec![(id, of_object.clone())],
            record: true,
            ..Row::default()
        };
        let mut event = self.event(
            Act::Write,
            Loc {
                kind: ResourceKind::Row,
                entry: None,
                ..read
            },
        );
        self.note_updated(read.key, &[column]);
        event.data = self.deps_of(value);
        event.constant = self.is_constant(value);
        event.key_deps = of_object;
        event.row = Some(Rc::new(row));
        self.push(event);
    }

    /// Who catches the error that a second insert ends in has seen to it.
    pub(crate) fn note_conflicts(&mut self) {
        let inserts = |row: &Option<Rc<Row>>| row.as_ref().is_some_and(|r| r.insert);
        if !self.events.iter().any(|e| inserts(&e.row)) {
            return;
        }
        let cx = &*self.cx;
        let caught = self.vals.iter().any(|v| match cx.syms.kind(*v) {
            SymKind::Ext(e) => cx.library.is_conflict(*e, &cx.entities, &cx.names),
            _ => false,
        });
        if !caught {
            return;
        }
        for event in &mut self.events {
            if event.call.is_none()
                && let Some(row) = event.row.as_mut().filter(|r| r.insert)
            {
                Rc::make_mut(row).unique = true;
            }
        }
    }

    /// `cursor.rowcount`, after a statement that the cursor has run, looks at what it did.
    pub(crate) fn note_counts(&mut self) {
        let mut asked: Vec<(Pos, Sym)> = Vec::new();
        for (b, block) in self.function.blocks.iter().enumerate() {
            for (i, inst) in block.insts.iter().enumerate() {
                if let Op::GetField { obj, field, .. } = inst.op
                    && field == self.cx.words.rowcount
                {
                    let at = Pos {
                        block: b as u32,
                        inst: i as u32,
                    };
                    asked.push((at, self.val(obj)));
                }
            }
        }
        if asked.is_empty() {
            return;
        }
        let looked_at = |event: &Event| {
            let block = &self.function.blocks[event.at.block as usize];
            let Op::Call { dst, callee, .. } = &block.insts[event.at.inst as usize].op else {
                return false;
            };
            let made = self.val(*dst);
            let run_by = match callee {
                Callee::Method { obj, .. } => self.val(*obj),
                _ => made,
            };
            asked.iter().any(|(at, of)| {
                let after = at.block == event.at.block && at.inst > event.at.inst
                    || at.block != event.at.block && self.cfg.dominates(event.at.block, at.block);
                after && (*of == made || *of == run_by)
            })
        };
        let found: Vec<bool> = self.events.iter().map(looked_at).collect();
        for (event, found) in self.events.iter_mut().zip(found) {
            if found
                && event.call.is_none()
                && event.act.is_write()
                && let Some(row) = &mut event.row
            {
                Rc::make_mut(row).looked_at = true;
            }
        }
    }
}
