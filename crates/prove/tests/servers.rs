//! Small servers, good, bad and hostile: a clear answer within the budget.

mod common;

use std::path::Path;
use std::time::{Duration, Instant};

use common::Nobody;
use toctou_prove::budget::Budget;
use toctou_prove::report::{Outcome, Report};
use toctou_prove::target::{Command, Target};
use toctou_prove::{Options, ProveError, Replayed, prove, replay_recipe};

fn options(kind: &str, seconds: u64) -> Options {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/servers/server.py");
    common::options(
        Target::Command(
            Command {
                argv: vec![
                    "python3".to_owned(),
                    "-S".to_owned(),
                    script.to_string_lossy().into_owned(),
                    kind.to_owned(),
                ],
                ..Command::default()
            }
            .found(),
        ),
        seconds,
    )
}

/// The answer, which must come within the budget and a little.
fn run(kind: &str, seconds: u64) -> Result<Report, ProveError> {
    run_with(kind, &options(kind, seconds))
}

fn run_with(kind: &str, options: &Options) -> Result<Report, ProveError> {
    let began = Instant::now();
    let report = prove(options, &Budget::new(options.budget), &Nobody);
    let most = options.budget + Duration::from_secs(10);
    assert!(began.elapsed() < most, "{kind} took {:?}", began.elapsed());
    report
}

#[test]
fn an_update_without_a_lock_is_lost_in_two_processes_and_replays() {
    let report = run("plain", 120).expect("a report");
    assert_eq!(report.outcome, Outcome::Proved, "{}", report.summary);
    let proof = &report.proofs[0];
    assert_eq!(proof.scope, "cross-process");
    assert_eq!(
        proof.strategy, "hold",
        "one call at a time in a process: only two can race"
    );
    assert_eq!(proof.replays.reproduced, proof.replays.of);
    assert!(
        proof.recipe.headline.contains("lost"),
        "{}",
        proof.recipe.headline
    );
    assert!(report.json().contains("toctou.prove/1"));

    let again = options("plain", 60);
    let replayed = replay_recipe(&again, &proof.recipe, &Budget::new(again.budget), &Nobody);
    let Ok(Replayed::Again(proof)) = replayed else {
        panic!("not reproduced");
    };
    assert!(proof.replays.reproduced >= 5);
}

#[test]
fn a_lock_and_a_transaction_are_never_proved() {
    // What is sorted by time is sorted otherwise if a call takes long.
    for kind in ["locked", "sqlite", "dated"] {
        let options = Options {
            schedules: Some(16),
            ..options(kind, 120)
        };
        let report = run_with(kind, &options).expect("a report");
        assert_ne!(report.outcome, Outcome::Proved, "{kind}: {}", report.json());
        assert!(report.points > 0, "{kind}: nothing was held");
    }
}

#[test]
fn what_only_a_server_can_read_is_asked_of_one_that_is_started_afterwards() {
    let report = run("packed", 300).expect("a report");
    assert_eq!(report.outcome, Outcome::Proved, "{}", report.summary);
    let proof = &report.proofs[0];
    assert!(proof.recipe.fresh);
    assert!(
        proof
            .differences
            .iter()
            .all(|change| change.place.starts_with("fresh")),
        "the servers that made the calls say what they always say: {:?}",
        proof.differences
    );
}

#[test]
fn a_server_that_does_something_else_each_time_is_not_proved() {
    let report = run("random", 20).expect("a report");
    assert_ne!(report.outcome, Outcome::Proved, "{}", report.json());
}

#[test]
fn hostile_servers_get_a_clear_answer() {
    assert!(matches!(run("none", 20), Err(ProveError::NoTools)));
    for kind in ["secret", "hang"] {
        let error = run(kind, 30).expect_err(kind);
        assert!(error.is_nothing(), "{kind}: {error}");
    }
    // Those that never answer use all of their time.
    for (kind, words, seconds) in [
        ("dies", "no database given", 60),
        ("garbage", "", 8),
        ("mute", "", 8),
        ("crash", "", 60),
    ] {
        let error = run(kind, seconds).expect_err(kind);
        let lines = error.lines().join("\n");
        assert!(
            !error.is_nothing() && lines.contains(words),
            "{kind}: {lines}"
        );
    }
}
