//! Which names closures use.
//!
//! The IR has two kinds of variable: a register of one function, and a
//! captured one, read and written through a cell. Which it is must be known
//! before the first instruction that touches it. A variable counts as
//! captured if its name occurs in a deeper closure of the same top-level
//! declaration: now and then that takes in one too many, and costs nothing.

use std::sync::LazyLock;

use rustc_hash::{FxHashMap, FxHashSet};
use tree_sitter::Node;

use crate::fields::child;

/// Numbers of the kinds of nodes that are looked for: every node of a file is
/// asked, and its kind's name is slow to come by.
struct Kinds {
    closure: u16,
    identifier: u16,
    unary: u16,
    changes: [u16; 3],
}

static KINDS: LazyLock<Kinds> = LazyLock::new(|| {
    let language = tree_sitter::Language::from(tree_sitter_go::LANGUAGE);
    let id = |kind: &str| language.id_for_node_kind(kind, true);
    Kinds {
        closure: id("func_literal"),
        identifier: id("identifier"),
        unary: id("unary_expression"),
        changes: ["assignment_statement", "inc_statement", "dec_statement"].map(id),
    }
});

/// The deepest closure of one declaration that each name occurs in.
#[derive(Default)]
pub(crate) struct Captures<'t> {
    deepest: FxHashMap<&'t str, u32>,
    /// Variables whose fields are set (`x.f = …`), or given out for that (`&x`).
    changed: FxHashSet<&'t str>,
    /// Fields within which something is set (`x.f.g = …`: `f`).
    changed_within: FxHashSet<&'t str>,
}

impl<'t> Captures<'t> {
    pub(crate) fn of(declaration: Node<'_>, text: &'t str) -> Self {
        let mut deepest: FxHashMap<&'t str, u32> = FxHashMap::default();
        let mut changed: FxHashSet<&'t str> = FxHashSet::default();
        let mut changed_within: FxHashSet<&'t str> = FxHashSet::default();
        let kinds = &*KINDS;
        let mut cursor = declaration.walk();
        let mut depth = 0;
        loop {
            let node = cursor.node();
            let kind = node.kind_id();
            match kind {
                _ if kind == kinds.closure => depth += 1,
                _ if kind == kinds.identifier && depth > 0 => {
                    if let Some(name) = text.get(node.byte_range()) {
                        let slot = deepest.entry(name).or_default();
                        *slot = depth.max(*slot);
                    }
                }
                _ if kind == kinds.unary => {
                    if let Some(base) = child(node, "operand")
                        && base.kind_id() == kinds.identifier
                        && child(node, "operator").is_some_and(|o| o.kind() == "&")
                        && let Some(name) = text.get(base.byte_range())
                    {
                        changed.insert(name);
                    }
                }
                _ if kinds.changes.contains(&kind) => {
                    let target = node
                        .named_child(0)
                        .filter(|t| t.kind() == "expression_list");
                    let target = target
                        .and_then(|t| t.named_child(0))
                        .or(node.named_child(0));
                    if let Some(target) = target
                        && target.kind() == "selector_expression"
                        && let Some(base) = child(target, "operand")
                    {
                        let named = |node: Node<'_>| text.get(node.byte_range());
                        if base.kind() == "identifier" {
                            changed.extend(named(base));
                        } else if let Some(field) = child(base, "field") {
                            changed_within.extend(named(field));
                        }
                    }
                }
                _ => {}
            }
            if cursor.goto_first_child() {
                continue;
            }
            loop {
                if cursor.node().kind_id() == kinds.closure {
                    depth = depth.saturating_sub(1);
                }
                if cursor.node() != declaration && cursor.goto_next_sibling() {
                    break;
                }
                if cursor.node() == declaration || !cursor.goto_parent() {
                    return Self {
                        deepest,
                        changed,
                        changed_within,
                    };
                }
            }
        }
    }

    /// Does a closure within the function at `depth` use this name?
    pub(crate) fn deeper(&self, name: &str, depth: u32) -> bool {
        self.deepest.get(name).is_some_and(|&d| d > depth)
    }

    /// Does the declaration set fields of a field of this name?
    pub(crate) fn changes_within(&self, field: &str) -> bool {
        self.changed_within.contains(field)
    }

    /// Does the declaration set fields of any variable, or let others do so?
    pub(crate) fn changes_any(&self) -> bool {
        !self.changed.is_empty()
    }

    /// Does the declaration set fields of a variable of this name, or let others do so?
    pub(crate) fn changes(&self, name: &str) -> bool {
        self.changed.contains(name)
    }
}
