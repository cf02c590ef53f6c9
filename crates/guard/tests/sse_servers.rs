//! Servers of HTTP+SSE, the transport of 2024-11-05, and such as only pretend.

mod common;

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::Command;
use std::time::{Duration, Instant};

use common::http::Guard;
use common::{Bench, Client, SOON, example, reason};
use serde_json::{Value, json};

fn initialize() -> Value {
    json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
        "protocolVersion": "2024-11-05", "capabilities": {}, "clientInfo": {"name": "old", "version": "1"}}})
}

/// A guard on standard input and output in front of a server that is reached by HTTP.
fn in_front(bench: &Bench, server: &Value) -> Client {
    if !bench.path("guard.toml").exists() {
        bench.policy("");
    }
    let servers = json!({"mcpServers": {"far": server}});
    std::fs::write(bench.path("mcp.json"), servers.to_string()).expect("a file");
    let mut command = Command::new(example("guard"));
    command
        .arg("--policy")
        .arg(bench.path("guard.toml"))
        .arg("--servers")
        .arg(bench.path("mcp.json"));
    Client::start(command)
}

#[test]
fn an_old_server_behind_the_guard() {
    for kind in ["sse", "http"] {
        let bench = Bench::new();
        bench.policy("[[tool]]\nmatch = \"*\"\nlock = []\n");
        let far = Guard::start(&bench, &[]);
        let near = Bench::new();
        // By its name, or because it refuses to be spoken to in the new way.
        let server = json!({"type": kind, "url": format!("http://{}/sse", far.address)});
        let mut client = in_front(&near, &server);
        client.initialize();
        for id in 0..10 {
            client.call(id, "write", json!({"count": bench.text("counter")}));
        }
        for answer in client.answers(10) {
            assert_eq!(reason(&answer), "not refused");
        }
        assert_eq!(bench.counted(), "10");
        let question = json!({"jsonrpc": "2.0", "id": "q", "method": "sampling/createMessage", "params": {"n": 1}});
        client.send(
            &json!({"jsonrpc": "2.0", "method": "raw", "params": {"text": question.to_string()}}),
        );
        assert_eq!(client.message(), question);
        client.send(&json!({"jsonrpc": "2.0", "id": 77, "method": "tools/call",
            "params": {"name": "write", "arguments": {"name": "p"}, "_meta": {"progressToken": 5}}}));
        assert_eq!(client.message()["params"]["progressToken"], 5);
        assert_eq!(client.answer(77)["result"]["content"][0]["text"], "p");
        // A call that is cancelled: the far server is told.
        client.call(
            78,
            "read",
            json!({"name": "long", "until": bench.text("go")}),
        );
        bench.wait_for("begin long");
        client.send(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 78}}));
        let began = Instant::now();
        while !bench
            .lines()
            .iter()
            .any(|line| line.windows(9).any(|part| part == b"cancelled"))
        {
            assert!(began.elapsed() < SOON, "the server is not told");
            std::thread::sleep(Duration::from_millis(2));
        }
        bench.go();
        client.close_input();
        assert_eq!(client.wait(), Some(0));
    }
}

/// A server by hand: what it answers to each request, in turn.
struct Fake {
    listener: TcpListener,
}

impl Fake {
    fn new() -> Self {
        Self {
            listener: TcpListener::bind("127.0.0.1:0").expect("a port"),
        }
    }

    fn url(&self) -> String {
        format!(
            "http://{}/sse",
            self.listener.local_addr().expect("an address")
        )
    }

    /// The next request: its first line, its body, and the connection.
    fn next(&self) -> (String, String, TcpStream) {
        let (stream, _) = self.listener.accept().expect("a connection");
        stream.set_read_timeout(Some(SOON)).expect("a timeout");
        let mut reader = BufReader::new(stream);
        let (mut first, mut length) = (String::new(), 0);
        reader.read_line(&mut first).expect("a request");
        loop {
            let mut line = String::new();
            reader.read_line(&mut line).expect("a header");
            if line == "\r\n" {
                break;
            }
            if let Some(text) = line.to_ascii_lowercase().strip_prefix("content-length: ") {
                length = text.trim().parse().expect("a length");
            }
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body).expect("a body");
        let body = String::from_utf8(body).expect("text");
        (first.trim_end().to_owned(), body, reader.into_inner())
    }

