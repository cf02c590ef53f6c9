//! Servers that are reached by HTTP: started here, or running already.

mod common;

use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command as Program, Stdio};
use std::time::{Duration, Instant};

use common::{Nobody, options};
use toctou_prove::budget::Budget;
use toctou_prove::call::Call;
use toctou_prove::report::{Outcome, Report};
use toctou_prove::scenario::Scenario;
use toctou_prove::search::Scope;
use toctou_prove::target::{Command, Target};
use toctou_prove::{Options, ProveError, Replayed, Strategy, prove, replay_recipe};

fn script() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/servers/over_http.py")
}

fn started(kind: &str, seconds: u64) -> Options {
    let script = script().to_string_lossy().into_owned();
    let argv = ["python3", "-S", &script, "{port}", "{workspace}", kind];
    let command = Command {
        argv: argv.map(str::to_owned).to_vec(),
        ..Command::default()
    };
    let command = command.found().serving("/mcp").expect("an address");
    options(Target::Command(command), seconds)
}

fn run(options: &Options) -> Result<Report, ProveError> {
    let began = Instant::now();
    let report = prove(options, &Budget::new(options.budget), &Nobody);
    let most = options.budget + Duration::from_secs(10);
    assert!(began.elapsed() < most, "took {:?}", began.elapsed());
    report
}

#[test]
fn a_server_that_was_started_here_is_held_and_replayed() {
    let mut options = started("racy", 120);
    options.scopes = vec![Scope::CrossProcess];
    options.strategies = vec![Strategy::Hold];
    let report = run(&options).expect("a report");
    assert_eq!(report.outcome, Outcome::Proved, "{}", report.json());
    let proof = &report.proofs[0];
    assert_eq!((proof.strategy.as_str(), proof.tools.len()), ("hold", 1));
    assert_eq!(proof.replays.reproduced, proof.replays.of);

    let budget = Budget::new(options.budget);
    let replayed = replay_recipe(&options, &proof.recipe, &budget, &Nobody);
    assert!(matches!(replayed, Ok(Replayed::Again(_))));
}

#[test]
fn calls_on_connections_of_their_own_meet() {
    let mut options = started("racy", 60);
    options.scopes = vec![Scope::InProcess];
    options.strategies = vec![Strategy::Burst];
    let report = run(&options).expect("a report");
    assert_eq!(report.outcome, Outcome::Proved, "{}", report.json());
    assert_eq!(report.proofs[0].strategy, "burst");

    options = started("locked", 60);
    options.scopes = vec![Scope::InProcess];
    options.strategies = vec![Strategy::Burst];
    let report = run(&options).expect("a report");
    assert_ne!(report.outcome, Outcome::Proved, "{}", report.json());
}

#[test]
fn hostile_servers_get_a_clear_answer() {
    // Those who say something have the time to start on a busy machine.
    for (kind, seconds, words) in [
        ("deaf", 8, "nobody answers at http://localhost:18080/mcp"),
        ("mute", 8, "nobody answers"),
        ("refuses", 60, "the server said 401"),
        ("garbage", 60, "nothing that answers the request"),
    ] {
        let error = run(&started(kind, seconds)).expect_err(kind);
        let lines = error.lines().join("\n");
        assert!(lines.contains(words), "{kind}: {lines}");
    }
    let error = run(&started("dies", 60)).expect_err("dies");
    assert!(!error.is_nothing(), "{error}");
}

/// A server of somebody else.
struct Running {
    child: Child,
    folder: tempfile::TempDir,
    url: String,
}

impl Running {
    fn start(kind: &str) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let port = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
        let port = port.expect("a port").port();
        let child = Program::new("python3")
            .arg("-S")
            .arg(script())
            .arg(port.to_string())
            .arg(folder.path())
            .arg(kind)
            .stdin(Stdio::null())
            .spawn()
            .expect("a server");
        let began = Instant::now();
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            assert!(
                began.elapsed() < Duration::from_secs(30),
                "it does not start"
            );
            std::thread::sleep(Duration::from_millis(20));
        }
        Self {
            child,
            folder,
            url: format!("http://127.0.0.1:{port}/mcp"),
        }
    }

    fn notes(&self) -> String {
        std::fs::read_to_string(self.folder.path().join("notes.json")).unwrap_or_default()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn a_server_that_runs_already_keeps_what_is_its_own() {
    let server = Running::start("racy");
    std::fs::write(server.folder.path().join("notes.json"), r#"["mine"]"#).expect("written");
    let options = options(Target::Url(server.url.clone()), 60);
    let report = run(&options).expect("a report");
    assert_eq!(report.outcome, Outcome::Proved, "{}", report.json());
    let proof = &report.proofs[0];
    assert_eq!(proof.tools, ["add_note"]);
    assert!(["burst", "jitter"].contains(&proof.strategy.as_str()));
    let notes = report.notes.join("\n");
    assert!(notes.contains("clear_all"), "{notes}");
    assert!(notes.contains("nothing is reset"), "{notes}");
    assert!(server.notes().contains("\"mine\""), "{}", server.notes());
    let left = std::fs::read_to_string(server.folder.path().join("notes.json.left"));
    assert!(left.expect("sessions are ended").lines().count() > 5);

    let server = Running::start("locked");
    let mut options = self::options(Target::Url(server.url.clone()), 30);
    let report = run(&options).expect("a report");
    assert_ne!(report.outcome, Outcome::Proved, "{}", report.json());

    // Calls without a name of their own would meet what earlier runs left.
    let add = Call::new("add_note", serde_json::json!({"title": "alpha"}));
    options.scenario = Some(Scenario {
        calls: vec![add.clone(), add],
        ..Scenario::default()
    });
    assert!(matches!(run(&options), Err(ProveError::NotOwn { .. })));
}
