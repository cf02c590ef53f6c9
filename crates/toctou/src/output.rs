//! Where reports go: standard output, or files that appear whole.

use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};

use toctou_report::{FORMATS, Format};
use toctou_rules::registry::closest_of;

use crate::errors::Error;

/// `FORMAT[=PATH]`; no path, or `-`, is standard output.
#[derive(Clone, Debug)]
pub(crate) struct OutputSpec {
    pub(crate) format: &'static Format,
    pub(crate) path: Option<PathBuf>,
}

pub(crate) fn parse_output(text: &str) -> Result<OutputSpec, String> {
    let (name, path) = match text.split_once('=') {
        Some((name, path)) => (name, Some(path)),
        None => (text, None),
    };
    let Some(format) = Format::find(name) else {
        let names: Vec<&str> = FORMATS.iter().map(|format| format.name).collect();
        return Err(match closest_of(name, names.iter().copied()) {
            Some(closest) => format!("there is no format `{name}`; did you mean `{closest}`?"),
            None => format!("there is no format `{name}`; there is {}", names.join(", ")),
        });
    };
    match path {
        Some("") => Err(format!("the path after `{name}=` is empty")),
        Some("-") | None => Ok(OutputSpec { format, path: None }),
        Some(path) => Ok(OutputSpec {
            format,
            path: Some(PathBuf::from(path)),
        }),
    }
}

/// Text to standard output if nothing was asked for; never two things in one place.
pub(crate) fn plan(asked: &[OutputSpec]) -> Result<Vec<OutputSpec>, Error> {
    if asked.is_empty() {
        return Ok(parse_output("text").into_iter().collect());
    }
    for (index, spec) in asked.iter().enumerate() {
        if let Some(other) = asked[..index].iter().find(|other| other.path == spec.path) {
            return Err(Error::OutputClash {
                first: other.format.name,
                second: spec.format.name,
                path: spec.path.clone(),
            });
        }
    }
    Ok(asked.to_vec())
}

/// A reader that closed the pipe has seen enough: that is not an error.
pub(crate) fn to_stdout(text: &str) -> Result<(), Error> {
    let mut stdout = std::io::stdout().lock();
    match stdout
        .write_all(text.as_bytes())
        .and_then(|()| stdout.flush())
    {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(Error::Write {
            path: PathBuf::from("standard output"),
            error,
        }),
        _ => Ok(()),
    }
}

/// Written beside the target and renamed over it: never half a file.
pub(crate) fn to_file(path: &Path, text: &str) -> Result<(), Error> {
    let fail = |error| Error::Write {
        path: path.to_owned(),
        error,
    };
    // A pipe or /dev/stderr cannot be replaced, only written to.
    if std::fs::metadata(path).is_ok_and(|meta| !meta.is_file() && !meta.is_dir()) {
        return std::fs::write(path, text).map_err(fail);
    }
    let folder = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let mut builder = tempfile::Builder::new();
    builder.prefix(".toctou-");
    #[cfg(unix)]
    {
        // A temporary file is private; a report has the permissions of any other file.
        use std::os::unix::fs::PermissionsExt as _;
        builder.permissions(std::fs::Permissions::from_mode(0o666));
    }
    let mut file = builder.tempfile_in(folder).map_err(fail)?;
    file.write_all(text.as_bytes()).map_err(fail)?;
    file.persist(path).map_err(|error| fail(error.error))?;
    Ok(())
}

/// Where GitHub Actions wants the summary of a job.
pub(crate) fn job_summary() -> Result<PathBuf, Error> {
    std::env::var_os("GITHUB_STEP_SUMMARY")
        .filter(|path| !path.is_empty())
        .map(PathBuf::from)
        .ok_or(Error::NoJobSummary)
}

pub(crate) fn summary_format() -> &'static Format {
    // A test renders every format that is named here and in the help.
    Format::find("markdown").unwrap_or(&FORMATS[0])
}

/// Adds to a file that other steps write to as well.
pub(crate) fn append(path: &Path, text: &str) -> Result<(), Error> {
    std::fs::OpenOptions::new()
        .create(true)
        .append(true)
        .open(path)
        .and_then(|mut file| file.write_all(text.as_bytes()))
        .map_err(|error| Error::Write {
            path: path.to_owned(),
            error,
        })
}
