//! SARIF 2.1.0, shaped for what GitHub code scanning really reads.
//!
//! Only `locations[0]` counts there, with all four coordinates, and an alert
//! shows in a pull request only if all its lines are in the diff: so one
//! line. Severity comes from `security-severity` on the rule, as a string.
//! GitHub computes `primaryLocationLineHash` itself and warns when ours
//! differs: we send our own key instead. Viewers show only the first code flow:
//! that one has the merged timeline, the second one thread per call.

mod document;

use serde_json::json;
use toctou_core::finding::{Finding, Location, SuppressionKind};
use toctou_core::interleaving::{Action, Step};
use toctou_core::rule::{Persona, RuleMeta, Severity};

use crate::clean;
use crate::json::to_text;
use crate::view::View;
use document::*;

const SCHEMA: &str = "https://json.schemastore.org/sarif-2.1.0.json";
const HOME: &str = "https://github.com/toctou-dev/toctou";
/// GitHub refuses uploads with more.
const MAX_RESULTS: usize = 25_000;

pub(crate) fn render(view: &View<'_>) -> String {
    let results: Vec<SarifResult> = view
        .report
        .findings
        .iter()
        .take(MAX_RESULTS)
        .map(|finding| result(view, finding))
        .collect();
    let left_out = view.report.findings.len() - results.len();
    let log = Log {
        schema: SCHEMA,
        version: "2.1.0",
        runs: vec![Run {
            tool: Tool {
                driver: Driver {
                    name: "toctou",
                    information_uri: HOME,
                    semantic_version: view.report.tool_version.clone(),
                    rules: view.rules.iter().map(rule).collect(),
                },
            },
            // Two kinds of upload, and neither replaces the other's alerts.
            automation_details: Automation { id: "toctou/scan/" },
            column_kind: "unicodeCodePoints",
            version_control_provenance: provenance(view),
            invocations: vec![Invocation {
                execution_successful: true,
                tool_execution_notifications: notifications(view, left_out),
            }],
            results,
        }],
    };
    to_text(&log)
}

/// The repository and commit, if that is where the source came from.
fn provenance(view: &View<'_>) -> Vec<Provenance> {
    let source = view.report.source.iter();
    source
        .filter(|source| source.name.contains("://"))
        .map(|source| Provenance {
            repository_uri: clean::line(&source.name),
            revision_id: source.revision.as_deref().map(clean::line),
        })
        .collect()
}

fn rule(meta: &RuleMeta) -> Rule {
    let link = format!("{HOME}/blob/main/docs/rules/{}.md", meta.id);
    let mut tags = vec![
        "security".to_owned(),
        format!("external/cwe/cwe-{}", meta.cwe),
    ];
    tags.push("race-condition".to_owned());
    Rule {
        id: meta.id.to_owned(),
        name: meta.id.to_owned(),
        short_description: Text::plain(meta.summary),
        full_description: Text::plain(&full_description(meta)),
        help: Text {
            text: format!("{}\n\n{link}\n", meta.page.trim_end()),
            markdown: Some(format!(
                "{}\n\n[{} in the documentation]({link})\n",
                meta.page.trim_end(),
                meta.id
            )),
        },
        help_uri: link,
        default_configuration: Configuration {
            level: level(meta.severity),
        },
        properties: json!({
            "security-severity": security_severity(meta.severity),
            "precision": if meta.persona == Persona::Regular { "high" } else { "medium" },
            "tags": tags,
        }),
    }
}

/// The page's first paragraph, at most 1,024 characters.
fn full_description(meta: &RuleMeta) -> String {
    let paragraph: Vec<&str> = meta
        .page
        .lines()
        .map(str::trim)
        .skip_while(|line| line.is_empty() || line.starts_with('#'))
        .take_while(|line| !line.is_empty())
        .collect();
    let text = if paragraph.is_empty() {
        meta.summary.to_owned()
    } else {
        paragraph.join(" ")
    };
    clean::short(&text, 1024)
}

fn level(severity: Severity) -> &'static str {
    match severity {
        Severity::Critical | Severity::High => "error",
        Severity::Medium => "warning",
        Severity::Low | Severity::Info => "note",
    }
}

fn security_severity(severity: Severity) -> &'static str {
    match severity {
        Severity::Critical => "9.5",
        Severity::High => "8.0",
        Severity::Medium => "5.5",
        Severity::Low => "3.0",
        Severity::Info => "1.0",
    }
}

fn result(view: &View<'_>, finding: &Finding) -> SarifResult {
    let related: Vec<SarifLocation> = [
        (&finding.read, "the read"),
        (&finding.gap, "somebody else can run here"),
    ]
    .into_iter()
    .filter_map(|(place, text)| Some((place.as_ref()?, text)))
    .zip(1..)
    .map(|((place, text), id)| SarifLocation {
        id: Some(id),
        message: Some(Text::plain(text)),
        ..location(view, place)
    })
    .collect();
    let mut message = sentence(&finding.message);
    // Links of the form [text](id) lead to the related locations.
    match (&finding.read, &finding.gap) {
        (Some(_), Some(_)) => {
            message += " It trusts [this read](1), and [here](2) somebody else can run."
        }
        (Some(_), None) => message += " It trusts [this read](1).",
        (None, Some(_)) => message += " [Here](1) somebody else can run.",
        (None, None) => {}
    }
    message += &format!(" Fix: {}", link_free(&finding.fix));
    SarifResult {
        rule_id: finding.rule.clone(),
        rule_index: view.rules.iter().position(|rule| rule.id == finding.rule),
        level: level(finding.severity),
        message: Text::plain(&message),
        locations: vec![location(view, &finding.location)],
        related_locations: related,
        code_flows: code_flows(view, finding),
        partial_fingerprints: json!({ "toctou/v1": finding.fingerprint }),
        suppressions: finding
            .suppressed
            .iter()
            .map(|suppression| Suppression {
                kind: match suppression.kind {
                    SuppressionKind::Comment => "inSource",
                    SuppressionKind::Config | SuppressionKind::Baseline => "external",
                },
                justification: suppression.reason.clone(),
            })
            .collect(),
        properties: json!({
            "confidence": finding.confidence,
            "persona": finding.persona,
            "scopes": finding.scopes,
            "severity": finding.severity,
            "resource": finding.resource,
            "because": finding.because,
            "entryPoints": finding.entry_points,
        }),
    }
}

