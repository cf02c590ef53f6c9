//! For people, on a terminal.
//!
//! A finding reads from top to bottom: what is wrong, where, how it happens,
//! why we believe it, what to do. It makes sense without colour. Findings of
//! one rule on one resource tell one story, so the timeline and the advice are
//! printed with the first and pointed to from the others.

mod summary;

pub(crate) use summary::note_text;

use std::collections::HashMap;

use toctou_core::finding::{EntryKind, EntryPoint, Finding};
use toctou_core::interleaving::Action;
use toctou_core::rule::{Confidence, Scope};

use crate::clean;
use crate::layout::{width, wrap_hanging};
use crate::snippet::{self, Gutter, Mark};
use crate::style::{ACT, GAP, GUTTER, Paint, READ};
use crate::timeline;
use crate::view::{View, plural};

/// Entry points that are named before "and n more".
const ENTRY_POINTS: usize = 5;

pub(crate) fn render(view: &View<'_>) -> String {
    let mut out = String::new();
    let mut file: Option<&str> = None;
    // (rule, resource, file) → line of the finding that told the story
    let mut told: HashMap<(&str, &str, &str), u32> = HashMap::new();
    for finding in view.active() {
        let path = finding.location.file.as_str();
        if file != Some(path) {
            out += &heading(view, path);
            file = Some(path);
        }
        let story = (finding.rule.as_str(), finding.resource.key.as_str(), path);
        let before = told.get(&story).copied();
        out += &one(view, finding, before.filter(|_| !view.verbose));
        told.entry(story).or_insert(finding.location.line);
        out.push('\n');
    }
    out + &summary::render(view)
}

fn paint(view: &View<'_>) -> Paint {
    Paint {
        color: view.terminal.color,
    }
}

fn heading(view: &View<'_>, path: &str) -> String {
    let count = view
        .active()
        .filter(|finding| finding.location.file == path)
        .count();
    let title = format!("{} ", clean::line(path));
    let tail = format!(" {}", plural(count, "finding"));
    let dash = if view.terminal.unicode { "─" } else { "-" };
    let room = view.terminal.width.min(100);
    let fill = room.saturating_sub(width(&title) + width(&tail)).max(3);
    let paint = paint(view);
    format!(
        "{}{}\n\n",
        paint.bold(&title),
        paint.dim(&(dash.repeat(fill) + &tail))
    )
}

/// `before`: the line where this story was told already.
fn one(view: &View<'_>, finding: &Finding, before: Option<u32>) -> String {
    let paint = paint(view);
    let place = &finding.location;
    let steps = finding
        .interleaving
        .iter()
        .filter(|step| step.file == place.file)
        .map(|step| step.line);
    let places = [&finding.read, &finding.gap]
        .into_iter()
        .flatten()
        .map(|place| place.line);
    let last = steps.chain(places).chain([place.line]).max().unwrap_or(0);
    let gutter = Gutter {
        digits: last.to_string().len().max(3),
        terminal: view.terminal,
    };

    let mut out = header(view, finding);
    let at = format!(
        "{}:{}:{}",
        clean::line(&place.file),
        place.line,
        place.column
    );
    let arrow = paint.paint(
        GUTTER,
        &format!("{:>digits$}-->", "", digits = gutter.digits - 1),
    );
    let room = view.terminal.width.saturating_sub(gutter.digits + 6);
    let inside = clean::short(&place.function, room.min(80));
    // The place is for clicking on, so it is never broken; the name goes where it fits.
    let fits = gutter.digits + 7 + width(&at) + width(&inside) <= view.terminal.width;
    let inside = match (inside.is_empty(), fits) {
        (true, _) => String::new(),
        (false, true) => paint.dim(&format!(" in {inside}")),
        (false, false) => format!(
            "\n{}{}",
            " ".repeat(gutter.digits + 3),
            paint.dim(&format!("in {inside}"))
        ),
    };
    out += &format!("{arrow} {at}{inside}\n");
    if let Some(file) = view.source(&place.file) {
        out += &snippet::render(file, &marks(finding), gutter);
    }
    if before.is_none() {
        out += &timeline::render(&finding.interleaving, &place.file, gutter);
    }
    let told = before.is_none()
        && finding
            .interleaving
            .iter()
            .any(|step| step.action == Action::Outcome);
    out += &if told {
        "\n".to_owned()
    } else {
        gutter.line(None, "")
    };
    out += &advice(view, finding, before);
    out
}

fn header(view: &View<'_>, finding: &Finding) -> String {
    let paint = paint(view);
    let tag = format!("{}[{}]", finding.severity, clean::line(&finding.rule));
    let tag_width = width(&tag) + 1;
    let room = view.terminal.width;
    let lines = wrap_hanging(
        &clean::line(&finding.message),
        room.saturating_sub(tag_width),
        room.saturating_sub(4),
    );
    let mut out = paint.severity(finding.severity, &tag);
    for (index, line) in lines.iter().enumerate() {
        out += lead(index, line);
        out += &paint.bold(line);
    }
    out.push('\n');
    out
}

/// What stands before the n-th line of a wrapped text that follows a label.
fn lead(index: usize, line: &str) -> &'static str {
    match index {
        0 if line.is_empty() => "",
        0 => " ",
        _ => "\n    ",
    }
}

