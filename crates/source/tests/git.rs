//! Repositories, from a real server and from a file.
#![allow(clippy::unwrap_used)]

mod common;

use std::path::Path;
use std::time::{Duration, Instant};

use common::{GitServer, git, repository};
use toctou_source::{Fetched, Limits, Options, Reach, SourceError, Spec, fetch};

fn bring(text: &str, reach: Reach, limits: Limits) -> Result<Fetched, SourceError> {
    let options = Options {
        limits,
        reach,
        hosts: &[],
        plain_http: &[],
        progress: &|_| {},
    };
    fetch(&Spec::parse(text)?, &options)
}

fn read(fetched: &Fetched, path: &str) -> String {
    std::fs::read_to_string(fetched.root.join(path)).unwrap()
}

#[test]
fn by_http_and_by_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("notes");
    let first = repository(&path, &[("src/a.ts", "one"), ("packages/b/c.ts", "sub")]);
    git(&path, &["tag", "v1"]);
    std::fs::write(path.join("src/a.ts"), "two").unwrap();
    // What must not come to life: a link out, a hook, a filter, ignored files.
    std::os::unix::fs::symlink("/etc/passwd", path.join("link.ts")).unwrap();
    std::fs::write(path.join(".gitattributes"), "* filter=lfs export-ignore\n").unwrap();
    std::fs::write(path.join(".gitignore"), "*\n").unwrap();
    git(&path, &["add", "-A", "-f"]);
    git(&path, &["commit", "--quiet", "-m", "second"]);
    let second = git(&path, &["rev-parse", "HEAD"]);
    let server = GitServer::start(folder.path());

    for (url, reach) in [
        (server.url("notes"), Reach::User),
        (server.url("notes"), Reach::Intranet),
        (format!("file://{}", path.display()), Reach::User),
    ] {
        let all = |text: String| bring(&text, reach.clone(), Limits::default()).unwrap();
        let newest = all(url.clone());
        assert_eq!(newest.origin.revision.as_deref(), Some(&*second));
        assert_eq!(newest.origin.name, url);
        assert_eq!(read(&newest, "src/a.ts"), "two");
        assert!(std::fs::symlink_metadata(newest.root.join("link.ts")).is_err());
        assert_eq!(newest.left_out[0].path, "link.ts");
        assert_eq!(read(&all(format!("{url}@v1")), "src/a.ts"), "one");
        assert_eq!(read(&all(format!("{url}@main")), "src/a.ts"), "two");
        let by_id = all(format!("{url}@{first}"));
        assert_eq!(by_id.origin.revision.as_deref(), Some(&*first));
        assert_eq!(read(&by_id, "src/a.ts"), "one");
        assert_eq!(read(&all(format!("{url}@v1#packages/b")), "c.ts"), "sub");
        // Nothing of Git stays, and nothing at all afterwards.
        let above = newest.root.parent().unwrap().to_owned();
        assert!(!above.join("git").exists());
        drop(newest);
        assert!(!above.exists());

        for (tail, word) in [
            ("@nowhere", "couldn't find remote ref"),
            ("#nowhere", "nowhere"),
            ("#src/a.ts", "src/a.ts"),
        ] {
            let error = bring(&format!("{url}{tail}"), reach.clone(), Limits::default());
            let error = error.unwrap_err().to_string();
            assert!(error.contains(word), "{error}");
        }
    }
    let error = bring(&server.url("missing"), Reach::User, Limits::default()).unwrap_err();
    assert!(matches!(error, SourceError::Failed { .. }), "{error:?}");
}

