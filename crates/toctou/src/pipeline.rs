//! The scan, end to end: files → modules → program → findings.
//!
//! Reading and lowering run in parallel, one file at a time; the results are
//! put back in path order, so the bytes that come out do not depend on the
//! number of threads. A file that cannot be read, decoded or parsed, or that
//! makes the front end panic, is reported and left out; the rest goes on.

mod lower;
mod panics;
mod read;
mod shipped;
mod units;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rayon::prelude::*;
use toctou_core::finding::{Finding, Note, Skipped};
use toctou_core::frontend::{Frontend, Manifest};
use toctou_core::ir::{Module, Program};
use toctou_core::source::{FileId, FileRole, SourceFile};
use toctou_models::{Asked, Models};
use toctou_report::Stats;
use toctou_rules::baseline::Baseline;
use toctou_rules::suppress::{self, CommentIgnore, SuppressError};

use crate::config::Config;
use crate::discover::{Discovery, Root, discover};
use crate::errors::Error;
use crate::languages::{self, FRONTENDS};
use crate::terminal;
use lower::{Outcome, keep, lower};
use panics::{caught, guarded, quietly};

/// Deeply nested source must not overflow; only touched pages cost memory.
pub(crate) const STACK: usize = 256 << 20;

pub(crate) struct Request<'a> {
    pub(crate) root: &'a Root,
    pub(crate) config: &'a Config,
    pub(crate) baseline: Option<&'a Baseline>,
    pub(crate) threads: Option<usize>,
    pub(crate) max_file_size: u64,
    pub(crate) progress: Progress,
    /// Leads from the config's folder to the root (`packages/a/`).
    pub(crate) prefix: String,
    /// What an editor has changed and not saved.
    pub(crate) overlay: Option<&'a Overlay>,
    /// Set by whoever has no use for the answer any more.
    pub(crate) stop: Option<&'a AtomicBool>,
    /// Go on where ignore comments are wrong: one of the past cannot be mended
    /// any more, one in an editor is being written.
    pub(crate) lenient: bool,
}

/// Texts that stand for files, by absolute path.
pub(crate) type Overlay = BTreeMap<PathBuf, Arc<str>>;

impl Request<'_> {
    fn is_stopped(&self) -> bool {
        self.stop.is_some_and(|stop| stop.load(Ordering::Relaxed))
    }
}

/// How to show what goes on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Progress {
    No,
    Bar,
    /// A JSON object a line on standard error, for a program that waits.
    Lines,
}

impl Progress {
    /// Says one thing, if there is no bar that does.
    pub(crate) fn line(self, text: &str) {
        if self == Self::Lines {
            let line = serde_json::json!({ "progress": text });
            terminal::to_stderr(&format!("{line}\n"));
        }
    }
}

/// Everything that was found, for every persona, before anything is left out.
#[derive(Debug, Default)]
pub(crate) struct Scan {
    pub(crate) findings: Vec<Finding>,
    pub(crate) notes: Vec<Note>,
    pub(crate) skipped: Vec<Skipped>,
    pub(crate) skipped_files: u32,
    pub(crate) sources: Vec<SourceFile>,
    pub(crate) functions: u32,
    pub(crate) entry_points: u32,
    pub(crate) stats: Stats,
    /// What a scan that is lenient passed over.
    pub(crate) bad_comments: Vec<SuppressError>,
}

pub(crate) fn run(request: &Request<'_>) -> Result<Scan, Error> {
    let found = discover(request.root, &request.config.exclude, &request.prefix);
    let models = models(request.config, &found)?;
    if found.files.is_empty() {
        return Err(nothing(request.root, &found));
    }
    let threads = request.threads.unwrap_or(0);
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(threads)
        .stack_size(STACK)
        .build()
        .map_err(|error| Error::Threads {
            count: threads,
            message: error.to_string(),
        })?;
    // `install` runs on a thread of the pool: analysis has the large stack too.
    pool.install(|| quietly(|| scan(request, &models, found)))
}

