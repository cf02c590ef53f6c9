//! The source, with the read, the gap and the write marked.
//!
//! Our own renderer, because the lines come from strangers: a minified file is
//! one line of a megabyte, tabs and wide characters shift columns, and hidden
//! characters must be spelled out without moving the marks off their words.

use anstyle::Style;
use toctou_core::finding::Location;
use toctou_core::source::SourceFile;

use crate::clean;
use crate::layout::{char_width, width};
use crate::style::{GUTTER, Paint};
use crate::view::Terminal;

const TAB: usize = 4;
/// Characters of a line that are looked at, before and after the first mark.
const BEFORE: usize = 200;
const AFTER: usize = 600;

pub(crate) struct Mark {
    pub(crate) place: Location,
    /// Underlines with this: marks can be told apart without colour.
    pub(crate) with: char,
    pub(crate) style: Style,
    pub(crate) label: String,
}

/// The left edge that snippet and timeline share.
#[derive(Clone, Copy)]
pub(crate) struct Gutter {
    pub(crate) digits: usize,
    pub(crate) terminal: Terminal,
}

impl Gutter {
    pub(crate) fn bar(self) -> &'static str {
        if self.terminal.unicode { "│" } else { "|" }
    }

    /// Columns right of the bar and its space.
    pub(crate) fn room(self) -> usize {
        self.terminal.width.saturating_sub(self.digits + 3).max(20)
    }

    pub(crate) fn line(self, number: Option<u32>, body: &str) -> String {
        let paint = Paint {
            color: self.terminal.color,
        };
        let number = number.map(|n| n.to_string()).unwrap_or_default();
        let edge = paint.paint(
            GUTTER,
            &format!("{number:>digits$} {}", self.bar(), digits = self.digits),
        );
        if body.is_empty() {
            edge + "\n"
        } else {
            format!("{edge} {body}\n")
        }
    }
}

/// Marks must all be in `file`.
pub(crate) fn render(file: &SourceFile, marks: &[Mark], gutter: Gutter) -> String {
    let mut lines: Vec<u32> = marks.iter().map(|mark| mark.place.line).collect();
    lines.sort_unstable();
    lines.dedup();
    let indent = lines
        .iter()
        .map(|&line| indentation(file.line_text(line)))
        .min()
        .unwrap_or(0);

    let mut out = gutter.line(None, "");
    let mut previous = None;
    for line in lines {
        match previous {
            Some(previous) if line == previous + 2 => {
                out += &source_line(file, line - 1, &[], indent, gutter);
            }
            Some(previous) if line > previous + 2 => {
                let dots = if gutter.terminal.unicode { "┆" } else { ":" };
                let paint = Paint {
                    color: gutter.terminal.color,
                };
                let dots = format!("{:>digits$} {dots}", "", digits = gutter.digits);
                out += &paint.paint(GUTTER, &dots);
                out.push('\n');
            }
            _ => {}
        }
        let here: Vec<&Mark> = marks
            .iter()
            .filter(|mark| mark.place.line == line)
            .collect();
        out += &source_line(file, line, &here, indent, gutter);
        previous = Some(line);
    }
    out
}

fn indentation(text: &str) -> usize {
    text.chars()
        .take_while(|c| matches!(c, ' ' | '\t'))
        .map(|c| if c == '\t' { TAB } else { 1 })
        .sum()
}

/// One character as shown: its text, where it starts, how wide it is.
struct Cell {
    text: String,
    at: usize,
    width: usize,
}

