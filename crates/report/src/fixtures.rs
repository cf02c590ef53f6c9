//! Hand-made reports for the tests of all formats.

use std::sync::{Arc, LazyLock};

use toctou_core::finding::{
    Deduction, EntryKind, EntryPoint, Finding, Location, Note, Resource, ResourceKind, SCAN_SCHEMA,
    ScanReport, Skipped, Summary, Suppression, SuppressionKind,
};
use toctou_core::interleaving::{Action, Step};
use toctou_core::rule::{Confidence, Persona, RuleMeta, Scope, Severity};
use toctou_core::source::{FileRole, SourceFile};

use crate::view::{Hidden, Terminal, View};

const MEMORY: &str = r#"import { promises as fs } from "fs";

export class KnowledgeGraphManager {
  constructor(private memoryFilePath: string) {}

  async createEntities(entities: Entity[]): Promise<Entity[]> {
    const graph = await this.loadGraph();
    const fresh = entities.filter(e => !graph.entities.some(x => x.name === e.name));
    graph.entities.push(...fresh);
    await this.saveGraph(graph);
    return fresh;
  }

  async createRelations(relations: Relation[]): Promise<Relation[]> {
    const graph = await this.loadGraph();
    graph.relations.push(...relations);
    await this.saveGraph(graph);
    return relations;
  }
}
"#;

const HOSTILE: &str = "\tconst s = \"\u{1b}[2J名前\u{202e}\"; await write(s, \"::error::x\");\n";

static SOURCES: LazyLock<Vec<SourceFile>> = LazyLock::new(|| {
    let file = |path: &str, text: &str| {
        SourceFile::new(Arc::from(path), Arc::from(text), FileRole::Product)
    };
    let wide = format!(
        "{}await save(load());{}\n",
        "x();".repeat(5000),
        "y();".repeat(5000)
    );
    vec![
        file("dist/app.js", &wide),
        file("evil/`|<script>.ts", HOSTILE),
        file("src/memory/index.ts", MEMORY),
    ]
});

pub(crate) const RULES: &[RuleMeta] = &[
    RuleMeta {
        id: "file-read-modify-write",
        summary: "A file is read, changed in memory and written back",
        severity: Severity::High,
        persona: Persona::Regular,
        points: 18,
        cwe: 362,
        since: "0.1.0",
        page: "# file-read-modify-write\n\nTwo calls read the same file.\nThe later write wins.\n\n## Fix\n\nLock it.\n",
    },
    RuleMeta {
        id: "shared-temp-path",
        summary: "Two writers share one fixed temporary path",
        severity: Severity::Medium,
        persona: Persona::Regular,
        points: 10,
        cwe: 377,
        since: "0.1.0",
        page: "# shared-temp-path\n",
    },
];

pub(crate) fn view(report: &ScanReport) -> View<'_> {
    static ROOTS: LazyLock<Vec<String>> = LazyLock::new(|| vec![".".to_owned()]);
    View {
        report,
        sources: &SOURCES,
        rules: RULES,
        persona: Persona::Regular,
        roots: &ROOTS,
        base: "",
        hidden: Hidden {
            pedantic: 2,
            ..Hidden::default()
        },
        stats: None,
        terminal: Terminal {
            width: 80,
            ..Terminal::default()
        },
        verbose: false,
        guard: |finding| Some(format!("lock = {:?}", finding.resource.key)),
        proofs: None,
    }
}

pub(crate) fn place(
    file: &str,
    line: u32,
    columns: std::ops::Range<u32>,
    function: &str,
) -> Location {
    Location {
        file: file.to_owned(),
        line,
        column: columns.start,
        end_line: line,
        end_column: columns.end,
        function: function.to_owned(),
    }
}

fn step(actor: &str, action: Action, line: u32, text: &str) -> Step {
    Step {
        actor: actor.to_owned(),
        action,
        file: if line == 0 { "" } else { "src/memory/index.ts" }.to_owned(),
        line,
        function: String::new(),
        text: text.to_owned(),
        value: None,
    }
}

