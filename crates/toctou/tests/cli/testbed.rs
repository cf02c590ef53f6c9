//! The servers of the testbed: the racy ones give what `expected.json` lists,
//! all of it and nothing else, and their repaired twins give nothing.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::common::run_in;
use serde_json::Value;

/// Folders of the testbed.
const LANGUAGES: &[&str] = &["typescript", "python", "go", "rust"];

fn testbed(language: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../testbed")
        .join(language)
}

/// File, rule and tool.
type Entry = (String, String, String);

fn text(value: &Value) -> String {
    value.as_str().expect("text").to_owned()
}

fn expected(language: &str, kind: &str) -> Vec<(String, BTreeSet<Entry>)> {
    let json =
        std::fs::read_to_string(testbed(language).join("expected.json")).expect("expected.json");
    let json: Value = serde_json::from_str(&json).expect("json");
    let servers = json[kind].as_object().expect("servers");
    servers
        .iter()
        .map(|(server, list)| {
            let entries = list.as_array().expect("a list").iter();
            let entries = entries.map(|e| (text(&e["file"]), text(&e["rule"]), text(&e["tool"])));
            (server.clone(), entries.collect())
        })
        .collect()
}

/// What scan says about one server. A finding that no tool reaches has `-` for it.
fn found(language: &str, kind: &str, server: &str) -> BTreeSet<Entry> {
    let folder = testbed(language).join(kind).join(server);
    let run = run_in(&folder, &["scan", "--no-config", "--output", "json"], &[]);
    assert!(matches!(run.code, Some(0 | 1)), "{server}: {}", run.seen());
    let json = run.json();
    assert_eq!(json["summary"]["skipped"], 0, "{server}");
    let mut entries = BTreeSet::new();
    for finding in json["findings"].as_array().expect("findings") {
        let file = format!("{server}/{}", text(&finding["location"]["file"]));
        let points = finding["entry_points"].as_array().expect("entry points");
        let mut tools: Vec<String> = points
            .iter()
            .filter(|point| point["kind"] == "tool")
            .map(|point| text(&point["name"]))
            .collect();
        if tools.is_empty() {
            tools.push("-".to_owned());
        }
        for tool in tools {
            entries.insert((file.clone(), text(&finding["rule"]), tool));
        }
    }
    entries
}

fn folders() -> impl Iterator<Item = (&'static str, &'static str)> {
    LANGUAGES
        .iter()
        .flat_map(|language| [(*language, "racy"), (*language, "repaired")])
}

fn check(kind: &str) {
    let mut wrong = Vec::new();
    for language in LANGUAGES {
        for (server, expected) in expected(language, kind) {
            let found = found(language, kind, &server);
            let line = |what: &str, (file, rule, tool): &Entry| {
                format!("{what} {rule} {tool} {language}/{file}")
            };
            wrong.extend(expected.difference(&found).map(|e| line("missing ", e)));
            wrong.extend(found.difference(&expected).map(|e| line("too much", e)));
        }
    }
    assert!(wrong.is_empty(), "{kind}:\n{}\n", wrong.join("\n"));
}

#[test]
fn racy_servers() {
    check("racy");
}

#[test]
fn repaired_servers() {
    check("repaired");
}

/// Scanned as one folder the servers must not get mixed up with one another.
#[test]
fn all_servers_at_once() {
    for (language, kind) in folders() {
        let run = run_in(
            &testbed(language).join(kind),
            &["scan", "--no-config", "--output", "json"],
            &[],
        );
        assert_eq!(run.code, Some(i32::from(!run.rules().is_empty())), "{kind}");
        let mut alone: Vec<String> = Vec::new();
        for (server, _) in expected(language, kind) {
            let folder = testbed(language).join(kind).join(&server);
            let one = run_in(&folder, &["scan", "--no-config", "--output", "json"], &[]);
            alone.extend(one.rules());
        }
        let mut together = run.rules();
        alone.sort();
        together.sort();
        assert_eq!(alone, together, "{kind}");
    }
}

#[test]
fn every_server_is_listed() {
    for (language, kind) in folders() {
        let mut folders: Vec<String> = std::fs::read_dir(testbed(language).join(kind))
            .expect("a folder")
            .map(|entry| {
                entry
                    .expect("an entry")
                    .file_name()
                    .to_string_lossy()
                    .into_owned()
            })
            .collect();
        folders.sort();
        let listed = expected(language, kind).into_iter();
        let mut listed: Vec<String> = listed.map(|(name, _)| name).collect();
        listed.sort();
        assert_eq!(folders, listed, "{kind}");
    }
}
