//! From a command to an answer: the order in which things are tried.
//!
//! The cheap try comes first for a few candidates, since it often suffices; then
//! one call after the other is held; then the next few. What was proved for two tools is not
//! looked for again, so that the time goes to what is not known yet.

use std::collections::BTreeSet;

use crate::budget::Stop;
use crate::gates::{self, Passed};
use crate::lab::{Lab, RunError};
use crate::likely::Likely;
use crate::oracles::serial::{MOST_CALLS, SerialSet, Verdict};
use crate::plan::Candidate;
use crate::plan::scan::{self, Finding};
use crate::proof::{Proof, Subject};
use crate::report::{Attempt, AttemptOutcome};
use crate::scenario::{Assignment, Place, Scenario, Schedule};
use crate::{shrink, timeline};

/// Which processes calls go to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    InProcess,
    CrossProcess,
}

impl Scope {
    fn assignment(self, calls: usize) -> Assignment {
        match self {
            Self::InProcess => Assignment::one(calls),
            Self::CrossProcess => Assignment::two(calls),
        }
    }

    pub fn as_str(self) -> &'static str {
        match self {
            Self::InProcess => "in-process",
            Self::CrossProcess => "cross-process",
        }
    }
}

/// What may be tried.
#[derive(Clone, Debug)]
pub struct Limits {
    pub scopes: Vec<Scope>,
    /// Where calls can be held on this machine.
    pub places: Vec<Place>,
    pub deep: bool,
    /// Stop at the first proof.
    pub first: bool,
    pub jitter: bool,
    pub bursts: bool,
    /// What comes first.
    pub likely: Likely,
    /// Stop after so many schedules.
    pub schedules: Option<usize>,
}

/// Called after each run and each step, to show how far it is.
pub trait Watch: Sync {
    fn doing(&self, what: &str, schedules: usize);
    fn proved(&self, proof: &Proof);
}

pub struct Search<'a> {
    pub lab: &'a Lab,
    pub subject: &'a Subject,
    pub limits: Limits,
    pub watch: &'a dyn Watch,
    /// What `scan` found: each is looked for until it is shown.
    pub findings: &'a [Finding],
    pub proofs: Vec<Proof>,
    pub attempts: Vec<Attempt>,
    /// Schedules that were run, without serial ones and replays.
    pub schedules: usize,
    /// Points at which a call was held.
    pub points: usize,
    covered: BTreeSet<(Vec<String>, &'static str)>,
}

/// A candidate in one scope, as far as it has come.
struct Work<'c> {
    candidate: &'c Candidate,
    scope: Scope,
    set: Option<SerialSet>,
    attempt: Attempt,
    /// A violation was seen, and did not come back every time.
    came_and_went: bool,
    /// Every call was held.
    held: bool,
    /// Nothing more can be learned here.
    done: bool,
}

/// Points of one call beyond this are not tried.
const MOST_POINTS: u32 = 40;
const JITTERS: u64 = 6;
/// Of the same tools: further ones would hardly be about something else.
const MOST_PROOFS: usize = 2;
/// Runs that it takes to make a proof smaller, and to confirm it afterwards.
const SHRINKING: u32 = 30;
/// So many candidates are tried by every means before the next.
const FEW: usize = 4;

impl<'a> Search<'a> {
    pub fn new(lab: &'a Lab, subject: &'a Subject, limits: Limits, watch: &'a dyn Watch) -> Self {
        Self {
            lab,
            subject,
            limits,
            watch,
            findings: &[],
            proofs: Vec::new(),
            attempts: Vec::new(),
            schedules: 0,
            points: 0,
            covered: BTreeSet::new(),
        }
    }

    /// Tries all candidates, until all are done or time is up.
    pub fn run(&mut self, candidates: &[Candidate]) -> Result<(), RunError> {
        let mut works: Vec<Work<'_>> = Vec::new();
        for candidate in candidates {
            for scope in self.limits.scopes.clone() {
                works.push(Work {
                    candidate,
                    scope,
                    set: None,
                    attempt: Attempt::new(candidate, scope),
                    came_and_went: false,
                    held: false,
                    done: false,
                });
            }
        }
        let result = self.rounds(&mut works);
        for mut work in works {
            if work.set.is_some() && work.attempt.outcome == AttemptOutcome::NotTried {
                work.attempt.reason =
                    Some("it ended before all that was planned was tried".to_owned());
            }
            if work.set.is_some() || work.attempt.outcome != AttemptOutcome::NotTried {
                self.attempts.push(work.attempt);
            }
        }
        result
    }

