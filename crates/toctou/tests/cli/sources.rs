//! `toctou scan` of source that is elsewhere, as it is typed.

use std::io::Read as _;
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::common::{Project, QUIET, RACY, Run};
use crate::server::{GitServer, Zip, git, repository};

/// What the clients of others need of the environment; temporary files go into the project.
fn environment(project: &Project) -> Vec<(String, String)> {
    let tmp = project.at("tmp");
    std::fs::create_dir_all(&tmp).expect("a folder");
    vec![
        ("PATH".to_owned(), std::env::var("PATH").unwrap_or_default()),
        ("TMPDIR".to_owned(), tmp.display().to_string()),
        ("HOME".to_owned(), tmp.display().to_string()),
    ]
}

fn run(project: &Project, args: &str) -> Run {
    let env = environment(project);
    let env: Vec<(&str, &str)> = env.iter().map(|(a, b)| (a.as_str(), b.as_str())).collect();
    let run = project.run_with(args, &env);
    let left: Vec<_> = std::fs::read_dir(project.at("tmp"))
        .expect("a folder")
        .flatten()
        .map(|entry| entry.path())
        .collect();
    assert!(left.is_empty(), "left behind: {left:?}");
    run
}

#[test]
fn a_repository() {
    let project = Project::new(&[]);
    let commit = repository(
        &project.at("served/notes"),
        &[
            ("packages/server/index.ts", RACY),
            ("packages/server/.gitignore", "*\n"),
            // Would silence everything, and does not count.
            (
                "packages/server/toctou.toml",
                "[rules]\nfile-read-modify-write = \"off\"\n",
            ),
            ("other.ts", QUIET),
        ],
    );
    let server = GitServer::start(&project.at("served"));
    let url = server.url("notes");
    for source in [
        format!("{url}#packages/server"),
        format!("{url}@main#packages/server"),
        format!(
            "file://{}#packages/server",
            project.at("served/notes").display()
        ),
    ] {
        let run = run(&project, &format!("scan --output json {source}"));
        assert_eq!(run.code, Some(1), "{}", run.stderr);
        let json = run.json();
        assert_eq!(json["source"]["name"], *source);
        assert_eq!(json["source"]["revision"], *commit);
        assert_eq!(run.rules(), ["file-read-modify-write"]);
        assert_eq!(json["findings"][0]["location"]["file"], "index.ts");
        let notes = json["notes"].to_string();
        assert!(notes.contains("toctou.toml, which is not used"), "{notes}");
    }
    let text = run(&project, &format!("scan {url}"));
    let expected = format!("in {url} ({})", &commit[..12]);
    assert!(text.stdout.contains(&expected), "{}", text.stdout);
    let sarif = run(&project, &format!("scan --output sarif {url}"));
    let sarif = &sarif.json()["runs"][0]["versionControlProvenance"][0];
    assert_eq!(sarif["revisionId"], *commit);
    let empty = run(&project, &format!("scan {url}#nowhere"));
    assert_eq!(empty.code, Some(2));
    git(&project.at("served/notes"), &["rm", "-rq", "--cached", "."]);
    git(
        &project.at("served/notes"),
        &["commit", "-qm", "x", "--allow-empty"],
    );
    let empty = run(&project, &format!("scan {url}"));
    assert_eq!(empty.code, Some(3), "{}", empty.stderr);
    assert!(
        empty.stderr.contains(&format!("source in {url}")),
        "{}",
        empty.stderr
    );
}

#[test]
fn an_archive() {
    let project = Project::new(&[]);
    Zip::default()
        .entry("notes-main/src/index.ts", 0o100_644, RACY.as_bytes())
        .entry("notes-main/link.ts", 0o120_777, b"src/index.ts")
        .write(project.path(), "notes.zip");
    let run = run(&project, "scan --output json notes.zip");
    assert_eq!(run.code, Some(1), "{}", run.stderr);
    let json = run.json();
    assert_eq!(json["source"]["name"], "notes.zip");
    assert_eq!(json["findings"][0]["location"]["file"], "src/index.ts");
    assert_eq!(json["skipped"][0]["reason"], "symbolic link");
}

