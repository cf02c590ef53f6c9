//! Lock keys from arguments.
//!
//! A value is written into a key so that no two values give one text by
//! accident (`a:b` and `a` + `b`), and so that two spellings of one thing do
//! (`1` and `"1"`, and with `|path` also `./a` and `b/../a`).

use std::collections::BTreeSet;

use serde_json::Value;
use sha2::{Digest as _, Sha256};
use thiserror::Error;

/// Longer values are replaced by their hash: a key is kept in memory.
const LONGEST_VALUE: usize = 256;
/// More keys than this from one call are refused.
const MOST_KEYS: usize = 256;

/// `invoice:{invoiceId}`, taken apart.
#[derive(Clone, Debug)]
pub struct Template {
    text: String,
    parts: Vec<Part>,
}

#[derive(Clone, Debug)]
enum Part {
    Text(String),
    Argument(Argument),
}

#[derive(Clone, Debug)]
struct Argument {
    /// Names of keys; an array's elements are `None`.
    steps: Vec<Option<String>>,
    optional: bool,
    filter: Option<Filter>,
}

#[derive(Clone, Copy, Debug)]
enum Filter {
    Path,
    Lower,
}

/// Why a call has no key.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum KeyFault {
    #[error("the argument `{0}` is missing")]
    Missing(String),
    #[error("the argument `{0}` is not a string, number or boolean")]
    NotPlain(String),
    #[error("the call touches more than {MOST_KEYS} keys")]
    TooMany,
    #[error("the arguments have a key twice")]
    Duplicate,
}

impl Template {
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut parts = Vec::new();
        let mut rest = text;
        let mut arrays = 0;
        while let Some(open) = rest.find(['{', '}']) {
            if rest.as_bytes()[open] == b'}' {
                return Err("a `}` without its `{`".to_owned());
            }
            let close = rest[open..].find('}').ok_or("a `{` is not closed")? + open;
            if open > 0 {
                parts.push(Part::Text(rest[..open].to_owned()));
            }
            let argument = Argument::parse(&rest[open + 1..close])?;
            arrays += usize::from(argument.steps.contains(&None));
            parts.push(Part::Argument(argument));
            rest = &rest[close + 1..];
        }
        if arrays > 1 {
            return Err("only one argument may be an array".to_owned());
        }
        if !rest.is_empty() {
            parts.push(Part::Text(rest.to_owned()));
        }
        if parts.is_empty() {
            return Err("the key is empty".to_owned());
        }
        Ok(Self {
            text: text.to_owned(),
            parts,
        })
    }

    /// A key without arguments.
    pub fn constant(text: String) -> Self {
        Self {
            parts: vec![Part::Text(text.clone())],
            text,
        }
    }

    /// As written: the class that its keys belong to.
    pub fn text(&self) -> &str {
        &self.text
    }

    pub fn is_constant(&self) -> bool {
        self.parts.iter().all(|part| matches!(part, Part::Text(_)))
    }

    /// Names of the arguments that it needs, at the top level.
    pub fn arguments(&self) -> impl Iterator<Item = &str> {
        self.parts.iter().filter_map(|part| match part {
            Part::Argument(argument) if !argument.optional => {
                argument.steps.first().and_then(Option::as_deref)
            }
            _ => None,
        })
    }

    /// The keys of one call: several if an argument is an array.
    pub fn keys(&self, arguments: &Value, into: &mut BTreeSet<String>) -> Result<(), KeyFault> {
        let mut keys = vec![String::new()];
        for part in &self.parts {
            match part {
                Part::Text(text) => keys.iter_mut().for_each(|key| key.push_str(text)),
                Part::Argument(argument) => {
                    let values = argument.values(arguments)?;
                    if let [value] = values.as_slice() {
                        keys.iter_mut().for_each(|key| key.push_str(value));
                    } else {
                        keys = keys
                            .iter()
                            .flat_map(|key| values.iter().map(move |value| format!("{key}{value}")))
                            .collect();
                    }
                }
            }
        }
        into.extend(keys);
        if into.len() > MOST_KEYS {
            return Err(KeyFault::TooMany);
        }
        Ok(())
    }
}