    fn rounds(&mut self, works: &mut [Work<'_>]) -> Result<(), RunError> {
        let (likely, unlikely): (Vec<Scope>, Vec<Scope>) = self
            .limits
            .scopes
            .iter()
            .partition(|scope| self.limits.likely.has(**scope));
        let mut rounds = self.rounds_of(&likely);
        rounds.extend(self.rounds_of(&unlikely));
        // The likeliest few by every means, then the next.
        let few = FEW * self.limits.scopes.len().max(1);
        for some in works.chunks_mut(few) {
            self.chunk(some, &rounds)?;
        }
        let mut rest = Vec::new();
        if self.limits.jitter {
            rest.push(Round::Jitter);
        }
        if self.limits.deep {
            rest.push(Round::Deep);
        }
        self.chunk(works, &rest)
    }

    /// Every means, for calls that meet in these ways.
    fn rounds_of(&self, scopes: &[Scope]) -> Vec<Round> {
        let burst = |scope: Scope| {
            let some = self.limits.bursts && scopes.contains(&scope);
            some.then_some(Round::Burst(scope))
        };
        let holds = self.limits.places.iter().flat_map(|place| {
            let both = [Scope::InProcess, Scope::CrossProcess].into_iter();
            both.filter(|scope| scopes.contains(scope))
                .map(|scope| Round::Hold(*place, scope))
        });
        burst(Scope::InProcess)
            .into_iter()
            .chain(holds)
            .chain(burst(Scope::CrossProcess))
            .collect()
    }

    fn chunk(&mut self, works: &mut [Work<'_>], rounds: &[Round]) -> Result<(), RunError> {
        for round in rounds {
            for work in works.iter_mut() {
                if self.limits.first && !self.proofs.is_empty() {
                    return Ok(());
                }
                let over = work.done || (work.held && matches!(round, Round::Hold(..)));
                if over || self.is_covered(work) || !round.concerns(work.scope) {
                    continue;
                }
                self.check()?;
                self.watch.doing(&work.candidate.shown(), self.schedules);
                self.attempt(work, round)?;
                if matches!(round, Round::Burst(_)) && work.came_and_went {
                    self.hold_at_once(work)?;
                }
            }
        }
        // All that was to be tried was tried.
        for work in works.iter_mut().filter(|work| work.set.is_some()) {
            if work.attempt.outcome == AttemptOutcome::NotTried {
                work.attempt.outcome = AttemptOutcome::NoViolation;
            }
        }
        Ok(())
    }

    /// There is a race here, so that the place is found where it happens every time.
    fn hold_at_once(&mut self, work: &mut Work<'_>) -> Result<(), RunError> {
        for place in self.limits.places.clone() {
            if !work.done {
                self.attempt(work, &Round::Hold(place, work.scope))?;
            }
        }
        work.held = true;
        Ok(())
    }

    /// Whether a proof says already what this one could.
    fn is_covered(&self, work: &Work<'_>) -> bool {
        let tools = work.candidate.tools();
        let scope = work.scope.as_str();
        if !self.findings.is_empty() {
            return self.says_nothing_new(&tools, scope);
        }
        if self.covered.contains(&(tools.clone(), scope)) {
            return true;
        }
        // Two tools that were both proved alone add nothing together.
        tools.len() > 1
            && tools
                .iter()
                .all(|tool| self.covered.contains(&(vec![tool.clone()], scope)))
    }

    /// Whether all findings that these tools can show are shown, or they were given up on.
    fn says_nothing_new(&self, tools: &[String], scope: &str) -> bool {
        let before = self.proofs.iter();
        let before = before.filter(|proof| proof.tools == tools && proof.scope == scope);
        let shown = scan::shown(self.findings, &self.proofs);
        let mut asking = self
            .findings
            .iter()
            .zip(&shown)
            .filter(|(finding, _)| finding.asks_for(tools, scope));
        before.count() >= MOST_PROOFS || asking.all(|(_, proof)| proof.is_some())
    }

    fn attempt(&mut self, work: &mut Work<'_>, round: &Round) -> Result<(), RunError> {
        if work.set.is_none() && !self.prepare(work)? {
            return Ok(());
        }
        for schedule in self.schedules_of(work, round) {
            self.check()?;
            let Some(set) = work.set.as_mut() else {
                return Ok(());
            };
            self.schedules += 1;
            work.attempt.schedules += 1;
            self.watch.doing(&work.candidate.shown(), self.schedules);
            let outcome = match gates::run(self.lab, set, &schedule, false) {
                Ok(outcome) => outcome,
                Err(RunError::Setup { .. } | RunError::Gone) => continue,
                Err(error) => return Err(error),
            };
            if outcome.held.is_some() {
                self.points += 1;
                work.attempt.points += 1;
            }
            let Verdict::Violation(_) = set.explain(self.lab, &outcome)? else {
                continue;
            };
            let before = (work.attempt.outcome, work.attempt.reason.take());
            work.attempt.outcome = AttemptOutcome::Inconclusive;
            work.attempt.reason = Some(
                "a violation was seen, and time was up before it could be confirmed".to_owned(),
            );
            let passed = match gates::doubt(self.lab, set, &outcome)? {
                Some(doubted) => doubted,
                None => self.confirmed(set, &schedule)?,
            };
            match passed {
                Passed::Proved {
                    violation,
                    outcome,
                    replays,
                } => {
                    let template = work.candidate.template.as_str();
                    let elapsed = self.lab.budget.elapsed();
                    let proof = Proof::new(
                        self.subject,
                        set,
                        &schedule,
                        template,
                        &violation,
                        &outcome,
                        replays,
                        elapsed,
                    );
                    let proof = self.named(proof);
                    self.covered
                        .insert((work.candidate.tools(), work.scope.as_str()));
                    work.attempt.outcome = AttemptOutcome::Proved;
                    work.attempt.reason = None;
                    work.done = true;
                    self.watch.proved(&proof);
                    self.proofs.push(proof);
                    return Ok(());
                }
                Passed::FalseAlarm => (work.attempt.outcome, work.attempt.reason) = before,
                Passed::Flaky(replays) => {
                    work.came_and_went = true;
                    work.attempt.outcome = AttemptOutcome::Inconclusive;
                    work.attempt.reason = Some(format!(
                        "a violation was seen with {}, and came back in {} of {} replays",
                        schedule.name(),
                        replays.reproduced,
                        replays.of
                    ));
                }
                Passed::Inconclusive(reason) => {
                    work.attempt.outcome = AttemptOutcome::Inconclusive;
                    work.attempt.reason = Some(reason);
                    work.done = true;
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// Whether there is time, and something left of what was asked for.
    fn check(&self) -> Result<(), Stop> {
        self.lab.budget.check()?;
        match self.limits.schedules {
            Some(most) if self.schedules >= most => Err(Stop::Enough),
            _ => Ok(()),
        }
    }

    /// Makes it happen again: in the smallest form if there is one, since that is told.
    fn confirmed(&self, set: &mut SerialSet, schedule: &Schedule) -> Result<Passed, RunError> {
        if self.lab.has_time_for(SHRINKING)
            && let Some((smaller, passed)) = self.smaller(set, schedule)?
        {
            *set = smaller;
            return Ok(passed);
        }
        gates::confirm(self.lab, set, schedule)
    }

    /// The same with less, if that is proved just as well.
    fn smaller(
        &self,
        set: &SerialSet,
        schedule: &Schedule,
    ) -> Result<Option<(SerialSet, Passed)>, RunError> {
        let Some(mut smaller) = shrink::shrink(self.lab, set, schedule)? else {
            return Ok(None);
        };
        // What is unsteady may stand in other places now.
        if smaller.steady(self.lab, 1)?.is_err() {
            return Ok(None);
        }
        let passed = gates::confirm(self.lab, &mut smaller, schedule)?;
        Ok(matches!(passed, Passed::Proved { .. }).then_some((smaller, passed)))
    }

    /// Finds a set-up with which every call works in some order.
    fn prepare(&mut self, work: &mut Work<'_>) -> Result<bool, RunError> {
        let assignment = work.scope.assignment(work.candidate.scenario.calls.len());
        let mut reason = "no set-up was found with which the calls succeed".to_owned();
        for setup in &work.candidate.setups {
            let scenario = Scenario {
                setup: setup.clone(),
                ..work.candidate.scenario.clone()
            };
            match SerialSet::record(self.lab, &scenario, &assignment) {
                Ok(set) if set.works() => {
                    work.set = Some(set);
                    return Ok(true);
                }
                Ok(set) => {
                    if let Some(reply) = set
                        .runs
                        .first()
                        .and_then(|run| run.outcome.replies.iter().find(|reply| !reply.is_ok()))
                    {
                        reason = format!(
                            "the calls fail one after the other, too: {}",
                            timeline::short(&reply.shown(), 100)
                        );
                    }
                }
                Err(RunError::Setup { .. } | RunError::Gone) => {}
                Err(error) => return Err(error),
            }
        }
        work.done = true;
        work.attempt.outcome = AttemptOutcome::NotPossible;
        work.attempt.reason = Some(reason);
        Ok(false)
    }

    fn schedules_of(&self, work: &Work<'_>, round: &Round) -> Vec<Schedule> {
        let Some(set) = &work.set else {
            return Vec::new();
        };
        let many = set.scenario.calls.len() > MOST_CALLS;
        match round {
            Round::Burst(_) => vec![Schedule::Burst],
            Round::Jitter => (1..=JITTERS)
                .map(|seed| Schedule::Jitter { seed })
                .collect(),
            // Eight calls are for limits: there is nothing to hold.
            Round::Hold(..) | Round::Deep if many => Vec::new(),
            Round::Hold(place, _) => (0..set.scenario.calls.len())
                .flat_map(|call| {
                    let twins = call > 0 && set.scenario.calls[call] == set.scenario.calls[0];
                    // Identical calls have one role.
                    let points = if twins { 0 } else { points(set, call, *place) };
                    (1..=points.min(MOST_POINTS)).map(move |point| Schedule::Hold {
                        call,
                        point,
                        at: *place,
                        then: None,
                    })
                })
                .collect(),
            Round::Deep => deep(set, &self.limits.places),
        }
    }

    /// Two proofs of one search have different names.
    fn named(&self, mut proof: Proof) -> Proof {
        let count = self
            .proofs
            .iter()
            .filter(|other| other.id.starts_with(&proof.id))
            .count();
        if count > 0 {
            proof.id = format!("{}-{}", proof.id, count + 1);
        }
        proof
    }
}

/// One way of trying, for all candidates in turn.
enum Round {
    Burst(Scope),
    Hold(Place, Scope),
    Jitter,
    Deep,
}

impl Round {
    fn concerns(&self, scope: Scope) -> bool {
        match self {
            Self::Burst(own) | Self::Hold(_, own) => *own == scope,
            Self::Jitter | Self::Deep => true,
        }
    }
}

/// How often a call can be held, as seen when it ran first.
fn points(set: &SerialSet, call: usize, place: Place) -> u32 {
    let source = match place {
        Place::Syscall => toctou_hold::Source::Syscall,
        Place::Await => toctou_hold::Source::Await,
    };
    let run = set.runs.iter().find(|run| run.order.first() == Some(&call));
    let count = run.map_or(0, |run| {
        run.outcome
            .events
            .iter()
            .zip(&run.outcome.owners)
            .filter(|(event, owner)| {
                **owner == Some(call) && event.class.is_point() && event.source == source
            })
            .count()
    });
    u32::try_from(count).unwrap_or(u32::MAX)
}

/// Both calls are held, each once.
fn deep(set: &SerialSet, places: &[Place]) -> Vec<Schedule> {
    let mut all = Vec::new();
    for place in places {
        for call in 0..set.scenario.calls.len().min(2) {
            for point in 1..=points(set, call, *place).min(MOST_POINTS) {
                for then in 1..=points(set, 1 - call, *place).min(MOST_POINTS) {
                    all.push(Schedule::Hold {
                        call,
                        point,
                        at: *place,
                        then: Some(then),
                    });
                }
            }
        }
    }
    all
}
