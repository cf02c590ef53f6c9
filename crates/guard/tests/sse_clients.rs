//! Clients of HTTP+SSE, the transport of 2024-11-05.

mod common;

use std::time::{Duration, Instant};

use common::http::{Answer, Guard};
use common::{Bench, SOON, reason};
use serde_json::{Value, json};

const TOKENS: &str = "alice 0123456789abcdef\nbob fedcba9876543210\n";
const ALICE: (&str, &str) = ("Authorization", "Bearer 0123456789abcdef");
const BOB: (&str, &str) = ("Authorization", "Bearer fedcba9876543210");

fn initialize() -> Value {
    json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
        "protocolVersion": "2024-11-05", "capabilities": {}, "clientInfo": {"name": "old", "version": "1"}}})
}

fn call(id: u64, arguments: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": "write", "arguments": arguments}})
}

/// A client of that time: a stream, and where to send.
struct Old<'a> {
    guard: &'a Guard,
    stream: Answer,
    place: String,
}

impl<'a> Old<'a> {
    fn connect(guard: &'a Guard, headers: &[(&str, &str)]) -> Self {
        let mut stream = guard.send("GET", "/sse", headers, "");
        assert_eq!(stream.status, 200);
        assert_eq!(stream.header("content-type"), Some("text/event-stream"));
        let (_, place) = stream.data().expect("an endpoint");
        assert!(place.starts_with("/message?sessionId="), "{place}");
        Self {
            guard,
            stream,
            place,
        }
    }

    fn begin(guard: &'a Guard) -> Self {
        let mut old = Self::connect(guard, &[]);
        old.send(&initialize());
        assert_eq!(old.message()["result"]["protocolVersion"], "2024-11-05");
        old.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        old
    }

    fn send(&self, message: &Value) {
        let answer = self
            .guard
            .send("POST", &self.place, &[], &message.to_string());
        assert_eq!(answer.status, 202);
    }

    fn message(&mut self) -> Value {
        self.stream.event().expect("a message").1
    }
}

fn free(bench: &Bench) {
    bench.policy("[[tool]]\nmatch = \"*\"\nlock = []\n");
}

#[test]
fn an_old_client_has_a_session_on_its_stream() {
    let bench = Bench::new();
    free(&bench);
    let guard = Guard::start(&bench, &[]);
    let (mut one, mut two) = (Old::begin(&guard), Old::begin(&guard));
    assert_ne!(one.place, two.place);
    // Both use the same ids and tokens, and each gets its own.
    for (old, name) in [(&one, "one"), (&two, "two")] {
        let mut message = call(1, json!({"name": name, "ms": 20}));
        message["params"]["_meta"] = json!({"progressToken": "same"});
        old.send(&message);
    }
    for (old, name) in [(&mut one, "one"), (&mut two, "two")] {
        assert_eq!(old.message()["params"]["progressToken"], "same");
        let answer = old.message();
        assert_eq!(
            (&answer["id"], &answer["result"]["content"][0]["text"]),
            (&json!(1), &json!(name))
        );
    }
    // The server asks, and is answered.
    let question = json!({"jsonrpc": "2.0", "id": "q", "method": "sampling/createMessage", "params": {"n": 1}});
    one.send(&json!({"jsonrpc": "2.0", "method": "raw", "params": {"text": question.to_string()}}));
    assert_eq!(one.message(), question);
    let said = json!({"jsonrpc": "2.0", "id": "q", "result": {"said": true}});
    one.send(&said);
    let began = Instant::now();
    while !bench.lines().contains(&said.to_string().into_bytes()) {
        assert!(began.elapsed() < SOON, "the server is not answered");
        std::thread::sleep(Duration::from_millis(2));
    }
    // The session ends with the stream.
    let place = one.place.clone();
    drop(one);
    bench.wait_for("eof");
    assert_eq!(
        guard
            .send("POST", &place, &[], &call(2, json!({})).to_string())
            .status,
        404
    );
    two.send(&call(2, json!({"name": "still"})));
    assert_eq!(two.message()["result"]["content"][0]["text"], "still");
}

