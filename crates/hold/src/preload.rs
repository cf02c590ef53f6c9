//! Holds Node and Python at completions, by a small program that runs inside the server.
//!
//! The program is found by environment variables (`NODE_OPTIONS`, `PYTHONPATH`), connects to a
//! Unix socket, and asks before it delivers the result of asynchronous work: one line of JSON for
//! each, answered by a line with its number. What is not answered waits, and the event loop goes
//! on. If the socket closes, everything is delivered.
//!
//! Not seen: what a runtime does without an event loop (`better-sqlite3`, plain functions), native
//! modules with threads of their own, `uvloop`, and Python with `-I` or `-E`.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::net::Shutdown;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use serde::Deserialize;

use crate::event::{Class, ProcessId, Source};
use crate::supervisor::{Draft, Resume, Supervisor, Verdict};

const NODE: &str = include_str!("preload/node.cjs");
const PYTHON: &str = include_str!("preload/sitecustomize.py");

/// Longer lines are not of this protocol.
const LONGEST_LINE: u64 = 64 << 10;
/// Connections of one server: its processes and worker threads.
const MOST_CONNECTIONS: usize = 256;

/// For an answer to be written. A line is short, so only one who never reads takes as long.
const PATIENCE: Duration = Duration::from_secs(1);

/// The socket of one server.
pub(crate) struct Preload {
    socket: PathBuf,
    stop: Arc<AtomicBool>,
    environment: Vec<(OsString, OsString)>,
}

impl Preload {
    /// Listens for one server. `here` is a folder of this host, and `seen` what the server calls
    /// it. What it already has in the two variables is kept.
    pub(crate) fn start(
        here: &Path,
        seen: &Path,
        given: &[(OsString, OsString)],
        supervisor: Supervisor,
        process: ProcessId,
    ) -> io::Result<Self> {
        let python = here.join("python");
        fs::create_dir_all(&python)?;
        fs::write(here.join("node.cjs"), NODE)?;
        fs::write(python.join("sitecustomize.py"), PYTHON)?;
        let name = format!("{}.sock", process.0);
        let socket = here.join(&name);
        let listener = UnixListener::bind(&socket)?;
        let stop = Arc::new(AtomicBool::new(false));
        thread::Builder::new()
            .name(format!("toctou-hold-await-{}", process.0))
            .spawn({
                let stop = Arc::clone(&stop);
                move || accept(&listener, &stop, &supervisor, process)
            })?;

        let of = |name: &str| {
            let value = given.iter().rev().find(|(k, _)| k == name);
            value.map(|(_, v)| v.as_os_str()).filter(|v| !v.is_empty())
        };
        let mut options = OsString::from("--require=");
        options.push(seen.join("node.cjs"));
        let environment = vec![
            (
                "TOCTOU_HOLD_SOCKET".into(),
                seen.join(&name).into_os_string(),
            ),
            (
                "NODE_OPTIONS".into(),
                joined(options, " ", of("NODE_OPTIONS")),
            ),
            (
                "PYTHONPATH".into(),
                joined(seen.join("python").into(), ":", of("PYTHONPATH")),
            ),
        ];
        Ok(Self {
            socket,
            stop,
            environment,
        })
    }

    pub(crate) fn environment(&self) -> &[(OsString, OsString)] {
        &self.environment
    }
}

impl Drop for Preload {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Release);
        // Wakes the thread that listens.
        drop(UnixStream::connect(&self.socket));
        let _ = fs::remove_file(&self.socket);
    }
}

fn joined(mut first: OsString, between: &str, rest: Option<&OsStr>) -> OsString {
    if let Some(rest) = rest {
        first.push(between);
        first.push(rest);
    }
    first
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Message {
    Done {
        id: u64,
        kind: String,
        name: String,
        path: Option<String>,
    },
    Hello {
        hello: String,
    },
}

type Answers = Arc<Mutex<UnixStream>>;

fn answer(to: &Answers, id: u64) {
    let mut to = to.lock().unwrap_or_else(PoisonError::into_inner);
    // It is gone, or has so much unread that it does not listen: then it is let go.
    if writeln!(to, "{id}").is_err() {
        let _ = to.shutdown(Shutdown::Both);
    }
}

struct Waiting {
    answers: Answers,
    id: u64,
}

impl Resume for Waiting {
    fn resume(self: Box<Self>) {
        answer(&self.answers, self.id);
    }
}

/// Until it is told to stop, by a connection that comes after `stop` is set.
fn accept(listener: &UnixListener, stop: &AtomicBool, supervisor: &Supervisor, process: ProcessId) {
    let connections = Arc::new(());
    for connection in listener.incoming() {
        if stop.load(Ordering::Acquire) {
            return;
        }
        let Ok(connection) = connection else { continue };
        if Arc::strong_count(&connections) > MOST_CONNECTIONS {
            continue;
        }
        let counted = Arc::clone(&connections);
        let supervisor = supervisor.clone();
        // Without a thread the connection closes, and nothing is held there.
        let _ = thread::Builder::new()
            .name(format!("toctou-hold-await-{}", process.0))
            .stack_size(256 << 10)
            .spawn(move || {
                let _ = serve(&connection, &supervisor, process);
                let _ = connection.shutdown(Shutdown::Both);
                drop(counted);
            });
    }
}

fn serve(connection: &UnixStream, supervisor: &Supervisor, process: ProcessId) -> io::Result<()> {
    connection.set_write_timeout(Some(PATIENCE))?;
    let pid = peer(connection);
    let answers: Answers = Arc::new(Mutex::new(connection.try_clone()?));
    let mut reader = BufReader::new(connection);
    let mut line = Vec::new();
    loop {
        line.clear();
        (&mut reader)
            .take(LONGEST_LINE)
            .read_until(b'\n', &mut line)?;
        if line.last() != Some(&b'\n') {
            return Ok(());
        }
        match serde_json::from_slice(&line)? {
            Message::Hello { hello } => supervisor.runtime_heard(process, hello),
            Message::Done {
                id,
                kind,
                name,
                path,
            } => {
                let draft = Draft {
                    pid,
                    tid: pid,
                    source: Source::Await,
                    class: Class::Completion,
                    name,
                    paths: path.into_iter().collect(),
                    length: None,
                    detail: kind,
                };
                let verdict = supervisor.arrive(process, draft, || {
                    Box::new(Waiting {
                        answers: Arc::clone(&answers),
                        id,
                    })
                });
                if verdict == Verdict::Go {
                    answer(&answers, id);
                }
            }
        }
    }
}

/// The process at the other end, as this host calls it.
#[cfg(target_os = "linux")]
fn peer(connection: &UnixStream) -> u32 {
    rustix::net::sockopt::socket_peercred(connection)
        .map(|c| c.pid.as_raw_nonzero().get() as u32)
        .unwrap_or(0)
}

#[cfg(not(target_os = "linux"))]
fn peer(_connection: &UnixStream) -> u32 {
    0
}
