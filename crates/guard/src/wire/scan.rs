//! JSON text, walked through without building anything.
//!
//! A message is looked at twice on its way, and most of it is of no interest:
//! what a general parser does for every value would be half of the guard's
//! work. The grammar is checked in full, since what the guard lets through
//! must mean one thing to every parser behind it.

use std::borrow::Cow;

use super::Fault;

/// A value as it stands in a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Raw<'a>(&'a str);

impl<'a> Raw<'a> {
    /// Takes text that is known to be one value.
    pub fn new(text: &'a str) -> Self {
        Self(text)
    }

    pub fn get(self) -> &'a str {
        self.0
    }

    /// What a string says; `None` if it is no string.
    pub fn text(self) -> Option<Cow<'a, str>> {
        let inner = self.0.strip_prefix('"')?.strip_suffix('"')?;
        if memchr::memchr(b'\\', inner.as_bytes()).is_none() {
            return Some(Cow::Borrowed(inner));
        }
        serde_json::from_str::<String>(self.0).ok().map(Cow::Owned)
    }
}

/// The values of some keys, in the order in which they were asked for, and one
/// of the keys that stands twice.
pub type Fields<'a, const N: usize> = ([Option<Raw<'a>>; N], Option<&'static str>);

/// Parts of messages have passed the limit of their message; this one only
/// keeps the stack within bounds.
const DEEPEST: usize = 1000;

/// The values of some keys of an object.
pub fn fields<'a, const N: usize>(
    text: &'a str,
    names: [&'static str; N],
) -> Result<Fields<'a, N>, Fault> {
    let mut scanner = Scanner::new(text, DEEPEST);
    let found = scanner.fields(names);
    scanner.finish(found)
}

/// What is wrong with a text; where, the scanner knows. Small, because it is
/// looked for after every step.
#[derive(Clone, Copy, Debug)]
pub(super) enum Bad {
    Object,
    Array,
    Value,
    Key,
    Colon,
    Comma,
    Digit,
    Quote,
    Control,
    Escape,
    End,
    TooDeep,
}

impl Bad {
    fn text(self) -> &'static str {
        match self {
            Self::Object => "expected an object",
            Self::Array => "expected an array",
            Self::Value => "expected a value",
            Self::Key => "expected a key",
            Self::Colon => "expected a colon",
            Self::Comma => "expected a comma or the end of it",
            Self::Digit => "expected a digit",
            Self::Quote => "expected a closing quote",
            Self::Control => "a control character in a string",
            Self::Escape => "an escape that does not exist",
            Self::End => "expected the end",
            Self::TooDeep => "nested too deep",
        }
    }
}

pub(super) struct Scanner<'a> {
    text: &'a str,
    at: usize,
    depth: usize,
    deepest: usize,
}

const LOW: u64 = 0x0101_0101_0101_0101;
const HIGH: u64 = 0x8080_8080_8080_8080;

/// The high bit of each byte that is zero; above the lowest of them it may err.
fn zeros(word: u64) -> u64 {
    word.wrapping_sub(LOW) & !word & HIGH
}

/// From `at` to the next quote, backslash or control character.
#[inline]
fn plain_text(bytes: &[u8], mut at: usize) -> usize {
    while let Some(chunk) = bytes.get(at..).and_then(<[u8]>::first_chunk::<8>) {
        let word = u64::from_le_bytes(*chunk);
        let quote = zeros(word ^ (LOW * b'"' as u64));
        let backslash = zeros(word ^ (LOW * b'\\' as u64));
        let control = word.wrapping_sub(LOW * 0x20) & !word & HIGH;
        let found = quote | backslash | control;
        if found != 0 {
            return at + (found.trailing_zeros() / 8) as usize;
        }
        at += 8;
    }
    while matches!(bytes.get(at), Some(byte) if *byte >= 0x20 && *byte != b'"' && *byte != b'\\') {
        at += 1;
    }
    at
}

impl<'a> Scanner<'a> {
    pub(super) fn new(text: &'a str, deepest: usize) -> Self {
        Self {
            text,
            at: 0,
            depth: 0,
            deepest,
        }
    }

    /// What was found, if it was all there is in the text.
    pub(super) fn finish<T>(&mut self, found: Result<T, Bad>) -> Result<T, Fault> {
        let bad = match (found, self.next()) {
            (Ok(found), None) => return Ok(found),
            (Ok(_), Some(_)) => Bad::End,
            (Err(Bad::TooDeep), _) => return Err(Fault::TooDeep(self.deepest)),
            (Err(bad), _) => bad,
        };
        Err(Fault::Syntax(match self.at < self.text.len() {
            true => format!("{} at byte {}", bad.text(), self.at),
            false => format!("{}, but the text ends", bad.text()),
        }))
    }