fn source_line(
    file: &SourceFile,
    line: u32,
    marks: &[&Mark],
    indent: usize,
    gutter: Gutter,
) -> String {
    let text = file.line_text(line);
    let first_mark = marks
        .iter()
        .map(|m| m.place.column as usize)
        .min()
        .unwrap_or(1);
    let skipped = first_mark.saturating_sub(BEFORE + 1);
    let cells = cells(text, skipped, if skipped == 0 { indent } else { 0 });
    let more = text.chars().nth(skipped + cells.len()).is_some();
    let spans: Vec<(usize, usize)> = marks
        .iter()
        .map(|mark| columns(&cells, mark, line, skipped))
        .collect();

    let total = cells.last().map_or(0, |cell| cell.at + cell.width);
    let room = gutter.room();
    let ellipsis = if gutter.terminal.unicode {
        "…"
    } else {
        "..."
    };
    let dots = width(ellipsis);
    let start = spans.iter().map(|s| s.0).min().unwrap_or(0);
    let end = spans.iter().map(|s| s.1).max().unwrap_or(0);

    // The window [from, to) of columns that is shown.
    let (from, to) = if total <= room && skipped == 0 && !more {
        (0, total)
    } else {
        let inner = room.saturating_sub(2 * dots);
        let from = if end <= room.saturating_sub(dots) && skipped == 0 {
            0
        } else {
            // Both ends of the marks if they fit, else their beginning.
            let slack = inner.saturating_sub(end.saturating_sub(start)) / 2;
            start.saturating_sub(slack.min(inner / 2))
        };
        (
            from,
            from + if from == 0 {
                room.saturating_sub(dots)
            } else {
                inner
            },
        )
    };
    let cut_left = from > 0 || skipped > 0;
    let cut_right = to < total || more;
    let mut shown = String::new();
    // A wide character that straddles the left edge is left out: spaces keep the columns.
    let mut column = from;
    for cell in cells
        .iter()
        .filter(|c| c.at >= from && c.at + c.width <= to)
    {
        while column < cell.at {
            shown.push(' ');
            column += 1;
        }
        shown.push_str(&cell.text);
        column += cell.width;
    }
    let left = if cut_left { ellipsis } else { "" };
    let right = if cut_right { ellipsis } else { "" };
    let body = format!("{left}{}{right}", shown.trim_end());
    let mut out = gutter.line(Some(line), &body);

    let shift = width(left);
    let shown_width = column - from;
    for (mark, (start, end)) in marks.iter().zip(spans) {
        let start = start.clamp(from, from + shown_width) - from;
        let end = end
            .clamp(from, from + shown_width)
            .saturating_sub(from)
            .max(start + 1);
        out += &underline(mark, shift + start, end - start, gutter);
    }
    out
}

fn underline(mark: &Mark, at: usize, length: usize, gutter: Gutter) -> String {
    let paint = Paint {
        color: gutter.terminal.color,
    };
    let room = gutter.room();
    let length = length.min(room.saturating_sub(at)).max(1);
    let line: String = std::iter::repeat_n(mark.with, length).collect();
    let line = paint.paint(mark.style, &line);
    let label = paint.paint(mark.style, &mark.label);
    let label_width = width(&mark.label);
    let spaces = " ".repeat(at);
    if mark.label.is_empty() || at + length + 1 + label_width <= room {
        let gap = if mark.label.is_empty() { "" } else { " " };
        return gutter.line(None, &format!("{spaces}{line}{gap}{label}"));
    }
    let label_at = at.min(room.saturating_sub(label_width));
    gutter.line(None, &format!("{spaces}{line}"))
        + &gutter.line(None, &format!("{}{label}", " ".repeat(label_at)))
}

/// The first characters after `skipped`, with `indent` columns of white space taken off.
fn cells(text: &str, skipped: usize, indent: usize) -> Vec<Cell> {
    let mut cells = Vec::new();
    let mut at = 0;
    let mut drop = indent;
    for c in text.chars().skip(skipped).take(BEFORE + AFTER) {
        let (text, mut width) = if c == '\t' {
            (" ".repeat(TAB), TAB)
        } else {
            let mut shown = String::new();
            clean::push(&mut shown, c);
            let wide = if clean::is_hidden(c) {
                shown.len()
            } else {
                char_width(c)
            };
            (shown, wide)
        };
        let mut text = text;
        if drop > 0 {
            let off = drop.min(width);
            drop -= off;
            width -= off;
            text = " ".repeat(width);
        }
        cells.push(Cell { text, at, width });
        at += width;
    }
    cells
}

/// Columns of a mark. Past the first line of a span only its first line is marked.
fn columns(cells: &[Cell], mark: &Mark, line: u32, skipped: usize) -> (usize, usize) {
    let end_of_line = cells.last().map_or(0, |cell| cell.at + cell.width);
    let at = |column: u32| {
        let index = (column as usize).saturating_sub(1 + skipped);
        cells.get(index).map_or(end_of_line, |cell| cell.at)
    };
    let start = at(mark.place.column);
    let end = if mark.place.end_line > line {
        end_of_line
    } else {
        at(mark.place.end_column)
    };
    (start, end.max(start + 1))
}
