//! A write that was acknowledged and is gone.

use super::{Class, Evidence, Kind};
use crate::scenario::letter;

pub fn judge(evidence: &Evidence<'_>) -> Option<(Kind, String)> {
    if !matches!(evidence.class, Class::State | Class::Response) {
        return None;
    }
    let missing: Vec<&str> = evidence
        .differences
        .iter()
        .filter(|difference| difference.found.is_none())
        .filter_map(|difference| difference.expected.as_deref())
        .collect();
    if missing.is_empty() {
        return None;
    }
    let left = left(evidence);
    // Whose words are among what is missing, and nowhere else?
    for (index, call) in evidence.scenario.calls.iter().enumerate() {
        let ok = evidence
            .outcome
            .replies
            .get(index)
            .is_some_and(|reply| reply.is_ok());
        if !ok {
            continue;
        }
        let mut words = Vec::new();
        collect(&call.arguments, &mut words);
        let others: Vec<String> = evidence
            .scenario
            .calls
            .iter()
            .enumerate()
            .filter(|(other, _)| *other != index)
            .map(|(_, other)| other.arguments.to_string())
            .collect();
        let own = words
            .iter()
            .filter(|word| !others.iter().any(|other| other.contains(word.as_str())))
            .filter(|word| !left.contains(word.as_str()))
            .find(|word| missing.iter().any(|text| text.contains(word.as_str())));
        if let Some(word) = own {
            let text = format!(
                "call {} was acknowledged, and `{word}` is lost",
                letter(index)
            );
            return Some((Kind::LostWrite, text));
        }
    }
    None
}

/// What is left, without files that no call touched; if none did, what the tools say.
fn left(evidence: &Evidence<'_>) -> String {
    let before = evidence.serial.first().map(|run| &run.outcome.files.all);
    let changed: Vec<String> = evidence
        .outcome
        .files
        .all
        .iter()
        .filter(|(path, content)| before.and_then(|before| before.get(*path)) != Some(*content))
        .map(|(_, content)| content.value().to_string())
        .collect();
    if !changed.is_empty() {
        return changed.concat();
    }
    let said = evidence
        .outcome
        .observed
        .iter()
        .map(|reply| reply.value().to_string());
    said.collect()
}

fn collect(value: &serde_json::Value, words: &mut Vec<String>) {
    use serde_json::Value;
    match value {
        Value::String(text) if !text.is_empty() => words.push(text.clone()),
        Value::Array(items) => items.iter().for_each(|item| collect(item, words)),
        Value::Object(map) => map.values().for_each(|value| collect(value, words)),
        _ => {}
    }
}
