//! The serial orders of some calls, and whether one of them explains an outcome.

use std::time::Duration;

use serde_json::Value;

use crate::call::is_refusal;
use crate::canon::{self, Lists, Masks, Node, Unsteady, canonical, differences};
use crate::lab::{Experiment, Lab, RunError};
use crate::outcome::Outcome;
use crate::scenario::{Assignment, Scenario, Schedule};

use super::{Class, Evidence, Violation, name};

/// Longer than the second that many servers tell the time by.
const PAUSE: Duration = Duration::from_millis(1100);
/// More calls than this have too many orders.
pub const MOST_CALLS: usize = 4;

/// One order, and what came of it.
#[derive(Clone, Debug)]
pub struct SerialRun {
    pub order: Vec<usize>,
    pub outcome: Outcome,
}

/// What serial runs of a scenario leave, by one assignment of calls to processes.
pub struct SerialSet {
    pub scenario: Scenario,
    pub assignment: Assignment,
    pub runs: Vec<SerialRun>,
    pub masks: Masks,
    pub lists: Lists,
    /// Serial runs of fewer calls, made when a call fails.
    without: Vec<(Vec<usize>, Vec<SerialRun>)>,
}

/// What the oracle says.
#[derive(Clone, Debug)]
pub enum Verdict {
    /// This order explains it.
    Serial(Vec<usize>),
    /// A call was turned away because another one ran, and says so.
    Refused,
    Violation(Box<Violation>),
}

impl SerialSet {
    /// Runs every order once.
    pub fn record(
        lab: &Lab,
        scenario: &Scenario,
        assignment: &Assignment,
    ) -> Result<Self, RunError> {
        let count = scenario.calls.len();
        let (orders, lists) = if count <= MOST_CALLS {
            (
                distinct(orders(count), scenario, assignment),
                Lists::Ordered,
            )
        } else {
            let forward: Vec<usize> = (0..count).collect();
            let backward = forward.iter().rev().copied().collect();
            (vec![forward, backward], Lists::Unordered)
        };
        let mut set = Self {
            scenario: scenario.clone(),
            assignment: assignment.clone(),
            runs: Vec::new(),
            masks: Masks::new(),
            lists,
            without: Vec::new(),
        };
        for order in orders {
            let outcome = set.again(lab, &order, Duration::ZERO)?;
            set.runs.push(SerialRun { order, outcome });
        }
        Ok(set)
    }

    /// The longest that a call took.
    pub fn latency(&self) -> Duration {
        let all = self
            .runs
            .iter()
            .flat_map(|run| run.outcome.latencies.iter().flatten());
        all.max().copied().unwrap_or_default()
    }

    /// Every call succeeds in some order: else it shows nothing.
    pub fn works(&self) -> bool {
        let succeeds = |call: usize| {
            let alike = twins(&self.scenario, &self.assignment, call);
            self.runs.iter().any(|run| {
                alike.iter().any(|twin| {
                    run.outcome
                        .replies
                        .get(*twin)
                        .is_some_and(|reply| reply.is_ok())
                })
            })
        };
        (0..self.scenario.calls.len()).all(succeeds)
    }

    fn again(&self, lab: &Lab, order: &[usize], pause: Duration) -> Result<Outcome, RunError> {
        lab.run(&Experiment {
            scenario: &self.scenario,
            assignment: &self.assignment,
            schedule: &Schedule::Serial {
                order: order.to_vec(),
            },
            alone: false,
            pause,
            expected: Duration::ZERO,
        })
    }

    /// Runs every order again: identical runs must agree, but for what can be masked.
    pub fn steady(&mut self, lab: &Lab, times: usize) -> Result<Result<(), Unsteady>, RunError> {
        for index in 0..self.runs.len() {
            for _ in 0..times {
                let order = self.runs[index].order.clone();
                let again = self.again(lab, &order, Duration::ZERO)?;
                let run = &self.runs[index];
                let (a, b) = (self.parts(lab, &run.outcome), self.parts(lab, &again));
                let learned = canon::learn(&[&a[0], &a[1]], &[&b[0], &b[1]], &mut self.masks);
                if let Err(unsteady) = learned {
                    return Ok(Err(unsteady));
                }
            }
        }
        if self.scenario.calls.len() > MOST_CALLS {
            // Only what does not depend on the order may be judged without it.
            let forms: Vec<Vec<Node>> = self
                .runs
                .iter()
                .map(|run| self.form(lab, &run.outcome))
                .collect();
            if forms.windows(2).any(|pair| pair[0] != pair[1]) {
                return Ok(Err(Unsteady {
                    place: "the order of the calls decides what is left".to_owned(),
                }));
            }
        }
        Ok(Ok(()))
    }

