//! The command line: what can be typed. What it means is in [`crate::commands`].

mod guard;
mod prove;
mod serve;
mod source;

use std::path::PathBuf;

use clap::builder::styling::{AnsiColor, Effects, Styles};
use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, Parser, Subcommand, ValueEnum};
use toctou_core::rule::{Persona, Severity};
use toctou_rules::registry;

use crate::output::{OutputSpec, parse_output};
use guard::GUARD_EXAMPLES;
pub(crate) use guard::{
    GuardAction, GuardArgs, GuardCheckArgs, GuardInitArgs, GuardRunArgs, LogLevel, TargetArgs,
};
use prove::PROVE_EXAMPLES;
pub(crate) use prove::{IsolateChoice, ProcessChoice, ProveArgs, StrategyChoice};
use serve::SERVE_EXAMPLES;
pub(crate) use serve::ServeArgs;
pub(crate) use source::{ReachChoice, SourceArgs};

const STYLES: Styles = Styles::styled()
    .header(AnsiColor::Green.on_default().effects(Effects::BOLD))
    .usage(AnsiColor::Green.on_default().effects(Effects::BOLD))
    .literal(AnsiColor::Cyan.on_default().effects(Effects::BOLD))
    .placeholder(AnsiColor::Cyan.on_default());

const EXIT_CODES: &str = "\
Exit codes, the same for every command and format:
  0  nothing found
  1  findings
  2  toctou or its usage failed
  3  nothing to analyse";

/// Find race conditions in MCP servers.
#[derive(Debug, Parser)]
#[command(name = "toctou", version, styles = STYLES, after_long_help = EXIT_CODES)]
#[command(
    disable_help_subcommand = true,
    subcommand_required = true,
    arg_required_else_help = true
)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,

    /// When to use colour
    ///
    /// `auto` uses it on a terminal, unless NO_COLOR is set; FORCE_COLOR and
    /// CLICOLOR_FORCE turn it on everywhere.
    #[arg(
        long,
        global = true,
        value_enum,
        value_name = "WHEN",
        default_value_t,
        help_heading = "Global options"
    )]
    pub(crate) color: ColorChoice,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum ColorChoice {
    #[default]
    Auto,
    Always,
    Never,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Find races in the source of a server
    #[command(after_long_help = SCAN_EXAMPLES)]
    Scan(ScanArgs),
    /// Show what a rule means and how to fix what it finds
    Explain(ExplainArgs),
    /// List the rules
    Rules(RulesArgs),
    /// Write a commented toctou.toml
    Init(InitArgs),
    /// Keep a list of known findings, so that only new ones count
    Baseline(BaselineArgs),
    /// Run a server and drive its calls into each other, to show that a race is real
    #[command(after_long_help = PROVE_EXAMPLES)]
    Prove(Box<ProveArgs>),
    /// Stand in front of a server and close its windows while it runs
    #[command(after_long_help = GUARD_EXAMPLES)]
    Guard(Box<GuardArgs>),
    /// Show findings in an editor: a language server on standard input and output
    Lsp,
    /// Let an agent check the server it is writing: an MCP server on standard input and output
    Mcp(McpArgs),
    /// Serve a web page that scans repositories and archives
    #[command(after_long_help = SERVE_EXAMPLES)]
    Serve(Box<ServeArgs>),
    /// Print a completion script for a shell
    Completions(CompletionsArgs),
    /// For toctou's own development
    #[command(hide = true)]
    Dev(DevArgs),
}

const SCAN_EXAMPLES: &str = "\
Examples:
  toctou scan                                    scan the current folder
  toctou scan packages/server src/tools.ts       several folders and files
  toctou scan owner/name@v1.2#packages/server    a repository of GitHub, a tag, a folder of it
  toctou scan npm:@scope/server@1.0.0            a package, without running any of it
  toctou scan --persona auditor                  everything a reviewer may want to see
  toctou scan --rule file-read-modify-write      one rule only
  toctou scan --output text --output sarif=toctou.sarif
                                                 read it here, upload it there
  toctou scan --output html=report.html          one page with timelines to step through
  toctou scan --fail-on high                     fail a build on high and critical only
  toctou scan --since origin/main                only what this branch brings
  toctou scan --diff | git apply                 look at safe changes, or take them

