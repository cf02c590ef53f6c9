//! What can be typed after `toctou guard`.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

pub(super) const GUARD_EXAMPLES: &str = "\
Examples:
  toctou guard -- npx -y @modelcontextprotocol/server-memory
                                                 one server, the safe default: tools that only
                                                 read run side by side, all others one at a time
  toctou guard --policy guard.toml -- node server.js
                                                 locks by argument, limits, idempotency
  toctou guard --servers mcp.json --server files --policy guard.toml
                                                 one server of a client's own file
  toctou guard --servers mcp.json --listen 127.0.0.1:8808
                                                 all of them, by HTTP, each under its name
  toctou scan . --output json | toctou guard init --from - > guard.toml
                                                 a policy that closes what scan found
  toctou guard check --policy guard.toml -- node server.js
                                                 do the policy and the server's tools fit?

In a client's configuration, put `toctou guard --` in front of the server's command.";

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub(crate) struct GuardArgs {
    #[command(subcommand)]
    pub(crate) action: Option<GuardAction>,

    #[command(flatten)]
    pub(crate) run: GuardRunArgs,
}

#[derive(Debug, Subcommand)]
pub(crate) enum GuardAction {
    /// Write a policy: from what scan found, or a commented example
    Init(GuardInitArgs),
    /// Start a server, ask for its tools, and see whether the policy fits them
    Check(GuardCheckArgs),
}

#[derive(Debug, Args)]
pub(crate) struct GuardInitArgs {
    /// The JSON of `toctou scan --output json`; `-` for standard input
    #[arg(long, value_name = "FILE")]
    pub(crate) from: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct GuardCheckArgs {
    #[command(flatten)]
    pub(crate) target: TargetArgs,
}

/// Which servers, by which policy.
#[derive(Debug, Args)]
pub(crate) struct TargetArgs {
    /// The server's command and its arguments
    #[arg(
        value_name = "COMMAND",
        trailing_var_arg = true,
        allow_hyphen_values = true
    )]
    pub(crate) command: Vec<String>,

    /// A file with `mcpServers`, as clients keep it
    #[arg(long, value_name = "FILE", help_heading = "Servers")]
    pub(crate) servers: Option<PathBuf>,

    /// Of several servers, this one
    #[arg(long, value_name = "NAME", help_heading = "Servers")]
    pub(crate) server: Option<String>,

    /// Address of a server that speaks Streamable HTTP or HTTP+SSE, instead of a command
    #[arg(long, value_name = "URL", conflicts_with_all = ["command", "servers"], help_heading = "Servers")]
    pub(crate) url: Option<String>,

    /// What may run beside what [default: by the tools' own annotations]
    #[arg(
        long,
        visible_alias = "config",
        value_name = "FILE",
        help_heading = "Policy"
    )]
    pub(crate) policy: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct GuardRunArgs {
    #[command(flatten)]
    pub(crate) target: TargetArgs,

    /// Where locks and limits live
    ///
    /// `host` (the default) reaches all guards of this user on this machine,
    /// `memory` this guard only; `host:FOLDER`, `redis[s]://…` and `postgres://…`
    /// reach further.
    #[arg(long, value_name = "URL", help_heading = "Policy")]
    pub(crate) backend: Option<String>,

    /// Decide and log, but hold up nothing
    #[arg(long, help_heading = "Policy")]
    pub(crate) observe: bool,

    /// Put lock keys and waiting time into the `_meta` of every tool's answer
    #[arg(long, help_heading = "Policy")]
    pub(crate) meta: bool,

    /// Serve HTTP here instead of standard input and output
    #[arg(long, value_name = "ADDRESS", help_heading = "HTTP")]
    pub(crate) listen: Option<SocketAddr>,

    /// Tokens of callers, one a line: `TOKEN` or `NAME TOKEN`
    #[arg(long, value_name = "FILE", requires = "listen", help_heading = "HTTP")]
    pub(crate) token_file: Option<PathBuf>,

    /// Certificate chain and key for TLS, in PEM
    #[arg(long, value_names = ["CERTIFICATE", "KEY"], num_args = 2, requires = "listen", help_heading = "HTTP")]
    pub(crate) tls: Option<Vec<PathBuf>>,

    /// Web page that may send requests, such as https://app.example (can be repeated) [default: local pages]
    #[arg(
        long,
        value_name = "ORIGIN",
        requires = "listen",
        help_heading = "HTTP"
    )]
    pub(crate) allow_origin: Vec<String>,

    /// Listen on an address that others can reach, although there is no token
    #[arg(long, requires = "listen", help_heading = "HTTP")]
    pub(crate) allow_anonymous: bool,

    /// Keep the traffic in this file, with secrets masked
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub(crate) record: Option<PathBuf>,

    /// Serve metrics for Prometheus here
    #[arg(long, value_name = "ADDRESS", help_heading = "Output")]
    pub(crate) metrics: Option<SocketAddr>,

    /// How much to log, as JSON lines on standard error
    #[arg(
        long,
        value_enum,
        value_name = "LEVEL",
        default_value_t,
        help_heading = "Output"
    )]
    pub(crate) log: LogLevel,

    /// Refuse messages that are larger, in megabytes
    #[arg(long, value_name = "MB", default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..=1024), help_heading = "Limits")]
    pub(crate) max_message: u32,

    /// Seconds that calls in flight have when the guard is told to stop
    #[arg(
        long,
        value_name = "SECONDS",
        default_value_t = 30,
        help_heading = "Limits"
    )]
    pub(crate) grace: u32,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogLevel {
    Error,
    /// Faults, restarts, and in observe mode what would have waited
    #[default]
    Warn,
    /// Also every call that waited or was refused
    Info,
    /// Also every release
    Debug,
}
