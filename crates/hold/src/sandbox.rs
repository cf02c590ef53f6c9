//! Where servers of one run live: what they see, what they can write, and their end.
//!
//! With namespaces, all of it is the kernel's: the host is read-only, the state is at
//! fixed paths, there is no network, and no process outlives the sandbox. Without them
//! the state's folders are used where they are, the environment points to them, and the
//! rest rests on the server's manners. Which of the two it is, and why, is in [`Isolation`].

use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use serde::Serialize;

use crate::error::Error;
use crate::files;
use crate::launch::Lifeline;
#[cfg(target_os = "linux")]
use crate::linux::namespaces::{self, Namespaces, Refused};
use crate::scratch::{Area, State};
use crate::snapshot::{COPY, MODULES, ORIGINAL};
use crate::supervisor::Supervisor;

/// Where servers see their state, if there are namespaces. Paths leak into states, as hashes
/// for example, so they must not differ from run to run.
#[cfg(target_os = "linux")]
pub(crate) const WORKSPACE: &str = "/toctou/workspace";
#[cfg(target_os = "linux")]
pub(crate) const HOME: &str = "/toctou/home";
/// Preloads and their sockets.
#[cfg(target_os = "linux")]
pub(crate) const SIDE: &str = "/toctou/side";

/// What a sandbox should be.
#[derive(Clone, Debug, Default)]
pub struct SandboxSpec {
    pub isolate: Isolate,
    /// Whether servers may use the network of the host.
    pub network: bool,
    /// Folders with the servers' code. Some servers keep their state there: they may write,
    /// and what they write is part of the state and not in the folder.
    pub packages: Vec<PathBuf>,
    /// Files and folders that have to be seen as they are though they are in `/tmp`, `/run` or
    /// `/dev`. Everything elsewhere is seen anyway.
    pub readable: Vec<PathBuf>,
    /// Files and folders of the host that servers may really write to, because the user said so.
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

/// Holds the processes of one run and their state. All of them end with it.
pub struct Sandbox {
    // Fields are dropped in this order: first the processes, then their files.
    processes: Processes,
    #[cfg(target_os = "linux")]
    pub(crate) namespaces: Option<Namespaces>,
    pub(crate) supervisor: Supervisor,
    isolation: Isolation,
    paths: Paths,
    /// Package folders, as the server sees them.
    packages: Vec<PathBuf>,
    /// A package folder, and where its code is taken from instead.
    moved: Vec<(PathBuf, PathBuf)>,
    pub(crate) side: Side,
    state: State,
}

/// All that were launched, dead or alive.
#[derive(Default)]
struct Processes(Mutex<Vec<Arc<Lifeline>>>);

impl Processes {
    fn list(&self) -> std::sync::MutexGuard<'_, Vec<Arc<Lifeline>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Their end begins.
    fn cut(&self) -> Vec<Arc<Lifeline>> {
        let processes = std::mem::take(&mut *self.list());
        for process in &processes {
            process.cut();
        }
        processes
    }
}

impl Drop for Processes {
    fn drop(&mut self) {
        self.cut();
    }
}

/// The folder of preloads and sockets. Removed when dropped.
pub(crate) struct Side {
    pub here: PathBuf,
    /// As the server sees it.
    pub seen: PathBuf,
}

impl Drop for Side {
    fn drop(&mut self) {
        files::remove_all(&self.here);
    }
}

impl Sandbox {
    /// Makes a sandbox round a state. Blocks for a few milliseconds.
    pub fn open(spec: &SandboxSpec, state: State, supervisor: &Supervisor) -> Result<Self, Error> {
        // Arguments may name packages by a link to them.
        let asked = &spec.packages;
        let spec = spec.resolved()?;
        let here = state.scratch().side_dir()?;
        let side = Side {
            seen: here.clone(),
            here,
        };
        #[cfg(target_os = "linux")]
        {
            if spec.isolate == Isolate::Copy {
                return Self::open_copy(&spec, asked, state, side, supervisor, Vec::new());
            }
            match namespaces::open(&spec, &state, &side.here) {
                Ok(got) => Ok(Self::with_namespaces(&spec, state, side, supervisor, got)),
                Err(Refused::Error(e)) => Err(e),
                Err(Refused::Why(why)) if spec.isolate == Isolate::Namespaces => {
                    Err(Error::Isolation(why))
                }
                Err(Refused::Why(why)) => {
                    let notes = vec![format!("no namespaces: {why}")];
                    Self::open_copy(&spec, asked, state, side, supervisor, notes)
                }
            }
        }
        #[cfg(not(target_os = "linux"))]
        {
            if spec.isolate == Isolate::Namespaces {
                return Err(Error::Isolation("this needs Linux".to_owned()));
            }
            Self::open_copy(&spec, asked, state, side, supervisor, Vec::new())
        }
    }

