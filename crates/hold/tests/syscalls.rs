//! Servers are held at their system calls.
#![cfg(target_os = "linux")]

mod common;

use std::os::unix::process::ExitStatusExt as _;
use std::time::{Duration, Instant};

use common::*;
use toctou_hold::{Class, HoldState, Hooks, Jitter, Point, Source, State};
use tokio::time::timeout;

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

#[tokio::test]
async fn who_waits_for_a_lock_loses_nothing() {
    let values = values_at_each_point("locked").await;
    let names: Vec<_> = values
        .iter()
        .filter_map(|(e, _)| e.split('(').next())
        .collect();
    assert_eq!(names, ["openat", "flock", "openat", "write"]);
    assert!(values.iter().all(|(_, value)| value == "2"), "{values:?}");
}

#[tokio::test]
async fn threads_and_children_are_seen_and_held() {
    for call in ["in_thread", "in_child"] {
        let values = values_at_each_point(call).await;
        assert_eq!(values.len(), 2, "{call}: {values:?}");
        assert!(
            values[0]
                .0
                .starts_with("openat(/toctou/workspace/counter) write")
        );
        assert!(
            values.iter().all(|(_, value)| value == "1"),
            "{call}: {values:?}"
        );
    }
}

/// SQLite's locks and its writes at offsets are points, and holding there finds what is lost
/// between two statements and loses nothing in one.
#[tokio::test]
async fn sqlite_is_held_at_locks_and_writes() {
    let argv = [PYTHON, &server("sqlite.py")];
    let opened = sandbox(&spec(), fresh());
    let mut a = Client::start(&opened, &argv, SYSCALLS).await;
    let recorded = record(&mut a, &opened, "two").await;
    assert!(
        recorded
            .iter()
            .any(|e| e.name == "fcntl" && e.class == Class::Lock)
    );
    assert!(
        recorded
            .iter()
            .any(|e| e.name == "pwrite64" && e.paths == ["/toctou/workspace/data.db"])
    );
    let mut b = Client::start(&opened, &argv, SYSCALLS).await;
    for (call, some_lost) in [("two", true), ("one", false), ("immediate", false)] {
        let recorded = record(&mut a, &opened, call).await;
        let mut lost = 0;
        for nth in 1..=points(&recorded) {
            let before: u32 = a.ask("value").await.parse().expect("a number");
            let mut hold = opened.supervisor().arm(point(&a, Source::Syscall, nth));
            a.send(call).await;
            held(&mut hold).await;
            b.send(call).await;
            let finished = b.line_soon().await.is_some();
            hold.release();
            assert_eq!(a.line().await, "done");
            if !finished {
                b.line().await;
            }
            let after: u32 = a.ask("value").await.parse().expect("a number");
            lost += u32::from(after != before + 2);
        }
        assert_eq!(
            lost > 0,
            some_lost,
            "{call}: {lost} of {}",
            points(&recorded)
        );
    }
}

#[tokio::test]
async fn a_held_process_can_be_killed_and_everyone_goes_on() {
    let sandbox = sandbox(&spec(), counter());
    let argv = [PYTHON, &server("counter.py")];
    let mut a = Client::start(&sandbox, &argv, SYSCALLS).await;
    let mut b = Client::start(&sandbox, &argv, SYSCALLS).await;
    let mut hold = sandbox.supervisor().arm(point(&a, Source::Syscall, 1));
    // One that never comes.
    let mut never = sandbox.supervisor().arm(point(&a, Source::Syscall, 99));
    a.send("add").await;
    held(&mut hold).await;
    let status = timeout(PATIENCE, a.process.kill())
        .await
        .expect("dead in time");
    assert_eq!(status.and_then(|s| s.signal()), Some(9));
    assert_eq!(hold.state(), HoldState::Ended);
    assert_eq!(
        timeout(PATIENCE, never.held()).await.expect("told in time"),
        None
    );
    hold.release();
    assert_eq!(b.ask("add").await, "done");
    // To arm for a dead one is answered at once.
    let mut late = sandbox.supervisor().arm(point(&a, Source::Syscall, 1));
    assert_eq!(late.held().await, None);
}

