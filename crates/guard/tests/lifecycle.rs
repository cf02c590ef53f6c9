//! Starting, stopping, dying and coming back.

mod common;

use std::process::Command;
use std::time::{Duration, Instant};

use common::{Bench, Client, example, is_alive, reason};
use rustix::process::Signal;
use serde_json::json;

fn server_pid(bench: &Bench) -> String {
    let events = bench.events();
    let start = events
        .iter()
        .rfind(|event| event.starts_with("start "))
        .expect("a start");
    start["start ".len()..].to_owned()
}

#[test]
fn a_signal_loses_no_call_and_starts_none() {
    for signal in [Signal::TERM, Signal::INT] {
        let bench = Bench::new();
        let mut client = bench.guard();
        client.initialize();
        client.call(1, "write", json!({"name": "a", "until": bench.text("go")}));
        bench.wait_for("begin a");
        client.call(2, "write", json!({"name": "b"}));
        client.signal(signal);
        // The one that waits is told at once.
        let closing = client.message();
        assert_eq!((&closing["id"], reason(&closing)), (&json!(2), "closing"));
        // So is one that comes now.
        client.call(3, "write", json!({"name": "c"}));
        assert_eq!(reason(&client.answer(3)), "closing");
        client.send(&json!({"jsonrpc": "2.0", "id": 4, "method": "ping"}));
        assert_eq!(client.answer(4)["error"]["code"], -32011);
        std::fs::write(bench.path("go"), "").expect("a file");
        assert_eq!(client.answer(1)["result"]["content"][0]["text"], "a");
        assert_eq!(client.wait(), Some(0));
        let begun: Vec<_> = bench
            .events()
            .into_iter()
            .filter(|event| event.starts_with("begin"))
            .collect();
        assert_eq!(begun, ["begin a"]);
        assert!(bench.events().contains(&"eof".to_owned()));
        assert!(!is_alive(&server_pid(&bench)));
    }
}

#[test]
fn calls_that_do_not_end_are_cut_off() {
    let bench = Bench::new();
    let mut client = bench.guard_with(&["--grace", "1"]);
    client.initialize();
    client.call(
        1,
        "write",
        json!({"name": "a", "until": bench.text("never")}),
    );
    bench.wait_for("begin a");
    let began = Instant::now();
    client.signal(Signal::TERM);
    // The server is ended, and the caller hears of it.
    assert_eq!(reason(&client.answer(1)), "server-died");
    assert_eq!(client.wait(), Some(0));
    assert!(
        began.elapsed() < Duration::from_secs(15),
        "{:?}",
        began.elapsed()
    );
    assert!(!is_alive(&server_pid(&bench)));
}

#[test]
fn what_was_asked_before_the_end_of_input_is_done() {
    let bench = Bench::new();
    let mut client = bench.guard();
    client.initialize();
    for id in 0..10 {
        client.call(id, "write", json!({"count": bench.text("counter")}));
    }
    client.close_input();
    assert_eq!(client.rest().len(), 10);
    assert_eq!(client.wait(), Some(0));
    assert_eq!(
        std::fs::read_to_string(bench.path("counter")).expect("a counter"),
        "10"
    );
    assert!(!is_alive(&server_pid(&bench)));
}

#[test]
fn a_crash_is_told_at_once_and_nothing_is_sent_twice() {
    let bench = Bench::new();
    let mut client = bench.guard();
    client.initialize();
    let before = server_pid(&bench);
    client.call(1, "write", json!({"name": "a", "then": "crash"}));
    client.send(&json!({"jsonrpc": "2.0", "id": "never", "method": "raw", "params": {"text": ""}}));
    let mut answers = [client.message(), client.message()];
    answers.sort_by_key(|answer| answer["id"].is_string());
    assert_eq!(reason(&answers[0]), "server-died");
    let text = answers[0]["result"]["content"][0]["text"]
        .as_str()
        .expect("text");
    assert!(text.contains("may or may not have taken effect"), "{text}");
    assert_eq!(answers[1]["error"]["code"], -32010);
    // While it is down, calls are refused; then the handshake is said again.
    let mut id = 10;
    let answer = loop {
        client.call(id, "write", json!({"name": "b"}));
        let answer = client.answer(id);
        if reason(&answer) != "server-down" {
            break answer;
        }
        id += 1;
        std::thread::sleep(Duration::from_millis(20));
    };
    assert_eq!(answer["result"]["content"][0]["text"], "b");
    assert_ne!(server_pid(&bench), before);
    assert_eq!(
        bench
            .events()
            .iter()
            .filter(|event| *event == "begin a")
            .count(),
        1
    );
    let told: Vec<String> = bench
        .lines()
        .iter()
        .map(|line| serde_json::from_slice::<serde_json::Value>(line).expect("JSON"))
        .filter_map(|message| message["method"].as_str().map(str::to_owned))
        .filter(|method| method.contains("initialize"))
        .collect();
    assert_eq!(
        told,
        [
            "initialize",
            "notifications/initialized",
            "initialize",
            "notifications/initialized"
        ]
    );
}

#[test]
fn a_server_that_cannot_start_is_named() {
    let run = Command::new(example("guard"))
        .args(["--", "no-such-command"])
        .output()
        .expect("a guard");
    assert_eq!(run.status.code(), Some(2));
    let text = String::from_utf8_lossy(&run.stderr);
    assert!(
        text.contains("server `no-such-command`: cannot start"),
        "{text}"
    );
}

#[test]
fn what_the_server_started_goes_with_it() {
    let bench = Bench::new();
    bench.policy("");
    let mut command = Command::new(example("guard"));
    command
        .arg("--policy")
        .arg(bench.path("guard.toml"))
        .args(["--", "sh", "-c"]);
    // A shell in between, as npx has it, and something left behind in the background.
    command.arg(format!(
        "sleep 1000 & echo $! > {}; {} {}",
        bench.text("pid"),
        example("server").display(),
        bench.text("events")
    ));
    let mut client = Client::start(command);
    client.initialize();
    client.close_input();
    assert_eq!(client.wait(), Some(0));
    let left = std::fs::read_to_string(bench.path("pid")).expect("a pid");
    std::thread::sleep(Duration::from_millis(200));
    assert!(!is_alive(left.trim()), "sleep {left} is still there");
}

#[test]
fn the_traffic_is_kept_without_secrets() {
    let bench = Bench::new();
    let mut client = bench.guard_with(&["--record", &bench.text("record")]);
    client.initialize();
    client.call(
        1,
        "write",
        json!({"name": "a", "api_key": "hunter2hunter2"}),
    );
    client.answer(1);
    client.close_input();
    assert_eq!(client.wait(), Some(0));
    let text = std::fs::read_to_string(bench.path("record")).expect("a record");
    assert!(!text.contains("hunter2"), "{text}");
    let lines: Vec<serde_json::Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect();
    assert_eq!(lines[0]["schema"], "toctou.record/1");
    let ways: Vec<&str> = lines
        .iter()
        .filter(|line| line["message"]["id"] == 1)
        .filter_map(|line| line["way"].as_str())
        .collect();
    assert_eq!(
        ways,
        ["from-client", "to-server", "from-server", "to-client"]
    );
    let call = lines
        .iter()
        .find(|line| line["message"]["method"] == "tools/call")
        .expect("a call");
    assert_eq!(
        call["message"]["params"]["arguments"],
        json!({"name": "a", "api_key": "[masked]"})
    );
    use std::os::unix::fs::PermissionsExt as _;
    let mode = std::fs::metadata(bench.path("record"))
        .expect("a file")
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o600);
}
