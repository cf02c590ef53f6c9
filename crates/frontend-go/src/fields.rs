//! Parts of a node by their names.
//!
//! The parser knows them by number and would compare the name with all others each time.

use std::sync::OnceLock;

use rustc_hash::FxHashMap;
use tree_sitter::{Language, Node};

fn number(name: &str) -> Option<u16> {
    static NUMBERS: OnceLock<FxHashMap<String, u16>> = OnceLock::new();
    let numbers = NUMBERS.get_or_init(|| {
        let language: Language = tree_sitter_go::LANGUAGE.into();
        (1..=language.field_count() as u16)
            .filter_map(|id| Some((language.field_name_for_id(id)?.to_owned(), id)))
            .collect()
    });
    numbers.get(name).copied()
}

pub(crate) fn child<'a>(node: Node<'a>, name: &str) -> Option<Node<'a>> {
    node.child_by_field_id(number(name)?)
}
