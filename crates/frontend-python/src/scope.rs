//! Which name belongs to which function, and which variables are shared.
//!
//! A name that a function binds anywhere is its own throughout. The IR has
//! two kinds of variable: a register of one function, and a captured one,
//! read and written through a cell. Which it is must be known before the
//! first instruction that touches it, so the tree is walked once before it is
//! lowered. The targets of comprehensions count as variables of the function
//! they stand in; the names of a class body are its fields.

use ruff_python_ast::visitor::{self, Visitor};
use ruff_python_ast::{self as ast, Expr, ExprContext, Pattern, Stmt};
use ruff_text_size::Ranged;
use rustc_hash::FxHashMap;
use toctou_core::ir::Cell;

use crate::collected::Collected;
use crate::lower::MAX_DEPTH;

/// Chains and nesting beyond this are not taken down by recursion.
const MAX_WALK: u32 = 2 * MAX_DEPTH;
const MAX_CHAIN: u32 = 1_000;

#[derive(Default, Clone, Debug)]
pub(crate) struct Symbol {
    /// How often it is bound.
    pub(crate) bound: u32,
    pub(crate) imported: bool,
    pub(crate) captured: bool,
    /// `global x` or `nonlocal x` here.
    outer: Option<Outer>,
    pub(crate) slot: Option<Cell>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Outer {
    Global,
    Nonlocal,
}

#[derive(Debug, Default)]
pub(crate) struct Scope<'a> {
    parent: Option<usize>,
    pub(crate) symbols: FxHashMap<&'a str, Symbol>,
    /// There is a `yield` in it.
    pub(crate) is_generator: bool,
}

#[derive(Debug)]
pub(crate) struct Scopes<'a> {
    pub(crate) list: Vec<Scope<'a>>,
    /// By the place where the function begins.
    by_start: FxHashMap<u32, usize>,
    pub(crate) collected: Collected<'a>,
    /// Too deep to be dropped, or to be walked to the end.
    pub(crate) deep: bool,
}

impl<'a> Scopes<'a> {
    pub(crate) fn new(body: &'a [Stmt]) -> Self {
        let mut walk = Walk {
            scopes: Scopes {
                list: vec![Scope::default()],
                by_start: FxHashMap::default(),
                collected: Collected::default(),
                deep: false,
            },
            at: 0,
            classes: 0,
            depth: 0,
        };
        walk.visit_body(body);
        let mut scopes = walk.scopes;
        scopes.settle();
        scopes
    }

    /// The scope of the function that begins here.
    pub(crate) fn of(&self, start: u32) -> Option<usize> {
        self.by_start.get(&start).copied()
    }

    /// A scope for a function that the source does not write: it sees module-level names.
    pub(crate) fn implied(&mut self) -> usize {
        self.list.push(Scope {
            parent: Some(0),
            ..Scope::default()
        });
        self.list.len() - 1
    }

    /// Finds the owner of every name that is used in another function.
    fn settle(&mut self) {
        for index in 0..self.list.len() {
            let used: Vec<(&'a str, u32)> = self.list[index]
                .symbols
                .iter()
                .filter(|(_, s)| index > 0 && (s.bound == 0 || s.outer.is_some()))
                .map(|(name, s)| (*name, s.bound))
                .collect();
            for (name, bound) in used {
                let Some(owner) = self.owner(index, name) else {
                    continue;
                };
                if let Some(symbol) = self.list[owner].symbols.get_mut(name)
                    && owner != index
                {
                    symbol.captured = true;
                    symbol.bound += bound;
                }
            }
        }
        for symbol in self.list[0].symbols.values_mut() {
            symbol.captured = true;
        }
    }

    /// The scope that a name means, seen from another.
    pub(crate) fn owner(&self, from: usize, name: &str) -> Option<usize> {
        let mut at = from;
        let mut hops = 0;
        loop {
            let scope = self.list.get(at)?;
            match scope.symbols.get(name) {
                Some(Symbol {
                    outer: Some(Outer::Global),
                    ..
                }) => {
                    return self.list[0].symbols.contains_key(name).then_some(0);
                }
                Some(symbol) if symbol.outer.is_none() && symbol.bound > 0 => return Some(at),
                _ => {}
            }
            at = scope.parent?;
            hops += 1;
            if hops > MAX_WALK {
                return None;
            }
        }
    }
}

struct Walk<'a> {
    scopes: Scopes<'a>,
    at: usize,
    /// Class bodies between here and the function.
    classes: u32,
    depth: u32,
}