Exit codes: 0 nothing found, 1 findings, 2 toctou or its usage failed, 3 nothing to analyse.";

#[derive(Debug, Args)]
pub(crate) struct ScanArgs {
    #[command(flatten)]
    pub(crate) input: InputArgs,

    #[command(flatten)]
    pub(crate) source: SourceArgs,

    /// Show findings of these rules only (can be repeated)
    #[arg(long, value_name = "RULE", value_parser = parse_rule, help_heading = "Selection")]
    pub(crate) rule: Vec<String>,

    /// Hide findings below this severity
    #[arg(long, value_name = "SEVERITY", value_parser = severity(), help_heading = "Selection")]
    pub(crate) min_severity: Option<Severity>,

    /// Show only what is new since this commit, branch or tag
    ///
    /// The tree is scanned as it is now and as it was where the two histories
    /// part; what was found there is left out. Moved lines and renamed files
    /// are not new. Needs Git, and changes nothing in the repository.
    #[arg(long, value_name = "REF", help_heading = "Selection")]
    pub(crate) since: Option<String>,

    /// Write the report in this format, to standard output or to a file (can be repeated)
    ///
    /// Formats: text (the default), json, sarif, github, markdown, html,
    /// gitlab, junit. A file is written whole or not at all. Only one format can
    /// go to standard output.
    #[arg(long, short, value_name = "FORMAT[=PATH]", value_parser = parse_output, help_heading = "Output")]
    pub(crate) output: Vec<OutputSpec>,

    /// Add a Markdown report to the job's summary page, in GitHub Actions
    #[arg(long, help_heading = "Output")]
    pub(crate) job_summary: bool,

    /// The JSON of `toctou prove --from … --output json`: what it proved is of high confidence,
    /// and the html report shows the real runs
    #[arg(long, value_name = "FILE", help_heading = "Input")]
    pub(crate) proofs: Option<PathBuf>,

    /// Draw every timeline and name everything that was skipped
    #[arg(long, short, help_heading = "Output")]
    pub(crate) verbose: bool,

    /// Write the report and nothing else
    #[arg(long, short, conflicts_with = "verbose", help_heading = "Output")]
    pub(crate) quiet: bool,

    /// Show counts, and the calls that no library model knows
    #[arg(long, help_heading = "Output")]
    pub(crate) stats: bool,

    /// Show changes that close findings, as a unified diff; change nothing
    ///
    /// Only where it is safe: a file that was looked for is created with a flag
    /// that makes it fail if there is one, a lock is released on every way out,
    /// a test is repeated in the statement that writes. Each is checked by
    /// scanning what it leaves.
    #[arg(long, conflicts_with = "fix", help_heading = "Changes")]
    pub(crate) diff: bool,

    /// Make these changes, then report what is left
    #[arg(long, help_heading = "Changes")]
    pub(crate) fix: bool,

    /// Change files that Git could not bring back
    #[arg(long, requires = "fix", help_heading = "Changes")]
    pub(crate) allow_dirty: bool,

    /// Exit with 1 only for findings of this severity or worse
    #[arg(long, value_name = "SEVERITY", value_parser = severity(), help_heading = "Result")]
    pub(crate) fail_on: Option<Severity>,

    /// Exit with 0 even if there are findings
    #[arg(long, help_heading = "Result")]
    pub(crate) exit_zero: bool,
}

/// What every command that scans understands.
#[derive(Debug, Args)]
pub(crate) struct InputArgs {
    /// Folders and files to scan, or one source: a Git address, owner/name, npm:name@version, pypi:name==version, an archive
    #[arg(value_name = "PATH", default_value = ".")]
    pub(crate) paths: Vec<PathBuf>,

    /// Whose findings to show
    ///
    /// `regular` is what a maintainer would thank you for. `pedantic` adds
    /// what depends on the deployment or on something unknown. `auditor`
    /// adds everything a reviewer may want to look at.
    #[arg(long, value_name = "PERSONA", value_parser = persona(), help_heading = "Selection")]
    pub(crate) persona: Option<Persona>,

    /// Read this config file [default: the nearest toctou.toml above the scanned path]
    #[arg(long, value_name = "FILE", help_heading = "Input")]
    pub(crate) config: Option<PathBuf>,

