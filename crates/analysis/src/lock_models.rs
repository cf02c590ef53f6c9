//! Locks and transactions that models speak of, and the hand-made ones that
//! a call shows: promise chains and lock files.

use crate::calls::{CallView, Entry};
use crate::effect::{Lock, LockKind};
use crate::interp::{Acquire, Interp};
use crate::library::{Call, EffectRule, ResultRule};
use crate::sym::{CallSym, CalleeSym, Sym, SymKind};
use std::rc::Rc;
use toctou_models::LockScope;

impl Interp<'_, '_, '_> {
    /// `tail.then(work)` where the result becomes the new tail: `work` runs
    /// when those before it are done, one at a time.
    pub(crate) fn chain_lock(&mut self, view: &CallView<'_>, rule: &Call) -> Option<Rc<Lock>> {
        if view.method != Some(self.cx.words.then) || !rule.duck {
            return None;
        }
        let this = self.cx.syms.make(SymKind::Call(Box::new(CallSym {
            callee: CalleeSym::Method(self.cx.words.then),
            recv: view.recv,
            args: view.args.into(),
        })));
        // Down to the place that the chain hangs from.
        let mut at = view.recv?;
        let mut absorbed = view.args.len() > 1;
        for _ in 0..8 {
            match self.cx.syms.kind(at) {
                SymKind::Call(call) => {
                    absorbed |= call.callee == CalleeSym::Method(self.cx.words.catch);
                    at = call.recv?;
                }
                _ => break,
            }
        }
        if !self.cx.may_be_shared(at) {
            return None;
        }
        let at = self.place_of(at);
        let tails = self.stored.get(&at)?.clone();
        let tail = tails
            .into_iter()
            .find(|t| self.cx.syms.contains(*t, this))?;
        // What stands round us in the new tail may swallow our failure.
        let mut outer = tail;
        for _ in 0..8 {
            if outer == this {
                break;
            }
            match self.cx.syms.kind(outer) {
                SymKind::Call(call) => {
                    let name = match call.callee {
                        CalleeSym::Method(name) => name,
                        _ => break,
                    };
                    absorbed |= name == self.cx.words.catch
                        || (name == self.cx.words.then && call.args.len() > 1);
                    let Some(recv) = call.recv else { break };
                    outer = recv;
                }
                _ => break,
            }
        }
        if !absorbed && self.callback_may_throw(view) {
            self.chain_poison.push((self.span, at));
        }
        Some(Rc::new(Lock {
            key: at,
            scope: LockScope::Process,
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
        }))
    }

    pub(crate) fn callback_may_throw(&self, view: &CallView<'_>) -> bool {
        match view.args.first().map(|a| self.cx.syms.kind(*a)) {
            Some(SymKind::Func(f)) => self.cx.summaries[f.0 as usize]
                .as_ref()
                .is_none_or(|s| s.may_throw),
            _ => true,
        }
    }

    pub(crate) fn lock_effect(
        &mut self,
        effect: &EffectRule,
        view: &CallView<'_>,
        rule: &Call,
        results: &mut Vec<Sym>,
    ) -> Option<Sym> {
        let key = effect
            .key
            .as_ref()
            .and_then(|p| self.place(p, view))
            .or(view.recv)
            .unwrap_or_else(|| self.cx.syms.null());
        let exclusive = match &effect.permits {
            None => true,
            Some(p) => {
                let permits = self.place(p, view);
                // One that is made here, by this call for itself, lets everybody in.
                let own = matches!(self.cx.syms.kind(key), SymKind::Call(_));
                let one = permits
                    .and_then(|s| self.constant_text(s))
                    .is_some_and(|t| t == "1");
                one && !own
            }
        };
        // A lock for a key that is always the same is one lock.
        let entry = effect.entry.as_ref().and_then(|p| self.place(p, view));
        let keyed = entry.is_some_and(|key| !self.is_constant(key));
        let guard = rule.result == ResultRule::Recv;
        // Nothing comes back that would give it back: anybody can.
        let counted = effect.permits.is_some()
            && effect.callback.is_none()
            && rule.result == ResultRule::None;
        let lock = Rc::new(Lock {
            key,
            scope: effect.effect.scope,
            kind: LockKind::Library,
            lease: effect.effect.lease,
            shared: effect.effect.shared,
            once: effect.effect.once,
            at_once: effect.effect.at_once,
            keyed,
            hoped: false,
            counted,
            func: self.id,
            span: self.span,
        });
        if let Some(callback) = &effect.callback {
            let callee = self.place(callback, view)?;
            let var = self.place_var(callback, view);
            let entry = Entry {
                locks: if exclusive { vec![lock] } else { Vec::new() },
                yields_before: true,
                args: vec![self.cx.syms.null()],
                ..Entry::default()
            };
            self.calls_yielding = true;
            if let Some(r) = self.call_back(callee, var, entry) {
                results.push(r);
            }
            return None;
        }
        let site = self.site();
        // A guard is what the lock protects, and its end is the lock's.
        let handle = match view.recv {
            Some(recv) if guard => recv,
            _ => self.cx.syms.make(SymKind::Handle(site)),
        };
        if exclusive {
            self.acquires.push(Acquire {
                at: self.at,
                lock,
                handle: Some(handle),
                if_true: effect.effect.tries,
            });
        }
        Some(handle)
    }

    pub(crate) fn begin(
        &mut self,
        effect: &EffectRule,
        view: &CallView<'_>,
        results: &mut Vec<Sym>,
    ) {
        let key = effect
            .key
            .as_ref()
            .and_then(|p| self.place(p, view))
            .or(view.recv)
            .unwrap_or_else(|| self.cx.syms.null());
        let lock = Rc::new(Lock {
            key,
            scope: LockScope::Host,
            kind: LockKind::Transaction(effect.effect.serializable),
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
        let Some(callback) = &effect.callback else {
            self.acquires.push(Acquire {
                at: self.at,
                lock,
                handle: None,
                if_true: false,
            });
            return;
        };
        let Some(callee) = self.place(callback, view) else {
            return;
        };
        let var = self.place_var(callback, view);
        let client = view.recv.unwrap_or(key);
        let entry = Entry {
            locks: vec![lock],
            args: vec![client],
            ..Entry::default()
        };
        if let Some(r) = self.call_back(callee, var, entry) {
            results.push(r);
        }
    }

    /// A file that is created exclusively and is called a lock is one.
    pub(crate) fn file_lock(&mut self, path: Sym) {
        if !self.is_lock_path(path) {
            return;
        }
        let site = self.site();
        let handle = self.cx.syms.make(SymKind::Handle(site));
        let lock = Rc::new(Lock {
            key: path,
            scope: LockScope::Host,
            kind: LockKind::File,
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

    pub(crate) fn is_lock_path(&self, path: Sym) -> bool {
        let mut stack = vec![path];
        let mut budget = 64;
        while let Some(s) = stack.pop() {
            budget -= 1;
            if budget == 0 {
                return false;
            }
            let text = match self.cx.syms.kind(s) {
                SymKind::Str(n) | SymKind::Field(_, n) => Some(self.cx.names.text(*n)),
                SymKind::Cell(c) => self.cx.program.function(c.owner).vars[c.var.0 as usize]
                    .name
                    .map(|n| self.cx.names.text(n)),
                SymKind::Call(call) => match call.callee {
                    CalleeSym::Method(n) => Some(self.cx.names.text(n)),
                    _ => None,
                },
                SymKind::Param(i) => self
                    .function
                    .params
                    .get(*i as usize)
                    .and_then(|p| self.function.vars[p.0 as usize].name)
                    .map(|n| self.cx.names.text(n)),
                _ => None,
            };
            let named = text.is_some_and(|t| t.to_ascii_lowercase().contains("lock"));
            if named || matches!(self.cx.syms.kind(s), SymKind::This) && self.is_in_lock() {
                return true;
            }
            crate::sym::for_each_child(self.cx.syms.kind(s), |c| stack.push(c));
        }
        false
    }

    /// Is it a class that is called a lock, and no block, no clock, and nothing that is locked?
    fn is_in_lock(&self) -> bool {
        let class = crate::roots::enclosing_class(self.cx, self.id);
        class.is_some_and(|class| {
            let name = self.cx.program.classes[class.0 as usize].name;
            let mut after = self.cx.names.text(name).split("Lock").skip(1);
            after.any(|rest| !rest.starts_with("ed"))
        })
    }
}
