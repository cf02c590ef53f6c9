//! What is compared with the time.
//!
//! Who asks how old something is will make it anew when it is too old: it is kept to save work,
//! and a second one like it costs that work, no more. The question is often put in a function of
//! its own (`isExpired(entry)`), so what a function compares is in its summary.

use rustc_hash::FxHashSet;
use toctou_core::Name;
use toctou_core::finding::ResourceKind;
use toctou_core::ir::Term;
use toctou_models::Clock;

use super::Interp;
use crate::calls::CallView;
use crate::cfg::Control;
use crate::effect::{Act, Dep, Deps, Event, Source};
use crate::library::Call;
use crate::sym::{Sym, SymKind};

impl Interp<'_, '_, '_> {
    pub(crate) fn note_clock(&mut self, rule: &Call, view: &CallView<'_>, value: Sym) {
        let Some(clock) = rule.clock else { return };
        let given = view.recv.iter().chain(view.args);
        let given: Vec<Sym> = given.copied().filter(|s| !self.is_time(*s)).collect();
        match clock {
            Clock::Now => {}
            Clock::Age => given.iter().for_each(|s| self.note_age(*s)),
            Clock::Compare => {
                if given.len() > view.args.len() {
                    return;
                }
                given.iter().for_each(|s| self.note_age(*s));
            }
        }
        self.clocks.insert(value);
    }

    /// `now - entry.at`, `entry.expires < now`
    pub(crate) fn note_compared(&mut self, left: Sym, right: Sym) {
        if self.clocks.is_empty() {
            return;
        }
        match (self.is_time(left), self.is_time(right)) {
            (true, false) => self.note_age(right),
            (false, true) => self.note_age(left),
            _ => {}
        }
    }

    pub(crate) fn note_age(&mut self, sym: Sym) {
        for dep in self.deps_of(sym).iter().filter(|d| !d.implicit) {
            match dep.source {
                Source::Event(e) => {
                    if let Some(event) = self.events.get_mut(e as usize) {
                        event.aged = Some(dep.attr);
                    }
                }
                Source::Param(i) => self.note_given(Some(i)),
                Source::Cell(_) => {}
            }
        }
        match *self.cx.syms.kind(self.cx.syms.root(sym)) {
            SymKind::This => self.note_given(None),
            SymKind::Param(i) => self.note_given(Some(i)),
            _ => {}
        }
    }

    fn note_given(&mut self, given: Option<u32>) {
        if !self.ages.contains(&given) {
            self.ages.push(given);
        }
    }

    /// Is it the time, or made of it?
    pub(crate) fn is_time(&self, sym: Sym) -> bool {
        !self.clocks.is_empty() && self.cx.syms.any(sym, |s| self.clocks.contains(&s))
    }

    /// `now - at`: a time, and not something that was made with the help of one.
    pub(crate) fn is_age(&self, sym: Sym) -> bool {
        let direct = |s: &Sym| self.clocks.contains(s);
        direct(&sym)
            || matches!(self.cx.syms.kind(sym), SymKind::Call(call)
                if call.recv.iter().chain(&call.args).any(direct))
    }

    /// Is what is written made anew because it was too old, or nothing was there? Who is young
    /// enough is used; a file has to be, since a lock that nobody holds any more is looked at
    /// like that, too.
    ///
    /// To tell somebody outside twice is more than to do work twice, unless it was a question.
    pub(crate) fn is_aged(&self, r: usize, write: &Event, sends: bool) -> bool {
        let read = &self.events[r];
        let asked = |deps: &Deps| {
            deps.events().any(|(e, attr)| {
                let event = &self.events[e as usize];
                self.tells_age(e, attr) && event.act.is_read() && self.is_of_one(event, read)
            })
        };
        if !asked(&write.ctrl) || self.cx.holds_holders(write.loc.key) {
            return false;
        }
        let decisions = self.decisions(write.at.block);
        let mut asking = decisions
            .iter()
            .filter(|(_, sym, _)| asked(&self.deps_of(*sym)));
        match read.loc.kind {
            ResourceKind::Memory if !sends => {
                asking.all(|(control, ..)| !self.is_refusal(*control))
            }
            ResourceKind::Memory => {
                asking.any(|(control, ..)| self.is_used_otherwise(*control, read))
            }
            ResourceKind::File | ResourceKind::Kv => {
                asking.any(|(control, ..)| self.is_used_otherwise(*control, read))
            }
            _ => false,
        }
    }

    /// Is what was read removed because it was too old, and used where it is not?
    pub(crate) fn is_expired(&self, r: usize, write: &Event) -> bool {
        let decisions = self.decisions(write.at.block);
        let is_last = |last: &Control| {
            let after =
                |c: &Control| c.block != last.block && self.cfg.dominates(last.block, c.block);
            !decisions.iter().any(|(c, ..)| after(c))
        };
        write.act == Act::Delete
            && decisions.iter().any(|(control, sym, _)| {
                let asked = self.deps_of(*sym);
                let mut asked = asked.events();
                is_last(control)
                    && asked.any(|(e, attr)| e as usize == r && self.tells_age(e, attr))
                    && self.is_used_otherwise(*control, &self.events[r])
            })
    }

    /// Is this the part of what was read that is compared with the time?
    fn tells_age(&self, e: u32, attr: Option<Name>) -> bool {
        match self.events[e as usize].aged {
            Some(Some(part)) => attr == Some(part),
            Some(None) => true,
            None => false,
        }
    }

    /// Parts of one object, or the same thing.
    fn is_of_one(&self, a: &Event, b: &Event) -> bool {
        let syms = &self.cx.syms;
        a.loc == b.loc
            || a.loc.kind == ResourceKind::Memory
                && a.loc.kind == b.loc.kind
                && self.is_beside(syms.root(a.loc.key), syms.root(b.loc.key))
    }

    /// Does the other way out of a condition end in nothing but failure?
    fn is_refusal(&self, control: Control) -> bool {
        !self.otherwise(control).into_iter().any(|b| {
            matches!(
                self.function.blocks[b as usize].term,
                Term::Return(_) | Term::Multi(_)
            )
        })
    }

    /// Is what was read given back or kept on the other way out of a condition?
    fn is_used_otherwise(&self, control: Control, read: &Event) -> bool {
        let others = self.cx.words.others;
        let used = |dep: Dep| {
            let Source::Event(e) = dep.source else {
                return false;
            };
            !dep.implicit
                && dep.attr.is_none_or(|a| !others.contains(&a))
                && self.events[e as usize].loc == read.loc
        };
        let blocks = self.otherwise(control);
        let given_back = |b: &u32| {
            matches!(self.function.blocks[*b as usize].term, Term::Return(Some(v))
                if self.deps_of(self.val(v)).iter().any(used))
        };
        blocks.iter().any(given_back)
            || self.events.iter().any(|e| {
                e.act.is_write()
                    && e.loc != read.loc
                    && blocks.contains(&e.at.block)
                    && e.data.iter().any(used)
            })
    }

    /// The blocks on the other way out of a condition.
    fn otherwise(&self, control: Control) -> FxHashSet<u32> {
        let ways = &self.cfg.succs[control.block as usize];
        let mut seen: FxHashSet<u32> = FxHashSet::default();
        let mut work: Vec<u32> = Vec::new();
        work.extend(ways.get(usize::from(control.way == 0)).map(|e| e.to.0));
        while let Some(at) = work.pop() {
            if seen.insert(at) {
                work.extend(self.cfg.succs[at as usize].iter().map(|edge| edge.to.0));
            }
        }
        seen
    }
}
