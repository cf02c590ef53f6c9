//! HTTP by hand, so that a test can send what no client would.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};

use super::{Bench, SOON, example};

pub struct Guard {
    pub child: Child,
    pub address: String,
}

impl Guard {
    pub fn start(bench: &Bench, options: &[&str]) -> Self {
        if !bench.path("guard.toml").exists() {
            bench.policy("");
        }
        let mut command = Command::new(example("guard"));
        command
            .arg("--policy")
            .arg(bench.path("guard.toml"))
            .args(["--listen", "127.0.0.1:0"])
            .args(options);
        if !options.contains(&"--servers") {
            command
                .arg("--")
                .arg(example("server"))
                .arg(bench.path("events"));
        }
        Self::run(command)
    }

    pub fn run(mut command: Command) -> Self {
        let mut child = command
            .stdin(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("a guard");
        let mut lines = BufReader::new(child.stderr.take().expect("errors")).lines();
        let address = loop {
            let line = lines.next().expect("a line before the end").expect("text");
            match serde_json::from_str::<Value>(&line) {
                Ok(line) if line["event"] == "listening" => {
                    break line["address"].as_str().expect("text").to_owned();
                }
                _ => eprintln!("{line}"),
            }
        };
        std::thread::spawn(move || {
            lines
                .map_while(Result::ok)
                .for_each(|line| eprintln!("{line}"))
        });
        Self { child, address }
    }

    pub fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(&self.address).expect("a connection");
        stream.set_read_timeout(Some(SOON)).expect("a timeout");
        stream
    }

    /// Sends a request; the answer is to be read.
    pub fn send(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Answer {
        let mut stream = self.connect();
        let mut head = format!(
            "{method} {path} HTTP/1.1\r\nContent-Length: {}\r\n",
            body.len()
        );
        let default = [
            ("Host", "localhost"),
            ("Content-Type", "application/json"),
            ("Accept", "application/json, text/event-stream"),
        ];
        for (name, value) in default.iter().chain(headers) {
            let replaced = headers
                .iter()
                .any(|(other, _)| other.eq_ignore_ascii_case(name));
            if !replaced || headers.contains(&(*name, *value)) {
                head.push_str(&format!("{name}: {value}\r\n"));
            }
        }
        stream
            .write_all(format!("{head}\r\n{body}").as_bytes())
            .expect("sent");
        Answer::read(stream)
    }

    pub fn post(&self, headers: &[(&str, &str)], body: &Value) -> Answer {
        self.send("POST", "/mcp", headers, &body.to_string())
    }

    /// Begins a session of the older revisions.
    pub fn session(&self) -> String {
        let answer = self.post(&[], &json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
            "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}}));
        let session = answer
            .header("mcp-session-id")
            .expect("a session")
            .to_owned();
        assert_eq!(answer.json()["result"]["protocolVersion"], "2025-11-25");
        let done = self.post(
            &[("Mcp-Session-Id", &session)],
            &json!({"jsonrpc": "2.0", "method": "notifications/initialized"}),
        );
        assert_eq!(done.status, 202);
        session
    }

    pub fn stop(&mut self) -> Option<i32> {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).expect("alive");
        self.child.wait().expect("an end").code()
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(None)) {
            self.stop();
        }
    }
}

/// A free port for `--metrics`.
pub fn free_address() -> String {
    std::net::TcpListener::bind("127.0.0.1:0")
        .and_then(|listener| listener.local_addr())
        .expect("a port")
        .to_string()
}

/// What Prometheus would read there.
pub fn metrics(address: &str) -> String {
    let mut stream = TcpStream::connect(address).expect("a connection");
    stream
        .write_all(b"GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        .expect("sent");
    Answer::read(stream).body()
}

pub struct Answer {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub stream: BufReader<TcpStream>,
}

impl Answer {
    pub fn read(stream: TcpStream) -> Self {
        let mut stream = BufReader::new(stream);
        let mut line = String::new();
        stream.read_line(&mut line).expect("a status");
        let status = line
            .split(' ')
            .nth(1)
            .and_then(|status| status.parse().ok())
            .unwrap_or(0);
        let mut headers = Vec::new();
        loop {
            line.clear();
            if stream.read_line(&mut line).expect("a header") == 0 || line == "\r\n" {
                break;
            }
            let (name, value) = line.trim_end().split_once(": ").expect("a header");
            headers.push((name.to_ascii_lowercase(), value.to_owned()));
        }
        Self {
            status,
            headers,
            stream,
        }
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers
            .iter()
            .find(|(other, _)| other == name)
            .map(|(_, value)| value.as_str())
    }

    pub fn body(mut self) -> String {
        let length = self
            .header("content-length")
            .and_then(|length| length.parse().ok())
            .expect("a length");
        let mut body = vec![0; length];
        self.stream.read_exact(&mut body).expect("a body");
        String::from_utf8(body).expect("text")
    }

    pub fn json(self) -> Value {
        assert_eq!(self.header("content-type"), Some("application/json"));
        serde_json::from_str(&self.body()).expect("JSON")
    }

    /// The next event of a stream: its id and its message. `None` at its end.
    pub fn event(&mut self) -> Option<(String, Value)> {
        let (id, data) = self.data()?;
        Some((id, serde_json::from_str(&data).expect("JSON")))
    }

    /// The next event of a stream: its id and its data.
    pub fn data(&mut self) -> Option<(String, String)> {
        let (mut id, mut line) = (String::new(), String::new());
        loop {
            line.clear();
            if self.stream.read_line(&mut line).expect("an event") == 0 || line == "0\r\n" {
                return None;
            }
            if let Some(text) = line.strip_prefix("id: ") {
                id = text.trim_end().to_owned();
            } else if let Some(text) = line.strip_prefix("data: ") {
                return Some((id, text.trim_end().to_owned()));
            }
        }
    }
}
