//! Fields that hold a set or a list, whoever assigns them.
//!
//! `self.seen |= more` changes the set that is there, and loses nothing; of a number, `-=` reads,
//! computes and writes back. Which it is depends on what the field holds, and that is taken from
//! the assignments of a file: all of them have to give it a set, or all a list.

use ruff_python_ast::{self as ast, Expr, Operator};
use rustc_hash::FxHashMap;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Holds {
    Set,
    List,
    Other,
}

#[derive(Default, Debug)]
pub(crate) struct Collected<'a>(FxHashMap<&'a str, Holds>);

impl<'a> Collected<'a> {
    /// A field is given a value; `None` where that cannot be said.
    pub(crate) fn note(&mut self, field: &'a str, value: Option<&Expr>) {
        let holds = value.map_or(Holds::Other, holds);
        let known = self.0.entry(field).or_insert(holds);
        if *known != holds {
            *known = Holds::Other;
        }
    }

    /// The method that changes the field in place.
    pub(crate) fn in_place(&self, field: &str, op: Operator) -> Option<&'static str> {
        match (self.0.get(field)?, op) {
            (Holds::Set, Operator::Sub) => Some("__isub__"),
            (Holds::Set, Operator::BitOr) => Some("__ior__"),
            (Holds::Set, Operator::BitAnd) => Some("__iand__"),
            (Holds::Set, Operator::BitXor) => Some("__ixor__"),
            (Holds::List, Operator::Add) => Some("__iadd__"),
            _ => None,
        }
    }
}

fn holds(value: &Expr) -> Holds {
    match value {
        Expr::Set(_) | Expr::SetComp(_) => Holds::Set,
        Expr::List(_) | Expr::ListComp(_) => Holds::List,
        Expr::Call(call) => made_by(call),
        _ => Holds::Other,
    }
}

/// `set()`, `list(items)`, and `field(default_factory=set)` of a dataclass.
fn made_by(call: &ast::ExprCall) -> Holds {
    let named = |expr: &Expr| match expr {
        Expr::Name(name) if name.id.as_str() == "set" => Holds::Set,
        Expr::Name(name) if name.id.as_str() == "list" => Holds::List,
        _ => Holds::Other,
    };
    let factory = call.arguments.find_keyword("default_factory");
    factory.map_or_else(|| named(&call.func), |given| named(&given.value))
}