impl<'a> Walk<'a> {
    fn symbol(&mut self, name: &'a str) -> &mut Symbol {
        self.scopes.list[self.at].symbols.entry(name).or_default()
    }

    fn bind(&mut self, name: &'a str) {
        // What a class body binds is a field; methods do not see it by name.
        if self.classes == 0 {
            self.symbol(name).bound += 1;
        }
    }

    fn used(&mut self, name: &'a str) {
        self.symbol(name);
    }

    fn function(
        &mut self,
        start: u32,
        params: Option<&'a ast::Parameters>,
        body: impl FnOnce(&mut Self),
    ) {
        let index = self.scopes.list.len();
        self.scopes.list.push(Scope {
            parent: Some(self.at),
            ..Scope::default()
        });
        self.scopes.by_start.insert(start, index);
        let at = std::mem::replace(&mut self.at, index);
        let classes = std::mem::take(&mut self.classes);
        for param in params.into_iter().flatten() {
            self.bind(param.name().as_str());
        }
        body(self);
        self.at = at;
        self.classes = classes;
    }

    fn defaults(&mut self, params: &'a ast::Parameters) {
        for param in params.iter_non_variadic_params() {
            if let Some(default) = &param.default {
                self.visit_expr(default);
            }
        }
    }

    fn deeper(&mut self, walk: impl FnOnce(&mut Self)) {
        if self.depth >= MAX_WALK {
            self.scopes.deep = true;
            return;
        }
        self.depth += 1;
        walk(self);
        self.depth -= 1;
    }

    fn assigned(&mut self, target: &'a Expr, value: &'a Expr) {
        match target {
            Expr::Attribute(target) => {
                let field = target.attr.as_str();
                self.scopes.collected.note(field, Some(value));
                self.visit_expr(&target.value);
                return;
            }
            Expr::Name(name) if self.classes > 0 => {
                self.scopes.collected.note(name.id.as_str(), Some(value));
            }
            _ => {}
        }
        self.visit_expr(target);
    }

    fn outer(&mut self, names: &'a [ast::Identifier], outer: Outer) {
        for name in names {
            if outer == Outer::Global {
                let top = &mut self.scopes.list[0].symbols;
                // It may be bound by this function only.
                let symbol = top.entry(name.as_str()).or_default();
                symbol.bound = symbol.bound.max(1);
            }
            if self.at > 0 {
                self.symbol(name.as_str()).outer = Some(outer);
            }
        }
    }
}