fn marks(finding: &Finding) -> Vec<Mark> {
    let home = &finding.location.file;
    let read = finding.read.as_ref().filter(|place| place.file == *home);
    let gap = finding.gap.as_ref().filter(|place| place.file == *home);
    // One awaited call is often both: the read, and where others get their turn.
    let same = read.zip(gap).is_some_and(|(read, gap)| read == gap);
    let mut marks = Vec::new();
    if let Some(read) = read {
        let label = if same {
            "call A reads, and call B can run"
        } else {
            "call A reads"
        };
        marks.push(Mark {
            place: read.clone(),
            with: '-',
            style: READ,
            label: label.to_owned(),
        });
    }
    if let Some(gap) = gap.filter(|_| !same) {
        marks.push(Mark {
            place: gap.clone(),
            with: '~',
            style: GAP,
            label: "call B can run here".to_owned(),
        });
    }
    marks.push(Mark {
        place: finding.location.clone(),
        with: '^',
        style: ACT,
        label: act_label(finding),
    });
    marks
}

/// What call A does in the end, as far as the interleaving tells.
fn act_label(finding: &Finding) -> String {
    if finding.read.is_none() {
        return String::new();
    }
    let act = finding.interleaving.iter().rev().find(|step| {
        step.actor == "A"
            && !matches!(
                step.action,
                Action::Outcome | Action::Yield | Action::Release | Action::Commit
            )
    });
    let verb = match act.map(|step| step.action) {
        Some(Action::Write) => "writes",
        Some(Action::Delete) => "deletes",
        Some(Action::Send) => "sends",
        Some(Action::Open) => "opens",
        Some(Action::Close) => "closes",
        _ => "acts",
    };
    format!("call A {verb}, trusting the read")
}

fn advice(view: &View<'_>, finding: &Finding, before: Option<u32>) -> String {
    let mut out = String::new();
    if let Some(line) = before {
        out += &field(
            view,
            "as above",
            &format!("timeline and fix of line {line} apply here too (--verbose repeats them)"),
        );
    } else {
        out += &field(view, "Reporting because", &finding.because);
        out += &field(view, "races with", &races_with(finding));
        out += &field(view, "fix", &finding.fix);
    }
    out += &entry_points(view, &finding.entry_points);
    if !finding.copies.is_empty() {
        let places = finding.copies.iter();
        let places: Vec<String> = places
            .map(|at| format!("{}:{}", clean::line(&at.file), at.line))
            .collect();
        out += &field(view, "also in", &places.join(", "));
    }
    if finding.non_product {
        out += &field(
            view,
            "not counted",
            "this file is a test, an example or a script",
        );
    }
    // For pasting: in one piece, whatever the width.
    let label = paint(view).bold("ignore:");
    out + &format!(
        "  {label} // toctou: ignore[{}] <why>\n",
        clean::line(&finding.rule)
    )
}

fn races_with(finding: &Finding) -> String {
    let mut parties: Vec<&str> = finding
        .scopes
        .iter()
        .map(|scope| match scope {
            Scope::InProcess => "another call in the same process",
            Scope::CrossProcess => "another server process",
        })
        .collect();
    if parties.is_empty() {
        return String::new();
    }
    parties.dedup();
    let confidence = match finding.confidence {
        Confidence::High => "",
        Confidence::Medium => " (medium confidence)",
        Confidence::Low => " (low confidence)",
    };
    parties.join(", or ") + confidence
}

/// `  name: text`, wrapped under itself; nothing for no text.
fn field(view: &View<'_>, name: &str, text: &str) -> String {
    let text = clean::line(text);
    if text.trim().is_empty() {
        return String::new();
    }
    let label = width(name) + 4;
    let room = view.terminal.width.min(110);
    let lines = wrap_hanging(&text, room.saturating_sub(label), room.saturating_sub(4));
    let mut out = format!("  {}", paint(view).bold(&format!("{name}:")));
    for (index, line) in lines.iter().enumerate() {
        out += lead(index, line);
        out += line;
    }
    out.push('\n');
    out
}

fn entry_points(view: &View<'_>, entries: &[EntryPoint]) -> String {
    if entries.is_empty() {
        return String::new();
    }
    let arrow = if view.terminal.unicode {
        " → "
    } else {
        " -> "
    };
    let shown = if view.verbose {
        entries.len()
    } else {
        ENTRY_POINTS
    };
    let mut lines: Vec<String> = entries
        .iter()
        .take(shown)
        .map(|entry| {
            // A handler that is named after its tool says nothing new.
            let via = entry.via.iter().filter(|name| **name != entry.name);
            let via: Vec<String> = via.map(|name| clean::line(name)).collect();
            let via = if via.is_empty() {
                String::new()
            } else {
                format!(" (via {})", via.join(arrow))
            };
            format!("{} {}{via}", kind(entry.kind), clean::line(&entry.name))
        })
        .collect();
    if entries.len() > shown {
        lines.push(format!("and {} more", entries.len() - shown));
    }
    if let [line] = lines.as_slice() {
        return field(view, "entry points", line);
    }
    let mut out = format!("  {}\n", paint(view).bold("entry points:"));
    let room = view.terminal.width.min(110);
    for line in lines {
        for (index, part) in wrap_hanging(&line, room.saturating_sub(4), room.saturating_sub(6))
            .iter()
            .enumerate()
        {
            out += if index == 0 { "    " } else { "      " };
            out += part;
            out.push('\n');
        }
    }
    out
}

pub(crate) fn kind(kind: EntryKind) -> &'static str {
    match kind {
        EntryKind::Tool => "tool",
        EntryKind::Resource => "resource",
        EntryKind::Prompt => "prompt",
        EntryKind::Request => "request",
        EntryKind::Route => "route",
        EntryKind::Event => "event",
        EntryKind::Timer => "timer",
        EntryKind::Export => "exported function",
        EntryKind::Startup => "start-up",
    }
}

#[cfg(test)]
mod tests;
