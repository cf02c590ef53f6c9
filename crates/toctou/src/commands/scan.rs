//! `toctou scan`: find races in the source of a server.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::atomic::AtomicBool;

use toctou_core::finding::{Finding, ScanReport};
use toctou_core::rule::{Persona, Severity};
use toctou_report::{Proofs, View};
use toctou_rules::baseline::Baseline;
use toctou_rules::registry;

use crate::cli::{InputArgs, ScanArgs};
use crate::config::{self, Config};
use crate::discover::{self, Root};
use crate::errors::{Error, FINDINGS};
use crate::output::OutputSpec;
use crate::pipeline::{self, Overlay, Progress, Request, Scan};
use crate::select::{Selection, fails, select};
use crate::{confine, fetch, fix, output, since, terminal};

pub(crate) fn run(args: &ScanArgs) -> Result<u8, Error> {
    // A clash of outputs is better known before the work than after it.
    let outputs = match args.diff {
        true => beside_a_diff(&args.output)?,
        false => output::plan(&args.output)?,
    };
    let proofs = args.proofs.as_deref().map(read_proofs).transpose()?;
    confine::apply(&args.source, args.input.threads)?;
    let progress = progress(&args.input, args.quiet, args.source.progress_lines);
    let fetched = fetch::fetch(args, progress)?;
    if args.fix && fetched.is_some() {
        return Err(Error::NotHere);
    }
    let input = match &fetched {
        Some(fetched) => Input::fetched(&args.input, fetched)?,
        None => Input::open(&args.input)?,
    };
    let baseline = input.baseline(&args.input)?;
    let job_summary = if args.job_summary {
        Some(output::job_summary()?)
    } else {
        None
    };
    let look = || -> Result<(Scan, BTreeSet<String>), Error> {
        let mut scan = input.scan(&args.input, baseline.as_ref(), progress)?;
        if let Some(fetched) = &fetched {
            fetched.add_to(&mut scan);
        }
        if let Some(proofs) = &proofs {
            proofs.mark(&mut scan.findings);
        }
        let known = match &args.since {
            Some(name) => since::known(&input, &args.input, name, &mut scan)?,
            None => BTreeSet::new(),
        };
        Ok((scan, known))
    };
    let config = &input.config;
    let persona = input.persona(&args.input);
    let select_from = |scan: &Scan, known: &BTreeSet<String>| {
        let selection = Selection {
            persona,
            min_severity: args
                .min_severity
                .or(config.min_severity)
                .unwrap_or(Severity::Info),
            rules: &args.rule,
            known,
        };
        select(scan, &selection)
    };
    let (mut scan, mut known) = look()?;
    let (mut report, mut hidden) = select_from(&scan, &known);
    if args.diff || args.fix {
        change(args, &input, &scan, &report)?;
    }
    if args.fix {
        (scan, known) = look()?;
        (report, hidden) = select_from(&scan, &known);
    }
    report.source = fetched.as_ref().map(|fetched| fetched.source.clone());
    let mut roots: Vec<String> = args
        .input
        .paths
        .iter()
        .map(|path| path.display().to_string())
        .collect();
    if let Some(source) = &report.source {
        roots = vec![source.to_string()];
    }
    // The report does not depend on the order in which paths are given.
    roots.sort_unstable();
    let mut view = View {
        report: &report,
        sources: &scan.sources,
        rules: registry::all(),
        persona,
        roots: &roots,
        base: &input.root.base,
        hidden,
        stats: args.stats.then_some(&scan.stats),
        terminal: terminal::of_stdout(),
        verbose: args.verbose,
        guard: super::guard::entry,
        proofs: proofs.as_ref(),
    };
    let mut written = Vec::new();
    for spec in &outputs {
        match &spec.path {
            None => {
                view.terminal = terminal::of_stdout();
                output::to_stdout(&spec.format.render(&view))?;
            }
            Some(path) => {
                view.terminal = terminal::of_file();
                output::to_file(path, &spec.format.render(&view))?;
                written.push(path.display().to_string());
            }
        }
    }
    if let Some(path) = job_summary {
        view.terminal = terminal::of_file();
        output::append(&path, &output::summary_format().render(&view))?;
        written.push("the job summary".to_owned());
    }
    if !args.quiet && !written.is_empty() {
        let count = view.active().count();
        let noun = if count == 1 { "finding" } else { "findings" };
        terminal::to_stderr(&format!(
            "{count} {noun}, written to {}\n",
            written.join(", ")
        ));
    }
    let fail_on = args.fail_on.or(config.fail_on).unwrap_or(Severity::Info);
    let failed = view.active().any(|finding| fails(finding, fail_on));
    Ok(if failed && !args.exit_zero {
        FINDINGS
    } else {
        0
    })
}

/// Shows or makes the changes that findings bring along.
fn change(args: &ScanArgs, input: &Input, scan: &Scan, report: &ScanReport) -> Result<(), Error> {
    let active = report.findings.iter().filter(|f| f.suppressed.is_none());
    let findings: Vec<&Finding> = active.filter(|f| f.edit.is_some()).collect();
    let plan = fix::plan(input, &args.input, scan, &findings)?;
    let (verb, files) = if args.fix {
        plan.write(&input.root.folder, args.allow_dirty)?;
        ("closed", "changed")
    } else {
        output::to_stdout(&plan.diff(&input.root.base))?;
        ("would be closed", "to change")
    };
    if !args.quiet {
        let count = |number: usize, noun: &str| match number {
            1 => format!("1 {noun}"),
            number => format!("{number} {noun}s"),
        };
        terminal::to_stderr(&format!(
            "{} {verb}, {} {files}\n",
            count(plan.closed, "finding"),
            count(plan.files.len(), "file"),
        ));
    }
    Ok(())
}

