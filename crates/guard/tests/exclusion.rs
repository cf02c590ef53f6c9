//! Which calls run beside which.

mod common;

use std::time::Duration;

use common::{Bench, SOON, reason};
use serde_json::json;

#[test]
fn calls_that_write_run_one_at_a_time() {
    let bench = Bench::new();
    let mut client = bench.guard();
    client.initialize();
    for id in 0..20 {
        client.call(id, "write", json!({"count": bench.text("counter")}));
    }
    assert_eq!(client.answers(20).len(), 20);
    assert_eq!(bench.most_at_once(), 1);
    assert_eq!(
        std::fs::read_to_string(bench.path("counter")).expect("a counter"),
        "20"
    );
}

#[test]
fn calls_that_read_run_side_by_side_but_not_beside_a_write() {
    let bench = Bench::new();
    let mut client = bench.guard();
    client.initialize();
    for id in 0..4 {
        client.call(
            id,
            "read",
            json!({"name": format!("r{id}"), "until": bench.text("go")}),
        );
    }
    for id in 0..4 {
        bench.wait_for(&format!("begin r{id}"));
    }
    client.call(9, "write", json!({"name": "w"}));
    // Readers that come after a writer wait behind it.
    client.call(10, "read", json!({"name": "late"}));
    assert_eq!(client.line_within(Duration::from_millis(200)), None);
    std::fs::write(bench.path("go"), "").expect("a file");
    client.answers(6);
    let events = bench.events();
    let place = |event: &str| {
        events
            .iter()
            .position(|line| line == event)
            .expect("an event")
    };
    for id in 0..4 {
        assert!(
            place(&format!("end r{id}")) < place("begin w"),
            "{events:?}"
        );
    }
    assert!(place("end w") < place("begin late"), "{events:?}");
}

#[test]
fn a_tool_that_says_nothing_about_itself_has_the_server_alone() {
    let bench = Bench::new();
    let mut client = bench.guard();
    client.initialize();
    for id in 0..6 {
        client.call(
            id,
            if id % 2 == 0 { "plain" } else { "unheard-of" },
            json!({"ms": 5}),
        );
    }
    client.answers(6);
    assert_eq!(bench.most_at_once(), 1);
}

#[test]
fn two_guards_on_one_host_exclude_each_other() {
    let bench = Bench::new();
    let mut clients = [bench.guard(), bench.guard(), bench.guard()];
    for client in &mut clients {
        client.initialize();
    }
    for client in &mut clients {
        for id in 0..20 {
            client.call(id, "write", json!({"count": bench.text("counter")}));
        }
    }
    for client in &clients {
        for answer in client.answers(20) {
            assert_eq!(reason(&answer), "not refused");
        }
    }
    assert_eq!(bench.most_at_once(), 1);
    assert_eq!(
        std::fs::read_to_string(bench.path("counter")).expect("a counter"),
        "60"
    );
}

#[test]
fn a_guard_that_is_killed_holds_up_nobody() {
    let bench = Bench::new();
    let mut first = bench.guard();
    let mut second = bench.guard();
    first.initialize();
    second.initialize();
    first.call(
        1,
        "write",
        json!({"name": "a", "until": bench.text("never")}),
    );
    bench.wait_for("begin a");
    second.call(1, "write", json!({"name": "b"}));
    assert_eq!(second.line_within(Duration::from_millis(200)), None);
    first.signal(rustix::process::Signal::KILL);
    let began = std::time::Instant::now();
    assert_eq!(reason(&second.answer(1)), "not refused");
    assert!(
        began.elapsed() < Duration::from_secs(5),
        "{:?}",
        began.elapsed()
    );
}

#[test]
fn keys_come_from_arguments() {
    let bench = Bench::new();
    bench.policy("[[tool]]\nmatch = \"w*\"\nlock = [\"k:{key}\", \"i:{items[].id?}\"]\n");
    let mut client = bench.guard();
    client.initialize();
    client.call(
        1,
        "write",
        json!({"name": "a", "key": 1, "until": bench.text("go"), "items": [{"id": 5}, {"id": 6}]}),
    );
    bench.wait_for("begin a");
    // Another key, other items: beside it.
    client.call(
        2,
        "write",
        json!({"name": "b", "key": 2, "items": [{"id": 7}]}),
    );
    client.answer(2);
    // The same key in another spelling, and an item in common: behind it.
    client.call(
        3,
        "write",
        json!({"name": "c", "key": "1", "items": [{"id": 8}]}),
    );
    client.call(
        4,
        "write",
        json!({"name": "d", "key": 3, "items": [{"id": 9}, {"id": "6"}]}),
    );
    assert_eq!(client.line_within(Duration::from_millis(200)), None);
    std::fs::write(bench.path("go"), "").expect("a file");
    client.answers(3);
    assert_eq!(
        bench
            .events()
            .last()
            .map(String::as_str)
            .map(|event| &event[..3]),
        Some("end")
    );
}

