//! Builder chains: `db.select().from(table).where(…)`.

use std::rc::Rc;

use rustc_hash::FxHashSet;
use toctou_core::Name;
use toctou_core::ir::Var;
use toctou_models::{Do, Mode, PlaceBase, PlaceExpr};

use super::Run;
use crate::calls::CallView;
use crate::effect::{Act, Deps, Row};
use crate::interp::Interp;
use crate::library::{ChainRule, EffectRule};
use crate::sym::{CalleeSym, Sym, SymKind};

impl Interp<'_, '_, '_> {
    /// Is the value only ever a receiver of `then`, `catch` and `finally`?
    pub(super) fn is_promise_chain(&self, var: Var) -> bool {
        self.receivers.contains(var) && !self.asked_for_more.contains(var)
    }

    /// The last call of a chain such as `db.select().from(t).where(…)`.
    pub fn chain_call(&mut self, view: &CallView<'_>, fallback: Sym) -> Option<Sym> {
        // Whatever is asked for next belongs to it, unless it says which step is the last.
        let goes_on = self.receivers.contains(view.dst) && !self.is_promise_chain(view.dst);
        if goes_on {
            let chains = self.cx.library.chains(&mut self.cx.names);
            if !chains
                .iter()
                .any(|c| view.method.is_some_and(|m| c.run_by.contains(&m)))
            {
                return None;
            }
        }
        let (steps, start) = self.chain_steps(fallback)?;
        // What comes after it was run is asked of what came back.
        if steps
            .iter()
            .any(|(_, at)| *at != fallback && self.ran.contains(at))
        {
            return None;
        }
        let rule = self.chain_rule(&steps, false)?;
        if goes_on && rule.run_by.is_empty() {
            return None;
        }
        self.ran.insert(fallback);
        if let Some(read) = self.run_chain(&rule, &steps, start, view.dst) {
            self.add_deps(fallback, &Deps::event(read));
            self.note_rows(fallback, read);
        }
        Some(fallback)
    }

    /// Does a chain begin with a function of a library of which a model says that it does nothing yet:
    /// `sqlx::query(text).bind(id)`?
    pub(crate) fn is_begun_by_library(&mut self, last: Sym) -> bool {
        let mut at = last;
        for _ in 0..40 {
            let SymKind::Call(call) = self.cx.syms.kind(at) else {
                return false;
            };
            match (call.recv, call.callee) {
                (Some(recv), _) => at = recv,
                (None, CalleeSym::Value(value)) => {
                    let SymKind::Ext(e) = *self.cx.syms.kind(value) else {
                        return false;
                    };
                    let cx = &mut *self.cx;
                    let rules = cx.library.calls(e, &mut cx.entities, &mut cx.names);
                    return !rules.is_empty() && rules.iter().all(|r| r.effects.is_empty());
                }
                _ => return false,
            }
        }
        false
    }

    /// The calls of a chain in order, and what the first is a method of.
    pub(crate) fn chain_steps(&self, last: Sym) -> Option<(Vec<(Name, Sym)>, Sym)> {
        let mut steps: Vec<(Name, Sym)> = Vec::new();
        let mut at = last;
        let mut start = last;
        while let SymKind::Call(call) = self.cx.syms.kind(at) {
            let name = match call.callee {
                CalleeSym::Method(name) => name,
                // `select(t)` of a library begins a chain.
                CalleeSym::Value(v) => match self.cx.syms.kind(v) {
                    SymKind::Ext(e) => self.cx.entities.get(*e).path,
                    _ => break,
                },
                CalleeSym::Func(_) => break,
            };
            steps.push((name, at));
            let Some(recv) = call.recv else { break };
            start = recv;
            at = recv;
            if steps.len() > 40 {
                break;
            }
        }
        steps.reverse();
        (!steps.is_empty()).then_some((steps, start))
    }

    /// The model of a chain: of one that acts, or of one that builds a statement.
    pub(crate) fn chain_rule(
        &mut self,
        steps: &[(Name, Sym)],
        built: bool,
    ) -> Option<Rc<ChainRule>> {
        let chains = self.cx.library.chains(&mut self.cx.names);
        let last = steps.last().map(|s| s.0);
        let ends =
            |c: &ChainRule| c.run_by.is_empty() || last.is_some_and(|l| c.run_by.contains(&l));
        let of_table = chains.iter().any(|c| c.steps.is_empty())
            && steps
                .first()
                .is_some_and(|s| self.table_below(s.1).is_some());
        let rule = chains.iter().filter(|c| c.built == built).find(|c| {
            if !ends(c) || c.steps.is_empty() && !of_table {
                return false;
            }
            let mut wanted = c.steps.iter();
            let mut next = wanted.next();
            for (name, _) in steps {
                if next == Some(name) {
                    next = wanted.next();
                }
            }
            next.is_none() && !steps.iter().any(|(n, _)| c.without.contains(n))
        })?;
        Some(Rc::clone(rule))
    }

    /// What a chain does, done. The event whose rows come back is returned.
    pub(crate) fn run_chain(
        &mut self,
        rule: &ChainRule,
        steps: &[(Name, Sym)],
        start: Sym,
        dst: Var,
    ) -> Option<u32> {
        let has = |list: &[Name]| steps.iter().any(|(n, _)| list.contains(n));
        let mut read = None;
        for effect in &rule.effects {
            if effect.effect.r#do == toctou_models::Do::Sql {
                read = self.chain_sql(effect, steps, start, dst).or(read);
                continue;
            }
            let Some(mut table) = effect
                .key
                .as_ref()
                .and_then(|p| self.step_place(p, steps, start))
            else {
                continue;
            };
            let mut conditions = Vec::new();
            // update(table.filter(…)): a statement within the statement says which rows. An object
            // is the row that it is.
            for (name, call) in self.nested_steps(table) {
                self.step_conditions(&rule.filter_steps, name, call, &mut conditions);
            }
            let below = self.table_below(table);
            if below.is_none()
                && effect.effect.r#do != Do::Read
                && let Some(of_row) = self.table_of_row(table)
            {
                let id = self.cx.names.intern("id");
                conditions.push((id, table));
                table = of_row;
            }
            table = self.table_of(table);
            if matches!(self.cx.syms.kind(table), SymKind::Null) {
                continue;
            }
            if let Some(p) = &effect.filter
                && let Some(f) = self.step_place(p, steps, start)
            {
                self.conditions(f, None, &mut conditions, 0);
            }
            for (name, call) in steps {
                self.step_conditions(&rule.filter_steps, *name, *call, &mut conditions);
            }
            // A step can be the effect's filter as well: what is asked twice is one condition.
            let mut seen = FxHashSet::default();
            conditions.retain(|c| seen.insert(*c));
            let update = effect
                .update
                .as_ref()
                .or(effect.value.as_ref())
                .and_then(|p| self.step_place(p, steps, start));
            let update = self.set_in_steps(&rule.set_steps, steps).or(update);
            let update = match update {
                Some(object) if effect.effect.assigned => Some(self.assigned_in(object)),
                update => update,
            };
            let id = self.row_event(effect, table, conditions, update, dst, false);
            self.finish_chain_event(
                has(&rule.exclusive_steps),
                has(&rule.returning_steps),
                has(&rule.locking_steps),
                &mut read,
                id,
            );
        }
        read
    }

    /// The conditions of one step of a chain, if it is one that narrows.
    fn step_conditions(
        &mut self,
        filter_steps: &[Name],
        name: Name,
        call: Sym,
        out: &mut Vec<(Name, Sym)>,
    ) {
        if !filter_steps.contains(&name) {
            return;
        }
        let SymKind::Call(call) = self.cx.syms.kind(call).clone() else {
            return;
        };
        let Some(first) = call.args.first() else {
            return;
        };
        // where("col", ">", value) and where("col", value)
        let value = call.args.get(2).or(call.args.get(1)).copied();
        self.conditions(*first, value, out, 0);
        // where(a == b, c >= d)
        for more in call.args.iter().skip(1) {
            if self.is_comparison(*more) {
                self.conditions(*more, None, out, 0);
            }
        }
    }

    /// A text at the start of a chain, with the arguments of one of its steps as parameters.
    fn chain_sql(
        &mut self,
        effect: &EffectRule,
        steps: &[(Name, Sym)],
        start: Sym,
        dst: Var,
    ) -> Option<u32> {
        let text = effect.sql.as_ref()?;
        let text = self.step_place(text, steps, start)?;
        let (text, holes) = self.text_of(text)?;
        let params = match effect.params.as_ref().map(|p| &p.base) {
            Some(PlaceBase::Step(name, i)) => {
                let mut values: Vec<Sym> = Vec::new();
                for (step, call) in steps {
                    if self.cx.names.text(*step) == name
                        && let SymKind::Call(call) = self.cx.syms.kind(*call)
                        && let Some(value) = call.args.get(*i)
                    {
                        values.push(*value);
                    }
                }
                Some(self.cx.syms.make(SymKind::Array(values.into())))
            }
            _ => None,
        };
        let run = Run {
            serializable: effect.effect.serializable,
            ..Run::default()
        };
        let looked_at = self.is_looked_at(dst);
        self.sql_text(&text, &holes, params, looked_at, run)
    }

    fn finish_chain_event(
        &mut self,
        exclusive: bool,
        returning: bool,
        locking: bool,
        read: &mut Option<u32>,
        id: Option<u32>,
    ) {
        let at = self.at;
        let Some(last) = self
            .events
            .iter()
            .rposition(|e| e.at == at && e.call.is_none())
        else {
            return;
        };
        let event = &mut self.events[last];
        if let Some(row) = &event.row {
            let mut row = Row::clone(row);
            row.unique |= exclusive;
            row.returning |= returning;
            row.locking |= locking;
            event.row = Some(Rc::new(row));
        }
        if exclusive && event.act == Act::Write {
            event.mode = Mode::Exclusive;
        }
        if event.act.is_read() {
            *read = id.or(Some(last as u32));
        } else if returning {
            let (loc, row) = (event.loc, event.row.clone());
            let mut again = self.event(Act::Read, loc);
            again.row = row;
            *read = self.push(again);
        }
    }

    fn step_place(&mut self, place: &PlaceExpr, steps: &[(Name, Sym)], start: Sym) -> Option<Sym> {
        let mut sym = match &place.base {
            PlaceBase::Step(step, i) => {
                let name = self.cx.names.find(step)?;
                let (_, call) = steps.iter().find(|(n, _)| *n == name)?;
                match self.cx.syms.kind(*call) {
                    SymKind::Call(call) => call.args.get(*i).copied()?,
                    _ => return None,
                }
            }
            PlaceBase::Start => start,
            PlaceBase::StartArg(i) => match self.cx.syms.kind(start) {
                SymKind::Call(call) => call.args.get(*i).copied()?,
                _ => return None,
            },
            PlaceBase::Const(text) => {
                let name = self.cx.names.intern(text);
                self.cx.syms.make(SymKind::Str(name))
            }
            _ => return None,
        };
        for field in &place.fields {
            let name = self.cx.names.intern(field);
            sym = self.cx.syms.field(sym, name);
        }
        Some(sym)
    }
}
