//! One scan, in a process of its own.
//!
//! What is scanned is a stranger's. So it is `toctou scan` in a child process
//! that limits its own memory and CPU, in an empty folder, with a clock here.

use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, BufReader};
use tokio::process::{Child, Command};
use tokio::sync::watch;

use crate::store::{Claim, Outcome, Report};

/// What a scan may use.
#[derive(Clone, Debug)]
pub struct ScanLimits {
    /// By the clock, from the first byte to the report.
    pub time: Duration,
    /// Of the process and of each client that it starts, in megabytes.
    pub memory: u64,
    /// Fetched and unpacked, in megabytes.
    pub source: u64,
    pub threads: u16,
}

/// Which addresses may be asked.
#[derive(Clone, Debug, Default)]
pub struct Reach {
    pub private: bool,
    /// These only; empty is all.
    pub hosts: Vec<String>,
}

/// How scans are run.
#[derive(Clone, Debug)]
pub struct Scanner {
    /// The program, which is this one.
    pub program: PathBuf,
    pub limits: ScanLimits,
    pub reach: Reach,
    /// The policy of the pages that the program makes.
    pub policy: String,
}

/// Reports are kept in memory while they are stored.
const MOST_REPORT: u64 = 64 << 20;
const MOST_ERROR: usize = 2000;
/// Nothing else of our environment is a scan's business.
const PASSED_ON: [&str; 10] = [
    "PATH",
    "HOME",
    "LANG",
    "LC_ALL",
    "TZ",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "NODE_EXTRA_CA_CERTS",
    "HTTPS_PROXY",
    "https_proxy",
];

impl Scanner {
    /// Scans in `folder`, which is empty and of no use afterwards. Dropping the future ends the scan.
    pub async fn scan(
        &self,
        claim: &Claim,
        folder: &Path,
        progress: &watch::Sender<String>,
    ) -> Outcome {
        match self.try_scan(claim, folder, progress).await {
            Ok(report) => Outcome::Done(Box::new(report)),
            Err(error) => Outcome::Failed(error),
        }
    }

    async fn try_scan(
        &self,
        claim: &Claim,
        folder: &Path,
        progress: &watch::Sender<String>,
    ) -> Result<Report, String> {
        let io = |error: std::io::Error| format!("the scan could not be started: {error}");
        let (empty, tmp) = (folder.join("empty"), folder.join("tmp"));
        std::fs::create_dir(&empty).map_err(io)?;
        std::fs::create_dir(&tmp).map_err(io)?;
        let target = match &claim.upload {
            None => claim.source.clone(),
            Some(bytes) => {
                let kind = if bytes.starts_with(b"\x1f\x8b") {
                    "tgz"
                } else {
                    "zip"
                };
                let path = folder.join(format!("upload.{kind}"));
                tokio::fs::write(&path, bytes).await.map_err(io)?;
                path.display().to_string()
            }
        };
        let (json, html) = (folder.join("report.json"), folder.join("report.html"));
        let mut command = self.command(claim, &target, &json, &html);
        command.current_dir(&empty).env("TMPDIR", &tmp);
        let mut group = Group::start(&mut command).map_err(io)?;
        let running = run(&mut group.child, progress);
        let Ok((status, said)) = tokio::time::timeout(self.limits.time, running).await else {
            return Err(format!(
                "the scan took longer than {} seconds",
                self.limits.time.as_secs()
            ));
        };
        group.is_over = true;
        match status.code() {
            Some(0) => {}
            Some(_) => return Err(error_of(&said)),
            None => {
                return Err(format!(
                    "the scan needed more than it may have: {} MB of memory, {} seconds of CPU",
                    self.limits.memory,
                    self.cpu()
                ));
            }
        }
        let json = read(&json).await?;
        let html = read(&html).await?;
        let policy = self.policy.clone();
        tokio::task::spawn_blocking(move || report(&json, &html, policy))
            .await
            .map_err(|error| error.to_string())?
    }

    fn cpu(&self) -> u64 {
        self.limits.time.as_secs().saturating_mul(2).max(2)
    }

