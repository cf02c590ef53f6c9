//! Which calls to drive into each other, and what has to be there before.

pub mod candidates;
pub mod fixtures;
pub mod harvest;
pub mod probe;
pub mod recorded;
pub mod scan;
pub mod synth;

use crate::call::Call;
use crate::scenario::Scenario;

/// How two calls are made to conflict.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Template {
    /// Different things of one collection.
    DistinctKeys,
    /// The same thing, with another payload of another size.
    SameKey,
    /// The same call twice.
    Twice,
    /// The same thing, by different tools.
    Tools,
    /// Different sources, one destination.
    SameDestination,
    /// An amount that is there once.
    Amount,
    /// One more than the limit, whatever it is.
    Limit,
    /// What the user or recorded traffic said.
    Given,
}

impl Template {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::DistinctKeys => "different keys",
            Self::SameKey => "same key, other payload",
            Self::Twice => "the same call twice",
            Self::Tools => "same key, different tools",
            Self::SameDestination => "other source, same destination",
            Self::Amount => "an amount that is there once",
            Self::Limit => "more calls than a limit allows",
            Self::Given => "as given",
        }
    }
}

/// Calls that may not go together.
#[derive(Clone, Debug)]
pub struct Candidate {
    pub template: Template,
    pub scenario: Scenario,
    /// Other ways to set up, if calls fail without.
    pub setups: Vec<Vec<Call>>,
}

impl Candidate {
    /// The tools, each once, in order.
    pub fn tools(&self) -> Vec<String> {
        let mut tools: Vec<String> = self
            .scenario
            .calls
            .iter()
            .map(|call| call.tool.clone())
            .collect();
        tools.sort();
        tools.dedup();
        tools
    }

    pub fn shown(&self) -> String {
        match self.scenario.calls.as_slice() {
            [a, b] if a.tool == b.tool => format!("{} twice, {}", a.tool, self.template.as_str()),
            [a, b] => format!("{} against {}, {}", a.tool, b.tool, self.template.as_str()),
            calls => format!(
                "{} of {}, {}",
                calls.len(),
                self.tools().join(" and "),
                self.template.as_str()
            ),
        }
    }
}
