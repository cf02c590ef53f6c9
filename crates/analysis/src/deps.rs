//! What values depend on: what was read, parameters, variables of enclosing functions.

use std::rc::Rc;

use smallvec::SmallVec;
use toctou_core::Name;

/// Where a value comes from, in the terms of one function.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Source {
    /// An event of the function (index into its events).
    Event(u32),
    Param(u32),
    /// A captured variable, by its number: the function that declares it knows more.
    Cell(u32),
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Dep {
    pub source: Source,
    /// Which attribute of what was read: the first field that was taken.
    pub attr: Option<Name>,
    /// It came by way of a place in memory that others see as well.
    pub shared: bool,
    /// Not the value itself came from there: which of several values it is did.
    pub implicit: bool,
    /// It went into a question, and the value is the answer that somebody outside gave.
    pub asked: bool,
    /// The question was which row to read: it is no part of what was read there.
    pub chosen: bool,
}

impl Dep {
    pub fn on(source: Source) -> Self {
        Self {
            source,
            attr: None,
            shared: false,
            implicit: false,
            asked: false,
            chosen: false,
        }
    }
}

const SHARED: u64 = 1;
const IMPLICIT: u64 = 1 << 1;
const ASKED: u64 = 1 << 2;
const CHOSEN: u64 = 1 << 3;
/// Of a word, what does not say where it comes from.
const MANNER: u64 = (1 << 34) - 1;

impl Dep {
    /// In one word, ordered by source: events, parameters, variables. Where a list is cut,
    /// what was read is the last to go.
    pub fn pack(self) -> u64 {
        let (kind, index) = match self.source {
            Source::Event(i) => (0, i),
            Source::Param(i) => (1, i),
            Source::Cell(i) => (2, i),
        };
        let attr = self.attr.map_or(0, |n| n.0.wrapping_add(1));
        (kind << 62)
            | (u64::from(index & 0x0fff_ffff) << 34)
            | (u64::from(attr & 0x3fff_ffff) << 4)
            | (if self.chosen { CHOSEN } else { 0 })
            | (if self.asked { ASKED } else { 0 })
            | (if self.implicit { IMPLICIT } else { 0 })
            | (if self.shared { SHARED } else { 0 })
    }

    /// All but where it comes from.
    pub fn manner(self) -> u64 {
        self.pack() & MANNER
    }

    pub fn unpack(word: u64) -> Self {
        let index = (word >> 34) as u32 & 0x0fff_ffff;
        Self {
            source: match word >> 62 {
                0 => Source::Event(index),
                1 => Source::Param(index),
                _ => Source::Cell(index),
            },
            attr: ((word >> 4) as u32 & 0x3fff_ffff).checked_sub(1).map(Name),
            asked: word & ASKED != 0,
            chosen: word & CHOSEN != 0,
            implicit: word & IMPLICIT != 0,
            shared: word & SHARED != 0,
        }
    }
}

/// Is there anything in `b` that a set with `a` in it would take?
fn adds(a: &[u64], b: &[u64]) -> bool {
    let mut i = 0;
    for &word in b {
        while i < a.len() && a[i] < word {
            i += 1;
        }
        match a.get(i) {
            Some(&same) if same == word => {}
            Some(_) => return true,
            None => return a.len() < MAX_DEPS,
        }
    }
    false
}

/// The event that a word is about, if it is about one. They come first in a set.
pub fn event_of_word(word: u64) -> Option<u32> {
    (word >> 62 == 0).then_some((word >> 34) as u32)
}

/// The same, about another event.
pub fn word_of_event(word: u64, event: u32) -> u64 {
    (word & MANNER) | (u64::from(event) << 34)
}

/// [`Deps::field`], for one of them.
pub fn word_of_field(word: u64, name: Name) -> u64 {
    let dep = Dep::unpack(word);
    Dep {
        attr: dep.attr.or(Some(name)),
        ..dep
    }
    .pack()
}

/// [`Dep::asked`], for one of them. What was read from elsewhere than memory is what the answer
/// was made from: somebody was given a text to work on.
pub fn word_of_answer(word: u64, is_memory: impl Fn(u32) -> bool) -> u64 {
    match Dep::unpack(word).source {
        Source::Event(e) if !is_memory(e) => word,
        _ => word | ASKED,
    }
}

/// [`Dep::chosen`], for one of them.
pub fn word_of_choice(word: u64) -> u64 {
    word | ASKED | CHOSEN
}