fn scan(request: &Request<'_>, models: &[Models], found: Discovery) -> Result<Scan, Error> {
    let mut scan = Scan {
        skipped: found.skipped,
        skipped_files: found.skipped_files,
        ..Scan::default()
    };
    if found.generated {
        scan.notes.push(note(
            "generated code is scanned, because there is hardly any other source here",
        ));
    }
    for (language, count) in &found.other_languages {
        let files = if *count == 1 { "file" } else { "files" };
        scan.notes.push(note(&format!(
            "{count} {language} {files} not analysed: toctou does not know {language} yet"
        )));
    }

    let progress = progress_bar(request.progress == Progress::Bar, found.files.len());
    request
        .progress
        .line(&format!("reading {} files", found.files.len()));
    let lower_all = |even_minified| -> Vec<Outcome> {
        progress.set_position(0);
        found
            .files
            .par_iter()
            .map(|candidate| {
                let outcome = lower(candidate, request, even_minified);
                progress.inc(1);
                outcome
            })
            .collect()
    };
    let mut lowered = lower_all(false);
    if !lowered
        .iter()
        .any(|outcome| matches!(outcome, Outcome::Module { .. }))
    {
        lowered = lower_all(true);
    }
    if request.is_stopped() {
        return Err(Error::Stopped);
    }
    progress.set_message("analysing");
    request.progress.line("analysing");
    let languages = keep(lowered, &found.files, &mut scan)?;

    let manifests: Vec<Manifest> = found
        .manifests
        .iter()
        .filter_map(|manifest| {
            Some(Manifest {
                path: manifest.path.clone(),
                text: read::text(&manifest.absolute, request.max_file_size, request.overlay)
                    .ok()?
                    .text,
            })
        })
        .collect();
    let (schemas, manifests): (Vec<Manifest>, Vec<Manifest>) = manifests
        .into_iter()
        .partition(|manifest| languages::is_schema(&manifest.path));
    let schemas: Vec<String> = schemas.into_iter().map(|schema| schema.text).collect();
    let (guides, manifests): (Vec<Manifest>, Vec<Manifest>) = manifests
        .into_iter()
        .partition(|manifest| languages::is_guide(&manifest.path));
    let guides: Vec<String> = guides.into_iter().map(|guide| guide.text).collect();
    let mut said = Said::default();
    let mut units_of_all: Vec<Analysed> = Vec::new();
    for ((frontend, mut sources), models) in FRONTENDS.iter().zip(languages).zip(models) {
        if sources.files.is_empty() {
            continue;
        }
        let paths: Vec<String> = sources
            .files
            .iter()
            .map(|source| source.path.to_string())
            .collect();
        let units = guarded("resolving imports", || {
            (frontend.resolve)(&paths, &mut sources.modules, &manifests);
            let asked = asked(frontend, &manifests);
            let notes = models.set_dispatch(&paths, &mut sources.modules, &asked);
            scan.notes.extend(notes.iter().map(|text| note(text)));
            shipped::mark(frontend, &paths, &mut sources, &manifests, &guides);
            units::units(frontend, sources, &manifests)
        })?;
        let analysed: Result<Vec<Analysed>, Error> = units
            .into_par_iter()
            .map(|(files, modules)| {
                if request.is_stopped() {
                    return Err(Error::Stopped);
                }
                guarded("analysing the program", || {
                    analyse(files, modules, &schemas, models, frontend)
                })
            })
            .collect();
        units_of_all.extend(analysed?);
    }
    // Beside a server, a package that nothing of it uses is not the server: an extension of an
    // editor, a page for the browser.
    let served = units_of_all.iter().any(|unit| unit.serves);
    for mut unit in units_of_all {
        if served && !unit.serves {
            toctou_rules::set_apart(&mut unit.findings);
        }
        scan.take(unit, &mut said);
    }
    progress.finish_and_clear();
    said.bad_comments
        .sort_by(|a, b| (&a.file, a.line).cmp(&(&b.file, b.line)));
    if !said.bad_comments.is_empty() && !request.lenient {
        return Err(Error::Suppressions(said.bad_comments));
    }
    scan.bad_comments = said.bad_comments;
    said.comments
        .sort_by(|a, b| (&a.file, a.line).cmp(&(&b.file, b.line)));
    scan.stats.unknown_calls = said.unknown_calls.into_iter().collect();
    scan.stats
        .unknown_calls
        .sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    scan.sources.sort_by(|a, b| a.path.cmp(&b.path));
    judge(&mut scan, &said.comments, request);
    scan.notes.sort();
    scan.notes.dedup();
    scan.skipped.sort();
    Ok(scan)
}

