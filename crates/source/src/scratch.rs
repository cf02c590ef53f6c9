//! A folder that is gone afterwards, whatever happens short of `kill -9`.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, Once, PoisonError};

use rustix::process::Pid;

use crate::SourceError;

/// What has to be ended and removed when a signal ends this process.
static ALIVE: Mutex<Alive> = Mutex::new(Alive {
    folders: Vec::new(),
    groups: Vec::new(),
});

struct Alive {
    folders: Vec<PathBuf>,
    groups: Vec<Pid>,
}

fn alive() -> std::sync::MutexGuard<'static, Alive> {
    ALIVE.lock().unwrap_or_else(PoisonError::into_inner)
}

#[derive(Debug)]
pub(crate) struct Scratch(Option<tempfile::TempDir>);

impl Scratch {
    pub(crate) fn new() -> Result<Self, SourceError> {
        // A signal between the two would leave the folder behind.
        let mut alive = alive();
        let folder = tempfile::Builder::new()
            .prefix("toctou-source-")
            .tempdir()
            .map_err(|error| SourceError::Io {
                path: std::env::temp_dir(),
                error,
            })?;
        alive.folders.push(folder.path().to_owned());
        Ok(Self(Some(folder)))
    }

    pub(crate) fn path(&self) -> &Path {
        self.0
            .as_ref()
            .map_or(Path::new(""), tempfile::TempDir::path)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if let Some(folder) = self.0.take() {
            let path = folder.path().to_owned();
            drop(folder);
            alive().folders.retain(|other| *other != path);
        }
    }
}

/// A process group that is killed if a signal comes.
pub(crate) fn enter(group: Pid) {
    alive().groups.push(group);
}

pub(crate) fn leave(group: Pid) {
    alive().groups.retain(|other| *other != group);
}

/// From now on, Ctrl-C and the like end the clients that run and remove what
/// was fetched, before they end this process as they always do.
pub fn clean_up_on_signals() {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let Ok(mut signals) = signal_hook::iterator::Signals::new([SIGINT, SIGTERM, SIGHUP]) else {
            return;
        };
        std::thread::spawn(move || {
            if let Some(signal) = signals.forever().next() {
                // Kept until the end: nothing new is begun.
                let alive = alive();
                for group in &alive.groups {
                    let _ =
                        rustix::process::kill_process_group(*group, rustix::process::Signal::KILL);
                }
                for folder in &alive.folders {
                    // Once more for what a client wrote while it was being killed.
                    for _ in 0..3 {
                        if std::fs::remove_dir_all(folder).is_ok() {
                            break;
                        }
                    }
                }
                let _ = signal_hook::low_level::emulate_default_handler(signal);
            }
        });
    });
}