/// A small sorted set. Large ones are shared: most of what a function does depends on the same.
#[derive(Clone, Default)]
pub struct Deps(Words);

#[derive(Clone)]
enum Words {
    Few(u8, [u64; FEW]),
    Many(Rc<[u64]>),
}

/// As many are kept in place.
const FEW: usize = 2;

impl Default for Words {
    fn default() -> Self {
        Self::Few(0, [0; FEW])
    }
}

impl std::ops::Deref for Words {
    type Target = [u64];

    fn deref(&self) -> &[u64] {
        match self {
            Self::Few(count, words) => &words[..usize::from(*count)],
            Self::Many(words) => words,
        }
    }
}

impl From<&[u64]> for Words {
    fn from(words: &[u64]) -> Self {
        if words.len() > FEW {
            return Self::Many(words.into());
        }
        let mut few = [0; FEW];
        few[..words.len()].copy_from_slice(words);
        Self::Few(words.len() as u8, few)
    }
}

impl PartialEq for Deps {
    fn eq(&self, other: &Self) -> bool {
        match (&self.0, &other.0) {
            (Words::Many(a), Words::Many(b)) => Rc::ptr_eq(a, b) || a == b,
            (a, b) => **a == **b,
        }
    }
}

impl Eq for Deps {}

impl std::borrow::Borrow<[u64]> for Deps {
    fn borrow(&self) -> &[u64] {
        self.words()
    }
}

impl std::hash::Hash for Deps {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.words().hash(state);
    }
}

impl std::fmt::Debug for Deps {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

/// A value that depends on more than this many things depends on everything:
/// more does not change an answer, and time must stay linear.
const MAX_DEPS: usize = 96;

/// Where a set is put together.
type Buffer = SmallVec<[u64; MAX_DEPS]>;

/// A set that is still growing: [`Deps::insert`] and [`Deps::extend`] again and again, and
/// memory of its own only at the end.
#[derive(Default)]
pub struct Growing {
    /// All there is, as long as that is one set: it is handed on as it is, and so are most.
    one: Option<Deps>,
    words: Buffer,
    /// Large sets that are in it: they come again and again.
    taken: SmallVec<[Deps; 8]>,
    /// Something was left out that may find room later: what was taken is not all there any more.
    /// (Where nothing was asked, the smallest words stay, in whatever order they come.)
    cut: bool,
}

impl Growing {
    pub fn new() -> Self {
        Self::default()
    }

    fn flatten(&mut self) {
        if let Some(one) = self.one.take() {
            self.words.extend_from_slice(&one.0);
            self.note_taken(one);
        }
    }

    fn note_taken(&mut self, set: Deps) {
        if self.taken.len() < self.taken.inline_size() && set.address().is_some() {
            self.taken.push(set);
        }
    }

    fn has_taken(&self, set: &Deps) -> bool {
        let address = set.address();
        !self.cut && address.is_some() && self.taken.iter().any(|t| t.address() == address)
    }

    pub fn insert(&mut self, word: u64) {
        self.flatten();
        self.put(word);
    }

    fn put(&mut self, word: u64) {
        // Mostly they come in order.
        if self.words.len() < MAX_DEPS && self.words.last().is_none_or(|last| *last < word) {
            self.words.push(word);
            return;
        }
        if let Err(at) = self.words.binary_search(&word) {
            if self.words.len() >= MAX_DEPS {
                self.cut |= is_asked(&self.words, &[word]);
                if at >= MAX_DEPS {
                    return;
                }
                self.words.truncate(MAX_DEPS - 1);
            }
            self.words.insert(at, word);
        }
    }

    pub fn extend(&mut self, other: &Deps) {
        let more: &[u64] = &other.0;
        if more.is_empty() {
            return;
        }
        match &self.one {
            Some(one) if one == other => return,
            None if self.words.is_empty() => {
                self.one = Some(other.clone());
                return;
            }
            _ => self.flatten(),
        }
        if self.has_taken(other) {
            return;
        }
        self.add(more);
        self.note_taken(other.clone());
    }

    fn add(&mut self, more: &[u64]) {
        // One or two are put where they belong.
        if more.len() <= FEW && self.words.len() + more.len() <= MAX_DEPS {
            more.iter().for_each(|word| self.put(*word));
            return;
        }
        let new = count_new(&self.words, more);
        if new == 0 {
            return;
        }
        let too_many = (self.words.len() + new).saturating_sub(MAX_DEPS);
        if self.words.len() + more.len() > MAX_DEPS && is_asked(&self.words, more) {
            self.cut = true;
            if let Some(merged) = merged(&self.words, more) {
                self.words = merged;
            }
            return;
        }
        self.merge(more, too_many);
    }

