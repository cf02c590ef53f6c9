//! What two identical serial runs do not agree on is not looked at again.

use std::collections::BTreeSet;

use serde_json::Value;
use thiserror::Error;

use super::text::id_like;
use super::{Level, Lists, Masks, Node, canonical};

/// Two identical runs left things that no mask makes equal.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("identical serial runs differ at {place}")]
pub struct Unsteady {
    pub place: String,
}

/// Widens `masks` until `a` and `b`, outcomes of identical runs, look alike.
pub fn learn(a: &[&Value], b: &[&Value], masks: &mut Masks) -> Result<(), Unsteady> {
    let words = |values: &[&Value]| {
        let mut all = BTreeSet::new();
        for value in values {
            collect(value, &mut all);
        }
        all
    };
    let common: Vec<String> = words(a).intersection(&words(b)).cloned().collect();
    masks.words.stable.extend(common);
    // Each round masks what the last one left; four levels of nesting suffice.
    for _ in 0..4 {
        let left = canonical(a, masks, Lists::Ordered);
        let right = canonical(b, masks, Lists::Ordered);
        if left == right {
            return Ok(());
        }
        for (left, right) in left.iter().zip(&right) {
            mask(left, right, "", masks)?;
        }
    }
    Err(Unsteady {
        place: "several places".to_owned(),
    })
}

fn collect(value: &Value, words: &mut BTreeSet<String>) {
    match value {
        Value::String(text) => id_like(text, |word| {
            words.insert(word.to_owned());
        }),
        Value::Number(number) => id_like(&number.to_string(), |word| {
            words.insert(word.to_owned());
        }),
        Value::Array(items) => items.iter().for_each(|item| collect(item, words)),
        Value::Object(map) => {
            for (key, value) in map {
                id_like(key, |word| {
                    words.insert(word.to_owned());
                });
                collect(value, words);
            }
        }
        _ => {}
    }
}

fn mask(left: &Node, right: &Node, path: &str, masks: &mut Masks) -> Result<(), Unsteady> {
    let unsteady = || Unsteady {
        place: if path.is_empty() { "the top" } else { path }.to_owned(),
    };
    match (left, right) {
        (a, b) if a == b => Ok(()),
        (Node::Leaf(_), Node::Leaf(_)) => {
            let next = match masks.leaves.get(path) {
                None => Level::Numbers,
                Some(Level::Numbers) => Level::All,
                Some(Level::All) => return Err(unsteady()),
            };
            masks.leaves.insert(path.to_owned(), next);
            Ok(())
        }
        (Node::List(a), Node::List(b)) if a.len() == b.len() => a
            .iter()
            .zip(b)
            .try_for_each(|(a, b)| mask(a, b, &format!("{path}/*"), masks)),
        (Node::Map(a), Node::Map(b)) if a.len() == b.len() => {
            if a.iter().zip(b).all(|((a, _), (b, _))| a == b) {
                return a.iter().zip(b).try_for_each(|((key, a), (_, b))| {
                    // Paths have ids without their numbers, as `arrange` makes them.
                    let key = plain_key(key);
                    mask(a, b, &format!("{path}/{key}"), masks)
                });
            }
            if !masks.keys.insert(path.to_owned()) {
                return Err(unsteady());
            }
            Ok(())
        }
        _ => Err(unsteady()),
    }
}

/// `<id 3>` to `<id>`.
fn plain_key(key: &str) -> String {
    let mut out = String::new();
    let mut rest = key;
    while let Some(at) = rest.find("<id ") {
        out.push_str(&rest[..at]);
        let Some(end) = rest[at..].find('>') else {
            break;
        };
        out.push_str("<id>");
        rest = &rest[at + end + 1..];
    }
    out + rest
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn alike(a: &Value, b: &Value, masks: &Masks) -> bool {
        canonical(&[a], masks, Lists::Ordered) == canonical(&[b], masks, Lists::Ordered)
    }

    #[test]
    fn a_field_that_changes_is_masked_and_others_are_not() {
        let mut masks = Masks::new();
        let a = json!({"pid": 17, "note": "alpha", "luck": "seven"});
        let b = json!({"pid": 18, "note": "alpha", "luck": "eight"});
        learn(&[&a], &[&b], &mut masks).expect("can be masked");
        let c = json!({"pid": 19, "note": "alpha", "luck": "nine"});
        assert!(alike(&a, &c, &masks));
        let d = json!({"pid": 19, "note": "bravo", "luck": "nine"});
        assert!(!alike(&a, &d, &masks));
    }

    #[test]
    fn another_number_of_things_cannot_be_masked() {
        let mut masks = Masks::new();
        let (a, b) = (json!({"list": ["x"]}), json!({"list": ["x", "y"]}));
        let error = learn(&[&a], &[&b], &mut masks).expect_err("not alike");
        assert_eq!(error.place, "/list");
    }

    #[test]
    fn what_both_runs_say_is_no_made_up_id() {
        let mut masks = Masks::new();
        let (a, b) = (
            json!({"hash": "abc12345", "id": "q1w2e3"}),
            json!({"hash": "abc12345", "id": "r4t5y6"}),
        );
        learn(&[&a], &[&b], &mut masks).expect("ids are renamed");
        assert!(masks.leaves.is_empty());
        assert!(!alike(
            &a,
            &json!({"hash": "abc99999", "id": "q1w2e3"}),
            &masks
        ));
    }
}
