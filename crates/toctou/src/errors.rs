//! Every way to fail: a title, what happened, what to do, and the exit code.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use thiserror::Error;
use toctou_report::{Paint, clean};
use toctou_rules::suppress::SuppressError;
use toctou_source::SourceError;

pub(crate) const FINDINGS: u8 = 1;
const FAILED: u8 = 2;
const NOTHING: u8 = 3;

#[derive(Debug, Error)]
pub(crate) enum Error {
    #[error("no such file or folder")]
    NoSuchPath { path: PathBuf },
    #[error("the source cannot be brought here")]
    Source { text: String, error: SourceError },
    #[error("a source is scanned alone")]
    SourceAmongPaths { text: String },
    #[error("nothing to analyse")]
    NothingToAnalyse { what: String },
    #[error("no file could be analysed")]
    NothingReadable { faults: Vec<String> },
    #[error("cannot read a file")]
    Read {
        path: PathBuf,
        error: std::io::Error,
    },
    #[error("cannot write a file")]
    Write {
        path: PathBuf,
        error: std::io::Error,
    },
    #[error("the config is not valid")]
    Config {
        path: PathBuf,
        line: usize,
        column: usize,
        message: String,
        hint: Option<String>,
    },
    #[error("a library model is not valid")]
    Model { message: String },
    #[error("there is no rule `{rule}`")]
    UnknownRule {
        rule: String,
        closest: Option<&'static str>,
    },
    #[error("an ignore comment is not valid")]
    Suppressions(Vec<SuppressError>),
    #[error("the baseline is not valid")]
    Baseline { path: PathBuf, message: String },
    #[error("there is no baseline to prune")]
    NoBaseline { path: PathBuf },
    #[error("two outputs go to one place")]
    OutputClash {
        first: &'static str,
        second: &'static str,
        path: Option<PathBuf>,
    },
    #[error("there is a toctou.toml already")]
    Exists { path: PathBuf },
    #[error("the guard cannot work")]
    Guard(toctou_guard::run::GuardError),
    #[error("the service cannot work")]
    Serve(toctou_serve::ServeError),
    #[error("which server?")]
    WhichServer {
        wanted: Option<String>,
        count: usize,
    },
    #[error("nobody could be let in")]
    Access { message: String },
    #[error("the servers are not valid")]
    Servers { path: PathBuf, message: String },
    #[error("no policy can be made")]
    NotAScan { path: PathBuf, message: String },
    #[error("the address is not valid")]
    Address { message: String },
    #[error("a server that runs already is not reset")]
    NotAllowed { url: String },
    #[error("nothing can be proved")]
    Prove(toctou_prove::ProveError),
    #[error("the plan is not valid")]
    Plan { path: PathBuf, message: String },
    #[error("the proofs are not valid")]
    Proofs { path: PathBuf, message: String },
    #[error("cannot start {count} threads")]
    Threads { count: usize, message: String },
    #[error("generated files are not current")]
    Stale { files: Vec<String> },
    /// Nobody waits for the answer any more. Seen by editors only.
    #[error("stopped")]
    Stopped,
    #[error("cannot compare with the past")]
    Since {
        message: String,
        hint: Option<&'static str>,
    },
    #[error("changes could not be undone")]
    Dirty { files: Vec<String> },
    #[error("what was fetched cannot be changed")]
    NotHere,
    #[error("a file was changed while it was scanned")]
    ChangedMeanwhile { path: PathBuf },
    #[error("a diff and a report go to one place")]
    DiffClash { format: &'static str },
    #[error("the editor and toctou do not understand each other")]
    Editor { message: String },
    #[error("there is no job summary to write to")]
    NoJobSummary,
    #[error("toctou itself failed")]
    Internal {
        doing: &'static str,
        message: String,
    },
}

impl Error {
    pub(crate) fn exit_code(&self) -> u8 {
        match self {
            Self::NothingToAnalyse { .. } => NOTHING,
            Self::Prove(error) if error.is_nothing() => NOTHING,
            _ => FAILED,
        }
    }

