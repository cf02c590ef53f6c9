//! A policy, and arguments for its keys, both from a stranger.

#![no_main]

use std::collections::BTreeSet;

use libfuzzer_sys::fuzz_target;
use toctou_guard::policy::{Template, from_scan, parse};
use toctou_guard::servers::parse_servers;

fuzz_target!(|text: &str| {
    let (first, second) = text.split_once('\0').unwrap_or((text, "{}"));
    let _ = parse(first);
    let _ = parse_servers(first);
    if let Ok(policy) = from_scan(first) {
        parse(&policy).expect("a policy made from a scan is valid");
    }
    if let (Ok(template), Ok(arguments)) = (Template::parse(first), serde_json::from_str(second)) {
        let mut keys = BTreeSet::new();
        if template.keys(&arguments, &mut keys).is_ok() {
            assert!(keys.len() <= 256);
        }
    }
});
