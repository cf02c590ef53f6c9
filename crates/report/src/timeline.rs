//! The interleaving, drawn: one column per call, time runs down.
//!
//! The gutter carries line numbers of the finding's own file, as in the
//! snippet above it; a step elsewhere names its file. Where the terminal is
//! too narrow for columns the steps are listed one below the other.

use toctou_core::interleaving::{Action, Step};

use crate::clean;
use crate::layout::{pad, width, wrap, wrap_hanging};
use crate::snippet::Gutter;
use crate::style::{ACT, Paint, action_style};

const NARROWEST: usize = 20;
const WIDEST: usize = 56;

pub(crate) fn render(steps: &[Step], home: &str, gutter: Gutter) -> String {
    let mut actors: Vec<&str> = steps
        .iter()
        .filter(|step| step.action != Action::Outcome)
        .map(|step| step.actor.as_str())
        .collect();
    actors.sort_unstable();
    actors.dedup();
    if actors.is_empty() {
        return String::new();
    }
    let columns = actors.len();
    let room = gutter.room().saturating_sub(3 * (columns - 1)) / columns;
    if room < NARROWEST && columns > 1 {
        return list(steps, home, gutter);
    }
    let drawing = Drawing {
        gutter,
        home,
        actors: &actors,
        column: room.min(WIDEST),
    };
    drawing.render(steps)
}

struct Drawing<'a> {
    gutter: Gutter,
    home: &'a str,
    actors: &'a [&'a str],
    column: usize,
}

impl Drawing<'_> {
    fn render(&self, steps: &[Step]) -> String {
        let paint = paint(self.gutter);
        let heads: Vec<String> = self
            .actors
            .iter()
            .map(|actor| paint.bold(&pad(&format!("call {}", clean::line(actor)), self.column)))
            .collect();
        let (dash, cross) = if self.gutter.terminal.unicode {
            ("─", "┼")
        } else {
            ("-", "+")
        };
        let rules: Vec<String> = self
            .actors
            .iter()
            .map(|_| dash.repeat(self.column))
            .collect();
        let joint = format!("{dash}{cross}{dash}");
        let mut out = self.gutter.line(None, "");
        out += &self.gutter.line(None, &self.join(&heads));
        out += &self.gutter.line(None, &paint.dim(&rules.join(&joint)));
        for step in steps {
            if step.action == Action::Outcome {
                out += &outcome(step, self.gutter);
                continue;
            }
            let number = own_line(step, self.home);
            for (index, text) in cell(step, self.home, self.column).iter().enumerate() {
                let painted = paint.paint(action_style(step.action), text);
                let filled = painted + &" ".repeat(self.column.saturating_sub(width(text)));
                let blank = " ".repeat(self.column);
                let row: Vec<String> = self
                    .actors
                    .iter()
                    .map(|actor| {
                        if *actor == step.actor {
                            filled.clone()
                        } else {
                            blank.clone()
                        }
                    })
                    .collect();
                let number = number.filter(|_| index == 0);
                out += &self.gutter.line(number, &self.join(&row));
            }
        }
        out
    }

    fn join(&self, cells: &[String]) -> String {
        let bar = paint(self.gutter).dim(self.gutter.bar());
        cells.join(&format!(" {bar} ")).trim_end().to_owned()
    }
}

/// For narrow terminals: `A  reads x`.
fn list(steps: &[Step], home: &str, gutter: Gutter) -> String {
    let paint = paint(gutter);
    let mut out = gutter.line(None, "");
    for step in steps {
        if step.action == Action::Outcome {
            out += &outcome(step, gutter);
            continue;
        }
        let actor = clean::short(&step.actor, 4);
        let room = gutter.room().saturating_sub(width(&actor) + 2);
        for (index, text) in cell(step, home, room).iter().enumerate() {
            let lead = if index == 0 {
                paint.bold(&actor)
            } else {
                " ".repeat(width(&actor))
            };
            let text = paint.paint(action_style(step.action), text);
            let number = own_line(step, home).filter(|_| index == 0);
            out += &gutter.line(number, &format!("{lead}  {text}"));
        }
    }
    out
}

fn paint(gutter: Gutter) -> Paint {
    Paint {
        color: gutter.terminal.color,
    }
}

fn own_line(step: &Step, home: &str) -> Option<u32> {
    (step.file == home && step.line > 0).then_some(step.line)
}

/// What happens, where if it is elsewhere, and the value that is seen.
fn cell(step: &Step, home: &str, columns: usize) -> Vec<String> {
    let mut text = clean::line(&step.text);
    if step.file != home && step.line > 0 {
        let name = step.file.rsplit('/').next().unwrap_or(&step.file);
        text = format!("{text} ({}:{})", clean::line(name), step.line);
    }
    let mut lines = wrap_hanging(&text, columns, columns.saturating_sub(2));
    for line in lines.iter_mut().skip(1) {
        line.insert_str(0, "  ");
    }
    if let Some(value) = &step.value {
        let value = format!("= {}", clean::short(value, 120));
        if let [line] = lines.as_mut_slice()
            && width(line) + 1 + width(&value) <= columns
        {
            line.push(' ');
            line.push_str(&value);
            return lines;
        }
        lines.extend(
            wrap(&value, columns.saturating_sub(2))
                .into_iter()
                .map(|line| format!("  {line}")),
        );
    }
    if lines.is_empty() {
        lines.push(String::new());
    }
    lines
}

/// Below all columns, because it concerns them all.
fn outcome(step: &Step, gutter: Gutter) -> String {
    let paint = paint(gutter);
    let arrow = if gutter.terminal.unicode {
        "╰▸"
    } else {
        "`>"
    };
    let room = gutter
        .terminal
        .width
        .saturating_sub(gutter.digits + 4)
        .max(20);
    let margin = " ".repeat(gutter.digits + 1);
    let mut out = String::new();
    for (index, line) in wrap(&clean::line(&step.text), room).iter().enumerate() {
        let lead = if index == 0 { arrow } else { "  " };
        out += &format!(
            "{margin}{} {}\n",
            paint.paint(ACT, lead),
            paint.paint(ACT, line)
        );
    }
    out
}
