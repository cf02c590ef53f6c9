//! A server process: its start, its pipes, its end.

#[cfg(target_os = "linux")]
use std::ffi::CString;
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::sync::watch;

use crate::error::Error;
use crate::event::ProcessId;
use crate::preload::Preload;
use crate::sandbox::Sandbox;

/// How to start a server.
#[derive(Clone, Debug, Default)]
pub struct Launch {
    /// The program and its arguments. A program without a slash is looked up in `PATH`.
    pub argv: Vec<OsString>,
    /// The whole environment, but for what the sandbox sets: `HOME`, `XDG_*`, `TMPDIR`,
    /// and, unless given here, `PATH` (as it is), `LANG`, `TZ` and
    /// `PYTHONDONTWRITEBYTECODE`.
    pub env: Vec<(OsString, OsString)>,
    /// As the server sees it. The workspace if not given.
    pub cwd: Option<PathBuf>,
    pub hooks: Hooks,
}

/// What to see of a server, and so where it can be held.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Hooks {
    /// System calls that change the state ([`Source::Syscall`](crate::Source::Syscall)).
    pub syscalls: bool,
    /// Also what only looks (opens for reading, `stat`, `access`, listings) at state, as events that
    /// cannot be held. Each of these calls then costs some microseconds, and servers make thousands
    /// when they start.
    pub reads: bool,
    /// Completions of asynchronous work, in Node and Python ([`Source::Await`](crate::Source::Await)).
    pub awaits: bool,
}

/// A server that runs. Dropping it kills it and what it started.
pub struct Process {
    id: ProcessId,
    pub stdin: Option<ChildStdin>,
    pub stdout: Option<ChildStdout>,
    pub stderr: Option<ChildStderr>,
    lifeline: Arc<Lifeline>,
    /// Why system calls are not seen, though it was asked for.
    blind: Option<String>,
}

/// What a process hangs by.
pub(crate) struct Lifeline {
    /// Its end is the end of the process.
    rope: Mutex<Option<Rope>>,
    /// How it ended.
    status: watch::Receiver<Option<ExitStatus>>,
}

/// The monitor sees when this is closed.
#[cfg(target_os = "linux")]
type Rope = std::io::PipeWriter;
/// The task that waits for the process sees when this is dropped.
#[cfg(not(target_os = "linux"))]
type Rope = tokio::sync::oneshot::Sender<()>;

impl Lifeline {
    pub(crate) fn cut(&self) {
        drop(
            self.rope
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .take(),
        );
    }

    /// Waits for the end. `None` if nobody can tell how it was.
    pub(crate) async fn gone(&self) -> Option<ExitStatus> {
        let mut status = self.status.clone();
        status.wait_for(Option::is_some).await.ok().and_then(|s| *s)
    }
}

impl Sandbox {
    /// Starts a server, with pipes for its standard input, output and error. Needs a tokio
    /// runtime with I/O and time.
    pub async fn launch(&self, launch: &Launch) -> Result<Process, Error> {
        let program = launch.argv.first().ok_or(Error::EmptyCommand)?;
        let failed = |source| Error::Spawn {
            command: program.to_string_lossy().into_owned(),
            source,
        };
        let id = self.supervisor.add_process();
        let preload = launch.hooks.awaits.then(|| self.preload(launch, id));
        let preload = preload.transpose().map_err(failed)?;
        let mut command = Command::new(self.relocate(program));
        command
            .args(launch.argv[1..].iter().map(|a| self.relocate(a)))
            .env_clear()
            .envs(self.environment(launch))
            .envs(preload.iter().flat_map(|p| p.environment().iter().cloned()))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let cwd = launch.cwd.as_ref().unwrap_or(&self.paths().workspace);
        let cwd = PathBuf::from(self.relocate(cwd.as_os_str()));
        let (child, rope, blind) =
            self.start(command, &cwd, id, launch.hooks)
                .await
                .map_err(|e| {
                    self.supervisor.process_ended(id);
                    failed(e)
                })?;
        Ok(self.process(id, child, rope, blind, preload))
    }

    fn process(
        &self,
        id: ProcessId,
        mut child: Child,
        rope: (Rope, Cut),
        blind: Option<String>,
        preload: Option<Preload>,
    ) -> Process {
        let (tell, status) = watch::channel(None);
        let lifeline = Arc::new(Lifeline {
            rope: Mutex::new(Some(rope.0)),
            status,
        });
        self.adopt(Arc::clone(&lifeline));
        let process = Process {
            id,
            stdin: child.stdin.take(),
            stdout: child.stdout.take(),
            stderr: child.stderr.take(),
            lifeline,
            blind,
        };
        let supervisor = self.supervisor.clone();
        supervisor.process_started(id, child.id());
        let cut = rope.1;
        tokio::spawn(async move {
            let status = end_of(child, cut).await;
            drop(preload);
            supervisor.process_ended(id);
            tell.send_replace(status.ok());
        });
        process
    }

