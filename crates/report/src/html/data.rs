//! What the page knows: the report, made ready to be shown.
//!
//! Every string that a stranger can choose is cleaned here, once, so that the
//! script has nothing to be careful about but to write text as text.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde::Serialize;
use toctou_core::finding::{EntryPoint, Finding, ResourceKind};
use toctou_core::rule::{Confidence, Persona, Scope, Severity};

use super::excerpt::{self, Excerpt};
use super::story::{self, Story};
use crate::clean;
use crate::proofs;
use crate::text::{kind, note_text};
use crate::view::View;

/// Files that are named one by one.
const SKIPPED: usize = 500;
const NOTES: usize = 200;
/// Entry points of one finding that are named one by one.
const ENTRY_POINTS: usize = 40;
/// Places in the state that a proof names.
const DIFFERENCES: usize = 40;
const TEXT: usize = 2_000;
const NAME: usize = 200;

#[derive(Serialize)]
pub(super) struct Data {
    version: String,
    persona: Persona,
    roots: Vec<String>,
    score: u32,
    grade: String,
    capped: bool,
    deductions: Vec<Deduction>,
    files: u32,
    functions: u32,
    entry_points: u32,
    skipped_files: u32,
    hidden: [u32; 3],
    notes: Vec<String>,
    skipped: Vec<Skipped>,
    /// Of the rules that have findings here.
    rules: BTreeMap<&'static str, Rule>,
    findings: Vec<Item>,
}

#[derive(Serialize)]
struct Deduction {
    rule: String,
    findings: u32,
    first: u32,
    second: u32,
}

#[derive(Serialize)]
struct Skipped {
    file: String,
    reason: String,
    fault: bool,
}

#[derive(Serialize)]
struct Rule {
    summary: &'static str,
    points: u32,
    cwe: u32,
    /// The opening of its page.
    about: String,
}

#[derive(Serialize)]
struct Item {
    /// The fingerprint, and a number where it is not alone.
    id: String,
    rule: String,
    severity: Severity,
    confidence: Confidence,
    persona: Persona,
    scopes: Vec<Scope>,
    message: String,
    because: String,
    fix: String,
    resource: Resource,
    file: String,
    line: u32,
    column: u32,
    function: String,
    /// Where the same code stands again.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    copies: Vec<String>,
    entries: Vec<Entry>,
    more_entries: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    story: Option<Story>,
    excerpts: Vec<Excerpt>,
    /// Entry of the guard's policy that closes it, where a tool leads to it.
    #[serde(skip_serializing_if = "Option::is_none")]
    guard: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    proof: Option<Tried>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    aside: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    suppressed: Option<String>,
}

/// What came of the attempt to make it happen.
#[derive(Serialize)]
struct Tried {
    status: String,
    schedules: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    run: Option<Run>,
}

#[derive(Serialize)]
struct Run {
    headline: String,
    scope: String,
    strategy: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    held: Option<String>,
    replays: [u64; 2],
    #[serde(skip_serializing_if = "Option::is_none")]
    story: Option<Story>,
    /// Place, what a serial order leaves there, what was found.
    differences: Vec<[Option<String>; 3]>,
}

#[derive(Serialize)]
struct Resource {
    kind: ResourceKind,
    key: String,
}

#[derive(Serialize)]
struct Entry {
    kind: &'static str,
    name: String,
    file: String,
    line: u32,
    via: Vec<String>,
}

pub(super) fn of(view: &View<'_>) -> Data {
    let report = view.report;
    let summary = &report.summary;
    let mut ids = HashMap::new();
    let findings: Vec<Item> = view
        .active()
        .chain(view.suppressed())
        .map(|finding| item(view, finding, &mut ids))
        .collect();
    let used: BTreeSet<&str> = report.findings.iter().map(|f| f.rule.as_str()).collect();
    let deducted = summary.deductions.iter().map(|d| d.rule.as_str());
    let rules = used.into_iter().chain(deducted).filter_map(|id| {
        let rule = view.rule(id)?;
        Some((
            rule.id,
            Rule {
                summary: rule.summary,
                points: rule.points,
                cwe: rule.cwe,
                about: opening(rule.page),
            },
        ))
    });
    Data {
        version: clean::line(&report.tool_version),
        persona: view.persona,
        roots: view.roots.iter().map(|r| clean::short(r, NAME)).collect(),
        score: summary.score,
        grade: clean::line(&summary.grade),
        capped: summary.capped,
        deductions: summary
            .deductions
            .iter()
            .map(|d| Deduction {
                rule: clean::line(&d.rule),
                findings: d.findings,
                first: d.first,
                second: d.second,
            })
            .collect(),
        files: summary.files,
        functions: summary.functions,
        entry_points: summary.entry_points,
        skipped_files: summary.skipped,
        hidden: [
            view.hidden.pedantic,
            view.hidden.auditor,
            view.hidden.filtered,
        ],
        notes: report.notes.iter().take(NOTES).map(note_text).collect(),
        skipped: report
            .skipped
            .iter()
            .take(SKIPPED)
            .map(|skipped| Skipped {
                file: clean::short(&skipped.file, NAME),
                reason: clean::short(&skipped.reason, NAME),
                fault: skipped.fault,
            })
            .collect(),
        rules: rules.collect(),
        findings,
    }
}

