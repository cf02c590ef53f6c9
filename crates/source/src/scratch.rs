//! A folder that is gone afterwards, whatever happens short of `kill -9`, and children that do not
//! outlive this process.

use std::io;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus};
use std::sync::{Mutex, Once, PoisonError};

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};

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

/// A child in a process group of its own. A terminal sends Ctrl-C to all of its group: a child in
/// ours would die of it, too, and its end might be heard of, as a failure, before the signal is.
/// One apart dies only when [`clean_up_on_signals`] ends it, and then nothing follows.
pub struct Apart {
    pub child: Child,
    group: Option<Pid>,
}

impl Apart {
    /// # Errors
    ///
    /// If the program cannot be run.
    pub fn start(command: &mut Command) -> io::Result<Self> {
        // A signal between the two would miss it.
        let mut alive = alive();
        let child = command.process_group(0).spawn()?;
        let group = Pid::from_raw(child.id().cast_signed());
        alive.groups.extend(group);
        Ok(Self { child, group })
    }

    pub(crate) fn group(&self) -> Option<Pid> {
        self.group
    }

    /// Waits until it is over. Its number stays its own: it is not [waited for](Self::wait) yet.
    pub(crate) fn over(&self) {
        let Some(group) = self.group else { return };
        let over = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
        while let Err(rustix::io::Errno::INTR) = waitid(WaitId::Pid(group), over) {}
    }

    /// # Errors
    ///
    /// If it cannot be waited for.
    pub fn wait(&mut self) -> io::Result<ExitStatus> {
        self.over();
        if let Some(group) = self.group.take() {
            // Before somebody else can have its number.
            alive().groups.retain(|other| *other != group);
        }
        self.child.wait()
    }
}

impl Drop for Apart {
    fn drop(&mut self) {
        if let Some(group) = self.group {
            let _ = kill_process_group(group, Signal::KILL);
            let _ = self.wait();
        }
    }
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
                    let _ = kill_process_group(*group, Signal::KILL);
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
