//! The text without the insides of its test modules, and without its documentation.
//!
//! They are a third of many files, they are not part of the product, and
//! parsing is most of what a file costs: a line of documentation is an
//! attribute of six tokens. Every place stays where it was.

use std::borrow::Cow;

use crate::depth::{Piece, Pieces};

const MARK: &str = "#[cfg(test)]";

/// Pieces of an attribute, at most: no text makes us look far ahead again and again.
const LONGEST: usize = 100;

/// Blanks the bodies of `#[cfg(test)] mod … { … }` and documentation. Lines stay.
pub(crate) fn product(text: &str) -> Cow<'_, str> {
    if ![MARK, "///", "//!"].iter().any(|mark| text.contains(mark)) {
        return Cow::Borrowed(text);
    }
    let without = left_out(text.as_bytes());
    if without.is_empty() {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    let mut from = 0;
    for (start, end) in without {
        out.push_str(text.get(from..start).unwrap_or_default());
        let body = text.get(start..end).unwrap_or_default();
        out.extend(body.bytes().map(|b| if b == b'\n' { '\n' } else { ' ' }));
        from = end;
    }
    out.push_str(text.get(from..).unwrap_or_default());
    Cow::Owned(out)
}

/// Documentation, and what stands between the braces of test modules; first to last.
fn left_out(bytes: &[u8]) -> Vec<(usize, usize)> {
    let mut found = Vec::new();
    let mut pieces = Pieces::new(bytes);
    while let Some((piece, start, end)) = pieces.next() {
        if piece == Piece::Comment && is_documentation(&bytes[start..end]) {
            found.push((start, end));
            continue;
        }
        let is_mark = piece == Piece::Open
            && start > 0
            && bytes
                .get(start - 1..)
                .is_some_and(|rest| rest.starts_with(MARK.as_bytes()));
        if is_mark
            && close(&mut pieces).is_some()
            && let Some(start) = module_body(bytes, &mut pieces)
            && let Some(end) = close(&mut pieces)
        {
            found.push((start, end));
        }
    }
    found
}

fn is_documentation(comment: &[u8]) -> bool {
    match comment {
        [b'/', b'/', b'/', rest @ ..] => rest.first() != Some(&b'/'),
        [b'/', b'/' | b'*', b'!', ..] => true,
        _ => false,
    }
}

/// Goes behind the bracket that closes the one that was just opened; where that is.
fn close(pieces: impl Iterator<Item = (Piece, usize, usize)>) -> Option<usize> {
    let mut depth = 1usize;
    for (piece, start, _) in pieces {
        match piece {
            Piece::Open => depth += 1,
            Piece::Close => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return Some(start);
        }
    }
    None
}

/// Past more attributes and `pub(crate) mod name {`; the position behind the brace.
/// Stops before whatever else stands there.
fn module_body(bytes: &[u8], pieces: &mut Pieces<'_>) -> Option<usize> {
    let mut ahead = pieces.clone();
    let mut is_module = false;
    while let Some((piece, start, end)) = ahead.next() {
        match (piece, bytes.get(start..end)?) {
            (Piece::Comment, _) => {}
            (Piece::Open, b"{") if is_module => {
                *pieces = ahead;
                return Some(end);
            }
            // An attribute, or `pub(crate)`.
            (Piece::Open, b"[" | b"(") if !is_module => {
                close(ahead.by_ref().take(LONGEST))?;
            }
            (Piece::Text, b"mod") => is_module = true,
            (Piece::Text, b"pub") => {}
            (Piece::Text, _) if is_module => {}
            _ => return None,
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_insides_of_test_modules_go() {
        let text = "fn a() {}\n#[cfg(test)]\n#[allow(x)]\npub(crate) mod tests {\n    fn b() { \"}\"; }\n}\nfn c() {}\n";
        let left = product(text);
        assert_eq!(left.len(), text.len());
        assert_eq!(left.lines().count(), text.lines().count());
        assert!(left.contains("fn a() {}") && left.contains("fn c() {}"));
        assert!(!left.contains("fn b"));
        assert!(left.contains("mod tests {\n"));
    }

    #[test]
    fn documentation_goes() {
        let text = "//! Ä\n/// a {\nfn a() { \"/// b\"; }\n/*! c */ // d\n//// e\n";
        let left = product(text);
        assert_eq!(
            left,
            "      \n       \nfn a() { \"/// b\"; }\n         // d\n//// e\n"
        );
    }

    #[test]
    fn what_is_no_test_module_stays() {
        for text in [
            "#[cfg(test)]\nfn helper() {}\nmod real { fn a() {} }",
            "#[cfg(test)]\nmod tests;\nmod real { fn a() {} }",
            "#[cfg(not(test))]\nmod real { fn a() {} }",
            "const S: &str = \"#[cfg(test)] mod t { fn a() {} }\";",
            "// #[cfg(test)]\nmod real { fn a() {} }",
            "#[cfg(test)]\nmod tests { fn never_closed() {",
        ] {
            assert_eq!(product(text), text);
        }
    }
}
