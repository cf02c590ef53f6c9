//! Clients and servers that mean no good, or know no better.

mod common;

use common::{Bench, reason};
use serde_json::{Value, json};

/// The guard is still there and in order.
fn still_works(client: &mut common::Client) {
    client.call("after", "write", json!({"name": "after"}));
    assert_eq!(
        client.answer("after")["result"]["content"][0]["text"],
        "after"
    );
}

#[test]
fn messages_that_are_none() {
    let bench = Bench::new();
    let mut client = bench.guard();
    client.initialize();
    let before = bench.lines().len();
    for (bytes, code) in [
        (&b"{"[..], -32700),
        (b"not json", -32700),
        (b"{\"jsonrpc\":\"2.0\",\"method\":\"\xff\"}", -32700),
        (b"[]", -32600),
        (b"[[]]", -32600),
        (b"{}", -32600),
        (br#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#, -32600),
        (
            br#"{"jsonrpc":"2.0","id":7,"method":"ping","id":8}"#,
            -32600,
        ),
        (
            br#"{"jsonrpc":"2.0","id":7,"method":"ping","\u006dethod":"tools/call"}"#,
            -32600,
        ),
        (
            br#"{"jsonrpc":"2.0","id":7,"result":{},"method":"ping"}"#,
            -32600,
        ),
    ] {
        client.send_bytes(bytes);
        let answer = client.message();
        assert_eq!(
            answer["error"]["code"],
            code,
            "{}",
            String::from_utf8_lossy(bytes)
        );
        assert_eq!(answer["id"], Value::Null);
    }
    client.send_bytes(br#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"read","name":"write"}}"#);
    assert_eq!(client.answer(7)["error"]["code"], -32602);
    client.send_bytes(br#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":5}}"#);
    assert_eq!(client.answer(7)["error"]["code"], -32602);
    assert_eq!(
        bench.lines().len(),
        before,
        "nothing of it reached the server"
    );
    still_works(&mut client);
}

#[test]
fn messages_that_are_too_much() {
    let bench = Bench::new();
    let mut client = bench.guard_with(&["--max-message", "100000"]);
    client.initialize();
    let deep = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"x","params":{}{}}}"#,
        "[".repeat(40_000),
        "]".repeat(40_000)
    );
    client.send_bytes(deep.as_bytes());
    assert!(
        client.message()["error"]["message"]
            .as_str()
            .is_some_and(|text| text.contains("nested deeper"))
    );
    // A line that does not end for 50 MB, and then does.
    let chunk = vec![b'x'; 1 << 20];
    let long: Vec<u8> = chunk.iter().copied().cycle().take(50 << 20).collect();
    client.send_bytes(&long);
    assert!(
        client.message()["error"]["message"]
            .as_str()
            .is_some_and(|text| text.contains("larger than 100000 bytes"))
    );
    let many = format!(
        "[{}]",
        vec![r#"{"jsonrpc":"2.0","method":"x"}"#; 1001].join(",")
    );
    client.send_bytes(many.as_bytes());
    assert!(
        client.message()["error"]["message"]
            .as_str()
            .is_some_and(|text| text.contains("more than 1000 messages"))
    );
    let status =
        std::fs::read_to_string(format!("/proc/{}/status", client.child.id())).expect("a process");
    let peak = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))
        .expect("a peak");
    let kilobytes: u64 = peak
        .trim()
        .trim_end_matches(" kB")
        .parse()
        .expect("a number");
    assert!(kilobytes < 60_000, "{kilobytes} kB");
    still_works(&mut client);
}

#[test]
fn an_id_that_is_in_use() {
    let bench = Bench::new();
    let mut client = bench.guard();
    client.initialize();
    client.call(1, "write", json!({"name": "a", "until": bench.text("go")}));
    bench.wait_for("begin a");
    client.send_bytes(br#"{"jsonrpc":"2.0","id":1.0,"method":"tools/call","params":{"name":"write","arguments":{"name":"b"}}}"#);
    let refused = client.message();
    assert_eq!(
        (&refused["id"], &refused["error"]["code"]),
        (&Value::Null, &json!(-32600))
    );
    std::fs::write(bench.path("go"), "").expect("a file");
    assert_eq!(client.answer(1)["result"]["content"][0]["text"], "a");
    assert!(!bench.events().contains(&"begin b".to_owned()));
    // Once answered, it may be used again.
    client.call(1, "write", json!({"name": "c"}));
    assert_eq!(client.answer(1)["result"]["content"][0]["text"], "c");
}

#[test]
fn a_server_that_floods() {
    let bench = Bench::new();
    let mut client = bench.guard();
    client.initialize();
    client.call(1, "write", json!({"then": "flood"}));
    // 40,000 answers to nobody and lines that are no messages: none is passed on.
    assert_eq!(client.message()["id"], 1);
    still_works(&mut client);
}

#[test]
fn a_server_whose_answer_is_ambiguous() {
    let bench = Bench::new();
    let mut client = bench.guard();
    client.initialize();
    client.call(1, "write", json!({"name": "a", "then": "silence"}));
    bench.wait_for("end a");
    let twice = r#"{"jsonrpc":"2.0","id":1,"result":{"a":1},"result":{"a":2}}"#;
    client
        .send(&json!({"jsonrpc": "2.0", "id": "raw", "method": "raw", "params": {"text": twice}}));
    let answer = client.answer(1);
    assert_eq!(answer["error"]["code"], -32603);
    still_works(&mut client);
}

#[test]
fn a_server_that_never_answers() {
    let bench = Bench::new();
    bench.policy("[defaults]\nwait = \"200ms\"\n");
    let mut client = bench.guard();
    client.initialize();
    client.call(1, "write", json!({"then": "silence"}));
    for id in 2..5 {
        client.call(id, "write", json!({}));
        assert_eq!(reason(&client.answer(id)), "busy");
    }
    // Other methods are not held up.
    client.send(&json!({"jsonrpc": "2.0", "id": "p", "method": "ping"}));
    assert_eq!(client.answer("p")["result"], json!({}));
}

#[test]
fn tricks_with_paths_stay_keys() {
    let bench = Bench::new();
    bench.policy("[[tool]]\nmatch = \"write\"\nlock = \"{key}\"\n");
    let mut client = bench.guard();
    client.initialize();
    let outside = bench.path("outside");
    let keys = [
        "../../outside".to_owned(),
        outside.display().to_string(),
        "a\0b".to_owned(),
        ".".to_owned(),
        "..".to_owned(),
        "/".to_owned(),
        "x".repeat(100_000),
        "\u{202e}".to_owned(),
    ];
    for (id, key) in keys.iter().enumerate() {
        client.call(id as u64, "write", json!({ "key": key }));
        assert_eq!(reason(&client.answer(id as u64)), "not refused");
    }
    assert!(!outside.exists());
    // The locks' folder holds files of the backend's own naming only.
    for entry in std::fs::read_dir(bench.path("locks")).expect("locks") {
        let name = entry
            .expect("an entry")
            .file_name()
            .into_string()
            .expect("text");
        assert!(
            name.bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_')),
            "{name}"
        );
    }
}