impl Argument {
    fn parse(text: &str) -> Result<Self, String> {
        let (path, filter) = match text.split_once('|') {
            None => (text, None),
            Some((path, "path")) => (path, Some(Filter::Path)),
            Some((path, "lower")) => (path, Some(Filter::Lower)),
            Some((_, other)) => return Err(format!("`|{other}` is neither `|path` nor `|lower`")),
        };
        let (path, optional) = match path.strip_suffix('?') {
            Some(path) => (path, true),
            None => (path, false),
        };
        let mut steps = Vec::new();
        for name in path.split('.') {
            let (name, array) = match name.strip_suffix("[]") {
                Some(name) => (name, true),
                None => (name, false),
            };
            if name.is_empty() || name.contains(['[', ']']) {
                return Err(format!("`{text}` is not the path of an argument"));
            }
            steps.push(Some(name.to_owned()));
            if array {
                steps.push(None);
            }
        }
        if steps.iter().filter(|step| step.is_none()).count() > 1 {
            return Err("only one array in a path".to_owned());
        }
        Ok(Self {
            steps,
            optional,
            filter,
        })
    }

    fn name(&self) -> String {
        let mut name = String::new();
        for step in &self.steps {
            match step {
                Some(step) if name.is_empty() => name.push_str(step),
                Some(step) => {
                    name.push('.');
                    name.push_str(step);
                }
                None => name.push_str("[]"),
            }
        }
        name
    }

    fn values(&self, arguments: &Value) -> Result<Vec<String>, KeyFault> {
        let mut at = vec![arguments];
        for step in &self.steps {
            let mut next = Vec::new();
            for value in at {
                match (step, value) {
                    (Some(name), Value::Object(object)) => match object.get(name) {
                        None | Some(Value::Null) => {
                            if !self.optional {
                                return Err(KeyFault::Missing(self.name()));
                            }
                        }
                        Some(value) => next.push(value),
                    },
                    (None, Value::Array(array)) => next.extend(array),
                    // One where several may stand.
                    (None, value) => next.push(value),
                    (Some(_), _) => {
                        if !self.optional {
                            return Err(KeyFault::Missing(self.name()));
                        }
                    }
                }
            }
            if next.len() > MOST_KEYS {
                return Err(KeyFault::TooMany);
            }
            at = next;
        }
        if at.is_empty() {
            // An empty array touches nothing; an argument left out is one value: none.
            let array = self.steps.contains(&None);
            return Ok(if array && !self.optional {
                Vec::new()
            } else {
                vec![String::new()]
            });
        }
        at.into_iter()
            .map(|value| {
                let text = match value {
                    Value::String(text) => text.clone(),
                    Value::Bool(value) => value.to_string(),
                    Value::Number(number) => plain(number),
                    _ => return Err(KeyFault::NotPlain(self.name())),
                };
                Ok(escape(&match self.filter {
                    None => text,
                    Some(Filter::Lower) => text.to_lowercase(),
                    Some(Filter::Path) => normal_path(&text),
                }))
            })
            .collect()
    }
}

/// `1.0` is `1`: servers in JavaScript cannot tell them apart.
fn plain(number: &serde_json::Number) -> String {
    match number.as_f64() {
        Some(value) if number.is_f64() && value.fract() == 0.0 && value.abs() < 1e15 => {
            format!("{value:.0}")
        }
        _ => number.to_string(),
    }
}

/// Without `.`, `..`, doubled and trailing slashes. Links are not followed.
fn normal_path(path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    let rooted = path.starts_with('/');
    for part in path.split(['/', '\\']) {
        match part {
            "" | "." => {}
            ".." if parts.last().is_some_and(|last| *last != "..") => {
                parts.pop();
            }
            ".." if rooted => {}
            part => parts.push(part),
        }
    }
    format!("{}{}", if rooted { "/" } else { "" }, parts.join("/"))
}

/// Keeps what cannot be mistaken for the template's own text.
fn escape(value: &str) -> String {
    if value.len() > LONGEST_VALUE {
        return format!("#{}", hash(value));
    }
    let mut out = String::with_capacity(value.len());
    for byte in value.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'@' | b'/' => {
                out.push(byte as char);
            }
            _ => {
                use std::fmt::Write as _;
                let _ = write!(out, "%{byte:02x}");
            }
        }
    }
    out
}

