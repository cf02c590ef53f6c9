//! `toctou prove`: from what was typed to a proof, or to its absence.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use toctou_guard::servers::{self, Spec};
use toctou_guard::upstream::HttpSpec;
use toctou_hold::Isolate;
use toctou_prove::budget::Budget;
use toctou_prove::plan::{recorded, scan};
use toctou_prove::proof::Proof;
use toctou_prove::report::{self, Outcome, Report};
use toctou_prove::search::{Scope, Watch};
use toctou_prove::store::{Kind, Needs, StoreSpec};
use toctou_prove::target::{Command, Target};
use toctou_prove::{
    Options, Replayed, Strategy, interrupt, prove, replay, replay_recipe, reproducer,
};

use crate::cli::{IsolateChoice, ProcessChoice, ProveArgs, StrategyChoice};
use crate::errors::{Error, FINDINGS};
use crate::{output, terminal};

/// `FORMAT[=PATH]`, as in `scan`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ProveOutput {
    format: report::Format,
    path: Option<PathBuf>,
}

pub(crate) fn parse_output(text: &str) -> Result<ProveOutput, String> {
    let (name, path) = match text.split_once('=') {
        Some((name, path)) => (name, Some(path)),
        None => (text, None),
    };
    let format = report::Format::find(name).ok_or_else(|| {
        format!("there is no format `{name}`; there is text, json, sarif, markdown")
    })?;
    let path = match path {
        Some("") => return Err(format!("the path after `{name}=` is empty")),
        Some("-") | None => None,
        Some(path) => Some(PathBuf::from(path)),
    };
    Ok(ProveOutput { format, path })
}

pub(crate) fn run(args: &ProveArgs) -> Result<u8, Error> {
    let outputs = outputs(&args.output)?;
    let recipe = match &args.plan.replay {
        Some(path) => Some(plan(path, replay::parse)?),
        None => None,
    };
    let (target, mut headers) = match &recipe {
        Some(recipe) => (recipe.target.clone(), BTreeMap::new()),
        None => target(args)?,
    };
    headers.extend(args.header.iter().cloned());
    if let (Target::Url(url), false) = (&target, args.allow_changes) {
        return Err(Error::NotAllowed { url: url.clone() });
    }
    let needs = recipe.as_ref().and_then(|recipe| recipe.state.clone());
    let options = Options {
        target,
        headers,
        store: store(args, needs)?,
        budget: args.budget,
        network: args.allow_network,
        isolate: match args.isolate {
            IsolateChoice::Auto => Isolate::Auto,
            IsolateChoice::Namespaces => Isolate::Namespaces,
            IsolateChoice::Copy => Isolate::Copy,
        },
        writable: args.writable.clone(),
        scopes: match args.processes {
            ProcessChoice::One => vec![Scope::InProcess],
            ProcessChoice::Two => vec![Scope::CrossProcess],
            ProcessChoice::Both => vec![Scope::InProcess, Scope::CrossProcess],
        },
        deep: args.deep,
        first: args.first,
        schedules: args.schedules,
        patience: args.timeout,
        examples: match &args.plan.examples {
            Some(path) => plan(path, |text| {
                serde_json::from_str(text).map_err(|error| error.to_string())
            })?,
            None => Vec::new(),
        },
        scenario: match &args.plan.scenario {
            Some(path) => Some(plan(path, |text| {
                serde_json::from_str(text).map_err(|error| error.to_string())
            })?),
            None => None,
        },
        traffic: match &args.plan.traffic {
            Some(path) => plan(path, recorded::parse)?,
            None => Vec::new(),
        },
        findings: match &args.plan.from {
            Some(path) => findings(path)?,
            None => Vec::new(),
        },
        strategies: args
            .strategy
            .iter()
            .map(|choice| match choice {
                StrategyChoice::Burst => Strategy::Burst,
                StrategyChoice::Hold => Strategy::Hold,
                StrategyChoice::AwaitHold => Strategy::AwaitHold,
                StrategyChoice::Jitter => Strategy::Jitter,
            })
            .collect(),
    };
    if !args.quiet {
        announce(&options);
    }
    let budget = Budget::new(args.budget);
    interrupt::on_signal(&budget).map_err(|error| Error::Internal {
        doing: "waiting for signals",
        message: error.to_string(),
    })?;
    let bar = Bar::new(args, args.budget);
    if let Some(recipe) = &recipe {
        let replayed = replay_recipe(&options, recipe, &budget, &bar);
        bar.finish();
        return tell(&replayed.map_err(Error::Prove)?, args);
    }
    let report = prove(&options, &budget, &bar);
    bar.finish();
    let report = report.map_err(Error::Prove)?;
    if let Some(folder) = &args.reproducer {
        reproducer::write(folder, &report.proofs).map_err(|error| Error::Write {
            path: folder.clone(),
            error,
        })?;
    }
    write(&report, &outputs, args.quiet)?;
    Ok(match report.outcome {
        Outcome::Proved if !args.exit_zero => FINDINGS,
        _ => 0,
    })
}

