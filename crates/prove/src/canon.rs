//! The same outcome has the same form, whenever and in which process it came about.
//!
//! Keys are sorted, times and durations blanked, made-up ids renamed in the
//! order in which they are met. What still differs between two identical
//! serial runs is learned and masked; what cannot be masked makes the run
//! useless as evidence, and is said.

pub mod content;
mod learn;
pub mod text;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde_json::Value;

pub use learn::{Unsteady, learn};
use text::{Names, Words, is_moment, settle, without_numbers};

/// A value whose form does not depend on chance.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Node {
    Leaf(String),
    List(Vec<Node>),
    Map(Vec<(String, Node)>),
}

/// How much of a leaf is not looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    Numbers,
    All,
}

/// What was learned from runs that should have been alike.
#[derive(Clone, Debug, Default)]
pub struct Masks {
    pub words: Words,
    pub leaves: BTreeMap<String, Level>,
    /// Maps whose keys are made up: only their values count.
    pub keys: BTreeSet<String>,
    /// Seconds since 1970, to tell moments from other numbers.
    pub now: i64,
}

impl Masks {
    pub fn new() -> Self {
        Self {
            now: jiff::Timestamp::now().as_second(),
            ..Self::default()
        }
    }
}

/// Whether the order of lists says something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lists {
    Ordered,
    /// Eight calls have too many orders to try: only what is there counts.
    Unordered,
}

/// Brings several values into their form, with one set of names for ids.
pub fn canonical(values: &[&Value], masks: &Masks, lists: Lists) -> Vec<Node> {
    let mut names = Names::default();
    values
        .iter()
        .map(|value| {
            let node = arrange(value, "", masks, lists);
            name(node, masks, &mut names)
        })
        .collect()
}

/// Deeper than this, a value is one leaf.
const DEEPEST: usize = 64;

fn arrange(value: &Value, path: &str, masks: &Masks, lists: Lists) -> Node {
    arrange_at(value, path, masks, lists, 0)
}

fn arrange_at(value: &Value, path: &str, masks: &Masks, lists: Lists, depth: usize) -> Node {
    if masks.leaves.get(path) == Some(&Level::All) {
        return Node::Leaf("<any>".to_owned());
    }
    if depth > DEEPEST {
        return Node::Leaf(value.to_string());
    }
    match value {
        Value::Object(map) => {
            let hidden = masks.keys.contains(path);
            let mut entries: Vec<(String, Node)> = map
                .iter()
                .map(|(key, value)| {
                    let shown = if hidden {
                        "<key>".to_owned()
                    } else {
                        key.clone()
                    };
                    let plain = settle(&shown, &masks.words, masks.now, None);
                    let below = format!("{path}/{plain}");
                    let node = match value {
                        Value::Number(number) if is_duration_key(key) && !number.is_u64() => {
                            Node::Leaf("<duration>".to_owned())
                        }
                        Value::Number(_) if is_duration_key(key) => {
                            Node::Leaf("<duration>".to_owned())
                        }
                        value => arrange_at(value, &below, masks, lists, depth + 1),
                    };
                    (shown, node)
                })
                .collect();
            entries.sort_by_cached_key(|(key, node)| {
                let key = settle(key, &masks.words, masks.now, None);
                (key, plain(node, masks))
            });
            Node::Map(entries)
        }
        Value::Array(items) => {
            let below = format!("{path}/*");
            let mut nodes: Vec<Node> = items
                .iter()
                .map(|item| arrange_at(item, &below, masks, lists, depth + 1))
                .collect();
            if lists == Lists::Unordered {
                nodes.sort_by_cached_key(|node| plain(node, masks));
            }
            Node::List(nodes)
        }
        Value::String(text) => {
            // Most answers are JSON in a string.
            if text.trim_start().starts_with(['{', '['])
                && let Ok(inner) = serde_json::from_str::<Value>(text)
            {
                return arrange_at(&inner, path, masks, lists, depth + 1);
            }
            Node::Leaf(masked(text, path, masks))
        }
        Value::Number(number) => {
            let moment = number
                .as_f64()
                .is_some_and(|number| is_moment(number, masks.now));
            if moment {
                Node::Leaf("<time>".to_owned())
            } else {
                Node::Leaf(masked(&number.to_string(), path, masks))
            }
        }
        other => Node::Leaf(other.to_string()),
    }
}

fn masked(text: &str, path: &str, masks: &Masks) -> String {
    match masks.leaves.get(path) {
        None => text.to_owned(),
        Some(Level::Numbers) => without_numbers(text),
        Some(Level::All) => "<any>".to_owned(),
    }
}

fn is_duration_key(key: &str) -> bool {
    let key = key.to_ascii_lowercase();
    ["duration", "elapsed", "latency", "uptime", "took"]
        .iter()
        .any(|word| key.contains(word))
        || key.ends_with("_ms")
        || key.ends_with("millis")
}

/// The form with all ids alike, to sort by.
fn plain(node: &Node, masks: &Masks) -> String {
    match node {
        Node::Leaf(text) => settle(text, &masks.words, masks.now, None),
        Node::List(nodes) => {
            let parts: Vec<String> = nodes.iter().map(|node| plain(node, masks)).collect();
            format!("[{}]", parts.join(","))
        }
        Node::Map(entries) => {
            let parts: Vec<String> = entries
                .iter()
                .map(|(key, node)| {
                    let key = settle(key, &masks.words, masks.now, None);
                    format!("{key}:{}", plain(node, masks))
                })
                .collect();
            format!("{{{}}}", parts.join(","))
        }
    }
}