#[test]
fn strangers_reach_no_private_address() {
    let folder = tempfile::tempdir().unwrap();
    repository(&folder.path().join("notes"), &[("a.ts", "x")]);
    let server = GitServer::start(folder.path());
    let port = server.port;
    for host in [
        "127.0.0.1",
        "localhost",
        "127.1",
        "2130706433",
        "0x7f000001",
        "0177.0.0.1",
        "0",
        "[::1]",
        "[::ffff:127.0.0.1]",
        "[::ffff:7f00:1]",
        "[64:ff9b::7f00:1]",
        "169.254.169.254",
        "10.0.0.1",
        "100.64.0.1",
        "192.168.0.1",
        "[fd00:ec2::254]",
        "[fe80::1]",
    ] {
        let url = format!("https://{host}:{port}/notes");
        let error = bring(&url, Reach::Public, Limits::default()).unwrap_err();
        assert!(
            matches!(
                error,
                SourceError::Refused { .. } | SourceError::NotASource { .. }
            ),
            "{url}: {error:?}"
        );
    }
    for url in [
        server.url("notes"),
        format!("file://{}", folder.path().join("notes").display()),
        "ssh://git@example.com/x".to_owned(),
        "git@example.com:x/y".to_owned(),
    ] {
        let error = bring(&url, Reach::Public, Limits::default()).unwrap_err();
        assert!(
            matches!(error, SourceError::Refused { .. }),
            "{url}: {error:?}"
        );
    }
    // A redirect is not followed: it could lead anywhere.
    let error = bring(
        &server.url("redirect/notes"),
        Reach::Intranet,
        Limits::default(),
    );
    let error = error.unwrap_err();
    assert!(error.to_string().contains("302"), "{error}");
    assert!(error.hint().unwrap().contains("leads elsewhere"));
    // Only the hosts that were named.
    let options = Options {
        limits: Limits::default(),
        reach: Reach::Intranet,
        hosts: &["git.example".to_owned()],
        plain_http: &[],
        progress: &|_| {},
    };
    let spec = Spec::parse(&server.url("notes")).unwrap();
    let error = fetch(&spec, &options).unwrap_err();
    assert!(error.to_string().contains("not among the hosts"), "{error}");
}

#[test]
fn limits_are_kept() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("big");
    let big = "x".repeat(3 << 20);
    repository(&path, &[("a.ts", &big), ("b.ts", &format!("{big}y"))]);
    let server = GitServer::start(folder.path());
    let small = Limits {
        bytes: 4 << 20,
        ..Limits::default()
    };
    // Packed it is tiny: it is the unpacked size that counts.
    let error = bring(&server.url("big"), Reach::User, small).unwrap_err();
    assert!(matches!(error, SourceError::TooLarge { .. }), "{error:?}");

    // A transfer that grows past the limit is stopped on its way.
    let path = folder.path().join("random");
    std::fs::create_dir(&path).unwrap();
    let mut noise = Vec::with_capacity(24 << 20);
    let mut state = 1_u64;
    while noise.len() < 24 << 20 {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        noise.extend_from_slice(&(state >> 16).to_le_bytes()[..6]);
    }
    std::fs::write(path.join("noise"), noise).unwrap();
    repository(&path, &[]);
    let error = bring(&server.url("random"), Reach::User, small).unwrap_err();
    assert!(matches!(error, SourceError::TooLarge { .. }), "{error:?}");

    let few = Limits {
        entries: 1,
        ..Limits::default()
    };
    let error = bring(&server.url("big"), Reach::User, few).unwrap_err();
    assert!(matches!(error, SourceError::TooLarge { .. }), "{error:?}");

    let soon = Limits {
        time: Duration::from_millis(700),
        ..Limits::default()
    };
    let start = Instant::now();
    let error = bring(&server.url("silent/x"), Reach::User, soon).unwrap_err();
    assert!(matches!(error, SourceError::TooSlow { .. }), "{error:?}");
    assert!(start.elapsed() < Duration::from_secs(10));
}

/// One blob and eight trees that are a hundred million files.
#[test]
fn a_bomb_of_trees_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("bomb");
    std::fs::create_dir(&path).unwrap();
    git(&path, &["init", "--quiet"]);
    std::fs::write(path.join("blob"), "x").unwrap();
    let blob = git(&path, &["hash-object", "-w", "blob"]);
    let mut id = tree(&path, "100644 blob", &blob);
    for _ in 0..7 {
        id = tree(&path, "040000 tree", &id);
    }
    let commit = git(&path, &["commit-tree", "-m", "bomb", &id]);
    git(&path, &["update-ref", "refs/heads/main", &commit]);
    let start = Instant::now();
    let url = format!("file://{}", path.display());
    let error = bring(&url, Reach::User, Limits::default()).unwrap_err();
    assert!(matches!(error, SourceError::TooLarge { .. }), "{error:?}");
    assert!(
        start.elapsed() < Duration::from_secs(30),
        "{:?}",
        start.elapsed()
    );
}

fn tree(path: &Path, kind: &str, id: &str) -> String {
    use std::io::Write as _;
    let mut child = std::process::Command::new("git")
        .current_dir(path)
        .arg("mktree")
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    for n in 0..10 {
        writeln!(stdin, "{kind} {id}\tn{n}").unwrap();
    }
    drop(stdin);
    let output = child.wait_with_output().unwrap();
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}