    /// Answers the next request, and closes its connection.
    fn answer(&self, status: &str) -> (String, Value) {
        let (first, body, mut stream) = self.next();
        let head = format!("HTTP/1.1 {status}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
        stream.write_all(head.as_bytes()).expect("sent");
        (first, serde_json::from_str(&body).unwrap_or_default())
    }

    /// Opens the stream with these events.
    fn stream(&self, events: &str) -> TcpStream {
        let (first, _, mut stream) = self.next();
        assert_eq!(first, "GET /sse HTTP/1.1");
        let head =
            "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n";
        stream
            .write_all(format!("{head}{events}").as_bytes())
            .expect("sent");
        stream
    }

    /// A stream, and the handshake on it.
    fn greet(&self) -> TcpStream {
        let mut stream = self.stream("event: endpoint\ndata: /m?s=1\n\n");
        let (first, message) = self.answer("202 Accepted");
        assert_eq!(
            (first.as_str(), &message["method"]),
            ("POST /m?s=1 HTTP/1.1", &json!("initialize"))
        );
        let result = json!({"protocolVersion": "2024-11-05", "capabilities": {}, "serverInfo": {"name": "f", "version": "1"}});
        say(
            &mut stream,
            &json!({"jsonrpc": "2.0", "id": message["id"], "result": result}),
        );
        stream
    }
}

fn say(stream: &mut TcpStream, message: &Value) {
    stream
        .write_all(format!("event: message\r\ndata: {message}\r\n\r\n").as_bytes())
        .expect("sent");
}

/// What is wrong, by the answer to the handshake.
fn asks(client: &mut Client) -> String {
    client.send(&initialize());
    let answer = client.message();
    assert_eq!(answer["id"], 0);
    answer["error"]["message"]
        .as_str()
        .expect("an error")
        .to_owned()
}

#[test]
fn a_stream_that_does_not_begin_as_it_should() {
    let elsewhere = TcpListener::bind("127.0.0.1:0").expect("a port");
    elsewhere.set_nonblocking(true).expect("set");
    let foreign = elsewhere.local_addr().expect("an address");
    let foreign = format!("event: endpoint\ndata: http://{foreign}/m\n\n");
    for (events, because) in [
        (foreign.as_str(), "leads elsewhere"),
        (
            "event: endpoint\ndata: //evil.example/m\n\n",
            "leads elsewhere",
        ),
        ("event: endpoint\ndata: http://[\n\n", "not an address"),
        (
            "data: {\"jsonrpc\":\"2.0\",\"id\":0,\"result\":{}}\n\n",
            "not `endpoint`",
        ),
        ("event: endpoint\n", "the stream ended"),
    ] {
        let bench = Bench::new();
        let fake = Fake::new();
        let headers = json!({"Authorization": "Bearer secret"});
        let mut client = in_front(
            &bench,
            &json!({"type": "sse", "url": fake.url(), "headers": headers}),
        );
        std::thread::scope(|scope| {
            scope.spawn(|| fake.stream(events));
            let text = asks(&mut client);
            assert!(text.contains(because), "{text}");
        });
    }
    // Nobody has followed it there.
    assert!(elsewhere.accept().is_err());

    // Whoever refuses both is told of both.
    let bench = Bench::new();
    let fake = Fake::new();
    let mut client = in_front(&bench, &json!({"url": fake.url()}));
    std::thread::scope(|scope| {
        scope.spawn(|| (fake.answer("400 Bad Request"), fake.answer("404 Not Found")));
        let text = asks(&mut client);
        assert!(
            text.contains("400 Bad Request") && text.contains("404 Not Found"),
            "{text}"
        );
    });
}

#[test]
fn a_server_that_never_says_where() {
    let bench = Bench::new();
    let fake = Fake::new();
    let mut client = in_front(&bench, &json!({"type": "sse", "url": fake.url()}));
    std::thread::scope(|scope| {
        let open = scope.spawn(|| fake.stream(": patience\n\n"));
        let began = Instant::now();
        client.send(&json!({"jsonrpc": "2.0", "id": 1, "method": "ping"}));
        client.send(&initialize());
        for id in [1, 0] {
            // Who came second does not wait as long again.
            let text = client.answer(id)["error"]["message"].to_string();
            assert!(text.contains("no `endpoint` event"), "{text}");
        }
        assert!(
            began.elapsed() < Duration::from_secs(20),
            "{:?}",
            began.elapsed()
        );
        open.join().expect("a stream");
    });
}

#[test]
fn a_stream_that_is_cut_in_a_call() {
    let bench = Bench::new();
    let fake = Fake::new();
    let mut client = in_front(&bench, &json!({"type": "sse", "url": fake.url()}));
    client.send(&initialize());
    let mut stream = fake.greet();
    assert_eq!(client.answer(0)["result"]["protocolVersion"], "2024-11-05");
    client.call(1, "write", json!({}));
    let (_, asked) = fake.answer("202 Accepted");
    assert_eq!(asked["method"], "tools/call");
    // Half an answer, and nothing more.
    stream
        .write_all(b"event: message\ndata: {\"jsonrpc\":\"2.0\",\"id\":1,")
        .expect("sent");
    drop(stream);
    let began = Instant::now();
    let answer = client.answer(1);
    assert_eq!(reason(&answer), "server-died");
    assert_eq!(
        answer["result"]["_meta"]["toctou/refusal"]["started"],
        "unknown"
    );
    assert!(
        began.elapsed() < Duration::from_secs(5),
        "{:?}",
        began.elapsed()
    );
    // A new stream, the handshake again, and not the call.
    let mut stream = fake.greet();
    client.send(&json!({"jsonrpc": "2.0", "id": 2, "method": "ping"}));
    let said = loop {
        // It may come before the handshake is over, and is told so.
        match client.line_within(Duration::from_millis(100)) {
            Some(_) => client.send(&json!({"jsonrpc": "2.0", "id": 2, "method": "ping"})),
            None => break fake.answer("202 Accepted").1,
        }
    };
    assert_eq!(said["method"], "ping");
    say(
        &mut stream,
        &json!({"jsonrpc": "2.0", "id": said["id"], "result": {}}),
    );
    assert_eq!(client.answer(2)["result"], json!({}));
    // The server takes no more messages: the caller is told by the status.
    client.send(&json!({"jsonrpc": "2.0", "id": 3, "method": "ping"}));
    fake.answer("404 Not Found");
    let text = client.answer(3)["error"]["message"].to_string();
    assert!(text.contains("404 Not Found"), "{text}");
}
