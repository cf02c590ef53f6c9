//! `toctou serve`: from what was typed to a running service.

use std::path::PathBuf;
use std::time::Duration;

use toctou_serve::{CallerLimits, Options, Reach, ScanLimits, Scanner};

use crate::cli::ServeArgs;
use crate::errors::Error;
use crate::terminal;

pub(crate) fn run(args: &ServeArgs) -> Result<(), Error> {
    let program = std::env::current_exe().map_err(|error| Error::Read {
        path: PathBuf::from("toctou"),
        error,
    })?;
    let cores = std::thread::available_parallelism().map_or(2, usize::from);
    let half = u16::try_from(cores / 2).unwrap_or(u16::MAX).max(1);
    let options = Options {
        listen: (!args.worker).then_some(args.listen),
        store: args
            .store
            .clone()
            .or_else(|| std::env::var("TOCTOU_STORE").ok())
            .unwrap_or_else(default_store),
        workers: args.workers.unwrap_or(half),
        scanner: Scanner {
            program,
            limits: ScanLimits {
                time: Duration::from_secs(args.timeout),
                memory: args.max_memory,
                source: args.max_source,
                threads: args.threads,
            },
            reach: Reach {
                private: args.allow_private,
                hosts: args.allow_host.clone(),
            },
            policy: toctou_report::html_policy(),
        },
        callers: CallerLimits {
            rate: args.rate,
            pending: args.pending,
            open: args.open,
        },
        max_upload: (args.max_upload as usize) << 20,
        behind_proxy: args.behind_proxy,
        keep: args.keep,
        lease: Duration::from_secs(args.lease),
    };
    let ready = |address: Option<std::net::SocketAddr>| {
        // Whoever started us waits for this line.
        terminal::to_stderr(&match address {
            Some(address) => format!("toctou serve: http://{address}/\n"),
            None => "toctou serve: a worker is ready\n".to_owned(),
        });
    };
    toctou_serve::run(options, ready).map_err(Error::Serve)
}

/// In the folder for what a program keeps and nobody edits.
fn default_store() -> String {
    let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    let state = set("XDG_STATE_HOME")
        .map(PathBuf::from)
        .or_else(|| set("HOME").map(|home| PathBuf::from(home).join(".local/state")))
        .unwrap_or_default();
    state.join("toctou/serve.db").display().to_string()
}
