//! Interned identifiers.
//!
//! A front end works on one file at a time, in parallel, with a table of its
//! own; [`crate::ir::Program::link`] merges the tables in path order. So the
//! numbers depend on the input alone, never on which thread finished first.

use indexmap::IndexSet;
use rustc_hash::FxBuildHasher;

/// An interned string. Meaningless without the [`Names`] it came from.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Name(pub u32);

/// A table of interned strings.
#[derive(Clone, Debug, Default)]
pub struct Names {
    list: IndexSet<Box<str>, FxBuildHasher>,
}

impl Names {
    pub fn new() -> Self {
        Self::default()
    }

    pub fn intern(&mut self, text: &str) -> Name {
        match self.find(text) {
            Some(name) => name,
            None => Name(self.list.insert_full(text.into()).0 as u32),
        }
    }

    /// The name of `text`, if it was ever interned.
    pub fn find(&self, text: &str) -> Option<Name> {
        let known = self.list.get_index_of(text)?;
        Some(Name(known as u32))
    }

    #[inline]
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
