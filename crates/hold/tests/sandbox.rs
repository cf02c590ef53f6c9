//! What a server in a sandbox can do, and what is left of it.
#![cfg(target_os = "linux")]

mod common;

use std::fs;
use std::path::Path;

use common::*;
use toctou_hold::{
    Entry, Error, Hooks, Isolate, IsolationKind, Launch, Sandbox, SandboxSpec, Scratch, Supervisor,
    probe,
};

/// Runs a shell script to its end and gives what it says.
async fn shell(sandbox: &Sandbox, script: &str) -> String {
    let launch = Launch {
        argv: ["sh", "-c", script].map(Into::into).to_vec(),
        ..Launch::default()
    };
    let mut process = sandbox.launch(&launch).await.expect("a shell");
    let mut out = String::new();
    let mut pipe = process.stdout.take().expect("a pipe");
    tokio::io::AsyncReadExt::read_to_string(&mut pipe, &mut out)
        .await
        .expect("text");
    out.trim().to_owned()
}

fn namespaces() -> SandboxSpec {
    SandboxSpec {
        isolate: Isolate::Namespaces,
        ..spec()
    }
}

#[tokio::test]
async fn this_machine_has_it_all() {
    let available = probe();
    assert_eq!(available.syscalls, Ok(()));
    assert_eq!(available.namespaces, Ok(()));
    assert_eq!(available.overlay, Ok(()));
    let sandbox = sandbox(&namespaces(), fresh());
    assert_eq!(sandbox.isolation().kind, IsolationKind::Namespaces);
    assert_eq!(sandbox.isolation().notes, Vec::<String>::new());
}

#[tokio::test]
async fn the_state_is_at_fixed_paths() {
    let sandbox = sandbox(&namespaces(), fresh());
    let said = shell(
        &sandbox,
        "pwd; echo $HOME $TMPDIR; echo a > a; echo b > ~/.config/b; echo c > /tmp/c",
    )
    .await;
    assert_eq!(said, "/toctou/workspace\n/toctou/home /tmp");
    let state = sandbox.close().await;
    assert_eq!(content(&state, "workspace/a"), "a\n");
    assert_eq!(content(&state, "home/.config/b"), "b\n");
    assert_eq!(content(&state, "tmp/c"), "c\n");
}

#[tokio::test]
async fn nothing_else_can_be_written() {
    let sandbox = sandbox(&namespaces(), fresh());
    let outside = tempfile::tempdir_in("/var/tmp").expect("a folder");
    let places = format!(
        "/ /etc /usr /var/tmp /root /proc/sys/kernel /sys /toctou /toctou/side {}",
        outside.path().display()
    );
    let script = format!(
        "for place in {places}; do (echo x > $place/toctou-was-here) 2>/dev/null && echo $place; done; \
         mount -o remount,rw / 2>/dev/null && echo remounted; \
         ls /dev/sd* /dev/vd* /dev/nvme* /dev/mem 2>/dev/null; echo end"
    );
    assert_eq!(shell(&sandbox, &script).await, "end");
    assert_eq!(fs::read_dir(outside.path()).expect("a folder").count(), 0);
}

#[tokio::test]
async fn there_is_a_loopback_and_no_other_network() {
    let sandbox = sandbox(&namespaces(), fresh());
    let said = shell(
        &sandbox,
        "cat /proc/net/dev | tail -n +3 | cut -d: -f1; cat /proc/net/route | tail -n +2; \
         python3 -c 'import socket; s = socket.create_server((\"127.0.0.1\", 0)); \
         socket.create_connection(s.getsockname()); print(\"connected\")'",
    )
    .await;
    assert_eq!(said, "lo\nconnected");
    let open = common::sandbox(
        &SandboxSpec {
            network: true,
            ..namespaces()
        },
        fresh(),
    );
    assert!(open.isolation().network);
    let routes = shell(&open, "cat /proc/net/dev | tail -n +3 | wc -l").await;
    let here = fs::read_to_string("/proc/net/dev")
        .expect("a list")
        .lines()
        .count()
        - 2;
    assert_eq!(routes, here.to_string());
}