/// The database that the server keeps its state in, for a proof that needs one or for a new one.
fn store(args: &ProveArgs, needed: Option<Needs>) -> Result<Option<StoreSpec>, Error> {
    let wrong = |message: String| Error::Address { message };
    let Some(url) = &args.state else {
        return match needed {
            Some(needs) => Err(wrong(format!(
                "the server keeps its state in a {}: give its address with `--state`",
                needs.kind.as_str()
            ))),
            None => Ok(None),
        };
    };
    let kind = Kind::of(url).ok_or_else(|| {
        wrong("`--state` takes postgres://user@host/database or redis://host".to_owned())
    })?;
    let needs = match needed {
        Some(needs) if needs.kind != kind => {
            let kind = needs.kind.as_str();
            return Err(wrong(format!("the server keeps its state in a {kind}")));
        }
        Some(needs) => needs,
        None => Needs {
            kind,
            env: args
                .state_env
                .clone()
                .unwrap_or_else(|| kind.usual_env().to_owned()),
            init: match &args.state_init {
                Some(_) if kind == Kind::Redis => {
                    return Err(wrong(
                        "`--state-init` is SQL, and Redis takes none".to_owned(),
                    ));
                }
                Some(path) => Some(read(path)?),
                None => None,
            },
        },
    };
    Ok(Some(StoreSpec {
        url: url.clone(),
        needs,
    }))
}

/// Reads a file that says what shall meet.
fn plan<T>(path: &Path, parse: impl FnOnce(&str) -> Result<T, String>) -> Result<T, Error> {
    parse(&read(path)?).map_err(|message| Error::Plan {
        path: path.to_owned(),
        message,
    })
}

/// The findings of a scan, of which there must be some.
fn findings(path: &Path) -> Result<Vec<scan::Finding>, Error> {
    let findings = scan::parse(&read(path)?).map_err(|message| Error::NotAScan {
        path: path.to_owned(),
        message,
    })?;
    if findings.is_empty() {
        return Err(Error::Prove(toctou_prove::ProveError::NoFindings));
    }
    Ok(findings)
}

/// Of a proof that was tried again.
fn tell(replayed: &Replayed, args: &ProveArgs) -> Result<u8, Error> {
    match replayed {
        Replayed::Again(proof) => {
            output::to_stdout(&report::text::render_proof(proof, terminal::of_stdout()))?;
            Ok(if args.exit_zero { 0 } else { FINDINGS })
        }
        Replayed::NotAgain(replays) => {
            let text = format!(
                "not reproduced: {} of {} replays\n",
                replays.reproduced, replays.of
            );
            output::to_stdout(&text)?;
            Ok(0)
        }
        Replayed::Inconclusive(reason) => {
            output::to_stdout(&format!(
                "inconclusive: {}\n",
                toctou_report::clean::line(reason)
            ))?;
            Ok(0)
        }
    }
}

/// What will be run, and where, before it is.
fn announce(options: &Options) {
    let command = match &options.target {
        Target::Command(command) => command,
        Target::Url(url) => {
            let text = format!(
                "will call: {url}\nits state is changed and not reset: every run uses new names, and nothing is cleaned up\nbudget: {} s\n\n",
                options.budget.as_secs()
            );
            return terminal::to_stderr(&text);
        }
    };
    let mut text = format!("will run: {}\n", command.argv.join(" "));
    if let Some(address) = &command.http {
        text += &format!("serving: {address}, in a network of its own if there is none outside\n");
    }
    if let Some(store) = &options.store {
        text += &format!(
            "state: a scratch database of your {} for each run, removed after it; {} tells the server\n",
            store.needs.kind.as_str(),
            store.needs.env
        );
    }
    text += "in: a scratch folder that is removed at the end, with a HOME of its own\n";
    for package in &command.packages {
        text += &format!(
            "code: {} (writes go to the scratch folder)\n",
            package.display()
        );
    }
    for path in &options.writable {
        text += &format!("may really write: {}\n", path.display());
    }
    let network = if options.network { "allowed" } else { "none" };
    let names: Vec<&str> = command.env.keys().map(String::as_str).collect();
    let names = if names.is_empty() {
        "nothing but PATH".to_owned()
    } else {
        names.join(", ")
    };
    text += &format!(
        "network: {network}; environment: {names}; budget: {} s\n\n",
        options.budget.as_secs()
    );
    terminal::to_stderr(&text);
}

