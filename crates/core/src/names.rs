//! Interned identifiers.
//!
//! A front end works on one file at a time, in parallel, with a table of its
//! own; [`crate::ir::Program::link`] merges the tables in path order. So the
//! numbers depend on the input alone, never on which thread finished first.

use rustc_hash::FxHashMap;

/// An interned string. Meaningless without the [`Names`] it came from.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Name(pub u32);

/// A table of interned strings.
#[derive(Clone, Debug, Default)]
pub struct Names {
    map: FxHashMap<Box<str>, Name>,
    list: Vec<Box<str>>,
}

impl Names {
    pub fn new() -> Self {
        Self::default()
    }

    pub fn intern(&mut self, text: &str) -> Name {
        if let Some(&name) = self.map.get(text) {
            return name;
        }
        let name = Name(self.list.len() as u32);
        self.list.push(text.into());
        self.map.insert(text.into(), name);
        name
    }

    /// The name of `text`, if it was ever interned.
    pub fn find(&self, text: &str) -> Option<Name> {
        self.map.get(text).copied()
    }

    pub fn text(&self, name: Name) -> &str {
        &self.list[name.0 as usize]
    }

    pub fn len(&self) -> usize {
        self.list.len()
    }

    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    pub fn iter(&self) -> impl Iterator<Item = &str> {
        self.list.iter().map(AsRef::as_ref)
    }
}
