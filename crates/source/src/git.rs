//! A Git repository, at one commit, without its history.
//!
//! The `git` on the PATH brings objects into a bare repository; nothing is
//! checked out, so no hook, filter, submodule or link of a stranger comes to
//! life. The files are then read from the objects and written by our own hand.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::process::{Client, Ended};
use crate::tree::Tree;
use crate::{GitSpec, Job, LeftOut, Origin, Reach, Remote, SourceError, address};

/// From this version on, a name can be pinned to an address (`http.curloptResolve`).
const PINNING_SINCE: (u32, u32) = (2, 37);

pub(crate) fn fetch(
    spec: &GitSpec,
    job: &Job<'_>,
) -> Result<(PathBuf, Origin, Vec<LeftOut>), SourceError> {
    let name = spec.name();
    let repository = Repository::open(spec, job)?;
    let commit = repository.fetch()?;
    let root = job.scratch.join("tree");
    let left_out = repository.write(&commit, &root)?;
    // Objects are as large as the files again, and nobody needs them now.
    let _ = std::fs::remove_dir_all(&repository.folder);
    Ok((
        root,
        Origin {
            name,
            revision: Some(commit),
        },
        left_out,
    ))
}

struct Repository<'a> {
    spec: &'a GitSpec,
    job: &'a Job<'a>,
    folder: PathBuf,
    /// `host:port:address`: which address to take for the host.
    pin: Option<String>,
}

/// A file of a commit.
struct Blob {
    id: String,
    path: String,
}

impl<'a> Repository<'a> {
    fn open(spec: &'a GitSpec, job: &'a Job<'a>) -> Result<Self, SourceError> {
        let mut repository = Self {
            spec,
            job,
            folder: job.scratch.join("git"),
            pin: None,
        };
        repository.pin = repository.allowed()?;
        let mut init = repository.command();
        init.args(["init", "--quiet", "--bare", "--template="])
            .arg(&repository.folder);
        repository.run(init, "making a repository", None)?;
        Ok(repository)
    }

    /// Is the address one that may be asked? Then how it is pinned.
    fn allowed(&self) -> Result<Option<String>, SourceError> {
        let refused = |because: &str| {
            Err(SourceError::Refused {
                what: self.spec.name(),
                because: because.to_owned(),
            })
        };
        let stranger = self.job.is_stranger();
        let (secure, host, port) = match &self.spec.remote {
            Remote::Http {
                secure, host, port, ..
            } => (*secure, host, *port),
            _ if stranger => return refused("only https addresses can be asked"),
            Remote::Ssh { .. } | Remote::File(_) => return Ok(None),
        };
        if !stranger {
            let local = host == "localhost"
                || host
                    .parse()
                    .is_ok_and(|ip: std::net::IpAddr| ip.is_loopback());
            if !secure && !local && !self.job.options.plain_http.contains(host) {
                return refused(
                    "plain http can be changed on its way; use https, or name the host with `--allow-http`",
                );
            }
            return Ok(None);
        }
        if !secure && self.job.options.reach == Reach::Public {
            return refused("only https addresses can be asked");
        }
        let port = port.unwrap_or(if secure { 443 } else { 80 });
        let addresses = address::resolve(host, port, self.job)?;
        let version = self.version()?;
        if version < PINNING_SINCE {
            return refused("the git here is older than 2.37, which cannot be kept to one address");
        }
        let mut pin = format!("{host}:{port}:");
        for (index, address) in addresses.iter().enumerate() {
            let comma = if index > 0 { "," } else { "" };
            let _ = match address {
                std::net::IpAddr::V4(v4) => write!(pin, "{comma}{v4}"),
                std::net::IpAddr::V6(v6) => write!(pin, "{comma}[{v6}]"),
            };
        }
        Ok(Some(pin))
    }

    fn version(&self) -> Result<(u32, u32), SourceError> {
        let mut command = self.command();
        command.arg("version");
        let text = self.run(command, "asking git for its version", None)?;
        let mut numbers = text
            .split_whitespace()
            .nth(2)
            .unwrap_or_default()
            .split('.')
            .map(|part| part.parse().unwrap_or(0));
        Ok((numbers.next().unwrap_or(0), numbers.next().unwrap_or(0)))
    }