    /// Runs two orders with time between the calls: a serial run may take as long
    /// as it likes. Where time decides the order of a list, that order says nothing.
    /// Of many calls nothing is judged by its order anyway.
    pub fn at_leisure(&mut self, lab: &Lab) -> Result<Result<(), Unsteady>, RunError> {
        if self.scenario.calls.len() > MOST_CALLS {
            return Ok(Ok(()));
        }
        for (index, slow) in self.slow_runs(lab).into_iter().enumerate() {
            let slow = slow?;
            let swift = &self.runs[index].outcome;
            let (a, b) = (self.parts(lab, swift), self.parts(lab, &slow));
            let alike = |lists: Lists| {
                let form =
                    |parts: &[Value; 2]| canonical(&[&parts[0], &parts[1]], &self.masks, lists);
                form(&a) == form(&b)
            };
            if alike(self.lists) {
                continue;
            }
            // Masks would hide what stands in the list, not only where.
            if alike(Lists::Unordered) {
                self.lists = Lists::Unordered;
            } else if canon::learn(&[&a[0], &a[1]], &[&b[0], &b[1]], &mut self.masks).is_err() {
                return Ok(Err(Unsteady {
                    place: "what depends on the time between two calls".to_owned(),
                }));
            }
        }
        Ok(Ok(()))
    }

    /// Both at once, since they mostly wait; one after the other where they share a state.
    fn slow_runs(&self, lab: &Lab) -> Vec<Result<Outcome, RunError>> {
        let orders = self.runs.iter().map(|run| run.order.as_slice()).take(2);
        let slow = |order| self.again(lab, order, PAUSE);
        if lab.pool.maker().is_shared() {
            return orders.map(slow).collect();
        }
        std::thread::scope(|scope| {
            let running: Vec<_> = orders
                .map(|order| scope.spawn(move || slow(order)))
                .collect();
            running
                .into_iter()
                .map(|run| run.join().unwrap_or(Err(RunError::Gone)))
                .collect()
        })
    }

    /// State and responses. Answers of identical calls may be exchanged.
    fn parts(&self, lab: &Lab, outcome: &Outcome) -> [Value; 2] {
        let (scenario, assignment) = (&self.scenario, &self.assignment);
        let mut replies: Vec<Value> = outcome.replies.iter().map(|reply| reply.value()).collect();
        for (index, call) in scenario.calls.iter().enumerate() {
            if scenario.calls[..index].contains(call) {
                continue;
            }
            let same: Vec<usize> = twins(scenario, assignment, index)
                .into_iter()
                .filter(|at| *at < replies.len())
                .collect();
            if same.len() < 2 {
                continue;
            }
            let mut values: Vec<Value> = same.iter().map(|at| replies[*at].clone()).collect();
            values.sort_by_cached_key(|value| {
                canonical(&[value], &self.masks, Lists::Ordered)[0].to_string()
            });
            for (at, value) in same.into_iter().zip(values) {
                replies[at] = value;
            }
        }
        [outcome.state(&lab.logs), Value::Array(replies)]
    }

    fn form(&self, lab: &Lab, outcome: &Outcome) -> Vec<Node> {
        let [state, responses] = self.parts(lab, outcome);
        canonical(&[&state, &responses], &self.masks, self.lists)
    }

    /// Whether a serial order explains `outcome`.
    pub fn explain(&mut self, lab: &Lab, outcome: &Outcome) -> Result<Verdict, RunError> {
        let form = self.form(lab, outcome);
        let serial: Vec<Vec<Node>> = self
            .runs
            .iter()
            .map(|run| self.form(lab, &run.outcome))
            .collect();
        if let Some(at) = serial.iter().position(|other| *other == form) {
            return Ok(Verdict::Serial(self.runs[at].order.clone()));
        }
        let never =
            |test: &dyn Fn(&Outcome) -> bool| !self.runs.iter().any(|run| test(&run.outcome));
        let class = if outcome.crash.is_some() {
            if !never(&|other| other.crash.is_some()) {
                return Ok(Verdict::Refused);
            }
            Class::Crash
        } else if !outcome.silent.is_empty() {
            if !never(&|other| !other.silent.is_empty()) {
                return Ok(Verdict::Refused);
            }
            Class::Hang
        } else {
            let failed: Vec<usize> = (0..outcome.replies.len())
                .filter(|call| {
                    // Of identical calls, any may be the one that fails.
                    let alike = twins(&self.scenario, &self.assignment, *call);
                    outcome.replies[*call].is_error()
                        && never(&|other| {
                            alike.iter().any(|twin| {
                                other
                                    .replies
                                    .get(*twin)
                                    .is_some_and(|reply| reply.is_error())
                            })
                        })
                })
                .collect();
            let refused = failed
                .iter()
                .all(|call| is_refusal(&outcome.replies[*call]));
            if !failed.is_empty() && self.rest_is_serial(lab, outcome, &failed)? {
                if refused {
                    return Ok(Verdict::Refused);
                }
                Class::SpuriousError
            } else if serial.iter().any(|other| other[0] == form[0]) {
                Class::Response
            } else {
                Class::State
            }
        };
        Ok(Verdict::Violation(Box::new(
            self.violation(outcome, class, &form, &serial),
        )))
    }

