//! A call as it is planned, and what came of it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// One call of a tool.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Call {
    pub tool: String,
    /// May hold `${setup[0]/id}`: what the first set-up call answered.
    #[serde(default)]
    pub arguments: Value,
}

impl Call {
    pub fn new(tool: &str, arguments: Value) -> Self {
        Self {
            tool: tool.to_owned(),
            arguments,
        }
    }

    /// `add_note {"title": "alpha"}`
    pub fn shown(&self) -> String {
        if self
            .arguments
            .as_object()
            .is_none_or(serde_json::Map::is_empty)
        {
            return self.tool.clone();
        }
        format!("{} {}", self.tool, self.arguments)
    }
}

/// What a call was answered.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", tag = "kind", content = "value")]
pub enum Reply {
    Result(Value),
    /// An error by the protocol, by `isError`, or in words.
    Error(Value),
    /// None in the time it had.
    Silence,
}

impl Reply {
    /// From a response as it came.
    pub fn read(message: &Value) -> Self {
        if let Some(error) = message.get("error") {
            return Self::Error(error.get("message").unwrap_or(error).clone());
        }
        let result = message.get("result").cloned().unwrap_or(Value::Null);
        let content = content_of(&result);
        let marked = result.get("isError").and_then(Value::as_bool) == Some(true);
        if marked || says_error(&content) {
            return Self::Error(content);
        }
        Self::Result(content)
    }

    pub fn is_error(&self) -> bool {
        matches!(self, Self::Error(_))
    }

    pub fn is_ok(&self) -> bool {
        matches!(self, Self::Result(_))
    }

    /// For comparison.
    pub fn value(&self) -> Value {
        match self {
            Self::Result(value) => json!({ "ok": value }),
            Self::Error(value) => json!({ "error": value }),
            Self::Silence => json!("no answer"),
        }
    }

    /// For people.
    pub fn shown(&self) -> String {
        match self {
            Self::Result(value) => text_of(value),
            Self::Error(value) => format!("error: {}", text_of(value)),
            Self::Silence => "no answer".to_owned(),
        }
    }
}

/// The text parts of a result, or all of it if there is something else.
fn content_of(result: &Value) -> Value {
    let Some(parts) = result.get("content").and_then(Value::as_array) else {
        return result.clone();
    };
    let texts: Option<Vec<&Value>> = parts
        .iter()
        .map(|part| part.get("text").filter(|text| text.is_string()))
        .collect();
    match texts.as_deref() {
        Some([one]) => (*one).clone(),
        Some(many) if !many.is_empty() => many.iter().map(|text| (*text).clone()).collect(),
        _ => result.clone(),
    }
}

pub fn text_of(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// Many servers report failure as an ordinary answer.
fn says_error(content: &Value) -> bool {
    let text = match content {
        Value::String(text) => text.trim_start(),
        Value::Array(parts) => match parts.first() {
            Some(Value::String(text)) => text.trim_start(),
            _ => return false,
        },
        _ => return false,
    };
    if text.starts_with('{')
        && let Ok(Value::Object(map)) = serde_json::from_str::<Value>(text)
    {
        let no = |key: &str| map.get(key).and_then(Value::as_bool) == Some(false);
        let named = ["error", "errors"].iter().any(|key| {
            map.get(*key).is_some_and(|value| match value {
                Value::Null | Value::Bool(false) => false,
                Value::String(text) => !text.is_empty(),
                Value::Array(items) => !items.is_empty(),
                _ => true,
            })
        });
        let status = map.get("status").and_then(Value::as_str);
        return no("success") || no("ok") || named || matches!(status, Some("error" | "failed"));
    }
    let start: String = text
        .chars()
        .take(48)
        .flat_map(char::to_lowercase)
        .skip_while(|c| !c.is_alphabetic())
        .collect();
    [
        "error",
        "failed",
        "failure",
        "cannot ",
        "could not ",
        "unable to ",
        "exception",
        "traceback",
        "not enough",
    ]
    .iter()
    .any(|word| start.starts_with(word))
        || start.contains(" error:")
        || start.contains("not found")
        || start.contains("already exists")
        || start.contains("does not exist")
}

/// Whether an error says that the server turned the call away because another
/// one was there: an honest answer, not a wrong one.
pub fn is_refusal(reply: &Reply) -> bool {
    let Reply::Error(value) = reply else {
        return false;
    };
    let text = text_of(value).to_lowercase();
    [
        "lock",
        "busy",
        "timeout",
        "timed out",
        "conflict",
        "retry",
        "try again",
        "in use",
        "in progress",
        "concurrent",
        "too many",
        "rate limit",
        "stale",
        "modified by",
        "version mismatch",
        "refused by toctou",
        "serializ",
        "deadlock",
    ]
    .iter()
    .any(|word| text.contains(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> Reply {
        Reply::read(&json!({"result": {"content": [{"type": "text", "text": text}]}}))
    }

    #[test]
    fn errors_in_words_are_errors() {
        for words in [
            "Error: no such note",
            "❌ Failed to save",
            r#"{"success": false, "message": "x"}"#,
            r#"{"error": "boom"}"#,
            "Note 'alpha' not found",
        ] {
            assert!(text(words).is_error(), "{words}");
        }
        for words in [
            "added alpha",
            r#"{"success": true, "error": null}"#,
            r#"["error handling"]"#,
            "0 errors",
        ] {
            assert!(text(words).is_ok(), "{words}");
        }
    }

    #[test]
    fn a_busy_server_refuses() {
        assert!(is_refusal(&text("Error: database is locked")));
        assert!(!is_refusal(&text("Error: Unexpected end of JSON input")));
    }
}
