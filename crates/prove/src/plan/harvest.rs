//! Values that the server itself gave: ids in answers, rows in its database.
//!
//! What set-up calls answer differs from run to run, so an argument holds a
//! reference to the answer (`${setup[0]/id}`), and each run puts its own value
//! in. What stands in the state before any call is the same in every run.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::call::{Call, Reply};
use crate::canon::text::id_like;

/// Values by the name under which they were found.
#[derive(Clone, Debug, Default)]
pub struct Harvest {
    /// Of the state as the server makes it at its start: column or key, and values.
    known: BTreeMap<String, Vec<Value>>,
    /// Of set-up calls: their tools, and what their answers hold.
    answers: Vec<(String, Vec<Found>)>,
}

#[derive(Clone, Debug)]
struct Found {
    name: String,
    reference: String,
    number: bool,
}

const MOST_VALUES: usize = 16;
const MOST_FOUND: usize = 200;

impl Harvest {
    /// Takes in the state that a fresh server has.
    pub fn state(&mut self, value: &Value) {
        self.walk_state("", value, 0);
    }

    fn walk_state(&mut self, name: &str, value: &Value, depth: usize) {
        if depth > 8 {
            return;
        }
        match value {
            Value::Object(map) => {
                for (key, value) in map {
                    // A row's key is known by the name of its table too.
                    if matches!(key.as_str(), "id" | "name" | "key" | "slug") && !name.is_empty() {
                        self.know(name, value);
                    }
                    let below = if value.is_array() || value.is_object() {
                        key.as_str()
                    } else {
                        name
                    };
                    self.know(key, value);
                    self.walk_state(below, value, depth + 1);
                }
            }
            Value::Array(items) => items
                .iter()
                .for_each(|item| self.walk_state(name, item, depth + 1)),
            _ => {}
        }
    }

    fn know(&mut self, name: &str, value: &Value) {
        let plain = match value {
            Value::String(text) => !text.is_empty() && text.len() < 200,
            Value::Number(_) => true,
            _ => false,
        };
        let values = self.known.entry(normal(name)).or_default();
        if plain && values.len() < MOST_VALUES && !values.contains(value) {
            values.push(value.clone());
        }
    }

    /// Takes in what a set-up call answered.
    pub fn answer(&mut self, call: &Call, reply: &Reply) {
        let step = self.answers.len();
        let mut found = Vec::new();
        if let Reply::Result(value) = reply {
            let parsed = parsed(value);
            if parsed.is_object() || parsed.is_array() {
                walk_answer("", &parsed, &mut String::new(), step, &mut found, 0);
            } else if let Some(text) = parsed.as_str() {
                for index in 0..ids_in(text).len() {
                    found.push(Found {
                        name: "id".to_owned(),
                        reference: format!("setup[{step}]#{index}"),
                        number: false,
                    });
                }
            }
        }
        self.answers.push((call.tool.clone(), found));
    }

    /// Whether an answer has something by one of these names.
    pub fn tells(reply: &Reply, names: &[String]) -> bool {
        let Reply::Result(value) = reply else {
            return false;
        };
        let mut found = Vec::new();
        walk_answer("", &parsed(value), &mut String::new(), 0, &mut found, 0);
        let names: Vec<String> = names.iter().map(|name| normal(name)).collect();
        found.iter().any(|found| names.contains(&found.name))
    }

    /// Another set-up call will be answered as the one at `step` was.
    pub fn answer_like(&mut self, step: usize) {
        let Some((tool, found)) = self.answers.get(step).cloned() else {
            return;
        };
        let next = self.answers.len();
        let (old, new) = (format!("setup[{step}]"), format!("setup[{next}]"));
        let found = found
            .into_iter()
            .map(|found| Found {
                reference: found.reference.replacen(&old, &new, 1),
                ..found
            })
            .collect();
        self.answers.push((tool, found));
    }

