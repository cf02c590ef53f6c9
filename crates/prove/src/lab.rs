//! Runs a scenario by a schedule, on a fresh state, and says what was left.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use thiserror::Error;

use crate::budget::{Budget, Stop};
use crate::call::{Call, Reply};
use crate::cell::{Cell, Server, StartError};
use crate::client::ClientError;
use crate::outcome::Outcome;
use crate::pool::Pool;
use crate::scenario::{Assignment, Scenario, Schedule};
use crate::schedules::{self, Stage};

#[derive(Debug, Error)]
pub enum RunError {
    #[error(transparent)]
    Stopped(#[from] Stop),
    #[error(transparent)]
    Start(StartError),
    #[error("set-up call `{call}` failed: {reply}")]
    Setup { call: String, reply: String },
    #[error("the server ended while its tools were called")]
    Gone,
}

impl From<StartError> for RunError {
    fn from(error: StartError) -> Self {
        match error {
            StartError::Stopped(stop) => Self::Stopped(stop),
            other => Self::Start(other),
        }
    }
}

impl From<ClientError> for RunError {
    fn from(error: ClientError) -> Self {
        match error {
            ClientError::Stopped(stop) => Self::Stopped(stop),
            _ => Self::Gone,
        }
    }
}

/// What to run, and how.
#[derive(Clone, Copy)]
pub struct Experiment<'a> {
    pub scenario: &'a Scenario,
    pub assignment: &'a Assignment,
    pub schedule: &'a Schedule,
    /// The others wait until the held call is done: to see what holding alone does.
    pub alone: bool,
    /// Between the calls of a serial run.
    pub pause: Duration,
    /// What a call takes when it is alone, as far as is known.
    pub expected: Duration,
}

/// The place where servers are run.
pub struct Lab {
    pub pool: Pool,
    pub budget: Budget,
    /// How long a call may take.
    pub patience: Duration,
    /// Files that are only ever written.
    pub logs: BTreeSet<String>,
    /// Also ask a server that is started afterwards: it has nothing but the files.
    pub fresh: bool,
    runs: AtomicUsize,
}

impl Lab {
    pub fn new(pool: Pool, budget: Budget, patience: Duration) -> Self {
        Self {
            pool,
            budget,
            patience,
            logs: BTreeSet::new(),
            fresh: false,
            runs: AtomicUsize::new(0),
        }
    }

    /// How many runs there were.
    pub fn runs(&self) -> usize {
        self.runs.load(Ordering::Relaxed)
    }

    /// Whether so many runs are likely to fit into what is left of the time.
    pub fn has_time_for(&self, runs: u32) -> bool {
        let before = u32::try_from(self.runs()).unwrap_or(u32::MAX).max(1);
        self.budget.left() > self.budget.elapsed() / before * runs
    }

    pub fn run(&self, experiment: &Experiment<'_>) -> Result<Outcome, RunError> {
        let mut cell = self.pool.take(experiment.assignment.processes())?;
        self.runs.fetch_add(1, Ordering::Relaxed);
        let names = cell.names().clone();
        let scenario = experiment.scenario;
        let replies = self.set_up(&mut cell, &scenario.setup)?;
        let resolved = |call: &Call| names.call(call, &replies);
        let calls: Vec<Call> = scenario.calls.iter().map(resolved).collect();
        let observers: Vec<Call> = scenario.observers.iter().map(resolved).collect();

        let mark = cell.supervisor.mark();
        let mut stage = Stage::new(
            &mut cell,
            &calls,
            experiment.assignment,
            &self.budget,
            self.patience,
            experiment.expected,
        );
        stage.pause = experiment.pause;
        let driven = schedules::drive(&mut stage, experiment.schedule, experiment.alone)?;
        let events = cell.supervisor.events_since(mark);
        let owners = schedules::owners(&driven, &events, experiment.assignment);

        let crash = cell.servers.iter_mut().find_map(|server| {
            server.client.ended().then(|| {
                server
                    .death()
                    .unwrap_or_else(|| "closed its output".to_owned())
            })
        });
        schedules::settle(&cell.supervisor);
        let mut observed = Vec::new();
        if crash.is_none() && driven.silent.is_empty() {
            for server in cell.servers.iter_mut() {
                observed.extend(self.ask(server, &observers)?);
            }
        }
        let mut fresh = Vec::new();
        if self.fresh && !observers.is_empty() {
            fresh = match self.pool.maker().join(&cell) {
                Ok(mut server) => self.ask(&mut server, &observers)?,
                Err(StartError::Stopped(stop)) => return Err(stop.into()),
                // What is left keeps servers from starting: that is an outcome.
                Err(_) => vec![Reply::Error("a server that is started now fails".into())],
            };
        }
        let files = cell.close();
        let observed_by = |replies: Vec<Reply>| -> Vec<Reply> {
            let asked = scenario.observers.iter().cycle();
            let each = asked.zip(replies);
            each.map(|(observer, reply)| names.observed(observer, reply))
                .collect()
        };
        let answers = driven.replies.into_iter();
        Ok(Outcome {
            replies: answers.map(|reply| names.plain(reply)).collect(),
            latencies: driven.latencies,
            observed: observed_by(observed),
            fresh: observed_by(fresh),
            files,
            crash,
            events,
            owners,
            held: driven.held,
            overlapped: driven.overlapped,
            silent: driven.silent,
        })
    }

    /// Runs the set-up calls, which must succeed.
    pub fn set_up(&self, cell: &mut Cell, setup: &[Call]) -> Result<Vec<Reply>, RunError> {
        let names = cell.names().clone();
        let mut replies: Vec<Reply> = Vec::new();
        let server = cell.servers.first_mut().ok_or(RunError::Gone)?;
        for call in setup {
            let call = names.call(call, &replies);
            let reply = self.ask(server, std::slice::from_ref(&call))?.remove(0);
            if !reply.is_ok() {
                return Err(RunError::Setup {
                    call: call.shown(),
                    reply: reply.shown(),
                });
            }
            replies.push(reply);
        }
        Ok(replies)
    }

    /// One call after the other.
    pub fn ask(&self, server: &mut Server, calls: &[Call]) -> Result<Vec<Reply>, RunError> {
        let mut replies = Vec::new();
        for call in calls {
            let ticket = server.client.send(&[call])?.remove(0);
            let deadline = std::time::Instant::now() + self.patience;
            while !server.client.has_answer(ticket)
                && !server.client.ended()
                && std::time::Instant::now() < deadline
            {
                self.budget.check()?;
                server.client.receive(Duration::from_millis(20));
            }
            replies.push(server.client.reply(ticket));
        }
        Ok(replies)
    }
}
