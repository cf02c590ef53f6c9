//! Reading a [`Place`]: the small language in which a model points at values.

use crate::schema::Place;

/// A place, taken apart: where to start, and the fields to follow from there.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct PlaceExpr {
    pub base: PlaceBase,
    /// `arg1=mode`: the argument is also known by this name.
    pub keyword: Option<String>,
    pub fields: Vec<String>,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum PlaceBase {
    /// `arg0`
    Arg(usize),
    /// `args1`: the arguments from there on, as an array.
    Args(usize),
    /// `last`
    Last,
    /// `recv`
    Recv,
    /// `recv.arg0`: an argument of the call that made the receiver.
    RecvArg(usize),
    /// `recv.recv`: the receiver of the call that made the receiver.
    RecvRecv,
    /// `result`
    Result,
    /// `where.arg0`: an argument of a chain's step.
    Step(String, usize),
    /// `start`: the receiver of a chain's first named step.
    Start,
    /// `start.arg0`: an argument of the call that made it.
    StartArg(usize),
    /// `'text'`
    Const(String),
}

/// Why a text is not a place.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("`{text}` is not a place: {reason}")]
pub struct PlaceError {
    pub text: String,
    pub reason: &'static str,
}

impl Place {
    pub fn parse(&self) -> Result<PlaceExpr, PlaceError> {
        parse(&self.0).map_err(|reason| PlaceError {
            text: self.0.clone(),
            reason,
        })
    }
}

const EXPECTED: &str = "write `arg0`, `args1`, `last`, `recv`, `recv.arg0`, `result`, \
                        `start`, `step.arg0` or `'text'`, and fields after it";

fn parse(text: &str) -> Result<PlaceExpr, &'static str> {
    if let Some(rest) = text.strip_prefix('\'') {
        let inner = rest
            .strip_suffix('\'')
            .ok_or("a `'` is missing at its end")?;
        return Ok(PlaceExpr {
            base: PlaceBase::Const(inner.to_owned()),
            keyword: None,
            fields: Vec::new(),
        });
    }
    let mut keyword = None;
    let parts: Vec<&str> = text
        .split('.')
        .map(|part| match part.split_once('=') {
            Some((base, name)) if keyword.is_none() && is_identifier(name) => {
                keyword = Some(name.to_owned());
                base
            }
            _ => part,
        })
        .collect();
    if parts.iter().any(|part| !is_identifier(part)) {
        return Err(EXPECTED);
    }
    let second = parts.get(1).copied();
    let (base, used) = match parts[0] {
        "last" => (PlaceBase::Last, 1),
        "result" => (PlaceBase::Result, 1),
        "recv" => match second {
            Some("recv") => (PlaceBase::RecvRecv, 2),
            Some(part) => match numbered(part, "arg") {
                Some(n) => (PlaceBase::RecvArg(n), 2),
                None => (PlaceBase::Recv, 1),
            },
            None => (PlaceBase::Recv, 1),
        },
        "start" => match second.and_then(|part| numbered(part, "arg")) {
            Some(n) => (PlaceBase::StartArg(n), 2),
            None => (PlaceBase::Start, 1),
        },
        first => {
            if let Some(n) = numbered(first, "args") {
                (PlaceBase::Args(n), 1)
            } else if let Some(n) = numbered(first, "arg") {
                (PlaceBase::Arg(n), 1)
            } else if let Some(n) = second.and_then(|part| numbered(part, "arg")) {
                (PlaceBase::Step(first.to_owned(), n), 2)
            } else {
                return Err(EXPECTED);
            }
        }
    };
    if keyword.is_some() && !matches!(base, PlaceBase::Arg(_) | PlaceBase::RecvArg(_)) {
        return Err("only an argument has a name: `arg1=mode`, `recv.arg0=path`");
    }
    Ok(PlaceExpr {
        base,
        keyword,
        fields: parts[used..]
            .iter()
            .map(|part| (*part).to_owned())
            .collect(),
    })
}

/// `arg12` → 12. More than three digits is no argument that anybody has.
fn numbered(text: &str, prefix: &str) -> Option<usize> {
    let digits = text.strip_prefix(prefix)?;
    // `arg_=name`: an argument that has a name and no number.
    if digits == "_" {
        return Some(usize::MAX);
    }
    if digits.is_empty() || digits.len() > 3 || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    digits.parse().ok()
}

pub(crate) fn is_identifier(text: &str) -> bool {
    let mut chars = text.chars();
    chars
        .next()
        .is_some_and(|c| c.is_alphabetic() || c == '_' || c == '$')
        && chars.all(|c| c.is_alphanumeric() || c == '_' || c == '$')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn base(text: &str) -> PlaceBase {
        Place(text.into()).parse().expect(text).base
    }

    #[test]
    fn every_form() {
        assert_eq!(base("arg0"), PlaceBase::Arg(0));
        assert_eq!(base("args1"), PlaceBase::Args(1));
        assert_eq!(base("last"), PlaceBase::Last);
        assert_eq!(base("recv"), PlaceBase::Recv);
        assert_eq!(base("recv.fd"), PlaceBase::Recv);
        assert_eq!(base("recv.arg0"), PlaceBase::RecvArg(0));
        assert_eq!(base("recv.recv"), PlaceBase::RecvRecv);
        assert_eq!(base("result"), PlaceBase::Result);
        assert_eq!(base("where.arg1"), PlaceBase::Step("where".into(), 1));
        assert_eq!(base("start"), PlaceBase::Start);
        assert_eq!(base("start.arg0"), PlaceBase::StartArg(0));
        assert_eq!(base("'a.b'"), PlaceBase::Const("a.b".into()));
        let place = Place("recv.arg1=mode.x".into()).parse().expect("valid");
        assert_eq!(place.base, PlaceBase::RecvArg(1));
        assert_eq!(place.keyword.as_deref(), Some("mode"));
        assert_eq!(place.fields, ["x"]);
        let place = Place("recv.arg0.limit.n".into()).parse().expect("valid");
        assert_eq!(place.fields, ["limit", "n"]);
    }

    #[test]
    fn wrong_forms_are_refused() {
        for text in [
            "", "arg", "argx", "arg0.", ".arg0", "foo", "foo.bar", "'open", "arg0[1]", "arg99999",
            "last=x", "arg0=",
        ] {
            assert!(Place(text.into()).parse().is_err(), "{text}");
        }
    }
}
