//! The whole of it, from options to a report.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use toctou_guard::upstream::HttpSpec;
use toctou_hold::{Hooks, Isolate, SandboxSpec, Scratch};

use crate::budget::{Budget, Stop};
use crate::call::Call;
use crate::cell::{Cell, Maker, Origin, StartError};
use crate::client::Tool;
use crate::error::ProveError;
use crate::gates::Passed;
use crate::lab::{Lab, RunError};
use crate::likely::{self, Likely};
use crate::names;
use crate::plan::probe::Survey;
use crate::plan::scan::{self, Finding};
use crate::plan::{Candidate, Template, candidates, fixtures, probe, recorded};
use crate::pool::Pool;
use crate::proof::{Proof, Recipe, Replays, Subject};
use crate::replay;
use crate::report::{Outcome, Report, SCHEMA, ToolReport};
use crate::scenario::{Place, Scenario};
use crate::search::{Limits, Scope, Search, Watch};
use crate::store::{Store, StoreSpec};
use crate::target::{PORT, Target};
use crate::timeline::short;

/// What the user asked for.
#[derive(Clone, Debug)]
pub struct Options {
    pub target: Target,
    /// Sent along to a server that runs already. Kept out of reports: they are often secret.
    pub headers: BTreeMap<String, String>,
    /// State that is not in files.
    pub store: Option<StoreSpec>,
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
    /// Exactly these calls.
    pub scenario: Option<Scenario>,
    /// Calls of real clients, in their order.
    pub traffic: Vec<Call>,
    /// What `scan` found.
    pub findings: Vec<Finding>,
    /// Only these, if any are named.
    pub strategies: Vec<Strategy>,
    /// Stop after so many schedules.
    pub schedules: Option<usize>,
}

/// A way to make calls meet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Strategy {
    Burst,
    Hold,
    AwaitHold,
    Jitter,
}

/// How long a server may take to get ready, at most.
const START: Duration = Duration::from_secs(60);

/// A server that was started, and can be started again and again.
struct Bench {
    lab: Lab,
    /// What the server offers.
    tools: Vec<Tool>,
    notes: Vec<String>,
    places: Vec<Place>,
    /// Dropped last: the servers' pipes belong to it.
    _runtime: tokio::runtime::Runtime,
}

impl Bench {
    fn open(options: &Options, budget: &Budget) -> Result<(Self, Cell), ProveError> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .map_err(ProveError::Threads)?;
        let store = match &options.store {
            Some(spec) => Some(Store::open(runtime.handle(), spec)?),
            None => None,
        };
        let mut notes: Vec<String> = Vec::new();
        notes.extend(store.as_ref().map(|store| store.note().to_owned()));
        let maker = Arc::new(Maker {
            handle: runtime.handle().clone(),
            origin: origin(options)?,
            store,
            budget: budget.apart(),
            hooks: Hooks {
                syscalls: true,
                // Each costs a switch to us and back, and servers look at thousands of files when they start.
                reads: false,
                awaits: true,
            },
            patience: START.min(options.budget / 2),
        });
        // The first one is looked at more closely than those that follow.
        let closely = Hooks {
            reads: true,
            ..maker.hooks
        };
        let mut cell = maker.make_with(1, closely).map_err(RunError::from)?;
        let mut tools = Vec::new();
        if let Some(server) = cell.servers.first_mut() {
            tools = server.client.tools(options.patience, budget)?;
        }
        if let Origin::Started { base, .. } = &maker.origin {
            let kinds = fixtures::kinds(&tools);
            for kind in &kinds {
                let note = fixtures::make(&base.workspace(), *kind);
                notes.extend(note.map_err(ProveError::Fixtures)?);
            }
            if !kinds.is_empty() {
                cell = maker.make_with(1, closely).map_err(RunError::from)?;
            }
        }
        let shared = maker.is_shared();
        let pool = Pool::new(maker).map_err(ProveError::Threads)?;
        pool.want(1);
        let lab = Lab::new(pool, budget.clone(), options.patience);
        if let Some(sandbox) = cell.sandbox() {
            notes.extend(sandbox.isolation().notes.iter().cloned());
        }
        let mut places = Vec::new();
        if shared {
            notes.extend(SHARED.map(str::to_owned));
        } else if let Some(server) = cell.servers.first() {
            match server.blind() {
                Some(why) => notes.push(format!("calls cannot be held at system calls: {why}")),
                None => places.push(Place::Syscall),
            }
            if cell.supervisor.runtimes(server.id()).is_empty() {
                notes.push("calls cannot be held where asynchronous work completes: that needs Node or Python".to_owned());
            } else {
                places.push(Place::Await);
            }
        }
        let bench = Self {
            lab,
            tools,
            notes,
            places,
            _runtime: runtime,
        };
        Ok((bench, cell))
    }
}