/// A diff has standard output for itself.
fn beside_a_diff(asked: &[OutputSpec]) -> Result<Vec<OutputSpec>, Error> {
    match asked.iter().find(|spec| spec.path.is_none()) {
        Some(spec) => Err(Error::DiffClash {
            format: spec.format.name,
        }),
        None if asked.is_empty() => Ok(Vec::new()),
        None => output::plan(asked),
    }
}

/// What is scanned, and under which config: shared by all commands that scan.
pub(crate) struct Input {
    pub(crate) root: Root,
    pub(crate) config: Config,
}

impl Input {
    pub(crate) fn open(args: &InputArgs) -> Result<Self, Error> {
        let root = discover::root(&args.paths)?;
        let path = match &args.config {
            Some(path) => Some(
                path.canonicalize()
                    .map_err(|_| Error::NoSuchPath { path: path.clone() })?,
            ),
            None if args.no_config => None,
            None => config::find(&root.folder),
        };
        let config = match path {
            Some(path) => config::load(&path)?,
            None => Config::default(),
        };
        Ok(Self { root, config })
    }

    /// A stranger's settings and baseline decide nothing; the user's do, if they are named.
    fn fetched(args: &InputArgs, fetched: &fetch::Source) -> Result<Self, Error> {
        let config = match &args.config {
            Some(path) => config::load(path)?,
            None => Config::default(),
        };
        Ok(Self {
            root: Root::fetched(fetched.root(), fetched.source.to_string()),
            config,
        })
    }

    pub(crate) fn persona(&self, args: &InputArgs) -> Persona {
        args.persona
            .or(self.config.persona)
            .unwrap_or(Persona::Regular)
    }

    pub(crate) fn baseline_path(&self, args: &InputArgs) -> std::path::PathBuf {
        pipeline::baseline_path(args.baseline.as_deref(), &self.config, &self.root)
    }

    /// One that is named must be there; one that is only expected need not.
    pub(crate) fn baseline(&self, args: &InputArgs) -> Result<Option<Baseline>, Error> {
        let path = self.baseline_path(args);
        let named = args.baseline.is_some() || self.config.baseline.is_some();
        let expected = !args.no_config && self.root.origin.is_none();
        if !named && (!expected || !path.is_file()) {
            return Ok(None);
        }
        read_baseline(&path).map(Some)
    }

    pub(crate) fn scan(
        &self,
        args: &InputArgs,
        baseline: Option<&Baseline>,
        progress: Progress,
    ) -> Result<Scan, Error> {
        let mut request = self.request(args, &self.root);
        request.baseline = baseline;
        request.progress = progress;
        pipeline::run(&request)
    }

    /// The same paths as they once were, now below `root`.
    pub(crate) fn scan_past(&self, args: &InputArgs, root: &Root) -> Result<Scan, Error> {
        let mut request = self.request(args, root);
        request.lenient = true;
        pipeline::run(&request)
    }

    /// With texts of an editor in place of files, as long as `stop` is not set.
    pub(crate) fn scan_text(
        &self,
        args: &InputArgs,
        baseline: Option<&Baseline>,
        overlay: &Overlay,
        stop: &AtomicBool,
    ) -> Result<Scan, Error> {
        let mut request = self.request(args, &self.root);
        request.baseline = baseline;
        request.overlay = Some(overlay);
        request.stop = Some(stop);
        request.lenient = true;
        pipeline::run(&request)
    }

    fn request<'a>(&'a self, args: &InputArgs, root: &'a Root) -> Request<'a> {
        Request {
            root,
            config: &self.config,
            baseline: None,
            threads: args.threads.map(usize::from),
            max_file_size: args.max_file_size.saturating_mul(1024 * 1024),
            progress: Progress::No,
            prefix: self.config.prefix(&self.root.folder),
            overlay: None,
            stop: None,
            lenient: false,
        }
    }
}

/// A bar on a terminal, lines for a program that asks for them.
pub(crate) fn progress(args: &InputArgs, quiet: bool, lines: bool) -> Progress {
    if lines {
        Progress::Lines
    } else if !quiet && !args.no_progress && terminal::is_stderr_terminal() {
        Progress::Bar
    } else {
        Progress::No
    }
}

fn read_proofs(path: &Path) -> Result<Proofs, Error> {
    let text = std::fs::read_to_string(path).map_err(|error| Error::Read {
        path: path.to_owned(),
        error,
    })?;
    Proofs::parse(&text).map_err(|error| Error::Proofs {
        path: path.to_owned(),
        message: error.to_string(),
    })
}

pub(crate) fn read_baseline(path: &Path) -> Result<Baseline, Error> {
    let text = std::fs::read_to_string(path).map_err(|error| Error::Read {
        path: path.to_owned(),
        error,
    })?;
    Baseline::parse(&text).map_err(|error| Error::Baseline {
        path: path.to_owned(),
        message: error.to_string(),
    })
}
