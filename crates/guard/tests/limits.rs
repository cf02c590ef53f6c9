//! Limits, records, timeouts, and what refused callers are told.

mod common;

use common::http::{free_address, metrics};
use common::{Bench, reason};
use serde_json::{Value, json};

fn text(answer: &Value) -> &str {
    answer["result"]["content"][0]["text"]
        .as_str()
        .unwrap_or_default()
}

#[test]
fn calls_of_one_caller_at_once() {
    let bench = Bench::new();
    bench.policy("[[tool]]\nmatch = \"*\"\nlock = []\nin-flight = { max = 2 }\n");
    let mut client = bench.guard();
    client.initialize();
    for id in 0..3 {
        client.call(
            id,
            "write",
            json!({"name": format!("c{id}"), "until": bench.text("go")}),
        );
    }
    let refused = client.message();
    assert_eq!(reason(&refused), "at-limit");
    assert!(
        text(&refused).contains("2 calls are running, which is the limit"),
        "{refused}"
    );
    for id in 0..2 {
        bench.wait_for(&format!("begin c{id}"));
    }
    std::fs::write(bench.path("go"), "").expect("a file");
    client.answers(2);
    assert_eq!(bench.most_at_once(), 2);
}

/// Without a handshake every request says whose it is, or nobody's: then it is not that of the one before.
#[test]
fn callers_without_a_handshake_are_told_apart() {
    let bench = Bench::new();
    bench.policy("[[tool]]\nmatch = \"*\"\nlock = []\nin-flight = { max = 1 }\n");
    let mut client = bench.guard();
    for (id, who) in [(1, Some("a")), (2, None), (3, Some("a")), (4, None)] {
        let mut meta = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {}});
        if let Some(name) = who {
            meta["io.modelcontextprotocol/clientInfo"] = json!({"name": name, "version": "1"});
        }
        let arguments = json!({"name": format!("c{id}"), "until": bench.text("go")});
        client.send(&json!({"jsonrpc": "2.0", "id": id, "method": "tools/call",
            "params": {"name": "write", "arguments": arguments, "_meta": meta}}));
    }
    for refused in client.answers(2) {
        assert_eq!(reason(&refused), "at-limit");
        assert!(refused["id"] == 3 || refused["id"] == 4, "{refused}");
    }
    std::fs::write(bench.path("go"), "").expect("a file");
    for answer in client.answers(2) {
        assert_eq!(reason(&answer), "not refused");
    }
}

#[test]
fn a_limit_for_everybody_holds_across_guards() {
    let bench = Bench::new();
    bench.policy("[[tool]]\nmatch = \"*\"\nlock = []\nin-flight = { max = 3, queue = 1000, by = \"everybody\" }\n");
    let mut clients = [bench.guard(), bench.guard()];
    for client in &mut clients {
        client.initialize();
    }
    for client in &mut clients {
        for id in 0..30 {
            client.call(id, "write", json!({"ms": 3}));
        }
    }
    for client in &clients {
        for answer in client.answers(30) {
            assert_eq!(reason(&answer), "not refused");
        }
    }
    assert!(bench.most_at_once() <= 3, "{}", bench.most_at_once());
}

#[test]
fn calls_in_a_time() {
    let bench = Bench::new();
    bench.policy("[[tool]]\nmatch = \"*\"\nlock = []\nrate = { calls = 3, per = \"1h\" }\n");
    let mut client = bench.guard();
    client.initialize();
    let answers: Vec<Value> = (0..5)
        .map(|id| {
            client.call(id, "write", json!({}));
            client.answer(id)
        })
        .collect();
    let reasons: Vec<&str> = answers.iter().map(reason).collect();
    assert_eq!(
        reasons,
        [
            "not refused",
            "not refused",
            "not refused",
            "rate-limited",
            "rate-limited"
        ]
    );
    let wait = answers[3]["result"]["_meta"]["toctou/refusal"]["retryAfterMs"]
        .as_u64()
        .expect("a time");
    assert!((1_000_000..=1_200_000).contains(&wait), "{wait}");
    assert!(
        text(&answers[3]).contains("Retry after 1200 s."),
        "{}",
        answers[3]
    );
}

