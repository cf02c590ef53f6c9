//! `toctou serve`: the way from an address to a report, and attacks on it.

use std::time::{Duration, Instant};

use crate::common::{Project, RACY};
use crate::server::{GitServer, Zip, repository};
use crate::web::{Answer, Site};
use serde_json::Value;

/// For tests that are not about limits.
const OPEN: [&str; 7] = [
    "--allow-private",
    "--rate",
    "100000",
    "--pending",
    "100000",
    "--threads",
    "1",
];

fn zip(source: &str) -> Vec<u8> {
    Zip::default()
        .entry("server/index.ts", 0o100_644, source.as_bytes())
        .bytes()
}

#[test]
fn from_an_address_to_the_report() {
    let project = Project::new(&[]);
    let commit = repository(&project.at("served/notes"), &[("src/index.ts", RACY)]);
    let server = GitServer::start(&project.at("served"));
    let site = Site::start(project.path(), &OPEN);
    let url = server.url("notes");
    let answer = site.submit(&url);
    let id = answer.id();

    // The stream tells what goes on, and ends with the scan.
    let events = site.get(&format!("/api/scans/{id}/events"));
    assert_eq!(events.header("content-type"), Some("text/event-stream"));
    let last = events.body.trim().rsplit("\n\n").next().expect("an event");
    let data = last.strip_prefix("event: over\ndata: ").expect("the end");
    let scan: Value = serde_json::from_str(data).expect("json");
    assert_eq!(scan["state"], "done", "{scan}");
    assert_eq!(scan["revision"], *commit);
    assert_eq!(scan["source"], *url);
    assert_eq!(scan["findings"], 1);

    let report = site.get(scan["report"].as_str().expect("an address"));
    assert_eq!(report.status, 200);
    assert!(report.body.contains("file-read-modify-write"));
    let policy = report.header("content-security-policy").expect("a policy");
    assert!(
        policy.contains("script-src 'sha256-") && !policy.contains("unsafe"),
        "{policy}"
    );
    let json = site.get(&format!("/api/scans/{id}/report.json")).json();
    assert_eq!(json["source"]["revision"], *commit);
    assert_eq!(json["findings"][0]["location"]["file"], "src/index.ts");
    let gzip = site.send(
        "GET",
        &format!("/r/{id}"),
        &[("Accept-Encoding", "gzip")],
        b"",
    );
    assert_eq!(gzip.header("content-encoding"), Some("gzip"));

    let badge = site.get(&format!("/badge/{id}.svg"));
    assert_eq!(badge.header("content-type"), Some("image/svg+xml"));
    let grade = format!(
        "{} {}",
        scan["grade"].as_str().expect("a grade"),
        scan["score"]
    );
    assert!(badge.body.contains(&grade), "{}", badge.body);
    let latest = site.get("/badge/latest/nowhere.example/x.svg");
    assert!(latest.body.contains("not scanned"));

    let list = site.get("/api/scans").json();
    assert_eq!(list["scans"][0]["id"], *id);
    let front = site.get("/");
    assert!(front.body.contains(&format!("/r/{id}")) && front.body.contains(&url));
    assert!(
        site.get(&format!("/scans/{id}"))
            .body
            .contains(&format!("/badge/{id}.svg"))
    );

    for (path, status) in [
        ("/nothing", 404),
        ("/api/scans/00000000000000000000000000000000", 404),
        ("/r/00000000000000000000000000000000", 404),
        ("/r/../../etc/passwd", 404),
        ("/healthz", 200),
    ] {
        assert_eq!(site.get(path).status, status, "{path}");
    }
    let problem = site.get("/api/scans/00000000000000000000000000000000");
    assert_eq!(problem.json()["error"]["what"], "there is no such scan");
    assert_eq!(site.send("DELETE", "/api/scans", &[], b"").status, 405);
    site.stop();
}