#[test]
fn much_at_once_is_no_reason_to_leave() {
    let bench = Bench::new();
    free(&bench);
    let guard = Guard::start(&bench, &[]);
    let mut old = Old::begin(&guard);
    const NOTES: usize = 5000;
    let note =
        |n| json!({"jsonrpc": "2.0", "method": "notifications/message", "params": {"data": n}});
    let text: Vec<String> = (0..NOTES).map(|n| note(n).to_string()).collect();
    old.send(&json!({"jsonrpc": "2.0", "method": "raw", "params": {"text": text.join("\n")}}));
    for n in 0..NOTES {
        assert_eq!(old.message(), note(n));
    }
}

#[test]
fn calls_of_old_clients_exclude_each_other_and_are_cancelled() {
    let bench = Bench::new();
    let guard = Guard::start(&bench, &[]);
    let (mut one, mut two) = (Old::begin(&guard), Old::begin(&guard));
    one.send(&call(1, json!({"name": "a", "until": bench.text("go")})));
    bench.wait_for("begin a");
    two.send(&call(1, json!({"name": "b"})));
    two.send(&call(2, json!({"name": "c"})));
    // What is cancelled while it waits is never started.
    two.send(
        &json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}}),
    );
    bench.go();
    assert_eq!(one.message()["id"], 1);
    assert_eq!(two.message()["id"], 2);
    assert_eq!(bench.count("begin b"), 0);
    assert_eq!(bench.most_at_once(), 1);
}

#[test]
fn a_lock_outlives_its_client() {
    let bench = Bench::new();
    let guard = Guard::start(&bench, &[]);
    let one = Old::begin(&guard);
    let mut two = Old::begin(&guard);
    one.send(&call(1, json!({"name": "a", "until": bench.text("go")})));
    bench.wait_for("begin a");
    drop(one);
    two.send(&call(1, json!({"name": "b"})));
    std::thread::sleep(Duration::from_millis(300));
    assert_eq!(bench.count("begin b"), 0);
    bench.go();
    assert_eq!(two.message()["result"]["content"][0]["text"], "b");
    assert_eq!(bench.most_at_once(), 1);
}

#[test]
fn who_may_come_in_and_with_what() {
    let bench = Bench::new();
    std::fs::write(bench.path("tokens"), TOKENS).expect("tokens");
    let guard = Guard::start(
        &bench,
        &[
            "--token-file",
            &bench.text("tokens"),
            "--max-message",
            "100000",
        ],
    );
    let status = |method: &str, path: &str, headers: &[(&str, &str)], body: &str| {
        guard.send(method, path, headers, body).status
    };
    let begin = initialize().to_string();
    assert_eq!(status("GET", "/sse", &[], ""), 401);
    assert_eq!(
        status(
            "GET",
            "/sse",
            &[ALICE, ("Origin", "https://evil.example")],
            ""
        ),
        403
    );
    assert_eq!(
        status(
            "GET",
            "/sse",
            &[ALICE, ("Sec-Fetch-Site", "cross-site")],
            ""
        ),
        403
    );
    assert_eq!(
        status("GET", "/sse", &[ALICE, ("Host", "evil.example")], ""),
        403
    );
    assert_eq!(
        status("GET", "/sse", &[ALICE, ("Accept", "image/png, */*")], ""),
        406
    );
    // A newer client that tries here first learns that this is the old transport.
    assert_eq!(status("POST", "/sse", &[ALICE], &begin), 405);
    assert_eq!(status("GET", "/message?sessionId=x", &[ALICE], ""), 405);
    assert_eq!(status("GET", "/server/sse/", &[ALICE], ""), 404);

    let mut old = Old::connect(&guard, &[ALICE]);
    let place = old.place.clone();
    let id = place.rsplit_once('=').expect("an id").1;
    assert_eq!(id.len(), 32);
    for (path, headers, body, expected) in [
        (place.as_str(), &[BOB][..], begin.as_str(), 404),
        (&place, &[], &begin, 401),
        (
            &place,
            &[ALICE, ("Origin", "https://evil.example")],
            &begin,
            403,
        ),
        (
            &place,
            &[ALICE, ("Content-Type", "text/plain")],
            &begin,
            415,
        ),
        (&place, &[ALICE], "{", 400),
        (
            &place,
            &[ALICE],
            "{\"jsonrpc\":\"2.0\",\"id\":1,\"id\":2,\"method\":\"ping\"}",
            400,
        ),
        (&place, &[ALICE], &" ".repeat(100_001), 413),
        // Nothing is started for one who does not begin.
        (
            &place,
            &[ALICE],
            "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\"}",
            400,
        ),
        ("/message", &[ALICE], &begin, 404),
        ("/message?sessionId=", &[ALICE], &begin, 404),
        ("/message?sessionId=guess", &[ALICE], &begin, 404),
        ("/message?sessionId=../x", &[ALICE], &begin, 404),
    ] {
        assert_eq!(
            status("POST", path, headers, body),
            expected,
            "{path} {headers:?} {body:.80}"
        );
    }
    // The id of one transport is nothing to the other.
    let ping = json!({"jsonrpc": "2.0", "id": 1, "method": "ping"}).to_string();
    assert_eq!(
        status("POST", "/mcp", &[ALICE, ("Mcp-Session-Id", id)], &ping),
        404
    );
    assert_eq!(
        status("GET", "/mcp", &[ALICE, ("Mcp-Session-Id", id)], ""),
        404
    );
    assert_eq!(
        status("DELETE", "/mcp", &[ALICE, ("Mcp-Session-Id", id)], ""),
        404
    );
    let newer = guard.post(&[ALICE], &initialize());
    let newer = newer.header("mcp-session-id").expect("a session");
    assert_eq!(
        status(
            "POST",
            &format!("/message?sessionId={newer}"),
            &[ALICE],
            &ping
        ),
        404
    );

    let servers = || {
        bench
            .events()
            .iter()
            .filter(|event| event.starts_with("start "))
            .count()
    };
    let before = servers();
    assert_eq!(status("POST", &place, &[ALICE], &begin), 202);
    assert_eq!(old.message()["id"], 0);
    assert_eq!(servers(), before + 1);
}