pub(crate) fn finding(line: u32, function: &str, tool: &str) -> Finding {
    let file = "src/memory/index.ts";
    let mut read = step("A", Action::Read, line - 2, "reads this.memoryFilePath");
    read.value = Some("[alice]".to_owned());
    let mut other = step("B", Action::Read, 40, "reads this.memoryFilePath");
    other.file = "src/memory/storage.ts".to_owned();
    other.value = Some("[alice]".to_owned());
    let mut write = step(
        "A",
        Action::Write,
        line,
        "writes what it computed from the old content",
    );
    write.value = Some("[alice, bob]".to_owned());
    Finding {
        rule: "file-read-modify-write".to_owned(),
        severity: Severity::High,
        confidence: Confidence::High,
        persona: Persona::Regular,
        scopes: vec![Scope::InProcess, Scope::CrossProcess],
        message: format!("`{function}` reads this.memoryFilePath, changes it and writes it back: what another call writes in between is lost"),
        fix: "hold one lock from the read to the write; between processes that is a lock file (proper-lockfile)".to_owned(),
        because: format!("`{tool}` is an MCP tool, and clients call tools concurrently"),
        fingerprint: "00000000000000f1".to_owned(),
        anchor: String::new(),
        resource: Resource {
            kind: ResourceKind::File,
            key: "this.memoryFilePath".to_owned(),
        },
        location: place(file, line, 11..32, &format!("KnowledgeGraphManager.{function}")),
        read: Some(place(file, line.saturating_sub(if line == 10 { 3 } else { 2 }), 25..41, function)),
        gap: Some(place(file, line.saturating_sub(if line == 10 { 3 } else { 2 }), 19..24, function)),
        entry_points: vec![EntryPoint {
            kind: EntryKind::Tool,
            name: tool.to_owned(),
            file: file.to_owned(),
            line: 1,
            via: vec![format!("KnowledgeGraphManager.{function}")],
        }],
        interleaving: vec![
            read,
            step("A", Action::Yield, line - 2, "awaits"),
            other,
            step("B", Action::Write, line, "writes carol"),
            write,
            step("A", Action::Outcome, 0, "carol is lost: the file says [alice, bob], and both callers were told it worked"),
        ],
        copies: Vec::new(),
        non_product: false,
        suppressed: None,
        edit: None,
    }
}

pub(crate) fn report() -> ScanReport {
    let mut ignored = finding(17, "createRelations", "other");
    ignored.suppressed = Some(Suppression {
        kind: SuppressionKind::Comment,
        reason: "only one writer".to_owned(),
    });
    let mut many = finding(17, "createRelations", "create_relations");
    many.entry_points = (0..7)
        .map(|n| EntryPoint {
            name: format!("tool_{n}"),
            ..many.entry_points[0].clone()
        })
        .collect();
    ScanReport {
        schema: SCAN_SCHEMA.to_owned(),
        tool_version: "0.1.0".to_owned(),
        source: None,
        summary: Summary {
            score: 73,
            grade: "C".to_owned(),
            files: 2,
            functions: 5,
            entry_points: 8,
            skipped: 3,
            suppressed: 1,
            deductions: vec![Deduction {
                rule: "file-read-modify-write".to_owned(),
                findings: 2,
                first: 18,
                second: 9,
            }],
            capped: false,
        },
        findings: vec![
            finding(10, "createEntities", "create_entities"),
            many,
            ignored,
        ],
        notes: vec![Note {
            file: Some("src/a.ts".to_owned()),
            line: Some(3),
            text: "nothing to ignore here: `data-race` does not fire on line 4".to_owned(),
        }],
        skipped: vec![
            Skipped {
                file: "node_modules/".to_owned(),
                reason: "vendored".to_owned(),
                fault: false,
            },
            Skipped {
                file: "src/broken.ts".to_owned(),
                reason: "line 7: Unexpected token".to_owned(),
                fault: true,
            },
        ],
    }
}

/// Every string that a stranger controls tries to get out.
pub(crate) fn hostile() -> ScanReport {
    let evil =
        "x\u{1b}[31m\r\n::error::pwned\n`|<script>alert(1)</script>[a](http://x)\u{202e}%0A@me"
            .to_owned();
    let mut report = report();
    report.findings.truncate(1);
    let finding = &mut report.findings[0];
    finding.location = place("evil/`|<script>.ts", 1, 2..200, &evil);
    finding.read = Some(place("evil/`|<script>.ts", 1, 12..30, &evil));
    finding.gap = None;
    finding.message = evil.clone();
    finding.fix = evil.clone();
    finding.because = evil.clone();
    finding.resource.key = evil.clone();
    for entry in &mut finding.entry_points {
        entry.name = evil.clone();
        entry.via = vec![evil.clone()];
    }
    for step in &mut finding.interleaving {
        step.text = evil.clone();
        step.value = Some(evil.clone());
        step.file = evil.clone();
    }
    report.notes[0].file = Some(evil.clone());
    report.notes[0].text = evil.clone();
    report.skipped.remove(0);
    report.skipped[0].file = evil.clone();
    report.skipped[0].reason = evil;
    report
}

/// One line of forty thousand characters.
pub(crate) fn minified() -> ScanReport {
    let mut report = report();
    report.findings.truncate(1);
    let finding = &mut report.findings[0];
    finding.location = place("dist/app.js", 1, 20007..20019, "f");
    finding.read = Some(place("dist/app.js", 1, 20012..20018, "f"));
    finding.gap = Some(place("dist/app.js", 1, 20001..20006, "f"));
    report
}
