//! For a pull request comment or a job summary.

use std::fmt::Write as _;

use toctou_report::clean::{markdown, markdown_block, markdown_cell_code};
use toctou_report::{Terminal, plural, timeline};

use super::Report;

pub fn render(report: &Report) -> String {
    let mut out = format!("## toctou prove: {}\n\n", markdown(&report.summary));
    let _ = writeln!(
        out,
        "{} of {}, {}, {}, {:.0} s\n",
        plural(report.runs, "run"),
        markdown_cell_code(&report.target.shown()),
        plural(report.schedules, "schedule"),
        plural(report.points, "pause point"),
        report.seconds
    );
    for proof in &report.proofs {
        let _ = writeln!(
            out,
            "### {}\n\n{} · {} · {} · reproduced in {} of {} replays\n",
            markdown(&proof.recipe.headline),
            proof
                .tools
                .iter()
                .map(|tool| markdown_cell_code(tool))
                .collect::<Vec<_>>()
                .join(", "),
            proof.scope,
            proof.strategy,
            proof.replays.reproduced,
            proof.replays.of
        );
        let plain = Terminal {
            width: 110,
            color: false,
            unicode: true,
        };
        out += &markdown_block(&timeline(&proof.timeline, plain), "text");
        out.push('\n');
    }
    if !report.findings.is_empty() {
        out += "| finding | tools | status |\n|---|---|---|\n";
        for finding in &report.findings {
            let status = match finding.status.as_str() {
                "not-reproduced" => format!(
                    "not reproduced in {}",
                    plural(finding.schedules, "schedule")
                ),
                other => other.to_owned(),
            };
            let _ = writeln!(
                out,
                "| {} | {} | {} |",
                markdown_cell_code(&finding.rule),
                finding
                    .tools
                    .iter()
                    .map(|tool| markdown_cell_code(tool))
                    .collect::<Vec<_>>()
                    .join(", "),
                markdown(&status)
            );
        }
    }
    for note in &report.notes {
        let _ = writeln!(out, "\nNote: {}", markdown(note));
    }
    out
}
