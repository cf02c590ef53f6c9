//! Statements on rows: SQL text, document stores, builder chains.

mod chains;

use std::rc::Rc;

use rustc_hash::FxHashSet;
use toctou_core::Name;
use toctou_core::finding::ResourceKind;
use toctou_core::ir::{Op, Var};
use toctou_models::sql::{self, Conflict, Kind, Operand, Value};
use toctou_models::{Do, LockScope, Mode, PlaceBase};

use crate::calls::CallView;
use crate::effect::{Act, Deps, Loc, Lock, LockKind, Row};
use crate::interp::{Acquire, Interp, Release};
use crate::library::EffectRule;
use crate::sym::{CalleeSym, Sym, SymKind};
use crate::texts::{HOLE, parameters};

/// How a text is run.
#[derive(Clone, Copy, Default, Debug)]
pub struct Run {
    /// Transactions that it begins keep a serial order …
    pub serializable: bool,
    /// … and are this connection's, whoever uses it.
    pub connection: Option<Sym>,
}

impl Interp<'_, '_, '_> {
    /// A call with SQL text, or of something prepared from it, whoever is called.
    pub fn sql_call(&mut self, view: &CallView<'_>, fallback: Sym) -> Option<Sym> {
        let (text, holes, params, prepared) = match view.args.first().and_then(|a| self.text_of(*a))
        {
            Some((text, holes)) => (text, holes, view.args.get(1).copied(), false),
            None => {
                // db.prepare(text).get(id). Of what a model speaks of, a chain says when it is run.
                if self.is_begun_by_library(view.recv?) {
                    return None;
                }
                let SymKind::Call(made) = self.cx.syms.kind(view.recv?) else {
                    return None;
                };
                // With its parameters it has been run there: `db.execute(text, [id]).unwrap()`.
                let [first] = *made.args else {
                    return None;
                };
                let (text, holes) = self.text_of(first)?;
                let params = match view.args {
                    [one]
                        if matches!(
                            self.cx.syms.kind(*one),
                            SymKind::Array(_) | SymKind::Object(_)
                        ) =>
                    {
                        Some(*one)
                    }
                    many => Some(self.cx.syms.make(SymKind::Array(many.into()))),
                };
                (text, holes, params, true)
            }
        };
        // Text that is only prepared here, without parameters, is run where the result is used.
        if !prepared
            && view.args.len() < 2
            && self.receivers.contains(view.dst)
            && !self.is_promise_chain(view.dst)
        {
            return Some(fallback);
        }
        let looked_at = self.is_looked_at(view.dst);
        let read = self.sql_text(&text, &holes, params, looked_at, Run::default());
        if let Some(read) = read {
            self.add_deps(fallback, &Deps::event(read));
            self.note_rows(fallback, read);
        }
        Some(fallback)
    }

    pub fn sql_effect(&mut self, effect: &EffectRule, view: &CallView<'_>) -> Option<u32> {
        let text = effect.sql.as_ref().and_then(|p| self.place(p, view));
        let params = effect.params.as_ref().and_then(|p| self.place(p, view));
        let params = params.map(|p| self.plain_params(p));
        let run = Run {
            serializable: effect.effect.serializable,
            connection: view.recv.filter(|_| effect.effect.one_connection),
        };
        let Some((text, holes)) = text.and_then(|t| self.text_of(t)) else {
            return self.unread(text, params, run);
        };
        let looked_at = self.is_looked_at(view.dst);
        let read = self.sql_text(&text, &holes, params, looked_at, run);
        if effect.effect.begins && sql::parse(&text).is_some_and(|all| all.iter().any(writes)) {
            let lock = self.transaction(effect.effect.serializable);
            self.acquires.push(Acquire {
                at: self.at,
                lock,
                handle: None,
                if_true: false,
            });
        }
        read
    }

    /// Statements of a text as events; the one whose rows come back is returned.
    pub fn sql_text(
        &mut self,
        text: &str,
        holes: &[Sym],
        params: Option<Sym>,
        looked_at: bool,
        run: Run,
    ) -> Option<u32> {
        let Some(statements) = sql::parse(text) else {
            self.note_unread(text);
            return None;
        };
        let mut read = None;
        for s in &statements {
            let table = s.tables.first().cloned().unwrap_or_default();
            for unique in &s.unique {
                self.cx
                    .unique
                    .entry(table.clone())
                    .or_default()
                    .push(unique.clone());
            }
            match s.kind {
                Kind::Begin {
                    immediate,
                    serializable: level,
                } => {
                    let mut lock = self.transaction(run.serializable || level || immediate);
                    if let Some(connection) = run.connection {
                        let lock = Rc::make_mut(&mut lock);
                        (lock.key, lock.kind) = (connection, LockKind::Connection);
                    }
                    self.acquires.push(Acquire {
                        at: self.at,
                        lock,
                        handle: None,
                        if_true: false,
                    });
                }
                Kind::Commit | Kind::Rollback => {
                    self.releases.push((self.at, Release::Transaction));
                }
                Kind::Lock => {
                    let mut lock = Lock::clone(&self.transaction(true));
                    lock.kind = LockKind::Library;
                    self.acquires.push(Acquire {
                        at: self.at,
                        lock: Rc::new(lock),
                        handle: None,
                        if_true: false,
                    });
                }
                Kind::Unlock => self.releases.push((self.at, Release::Transaction)),
                Kind::Select | Kind::Insert | Kind::Update | Kind::Delete => {
                    let id = self.statement(s, &table, holes, params, looked_at);
                    if s.kind == Kind::Select || s.returning {
                        read = id.or(read);
                    }
                }
                Kind::CreateTable => {
                    self.cx.defined.insert(table);
                }
                Kind::CreateIndex => {}
                Kind::Other => self.note_unread(text),
            }
        }
        read
    }

    /// A text that cannot be read may change all of the table that it names, if it changes rows
    /// at all; or any table, if it names none.
    pub(crate) fn note_unread(&mut self, text: &str) {
        let first = text.split_whitespace().next().unwrap_or_default();
        let begins = first.eq_ignore_ascii_case("with") || is_change(first);
        if !begins || !text.split_whitespace().any(is_change) || !self.is_product {
            return;
        }
        let of = ["update", "into", "or", "ignore", "replace"];
        let mut words = text.split(|c: char| c.is_whitespace() || c == '(').skip(1);
        let table = words.find(|w| !w.is_empty() && !of.iter().any(|o| w.eq_ignore_ascii_case(o)));
        let plain = |w: &&str| w.chars().all(|c| c.is_alphanumeric() || c == '_');
        match table
            .filter(plain)
            .filter(|w| !w.contains(HOLE) && is_change(first))
        {
            Some(table) => {
                let name = self.cx.names.intern(&table.to_lowercase());
                let table = self.cx.syms.make(SymKind::Str(name));
                self.note_updated(table, &[]);
            }
            None => self.cx.unread_statements = true,
        }
    }

    fn transaction(&mut self, serializable: bool) -> Rc<Lock> {
        let key = self.cx.syms.null();
        Rc::new(Lock {
            key,
            scope: LockScope::Host,
            kind: LockKind::Transaction(serializable),
            lease: false,
            shared: false,
            once: false,
            at_once: false,
            keyed: false,
            hoped: false,
            counted: false,
            func: self.id,
            span: self.span,
        })
    }

    /// Is the result of the call, or what it resolves to, used for anything?
    pub fn is_looked_at(&self, dst: Var) -> bool {
        let mut var = dst;
        for _ in 0..3 {
            if !self.used.contains(var) {
                return false;
            }
            let next = self
                .function
                .blocks
                .iter()
                .flat_map(|b| &b.insts)
                .find_map(|i| match i.op {
                    Op::Await { dst, src } if src == var => Some(dst),
                    _ => None,
                });
            match next {
                Some(v) => var = v,
                None => return true,
            }
        }
        true
    }

    fn statement(
        &mut self,
        s: &sql::Statement,
        table: &str,
        holes: &[Sym],
        params: Option<Sym>,
        looked_at: bool,
    ) -> Option<u32> {
        let table = match table
            .strip_prefix(HOLE)
            .and_then(|n| n.parse::<usize>().ok())
        {
            Some(n) => holes.get(n).copied()?,
            None => {
                let name = self.cx.names.intern(table);
                self.cx.syms.make(SymKind::Str(name))
            }
        };
        let mut row = Row {
            insert: s.kind == Kind::Insert,
            locking: s.locking,
            returning: s.returning,
            aggregate: s.aggregate,
            sample: s.sample,
            unique: matches!(s.conflict, Conflict::Ignore) || s.has_subquery_guard,
            looked_at,
            ..Row::default()
        };
        let mut data = self.unnamed_values(s, params);
        let count = parameters(s);
        let mut key_deps = Deps::default();
        let mut conditions: Vec<(Name, Sym)> = Vec::new();
        for c in &s.conditions {
            let column = self.cx.names.intern(&c.column);
            let value = self.operand(&c.operand, holes, params, count);
            let deps = value.map(|v| self.deps_of(v)).unwrap_or_default();
            key_deps.extend(&deps);
            row.conditions.push((column, deps));
            if let Some(v) = value
                && c.equality
            {
                conditions.push((column, v));
            }
        }
        for a in s.assignments.iter().chain(&s.on_conflict) {
            let column = self.cx.names.intern(&a.column);
            row.columns.push(column);
            // Where the row is there, its own value and the new one make the next: nothing that
            // was put there meanwhile is lost (`SET seen = MAX(seen, excluded.seen)`).
            let merged = |b: &sql::Assignment| b.column == a.column && b.value == Value::Relative;
            let merged = s.on_conflict.iter().any(merged);
            match &a.value {
                Value::Relative => row.relative.push(column),
                Value::Operand(o) => {
                    if let Some(v) = self.operand(o, holes, params, count) {
                        if !merged {
                            data.extend(&self.deps_of(v));
                        }
                        if s.kind == Kind::Insert {
                            conditions.push((column, v));
                        }
                    }
                }
                Value::Expression(operands) => {
                    for o in operands.iter().filter(|_| !merged) {
                        if let Some(v) = self.operand(o, holes, params, count) {
                            data.extend(&self.deps_of(v));
                        }
                    }
                }
            }
        }
        if s.kind == Kind::Select {
            row.columns = s.columns.iter().map(|c| self.cx.names.intern(c)).collect();
        }
        let entry =
            (!conditions.is_empty()).then(|| self.cx.syms.make(SymKind::Object(conditions.into())));
        let (act, mode) = match s.kind {
            Kind::Select => (Act::Read, Mode::Blind),
            Kind::Delete => (Act::Delete, Mode::Blind),
            Kind::Insert => (
                Act::Write,
                match s.conflict {
                    Conflict::Ignore => Mode::Exclusive,
                    Conflict::Update | Conflict::Replace => Mode::Upsert,
                    Conflict::None if s.has_subquery_guard => Mode::Conditional,
                    Conflict::None => Mode::Blind,
                },
            ),
            _ if !row.relative.is_empty() => (Act::Write, Mode::Atomic),
            _ => (Act::Write, Mode::Blind),
        };
        let loc = Loc {
            kind: ResourceKind::Row,
            key: table,
            entry,
        };
        let sets = |list: &[sql::Assignment]| -> Vec<Name> {
            let find = |a: &sql::Assignment| self.cx.names.find(&a.column);
            list.iter().filter_map(find).collect()
        };
        let replaces = s.conflict == Conflict::Replace;
        if s.kind == Kind::Update || replaces {
            let columns = self.written_columns(&row.columns, holes);
            self.note_updated(table, &columns);
        } else if s.conflict == Conflict::Update {
            let columns = sets(&s.on_conflict);
            self.note_updated(table, &columns);
        }
        if s.kind == Kind::Insert && self.is_product {
            self.cx.inserted.insert(table);
        }
        let row = Rc::new(row);
        let value = self.only_value(s, holes, params, count);
        let mut event = self.event(act, loc);
        event.mode = mode;
        event.data = data;
        event.value = value;
        event.key_deps = key_deps;
        event.row = Some(Rc::clone(&row));
        let id = self.push(event);
        if act != Act::Read && row.returning {
            // What a statement hands back is a read of its own, of what it left behind.
            let mut read = self.event(Act::Read, loc);
            read.row = Some(row);
            return self.push(read);
        }
        id
    }

    /// Of a statement that sets one column, beside such as the time: what it is set to.
    fn only_value(
        &mut self,
        s: &sql::Statement,
        holes: &[Sym],
        params: Option<Sym>,
        count: usize,
    ) -> Option<Sym> {
        if s.kind != Kind::Update {
            return None;
        }
        let mut given = s.assignments.iter().filter(|a| match &a.value {
            Value::Expression(operands) => operands.iter().any(|o| *o != Operand::Now),
            Value::Operand(o) => *o != Operand::Now,
            Value::Relative => true,
        });
        match (given.next(), given.next()) {
            (Some(one), None) => match &one.value {
                Value::Operand(o) => self.operand(o, holes, params, count),
                _ => None,
            },
            _ => None,
        }
    }

    /// A document store's or ORM's call.
    pub fn row_effect(
        &mut self,
        effect: &EffectRule,
        view: &CallView<'_>,
        table: Sym,
        duck: bool,
    ) -> Option<u32> {
        let table = self
            .row_table(table, view)
            .unwrap_or_else(|| self.table_of(table));
        if matches!(self.cx.syms.kind(table), SymKind::Null) {
            return None;
        }
        self.tables.insert(table);
        let filter = effect.filter.as_ref().and_then(|p| self.place(p, view));
        let next = effect.filter.as_ref().and_then(|p| match p.base {
            PlaceBase::Arg(i) => view.args.get(i + 1).copied(),
            _ => None,
        });
        let update = effect.update.as_ref().and_then(|p| self.place(p, view));
        let value = effect.value.as_ref().and_then(|p| self.place(p, view));
        let update = match update {
            Some(object) if effect.effect.assigned => Some(self.assigned_in(object)),
            update => update,
        };
        let mut conditions = Vec::new();
        if let Some(f) = filter {
            self.conditions(f, next, &mut conditions, 0);
        }
        let locking = effect.locking.as_ref().is_some_and(|p| {
            let given = self.place(p, view).filter(|_| self.is_given(p, view));
            given.is_some_and(|s| !matches!(self.cx.syms.kind(s), SymKind::Bool(false)))
        });
        let id = self.row_event(effect, table, conditions, update.or(value), view.dst, duck);
        if locking && let Some(row) = id.and_then(|id| self.events[id as usize].row.as_mut()) {
            Rc::make_mut(row).locking = true;
        }
        id
    }

    /// The columns that a filter tests, and what they are compared with.
    fn conditions(
        &mut self,
        filter: Sym,
        next: Option<Sym>,
        out: &mut Vec<(Name, Sym)>,
        depth: u32,
    ) {
        if depth > 6 || out.len() > 32 {
            return;
        }
        match self.cx.syms.kind(filter).clone() {
            SymKind::Object(fields) => {
                for (name, value) in fields.iter() {
                    if *name == self.cx.words.keywords {
                        continue;
                    }
                    if self.cx.names.text(*name).starts_with('$')
                        || matches!(self.cx.names.text(*name), "AND" | "OR" | "where")
                    {
                        self.conditions(*value, None, out, depth + 1);
                    } else {
                        out.push((*name, *value));
                    }
                }
            }
            SymKind::Array(items) => {
                for item in items.iter() {
                    self.conditions(*item, None, out, depth + 1);
                }
            }
            SymKind::Str(column) => {
                if let Some(value) = next {
                    out.push((column, value));
                }
            }
            // column.eq(value)
            SymKind::Call(call) if self.compared_column(&call).is_some() => {
                out.extend(self.compared_column(&call));
            }
            // column.is_null()
            SymKind::Call(call) if call.recv.is_some_and(|r| self.column_text(r).is_some()) => {}
            // a.and(b), all().add(a).add(b)
            SymKind::Call(call) if self.is_of_columns(&call) => {
                for part in call.recv.iter().chain(call.args.iter()) {
                    self.conditions(*part, None, out, depth + 1);
                }
            }
            // eq(table.column, value), and(…)
            SymKind::Call(call) => {
                let column = call.args.first().and_then(|a| match self.cx.syms.kind(*a) {
                    SymKind::Field(_, name) => Some(*name),
                    _ => None,
                });
                match (column, call.args.get(1)) {
                    (Some(column), Some(value)) => out.push((column, *value)),
                    _ => {
                        for a in call.args.iter() {
                            self.conditions(*a, None, out, depth + 1);
                        }
                    }
                }
            }
            // `Task.id == id`, `func.lower(Task.name) == name`
            SymKind::Eq(left, right) => {
                if let Some(column) = self.column_in(left, 0) {
                    out.push((column, right));
                } else if let Some(column) = self.column_in(right, 0) {
                    out.push((column, left));
                }
            }
            SymKind::Null | SymKind::Ext(_) | SymKind::Not(_) | SymKind::Bool(_) => {}
            _ => {
                let id = self.cx.names.intern("id");
                out.push((id, filter));
            }
        }
    }

    /// `a == b`, `a >= b`: no value that a column is compared with.
    fn is_comparison(&self, sym: Sym) -> bool {
        match self.cx.syms.kind(sym) {
            SymKind::Eq(..) => true,
            SymKind::Call(call) => call.callee == CalleeSym::Method(self.cx.words.op),
            _ => false,
        }
    }

    /// The columns, with those that a hole stands for.
    fn written_columns(&mut self, columns: &[Name], holes: &[Sym]) -> Vec<Name> {
        let mut out = Vec::with_capacity(columns.len());
        for column in columns {
            let hole = self.cx.names.text(*column).strip_prefix(HOLE);
            let hole = hole.and_then(|n| n.parse::<usize>().ok());
            let listed = hole
                .and_then(|n| holes.get(n).copied())
                .and_then(|s| self.listed_columns(s));
            match listed {
                Some(listed) => out.extend(listed),
                None => out.push(*column),
            }
        }
        out
    }

    /// Somebody changes these columns of rows that are there.
    pub(crate) fn note_updated(&mut self, table: Sym, columns: &[Name]) {
        // A table that is reached by a variable may be any.
        let named = matches!(
            self.cx.syms.kind(table),
            SymKind::Str(_) | SymKind::Class(_)
        );
        self.cx.unread_statements |= !named && self.is_product;
        let unclear = |n: &Name| {
            let text = self.cx.names.text(*n);
            text.is_empty() || text.contains(HOLE) || text == "..."
        };
        let known = !columns.is_empty() && !columns.iter().any(unclear);
        let names: Vec<String> = columns
            .iter()
            .map(|n| crate::place::plain(self.cx.names.text(*n)))
            .collect();
        let slot = self
            .cx
            .updated
            .entry(table)
            .or_insert_with(|| Some(FxHashSet::default()));
        match slot {
            Some(set) if known => set.extend(names),
            _ => *slot = None,
        }
    }

    /// The column that one side of a comparison speaks of.
    fn column_in(&self, sym: Sym, depth: u32) -> Option<Name> {
        match self.cx.syms.kind(sym) {
            SymKind::Field(base, name) => matches!(
                self.cx.syms.kind(*base),
                SymKind::Class(_) | SymKind::Ext(_)
            )
            .then_some(*name),
            SymKind::Call(call) if depth < 4 => call
                .args
                .iter()
                .chain(&call.recv)
                .find_map(|s| self.column_in(*s, depth + 1)),
            _ => None,
        }
    }

    fn row_event(
        &mut self,
        effect: &EffectRule,
        table: Sym,
        conditions: Vec<(Name, Sym)>,
        update: Option<Sym>,
        dst: Var,
        duck: bool,
    ) -> Option<u32> {
        let e = &effect.effect;
        let mut row = Row {
            looked_at: self.is_looked_at(dst),
            aggregate: e.r#do == Do::List && conditions.is_empty(),
            record: self.record_class(table).is_some(),
            ..Row::default()
        };
        let mut key_deps = Deps::default();
        for (column, value) in &conditions {
            let deps = self.deps_of(*value);
            key_deps.extend(&deps);
            row.conditions.push((*column, deps));
        }
        let mut data = Deps::default();
        if let Some(update) = update {
            data = self.update_columns(update, &mut row);
        }
        let act = match e.r#do {
            Do::Read => Act::Read,
            Do::Check => Act::Check,
            Do::List => Act::List,
            Do::Delete => Act::Delete,
            Do::Append => Act::Append,
            _ => Act::Write,
        };
        row.insert = act == Act::Write && conditions.is_empty() && e.mode != Mode::Upsert;
        row.unique = e.mode == Mode::Exclusive;
        let mode = if e.mode == Mode::Blind && !row.relative.is_empty() {
            Mode::Atomic
        } else {
            e.mode
        };
        let mut known = conditions;
        if row.insert
            && let Some(SymKind::Object(fields)) = update.map(|u| self.cx.syms.kind(u))
        {
            let keywords = self.cx.words.keywords;
            known.extend(fields.iter().filter(|f| f.0 != keywords).copied());
        }
        let entry = (!known.is_empty()).then(|| self.cx.syms.make(SymKind::Object(known.into())));
        let loc = Loc {
            kind: ResourceKind::Row,
            key: table,
            entry,
        };
        if act == Act::Write && !row.insert {
            self.note_updated(table, &row.columns);
        }
        let returns =
            act != Act::Read && act.is_write() && (e.mode == Mode::Conditional || row.returning);
        let row = Rc::new(row);
        let mut event = self.event(act, loc);
        event.mode = mode;
        event.data = data;
        event.key_deps = key_deps;
        event.row = Some(Rc::clone(&row));
        event.duck = duck;
        let id = self.push(event);
        if returns {
            let mut read = self.event(Act::Read, loc);
            read.row = Some(row);
            return self.push(read);
        }
        if act.is_read() { id } else { None }
    }

    /// Columns of an update document; those that the store computes are relative.
    pub(crate) fn update_columns(&mut self, update: Sym, row: &mut Row) -> Deps {
        let SymKind::Object(fields) = self.cx.syms.kind(update).clone() else {
            row.document = Some(update);
            return self.deps_of(update);
        };
        let mut data = Deps::default();
        let mut open = false;
        for (name, value) in fields.iter() {
            if *name == self.cx.words.keywords {
                continue;
            }
            if Some(*name) == self.cx.syms.rest {
                if let SymKind::Object(_) = self.cx.syms.kind(*value) {
                    data.extend(&self.update_columns(*value, row));
                    open |= row.document.is_some();
                    continue;
                }
                open = true;
            }
            let text = self.cx.names.text(*name);
            let operator = text.starts_with('$');
            let relative = matches!(
                text,
                "$inc" | "$mul" | "$min" | "$max" | "$push" | "$addToSet" | "$pull" | "$bit"
            );
            match self.cx.syms.kind(*value).clone() {
                SymKind::Object(inner) if operator => {
                    for (column, v) in inner.iter() {
                        row.columns.push(*column);
                        if relative {
                            row.relative.push(*column);
                        } else {
                            data.extend(&self.deps_of(*v));
                        }
                    }
                }
                SymKind::Object(inner)
                    if inner.iter().any(|(n, _)| {
                        matches!(
                            self.cx.names.text(*n),
                            "increment" | "decrement" | "multiply" | "push"
                        )
                    }) =>
                {
                    row.columns.push(*name);
                    row.relative.push(*name);
                }
                // sql`count + 1`: the database computes it.
                SymKind::Unknown(_) if !self.deps.contains_key(value) => row.columns.push(*name),
                _ => {
                    row.columns.push(*name);
                    data.extend(&self.deps_of(*value));
                }
            }
        }
        row.document = open.then_some(update);
        data
    }
}

fn writes(statement: &sql::Statement) -> bool {
    matches!(statement.kind, Kind::Insert | Kind::Update | Kind::Delete)
}

/// Does the word begin a statement that changes rows?
pub(crate) fn is_change(word: &str) -> bool {
    let changes = ["update", "insert", "replace", "merge"];
    changes.iter().any(|w| word.eq_ignore_ascii_case(w))
}
