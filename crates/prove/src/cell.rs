//! One run's world: a fresh state, and the servers on it.

use std::fs::File;
use std::io::Read as _;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use thiserror::Error;
use toctou_hold::{
    Hooks, Launch, Mark, Process, ProcessId, Sandbox, SandboxSpec, Snapshot, State, Supervisor,
};
use tokio::runtime::Handle;

use crate::budget::{Budget, Stop};
use crate::client::{self, Client, ClientError, Pipes};
use crate::target::Command;

#[derive(Debug, Error)]
pub enum StartError {
    #[error(transparent)]
    Stopped(#[from] Stop),
    #[error(transparent)]
    Hold(#[from] toctou_hold::Error),
    #[error("cannot talk to the server: {0}")]
    Pipes(std::io::Error),
    #[error("{because}")]
    Server {
        because: String,
        /// The last lines of what it wrote to standard error.
        stderr: String,
        /// What it wrote to standard output that was no message.
        garbage: Vec<String>,
    },
}

/// How to make cells: shared by all threads that do.
pub struct Maker {
    pub handle: Handle,
    pub base: State,
    pub spec: SandboxSpec,
    pub command: Command,
    pub budget: Budget,
    pub hooks: Hooks,
    /// How long a server has to answer the handshake.
    pub patience: Duration,
}

pub struct Server {
    pub client: Client,
    process: Process,
    stderr: Arc<Mutex<Vec<u8>>>,
}

pub struct Cell {
    pub servers: Vec<Server>,
    pub supervisor: Supervisor,
    /// Before anything happened.
    pub start: Mark,
    handle: Handle,
    sandbox: Option<Sandbox>,
    workspace: String,
}

const STDERR_KEPT: usize = 4096;

impl Maker {
    /// A fresh copy of the state with `processes` servers on it, ready to be called.
    pub fn make(&self, processes: usize) -> Result<Cell, StartError> {
        self.make_with(processes, self.hooks)
    }

    /// The same, seeing more or less of what the servers do.
    pub fn make_with(&self, processes: usize, hooks: Hooks) -> Result<Cell, StartError> {
        self.budget.check()?;
        let supervisor = Supervisor::new();
        let sandbox = Sandbox::open(&self.spec, self.base.copy()?, &supervisor)?;
        let workspace = sandbox.paths().workspace.to_string_lossy().into_owned();
        let mut cell = Cell {
            servers: Vec::new(),
            start: supervisor.mark(),
            supervisor,
            handle: self.handle.clone(),
            sandbox: Some(sandbox),
            workspace,
        };
        for _ in 0..processes {
            let server = self.launch(&cell, hooks)?;
            cell.servers.push(server);
        }
        for server in &mut cell.servers {
            let ready = server.client.initialize(self.patience, &self.budget);
            ready.map_err(|error| server.failed(error))?;
        }
        Ok(cell)
    }

    /// One more server on the state of `cell`, started now.
    pub fn join(&self, cell: &Cell) -> Result<Server, StartError> {
        let mut server = self.launch(cell, self.hooks)?;
        let ready = server.client.initialize(self.patience, &self.budget);
        ready.map_err(|error| server.failed(error))?;
        Ok(server)
    }

    fn launch(&self, cell: &Cell, hooks: Hooks) -> Result<Server, StartError> {
        let sandbox = cell
            .sandbox
            .as_ref()
            .ok_or_else(|| StartError::Pipes(std::io::Error::other("the sandbox is closed")))?;
        let launch = Launch {
            argv: self.command.argv_in(&cell.workspace),
            env: self.command.env_in(&cell.workspace),
            cwd: self.command.cwd.clone(),
            hooks,
        };
        let mut process = self.handle.block_on(sandbox.launch(&launch))?;
        let missing = || StartError::Pipes(std::io::Error::other("no pipes"));
        let stdin = process.stdin.take().ok_or_else(missing)?;
        let stdout = process.stdout.take().ok_or_else(missing)?;
        let stderr = process.stderr.take().ok_or_else(missing)?;
        let blocking = |fd: std::io::Result<std::os::fd::OwnedFd>| {
            fd.map(File::from).map_err(StartError::Pipes)
        };
        let (transport, incoming) = client::connect(Pipes {
            stdin: blocking(stdin.into_owned_fd())?,
            stdout: blocking(stdout.into_owned_fd())?,
        })
        .map_err(StartError::Pipes)?;
        Ok(Server {
            client: Client::new(transport, incoming),
            process,
            stderr: keep_tail(blocking(stderr.into_owned_fd())?).map_err(StartError::Pipes)?,
        })
    }
}

/// Reads all and keeps the end of it.
fn keep_tail(mut from: File) -> std::io::Result<Arc<Mutex<Vec<u8>>>> {
    let kept = Arc::new(Mutex::new(Vec::new()));
    let tail = Arc::clone(&kept);
    std::thread::Builder::new()
        .name("server's errors".to_owned())
        .spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok(count) = from.read(&mut buffer)
                && count > 0
            {
                let mut tail = tail.lock().unwrap_or_else(PoisonError::into_inner);
                tail.extend_from_slice(&buffer[..count]);
                let over = tail.len().saturating_sub(STDERR_KEPT);
                tail.drain(..over);
            }
        })?;
    Ok(kept)
}