#[test]
fn there_is_an_end_to_sessions() {
    let bench = Bench::new();
    let guard = Guard::start(&bench, &[]);
    let mut open: Vec<Old<'_>> = (0..64).map(|_| Old::connect(&guard, &[])).collect();
    assert_eq!(guard.send("GET", "/sse", &[], "").status, 503);
    // None of them has begun, so none has a server.
    assert_eq!(
        bench
            .events()
            .iter()
            .filter(|event| event.starts_with("start "))
            .count(),
        1
    );
    open.pop();
    let began = Instant::now();
    while guard.send("GET", "/sse", &[], "").status != 200 {
        assert!(began.elapsed() < SOON, "a place does not become free");
    }
    // And whoever does not begin is shown out.
    let began = Instant::now();
    assert!(open[0].stream.data().is_none());
    assert!(
        began.elapsed() < Duration::from_secs(40),
        "{:?}",
        began.elapsed()
    );
}

#[test]
fn a_signal_loses_no_call_of_an_old_client() {
    let bench = Bench::new();
    let mut guard = Guard::start(&bench, &[]);
    let (stream, place) = {
        let old = Old::begin(&guard);
        old.send(&call(1, json!({"name": "a", "until": bench.text("go")})));
        (old.stream, old.place)
    };
    let mut stream = stream;
    bench.wait_for("begin a");
    let pid = rustix::process::Pid::from_child(&guard.child);
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).expect("alive");
    let began = Instant::now();
    // What comes now is told that it will not start; a new stream is not opened.
    while guard.send("GET", "/sse", &[], "").status != 503 {
        assert!(began.elapsed() < SOON, "the guard does not close");
    }
    assert_eq!(
        guard
            .send(
                "POST",
                &place,
                &[],
                &call(2, json!({"name": "b"})).to_string()
            )
            .status,
        202
    );
    let (_, refused) = stream.event().expect("a refusal");
    assert_eq!((reason(&refused), &refused["id"]), ("closing", &json!(2)));
    bench.go();
    let (_, answer) = stream.event().expect("an answer");
    assert_eq!(answer["result"]["content"][0]["text"], "a");
    assert!(stream.event().is_none());
    assert_eq!(guard.child.wait().expect("an end").code(), Some(0));
    assert!(
        began.elapsed() < Duration::from_secs(5),
        "{:?}",
        began.elapsed()
    );
    assert_eq!(bench.count("begin b"), 0);
}