    /// The values of some keys of an object.
    pub(super) fn fields<const N: usize>(
        &mut self,
        names: [&'static str; N],
    ) -> Result<Fields<'a, N>, Bad> {
        let mut values = [None; N];
        let mut twice = None;
        self.object(|scanner, key| {
            let Some(at) = names.iter().position(|name| *name == key) else {
                return scanner.skip();
            };
            if values[at].replace(scanner.value()?).is_some() {
                twice = Some(names[at]);
            }
            Ok(())
        })?;
        Ok((values, twice))
    }

    fn byte(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    /// The next byte that is no white space; it is not taken.
    #[inline]
    pub(super) fn next(&mut self) -> Option<u8> {
        match self.byte() {
            Some(byte) if byte > b' ' => Some(byte),
            _ => self.after_space(),
        }
    }

    #[cold]
    fn after_space(&mut self) -> Option<u8> {
        loop {
            match self.byte() {
                Some(b' ' | b'\t' | b'\n' | b'\r') => self.at += 1,
                other => return other,
            }
        }
    }

    fn enter(&mut self) -> Result<(), Bad> {
        self.at += 1;
        self.depth += 1;
        if self.depth > self.deepest {
            return Err(Bad::TooDeep);
        }
        Ok(())
    }

    fn leave(&mut self) {
        self.at += 1;
        self.depth -= 1;
    }

    /// Goes through an object; `each` steps over the value of the key.
    #[inline]
    pub(super) fn object(
        &mut self,
        mut each: impl FnMut(&mut Self, &str) -> Result<(), Bad>,
    ) -> Result<(), Bad> {
        self.members(|scanner, begin, end, plain| {
            let text = scanner.text;
            if plain {
                return each(scanner, &text[begin + 1..end - 1]);
            }
            let key = serde_json::from_str::<String>(&text[begin..end]).map_err(|_| Bad::Key)?;
            each(scanner, &key)
        })
    }

    /// The same, with the places of keys as they are written, and whether that is without escapes.
    #[inline]
    fn members(
        &mut self,
        mut each: impl FnMut(&mut Self, usize, usize, bool) -> Result<(), Bad>,
    ) -> Result<(), Bad> {
        if self.next() != Some(b'{') {
            return Err(Bad::Object);
        }
        self.enter()?;
        if self.next() == Some(b'}') {
            self.leave();
            return Ok(());
        }
        loop {
            if self.next() != Some(b'"') {
                return Err(Bad::Key);
            }
            let begin = self.at;
            let plain = self.string()?;
            let end = self.at;
            if self.next() != Some(b':') {
                return Err(Bad::Colon);
            }
            self.at += 1;
            each(self, begin, end, plain)?;
            match self.next() {
                Some(b',') => self.at += 1,
                Some(b'}') => {
                    self.leave();
                    return Ok(());
                }
                _ => return Err(Bad::Comma),
            }
        }
    }

    #[inline]
    fn elements(&mut self, mut each: impl FnMut(&mut Self) -> Result<(), Bad>) -> Result<(), Bad> {
        if self.next() != Some(b'[') {
            return Err(Bad::Array);
        }
        self.enter()?;
        if self.next() == Some(b']') {
            self.leave();
            return Ok(());
        }
        loop {
            each(self)?;
            match self.next() {
                Some(b',') => self.at += 1,
                Some(b']') => {
                    self.leave();
                    return Ok(());
                }
                _ => return Err(Bad::Comma),
            }
        }
    }

    pub(super) fn array(&mut self, mut each: impl FnMut(Raw<'a>)) -> Result<(), Bad> {
        self.elements(|scanner| scanner.value().map(&mut each))
    }

    /// Steps over a value.
    pub(super) fn value(&mut self) -> Result<Raw<'a>, Bad> {
        self.next();
        let begin = self.at;
        self.skip()?;
        Ok(self.since(begin))
    }

    /// Steps over a value that nobody wants to see.
    pub(super) fn skip(&mut self) -> Result<(), Bad> {
        match self.next() {
            Some(b'"') => self.string().map(|_| ()),
            // Keys that do not matter are not even unescaped.
            Some(b'{') => self.members(|scanner, _, _, _| scanner.skip()),
            Some(b'[') => self.elements(Self::skip),
            Some(b'-' | b'0'..=b'9') => self.number(),
            Some(b't') => self.word("true"),
            Some(b'f') => self.word("false"),
            Some(b'n') => self.word("null"),
            _ => Err(Bad::Value),
        }
    }

    /// Where the scanner is; with [`Self::since`], what it has stepped over.
    pub(super) fn place(&self) -> usize {
        self.at
    }

    pub(super) fn since(&self, begin: usize) -> Raw<'a> {
        Raw(&self.text[begin..self.at])
    }

    fn word(&mut self, word: &'static str) -> Result<(), Bad> {
        if !self.text.as_bytes()[self.at..].starts_with(word.as_bytes()) {
            return Err(Bad::Value);
        }
        self.at += word.len();
        Ok(())
    }