    /// Puts sorted words in, all but the last so and so many of both.
    fn merge(&mut self, more: &[u64], too_many: usize) {
        let (mut i, mut j) = (self.words.len(), more.len());
        for _ in 0..too_many {
            let (a, b) = (self.words[..i].last(), more[..j].last());
            i -= usize::from(a >= b);
            j -= usize::from(b >= a);
        }
        self.words.truncate(i);
        let new = count_new(&self.words, &more[..j]);
        // From the back, so that nothing is in the way.
        self.words.resize(i + new, 0);
        let words = &mut self.words[..];
        let mut to = words.len();
        while i < to {
            to -= 1;
            let (a, b) = (i.checked_sub(1).map(|i| words[i]), more[j - 1]);
            if a.is_none_or(|a| a < b) {
                words[to] = b;
                j -= 1;
            } else if let Some(a) = a {
                words[to] = a;
                i -= 1;
                j -= usize::from(a == b);
            }
        }
    }

    pub fn end(&mut self) -> Deps {
        match self.one.take() {
            Some(one) => one,
            None => Deps(self.words.as_slice().into()),
        }
    }
}

/// Did somebody outside answer one of them?
fn is_asked(a: &[u64], b: &[u64]) -> bool {
    let all = a.iter().chain(b).fold(0, |all, word| all | word);
    all & ASKED != 0
}

/// How many words of `b` are not in `a`?
fn count_new(a: &[u64], b: &[u64]) -> usize {
    let (mut i, mut new) = (0, 0);
    for word in b {
        while i < a.len() && a[i] < *word {
            i += 1;
        }
        new += usize::from(a.get(i) != Some(word));
    }
    new
}

/// Both, if that is more than the first.
fn merged(a: &[u64], b: &[u64]) -> Option<Buffer> {
    if a.len() + b.len() > MAX_DEPS && is_asked(a, b) {
        let adds = |w: &u64| (w & ASKED == 0 || a.len() < MAX_DEPS) && a.binary_search(w).is_err();
        return b.iter().any(adds).then(|| {
            let mut all = Vec::with_capacity(a.len() + b.len());
            unite(a, b, usize::MAX, |word| all.push(word));
            let count = settle(&mut all);
            Buffer::from_slice(&all[..count])
        });
    }
    if !adds(a, b) {
        return None;
    }
    let mut merged = Buffer::new();
    unite(a, b, MAX_DEPS, |word| merged.push(word));
    Some(merged)
}

/// The words of two sorted lists in order, each once, up to so many.
fn unite(a: &[u64], b: &[u64], most: usize, mut put: impl FnMut(u64)) {
    let (mut i, mut j) = (0, 0);
    for _ in 0..most {
        let next = match (a.get(i), b.get(j)) {
            (Some(x), Some(y)) => {
                i += usize::from(x <= y);
                j += usize::from(y <= x);
                *x.min(y)
            }
            (None, Some(y)) => {
                j += 1;
                *y
            }
            (Some(x), None) => {
                i += 1;
                *x
            }
            (None, None) => break,
        };
        put(next);
    }
}

/// Leaves out, of words in order, what says nothing, or is too much. So many are left.
fn settle(words: &mut [u64]) -> usize {
    let mut count = words.len();
    if is_asked(words, &[]) {
        // Who has it itself has no need of the answer. It stands a few words before.
        count = retain(words, |before, word| {
            let of_same = before.iter().rev().take_while(|w| *w >> 4 == word >> 4);
            word & ASKED == 0 || !of_same.into_iter().any(|w| *w == word & !ASKED)
        });
        if count > MAX_DEPS {
            // What it was made from matters more than what was asked about.
            count = retain(&mut words[..count], |_, word| word & ASKED == 0);
        }
    }
    count.min(MAX_DEPS)
}

/// Keeps, in place, the words that are wanted, seeing those that were kept before.
fn retain(words: &mut [u64], is_wanted: impl Fn(&[u64], u64) -> bool) -> usize {
    let mut count = 0;
    for i in 0..words.len() {
        if is_wanted(&words[..count], words[i]) {
            words[count] = words[i];
            count += 1;
        }
    }
    count
}

impl Deps {
    pub fn one(dep: Dep) -> Self {
        Self([dep.pack()].as_slice().into())
    }

