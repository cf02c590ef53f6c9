//! The HTTP side, by hand: sockets, headers, and what is wrong with them.

mod common;

use std::io::Write as _;
use std::net::TcpStream;
use std::process::Command;
use std::time::Duration;

use common::http::{Answer, Guard, free_address, metrics};
use common::{Bench, SOON, example, is_alive, reason};
use serde_json::{Value, json};

fn call(id: u64, tool: &str, arguments: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": tool, "arguments": arguments}})
}

/// The same with everything that revision 2026-07-28 puts into a request.
fn modern(id: u64, tool: &str, arguments: Value) -> Value {
    let mut message = call(id, tool, arguments);
    message["params"]["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "t", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {}});
    message
}

const MODERN: [(&str, &str); 3] = [
    ("MCP-Protocol-Version", "2026-07-28"),
    ("Mcp-Method", "tools/call"),
    ("Mcp-Name", "write"),
];

#[test]
fn a_session_has_a_server_of_its_own_and_ends_with_it() {
    let bench = Bench::new();
    let guard = Guard::start(&bench, &[]);
    let (one, two) = (guard.session(), guard.session());
    assert_ne!(one, two);
    // One for each, and one for clients without sessions.
    let starts = || {
        bench
            .events()
            .iter()
            .filter(|event| event.starts_with("start "))
            .count()
    };
    assert_eq!(starts(), 3);
    for session in [&one, &two] {
        let answer = guard.post(
            &[("Mcp-Session-Id", session)],
            &call(1, "write", json!({"name": "a"})),
        );
        assert_eq!(answer.json()["result"]["content"][0]["text"], "a");
    }
    assert_eq!(
        guard
            .send("DELETE", "/mcp", &[("Mcp-Session-Id", &one)], "")
            .status,
        204
    );
    assert_eq!(
        guard
            .post(&[("Mcp-Session-Id", &one)], &call(2, "write", json!({})))
            .status,
        404
    );
    assert_eq!(
        guard
            .post(&[("Mcp-Session-Id", "guess")], &call(2, "write", json!({})))
            .status,
        404
    );
    assert_eq!(guard.post(&[], &call(2, "write", json!({}))).status, 400);
    bench.wait_for("eof");
}

#[test]
fn sessions_exclude_each_other() {
    let bench = Bench::new();
    let guard = Guard::start(&bench, &[]);
    let sessions: Vec<String> = (0..3).map(|_| guard.session()).collect();
    std::thread::scope(|scope| {
        for session in &sessions {
            for id in 0..10 {
                let (guard, bench) = (&guard, &bench);
                scope.spawn(move || {
                    let answer = guard.post(
                        &[("Mcp-Session-Id", session)],
                        &call(id, "write", json!({"count": bench.text("counter")})),
                    );
                    assert_eq!(reason(&answer.json()), "not refused");
                });
            }
        }
    });
    assert_eq!(bench.most_at_once(), 1);
    assert_eq!(
        std::fs::read_to_string(bench.path("counter")).expect("a counter"),
        "30"
    );
}

#[test]
fn without_sessions_ids_of_clients_may_be_the_same() {
    let bench = Bench::new();
    bench.policy("[[tool]]\nmatch = \"*\"\nlock = []\n");
    let guard = Guard::start(&bench, &[]);
    std::thread::scope(|scope| {
        for n in 0..20 {
            let guard = &guard;
            scope.spawn(move || {
                let name = format!("client{n}");
                let mut message = modern(1, "write", json!({"name": name, "ms": 20 - n}));
                message["params"]["_meta"]["progressToken"] = json!("same");
                let mut answer = guard.post(&MODERN, &message);
                // Progress comes first, so it is a stream; both are in the client's own words.
                assert_eq!(answer.header("content-type"), Some("text/event-stream"));
                let (id, progress) = answer.event().expect("progress");
                assert_eq!(
                    (id.as_str(), &progress["params"]["progressToken"]),
                    ("", &json!("same"))
                );
                let (_, result) = answer.event().expect("an answer");
                assert_eq!(
                    (&result["id"], &result["result"]["content"][0]["text"]),
                    (&json!(1), &json!(name))
                );
                assert!(answer.event().is_none());
            });
        }
    });
    let starts = bench
        .events()
        .iter()
        .filter(|event| event.starts_with("start "))
        .count();
    assert_eq!(starts, 1);
}

#[test]
fn headers_must_say_what_the_body_says() {
    let bench = Bench::new();
    let guard = Guard::start(&bench, &[]);
    let message = modern(1, "write", json!({"name": "a"}));
    assert_eq!(
        guard.post(&MODERN, &message).json()["result"]["content"][0]["text"],
        "a"
    );
    let encoded = [MODERN[0], MODERN[1], ("Mcp-Name", "=?base64?d3JpdGU=?=")];
    assert_eq!(guard.post(&encoded, &message).status, 200);
    for wrong in [
        [("MCP-Protocol-Version", "2025-11-25"), MODERN[1], MODERN[2]],
        [MODERN[0], ("Mcp-Method", "tools/list"), MODERN[2]],
        [MODERN[0], MODERN[1], ("Mcp-Name", "read")],
        [MODERN[0], MODERN[1], ("X", "y")],
    ] {
        let answer = guard.post(&wrong, &message);
        assert_eq!(answer.status, 400, "{wrong:?}");
        assert_eq!(answer.json()["error"]["code"], -32020, "{wrong:?}");
    }
}

#[test]
fn a_client_that_leaves_has_cancelled_but_its_lock_stays() {
    let bench = Bench::new();
    let guard = Guard::start(&bench, &[]);
    let message = modern(1, "write", json!({"name": "a", "until": bench.text("go")})).to_string();
    let mut stream = guard.connect();
    let head = format!(
        "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\nMCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\nMcp-Name: write\r\nContent-Length: {}\r\n\r\n",
        message.len()
    );
    stream
        .write_all((head + &message).as_bytes())
        .expect("sent");
    bench.wait_for("begin a");
    drop(stream);
    std::thread::scope(|scope| {
        let other = scope.spawn(|| {
            guard
                .post(&MODERN, &modern(1, "write", json!({"name": "b"})))
                .json()
        });
        std::thread::sleep(Duration::from_millis(300));
        assert!(!other.is_finished(), "the lock was released");
        std::fs::write(bench.path("go"), "").expect("a file");
        assert_eq!(
            other.join().expect("an answer")["result"]["content"][0]["text"],
            "b"
        );
    });
    let told = bench
        .lines()
        .iter()
        .any(|line| line.windows(9).any(|part| part == b"cancelled"));
    assert!(told, "the server was not told");
}

#[test]
fn a_stream_is_taken_up_where_it_broke() {
    let bench = Bench::new();
    let guard = Guard::start(&bench, &[]);
    let session = guard.session();
    let headers = [("Mcp-Session-Id", session.as_str())];
    let mut message = call(1, "write", json!({"name": "a", "until": bench.text("go")}));
    message["params"]["_meta"] = json!({"progressToken": "p"});
    let mut answer = guard.post(&headers, &message);
    let (seen, _) = answer.event().expect("progress");
    drop(answer);
    std::fs::write(bench.path("go"), "").expect("a file");
    bench.wait_for("end a");
    let again = [headers[0], ("Last-Event-ID", seen.as_str())];
    let mut answer = guard.send("GET", "/mcp", &again, "");
    let (_, result) = answer.event().expect("the answer");
    assert_eq!(
        (&result["id"], &result["result"]["content"][0]["text"]),
        (&json!(1), &json!("a"))
    );
}

#[test]
fn what_the_server_says_of_its_own_accord() {
    let bench = Bench::new();
    let guard = Guard::start(&bench, &[]);
    let session = guard.session();
    let headers = [("Mcp-Session-Id", session.as_str())];
    let say = |text: Value| {
        let raw = json!({"jsonrpc": "2.0", "method": "raw", "params": {"text": text.to_string()}});
        assert_eq!(guard.post(&headers, &raw).status, 202);
    };
    // Said before anybody listens, and after.
    say(json!({"jsonrpc": "2.0", "method": "notifications/message", "params": {"n": 1}}));
    let mut answer = guard.send("GET", "/mcp", &headers, "");
    assert_eq!(answer.event().expect("an event").1["params"]["n"], 1);
    say(json!({"jsonrpc": "2.0", "id": "q", "method": "roots/list"}));
    assert_eq!(answer.event().expect("an event").1["id"], "q");
    // Only one may listen.
    assert_eq!(guard.send("GET", "/mcp", &headers, "").status, 409);
    let reply = json!({"jsonrpc": "2.0", "id": "q", "result": {"roots": []}});
    assert_eq!(guard.post(&headers, &reply).status, 202);
    guard
        .post(
            &headers,
            &json!({"jsonrpc": "2.0", "id": 9, "method": "ping"}),
        )
        .json();
    assert!(
        bench
            .lines()
            .iter()
            .any(|line| *line == reply.to_string().into_bytes())
    );
}

#[test]
fn who_may_not_come_in() {
    let bench = Bench::new();
    std::fs::write(
        bench.path("tokens"),
        "alice 0123456789abcdef\nbob fedcba9876543210\n",
    )
    .expect("tokens");
    let guard = Guard::start(&bench, &["--token-file", &bench.text("tokens")]);
    let ping = json!({"jsonrpc": "2.0", "id": 1, "method": "ping"});
    let good = ("Authorization", "Bearer 0123456789abcdef");
    assert_eq!(guard.post(&[], &ping).status, 401);
    assert_eq!(
        guard
            .post(&[("Authorization", "Bearer 0123456789abcdeX")], &ping)
            .status,
        401
    );
    assert_eq!(
        guard
            .post(&[good, ("Origin", "https://evil.example")], &ping)
            .status,
        403
    );
    assert_eq!(
        guard.post(&[good, ("Host", "evil.example")], &ping).status,
        403
    );
    assert_eq!(
        guard.post(&[good], &ping).status,
        400,
        "let in, but without a session"
    );
    // A session is its caller's own.
    let begin = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {"protocolVersion": "2025-06-18"}});
    let answer = guard.post(&[good], &begin);
    let session = answer
        .header("mcp-session-id")
        .expect("a session")
        .to_owned();
    assert_eq!(
        guard
            .post(&[good, ("Mcp-Session-Id", &session)], &ping)
            .status,
        200
    );
    let bob = ("Authorization", "Bearer fedcba9876543210");
    assert_eq!(
        guard
            .post(&[bob, ("Mcp-Session-Id", &session)], &ping)
            .status,
        404
    );
}