/// Servers that keep state next to their code write into the state, and the next run on a copy
/// finds it there.
#[tokio::test]
async fn a_package_is_written_to_beside_it() {
    for isolate in [Isolate::Namespaces, Isolate::Copy] {
        let package = tempfile::tempdir().expect("a folder");
        fs::write(package.path().join("kept"), "old").expect("a file");
        fs::write(package.path().join("gone"), "old").expect("a file");
        fs::write(
            package.path().join("run.sh"),
            "cd $(dirname $0); echo new > kept; rm gone; echo new > added",
        )
        .expect("a file");
        let spec = SandboxSpec {
            isolate,
            packages: vec![package.path().to_owned()],
            ..spec()
        };
        let opened = sandbox(&spec, fresh());
        let run = package.path().join("run.sh");
        let launch = Launch {
            argv: vec!["sh".into(), run.into()],
            ..Launch::default()
        };
        let process = opened.launch(&launch).await.expect("a process");
        assert!(process.wait().await.expect("a status").success());
        let state = opened.close().await;
        let read = |name: &str| fs::read_to_string(package.path().join(name)).expect("a file");
        assert_eq!((read("kept"), read("gone")), ("old".into(), "old".into()));
        assert!(!package.path().join("added").exists());

        assert_eq!(content(&state, "package/0/kept"), "new\n");
        assert_eq!(content(&state, "package/0/added"), "new\n");
        let entries = snapshot(&state).entries;
        assert_eq!(entries.get("package/0/gone"), Some(&Entry::Removed));
        assert!(!entries.contains_key("package/0/run.sh"));
        assert_eq!(
            snapshot(&state),
            snapshot(&state.copy().expect("a copy")),
            "{isolate:?}"
        );

        let again = sandbox(&spec, state.copy().expect("a copy"));
        let seen = again.seen("package/0/kept");
        let said = shell(
            &again,
            &format!("cat {0}; ls $(dirname {0})", seen.display()),
        )
        .await;
        assert_eq!(said, "new\nadded\nkept\nrun.sh", "{isolate:?}");
    }
}

/// Packages are found by Node in the folders above, and places may be named twice, one within
/// the other.
#[tokio::test]
async fn a_package_imports_from_the_folders_above() {
    for isolate in [Isolate::Namespaces, Isolate::Copy] {
        let project = tempfile::tempdir().expect("a folder");
        let modules = project.path().join("node_modules");
        for (name, code) in [
            ("@scope/server", "console.log(require('library'))"),
            ("library", "module.exports = 'found'"),
        ] {
            fs::create_dir_all(modules.join(name)).expect("a folder");
            fs::write(modules.join(name).join("index.js"), code).expect("a file");
        }
        let main = modules.join("@scope/server/index.js");
        let spec = SandboxSpec {
            isolate,
            packages: vec![modules.join("@scope/server")],
            readable: vec![modules, main.clone()],
            ..SandboxSpec::default()
        };
        let state = sandbox(&spec, fresh()).close().await;
        let opened = sandbox(&spec, state.copy().expect("a copy"));
        let main = main.to_string_lossy();
        let mut client = Client::start_quietly(&opened, &["node", &main], SYSCALLS).await;
        assert_eq!(client.line().await, "found", "{isolate:?}");
    }
}

#[tokio::test]
async fn what_the_user_allows_is_written_for_real() {
    let allowed = tempfile::tempdir().expect("a folder");
    let spec = SandboxSpec {
        writable: vec![allowed.path().to_owned()],
        ..namespaces()
    };
    let sandbox = sandbox(&spec, fresh());
    shell(
        &sandbox,
        &format!("echo x > {}/x", allowed.path().display()),
    )
    .await;
    assert_eq!(
        fs::read_to_string(allowed.path().join("x")).expect("a file"),
        "x\n"
    );
}

/// Two servers of a run see each other: lock files with process numbers in them must work.
#[tokio::test]
async fn processes_of_a_sandbox_share_their_numbers() {
    let sandbox = sandbox(&namespaces(), fresh());
    let mut a =
        Client::start_quietly(&sandbox, &["sh", "-c", "echo $$; cat"], Hooks::default()).await;
    let pid = a.line().await;
    let said = shell(
        &sandbox,
        &format!("kill -0 {pid} && echo alive; [ $$ = {pid} ] || echo another"),
    )
    .await;
    assert_eq!(said, "alive\nanother");
}

async fn orphans_end(spec: SandboxSpec, by_close: bool) {
    let opened = sandbox(&spec, fresh());
    let script = server("orphans.sh");
    let a = Client::start(&opened, &["sh", &script], SYSCALLS).await;
    let alive = opened.state().workspace().join("alive");
    let scratch = opened.state().scratch().clone();
    if by_close {
        let state = opened.close().await;
        let before = fs::read(&alive).expect("a file");
        tokio::time::sleep(MOMENT).await;
        assert_eq!(before, fs::read(&alive).expect("a file"));
        drop(a);
        drop(state);
    } else {
        // Only the process is ended; in a sandbox by namespaces an orphan then lives until the
        // sandbox is closed.
        a.process.kill().await;
        drop(a);
        drop(opened);
    }
    let root = scratch.path().to_owned();
    drop(scratch);
    assert!(!root.exists());
    assert_eq!(working_in(&root), Vec::<String>::new());
}