fn hash(text: &str) -> String {
    Sha256::digest(text.as_bytes())[..16]
        .iter()
        .fold(String::new(), |mut out, byte| {
            use std::fmt::Write as _;
            let _ = write!(out, "{byte:02x}");
            out
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn keys(template: &str, arguments: Value) -> Result<Vec<String>, KeyFault> {
        let mut keys = BTreeSet::new();
        Template::parse(template)
            .expect("a template")
            .keys(&arguments, &mut keys)?;
        Ok(keys.into_iter().collect())
    }

    #[test]
    fn plain_nested_and_arrays() {
        assert_eq!(keys("x", json!({})), Ok(vec!["x".to_owned()]));
        assert_eq!(keys("i:{id}", json!({"id": 7})), Ok(vec!["i:7".to_owned()]));
        assert_eq!(
            keys("i:{id}", json!({"id": "7"})),
            Ok(vec!["i:7".to_owned()])
        );
        assert_eq!(
            keys("i:{id}", json!({"id": 7.0})),
            Ok(vec!["i:7".to_owned()])
        );
        assert_eq!(
            keys("{a.b}/{c?}", json!({"a": {"b": true}})),
            Ok(vec!["true/".to_owned()])
        );
        assert_eq!(
            keys(
                "{items[].id}",
                json!({"items": [{"id": "b"}, {"id": "a"}, {"id": "b"}]})
            ),
            Ok(vec!["a".to_owned(), "b".to_owned()])
        );
        assert_eq!(keys("{items[]}", json!({"items": []})), Ok(vec![]));
    }

    #[test]
    fn what_has_no_key() {
        assert_eq!(
            keys("{id}", json!({})),
            Err(KeyFault::Missing("id".to_owned()))
        );
        assert_eq!(
            keys("{id}", json!({"id": null})),
            Err(KeyFault::Missing("id".to_owned()))
        );
        assert_eq!(
            keys("{a.b}", json!({"a": 1})),
            Err(KeyFault::Missing("a.b".to_owned()))
        );
        assert_eq!(
            keys("{a}", json!({"a": {}})),
            Err(KeyFault::NotPlain("a".to_owned()))
        );
        let many: Vec<u32> = (0..257).collect();
        assert_eq!(keys("{a[]}", json!({ "a": many })), Err(KeyFault::TooMany));
    }

    #[test]
    fn no_value_passes_for_another() {
        assert_ne!(
            keys("{a}:{b}", json!({"a": "1:2", "b": "3"})),
            keys("{a}:{b}", json!({"a": "1", "b": "2:3"}))
        );
        assert_eq!(
            keys("f:{p}", json!({"p": "../../etc"})),
            Ok(vec!["f:../../etc".to_owned()])
        );
        assert_eq!(
            keys("{p}", json!({"p": "a\0b\n"})),
            Ok(vec!["a%00b%0a".to_owned()])
        );
        let long = |end: &str| keys("{p}", json!({"p": "x".repeat(5000) + end})).expect("a key");
        assert_ne!(long("a"), long("b"));
        assert!(long("a")[0].len() < 100);
    }

    #[test]
    fn spellings_of_one_path() {
        for path in [
            "notes/a.md",
            "./notes//a.md",
            "notes/x/../a.md",
            "notes\\a.md",
            "notes/a.md/",
        ] {
            assert_eq!(
                keys("{p|path}", json!({ "p": path })),
                Ok(vec!["notes/a.md".to_owned()])
            );
        }
        assert_eq!(
            keys("{p|path}", json!({"p": "/../a"})),
            Ok(vec!["/a".to_owned()])
        );
        assert_eq!(
            keys("{p|path}", json!({"p": "../../a"})),
            Ok(vec!["../../a".to_owned()])
        );
        assert_eq!(
            keys("{p|lower}", json!({"p": "ÄB"})),
            keys("{p|lower}", json!({"p": "äb"}))
        );
    }

    #[test]
    fn templates_that_mean_nothing() {
        for text in [
            "",
            "{",
            "}",
            "{}",
            "{a.}",
            "{a[0]}",
            "{a|upper}",
            "{a[].b[]}",
            "{a[]}{b[]}",
            "{[]}",
        ] {
            assert!(Template::parse(text).is_err(), "{text}");
        }
    }
}