#[test]
fn requests_that_are_too_much_or_make_no_sense() {
    let bench = Bench::new();
    let guard = Guard::start(&bench, &["--max-message", "100000"]);
    assert_eq!(guard.send("POST", "/mcp", &[], "{").status, 400);
    assert_eq!(
        guard
            .send("POST", "/mcp", &[("Content-Type", "text/plain")], "{}")
            .status,
        415
    );
    assert_eq!(guard.send("POST", "/elsewhere", &[], "{}").status, 404);
    assert_eq!(guard.send("POST", "/mcp/../mcp", &[], "{}").status, 404);
    assert_eq!(guard.send("PUT", "/mcp", &[], "{}").status, 405);
    assert_eq!(guard.send("GET", "/mcp", &[], "").status, 405);
    // A gigabyte is refused by its announcement.
    let mut stream = guard.connect();
    stream.write_all(b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 1073741824\r\n\r\n").expect("sent");
    assert_eq!(Answer::read(stream).status, 413);
    // One that is not announced, by its size.
    let mut stream = guard.connect();
    stream.write_all(b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n").expect("sent");
    let chunk = [b"4000\r\n".as_slice(), &[b' '; 0x4000], b"\r\n"].concat();
    for _ in 0..20 {
        if stream.write_all(&chunk).is_err() {
            break;
        }
    }
    assert_eq!(Answer::read(stream).status, 413);
    // Headers without end.
    let mut stream = guard.connect();
    let _ = stream.write_all(b"POST /mcp HTTP/1.1\r\n");
    let _ = stream.write_all(format!("X: {}\r\n", "x".repeat(200_000)).as_bytes());
    let status = Answer::read(stream).status;
    assert!(matches!(status, 431 | 400 | 0), "{status}");
    guard.session();
}

#[test]
fn a_signal_loses_no_call() {
    let bench = Bench::new();
    let mut guard = Guard::start(&bench, &[]);
    let session = guard.session();
    let address = guard.address.clone();
    let message = call(1, "write", json!({"name": "a", "until": bench.text("go")})).to_string();
    let caller = std::thread::spawn(move || {
        let mut stream = TcpStream::connect(address).expect("a connection");
        stream.set_read_timeout(Some(SOON)).expect("a timeout");
        let head = format!(
            "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nMcp-Session-Id: {session}\r\nContent-Length: {}\r\n\r\n",
            message.len()
        );
        stream
            .write_all((head + &message).as_bytes())
            .expect("sent");
        Answer::read(stream).json()
    });
    bench.wait_for("begin a");
    let pid = rustix::process::Pid::from_child(&guard.child);
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).expect("alive");
    std::thread::sleep(Duration::from_millis(200));
    std::fs::write(bench.path("go"), "").expect("a file");
    assert_eq!(
        caller.join().expect("an answer")["result"]["content"][0]["text"],
        "a"
    );
    assert_eq!(guard.child.wait().expect("an end").code(), Some(0));
    for event in bench.events() {
        if let Some(pid) = event.strip_prefix("start ") {
            assert!(!is_alive(pid));
        }
    }
}

#[test]
fn several_servers_each_under_its_name() {
    let bench = Bench::new();
    let server = example("server").display().to_string();
    let file = json!({"mcpServers": {
        "a": {"command": server, "args": [bench.text("events-a")]},
        "b": {"command": server, "args": [bench.text("events")]}}});
    std::fs::write(bench.path("mcp.json"), file.to_string()).expect("a file");
    let guard = Guard::start(&bench, &["--servers", &bench.text("mcp.json")]);
    let message = modern(1, "write", json!({"name": "hello"})).to_string();
    assert_eq!(guard.send("POST", "/b", &MODERN, &message).status, 200);
    assert_eq!(guard.send("POST", "/c", &MODERN, &message).status, 404);
    assert_eq!(guard.send("POST", "/mcp", &MODERN, &message).status, 404);
    assert!(bench.events().contains(&"begin hello".to_owned()));
    let other = std::fs::read_to_string(bench.path("events-a")).expect("events");
    assert!(!other.contains("hello"));
}

#[test]
fn one_that_does_not_start_is_named_and_the_others_are_ended() {
    let bench = Bench::new();
    bench.policy("");
    let server = example("server").display().to_string();
    for (command, args) in [
        ("no-such-command", json!([])),
        ("sh", json!(["-c", "exit 3"])),
    ] {
        let file = json!({"mcpServers": {
            "good": {"command": server, "args": [bench.text("events")]},
            "worse": {"command": command, "args": args}}});
        std::fs::write(bench.path("mcp.json"), file.to_string()).expect("a file");
        let run = Command::new(example("guard"))
            .arg("--policy")
            .arg(bench.path("guard.toml"))
            .args(["--listen", "127.0.0.1:0", "--servers"])
            .arg(bench.path("mcp.json"))
            .output()
            .expect("a guard");
        assert_eq!(run.status.code(), Some(2));
        let text = String::from_utf8_lossy(&run.stderr);
        assert!(text.contains("server `worse`"), "{text}");
        for event in bench.events() {
            if let Some(pid) = event.strip_prefix("start ") {
                assert!(!is_alive(pid), "{event}");
            }
        }
    }
}

#[test]
fn from_stdio_to_http_and_back() {
    let bench = Bench::new();
    bench.policy("[[tool]]\nmatch = \"*\"\nlock = []\n");
    let far = Guard::start(&bench, &[]);
    let near = Bench::new();
    near.policy("");
    std::fs::write(
        near.path("mcp.json"),
        json!({"mcpServers": {"far": {"url": format!("http://{}/mcp", far.address)}}}).to_string(),
    )
    .expect("a file");
    let mut command = Command::new(example("guard"));
    command
        .arg("--policy")
        .arg(near.path("guard.toml"))
        .arg("--servers")
        .arg(near.path("mcp.json"));
    let mut client = common::Client::start(command);
    client.initialize();
    // The near guard holds them apart, the far one does not.
    for id in 0..10 {
        client.call(id, "write", json!({"count": bench.text("counter")}));
    }
    for answer in client.answers(10) {
        assert_eq!(reason(&answer), "not refused");
    }
    assert_eq!(
        std::fs::read_to_string(bench.path("counter")).expect("a counter"),
        "10"
    );
    // A question of the server finds its way through both.
    let question = json!({"jsonrpc": "2.0", "id": "q", "method": "sampling/createMessage", "params": {"n": 1}});
    client.send(
        &json!({"jsonrpc": "2.0", "method": "raw", "params": {"text": question.to_string()}}),
    );
    assert_eq!(client.message(), question);
    client.send(&json!({"jsonrpc": "2.0", "id": 77, "method": "tools/call",
        "params": {"name": "write", "arguments": {"name": "p"}, "_meta": {"progressToken": 5}}}));
    assert_eq!(client.message()["params"]["progressToken"], 5);
    assert_eq!(client.answer(77)["result"]["content"][0]["text"], "p");
    client.close_input();
    assert_eq!(client.wait(), Some(0));
}

#[test]
fn metrics_are_served() {
    let bench = Bench::new();
    let address = free_address();
    let guard = Guard::start(&bench, &["--metrics", &address]);
    guard.post(&MODERN, &modern(1, "write", json!({})));
    let text = metrics(&address);
    assert!(
        text.contains("toctou_guard_calls_total{server=\"server\""),
        "{text}"
    );
    assert!(text.contains("toctou_guard_running 0"), "{text}");
}

#[test]
fn a_handshake_that_fails_leaves_no_server_behind() {
    let bench = Bench::new();
    let guard = Guard::start(&bench, &[]);
    let begin = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {"protocolVersion": "none"}});
    let answer = guard.post(&[], &begin);
    assert_eq!(answer.header("mcp-session-id"), None);
    assert_eq!(answer.json()["error"]["code"], -32602);
    bench.wait_for("eof");
    let pid = bench
        .events()
        .iter()
        .rev()
        .find_map(|event| event.strip_prefix("start ").map(str::to_owned))
        .expect("a start");
    let began = std::time::Instant::now();
    while is_alive(&pid) {
        assert!(began.elapsed() < SOON, "{pid} is still there");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn arguments_that_stand_in_headers_too() {
    let bench = Bench::new();
    let guard = Guard::start(&bench, &[]);
    let ask = |headers: &[(&str, &str)], arguments: Value| {
        let name = [MODERN[0], MODERN[1], ("Mcp-Name", "plain")];
        guard.post(&[&name, headers].concat(), &modern(1, "plain", arguments))
    };
    // The first call is the moment to ask for the tools; the list is known soon after.
    let began = std::time::Instant::now();
    while ask(&[], json!({"region": "eu"})).status == 200 {
        assert!(began.elapsed() < SOON, "the header is not asked for");
    }
    let missing = ask(&[], json!({"region": "eu"}));
    assert_eq!(missing.json()["error"]["code"], -32020);
    let other = ask(&[("Mcp-Param-Region", "us")], json!({"region": "eu"}));
    assert_eq!(other.status, 400);
    assert_eq!(ask(&[("Mcp-Param-Region", "us")], json!({})).status, 400);
    let same = ask(&[("Mcp-Param-Region", "eu")], json!({"region": "eu"}));
    assert_eq!(same.status, 200);
    assert_eq!(ask(&[], json!({})).status, 200);
}

#[test]
fn what_is_for_nobody_is_not_shown_to_somebody_else() {
    let bench = Bench::new();
    bench.policy("[[tool]]\nmatch = \"*\"\nlock = []\n");
    let guard = Guard::start(&bench, &[]);
    std::thread::scope(|scope| {
        let waits = scope.spawn(|| {
            let call = modern(1, "write", json!({"name": "a", "until": bench.text("go")}));
            guard.post(&MODERN, &call)
        });
        bench.wait_for("begin a");
        let note = json!({"jsonrpc": "2.0", "method": "notifications/message", "params": {"data": "of another"}});
        let mut raw = modern(2, "write", json!({}));
        raw["method"] = json!("raw");
        raw["params"]["text"] = json!(note.to_string());
        raw.as_object_mut().expect("an object").remove("id");
        assert_eq!(guard.post(&MODERN, &raw).status, 202);
        guard.post(&MODERN, &modern(3, "write", json!({"name": "b"})));
        bench.go();
        // One answer and nothing else: no stream.
        let answer = waits.join().expect("an answer");
        assert_eq!(answer.json()["result"]["content"][0]["text"], "a");
    });
}
