//! What all tests of whole servers begin with.

use std::collections::BTreeMap;
use std::time::Duration;

use toctou_hold::Isolate;
use toctou_prove::Options;
use toctou_prove::proof::Proof;
use toctou_prove::search::{Scope, Watch};
use toctou_prove::target::Target;

pub struct Nobody;

impl Watch for Nobody {
    fn doing(&self, _what: &str, _schedules: usize) {}
    fn proved(&self, _proof: &Proof) {}
}

pub fn options(target: Target, seconds: u64) -> Options {
    Options {
        target,
        headers: BTreeMap::new(),
        store: None,
        budget: Duration::from_secs(seconds),
        network: false,
        isolate: Isolate::Auto,
        writable: Vec::new(),
        scopes: vec![Scope::InProcess, Scope::CrossProcess],
        deep: false,
        first: true,
        patience: Duration::from_secs(3),
        examples: Vec::new(),
        scenario: None,
        traffic: Vec::new(),
        findings: Vec::new(),
        strategies: Vec::new(),
        schedules: None,
    }
}