/// What can be said about a server that was not started here.
const SHARED: [&str; 3] = [
    "nothing is reset: every run uses new names, and what counts is what the tools say about them",
    "other clients of the server may have a part in what was seen",
    "calls cannot be held: the server was not started by toctou",
];

fn origin(options: &Options) -> Result<Origin, ProveError> {
    let command = match &options.target {
        Target::Command(command) => command,
        Target::Url(url) => {
            let spec = HttpSpec::new(url, &options.headers).map_err(StartError::Address)?;
            return Ok(Origin::Running(spec));
        }
    };
    let base = Scratch::create()?.new_state()?;
    fixtures::texts(&base.workspace()).map_err(ProveError::Fixtures)?;
    Ok(Origin::Started {
        base,
        spec: SandboxSpec {
            isolate: options.isolate,
            network: options.network,
            packages: command.packages.clone(),
            writable: options.writable.clone(),
            readable: command.readable(),
        },
        command: command.clone(),
    })
}

/// Runs the server and looks for races.
pub fn prove(options: &Options, budget: &Budget, watch: &dyn Watch) -> Result<Report, ProveError> {
    watch.doing("starting the server", 0);
    let (mut bench, mut cell) = Bench::open(options, budget)?;
    let tools = std::mem::take(&mut bench.tools);
    if tools.is_empty() {
        return Err(ProveError::NoTools);
    }
    if let (Target::Url(_), Some(scenario)) = (&options.target, &options.scenario) {
        let calls = scenario.setup.iter().chain(&scenario.calls);
        let shared: Vec<String> = calls
            .filter(|call| !names::is_own(call))
            .map(Call::shown)
            .collect();
        if !shared.is_empty() {
            return Err(ProveError::NotOwn { calls: shared });
        }
    }
    watch.doing("trying the tools", 0);
    let mut examples = options.examples.clone();
    examples.extend(recorded::examples(&options.traffic));
    let shared = matches!(options.target, Target::Url(_));
    let survey = probe::survey(&bench.lab, &mut cell, tools, examples, shared)?;
    if let Some(note) = survey.left_alone() {
        bench.notes.push(note);
    }
    bench.lab.logs.clone_from(&survey.logs);
    let event_loop = bench.places.contains(&Place::Await);
    let mut likely = Likely::of(&cell.supervisor.events_since(cell.start), event_loop);
    likely.cross_process |= options.store.is_some();
    // Asked only where it can tell more: each run starts one server more.
    bench.lab.fresh =
        likely::keeps_unreadable(&cell, &survey.logs) && bench.lab.pool.maker().join(&cell).is_ok();
    drop(cell);
    let mut findings = options.findings.clone();
    for finding in &mut findings {
        finding.meet(&survey);
    }
    let candidates = plan(options, &survey, &findings);
    // Findings that no two calls can show have their own words.
    let told = !findings.is_empty() && survey.mutators().next().is_some();
    if candidates.is_empty() && !told {
        let failing = survey
            .tools
            .iter()
            .filter(|known| !known.works && !known.left_alone);
        return Err(ProveError::NothingWorks {
            errors: failing
                .map(|known| format!("{}: {}", known.tool.name, short(&known.reply.shown(), 100)))
                .collect(),
        });
    }
    let uses = |strategy| options.strategies.is_empty() || options.strategies.contains(&strategy);
    let limits = Limits {
        scopes: scopes(options, &mut bench.notes),
        places: bench
            .places
            .iter()
            .copied()
            .filter(|place| {
                uses(match place {
                    Place::Syscall => Strategy::Hold,
                    Place::Await => Strategy::AwaitHold,
                })
            })
            .collect(),
        deep: options.deep,
        first: options.first,
        jitter: uses(Strategy::Jitter),
        bursts: uses(Strategy::Burst),
        likely,
        schedules: options.schedules,
    };
    let lab = &bench.lab;
    let subject = subject(options, lab.fresh);
    let mut search = Search::new(lab, &subject, limits, watch);
    if options.scenario.is_none() {
        search.findings = &findings;
    }
    match search.run(&candidates) {
        Ok(()) => {}
        Err(RunError::Stopped(stop @ (Stop::Budget | Stop::Enough))) => {
            bench.notes.push(format!("{stop}: not all was tried"));
        }
        Err(error) => return Err(error.into()),
    }
    let Search {
        proofs,
        attempts,
        schedules,
        points,
        ..
    } = search;
    let (outcome, reason) = Outcome::of(&proofs, &attempts);
    let bound = if options.deep { 2 } else { 1 };
    let mut summary = outcome.in_words(proofs.len(), schedules, points, bound);
    if let Some(reason) = &reason {
        summary += &format!(": {reason}");
    }
    Ok(Report {
        schema: SCHEMA.to_owned(),
        tool_version: env!("CARGO_PKG_VERSION").to_owned(),
        target: options.target.clone(),
        outcome,
        summary,
        reason,
        seconds: budget.elapsed().as_secs_f64(),
        budget_seconds: options.budget.as_secs_f64(),
        runs: lab.runs(),
        schedules,
        points,
        notes: bench.notes,
        tools: survey.tools.iter().map(ToolReport::of).collect(),
        findings: scan::judge(&findings, &proofs, &attempts),
        proofs,
        attempts,
    })
}

