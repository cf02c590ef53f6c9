//! What can be typed after `toctou serve`.

use std::net::SocketAddr;

use clap::Args;

pub(super) const SERVE_EXAMPLES: &str = "\
Examples:
  toctou serve                                   a page on this machine: http://127.0.0.1:8090/
  toctou serve --listen 0.0.0.0:8090 --behind-proxy
                                                 for everybody, behind a proxy that does TLS
  toctou serve --allow-private --allow-host git.corp.example
                                                 for repositories of an intranet
  toctou serve --store postgres://toctou@db/toctou --workers 0
  toctou serve --store postgres://toctou@db/toctou --worker --workers 4
                                                 the page here, workers on as many machines as you like

Ends on Ctrl-C; scans that run are given back to the queue.";

#[derive(Debug, Args)]
pub(crate) struct ServeArgs {
    /// Where to serve the page
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8090")]
    pub(crate) listen: SocketAddr,

    /// Where jobs and reports live: a file, or postgres://user@host/name
    ///
    /// An address with a password is better kept in TOCTOU_STORE, where other
    /// users of the machine cannot see it. By default it is the file
    /// toctou/serve.db in the user's folder for state.
    #[arg(long, value_name = "STORE")]
    pub(crate) store: Option<String>,

    /// Serve no page, only scan what others accept
    #[arg(long, conflicts_with = "listen")]
    pub(crate) worker: bool,

    /// Scans at a time [default: one for each two cores]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(0..=256))]
    pub(crate) workers: Option<u16>,

    /// How many reports are kept, the newest
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = clap::value_parser!(i64).range(1..))]
    pub(crate) keep: i64,

    /// Also scan repositories at private addresses, and by plain http
    #[arg(long, help_heading = "Sources")]
    pub(crate) allow_private: bool,

    /// Scan repositories of this host only (can be repeated)
    #[arg(long, value_name = "HOST", help_heading = "Sources")]
    pub(crate) allow_host: Vec<String>,

    /// A source may have this many megabytes
    #[arg(long, value_name = "MB", default_value_t = 256, value_parser = clap::value_parser!(u64).range(1..=65536), help_heading = "Limits of a scan")]
    pub(crate) max_source: u64,

    /// An upload may have this many megabytes
    #[arg(long, value_name = "MB", default_value_t = 32, value_parser = clap::value_parser!(u32).range(1..=1024), help_heading = "Limits of a scan")]
    pub(crate) max_upload: u32,

    /// A scan may take this long
    #[arg(long, value_name = "SECONDS", default_value_t = 120, value_parser = clap::value_parser!(u64).range(1..=86400), help_heading = "Limits of a scan")]
    pub(crate) timeout: u64,

    /// A scan may have this much memory, in megabytes (1024 or more)
    #[arg(long, value_name = "MB", default_value_t = 2048, value_parser = clap::value_parser!(u64).range(1024..), help_heading = "Limits of a scan")]
    pub(crate) max_memory: u64,

    /// Threads of a scan
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u16).range(1..=64), help_heading = "Limits of a scan")]
    pub(crate) threads: u16,

    /// A caller may ask for this many scans a minute
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..), help_heading = "Limits of a caller")]
    pub(crate) rate: u32,

    /// A caller may have this many scans waiting or running
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..), help_heading = "Limits of a caller")]
    pub(crate) pending: u32,

    /// A caller may have this many uploads and progress streams open
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = clap::value_parser!(u32).range(1..), help_heading = "Limits of a caller")]
    pub(crate) open: u32,

    /// Take a caller's address from the X-Forwarded-For of a proxy in front
    #[arg(long, help_heading = "Limits of a caller")]
    pub(crate) behind_proxy: bool,

    /// Seconds after which the job of a silent worker is given to another
    #[arg(long, value_name = "SECONDS", default_value_t = 15, value_parser = clap::value_parser!(u64).range(1..=3600), hide = true)]
    pub(crate) lease: u64,
}