#[test]
fn forms_work_without_scripts() {
    let project = Project::new(&[]);
    repository(&project.at("served/notes"), &[("src/index.ts", RACY)]);
    let server = GitServer::start(&project.at("served"));
    let site = Site::start(project.path(), &OPEN);
    let kind = ("Content-Type", "application/x-www-form-urlencoded");
    let body = format!("source={}", server.url("slow/notes").replace('/', "%2F"));
    let answer = site.send("POST", "/scans", &[kind], body.as_bytes());
    assert_eq!(answer.status, 303, "{}", answer.body);
    let place = answer.header("location").expect("a place").to_owned();
    let page = site.get(&place);
    assert!(
        page.body.contains("http-equiv=\"refresh\""),
        "{}",
        page.body
    );
    assert!(page.body.contains("role=\"status\""));
    // Not ready: the report's address leads there too.
    let id = place.trim_start_matches("/scans/").to_owned();
    assert_eq!(
        site.get(&format!("/r/{id}")).header("location"),
        Some(&*place)
    );
    assert_eq!(site.wait(&id)["state"], "done");

    let mut body = b"--xyz\r\nContent-Disposition: form-data; name=\"source\"\r\n\r\n\r\n--xyz\r\nContent-Disposition: form-data; name=\"archive\"; filename=\"a.zip\"\r\n\r\n".to_vec();
    body.extend_from_slice(&zip(RACY));
    body.extend_from_slice(b"\r\n--xyz--\r\n");
    let kind = ("Content-Type", "multipart/form-data; boundary=xyz");
    let answer = site.send("POST", "/scans", &[kind], &body);
    assert_eq!(answer.status, 303, "{}", answer.body);
    let upload = answer
        .header("location")
        .expect("a place")
        .trim_start_matches("/scans/")
        .to_owned();
    assert_eq!(site.wait(&upload)["findings"], 1);
    // Whoever uploads something shows it to nobody.
    assert!(!site.get("/api/scans").body.contains(&upload));
    assert!(!site.get("/").body.contains(&upload));
    let empty = site.send(
        "POST",
        "/scans",
        &[("Content-Type", kind.1)],
        b"--xyz--\r\n",
    );
    assert_eq!(empty.status, 400);
}

#[test]
fn no_private_address_is_asked() {
    let project = Project::new(&[]);
    repository(&project.at("served/notes"), &[("src/index.ts", RACY)]);
    let server = GitServer::start(&project.at("served"));
    let port = server.port;
    // As it is by default.
    let site = Site::start(project.path(), &["--rate", "1000", "--pending", "1000"]);
    let mut sources = vec![
        server.url("notes"),
        format!("file://{}", project.at("served/notes").display()),
        "/etc/passwd".to_owned(),
        "serve.db".to_owned(),
        "ssh://git@localhost/x".to_owned(),
        "git@localhost:x/y".to_owned(),
        "https://user:pass@localhost/x".to_owned(),
        format!("https://good.example\\@127.0.0.1:{port}/x"),
        format!("https://good.example#@127.0.0.1:{port}/x"),
        "ext::sh -c id".to_owned(),
        "--upload-pack=id".to_owned(),
        "npm:../../etc".to_owned(),
        "npm:file:/etc".to_owned(),
        "pypi:-r/etc/passwd".to_owned(),
    ];
    for host in [
        "127.0.0.1",
        "localhost",
        "localhost.localdomain",
        "127.1",
        "2130706433",
        "0x7f000001",
        "0177.0.0.1",
        "0",
        "0.0.0.0",
        "[::1]",
        "[::]",
        "[::ffff:127.0.0.1]",
        "[::ffff:7f00:1]",
        "[64:ff9b::7f00:1]",
        "[2002:7f00:1::]",
        "169.254.169.254",
        "[fd00:ec2::254]",
        "10.0.0.1",
        "100.64.0.1",
        "172.16.0.1",
        "192.168.0.1",
        "[fe80::1]",
        "198.18.0.1",
    ] {
        sources.push(format!("https://{host}:{port}/notes"));
    }
    for source in &sources {
        let error = site.failure(&site.submit(source));
        assert!(!error.contains("findings"), "{source}: {error}");
        let words = [
            "to a public address",
            "not a public address",
            "cannot be looked up",
            "only https",
            "source",
            "address",
            "host",
            "package",
        ];
        assert!(
            words.iter().any(|word| error.contains(word)),
            "{source}: {error}"
        );
    }
    assert_eq!(server.asked(), 0, "somebody was asked");
}

