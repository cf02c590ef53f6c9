//! For people: the timeline, the answers, what is left and what should be.

use std::fmt::Write as _;

use toctou_report::{Paint, Terminal, clean, plural, timeline, wrap};

use super::{AttemptOutcome, Outcome, Report};
use crate::proof::Proof;
use crate::scenario::letter;
use crate::timeline::short;

const MOST_DIFFERENCES: usize = 4;

pub fn render(report: &Report, terminal: Terminal) -> String {
    let paint = Paint {
        color: terminal.color,
    };
    let mut out = String::new();
    for proof in &report.proofs {
        out += &render_proof(proof, terminal);
        out.push('\n');
    }
    let inconclusive: Vec<_> = report
        .attempts
        .iter()
        .filter(|attempt| attempt.outcome == AttemptOutcome::Inconclusive)
        .collect();
    for attempt in inconclusive.iter().take(10) {
        let reason = attempt.reason.as_deref().unwrap_or("no reason known");
        let text = format!(
            "inconclusive: {} ({}): {reason}",
            attempt.what, attempt.scope
        );
        push_wrapped(&mut out, &text, terminal, "", "  ");
    }
    for finding in &report.findings {
        let tools = finding.tools.join(", ");
        let status = match finding.status.as_str() {
            "not-reproduced" => format!(
                "not reproduced in {}",
                plural(finding.schedules, "schedule")
            ),
            other => other.to_owned(),
        };
        let reason = finding
            .reason
            .as_ref()
            .map(|reason| format!(": {reason}"))
            .unwrap_or_default();
        push_wrapped(
            &mut out,
            &format!("{} ({tools}): {status}{reason}", finding.rule),
            terminal,
            "",
            "  ",
        );
    }
    let style = match report.outcome {
        Outcome::Proved => anstyle::AnsiColor::Red.on_default().bold(),
        Outcome::NoViolation => anstyle::AnsiColor::Green.on_default().bold(),
        Outcome::Inconclusive => anstyle::AnsiColor::Yellow.on_default().bold(),
    };
    let _ = writeln!(out, "{}", paint.paint(style, &clean::line(&report.summary)));
    let failing: Vec<&str> = report
        .tools
        .iter()
        .filter(|tool| tool.role == "fails")
        .map(|tool| tool.name.as_str())
        .collect();
    if !failing.is_empty() {
        let text = format!(
            "not tried, because no arguments were found by which they succeed: {} (give some with --examples)",
            failing.join(", ")
        );
        push_wrapped(&mut out, &text, terminal, "note: ", "      ");
    }
    for note in &report.notes {
        push_wrapped(&mut out, note, terminal, "note: ", "      ");
    }
    let _ = writeln!(
        out,
        "{} of the server, {}, {}, {:.0} s",
        plural(report.runs, "run"),
        plural(report.schedules, "schedule"),
        plural(report.points, "pause point"),
        report.seconds
    );
    out
}

fn push_wrapped(out: &mut String, text: &str, terminal: Terminal, first: &str, rest: &str) {
    for (index, line) in wrap(
        &clean::line(text),
        terminal.width.saturating_sub(first.len()).max(20),
    )
    .iter()
    .enumerate()
    {
        let lead = if index == 0 { first } else { rest };
        let _ = writeln!(out, "{lead}{line}");
    }
}

/// One proof.
pub fn render_proof(proof: &Proof, terminal: Terminal) -> String {
    let paint = Paint {
        color: terminal.color,
    };
    let red = anstyle::AnsiColor::Red.on_default().bold();
    let mut out = String::new();
    let head = format!(
        "{} [{}, {}]",
        proof.recipe.headline,
        proof.scope,
        proof.recipe.class.as_str()
    );
    let _ = writeln!(
        out,
        "{} {}",
        paint.paint(red, "proved:"),
        paint.bold(&clean::line(&head))
    );
    let how = match &proof.held {
        Some(held) => format!(
            "{}: call {} is held before {held}",
            proof.strategy,
            held_call(proof)
        ),
        None => format!("{}: all calls at once", proof.strategy),
    };
    let _ = writeln!(out, "  {}", clean::line(&how));
    if !proof.recipe.scenario.setup.is_empty() {
        let calls: Vec<String> = proof
            .recipe
            .scenario
            .setup
            .iter()
            .map(|call| short(&call.shown(), 60))
            .collect();
        push_wrapped(
            &mut out,
            &format!("set up: {}", calls.join("; ")),
            terminal,
            "  ",
            "    ",
        );
    }
    out += &timeline(&proof.timeline, terminal);
    out.push('\n');
    let _ = writeln!(out, "  {}", paint.bold("answers"));
    for (call, reply) in proof.replies.iter().enumerate().take(8) {
        let _ = writeln!(
            out,
            "    {}  {}",
            letter(call),
            clean::line(&short(&reply.shown(), 100))
        );
    }
    let order: Vec<String> = proof.nearest.iter().map(|call| letter(*call)).collect();
    let _ = writeln!(
        out,
        "  {}",
        paint.bold(&format!(
            "against the nearest serial order, {}",
            order.join(" then ")
        ))
    );
    // Several tools that tell the same are told once.
    let mut differences: Vec<_> = proof.differences.iter().collect();
    differences.dedup();
    for change in differences.iter().take(MOST_DIFFERENCES) {
        let _ = writeln!(out, "    {}", clean::line(&change.place));
        if let Some(serial) = &change.serial {
            let _ = writeln!(
                out,
                "      {}",
                paint.paint(
                    anstyle::AnsiColor::Green.on_default(),
                    &format!("serial  {}", clean::line(&short(serial, 140)))
                )
            );
        }
        let found = change.found.as_deref().unwrap_or("nothing");
        let _ = writeln!(
            out,
            "      {}",
            paint.paint(
                anstyle::AnsiColor::Red.on_default(),
                &format!("found   {}", clean::line(&short(found, 140)))
            )
        );
    }
    if differences.len() > MOST_DIFFERENCES {
        let _ = writeln!(out, "    and {} more", differences.len() - MOST_DIFFERENCES);
    }
    let _ = writeln!(
        out,
        "  reproduced in {} of {} replays",
        proof.replays.reproduced, proof.replays.of
    );
    out
}

fn held_call(proof: &Proof) -> String {
    match proof.recipe.schedule {
        crate::scenario::Schedule::Hold { call, .. } => letter(call),
        _ => String::new(),
    }
}