    #[cfg(target_os = "linux")]
    async fn start(
        &self,
        mut command: Command,
        cwd: &Path,
        id: ProcessId,
        hooks: Hooks,
    ) -> io::Result<(Child, (Rope, Cut), Option<String>)> {
        use std::os::fd::AsFd as _;
        use std::os::unix::ffi::OsStrExt as _;

        use crate::linux::decode::Territory;
        use crate::linux::sys::stage::Stage;
        use crate::linux::{filter, probe, watch};

        let (lifeline, rope) = io::pipe()?;
        let enter = match &self.namespaces {
            Some(namespaces) => Some((
                namespaces.init.pidfd.as_fd().try_clone_to_owned()?,
                namespaces.kinds,
            )),
            None => None,
        };
        let mut blind = None;
        let mut filter = None;
        let mut installed = None;
        if hooks.syscalls {
            match probe::syscalls() {
                Err(why) => blind = Some(why),
                Ok(()) => {
                    let (here, there) = std::os::unix::net::UnixStream::pair()?;
                    let territory = match &self.namespaces {
                        Some(namespaces) => Territory::Under(namespaces.writable.clone()),
                        None => Territory::Everywhere,
                    };
                    let supervisor = self.supervisor.clone();
                    installed = Some(watch::start(here.into(), supervisor, id, territory)?);
                    filter = Some((filter::program(hooks.reads), there.into()));
                }
            }
        }
        Stage {
            enter,
            cwd: CString::new(cwd.as_os_str().as_bytes())?,
            lifeline: lifeline.into(),
            filter,
        }
        .attach(&mut command);
        let child = command.spawn()?;
        // With it go this process's copies of what was for the child.
        drop(command);
        if let Some(installed) = installed {
            blind = match installed.await {
                Ok(Ok(())) => None,
                Ok(Err(why)) => Some(why),
                Err(_) => Some("the filter was not heard of".to_owned()),
            };
        }
        Ok((child, (rope, Cut), blind))
    }

    #[cfg(not(target_os = "linux"))]
    async fn start(
        &self,
        mut command: Command,
        cwd: &Path,
        _id: ProcessId,
        hooks: Hooks,
    ) -> io::Result<(Child, (Rope, Cut), Option<String>)> {
        #[cfg(unix)]
        command.process_group(0);
        command.current_dir(cwd).kill_on_drop(true);
        let blind = hooks.syscalls.then(|| "this needs Linux".to_owned());
        Ok((command.spawn()?, tokio::sync::oneshot::channel(), blind))
    }

    fn preload(&self, launch: &Launch, id: ProcessId) -> io::Result<Preload> {
        let side = &self.side;
        Preload::start(
            &side.here,
            &side.seen,
            &launch.env,
            self.supervisor.clone(),
            id,
        )
    }

    fn environment(&self, launch: &Launch) -> Vec<(OsString, OsString)> {
        let paths = self.paths();
        let home = &paths.home;
        let mut env: Vec<(OsString, OsString)> = vec![
            ("LANG".into(), "C.UTF-8".into()),
            ("TZ".into(), "UTC".into()),
            // Caches of compiled code are no state, and have times in them.
            ("PYTHONDONTWRITEBYTECODE".into(), "1".into()),
        ];
        if let Some(path) = std::env::var_os("PATH") {
            env.push(("PATH".into(), path));
        }
        env.extend(
            launch
                .env
                .iter()
                .map(|(k, v)| (k.clone(), self.relocate(v))),
        );
        for (name, value) in [
            ("HOME", home.clone()),
            ("XDG_CONFIG_HOME", home.join(".config")),
            ("XDG_DATA_HOME", home.join(".local/share")),
            ("XDG_STATE_HOME", home.join(".local/state")),
            ("XDG_CACHE_HOME", home.join(".cache")),
            ("TMPDIR", paths.tmp.clone()),
        ] {
            env.push((name.into(), value.into_os_string()));
        }
        // The kernel does work that is queued there without a system call for each.
        env.push(("UV_USE_IO_URING".into(), "0".into()));
        env
    }
}

#[cfg(target_os = "linux")]
struct Cut;
#[cfg(not(target_os = "linux"))]
type Cut = tokio::sync::oneshot::Receiver<()>;

/// The monitor does the killing.
#[cfg(target_os = "linux")]
async fn end_of(mut monitor: Child, _cut: Cut) -> io::Result<ExitStatus> {
    monitor.wait().await
}

#[cfg(not(target_os = "linux"))]
async fn end_of(mut child: Child, cut: Cut) -> io::Result<ExitStatus> {
    tokio::select! {
        status = child.wait() => return status,
        _ = cut => {}
    }
    // It has not been waited for, so the number is still its own.
    #[cfg(unix)]
    if let Some(group) = child
        .id()
        .and_then(|id| i32::try_from(id).ok())
        .and_then(rustix::process::Pid::from_raw)
    {
        let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
    }
    let _ = child.start_kill();
    child.wait().await
}

impl Process {
    pub fn id(&self) -> ProcessId {
        self.id
    }

    /// Why system calls are not seen, if [`Hooks::syscalls`] was asked for and is not to be had.
    pub fn blind(&self) -> Option<&str> {
        self.blind.as_deref()
    }

    /// Waits for its end. `None` if nobody can tell how it was. Cancel-safe.
    pub async fn wait(&self) -> Option<ExitStatus> {
        self.lifeline.gone().await
    }

    /// How it ended, if it has.
    pub fn status(&self) -> Option<ExitStatus> {
        *self.lifeline.status.borrow()
    }

    /// Kills it and what it started, and waits until they are gone.
    pub async fn kill(&self) -> Option<ExitStatus> {
        self.lifeline.cut();
        self.wait().await
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.lifeline.cut();
    }
}
