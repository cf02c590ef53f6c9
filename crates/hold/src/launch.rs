//! A server process: its start, its pipes, its end.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::{ExitStatus, Stdio};

use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};

use crate::error::Error;
use crate::event::ProcessId;
use crate::sandbox::Sandbox;
use crate::supervisor::Supervisor;

/// How to start a server.
#[derive(Clone, Debug, Default)]
pub struct Launch {
    /// The program and its arguments. A program without a slash is looked up in `PATH`.
    pub argv: Vec<OsString>,
    /// The whole environment, but for what the sandbox sets: `HOME`, `XDG_*`, `TMPDIR`,
    /// and, unless given here, `PATH` (as it is), `LANG` and `TZ`.
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
    /// Also opens for reading, as events that cannot be held. Costs some microseconds for each
    /// file that the server opens, and Python opens thousands when it starts.
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
    child: Child,
    supervisor: Supervisor,
    /// Why system calls are not seen, though it was asked for.
    blind: Option<String>,
}

impl Sandbox {
    /// Starts a server, with pipes for its standard input, output and error.
    pub async fn launch(&self, launch: &Launch) -> Result<Process, Error> {
        let program = launch.argv.first().ok_or(Error::EmptyCommand)?;
        let mut command = Command::new(self.relocate(program));
        command
            .args(launch.argv[1..].iter().map(|a| self.relocate(a)))
            .env_clear()
            .envs(self.environment(launch))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        command.current_dir(launch.cwd.as_ref().unwrap_or(&self.paths().workspace));
        #[cfg(unix)]
        command.process_group(0);
        let mut child = command.spawn().map_err(|source| Error::Spawn {
            command: program.to_string_lossy().into_owned(),
            source,
        })?;
        Ok(Process {
            id: self.supervisor.add_process(),
            stdin: child.stdin.take(),
            stdout: child.stdout.take(),
            stderr: child.stderr.take(),
            child,
            supervisor: self.supervisor.clone(),
            blind: launch.hooks.syscalls.then(|| "not built yet".to_owned()),
        })
    }

    fn environment(&self, launch: &Launch) -> Vec<(OsString, OsString)> {
        let paths = self.paths();
        let home = &paths.home;
        let mut env: Vec<(OsString, OsString)> = vec![
            ("LANG".into(), "C.UTF-8".into()),
            ("TZ".into(), "UTC".into()),
        ];
        if let Some(path) = std::env::var_os("PATH") {
            env.push(("PATH".into(), path));
        }
        env.extend(launch.env.iter().cloned());
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

impl Process {
    pub fn id(&self) -> ProcessId {
        self.id
    }

    /// Why system calls are not seen, if [`Hooks::syscalls`] was asked for and is not to be had.
    pub fn blind(&self) -> Option<&str> {
        self.blind.as_deref()
    }

    /// Waits for its end. Cancel-safe.
    pub async fn wait(&mut self) -> std::io::Result<ExitStatus> {
        let status = self.child.wait().await?;
        self.supervisor.process_ended(self.id);
        Ok(status)
    }

    /// How it ended, if it has.
    pub fn try_wait(&mut self) -> std::io::Result<Option<ExitStatus>> {
        let status = self.child.try_wait()?;
        if status.is_some() {
            self.supervisor.process_ended(self.id);
        }
        Ok(status)
    }

    /// Kills it and what it started, and waits until they are gone.
    pub async fn kill(&mut self) -> std::io::Result<ExitStatus> {
        self.child.start_kill()?;
        self.wait().await
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.supervisor.process_ended(self.id);
    }
}
