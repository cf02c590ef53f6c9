//! Which variables are shared between functions.
//!
//! The IR has two kinds of variable: a register of one function, and a
//! captured one, read and written through a cell. Which it is must be known
//! before the first instruction that touches it, so it is worked out here,
//! from the symbol table, before lowering begins.

use oxc_ast::ast::{Class, Program};
use oxc_ast_visit::{Visit, walk};
use oxc_semantic::Scoping;
use oxc_syntax::{scope::ScopeId, symbol::SymbolId};

/// Used by another function than the one that declares it, or at top level.
pub(crate) const CAPTURED: u8 = 1;
/// Assigned after its declaration.
pub(crate) const MUTATED: u8 = 2;
/// Named by an `export`.
pub(crate) const EXPORTED: u8 = 4;
/// Read or written at least once.
pub(crate) const REFERENCED: u8 = 8;

pub(crate) struct Symbols {
    flags: Vec<u8>,
    /// Per symbol: the scope of the function (or program) that owns it.
    owner: Vec<u32>,
    /// Per scope: the function (or program) scope it belongs to.
    pub(crate) scopes: usize,
}

impl Symbols {
    pub(crate) fn new<'a>(program: &Program<'a>, scoping: &Scoping, inner_classes: bool) -> Self {
        let scopes = scoping.scopes_len();
        let mut is_class = vec![false; scopes];
        // The variables round a top-level class are captured in any case; only
        // for others is it worth a walk over the tree to find them.
        if inner_classes {
            Classes(&mut is_class).visit_program(program);
        }
        // `runs_in` is exact for declarations. For references a class body
        // counts as a function of its own: its field initialisers run in the
        // constructor, and one cannot tell them from the rest by their scope.
        let mut runs_in = vec![0_u32; scopes];
        let mut seen_from = vec![0_u32; scopes];
        for scope in scoping.scope_descendants_from_root() {
            let index = scope.index();
            let flags = scoping.scope_flags(scope);
            let parent = scoping.scope_parent_id(scope).map(ScopeId::index);
            let inherited = |of: &[u32]| parent.and_then(|p| of.get(p)).copied().unwrap_or(0);
            let own = index as u32;
            let (runs, seen) = if flags.is_function() || flags.is_top() {
                (own, own)
            } else if is_class.get(index) == Some(&true) {
                (inherited(&runs_in), own)
            } else {
                (inherited(&runs_in), inherited(&seen_from))
            };
            if let Some(slot) = runs_in.get_mut(index) {
                *slot = runs;
            }
            if let Some(slot) = seen_from.get_mut(index) {
                *slot = seen;
            }
        }
        let at = |of: &[u32], scope: ScopeId| of.get(scope.index()).copied().unwrap_or(0);
        let root = scoping.root_scope_id();
        let count = scoping.symbols_len();
        let mut flags = Vec::with_capacity(count);
        let mut owner = Vec::with_capacity(count);
        for symbol in scoping.symbol_ids() {
            let scope = scoping.symbol_scope_id(symbol);
            let mine = at(&seen_from, scope);
            let mut flag = 0;
            if scope == root || is_class.get(scope.index()) == Some(&true) {
                flag |= CAPTURED;
            }
            for reference in scoping.get_resolved_references(symbol) {
                if reference.is_write() {
                    flag |= MUTATED;
                }
                if reference.is_value() || reference.is_write() {
                    flag |= REFERENCED;
                    if at(&seen_from, reference.scope_id()) != mine {
                        flag |= CAPTURED;
                    }
                }
            }
            // `var x = 1; var x = 2` and `function f(x) { var x = 1 }`.
            if !scoping.symbol_redeclarations(symbol).is_empty() {
                flag |= MUTATED;
            }
            flags.push(flag);
            owner.push(at(&runs_in, scope));
        }
        Self {
            flags,
            owner,
            scopes,
        }
    }

    pub(crate) fn has(&self, symbol: SymbolId, flag: u8) -> bool {
        self.flags
            .get(symbol.index())
            .is_some_and(|f| f & flag != 0)
    }

    pub(crate) fn set(&mut self, symbol: SymbolId, flag: u8) {
        if let Some(f) = self.flags.get_mut(symbol.index()) {
            *f |= flag;
        }
    }

    /// Index of the scope of the function that owns the symbol.
    pub(crate) fn owner(&self, symbol: SymbolId) -> usize {
        self.owner.get(symbol.index()).copied().unwrap_or(0) as usize
    }

    pub(crate) fn len(&self) -> usize {
        self.flags.len()
    }
}

struct Classes<'m>(&'m mut [bool]);

impl<'a> Visit<'a> for Classes<'_> {
    fn visit_class(&mut self, class: &Class<'a>) {
        if let Some(slot) = class
            .scope_id
            .get()
            .and_then(|scope| self.0.get_mut(scope.index()))
        {
            *slot = true;
        }
        walk::walk_class(self, class);
    }
}