fn name(node: Node, masks: &Masks, names: &mut Names) -> Node {
    match node {
        Node::Leaf(text) => Node::Leaf(settle(&text, &masks.words, masks.now, Some(names))),
        Node::List(nodes) => Node::List(
            nodes
                .into_iter()
                .map(|node| name(node, masks, names))
                .collect(),
        ),
        Node::Map(entries) => Node::Map(
            entries
                .into_iter()
                .map(|(key, node)| {
                    let key = settle(&key, &masks.words, masks.now, Some(names));
                    (key, name(node, masks, names))
                })
                .collect(),
        ),
    }
}

impl fmt::Display for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Leaf(text) => f.write_str(text),
            Self::List(nodes) => {
                f.write_str("[")?;
                for (index, node) in nodes.iter().enumerate() {
                    let comma = if index == 0 { "" } else { ", " };
                    write!(f, "{comma}{node}")?;
                }
                f.write_str("]")
            }
            Self::Map(entries) => {
                f.write_str("{")?;
                for (index, (key, node)) in entries.iter().enumerate() {
                    let comma = if index == 0 { "" } else { ", " };
                    write!(f, "{comma}{key}: {node}")?;
                }
                f.write_str("}")
            }
        }
    }
}

/// One place where two values differ.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    pub path: String,
    /// What a serial order leaves there; nothing if nothing.
    pub expected: Option<String>,
    pub found: Option<String>,
}

/// Where `found` differs from `expected`.
pub fn differences(expected: &Node, found: &Node) -> Vec<Difference> {
    let mut all = Vec::new();
    differ(expected, found, "", &mut all);
    all
}

fn differ(expected: &Node, found: &Node, path: &str, all: &mut Vec<Difference>) {
    match (expected, found) {
        (a, b) if a == b => {}
        (Node::Map(a), Node::Map(b)) => {
            for (key, left) in a {
                let below = join(path, key);
                match b.iter().find(|(other, _)| other == key) {
                    Some((_, right)) => differ(left, right, &below, all),
                    None => all.push(Difference {
                        path: below,
                        expected: Some(left.to_string()),
                        found: None,
                    }),
                }
            }
            for (key, right) in b {
                if !a.iter().any(|(other, _)| other == key) {
                    all.push(Difference {
                        path: join(path, key),
                        expected: None,
                        found: Some(right.to_string()),
                    });
                }
            }
        }
        (Node::List(a), Node::List(b)) if a.len() == b.len() => {
            for (left, right) in a.iter().zip(b) {
                differ(left, right, &join(path, "*"), all);
            }
        }
        (Node::List(a), Node::List(b)) => {
            // Lists that grew or shrank: say which items, not that all moved.
            let mut rest: Vec<&Node> = b.iter().collect();
            let mut missing = Vec::new();
            for item in a {
                match rest.iter().position(|other| *other == item) {
                    Some(at) => {
                        rest.remove(at);
                    }
                    None => missing.push(item),
                }
            }
            if missing.len() == 1 && rest.len() == 1 {
                differ(missing[0], rest[0], &join(path, "*"), all);
                return;
            }
            all.extend(missing.into_iter().map(|item| Difference {
                path: join(path, "*"),
                expected: Some(item.to_string()),
                found: None,
            }));
            all.extend(rest.into_iter().map(|item| Difference {
                path: join(path, "*"),
                expected: None,
                found: Some(item.to_string()),
            }));
        }
        (a, b) => all.push(Difference {
            path: path.to_owned(),
            expected: Some(a.to_string()),
            found: Some(b.to_string()),
        }),
    }
}

fn join(path: &str, key: &str) -> String {
    if path.is_empty() {
        key.to_owned()
    } else {
        format!("{path} › {key}")
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn of(value: Value) -> Node {
        canonical(&[&value], &Masks::new(), Lists::Ordered).remove(0)
    }

    #[test]
    fn key_order_and_made_up_keys_do_not_count() {
        let a = of(json!({"9f8e7d6c5b4a3210": {"n": 1}, "0a1b2c3d4e5f6789": {"n": 2}, "z": "x"}));
        let b = of(json!({"z": "x", "1a1b2c3d4e5f6789": {"n": 1}, "f0f1f2f3f4f5f6f7": {"n": 2}}));
        assert_eq!(a, b);
        let c = of(json!({"z": "x", "1a1b2c3d4e5f6789": {"n": 1}, "f0f1f2f3f4f5f6f7": {"n": 3}}));
        assert_ne!(a, c);
    }

    #[test]
    fn an_id_that_points_nowhere_is_seen() {
        let kept = of(json!({"list": [{"id": "ab12cd34"}], "last": "ab12cd34"}));
        let lost = of(json!({"list": [{"id": "ef12cd34"}], "last": "ab12cd34"}));
        assert_ne!(kept, lost);
    }

    #[test]
    fn says_which_item_is_missing() {
        let a = of(json!({"notes": ["alpha", "bravo"]}));
        let b = of(json!({"notes": ["bravo"]}));
        let all = differences(&a, &b);
        assert_eq!(all.len(), 1);
        assert_eq!(all[0].expected.as_deref(), Some("alpha"));
        assert_eq!(all[0].found, None);
    }

    #[test]
    fn order_counts_unless_told_otherwise() {
        let (a, b) = (json!(["x", "y"]), json!(["y", "x"]));
        let masks = Masks::new();
        assert_ne!(
            canonical(&[&a], &masks, Lists::Ordered),
            canonical(&[&b], &masks, Lists::Ordered)
        );
        assert_eq!(
            canonical(&[&a], &masks, Lists::Unordered),
            canonical(&[&b], &masks, Lists::Unordered)
        );
    }
}
