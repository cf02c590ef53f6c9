//! `toctou rules`: the list of rules.

use serde_json::json;
use toctou_core::rule::Persona;
use toctou_report::{Paint, pad, wrap};
use toctou_rules::registry;

use crate::cli::{ListFormat, RulesArgs};
use crate::errors::Error;
use crate::{output, terminal};

pub(crate) fn run(args: &RulesArgs) -> Result<(), Error> {
    output::to_stdout(&match args.output {
        ListFormat::Text => text(),
        ListFormat::Json => json(),
    })
}

fn text() -> String {
    let terminal = terminal::of_stdout();
    let paint = Paint {
        color: terminal.color,
    };
    let rules = registry::all();
    let widest = rules.iter().map(|rule| rule.id.len()).max().unwrap_or(0);
    let lead = widest + 2 + "critical  ".len();
    let room = terminal.width.saturating_sub(lead);
    // Too narrow for a column of its own: the summary goes below.
    let below = room < 30;
    let mut out = String::new();
    for rule in rules {
        let mut summary = rule.summary.to_owned();
        if rule.persona != Persona::Regular {
            summary += &format!(" ({})", rule.persona);
        }
        let severity = paint.severity(rule.severity, rule.severity.as_str());
        let fill = " ".repeat(10_usize.saturating_sub(rule.severity.as_str().len()));
        out += &format!("{}  {severity}", paint.bold(&pad(rule.id, widest)));
        if below {
            for line in wrap(&summary, terminal.width.saturating_sub(4)) {
                out += &format!("\n    {line}");
            }
        } else {
            for (index, line) in wrap(&summary, room).iter().enumerate() {
                out += &if index == 0 {
                    format!("{fill}{line}")
                } else {
                    format!("\n{}{line}", " ".repeat(lead))
                };
            }
        }
        out.push('\n');
    }
    out + &format!(
        "\n{} `toctou explain <rule>` shows a rule's page\n",
        paint.bold("hint:")
    )
}

fn json() -> String {
    let rules: Vec<serde_json::Value> = registry::all()
        .iter()
        .map(|rule| {
            json!({
                "id": rule.id,
                "summary": rule.summary,
                "severity": rule.severity,
                "persona": rule.persona,
                "points": rule.points,
                "cwe": rule.cwe,
                "since": rule.since,
            })
        })
        .collect();
    format!(
        "{:#}\n",
        json!({ "schema": "toctou.rules/1", "rules": rules })
    )
}