/// Processes whose current folder is in a scratch folder, by its name here or within a sandbox.
fn working_in(scratch: &Path) -> Vec<String> {
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc").expect("a list").flatten() {
        let Ok(cwd) = fs::read_link(entry.path().join("cwd")) else {
            continue;
        };
        let mounts = fs::read_to_string(entry.path().join("mountinfo")).unwrap_or_default();
        let name = scratch.file_name().expect("a name").to_string_lossy();
        if cwd.starts_with(scratch) || (cwd.starts_with("/toctou") && mounts.contains(&*name)) {
            found.push(entry.file_name().to_string_lossy().into_owned());
        }
    }
    found
}

/// Not even a run that is killed leaves a process behind.
#[test]
fn nothing_outlives_a_killed_run() {
    const INNER: &str = "TOCTOU_TEST_TO_BE_KILLED";
    const NAME: &str = "nothing_outlives_a_killed_run";
    if let Some(isolate) = std::env::var_os(INNER) {
        let spec = SandboxSpec {
            isolate: if isolate == "copy" {
                Isolate::Copy
            } else {
                Isolate::Namespaces
            },
            ..spec()
        };
        let runtime = tokio::runtime::Runtime::new().expect("a runtime");
        runtime.block_on(async {
            let opened = sandbox(&spec, fresh());
            let _a = Client::start(&opened, &["sh", &server("orphans.sh")], SYSCALLS).await;
            println!("scratch {}", opened.state().scratch().path().display());
            std::future::pending::<()>().await;
        });
    }
    for isolate in ["namespaces", "copy"] {
        let mut run = std::process::Command::new(std::env::current_exe().expect("a path"))
            .args(["--exact", NAME, "--nocapture"])
            .env(INNER, isolate)
            .stdout(std::process::Stdio::piped())
            .spawn()
            .expect("this program");
        let lines =
            std::io::BufRead::lines(std::io::BufReader::new(run.stdout.take().expect("a pipe")));
        let scratch = lines
            .map_while(Result::ok)
            .find_map(|l| l.split_once("scratch ").map(|(_, path)| path.to_owned()))
            .expect("a line");
        let scratch = Path::new(&scratch);
        assert!(
            working_in(scratch).len() >= 2,
            "{isolate}: the server and its orphan"
        );
        run.kill().expect("a process");
        run.wait().expect("a status");
        let began = std::time::Instant::now();
        while !working_in(scratch).is_empty() {
            assert!(
                began.elapsed() < PATIENCE,
                "{isolate}: {:?}",
                working_in(scratch)
            );
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        // The next run sweeps the folder: this one, or that of a test beside it.
        drop(Scratch::create().expect("a folder"));
        while scratch.exists() {
            assert!(
                began.elapsed() < PATIENCE,
                "{isolate}: {}",
                scratch.display()
            );
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
    }
}

#[tokio::test]
async fn orphans_end_with_the_sandbox() {
    orphans_end(namespaces(), true).await;
    orphans_end(namespaces(), false).await;
}

#[tokio::test]
async fn orphans_end_without_namespaces() {
    let copy = SandboxSpec {
        isolate: Isolate::Copy,
        ..spec()
    };
    orphans_end(copy.clone(), true).await;
    orphans_end(copy, false).await;
}

#[tokio::test]
async fn a_copy_says_what_it_does_not_protect() {
    let copy = SandboxSpec {
        isolate: Isolate::Copy,
        ..spec()
    };
    let prepared = fresh();
    fs::write(prepared.workspace().join("counter"), "0").expect("a file");
    let sandbox = sandbox(&copy, prepared);
    assert_eq!(sandbox.isolation().kind, IsolationKind::Copy);
    assert_eq!(sandbox.isolation().notes.len(), 2);
    // Holding works there, too.
    let mut a = Client::start(&sandbox, &["python3", &server("counter.py")], SYSCALLS).await;
    let mut hold = sandbox
        .supervisor()
        .arm(point(&a, toctou_hold::Source::Syscall, 1));
    a.send("add").await;
    let event = held(&mut hold).await;
    let path = sandbox.paths().workspace.join("counter");
    assert_eq!(event.paths, [path.to_string_lossy()]);
    hold.release();
    assert_eq!(a.line().await, "done");
}

#[tokio::test]
async fn a_command_that_cannot_be_started_is_an_error() {
    let sandbox = sandbox(&namespaces(), fresh());
    for hooks in [Hooks::default(), SYSCALLS] {
        let launch = Launch {
            argv: vec!["/no/such/program".into()],
            hooks,
            ..Launch::default()
        };
        let error = sandbox.launch(&launch).await.err().expect("an error");
        assert!(matches!(&error, Error::Spawn { .. }), "{error}");
        assert_eq!(
            error.to_string(),
            "cannot start `/no/such/program`: No such file or directory (os error 2)"
        );
    }
    let empty = sandbox.launch(&Launch::default()).await.err();
    assert!(matches!(empty, Some(Error::EmptyCommand)));
}

/// A run that was killed leaves its folder, and the next one removes it.
#[test]
fn folders_of_killed_runs_are_removed() {
    let base = tempfile::tempdir().expect("a folder");
    let alive = Scratch::create_in(base.path()).expect("a folder");
    let dead = base.path().join("toctou-scratch-0123456789abcdef");
    fs::create_dir_all(dead.join("state-0/home")).expect("a folder");
    fs::write(dead.join("lock"), "").expect("a file");
    let stranger = base.path().join("toctou-scratch-of-somebody");
    fs::create_dir(&stranger).expect("a folder");
    let next = Scratch::create_in(base.path()).expect("a folder");
    assert!(!dead.exists());
    assert!(alive.path().exists() && next.path().exists() && stranger.exists());
}

/// The whole again as somebody without any privileges, where that is allowed.
#[test]
fn it_works_without_privileges() {
    const INNER: &str = "TOCTOU_TEST_UNPRIVILEGED";
    if std::env::var_os(INNER).is_some() {
        return;
    }
    // Only root can become somebody else, and everybody else has none of root's privileges.
    if !is_root() {
        return;
    }
    let copy = tempfile::tempdir().expect("a folder");
    let program = copy.path().join("tests");
    fs::copy(std::env::current_exe().expect("a path"), &program).expect("a copy");
    open_to_all(copy.path());
    let output = std::process::Command::new("setpriv")
        .args(["--reuid=65534", "--regid=65534", "--clear-groups", "--"])
        .arg(&program)
        .args([
            "the_state_is_at_fixed_paths",
            "nothing_else_can_be_written",
            "a_package_is_written_to_beside_it",
        ])
        .env(INNER, "1")
        .current_dir("/")
        .output()
        .expect("setpriv");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success(),
        "{said}{}",
        String::from_utf8_lossy(&output.stderr)
    );
    assert!(said.contains("3 passed"), "{said}");
}

fn is_root() -> bool {
    use std::os::unix::fs::MetadataExt as _;
    fs::metadata("/proc/self").is_ok_and(|m| m.uid() == 0)
}

fn open_to_all(path: &Path) {
    use std::os::unix::fs::PermissionsExt as _;
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).expect("permissions");
}