    /// Look for no toctou.toml and no baseline
    #[arg(long, conflicts_with = "config", help_heading = "Input")]
    pub(crate) no_config: bool,

    /// Known findings, which do not count [default: toctou-baseline.txt beside the config or in the scanned folder]
    #[arg(long, value_name = "FILE", help_heading = "Input")]
    pub(crate) baseline: Option<PathBuf>,

    /// Skip files that are larger, in megabytes
    #[arg(long, value_name = "MB", default_value_t = 10, help_heading = "Input")]
    pub(crate) max_file_size: u64,

    /// Threads to use [default: one per core]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024), help_heading = "Input")]
    pub(crate) threads: Option<u16>,

    /// Show no progress bar
    #[arg(long, help_heading = "Output")]
    pub(crate) no_progress: bool,
}

impl InputArgs {
    /// One path, and everything as the project's config has it.
    pub(crate) fn of(path: PathBuf) -> Self {
        Self {
            paths: vec![path],
            persona: None,
            config: None,
            no_config: false,
            baseline: None,
            max_file_size: 10,
            threads: None,
            no_progress: true,
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct ExplainArgs {
    /// Id of the rule, such as file-read-modify-write
    #[arg(value_name = "RULE")]
    pub(crate) rule: String,

    /// How to show the page
    #[arg(long, short, value_enum, value_name = "FORMAT", default_value_t)]
    pub(crate) output: PageFormat,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum PageFormat {
    /// For the terminal
    #[default]
    Text,
    /// As written
    Markdown,
}

#[derive(Debug, Args)]
pub(crate) struct RulesArgs {
    /// How to show the list
    #[arg(long, short, value_enum, value_name = "FORMAT", default_value_t)]
    pub(crate) output: ListFormat,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum ListFormat {
    #[default]
    Text,
    Json,
}

#[derive(Debug, Args)]
pub(crate) struct InitArgs {
    /// Folder to write it to
    #[arg(value_name = "FOLDER", default_value = ".")]
    pub(crate) folder: PathBuf,

    /// Replace a toctou.toml that is already there
    #[arg(long)]
    pub(crate) force: bool,
}

#[derive(Debug, Args)]
pub(crate) struct BaselineArgs {
    #[command(subcommand)]
    pub(crate) action: BaselineAction,
}

#[derive(Debug, Subcommand)]
pub(crate) enum BaselineAction {
    /// Write all present findings to the baseline
    Write(InputArgs),
    /// Drop entries that are found no longer
    Prune(InputArgs),
}

#[derive(Debug, Args)]
pub(crate) struct McpArgs {
    /// Folders that may be read; paths are relative to the first
    #[arg(value_name = "FOLDER", default_value = ".")]
    pub(crate) roots: Vec<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct CompletionsArgs {
    #[arg(value_enum)]
    pub(crate) shell: clap_complete::Shell,
}

#[derive(Debug, Args)]
pub(crate) struct DevArgs {
    #[command(subcommand)]
    pub(crate) action: DevAction,
}

#[derive(Debug, Subcommand)]
pub(crate) enum DevAction {
    /// Write the generated files: schemas, command line reference, rule pages
    Generate {
        /// Root of the repository
        #[arg(long, value_name = "FOLDER", default_value = ".")]
        root: PathBuf,
        /// Change nothing; fail if a file is not current
        #[arg(long)]
        check: bool,
    },
}

fn parse_rule(text: &str) -> Result<String, String> {
    match registry::find(text) {
        Some(rule) => Ok(rule.id.to_owned()),
        None => Err(match registry::closest(text) {
            Some(closest) => format!("there is no such rule; did you mean `{closest}`?"),
            None => "there is no such rule; `toctou rules` lists them all".to_owned(),
        }),
    }
}

fn severity() -> impl TypedValueParser<Value = Severity> {
    PossibleValuesParser::new(Severity::ALL.iter().map(|s| s.as_str()))
        .try_map(|text| text.parse::<Severity>())
}

fn persona() -> impl TypedValueParser<Value = Persona> {
    PossibleValuesParser::new(Persona::ALL.iter().map(|p| p.as_str()))
        .try_map(|text| text.parse::<Persona>())
}
