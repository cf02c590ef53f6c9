//! Folders for one run of `prove`: a scratch root, and in it the states that servers work on.
//!
//! Everything is under one root that is removed when its last user is gone. A root whose
//! owner was killed is removed by the next one: the owner holds a lock on a file in it.

use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::error::Error;
use crate::files;
use crate::snapshot::{COPY, Limits, MODULES, ORIGINAL, Snapshot, UPPER};

const PREFIX: &str = "toctou-scratch-";
const LOCK: &str = "lock";

/// The root of all scratch folders of one run. Removed with its last clone and its last [`State`].
#[derive(Clone)]
pub struct Scratch {
    root: Arc<Root>,
}

struct Root {
    path: PathBuf,
    next: AtomicU64,
    _lock: File,
}

impl Scratch {
    /// In the system's folder for temporary files.
    pub fn create() -> Result<Self, Error> {
        Self::create_in(&std::env::temp_dir())
    }

    pub fn create_in(base: &Path) -> Result<Self, Error> {
        let failed = |source| Error::Scratch {
            path: base.to_owned(),
            source,
        };
        // Paths are compared with what the kernel says, so links must be resolved.
        let base = base.canonicalize().map_err(failed)?;
        sweep(&base);
        let (path, lock) = loop {
            let path = base.join(format!("{PREFIX}{:016x}", fastrand::u64(..)));
            match files::create_private_dir(&path) {
                Ok(()) => {}
                Err(e) if e.kind() == io::ErrorKind::AlreadyExists => continue,
                Err(e) => return Err(failed(e)),
            }
            let lock = File::create_new(path.join(LOCK)).and_then(|f| f.lock().map(|()| f));
            match lock {
                // Another run may have swept it away before it was locked.
                Ok(lock) if path.join(LOCK).exists() => break (path, lock),
                Ok(_) => {}
                Err(e) if e.kind() == io::ErrorKind::NotFound => {}
                Err(e) => {
                    files::remove_all(&path);
                    return Err(failed(e));
                }
            }
        };
        Ok(Self {
            root: Arc::new(Root {
                path,
                next: AtomicU64::new(0),
                _lock: lock,
            }),
        })
    }

    pub fn path(&self) -> &Path {
        &self.root.path
    }

    /// An empty state, to be prepared and then copied for each run.
    pub fn new_state(&self) -> Result<State, Error> {
        let state = self.bare_state()?;
        for area in Area::ALL {
            let dir = state.area(area);
            fs::create_dir_all(&dir).map_err(Error::file("create", &dir))?;
        }
        for dir in [".config", ".local/share", ".local/state", ".cache"] {
            let dir = state.area(Area::Home).join(dir);
            fs::create_dir_all(&dir).map_err(Error::file("create", &dir))?;
        }
        Ok(state)
    }

    fn bare_state(&self) -> Result<State, Error> {
        let number = self.root.next.fetch_add(1, Ordering::Relaxed);
        let dir = self.root.path.join(format!("state-{number}"));
        files::create_private_dir(&dir).map_err(Error::file("create", &dir))?;
        Ok(State {
            dir,
            scratch: self.clone(),
        })
    }

    /// A folder of its own for sockets and mount points.
    pub(crate) fn side_dir(&self) -> Result<PathBuf, Error> {
        let number = self.root.next.fetch_add(1, Ordering::Relaxed);
        let dir = self.root.path.join(format!("side-{number}"));
        files::create_private_dir(&dir).map_err(Error::file("create", &dir))?;
        Ok(dir)
    }
}

impl Drop for Root {
    fn drop(&mut self) {
        files::remove_all(&self.path);
    }
}

/// Removes what killed runs left behind. Nobody holds the lock of such a root.
fn sweep(base: &Path) {
    let Ok(entries) = fs::read_dir(base) else {
        return;
    };
    for entry in entries.flatten() {
        if !entry.file_name().to_string_lossy().starts_with(PREFIX) {
            continue;
        }
        let Ok(lock) = File::open(entry.path().join(LOCK)) else {
            continue;
        };
        match lock.try_lock() {
            Ok(()) => files::remove_all(&entry.path()),
            Err(TryLockError::WouldBlock | TryLockError::Error(_)) => {}
        }
    }
}

/// Parts of a state, each a folder that the server sees at a fixed place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Area {
    /// The folder that the server works on.
    Workspace,
    /// `$HOME`, with the XDG folders in it.
    Home,
    /// `/tmp`.
    Tmp,
    /// `/dev/shm`.
    Shm,
}

impl Area {
    pub const ALL: [Self; 4] = [Self::Workspace, Self::Home, Self::Tmp, Self::Shm];

    pub fn name(self) -> &'static str {
        match self {
            Self::Workspace => "workspace",
            Self::Home => "home",
            Self::Tmp => "tmp",
            Self::Shm => "shm",
        }
    }
}

/// All that a server can change: its workspace, its home, its temporary files and what it
/// writes next to its code. Removed when dropped.
pub struct State {
    dir: PathBuf,
    scratch: Scratch,
}

impl State {
    /// Where an area is on the host: to put fixtures into, or to look at.
    pub fn area(&self, area: Area) -> PathBuf {
        self.dir.join(area.name())
    }

    pub fn workspace(&self) -> PathBuf {
        self.area(Area::Workspace)
    }

    pub fn home(&self) -> PathBuf {
        self.area(Area::Home)
    }

    /// A fresh copy, for one run. No process may be writing to this one.
    pub fn copy(&self) -> Result<Self, Error> {
        let copy = self.scratch.bare_state()?;
        for area in Area::ALL {
            files::copy_all(&self.area(area), &copy.area(area))?;
        }
        for n in (0..).take_while(|n| self.package(*n).is_dir()) {
            let (from, to) = (self.package(n), copy.package(n));
            // Not the overlay's working folder, which nobody may read.
            for part in [UPPER, COPY] {
                if from.join(part).is_dir() {
                    files::copy_all(&from.join(part), &to.join(part))?;
                }
            }
            if let Ok(modules) = fs::read_link(from.join(MODULES)) {
                files::link(&modules, &to.join(MODULES))
                    .map_err(Error::file("link", to.join(MODULES)))?;
            }
            if from.join(ORIGINAL).is_file() {
                fs::copy(from.join(ORIGINAL), to.join(ORIGINAL))
                    .map_err(Error::file("copy", from.join(ORIGINAL)))?;
            }
        }
        Ok(copy)
    }

    /// What is in it now.
    pub fn snapshot(&self, limits: &Limits) -> Result<Snapshot, Error> {
        Snapshot::of(self, limits)
    }

    pub fn scratch(&self) -> &Scratch {
        &self.scratch
    }

    #[cfg(target_os = "linux")]
    pub(crate) fn dir(&self) -> &Path {
        &self.dir
    }

    /// Where the writes to the n-th package folder go.
    pub(crate) fn package(&self, n: usize) -> PathBuf {
        self.dir.join("packages").join(n.to_string())
    }
}

impl Drop for State {
    fn drop(&mut self) {
        files::remove_all(&self.dir);
    }
}
