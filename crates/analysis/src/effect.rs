//! What functions do to shared things: events, their places, windows.

use std::rc::Rc;

use toctou_core::finding::ResourceKind;
use toctou_core::ir::{FuncId, Program};
use toctou_core::{Name, Span};
use toctou_models::{LockScope, Mode};

pub use crate::deps::{
    Dep, Deps, Growing, Source, event_of_word, word_of_answer, word_of_choice, word_of_event,
    word_of_field,
};
use crate::later::Later;
use crate::sym::{Site, Sym};

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
    end: End,
    depth: u32,
}

/// Where the access stands.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct End {
    pub func: FuncId,
    pub span: Span,
}

pub type Trail = Rc<Frame>;

impl Frame {
    pub fn new(func: FuncId, span: Span, next: Option<Trail>) -> Trail {
        let below = next.as_deref();
        Rc::new(Self {
            func,
            span,
            end: below.map_or(End { func, span }, |f| f.end),
            depth: below.map_or(1, |f| f.depth + 1),
            next,
        })
    }

    pub fn last(&self) -> End {
        self.end
    }

    pub fn depth(&self) -> usize {
        self.depth as usize
    }

    /// How far below it is, in functions with a place of their own.
    pub fn levels(self: &Rc<Self>, program: &Program) -> usize {
        let frames = std::iter::successors(Some(&**self), |frame| frame.next.as_deref());
        program.levels(frames.map(|frame| frame.func))
    }
}

/// What a statement on rows says beyond reading or writing.
#[derive(Clone, Debug, Default)]
pub struct Row {
    /// Columns selected or written.
    pub columns: Vec<Name>,
    /// What is written, where only the caller knows all its columns: `.set(patch)`.
    pub document: Option<Sym>,
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
    /// Whichever row there is.
    pub sample: bool,
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
    /// Nobody waits for it: who does not get it at once is refused.
    pub at_once: bool,
    /// Who was refused it goes on without.
    pub hoped: bool,
    /// It is a permit of so and so many, which one may take and another give: a lock for
    /// those who do both.
    pub counted: bool,
    /// One of many, each for what belongs to one key: others go on beside it.
    pub keyed: bool,
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
    /// Of a path that was resolved: it was asked where it leads.
    pub judged: bool,
    /// Not visible outside this function.
    pub local: bool,
    /// Identity of the access, through the calls that lead to it.
    pub site: Site,
    /// Carries an idempotency key.
    pub idempotent: bool,
    /// What is written is gone after a time, by itself.
    pub lease: bool,
    /// A list is asked for an entry, by this function for itself.
    pub search: bool,
    /// A place is left with nothing in it: `true` for a collection, `false` for something new
    /// that may be one.
    pub empties: Option<bool>,
    /// On an error path (in a handler).
    pub in_handler: bool,
    /// It was looked for a name that is free, and that one is given back.
    pub free: bool,
    /// It is written only if it still is what it was: compared with that at once.
    pub swaps: bool,
    /// What was read is compared with the time: all of it, or one of its attributes.
    pub aged: Option<Option<Name>>,
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
            spent: false,
            reckoned: false,
            passed_on: false,
            renews: false,
            aged: false,
            expired: false,
            memo: false,
            keyed: false,
            checked: Vec::new(),
            weighed: Vec::new(),
            carried: None,
            read_row: None,
            write_row: None,
            constant: false,
            alike: false,
            clears: false,
            steals: false,
            in_process: false,
            cross_process: true,
            accidental: false,
            tight: false,
            closed_by: None,
            hoped: false,
            connection: None,
            through_memory: false,
            path_check: false,
            snapshot: None,
            partial: None,
            other_writes: false,
            given_back: false,
            opens: false,
            latched: false,
            duck: write.duck,
            path: None,
            label: None,
            detached: false,
            write_in_handler: write.in_handler,
            puts_back: false,
            drains: false,
            handed_back: false,
            aside: false,
            positive: None,
            taken: false,
            refuses: false,
            waits: false,
            id,
        }
    }

    /// It runs in a thread: that nobody gives way between read and write is no help. Threads of
    /// an interpreter take turns where something is called or a loop goes round, though.
    pub fn in_thread(&mut self) {
        if self.tight {
            return;
        }
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
    /// … and it is made less by as much as there had to be.
    pub spent: bool,
    /// It is a number that is reckoned from what was read.
    pub reckoned: bool,
    /// One of several states was looked for, and another is set.
    pub passed_on: bool,
    /// Only where there is a value already is it replaced.
    pub renews: bool,
    /// It is made anew because it was too old.
    pub aged: bool,
    /// It is removed because it was too old, and used otherwise.
    pub expired: bool,
    /// What is stored under a name is made from what the name is made from, and handed out
    /// where it is there already.
    pub memo: bool,
    /// The place that is written depends on what was read.
    pub keyed: bool,
    /// Attributes of what was read that decide about the write.
    pub checked: Vec<Name>,
    /// Those of them that a condition in the meeting function asks about, or a call before the
    /// write that fails where they are wrong.
    pub weighed: Vec<Name>,
    /// Attributes of what was read that are in what is written; `None` if it may be all of it.
    pub carried: Option<Vec<Name>>,
    pub read_row: Option<Rc<Row>>,
    pub write_row: Option<Rc<Row>>,
    pub constant: bool,
    /// Everybody would write the same there.
    pub alike: bool,
    /// The place is emptied: `null`, `false`.
    pub clears: bool,
    /// The file that is removed is a lock that the function takes afterwards.
    pub steals: bool,
    pub in_process: bool,
    pub cross_process: bool,
    /// Nothing gives way between read and write: in one process it is atomic, today.
    pub accidental: bool,
    /// Nothing is called between them, either: `n += 1`.
    pub tight: bool,
    /// A lock that closed the window in this process only.
    pub closed_by: Option<Rc<Lock>>,
    /// A lock closes it, unless it was waited for in vain and all the same gone on.
    pub hoped: bool,
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
    /// A place is found empty and filled at once, and nothing is started in between: only
    /// threads can come between, and mostly one of two equal things is dropped then.
    pub latched: bool,
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
    /// What was read is handed on, and then the place is emptied.
    pub drains: bool,
    /// What was read is changed and given, whole, to the call that writes it.
    pub handed_back: bool,
    /// All that was looked at is what kind of thing it is, or how old.
    pub aside: bool,
    /// The write happens where the check said yes (`true`) or no (`false`).
    pub positive: Option<bool>,
    /// It was read, deleted in any case, and judged only then.
    pub taken: bool,
    /// Where the write does not happen, the caller is told no: by an error.
    pub refuses: bool,
    /// The read decided only whether to wait before the write.
    pub waits: bool,
    pub id: Site,
}