#[test]
fn a_repeated_call_runs_once() {
    let bench = Bench::new();
    bench.policy("[[tool]]\nmatch = \"write\"\nlock = []\nidempotency = { key = \"{key}\" }\n");
    let mut client = bench.guard();
    client.initialize();
    client.call(1, "write", json!({"key": "k", "name": "a"}));
    let first = client.answer(1);
    // The same arguments in another order, from another guard.
    let mut other = bench.guard();
    other.initialize();
    other.send_bytes(br#"{"jsonrpc":"2.0","id":"x","method":"tools/call","params":{"arguments":{"name":"a","key":"k"},"name":"write"}}"#);
    let second = other.answer("x");
    assert_eq!(first["result"], second["result"]);
    assert_eq!(
        bench
            .events()
            .iter()
            .filter(|event| *event == "begin a")
            .count(),
        1
    );
    client.call(2, "write", json!({"key": "k", "name": "other"}));
    assert_eq!(reason(&client.answer(2)), "other-arguments");
    // A call that failed may be repeated.
    for id in [3, 4] {
        client.call(
            id,
            "write",
            json!({"key": "f", "name": "f", "then": "fail"}),
        );
        assert_eq!(client.answer(id)["result"]["isError"], true);
    }
    assert_eq!(
        bench
            .events()
            .iter()
            .filter(|event| *event == "begin f")
            .count(),
        2
    );
    // One whose end nobody knows may not.
    client.call(
        5,
        "write",
        json!({"key": "c", "name": "c", "then": "crash"}),
    );
    assert_eq!(reason(&client.answer(5)), "server-died");
    other.call(
        6,
        "write",
        json!({"key": "c", "name": "c", "then": "crash"}),
    );
    assert_eq!(reason(&other.answer(6)), "outcome-unknown");
}

#[test]
fn two_repetitions_at_once_run_once() {
    let bench = Bench::new();
    bench.policy("[[tool]]\nmatch = \"write\"\nlock = []\nidempotency = { key = \"{key}\" }\n");
    let mut clients = [bench.guard(), bench.guard()];
    for client in &mut clients {
        client.initialize();
    }
    for client in &mut clients {
        for id in 0..5 {
            client.call(id, "write", json!({"key": "k", "name": "once", "ms": 50}));
        }
    }
    for client in &clients {
        for answer in client.answers(5) {
            assert_eq!(text(&answer), "once");
        }
    }
    assert_eq!(
        bench
            .events()
            .iter()
            .filter(|event| *event == "begin once")
            .count(),
        1
    );
}

#[test]
fn waiting_has_an_end_and_a_bound() {
    let bench = Bench::new();
    bench.policy("[[tool]]\nmatch = \"write\"\nwait = \"300ms\"\nqueue = 2\n");
    let mut client = bench.guard();
    client.initialize();
    client.call(1, "write", json!({"name": "a", "until": bench.text("go")}));
    bench.wait_for("begin a");
    for id in 2..5 {
        client.call(id, "write", json!({}));
    }
    let full = client.message();
    assert_eq!((&full["id"], reason(&full)), (&json!(4), "queue-full"));
    for _ in 0..2 {
        let busy = client.message();
        assert_eq!(reason(&busy), "busy");
        assert!(
            text(&busy).contains("another call still holds `server:server-"),
            "{busy}"
        );
        assert_eq!(busy["result"]["_meta"]["toctou/refusal"]["started"], "no");
    }
    std::fs::write(bench.path("go"), "").expect("a file");
    assert_eq!(client.message()["id"], 1);
}

#[test]
fn a_server_that_does_not_answer_keeps_the_lock_but_not_the_caller() {
    let bench = Bench::new();
    bench.policy("[defaults]\ntimeout = \"200ms\"\nwait = \"300ms\"\n");
    let mut client = bench.guard();
    client.initialize();
    client.call(1, "write", json!({"name": "a", "until": bench.text("go")}));
    assert_eq!(reason(&client.answer(1)), "timeout");
    client.call(2, "write", json!({"name": "b"}));
    assert_eq!(reason(&client.answer(2)), "busy");
    std::fs::write(bench.path("go"), "").expect("a file");
    bench.wait_for("end a");
    client.call(3, "write", json!({"name": "c"}));
    let answer = client.message();
    // The late answer to the first call is not passed on.
    assert_eq!((&answer["id"], text(&answer)), (&json!(3), "c"));
}

#[test]
fn observing_decides_everything_and_changes_nothing() {
    let bench = Bench::new();
    bench.policy(
        "mode = \"observe\"\n[[tool]]\nmatch = \"write\"\nlock = \"{key}\"\nin-flight = { max = 2 }\nrate = { calls = 3, per = \"1h\" }\nidempotency = { key = \"{name}\" }\n",
    );
    let address = free_address();
    let mut client = bench.guard_with(&["--metrics", &address]);
    client.initialize();
    let seen = |reason: &str, least: u32| {
        let began = std::time::Instant::now();
        loop {
            let text = metrics(&address);
            let count: u32 = text
                .lines()
                .filter(|line| {
                    line.starts_with("toctou_guard_observed_total")
                        && line.contains(&format!("\"{reason}\""))
                })
                .filter_map(|line| line.rsplit(' ').next()?.parse::<u32>().ok())
                .sum();
            if count >= least {
                return;
            }
            assert!(began.elapsed() < common::SOON, "no {reason} in {text}");
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
    };
    for id in 0..3 {
        let name = format!("c{id}");
        client.call(
            id,
            "write",
            json!({"key": 1, "name": name, "until": bench.text("go")}),
        );
    }
    for id in 0..3 {
        bench.wait_for(&format!("begin c{id}"));
    }
    seen("busy", 2);
    seen("at-limit", 1);
    bench.go();
    client.answers(3);
    assert_eq!(bench.most_at_once(), 3);
    // The fourth is one too many in the hour, and others repeat or lack what they need.
    let again = client.ask(
        4,
        "write",
        json!({"key": 1, "name": "c0", "until": bench.text("go")}),
    );
    assert_eq!(text(&again), "c0");
    seen("rate-limited", 1);
    seen("replay", 1);
    client.ask(5, "write", json!({"key": 2, "name": "c0"}));
    seen("other-arguments", 1);
    client.ask(6, "write", json!({"name": "d"}));
    seen("no-key", 1);
    assert_eq!(bench.count("begin c0"), 3);
}

#[test]
fn a_cancelled_call_counts_until_the_server_is_done() {
    let bench = Bench::new();
    bench.policy("[[tool]]\nmatch = \"*\"\nlock = []\nin-flight = { max = 1 }\n");
    let mut client = bench.guard();
    client.initialize();
    client.call(1, "read", json!({"name": "a", "until": bench.text("go")}));
    bench.wait_for("begin a");
    client.cancel(1);
    assert_eq!(reason(&client.ask(2, "read", json!({}))), "at-limit");
    bench.go();
    bench.wait_for("end a");
    let mut id = 3;
    while reason(&client.ask(id, "read", json!({"name": "b"}))) != "not refused" {
        id += 1;
    }
    assert_eq!(bench.most_at_once(), 1);
}

#[test]
fn a_result_that_comes_after_its_caller_was_told_is_kept() {
    let bench = Bench::new();
    bench.policy("[[tool]]\nmatch = \"write\"\nlock = []\ntimeout = \"200ms\"\nidempotency = { key = \"{key}\" }\n");
    let mut client = bench.guard();
    client.initialize();
    let arguments = json!({"key": "k", "name": "a", "until": bench.text("go")});
    assert_eq!(
        reason(&client.ask(1, "write", arguments.clone())),
        "timeout"
    );
    // To cancel now is too late, and must not make the server fall silent.
    client.cancel(1);
    bench.go();
    bench.wait_for("end a");
    let mut id = 2;
    let answer = loop {
        let answer = client.ask(id, "write", arguments.clone());
        // Still running, as far as the record goes.
        if !matches!(reason(&answer), "in-flight" | "timeout") {
            break answer;
        }
        id += 1;
    };
    assert_eq!(text(&answer), "a");
    assert_eq!(bench.count("begin a"), 1);
    let told = bench
        .lines()
        .iter()
        .any(|line| line.windows(9).any(|part| part == b"cancelled"));
    assert!(!told);
}

#[test]
fn keys_and_waiting_time_are_told_if_asked_for() {
    let bench = Bench::new();
    bench.policy("meta = true\n[[tool]]\nmatch = \"write\"\nlock = \"k:{key}\"\n");
    let mut client = bench.guard();
    client.initialize();
    client.call(1, "write", json!({"key": 7, "name": "a"}));
    let line = String::from_utf8(client.line()).expect("text");
    let answer: Value = serde_json::from_str(&line).expect("JSON");
    let lock = &answer["result"]["_meta"]["toctou/lock"];
    assert_eq!(lock["keys"], json!(["k:7"]));
    assert_eq!(lock["mode"], "exclusive");
    assert!(
        lock["waitedMs"]
            .as_f64()
            .is_some_and(|waited| waited < 1000.0),
        "{lock}"
    );
    // Without the entry, the bytes are the server's.
    let entry = format!("\"_meta\":{{\"toctou/lock\":{lock}}},");
    let plain = br#"{"jsonrpc":"2.0","id":1,"result":{"content":[{"text":"a","type":"text"}]}}"#;
    assert_eq!(line.replace(&entry, "").as_bytes(), plain);
}