#[test]
fn hostile_archives_and_repositories() {
    let project = Project::new(&[]);
    let big = "x".repeat(3 << 20);
    repository(&project.at("served/big"), &[("a.ts", &big)]);
    let server = GitServer::start(&project.at("served"));
    let mut options = OPEN.to_vec();
    options.extend(["--max-source", "2", "--max-upload", "1"]);
    let site = Site::start(project.path(), &options);
    let expect = |answer: &Answer, word: &str| {
        let error = site.failure(answer);
        assert!(error.contains(word), "{error}");
        assert!(
            !error.contains(&*project.path().to_string_lossy()),
            "{error}"
        );
    };
    let slip = Zip::default().entry("../../evil.ts", 0o100_644, RACY.as_bytes());
    expect(
        &site.upload("slip.zip", &slip.bytes()),
        "a path that leads out",
    );
    let bomb = Zip::default().entry("zeroes", 0o100_644, &vec![0; 8 << 20]);
    expect(
        &site.upload("bomb.zip", &bomb.bytes()),
        "too large: more than 2 MB",
    );
    let device = Zip::default().entry("null", 0o020_666, b"");
    expect(&site.upload("device.zip", &device.bytes()), "a device");
    expect(
        &site.upload("text.zip", b"PK, but not a zip"),
        "cannot be unpacked",
    );
    expect(&site.upload("text.zip", b"not a zip"), "not an archive");
    expect(
        &site.upload("empty.zip", &Zip::default().entry("a.txt", 0, b"x").bytes()),
        "nothing to analyse",
    );
    expect(
        &site.submit(&server.url("big")),
        "too large: more than 2 MB",
    );
    expect(
        &site.submit(&server.url("nowhere")),
        "cannot be brought here",
    );
    let large = site.upload("large.zip", &vec![b'P'; 2 << 20]);
    assert_eq!(large.status, 413, "{large:?}");
    // A link is neither made nor followed; the rest is scanned.
    let link = Zip::default()
        .entry("link.ts", 0o120_777, b"/etc/passwd")
        .entry("index.ts", 0o100_644, RACY.as_bytes());
    let scan = site.wait(&site.upload("link.zip", &link.bytes()).id());
    assert_eq!(scan["findings"], 1, "{scan}");
    let report = site.get(&format!(
        "/api/scans/{}/report.json",
        scan["id"].as_str().expect("id")
    ));
    assert_eq!(report.json()["skipped"][0]["reason"], "symbolic link");
    assert!(!report.body.contains("root:"));
    site.stop();
    let left: Vec<_> = std::fs::read_dir(project.at("tmp"))
        .expect("a folder")
        .flatten()
        .collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn time_has_a_limit() {
    let project = Project::new(&[]);
    std::fs::create_dir_all(project.at("served")).expect("a folder");
    let server = GitServer::start(&project.at("served"));
    let mut options = OPEN.to_vec();
    options.extend(["--timeout", "3"]);
    let site = Site::start(project.path(), &options);
    let start = Instant::now();
    let error = site.failure(&site.submit(&server.url("silent/x")));
    assert!(error.contains("longer than 3 seconds"), "{error}");
    assert!(start.elapsed() < Duration::from_secs(30));
}

/// Source whose analysis wants more memory than a scan may have: the scan fails, the service does not.
#[test]
fn memory_has_a_limit() {
    let project = Project::new(&[]);
    let mut options = OPEN.to_vec();
    options.extend(["--max-memory", "1024"]);
    let site = Site::start(project.path(), &options);
    let mut text = "export const all = [".to_owned();
    while text.len() < 9 << 20 {
        text += "{a:[1,{b:2}]},";
    }
    text += "];\n";
    let zip = (0..3).fold(Zip::default(), |zip, n| {
        zip.entry(&format!("part{n}.ts"), 0o100_644, text.as_bytes())
    });
    let error = site.failure(&site.upload("memory.zip", &zip.bytes()));
    assert!(error.contains("more than it may have"), "{error}");
    assert_eq!(site.get("/healthz").status, 200);
}

#[test]
fn nothing_of_a_stranger_is_markup() {
    const EVIL: &str = "<img src=x onerror=alert(1)>\"'</script><script>alert(2)</script>";
    let project = Project::new(&[]);
    let site = Site::start(project.path(), &OPEN);
    let code = RACY
        .replace("add_note", &EVIL.replace('"', "\\\""))
        .replace("notes.json", "</script><script>alert(3)</script>");
    let zip = Zip::default()
        .entry(
            "<img src=x onerror=alert(4)>/<svg onload=alert(5)>.ts",
            0o100_644,
            code.as_bytes(),
        )
        .entry("other.ts", 0o100_644, b"export {}")
        .bytes();
    let name = "%22%3E%3Cscript%3Ealert(6)%3C%2Fscript%3E.zip";
    let id = site.upload(name, &zip).id();
    let scan = site.wait(&id);
    assert_eq!(scan["state"], "done", "{scan}");
    assert!(scan["findings"].as_i64() >= Some(1), "{scan}");
    for path in [format!("/r/{id}"), format!("/scans/{id}"), "/".to_owned()] {
        let page = site.get(&path);
        assert_eq!(page.status, 200);
        for markup in ["<img src=x", "<script>alert", "<svg onload"] {
            assert!(!page.body.contains(markup), "{path}: {markup}");
        }
        let policy = page.header("content-security-policy").expect("a policy");
        assert!(policy.starts_with("default-src 'none'") && !policy.contains("unsafe-inline"));
        assert_eq!(page.header("x-content-type-options"), Some("nosniff"));
    }
    // An error repeats what was sent, as text.
    let kind = ("Content-Type", "application/x-www-form-urlencoded");
    let answer = site.send(
        "POST",
        "/scans",
        &[kind],
        b"source=%3Cscript%3Ealert(7)%3C%2Fscript%3E",
    );
    assert_eq!(answer.status, 400);
    assert!(!answer.body.contains("<script>alert"), "{}", answer.body);
}

#[test]
fn other_sites_cannot_submit() {
    let project = Project::new(&[]);
    let site = Site::start(project.path(), &OPEN);
    let body = br#"{"source": "npm:x"}"#;
    let json = ("Content-Type", "application/json");
    for header in [
        ("Origin", "https://evil.example"),
        ("Origin", "null"),
        ("Sec-Fetch-Site", "cross-site"),
        ("Sec-Fetch-Site", "same-site"),
    ] {
        let answer = site.send("POST", "/api/scans", &[json, header], body);
        assert_eq!(answer.status, 403, "{header:?}");
    }
    // A name that was made to lead here.
    let host = ("Host", "evil.example");
    assert_eq!(site.send("GET", "/", &[host], b"").status, 421);
    assert_eq!(
        site.send(
            "POST",
            "/api/scans",
            &[("Content-Type", "text/plain")],
            body
        )
        .status,
        415
    );
}

/// 200 at once: one caller gets what one caller may have, and not one more.
#[test]
fn two_hundred_at_once_from_one_caller() {
    let project = Project::new(&[]);
    repository(&project.at("served/notes"), &[("src/index.ts", RACY)]);
    let server = GitServer::start(&project.at("served"));
    let site = Site::start(
        project.path(),
        &["--allow-private", "--rate", "50", "--pending", "7"],
    );
    let url = server.url("slow/notes");
    let answers: Vec<Answer> = std::thread::scope(|scope| {
        let all: Vec<_> = (0..200)
            .map(|_| scope.spawn(|| site.submit(&url)))
            .collect();
        all.into_iter()
            .map(|one| one.join().expect("an answer"))
            .collect()
    });
    let accepted: Vec<&Answer> = answers.iter().filter(|a| a.status == 202).collect();
    let refused = answers.iter().filter(|a| a.status == 429).count();
    assert_eq!((accepted.len(), refused), (7, 193));
    for answer in answers.iter().filter(|a| a.status == 429) {
        let wait: u64 = answer
            .header("retry-after")
            .expect("when")
            .parse()
            .expect("seconds");
        assert!(wait >= 1);
    }
    for answer in accepted {
        assert_eq!(site.wait(&answer.id())["state"], "done");
    }
}

/// 200 at once that are all let in: every one is scanned, once.
#[test]
fn two_hundred_at_once_are_all_scanned() {
    let project = Project::new(&[]);
    let mut options = OPEN.to_vec();
    options.extend(["--workers", "2", "--open", "1000"]);
    let site = Site::start(project.path(), &options);
    let small = zip(RACY);
    let submit = || loop {
        // Uploads are held in memory, so only some at a time; the others come again.
        let answer = site.upload("a.zip", &small);
        if answer.status != 429 {
            return answer.id();
        }
        std::thread::sleep(Duration::from_millis(100));
    };
    let ids: Vec<String> = std::thread::scope(|scope| {
        let all: Vec<_> = (0..200).map(|_| scope.spawn(submit)).collect();
        all.into_iter()
            .map(|one| one.join().expect("an answer"))
            .collect()
    });
    let different: std::collections::BTreeSet<&String> = ids.iter().collect();
    assert_eq!(different.len(), 200);
    for id in &ids {
        let scan = site.wait(id);
        assert_eq!(
            (scan["state"].as_str(), scan["findings"].as_i64()),
            (Some("done"), Some(1)),
            "{scan}"
        );
    }
}

#[test]
fn a_restart_loses_nothing() {
    let project = Project::new(&[]);
    repository(&project.at("served/notes"), &[("src/index.ts", RACY)]);
    let server = GitServer::start(&project.at("served"));
    for signal in ["TERM", "KILL"] {
        let mut site = Site::start(project.path(), &OPEN);
        let id = site.submit(&server.url("slow/notes")).id();
        let start = Instant::now();
        while site.scan(&id)["state"] != "running" {
            assert!(start.elapsed() < Duration::from_secs(30));
            std::thread::sleep(Duration::from_millis(20));
        }
        site.signal(signal);
        site.child.wait().expect("an end");
        let site = Site::start(project.path(), &OPEN);
        assert_eq!(site.wait(&id)["state"], "done", "{signal}");
        site.stop();
    }
    let left: Vec<_> = std::fs::read_dir(project.at("tmp"))
        .expect("a folder")
        .flatten()
        .collect();
    assert!(left.is_empty(), "{left:?}");
}

/// `./benches/serve` says how long it takes.
#[test]
fn a_repository_of_a_thousand_files() {
    let project = Project::new(&[]);
    let files: Vec<(String, String)> = (0..1000)
        .map(|n| {
            (
                format!("src/part{n}.ts"),
                RACY.replace("add_note", &format!("add_note_{n}")),
            )
        })
        .collect();
    let files: Vec<(&str, &str)> = files.iter().map(|(a, b)| (&**a, &**b)).collect();
    repository(&project.at("served/large"), &files);
    let server = GitServer::start(&project.at("served"));
    let site = Site::start(project.path(), &["--allow-private"]);
    let scan = site.wait(&site.submit(&server.url("large")).id());
    assert_eq!(scan["state"], "done", "{scan}");
    assert_eq!(scan["findings"], 1000);
}

#[test]
fn two_services_do_not_share_a_file() {
    let project = Project::new(&[]);
    let site = Site::start(project.path(), &[]);
    let run = project.run("serve --store serve.db --listen 127.0.0.1:0");
    assert_eq!(run.code, Some(2));
    assert!(
        run.stderr.contains("another toctou serve uses it"),
        "{}",
        run.stderr
    );
    let run = project.run("serve --store other.db --worker");
    assert!(
        run.stderr.contains("hint: give `--store postgres://"),
        "{}",
        run.stderr
    );
    let run = project.run(&format!("serve --store other.db --listen {}", site.address));
    assert!(run.stderr.contains("cannot listen on"), "{}", run.stderr);
}
