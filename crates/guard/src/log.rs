//! What happened, one JSON object a line, for people and for machines.

use std::io::Write as _;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

use serde_json::{Map, Value};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Level {
    Error,
    Warn,
    Info,
    Debug,
}

impl Level {
    fn as_str(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warn => "warn",
            Self::Info => "info",
            Self::Debug => "debug",
        }
    }
}

static LEVEL: AtomicU8 = AtomicU8::new(Level::Warn as u8);

/// Said once, when the guard starts.
pub fn set_level(level: Level) {
    LEVEL.store(level as u8, Ordering::Relaxed);
}

pub fn enabled(level: Level) -> bool {
    level as u8 <= LEVEL.load(Ordering::Relaxed)
}

/// A server or client that provokes more lines a second is not worth more.
const MOST_PER_SECOND: u64 = 200;
/// The present second, and the lines written in it.
static SECOND: AtomicU64 = AtomicU64::new(0);
static WRITTEN: AtomicU64 = AtomicU64::new(0);

/// False if this second has had its lines. Several threads may let a few more through.
fn may_write(second: u64) -> bool {
    if SECOND.swap(second, Ordering::Relaxed) != second {
        WRITTEN.store(0, Ordering::Relaxed);
    }
    WRITTEN.fetch_add(1, Ordering::Relaxed) < MOST_PER_SECOND
}

/// Writes a line to standard error. Nobody may be listening; that is no failure.
pub fn write(level: Level, event: &str, fields: Value) {
    let now = jiff::Timestamp::now();
    if !may_write(now.as_second().unsigned_abs()) {
        return;
    }
    let mut line = Map::new();
    line.insert("time".to_owned(), now.to_string().into());
    line.insert("level".to_owned(), level.as_str().into());
    line.insert("event".to_owned(), event.into());
    if let Value::Object(fields) = fields {
        line.extend(fields);
    }
    let mut text = Value::Object(line).to_string();
    text.push('\n');
    let _ = std::io::stderr().lock().write_all(text.as_bytes());
}

/// `log!(Warn, "server-died", server = name, code = 1)`
macro_rules! log {
    ($level:ident, $event:literal $(, $key:ident = $value:expr)* $(,)?) => {
        if $crate::log::enabled($crate::log::Level::$level) {
            $crate::log::write(
                $crate::log::Level::$level,
                $event,
                serde_json::json!({ $(stringify!($key): $value),* }),
            );
        }
    };
}
pub(crate) use log;
