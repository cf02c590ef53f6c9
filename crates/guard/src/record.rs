//! Keeps the traffic, for `toctou prove` to use, with secrets masked.
//!
//! One JSON object a line: when, which session, which way, and the message.
//! Masking cuts values out of the bytes and leaves the rest as it was sent.

use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use crate::log::log;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    FromClient,
    ToServer,
    FromServer,
    ToClient,
}

impl Direction {
    fn as_str(self) -> &'static str {
        match self {
            Self::FromClient => "from-client",
            Self::ToServer => "to-server",
            Self::FromServer => "from-server",
            Self::ToClient => "to-client",
        }
    }
}

/// Writes messages to a file.
#[derive(Debug)]
pub struct Recorder {
    file: Mutex<Option<BufWriter<File>>>,
    began: Instant,
}

impl Recorder {
    /// Makes the file, for its owner's eyes only. One that is there is added to.
    pub fn create(path: &Path) -> io::Result<Self> {
        let file = OpenOptions::new()
            .create(true)
            .append(true)
            .mode(0o600)
            .open(path)?;
        let recorder = Self {
            file: Mutex::new(Some(BufWriter::new(file))),
            began: Instant::now(),
        };
        let now = jiff::Timestamp::now();
        recorder.line(&format!(
            "{{\"schema\":\"toctou.record/1\",\"time\":\"{now}\"}}\n"
        ));
        Ok(recorder)
    }

    pub fn message(&self, session: u64, direction: Direction, message: &[u8]) {
        let at = self.began.elapsed().as_micros();
        let way = direction.as_str();
        let head = format!("{{\"us\":{at},\"session\":{session},\"way\":\"{way}\",");
        let body = match std::str::from_utf8(message) {
            Ok(text) if serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok() => {
                format!(
                    "\"message\":{}}}\n",
                    mask(text.trim()).replace(['\n', '\r'], " ")
                )
            }
            _ => format!("\"unreadable\":{}}}\n", message.len()),
        };
        self.line(&(head + &body));
    }

    fn line(&self, text: &str) {
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(writer) = file.as_mut()
            && let Err(error) = writer
                .write_all(text.as_bytes())
                .and_then(|()| writer.flush())
        {
            log!(Error, "record-stopped", because = error.to_string());
            *file = None;
        }
    }
}

/// Parts of keys whose values are nobody's business.
const SECRET_KEYS: [&str; 12] = [
    "password",
    "passwd",
    "secret",
    "token",
    "apikey",
    "authorization",
    "credential",
    "cookie",
    "privatekey",
    "accesskey",
    "passphrase",
    "sessionid",
];
/// Keys that look like secrets and are none.
const HARMLESS_KEYS: [&str; 4] = ["progresstoken", "maxtokens", "tokens", "tokencount"];
/// How well-known kinds of secrets begin.
const SECRET_STARTS: [&str; 14] = [
    "sk-",
    "pk_live",
    "sk_live",
    "ghp_",
    "gho_",
    "ghs_",
    "ghu_",
    "github_pat_",
    "xoxb-",
    "xoxp-",
    "AKIA",
    "AIza",
    "glpat-",
    "-----BEGIN",
];
const MASK: &str = "\"[masked]\"";

/// `json`, which is valid, with the values of secrets replaced.
pub fn mask(json: &str) -> String {
    let bytes = json.as_bytes();
    let mut out = String::with_capacity(json.len());
    let mut kept = 0;
    let mut at = 0;
    // Whether the value that comes next belongs to a secret key.
    let mut secret = false;
    while at < bytes.len() {
        match bytes[at] {
            b'"' => {
                let end = end_of_string(bytes, at);
                let text = &json[at + 1..end.saturating_sub(1).max(at + 1)];
                if next_is_colon(bytes, end) {
                    secret = is_secret_key(text);
                } else {
                    if (secret && !text.is_empty()) || is_secret(text) {
                        out.push_str(&json[kept..at]);
                        out.push_str(MASK);
                        kept = end;
                    }
                    secret = false;
                }
                at = end;
            }
            b'0'..=b'9' | b'-' if secret => {
                let length = bytes[at..]
                    .iter()
                    .position(|byte| {
                        matches!(byte, b',' | b'}' | b']') || byte.is_ascii_whitespace()
                    })
                    .unwrap_or(bytes.len() - at);
                out.push_str(&json[kept..at]);
                out.push_str(MASK);
                at += length;
                kept = at;
                secret = false;
            }
            b'{' | b'[' if secret => {
                let end = end_of_group(bytes, at);
                out.push_str(&json[kept..at]);
                out.push_str(MASK);
                at = end;
                kept = end;
                secret = false;
            }
            b',' => {
                secret = false;
                at += 1;
            }
            _ => at += 1,
        }
    }
    out.push_str(&json[kept..]);
    out
}

/// After the closing quote of the string that opens at `at`.
fn end_of_string(bytes: &[u8], at: usize) -> usize {
    let mut at = at + 1;
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'\\' => at += 2,
            b'"' => return at + 1,
            _ => at += 1,
        }
    }
    bytes.len()
}

fn end_of_group(bytes: &[u8], mut at: usize) -> usize {
    let mut depth = 0_usize;
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'{' | b'[' => depth += 1,
            b'}' | b']' => {
                depth -= 1;
                if depth == 0 {
                    return at + 1;
                }
            }
            b'"' => {
                at = end_of_string(bytes, at);
                continue;
            }
            _ => {}
        }
        at += 1;
    }
    bytes.len()
}

fn next_is_colon(bytes: &[u8], at: usize) -> bool {
    bytes[at..].iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b':')
}

fn is_secret_key(key: &str) -> bool {
    let plain: String = key
        .chars()
        .filter(char::is_ascii_alphanumeric)
        .map(|c| c.to_ascii_lowercase())
        .collect();
    !HARMLESS_KEYS.contains(&plain.as_str())
        && SECRET_KEYS.iter().any(|secret| plain.contains(secret))
}

fn is_secret(text: &str) -> bool {
    let text = text.trim_start();
    let bearer = text
        .get(..7)
        .is_some_and(|start| start.eq_ignore_ascii_case("bearer "));
    // A JWT: three parts, the first being JSON.
    let jwt = text.starts_with("eyJ") && text.matches('.').count() == 2;
    let known = SECRET_STARTS.iter().any(|start| text.starts_with(start)) && text.len() >= 16;
    bearer || jwt || known || has_password(text)
}

/// `scheme://user:password@host`
fn has_password(text: &str) -> bool {
    text.split_once("://").is_some_and(|(_, rest)| {
        rest.split(['/', '?', '#'])
            .next()
            .and_then(|authority| authority.rsplit_once('@'))
            .is_some_and(|(user, _)| user.contains(':'))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_go_and_the_rest_stays() {
        let text = r#"{"a": 1.50, "apiKey" : "x\"y", "n":{"Access-Token":[1,{"b":"]"}],"pin_secret": 12,"z":"k"},"url":"postgres://u:p@h/d","h":["Bearer abc","sk-0123456789abcdef"],"progressToken":7,"j":"eyJh.b.c","password":"","token":null,"o":"k"}"#;
        let masked = mask(text);
        assert_eq!(
            masked,
            r#"{"a": 1.50, "apiKey" : "[masked]", "n":{"Access-Token":"[masked]","pin_secret": "[masked]","z":"k"},"url":"[masked]","h":["[masked]","[masked]"],"progressToken":7,"j":"[masked]","password":"","token":null,"o":"k"}"#
        );
        assert!(serde_json::from_str::<serde_json::Value>(&masked).is_ok());
    }
}
