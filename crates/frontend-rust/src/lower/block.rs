//! Blocks and statements, and what the last expression of a function gives back.

use syn::{Block, Expr, Local as Let, Stmt};
use toctou_core::Span;
use toctou_core::ir::{Op, Term, Var};

use super::guards::{gives_guard, guard_call, held_call, is_choice};
use super::pattern::bare;
use super::{Fails, Lower, MAX_DEPTH};

impl Lower<'_> {
    /// A block whose value is used.
    pub(super) fn block_value(&mut self, block: &Block) -> Var {
        let at = self.places.token(block.brace_token.span.close());
        self.push_scope();
        let (value, given) = self.statements(block);
        let value = match value {
            Some(value) => value,
            None => self.null(at),
        };
        self.pop_scope(at, &[value]);
        self.drop_all_later(&given);
        value
    }

    /// A block whose value is what the function gives back.
    pub(super) fn block_tail(&mut self, block: &Block) {
        let at = self.places.token(block.brace_token.span.close());
        self.push_scope();
        self.block_items(&block.stmts);
        let (last, before) = match block.stmts.split_last() {
            Some((Stmt::Expr(e, None), before)) => (Some(e), before),
            Some((Stmt::Macro(m), before)) if m.semi_token.is_none() => {
                self.each(before);
                if self.reachable() {
                    self.push_scope();
                    let value = self.macro_value(&m.mac);
                    self.return_value(Some(value), at);
                    self.f.scopes.pop();
                }
                self.f.scopes.pop();
                return;
            }
            _ => (None, block.stmts.as_slice()),
        };
        self.each(before);
        if self.reachable() {
            match last {
                Some(e) => self.tail(e),
                None => self.return_value(None, at),
            }
        }
        self.f.scopes.pop();
    }

    /// An expression whose value is what the function gives back: `if` and
    /// `match` give back in each of their branches.
    pub(super) fn tail(&mut self, e: &Expr) {
        let at = self.places.expr(e);
        if self.depth >= MAX_DEPTH {
            let value = self.too_deep(at);
            self.return_value(Some(value), at);
            return;
        }
        self.depth += 1;
        match e {
            Expr::Paren(x) => self.tail(&x.expr),
            Expr::Block(x) if x.label.is_none() => self.block_tail(&x.block),
            Expr::Unsafe(x) => self.block_tail(&x.block),
            Expr::If(x) if x.else_branch.is_some() => self.if_expr(x, true, None),
            Expr::Match(x) => self.match_expr(x, true, None),
            Expr::Return(x) => self.return_expr(x.expr.as_deref(), at),
            _ => self.return_expr(Some(e), at),
        }
        self.depth -= 1;
    }

    pub(super) fn return_expr(&mut self, e: Option<&Expr>, at: Span) {
        let Some(e) = e else {
            self.return_value(None, at);
            return;
        };
        if let Some(error) = error_value(e) {
            self.push_scope();
            let value = self.expr(error);
            self.drop_to(0, at, &[]);
            self.f.scopes.pop();
            self.end(at, Term::Throw(value));
            return;
        }
        self.push_scope();
        let value = self.expr(e);
        let mut moved = vec![value];
        self.moved_guards(e, &mut moved);
        self.drop_to(0, at, &moved);
        self.f.scopes.pop();
        self.end(at, Term::Return(Some(value)));
    }

    pub(super) fn return_value(&mut self, value: Option<Var>, at: Span) {
        self.drop_to(0, at, value.as_slice());
        self.end(at, Term::Return(value));
    }

    /// Leaves the function because there is nothing to go on with.
    pub(super) fn give_up(&mut self, at: Span, value: Var) {
        self.drop_to(0, at, &[]);
        match self.f.fails {
            Fails::Throw => self.end(at, Term::Throw(value)),
            Fails::Null => {
                let null = self.null(at);
                self.end(at, Term::Return(Some(null)));
            }
        }
    }

    fn each(&mut self, stmts: &[Stmt]) {
        for stmt in stmts {
            if !self.reachable() {
                return;
            }
            self.statement(stmt);
        }
    }

    /// The value of a block, and the guards that it takes along.
    fn statements(&mut self, block: &Block) -> (Option<Var>, Vec<Var>) {
        self.block_items(&block.stmts);
        let (last, before) = match block.stmts.split_last() {
            Some((Stmt::Expr(e, None), before)) => (Some(e), before),
            Some((Stmt::Macro(m), before)) if m.semi_token.is_none() => {
                self.each(before);
                let value = self.reachable().then(|| self.macro_value(&m.mac));
                return (value, Vec::new());
            }
            _ => (None, block.stmts.as_slice()),
        };
        self.each(before);
        let Some(e) = last.filter(|_| self.reachable()) else {
            return (None, Vec::new());
        };
        let at = self.places.expr(e);
        self.push_scope();
        let value = self.expr(e);
        let given = self.go_with(e, value);
        self.pop_scope(at, &[value]);
        (Some(value), given)
    }

    fn statement(&mut self, stmt: &Stmt) {
        let at = self.places.stmt(stmt);
        if self.depth >= MAX_DEPTH {
            self.too_deep(at);
            return;
        }
        self.depth += 1;
        match stmt {
            Stmt::Local(l) => self.let_statement(l, at),
            Stmt::Expr(e, _) => {
                self.push_scope();
                self.effect(e);
                self.pop_scope(at, &[]);
            }
            Stmt::Macro(m) => {
                self.push_scope();
                self.macro_value(&m.mac);
                self.pop_scope(at, &[]);
            }
            Stmt::Item(_) => {}
        }
        self.depth -= 1;
    }

    /// An expression whose value nobody uses.
    pub(super) fn effect(&mut self, e: &Expr) {
        match e {
            Expr::If(x) => self.if_expr(x, false, None),
            Expr::Match(x) => self.match_expr(x, false, None),
            Expr::Block(x) if x.label.is_none() => {
                self.block_value(&x.block);
            }
            _ => {
                self.expr(e);
            }
        }
    }

    fn let_statement(&mut self, l: &Let, at: Span) {
        let Some(init) = &l.init else {
            // `let x;` is set later.
            let (pat, ty) = match &l.pat {
                syn::Pat::Type(p) => (&*p.pat, self.type_ref(&p.ty)),
                other => (other, None),
            };
            if let Some(ident) = super::function::simple(pat) {
                let var = self.declare_local(at, &ident, None, true);
                if let Some(info) = self.f.vars.get_mut(var.0 as usize) {
                    info.ty = ty.map(Box::new);
                }
            }
            return;
        };
        self.push_scope();
        let value = self.expr(&init.expr);
        let mut guards = self.f.scopes.pop().map(|s| s.guards).unwrap_or_default();
        // What the initialiser gives is the variable's: the rest goes now. `_` is no variable.
        let named = !matches!(l.pat, syn::Pat::Wild(_));
        let kept = if named && is_choice(&init.expr) {
            std::mem::take(&mut guards)
        } else if named && held_call(&init.expr).is_some() {
            guards.pop().into_iter().collect()
        } else {
            Vec::new()
        };
        self.drop_all(&guards, at, &[]);
        self.drop_all_later(&kept);
        match &init.diverge {
            Some((_, otherwise)) => {
                let fail = self.block();
                self.matches(&l.pat, value, at, Some(fail));
                let resume = self.f.current.take();
                self.start(fail);
                self.effect(otherwise);
                if self.reachable() {
                    let nothing = self.null(at);
                    self.end(at, Term::Throw(nothing));
                }
                self.f.current = resume;
            }
            None => self.bind(&l.pat, value, at),
        }
        self.note_local(&l.pat, &init.expr, kept.last().copied());
    }

    /// What the initialiser says about the variable: its type, that it is a guard.
    fn note_local(&mut self, pat: &syn::Pat, init: &Expr, held: Option<Var>) {
        let inner = match pat {
            syn::Pat::Type(p) => &*p.pat,
            other => other,
        };
        let Some(ident) = super::function::simple(inner) else {
            return;
        };
        let name = self.names.intern(&ident);
        let ty = self.type_of_value(init);
        let Some((0, local)) = self.local(name) else {
            return;
        };
        if let Some(info) = self.f.vars.get_mut(local.var.0 as usize)
            && info.ty.is_none()
        {
            info.ty = ty.map(Box::new);
        }
        let is_guard = guard_call(init).is_some() || held.is_some() && gives_guard(init);
        let taken = !is_guard && self.comes_from_guard(init);
        let runs = matches!(bare(init), Expr::Async(_));
        if (is_guard || taken || runs || held.is_some())
            && let Some(scope) = self.f.scopes.last_mut()
            && let Some(local) = scope.locals.iter_mut().rev().find(|l| l.name == name)
        {
            local.guard = is_guard;
            local.held = held;
            local.taken = taken;
            local.runs = runs;
        }
    }

    /// `drop(x)`: the value ends here.
    pub(super) fn drop_value(&mut self, at: Span, e: &Expr) -> Var {
        let value = self.expr(bare(e));
        self.emit(at, Op::Exit { resource: value });
        // A guard that came by way of something else is dropped under the register it was made in.
        let mut made = Vec::new();
        self.moved_guards(bare(e), &mut made);
        made.retain(|g| *g != value);
        self.drop_all(&made, at, &[]);
        self.null(at)
    }
}

/// `Err(e)`: the error that is given back.
fn error_value(e: &Expr) -> Option<&Expr> {
    let Expr::Call(call) = bare(e) else {
        return None;
    };
    let Expr::Path(p) = &*call.func else {
        return None;
    };
    (p.path.segments.last()?.ident == "Err").then(|| call.args.first())?
}