    #[cfg(target_os = "linux")]
    fn with_namespaces(
        spec: &SandboxSpec,
        state: State,
        mut side: Side,
        supervisor: &Supervisor,
        mut got: Namespaces,
    ) -> Self {
        side.seen = PathBuf::from(SIDE);
        Self {
            processes: Processes::default(),
            supervisor: supervisor.clone(),
            isolation: Isolation {
                kind: IsolationKind::Namespaces,
                network: spec.network,
                notes: std::mem::take(&mut got.notes),
            },
            namespaces: Some(got),
            paths: Paths {
                workspace: PathBuf::from(WORKSPACE),
                home: PathBuf::from(HOME),
                tmp: PathBuf::from("/tmp"),
            },
            packages: spec.packages.clone(),
            moved: Vec::new(),
            side,
            state,
        }
    }

    fn open_copy(
        spec: &SandboxSpec,
        asked: &[PathBuf],
        state: State,
        side: Side,
        supervisor: &Supervisor,
        mut notes: Vec<String>,
    ) -> Result<Self, Error> {
        notes.push("files outside of the scratch folder are not protected".to_owned());
        if !spec.network {
            notes.push("the network is not closed".to_owned());
        }
        let mut moved = Vec::new();
        let mut packages = Vec::new();
        for (n, (package, asked)) in spec.packages.iter().zip(asked).enumerate() {
            let copy = copy_package(&state, n, package)?;
            moved.push((package.clone(), copy.clone()));
            moved.push((asked.clone(), copy.clone()));
            packages.push(copy);
        }
        Ok(Self {
            processes: Processes::default(),
            #[cfg(target_os = "linux")]
            namespaces: None,
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
            packages,
            moved,
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

    /// Where the server sees what a [`Snapshot`](crate::Snapshot) calls by this key.
    pub fn seen(&self, key: &str) -> PathBuf {
        let (area, rest) = key.split_once('/').unwrap_or((key, ""));
        let (root, rest) = match area {
            "home" => (&self.paths.home, rest),
            "tmp" => (&self.paths.tmp, rest),
            "shm" => return Path::new("/dev/shm").join(rest),
            "package" => {
                let (n, rest) = rest.split_once('/').unwrap_or((rest, ""));
                match n.parse::<usize>().ok().and_then(|n| self.packages.get(n)) {
                    Some(package) => (package, rest),
                    None => return PathBuf::from(key),
                }
            }
            _ => (&self.paths.workspace, rest),
        };
        if rest.is_empty() {
            root.clone()
        } else {
            root.join(rest)
        }
    }

    pub fn supervisor(&self) -> &Supervisor {
        &self.supervisor
    }

    /// Ends every process, waits until they are gone, and gives the state back: nobody writes to
    /// it any more.
    #[cfg_attr(not(target_os = "linux"), allow(unused_mut))]
    pub async fn close(mut self) -> State {
        let processes = self.processes.cut();
        #[cfg(target_os = "linux")]
        if let Some(mut namespaces) = self.namespaces.take() {
            // The kernel needs a moment to tear a network down.
            let _ = tokio::task::spawn_blocking(move || namespaces.init.end()).await;
        }
        for process in processes {
            process.gone().await;
        }
        self.state
    }

    pub(crate) fn adopt(&self, process: Arc<Lifeline>) {
        self.processes.list().push(process);
    }

    /// A path or an argument, with package folders replaced by their copies.
    pub(crate) fn relocate(&self, argument: &OsStr) -> OsString {
        for (from, to) in &self.moved {
            if let Ok(rest) = Path::new(argument).strip_prefix(from) {
                return if rest.as_os_str().is_empty() {
                    to.clone().into_os_string()
                } else {
                    to.join(rest).into_os_string()
                };
            }
        }
        argument.to_owned()
    }
}

impl SandboxSpec {
    /// With links resolved: mounts are made where the folders really are.
    fn resolved(&self) -> Result<Self, Error> {
        let resolve = |paths: &[PathBuf]| {
            paths
                .iter()
                .map(|p| fs::canonicalize(p).map_err(Error::file("find", p)))
                .collect::<Result<Vec<_>, _>>()
        };
        Ok(Self {
            isolate: self.isolate,
            network: self.network,
            packages: resolve(&self.packages)?,
            readable: resolve(&self.readable)?,
            writable: resolve(&self.writable)?,
        })
    }
}

/// The copy is made once for a state and comes along when the state is copied.
pub(crate) fn copy_package(state: &State, n: usize, package: &Path) -> Result<PathBuf, Error> {
    let dir = state.package(n);
    let copy = dir.join(COPY);
    if !copy.is_dir() {
        fs::create_dir_all(&copy).map_err(Error::file("create", &copy))?;
        files::copy_all(package, &copy)?;
        // What it imports from the folders above is found there still.
        if let Some(modules) = package
            .ancestors()
            .skip(1)
            .map(|above| above.join("node_modules"))
            .find(|modules| modules.is_dir())
        {
            let link = dir.join(MODULES);
            files::link(&modules, &link).map_err(Error::file("link", &link))?;
        }
        let original = dir.join(ORIGINAL);
        fs::write(&original, package.as_os_str().as_encoded_bytes())
            .map_err(Error::file("write", &original))?;
    }
    Ok(copy)
}
