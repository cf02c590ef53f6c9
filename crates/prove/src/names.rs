//! What a placeholder stands for in one run, and what is taken back out of the answers.
//!
//! `{workspace}` is a folder that differs from run to run where there are no
//! namespaces. `{run}` is a word that differs where nothing can be reset, so
//! that every run has things of its own.

use serde_json::Value;

use crate::call::{Call, Reply};
use crate::plan::harvest::resolve;
use crate::target::WORKSPACE;

pub const RUN: &str = "{run}";

/// One run's own names.
#[derive(Clone, Debug)]
pub struct Names {
    workspace: String,
    word: String,
    /// Other runs have left their things: only what is about this run's counts.
    shared: bool,
}

impl Names {
    /// For a state of its own.
    pub fn private(workspace: &str) -> Self {
        Self {
            workspace: workspace.to_owned(),
            word: "run".to_owned(),
            shared: false,
        }
    }

    /// For a state that other runs and other clients use as well.
    pub fn shared() -> Self {
        // Letters alone, that look like no number and no id.
        let word = (0..8).map(|_| fastrand::char('g'..='z')).collect();
        Self {
            workspace: String::new(),
            word,
            shared: true,
        }
    }

    pub fn workspace(&self) -> &str {
        &self.workspace
    }

    /// A call with this run's names, and what its set-up calls answered.
    pub fn call(&self, call: &Call, replies: &[Reply]) -> Call {
        Call {
            tool: call.tool.clone(),
            arguments: self.fill(&resolve(&call.arguments, replies)),
        }
    }

    fn fill(&self, value: &Value) -> Value {
        mapped(value, &|text| {
            text.replace(WORKSPACE, &self.workspace)
                .replace(RUN, &self.word)
        })
    }

    /// An answer, as every run would give it.
    pub fn plain(&self, reply: Reply) -> Reply {
        let plain = |value: Value| {
            mapped(&value, &|text| {
                let mut text = text.to_owned();
                if !self.workspace.is_empty() {
                    text = text.replace(&self.workspace, WORKSPACE);
                }
                if self.shared {
                    text = text.replace(&self.word, RUN);
                }
                text
            })
        };
        match reply {
            Reply::Result(value) => Reply::Result(plain(value)),
            Reply::Error(value) => Reply::Error(plain(value)),
            Reply::Silence => Reply::Silence,
        }
    }

    /// What an observer said, as far as it is about this run.
    pub fn observed(&self, observer: &Call, reply: Reply) -> Reply {
        let asked = observer.arguments.to_string().contains(RUN);
        match reply {
            Reply::Result(value) if self.shared && !asked => {
                self.plain(Reply::Result(self.about(&value)))
            }
            other => self.plain(other),
        }
    }

    /// Items and lines with this run's word.
    fn about(&self, value: &Value) -> Value {
        match value {
            Value::String(text) => {
                let parsed = serde_json::from_str::<Value>(text)
                    .ok()
                    .filter(|value| value.is_object() || value.is_array());
                match parsed {
                    Some(value) => self.about(&value),
                    None => {
                        let lines = text.lines().filter(|line| line.contains(&self.word));
                        Value::String(lines.collect::<Vec<_>>().join("\n"))
                    }
                }
            }
            Value::Array(items) => items
                .iter()
                .filter(|item| item.to_string().contains(&self.word))
                .cloned()
                .collect(),
            Value::Object(map) => map
                .iter()
                .filter_map(|(key, value)| {
                    if key.contains(&self.word) {
                        return Some((key.clone(), value.clone()));
                    }
                    let value = self.about(value);
                    let is_ours = value.to_string().contains(&self.word);
                    is_ours.then(|| (key.clone(), value))
                })
                .collect(),
            _ => Value::Null,
        }
    }
}

/// Whether what a call does is about a run's own things alone.
pub fn is_own(call: &Call) -> bool {
    let text = call.arguments.to_string();
    text.contains(RUN) || text.contains("${setup")
}

fn mapped(value: &Value, change: &dyn Fn(&str) -> String) -> Value {
    match value {
        Value::String(text) => Value::String(change(text)),
        Value::Array(items) => items.iter().map(|item| mapped(item, change)).collect(),
        Value::Object(map) => map
            .iter()
            .map(|(key, value)| (change(key), mapped(value, change)))
            .collect(),
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_shared_state_is_seen_through_this_runs_word() {
        let names = Names::shared();
        let mine = names.call(&Call::new("add", json!({"title": "alpha{run}"})), &[]);
        let title = mine.arguments["title"].as_str().expect("a title");
        assert!(
            title.starts_with("alpha") && !title.contains('{'),
            "{title}"
        );

        let list = json!({"notes": [{"title": title, "body": "lorem"}, {"title": "of somebody else"}], "count": 2});
        let seen = names.observed(
            &Call::new("list", json!({})),
            Reply::Result(json!(list.to_string())),
        );
        assert_eq!(
            seen,
            Reply::Result(json!({"notes": [{"title": "alpha{run}", "body": "lorem"}]}))
        );
        // Things by name.
        let list = json!({title: "lorem", "of somebody else": "x"});
        let seen = names.observed(&Call::new("list", json!({})), Reply::Result(list));
        assert_eq!(seen, Reply::Result(json!({"alpha{run}": "lorem"})));
        // Who asks for a thing by name is told about it alone.
        let one = Reply::Result(json!(format!("{title}: lorem\nversion 1")));
        let seen = names.observed(&Call::new("get", json!({"title": "alpha{run}"})), one);
        assert_eq!(seen, Reply::Result(json!("alpha{run}: lorem\nversion 1")));
    }

    #[test]
    fn a_private_state_is_seen_whole() {
        let names = Names::private("/w");
        let call = names.call(&Call::new("x", json!({"path": "{workspace}/a"})), &[]);
        assert_eq!(call.arguments["path"], "/w/a");
        let seen = names.observed(&call, Reply::Result(json!("/w/a and others run")));
        assert_eq!(seen, Reply::Result(json!("{workspace}/a and others run")));
    }
}