fn outputs(asked: &[ProveOutput]) -> Result<Vec<ProveOutput>, Error> {
    if asked.is_empty() {
        return Ok(parse_output("text").into_iter().collect());
    }
    for (index, spec) in asked.iter().enumerate() {
        if let Some(other) = asked[..index].iter().find(|other| other.path == spec.path) {
            return Err(Error::OutputClash {
                first: other.format.name(),
                second: spec.format.name(),
                path: spec.path.clone(),
            });
        }
    }
    Ok(asked.to_vec())
}

fn write(report: &Report, outputs: &[ProveOutput], quiet: bool) -> Result<(), Error> {
    for spec in outputs {
        match &spec.path {
            None => output::to_stdout(&spec.format.render(report, terminal::of_stdout()))?,
            Some(path) => {
                output::to_file(path, &spec.format.render(report, terminal::of_file()))?;
                if !quiet {
                    terminal::to_stderr(&format!(
                        "{}, written to {}\n",
                        report.summary,
                        path.display()
                    ));
                }
            }
        }
    }
    Ok(())
}

/// The server that the command line names, and what it wants to be told.
fn target(args: &ProveArgs) -> Result<(Target, BTreeMap<String, String>), Error> {
    if let Some(url) = &args.url {
        HttpSpec::new(url, &BTreeMap::new()).map_err(|message| Error::Address { message })?;
        return Ok((Target::Url(url.clone()), BTreeMap::new()));
    }
    let which = |count| Error::WhichServer {
        wanted: args.server.clone(),
        count,
    };
    let mut command = if args.command.is_empty() {
        let Some(path) = &args.servers else {
            return Err(which(0));
        };
        let mut all = servers::parse_servers(&read(path)?).map_err(|error| Error::Servers {
            path: path.clone(),
            message: error.to_string(),
        })?;
        if let Some(name) = &args.server {
            all.retain(|server| *server.name == **name);
        }
        let [upstream] = all.as_slice() else {
            return Err(which(all.len()));
        };
        if matches!(&upstream.spec, Spec::Http(http) if http.is_sse()) {
            return Err(Error::Servers {
                path: path.clone(),
                message: format!(
                    "server `{}` speaks HTTP+SSE, the transport of 2024-11-05, which prove does not",
                    upstream.name
                ),
            });
        }
        match Target::of(upstream) {
            (Target::Command(command), _) => command,
            running => return Ok(running),
        }
    } else {
        Command {
            argv: args.command.clone(),
            cwd: args.cwd.clone(),
            ..Command::default()
        }
        .found()
    };
    for pair in &args.env {
        let (name, value) = match pair.split_once('=') {
            Some((name, value)) => (name.to_owned(), value.to_owned()),
            None => (pair.clone(), std::env::var(pair).unwrap_or_default()),
        };
        command.env.insert(name, value);
    }
    if let Some(address) = &args.http {
        command = command
            .serving(address)
            .map_err(|message| Error::Address { message })?;
    }
    Ok((Target::Command(command), BTreeMap::new()))
}

fn read(path: &Path) -> Result<String, Error> {
    std::fs::read_to_string(path).map_err(|error| Error::Read {
        path: path.to_owned(),
        error,
    })
}

/// A bar of the time that is used, with what is being tried.
struct Bar {
    bar: ProgressBar,
    began: std::time::Instant,
    proofs: Mutex<usize>,
}

impl Bar {
    fn new(args: &ProveArgs, budget: Duration) -> Self {
        let shown = !args.quiet && !args.no_progress && terminal::is_stderr_terminal();
        let target = if shown {
            ProgressDrawTarget::stderr()
        } else {
            ProgressDrawTarget::hidden()
        };
        let bar = ProgressBar::with_draw_target(Some(budget.as_millis() as u64), target);
        if let Ok(style) = ProgressStyle::with_template("[{bar:24}] {msg}") {
            bar.set_style(style.progress_chars("=> "));
        }
        Self {
            bar,
            began: std::time::Instant::now(),
            proofs: Mutex::new(0),
        }
    }

    fn finish(&self) {
        self.bar.finish_and_clear();
    }
}

impl Watch for Bar {
    fn doing(&self, what: &str, schedules: usize) {
        let proofs = self.proofs.lock().map(|count| *count).unwrap_or_default();
        self.bar
            .set_position(self.began.elapsed().as_millis() as u64);
        let what = toctou_report::clean::short(what, 50);
        self.bar
            .set_message(format!("{schedules} schedules, {proofs} proved; {what}"));
    }

    fn proved(&self, _proof: &Proof) {
        if let Ok(mut count) = self.proofs.lock() {
            *count += 1;
        }
    }
}
