//! Source for the page: the lines of a window and the places deeper down.
//!
//! A line is a list of pieces, each with what it is marked as, so that the
//! script needs no columns: what is hidden or cut changes them.

use serde::Serialize;
use toctou_core::finding::{Finding, Location};
use toctou_core::source::SourceFile;

use crate::clean;
use crate::view::View;

/// Lines around a mark.
const AROUND: u32 = 2;
/// A window of more lines is shown in parts.
const WHOLE: u32 = 36;
/// Places outside of the window's own lines.
const ELSEWHERE: usize = 6;
/// Characters of a line that are shown, before and after its first mark.
const BEFORE: usize = 120;
const AFTER: usize = 280;
const TAB: &str = "    ";

#[derive(Serialize)]
pub(super) struct Excerpt {
    file: String,
    lines: Vec<Line>,
}

#[derive(Serialize)]
struct Line {
    /// 0 stands for lines that are left out.
    number: u32,
    pieces: Vec<(String, Role)>,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
enum Role {
    Plain,
    Read,
    Gap,
    Act,
}

struct Mark<'a> {
    place: &'a Location,
    role: Role,
}

pub(super) fn of(view: &View<'_>, finding: &Finding) -> Vec<Excerpt> {
    let home = &finding.location.file;
    let mut marks = Vec::new();
    for (place, role) in [
        (finding.read.as_ref(), Role::Read),
        (finding.gap.as_ref(), Role::Gap),
        (Some(&finding.location), Role::Act),
    ] {
        let Some(place) = place.filter(|place| place.file == *home) else {
            continue;
        };
        // One awaited call is often both: the read, and where others get their turn.
        if !marks.iter().any(|mark: &Mark<'_>| mark.place == place) {
            marks.push(Mark { place, role });
        }
    }
    let mut out = Vec::new();
    let mut shown: Vec<(&str, Vec<u32>)> = Vec::new();
    if let Some(file) = view.source(home) {
        let lines = window(&marks, file.line_count());
        out.push(excerpt(file, &lines, &marks));
        shown.push((home, lines));
    }
    for step in &finding.interleaving {
        let there = shown
            .iter()
            .any(|(path, lines)| *path == step.file && lines.contains(&step.line));
        if there || step.line == 0 || out.len() > ELSEWHERE {
            continue;
        }
        let Some(file) = view.source(&step.file) else {
            continue;
        };
        // Places that are close to each other are one excerpt.
        let near: Vec<u32> = finding
            .interleaving
            .iter()
            .filter(|other| other.file == step.file && other.line > 0)
            .map(|other| other.line)
            .filter(|line| line.abs_diff(step.line) <= WHOLE)
            .collect();
        let lines = around(&near, file.line_count());
        out.push(excerpt(file, &lines, &[]));
        shown.push((&step.file, lines));
    }
    out
}

