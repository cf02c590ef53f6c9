//! Node and Python are held where asynchronous work completes, and others run meanwhile.
#![cfg(unix)]

mod common;

use common::*;
use toctou_hold::{Class, Source};

/// Two calls in one process: the first is held at each of its completions in turn, and the second
/// runs meanwhile. Gives the names of the completions and how often the first update was lost.
async fn lost_updates(argv: &[&str], call: &str) -> (Vec<String>, usize) {
    let prepared = fresh();
    std::fs::write(prepared.workspace().join("counter"), "0").expect("a file");
    let sandbox = sandbox(&spec(), prepared.copy().expect("a copy"));
    let mut client = Client::start(&sandbox, argv, AWAITS).await;
    // What only happens once is not part of a call: imports, classes that are patched late.
    client.ask(call).await;
    let recorded = record(&mut client, &sandbox, call).await;
    assert!(recorded.iter().all(|e| e.class == Class::Completion));
    assert!(recorded.iter().all(|e| e.source == Source::Await));
    let names = recorded.iter().map(|e| e.name.clone()).collect();

    let mut lost = 0;
    for nth in 1..=points(&recorded) {
        let before: u32 = client.ask("value").await.parse().expect("a number");
        let mut hold = sandbox.supervisor().arm(point(&client, Source::Await, nth));
        client.send(call).await;
        held(&mut hold).await;
        // The event loop goes on.
        assert_eq!(client.ask(call).await, call);
        hold.release();
        assert_eq!(client.line().await, call);
        let after: u32 = client.ask("value").await.parse().expect("a number");
        lost += usize::from(after == before + 1);
    }
    (names, lost)
}

#[tokio::test]
async fn node_is_held_at_completions() {
    let script = server("counter.mjs");
    for (call, completions) in [
        ("timer", vec!["setTimeout"]),
        ("timerPromise", vec!["timers.promises.setTimeout"]),
        ("immediate", vec!["setImmediate"]),
        ("network", vec!["net.Socket data"]),
        ("child", vec!["child exit"]),
        ("callback", vec!["fs.readFile"]),
        ("handle", vec!["fs.promises.open", "FileHandle.read"]),
        ("none", vec![]),
    ] {
        let (names, lost) = lost_updates(&["node", &script], call).await;
        assert_eq!(names, completions, "{call}");
        assert_eq!(lost, completions.len(), "{call}");
    }
}

#[tokio::test]
async fn python_is_held_at_completions() {
    let script = server("counter_async.py");
    for (call, completions) in [
        ("sleep", vec!["asyncio.sleep"]),
        ("thread", vec!["time.sleep"]),
        ("executor", vec!["time.sleep"]),
        ("network", vec!["connection data"]),
        ("child", vec!["Process.wait"]),
    ] {
        let (names, lost) = lost_updates(&["python3", &script], call).await;
        assert_eq!(names, completions, "{call}");
        assert_eq!(lost, completions.len(), "{call}");
    }
}
