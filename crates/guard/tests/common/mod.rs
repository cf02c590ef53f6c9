//! Real processes: a client, the guard, a server.

#![allow(dead_code)] // every test binary has a part of its own in use
#![allow(unreachable_pub)]

pub mod http;
pub mod inner;

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

/// Long enough for a machine that is busy with other tests.
pub const SOON: Duration = Duration::from_secs(30);

/// Examples are built with the tests, next to them.
pub fn example(name: &str) -> PathBuf {
    let test = std::env::current_exe().expect("a test");
    let folder = test.parent().and_then(Path::parent).expect("a folder");
    let path = folder.join("examples").join(name);
    assert!(
        path.exists(),
        "{} is not built: run `cargo build --examples`",
        path.display()
    );
    path
}

/// A folder with the events of a server, a policy, and locks of its own.
pub struct Bench {
    folder: tempfile::TempDir,
}

impl Bench {
    pub fn new() -> Self {
        Self {
            folder: tempfile::tempdir().expect("a folder"),
        }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn text(&self, name: &str) -> String {
        self.path(name).display().to_string()
    }

    /// A policy, with locks that no other test sees.
    pub fn policy(&self, text: &str) -> &Self {
        self.policy_on(&format!("host:{}", self.text("locks")), text)
    }

    /// A policy with locks somewhere else.
    pub fn policy_on(&self, backend: &str, text: &str) -> &Self {
        let text = format!("backend = \"{backend}\"\n{text}");
        std::fs::write(self.path("guard.toml"), text).expect("a policy");
        self
    }

    /// Lets calls end that wait for the file `go`.
    pub fn go(&self) {
        std::fs::write(self.path("go"), "").expect("a file");
    }

    /// How often an event was seen.
    pub fn count(&self, event: &str) -> usize {
        self.events().iter().filter(|line| *line == event).count()
    }

    /// What calls with `count` have counted.
    pub fn counted(&self) -> String {
        std::fs::read_to_string(self.path("counter")).expect("a counter")
    }

    pub fn guard(&self) -> Client {
        self.guard_with(&[])
    }

    pub fn guard_with(&self, options: &[&str]) -> Client {
        Client::start(self.command(options))
    }

    /// What starts a guard in front of the server.
    pub fn command(&self, options: &[&str]) -> Command {
        if !self.path("guard.toml").exists() {
            self.policy("");
        }
        let mut command = Command::new(example("guard"));
        command
            .arg("--policy")
            .arg(self.path("guard.toml"))
            .args(options)
            .arg("--");
        command.arg(example("server")).arg(self.path("events"));
        command
    }

    pub fn events(&self) -> Vec<String> {
        let bytes = std::fs::read(self.path("events")).unwrap_or_default();
        let text = String::from_utf8_lossy(&bytes).into_owned();
        text.lines()
            .filter(|line| !line.starts_with("line "))
            .map(str::to_owned)
            .collect()
    }

    /// Waits for an event.
    pub fn wait_for(&self, event: &str) {
        let began = Instant::now();
        while !self.events().iter().any(|line| line == event) {
            assert!(
                began.elapsed() < SOON,
                "no {event:?} in {:?}",
                self.events()
            );
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    /// Lines that servers have read.
    pub fn lines(&self) -> Vec<Vec<u8>> {
        let bytes = std::fs::read(self.path("events")).unwrap_or_default();
        bytes
            .split(|byte| *byte == b'\n')
            .filter_map(|line| line.strip_prefix(b"line ").map(<[u8]>::to_vec))
            .collect()
    }

    /// The largest number of calls that ran at once.
    pub fn most_at_once(&self) -> usize {
        let (mut now, mut most) = (0_usize, 0);
        for event in self.events() {
            if event.starts_with("begin ") {
                now += 1;
                most = most.max(now);
            } else if event.starts_with("end ") {
                now -= 1;
            }
        }
        most
    }
}

/// One that speaks to a guard.
pub struct Client {
    pub child: Child,
    stdin: Option<ChildStdin>,
    lines: mpsc::Receiver<Vec<u8>>,
}

impl Client {
    pub fn start(mut command: Command) -> Self {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .spawn()
            .expect("a guard");
        let stdout = BufReader::new(child.stdout.take().expect("output"));
        let (sender, lines) = mpsc::channel();
        std::thread::spawn(move || {
            for line in stdout.split(b'\n').map_while(Result::ok) {
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        Self {
            stdin: child.stdin.take(),
            child,
            lines,
        }
    }

    pub fn send_bytes(&mut self, bytes: &[u8]) {
        let stdin = self.stdin.as_mut().expect("not closed");
        stdin
            .write_all(bytes)
            .and_then(|()| stdin.write_all(b"\n"))
            .and_then(|()| stdin.flush())
            .expect("sent");
    }

    pub fn send(&mut self, message: &Value) {
        self.send_bytes(message.to_string().as_bytes());
    }

    /// The handshake, up to the moment when the tools are known to the guard.
    pub fn initialize(&mut self) -> &mut Self {
        self.send(&json!({"jsonrpc": "2.0", "id": "init", "method": "initialize", "params": {
            "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}}));
        self.answer("init");
        self.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        // The server answers in order: behind this answer the list is known.
        self.send(&json!({"jsonrpc": "2.0", "id": "ping", "method": "ping"}));
        self.answer("ping");
        self
    }

    pub fn call(&mut self, id: impl Into<Value>, tool: &str, arguments: Value) {
        self.send(
            &json!({"jsonrpc": "2.0", "id": id.into(), "method": "tools/call",
            "params": {"name": tool, "arguments": arguments}}),
        );
    }

    /// Calls, and waits for the answer.
    pub fn ask(&mut self, id: impl Into<Value>, tool: &str, arguments: Value) -> Value {
        let id = id.into();
        self.call(id.clone(), tool, arguments);
        self.answer(id)
    }

    pub fn cancel(&mut self, id: impl Into<Value>) {
        self.send(
            &json!({"jsonrpc": "2.0", "method": "notifications/cancelled",
            "params": {"requestId": id.into()}}),
        );
    }

    pub fn line(&self) -> Vec<u8> {
        self.lines.recv_timeout(SOON).expect("a message in time")
    }

    pub fn line_within(&self, time: Duration) -> Option<Vec<u8>> {
        self.lines.recv_timeout(time).ok()
    }

    pub fn message(&self) -> Value {
        serde_json::from_slice(&self.line()).expect("JSON")
    }

    /// The answer with this id; others on the way are dropped.
    pub fn answer(&self, id: impl Into<Value>) -> Value {
        let id = id.into();
        loop {
            let message = self.message();
            if message["id"] == id && message.get("method").is_none() {
                return message;
            }
        }
    }

    pub fn answers(&self, count: usize) -> Vec<Value> {
        (0..count).map(|_| self.message()).collect()
    }

    pub fn close_input(&mut self) {
        self.stdin = None;
    }

    pub fn signal(&self, signal: rustix::process::Signal) {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, signal).expect("alive");
    }

    pub fn wait(&mut self) -> Option<i32> {
        let began = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().expect("a child") {
                return status.code();
            }
            assert!(began.elapsed() < SOON, "the guard does not end");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Everything that is left to read.
    pub fn rest(&self) -> Vec<Value> {
        std::iter::from_fn(|| self.lines.recv_timeout(Duration::from_secs(5)).ok())
            .map(|line| serde_json::from_slice(&line).expect("JSON"))
            .collect()
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        self.stdin = None;
        let began = Instant::now();
        while began.elapsed() < Duration::from_secs(2) {
            if matches!(self.child.try_wait(), Ok(Some(_))) {
                return;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Why a call was refused.
pub fn reason(answer: &Value) -> &str {
    answer["result"]["_meta"]["toctou/refusal"]["reason"]
        .as_str()
        .unwrap_or("not refused")
}

pub fn is_alive(pid: &str) -> bool {
    // A zombie is not alive: its parent is init here, or the test.
    let status = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    !status.is_empty() && !status.contains(") Z ")
}
