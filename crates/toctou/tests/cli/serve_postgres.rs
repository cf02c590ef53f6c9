//! `toctou serve` on PostgreSQL: workers that die or stall, and a database that goes away.
//! `./scripts/test` runs these once PostgreSQL is there.

use std::time::{Duration, Instant};

use crate::common::{Project, RACY};
use crate::server::{GitServer, Zip, repository};
use crate::support::{Kind, Server};
use crate::web::Site;

const LIMITS: [&str; 8] = [
    "--allow-private",
    "--rate",
    "100000",
    "--pending",
    "100000",
    "--threads",
    "1",
    "--lease=2",
];

fn front<'a>(url: &'a str, folder: &std::path::Path) -> Site {
    let mut options: Vec<&'a str> = LIMITS.to_vec();
    options.extend(["--workers", "0", "--store", url]);
    Site::start(folder, &options)
}

fn worker<'a>(url: &'a str, folder: &std::path::Path) -> Site {
    let mut options: Vec<&'a str> = LIMITS.to_vec();
    options.extend(["--worker", "--workers", "1", "--store", url]);
    Site::start(folder, &options)
}

fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < Duration::from_secs(120), "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
#[ignore = "needs PostgreSQL: ./scripts/test runs it"]
fn a_killed_worker_is_replaced() {
    let database = Server::start(Kind::Postgres);
    let url = database.url();
    let project = Project::new(&[]);
    repository(&project.at("served/notes"), &[("src/index.ts", RACY)]);
    let git = GitServer::start(&project.at("served"));
    let site = front(&url, project.path());
    let first = worker(&url, project.path());
    let ids: Vec<String> = (0..6)
        .map(|n| {
            let slow = if n % 2 == 0 { "slow/notes" } else { "notes" };
            site.submit(&git.url(slow)).id()
        })
        .collect();
    until("nothing runs", || site.scan(&ids[0])["state"] == "running");
    first.signal("KILL");
    let second = worker(&url, project.path());
    for id in &ids {
        let scan = site.wait(id);
        assert_eq!(scan["state"], "done", "{scan}");
        assert_eq!(scan["findings"], 1);
    }
    let list = site.get("/api/scans").json();
    assert_eq!(
        list["scans"].as_array().map(Vec::len),
        Some(6),
        "nothing is doubled"
    );
    assert!(!second.said().contains("refused"), "{}", second.said());
    // What the killed one left is gone: nobody holds its lock.
    second.stop();
    site.stop();
}

/// A worker is stopped, its job given to another, and then it goes on: its result is refused.
#[test]
#[ignore = "needs PostgreSQL: ./scripts/test runs it"]
fn a_late_result_is_refused() {
    let database = Server::start(Kind::Postgres);
    let url = database.url();
    let project = Project::new(&[]);
    repository(&project.at("served/notes"), &[("src/index.ts", RACY)]);
    let git = GitServer::start(&project.at("served"));
    let site = front(&url, project.path());
    let first = worker(&url, project.path());
    let id = site.submit(&git.url("slow/notes")).id();
    until("nothing runs", || site.scan(&id)["state"] == "running");
    // The scan itself goes on and ends; only its worker cannot tell.
    first.signal("STOP");
    let second = worker(&url, project.path());
    let done = site.wait(&id);
    assert_eq!(done["state"], "done", "{done}");
    first.signal("CONT");
    until("the first does not notice", || {
        let said = first.said();
        said.contains("late-result-refused") || said.contains("job-lost")
    });
    assert_eq!(site.scan(&id), done, "nothing changed");
    drop(second);
    // It works on.
    let next = site.submit(&git.url("notes")).id();
    assert_eq!(site.wait(&next)["state"], "done");
}

/// A job that ends every worker is given up, and the others are not held up.
#[test]
#[ignore = "needs PostgreSQL: ./scripts/test runs it"]
fn a_poisoned_job_is_given_up() {
    let database = Server::start(Kind::Postgres);
    let url = database.url();
    let project = Project::new(&[]);
    repository(&project.at("served/notes"), &[("src/index.ts", RACY)]);
    let git = GitServer::start(&project.at("served"));
    let site = front(&url, project.path());
    let poison = site.submit(&git.url("silent/x")).id();
    for _ in 0..3 {
        let victim = worker(&url, project.path());
        // Its state says nothing of who works on it: what the last victim wrote stays.
        until("nobody takes it", || victim.said().contains("job-taken"));
        victim.signal("KILL");
    }
    let _worker = worker(&url, project.path());
    let fine = site.submit(&git.url("notes")).id();
    assert_eq!(site.wait(&fine)["state"], "done");
    let scan = site.wait(&poison);
    assert!(scan["error"].to_string().contains("every worker"), "{scan}");
}

#[test]
#[ignore = "needs PostgreSQL: ./scripts/test runs it"]
fn a_restart_of_the_database_is_survived() {
    let mut database = Server::start(Kind::Postgres);
    let url = database.url();
    let project = Project::new(&[]);
    repository(&project.at("served/notes"), &[("src/index.ts", RACY)]);
    let git = GitServer::start(&project.at("served"));
    let site = front(&url, project.path());
    let workers = [worker(&url, project.path()), worker(&url, project.path())];
    let zip = Zip::default()
        .entry("index.ts", 0o100_644, RACY.as_bytes())
        .bytes();
    let mut ids: Vec<String> = (0..4)
        .map(|_| site.submit(&git.url("slow/notes")).id())
        .collect();
    ids.push(site.upload("a.zip", &zip).id());
    until("nothing runs", || site.scan(&ids[0])["state"] == "running");
    database.stop();
    let down = site.submit(&git.url("notes"));
    assert_eq!(down.status, 503, "{down:?}");
    assert!(down.header("retry-after").is_some());
    assert_eq!(site.get("/healthz").status, 503);
    std::thread::sleep(Duration::from_secs(1));
    database.run();
    until("it does not come back", || {
        site.get("/healthz").status == 200
    });
    ids.push(site.submit(&git.url("notes")).id());
    for id in &ids {
        let scan = site.wait(id);
        assert_eq!(
            (scan["state"].as_str(), scan["findings"].as_i64()),
            (Some("done"), Some(1)),
            "{scan}"
        );
    }
    drop(workers);
}

/// Two front pages share the limits of a caller.
#[test]
#[ignore = "needs PostgreSQL: ./scripts/test runs it"]
fn limits_reach_across_processes() {
    let database = Server::start(Kind::Postgres);
    let url = database.url();
    let project = Project::new(&[]);
    let options = [
        "--allow-private",
        "--rate",
        "1000",
        "--pending",
        "9",
        "--workers",
        "0",
        "--store",
        &url,
    ];
    let sites = [
        Site::start(project.path(), &options),
        Site::start(project.path(), &options),
    ];
    let answers: Vec<u16> = std::thread::scope(|scope| {
        let all: Vec<_> = (0..40)
            .map(|n| {
                let site = &sites[n % 2];
                scope.spawn(move || site.submit("http://127.0.0.1:9/x").status)
            })
            .collect();
        all.into_iter()
            .map(|one| one.join().expect("an answer"))
            .collect()
    });
    assert_eq!(
        answers.iter().filter(|status| **status == 202).count(),
        9,
        "{answers:?}"
    );
}
