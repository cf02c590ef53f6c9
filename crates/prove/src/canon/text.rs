//! What in a text is not the same twice: times, durations, made-up ids.
//!
//! Ids are not blanked but renamed, each to its own name: two ids that are
//! equal stay equal, and two that differ stay different.

use std::collections::{BTreeSet, HashMap};

/// What is known about words before a text is looked at.
#[derive(Clone, Debug, Default)]
pub struct Words {
    /// Words that two identical runs have in common: no made-up ids.
    pub stable: BTreeSet<String>,
}

/// Gives ids their names, in the order in which they are met.
#[derive(Debug, Default)]
pub struct Names(HashMap<String, usize>);

impl Names {
    fn name(&mut self, word: &str) -> String {
        let next = self.0.len() + 1;
        let number = *self.0.entry(word.to_owned()).or_insert(next);
        format!("<id {number}>")
    }
}

const DAY_SECONDS: i64 = 24 * 60 * 60;

/// Whether a number is a moment near now, in seconds, milli-, micro- or nanoseconds.
pub fn is_moment(number: f64, now: i64) -> bool {
    [1.0, 1e3, 1e6, 1e9].iter().any(|unit| {
        let seconds = number / unit;
        (seconds - now as f64).abs() < (2 * DAY_SECONDS) as f64
    })
}

/// Calls `seen` for every word that could be a made-up id.
pub fn id_like(text: &str, mut seen: impl FnMut(&str)) {
    for piece in pieces(text) {
        if let Piece::Word(word) = piece
            && looks_made_up(word)
        {
            seen(word);
        }
    }
}

/// `text` without what differs from run to run. With `names`, ids are told
/// apart; without, they are all the same.
pub fn settle(text: &str, words: &Words, now: i64, mut names: Option<&mut Names>) -> String {
    let mut out = String::with_capacity(text.len());
    let mut pieces = pieces(text).peekable();
    while let Some(piece) = pieces.next() {
        match piece {
            Piece::Time => out.push_str("<time>"),
            Piece::Gap(gap) => out.push_str(gap),
            Piece::Word(word) => {
                if is_number(word) {
                    if word.parse().is_ok_and(|number| is_moment(number, now)) {
                        out.push_str("<time>");
                        continue;
                    }
                    let unit = match pieces.peek() {
                        Some(Piece::Gap(" ")) => {
                            let mut ahead = pieces.clone();
                            ahead.next();
                            matches!(ahead.next(), Some(Piece::Word(unit)) if is_unit(unit))
                        }
                        _ => false,
                    };
                    if unit {
                        out.push_str("<duration>");
                        pieces.next();
                        pieces.next();
                        continue;
                    }
                } else if is_duration(word) {
                    out.push_str("<duration>");
                    continue;
                }
                if looks_made_up(word) && !words.stable.contains(word) {
                    match names.as_deref_mut() {
                        Some(names) => out.push_str(&names.name(word)),
                        None => out.push_str("<id>"),
                    }
                } else {
                    out.push_str(word);
                }
            }
        }
    }
    out
}

/// Every word with a digit in it blanked: for texts that hold counts of things
/// that differ from run to run.
pub fn without_numbers(text: &str) -> String {
    let mut out = String::new();
    for piece in pieces(text) {
        match piece {
            Piece::Time => out.push_str("<time>"),
            Piece::Gap(gap) => out.push_str(gap),
            Piece::Word(word) if word.bytes().any(|byte| byte.is_ascii_digit()) => {
                out.push_str("<any>");
            }
            Piece::Word(word) => out.push_str(word),
        }
    }
    out
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Piece<'a> {
    Word(&'a str),
    Gap(&'a str),
    Time,
}

fn in_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_' || c == '-'
}

/// Cuts a text into times, words and what is between them.
fn pieces(text: &str) -> Pieces<'_> {
    Pieces { rest: text }
}

#[derive(Clone)]
struct Pieces<'a> {
    rest: &'a str,
}

impl<'a> Iterator for Pieces<'a> {
    type Item = Piece<'a>;

    fn next(&mut self) -> Option<Piece<'a>> {
        let first = self.rest.chars().next()?;
        if !in_word(first) {
            let end = self.rest.find(in_word).unwrap_or(self.rest.len());
            let (gap, rest) = self.rest.split_at(end);
            self.rest = rest;
            return Some(Piece::Gap(gap));
        }
        if let Some(length) = moment(self.rest.as_bytes()) {
            self.rest = &self.rest[length..];
            return Some(Piece::Time);
        }
        let mut end = self.rest.find(|c| !in_word(c)).unwrap_or(self.rest.len());
        // A fraction belongs to its number.
        if self.rest[..end].bytes().all(|byte| byte.is_ascii_digit())
            && let Some(fraction) = self.rest[end..].strip_prefix('.')
        {
            let digits = fraction
                .find(|c: char| !c.is_ascii_alphanumeric())
                .unwrap_or(fraction.len());
            if fraction
                .bytes()
                .next()
                .is_some_and(|byte| byte.is_ascii_digit())
            {
                end += 1 + digits;
            }
        }
        let (word, rest) = self.rest.split_at(end);
        self.rest = rest;
        Some(Piece::Word(word))
    }
}

