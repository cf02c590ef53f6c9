//! A folder that is gone afterwards, whatever happens short of `kill -9`.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, Once, PoisonError};

use rustix::process::Pid;

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

/// A folder of this process, which [`clean_up_on_signals`] knows of.
#[derive(Debug)]
pub struct Scratch(Option<tempfile::TempDir>);

impl Scratch {
    /// Makes one among the temporary files.
    ///
    /// # Errors
    ///
    /// If it cannot be made there.
    pub fn new(prefix: &str) -> io::Result<Self> {
        // A signal between the two would leave the folder behind.
        let mut alive = alive();
        let folder = tempfile::Builder::new().prefix(prefix).tempdir()?;
        alive.folders.push(folder.path().to_owned());
        Ok(Self(Some(folder)))
    }

    pub fn path(&self) -> &Path {
        self.0
            .as_ref()
            .map_or(Path::new(""), tempfile::TempDir::path)
    }

    /// Writes a file below the folder, and the folders on the way.
    ///
    /// # Errors
    ///
    /// If it cannot be written.
    pub fn write(&self, path: &Path, contents: &[u8]) -> io::Result<()> {
        // A signal in the middle would remove the folder, and this make it again.
        let _alive = alive();
        let path = self.path().join(path);
        if let Some(parent) = path.parent() {
            std::fs::create_dir_all(parent)?;
        }
        std::fs::write(&path, contents)
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