#[test]
fn many_keys_in_any_order_do_not_deadlock() {
    let bench = Bench::new();
    bench.policy("[[tool]]\nmatch = \"write\"\nlock = \"{items[]}\"\nwait = \"20s\"\n");
    let mut clients = [bench.guard(), bench.guard()];
    for client in &mut clients {
        client.initialize();
    }
    for (offset, client) in clients.iter_mut().enumerate() {
        for id in 0..50 {
            let items: Vec<usize> = (0..4).map(|n| (id * 7 + n * (3 + offset)) % 9).collect();
            client.call(id as u64, "write", json!({"items": items, "ms": 1}));
        }
    }
    for client in &clients {
        for answer in client.answers(50) {
            assert_eq!(reason(&answer), "not refused");
        }
    }
}

#[test]
fn a_key_that_cannot_be_told_is_refused() {
    let bench = Bench::new();
    bench.policy("[[tool]]\nmatch = \"write\"\nlock = \"k:{key}\"\n");
    let mut client = bench.guard();
    client.initialize();
    client.call(1, "write", json!({}));
    let answer = client.answer(1);
    assert_eq!(reason(&answer), "no-key");
    assert_eq!(answer["result"]["isError"], true);
    let text = answer["result"]["content"][0]["text"]
        .as_str()
        .expect("text");
    assert_eq!(
        text,
        "`write` was not started: the argument `key` is missing."
    );
    // Two values for one argument: the server might take the other.
    client.send_bytes(br#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"write","arguments":{"key":1,"k\u0065y":2}}}"#);
    assert_eq!(reason(&client.answer(2)), "no-key");
    assert!(
        !bench
            .events()
            .iter()
            .any(|event| event.starts_with("begin"))
    );
}

#[test]
fn the_lock_is_kept_until_the_server_answers_not_until_the_client_leaves() {
    let bench = Bench::new();
    let mut first = bench.guard();
    let mut second = bench.guard();
    first.initialize();
    second.initialize();
    first.call(1, "write", json!({"name": "a", "until": bench.text("go")}));
    bench.wait_for("begin a");
    first.close_input();
    second.call(1, "write", json!({"name": "b"}));
    assert_eq!(second.line_within(Duration::from_millis(300)), None);
    std::fs::write(bench.path("go"), "").expect("a file");
    second.answer(1);
    let events = bench.events();
    let place = |event: &str| {
        events
            .iter()
            .position(|line| line == event)
            .expect("an event")
    };
    assert!(place("end a") < place("begin b"), "{events:?}");
    assert_eq!(first.wait(), Some(0));
}

#[test]
fn a_cancelled_call_that_waits_never_starts() {
    let bench = Bench::new();
    let mut client = bench.guard();
    client.initialize();
    client.call(1, "write", json!({"name": "a", "until": bench.text("go")}));
    bench.wait_for("begin a");
    client.call(2, "write", json!({"name": "b"}));
    client.send(
        &json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 2}}),
    );
    client.call(3, "write", json!({"name": "c"}));
    std::fs::write(bench.path("go"), "").expect("a file");
    client.answer(3);
    assert!(!bench.events().contains(&"begin b".to_owned()));
    // The server has never heard of it.
    let cancelled = bench
        .lines()
        .iter()
        .filter(|line| line.windows(9).any(|part| part == b"cancelled"))
        .count();
    assert_eq!(cancelled, 0);
}

#[test]
fn a_cancelled_call_that_runs_keeps_its_lock() {
    for (policy, told) in [
        ("", true),
        ("[[tool]]\nmatch = \"*\"\non-cancel = \"keep\"\n", false),
    ] {
        let bench = Bench::new();
        bench.policy(policy);
        let mut client = bench.guard();
        client.initialize();
        client.call(1, "write", json!({"name": "a", "until": bench.text("go")}));
        bench.wait_for("begin a");
        client.send(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}}));
        client.call(2, "write", json!({"name": "b"}));
        assert_eq!(client.line_within(Duration::from_millis(200)), None);
        std::fs::write(bench.path("go"), "").expect("a file");
        // The answer of the cancelled call is for nobody.
        assert_eq!(client.message()["id"], 2);
        let heard = bench
            .lines()
            .iter()
            .any(|line| line.windows(9).any(|part| part == b"cancelled"));
        assert_eq!(heard, told);
    }
}

#[test]
fn a_server_that_stops_without_an_answer_gives_the_lock_back_after_a_time() {
    let bench = Bench::new();
    bench.policy("[defaults]\ncancel-hold = \"300ms\"\n");
    let mut client = bench.guard();
    client.initialize();
    client.call(1, "write", json!({"name": "a", "then": "silence"}));
    bench.wait_for("end a");
    client.send(
        &json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}}),
    );
    let began = std::time::Instant::now();
    client.call(2, "write", json!({"name": "b"}));
    client.answer(2);
    assert!(began.elapsed() >= Duration::from_millis(290) && began.elapsed() < SOON);
}

#[test]
fn a_task_keeps_the_lock_until_it_ends() {
    let bench = Bench::new();
    let mut client = bench.guard();
    client.initialize();
    client.call(1, "write", json!({"name": "t1", "then": "task"}));
    client.answer(1);
    client.call(2, "write", json!({"name": "b"}));
    assert_eq!(client.line_within(Duration::from_millis(200)), None);
    let status = json!({"jsonrpc": "2.0", "method": "notifications/tasks/status", "params": {"taskId": "t1", "status": "completed"}});
    client.send(&json!({"jsonrpc": "2.0", "id": 3, "method": "raw", "params": {"text": status.to_string()}}));
    assert_eq!(client.message(), status);
    assert_eq!(client.message()["id"], 2);
}