    /// `git`, with nothing of the folder it is started in, and with nothing of
    /// the user's where the request is a stranger's.
    fn command(&self) -> Command {
        let mut command = Command::new("git");
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("GIT_") {
                command.env_remove(name);
            }
        }
        let scheme = match &self.spec.remote {
            Remote::Http { secure: true, .. } => "https",
            Remote::Http { secure: false, .. } => "http",
            Remote::Ssh { .. } => "ssh",
            Remote::File(_) => "file",
        };
        command
            .current_dir(self.job.scratch)
            .env("GIT_TERMINAL_PROMPT", "0")
            .env("GIT_ASKPASS", "true")
            .env("SSH_ASKPASS", "true")
            .env(
                "GIT_SSH_COMMAND",
                "ssh -o BatchMode=yes -o ConnectTimeout=20",
            )
            .env("GIT_ALLOW_PROTOCOL", scheme)
            .env("GIT_LFS_SKIP_SMUDGE", "1")
            .env("GIT_CEILING_DIRECTORIES", self.job.scratch)
            .env("LC_ALL", "C");
        for setting in [
            "core.hooksPath=/dev/null",
            "core.symlinks=false",
            "core.fsmonitor=false",
            "submodule.recurse=false",
            "fetch.recurseSubmodules=false",
            "fetch.writeCommitGraph=false",
            "transfer.bundleURI=false",
            "transfer.unpackLimit=1",
            "gc.auto=0",
            "maintenance.auto=false",
            // A server that says nothing for long is gone.
            "http.lowSpeedLimit=100",
            "http.lowSpeedTime=30",
        ] {
            command.args(["-c", setting]);
        }
        if self.job.is_stranger() {
            command
                .env("GIT_CONFIG_GLOBAL", "/dev/null")
                .env("GIT_CONFIG_NOSYSTEM", "1")
                .env("HOME", self.job.scratch)
                .env_remove("XDG_CONFIG_HOME")
                .args(["-c", "http.followRedirects=false"])
                .args(["-c", "http.proxy="])
                .args(["-c", "credential.helper="]);
            for proxy in ["http_proxy", "https_proxy", "all_proxy"] {
                command.env_remove(proxy).env_remove(proxy.to_uppercase());
            }
        }
        if let Some(pin) = &self.pin {
            command.arg("-c").arg(format!("http.curloptResolve={pin}"));
        }
        command
    }

    fn in_repository(&self) -> Command {
        let mut command = self.command();
        command.arg("--git-dir").arg(&self.folder);
        command
    }

    /// Brings one commit; gives its id.
    fn fetch(&self) -> Result<String, SourceError> {
        let url = self.spec.remote.to_string();
        let wanted = self.spec.reference.as_deref().unwrap_or("HEAD");
        let what = format!("cloning {url}");
        self.job.say(&what);
        let mut command = self.in_repository();
        command
            .args(["fetch", "--progress", "--depth=1", "--no-tags"])
            .args(["--no-recurse-submodules", "--no-write-commit-graph", "--"])
            .arg(&url)
            .arg(wanted);
        self.run(command, &what, Some(wanted))?;
        let mut command = self.in_repository();
        command.args(["rev-parse", "--verify", "--quiet", "FETCH_HEAD^{commit}"]);
        let commit = self.run(command, "finding the commit", None)?;
        Ok(commit.trim().to_owned())
    }

    /// Writes the files of a commit, or of a folder of it.
    fn write(&self, commit: &str, root: &Path) -> Result<Vec<LeftOut>, SourceError> {
        let name = self.spec.name();
        let limits = self.job.limits();
        // Objects are compressed twice over; their ratio says nothing.
        let mut tree = Tree::new(&name, root, u64::MAX, limits)?;
        let place = match &self.spec.folder {
            None => commit.to_owned(),
            Some(folder) => format!("{commit}:{folder}"),
        };
        let blobs = self.list(&place, &mut tree)?;
        self.job.say(&format!("writing {} files", blobs.len()));
        let ids = self.job.scratch.join("ids");
        let failed = |error| SourceError::Io {
            path: ids.clone(),
            error,
        };
        let mut text = String::new();
        for blob in &blobs {
            let _ = writeln!(text, "{}", blob.id);
        }
        std::fs::write(&ids, text).map_err(failed)?;
        let stdin = Stdio::from(File::open(&ids).map_err(failed)?);
        let mut command = self.in_repository();
        command.args(["cat-file", "--batch"]);
        let client = Client::start(command, stdin, "reading the objects", self.job, missing)?;
        let (left_out, ended) = client.run(
            |_| {},
            |client| {
                let Some(stdout) = client.stdout() else {
                    return Ok(tree.finish());
                };
                let mut objects = BufReader::with_capacity(1 << 16, stdout);
                for blob in &blobs {
                    let mut head = String::new();
                    (&mut objects)
                        .take(256)
                        .read_line(&mut head)
                        .map_err(|error| tree.broken(&blob.path, &error))?;
                    let size = head
                        .strip_prefix(&blob.id)
                        .and_then(|rest| rest.trim().strip_prefix("blob "))
                        .and_then(|size| size.parse::<u64>().ok())
                        .ok_or_else(|| tree.broken(&blob.path, &head.trim()))?;
                    let mut content = (&mut objects).take(size);
                    tree.file(&blob.path, &mut content)?;
                    // What was not written still has to be read.
                    std::io::copy(&mut content, &mut std::io::sink())
                        .and_then(|_| objects.read_exact(&mut [0]))
                        .map_err(|error| tree.broken(&blob.path, &error))?;
                }
                Ok(tree.finish())
            },
        )?;
        succeeded(&ended, "reading the objects", None)?;
        Ok(left_out)
    }

    /// Plain files only. What would be too much is known before anything is written.
    fn list(&self, place: &str, tree: &mut Tree<'_>) -> Result<Vec<Blob>, SourceError> {
        let what = match &self.spec.folder {
            None => "listing the files".to_owned(),
            Some(folder) => format!("looking for the folder {folder}"),
        };
        let limits = self.job.limits();
        let mut command = self.in_repository();
        command.args(["ls-tree", "-r", "-l", "-z", "--full-tree", place]);
        let client = Client::start(command, Stdio::null(), &what, self.job, missing)?;
        let (blobs, ended) = client.run(
            |_| {},
            |client| {
                let mut blobs = Vec::new();
                let mut bytes = 0_u64;
                let Some(stdout) = client.stdout() else {
                    return Ok(blobs);
                };
                let mut reader = BufReader::new(stdout);
                let mut record = Vec::new();
                loop {
                    record.clear();
                    let read = (&mut reader)
                        .take(64 << 10)
                        .read_until(0, &mut record)
                        .map_err(|error| tree.broken("the list of files", &error))?;
                    if read == 0 {
                        return Ok(blobs);
                    }
                    tree.entry()?;
                    let record = record.strip_suffix(&[0]).unwrap_or(&record);
                    let Some(tab) = record.iter().position(|b| *b == b'\t') else {
                        return Err(tree.broken("the list of files", &"it cannot be read"));
                    };
                    let head = String::from_utf8_lossy(&record[..tab]).into_owned();
                    let mut head = head.split_ascii_whitespace();
                    let (mode, _, id, size) = (
                        head.next().unwrap_or_default(),
                        head.next(),
                        head.next().unwrap_or_default(),
                        head.next().unwrap_or_default(),
                    );
                    let path = match std::str::from_utf8(&record[tab + 1..]) {
                        Ok(path) => path.to_owned(),
                        Err(_) => {
                            let path = String::from_utf8_lossy(&record[tab + 1..]).into_owned();
                            tree.leave_out(&path, "the name is not UTF-8");
                            continue;
                        }
                    };
                    match mode {
                        "120000" => tree.leave_out(&path, "symbolic link"),
                        "160000" => tree.leave_out(&path, "submodule"),
                        _ => {
                            bytes = bytes.saturating_add(size.parse().unwrap_or(0));
                            if bytes > limits.bytes {
                                return Err(SourceError::TooLarge {
                                    what: self.spec.name(),
                                    limit: crate::error::megabytes(limits.bytes),
                                });
                            }
                            blobs.push(Blob {
                                id: id.to_owned(),
                                path,
                            });
                        }
                    }
                }
            },
        )?;
        succeeded(&ended, &what, None)?;
        Ok(blobs)
    }

    /// Runs to the end; gives what it wrote.
    fn run(
        &self,
        command: Command,
        what: &str,
        wanted: Option<&str>,
    ) -> Result<String, SourceError> {
        let client = Client::start(command, Stdio::null(), what, self.job, missing)?;
        let mut last = std::time::Instant::now();
        let each = |line: &str| {
            // Progress of the transfer; the rest is for errors.
            if line.contains('%') && last.elapsed().as_millis() > 80 {
                last = std::time::Instant::now();
                self.job.say(line);
            }
        };
        let (text, ended) = client.run(each, |client| {
            let mut text = String::new();
            if let Some(stdout) = client.stdout() {
                // A failure shows in the exit code.
                let _ = stdout.take(64 << 10).read_to_string(&mut text);
            }
            Ok(text)
        })?;
        succeeded(&ended, what, wanted)?;
        Ok(text)
    }
}

