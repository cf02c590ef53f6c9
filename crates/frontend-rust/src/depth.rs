//! How much stack a file needs, before it is parsed.
//!
//! The parser, the tree's drop and the lowering recurse over nesting, and so
//! would end the whole process on hostile or generated input. A linear look at
//! the bytes bounds the nesting from above: every bracket is a level, and so is
//! every operator, dot or keyword that can nest without one, until the
//! statement ends. Ordinary files are then lowered where they are, others on a
//! thread with a stack that is large enough, and beyond [`MAX_NESTING`] the
//! file is refused.

use toctou_core::frontend::LowerError;

pub(crate) const MAX_NESTING: u32 = 4_000;
/// What fits on any thread's stack (2 MB).
const NESTING_HERE: u32 = if cfg!(debug_assertions) { 6 } else { 90 };
const BASE: usize = 4 << 20;
/// The parser's frames are large, and larger if nothing is optimised.
const PER_LEVEL: usize = if cfg!(debug_assertions) {
    200 << 10
} else {
    24 << 10
};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Stack {
    Here,
    Own(usize),
}

pub(crate) fn stack(text: &str) -> Result<Stack, LowerError> {
    let (nesting, line) = nesting(text);
    if nesting > MAX_NESTING {
        return Err(LowerError {
            message: format!("nested deeper than {MAX_NESTING} levels"),
            line,
        });
    }
    Ok(if nesting <= NESTING_HERE {
        Stack::Here
    } else {
        Stack::Own(BASE + nesting as usize * PER_LEVEL)
    })
}

/// The deepest nesting that the text can have, and the line of it.
fn nesting(text: &str) -> (u32, u32) {
    let bytes = text.as_bytes();
    // Levels without brackets, for each open bracket.
    let mut open: Vec<u32> = vec![0];
    let mut total = 0u32;
    let (mut deepest, mut at) = (0, 0);
    for (piece, start, end) in Pieces::new(bytes) {
        match piece {
            Piece::Open => {
                // `x[0][0]`, `f()()`: what stands before is nested in what follows.
                if bytes.get(start) != Some(&b'{')
                    && let Some(last) = open.last_mut()
                {
                    *last += 1;
                    total += 1;
                }
                open.push(0);
                total += 1;
            }
            Piece::Close => {
                if open.len() > 1 {
                    total -= open.pop().unwrap_or(0) + 1;
                }
                // A block ends a statement; `if {} else if {}` goes on.
                if bytes.get(start) == Some(&b'}') && !goes_on(bytes, end) {
                    total -= open.last().copied().unwrap_or(0);
                    if let Some(last) = open.last_mut() {
                        *last = 0;
                    }
                }
            }
            Piece::End => {
                total -= open.last().copied().unwrap_or(0);
                if let Some(last) = open.last_mut() {
                    *last = 0;
                }
            }
            Piece::Link => {
                if let Some(last) = open.last_mut() {
                    *last += 1;
                }
                total += 1;
            }
            Piece::Comment | Piece::Text => {}
        }
        if total > deepest {
            (deepest, at) = (total, start);
        }
    }
    let line = bytes
        .get(..at)
        .unwrap_or_default()
        .iter()
        .filter(|&&b| b == b'\n')
        .count() as u32
        + 1;
    (deepest, line)
}

/// Does what stands behind a block belong to the same statement?
fn goes_on(bytes: &[u8], from: usize) -> bool {
    let rest = bytes.get(from..).unwrap_or_default();
    let rest = rest.trim_ascii_start();
    rest.starts_with(b"else") || matches!(rest.first(), Some(b'.' | b'?' | b')' | b']' | b','))
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Piece {
    Open,
    Close,
    /// `;` or `,`
    End,
    /// Something that can nest without a bracket.
    Link,
    Comment,
    /// A string, a character, a word.
    Text,
}

/// The text in pieces: brackets, ends of statements, comments, strings.
#[derive(Clone)]
pub(crate) struct Pieces<'t> {
    bytes: &'t [u8],
    at: usize,
}

impl<'t> Pieces<'t> {
    pub(crate) fn new(bytes: &'t [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    fn peek(&self, ahead: usize) -> u8 {
        self.bytes.get(self.at + ahead).copied().unwrap_or(0)
    }

    /// The position behind the first `needle` from here on.
    fn behind(&self, from: usize, needle: &[u8]) -> usize {
        let rest = self.bytes.get(from..).unwrap_or_default();
        rest.windows(needle.len())
            .position(|w| w == needle)
            .map_or(self.bytes.len(), |i| from + i + needle.len())
    }

    fn block_comment(&self) -> usize {
        let mut depth = 0usize;
        let mut at = self.at;
        while at < self.bytes.len() {
            match (self.bytes[at], self.bytes.get(at + 1)) {
                (b'/', Some(b'*')) => {
                    depth += 1;
                    at += 2;
                }
                (b'*', Some(b'/')) => {
                    depth -= 1;
                    at += 2;
                    if depth == 0 {
                        return at;
                    }
                }
                _ => at += 1,
            }
        }
        at
    }

