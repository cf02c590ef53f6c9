//! Values that hold something until they are dropped.
//!
//! Which calls take a lock is said by models, not here. Here is only which
//! values are worth a drop: those made by a call whose name speaks of locking,
//! reading, writing, borrowing, entering or beginning. For all others nothing
//! happens at the end of their scope that anybody would ask about.

use syn::Expr;
use toctou_core::Span;
use toctou_core::ir::{Op, Var};

use super::Lower;
use super::paths::is_type_name;

const SPEAK: &[&str] = &[
    "lock",
    "read",
    "write",
    "acquire",
    "borrow",
    "begin",
    "transaction",
    "guard",
    "permit",
    "enter",
];

/// More than this in one function and the rest are not dropped.
const MAX_GUARDS: usize = 64;

pub(super) fn may_hold(name: &str) -> bool {
    // `read_to_string` and `write_all` move bytes.
    let mut words = name.split('_');
    if matches!(words.next(), Some("read" | "write")) {
        return match words.next() {
            None | Some("owned" | "arc" | "lock") => words.next().is_none(),
            _ => name.ends_with("guard"),
        };
    }
    SPEAK.iter().any(|word| name.contains(word))
}

/// An entry that may be locked as long as it is held. Unlike a guard it is
/// the value itself, not something that a value stands behind.
fn is_entry(x: &syn::ExprMethodCall) -> bool {
    x.method == "get_mut" && x.args.len() == 1
}

/// `x.lock().await`, `x.lock().unwrap()`, `x.begin().await?`: the call itself,
/// without what only unwraps its result.
pub(super) fn guard_call(e: &Expr) -> Option<&Expr> {
    held_call(e).filter(|e| !matches!(e, Expr::MethodCall(x) if is_entry(x)))
}

/// The same, and calls that give back an entry.
pub(super) fn held_call(e: &Expr) -> Option<&Expr> {
    let mut e = e;
    for _ in 0..16 {
        e = match e {
            Expr::Await(x) => &x.base,
            Expr::Try(x) => &x.expr,
            Expr::Paren(x) => &x.expr,
            Expr::Group(x) => &x.expr,
            Expr::Reference(x) => &x.expr,
            Expr::MethodCall(x) => {
                let name = x.method.to_string();
                match name.as_str() {
                    "unwrap" | "expect" | "unwrap_or_else" | "map_err" | "context"
                    | "with_context" | "ok" | "into_inner" | "unwrap_or_default"
                    | "inspect_err" => &x.receiver,
                    name if may_hold(name) && takes_nothing(x) || is_entry(x) => return Some(e),
                    _ => return None,
                }
            }
            Expr::Call(x) => {
                let Expr::Path(p) = &*x.func else { return None };
                let last = p.path.segments.last()?.ident.to_string();
                return may_hold(&last).then_some(e);
            }
            _ => return None,
        };
    }
    None
}

/// Locks of this kind have no arguments; `stream.read(&mut buf)` is another thing.
fn takes_nothing(x: &syn::ExprMethodCall) -> bool {
    let name = x.method.to_string();
    !matches!(name.as_str(), "read" | "write" | "lock" | "borrow") || x.args.is_empty()
}

/// Is what this gives back worth a drop?
pub(super) fn is_held(x: &syn::ExprMethodCall) -> bool {
    may_hold(&x.method.to_string()) && takes_nothing(x) || is_entry(x)
}

/// `Some`, `Ok`, `WriteGuard`: what it gives back holds its arguments.
fn is_made_of(func: &Expr) -> bool {
    let Expr::Path(p) = func else { return false };
    let last = p.path.segments.last().map(|s| s.ident.to_string());
    last.is_some_and(|name| is_type_name(&name))
}

/// Is it one of several, or the end of a block, so that what it holds was made further in?
pub(super) fn is_choice(e: &Expr) -> bool {
    match e {
        Expr::Paren(x) => is_choice(&x.expr),
        Expr::Group(x) => is_choice(&x.expr),
        Expr::Match(_) | Expr::If(_) | Expr::Block(_) | Expr::Unsafe(_) => true,
        _ => false,
    }
}