fn missing() -> SourceError {
    SourceError::MissingProgram {
        program: "git",
        hint: "install Git (apt-get install git), or clone the repository yourself and scan the folder",
    }
}

fn succeeded(ended: &Ended, what: &str, wanted: Option<&str>) -> Result<(), SourceError> {
    if ended.success {
        return Ok(());
    }
    let said = ended
        .said
        .iter()
        .filter(|line| !line.contains('%'))
        .map(String::as_str);
    let lines: Vec<&str> = said.collect();
    // What git says first is why; what follows is advice for another situation.
    let because = lines
        .iter()
        .find(|line| line.starts_with("fatal:") || line.starts_with("error:"))
        .or(lines.last())
        .map_or("git failed", |line| {
            line.trim_start_matches("fatal: ")
                .trim_start_matches("error: ")
        });
    let hint = if because.contains("couldn't find remote ref") || because.contains("not our ref") {
        Some("is it the full name of a branch or tag, or a full commit id?")
    } else if because.contains("error: 30") {
        Some("the address leads elsewhere; give the one that it leads to")
    } else if because.contains("could not read Username")
        || because.contains("Authentication failed")
        || because.contains("terminal prompts disabled")
    {
        Some("the repository is not there, or not public; for a private one, give its ssh address")
    } else if because.contains("not our") || wanted.is_none() {
        None
    } else {
        Some("can you clone it with git?")
    };
    Err(SourceError::Failed {
        what: what.to_owned(),
        because: because.to_owned(),
        hint,
    })
}
