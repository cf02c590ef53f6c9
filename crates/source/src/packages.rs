//! Packages of npm and PyPI, as the archives that their registries hold.
//!
//! The ordinary clients bring them, since they know the user's registry. Both
//! can run code of a package (install scripts, `setup.py`) and are told not to.

use std::io::Read as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use crate::process::{Client, Ended};
use crate::{Job, LeftOut, Origin, SourceError, archive};

type Package = (PathBuf, Origin, Vec<LeftOut>);

pub(crate) fn npm(
    name: &str,
    version: Option<&str>,
    job: &Job<'_>,
) -> Result<Package, SourceError> {
    let wanted = match version {
        Some(version) => format!("{name}@{version}"),
        None => name.to_owned(),
    };
    let what = format!("downloading npm:{wanted}");
    job.say(&what);
    let folder = folder(job)?;
    let mut command = Command::new("npm");
    command
        .current_dir(&folder)
        .args(["pack", "--ignore-scripts", "--json", "--loglevel=error"])
        .args(["--no-audit", "--no-fund", "--no-update-notifier"])
        .arg("--cache")
        .arg(job.scratch.join("npm-cache"))
        .arg("--pack-destination")
        .arg(&folder)
        .arg("--")
        .arg(&wanted);
    let (text, ended) = run(command, &what, job, || SourceError::MissingProgram {
        program: "npm",
        hint: "install Node with npm, or unpack the package yourself and scan the folder",
    })?;
    if !ended.success {
        let said = ended.said.join("\n");
        let because = if said.contains("E404") {
            "the registry has no such package"
        } else if said.contains("ETARGET") || said.contains("notarget") {
            "the package has no such version"
        } else {
            first(&ended, "npm error")
        };
        return Err(SourceError::Failed {
            what,
            because: because.to_owned(),
            hint: None,
        });
    }
    let document: serde_json::Value = serde_json::from_str(&text).unwrap_or_default();
    // A list up to npm 11, a map by name since.
    let packed = document.get(0).or_else(|| document.get(name));
    let revision = packed
        .and_then(|packed| packed["version"].as_str())
        .map(str::to_owned);
    let (root, left_out) = archive::unpack(&only_file(&folder, &what)?, job)?;
    Ok((
        root,
        Origin {
            name: format!("npm:{name}"),
            revision,
        },
        left_out,
    ))
}

pub(crate) fn pypi(
    name: &str,
    version: Option<&str>,
    job: &Job<'_>,
) -> Result<Package, SourceError> {
    let wanted = match version {
        Some(version) => format!("{name}=={version}"),
        None => name.to_owned(),
    };
    let what = format!("downloading pypi:{wanted}");
    job.say(&what);
    let folder = folder(job)?;
    let mut command = pip(job);
    command
        .args(["download", "--no-deps", "--only-binary=:all:"])
        // It is read, not run: for which Python it is does not matter.
        .arg("--ignore-requires-python")
        .args(["--quiet", "--no-input", "--disable-pip-version-check"])
        .arg("--no-cache-dir")
        .arg("--dest")
        .arg(&folder)
        .arg("--")
        .arg(&wanted);
    let (_, ended) = run(command, &what, job, no_pip)?;
    if !ended.success {
        let said = ended.said.join("\n");
        let no_wheel =
            said.contains("No matching distribution") || said.contains("Could not find a version");
        if no_wheel && is_published(name, version, job) {
            return Err(SourceError::Failed {
                what,
                because: "there is no wheel of it for this machine; what there is would have to be built, which runs its code".to_owned(),
                hint: Some("unpack the source distribution yourself, and scan the folder"),
            });
        }
        return Err(SourceError::Failed {
            what,
            because: if no_wheel {
                "the index has no such package or version".to_owned()
            } else {
                first(&ended, "ERROR:").to_owned()
            },
            hint: None,
        });
    }
    let wheel = only_file(&folder, &what)?;
    // name-version-python-abi-platform.whl
    let revision = wheel
        .file_name()
        .and_then(|file| file.to_str())
        .and_then(|file| file.split('-').nth(1))
        .map(str::to_owned);
    let (root, left_out) = archive::unpack(&wheel, job)?;
    Ok((
        root,
        Origin {
            name: format!("pypi:{name}"),
            revision,
        },
        left_out,
    ))
}

fn no_pip() -> SourceError {
    SourceError::MissingProgram {
        program: "pip",
        hint: "install Python with pip, or unpack the wheel yourself (it is a zip) and scan the folder",
    }
}

/// `pip` under its names; as a module of Python where it has none.
fn pip(job: &Job<'_>) -> Command {
    let is_there = |program: &str| {
        let path = std::env::var_os("PATH").unwrap_or_default();
        std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
    };
    let mut command = match ["pip3", "pip"].into_iter().find(|name| is_there(name)) {
        Some(name) => Command::new(name),
        None if is_there("python3") => {
            let mut command = Command::new("python3");
            command.args(["-m", "pip"]);
            command
        }
        None => Command::new("pip"),
    };
    command.current_dir(job.scratch);
    command
}

/// Does the index know it, in whatever form? A failure to ask is a no.
fn is_published(name: &str, version: Option<&str>, job: &Job<'_>) -> bool {
    let mut command = pip(job);
    command
        .args(["index", "versions", "--disable-pip-version-check"])
        .args(["--no-input", "--ignore-requires-python", "--pre", "--"])
        .arg(name);
    let Ok((text, ended)) = run(command, "asking the index", job, no_pip) else {
        return false;
    };
    let mut versions = text
        .lines()
        .find_map(|line| line.strip_prefix("Available versions:"))
        .unwrap_or_default()
        .split(',')
        .map(str::trim);
    ended.success && version.is_none_or(|wanted| versions.any(|version| version == wanted))
}

fn folder(job: &Job<'_>) -> Result<PathBuf, SourceError> {
    let folder = job.scratch.join("package");
    match std::fs::create_dir(&folder) {
        Ok(()) => Ok(folder),
        Err(error) => Err(SourceError::Io {
            path: folder,
            error,
        }),
    }
}

fn only_file(folder: &std::path::Path, what: &str) -> Result<PathBuf, SourceError> {
    let mut files = std::fs::read_dir(folder)
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path());
    match (files.next(), files.next()) {
        (Some(file), None) => Ok(file),
        _ => Err(SourceError::Failed {
            what: what.to_owned(),
            because: "the client did not bring one archive".to_owned(),
            hint: None,
        }),
    }
}

fn first<'a>(ended: &'a Ended, prefix: &str) -> &'a str {
    let line = ended.said.iter().find(|line| line.starts_with(prefix));
    line.or(ended.said.last())
        .map_or("the client failed", |line| {
            line.trim_start_matches(prefix).trim()
        })
}

fn run(
    mut command: Command,
    what: &str,
    job: &Job<'_>,
    missing: fn() -> SourceError,
) -> Result<(String, Ended), SourceError> {
    command.env("NO_COLOR", "1");
    let client = Client::start(command, Stdio::null(), what, job, missing)?;
    client.run(
        |_| {},
        |client| {
            let mut text = String::new();
            if let Some(stdout) = client.stdout() {
                // A failure shows in the exit code.
                let _ = stdout.take(4 << 20).read_to_string(&mut text);
            }
            Ok(text)
        },
    )
}
