//! Classes that say which table their objects are rows of, and statements that are built from
//! them: `users.filter(id.eq(x))`, `update(users).set(name.eq(y))`.

use toctou_core::Name;
use toctou_core::finding::ResourceKind;
use toctou_core::ir::{Callee, Op, Program, Var};

use crate::calls::CallView;
use crate::effect::{Act, Source};
use crate::interp::Interp;
use crate::sym::{CallSym, CalleeSym, NewOf, Sym, SymKind};

/// A statement is no deeper than this.
const MAX_STEPS: usize = 40;

/// Columns in which no two rows of a table have the same, by what classes say.
pub(crate) fn unique_columns(program: &Program) -> Vec<(String, Vec<String>)> {
    let text = |n: Name| program.names.text(n).to_owned();
    let classes = program.classes.iter();
    classes
        .filter_map(|class| Some((text(class.table?), &class.unique)))
        .flat_map(|(table, columns)| {
            let columns = columns.iter().map(|c| vec![text(*c)]);
            columns.map(move |c| (table.clone(), c))
        })
        .collect()
}

impl Interp<'_, '_, '_> {
    /// The table that a statement begins with, by its name: `users` of `users.filter(…)`, and of
    /// what a library's function makes of that.
    pub(crate) fn table_below(&mut self, sym: Sym) -> Option<Sym> {
        if !self.cx.has_tables {
            return None;
        }
        let mut at = sym;
        for _ in 0..MAX_STEPS {
            at = match self.cx.syms.kind(at) {
                SymKind::Class(class) | SymKind::New(_, NewOf::Class(class)) => {
                    let table = self.cx.program.classes[class.0 as usize].table?;
                    return Some(self.cx.syms.make(SymKind::Str(table)));
                }
                SymKind::Call(call) => match (call.recv, call.callee) {
                    (Some(recv), _) => recv,
                    (None, CalleeSym::Value(_)) => *call.args.first()?,
                    _ => return None,
                },
                _ => return None,
            };
        }
        None
    }

    /// The steps of a statement that is given to another one: of `exists(table.filter(…))`, too.
    pub(crate) fn nested_steps(&self, sym: Sym) -> Vec<(Name, Sym)> {
        let mut out = Vec::new();
        let mut at = sym;
        while let Some((steps, _)) = self.chain_steps(at) {
            let first = steps[0].1;
            out.extend(steps);
            let SymKind::Call(call) = self.cx.syms.kind(first) else {
                break;
            };
            match (call.recv, call.args.first()) {
                (None, Some(inner)) if out.len() < MAX_STEPS => at = *inner,
                _ => break,
            }
        }
        out
    }

    /// Is it a statement on a table that nobody has run?
    pub(crate) fn is_being_built(&mut self, sym: Sym) -> bool {
        if !self.cx.has_tables {
            return false;
        }
        let Some((steps, _)) = self.chain_steps(sym) else {
            return matches!(self.cx.syms.kind(sym), SymKind::Class(_))
                && self.table_below(sym).is_some();
        };
        !steps.iter().any(|(_, at)| self.ran.contains(at)) && self.table_below(sym).is_some()
    }

    /// The table of what an effect is on: a row by its class, or by where it was read.
    pub(crate) fn row_table(&mut self, sym: Sym, view: &CallView<'_>) -> Option<Sym> {
        if !self.cx.has_tables {
            return None;
        }
        if let Some(table) = self.table_below(sym) {
            return Some(table);
        }
        if view.recv == Some(sym)
            && let Some(var) = self.receiver_var()
            && let Some(class) = self.cx.points_to.only_class(self.id, var)
            && let Some(table) = self.cx.program.classes[class.0 as usize].table
        {
            return Some(self.cx.syms.make(SymKind::Str(table)));
        }
        self.table_of_row(sym)
    }

    fn receiver_var(&self) -> Option<Var> {
        let inst = &self.function.blocks[self.at.block as usize].insts[self.at.inst as usize];
        match &inst.op {
            Op::Call {
                callee: Callee::Method { obj, .. },
                ..
            } => Some(*obj),
            _ => None,
        }
    }

    /// The table that a value is a row of, by the statement that read it, or by its type.
    pub(crate) fn table_of_row(&mut self, sym: Sym) -> Option<Sym> {
        if !self.cx.has_tables {
            return None;
        }
        if let Some(table) = self.table_of_read(sym) {
            return Some(table);
        }
        let class = self.class_of(sym, 0)?;
        let table = self.cx.program.classes[class.0 as usize].table?;
        Some(self.cx.syms.make(SymKind::Str(table)))
    }

    /// Only of tables that classes stand for.
    fn table_of_read(&mut self, sym: Sym) -> Option<Sym> {
        let deps = self.deps_of(sym);
        let key = deps.iter().find_map(|d| match d.source {
            Source::Event(e) if !d.implicit && d.attr.is_none() => {
                let event = &self.events[e as usize];
                let row = event.loc.kind == ResourceKind::Row && event.act == Act::Read;
                (row && event.call.is_none()).then_some(event.loc.key)
            }
            _ => None,
        })?;
        let SymKind::Str(name) = *self.cx.syms.kind(key) else {
            return None;
        };
        let classes = &self.cx.program.classes;
        classes.iter().any(|c| c.table == Some(name)).then_some(key)
    }

    /// A column by its text, as a statement in another language than SQL has it.
    pub(crate) fn column_text(&self, sym: Sym) -> Option<Name> {
        match self.cx.syms.kind(sym) {
            SymKind::Str(name) => Some(*name),
            _ => None,
        }
    }

    /// `column.eq(value)`
    pub(crate) fn compared_column(&mut self, call: &CallSym) -> Option<(Name, Sym)> {
        let (CalleeSym::Method(_), Some(recv), [value]) = (call.callee, call.recv, &*call.args)
        else {
            return None;
        };
        let column = self.column_text(recv)?;
        Some((self.column_name(column), *value))
    }

    /// Is it made of terms that begin with a column: `a.eq(x).and(b.eq(y))`?
    pub(crate) fn is_of_columns(&self, call: &CallSym) -> bool {
        let begins = |sym: Sym| {
            let mut at = sym;
            for _ in 0..MAX_STEPS {
                match self.cx.syms.kind(at) {
                    SymKind::Str(_) => return at != sym,
                    SymKind::Call(call) => match call.recv {
                        Some(recv) => at = recv,
                        None => return false,
                    },
                    _ => return false,
                }
            }
            false
        };
        call.recv.is_some()
            && matches!(call.callee, CalleeSym::Method(_))
            && (call.recv.is_some_and(begins) || call.args.iter().any(|a| begins(*a)))
    }

    /// `CreatedAt` of an enum is the column `created_at`.
    fn column_name(&mut self, column: Name) -> Name {
        let text = self.cx.names.text(column);
        if !text.starts_with(char::is_uppercase) || !text.contains(char::is_lowercase) {
            return column;
        }
        let mut out = String::with_capacity(text.len() + 4);
        for c in text.chars() {
            if c.is_uppercase() && !out.is_empty() {
                out.push('_');
            }
            out.extend(c.to_lowercase());
        }
        self.cx.names.intern(&out)
    }

    /// What the steps of a chain set, as an update document.
    pub(crate) fn set_in_steps(
        &mut self,
        set_steps: &[Name],
        steps: &[(Name, Sym)],
    ) -> Option<Sym> {
        let mut fields = Vec::new();
        let mut other = None;
        for (name, call) in steps {
            let SymKind::Call(call) = self.cx.syms.kind(*call).clone() else {
                continue;
            };
            if !set_steps.contains(name) {
                continue;
            }
            match *call.args {
                [column, value] => {
                    if let Some(column) = self.column_text(column) {
                        fields.push((self.column_name(column), value));
                    }
                }
                [first] if !self.assignments(first, &mut fields, 0) => other = Some(first),
                _ => {}
            }
        }
        if fields.is_empty() || other.is_some() {
            return other;
        }
        let relative = self.cx.names.intern("increment");
        for (column, value) in &mut fields {
            // The database computes it of what is there: as documents say it.
            if self.is_computed_from(*value, *column, 0) {
                *value = self
                    .cx
                    .syms
                    .make(SymKind::Object([(relative, *value)].into()));
            }
        }
        Some(self.cx.syms.make(SymKind::Object(fields.into())))
    }

    /// `column.eq(value)`, and several of them. False if it is something else.
    fn assignments(&mut self, sym: Sym, out: &mut Vec<(Name, Sym)>, depth: u32) -> bool {
        if depth > 4 || out.len() > 64 {
            return false;
        }
        match self.cx.syms.kind(sym).clone() {
            SymKind::Call(call) => match self.compared_column(&call) {
                Some(pair) => {
                    out.push(pair);
                    true
                }
                None => false,
            },
            SymKind::Array(items) => items.iter().all(|i| self.assignments(*i, out, depth + 1)),
            SymKind::Object(fields) => {
                let rest = self.cx.syms.rest;
                out.extend(fields.iter().filter(|f| Some(f.0) != rest).copied());
                true
            }
            _ => false,
        }
    }

    /// Does the value mention the column itself: `balance + 1`, `col(Balance).add(1)`?
    fn is_computed_from(&mut self, value: Sym, column: Name, depth: u32) -> bool {
        // What a statement gave back is no expression of this one.
        if self.ran.contains(&value) || self.table_below(value).is_some() {
            return false;
        }
        let SymKind::Call(call) = self.cx.syms.kind(value).clone() else {
            return false;
        };
        let mut parts = call.recv.iter().chain(call.args.iter()).copied();
        depth < 6
            && parts.any(|part| match *self.cx.syms.kind(part) {
                SymKind::Str(name) => self.column_name(name) == column,
                _ => self.is_computed_from(part, column, depth + 1),
            })
    }

    /// Those fields of an object that this function has set, as an update document.
    pub(crate) fn assigned_in(&mut self, object: Sym) -> Sym {
        if let SymKind::Object(fields) = self.cx.syms.kind(object).clone() {
            let fields = fields.iter().map(|(n, v)| (*n, self.marked_as_set(*v)));
            let fields = fields.collect();
            return self.cx.syms.make(SymKind::Object(fields));
        }
        let function = self.function;
        let mut fields: Vec<(Name, Sym)> = Vec::new();
        for inst in function.blocks.iter().flat_map(|b| &b.insts) {
            if let Op::SetField { obj, field, value } = inst.op
                && self.val(obj) == object
            {
                fields.push((field, self.marked_as_set(self.val(value))));
            }
        }
        if fields.is_empty() {
            return object;
        }
        self.cx.syms.make(SymKind::Object(fields.into()))
    }

    /// `x` of `Set(x)`
    fn marked_as_set(&self, value: Sym) -> Sym {
        match self.cx.syms.kind(value) {
            SymKind::Array(items) if items.len() == 1 => items[0],
            _ => value,
        }
    }
}