    pub fn event(index: u32) -> Self {
        Self::one(Dep::on(Source::Event(index)))
    }

    pub fn insert(&mut self, dep: Dep) {
        let word = dep.pack();
        if let Err(at) = self.0.binary_search(&word) {
            let mut words = Buffer::from_slice(&self.0);
            words.insert(at, word);
            words.truncate(MAX_DEPS);
            *self = Self(words.as_slice().into());
        }
    }

    /// Both in one. Did that make it another?
    pub fn extend(&mut self, other: &Self) -> bool {
        if other.0.is_empty() || self == other {
            return false;
        }
        if self.0.is_empty() {
            self.clone_from(other);
            return true;
        }
        let (a, b): (&[u64], &[u64]) = (&self.0, &other.0);
        let new = count_new(a, b);
        if new == 0 {
            return false;
        }
        // All of it may be in the other one, which then is both.
        let plain = a.len() + b.len() <= MAX_DEPS || !is_asked(a, b);
        if plain && new + a.len() == b.len() {
            self.clone_from(other);
            return true;
        }
        let Some(merged) = merged(a, b) else {
            return false;
        };
        *self = if *merged == *other.0 {
            other.clone()
        } else {
            Self(merged.as_slice().into())
        };
        true
    }

    /// Where the words are kept, if others can have the same: equal sets need not have one
    /// address, but sets at one address are equal for as long as one of them is there.
    pub fn address(&self) -> Option<usize> {
        match &self.0 {
            Words::Many(words) => Some(words.as_ptr().addr()),
            Words::Few(..) => None,
        }
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The same, unless there is no room: then what is here already stays.
    pub fn extend_within(&mut self, other: &Self) {
        if self.0.len() + other.0.len() <= MAX_DEPS {
            self.extend(other);
        }
    }

    pub fn words(&self) -> &[u64] {
        &self.0
    }

    /// The set of these words, which are put in order on the way.
    pub fn from_words(words: &mut Vec<u64>) -> Self {
        Self::tidy(words);
        Self::of_tidy(words)
    }

    /// Puts words in order, and leaves out what says nothing, or is too much.
    pub fn tidy(words: &mut Vec<u64>) {
        if !words.is_sorted_by(|a, b| a < b) {
            // Lists that are sorted each, one after the other: the stable sort merges them.
            words.sort();
            words.dedup();
        }
        let count = settle(words);
        words.truncate(count);
    }

    /// The set of words that are [tidy](Self::tidy).
    pub fn of_tidy(words: &[u64]) -> Self {
        Self(words.into())
    }

    pub fn iter(&self) -> impl Iterator<Item = Dep> + '_ {
        self.0.iter().map(|w| Dep::unpack(*w))
    }

    /// The dependencies of `value.name`. The first field that means something
    /// is the attribute; what is taken from it later does not change that.
    pub fn field(&self, name: Name) -> Self {
        self.each(|word| Some(word_of_field(word, name)))
    }

    /// The same, having passed through shared memory.
    pub fn through_memory(&self) -> Self {
        self.each(|word| Some(word | SHARED))
    }

    /// The same, for what only decides which value it is.
    pub fn as_implicit(&self) -> Self {
        self.each(|word| Some(word | IMPLICIT))
    }

    /// The set of what becomes of each.
    fn each(&self, becomes: impl Fn(u64) -> Option<u64>) -> Self {
        let is_other = |word: &u64| becomes(*word) != Some(*word);
        let Some(first) = self.0.iter().position(is_other) else {
            return self.clone();
        };
        let (same, others) = self.0.split_at(first);
        let mut words = Buffer::from_slice(same);
        words.extend(others.iter().filter_map(|word| becomes(*word)));
        Self::of(&mut words)
    }

    fn of(words: &mut Buffer) -> Self {
        if !words.is_sorted_by(|a, b| a < b) {
            words.sort_unstable();
            words.dedup();
        }
        words.truncate(MAX_DEPS);
        Self(words.as_slice().into())
    }

    /// The same, for an answer to what was made from it.
    pub fn as_asked(&self, is_memory: impl Fn(u32) -> bool) -> Self {
        let asked = self.0.iter().map(|w| word_of_answer(*w, &is_memory));
        Self::from_words(&mut asked.collect())
    }

    /// The same, for what was read where it says.
    pub fn as_chosen(&self) -> Self {
        self.each(|word| Some(word_of_choice(word)))
    }