    fn digits(&mut self) -> Result<(), Bad> {
        let begin = self.at;
        while matches!(self.byte(), Some(b'0'..=b'9')) {
            self.at += 1;
        }
        if self.at == begin {
            return Err(Bad::Digit);
        }
        Ok(())
    }

    fn number(&mut self) -> Result<(), Bad> {
        if self.byte() == Some(b'-') {
            self.at += 1;
        }
        if self.byte() == Some(b'0') {
            self.at += 1;
        } else {
            self.digits()?;
        }
        if self.byte() == Some(b'.') {
            self.at += 1;
            self.digits()?;
        }
        if matches!(self.byte(), Some(b'e' | b'E')) {
            self.at += 1;
            if matches!(self.byte(), Some(b'+' | b'-')) {
                self.at += 1;
            }
            self.digits()?;
        }
        Ok(())
    }

    /// Steps over a string, from its first quote; true if it has no escapes.
    #[inline]
    fn string(&mut self) -> Result<bool, Bad> {
        self.at = plain_text(self.text.as_bytes(), self.at + 1);
        if self.byte() == Some(b'"') {
            self.at += 1;
            return Ok(true);
        }
        self.rest_of_string().map(|()| false)
    }

    fn rest_of_string(&mut self) -> Result<(), Bad> {
        loop {
            match self.byte() {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(());
                }
                Some(b'\\') => {
                    self.at += 1;
                    self.escape()?;
                }
                Some(_) => return Err(Bad::Control),
                None => return Err(Bad::Quote),
            }
            self.at = plain_text(self.text.as_bytes(), self.at);
        }
    }

    fn escape(&mut self) -> Result<(), Bad> {
        match self.byte() {
            Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => self.at += 1,
            Some(b'u') => {
                self.at += 1;
                for _ in 0..4 {
                    if !self.byte().is_some_and(|byte| byte.is_ascii_hexdigit()) {
                        return Err(Bad::Escape);
                    }
                    self.at += 1;
                }
            }
            _ => return Err(Bad::Escape),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde::de::IgnoredAny;

    use super::*;

    /// The grammar is that of a general parser.
    #[test]
    fn agrees_with_a_parser() {
        let values = [
            "null",
            "nul",
            "true",
            "tru",
            "false",
            "0",
            "-0",
            "01",
            "-",
            "1.",
            "1.5",
            ".5",
            "1e5",
            "1E+05",
            "1e",
            "1e-",
            "-1.25e-3",
            "1x",
            "\"\"",
            "\"a",
            "\"\\n\"",
            "\"\\x\"",
            "\"\\u00e4\"",
            "\"\\u00g4\"",
            "\"\\ud800\"",
            "\"a\tb\"",
            "\"12345678\\\"90\"",
            "\"123456\u{e4}\u{20ac}\u{1f600}\"",
            "\"1234567\u{7f}\"",
            "[]",
            "[ ]",
            "[1,]",
            "[,1]",
            "[1 2]",
            "[1,[2,{\"a\":[]}]]",
            "{}",
            "{ }",
            "{\"a\":1,}",
            "{\"a\"}",
            "{\"a\":}",
            "{a:1}",
            "{\"a\":1 \"b\":2}",
            "{\"a\":{\"a\":[{},{\"b\":null}]}}",
            "[1]]",
            "",
            " ",
            "nan",
            "\u{feff}1",
        ];
        for value in values {
            for text in [
                format!("{{\"k\":{value}}}"),
                format!(" {{ \"k\" :\t{value} , \"l\" : \"x\" }} \r\n"),
                format!("{{\"k\":{value}"),
            ] {
                let ours = fields(&text, ["k"]).is_ok();
                let theirs = serde_json::from_str::<IgnoredAny>(&text).is_ok();
                assert_eq!(ours, theirs, "{text:?}");
            }
        }
    }

    #[test]
    fn values_are_as_they_stand() {
        let text = r#"{ "a" : [1, 2.50] , "b":"x\"y", "c":{"a":3}, "\u0064":null }"#;
        let (found, twice) = fields(text, ["a", "b", "c", "d", "e"]).expect("an object");
        let found = found.map(|value| value.map(Raw::get));
        assert_eq!(
            found,
            [
                Some("[1, 2.50]"),
                Some(r#""x\"y""#),
                Some(r#"{"a":3}"#),
                Some("null"),
                None
            ]
        );
        assert_eq!(twice, None);
    }

    #[test]
    fn depth_is_counted_from_the_outside() {
        let nested =
            |levels: usize| format!("{{\"a\":{}{}}}", "[".repeat(levels), "]".repeat(levels));
        let scan = |levels| {
            let text = nested(levels);
            let mut scanner = Scanner::new(&text, 10);
            let found = scanner.value().map(|_| ());
            scanner.finish(found)
        };
        assert_eq!(scan(9), Ok(()));
        assert_eq!(scan(10), Err(Fault::TooDeep(10)));
    }
}