/// The length of a date, a date with a time, or a time of day at the start.
fn moment(bytes: &[u8]) -> Option<usize> {
    if let Some(date) = shape(bytes, b"dddd-dd-dd") {
        let rest = &bytes[date..];
        let time = match rest.first() {
            Some(b'T' | b't' | b' ' | b'_') => time_of_day(&rest[1..]).map_or(0, |time| time + 1),
            _ => 0,
        };
        let end = date + time;
        // Part of a longer word: a name, not a moment.
        let next = bytes.get(end).copied().unwrap_or(b' ');
        return (!next.is_ascii_alphanumeric()).then_some(end);
    }
    time_of_day(bytes)
}

fn time_of_day(bytes: &[u8]) -> Option<usize> {
    let mut end = shape(bytes, b"dd:dd:dd").or_else(|| shape(bytes, b"dd-dd-dd"))?;
    if let Some(b'.' | b',' | b'-') = bytes.get(end) {
        let digits = bytes[end + 1..]
            .iter()
            .take_while(|byte| byte.is_ascii_digit())
            .count();
        if digits > 0 {
            end += 1 + digits;
        }
    }
    match bytes.get(end) {
        Some(b'Z' | b'z') => end += 1,
        Some(b'+' | b'-') => {
            let zone = &bytes[end + 1..];
            if let Some(length) = shape(zone, b"dd:dd").or_else(|| shape(zone, b"dddd")) {
                end += 1 + length;
            }
        }
        _ => {}
    }
    Some(end)
}

/// `d` stands for a digit.
fn shape(bytes: &[u8], pattern: &[u8]) -> Option<usize> {
    let head = bytes.get(..pattern.len())?;
    let fits = head.iter().zip(pattern).all(|(byte, wanted)| match wanted {
        b'd' => byte.is_ascii_digit(),
        wanted => byte == wanted,
    });
    fits.then_some(pattern.len())
}

fn is_number(word: &str) -> bool {
    word.bytes()
        .all(|byte| byte.is_ascii_digit() || byte == b'.')
        && word
            .bytes()
            .next()
            .is_some_and(|byte| byte.is_ascii_digit())
}

fn is_unit(word: &str) -> bool {
    matches!(
        word,
        "ms" | "s"
            | "sec"
            | "secs"
            | "second"
            | "seconds"
            | "millisecond"
            | "milliseconds"
            | "us"
            | "µs"
            | "ns"
    )
}

/// `12ms`, `0.5s`.
fn is_duration(word: &str) -> bool {
    let digits = word
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(word.len());
    digits > 0 && is_unit(&word[digits..])
}

/// Letters and digits mixed, or a long number: nothing that a person types.
fn looks_made_up(word: &str) -> bool {
    let digits = word.bytes().filter(u8::is_ascii_digit).count();
    let letters = word.bytes().filter(u8::is_ascii_alphabetic).count();
    let bare = digits + letters;
    (bare >= 6 && digits > 0 && letters > 0) || (bare >= 6 && letters == 0) || is_random(word)
}

/// Mixed case within a long word: base64, nanoid.
fn is_random(word: &str) -> bool {
    if word.len() < 12 {
        return false;
    }
    let changes = word
        .as_bytes()
        .windows(2)
        .filter(|pair| pair[0].is_ascii_lowercase() && pair[1].is_ascii_uppercase())
        .count();
    changes * 4 >= word.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: i64 = 1_790_000_000;

    fn told(text: &str) -> String {
        settle(text, &Words::default(), NOW, Some(&mut Names::default()))
    }

    #[test]
    fn times_durations_and_ids_go_and_the_rest_stays() {
        for (text, expected) in [
            ("at 2026-11-16T05:53:24.123Z ok", "at <time> ok"),
            ("on 2026-11-16, done", "on <time>, done"),
            ("[05:53:24.1] x", "[<time>] x"),
            ("took 12ms or 3 seconds", "took <duration> or <duration>"),
            ("3 notes, 12 seats", "3 notes, 12 seats"),
            ("made 1790000123456", "made <time>"),
            ("a 0b8e7c1e-5d9a-4c3e-9a57-0f8f5c9d2a11 b", "a <id 1> b"),
            ("x1y2z3 x1y2z3 x1y2z4", "<id 1> <id 1> <id 2>"),
            ("added alpha to list-1", "added alpha to list-1"),
            ("price 12.50 of 100", "price 12.50 of 100"),
        ] {
            assert_eq!(told(text), expected);
        }
    }

    #[test]
    fn words_known_to_be_stable_stay() {
        let words = Words {
            stable: BTreeSet::from(["abc12345".to_owned()]),
        };
        let text = settle("abc12345 abc12346", &words, NOW, None);
        assert_eq!(text, "abc12345 <id>");
    }
}