    /// What happened, one line each.
    fn details(&self) -> Vec<String> {
        match self {
            Self::NoSuchPath { path } | Self::Exists { path } | Self::NoBaseline { path } => {
                vec![path.display().to_string()]
            }
            Self::Source { text, error } => {
                let mut lines = vec![error.to_string()];
                if !text.contains(':') && !Path::new(text).exists() {
                    lines.push(format!(
                        "there is no `{text}` here, so it was taken for a repository on GitHub"
                    ));
                }
                lines
            }
            Self::SourceAmongPaths { text } => vec![text.clone()],
            Self::NothingToAnalyse { what } => vec![what.clone()],
            Self::NothingReadable { faults } => first_few(faults),
            Self::Read { path, error } | Self::Write { path, error } => {
                vec![format!("{}: {error}", path.display())]
            }
            Self::Config {
                path,
                line,
                column,
                message,
                ..
            } => vec![format!("{}:{line}:{column}: {message}", path.display())],
            Self::Model { message } => vec![message.clone()],
            Self::Baseline { path, message } => vec![format!("{}: {message}", path.display())],
            Self::UnknownRule { .. } => Vec::new(),
            Self::Suppressions(errors) => {
                first_few(&errors.iter().map(ToString::to_string).collect::<Vec<_>>())
            }
            Self::OutputClash {
                first,
                second,
                path,
            } => {
                let place = match path {
                    Some(path) => path.display().to_string(),
                    None => "standard output".to_owned(),
                };
                vec![format!(
                    "`{first}` and `{second}` would both be written to {place}"
                )]
            }
            Self::Guard(error) => causes(error),
            Self::Serve(error) => causes(error),
            Self::WhichServer {
                wanted: Some(name), ..
            } => vec![format!("there is no server `{name}`")],
            Self::WhichServer { count: 0, .. } => vec!["no server is named".to_owned()],
            Self::WhichServer { count, .. } => vec![format!("{count} servers are named")],
            Self::Access { message } | Self::Address { message } => vec![message.clone()],
            Self::NotAllowed { url } => vec![format!(
                "what the tools of {url} change stays changed, and nothing was called yet"
            )],
            Self::Servers { path, message }
            | Self::NotAScan { path, message }
            | Self::Proofs { path, message } => {
                vec![format!("{}: {message}", path.display())]
            }
            Self::Prove(error) => error.lines(),
            Self::Plan { path, message } => vec![format!("{}: {message}", path.display())],
            Self::Threads { message, .. } | Self::Editor { message } => vec![message.clone()],
            Self::Stale { files } => files.clone(),
            Self::Stopped | Self::NotHere => Vec::new(),
            Self::Dirty { files } => first_few(files),
            Self::ChangedMeanwhile { path } => vec![path.display().to_string()],
            Self::DiffClash { format } => {
                vec![format!(
                    "the diff and `{format}` would both be written to standard output"
                )]
            }
            Self::Since { message, .. } => message.lines().map(str::to_owned).collect(),
            Self::NoJobSummary => vec!["GITHUB_STEP_SUMMARY is not set".to_owned()],
            Self::Internal { doing, message } => vec![format!("while {doing}: {message}")],
        }
    }