    /// A value for a property that names a thing: of the `which`-th set-up call
    /// that answered with something of that name.
    pub fn reference(&self, tool: &str, name: &str, which: usize, text: bool) -> Option<Value> {
        let wanted = normal(name);
        let bare = wanted.strip_suffix("id").filter(|rest| !rest.is_empty());
        let mut fitting: Vec<&Found> = Vec::new();
        for (maker, found) in &self.answers {
            let exact = found.iter().find(|found| found.name == wanted);
            let close = || {
                // The id of what `create_note` made is a note's.
                let about = bare.map_or_else(
                    || shares_word(tool, maker),
                    |bare| normal(maker).contains(bare),
                );
                found.iter().find(|found| about && found.name == "id")
            };
            fitting.extend(exact.or_else(close));
        }
        if fitting.is_empty() {
            fitting.extend(
                self.answers
                    .iter()
                    .filter_map(|(_, found)| found.iter().find(|found| found.name == "id")),
            );
        }
        let known = || {
            let values = self.known.get(&wanted).or_else(|| self.known.get(bare?));
            values
                .and_then(|values| values.get(which).or_else(|| values.first()))
                .cloned()
        };
        match fitting.get(which).or_else(|| fitting.first()) {
            Some(found) => {
                let cast = if text && found.number { "|text" } else { "" };
                Some(Value::String(format!("${{{}{cast}}}", found.reference)))
            }
            None => known(),
        }
    }

    /// What a fresh state has under this name, if the caller must know it.
    pub fn key(&self, name: &str) -> Option<Value> {
        let wanted = normal(name);
        let values = self
            .known
            .get(&wanted)
            .or_else(|| self.known.get(&format!("{wanted}s")))?;
        values.iter().find(|value| value.is_string()).cloned()
    }

    /// Numbers in the fresh state: amounts that could be exhausted.
    pub fn amounts(&self) -> Vec<i64> {
        let mut all: Vec<i64> = self
            .known
            .values()
            .flatten()
            .filter_map(Value::as_i64)
            .filter(|amount| (2..1_000_000).contains(amount))
            .collect();
        all.sort_unstable();
        all.dedup();
        all.truncate(4);
        all
    }
}

fn walk_answer(
    name: &str,
    value: &Value,
    pointer: &mut String,
    step: usize,
    found: &mut Vec<Found>,
    depth: usize,
) {
    if depth > 8 || found.len() > MOST_FOUND {
        return;
    }
    match value {
        Value::Object(map) => {
            for (key, value) in map {
                let length = pointer.len();
                pointer.push('/');
                pointer.push_str(&key.replace('~', "~0").replace('/', "~1"));
                walk_answer(key, value, pointer, step, found, depth + 1);
                pointer.truncate(length);
            }
        }
        Value::Array(items) => {
            if let Some(first) = items.first() {
                let length = pointer.len();
                pointer.push_str("/0");
                walk_answer(name, first, pointer, step, found, depth + 1);
                pointer.truncate(length);
            }
        }
        Value::String(_) | Value::Number(_) => found.push(Found {
            name: normal(name),
            reference: format!("setup[{step}]{pointer}"),
            number: value.is_number(),
        }),
        _ => {}
    }
}

fn normal(name: &str) -> String {
    name.chars()
        .filter(char::is_ascii_alphanumeric)
        .map(|c| c.to_ascii_lowercase())
        .collect()
}

/// `delete_note` and `add_note` are about the same.
fn shares_word(a: &str, b: &str) -> bool {
    let words = |name: &str| -> Vec<String> {
        name.split(['_', '-', '.', '/'])
            .skip(1)
            .map(|word| word.trim_end_matches('s').to_owned())
            .collect()
    };
    let b = words(b);
    words(a).iter().any(|word| b.contains(word))
}