/// What a proof is about.
fn subject(options: &Options, fresh: bool) -> Subject {
    Subject {
        target: options.target.clone(),
        state: options.store.as_ref().map(|spec| spec.needs.clone()),
        fresh,
    }
}

/// In how many processes calls can meet here.
fn scopes(options: &Options, notes: &mut Vec<String>) -> Vec<Scope> {
    let single = match &options.target {
        Target::Url(_) => true,
        Target::Command(command) => command.has_fixed_port(),
    };
    if single && options.scopes.contains(&Scope::CrossProcess) {
        notes.push(match &options.target {
            Target::Url(_) => "how many processes serve this address is not known".to_owned(),
            Target::Command(_) => {
                format!("one process only: two cannot listen at one port, write `{PORT}` for it")
            }
        });
        return vec![Scope::InProcess];
    }
    options.scopes.clone()
}

/// What shall meet: what was given, else what follows from the tools.
fn plan(options: &Options, survey: &Survey, findings: &[Finding]) -> Vec<Candidate> {
    if let Some(scenario) = &options.scenario {
        let mut scenario = scenario.clone();
        if scenario.observers.is_empty() {
            scenario.observers.clone_from(&survey.observers);
        }
        let setups = vec![std::mem::take(&mut scenario.setup)];
        return vec![Candidate {
            template: Template::Given,
            scenario,
            setups,
        }];
    }
    let wanted: Vec<Vec<String>> = findings.iter().map(Finding::wanted).collect();
    let limits = findings.iter().filter(|finding| finding.is_limit());
    let limited: Vec<String> = limits.flat_map(Finding::tools).collect();
    let mut all = recorded::candidates(&options.traffic, &survey.observers);
    all.extend(candidates::candidates(survey, &wanted, &limited));
    if survey.shared {
        all.retain(|candidate| candidate.scenario.calls.iter().all(names::is_own));
    }
    if !findings.is_empty() {
        all.retain(|candidate| {
            let tools = candidate.tools();
            findings.iter().any(|finding| finding.wants(&tools))
        });
    }
    all
}

/// What became of a proof that was tried again.
pub enum Replayed {
    /// So often; how it looks now.
    Again(Box<Proof>),
    /// Not every time, or not at all.
    NotAgain(Replays),
    Inconclusive(String),
}

/// Runs a proof again.
pub fn replay_recipe(
    options: &Options,
    recipe: &Recipe,
    budget: &Budget,
    watch: &dyn Watch,
) -> Result<Replayed, ProveError> {
    watch.doing("replaying", 0);
    let (mut bench, cell) = Bench::open(options, budget)?;
    drop(cell);
    bench.lab.fresh = recipe.fresh;
    let (set, passed) = replay::replay(&bench.lab, recipe)?;
    Ok(match passed {
        Passed::Proved {
            violation,
            outcome,
            replays,
        } if replays.reproduced > 0 => Replayed::Again(Box::new(Proof::new(
            &subject(options, recipe.fresh),
            &set,
            &recipe.schedule,
            "as given",
            &violation,
            &outcome,
            replays,
            budget.elapsed(),
        ))),
        Passed::Proved { replays, .. } | Passed::Flaky(replays) => Replayed::NotAgain(replays),
        Passed::FalseAlarm => Replayed::NotAgain(Replays {
            reproduced: 0,
            of: 0,
        }),
        Passed::Inconclusive(reason) => Replayed::Inconclusive(reason),
    })
}
