//! Keys come from strangers: their length is bounded, and backends that keep them outside this process keep a digest.

use sha2::{Digest, Sha256};

use crate::{Error, Result};

const MAX_BYTES: usize = 4096;
const SHOWN_CHARS: usize = 80;

pub fn check(key: &str) -> Result<()> {
    if key.len() > MAX_BYTES {
        return Err(Error::Invalid(format!(
            "a key of {} bytes: {MAX_BYTES} at most",
            key.len()
        )));
    }
    Ok(())
}

/// A key as part of a message: short, and without control characters.
pub fn shown(key: &str) -> String {
    let mut shown: String = key
        .chars()
        .take(SHOWN_CHARS)
        .map(|c| if c.is_control() { '\u{fffd}' } else { c })
        .collect();
    if key.chars().nth(SHOWN_CHARS).is_some() {
        shown.push('…');
    }
    shown
}

pub fn digest(bytes: &[u8]) -> [u8; 32] {
    Sha256::digest(bytes).into()
}

/// A digest of a key, of a kind of thing, in a namespace. The parts cannot run into each other.
pub fn scoped(parts: &[&str]) -> [u8; 32] {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update((part.len() as u64).to_le_bytes());
        hash.update(part.as_bytes());
    }
    hash.finalize().into()
}

pub fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    bytes
        .iter()
        .flat_map(|byte| {
            [
                DIGITS[usize::from(byte >> 4)],
                DIGITS[usize::from(byte & 15)],
            ]
        })
        .map(char::from)
        .collect()
}
