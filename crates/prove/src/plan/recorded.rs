//! Calls of real clients, from what `toctou guard --record` wrote.

use serde_json::Value;

use super::{Candidate, Template};
use crate::call::Call;
use crate::scenario::Scenario;

/// More set-up than this is not what two calls need.
const MOST_SETUP: usize = 10;
const MOST_CALLS: usize = 10_000;

/// The tool calls, in their order. Lines that are no messages are passed over;
/// a file without any call is an error.
pub fn parse(text: &str) -> Result<Vec<Call>, String> {
    let mut calls = Vec::new();
    for line in text.lines() {
        let Ok(value) = serde_json::from_str::<Value>(line) else {
            continue;
        };
        // A call is recorded on its way in and on its way out.
        if value.get("way").and_then(Value::as_str) != Some("from-client") {
            continue;
        }
        let message = &value["message"];
        if message.get("method").and_then(Value::as_str) != Some("tools/call") {
            continue;
        }
        let Some(tool) = message.pointer("/params/name").and_then(Value::as_str) else {
            continue;
        };
        let arguments = message
            .pointer("/params/arguments")
            .cloned()
            .unwrap_or(Value::Null);
        // What was masked cannot be sent again.
        if !arguments.to_string().contains("[masked]") && calls.len() < MOST_CALLS {
            calls.push(Call::new(tool, arguments));
        }
    }
    if calls.is_empty() {
        return Err("there is no tool call in it".to_owned());
    }
    Ok(calls)
}

/// One call of each tool.
pub fn examples(calls: &[Call]) -> Vec<Call> {
    let mut all: Vec<Call> = Vec::new();
    for call in calls {
        if !all.iter().any(|other| other.tool == call.tool) {
            all.push(call.clone());
        }
    }
    all
}

/// Calls of one tool with different arguments, on what was there before them.
pub fn candidates(calls: &[Call], observers: &[Call]) -> Vec<Candidate> {
    let mut all: Vec<Candidate> = Vec::new();
    for (index, first) in calls.iter().enumerate() {
        if all
            .iter()
            .any(|known| known.scenario.calls[0].tool == first.tool)
        {
            continue;
        }
        let second = calls[index + 1..]
            .iter()
            .find(|call| call.tool == first.tool && *call != first);
        let Some(second) = second else {
            continue;
        };
        let setup: Vec<Call> = calls[..index].iter().take(MOST_SETUP).cloned().collect();
        all.push(Candidate {
            template: Template::Given,
            scenario: Scenario {
                setup: Vec::new(),
                calls: vec![first.clone(), second.clone()],
                observers: observers.to_vec(),
            },
            setups: vec![setup, Vec::new()],
        });
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_found_and_paired() {
        let text = r#"{"schema":"toctou.record/1","time":"x"}
{"us":1,"session":1,"way":"from-client","message":{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"add","arguments":{"t":"a"}}}}
{"us":2,"session":1,"way":"to-server","message":{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"add","arguments":{"t":"a"}}}}
{"us":3,"session":1,"way":"from-client","message":{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"add","arguments":{"t":"b"}}}}
{"us":4,"session":1,"way":"from-client","message":{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"login","arguments":{"password":"[masked]"}}}}
nonsense"#;
        let calls = parse(text).expect("calls");
        assert_eq!(calls.len(), 2);
        assert_eq!(examples(&calls).len(), 1);
        let pairs = candidates(&calls, &[]);
        assert_eq!(pairs.len(), 1);
        assert_eq!(pairs[0].scenario.calls[1].arguments["t"], "b");
        assert!(parse("nonsense").is_err());
    }
}
