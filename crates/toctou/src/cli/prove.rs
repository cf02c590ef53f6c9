//! What can be typed after `toctou prove`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};

pub(super) const PROVE_EXAMPLES: &str = "\
Examples:
  toctou prove -- node server.js                 everything from the tools' own schemas
  toctou prove -- node node_modules/.bin/server-filesystem {workspace}
                                                 {workspace} is the scratch folder
  toctou scan . --output json=scan.json; toctou prove --from scan.json -- node server.js
                                                 are these findings real?
  toctou prove --servers mcp.json --server notes one server of a client's own file
  toctou prove --http /mcp --env PORT={port} -- node http-server.js
                                                 it serves HTTP, at a port that is free
  toctou prove --url http://localhost:3000/mcp --allow-changes
                                                 a server that runs already
  toctou prove --state postgres://localhost/postgres --state-init schema.sql -- node server.js
                                                 state in a database: a scratch one for each run
  toctou prove --env API_KEY=test -- node server.js
                                                 the environment is passed explicitly
  toctou prove --reproducer race -- node server.js
                                                 keep what it takes to see it again
  toctou prove --replay race/replay.json         see it again

Nothing outside a scratch area is touched, and there is no network, unless you say so.

Exit codes: 0 nothing proved, 1 proved, 2 toctou or its usage failed, 3 nothing to prove.";

#[derive(Debug, Args)]
pub(crate) struct ProveArgs {
    /// The server's command and its arguments; `{workspace}` stands for the scratch folder
    #[arg(
        value_name = "COMMAND",
        trailing_var_arg = true,
        allow_hyphen_values = true
    )]
    pub(crate) command: Vec<String>,

    /// A file with `mcpServers`, as clients keep it
    #[arg(
        long,
        value_name = "FILE",
        conflicts_with = "command",
        help_heading = "Server"
    )]
    pub(crate) servers: Option<PathBuf>,

    /// Of several servers, this one
    #[arg(long, value_name = "NAME", help_heading = "Server")]
    pub(crate) server: Option<String>,

    /// The command serves HTTP, at this path or address; `{port}` is a free port, here, in the command and in --env
    ///
    /// A path such as /mcp stands for http://localhost:{port}/mcp.
    #[arg(
        long,
        value_name = "ADDRESS",
        conflicts_with = "url",
        help_heading = "Server"
    )]
    pub(crate) http: Option<String>,

    /// A server that runs already: it is not started, held or reset; needs --allow-changes
    #[arg(long, value_name = "URL", conflicts_with_all = ["command", "servers", "env", "cwd", "writable", "allow_network", "isolate"], help_heading = "Server")]
    pub(crate) url: Option<String>,

    /// Sent along with every request to a server that runs already, as 'NAME: VALUE' (can be repeated)
    #[arg(long, value_name = "HEADER", value_parser = parse_header, help_heading = "Server")]
    pub(crate) header: Vec<(String, String)>,

    /// What the server gets of the environment, as NAME=VALUE, or NAME to pass yours on (can be repeated)
    #[arg(long, value_name = "NAME[=VALUE]", help_heading = "Server")]
    pub(crate) env: Vec<String>,

    /// It keeps state here: postgres://… or redis://…; each run gets a scratch database of its own
    #[arg(
        long,
        value_name = "URL",
        conflicts_with = "url",
        help_heading = "Server"
    )]
    pub(crate) state: Option<String>,

    /// The variable that tells the server its scratch database [default: DATABASE_URL or REDIS_URL]
    #[arg(long, value_name = "NAME", requires = "state", help_heading = "Server")]
    pub(crate) state_env: Option<String>,

    /// SQL that prepares the scratch database
    #[arg(long, value_name = "FILE", requires = "state", help_heading = "Server")]
    pub(crate) state_init: Option<PathBuf>,

    /// Where the server is started [default: the scratch folder]
    #[arg(long, value_name = "FOLDER", help_heading = "Server")]
    pub(crate) cwd: Option<PathBuf>,

    /// Let the server use the network
    #[arg(long, help_heading = "Isolation")]
    pub(crate) allow_network: bool,

    /// Let prove call the tools of a server that runs already: what they change is not undone
    #[arg(long, help_heading = "Isolation")]
    pub(crate) allow_changes: bool,

    /// Let the server really write here (can be repeated)
    #[arg(long, value_name = "PATH", help_heading = "Isolation")]
    pub(crate) writable: Vec<PathBuf>,

    /// How to keep the server away from the rest
    #[arg(
        long,
        value_enum,
        value_name = "HOW",
        default_value_t,
        help_heading = "Isolation"
    )]
    pub(crate) isolate: IsolateChoice,

    /// Which calls shall meet
    #[command(flatten)]
    pub(crate) plan: ProvePlan,

    /// Stop after this time, such as 60s or 5m
    #[arg(long, value_name = "TIME", value_parser = parse_time, default_value = "2m", help_heading = "Search")]
    pub(crate) budget: Duration,

    /// How long one call may take
    #[arg(long, value_name = "TIME", value_parser = parse_time, default_value = "10s", help_heading = "Search")]
    pub(crate) timeout: Duration,

    /// Calls in one process, in two processes on one state, or both
    #[arg(
        long,
        value_enum,
        value_name = "WHICH",
        default_value_t,
        help_heading = "Search"
    )]
    pub(crate) processes: ProcessChoice,

    /// Use only these ways of making calls meet (can be repeated)
    #[arg(long, value_enum, value_name = "STRATEGY", help_heading = "Search")]
    pub(crate) strategy: Vec<StrategyChoice>,

    /// Also hold both calls (bound 2)
    #[arg(long, help_heading = "Search")]
    pub(crate) deep: bool,

    /// Stop at the first proof
    #[arg(long, help_heading = "Search")]
    pub(crate) first: bool,

    /// Stop after so many schedules, whatever the machine makes of the time
    #[arg(long, value_name = "COUNT", help_heading = "Search")]
    pub(crate) schedules: Option<usize>,

    /// Write the report in this format, to standard output or to a file (can be repeated)
    ///
    /// Formats: text (the default), json, sarif, markdown. A file is written
    /// whole or not at all. Only one format can go to standard output.
    #[arg(long, short, value_name = "FORMAT[=PATH]", value_parser = crate::commands::prove::parse_output, help_heading = "Output")]
    pub(crate) output: Vec<crate::commands::prove::ProveOutput>,

    /// Write a folder with what it takes to see each proof again
    #[arg(long, value_name = "FOLDER", help_heading = "Output")]
    pub(crate) reproducer: Option<PathBuf>,

    /// Write the report and nothing else
    #[arg(long, short, help_heading = "Output")]
    pub(crate) quiet: bool,

    /// Show no progress bar
    #[arg(long, help_heading = "Output")]
    pub(crate) no_progress: bool,

    /// Exit with 0 even if something was proved
    #[arg(long, help_heading = "Result")]
    pub(crate) exit_zero: bool,
}