impl<'a> Visitor<'a> for Walk<'a> {
    fn visit_stmt(&mut self, stmt: &'a Stmt) {
        self.deeper(|this| match stmt {
            Stmt::FunctionDef(def) => {
                this.bind(def.name.as_str());
                for decorator in &def.decorator_list {
                    this.visit_expr(&decorator.expression);
                }
                this.defaults(&def.parameters);
                this.function(def.range.start().to_u32(), Some(&def.parameters), |this| {
                    this.visit_body(&def.body);
                });
            }
            Stmt::ClassDef(class) => {
                this.bind(class.name.as_str());
                for decorator in &class.decorator_list {
                    this.visit_expr(&decorator.expression);
                }
                if let Some(arguments) = &class.arguments {
                    this.visit_arguments(arguments);
                }
                this.classes += 1;
                this.visit_body(&class.body);
                this.classes -= 1;
            }
            Stmt::Import(import) => {
                for alias in &import.names {
                    let name = match &alias.asname {
                        Some(name) => name.as_str(),
                        None => alias.name.as_str().split('.').next().unwrap_or_default(),
                    };
                    // `import a.b` and `import a.c` bind the same `a`.
                    let again = alias.asname.is_none()
                        && this.classes == 0
                        && this.symbol(name).imported
                        && this.symbol(name).bound == 1;
                    if !again {
                        this.bind(name);
                    }
                    if this.classes == 0 {
                        this.symbol(name).imported = true;
                    }
                }
            }
            Stmt::ImportFrom(import) => {
                for alias in &import.names {
                    let name = alias.asname.as_ref().unwrap_or(&alias.name).as_str();
                    if name == "*" {
                        continue;
                    }
                    this.bind(name);
                    if this.classes == 0 {
                        this.symbol(name).imported = true;
                    }
                }
            }
            Stmt::Global(global) => this.outer(&global.names, Outer::Global),
            Stmt::Nonlocal(nonlocal) => this.outer(&nonlocal.names, Outer::Nonlocal),
            Stmt::AnnAssign(assign) if assign.value.is_none() => {
                // A bare annotation declares, and stores nothing.
                if let Expr::Name(name) = assign.target.as_ref()
                    && this.classes == 0
                {
                    let symbol = this.symbol(name.id.as_str());
                    symbol.bound = symbol.bound.max(1);
                }
            }
            Stmt::AugAssign(assign) => match assign.target.as_ref() {
                // What is changed in place is what it was.
                Expr::Attribute(target) => {
                    this.visit_expr(&assign.value);
                    this.visit_expr(&target.value);
                }
                target => {
                    if let Expr::Name(name) = target {
                        this.used(name.id.as_str());
                    }
                    visitor::walk_stmt(this, stmt);
                }
            },
            Stmt::Assign(assign) => {
                this.visit_expr(&assign.value);
                for target in &assign.targets {
                    this.assigned(target, &assign.value);
                }
            }
            Stmt::AnnAssign(assign) => {
                if let Some(value) = &assign.value {
                    this.visit_expr(value);
                    this.assigned(&assign.target, value);
                }
            }
            _ => visitor::walk_stmt(this, stmt),
        });
    }

    fn visit_annotation(&mut self, _: &'a Expr) {}

    fn visit_expr(&mut self, expr: &'a Expr) {
        self.deeper(|this| match expr {
            Expr::Name(name) => match name.ctx {
                ExprContext::Store | ExprContext::Del => this.bind(name.id.as_str()),
                _ => this.used(name.id.as_str()),
            },
            Expr::Attribute(target) if target.ctx != ExprContext::Load => {
                this.scopes.collected.note(target.attr.as_str(), None);
                visitor::walk_expr(this, expr);
            }
            Expr::Lambda(lambda) => {
                let params = lambda.parameters.as_deref();
                if let Some(params) = params {
                    this.defaults(params);
                }
                let start = lambda.range.start().to_u32();
                this.function(start, params, |this| this.visit_expr(&lambda.body));
            }
            // `a + b + c + …` nests to the left, as deep as it is long.
            Expr::BinOp(op) => {
                let mut op = op;
                let mut length = 0;
                loop {
                    this.visit_expr(&op.right);
                    length += 1;
                    match op.left.as_ref() {
                        Expr::BinOp(left) => op = left,
                        left => break this.visit_expr(left),
                    }
                }
                this.scopes.deep |= length > MAX_CHAIN;
            }
            Expr::Yield(_) | Expr::YieldFrom(_) => {
                this.scopes.list[this.at].is_generator = true;
                visitor::walk_expr(this, expr);
            }
            _ => visitor::walk_expr(this, expr),
        });
    }

    fn visit_except_handler(&mut self, handler: &'a ast::ExceptHandler) {
        let ast::ExceptHandler::ExceptHandler(inner) = handler;
        if let Some(name) = &inner.name {
            self.bind(name.as_str());
        }
        visitor::walk_except_handler(self, handler);
    }

    fn visit_pattern(&mut self, pattern: &'a Pattern) {
        let name = match pattern {
            Pattern::MatchAs(p) => p.name.as_ref(),
            Pattern::MatchStar(p) => p.name.as_ref(),
            Pattern::MatchMapping(p) => p.rest.as_ref(),
            _ => None,
        };
        if let Some(name) = name {
            self.bind(name.as_str());
        }
        self.deeper(|this| visitor::walk_pattern(this, pattern));
    }
}

pub(crate) fn start_of(node: &impl Ranged) -> u32 {
    node.range().start().to_u32()
}
