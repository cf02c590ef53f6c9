//! What a server behind HTTP sees in the headers of revision 2026-07-28.

mod common;

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use common::http::Guard;
use common::{Bench, Client, example};
use serde_json::{Value, json};

/// Headers by lower-case name, and the message.
type Seen = (Vec<(String, String)>, Value);

/// A server that is strict about headers, and slow to list its tools.
struct Upstream {
    address: String,
    seen: Arc<Mutex<Vec<Seen>>>,
}

impl Upstream {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address").to_string();
        let seen = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&seen);
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let seen = Arc::clone(&kept);
                std::thread::spawn(move || serve(stream, &seen));
            }
        });
        Self { address, seen }
    }

    /// The headers of the request with this in its arguments.
    fn headers(&self, name: &str) -> Vec<(String, String)> {
        let seen = self.seen.lock().expect("requests");
        let mut found = seen
            .iter()
            .filter(|(_, body)| body["params"]["arguments"]["name"] == name);
        let (headers, _) = found
            .next()
            .unwrap_or_else(|| panic!("no {name}: {seen:?}"));
        assert!(found.next().is_none(), "{name} was sent twice");
        headers.clone()
    }
}

fn serve(stream: TcpStream, seen: &Mutex<Vec<Seen>>) {
    let mut output = stream.try_clone().expect("a socket");
    let mut input = BufReader::new(stream);
    loop {
        let (mut headers, mut length, mut line) = (Vec::new(), 0, String::new());
        loop {
            line.clear();
            if input.read_line(&mut line).unwrap_or(0) == 0 {
                return;
            }
            if line == "\r\n" {
                break;
            }
            if let Some((name, value)) = line.trim_end().split_once(": ") {
                let name = name.to_ascii_lowercase();
                if name == "content-length" {
                    length = value.parse().expect("a length");
                }
                headers.push((name, value.to_owned()));
            }
        }
        let mut body = vec![0; length];
        input.read_exact(&mut body).expect("a body");
        let message: Value = serde_json::from_slice(&body).expect("JSON");
        let answer = answer(&headers, &message);
        seen.lock().expect("requests").push((headers, message));
        let status = if answer.get("error").is_some() {
            "400 Bad Request"
        } else {
            "200 OK"
        };
        let answer = answer.to_string();
        let head = format!(
            "HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n",
            answer.len()
        );
        if output.write_all((head + &answer).as_bytes()).is_err() {
            return;
        }
    }
}

fn answer(headers: &[(String, String)], message: &Value) -> Value {
    let header = |name: &str| {
        let mut found = headers.iter().filter(|(other, _)| other == name);
        let value = found.next().map(|(_, value)| value.as_str());
        value.filter(|_| found.next().is_none())
    };
    let arguments = &message["params"]["arguments"];
    let wrong = header("mcp-protocol-version") != Some("2026-07-28")
        || header("mcp-method") != message["method"].as_str()
        || (message["method"] == "tools/call"
            && (header("mcp-name") != message["params"]["name"].as_str()
                || header("mcp-param-region").is_some() != arguments["region"].is_string()));
    if wrong {
        return json!({"jsonrpc": "2.0", "id": message["id"],
            "error": {"code": -32020, "message": format!("Header mismatch: {headers:?}")}});
    }
    let result = match message["method"].as_str() {
        Some("tools/list") => {
            std::thread::sleep(Duration::from_millis(200));
            json!({"resultType": "complete", "tools": [{"name": "plain", "inputSchema": {"type": "object", "properties": {
                "region": {"type": "string", "x-mcp-header": "Region"},
                "to": {"type": "object", "properties": {"id": {"type": "integer", "x-mcp-header": "Id"}}}}}}]})
        }
        _ => json!({"resultType": "complete", "content": []}),
    };
    json!({"jsonrpc": "2.0", "id": message["id"], "result": result})
}

fn call(id: u64, arguments: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {
        "name": "plain", "arguments": arguments, "_meta": {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": {"name": "t", "version": "1"},
            "io.modelcontextprotocol/clientCapabilities": {}}}})
}

/// Calls with marked arguments, and the headers that the server must see.
fn cases() -> [(Value, &'static [(&'static str, &'static str)]); 4] {
    [
        // The first one comes before the list of tools is known.
        (
            json!({"name": "first", "region": "eu", "to": {"id": 42}}),
            &[("mcp-param-id", "42"), ("mcp-param-region", "eu")],
        ),
        (json!({"name": "none"}), &[]),
        (
            json!({"name": "wide", "region": "\u{fc}ber"}),
            &[("mcp-param-region", "=?base64?w7xiZXI=?=")],
        ),
        // Not a way to add a header.
        (
            json!({"name": "lines", "region": "eu\r\nX-Evil: 1"}),
            &[("mcp-param-region", "=?base64?ZXUNClgtRXZpbDogMQ==?=")],
        ),
    ]
}

fn check(upstream: &Upstream) {
    for (arguments, wanted) in cases() {
        let name = arguments["name"].as_str().expect("a name");
        let headers = upstream.headers(name);
        let mut params: Vec<(&str, &str)> = headers
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()))
            .filter(|(name, _)| name.starts_with("mcp-param-") || *name == "x-evil")
            .collect();
        params.sort_unstable();
        assert_eq!(params, wanted, "{name}");
        for (header, value) in [
            ("mcp-protocol-version", "2026-07-28"),
            ("mcp-method", "tools/call"),
            ("mcp-name", "plain"),
            ("content-type", "application/json"),
            ("accept", "application/json, text/event-stream"),
            ("x-tenant", "blue"),
        ] {
            let found: Vec<_> = headers.iter().filter(|(name, _)| name == header).collect();
            assert_eq!(found.len(), 1, "{header}: {headers:?}");
            assert_eq!(found[0].1, value, "{header}");
        }
    }
}

/// A guard's configuration with this server behind it.
fn servers(bench: &Bench, upstream: &Upstream) -> String {
    let file = json!({"mcpServers": {"far": {
        "url": format!("http://{}/mcp", upstream.address), "headers": {"X-Tenant": "blue"}}}});
    std::fs::write(bench.path("mcp.json"), file.to_string()).expect("a file");
    bench.text("mcp.json")
}

#[test]
fn a_client_on_standard_input_has_no_headers() {
    let (bench, upstream) = (Bench::new(), Upstream::start());
    bench.policy("");
    let mut command = Command::new(example("guard"));
    command
        .args(["--policy", &bench.text("guard.toml")])
        .args(["--servers", &servers(&bench, &upstream)]);
    let mut client = Client::start(command);
    for (id, (arguments, _)) in (1..).zip(cases()) {
        client.send(&call(id, &arguments));
        let answer = client.answer(id);
        assert!(answer.get("result").is_some(), "{answer}");
    }
    check(&upstream);
}

#[test]
fn a_client_by_http() {
    let (bench, upstream) = (Bench::new(), Upstream::start());
    let guard = Guard::start(&bench, &["--servers", &servers(&bench, &upstream)]);
    for (id, (arguments, params)) in (1..).zip(cases()) {
        let mut headers = vec![
            ("MCP-Protocol-Version", "2026-07-28"),
            ("Mcp-Method", "tools/call"),
            ("Mcp-Name", "plain"),
        ];
        headers.extend_from_slice(params);
        let body = call(id, &arguments).to_string();
        let answer = guard.send("POST", "/far", &headers, &body);
        let status = answer.status;
        assert_eq!(status, 200, "{}", answer.body());
    }
    check(&upstream);
}
