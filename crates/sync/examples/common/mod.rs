//! Two calls at the same time, and numbers as bytes.
#![allow(dead_code)]

pub type Anything = Result<(), Box<dyn std::error::Error + Send + Sync>>;

/// The point where somebody else can run: a database, a file, a network.
pub async fn somebody_else_runs() {
    tokio::task::yield_now().await;
}

pub fn number(bytes: Option<&[u8]>) -> i64 {
    bytes
        .and_then(|bytes| std::str::from_utf8(bytes).ok()?.parse().ok())
        .unwrap_or(0)
}

pub fn bytes(number: i64) -> Vec<u8> {
    number.to_string().into_bytes()
}