fn item(view: &View<'_>, finding: &Finding, ids: &mut HashMap<String, u32>) -> Item {
    let place = &finding.location;
    let id: String = finding
        .fingerprint
        .chars()
        .filter(char::is_ascii_alphanumeric)
        .collect();
    let count = ids.entry(id.clone()).or_default();
    *count += 1;
    let id = if *count == 1 {
        id
    } else {
        format!("{id}-{count}")
    };
    Item {
        id,
        rule: clean::line(&finding.rule),
        severity: finding.severity,
        confidence: finding.confidence,
        persona: finding.persona,
        scopes: finding.scopes.clone(),
        message: clean::short(&finding.message, TEXT),
        because: clean::short(&finding.because, TEXT),
        fix: clean::short(&finding.fix, TEXT),
        resource: Resource {
            kind: finding.resource.kind,
            key: clean::short(&finding.resource.key, NAME),
        },
        file: clean::line(&place.file),
        line: place.line,
        column: place.column,
        function: clean::short(&place.function, NAME),
        copies: finding
            .copies
            .iter()
            .take(ENTRY_POINTS)
            .map(|place| format!("{}:{}", clean::line(&place.file), place.line))
            .collect(),
        entries: finding
            .entry_points
            .iter()
            .take(ENTRY_POINTS)
            .map(entry)
            .collect(),
        more_entries: finding.entry_points.len().saturating_sub(ENTRY_POINTS),
        story: story::of(&finding.interleaving),
        excerpts: excerpt::of(view, finding),
        guard: (view.guard)(finding).map(|text| block(&text)),
        proof: view
            .proofs
            .and_then(|proofs| proofs.of(&finding.fingerprint))
            .map(tried),
        aside: finding.non_product,
        suppressed: finding
            .suppressed
            .as_ref()
            .map(|suppressed| clean::short(&suppressed.reason, TEXT)),
    }
}

fn tried((tried, proof): (&proofs::Tried, Option<&proofs::Proof>)) -> Tried {
    let short = |text: &String| clean::short(text, TEXT);
    Tried {
        status: clean::short(&tried.status, NAME),
        schedules: tried.schedules,
        reason: tried.reason.as_ref().map(short),
        run: proof.map(|proof| Run {
            headline: short(&proof.recipe.headline),
            scope: clean::short(&proof.scope, NAME),
            strategy: clean::short(&proof.strategy, NAME),
            held: proof.held.as_ref().map(short),
            replays: [proof.replays.reproduced, proof.replays.of],
            story: story::of_run(&proof.timeline),
            differences: proof
                .differences
                .iter()
                .take(DIFFERENCES)
                .map(|changed| {
                    [
                        Some(short(&changed.place)),
                        changed.serial.as_ref().map(short),
                        changed.found.as_ref().map(short),
                    ]
                })
                .collect(),
        }),
    }
}

fn entry(entry: &EntryPoint) -> Entry {
    Entry {
        kind: kind(entry.kind),
        name: clean::short(&entry.name, NAME),
        file: clean::line(&entry.file),
        line: entry.line,
        // A handler that is named after its tool says nothing new.
        via: entry
            .via
            .iter()
            .filter(|name| **name != entry.name)
            .map(|name| clean::short(name, NAME))
            .collect(),
    }
}

/// Several lines, each of them clean.
fn block(text: &str) -> String {
    let lines: Vec<String> = text.lines().map(clean::line).collect();
    lines.join("\n")
}

/// The first paragraph below the title of a rule's page.
fn opening(page: &str) -> String {
    page.split("\n\n")
        .map(str::trim)
        .find(|part| !part.is_empty() && !part.starts_with(['#', '<', '`', '|']))
        .map(clean::line)
        .unwrap_or_default()
}
