//! Where servers of one run live: what they see, what they can write, and their end.
//!
//! With namespaces, all of it is the kernel's: the host is read-only, the state is at
//! fixed paths, there is no network, and no process outlives the sandbox. Without them
//! the state's folders are used where they are, the environment points to them, and the
//! rest rests on the server's manners. Which of the two it is, and why, is in [`Isolation`].

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::error::Error;
use crate::files;
use crate::scratch::{Area, State};
use crate::snapshot::{COPY, ORIGINAL};
use crate::supervisor::Supervisor;

/// What a sandbox should be.
#[derive(Clone, Debug, Default)]
pub struct SandboxSpec {
    pub isolate: Isolate,
    /// Whether servers may use the network of the host.
    pub network: bool,
    /// Folders with the servers' code. Some servers keep their state there: they may write,
    /// and what they write is part of the state and not in the folder.
    pub packages: Vec<PathBuf>,
    /// Folders of the host that servers may really write to, because the user said so.
    pub writable: Vec<PathBuf>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Isolate {
    /// Namespaces where they are to be had, else a copy.
    #[default]
    Auto,
    /// Namespaces or an error.
    Namespaces,
    /// Redirected folders and a copy of the packages, without asking for namespaces.
    Copy,
}

/// What a sandbox is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Isolation {
    pub kind: IsolationKind,
    /// Whether the servers can reach the network.
    pub network: bool,
    /// What is less than was asked for, in words for the user.
    pub notes: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum IsolationKind {
    Namespaces,
    Copy,
}

/// Where the server sees its state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Paths {
    pub workspace: PathBuf,
    pub home: PathBuf,
    pub tmp: PathBuf,
}

/// Holds the processes of one run and their state.
pub struct Sandbox {
    pub(crate) supervisor: Supervisor,
    isolation: Isolation,
    paths: Paths,
    /// A package folder, and where its code is taken from instead.
    moved: Vec<(PathBuf, PathBuf)>,
    /// Sockets and preloads: on the host, and as the server sees it.
    pub(crate) side: PathBuf,
    pub(crate) side_seen: PathBuf,
    state: State,
}

impl Sandbox {
    /// Makes a sandbox round a state. Blocks for a few milliseconds.
    pub fn open(spec: &SandboxSpec, state: State, supervisor: &Supervisor) -> Result<Self, Error> {
        Self::open_copy(spec, state, supervisor, Vec::new())
    }

    fn open_copy(
        spec: &SandboxSpec,
        state: State,
        supervisor: &Supervisor,
        mut notes: Vec<String>,
    ) -> Result<Self, Error> {
        if !spec.network {
            notes.push("the network is not closed: that needs namespaces".to_owned());
        }
        let mut moved = Vec::new();
        for (n, package) in spec.packages.iter().enumerate() {
            moved.push((package.clone(), copy_package(&state, n, package)?));
        }
        let side = state.scratch().side_dir()?;
        Ok(Self {
            supervisor: supervisor.clone(),
            isolation: Isolation {
                kind: IsolationKind::Copy,
                network: true,
                notes,
            },
            paths: Paths {
                workspace: state.area(Area::Workspace),
                home: state.area(Area::Home),
                tmp: state.area(Area::Tmp),
            },
            moved,
            side_seen: side.clone(),
            side,
            state,
        })
    }

    pub fn isolation(&self) -> &Isolation {
        &self.isolation
    }

    /// Where the server sees its state: for arguments that name a folder.
    pub fn paths(&self) -> &Paths {
        &self.paths
    }

    pub fn state(&self) -> &State {
        &self.state
    }

    pub fn supervisor(&self) -> &Supervisor {
        &self.supervisor
    }

    /// Ends every process and gives the state back. Processes that are still held by the
    /// caller are dead after it.
    pub async fn close(self) -> State {
        self.state
    }

    /// A path or an argument, with package folders replaced by their copies.
    pub(crate) fn relocate(&self, argument: &OsString) -> OsString {
        for (from, to) in &self.moved {
            if let Ok(rest) = Path::new(argument).strip_prefix(from) {
                return to.join(rest).into_os_string();
            }
        }
        argument.clone()
    }
}

/// The copy is made once for a state and comes along when the state is copied.
fn copy_package(state: &State, n: usize, package: &Path) -> Result<PathBuf, Error> {
    let dir = state.package(n);
    let copy = dir.join(COPY);
    if !copy.is_dir() {
        std::fs::create_dir_all(&copy).map_err(Error::file("create", &copy))?;
        files::copy_all(package, &copy)?;
        let original = dir.join(ORIGINAL);
        std::fs::write(&original, package.as_os_str().as_encoded_bytes())
            .map_err(Error::file("write", &original))?;
    }
    Ok(copy)
}
