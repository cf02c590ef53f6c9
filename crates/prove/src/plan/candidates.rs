//! From what the tools are to calls that may not go together, the likeliest first.

use super::probe::{Known, Survey, Verb};
use super::synth::{NOT_THERE, has_key, has_number, has_payload};
use super::{Candidate, Template};
use crate::call::Call;
use crate::scenario::Scenario;

/// Calls in a burst that shall pass a limit.
pub const MANY: usize = 8;
/// The same, where there is known to be one: more than most that a test would wait for.
const BEYOND: usize = 24;
const MOST: usize = 200;

/// All candidates of two calls, then those of many. `wanted` names tools that come first,
/// `limited` those of which only so many calls are let through.
pub fn candidates(survey: &Survey, wanted: &[Vec<String>], limited: &[String]) -> Vec<Candidate> {
    let mutators: Vec<&Known> = survey.mutators().collect();
    let mut all = Vec::new();
    for known in &mutators {
        let tool = &known.tool;
        if has_key(&tool.schema) {
            all.push(pair(
                survey,
                Template::DistinctKeys,
                survey.call(known, 0, 0),
                survey.call(known, 1, 1),
                known,
            ));
        }
        if has_payload(&tool.schema) {
            all.push(pair(
                survey,
                Template::SameKey,
                survey.call(known, 0, 0),
                survey.call(known, 0, 1),
                known,
            ));
        }
        let destination = |key: usize| {
            survey.filled(known, |fill| {
                fill.key = key;
                fill.other = Some(NOT_THERE);
            })
        };
        if destination(1) != survey.call(known, 1, 0) {
            all.push(pair(
                survey,
                Template::SameDestination,
                destination(0),
                destination(1),
                known,
            ));
        }
        all.push(pair(
            survey,
            Template::Twice,
            survey.call(known, 0, 0),
            survey.call(known, 0, 0),
            known,
        ));
        if has_number(&tool.schema) {
            for amount in survey.harvest_fresh.amounts() {
                let call = survey.filled(known, |fill| fill.amount = Some(amount));
                all.push(pair(survey, Template::Amount, call.clone(), call, known));
            }
        }
    }
    for (index, a) in mutators.iter().enumerate() {
        for b in &mutators[index + 1..] {
            all.push(pair(
                survey,
                Template::Tools,
                survey.call(a, 0, 0),
                survey.call(b, 0, 1),
                a,
            ));
        }
    }
    // Tools that read can change what is in memory: a cache, a connection.
    for a in &mutators {
        for b in survey
            .tools
            .iter()
            .filter(|known| known.works && known.is_reader() && known.tool.read_only.is_none())
        {
            all.push(pair(
                survey,
                Template::Tools,
                survey.call(a, 0, 0),
                survey.call(b, 0, 0),
                a,
            ));
        }
    }
    let many = mutators.iter().map(|known| (known, MANY));
    let beyond = mutators.iter().map(|known| (known, BEYOND));
    let beyond = beyond.filter(|(known, _)| limited.contains(&known.tool.name));
    for (known, count) in many.chain(beyond) {
        let calls = vec![survey.call(known, 0, 0); count];
        let mut candidate = pair(
            survey,
            Template::Limit,
            calls[0].clone(),
            calls[0].clone(),
            known,
        );
        candidate.scenario.calls = calls;
        all.push(candidate);
    }
    all.dedup_by(|a, b| a.scenario.calls == b.scenario.calls);
    let mut seen: Vec<Vec<Call>> = Vec::new();
    all.retain(|candidate| {
        let new = !seen.contains(&candidate.scenario.calls);
        if new {
            seen.push(candidate.scenario.calls.clone());
        }
        new
    });
    // A stable sort: within a rank the order above stays.
    all.sort_by_key(|candidate| rank(candidate, wanted));
    all.truncate(MOST);
    all
}

fn rank(candidate: &Candidate, wanted: &[Vec<String>]) -> (usize, u8) {
    let tools = candidate.tools();
    let asked = wanted
        .iter()
        .position(|names| tools.iter().all(|tool| names.contains(tool)));
    let likely = match candidate.template {
        Template::Given => 0,
        Template::DistinctKeys => 1,
        Template::SameDestination | Template::Amount => 2,
        Template::SameKey => 3,
        Template::Twice => 4,
        Template::Tools => 5,
        Template::Limit => 6,
    };
    (usize::from(asked.is_none() && !wanted.is_empty()), likely)
}

fn pair(survey: &Survey, template: Template, a: Call, b: Call, known: &Known) -> Candidate {
    let scenario = Scenario {
        setup: Vec::new(),
        calls: vec![a, b],
        observers: survey.observers.clone(),
    };
    let both: Vec<Call> = survey
        .creators
        .iter()
        .chain(&survey.seconds)
        .cloned()
        .collect();
    // What creates is first tried on nothing, what changes on something.
    let needs = scenario
        .calls
        .iter()
        .any(|call| call.arguments.to_string().contains("${setup"));
    let creates = matches!(known.verb, Verb::Init | Verb::Create);
    let mut setups = match (needs, creates) {
        (true, _) => vec![both, survey.creators.clone()],
        (false, true) => vec![Vec::new(), survey.creators.clone(), both],
        (false, false) => vec![both, Vec::new(), survey.creators.clone()],
    };
    setups.dedup();
    Candidate {
        template,
        scenario,
        setups,
    }
}
