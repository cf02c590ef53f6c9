//! The Rust servers of the testbed: the racy ones give what `expected.json`
//! lists, all of it and nothing else, and their repaired twins give nothing.

mod common;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use common::run_in;
use serde_json::Value;

fn testbed() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testbed/rust")
}

/// File, rule and tool.
type Entry = (String, String, String);

fn text(value: &Value) -> String {
    value.as_str().expect("text").to_owned()
}

fn check(kind: &str) {
    let json = std::fs::read_to_string(testbed().join("expected.json")).expect("expected.json");
    let json: Value = serde_json::from_str(&json).expect("json");
    for (server, list) in json[kind].as_object().expect("servers") {
        let wanted: BTreeSet<Entry> = list
            .as_array()
            .expect("a list")
            .iter()
            .map(|e| (text(&e["file"]), text(&e["rule"]), text(&e["tool"])))
            .collect();
        let folder = testbed().join(kind).join(server);
        let run = run_in(&folder, &["scan", "--no-config", "--output", "json"], &[]);
        assert!(matches!(run.code, Some(0 | 1)), "{server}: {}", run.seen());
        let json = run.json();
        assert_eq!(json["summary"]["skipped"], 0, "{server}");
        let mut found: BTreeSet<Entry> = BTreeSet::new();
        for finding in json["findings"].as_array().expect("findings") {
            for point in finding["entry_points"].as_array().expect("entry points") {
                let file = format!("{server}/{}", text(&finding["location"]["file"]));
                found.insert((file, text(&finding["rule"]), text(&point["name"])));
            }
        }
        assert_eq!(found, wanted, "{kind}/{server}");
    }
}

#[test]
fn racy_servers_are_caught() {
    check("racy");
}

#[test]
fn repaired_servers_are_quiet() {
    check("repaired");
}
