//! A server that the guard starts: its life, its death, its next life.
//!
//! A child has a process group of its own, so that what it starts goes with
//! it (`npx` starts a shell that starts the server), and so that Ctrl-C reaches
//! the guard first. It is only reported dead when it has been reaped: until
//! then it may still be writing, and its callers' locks stay.

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use rustix::process::{Pid, Signal, kill_process_group};
use thiserror::Error;
use tokio::process::{Child, Command};
use tokio::sync::watch;

use crate::awake::AWAKE;
use crate::io::{Inlet, Outlet, TOGETHER};
use crate::log::log;
use crate::session::{Link, Session};
use crate::upstream::{Pause, Supervised};

/// How to start a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChildSpec {
    pub command: String,
    pub args: Vec<String>,
    pub env: BTreeMap<String, String>,
    pub cwd: Option<PathBuf>,
}

#[derive(Debug, Error)]
pub enum StartError {
    #[error("cannot start `{command}`: {source}")]
    Spawn { command: String, source: io::Error },
    #[error("it ended at once")]
    EndedAtOnce,
}

/// How long each step of the end may take.
#[derive(Clone, Copy, Debug)]
pub struct Shutdown {
    /// After standard input is closed, as the protocol asks.
    pub on_eof: Duration,
    /// After SIGTERM.
    pub on_term: Duration,
}

impl Default for Shutdown {
    fn default() -> Self {
        Self {
            on_eof: Duration::from_secs(5),
            on_term: Duration::from_secs(3),
        }
    }
}

/// Unwritten bytes towards a server before its clients are no longer read.
const BACKLOG: usize = 4 << 20;

/// The way to a child, for one client that is read in order, or for many.
struct Pipe {
    outlet: Arc<Outlet>,
    many: bool,
}

impl Pipe {
    fn open(outlet: &Arc<Outlet>, many: bool) -> Arc<Self> {
        if many {
            tokio::spawn(Arc::clone(outlet).flush_as_asked());
        }
        Arc::new(Self {
            outlet: Arc::clone(outlet),
            many,
        })
    }
}

impl Link for Pipe {
    fn push(&self, message: Bytes) {
        self.outlet.push(&message);
    }
    fn flush(&self) {
        if self.many {
            self.outlet.flush_soon();
        } else {
            self.outlet.flush();
        }
    }
}

struct Running {
    child: Child,
    inlet: Inlet,
    outlet: Arc<Outlet>,
}

impl ChildSpec {
    fn start(&self, limit: usize) -> Result<Running, StartError> {
        let failed = |source| StartError::Spawn {
            command: self.command.clone(),
            source,
        };
        let mut command = Command::new(&self.command);
        command
            .args(&self.args)
            .envs(&self.env)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .process_group(0)
            .kill_on_drop(true);
        if let Some(cwd) = &self.cwd {
            command.current_dir(cwd);
        }
        let mut child = crate::pages::as_before(|| command.spawn()).map_err(failed)?;
        let (Some(stdin), Some(stdout)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(failed(io::Error::other("no pipes")));
        };
        let stdin = stdin.into_owned_fd().map_err(failed)?;
        let stdout = stdout.into_owned_fd().map_err(failed)?;
        Ok(Running {
            child,
            inlet: crate::io::inlet(stdout, limit).map_err(failed)?,
            outlet: crate::io::outlet(stdin, BACKLOG).map_err(failed)?,
        })
    }
}

/// Starts a server and keeps it running. The first start must succeed.
pub fn supervise(
    spec: ChildSpec,
    session: Arc<Session>,
    shutdown: Shutdown,
    name: Arc<str>,
    client: Option<Arc<Outlet>>,
) -> Result<Supervised, StartError> {
    let first = spec.start(session.limits().bytes)?;
    let (stop, stopped) = watch::channel(false);
    let (current, outlet) = watch::channel(Some(Arc::clone(&first.outlet)));
    let mut life = Life {
        spec,
        session,
        shutdown,
        name,
        client,
        stopped,
        current,
    };
    let many = life.client.is_none();
    life.session.server_up(Pipe::open(&first.outlet, many));
    let task = tokio::spawn(async move { life.run(first).await });
    Ok(Supervised { stop, task, outlet })
}

struct Life {
    spec: ChildSpec,
    session: Arc<Session>,
    shutdown: Shutdown,
    name: Arc<str>,
    /// Where the client's messages go, for backpressure.
    client: Option<Arc<Outlet>>,
    stopped: watch::Receiver<bool>,
    current: watch::Sender<Option<Arc<Outlet>>>,
}

