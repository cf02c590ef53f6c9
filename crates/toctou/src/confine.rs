//! A process that scans for strangers gives up what it will not need.
//!
//! It does so itself, before it touches anything of theirs: so there is no
//! moment without limits, and children (git, npm, pip) inherit them.

use rustix::process::{Resource, Rlimit, Signal, setrlimit};

use crate::cli::SourceArgs;
use crate::errors::Error;
use crate::pipeline::STACK;

/// Files that it may have open at a time.
const FILES: u64 = 1024;
/// Addresses that are taken and not used: the program itself, and what the
/// runtime of Node sets aside.
const UNUSED: u64 = 256 << 20;

pub(crate) fn apply(args: &SourceArgs, threads: Option<u16>) -> Result<(), Error> {
    if args.confine_memory.is_none() && args.confine_cpu.is_none() {
        return Ok(());
    }
    let limit = |resource: Resource, most: u64| {
        let limits = Rlimit {
            current: Some(most),
            maximum: Some(most),
        };
        setrlimit(resource, limits).map_err(|error| Error::Internal {
            doing: "setting the limits of this process",
            message: error.to_string(),
        })
    };
    limit(Resource::Core, 0)?;
    limit(Resource::Nofile, FILES)?;
    limit(Resource::Fsize, args.max_fetch.saturating_mul(2 << 20))?;
    if let Some(megabytes) = args.confine_memory {
        // What is limited are addresses, and stacks take many of them.
        let stacks = (u64::from(threads.unwrap_or(1)) + 1).saturating_mul(STACK as u64);
        let memory = megabytes.saturating_mul(1 << 20);
        limit(
            Resource::As,
            memory.saturating_add(stacks).saturating_add(UNUSED),
        )?;
    }
    if let Some(seconds) = args.confine_cpu {
        limit(Resource::Cpu, seconds)?;
    }
    // Nobody would read the report of a scan whose worker is gone.
    #[cfg(target_os = "linux")]
    let _ = rustix::process::set_parent_process_death_signal(Some(Signal::KILL));
    // … and of one that was gone before the kernel had been told.
    let parent = rustix::process::getppid().map(|pid| pid.as_raw_pid().to_string());
    match std::env::var(toctou_serve::WORKER) {
        Ok(worker) if parent.as_deref() != Some(&*worker) => Err(Error::Internal {
            doing: "starting",
            message: "the worker that started this scan is gone".to_owned(),
        }),
        _ => Ok(()),
    }
}
