//! What functions do to shared things: events, their places, and what they
//! depend on.

use std::rc::Rc;

use rustc_hash::FxHashSet;
use smallvec::SmallVec;
use toctou_core::finding::ResourceKind;
use toctou_core::ir::FuncId;
use toctou_core::{Name, Span};
use toctou_models::{LockScope, Mode};

use crate::later::Later;
use crate::sym::{Site, Sym};

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
}

impl Dep {
    pub fn on(source: Source) -> Self {
        Self {
            source,
            attr: None,
            shared: false,
            implicit: false,
            asked: false,
        }
    }
}

const ASKED: u64 = 1 << 2;

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
            | (u64::from(attr & 0x7fff_ffff) << 3)
            | (if self.asked { ASKED } else { 0 })
            | (u64::from(self.implicit) << 1)
            | u64::from(self.shared)
    }

    fn unpack(word: u64) -> Self {
        let index = (word >> 34) as u32 & 0x0fff_ffff;
        Self {
            source: match word >> 62 {
                0 => Source::Event(index),
                1 => Source::Param(index),
                _ => Source::Cell(index),
            },
            attr: ((word >> 3) as u32 & 0x7fff_ffff).checked_sub(1).map(Name),
            asked: word & ASKED != 0,
            implicit: word & 2 == 2,
            shared: word & 1 == 1,
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

/// A small sorted set.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Deps(SmallVec<[u64; 4]>);

impl std::fmt::Debug for Deps {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

/// A value that depends on more than this many things depends on everything:
/// more does not change an answer, and time must stay linear.
const MAX_DEPS: usize = 96;

impl Deps {
    pub fn one(dep: Dep) -> Self {
        Self(SmallVec::from_slice(&[dep.pack()]))
    }

    pub fn event(index: u32) -> Self {
        Self::one(Dep::on(Source::Event(index)))
    }

    pub fn insert(&mut self, dep: Dep) {
        let word = dep.pack();
        if let Err(at) = self.0.binary_search(&word) {
            self.0.insert(at, word);
            self.0.truncate(MAX_DEPS);
        }
    }

    pub fn extend(&mut self, other: &Self) {
        if other.0.is_empty() || self.0 == other.0 {
            return;
        }
        if self.0.is_empty() {
            self.0.clone_from(&other.0);
            return;
        }
        let (a, b) = (&self.0, &other.0);
        if a.len() + b.len() > MAX_DEPS && a.iter().chain(b).any(|w| w & ASKED != 0) {
            let adds = |w: &u64| (w & ASKED == 0 || a.len() < MAX_DEPS) && !a.contains(w);
            if b.iter().any(adds) {
                *self = Self::from_words(&mut [a.as_slice(), b].concat());
            }
            return;
        }
        if !adds(a, b) {
            return;
        }
        let mut merged: SmallVec<[u64; 4]> =
            SmallVec::with_capacity((a.len() + b.len()).min(MAX_DEPS));
        let (mut i, mut j) = (0, 0);
        while merged.len() < MAX_DEPS {
            let next = match (a.get(i), b.get(j)) {
                (Some(x), Some(y)) if x == y => {
                    i += 1;
                    j += 1;
                    *x
                }
                (Some(x), Some(y)) if x < y => {
                    i += 1;
                    *x
                }
                (_, Some(y)) => {
                    j += 1;
                    *y
                }
                (Some(x), None) => {
                    i += 1;
                    *x
                }
                (None, None) => break,
            };
            merged.push(next);
        }
        self.0 = merged;
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
        words.sort_unstable();
        words.dedup();
        if words.iter().any(|w| w & ASKED != 0) {
            // Who has it itself has no need of the answer.
            let all = words.clone();
            words.retain(|w| w & ASKED == 0 || all.binary_search(&(w & !ASKED)).is_err());
        }
        if words.len() > MAX_DEPS {
            // What it was made from matters more than what was asked about.
            words.retain(|w| w & ASKED == 0);
        }
        words.truncate(MAX_DEPS);
        Self(SmallVec::from_slice(words))
    }

    pub fn iter(&self) -> impl Iterator<Item = Dep> + '_ {
        self.0.iter().map(|w| Dep::unpack(*w))
    }

    /// The dependencies of `value.name`. The first field that means something
    /// is the attribute; what is taken from it later does not change that.
    pub fn field(&self, name: Name, wrappers: &FxHashSet<Name>) -> Self {
        if self.0.is_empty() || wrappers.contains(&name) {
            return self.clone();
        }
        self.iter()
            .map(|d| Dep {
                attr: d.attr.or(Some(name)),
                ..d
            })
            .collect()
    }

    /// The same, having passed through shared memory.
    pub fn through_memory(&self) -> Self {
        self.iter().map(|d| Dep { shared: true, ..d }).collect()
    }

    /// The same, for what only decides which value it is.
    pub fn as_implicit(&self) -> Self {
        self.iter()
            .map(|d| Dep {
                implicit: true,
                ..d
            })
            .collect()
    }

    /// The same, for an answer to what was made from it.
    pub fn as_asked(&self, is_memory: impl Fn(u32) -> bool) -> Self {
        let asked = self.0.iter().map(|w| word_of_answer(*w, &is_memory));
        Self::from_words(&mut asked.collect())
    }

    /// Events have other numbers now, or none (`u32::MAX`).
    pub fn renumber(&mut self, map: &[u32]) {
        *self = self
            .iter()
            .filter_map(|d| match d.source {
                Source::Event(e) => {
                    let new = map[e as usize];
                    (new != u32::MAX).then_some(Dep {
                        source: Source::Event(new),
                        ..d
                    })
                }
                _ => Some(d),
            })
            .collect();
    }

    pub fn events(&self) -> impl Iterator<Item = (u32, Option<Name>)> + '_ {
        self.iter().filter_map(|d| match d.source {
            Source::Event(e) => Some((e, d.attr)),
            _ => None,
        })
    }

    /// Is the event among them?
    pub fn has_event(&self, event: u32) -> bool {
        const SOURCE: u64 = !((1 << 34) - 1);
        let first = Dep::on(Source::Event(event)).pack() & SOURCE;
        let at = self.0.partition_point(|w| *w < first);
        self.0.get(at).is_some_and(|w| w & SOURCE == first)
    }
}

impl FromIterator<Dep> for Deps {
    fn from_iter<T: IntoIterator<Item = Dep>>(iter: T) -> Self {
        let mut words: SmallVec<[u64; 4]> = iter.into_iter().map(Dep::pack).collect();
        words.sort_unstable();
        words.dedup();
        words.truncate(MAX_DEPS);
        Self(words)
    }
}

/// A position in a function.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Pos {
    pub block: u32,
    pub inst: u32,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Act {
    Read,
    Check,
    Resolve,
    List,
    Write,
    Append,
    Delete,
    /// Creates what may exist already.
    Ensure,
    Send,
    Use,
    /// Something is started or connected that has to be closed again.
    Open,
    /// A statement is run whose text only a caller knows.
    Statement,
}

impl Act {
    pub fn is_read(self) -> bool {
        matches!(self, Self::Read | Self::Check | Self::Resolve | Self::List)
    }

    pub fn is_write(self) -> bool {
        matches!(self, Self::Write | Self::Append | Self::Delete | Self::Send)
    }
}

/// A thing that can be shared. For rows `key` is the table and `entry` the
/// row's key, for memory `key` is the whole place.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Loc {
    pub kind: ResourceKind,
    pub key: Sym,
    pub entry: Option<Sym>,
}

