//! `toctou lsp`: the scan of this program, for the language server.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use toctou_core::source::FileId;
use toctou_lsp::{Engine, Failure, Overlay, Problem, Scan};

use crate::cli::InputArgs;
use crate::commands::scan::Input;
use crate::errors::Error;
use crate::languages::{self, FRONTENDS};
use crate::{pipeline, terminal};

pub(crate) fn run() -> Result<(), Error> {
    greet();
    toctou_lsp::serve_stdio(Arc::new(Scanner)).map_err(|error| Error::Editor {
        message: error.to_string(),
    })
}

struct Scanner;

impl Engine for Scanner {
    fn scan(&self, folder: &Path, overlay: &Overlay, stop: &AtomicBool) -> Result<Scan, Failure> {
        scan(folder, overlay, stop).or_else(|error| match error {
            Error::Stopped => Err(Failure::Stopped),
            // A folder without a server is nothing to complain about.
            Error::NothingToAnalyse { .. } | Error::NothingReadable { .. } => Ok(Scan::default()),
            error => Err(failure(&error)),
        })
    }

    fn comment(&self, path: &Path) -> Option<&'static str> {
        let name = path.file_name()?.to_str()?;
        Some(FRONTENDS[languages::of(name)?].comment)
    }

    fn is_comment(&self, path: &Path, text: &str, line: u32) -> bool {
        let name = path.file_name().and_then(|name| name.to_str());
        let Some(language) = name.and_then(languages::of) else {
            return false;
        };
        pipeline::directives(
            &FRONTENDS[language],
            FileId(0),
            &path.to_string_lossy(),
            text,
        )
        .contains(&line)
    }
}

fn scan(folder: &Path, overlay: &Overlay, stop: &AtomicBool) -> Result<Scan, Error> {
    let args = InputArgs::of(folder.to_owned());
    let input = Input::open(&args)?;
    let persona = input.persona(&args);
    let baseline = input.baseline(&args)?;
    let mut scan = input.scan_text(&args, baseline.as_ref(), overlay, stop)?;
    let min_severity = input.config.min_severity;
    scan.findings.retain(|finding| {
        finding.persona <= persona
            && finding.suppressed.is_none()
            && min_severity.is_none_or(|least| finding.severity >= least)
    });
    let problems = scan
        .bad_comments
        .iter()
        .map(|wrong| Problem {
            path: wrong.file.clone().into(),
            line: wrong.line,
            text: format!("{}; {}", wrong.fault, wrong.fault.hint()),
        })
        .collect();
    Ok(Scan {
        findings: scan.findings,
        sources: scan.sources,
        problems,
    })
}

fn failure(error: &Error) -> Failure {
    let problems = match error {
        Error::Config {
            path,
            line,
            message,
            hint,
            ..
        } => vec![Problem {
            path: path.clone(),
            line: u32::try_from(*line).unwrap_or(1),
            text: match hint {
                Some(hint) => format!("{message}; {hint}"),
                None => message.clone(),
            },
        }],
        _ => Vec::new(),
    };
    Failure::Failed {
        text: error.render(false).trim_end().to_owned(),
        problems,
    }
}

/// Said to a person who starts it by hand and waits.
fn greet() {
    if terminal::is_stdin_terminal() {
        terminal::to_stderr(
            "toctou speaks the Language Server Protocol on standard input and output; an editor starts it (docs/editor.md)\n",
        );
    }
}
