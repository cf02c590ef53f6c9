//! Sets of dependencies of one function, each kept once: most of what a function does depends on
//! the same few sets. What is the same has one address, so that to compare is to look at that, and
//! what was made of a set need not be made again.

use rustc_hash::{FxHashMap, FxHashSet};
use toctou_core::Name;

use crate::effect::{Deps, Growing};

/// What becomes of each member of a set.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Turn {
    Field(Name),
    Shared,
    Implicit,
    Chosen,
}

#[derive(Default)]
pub(crate) struct Sets {
    all: FxHashSet<Deps>,
    /// By the address of a set, which is kept beside what was made of it, so that the address
    /// stays its own.
    turned: FxHashMap<(usize, Turn), (Deps, Deps)>,
    /// Two sets, by their addresses, and both in one.
    joined: FxHashMap<(usize, usize), Joined>,
}

struct Joined {
    both: Deps,
    is_more: bool,
    _parts: [Deps; 2],
}

impl Sets {
    /// The one set with these members.
    pub(crate) fn own(&mut self, set: Deps) -> Deps {
        if set.address().is_none() {
            return set;
        }
        if let Some(known) = self.all.get(&set) {
            return known.clone();
        }
        self.all.insert(set.clone());
        set
    }

    /// The set with these members, which may be in any order.
    pub(crate) fn of(&mut self, words: &mut Vec<u64>) -> Deps {
        Deps::tidy(words);
        match self.all.get(words.as_slice()) {
            Some(known) => known.clone(),
            None => {
                let set = Deps::of_tidy(words);
                self.own(set)
            }
        }
    }

    /// Makes a set larger by another one. Did that make it another?
    pub(crate) fn extend(&mut self, set: &mut Deps, more: &Deps) -> bool {
        let (Some(a), Some(b)) = (set.address(), more.address()) else {
            let is_more = set.extend(more);
            if is_more {
                *set = self.own(std::mem::take(set));
            }
            return is_more;
        };
        if a == b {
            return false;
        }
        if let Some(known) = self.joined.get(&(a, b)) {
            if known.is_more {
                set.clone_from(&known.both);
            }
            return known.is_more;
        }
        let before = set.clone();
        let is_more = set.extend(more);
        if is_more {
            *set = self.own(std::mem::take(set));
        }
        let joined = Joined {
            both: set.clone(),
            is_more,
            _parts: [before, more.clone()],
        };
        self.joined.insert((a, b), joined);
        is_more
    }

    pub(crate) fn turned(
        &mut self,
        set: &Deps,
        turn: Turn,
        make: impl FnOnce(&Deps) -> Deps,
    ) -> Deps {
        let Some(address) = set.address() else {
            return make(set);
        };
        if let Some((_, known)) = self.turned.get(&(address, turn)) {
            return known.clone();
        }
        let made = make(set);
        let made = self.own(made);
        self.turned
            .insert((address, turn), (set.clone(), made.clone()));
        made
    }

    /// Nothing is kept any more; the tables stay for the next function.
    pub(crate) fn clear(&mut self) {
        self.all.clear();
        self.turned.clear();
        self.joined.clear();
    }
}

/// A set that is put together of others. Large ones are joined as they are, since the same come
/// together again and again; what else there is waits for the end.
#[derive(Default)]
pub(crate) struct Union {
    large: Deps,
    rest: Growing,
}

impl Union {
    pub(crate) fn insert(&mut self, word: u64) {
        self.rest.insert(word);
    }

    pub(crate) fn extend(&mut self, set: &Deps, sets: &mut Sets) {
        if set.address().is_none() {
            self.rest.extend(set);
        } else if self.large.is_empty() {
            self.large.clone_from(set);
        } else {
            sets.extend(&mut self.large, set);
        }
    }

    pub(crate) fn end(&mut self, sets: &mut Sets) -> Deps {
        self.rest.extend(&self.large);
        sets.own(self.rest.end())
    }
}
