//! Which rule a window belongs to, and the finding that comes of it.

use rustc_hash::FxHashMap;
use toctou_analysis::{Analysis, Defect, Reach, Spot};
use toctou_core::finding::{EntryKind, EntryPoint, Finding, Location, Resource, ResourceKind};
use toctou_core::fingerprint::fingerprint;
use toctou_core::frontend::Frontend;
use toctou_core::ir::Program;
use toctou_core::rule::{Confidence, Persona, RuleMeta, Scope};
use toctou_core::source::{FileRole, Span};

use crate::case::{Case, Verdict};
use crate::doubt;
use crate::edit::Mender;
use crate::nested::{self, Way};
use crate::rules::{self, *};
use crate::story;

type Judge = fn(&Case<'_>) -> Option<Verdict>;

/// The first that claims a window names it: the special before the general.
const ORDER: &[(&RuleMeta, Judge)] = &[
    (&broken_lock::META, broken_lock::judge),
    (&shared_temp_path::META, shared_temp_path::judge),
    (&path_check_then_open::META, path_check_then_open::judge),
    (
        &process_lock_on_shared_resource::META,
        process_lock_on_shared_resource::judge,
    ),
    (&process_local_limit::META, process_local_limit::judge),
    (&auth_check_then_act::META, auth_check_then_act::judge),
    (
        &single_use_check_then_consume::META,
        single_use_check_then_consume::judge,
    ),
    (&non_atomic_rate_limit::META, non_atomic_rate_limit::judge),
    (&lock_scope_too_narrow::META, lock_scope_too_narrow::judge),
    (&db_lost_update::META, db_lost_update::judge),
    (&db_check_then_write::META, db_check_then_write::judge),
    (&file_read_modify_write::META, file_read_modify_write::judge),
    (&file_check_then_act::META, file_check_then_act::judge),
    (&session_lost_update::META, session_lost_update::judge),
    (&memory_check_then_act::META, memory_check_then_act::judge),
];

/// Findings of every persona, in no particular order but always the same.
pub fn findings(program: &Program, analysis: &Analysis, frontend: &Frontend) -> Vec<Finding> {
    let mender = Mender::new(program, frontend);
    let mut out: Vec<(Finding, String)> = Vec::new();
    let mut ways: Vec<Way> = Vec::new();
    for w in &analysis.windows {
        let case = Case {
            program,
            analysis,
            w,
        };
        for (meta, judge) in ORDER {
            // Who waits and goes on has tested nothing but a limit.
            if w.waits && meta.id != non_atomic_rate_limit::META.id {
                continue;
            }
            // What is made on first use is tested, and nothing else.
            if w.latched && meta.id != memory_check_then_act::META.id {
                continue;
            }
            if let Some(verdict) = judge(&case) {
                let found = of_window(&case, meta, verdict, &mender);
                ways.push(Way::of(&case, &found.0));
                out.push(found);
                break;
            }
        }
    }
    nested::drop_outer(&mut out, &ways);
    for defect in &analysis.defects {
        if let Some((meta, verdict)) = rules::of_defect(program, defect) {
            out.push(of_defect(program, defect, meta, verdict, &mender));
        }
    }
    let mut out = one_per_place(out);
    crate::copies::fold(&mut out);
    number(out)
}

/// Several reads that lead to one write are one thing to fix: the finding that
/// says most stands for them.
fn one_per_place(mut list: Vec<(Finding, String)>) -> Vec<(Finding, String)> {
    list.sort_by(|(a, _), (b, _)| {
        let place = |f: &Finding| (f.location.clone(), f.rule.clone());
        place(a)
            .cmp(&place(b))
            .then(a.persona.cmp(&b.persona))
            .then(b.scopes.len().cmp(&a.scopes.len()))
            .then(b.confidence.cmp(&a.confidence))
            .then(b.interleaving[0].line.cmp(&a.interleaving[0].line))
    });
    list.dedup_by(|(b, _), (a, _)| {
        let same = a.location == b.location && a.rule == b.rule;
        if same {
            for e in std::mem::take(&mut b.entry_points) {
                if !a
                    .entry_points
                    .iter()
                    .any(|o| o.kind == e.kind && o.name == e.name)
                {
                    a.entry_points.push(e);
                }
            }
            a.entry_points.sort();
        }
        same
    });
    one_per_gap(&mut list);
    // One write, several names: the one that comes first in the order is meant.
    let rank = |rule: &str| ORDER.iter().position(|(m, _)| m.id == rule);
    list.sort_by(|(a, _), (b, _)| {
        (&a.location, a.persona, rank(&a.rule)).cmp(&(&b.location, b.persona, rank(&b.rule)))
    });
    list.dedup_by(|(b, _), (a, _)| {
        // That a path was judged before is another matter than what is done to the file.
        let apart = |f: &Finding| f.rule == path_check_then_open::META.id;
        let ranked = |f: &Finding| rank(&f.rule).is_some() && !apart(f);
        a.location == b.location && ranked(a) && ranked(b)
    });
    // Memory that threads use at once: that a change can be lost there is the least of it.
    let torn: Vec<(Location, Persona)> = list
        .iter()
        .filter(|(f, _)| f.rule == data_race::META.id)
        .map(|(f, _)| (f.location.clone(), f.persona))
        .collect();
    list.retain(|(f, _)| {
        let told = |(at, persona): &(Location, Persona)| *at == f.location && *persona <= f.persona;
        f.resource.kind != ResourceKind::Memory || rank(&f.rule).is_none() || !torn.iter().any(told)
    });
    list
}

/// Several variables that are set behind the same wait are one thing to fix.
fn one_per_gap(list: &mut Vec<(Finding, String)>) {
    list.dedup_by(|(b, _), (a, _)| {
        let same = a.rule == memory_check_then_act::META.id
            && a.rule == b.rule
            && a.gap.is_some()
            && a.gap == b.gap
            && a.location.function == b.location.function
            && a.persona == b.persona;
        if same && !a.message.contains(&format!("`{}`", b.resource.key)) {
            a.message += &format!("; `{}` with it", b.resource.key);
        }
        same
    });
}

/// Fingerprints; equal ones are told apart by their order in the file.
fn number(list: Vec<(Finding, String)>) -> Vec<Finding> {
    let mut seen: FxHashMap<String, u32> = FxHashMap::default();
    list.into_iter()
        .map(|(mut f, kinds)| {
            let resource = f.resource.key.clone();
            let parts = [
                f.rule.as_str(),
                &f.location.file,
                &f.location.function,
                &resource,
                &kinds,
            ];
            let base = fingerprint(&parts, 0);
            let ordinal = seen.entry(base).or_default();
            let anchor = [parts[0], "", parts[2], parts[3], parts[4]];
            let anchor = fingerprint(&anchor, *ordinal);
            f.fingerprint = fingerprint(&parts, *ordinal);
            f.anchor = anchor;
            *ordinal += 1;
            f
        })
        .collect()
}

pub(crate) fn location(program: &Program, spot: Spot) -> Location {
    let file = program.file_of(spot.func);
    let start = file.line_column(spot.span.start);
    let end = file.line_column(spot.span.end.max(spot.span.start));
    Location {
        file: file.path.to_string(),
        line: start.line,
        column: start.column,
        end_line: end.line,
        end_column: end.column,
        function: display_function(program, spot.func),
    }
}

/// A callback is called by the name of the function it stands in.
pub(crate) fn display_function(program: &Program, func: toctou_core::ir::FuncId) -> String {
    let mut at = func;
    for _ in 0..16 {
        let function = program.function(at);
        let name = program.names.text(function.name);
        if !name.starts_with('<') || function.class.is_some() {
            return program.qualified_name(at);
        }
        match function.parent {
            Some(parent) if program.function(parent).parent.is_some() => at = parent,
            _ => break,
        }
    }
    program.qualified_name(func)
}

fn of_window(
    case: &Case<'_>,
    meta: &RuleMeta,
    verdict: Verdict,
    mender: &Mender<'_>,
) -> (Finding, String) {
    let (program, w) = (case.program, case.w);
    let mut scopes = Vec::new();
    if w.in_process || w.accidental && !w.cross_process {
        scopes.push(Scope::InProcess);
    }
    if w.cross_process {
        scopes.push(Scope::CrossProcess);
    }
    // Of a shared temporary file, the place where it gets its name is the one to mend.
    let write = if w.read_act == toctou_analysis::Act::Write {
        w.read[0]
    } else {
        w.write[0]
    };
    let read = w.read[0];
    let gap = w
        .gap
        .map(|span| location(program, Spot { func: w.meet, span }));
    let confidence = verdict.confidence.unwrap_or_else(|| confidence(case));
    let mut persona = verdict.persona.unwrap_or(meta.persona);
    if !w.in_process && !w.cross_process && verdict.persona.is_none() {
        persona = Persona::Auditor;
    }
    // Code that runs once at start, and code that nobody is seen to call in a
    // server, races only if something that we cannot see makes it.
    // So does a timer that would have to overtake itself, or that decides alike in every process.
    if case.only_at_start()
        || !case.is_served() && w.in_server
        || (case.is(ResourceKind::Memory) || !w.data) && case.only_by_timer()
    {
        persona = persona.max(Persona::Pedantic);
    }
    // Who waited for the lock in vain, and goes on all the same, has decided so.
    if w.hoped {
        persona = persona.max(Persona::Pedantic);
    }
    let kinds = format!("{:?}>{:?}", w.read_act, w.write_act);
    let mut finding = Finding {
        rule: meta.id.to_owned(),
        severity: verdict.severity.unwrap_or(meta.severity),
        confidence,
        persona,
        scopes: scopes.clone(),
        message: verdict.message,
        fix: verdict.fix,
        because: because(w.in_server, &w.reached_by, &scopes),
        fingerprint: String::new(),
        anchor: String::new(),
        resource: Resource {
            kind: w.kind,
            key: w.key.clone(),
        },
        location: location(program, write),
        read: Some(location(program, read)),
        gap,
        entry_points: entry_points(program, &w.reached_by),
        interleaving: story::of_window(case, &verdict.outcome),
        copies: Vec::new(),
        non_product: w.role != FileRole::Product,
        suppressed: None,
        edit: mender.edit(verdict.mend),
    };
    if persona == Persona::Regular
        && let Some(doubt) = doubt::about(case, meta)
    {
        doubt::withhold(&mut finding, doubt.says);
    }
    (finding, kinds)
}

fn of_defect(
    program: &Program,
    defect: &Defect,
    meta: &RuleMeta,
    verdict: Verdict,
    mender: &Mender<'_>,
) -> (Finding, String) {
    let spot = defect.spot;
    let mut persona = verdict.persona.unwrap_or(meta.persona);
    let served = defect
        .reached_by
        .iter()
        .any(|r| !matches!(r.kind, EntryKind::Startup | EntryKind::Export));
    // What is left open is left open, whoever came by.
    let leaks = defect.kind == toctou_analysis::DefectKind::HalfOpen;
    if !served && defect.in_server && !leaks {
        persona = persona.max(Persona::Pedantic);
    }
    let mut scopes = Vec::new();
    if defect.in_process {
        scopes.push(Scope::InProcess);
    }
    if defect.cross_process {
        scopes.push(Scope::CrossProcess);
    }
    let mut finding = Finding {
        rule: meta.id.to_owned(),
        severity: verdict.severity.unwrap_or(meta.severity),
        confidence: verdict.confidence.unwrap_or(Confidence::Medium),
        persona,
        message: verdict.message,
        fix: verdict.fix,
        because: because(defect.in_server, &defect.reached_by, &scopes),
        scopes,
        fingerprint: String::new(),
        anchor: String::new(),
        resource: Resource {
            kind: defect.resource,
            key: defect.key.clone(),
        },
        location: location(program, spot),
        read: defect
            .first
            .filter(|_| story::begins_with_a_read(defect.kind))
            .map(|spot| location(program, spot)),
        gap: None,
        entry_points: entry_points(program, &defect.reached_by),
        interleaving: story::of_defect(program, defect, &verdict.outcome),
        copies: Vec::new(),
        non_product: defect.role != FileRole::Product,
        suppressed: None,
        edit: mender.edit(verdict.mend),
    };
    if persona == Persona::Regular
        && let Some(says) = doubt::about_defect(defect)
    {
        doubt::withhold(&mut finding, says);
    }
    (finding, format!("{:?}", defect.kind))
}

fn confidence(case: &Case<'_>) -> Confidence {
    if case.w.duck || !case.is_served() {
        return Confidence::Medium;
    }
    Confidence::High
}

fn because(in_server: bool, reached: &[Reach], scopes: &[Scope]) -> String {
    let first = reached
        .iter()
        .find(|r| !matches!(r.kind, EntryKind::Startup | EntryKind::Export))
        .or(reached.first());
    let Some(first) = first else {
        return "nothing was seen that keeps two calls apart here".to_owned();
    };
    let name = &first.name;
    let who = match first.kind {
        EntryKind::Tool => format!("`{name}` is an MCP tool and clients call tools concurrently"),
        EntryKind::Resource | EntryKind::Prompt | EntryKind::Request => {
            format!(
                "`{name}` is an {} and clients send requests concurrently",
                first.kind.noun()
            )
        }
        EntryKind::Route => format!("`{name}` is an HTTP route and requests come concurrently"),
        EntryKind::Event => format!(
            "`{name}` is an event handler: events do not wait for the last one's handler to end"
        ),
        EntryKind::Timer => "a timer runs it, whatever else is under way".to_owned(),
        EntryKind::Startup => "it runs when the process starts".to_owned(),
        EntryKind::Export if in_server => {
            format!("`{name}` can be called, though nothing here was seen to call it")
        }
        EntryKind::Export => {
            format!(
                "`{name}` is called by code that is not here, and nothing keeps its calls apart"
            )
        }
    };
    if scopes == [Scope::CrossProcess] {
        return format!("{who}, and a stdio server is started once per client on the same data");
    }
    who
}

fn entry_points(program: &Program, reached: &[Reach]) -> Vec<EntryPoint> {
    let mut out: Vec<EntryPoint> = reached
        .iter()
        .map(|r| {
            let spot = location(program, r.registered);
            EntryPoint {
                kind: r.kind,
                name: r.name.clone(),
                file: spot.file,
                line: spot.line,
                via: r.via.iter().map(|f| display_function(program, *f)).fold(
                    Vec::new(),
                    |mut list, name| {
                        if list.last() != Some(&name) {
                            list.push(name);
                        }
                        list
                    },
                ),
            }
        })
        .collect();
    out.sort();
    out.dedup();
    // Where clients get in, that start-up or an export leads there too is no news.
    if out
        .iter()
        .any(|e| !matches!(e.kind, EntryKind::Startup | EntryKind::Export))
    {
        out.retain(|e| !matches!(e.kind, EntryKind::Startup | EntryKind::Export));
    }
    out
}

/// The text of a place, on one line.
pub(crate) fn excerpt(program: &Program, spot: Spot) -> String {
    let file = program.file_of(spot.func);
    let text = file.slice(Span::new(spot.span.start, spot.span.end));
    let flat: String = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if flat.chars().count() > 72 {
        return flat.chars().take(71).collect::<String>() + "…";
    }
    flat
}