/// Which versions of which packages the manifests of a language ask for.
fn asked(frontend: &Frontend, manifests: &[Manifest]) -> Vec<Asked> {
    manifests
        .iter()
        .map(|manifest| Asked {
            folder: manifest
                .path
                .rsplit_once('/')
                .map_or_else(String::new, |(folder, _)| folder.to_owned()),
            requirements: (frontend.requirements)(manifest),
        })
        .collect()
}

/// What all units say together.
#[derive(Default)]
struct Said {
    comments: Vec<CommentIgnore>,
    bad_comments: Vec<SuppressError>,
    unknown_calls: BTreeMap<String, u32>,
}

/// What one unit gives. Its program is not part of it: the memory serves the units after it.
struct Analysed {
    files: Vec<SourceFile>,
    functions: usize,
    comments: Result<Vec<CommentIgnore>, Vec<SuppressError>>,
    findings: Vec<Finding>,
    entry_points: usize,
    /// MCP clients call something of it.
    serves: bool,
    unknown_calls: Vec<(String, u32)>,
    cut_off: bool,
}

fn analyse(
    files: Vec<SourceFile>,
    modules: Vec<Module>,
    schemas: &[String],
    models: &Models,
    frontend: &Frontend,
) -> Analysed {
    let mut program = Program::link(files, modules);
    program.schemas = schemas.to_vec();
    let analysis = toctou_analysis::analyze(&program, models);
    let findings = toctou_rules::findings(&program, &analysis, frontend);
    let product = |entry: &toctou_analysis::Reach| {
        program.file_of(entry.registered.func).role == FileRole::Product
    };
    Analysed {
        serves: analysis
            .entries
            .iter()
            .any(|entry| entry.kind.is_call() && product(entry)),
        findings,
        entry_points: analysis.entry_point_count(),
        unknown_calls: analysis.unknown_calls(),
        cut_off: analysis.cut_off > 0,
        functions: program.functions.len(),
        comments: suppress::comments(&program),
        files: program.files,
    }
}

impl Scan {
    fn take(&mut self, unit: Analysed, said: &mut Said) {
        if unit.cut_off {
            self.notes.push(note(
                "a table or variable holds more functions than are followed: races behind the others can be missing here",
            ));
        }
        self.functions += unit.functions as u32;
        self.entry_points += unit.entry_points as u32;
        for (name, count) in unit.unknown_calls {
            *said.unknown_calls.entry(name).or_default() += count;
        }
        for file in &unit.files {
            self.stats.bytes += file.text.len() as u64;
            self.stats.lines += u64::from(file.line_count());
        }
        match unit.comments {
            Ok(found) => said.comments.extend(found),
            Err(faults) => said.bad_comments.extend(faults),
        }
        self.findings.extend(unit.findings);
        self.sources.extend(unit.files);
    }
}

/// Applies what the project has said about its findings.
fn judge(scan: &mut Scan, comments: &[CommentIgnore], request: &Request<'_>) {
    for (rule, severity) in &request.config.levels {
        match severity {
            None => scan.findings.retain(|finding| finding.rule != *rule),
            Some(severity) => {
                for finding in scan
                    .findings
                    .iter_mut()
                    .filter(|finding| finding.rule == *rule)
                {
                    finding.severity = *severity;
                }
            }
        }
    }
    for finding in &mut scan.findings {
        let file = scan
            .sources
            .binary_search_by(|file| (*file.path).cmp(&finding.location.file));
        finding.non_product |=
            file.is_ok_and(|index| scan.sources[index].role != FileRole::Product);
    }
    scan.findings.sort_by(|a, b| {
        (&a.location, &a.rule, &a.fingerprint).cmp(&(&b.location, &b.rule, &b.fingerprint))
    });
    let ignores = &request.config.ignores;
    // To ask for the day reads the tables of time zones.
    let today = match ignores.iter().any(|ignore| ignore.expires.is_some()) {
        true => jiff::Zoned::now().date(),
        false => jiff::civil::Date::default(),
    };
    scan.notes.extend(suppress::apply(
        &mut scan.findings,
        comments,
        ignores,
        &request.prefix,
        today,
    ));
    if let Some(baseline) = request.baseline {
        let gone = baseline.apply(&mut scan.findings);
        if gone > 0 && gone == baseline.len() {
            scan.notes.push(note(
                "no finding is in the baseline; was it written for another folder?",
            ));
        } else if gone > 0 {
            let entries = if gone == 1 { "entry is" } else { "entries are" };
            scan.notes.push(note(&format!(
                "{gone} baseline {entries} found no longer: `toctou baseline prune`"
            )));
        }
    }
}

