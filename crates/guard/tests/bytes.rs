//! Messages arrive as they were sent, byte for byte, both ways.

mod common;

use std::io::Write as _;
use std::time::{Duration, Instant};

use common::http::Guard;
use common::{Bench, SOON};
use serde_json::json;

/// Requests, notifications and answers of all revisions, and oddities of JSON.
fn corpus() -> Vec<Vec<u8>> {
    let mut corpus: Vec<Vec<u8>> = [
        // 2024-11-05
        r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2024-11-05","capabilities":{"roots":{"listChanged":true},"sampling":{}},"clientInfo":{"name":"c","version":"0"}}}"#,
        r#"{"method":"resources/subscribe","id":2,"params":{"uri":"file:///a%20b"},"jsonrpc":"2.0"}"#,
        // 2025-03-26 and later
        r#"{"jsonrpc":"2.0","id":3,"method":"completion/complete","params":{"ref":{"type":"ref/prompt","name":"p"},"argument":{"name":"a","value":"v"},"context":{"arguments":{}}}}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}"#,
        r#"{"jsonrpc":"2.0","id":4,"method":"tasks/get","params":{"taskId":"786"}}"#,
        r#"{"jsonrpc":"2.0","id":"srv-1","result":{"action":"accept","content":{"n":1}}}"#,
        r#"{"jsonrpc":"2.0","id":"srv-2","error":{"code":-1,"message":"no","data":{"x":[1,2,3]}}}"#,
        // 2026-07-28
        r#"{"jsonrpc":"2.0","id":5,"method":"server/discover","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"c","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}}}"#,
        r#"{"jsonrpc":"2.0","id":6,"method":"tools/call","params":{"name":"read","arguments":{},"inputResponses":{"k":{"action":"accept"}},"requestState":"AEAD","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","traceparent":"00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01"}}}"#,
        // Numbers that a float cannot hold, and other spellings.
        r#"{"jsonrpc":"2.0","id":12345678901234567890123,"method":"x","params":{"big":12345678901234567890123,"small":1e-400,"zero":-0.0,"exp":1E+05,"trail":1.500}}"#,
        r#"{"jsonrpc":"2.0","id":-7.50,"method":"x"}"#,
        "{ \"jsonrpc\" :\t\"2.0\" , \"id\" : \"a\\u0062c\\/\" , \"method\" : \"\\u0078/y\" , \"params\" : [ ] }\r",
        // Unknown keys and methods, doubled where it does not matter, in an odd order.
        r#"{"z":null,"params":{"b":1,"a":{"c":[{}],"c":2}},"method":"vendor/thing","future":{"x":true},"jsonrpc":"2.0","id":"id with spaces"}"#,
        // Unicode: escaped, raw, line separators, a lone surrogate, bidirectional text.
        "{\"jsonrpc\":\"2.0\",\"id\":\"ü\",\"method\":\"x\",\"params\":{\"t\":\"\u{1f600} \\ud83d\\ude00 \u{2028}\u{2029} \\ud800 \u{202e}abc \\u0000\"}}",
        r#"{"jsonrpc":"2.0","id":8,"method":"tools/call","params":{"name":"read","arguments":{"n":0.1000,"deep":[[[[[[[[]]]]]]]]},"_meta":{"progressToken":9007199254740993}}}"#,
    ]
    .iter()
    .map(|text| text.as_bytes().to_vec())
    .collect();
    // 10 MB in one string, with escapes.
    let mut large = br#"{"jsonrpc":"2.0","id":"large","method":"x","params":{"data":""#.to_vec();
    while large.len() < 10 << 20 {
        large.extend_from_slice(br#"abcdefgh\n\"\\\u00e4"#);
    }
    large.extend_from_slice(b"\"}}");
    corpus.push(large);
    corpus
}

#[test]
fn to_the_server() {
    let bench = Bench::new();
    let mut client = bench.guard();
    for message in corpus() {
        client.send_bytes(&message);
    }
    client.send(&json!({"jsonrpc": "2.0", "id": "last", "method": "ping"}));
    client.answer("last");
    let lines = bench.lines();
    let ours = |line: &&Vec<u8>| !line.windows(13).any(|part| part == b"toctou-guard-");
    let got: Vec<&Vec<u8>> = lines.iter().filter(ours).collect();
    // In any order: a call that waits may be overtaken.
    for sent in corpus() {
        let shown = String::from_utf8_lossy(&sent[..sent.len().min(300)]);
        assert!(got.contains(&&sent), "{shown} did not arrive as sent");
    }
    assert_eq!(got.len(), corpus().len() + 1);
}

/// By HTTP, where clients share ids: all but the id and the token for progress, which the guard puts back.
#[test]
fn to_the_server_by_http() {
    let bench = Bench::new();
    let guard = Guard::start(&bench, &["--grace", "1"]);
    let session = guard.session();
    let mut asked = Vec::new();
    for message in corpus() {
        let text = String::from_utf8(message).expect("UTF-8");
        let raw_id = text.split_once("\"id\"").map(|(_, rest)| rest);
        // Other revisions and handshakes have headers and sessions of their own; answers have nobody who asked.
        let other = ["2026-07-28", "initialize", "\"result\"", "\"error\""];
        if raw_id.is_none() || other.iter().any(|part| text.contains(part)) {
            continue;
        }
        let body = text.trim_end_matches('\r').as_bytes().to_vec();
        let head = format!(
            "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\nMcp-Session-Id: {session}\r\nContent-Length: {}\r\n\r\n",
            body.len()
        );
        // Not all are answered, and whoever leaves has cancelled.
        let mut stream = guard.connect();
        stream
            .write_all(&[head.as_bytes(), &body].concat())
            .expect("sent");
        asked.push((stream, body));
    }
    assert!(asked.len() >= 8, "{}", asked.len());
    for (_stream, sent) in &asked {
        let began = Instant::now();
        let arrived = || {
            let lines = bench.lines();
            lines.iter().any(|line| differs_by_numbers(sent, line))
        };
        while !arrived() {
            let shown = String::from_utf8_lossy(&sent[..sent.len().min(300)]);
            assert!(began.elapsed() < SOON, "{shown} did not arrive as sent");
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

/// True if two messages are the same but for their ids and tokens.
fn differs_by_numbers(sent: &[u8], got: &[u8]) -> bool {
    if sent.len().abs_diff(got.len()) > 100 {
        return false;
    }
    let cut = |message: &[u8]| {
        let text = std::str::from_utf8(message).expect("UTF-8").to_owned();
        let mut parsed: Vec<String> = Vec::new();
        let mut rest = text.as_str();
        for name in ["\"id\"", "\"progressToken\""] {
            let Some((before, after)) = rest.split_once(name) else {
                continue;
            };
            let start = after.find(|letter: char| !matches!(letter, ' ' | ':'));
            let value = &after[start.expect("a value")..];
            let end = match value.strip_prefix('"') {
                Some(text) => text.find('"').expect("an end") + 2,
                None => value.find([',', '}', ' ']).expect("an end"),
            };
            parsed.push(format!(
                "{before}{name}{}",
                &after[..start.expect("a value")]
            ));
            rest = &value[end..];
        }
        parsed.push(rest.to_owned());
        parsed
    };
    cut(sent) == cut(got)
}

#[test]
fn from_the_server() {
    let bench = Bench::new();
    let mut client = bench.guard();
    client.initialize();
    let mut checked = 0;
    for message in corpus() {
        let text = String::from_utf8(message.clone()).expect("UTF-8");
        // What a server may say: requests, notifications, answers to a question that was asked.
        let text = text.trim_end_matches('\r').to_owned();
        let parsed: Result<serde_json::Value, _> = serde_json::from_str(&text);
        let is_answer = parsed
            .as_ref()
            .is_ok_and(|message| message.get("method").is_none());
        if is_answer {
            let id = parsed.expect("JSON")["id"].clone();
            client.send(&json!({"jsonrpc": "2.0", "id": id, "method": "silent"}));
        }
        client.send(&json!({"jsonrpc": "2.0", "method": "raw", "params": {"text": text}}));
        let got = client.line();
        assert!(
            got == text.as_bytes(),
            "{}\n{}",
            &text[..text.len().min(300)],
            String::from_utf8_lossy(&got[..got.len().min(300)])
        );
        checked += 1;
    }
    assert_eq!(checked, corpus().len());
}

#[test]
fn an_array_of_messages_is_answered_by_an_array() {
    let bench = Bench::new();
    let mut client = bench.guard();
    client.initialize();
    let call = |id: u32| {
        format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"write","arguments":{{"count":"{}"}}}}}}"#,
            bench.text("counter")
        )
    };
    let batch = format!(
        r#"[{},{{"jsonrpc":"2.0","method":"notifications/x"}},{},{},{{"jsonrpc":"2.0","id":"p","method":"ping"}}]"#,
        call(1),
        call(2),
        call(3)
    );
    client.send_bytes(batch.as_bytes());
    let answers = client.message();
    let mut ids: Vec<String> = answers
        .as_array()
        .expect("an array")
        .iter()
        .map(|answer| answer["id"].to_string())
        .collect();
    ids.sort();
    assert_eq!(ids, ["\"p\"", "1", "2", "3"]);
    // One at a time, although they came together.
    assert_eq!(bench.most_at_once(), 1);
    assert_eq!(
        std::fs::read_to_string(bench.path("counter")).expect("a counter"),
        "3"
    );
}

#[test]
fn progress_and_questions_of_the_server_pass() {
    let bench = Bench::new();
    let mut client = bench.guard();
    client.initialize();
    client.send(&json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": {"name": "write", "arguments": {"name": "a"}, "_meta": {"progressToken": "tok"}}}));
    assert_eq!(client.message()["params"]["progressToken"], "tok");
    client.answer(1);
    let question =
        json!({"jsonrpc": "2.0", "id": "q", "method": "sampling/createMessage", "params": {}});
    client.send(
        &json!({"jsonrpc": "2.0", "method": "raw", "params": {"text": question.to_string()}}),
    );
    assert_eq!(client.message(), question);
    let answer = br#"{"jsonrpc":"2.0","id":"q","result":{"model":"m"}}"#;
    client.send_bytes(answer);
    client.send(&json!({"jsonrpc": "2.0", "id": 2, "method": "ping"}));
    client.answer(2);
    assert!(bench.lines().iter().any(|line| line == answer));
}
