//! Places in a text: bytes, characters, and the UTF-16 units of the protocol.

use crate::protocol::{ContentChange, Position, Range};

/// Where a line begins and ends, without its line break. Past the end, the end.
fn line(text: &str, number: u32) -> (usize, usize) {
    let mut start = 0;
    for _ in 0..number {
        match text[start..].find('\n') {
            Some(at) => start += at + 1,
            None => return (text.len(), text.len()),
        }
    }
    let end = text[start..].find('\n').map_or(text.len(), |at| start + at);
    (start, end)
}

/// The byte of a position. One that is not there is the nearest before it.
pub(crate) fn offset(text: &str, position: Position) -> usize {
    let (start, end) = line(text, position.line);
    let mut units = 0;
    for (at, c) in text[start..end].char_indices() {
        units += c.len_utf16() as u32;
        if units > position.character {
            return start + at;
        }
    }
    end
}

/// The position of a byte. One inside of a character is that of the character.
pub(crate) fn position(text: &str, offset: usize) -> Position {
    let mut offset = offset.min(text.len());
    while !text.is_char_boundary(offset) {
        offset -= 1;
    }
    let before = &text[..offset];
    let start = before.rfind('\n').map_or(0, |at| at + 1);
    Position {
        line: before.bytes().filter(|&byte| byte == b'\n').count() as u32,
        character: units(&before[start..]),
    }
}

pub(crate) fn units(text: &str) -> u32 {
    text.chars().map(|c| c.len_utf16() as u32).sum()
}

/// The UTF-16 column of a 1-based column in characters.
pub(crate) fn character(line: &str, column: u32) -> u32 {
    line.chars()
        .take(column.saturating_sub(1) as usize)
        .map(|c| c.len_utf16() as u32)
        .sum()
}

pub(crate) fn apply(text: &mut String, change: ContentChange) {
    let Some(Range { start, end }) = change.range else {
        *text = change.text;
        return;
    };
    let (start, end) = (offset(text, start), offset(text, end));
    // An editor that is confused must not confuse us.
    text.replace_range(start.min(end)..end.max(start), &change.text);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(line: u32, character: u32) -> Position {
        Position { line, character }
    }

    #[test]
    fn counts_utf16() {
        let text = "a🦀b\r\nnaïve\n\nend";
        for (offset_, position_) in [
            (0, at(0, 0)),
            (1, at(0, 1)),
            (5, at(0, 3)),
            (6, at(0, 4)),
            (8, at(1, 0)),
            (12, at(1, 3)),
            (text.len(), at(3, 3)),
        ] {
            assert_eq!(position(text, offset_), position_);
            assert_eq!(offset(text, position_), offset_);
        }
        // In the middle of a crab, past the end of a line, past the end of the text.
        assert_eq!(offset(text, at(0, 2)), 1);
        assert_eq!(offset(text, at(2, 99)), 15);
        assert_eq!(offset(text, at(99, 0)), text.len());
        assert_eq!(position(text, 3), at(0, 1));
        assert_eq!(character("a🦀b", 3), 3);
    }

    #[test]
    fn changes_are_made_in_order() {
        let mut text = String::from("one\ntwo 🦀\nthree");
        let change = |range, text: &str| ContentChange {
            range,
            text: text.to_owned(),
        };
        let range = |start, end| Some(Range { start, end });
        apply(&mut text, change(range(at(1, 4), at(1, 6)), "crab"));
        apply(&mut text, change(range(at(0, 0), at(1, 0)), ""));
        assert_eq!(text, "two crab\nthree");
        // Backwards and out of bounds.
        apply(&mut text, change(range(at(9, 9), at(1, 0)), "x"));
        assert_eq!(text, "two crab\nx");
        apply(&mut text, change(None, "whole"));
        assert_eq!(text, "whole");
    }
}