/// Which calls shall meet.
#[derive(Debug, Args)]
pub(crate) struct ProvePlan {
    /// The JSON of `toctou scan --output json`: are its findings real?
    #[arg(long, value_name = "FILE", help_heading = "Plan")]
    pub(crate) from: Option<PathBuf>,

    /// Calls that work, as a JSON list of {"tool": …, "arguments": {…}}
    #[arg(long, value_name = "FILE", help_heading = "Plan")]
    pub(crate) examples: Option<PathBuf>,

    /// Exactly these calls: JSON with `setup`, `calls` and `observers`
    #[arg(long, value_name = "FILE", help_heading = "Plan")]
    pub(crate) scenario: Option<PathBuf>,

    /// Traffic that `toctou guard --record FILE` wrote: its calls are taken for examples
    #[arg(long, value_name = "FILE", help_heading = "Plan")]
    pub(crate) traffic: Option<PathBuf>,

    /// Run a proof again, from the replay.json of a reproducer
    #[arg(long, value_name = "FILE", conflicts_with_all = ["from", "examples", "scenario", "traffic"], help_heading = "Plan")]
    pub(crate) replay: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum IsolateChoice {
    /// Namespaces where they are to be had, else a copy
    #[default]
    Auto,
    /// Namespaces or nothing
    Namespaces,
    /// Redirected folders and a copy of the package
    Copy,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum ProcessChoice {
    One,
    Two,
    #[default]
    Both,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum StrategyChoice {
    /// All calls at once
    Burst,
    /// One call stands at a system call while the other runs
    Hold,
    /// One call stands where asynchronous work completes (Node, Python)
    AwaitHold,
    /// All calls at once, with random delays
    Jitter,
}

/// `Authorization: Bearer …`
fn parse_header(text: &str) -> Result<(String, String), String> {
    let (name, value) = text
        .split_once(':')
        .ok_or_else(|| "give a name and a value: 'Authorization: Bearer …'".to_owned())?;
    Ok((name.trim().to_owned(), value.trim().to_owned()))
}

/// `90`, `60s`, `5m`, `500ms`.
fn parse_time(text: &str) -> Result<Duration, String> {
    let digits = text
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let wrong = || "give a number and a unit: 500ms, 60s, 5m".to_owned();
    let number: u64 = number.parse().map_err(|_| wrong())?;
    let time = match unit {
        "ms" => Duration::from_millis(number),
        "" | "s" => Duration::from_secs(number),
        "m" | "min" => Duration::from_secs(number.saturating_mul(60)),
        "h" => Duration::from_secs(number.saturating_mul(3600)),
        _ => return Err(wrong()),
    };
    if time.is_zero() || time > Duration::from_secs(7 * 24 * 3600) {
        return Err("more than nothing, and at most a week".to_owned());
    }
    Ok(time)
}
