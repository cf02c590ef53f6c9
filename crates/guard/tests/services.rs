//! Redis and PostgreSQL behind the guard: shared by two guards, lost, and back.

mod common;
#[path = "../../sync/tests/support/mod.rs"]
mod support;

use std::process::Stdio;
use std::time::{Duration, Instant};

use common::http::{free_address, metrics};
use common::{Bench, Client, SOON, reason};
use serde_json::json;
use support::{Kind, Server};

#[test]
#[ignore = "needs Redis and PostgreSQL; scripts/test runs it"]
fn two_guards_exclude_each_other() {
    for kind in [Kind::Redis, Kind::Postgres] {
        let server = Server::start(kind);
        let bench = Bench::new();
        bench.policy_on(
            &server.url(),
            "[[tool]]\nmatch = \"write\"\nlock = \"{key}\"\n[[tool]]\nmatch = \"plain\"\nlock = []\nin-flight = { max = 2, queue = 100, by = \"everybody\" }\n[[tool]]\nmatch = \"task\"\nlock = []\nidempotency = { key = \"{key}\" }\n",
        );
        let mut clients = [bench.guard(), bench.guard()];
        for client in &mut clients {
            client.initialize();
        }
        for client in &mut clients {
            for id in 0..15 {
                client.call(
                    id,
                    "write",
                    json!({"key": 1, "count": bench.text("counter")}),
                );
            }
        }
        for client in &clients {
            for answer in client.answers(15) {
                assert_eq!(reason(&answer), "not refused");
            }
        }
        assert_eq!(bench.most_at_once(), 1);
        assert_eq!(bench.counted(), "30");
        for client in &mut clients {
            for id in 0..10 {
                client.call(id, "plain", json!({"ms": 5}));
            }
        }
        for client in &clients {
            for answer in client.answers(10) {
                assert_eq!(reason(&answer), "not refused");
            }
        }
        assert!(bench.most_at_once() <= 2, "{}", bench.most_at_once());
        for client in &mut clients {
            let answer = client.ask(99, "task", json!({"key": "k", "name": "once"}));
            assert_eq!(answer["result"]["content"][0]["text"], "once");
        }
        assert_eq!(bench.count("begin once"), 1);
    }
}

/// By TLS, with an authority that `SSL_CERT_FILE` names; who has not been told of it is told why nothing works.
#[test]
#[ignore = "needs Redis and PostgreSQL; scripts/test runs it"]
fn backends_behind_tls() {
    let certificates = tempfile::tempdir().expect("a folder");
    support::certificates(certificates.path(), "DNS:localhost");
    for kind in [Kind::Redis, Kind::Postgres] {
        let server = Server::start_secure(kind, certificates.path());
        let bench = Bench::new();
        let at = format!("localhost:{}", server.port());
        let url = match kind {
            Kind::Redis => format!("rediss://{at}/"),
            Kind::Postgres => format!("postgres://toctou@{at}/postgres?sslmode=verify-full"),
        };
        bench.policy_on(&url, "");
        let mut command = bench.command(&[]);
        command.env("SSL_CERT_FILE", certificates.path().join("authority.pem"));
        let mut client = Client::start(command);
        client.initialize();
        for id in 0..10 {
            client.call(id, "write", json!({"count": bench.text("counter")}));
        }
        for answer in client.answers(10) {
            assert_eq!(reason(&answer), "not refused");
        }
        assert_eq!(bench.counted(), "10");
        let mut command = bench.command(&[]);
        command.env_remove("SSL_CERT_FILE").stdin(Stdio::null());
        let refused = command.output().expect("a guard");
        assert!(!refused.status.success());
        let told = String::from_utf8_lossy(&refused.stderr);
        assert!(
            told.contains("localhost is by nobody who is trusted"),
            "{told}"
        );
    }
}

#[test]
#[ignore = "needs Redis and PostgreSQL; scripts/test runs it"]
fn a_backend_that_is_lost_and_comes_back() {
    for kind in [Kind::Redis, Kind::Postgres] {
        let mut server = Server::start(kind);
        let (closed, open) = (Bench::new(), Bench::new());
        closed.policy_on(&server.url(), "");
        open.policy_on(&server.url(), "on-backend-loss = \"open\"\n");
        let (closed_at, open_at) = (free_address(), free_address());
        let mut shut = closed.guard_with(&["--metrics", &closed_at]);
        let mut wide = open.guard_with(&["--metrics", &open_at]);
        for client in [&mut shut, &mut wide] {
            client.initialize();
            assert_eq!(reason(&client.ask(1, "write", json!({}))), "not refused");
        }
        server.stop();
        assert_eq!(
            reason(&shut.ask(2, "write", json!({"name": "x"}))),
            "backend-lost"
        );
        assert_eq!(closed.count("begin x"), 0);
        assert_eq!(
            reason(&wide.ask(2, "write", json!({"name": "x"}))),
            "not refused"
        );
        assert_eq!(open.count("begin x"), 1);
        for (address, through) in [(&closed_at, "0"), (&open_at, "1")] {
            let text = metrics(address);
            let line = format!("toctou_guard_unprotected_calls_total {through}");
            assert!(text.contains(&line), "{text}");
            assert!(
                !text.contains("toctou_guard_backend_failures_total 0"),
                "{text}"
            );
        }
        server.run();
        let began = Instant::now();
        let mut id = 3;
        while reason(&shut.ask(id, "write", json!({}))) != "not refused" {
            assert!(began.elapsed() < SOON, "it does not come back");
            std::thread::sleep(Duration::from_millis(50));
            id += 1;
        }
    }
}