#[test]
fn a_sandbox_can_be_sent_to_another_thread() {
    fn is_send<T: Send>() {}
    is_send::<Sandbox>();
    is_send::<toctou_hold::Process>();
    is_send::<Supervisor>();
    is_send::<toctou_hold::Hold>();
}

#[tokio::test]
async fn a_server_in_the_sandbox_is_reached_by_its_own_network_only() {
    use std::io::{Read as _, Write as _};

    const PORT: u16 = 18_733;
    let sandbox = sandbox(&namespaces(), fresh());
    let network = sandbox.network().expect("a network");
    assert!(network.is_own());
    let server = "import socket\ns = socket.create_server(('127.0.0.1', 18733))\n\
                  c, _ = s.accept()\nc.sendall(c.recv(9) + b' to you')\nc.close()";
    let launch = Launch {
        argv: ["python3", "-c", server].map(Into::into).to_vec(),
        ..Launch::default()
    };
    let process = sandbox.launch(&launch).await.expect("a server");
    let mut stream = loop {
        match network.connect(PORT) {
            Ok(stream) => break stream,
            Err(_) => tokio::time::sleep(std::time::Duration::from_millis(20)).await,
        }
    };
    assert!(std::net::TcpStream::connect(("127.0.0.1", PORT)).is_err());
    stream.write_all(b"good day!").expect("written");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer");
    assert_eq!(answer, "good day! to you");
    drop(process);

    // And the other way round.
    let listener = network.listen(PORT + 1).expect("a listener");
    let visitor = shell(
        &sandbox,
        "python3 -c \"import socket; socket.create_connection(('127.0.0.1', 18734)).sendall(b'hello')\"",
    );
    let visited = async {
        tokio::task::spawn_blocking(move || {
            let (mut stream, _) = listener.accept().expect("a visitor");
            let mut said = String::new();
            stream.read_to_string(&mut said).expect("words");
            said
        })
        .await
        .expect("joined")
    };
    let (_, said) = tokio::join!(visitor, visited);
    assert_eq!(said, "hello");
}