    fn string(&self, from: usize) -> usize {
        let mut at = from + 1;
        while let Some(b) = self.bytes.get(at) {
            match b {
                b'\\' => at += 2,
                b'"' => return at + 1,
                _ => at += 1,
            }
        }
        self.bytes.len()
    }

    /// `r#"…"#`, `br"…"`: the position behind it, if it is one.
    fn raw_string(&self) -> Option<usize> {
        let mut at = self.at;
        if matches!(self.bytes.get(at), Some(b'b' | b'c')) {
            at += 1;
        }
        if self.bytes.get(at) != Some(&b'r') {
            return None;
        }
        at += 1;
        let start = at;
        while self.bytes.get(at) == Some(&b'#') {
            at += 1;
        }
        let hashes = at - start;
        if self.bytes.get(at) != Some(&b'"') {
            return None;
        }
        let mut needle = vec![b'"'];
        needle.resize(hashes + 1, b'#');
        Some(self.behind(at + 1, &needle))
    }

    /// A character, or else the name of a lifetime.
    fn quote(&self) -> usize {
        if self.peek(1) == b'\\' {
            let mut at = self.at + 3;
            while let Some(b) = self.bytes.get(at) {
                if *b == b'\'' {
                    return at + 1;
                }
                if *b == b'\n' || at > self.at + 16 {
                    break;
                }
                at += 1;
            }
            return self.at + 2;
        }
        // One character of up to four bytes, and a quote.
        for length in 1..=4 {
            if self.peek(1 + length) == b'\'' && self.peek(1) != b'\'' {
                let inside = &self.bytes[self.at + 1..self.at + 1 + length];
                if std::str::from_utf8(inside).is_ok_and(|s| s.chars().count() == 1) {
                    return self.at + 2 + length;
                }
            }
        }
        self.at + 1
    }
}

impl Iterator for Pieces<'_> {
    type Item = (Piece, usize, usize);

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let start = self.at;
            let b = *self.bytes.get(start)?;
            let (piece, end) = match b {
                b'(' | b'[' | b'{' => (Piece::Open, start + 1),
                b')' | b']' | b'}' => (Piece::Close, start + 1),
                b';' | b',' => (Piece::End, start + 1),
                b'/' if self.peek(1) == b'/' => {
                    let rest = &self.bytes[start..];
                    let length = rest.iter().position(|&b| b == b'\n').unwrap_or(rest.len());
                    (Piece::Comment, start + length)
                }
                b'/' if self.peek(1) == b'*' => (Piece::Comment, self.block_comment()),
                b'"' => (Piece::Text, self.string(start)),
                b'\'' => (Piece::Text, self.quote()),
                b'a'..=b'z' | b'A'..=b'Z' | b'_' | 0x80.. => {
                    if let Some(end) = self.raw_string() {
                        (Piece::Text, end)
                    } else {
                        let mut end = start + 1;
                        while matches!(
                            self.bytes.get(end),
                            Some(b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'_' | 0x80..)
                        ) {
                            end += 1;
                        }
                        let word = &self.bytes[start..end];
                        let nests = matches!(
                            word,
                            b"else"
                                | b"return"
                                | b"break"
                                | b"as"
                                | b"move"
                                | b"yield"
                                | b"dyn"
                                | b"impl"
                                | b"if"
                                | b"in"
                                | b"mut"
                                | b"const"
                                | b"fn"
                                | b"for"
                        );
                        (if nests { Piece::Link } else { Piece::Text }, end)
                    }
                }
                b'.' | b'?' | b'!' | b'&' | b'*' | b'-' | b'+' | b'<' | b'>' | b'=' | b'|'
                | b'^' | b'%' | b'/' | b'@' | b':' => (Piece::Link, start + 1),
                _ => {
                    self.at += 1;
                    continue;
                }
            };
            self.at = end.max(start + 1);
            return Some((piece, start, self.at));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ordinary_code_is_shallow() {
        let text = "use a::b;\nimpl X { async fn f(&self, x: Arc<Mutex<Map<K, V>>>) -> Result<()> {\n  \
                    let y = g(x.a.b, format!(\"t{x}\")).await?;\n  if y { return Ok(()) } else if x { h() }\n match y { A => 1, B => 2 }; }}\n"
            .repeat(500);
        let (nesting, _) = nesting(&text);
        assert!(nesting < 90, "{nesting}");
        if !cfg!(debug_assertions) {
            assert_eq!(stack(&text), Ok(Stack::Here));
        }
    }

    #[test]
    fn strings_and_comments_do_not_nest() {
        let text = r####"fn f() { let a = "((((("; let b = r#"((((""#; let c = '('; let d: &'a str = x; /* (((( /* (( */ */ } // (((("####;
        assert!(nesting(text).0 < 16, "{}", nesting(text).0);
    }

    #[test]
    fn deep_code_gets_its_own_stack_and_very_deep_code_is_refused() {
        let deep = |n: usize| format!("fn f() {{ {}1{} }}", "(".repeat(n), ")".repeat(n));
        assert!(matches!(stack(&deep(500)), Ok(Stack::Own(_))));
        assert!(stack(&deep(20_000)).is_err());
        let operators = format!("fn f() {{ {}x; }}", "!".repeat(20_000));
        assert!(stack(&operators).is_err());
    }
}