/// The calls that lead from a function to an access: outermost first, the
/// access last.
#[derive(Debug)]
pub struct Frame {
    pub func: FuncId,
    pub span: Span,
    pub next: Option<Rc<Frame>>,
}

pub type Trail = Rc<Frame>;

impl Frame {
    pub fn last(self: &Rc<Self>) -> &Self {
        let mut at: &Self = self;
        while let Some(next) = &at.next {
            at = next;
        }
        at
    }

    pub fn depth(self: &Rc<Self>) -> usize {
        let mut n = 1;
        let mut at: &Self = self;
        while let Some(next) = &at.next {
            n += 1;
            at = next;
        }
        n
    }
}

/// What a statement on rows says beyond reading or writing.
#[derive(Clone, Debug, Default)]
pub struct Row {
    /// Columns selected or written.
    pub columns: Vec<Name>,
    /// Columns whose new value is computed from the old one by the database.
    pub relative: Vec<Name>,
    /// Columns that the statement itself tests, and what they are compared with.
    pub conditions: Vec<(Name, Deps)>,
    pub insert: bool,
    /// FOR UPDATE.
    pub locking: bool,
    /// Rows that were changed come back.
    pub returning: bool,
    /// COUNT, MAX: about the table, not a row.
    pub aggregate: bool,
    /// A database constraint or clause makes a second insert fail or do nothing.
    pub unique: bool,
    /// The result (rows or their number) is looked at.
    pub looked_at: bool,
    /// It comes back as an object that is written back when it is changed.
    pub record: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum LockKind {
    /// From a library.
    Library,
    /// A promise chain.
    Chain,
    /// A flag that is tested and set without giving way.
    Flag,
    /// A file that is created exclusively and removed.
    File,
    /// A transaction; `true` if it keeps a serial order.
    Transaction(bool),
    /// A transaction that keeps a serial order, of the connection that is the key: others who
    /// use the connection are in it.
    Connection,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Lock {
    pub key: Sym,
    pub scope: LockScope,
    pub kind: LockKind,
    pub lease: bool,
    /// Others may hold it in the same way: it keeps writers out, not readers.
    pub shared: bool,
    /// What runs under it runs once, before all that comes after.
    pub once: bool,
    /// Where it is taken.
    pub func: FuncId,
    pub span: Span,
}

#[derive(Clone, Debug)]
pub struct Event {
    pub act: Act,
    pub mode: Mode,
    pub loc: Loc,
    /// What the written value depends on.
    pub data: Deps,
    /// Of a file that is written whole: the value.
    pub value: Option<Sym>,
    /// What the choice of the place depends on.
    pub key_deps: Deps,
    /// What decides, inside callees, whether it happens at all.
    pub ctrl: Deps,
    pub row: Option<Rc<Row>>,
    pub later: Option<Rc<Later>>,
    pub at: Pos,
    pub trail: Trail,
    /// Somebody else can run between the call and the access, or between the
    /// access and the call's return.
    pub yields_before: bool,
    pub yields_after: bool,
    /// Held around the access inside callees, and given back before they return.
    pub lock: Option<Rc<Lock>>,
    /// Comes from a callee: which call of this function.
    pub call: Option<u32>,
    pub duck: bool,
    /// A constant is written (`true`, `null`).
    pub constant: bool,
    /// What is written was in shared memory already.
    pub copies: bool,
    /// What is written is what was read from this very place.
    pub puts_back: bool,
    /// All of a collection is gone through.
    pub collection: bool,
    /// Not visible outside this function.
    pub local: bool,
    /// Identity of the access, through the calls that lead to it.
    pub site: Site,
    /// Carries an idempotency key.
    pub idempotent: bool,
    /// On an error path (in a handler).
    pub in_handler: bool,
    /// It was looked for a name that is free, and that one is given back.
    pub free: bool,
}

impl Event {
    /// Is it a part of the statement that makes another?
    pub fn is_within(&self, other: &Self) -> bool {
        let (span, statement) = (self.trail.span, other.trail.span);
        span.start >= statement.start && span.end <= statement.end
    }
}

impl LockKind {
    pub fn is_transaction(self) -> bool {
        matches!(self, Self::Transaction(_) | Self::Connection)
    }
}

impl Window {
    /// What was read is written back later, and meanwhile only other processes can come between.
    pub fn between_processes(meet: FuncId, read: &Trail, write: &Event, id: Site) -> Self {
        Self {
            loc: write.loc,
            read: Rc::clone(read),
            write: Rc::clone(&write.trail),
            read_act: Act::Read,
            write_act: write.act,
            write_mode: write.mode,
            meet,
            gap: None,
            data: true,
            tested: false,
            compared: false,
            counted: false,
            renews: false,
            keyed: false,
            checked: Vec::new(),
            read_row: None,
            write_row: None,
            constant: false,
            clears: false,
            in_process: false,
            cross_process: true,
            accidental: false,
            closed_by: None,
            connection: None,
            through_memory: false,
            path_check: false,
            snapshot: None,
            partial: None,
            other_writes: false,
            given_back: false,
            opens: false,
            duck: write.duck,
            path: None,
            label: None,
            detached: false,
            write_in_handler: write.in_handler,
            puts_back: false,
            aside: false,
            positive: None,
            taken: false,
            waits: false,
            id,
        }
    }

