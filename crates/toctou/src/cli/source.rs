//! What `toctou scan` understands for source that is elsewhere.

use clap::{Args, ValueEnum};

#[derive(Debug, Args)]
#[command(next_help_heading = "Sources")]
pub(crate) struct SourceArgs {
    /// Fetch no more than this, packed or unpacked, in megabytes
    #[arg(long, value_name = "MB", default_value_t = 512, value_parser = clap::value_parser!(u64).range(1..=65536))]
    pub(crate) max_fetch: u64,

    /// Fetch no longer than this
    #[arg(long, value_name = "SECONDS", default_value_t = 300, value_parser = clap::value_parser!(u64).range(1..=86400))]
    pub(crate) fetch_timeout: u64,

    /// Host whose repositories may come by plain http (can be repeated) [default: this machine]
    #[arg(long, value_name = "HOST")]
    pub(crate) allow_http: Vec<String>,

    // What follows is how `toctou serve` runs a scan for a stranger.
    /// Which addresses a source may have
    #[arg(long, value_enum, hide = true, default_value_t)]
    pub(crate) reach: ReachChoice,

    /// With `--reach`: these hosts only
    #[arg(long, value_name = "HOST", hide = true)]
    pub(crate) only_host: Vec<String>,

    /// What to call the source in the report
    #[arg(long, value_name = "NAME", hide = true)]
    pub(crate) source_name: Option<String>,

    /// Say on standard error what goes on, a JSON object a line
    #[arg(long, hide = true)]
    pub(crate) progress_lines: bool,

    /// Memory in megabytes that this process and its children may have each
    #[arg(long, value_name = "MB", hide = true)]
    pub(crate) confine_memory: Option<u64>,

    /// Seconds of CPU that this process and its children may use each
    #[arg(long, value_name = "SECONDS", hide = true)]
    pub(crate) confine_cpu: Option<u64>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum ReachChoice {
    #[default]
    User,
    Public,
    Intranet,
}
