//! Cuts into the bytes of a message; everything else stays as it was sent.

use super::{Raw, fields};

/// `whole` with some parts, which lie in it, replaced.
pub fn replace(whole: &[u8], parts: &[(Raw<'_>, &[u8])]) -> Vec<u8> {
    let mut cuts: Vec<(usize, usize, &[u8])> = parts
        .iter()
        .filter_map(|(part, with)| {
            let at = offset(whole, part.get())?;
            Some((at, at + part.get().len(), *with))
        })
        .collect();
    cuts.sort_unstable_by_key(|&(at, ..)| at);
    let grown: usize = cuts.iter().map(|(.., with)| with.len()).sum();
    let mut out = Vec::with_capacity(whole.len() + grown);
    let mut from = 0;
    for (at, end, with) in cuts {
        out.extend_from_slice(&whole[from..at]);
        out.extend_from_slice(with);
        from = end;
    }
    out.extend_from_slice(&whole[from..]);
    out
}

/// `whole` with one more entry in the `_meta` of `object`, which lies in it.
/// An entry of that name which is already there is the server's own: it stays.
pub fn insert_meta(whole: &[u8], object: Raw<'_>, key: &str, value: &str) -> Option<Vec<u8>> {
    let text = object.get();
    if !text.starts_with('{') {
        return None;
    }
    let ([meta], twice) = fields(text, ["_meta"]).ok()?;
    let key = serde_json::to_string(key).ok()?;
    let (at, entry) = match (meta, twice) {
        (_, Some(_)) => return None,
        (Some(meta), None) if meta.get().starts_with('{') => {
            if meta.get().contains(key.as_str()) {
                return None;
            }
            let comma = if is_empty(meta.get()) { "" } else { "," };
            (
                offset(whole, meta.get())? + 1,
                format!("{key}:{value}{comma}"),
            )
        }
        (Some(_), None) => return None,
        (None, None) => {
            let comma = if is_empty(text) { "" } else { "," };
            (
                offset(whole, text)? + 1,
                format!("\"_meta\":{{{key}:{value}}}{comma}"),
            )
        }
    };
    let mut out = Vec::with_capacity(whole.len() + entry.len());
    out.extend_from_slice(&whole[..at]);
    out.extend_from_slice(entry.as_bytes());
    out.extend_from_slice(&whole[at..]);
    Some(out)
}

fn is_empty(object: &str) -> bool {
    object[1..].trim_start().starts_with('}')
}

/// Where `part` lies in `whole`, both being views of one buffer.
fn offset(whole: &[u8], part: &str) -> Option<usize> {
    let at = (part.as_ptr() as usize).checked_sub(whole.as_ptr() as usize)?;
    (at + part.len() <= whole.len()).then_some(at)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::{Limits, Parsed, parse};

    fn with_meta(text: &str) -> Option<String> {
        let Ok(Parsed::One(message)) = parse(text.as_bytes(), &Limits::default()) else {
            panic!("{text}")
        };
        insert_meta(text.as_bytes(), message.result?, "k", "1")
            .map(|bytes| String::from_utf8(bytes).expect("UTF-8"))
    }

    #[test]
    fn only_the_entry_is_new() {
        let head = r#"{ "jsonrpc":"2.0", "id":1.50, "result" : "#;
        for (result, expected) in [
            ("{}", r#"{"_meta":{"k":1}}"#),
            ("{ \"a\":1e9}", "{\"_meta\":{\"k\":1}, \"a\":1e9}"),
            (r#"{"_meta":{}}"#, r#"{"_meta":{"k":1}}"#),
            (
                r#"{"x":1,"_meta":{"y":[]}}"#,
                r#"{"x":1,"_meta":{"k":1,"y":[]}}"#,
            ),
        ] {
            assert_eq!(
                with_meta(&format!("{head}{result}}}")),
                Some(format!("{head}{expected}}}"))
            );
        }
        assert_eq!(
            with_meta(&format!(r#"{head}{{"_meta":{{"k":2}}}}}}"#)),
            None
        );
        assert_eq!(with_meta(&format!("{head}[]}}")), None);
    }

    #[test]
    fn an_id_is_replaced_in_place() {
        let text = r#"{"jsonrpc":"2.0",  "id" : "a\"b" ,"method":"x","params":{"id":"a\"b"}}"#;
        let Ok(Parsed::One(message)) = parse(text.as_bytes(), &Limits::default()) else {
            panic!("{text}")
        };
        let out = replace(text.as_bytes(), &[(message.raw_id.expect("an id"), b"7")]);
        assert_eq!(out, text.replacen(r#""a\"b""#, "7", 1).into_bytes());
    }
}