impl Life {
    async fn run(&mut self, first: Running) {
        let mut pause = Pause::default();
        let mut next = Some(first);
        loop {
            if let Some(running) = next.take() {
                let began = Instant::now();
                let status = self.live(running).await;
                self.current.send_replace(None);
                pause.after(began.elapsed());
                self.session.server_down(pause.length());
                if *self.stopped.borrow() {
                    return;
                }
                log!(
                    Error,
                    "server-died",
                    server = &*self.name,
                    status = status,
                    restart_in_ms = pause.length().as_millis() as u64
                );
            }
            tokio::select! {
                () = pause.rest() => {}
                _ = self.stopped.wait_for(|stopped| *stopped) => return,
            }
            match self.spec.start(self.session.limits().bytes) {
                Ok(running) => {
                    self.session.restarted();
                    self.current.send_replace(Some(Arc::clone(&running.outlet)));
                    let many = self.client.is_none();
                    self.session.server_up(Pipe::open(&running.outlet, many));
                    log!(Warn, "server-restarted", server = &*self.name);
                    next = Some(running);
                }
                Err(error) => {
                    log!(
                        Error,
                        "server-not-restarted",
                        server = &*self.name,
                        because = error.to_string()
                    );
                    self.session.server_down(pause.length());
                }
            }
        }
    }

    /// From the start of a child to its end; its status in words.
    async fn live(&mut self, mut running: Running) -> String {
        let stop = tokio::select! {
            () = read(&self.session, &mut running.inlet, self.client.as_ref(), &self.name) => false,
            _ = self.stopped.wait_for(|stopped| *stopped) => true,
        };
        let mut reading = std::pin::pin!(async {
            if stop {
                // Answers may still come while the server winds up.
                read(
                    &self.session,
                    &mut running.inlet,
                    self.client.as_ref(),
                    &self.name,
                )
                .await;
            }
            std::future::pending::<()>().await;
        });
        let ended = end(&mut running.child, &running.outlet, self.shutdown);
        let status = tokio::select! {
            status = ended => status,
            () = &mut reading => None,
        };
        match status {
            Some(status) => status.to_string(),
            None => "unknown".to_owned(),
        }
    }
}

/// Passes messages on until the stream ends.
async fn read(session: &Arc<Session>, inlet: &mut Inlet, client: Option<&Arc<Outlet>>, name: &str) {
    loop {
        let mut messages = 0;
        while let Some(line) = inlet.buffered() {
            messages += 1;
            if messages % TOGETHER == 0 {
                session.flush();
            }
            match line {
                Ok(frame) => session.from_server(&frame),
                Err(error) => {
                    // It may have been an answer, and nobody can say to whom.
                    log!(
                        Error,
                        "server-message-too-long",
                        server = name,
                        because = error.to_string()
                    );
                    session.flush();
                    return;
                }
            }
        }
        session.flush();
        AWAKE.stir(messages);
        if let Some(client) = client {
            client.ready().await;
        }
        match inlet.fill().await {
            Ok(true) => {}
            Ok(false) => {
                if let Some(rest) = inlet.rest() {
                    session.from_server(&rest);
                    session.flush();
                }
                return;
            }
            Err(error) => {
                log!(
                    Error,
                    "server-unreadable",
                    server = name,
                    because = error.to_string()
                );
                return;
            }
        }
    }
}

/// Closes the child's input, then asks, then forces; reaps it in any case.
async fn end(child: &mut Child, outlet: &Outlet, shutdown: Shutdown) -> Option<ExitStatus> {
    let group = child
        .id()
        .and_then(|id| Pid::from_raw(i32::try_from(id).ok()?));
    // A server that does not read cannot be waited for to take the rest.
    let _ = tokio::time::timeout(Duration::from_secs(1), outlet.close()).await;
    outlet.break_off();
    let status = match tokio::time::timeout(shutdown.on_eof, child.wait()).await {
        Ok(status) => status.ok(),
        Err(_) => {
            signal(group, Signal::TERM);
            match tokio::time::timeout(shutdown.on_term, child.wait()).await {
                Ok(status) => status.ok(),
                Err(_) => {
                    signal(group, Signal::KILL);
                    child.wait().await.ok()
                }
            }
        }
    };
    // What it started and left behind.
    signal(group, Signal::TERM);
    status
}

fn signal(group: Option<Pid>, signal: Signal) {
    if let Some(group) = group {
        // It may be gone already.
        let _ = kill_process_group(group, signal);
    }
}
