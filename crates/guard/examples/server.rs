//! A server for the tests: every call runs in a thread of its own, and what
//! begins and ends is written to a file, so that a test can see what overlaps.
//!
//! `server EVENTS`: the file gets a line for every message read (`line …`), and
//! for every call that begins and ends (`begin NAME`, `end NAME`).

use std::fs::OpenOptions;
use std::io::{BufRead as _, Write as _};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};

struct Server {
    events: String,
    output: Mutex<std::io::Stdout>,
}

fn main() {
    let events = std::env::args().nth(1).expect("a file for events");
    let server = Arc::new(Server {
        events,
        output: Mutex::new(std::io::stdout()),
    });
    server.event(&format!("start {}", std::process::id()));
    for line in std::io::stdin().lock().split(b'\n') {
        let line = line.expect("input");
        server.event_bytes(&[b"line ", line.as_slice()].concat());
        let Ok(message) = serde_json::from_slice::<Value>(&line) else {
            continue;
        };
        let server = Arc::clone(&server);
        match message["method"].as_str() {
            Some("tools/call") => {
                std::thread::spawn(move || server.call(&message));
            }
            Some("initialize") if message["params"]["protocolVersion"] == "none" => server.write(
                &json!({"jsonrpc": "2.0", "id": message["id"], "error": {"code": -32602, "message": "no"}})
                    .to_string(),
            ),
            Some("initialize") => server.answer(
                &message["id"],
                &json!({"protocolVersion": message["params"]["protocolVersion"], "capabilities": {"tools": {}},
                    "serverInfo": {"name": "test", "version": "1"}}),
            ),
            Some("tools/list") => server.answer(&message["id"], &tools()),
            Some("ping") => server.answer(&message["id"], &json!({})),
            Some("raw") => {
                // Writes its parameter as it is, as an answer or whatever else it is.
                let text = message["params"]["text"].as_str().unwrap_or_default();
                server.write(text);
            }
            _ => {}
        }
    }
    server.event("eof");
}

fn tools() -> Value {
    let tool = |name: &str, read_only: bool| {
        json!({"name": name, "inputSchema": {"type": "object", "properties": {"name": {}, "key": {}}},
            "annotations": {"readOnlyHint": read_only}})
    };
    json!({"tools": [tool("write", false), tool("read", true), tool("task", false), 
        {"name": "plain", "inputSchema": {"properties": {"region": {"type": "string", "x-mcp-header": "Region"}}}}]})
}

impl Server {
    fn event(&self, text: &str) {
        self.event_bytes(text.as_bytes());
    }

    fn event_bytes(&self, bytes: &[u8]) {
        let mut file = OpenOptions::new()
            .create(true)
            .append(true)
            .open(&self.events)
            .expect("events");
        file.write_all(&[bytes, b"\n"].concat()).expect("events");
    }

    fn write(&self, text: &str) {
        let mut output = self.output.lock().expect("output");
        let _ = writeln!(output, "{text}").and_then(|()| output.flush());
    }

    fn answer(&self, id: &Value, result: &Value) {
        self.write(&format!(
            "{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{result}}}"
        ));
    }

    /// Arguments: `name` for the events, `ms` to sleep or `until` a file to
    /// wait for, and `then`: what to do at the end.
    fn call(&self, message: &Value) {
        let arguments = &message["params"]["arguments"];
        let name = arguments["name"].as_str().unwrap_or("call").to_owned();
        self.event(&format!("begin {name}"));
        if let Some(token) = message["params"]["_meta"].get("progressToken") {
            self.write(
                &json!({"jsonrpc": "2.0", "method": "notifications/progress",
                "params": {"progressToken": token, "progress": 1}})
                .to_string(),
            );
        }
        if let Some(path) = arguments["until"].as_str() {
            while !Path::new(path).exists() {
                std::thread::sleep(Duration::from_millis(2));
            }
        }
        std::thread::sleep(Duration::from_millis(arguments["ms"].as_u64().unwrap_or(0)));
        if let Some(path) = arguments["count"].as_str() {
            // The race that all this is about.
            let count: u64 = std::fs::read_to_string(path)
                .ok()
                .and_then(|text| text.parse().ok())
                .unwrap_or(0);
            std::thread::sleep(Duration::from_millis(1));
            std::fs::write(path, (count + 1).to_string()).expect("a counter");
        }
        self.event(&format!("end {name}"));
        let id = &message["id"];
        match arguments["then"].as_str() {
            Some("crash") => std::process::exit(7),
            Some("silence") => {}
            Some("fail") => self.answer(id, &json!({"content": [], "isError": true})),
            Some("task") => {
                self.answer(id, &json!({"task": {"taskId": name, "status": "working"}}))
            }
            Some("flood") => {
                for n in 0..20_000 {
                    self.answer(&json!(1_000_000 + n), &json!({"stray": "x".repeat(200)}));
                    self.write("this is not a message");
                }
                self.answer(id, &json!({"content": []}));
            }
            _ => self.answer(id, &json!({"content": [{"type": "text", "text": name}]})),
        }
    }
}
