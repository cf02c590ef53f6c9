//! Interned identifiers.
//!
//! A front end works on one file at a time, in parallel, with a table of its
//! own; [`crate::ir::Program::link`] merges the tables in path order. So the
//! numbers depend on the input alone, never on which thread finished first.

use std::hash::BuildHasher as _;

use hashbrown::HashTable;
use rustc_hash::FxBuildHasher;

/// An interned string. Meaningless without the [`Names`] it came from.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Name(pub u32);

/// A table of interned strings.
#[derive(Clone, Debug)]
pub struct Names {
    /// All of them, one behind the other …
    texts: String,
    /// … and where each begins and the one before it ends.
    bounds: Vec<u32>,
    table: HashTable<Entry>,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    hash: u32,
    name: Name,
}

impl Default for Names {
    fn default() -> Self {
        Self {
            texts: String::new(),
            bounds: vec![0],
            table: HashTable::new(),
        }
    }
}

impl Names {
    pub fn new() -> Self {
        Self::default()
    }

    pub fn intern(&mut self, text: &str) -> Name {
        let hash = hash(text);
        if let Some(name) = self.find_hashed(text, hash) {
            return name;
        }
        let name = Name(self.len() as u32);
        self.texts.push_str(text);
        self.bounds.push(self.texts.len() as u32);
        let entry = Entry { hash, name };
        self.table
            .insert_unique(spread(hash), entry, |entry| spread(entry.hash));
        name
    }

    /// The name of `text`, if it was ever interned.
    pub fn find(&self, text: &str) -> Option<Name> {
        self.find_hashed(text, hash(text))
    }

    fn find_hashed(&self, text: &str, hash: u32) -> Option<Name> {
        let is = |entry: &Entry| entry.hash == hash && self.text(entry.name) == text;
        Some(self.table.find(spread(hash), is)?.name)
    }

    #[inline]
    pub fn text(&self, name: Name) -> &str {
        let at = name.0 as usize;
        &self.texts[self.bounds[at] as usize..self.bounds[at + 1] as usize]
    }

    pub fn len(&self) -> usize {
        self.bounds.len() - 1
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub fn iter(&self) -> impl Iterator<Item = &str> {
        (0..self.len()).map(|at| self.text(Name(at as u32)))
    }
}

fn hash(text: &str) -> u32 {
    FxBuildHasher.hash_one(text) as u32
}

/// The table takes the place from the lower end of a hash, and a few bits from the upper.
fn spread(hash: u32) -> u64 {
    u64::from(hash) << 32 | u64::from(hash)
}