#[test]
fn mistakes_are_named() {
    let project = Project::new(&[("src/a.ts", QUIET), ("b/c/d.ts", QUIET)]);
    Zip::default()
        .entry("../../evil.ts", 0o100_644, b"x")
        .write(project.path(), "slip.zip");
    for (args, expected) in [
        ("scan src/tols", "error: no such file or folder"),
        (
            "scan slip.zip",
            "is not safe to unpack: ../../evil.ts: a path that leads out",
        ),
        ("scan slip.zip src", "error: a source is scanned alone"),
        (
            "scan https://user:secret@host/x",
            "a user or a password in it",
        ),
        (
            "scan ftp://host/x",
            "https, ssh and file addresses are known",
        ),
        (
            "scan http://git.example/x",
            "name the host with `--allow-http`",
        ),
        ("scan npm:../x", "not a package of npm"),
        (
            "scan file:///nowhere/at/all",
            "hint: can you clone it with git?",
        ),
    ] {
        let run = run(&project, args);
        assert_eq!(run.code, Some(2), "{args}: {}", run.stdout);
        assert!(run.stderr.contains(expected), "{args}: {}", run.stderr);
        assert!(!run.stderr.contains("secret") || args.contains("secret"));
    }
    // A path that is there wins over a repository of that name.
    assert_eq!(run(&project, "scan b/c").code, Some(0));
    // Nothing here to fetch with.
    let tmp = project.at("tmp").display().to_string();
    let run = project.run_with("scan owner/name", &[("PATH", "/nowhere"), ("TMPDIR", &tmp)]);
    assert_eq!(run.code, Some(2));
    assert!(
        run.stderr.contains("`git` was not found on the PATH\n")
            && run.stderr.contains("hint: install Git"),
        "{}",
        run.stderr
    );
}

/// Ctrl-C in the middle of a transfer: git ends, and the folder is gone.
#[test]
fn an_interrupt_leaves_nothing_behind() {
    let project = Project::new(&[]);
    std::fs::create_dir_all(project.at("served")).expect("a folder");
    let server = GitServer::start(&project.at("served"));
    let mut child = Command::new(env!("CARGO_BIN_EXE_toctou"))
        .args(["scan", &server.url("silent/x")])
        .current_dir(project.path())
        .env_clear()
        .envs(environment(&project))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("toctou runs");
    let fetched = || {
        std::fs::read_dir(project.at("tmp"))
            .expect("a folder")
            .flatten()
            .any(|entry| entry.path().join("git").is_dir())
    };
    let start = Instant::now();
    while !fetched() {
        assert!(
            start.elapsed() < Duration::from_secs(30),
            "nothing is fetched"
        );
        std::thread::sleep(Duration::from_millis(20));
    }
    let killed = Command::new("kill")
        .args(["-INT", &child.id().to_string()])
        .status();
    assert!(killed.expect("kill").success());
    let status = child.wait().expect("an end");
    assert_eq!(status.signal(), Some(2), "{status:?}");
    let mut said = String::new();
    // Ends only when git, which has the other end, is gone too.
    let _ = child
        .stderr
        .take()
        .expect("piped")
        .read_to_string(&mut said);
    assert_eq!(
        std::fs::read_dir(project.at("tmp"))
            .expect("a folder")
            .count(),
        0
    );
}

/// A stranger's host is looked up once: git is told the address, and follows no redirect.
#[test]
fn git_is_kept_to_the_address_that_was_checked() {
    use std::os::unix::fs::PermissionsExt as _;
    let project = Project::new(&[]);
    repository(&project.at("served/notes"), &[("index.ts", RACY)]);
    let server = GitServer::start(&project.at("served"));
    // A git that notes what it is asked to do, and does it.
    let real = std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default())
        .map(|folder| folder.join("git"))
        .find(|path| path.is_file())
        .expect("git");
    let log = project.at("asked");
    project.write(
        "bin/git",
        format!(
            "#!/bin/sh\necho \"$@\" >>{}\nexec {} \"$@\"\n",
            log.display(),
            real.display()
        ),
    );
    let executable = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(project.at("bin/git"), executable).expect("a program");
    let mut env = environment(&project);
    env[0].1 = format!("{}:{}", project.at("bin").display(), env[0].1);
    let env: Vec<(&str, &str)> = env.iter().map(|(a, b)| (a.as_str(), b.as_str())).collect();
    let source = format!("http://localhost:{}/notes", server.port);
    let run = project.run_with(&format!("scan --reach intranet {source}"), &env);
    assert_eq!(run.code, Some(1), "{}", run.stderr);
    let asked = std::fs::read_to_string(&log).expect("a log");
    let fetch = asked
        .lines()
        .find(|line| line.contains(" fetch "))
        .expect("a fetch");
    let pin = format!("http.curloptResolve=localhost:{}:", server.port);
    assert!(
        fetch.contains(&pin) && fetch.contains("127.0.0.1"),
        "{fetch}"
    );
    assert!(fetch.contains("http.followRedirects=false"), "{fetch}");
    assert!(fetch.contains(&format!("-- {source} HEAD")), "{fetch}");

    // And git does as it is told: this name has no address of its own.
    let pin = format!(
        "http.curloptResolve=nowhere.invalid:{}:127.0.0.1",
        server.port
    );
    let url = format!("http://nowhere.invalid:{}/notes", server.port);
    let listed = git(project.path(), &["-c", &pin, "ls-remote", &url]);
    assert!(listed.contains("refs/heads/main"), "{listed}");
}