/// The expression that a block ends in.
pub(super) fn last_of(block: &syn::Block) -> Option<&Expr> {
    match block.stmts.last() {
        Some(syn::Stmt::Expr(e, None)) => Some(e),
        _ => None,
    }
}

/// Does a choice give on the guard that it was made by? `match m.lock() { Ok(g) => g, … }`
pub(super) fn gives_guard(e: &Expr) -> bool {
    match e {
        Expr::Paren(x) => gives_guard(&x.expr),
        Expr::Match(x) => guard_call(&x.expr).is_some(),
        Expr::If(x) => matches!(&*x.cond, Expr::Let(l) if guard_call(&l.expr).is_some()),
        _ => false,
    }
}

impl Lower<'_> {
    /// The variables that a pattern has just bound to a guard, or to what came in its place.
    pub(super) fn note_held(&mut self, of: &Expr, from: usize) {
        if held_call(of).is_none() {
            return;
        }
        if let Some(at) = self.f.scopes.len().checked_sub(1) {
            // What the pattern was held against is in the scope, or in the one round it.
            let scopes = &self.f.scopes[at.saturating_sub(1)..=at];
            let made = scopes.iter().rev().find_map(|s| s.guards.last().copied());
            let bound = self.f.scopes[at].locals.get_mut(from..).unwrap_or_default();
            if let [one] = bound {
                one.held = made;
            }
        }
    }

    /// Those of `held` that a value takes along.
    pub(super) fn taken_along(&mut self, value: Option<&Expr>, held: &[Var]) -> Vec<Var> {
        let mut moved = Vec::new();
        if let Some(e) = value {
            self.moved_guards(e, &mut moved);
        }
        held.iter().copied().filter(|g| moved.contains(g)).collect()
    }

    /// What the innermost scope holds goes with its value: all of it if that is a choice, which has
    /// left only what it gave on, and otherwise the value itself.
    pub(super) fn go_with(&mut self, e: &Expr, value: Var) -> Vec<Var> {
        if is_choice(e) {
            return self.come_with(0);
        }
        let scope = self.f.scopes.last();
        let held = scope.is_some_and(|s| s.guards.contains(&value));
        held.then_some(value).into_iter().collect()
    }

    /// What the innermost scope holds beside its first `own` guards: it came with the value of
    /// what was done in it.
    pub(super) fn come_with(&mut self, own: usize) -> Vec<Var> {
        match self.f.scopes.last_mut() {
            Some(scope) if scope.guards.len() > own => scope.guards.split_off(own),
            _ => Vec::new(),
        }
    }

    /// They are the scope's now, and are dropped at its end.
    pub(super) fn drop_all_later(&mut self, guards: &[Var]) {
        for guard in guards {
            let known = self
                .f
                .scopes
                .last()
                .is_some_and(|s| s.guards.contains(guard));
            if !known {
                self.drop_later(*guard);
            }
        }
    }

    /// A value that is dropped at the end of the innermost scope.
    pub(super) fn drop_later(&mut self, value: Var) {
        let held: usize = self.f.scopes.iter().map(|s| s.guards.len()).sum();
        if held < MAX_GUARDS
            && let Some(scope) = self.f.scopes.last_mut()
        {
            scope.guards.push(value);
        }
    }

    pub(super) fn push_scope(&mut self) {
        self.f.scopes.push(super::Scope::default());
    }

    /// Leaves a scope in the ordinary way: what it holds is dropped, last first.
    pub(super) fn pop_scope(&mut self, at: Span, moved: &[Var]) {
        if let Some(scope) = self.f.scopes.pop() {
            self.drop_all(&scope.guards, at, moved);
        }
    }

    pub(super) fn drop_all(&mut self, guards: &[Var], at: Span, moved: &[Var]) {
        for &guard in guards.iter().rev() {
            if !moved.contains(&guard) {
                self.emit(at, Op::Exit { resource: guard });
            }
        }
    }

    /// What a jump out of all scopes but the outermost `keep` drops.
    pub(super) fn drop_to(&mut self, keep: usize, at: Span, moved: &[Var]) {
        let guards: Vec<Var> = self
            .f
            .scopes
            .iter()
            .skip(keep)
            .flat_map(|s| s.guards.iter().copied())
            .collect();
        self.drop_all(&guards, at, moved);
    }

    /// Guards that whoever gets this value holds from now on: they are part of it.
    pub(super) fn moved_guards(&mut self, e: &Expr, out: &mut Vec<Var>) {
        let mut work = vec![e];
        while let Some(e) = work.pop() {
            if held_call(e).is_some() {
                let made = self.f.scopes.last().map(|s| s.guards.as_slice());
                out.extend(made.unwrap_or_default());
                continue;
            }
            match e {
                Expr::Paren(x) => work.push(&x.expr),
                Expr::Group(x) => work.push(&x.expr),
                Expr::Tuple(x) => work.extend(&x.elems),
                Expr::Array(x) => work.extend(&x.elems),
                Expr::Struct(x) => work.extend(x.fields.iter().map(|f| &f.expr)),
                Expr::Call(x) if is_made_of(&x.func) => work.extend(&x.args),
                Expr::Block(x) => work.extend(last_of(&x.block)),
                // A lock that somebody has left poisoned is held all the same.
                Expr::MethodCall(x) if x.method == "into_inner" => work.push(&x.receiver),
                Expr::Path(x) => {
                    if let Some(ident) = x.path.get_ident() {
                        let name = self.names.intern(&ident.to_string());
                        // A register of the function round this one is not one of its own.
                        let local = self.local(name).filter(|(outer, _)| *outer == 0);
                        out.extend(local.and_then(|(_, l)| l.held));
                    }
                }
                _ => {}
            }
        }
    }

    /// Is this a guard, so that `*e` is what it protects?
    pub(super) fn is_guard(&mut self, e: &Expr) -> bool {
        match e {
            Expr::Paren(x) => self.is_guard(&x.expr),
            Expr::Reference(x) => self.is_guard(&x.expr),
            Expr::Unary(x) if matches!(x.op, syn::UnOp::Deref(_)) => false,
            Expr::Path(x) => {
                let Some(ident) = x.path.get_ident() else {
                    return false;
                };
                let name = self.names.intern(&ident.to_string());
                self.local(name).is_some_and(|(_, local)| local.guard)
            }
            _ => guard_call(e).is_some(),
        }
    }

    /// Does a value come out of what a guard protects?
    pub(super) fn comes_from_guard(&mut self, e: &Expr) -> bool {
        let mut e = e;
        for _ in 0..32 {
            if guard_call(e).is_some() {
                return true;
            }
            e = match e {
                Expr::Await(x) => &x.base,
                Expr::Try(x) => &x.expr,
                Expr::Paren(x) => &x.expr,
                Expr::Reference(x) => &x.expr,
                Expr::Unary(x) => &x.expr,
                Expr::Field(x) => &x.base,
                Expr::Index(x) => &x.expr,
                Expr::MethodCall(x) => &x.receiver,
                Expr::Path(x) => {
                    let Some(ident) = x.path.get_ident() else {
                        return false;
                    };
                    let name = self.names.intern(&ident.to_string());
                    return self.local(name).is_some_and(|(_, l)| l.guard || l.taken);
                }
                _ => return false,
            };
        }
        false
    }

    /// What a guard protects, as a whole.
    pub(super) fn content(&mut self, at: Span, guard: Var) -> Var {
        let field = self.names.intern("*");
        self.op(at, |dst| Op::GetField {
            dst,
            obj: guard,
            field,
        })
    }
}