    fn violation(
        &self,
        outcome: &Outcome,
        class: Class,
        form: &[Node],
        serial: &[Vec<Node>],
    ) -> Violation {
        // Where the state matches, the answers are what differs.
        let part = usize::from(class == Class::Response || class == Class::SpuriousError);
        let mut nearest: Option<(usize, Vec<canon::Difference>)> = None;
        for (index, other) in serial.iter().enumerate() {
            if class == Class::Response && other[0] != form[0] {
                continue;
            }
            let found = differences(&other[part], &form[part]);
            if nearest
                .as_ref()
                .is_none_or(|(_, best)| found.len() < best.len())
            {
                nearest = Some((index, found));
            }
        }
        let (index, found) = nearest.unwrap_or_default();
        let (kind, headline) = name(&Evidence {
            scenario: &self.scenario,
            outcome,
            serial: &self.runs,
            differences: &found,
            class,
        });
        Violation {
            class,
            kind,
            headline,
            nearest: self
                .runs
                .get(index)
                .map(|run| run.order.clone())
                .unwrap_or_default(),
            differences: found,
        }
    }

    /// Whether what is left is what the other calls leave, had the failed ones never come.
    fn rest_is_serial(
        &mut self,
        lab: &Lab,
        outcome: &Outcome,
        failed: &[usize],
    ) -> Result<bool, RunError> {
        let kept: Vec<usize> = (0..self.scenario.calls.len())
            .filter(|call| !failed.contains(call))
            .collect();
        if kept.len() > MOST_CALLS {
            return Ok(false);
        }
        if !self.without.iter().any(|(calls, _)| *calls == kept) {
            let scenario = Scenario {
                calls: kept
                    .iter()
                    .map(|call| self.scenario.calls[*call].clone())
                    .collect(),
                ..self.scenario.clone()
            };
            // A process that is left without a call is still there to be asked.
            let mut assignment =
                Assignment(kept.iter().map(|call| self.assignment.0[*call]).collect());
            assignment.0.push(self.assignment.processes() - 1);
            let mut runs = Vec::new();
            for order in orders(kept.len()) {
                let outcome = lab.run(&Experiment {
                    scenario: &scenario,
                    assignment: &assignment,
                    schedule: &Schedule::Serial {
                        order: order.clone(),
                    },
                    alone: false,
                    pause: Duration::ZERO,
                    expected: Duration::ZERO,
                })?;
                runs.push(SerialRun { order, outcome });
            }
            self.without.push((kept.clone(), runs));
        }
        let state = outcome.state(&lab.logs);
        let replies: Value = kept
            .iter()
            .map(|call| outcome.replies[*call].value())
            .collect();
        let form = canonical(&[&state, &replies], &self.masks, self.lists);
        let runs = self.without.iter().find(|(calls, _)| *calls == kept);
        Ok(runs.is_some_and(|(_, runs)| {
            runs.iter().any(|run| {
                let other = [run.outcome.state(&lab.logs), run.outcome.responses()];
                canonical(&[&other[0], &other[1]], &self.masks, self.lists) == form
            })
        }))
    }
}

/// Calls that are the same as this one and go to the same process, itself among them.
fn twins(scenario: &Scenario, assignment: &Assignment, call: usize) -> Vec<usize> {
    let calls = &scenario.calls;
    (0..calls.len())
        .filter(|other| {
            calls[*other] == calls[call] && assignment.0.get(*other) == assignment.0.get(call)
        })
        .collect()
}

/// Orders that differ by more than an exchange of identical calls.
fn distinct(all: Vec<Vec<usize>>, scenario: &Scenario, assignment: &Assignment) -> Vec<Vec<usize>> {
    let alike = |order: &[usize]| -> Vec<usize> {
        order
            .iter()
            .map(|call| twins(scenario, assignment, *call)[0])
            .collect()
    };
    let mut seen: Vec<Vec<usize>> = Vec::new();
    all.into_iter()
        .filter(|order| {
            let form = alike(order);
            let new = !seen.contains(&form);
            if new {
                seen.push(form);
            }
            new
        })
        .collect()
}

/// All orders of so many calls.
pub fn orders(count: usize) -> Vec<Vec<usize>> {
    let mut all = vec![Vec::new()];
    for _ in 0..count {
        all = all
            .into_iter()
            .flat_map(|order: Vec<usize>| {
                (0..count)
                    .filter(|call| !order.contains(call))
                    .map(|call| {
                        let mut longer = order.clone();
                        longer.push(call);
                        longer
                    })
                    .collect::<Vec<_>>()
            })
            .collect();
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_order_once() {
        let all = orders(3);
        assert_eq!(all.len(), 6);
        assert_eq!(all[0], [0, 1, 2]);
        assert!(all.contains(&vec![2, 1, 0]));
        assert_eq!(orders(0), [Vec::<usize>::new()]);
    }
}