    /// The same, where events have other numbers, or none (`u32::MAX`).
    pub fn renumbered(&self, map: &[u32]) -> Self {
        self.each(|word| match event_of_word(word) {
            Some(e) => match map[e as usize] {
                u32::MAX => None,
                new => Some(word_of_event(word, new)),
            },
            None => Some(word),
        })
    }

    pub fn events(&self) -> impl Iterator<Item = (u32, Option<Name>)> + '_ {
        self.on_events(|_| true)
            .map(|(event, dep)| (event, dep.attr))
    }

    /// Those on events that are asked for.
    pub fn on_events(
        &self,
        is_asked_for: impl Fn(u32) -> bool,
    ) -> impl Iterator<Item = (u32, Dep)> {
        // They come first.
        let events = self.0.iter().map_while(|w| Some((event_of_word(*w)?, *w)));
        let those = events.filter(move |(event, _)| is_asked_for(*event));
        those.map(|(event, word)| (event, Dep::unpack(word)))
    }

    /// Those on one event: they stand side by side.
    pub fn on_event(&self, event: u32) -> impl Iterator<Item = Dep> + '_ {
        let first = Dep::on(Source::Event(event)).pack();
        let at = self.0.partition_point(|w| *w < first);
        self.0[at..]
            .iter()
            .take_while(move |w| event_of_word(**w) == Some(event))
            .map(|w| Dep::unpack(*w))
    }

    /// Is the event among them?
    pub fn has_event(&self, event: u32) -> bool {
        self.on_event(event).next().is_some()
    }
}

impl FromIterator<Dep> for Deps {
    fn from_iter<T: IntoIterator<Item = Dep>>(iter: T) -> Self {
        Self::of(&mut iter.into_iter().map(Dep::pack).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(param: u32) -> Dep {
        Dep {
            asked: true,
            ..Dep::on(Source::Param(param))
        }
    }

    #[test]
    fn a_full_set_keeps_what_it_was_made_from() {
        let questions: Deps = (0..MAX_DEPS as u32).map(asked).collect();
        let mut deps = questions.clone();
        deps.extend(&Deps::event(7));
        assert!(deps.has_event(7));
        let mut words = questions.words().to_vec();
        words.extend(Deps::event(7).words());
        assert!(Deps::from_words(&mut words).has_event(7));
    }

    #[test]
    fn a_full_set_gives_up_parameters_before_what_was_read() {
        let params: Deps = (0..MAX_DEPS as u32)
            .map(|i| Dep::on(Source::Param(i)))
            .collect();
        let mut inserted = params.clone();
        inserted.insert(Dep::on(Source::Event(7)));
        let mut extended = params.clone();
        extended.extend(&Deps::event(7));
        for deps in [inserted, extended] {
            assert!(deps.has_event(7));
            assert_eq!(deps.words().len(), MAX_DEPS);
        }
    }

    /// Both ways to put sets together say the same.
    #[test]
    fn growing_is_extending() {
        let mut seed = 7u64;
        let mut next = |below: u64| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (seed >> 33) % below
        };
        for _ in 0..2_000 {
            let mut growing = Growing::new();
            let mut deps = Deps::default();
            for _ in 0..next(12) {
                let more: Deps = (0..next(30))
                    .map(|_| Dep {
                        asked: next(9) == 0,
                        ..Dep::on(Source::Event(next(200) as u32))
                    })
                    .collect();
                growing.extend(&more);
                deps.extend(&more);
                let one = Dep::on(Source::Event(next(200) as u32));
                growing.insert(one.pack());
                deps.insert(one);
            }
            assert_eq!(growing.end(), deps);
        }
    }

    #[test]
    fn an_answer_adds_nothing_to_the_thing_itself() {
        let mut words = vec![asked(1).pack(), Dep::on(Source::Param(1)).pack()];
        let deps = Deps::from_words(&mut words);
        assert_eq!(deps.iter().collect::<Vec<_>>(), [Dep::on(Source::Param(1))]);
    }

    #[test]
    fn only_memory_is_asked_about() {
        let both: Deps = [1, 2]
            .map(|e| Dep::on(Source::Event(e)))
            .into_iter()
            .collect();
        let answer = both.as_asked(|event| event == 1);
        let asked: Vec<bool> = answer.iter().map(|dep| dep.asked).collect();
        assert_eq!(asked, [true, false]);
    }
}
