//! The end of the text report: what was found, what was looked at, what was not.
//!
//! Never "safe" and never "clean": it says what was scanned, for whom, and
//! which files it could not look into.

use toctou_core::finding::{Note, Skipped};
use toctou_core::rule::Persona;

use super::paint;
use crate::clean;
use crate::layout::wrap_hanging;
use crate::style::{GAP, GOOD};
use crate::view::{View, plural};

/// Lines of one kind that are shown before "and n more".
const SHOWN: usize = 10;

pub(super) fn render(view: &View<'_>) -> String {
    let mut out = warnings(view);
    if let Some(stats) = view.stats {
        out += &statistics(view, stats);
    }
    out += &verdict(view);
    out += &scanned(view);
    out + &hints(view)
}

fn verdict(view: &View<'_>) -> String {
    let paint = paint(view);
    let counts = view.counts();
    let total: usize = counts.iter().map(|(_, count)| count).sum();
    let mut out = if total == 0 {
        format!(
            "{} for the {} persona.\n",
            paint.bold("No findings"),
            view.persona
        )
    } else {
        let parts: Vec<String> = counts
            .iter()
            .map(|(severity, count)| paint.severity(*severity, &format!("{count} {severity}")))
            .collect();
        let aside = view.active().filter(|finding| finding.non_product).count();
        let aside = if aside == 0 {
            String::new()
        } else {
            format!(" ({aside} in examples or scripts, not counted)")
        };
        format!(
            "{}: {}{aside}\n",
            paint.bold(&plural(total, "finding")),
            parts.join(", ")
        )
    };
    let summary = &view.report.summary;
    let grade = match summary.grade.as_str() {
        "A" | "B" => paint.paint(GOOD, &summary.grade),
        _ => paint.paint(GAP, &summary.grade),
    };
    out += &format!("Score: {} of 100, grade {grade}\n", summary.score);
    out
}

fn scanned(view: &View<'_>) -> String {
    let summary = &view.report.summary;
    let roots: Vec<String> = view
        .roots
        .iter()
        .map(|root| clean::short(root, 90))
        .collect();
    let roots = match roots.as_slice() {
        [] => String::new(),
        [one] => format!(" in {one}"),
        [one, rest @ ..] => format!(" in {one} and {} more", plural(rest.len(), "path")),
    };
    let mut parts = vec![format!(
        "{}{roots}: {}, {}",
        plural(summary.files as usize, "file"),
        plural(summary.functions as usize, "function"),
        plural(summary.entry_points as usize, "entry point"),
    )];
    if summary.skipped > 0 {
        parts.push(format!("{} skipped", summary.skipped));
    }
    if summary.suppressed > 0 {
        parts.push(format!(
            "{} suppressed",
            plural(summary.suppressed as usize, "finding")
        ));
    }
    wrapped(view, &format!("Scanned {}.", parts.join("; ")))
}

fn wrapped(view: &View<'_>, text: &str) -> String {
    let room = view.terminal.width.min(110);
    wrap_hanging(text, room, room.saturating_sub(4)).join("\n    ") + "\n"
}

fn hints(view: &View<'_>) -> String {
    let mut hints = Vec::new();
    if let Some(worst) = view.active().max_by_key(|finding| finding.severity) {
        hints.push(format!(
            "`toctou explain {}` tells how it happens and how to fix it",
            clean::line(&worst.rule)
        ));
    }
    let hidden = view.hidden;
    let wider = match view.persona {
        Persona::Regular if hidden.pedantic > 0 => Some((hidden.pedantic, "pedantic")),
        Persona::Regular | Persona::Pedantic if hidden.auditor > 0 => {
            Some((hidden.auditor, "auditor"))
        }
        _ => None,
    };
    if let Some((count, persona)) = wider {
        hints.push(format!("{count} more with `--persona {persona}`"));
    }
    if hidden.filtered > 0 {
        hints.push(format!(
            "{} hidden by --rule or --min-severity",
            plural(hidden.filtered as usize, "finding")
        ));
    }
    if view.report.summary.entry_points == 0 && view.report.summary.files > 0 {
        hints.push(
            "no tool, route or other entry point was recognised; is this the server's source?"
                .to_owned(),
        );
    }
    let paint = paint(view);
    hints
        .iter()
        .map(|hint| {
            let line = wrapped(view, &format!("hint: {hint}"));
            line.replacen("hint:", &paint.bold("hint:"), 1)
        })
        .collect()
}

