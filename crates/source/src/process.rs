//! Clients of others (git, npm, pip) as child processes that keep the limits.

use std::io::{self, BufRead as _, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{ChildStdout, Command, Stdio};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};

use crate::error::megabytes;
use crate::scratch::Apart;
use crate::{Job, SourceError};

/// What a client said on standard error is kept up to here, for the error.
const KEPT_LINES: usize = 12;
const LONGEST_LINE: u64 = 4096;
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Why the watch ended a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Breach {
    Time,
    Size,
}

#[derive(Default)]
struct State {
    over: bool,
    breach: Option<Breach>,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    over: Condvar,
}

/// A client that runs: in a process group of its own, watched by a thread.
pub(crate) struct Client<'a> {
    job: &'a Job<'a>,
    what: String,
    apart: Apart,
    shared: Arc<Shared>,
    watch: Option<JoinHandle<()>>,
}

/// How a client ended.
pub(crate) struct Ended {
    pub(crate) success: bool,
    /// The last lines on standard error.
    pub(crate) said: Vec<String>,
}

impl<'a> Client<'a> {
    /// `what` is for messages: "cloning …".
    pub(crate) fn start(
        mut command: Command,
        stdin: Stdio,
        what: &str,
        job: &'a Job<'a>,
        missing: impl FnOnce() -> SourceError,
    ) -> Result<Self, SourceError> {
        command
            .stdin(stdin)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let apart = match Apart::start(&mut command) {
            Ok(apart) => apart,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Err(missing()),
            Err(error) => {
                return Err(SourceError::Failed {
                    what: what.to_owned(),
                    because: error.to_string(),
                    hint: None,
                });
            }
        };
        let shared = Arc::new(Shared::default());
        let watch = apart.group().map(|group| {
            let shared = Arc::clone(&shared);
            let (deadline, bytes) = (job.deadline, job.limits().bytes);
            let folder = job.scratch.to_owned();
            std::thread::spawn(move || watch(&shared, group, deadline, &folder, bytes))
        });
        Ok(Self {
            job,
            what: what.to_owned(),
            apart,
            shared,
            watch,
        })
    }

    pub(crate) fn stdout(&mut self) -> Option<ChildStdout> {
        self.apart.child.stdout.take()
    }

    /// Lets `read` have what it writes, `each` what it says, and waits for its end.
    pub(crate) fn run<T>(
        mut self,
        each: impl FnMut(&str) + Send,
        read: impl FnOnce(&mut Self) -> Result<T, SourceError>,
    ) -> Result<(T, Ended), SourceError> {
        let stderr = self.apart.child.stderr.take();
        let (result, said) = std::thread::scope(|scope| {
            let listening = scope.spawn(|| stderr.map(|stderr| listen(stderr, each)));
            let result = read(&mut self);
            if result.is_err() {
                self.kill();
            }
            drop(self.apart.child.stdout.take());
            let said = listening.join().ok().flatten().unwrap_or_default();
            (result, said)
        });
        let success = self.end()?;
        Ok((result?, Ended { success, said }))
    }

    fn kill(&self) {
        let state = self.shared.lock();
        if let (Some(group), false) = (self.apart.group(), state.over) {
            let _ = kill_process_group(group, Signal::KILL);
        }
    }

    /// Waits. The process stays a zombie until nobody will signal its group any more.
    fn end(&mut self) -> Result<bool, SourceError> {
        let Some(group) = self.apart.group() else {
            return Ok(false);
        };
        self.apart.over();
        let breach = {
            let mut state = self.shared.lock();
            // What it started may live on, and hold nothing of ours.
            let _ = kill_process_group(group, Signal::KILL);
            state.over = true;
            state.breach
        };
        self.shared.over.notify_all();
        if let Some(watch) = self.watch.take() {
            let _ = watch.join();
        }
        let status = self.apart.wait();
        match breach {
            Some(Breach::Time) => Err(SourceError::TooSlow {
                what: self.what.clone(),
                limit: self.job.limits().time,
            }),
            Some(Breach::Size) => Err(SourceError::TooLarge {
                what: self.what.clone(),
                limit: megabytes(self.job.limits().bytes),
            }),
            None => Ok(status.is_ok_and(|status| status.success())),
        }
    }
}

impl Drop for Client<'_> {
    fn drop(&mut self) {
        if self.apart.group().is_some() {
            self.kill();
            let _ = self.end();
        }
    }
}

impl Shared {
    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn watch(shared: &Shared, group: Pid, deadline: Instant, folder: &Path, bytes: u64) {
    let mut state = shared.lock();
    while !state.over {
        drop(state);
        let breach = if Instant::now() >= deadline {
            Some(Breach::Time)
        } else if size(folder, bytes) > bytes {
            Some(Breach::Size)
        } else {
            None
        };
        state = shared.lock();
        if state.over {
            return;
        }
        if breach.is_some() {
            state.breach = breach;
            let _ = kill_process_group(group, Signal::KILL);
            return;
        }
        let waited = shared.over.wait_timeout(state, LOOK_EVERY);
        state = waited.unwrap_or_else(PoisonError::into_inner).0;
    }
}

/// Bytes below a folder; stops counting past `enough`.
fn size(folder: &Path, enough: u64) -> u64 {
    let mut total = 0;
    let mut folders: Vec<PathBuf> = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        let Ok(entries) = std::fs::read_dir(&folder) else {
            continue;
        };
        for entry in entries.flatten() {
            match entry.metadata() {
                Ok(meta) if meta.is_dir() => folders.push(entry.path()),
                Ok(meta) => total += meta.len(),
                Err(_) => {}
            }
            if total > enough {
                return total;
            }
        }
    }
    total
}

/// Lines end in `\n`, or in `\r` if they are to be overwritten.
fn listen(stderr: impl Read, mut each: impl FnMut(&str)) -> Vec<String> {
    let mut said: Vec<String> = Vec::new();
    let mut reader = BufReader::new(stderr);
    let mut line = Vec::new();
    loop {
        let (used, ended, over) = match reader.fill_buf() {
            Ok([]) => (0, true, true),
            Ok(bytes) => {
                let end = bytes.iter().position(|b| matches!(b, b'\n' | b'\r'));
                let room = (LONGEST_LINE as usize).saturating_sub(line.len());
                let part = &bytes[..end.unwrap_or(bytes.len())];
                line.extend_from_slice(&part[..part.len().min(room)]);
                (end.map_or(bytes.len(), |end| end + 1), end.is_some(), false)
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(_) => (0, true, true),
        };
        reader.consume(used);
        if ended && !line.is_empty() {
            let text = String::from_utf8_lossy(&line).trim().to_owned();
            line.clear();
            if !text.is_empty() {
                each(&text);
                if said.len() == KEPT_LINES {
                    said.remove(0);
                }
                said.push(text);
            }
        }
        if over {
            return said;
        }
    }
}
