//! What a function does, for its callers: computed once, bottom-up.

use std::rc::Rc;

use crate::effect::{Deps, Event, Lock, Pos, Window};
use crate::sym::Sym;
use toctou_core::ir::FuncId;
use toctou_core::{Name, Span};

/// A call of something that only the caller knows: a parameter, a variable of
/// an enclosing function.
#[derive(Clone, Debug)]
pub struct SymCall {
    pub callee: Sym,
    pub args: Vec<Sym>,
    pub arg_deps: Vec<Deps>,
    pub named: Vec<(Name, Sym)>,
    /// The last argument is what this parameter and those after it were given: `f(*rest)`.
    pub rest: Option<u32>,
    /// What comes back.
    pub value: Option<Sym>,
    /// Locks that are held around the call, inside this function or below.
    pub locks: Vec<Rc<Lock>>,
    pub yields_before: bool,
    pub func: FuncId,
    pub span: Span,
    pub depth: u8,
    /// In a thread of its own.
    pub thread: bool,
    /// Beside the function that calls it, which goes on.
    pub spawned: bool,
}

#[derive(Clone, Debug, Default)]
pub struct Summary {
    pub events: Vec<Event>,
    pub windows: Vec<Rc<Window>>,
    pub sym_calls: Vec<SymCall>,
    /// What comes back, in this function's terms.
    pub ret: Option<Sym>,
    pub ret_deps: Deps,
    /// Of an object or a list that is written out: what is in it, and what that depends on.
    pub ret_parts: Vec<(Sym, Deps)>,
    /// What it can be, where it differs by the way taken.
    pub alternatives: Vec<Sym>,
    /// The lists in what comes back, and what of others they hold.
    pub kept: Vec<(Sym, Sym)>,
    /// Of a constructor: what it puts into fields that nobody else sets.
    pub fields: Vec<(Name, Sym)>,
    /// Of an object in what comes back: what its constructor has put into such fields.
    pub made: Vec<(Sym, Vec<(Name, Sym)>)>,
    /// What comes back, or a part of it, is one of several things: those that others know.
    pub known_as: Vec<(Sym, Sym)>,
    /// It is what somebody outside answered.
    pub answers: bool,
    /// Reads that decide whether the function fails.
    pub throw_deps: Deps,
    /// What of the caller is asked about where it lies.
    pub judged: Deps,
    /// Somebody else can run during a call.
    pub yields: bool,
    pub may_throw: bool,
    /// Locks that are held when it returns, and whether only if it returns something true.
    pub leaves_held: Vec<(Rc<Lock>, bool)>,
    /// Locks (by key) that it gives back without having taken them.
    pub releases: Vec<Sym>,
    /// What it was given and compares with the time: parameters, and `None` for its object.
    pub ages: Vec<Option<u32>>,
    /// It commits or rolls back what it has not begun.
    pub ends_transaction: bool,
    /// Locks that end by themselves, and the waits under each, in order.
    pub leases: Vec<(Rc<Lock>, Vec<Pos>)>,
}