    /// It runs in a thread: that nobody gives way between read and write is no help.
    pub fn in_thread(&mut self) {
        self.in_process |= self.accidental;
        self.accidental = false;
    }
}

/// A read and a write that trusts it, with room for somebody else between them.
#[derive(Clone, Debug)]
pub struct Window {
    pub loc: Loc,
    pub read: Trail,
    pub write: Trail,
    pub read_act: Act,
    pub write_act: Act,
    pub write_mode: Mode,
    /// The function where read and write meet.
    pub meet: FuncId,
    /// Where somebody else runs, in the meeting function.
    pub gap: Option<Span>,
    /// The written value depends on what was read.
    pub data: bool,
    /// Whether the write happens depends on what was read.
    pub tested: bool,
    /// … by a comparison (`<`, `>=`).
    pub compared: bool,
    /// … with a limit, and then there is one more of it.
    pub counted: bool,
    /// Only where there is a value already is it replaced.
    pub renews: bool,
    /// The place that is written depends on what was read.
    pub keyed: bool,
    /// Attributes of what was read that decide about the write.
    pub checked: Vec<Name>,
    pub read_row: Option<Rc<Row>>,
    pub write_row: Option<Rc<Row>>,
    pub constant: bool,
    /// The place is emptied: `null`, `false`.
    pub clears: bool,
    pub in_process: bool,
    pub cross_process: bool,
    /// Nothing gives way between read and write: in one process it is atomic, today.
    pub accidental: bool,
    /// A lock that closed the window in this process only.
    pub closed_by: Option<Rc<Lock>>,
    /// A transaction on this connection closes it, if the connection is one call's own.
    pub connection: Option<Sym>,
    /// The value came by way of memory that the process shares.
    pub through_memory: bool,
    /// A path was judged, then used by name.
    pub path_check: bool,
    /// Memory was read, and what was made of it is written to this file.
    pub snapshot: Option<Sym>,
    /// A lock that was held for part of it.
    pub partial: Option<Rc<Lock>>,
    /// Other shared things change between the read and the write.
    pub other_writes: bool,
    /// What was read is what the function gives back, and is plain data: a cache.
    pub given_back: bool,
    /// Something is started between them that does not end by itself: a thread, a connection.
    pub opens: bool,
    pub duck: bool,
    /// Calls from the current function down to the meeting one, outermost first.
    pub path: Option<Rc<Frame>>,
    /// What the dispatcher compared the tool's name with on the way.
    pub label: Option<Name>,
    /// The call that contains it was not waited for.
    pub detached: bool,
    pub write_in_handler: bool,
    /// An object is put back where it was taken from, or a failure restores
    /// what was there: nothing is lost unless somebody replaced it meanwhile.
    pub puts_back: bool,
    /// All that was looked at is what kind of thing it is, or how old.
    pub aside: bool,
    /// The write happens where the check said yes (`true`) or no (`false`).
    pub positive: Option<bool>,
    /// It was read, deleted in any case, and judged only then.
    pub taken: bool,
    /// The read decided only whether to wait before the write.
    pub waits: bool,
    pub id: Site,
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
