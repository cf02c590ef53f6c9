//! `toctou mcp`: an MCP server, so that an agent can check the server it is writing.
//!
//! One thread reads, a few work, and a lock is held while an answer is written.
//! A call has everything it needs for itself; what calls share (which of them
//! can be taken back) is touched under one lock, in one step. The framing is
//! the guard's.

mod roots;
mod tools;

use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::{Value, json};
use toctou_guard::wire::{self, Code, Fault, Kind, Limits, Lines, Message, Parsed};

use crate::cli::McpArgs;
use crate::errors::Error;
use crate::terminal;
use roots::Roots;

/// Calls that run at a time (a scan uses all cores), and calls that wait.
const WORKERS: usize = 2;
const QUEUE: usize = 64;

/// Revisions with `initialize`, newest first, and the one without.
const VERSIONS: &[&str] = &["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];
const STATELESS: &str = "2026-07-28";

const INSTRUCTIONS: &str = "Finds race conditions in the source of MCP servers. Call `scan` after changing a server, \
    `explain` for what a rule means and how to fix it, `prove_status` for what a run of `toctou prove` has shown.";

const LIMITS: Limits = Limits {
    bytes: 1 << 20,
    depth: 64,
    batch: 1,
};

pub(crate) fn run(args: &McpArgs) -> Result<(), Error> {
    let roots = Roots::new(&args.roots)?;
    if terminal::is_stdin_terminal() {
        terminal::to_stderr(
            "toctou speaks the Model Context Protocol on standard input and output; an agent starts it (docs/editor.md)\n",
        );
    }
    let (jobs, queue) = sync_channel(QUEUE);
    let queue = Mutex::new(queue);
    let calls = Calls::default();
    std::thread::scope(|scope| {
        for _ in 0..WORKERS {
            scope.spawn(|| work(&queue, &roots, &calls));
        }
        // Dropped at its end: the workers finish what is there, and end too.
        Server {
            jobs,
            calls: &calls,
        }
        .listen()
    })
}

/// A call that waits for a worker.
struct Job {
    /// As it was sent.
    id: String,
    tool: &'static tools::Tool,
    arguments: Value,
    stop: Arc<AtomicBool>,
}

/// Calls that are not answered yet.
#[derive(Default)]
struct Calls(Mutex<BTreeMap<String, Arc<AtomicBool>>>);

impl Calls {
    /// Nothing if there is one with this id already.
    fn begin(&self, id: &str) -> Option<Arc<AtomicBool>> {
        let stop = Arc::new(AtomicBool::new(false));
        match self.lock().entry(id.to_owned()) {
            std::collections::btree_map::Entry::Occupied(_) => None,
            std::collections::btree_map::Entry::Vacant(free) => Some(Arc::clone(free.insert(stop))),
        }
    }

    fn end(&self, id: &str) {
        self.lock().remove(id);
    }

    fn cancel(&self, id: &str) {
        if let Some(stop) = self.lock().get(id) {
            stop.store(true, Ordering::Relaxed);
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeMap<String, Arc<AtomicBool>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn work(queue: &Mutex<Receiver<Job>>, roots: &Roots, calls: &Calls) {
    loop {
        let next = queue.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(job) = next else {
            return;
        };
        let result = (job.tool.call)(roots, &job.arguments, &job.stop);
        calls.end(&job.id);
        // One that was taken back is not answered.
        if !job.stop.load(Ordering::Relaxed) {
            answer(&wire::result(&job.id, &result.to_string()));
        }
    }
}

/// A line at a time, whole. An agent that is gone needs no answer.
fn answer(message: &[u8]) {
    let mut stdout = std::io::stdout().lock();
    let _ = stdout
        .write_all(message)
        .and_then(|()| stdout.write_all(b"\n"))
        .and_then(|()| stdout.flush());
}

struct Server<'a> {
    jobs: SyncSender<Job>,
    calls: &'a Calls,
}

impl Server<'_> {
    fn listen(&self) -> Result<(), Error> {
        let mut lines = Lines::new(LIMITS.bytes);
        let mut stdin = std::io::stdin().lock();
        let mut chunk = vec![0; 16 << 10];
        loop {
            let read = stdin.read(&mut chunk).map_err(|error| Error::Read {
                path: "standard input".into(),
                error,
            })?;
            lines.room().extend_from_slice(&chunk[..read]);
            while let Some(line) = lines.next_line() {
                match line {
                    Ok(line) => self.message(&line),
                    Err(error) => {
                        answer(&wire::error(None, Code::InvalidRequest, &error.to_string()));
                    }
                }
            }
            if read == 0 {
                if let Some(line) = lines.rest() {
                    self.message(&line);
                }
                return Ok(());
            }
        }
    }

    fn message(&self, line: &[u8]) {
        match wire::parse(line, &LIMITS) {
            Ok(Parsed::One(message)) => match message.kind {
                Kind::Request => self.request(&message),
                Kind::Notification => self.notification(&message),
                Kind::Response => {}
            },
            Ok(Parsed::Batch(_)) => {
                let text = "one message at a time";
                answer(&wire::error(None, Code::InvalidRequest, text));
            }
            Err(fault) => {
                let code = match fault {
                    Fault::Syntax(_) => Code::Parse,
                    _ => Code::InvalidRequest,
                };
                answer(&wire::error(None, code, &fault.to_string()));
            }
        }
    }

    fn notification(&self, message: &Message<'_>) {
        if message.method == "notifications/cancelled"
            && let Ok(params) = message.params()
            && let Some(id) = params.request_id
        {
            self.calls.cancel(id.get());
        }
    }

    fn request(&self, message: &Message<'_>) {
        let id = message.raw_id.map_or("null", |id| id.get());
        let result = match &*message.method {
            "initialize" => initialize(message),
            "server/discover" => discover(),
            "ping" => json!({}),
            "tools/list" => tools::list(),
            "tools/call" => return self.call(id, message),
            method => {
                let text = format!("there is no `{method}` here");
                return answer(&wire::error(Some(id), Code::MethodNotFound, &text));
            }
        };
        answer(&wire::result(id, &result.to_string()));
    }

    fn call(&self, id: &str, message: &Message<'_>) {
        let refuse = |code, text: &str| answer(&wire::error(Some(id), code, text));
        let params = match message.params() {
            Ok(params) => params,
            Err(fault) => return refuse(Code::InvalidParams, &fault.to_string()),
        };
        let name = params.name.unwrap_or_default();
        let Some(tool) = tools::TOOLS.iter().find(|tool| tool.name == name) else {
            return refuse(Code::InvalidParams, &format!("there is no tool `{name}`"));
        };
        let arguments = match params.arguments.map(|raw| serde_json::from_str(raw.get())) {
            None => json!({}),
            Some(Ok(Value::Object(arguments))) => Value::Object(arguments),
            Some(_) => return refuse(Code::InvalidParams, "`arguments` is not an object"),
        };
        let Some(stop) = self.calls.begin(id) else {
            return refuse(Code::InvalidRequest, "a call with this id is under way");
        };
        let job = Job {
            id: id.to_owned(),
            tool,
            arguments,
            stop,
        };
        if let Err(TrySendError::Full(job) | TrySendError::Disconnected(job)) =
            self.jobs.try_send(job)
        {
            self.calls.end(&job.id);
            refuse(Code::TooManyRequests, "too many calls wait already");
        }
    }
}

fn info() -> Value {
    json!({ "name": "toctou", "title": "toctou", "version": env!("CARGO_PKG_VERSION") })
}

fn initialize(message: &Message<'_>) -> Value {
    let asked = message
        .params
        .and_then(|params| serde_json::from_str::<Value>(params.get()).ok());
    let asked = asked
        .as_ref()
        .and_then(|params| params["protocolVersion"].as_str());
    let version = VERSIONS
        .iter()
        .find(|version| asked == Some(**version))
        .unwrap_or(&VERSIONS[0]);
    json!({
        "protocolVersion": version,
        "capabilities": { "tools": {} },
        "serverInfo": info(),
        "instructions": INSTRUCTIONS,
    })
}

fn discover() -> Value {
    let versions: Vec<&str> = std::iter::once(&STATELESS)
        .chain(VERSIONS)
        .copied()
        .collect();
    json!({
        "resultType": "complete",
        "supportedVersions": versions,
        "capabilities": { "tools": {} },
        "instructions": INSTRUCTIONS,
        "ttlMs": 3_600_000,
        "cacheScope": "public",
        "_meta": { "io.modelcontextprotocol/serverInfo": info() },
    })
}
