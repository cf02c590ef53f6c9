//! Ways to make calls meet, one a file.

pub mod burst;
pub mod hold;
pub mod jitter;
pub mod serial;

use std::time::{Duration, Instant};

use toctou_hold::{Event, Mark, Supervisor};

use crate::budget::Budget;
use crate::call::{Call, Reply};
use crate::cell::Cell;
use crate::client::Ticket;
use crate::lab::RunError;
use crate::scenario::{Assignment, Schedule};

/// Servers that are ready, and the calls for them.
pub struct Stage<'a> {
    pub cell: &'a mut Cell,
    pub calls: &'a [Call],
    pub assignment: &'a Assignment,
    pub budget: &'a Budget,
    pub patience: Duration,
    /// What a call takes when it is alone.
    pub expected: Duration,
    /// Between the calls of a serial run.
    pub pause: Duration,
    tickets: Vec<Option<Ticket>>,
    began: Mark,
}

/// If nothing moves for so long, and for as long as a call takes, nothing will.
const LEAST_STILL: Duration = Duration::from_millis(300);

/// How it went.
pub struct Driven {
    pub replies: Vec<Reply>,
    pub latencies: Vec<Option<Duration>>,
    pub silent: Vec<usize>,
    pub held: Option<Event>,
    pub overlapped: bool,
    /// Stretches of time, in their order.
    pub turns: Vec<Turn>,
}

/// A stretch of time in which one call was the only one to run in its process.
#[derive(Clone, Copy, Debug)]
pub struct Turn {
    pub call: usize,
    /// So many events had come when it ended.
    pub until: usize,
}

/// Runs the calls by the schedule.
pub fn drive(stage: &mut Stage<'_>, schedule: &Schedule, alone: bool) -> Result<Driven, RunError> {
    match schedule {
        Schedule::Serial { order } => serial::drive(stage, order),
        Schedule::Burst => burst::drive(stage),
        Schedule::Hold {
            call,
            point,
            at,
            then,
        } => {
            let hold = hold::Held {
                call: *call,
                point: *point,
                at: *at,
                then: *then,
                alone,
            };
            hold::drive(stage, &hold)
        }
        Schedule::Jitter { seed } => jitter::drive(stage, *seed),
    }
}

impl<'a> Stage<'a> {
    pub fn new(
        cell: &'a mut Cell,
        calls: &'a [Call],
        assignment: &'a Assignment,
        budget: &'a Budget,
        patience: Duration,
        expected: Duration,
    ) -> Self {
        Self {
            tickets: vec![None; calls.len()],
            began: cell.supervisor.mark(),
            cell,
            calls,
            assignment,
            budget,
            patience,
            expected,
            pause: Duration::ZERO,
        }
    }

    fn process(&self, call: usize) -> usize {
        self.assignment.0.get(call).copied().unwrap_or(0)
    }

    /// Sends these calls, all of one process in one write.
    pub fn send(&mut self, which: &[usize]) -> Result<(), RunError> {
        for process in 0..self.cell.servers.len() {
            let here: Vec<usize> = which
                .iter()
                .copied()
                .filter(|call| self.process(*call) == process)
                .collect();
            let calls: Vec<&Call> = here.iter().map(|call| &self.calls[*call]).collect();
            if calls.is_empty() {
                continue;
            }
            // A server that has died leaves its calls unanswered: that is an outcome.
            if let Ok(tickets) = self.cell.servers[process].client.send(&calls) {
                for (call, ticket) in here.iter().zip(tickets) {
                    self.tickets[*call] = Some(ticket);
                }
            }
        }
        Ok(())
    }

    /// Takes in what the servers say, for a moment.
    pub fn listen(&mut self, moment: Duration) {
        for server in &mut self.cell.servers {
            server.client.receive(moment);
        }
    }

    pub fn answered(&self, call: usize) -> bool {
        let server = &self.cell.servers[self.process(call)];
        server.client.ended()
            || self.tickets[call].is_none_or(|ticket| server.client.has_answer(ticket))
    }

    /// Waits until these calls are answered; false if that takes longer than `patience`.
    pub fn wait(&mut self, which: &[usize], patience: Duration) -> Result<bool, RunError> {
        let deadline = Instant::now() + patience;
        loop {
            if which.iter().all(|call| self.answered(*call)) {
                return Ok(true);
            }
            self.budget.check()?;
            if Instant::now() >= deadline {
                return Ok(false);
            }
            self.listen(Duration::from_millis(2));
        }
    }

    /// Waits until a call is answered, or nothing moves any more: then it waits for somebody.
    /// Time in which a process works does not count, so a slow machine is not taken for that.
    pub fn wait_or_stuck(&mut self, call: usize) -> Result<bool, RunError> {
        let longest = (self.expected * 3 + LEAST_STILL).min(self.patience);
        let deadline = Instant::now() + self.patience;
        let mut still = Duration::ZERO;
        let mut last = Instant::now();
        while !self.answered(call) {
            self.budget.check()?;
            if still >= longest || Instant::now() >= deadline {
                return Ok(false);
            }
            self.listen(Duration::from_millis(2));
            let supervisor = &self.cell.supervisor;
            let asleep = self
                .cell
                .servers
                .iter()
                .all(|server| supervisor.idle(server.id()).unwrap_or(true));
            if asleep {
                still += last.elapsed();
            }
            last = Instant::now();
        }
        Ok(true)
    }

    /// Collects the answers.
    pub fn finish(&mut self, held: Option<Event>, overlapped: bool, turns: Vec<Turn>) -> Driven {
        let mut replies = Vec::new();
        let mut latencies = Vec::new();
        let mut silent = Vec::new();
        for call in 0..self.calls.len() {
            let process = self.process(call);
            let client = &mut self.cell.servers[process].client;
            let (reply, latency) = match self.tickets[call] {
                Some(ticket) => {
                    let latency = client.latency(ticket);
                    (client.reply(ticket), latency)
                }
                None => (Reply::Silence, None),
            };
            if reply == Reply::Silence {
                silent.push(call);
            }
            replies.push(reply);
            latencies.push(latency);
        }
        Driven {
            replies,
            latencies,
            silent,
            held,
            overlapped,
            turns,
        }
    }

    /// How many events there were since the calls began.
    pub fn now(&self) -> usize {
        self.cell.supervisor.events_since(self.began).len()
    }
}

/// Whose event is it? By process where each call has its own, else by turn.
pub fn owners(driven: &Driven, events: &[Event], assignment: &Assignment) -> Vec<Option<usize>> {
    let alone_in = |process: usize| {
        let mut there = assignment
            .0
            .iter()
            .enumerate()
            .filter(|(_, assigned)| **assigned == process);
        match (there.next(), there.next()) {
            (Some((call, _)), None) => Some(call),
            _ => None,
        }
    };
    events
        .iter()
        .enumerate()
        .map(|(at, event)| {
            alone_in(event.process.0 as usize)
                .or_else(|| Some(driven.turns.iter().find(|turn| at < turn.until)?.call))
        })
        .collect()
}

/// Waits until the servers do nothing any more: some write after they have answered.
pub fn settle(supervisor: &Supervisor) {
    for _ in 0..50 {
        let mark = supervisor.mark();
        std::thread::sleep(Duration::from_millis(10));
        if supervisor.events_since(mark).is_empty() {
            return;
        }
    }
}
