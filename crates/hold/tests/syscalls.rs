//! Servers are held at their system calls.
#![cfg(target_os = "linux")]

mod common;

use common::*;
use toctou_hold::{Source, State};

fn counter() -> State {
    let state = fresh();
    std::fs::write(state.workspace().join("counter"), "0").expect("a file");
    state
}

const PYTHON: &str = "python3";

/// Holds the first process at each of its points in turn, lets the second run meanwhile, and
/// gives the value that is left at each.
async fn values_at_each_point(call: &str) -> Vec<(String, String)> {
    let prepared = counter();
    let argv = [PYTHON, &server("counter.py")];
    let sandbox = sandbox(&spec(), prepared.copy().expect("a copy"));
    let mut a = Client::start(&sandbox, &argv, SYSCALLS).await;
    let recorded = record(&mut a, &sandbox, call).await;
    drop(a);
    sandbox.close().await;

    let mut values = Vec::new();
    for nth in 1..=points(&recorded) {
        let sandbox = common::sandbox(&spec(), prepared.copy().expect("a copy"));
        let mut a = Client::start(&sandbox, &argv, SYSCALLS).await;
        let mut b = Client::start(&sandbox, &argv, SYSCALLS).await;
        let mut hold = sandbox.supervisor().arm(point(&a, Source::Syscall, nth));
        a.send(call).await;
        let event = held(&mut hold).await;
        b.send(call).await;
        let finished = b.line_soon().await.is_some();
        hold.release();
        assert_eq!(a.line().await, "done");
        if !finished {
            assert_eq!(b.line().await, "done");
        }
        let state = sandbox.close().await;
        let value = content(&state, "workspace/counter");
        values.push((event.to_string(), value.trim().to_owned()));
    }
    values
}

#[tokio::test]
async fn an_update_is_lost_at_every_point() {
    let values = values_at_each_point("add").await;
    let events: Vec<_> = values.iter().map(|(e, _)| e.as_str()).collect();
    assert_eq!(
        events,
        [
            "openat(/toctou/workspace/counter) write, truncate",
            "write(/toctou/workspace/counter, 1 bytes)",
        ]
    );
    // Held before the write, A writes what it computed from 0; so does B, from 0 or an empty file.
    assert!(values.iter().all(|(_, value)| value == "1"), "{values:?}");
}

#[tokio::test]
async fn a_rename_loses_updates_too() {
    let values = values_at_each_point("replace").await;
    let events: Vec<_> = values.iter().map(|(e, _)| e.as_str()).collect();
    assert_eq!(
        events,
        [
            "openat(/toctou/workspace/counter.2) write, create, truncate",
            "write(/toctou/workspace/counter.2, 1 bytes)",
            "rename(/toctou/workspace/counter.2 → /toctou/workspace/counter)",
        ]
    );
    assert!(values.iter().all(|(_, value)| value == "1"), "{values:?}");
}