    fn hint(&self) -> Option<String> {
        match self {
            Self::NoSuchPath { .. } | Self::Read { .. } | Self::Write { .. } => None,
            Self::Source { error, .. } => error.hint().map(str::to_owned),
            Self::SourceAmongPaths { .. } => {
                Some("run `toctou scan` once for it, and once for the others".to_owned())
            }
            Self::NothingToAnalyse { .. } => {
                Some("give the folder that holds the server's source".to_owned())
            }
            Self::NothingReadable { .. } => Some("is this the server's source?".to_owned()),
            Self::Config { hint, .. } => hint.clone(),
            Self::Model { .. } => Some("the format is described in docs/models.md".to_owned()),
            Self::UnknownRule {
                closest: Some(closest), ..
            } => Some(format!("did you mean `{closest}`?")),
            Self::UnknownRule { closest: None, .. } => Some("`toctou rules` lists them all".to_owned()),
            Self::Suppressions(errors) => errors.first().map(|error| error.fault.hint()),
            Self::Baseline { .. } => Some("`toctou baseline write` makes a new one".to_owned()),
            Self::NoBaseline { .. } => Some("`toctou baseline write` makes one".to_owned()),
            Self::OutputClash { .. } => {
                Some("send one of them to a file: `--output sarif=toctou.sarif`".to_owned())
            }
            Self::Exists { .. } => Some("`--force` replaces it".to_owned()),
            Self::Guard(error) => error.hint().map(str::to_owned),
            Self::Serve(error) => error.hint().map(str::to_owned),
            Self::WhichServer { .. } => Some(
                "give its command after `--` (`-- node server.js`), or choose one: `--servers mcp.json --server NAME`"
                    .to_owned(),
            ),
            Self::Address { .. } => Some(
                "an address of a server begins with http:// or https://; for `--http` a path such as /mcp is enough".to_owned(),
            ),
            Self::NotAllowed { .. } => Some(
                "`--allow-changes` if that is a test server; better, have prove start it: `--http /mcp --env PORT={port} -- node server.js`"
                    .to_owned(),
            ),
            Self::Access { .. } => Some(
                "listen on 127.0.0.1, or give `--token-file FILE`, with a token of 16 characters or more on a line"
                    .to_owned(),
            ),
            Self::Servers { .. } => Some(
                "a server has a `command` or a `url`: {\"mcpServers\": {\"notes\": {\"command\": \"node\"}}}"
                    .to_owned(),
            ),
            Self::NotAScan { .. } => {
                Some("`toctou scan --output json=scan.json` writes what is needed".to_owned())
            }
            Self::Prove(error) => error.hint().map(str::to_owned),
            Self::Plan { .. } => Some("the formats are described in docs/prove.md".to_owned()),
            Self::Proofs { .. } => Some(
                "`toctou prove --from scan.json --output json=proofs.json -- COMMAND` writes them"
                    .to_owned(),
            ),
            Self::Threads { .. } => Some("try a smaller `--threads`".to_owned()),
            Self::Stale { .. } => Some("run `cargo run -p toctou -- dev generate`".to_owned()),
            Self::Stopped => None,
            Self::NotHere => Some("`--diff` shows the changes; apply them where the source is".to_owned()),
            Self::Dirty { .. } => Some(
                "commit first, so that Git can bring the old text back, or give `--allow-dirty`; `--diff` only shows the changes"
                    .to_owned(),
            ),
            Self::ChangedMeanwhile { .. } => Some("run it again".to_owned()),
            Self::DiffClash { format } => {
                Some(format!("send the report to a file: `--output {format}=FILE`"))
            }
            Self::Editor { .. } => Some("an editor starts this: docs/editor.md says how".to_owned()),
            Self::Since { hint, .. } => hint.map(str::to_owned),
            Self::NoJobSummary => Some(
                "GitHub Actions sets it; elsewhere, `--output markdown=FILE` writes the same text".to_owned(),
            ),
            Self::Internal { .. } => Some(
                "this is a bug; please report it with the command line: https://github.com/toctou-dev/toctou/issues"
                    .to_owned(),
            ),
        }
    }

    pub(crate) fn render(&self, color: bool) -> String {
        let paint = Paint { color };
        let error = anstyle::AnsiColor::Red.on_default().bold();
        let title = clean::line(&self.to_string());
        let mut out = format!("{} {}\n", paint.paint(error, "error:"), paint.bold(&title));
        for line in self.details() {
            let _ = writeln!(out, "  {}", clean::line(&line));
        }
        if let Some(hint) = self.hint() {
            let cyan = anstyle::AnsiColor::Cyan.on_default().bold();
            let _ = writeln!(out, "{} {}", paint.paint(cyan, "hint:"), clean::line(&hint));
        }
        out
    }
}

/// An error and what is behind it, one line each.
fn causes(error: &dyn std::error::Error) -> Vec<String> {
    let mut lines = vec![error.to_string()];
    let mut source = error.source();
    while let Some(error) = source {
        // Many errors repeat their source in their own text.
        let text = error.to_string();
        if !lines.iter().any(|line| line.contains(&text)) {
            lines.push(text);
        }
        source = error.source();
    }
    lines
}

fn first_few(all: &[String]) -> Vec<String> {
    let mut lines: Vec<String> = all.iter().take(10).cloned().collect();
    if all.len() > lines.len() {
        lines.push(format!("and {} more", all.len() - lines.len()));
    }
    lines
}
