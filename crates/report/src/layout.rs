//! Text in columns: how wide it is, where it breaks, how it is filled up.

use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

/// Columns that `text` takes on a terminal.
pub fn width(text: &str) -> usize {
    text.width()
}

pub(crate) fn char_width(c: char) -> usize {
    c.width().unwrap_or(0)
}

/// `text`, filled up with spaces.
pub fn pad(text: &str, columns: usize) -> String {
    let missing = columns.saturating_sub(width(text));
    format!("{text}{}", " ".repeat(missing))
}

/// Breaks at spaces, and inside a word only when it is wider than a line.
pub fn wrap(text: &str, columns: usize) -> Vec<String> {
    wrap_hanging(text, columns, columns)
}

/// Like [`wrap`], with a first line of another width.
pub(crate) fn wrap_hanging(text: &str, first: usize, rest: usize) -> Vec<String> {
    let mut lines = Vec::new();
    let mut current = String::new();
    let mut used = 0;
    for word in text.split_whitespace() {
        let mut word = word;
        loop {
            let room = if lines.is_empty() { first } else { rest }.max(1);
            let space = usize::from(used > 0);
            let wide = width_of_word(word, first.max(rest));
            if used + space + wide <= room {
                if space == 1 {
                    current.push(' ');
                }
                current.push_str(word);
                used += space + wide;
                break;
            }
            if used > 0 && wide <= rest.max(1) {
                lines.push(std::mem::take(&mut current));
                used = 0;
                continue;
            }
            if used == 0 && lines.is_empty() && wide <= rest {
                // Too wide for the first line only: leave that one empty.
                lines.push(String::new());
                continue;
            }
            // Wider than any line: fill this one and go on with what is left.
            let free = room.saturating_sub(used + space);
            let cut = break_point(word, free);
            if cut == 0 && used > 0 {
                lines.push(std::mem::take(&mut current));
                used = 0;
                continue;
            }
            let cut = if cut == 0 {
                word.chars().next().map_or(0, char::len_utf8)
            } else {
                cut
            };
            if space == 1 {
                current.push(' ');
            }
            current.push_str(&word[..cut]);
            lines.push(std::mem::take(&mut current));
            used = 0;
            word = &word[cut..];
            if word.is_empty() {
                break;
            }
        }
    }
    if !current.is_empty() {
        lines.push(current);
    }
    lines
}

/// Like [`width`], but does not measure to the end what is far too wide: a
/// string of a megabyte is one word, and is measured again for every line.
fn width_of_word(word: &str, columns: usize) -> usize {
    const FAR: usize = 1000;
    if word.chars().nth(columns.saturating_add(FAR)).is_some() {
        return usize::MAX / 2;
    }
    width(word)
}

/// Where to cut a word so that it fits: after a separator if there is one in
/// the second half, else anywhere.
fn break_point(word: &str, columns: usize) -> usize {
    let mut used = 0;
    let mut fits = 0;
    let mut nice = 0;
    for (at, c) in word.char_indices() {
        used += char_width(c);
        if used > columns {
            break;
        }
        fits = at + c.len_utf8();
        if matches!(c, '/' | '.' | '_' | '-' | ',' | ':') && used * 2 > columns {
            nice = fits;
        }
    }
    if nice > 0 && fits < word.len() {
        nice
    } else {
        fits
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn breaks_at_spaces() {
        assert_eq!(wrap("one two three", 8), ["one two", "three"]);
        assert_eq!(wrap_hanging("one two three", 3, 9), ["one", "two three"]);
        assert!(wrap("", 10).is_empty());
    }

    #[test]
    fn breaks_long_words_and_always_ends() {
        assert_eq!(wrap("src/memory/index.ts", 12), ["src/memory/", "index.ts"]);
        assert_eq!(wrap("abcdef", 1), ["a", "b", "c", "d", "e", "f"]);
        assert_eq!(wrap("日本語", 3), ["日", "本", "語"]);
        assert_eq!(wrap("日", 1), ["日"]);
        assert_eq!(wrap_hanging("identifier", 4, 20), ["", "identifier"]);
    }

    #[test]
    fn pads_by_columns_not_bytes() {
        assert_eq!(pad("日", 4), "日  ");
    }
}