/// The lines from the first mark to the last, or those around each of them.
fn window(marks: &[Mark<'_>], count: u32) -> Vec<u32> {
    let lines: Vec<u32> = marks.iter().map(|mark| mark.place.line).collect();
    let first = lines.iter().copied().min().unwrap_or(1);
    let last = lines.iter().copied().max().unwrap_or(1);
    if last.saturating_sub(first) < WHOLE {
        let from = first.saturating_sub(AROUND).max(1);
        return (from..=last.saturating_add(AROUND).min(count)).collect();
    }
    around(&lines, count)
}

fn around(lines: &[u32], count: u32) -> Vec<u32> {
    let mut out: Vec<u32> = lines
        .iter()
        .flat_map(|&line| {
            line.saturating_sub(AROUND).max(1)..=line.saturating_add(AROUND).min(count)
        })
        .collect();
    out.sort_unstable();
    out.dedup();
    out
}

fn excerpt(file: &SourceFile, mut lines: &[u32], marks: &[Mark<'_>]) -> Excerpt {
    let blank = |line: u32| file.line_text(line).trim().is_empty();
    while let [first, rest @ ..] = lines
        && blank(*first)
    {
        lines = rest;
    }
    while let [rest @ .., last] = lines
        && blank(*last)
    {
        lines = rest;
    }
    let indent = lines
        .iter()
        .map(|&line| file.line_text(line))
        .filter(|text| !text.trim().is_empty())
        .map(|text| text.chars().take_while(|c| matches!(c, ' ' | '\t')).count())
        .min()
        .unwrap_or(0);
    let mut out = Vec::new();
    let mut previous = None;
    for &number in lines {
        if previous.is_some_and(|previous| number > previous + 1) {
            out.push(Line {
                number: 0,
                pieces: Vec::new(),
            });
        }
        let here: Vec<&Mark<'_>> = marks
            .iter()
            .filter(|mark| mark.place.line == number)
            .collect();
        out.push(Line {
            number,
            pieces: pieces(file.line_text(number), number, &here, indent),
        });
        previous = Some(number);
    }
    Excerpt {
        file: clean::line(&file.path),
        lines: out,
    }
}

fn pieces(text: &str, number: u32, marks: &[&Mark<'_>], indent: usize) -> Vec<(String, Role)> {
    let first = marks
        .iter()
        .map(|mark| mark.place.column as usize)
        .min()
        .unwrap_or(1);
    let skipped = first.saturating_sub(BEFORE + 1).max(indent);
    let mut out: Vec<(String, Role)> = Vec::new();
    let mut push = |text: &str, role: Role| match out.last_mut() {
        Some((last, same)) if *same == role => last.push_str(text),
        _ => out.push((text.to_owned(), role)),
    };
    if skipped > indent {
        push("…", Role::Plain);
    }
    let mut chars = text.chars().enumerate().skip(skipped);
    for (index, c) in chars.by_ref().take(BEFORE + AFTER) {
        let column = index as u32 + 1;
        // The narrower mark lies inside the wider one: the last of them counts.
        let role = marks
            .iter()
            .filter(|mark| {
                let end = if mark.place.end_line > number {
                    u32::MAX
                } else {
                    mark.place.end_column
                };
                (mark.place.column..end).contains(&column)
            })
            .map(|mark| mark.role)
            .max()
            .unwrap_or(Role::Plain);
        let mut shown = String::new();
        if c == '\t' {
            shown.push_str(TAB);
        } else {
            clean::push(&mut shown, c);
        }
        push(&shown, role);
    }
    if chars.next().is_some() {
        push("…", Role::Plain);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures;

    #[test]
    fn marks_stand_in_their_lines() {
        let report = fixtures::report();
        let view = fixtures::view(&report);
        let excerpts = of(&view, &report.findings[0]);
        let own = &excerpts[0];
        assert_eq!(own.file, "src/memory/index.ts");
        assert_eq!(own.lines.first().map(|line| line.number), Some(6));
        assert_eq!(own.lines.last().map(|line| line.number), Some(12));
        let marked: Vec<(u32, &str, Role)> = own
            .lines
            .iter()
            .flat_map(|line| line.pieces.iter().map(|p| (line.number, p.0.as_str(), p.1)))
            .filter(|(_, _, role)| *role != Role::Plain)
            .collect();
        assert_eq!(
            marked,
            [
                (7, "await", Role::Gap),
                (7, "this.loadGraph()", Role::Read),
                (10, "this.saveGraph(graph)", Role::Act)
            ]
        );
    }

    #[test]
    fn long_lines_and_hidden_characters() {
        let report = fixtures::minified();
        let view = fixtures::view(&report);
        let line = &of(&view, &report.findings[0])[0].lines[0];
        let text: String = line.pieces.iter().map(|piece| piece.0.as_str()).collect();
        assert!(text.starts_with('…') && text.ends_with('…'), "{text}");
        assert!(text.chars().count() <= BEFORE + AFTER + 2);
        assert!(text.contains("save(load())"));

        let report = fixtures::hostile();
        let view = fixtures::view(&report);
        for excerpt in of(&view, &report.findings[0]) {
            for (text, _) in excerpt.lines.iter().flat_map(|line| &line.pieces) {
                assert!(!text.chars().any(clean::is_hidden), "{text}");
            }
        }
    }
}
