//! Servers for tests: small programs that read a line, do something and answer with a line.

#![allow(dead_code)]

use std::path::{Path, PathBuf};
use std::time::Duration;

use toctou_hold::{
    Event, Hold, Hooks, Launch, Limits, Point, Process, Sandbox, SandboxSpec, Scratch, Snapshot,
    Source, State, Supervisor,
};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, Lines};
use tokio::process::{ChildStdin, ChildStdout};
use tokio::time::timeout;

/// Far longer than anything here takes on a busy machine.
pub const PATIENCE: Duration = Duration::from_secs(30);
/// Long enough to be sure that something does not happen.
pub const MOMENT: Duration = Duration::from_millis(300);

pub fn servers() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/servers")
}

pub fn server(name: &str) -> String {
    servers().join(name).to_string_lossy().into_owned()
}

pub const SYSCALLS: Hooks = Hooks {
    syscalls: true,
    reads: false,
    awaits: false,
};

pub const AWAITS: Hooks = Hooks {
    syscalls: false,
    reads: false,
    awaits: true,
};

/// As the tests of this crate run their servers: the code may be below `/tmp`.
pub fn spec() -> SandboxSpec {
    SandboxSpec {
        readable: vec![servers()],
        ..SandboxSpec::default()
    }
}

pub fn sandbox(spec: &SandboxSpec, state: State) -> Sandbox {
    Sandbox::open(spec, state, &Supervisor::new()).expect("a sandbox")
}

pub fn fresh() -> State {
    Scratch::create()
        .and_then(|s| s.new_state())
        .expect("a state")
}

/// A server and a line to it.
pub struct Client {
    pub process: Process,
    stdin: ChildStdin,
    stdout: Lines<BufReader<ChildStdout>>,
}

impl Client {
    pub async fn start(sandbox: &Sandbox, argv: &[&str], hooks: Hooks) -> Self {
        let mut client = Self::start_quietly(sandbox, argv, hooks).await;
        assert_eq!(client.process.blind(), None);
        assert_eq!(client.line().await, "ready");
        client
    }

    /// Without waiting for it to be ready.
    pub async fn start_quietly(sandbox: &Sandbox, argv: &[&str], hooks: Hooks) -> Self {
        let launch = Launch {
            argv: argv.iter().map(Into::into).collect(),
            hooks,
            ..Launch::default()
        };
        let mut process = sandbox.launch(&launch).await.expect("a process");
        let stderr = process.stderr.take().expect("a pipe");
        tokio::spawn(async move {
            let mut lines = BufReader::new(stderr).lines();
            while let Ok(Some(line)) = lines.next_line().await {
                eprintln!("server: {line}");
            }
        });
        Self {
            stdin: process.stdin.take().expect("a pipe"),
            stdout: BufReader::new(process.stdout.take().expect("a pipe")).lines(),
            process,
        }
    }

    pub async fn send(&mut self, line: &str) {
        let line = format!("{line}\n");
        self.stdin
            .write_all(line.as_bytes())
            .await
            .expect("a reader");
    }

    pub async fn line(&mut self) -> String {
        let line = timeout(PATIENCE, self.stdout.next_line()).await;
        line.expect("an answer in time")
            .expect("a pipe")
            .expect("an answer")
    }

    /// Whether there is an answer already, or soon.
    pub async fn line_soon(&mut self) -> Option<String> {
        let line = timeout(MOMENT, self.stdout.next_line()).await.ok()?;
        line.expect("a pipe")
    }

    pub async fn ask(&mut self, line: &str) -> String {
        self.send(line).await;
        self.line().await
    }
}

/// What a call does, by letting it run.
pub async fn record(client: &mut Client, sandbox: &Sandbox, call: &str) -> Vec<Event> {
    let supervisor = sandbox.supervisor();
    let mark = supervisor.mark();
    client.ask(call).await;
    supervisor.events_since(mark)
}

pub fn points(events: &[Event]) -> u32 {
    events.iter().filter(|e| e.class.is_point()).count() as u32
}

pub fn point(client: &Client, source: Source, nth: u32) -> Point {
    Point {
        source,
        process: client.process.id(),
        nth,
        only: None,
    }
}

pub async fn held(hold: &mut Hold) -> Event {
    let event = timeout(PATIENCE, hold.held()).await;
    event.expect("held in time").expect("a process that lives")
}

pub fn snapshot(state: &State) -> Snapshot {
    state.snapshot(&Limits::default()).expect("a snapshot")
}

pub fn content(state: &State, key: &str) -> String {
    let snapshot = snapshot(state);
    let entry = snapshot.entries.get(key).unwrap_or_else(|| {
        panic!(
            "no {key} among {:?}",
            snapshot.entries.keys().collect::<Vec<_>>()
        )
    });
    String::from_utf8(entry.bytes().expect("a file").to_vec()).expect("text")
}