fn parsed(value: &Value) -> Value {
    match value {
        Value::String(text) => serde_json::from_str(text)
            .ok()
            .filter(|value: &Value| value.is_object() || value.is_array())
            .unwrap_or_else(|| value.clone()),
        other => other.clone(),
    }
}

/// Words in a text that are ids: made up, or a number after `id`.
fn ids_in(text: &str) -> Vec<String> {
    let mut all = Vec::new();
    id_like(text, |word| all.push(word.to_owned()));
    let words: Vec<&str> = text
        .split(|c: char| !c.is_alphanumeric() && c != '-' && c != '_')
        .filter(|word| !word.is_empty())
        .collect();
    for pair in words.windows(2) {
        let label = pair[0].eq_ignore_ascii_case("id") || text.contains(&format!("#{}", pair[1]));
        if label && pair[1].bytes().all(|byte| byte.is_ascii_digit()) {
            all.push(pair[1].to_owned());
        }
    }
    all
}

/// Puts the answers of set-up calls where `value` refers to them.
pub fn resolve(value: &Value, replies: &[Reply]) -> Value {
    match value {
        Value::String(text) => match text
            .strip_prefix("${")
            .and_then(|rest| rest.strip_suffix('}'))
        {
            Some(reference) => look_up(reference, replies).unwrap_or_else(|| value.clone()),
            None => value.clone(),
        },
        Value::Array(items) => items.iter().map(|item| resolve(item, replies)).collect(),
        Value::Object(map) => map
            .iter()
            .map(|(key, value)| (key.clone(), resolve(value, replies)))
            .collect(),
        other => other.clone(),
    }
}

fn look_up(reference: &str, replies: &[Reply]) -> Option<Value> {
    let rest = reference.strip_prefix("setup[")?;
    let (step, rest) = rest.split_once(']')?;
    let Reply::Result(value) = replies.get(step.parse::<usize>().ok()?)? else {
        return None;
    };
    let (path, cast) = match rest.strip_suffix("|text") {
        Some(path) => (path, true),
        None => (rest, false),
    };
    let found = match path.strip_prefix('#') {
        Some(index) => {
            let ids = ids_in(parsed(value).as_str()?);
            Value::String(ids.get(index.parse::<usize>().ok()?)?.clone())
        }
        None => parsed(value).pointer(path)?.clone(),
    };
    Some(match found {
        Value::Number(number) if cast => Value::String(number.to_string()),
        other => other,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_answers_id_is_found_and_put_in() {
        let mut harvest = Harvest::default();
        let call = Call::new("create_note", json!({}));
        let reply = Reply::Result(json!(r#"{"note": {"id": 7, "title": "alpha"}}"#));
        harvest.answer(&call, &reply);
        let made = harvest
            .reference("update_note", "note_id", 0, true)
            .expect("found");
        assert_eq!(made, json!("${setup[0]/note/id|text}"));
        assert_eq!(resolve(&json!({"id": made}), &[reply]), json!({"id": "7"}));
    }

    #[test]
    fn an_id_in_a_sentence() {
        let mut harvest = Harvest::default();
        let call = Call::new("add_task", json!({}));
        let reply = Reply::Result(json!("Created task with id 12."));
        harvest.answer(&call, &reply);
        let made = harvest
            .reference("complete_task", "id", 0, true)
            .expect("found");
        assert_eq!(resolve(&made, &[reply]), json!("12"));
    }

    #[test]
    fn rows_are_known_by_table_and_column() {
        let mut harvest = Harvest::default();
        harvest.state(
            &json!({"accounts": [{"id": "alice", "balance": 100}], "coupons": [{"code": "WELCOME"}],
            "pages": [{"name": "home"}]}),
        );
        assert_eq!(harvest.key("account"), Some(json!("alice")));
        assert_eq!(harvest.key("page"), Some(json!("home")));
        assert_eq!(harvest.key("code"), Some(json!("WELCOME")));
        assert_eq!(harvest.amounts(), [100]);
    }
}