/// Faults, and notes about the scan itself.
fn warnings(view: &View<'_>) -> String {
    let faults: Vec<&Skipped> = view
        .report
        .skipped
        .iter()
        .filter(|skipped| skipped.fault)
        .collect();
    let choices: Vec<&Skipped> = view
        .report
        .skipped
        .iter()
        .filter(|skipped| !skipped.fault)
        .collect();
    let mut lines = Vec::new();
    limited(view, &mut lines, &faults, |skipped| {
        (
            "warning:",
            format!(
                "{}: {}",
                clean::line(&skipped.file),
                clean::line(&skipped.reason)
            ),
        )
    });
    let notes: Vec<&Note> = view.report.notes.iter().collect();
    limited(view, &mut lines, &notes, |note| ("note:", note_text(note)));
    if view.verbose {
        limited(view, &mut lines, &choices, |skipped| {
            (
                "skipped:",
                format!(
                    "{}: {}",
                    clean::line(&skipped.file),
                    clean::line(&skipped.reason)
                ),
            )
        });
    }
    if lines.is_empty() {
        return String::new();
    }
    let paint = paint(view);
    let mut out = String::new();
    for (label, text) in lines {
        let line = wrapped(view, &format!("{label} {text}"));
        let style = if label == "warning:" {
            GAP
        } else {
            anstyle::Style::new().bold()
        };
        out += &line.replacen(label, &paint.paint(style, label), 1);
    }
    out.push('\n');
    out
}

fn limited<'a, T>(
    view: &View<'_>,
    lines: &mut Vec<(&'static str, String)>,
    all: &[&'a T],
    line: impl Fn(&'a T) -> (&'static str, String),
) {
    let shown = if view.verbose { all.len() } else { SHOWN };
    lines.extend(all.iter().take(shown).map(|item| line(item)));
    if let Some(item) = all.get(shown) {
        lines.push((
            line(item).0,
            format!("and {} more (--verbose names them)", all.len() - shown),
        ));
    }
}

pub(crate) fn note_text(note: &Note) -> String {
    let place = match (&note.file, note.line) {
        (Some(file), Some(line)) => format!("{}:{line}: ", clean::line(file)),
        (Some(file), None) => format!("{}: ", clean::line(file)),
        _ => String::new(),
    };
    place + &clean::line(&note.text)
}

fn statistics(view: &View<'_>, stats: &crate::view::Stats) -> String {
    let paint = paint(view);
    let summary = &view.report.summary;
    let mut out = format!("{}\n", paint.bold("Statistics"));
    for (name, value) in [
        ("files", u64::from(summary.files)),
        ("lines", stats.lines),
        ("bytes", stats.bytes),
        ("functions", u64::from(summary.functions)),
        ("entry points", u64::from(summary.entry_points)),
        ("skipped", u64::from(summary.skipped)),
    ] {
        out += &format!("  {name:<14} {value:>12}\n");
    }
    let calls: u64 = stats
        .unknown_calls
        .iter()
        .map(|(_, count)| u64::from(*count))
        .sum();
    out += &format!("  {:<14} {calls:>12}\n", "unknown calls");
    if !stats.unknown_calls.is_empty() {
        out += "\n  Calls that no model knows are taken to be harmless. The most frequent:\n";
        for (name, count) in stats.unknown_calls.iter().take(20) {
            out += &format!("  {count:>7}  {}\n", clean::short(name, 80));
        }
    }
    out.push('\n');
    out
}
