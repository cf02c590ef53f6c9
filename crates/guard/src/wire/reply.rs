//! Answers that the guard gives itself.
//!
//! A refused `tools/call` is answered with a *result* that has `isError`, since
//! that is what clients show to the model, and the model is the one who can
//! wait, change the arguments or ask somebody. Everything else (a message that
//! is no message, a method other than `tools/call`) is a JSON-RPC error.

use serde_json::{Value, json};

/// JSON-RPC error codes. Those from -32000 to -32019 are ours to choose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub enum Code {
    Parse = -32700,
    InvalidRequest = -32600,
    MethodNotFound = -32601,
    InvalidParams = -32602,
    Internal = -32603,
    /// The server is not there: it died, or it is being started again.
    Unavailable = -32010,
    /// The guard is closing.
    Closing = -32011,
    TooManyRequests = -32012,
    /// Headers do not say what the body says (2026-07-28).
    HeaderMismatch = -32020,
}

/// An error answer; `id` is the id's text as it was sent.
pub fn error(id: Option<&str>, code: Code, message: &str) -> Vec<u8> {
    error_with(id, code, message, &Value::Null)
}

pub fn error_with(id: Option<&str>, code: Code, message: &str, data: &Value) -> Vec<u8> {
    let data = if data.is_null() {
        String::new()
    } else {
        format!(",\"data\":{data}")
    };
    format!(
        "{{\"jsonrpc\":\"2.0\",\"id\":{},\"error\":{{\"code\":{},\"message\":{}{data}}}}}",
        id.unwrap_or("null"),
        code as i32,
        json!(message),
    )
    .into_bytes()
}

/// A success answer with a result that was kept as text.
pub fn result(id: &str, result: &str) -> Vec<u8> {
    format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{result}}}").into_bytes()
}

/// A tool's answer that says why the call was not made, for the model to read.
pub fn tool_error(id: &str, message: &str, details: &Value) -> Vec<u8> {
    result(
        id,
        &json!({
            "resultType": "complete",
            "content": [{ "type": "text", "text": message }],
            "isError": true,
            "_meta": { "toctou/refusal": details },
        })
        .to_string(),
    )
}