/// GitHub takes the first sentence as the alert's title.
fn sentence(text: &str) -> String {
    let text = link_free(text);
    if text.ends_with(['.', '!', '?']) {
        text
    } else {
        text + "."
    }
}

/// In a SARIF message brackets make links: those of the source must not.
fn link_free(text: &str) -> String {
    clean::line(text)
        .replace('\\', "\\\\")
        .replace('[', "\\[")
        .replace(']', "\\]")
}

fn location(view: &View<'_>, place: &Location) -> SarifLocation {
    // One line: the rest of a span that goes on is left out.
    let end_column = if place.end_line == place.line {
        place.end_column.max(place.column + 1)
    } else {
        let length = view
            .source(&place.file)
            .map_or(0, |file| file.line_text(place.line).chars().count());
        (length as u32 + 1).max(place.column + 1)
    };
    SarifLocation {
        physical_location: Some(physical(
            view,
            &place.file,
            Region {
                start_line: place.line.max(1),
                start_column: Some(place.column.max(1)),
                end_line: place.line.max(1),
                end_column: Some(end_column),
            },
        )),
        logical_locations: if place.function.is_empty() {
            Vec::new()
        } else {
            vec![LogicalLocation {
                fully_qualified_name: place.function.clone(),
                kind: "function",
            }]
        },
        ..SarifLocation::default()
    }
}

fn physical(view: &View<'_>, file: &str, region: Region) -> Physical {
    Physical {
        artifact_location: Artifact {
            uri: uri(&format!("{}{file}", view.base)),
        },
        region,
    }
}

/// A relative reference: everything that is not plainly part of a path is escaped.
fn uri(path: &str) -> String {
    let mut out = String::with_capacity(path.len());
    for byte in path.bytes() {
        if byte.is_ascii_alphanumeric() || b"/-._~".contains(&byte) {
            out.push(char::from(byte));
        } else {
            out += &format!("%{byte:02X}");
        }
    }
    out
}

fn code_flows(view: &View<'_>, finding: &Finding) -> Vec<CodeFlow> {
    let steps: Vec<(usize, &Step)> = finding.interleaving.iter().enumerate().collect();
    if steps.is_empty() {
        return Vec::new();
    }
    let mut actors: Vec<&str> = steps
        .iter()
        .filter(|(_, step)| step.action != Action::Outcome)
        .map(|(_, step)| step.actor.as_str())
        .collect();
    actors.sort_unstable();
    actors.dedup();
    let merged = ThreadFlow {
        id: "timeline".to_owned(),
        locations: steps
            .iter()
            .map(|&(order, step)| flow(view, finding, order, step))
            .collect(),
    };
    let threads: Vec<ThreadFlow> = actors
        .iter()
        .map(|actor| ThreadFlow {
            id: format!("call {actor}"),
            locations: steps
                .iter()
                .filter(|(_, step)| step.actor == *actor)
                .map(|&(order, step)| flow(view, finding, order, step))
                .collect(),
        })
        .collect();
    let mut flows = vec![CodeFlow {
        message: Text::plain("How two calls meet, in the order of time"),
        thread_flows: vec![merged],
    }];
    if threads.len() > 1 {
        flows.push(CodeFlow {
            message: Text::plain("The same, one thread per call"),
            thread_flows: threads,
        });
    }
    flows
}

fn flow(view: &View<'_>, finding: &Finding, order: usize, step: &Step) -> FlowLocation {
    // An outcome has no place of its own: it shows at the finding's.
    let (file, line) = if step.line == 0 || step.file.is_empty() {
        (&finding.location.file, finding.location.line)
    } else {
        (&step.file, step.line)
    };
    let value = step
        .value
        .as_ref()
        .map(|value| format!(" = {value}"))
        .unwrap_or_default();
    let who = if step.action == Action::Outcome {
        String::new()
    } else {
        format!("call {}: ", step.actor)
    };
    let text = format!("{}. {who}{}{value}", order + 1, step.text);
    FlowLocation {
        location: SarifLocation {
            physical_location: Some(physical(
                view,
                file,
                Region {
                    start_line: line.max(1),
                    start_column: None,
                    end_line: line.max(1),
                    end_column: None,
                },
            )),
            message: Some(Text::plain(&link_free(&text))),
            ..SarifLocation::default()
        },
        execution_order: order + 1,
    }
}

fn notifications(view: &View<'_>, left_out: usize) -> Vec<Notification> {
    let mut all: Vec<Notification> = view
        .report
        .skipped
        .iter()
        .filter(|skipped| skipped.fault)
        .map(|skipped| Notification {
            level: "warning",
            message: Text::plain(&format!(
                "not analysed: {}: {}",
                skipped.file, skipped.reason
            )),
        })
        .collect();
    all.extend(view.report.notes.iter().map(|note| Notification {
        level: "note",
        message: Text::plain(&crate::text::note_text(note)),
    }));
    if left_out > 0 {
        all.push(Notification {
            level: "warning",
            message: Text::plain(&format!(
                "{left_out} results are left out: {MAX_RESULTS} is the limit"
            )),
        });
    }
    all
}

#[cfg(test)]
mod tests;