impl Server {
    pub fn id(&self) -> ProcessId {
        self.process.id()
    }

    /// Why its system calls are not seen, if they are not.
    pub fn blind(&self) -> Option<&str> {
        self.process.blind()
    }

    /// How it ended, in words, if it has.
    pub fn death(&mut self) -> Option<String> {
        self.process.status().map(|status| status.to_string())
    }

    pub fn stderr(&self) -> String {
        let tail = self.stderr.lock().unwrap_or_else(PoisonError::into_inner);
        String::from_utf8_lossy(&tail).into_owned()
    }

    fn failed(&mut self, error: ClientError) -> StartError {
        if let ClientError::Stopped(stop) = error {
            return StartError::Stopped(stop);
        }
        let death = self.death();
        let because = match (&error, death) {
            (ClientError::Ended, Some(status)) => format!("the server ended at its start ({status})"),
            (ClientError::Ended, None) => "the server closed its output at its start".to_owned(),
            (ClientError::Silence(_), _) if !self.client.garbage.is_empty() => {
                "the server writes things to standard output that are no messages, and does not answer".to_owned()
            }
            (error, _) => format!("the server does not start: {error}"),
        };
        StartError::Server {
            because,
            stderr: self.stderr(),
            garbage: self.client.garbage.clone(),
        }
    }
}

impl Cell {
    pub fn workspace(&self) -> &str {
        &self.workspace
    }

    pub fn sandbox(&self) -> Option<&Sandbox> {
        self.sandbox.as_ref()
    }

    pub fn handle(&self) -> &Handle {
        &self.handle
    }

    pub fn snapshot(&self) -> Option<Snapshot> {
        let sandbox = self.sandbox.as_ref()?;
        sandbox
            .state()
            .snapshot(&toctou_hold::Limits::default())
            .ok()
    }

    /// Ends the servers and reads what they left.
    pub fn close(mut self) -> Option<Snapshot> {
        self.end()
            .and_then(|state| state.snapshot(&toctou_hold::Limits::default()).ok())
    }

    /// Ends the servers and keeps the state.
    pub fn into_state(mut self) -> Option<State> {
        self.end()
    }

    fn end(&mut self) -> Option<State> {
        let sandbox = self.sandbox.take()?;
        for server in &mut self.servers {
            let _ = self.handle.block_on(server.process.kill());
        }
        self.servers.clear();
        Some(self.handle.block_on(sandbox.close()))
    }
}

impl Drop for Cell {
    fn drop(&mut self) {
        self.end();
    }
}
