//! The whole of it, from options to a report.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use thiserror::Error;
use toctou_hold::{Hooks, Isolate, SandboxSpec, Scratch};

use crate::budget::{Budget, Stop};
use crate::call::Call;
use crate::cell::{Maker, StartError};
use crate::client::ClientError;
use crate::lab::{Lab, RunError};
use crate::plan::{candidates, fixtures, probe};
use crate::pool::Pool;
use crate::report::{AttemptOutcome, Outcome, Report, SCHEMA, ToolReport};
use crate::scenario::Place;
use crate::search::{Limits, Scope, Search, Watch};
use crate::target::{Command, Target};
use crate::timeline::short;

/// What the user asked for.
#[derive(Clone, Debug)]
pub struct Options {
    pub command: Command,
    pub budget: Duration,
    pub network: bool,
    pub isolate: Isolate,
    /// Folders of the host that servers may really write to.
    pub writable: Vec<PathBuf>,
    pub scopes: Vec<Scope>,
    pub deep: bool,
    pub first: bool,
    /// How long one call may take.
    pub patience: Duration,
    pub examples: Vec<Call>,
}

#[derive(Debug, Error)]
pub enum ProveError {
    #[error("the server cannot be used")]
    Start(#[from] StartError),
    #[error("the server has no tools")]
    NoTools,
    #[error("none of the server's tools can be called")]
    NothingWorks { errors: Vec<String> },
    #[error("interrupted")]
    Interrupted,
    #[error("the server did not get ready within the budget")]
    NoTime,
    #[error("no scratch folder can be made")]
    Scratch(#[from] toctou_hold::Error),
    #[error("the server cannot be driven")]
    Run(RunError),
    #[error("cannot start threads")]
    Threads(std::io::Error),
}

impl From<RunError> for ProveError {
    fn from(error: RunError) -> Self {
        match error {
            RunError::Stopped(Stop::Interrupted) => Self::Interrupted,
            RunError::Stopped(Stop::Budget) => Self::NoTime,
            RunError::Start(error) => Self::Start(error),
            other => Self::Run(other),
        }
    }
}

impl From<ClientError> for ProveError {
    fn from(error: ClientError) -> Self {
        match error {
            ClientError::Stopped(Stop::Interrupted) => Self::Interrupted,
            ClientError::Stopped(Stop::Budget) => Self::NoTime,
            other => Self::Start(StartError::Server {
                because: other.to_string(),
                stderr: String::new(),
                garbage: Vec::new(),
            }),
        }
    }
}

/// How long a server may take to get ready, at most.
const START: Duration = Duration::from_secs(60);

pub fn prove(options: &Options, budget: &Budget, watch: &dyn Watch) -> Result<Report, ProveError> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .map_err(ProveError::Threads)?;
    let scratch = Scratch::create()?;
    let base = scratch.new_state()?;
    for (path, content) in fixtures::files() {
        let path = base.workspace().join(path);
        std::fs::write(&path, content).map_err(|error| ProveError::Threads(error))?;
    }
    let maker = Arc::new(Maker {
        handle: runtime.handle().clone(),
        base,
        spec: SandboxSpec {
            isolate: options.isolate,
            network: options.network,
            packages: options.command.packages.clone(),
            writable: options.writable.clone(),
        },
        command: options.command.clone(),
        budget: budget.clone(),
        hooks: Hooks {
            syscalls: true,
            reads: false,
            awaits: false,
        },
        patience: START,
    });
    watch.doing("starting the server", 0);
    let pool = Pool::new(Arc::clone(&maker)).map_err(ProveError::Threads)?;
    let lab = Lab::new(pool, budget.clone(), options.patience);
    let mut notes = Vec::new();
    let mut cell = lab.pool.take(1).map_err(RunError::from)?;
    if let Some(sandbox) = cell.sandbox() {
        notes.extend(sandbox.isolation().notes.iter().cloned());
    }
    let mut places = Vec::new();
    match cell.servers.first().and_then(|server| server.blind()) {
        Some(why) => notes.push(format!("calls cannot be held at system calls: {why}")),
        None => places.push(Place::Syscall),
    }
    let tools = match cell.servers.first_mut() {
        Some(server) => server.client.tools(options.patience, budget)?,
        None => Vec::new(),
    };
    if tools.is_empty() {
        return Err(ProveError::NoTools);
    }
    watch.doing("trying the tools", 0);
    let survey = probe::survey(&lab, &mut cell, tools, options.examples.clone())?;
    drop(cell);
    if survey.mutators().next().is_none() {
        return Err(ProveError::NothingWorks {
            errors: survey
                .tools
                .iter()
                .filter(|known| !known.works)
                .map(|known| format!("{}: {}", known.tool.name, short(&known.reply.shown(), 100)))
                .collect(),
        });
    }
    let all = candidates::candidates(&survey, &[]);
    let limits = Limits {
        scopes: options.scopes.clone(),
        places,
        deep: options.deep,
        first: options.first,
        jitter: true,
        bursts: true,
    };
    let mut search = Search::new(&lab, &options.command, limits, watch);
    match search.run(&all) {
        Ok(()) => {}
        Err(RunError::Stopped(Stop::Budget)) => notes.push("the time budget is used up: not all was tried".to_owned()),
        Err(error) => return Err(error.into()),
    }
    let Search { proofs, attempts, schedules, points, .. } = search;
    let outcome = if !proofs.is_empty() {
        Outcome::Proved
    } else if attempts.iter().any(|attempt| attempt.outcome == AttemptOutcome::Inconclusive) || schedules == 0 {
        Outcome::Inconclusive
    } else {
        Outcome::NoViolation
    };
    let summary = match outcome {
        Outcome::Proved if proofs.len() == 1 => "1 race proved".to_owned(),
        Outcome::Proved => format!("{} races proved", proofs.len()),
        Outcome::NoViolation => format!("no violation at {points} pause points, bound {}", if options.deep { 2 } else { 1 }),
        Outcome::Inconclusive => "inconclusive".to_owned(),
    };
    Ok(Report {
        schema: SCHEMA.to_owned(),
        tool_version: env!("CARGO_PKG_VERSION").to_owned(),
        target: Target::Command(options.command.clone()),
        outcome,
        summary,
        seconds: budget.elapsed().as_secs_f64(),
        budget_seconds: options.budget.as_secs_f64(),
        runs: lab.runs(),
        schedules,
        points,
        notes,
        tools: survey
            .tools
            .iter()
            .map(|known| ToolReport {
                name: known.tool.name.clone(),
                role: match (known.works, known.is_reader()) {
                    (false, _) => "fails",
                    (true, true) => "reads",
                    (true, false) => "writes",
                }
                .to_owned(),
                error: (!known.works).then(|| short(&known.reply.shown(), 200)),
            })
            .collect(),
        proofs,
        attempts,
        findings: Vec::new(),
    })
}