#[tokio::test]
async fn two_holds_and_a_dropped_one() {
    let sandbox = sandbox(&spec(), counter());
    let argv = [PYTHON, &server("counter.py")];
    let mut a = Client::start(&sandbox, &argv, SYSCALLS).await;
    let mut b = Client::start(&sandbox, &argv, SYSCALLS).await;
    let supervisor = sandbox.supervisor();
    let mut first = supervisor.arm(point(&a, Source::Syscall, 1));
    let mut second = supervisor.arm(point(&b, Source::Syscall, 2));
    a.send("add").await;
    b.send("add").await;
    assert_eq!(held(&mut first).await.name, "openat");
    assert_eq!(held(&mut second).await.name, "write");
    assert_eq!(supervisor.idle(a.process.id()), Some(true));
    drop(second);
    assert_eq!(b.line().await, "done");
    assert_eq!(a.line_soon().await, None);
    drop(first);
    assert_eq!(a.line().await, "done");
}

#[tokio::test]
async fn only_events_of_a_shape_count() {
    let sandbox = sandbox(&spec(), counter());
    let mut a = Client::start(&sandbox, &[PYTHON, &server("counter.py")], SYSCALLS).await;
    let recorded = record(&mut a, &sandbox, "replace").await;
    let last = recorded.last().expect("an event");
    let mut hold = sandbox.supervisor().arm(Point {
        only: Some(last.shape()),
        ..point(&a, Source::Syscall, 1)
    });
    a.send("replace").await;
    assert_eq!(held(&mut hold).await.shape(), last.shape());
}

#[tokio::test]
async fn reads_are_told_on_request_and_never_held() {
    let sandbox = sandbox(&spec(), counter());
    let hooks = Hooks {
        reads: true,
        ..SYSCALLS
    };
    let mut a = Client::start(&sandbox, &[PYTHON, &server("counter.py")], hooks).await;
    let recorded = record(&mut a, &sandbox, "add").await;
    let of_counter: Vec<_> = recorded
        .iter()
        .filter(|e| e.paths == ["/toctou/workspace/counter"])
        .map(|e| (e.name.as_str(), e.class))
        .collect();
    assert_eq!(
        of_counter,
        [
            ("openat", Class::Read),
            ("openat", Class::Mutate),
            ("write", Class::Mutate)
        ]
    );
    let mut hold = sandbox.supervisor().arm(point(&a, Source::Syscall, 1));
    a.send("add").await;
    assert_eq!(held(&mut hold).await.class, Class::Mutate);
}

#[tokio::test]
async fn jitter_delays_and_ends() {
    let sandbox = sandbox(&spec(), counter());
    let mut a = Client::start(&sandbox, &[PYTHON, &server("counter.py")], SYSCALLS).await;
    let supervisor = sandbox.supervisor();
    let most = Duration::from_millis(100);
    supervisor.set_jitter(Some(Jitter {
        seed: 7,
        most,
        percent: 100,
    }));
    let mark = supervisor.mark();
    let began = Instant::now();
    for _ in 0..5 {
        assert_eq!(a.ask("add").await, "done");
    }
    let slow = began.elapsed();
    assert_eq!(points(&supervisor.events_since(mark)), 10);
    // Ten delays, on average of half of the most.
    assert!(slow > most, "{slow:?}");
    supervisor.set_jitter(None);
    assert_eq!(a.ask("value").await, "5");
    assert_eq!(a.ask("add").await, "done");
}

/// A server that makes an `io_uring` would do its work unseen.
#[tokio::test]
async fn io_uring_is_refused() {
    let sandbox = sandbox(&spec(), fresh());
    let script = "import ctypes, os; libc = ctypes.CDLL(None, use_errno=True); \
                  print(libc.syscall(425, 1, 0), os.strerror(ctypes.get_errno()), flush=True)";
    let argv = [PYTHON, "-c", script];
    let mut a = Client::start_quietly(&sandbox, &argv, SYSCALLS).await;
    assert_eq!(a.line().await, "-1 Function not implemented");
}