fn note(text: &str) -> Note {
    Note {
        file: None,
        line: None,
        text: text.to_owned(),
    }
}

/// The models of each front end, those that come with the program only where
/// there are files for them.
fn models(config: &Config, found: &Discovery) -> Result<Vec<Models>, Error> {
    let is_there = |language| found.files.iter().any(|file| file.language == language);
    let mut all: Vec<Models> = FRONTENDS
        .iter()
        .enumerate()
        .map(|(language, frontend)| {
            if is_there(language) {
                Models::builtin(frontend.id)
            } else {
                Models::empty(frontend.id)
            }
        })
        .collect();
    for path in &config.models {
        let text = std::fs::read_to_string(path).map_err(|error| Error::Read {
            path: path.clone(),
            error,
        })?;
        // One that extends another needs it: where nothing is scanned, it is not there.
        for (_, models) in all.iter_mut().enumerate().filter(|(l, _)| is_there(*l)) {
            models
                .add(&path.display().to_string(), &text)
                .map_err(|error| Error::Model {
                    message: error.to_string(),
                })?;
        }
    }
    Ok(all)
}

fn nothing(root: &Root, found: &Discovery) -> Error {
    let faults: Vec<String> = found
        .skipped
        .iter()
        .filter(|s| s.fault)
        .map(|s| format!("{}: {}", s.file, s.reason))
        .collect();
    if !faults.is_empty() {
        return Error::NothingReadable { faults };
    }
    let place = match root.paths.as_slice() {
        _ if root.origin.is_some() => root.origin.clone().unwrap_or_default(),
        [one] => one.display().to_string(),
        paths => format!("{} paths", paths.len()),
    };
    let others: Vec<&str> = found.other_languages.keys().copied().collect();
    let mut what = format!("no {} source in {place}", languages::labels());
    if !others.is_empty() {
        what += &format!(
            "; there is {}, which toctou does not know yet",
            others.join(" and ")
        );
    } else if found.skipped_files > 0 {
        what += "; what is there is vendored, generated or excluded";
    }
    Error::NothingToAnalyse { what }
}

fn progress_bar(wanted: bool, files: usize) -> indicatif::ProgressBar {
    if !wanted {
        return indicatif::ProgressBar::hidden();
    }
    let bar = indicatif::ProgressBar::new(files as u64);
    if let Ok(style) = indicatif::ProgressStyle::with_template("{msg} {wide_bar} {pos}/{len} files")
    {
        bar.set_style(style);
    }
    bar.set_message("reading");
    bar
}

/// The lines of the toctou comments of a text.
pub(crate) fn directives(frontend: &Frontend, file: FileId, path: &str, text: &str) -> Vec<u32> {
    let source = SourceFile::new(path.into(), text.into(), FileRole::Product);
    match quietly(|| caught(|| (frontend.lower)(file, path, text))) {
        Ok(Ok(lowered)) => lowered
            .module
            .directives
            .iter()
            .map(|directive| source.line(directive.span.start))
            .collect(),
        _ => Vec::new(),
    }
}

/// The baseline to use: the one named, else the config's, else the one that lies there.
pub(crate) fn baseline_path(named: Option<&Path>, config: &Config, root: &Root) -> PathBuf {
    let beside = || {
        config
            .folder()
            .unwrap_or(&root.folder)
            .join(toctou_rules::baseline::DEFAULT_NAME)
    };
    named
        .map(Path::to_path_buf)
        .or_else(|| config.baseline.clone())
        .unwrap_or_else(beside)
}
