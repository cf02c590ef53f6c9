//! What is known of a value, whatever way was taken.

use toctou_core::ir::Literal;
use toctou_core::{Name, Names};

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) enum Value {
    /// Nothing was seen to be put there.
    #[default]
    Unset,
    Null,
    Bool(bool),
    Str(Name),
    Num(Name),
    /// An object, a function: not known which, but there is one.
    Thing,
    /// One of those that a condition takes for no, or for yes.
    No,
    Yes,
    Any,
}

impl Value {
    pub(super) fn of(literal: &Literal) -> Self {
        match literal {
            Literal::Str(text) => Self::Str(*text),
            Literal::Num(text) => Self::Num(*text),
            Literal::Bool(value) => Self::Bool(*value),
            Literal::Null => Self::Null,
            Literal::Other => Self::Any,
        }
    }

    /// Which way a condition goes.
    pub(super) fn truth(self, names: &Names) -> Option<bool> {
        match self {
            Self::Null | Self::No => Some(false),
            Self::Bool(value) => Some(value),
            Self::Str(text) => Some(!names.text(text).is_empty()),
            Self::Num(text) => names.text(text).parse::<f64>().ok().map(|n| n != 0.0),
            Self::Thing | Self::Yes => Some(true),
            Self::Unset | Self::Any => None,
        }
    }

    pub(super) fn join(self, other: Self, names: &Names) -> Self {
        match (self, other) {
            (Self::Unset, value) | (value, Self::Unset) => value,
            (a, b) if a == b => a,
            (a, b) => match (a.truth(names), b.truth(names)) {
                (Some(false), Some(false)) => Self::No,
                (Some(true), Some(true)) => Self::Yes,
                _ => Self::Any,
            },
        }
    }

    pub(super) fn not(self, names: &Names) -> Self {
        match self {
            Self::Unset => Self::Unset,
            value => value.truth(names).map_or(Self::Any, |t| Self::Bool(!t)),
        }
    }

    /// `one_null`: there are not two kinds of nothing.
    pub(super) fn equals(self, other: Self, one_null: bool, names: &Names) -> Self {
        let same = match (self, other) {
            (Self::Unset, _) | (_, Self::Unset) => return Self::Unset,
            (Self::Null, Self::Null) => one_null.then_some(true),
            (Self::Str(a), Self::Str(b)) => Some(a == b),
            (Self::Bool(a), Self::Bool(b)) => Some(a == b),
            (Self::Num(a), Self::Num(b)) => {
                let number = |n: Name| names.text(n).parse::<f64>().ok();
                match (number(a), number(b)) {
                    (Some(a), Some(b)) => Some(a == b),
                    _ => None,
                }
            }
            (Self::Null, Self::Str(_) | Self::Num(_) | Self::Bool(_) | Self::Thing | Self::Yes)
            | (Self::Str(_) | Self::Num(_) | Self::Bool(_) | Self::Thing | Self::Yes, Self::Null) => {
                Some(false)
            }
            _ => None,
        };
        same.map_or(Self::Any, Self::Bool)
    }
}