    fn command(&self, claim: &Claim, target: &str, json: &Path, html: &Path) -> Command {
        let limits = &self.limits;
        let mut command = Command::new(&self.program);
        command.env_clear();
        for (name, value) in std::env::vars_os() {
            let text = name.to_string_lossy();
            let of_clients = ["npm_config_", "NPM_CONFIG_", "PIP_"];
            if PASSED_ON.contains(&&*text) || of_clients.iter().any(|p| text.starts_with(p)) {
                command.env(name, value);
            }
        }
        command.env(crate::WORKER, std::process::id().to_string());
        command
            .arg("scan")
            .args(["--no-config", "--quiet", "--exit-zero", "--progress-lines"])
            .args([
                "--reach",
                if self.reach.private {
                    "intranet"
                } else {
                    "public"
                },
            ])
            .args(["--threads", &limits.threads.to_string()])
            .args(["--max-fetch", &limits.source.to_string()])
            .args(["--fetch-timeout", &limits.time.as_secs().max(1).to_string()])
            .args(["--confine-memory", &limits.memory.to_string()])
            .args(["--confine-cpu", &self.cpu().to_string()]);
        for host in &self.reach.hosts {
            command.args(["--only-host", host]);
        }
        if claim.upload.is_some() {
            command.args(["--source-name", &claim.source]);
        }
        let output = |format: &str, path: &Path| format!("--output={format}={}", path.display());
        command
            .arg(output("json", json))
            .arg(output("html", html))
            .arg("--")
            .arg(target);
        command
    }
}

/// A child and what it starts; all of it ends when this is dropped.
struct Group {
    child: Child,
    group: Option<Pid>,
    is_over: bool,
}

impl Group {
    fn start(command: &mut Command) -> std::io::Result<Self> {
        let child = command
            .process_group(0)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()?;
        let group = child.id().and_then(|id| Pid::from_raw(id.cast_signed()));
        Ok(Self {
            child,
            group,
            is_over: false,
        })
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // Not yet reaped, so the number is still its own.
        if let (Some(group), false) = (self.group, self.is_over) {
            let _ = kill_process_group(group, Signal::KILL);
        }
    }
}

/// Lines of progress are passed on; what else it says is kept, for the error.
async fn run(child: &mut Child, progress: &watch::Sender<String>) -> (ExitStatus, String) {
    let mut said = String::new();
    if let Some(stderr) = child.stderr.take() {
        let mut lines = BufReader::new(stderr);
        let mut line = Vec::new();
        loop {
            line.clear();
            match (&mut lines)
                .take(8 << 10)
                .read_until(b'\n', &mut line)
                .await
            {
                Ok(0) | Err(_) => break,
                Ok(_) => {}
            }
            let text = String::from_utf8_lossy(&line);
            match progress_of(&text) {
                Some(text) => {
                    progress.send_replace(text);
                }
                None if said.len() < MOST_ERROR => said.push_str(&text),
                None => {}
            }
        }
    }
    let status = child.wait().await.unwrap_or_default();
    (status, said)
}

fn progress_of(line: &str) -> Option<String> {
    let value: serde_json::Value = serde_json::from_str(line.trim()).ok()?;
    Some(value.get("progress")?.as_str()?.chars().take(200).collect())
}

/// What `toctou scan` says, without the word `error:`.
fn error_of(said: &str) -> String {
    let text: String = said
        .lines()
        // Hints about options are for who typed the command, and that was us.
        .filter(|line| !line.starts_with("hint: `--"))
        .flat_map(|line| [line, "\n"])
        .collect();
    let text = text.trim().trim_start_matches("error: ").to_owned();
    if text.is_empty() {
        "the scan failed without a word".to_owned()
    } else {
        text
    }
}

async fn read(path: &Path) -> Result<Vec<u8>, String> {
    let missing = |error: std::io::Error| format!("the scan left no report: {error}");
    let file = tokio::fs::File::open(path).await.map_err(missing)?;
    let mut bytes = Vec::new();
    let read = file.take(MOST_REPORT + 1).read_to_end(&mut bytes).await;
    if read.map_err(missing)? as u64 > MOST_REPORT {
        return Err(format!(
            "the report is larger than {} MB",
            MOST_REPORT >> 20
        ));
    }
    Ok(bytes)
}

fn report(json: &[u8], html: &[u8], policy: String) -> Result<Report, String> {
    let document: serde_json::Value =
        serde_json::from_slice(json).map_err(|error| format!("the report is not JSON: {error}"))?;
    let summary = &document["summary"];
    Ok(Report {
        grade: summary["grade"].as_str().unwrap_or_default().to_owned(),
        score: summary["score"].as_i64().unwrap_or_default(),
        findings: document["findings"]
            .as_array()
            .map_or(0, |findings| findings.len() as i64),
        revision: document["source"]["revision"].as_str().map(str::to_owned),
        json: gzip(json)?,
        html: gzip(html)?,
        policy,
    })
}

fn gzip(bytes: &[u8]) -> Result<Vec<u8>, String> {
    use std::io::Write as _;
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packed
        .write_all(bytes)
        .and_then(|()| packed.finish())
        .map_err(|error| error.to_string())
}
