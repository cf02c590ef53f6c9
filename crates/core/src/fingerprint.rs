//! Names for findings that survive edits elsewhere in the file.
//!
//! Made from the rule, the path, the function, the resource and the kinds of
//! the read and the write; never from a line number. Equal ones are told apart
//! by their order in the file.

/// 64-bit FNV-1a: stable for ever, which a std hasher does not promise.
fn fnv1a(parts: &[&str]) -> u64 {
    let mut hash: u64 = 0xcbf2_9ce4_8422_2325;
    for part in parts {
        for byte in part.bytes().chain(std::iter::once(0)) {
            hash ^= u64::from(byte);
            hash = hash.wrapping_mul(0x0000_0100_0000_01b3);
        }
    }
    hash
}

/// `parts`: rule, path, symbol, resource, kinds. `ordinal` counts equal ones.
pub fn fingerprint(parts: &[&str], ordinal: u32) -> String {
    let ordinal = ordinal.to_string();
    let mut all: Vec<&str> = parts.to_vec();
    all.push(&ordinal);
    format!("{:016x}", fnv1a(&all))
}

#[cfg(test)]
mod tests {
    use super::fingerprint;

    #[test]
    fn is_stable_and_separates_parts() {
        assert_eq!(fingerprint(&["a", "bc"], 0), fingerprint(&["a", "bc"], 0));
        assert_ne!(fingerprint(&["a", "bc"], 0), fingerprint(&["ab", "c"], 0));
        assert_ne!(fingerprint(&["a"], 0), fingerprint(&["a"], 1));
        // Baselines are files that users keep: this value never changes.
        assert_eq!(fingerprint(&["rule", "path"], 0), "981008668bce18f6");
    }
}
