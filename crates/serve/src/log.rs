//! What happened, one JSON object a line on standard error.

use std::io::Write as _;

pub(crate) fn log(event: &str, what: &dyn std::fmt::Display) {
    write(event, &serde_json::json!({ "what": what.to_string() }));
}

/// Nobody may be listening; that is no failure.
pub(crate) fn write(event: &str, fields: &serde_json::Value) {
    let mut line = serde_json::json!({
        "time": jiff::Timestamp::now().to_string(),
        "event": event,
    });
    if let (Some(line), Some(fields)) = (line.as_object_mut(), fields.as_object()) {
        line.extend(fields.clone());
    }
    let _ = std::io::stderr()
        .lock()
        .write_all(format!("{line}\n").as_bytes());
}
