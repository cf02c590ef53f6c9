//! One run's world: a fresh state, and the servers on it.
//!
//! A server that runs already has no fresh state. A cell is then a session with it.

use std::ffi::OsString;
use std::fs::File;
use std::io::Read as _;
use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::mpsc;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use thiserror::Error;
use toctou_guard::upstream::HttpSpec;
use toctou_hold::{
    Hooks, Launch, Mark, Network, Process, ProcessId, Sandbox, SandboxSpec, Snapshot, State,
    Supervisor,
};
use tokio::runtime::Handle;

use crate::budget::{Budget, Stop};
use crate::canon::content::Content;
use crate::client::http::{self, Road};
use crate::client::{self, Client, ClientError, Incoming, Pipes};
use crate::names::Names;
use crate::outcome::Files;
use crate::store::relay::Relay;
use crate::store::{Place, Store, StoreError};
use crate::target::{Command, PORT};

#[derive(Debug, Error)]
pub enum StartError {
    #[error(transparent)]
    Stopped(#[from] Stop),
    #[error(transparent)]
    Hold(#[from] toctou_hold::Error),
    #[error("cannot talk to the server: {0}")]
    Pipes(std::io::Error),
    #[error("{0}")]
    Address(String),
    #[error(transparent)]
    Store(#[from] StoreError),
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
    pub origin: Origin,
    /// State that is not in files.
    pub store: Option<Store>,
    pub budget: Budget,
    pub hooks: Hooks,
    /// How long a server has to answer the handshake.
    pub patience: Duration,
}

/// Where servers come from.
pub enum Origin {
    /// Started in a sandbox, on a copy of a state.
    Started {
        base: State,
        spec: SandboxSpec,
        command: Command,
    },
    /// Running already.
    Running(HttpSpec),
}

pub struct Server {
    pub client: Client,
    started: Option<Started>,
    /// Where it is, if it is reached by HTTP.
    address: Option<String>,
}

/// A server that is ours.
struct Started {
    process: Process,
    stderr: Arc<Mutex<Vec<u8>>>,
    /// Some servers end when this does.
    _stdin: Option<File>,
}

pub struct Cell {
    pub servers: Vec<Server>,
    pub supervisor: Supervisor,
    /// Before anything happened.
    pub start: Mark,
    handle: Handle,
    sandbox: Option<Sandbox>,
    names: Names,
    /// The next port to listen at, where all are free.
    ports: AtomicU16,
    /// Ends before the place that it leads to.
    _relay: Option<Relay>,
    /// This run's own, and what its servers are told about it.
    place: Option<(Place, (String, String))>,
}

const STDERR_KEPT: usize = 4096;
/// Ports leak into states, so they are the same in every run if possible.
const FIRST_PORT: u16 = 18_080;
/// Where the servers of a sandbox find their database.
const STORE_PORT: u16 = 18_079;

impl Maker {
    /// Whether all cells are sessions with one server.
    pub fn is_shared(&self) -> bool {
        matches!(self.origin, Origin::Running(_))
    }

    /// A fresh copy of the state with `processes` servers on it, ready to be called.
    pub fn make(&self, processes: usize) -> Result<Cell, StartError> {
        self.make_with(processes, self.hooks)
    }

    /// The same, seeing more or less of what the servers do.
    pub fn make_with(&self, processes: usize, hooks: Hooks) -> Result<Cell, StartError> {
        self.budget.check()?;
        let supervisor = Supervisor::new();
        let (sandbox, names) = match &self.origin {
            Origin::Running(_) => (None, Names::shared()),
            Origin::Started { base, spec, .. } => {
                let sandbox = Sandbox::open(spec, base.copy()?, &supervisor)?;
                let workspace = sandbox.paths().workspace.to_string_lossy().into_owned();
                (Some(sandbox), Names::private(&workspace))
            }
        };
        let mut cell = Cell {
            servers: Vec::new(),
            start: supervisor.mark(),
            supervisor,
            handle: self.handle.clone(),
            sandbox,
            names,
            ports: AtomicU16::new(FIRST_PORT),
            _relay: None,
            place: None,
        };
        if let Some(store) = &self.store {
            self.give_place(&mut cell, store)?;
        }
        for _ in 0..processes {
            let server = self.server(&cell, hooks)?;
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
        let mut server = self.server(cell, self.hooks)?;
        let ready = server.client.initialize(self.patience, &self.budget);
        ready.map_err(|error| server.failed(error))?;
        Ok(server)
    }

    /// A place in the store, and a way to it if the servers have no network.
    fn give_place(&self, cell: &mut Cell, store: &Store) -> Result<(), StartError> {
        let place = store.fresh()?;
        let network = match &cell.sandbox {
            Some(sandbox) => sandbox.network().map_err(StartError::Pipes)?,
            None => return Ok(()),
        };
        let mut at = None;
        if network.is_own() {
            let listener = network.listen(STORE_PORT).map_err(StartError::Pipes)?;
            let to = store.address().host.clone();
            let relay = Relay::start(&self.handle, listener, to).map_err(StartError::Pipes)?;
            cell._relay = Some(relay);
            at = Some(("127.0.0.1", STORE_PORT));
        }
        let url = place.url(store.address(), at);
        cell.place = Some((place, (store.env().to_owned(), url)));
        Ok(())
    }

    fn server(&self, cell: &Cell, hooks: Hooks) -> Result<Server, StartError> {
        match &self.origin {
            Origin::Started { command, .. } => self.launch(cell, command, hooks),
            Origin::Running(spec) => {
                let (found, incoming) = mpsc::channel();
                let transport = http::connect(&self.handle, spec.clone(), Road::World, found);
                Ok(Server {
                    client: Client::new(transport, incoming),
                    started: None,
                    address: Some(spec.url()),
                })
            }
        }
    }

    fn launch(&self, cell: &Cell, command: &Command, hooks: Hooks) -> Result<Server, StartError> {
        let sandbox = cell
            .sandbox
            .as_ref()
            .ok_or_else(|| StartError::Pipes(std::io::Error::other("the sandbox is closed")))?;
        let network = match &command.http {
            Some(_) => Some(sandbox.network().map_err(StartError::Pipes)?),
            None => None,
        };
        let port = match &network {
            Some(network) => Some(cell.port(network, command)?),
            None => None,
        };
        let command = command.filled(cell.names.workspace(), port);
        let launch = Launch {
            argv: command.argv.iter().map(OsString::from).collect(),
            env: command
                .env
                .iter()
                .chain(cell.place.iter().map(|(_, (name, url))| (name, url)))
                .map(|(name, value)| (name.into(), value.into()))
                .collect(),
            cwd: command.cwd.clone(),
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
        let stdin = blocking(stdin.into_owned_fd())?;
        let stdout = blocking(stdout.into_owned_fd())?;
        let kept = Arc::new(Mutex::new(Vec::new()));
        let stderr = blocking(stderr.into_owned_fd())?;
        keep_tail(stderr, Arc::clone(&kept), || {}).map_err(StartError::Pipes)?;
        let mut started = Started {
            process,
            stderr: Arc::clone(&kept),
            _stdin: None,
        };
        let Some((network, address)) = network.zip(command.http) else {
            let pipes = Pipes { stdin, stdout };
            let (transport, incoming) = client::connect(pipes).map_err(StartError::Pipes)?;
            return Ok(Server {
                client: Client::new(transport, incoming),
                started: Some(started),
                address: None,
            });
        };
        let spec = HttpSpec::new(&address, &Default::default()).map_err(StartError::Address)?;
        let road = Road::Sandbox(network, spec.port());
        started._stdin = Some(stdin);
        let (found, incoming) = mpsc::channel();
        // What it says there is for people, and the end of it is its own.
        let ended = found.clone();
        let end = move || drop(ended.send(Incoming::End));
        keep_tail(stdout, kept, end).map_err(StartError::Pipes)?;
        Ok(Server {
            client: Client::new(http::connect(&self.handle, spec, road, found), incoming),
            started: Some(started),
            address: Some(address),
        })
    }
}

/// Reads all and keeps the last of it.
fn keep_tail(
    mut from: File,
    tail: Arc<Mutex<Vec<u8>>>,
    end: impl FnOnce() + Send + 'static,
) -> std::io::Result<()> {
    std::thread::Builder::new()
        .name("server's words".to_owned())
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
            end();
        })?;
    Ok(())
}

impl Server {
    /// One that was not started here is none that a supervisor knows.
    pub fn id(&self) -> ProcessId {
        self.started
            .as_ref()
            .map_or(ProcessId(u32::MAX), |started| started.process.id())
    }

    /// Why its system calls are not seen, if they are not.
    pub fn blind(&self) -> Option<&str> {
        match &self.started {
            Some(started) => started.process.blind(),
            None => Some("it was not started here"),
        }
    }

    /// How it ended, in words, if it has.
    pub fn death(&mut self) -> Option<String> {
        let status = self.started.as_ref()?.process.status();
        status.map(|status| status.to_string())
    }

    pub fn stderr(&self) -> String {
        let Some(started) = &self.started else {
            return String::new();
        };
        let tail = started
            .stderr
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        String::from_utf8_lossy(&tail).into_owned()
    }

    fn failed(&mut self, error: ClientError) -> StartError {
        if let ClientError::Stopped(stop) = error {
            return StartError::Stopped(stop);
        }
        let death = self.death();
        let because = match (&error, death) {
            (ClientError::Silence(_), None) if self.address.is_some() => {
                format!(
                    "nobody answers at {}",
                    self.address.as_deref().unwrap_or_default()
                )
            }
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
    pub fn names(&self) -> &Names {
        &self.names
    }

    /// A port for one more server.
    fn port(&self, network: &Network, command: &Command) -> Result<u16, StartError> {
        if network.is_own() {
            return Ok(self.ports.fetch_add(1, Ordering::Relaxed));
        }
        if command.has_fixed_port() {
            return Err(StartError::Address(format!(
                "a port of the host is needed for each server: write `{PORT}` for it"
            )));
        }
        let free = network.listen(0).and_then(|listener| listener.local_addr());
        free.map(|address| address.port())
            .map_err(StartError::Pipes)
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

    /// The state as it is now.
    pub fn files(&self) -> Files {
        self.read(self.snapshot())
    }

    /// Ends the servers and reads what they left.
    pub fn close(mut self) -> Files {
        let snapshot = self
            .end()
            .and_then(|state| state.snapshot(&toctou_hold::Limits::default()).ok());
        self.read(snapshot)
    }

    fn read(&self, snapshot: Option<Snapshot>) -> Files {
        let mut files = Files::read(&snapshot.unwrap_or_default());
        if let Some((place, _)) = &self.place {
            let content = place.dump().map_or(Content::Opaque, Content::Tables);
            files.all.insert(place.name().to_owned(), content);
        }
        files
    }

    fn end(&mut self) -> Option<State> {
        for server in &mut self.servers {
            match &server.started {
                Some(started) => drop(self.handle.block_on(started.process.kill())),
                None => server.client.leave(),
            }
        }
        let sandbox = self.sandbox.take();
        self.servers.clear();
        Some(self.handle.block_on(sandbox?.close()))
    }
}

impl Drop for Cell {
    fn drop(&mut self) {
        self.end();
    }
}
