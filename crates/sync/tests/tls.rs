//! Redis and PostgreSQL by TLS: real servers, with certificates that the test makes.
//!
//! Whom to trust is said by `SSL_CERT_FILE`, which is a process's: so each attempt is a process of its own.
#![cfg(all(feature = "redis", feature = "postgres"))]
#![allow(clippy::unwrap_used)]

mod support;

use std::error::Error as _;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use support::{Kind, Server, certificates};
use toctou_sync::{LockRequest, connect};

/// Takes a lock that is taken, waits for it and gives up, so that a request is cancelled, too; then gets it.
async fn attempt(url: &str) -> String {
    let backend = match connect(url).await {
        Ok(backend) => backend,
        Err(error) => {
            let source = error.source().map(ToString::to_string).unwrap_or_default();
            let below = error.source().and_then(std::error::Error::source);
            return format!(
                "{error}: {source} {}",
                below.map(ToString::to_string).unwrap_or_default()
            );
        }
    };
    let other = connect(url).await.unwrap();
    let key = || LockRequest::new().exclusive("key");
    let held = backend.acquire(key()).await.unwrap();
    let short = key().within(Duration::from_millis(100));
    assert!(other.acquire(short).await.unwrap_err().is_contention());
    held.release().await.unwrap();
    let long = key().within(Duration::from_secs(5));
    other.acquire(long).await.unwrap().release().await.unwrap();
    "works".into()
}

#[tokio::test]
async fn other_process() {
    if let Ok(url) = std::env::var("TOCTOU_TEST_URL") {
        println!("said: {}", attempt(&url).await);
    }
}

fn said(url: &str, trusted: Option<&Path>) -> String {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args(["other_process", "--exact", "--nocapture"])
        .env("TOCTOU_TEST_URL", url)
        .env_remove("SSL_CERT_FILE");
    if let Some(file) = trusted {
        command.env("SSL_CERT_FILE", file);
    }
    let output = command.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let said = text.lines().find_map(|line| line.split_once("said: "));
    said.unwrap_or_else(|| panic!("{text}{}", String::from_utf8_lossy(&output.stderr)))
        .1
        .to_owned()
}

#[track_caller]
fn contains(text: &str, part: &str) {
    assert!(text.contains(part), "{text:?} does not contain {part:?}");
}

#[test]
fn redis() {
    let (folder, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    certificates(folder.path(), "DNS:localhost");
    certificates(other.path(), "DNS:localhost");
    let server = Server::start_secure(Kind::Redis, folder.path());
    let authority = folder.path().join("authority.pem");
    let url = |host: &str| format!("rediss://{host}:{}/", server.port());
    assert_eq!(said(&url("localhost"), Some(&authority)), "works");
    // The certificate itself will do, too.
    let itself = folder.path().join("server.pem");
    assert_eq!(said(&url("localhost"), Some(&itself)), "works");
    let name = said(&url("127.0.0.1"), Some(&authority));
    contains(&name, "127.0.0.1 is not for this name, but for");
    contains(&name, "localhost");
    let stranger = other.path().join("authority.pem");
    for trusted in [None, Some(stranger.as_path())] {
        contains(&said(&url("localhost"), trusted), "nobody who is trusted");
    }
    let missing = said(&url("localhost"), Some(Path::new("/nowhere.pem")));
    contains(&missing, "/nowhere.pem cannot be read");
    // Without TLS on one side, or on the other.
    contains(
        &said(&url("localhost").replace("rediss", "redis"), None),
        "redis backend failed",
    );
    let plain = Server::start(Kind::Redis);
    let url = format!("rediss://localhost:{}/", plain.port());
    contains(&said(&url, Some(&authority)), "TLS here");
}

#[test]
fn postgres() {
    let (folder, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    certificates(folder.path(), "DNS:localhost");
    certificates(other.path(), "DNS:localhost");
    let server = Server::start_secure(Kind::Postgres, folder.path());
    let authority = folder.path().join("authority.pem");
    let stranger = other.path().join("authority.pem");
    let url = |host: &str, query: &str| {
        let port = server.port();
        format!("postgres://toctou@{host}:{port}/postgres?{query}")
    };
    let (mine, theirs) = (authority.display(), stranger.display());
    for works in [
        String::new(),
        "sslmode=disable".into(),
        "sslmode=prefer".into(),
        "sslmode=require".into(),
        format!("sslmode=verify-ca&sslrootcert={mine}"),
    ] {
        assert_eq!(said(&url("127.0.0.1", &works), None), "works", "{works}");
    }
    let full = format!("sslmode=verify-full&sslrootcert={mine}");
    assert_eq!(said(&url("localhost", &full), None), "works");
    let usual = url("localhost", "sslmode=verify-full");
    assert_eq!(said(&usual, Some(&authority)), "works");
    contains(&said(&usual, None), "nobody who is trusted");
    contains(
        &said(&url("127.0.0.1", &full), None),
        "is not for this name",
    );
    let other = format!("sslmode=require&sslrootcert={theirs}");
    contains(
        &said(&url("localhost", &other), None),
        "nobody who is trusted",
    );
    // A server without TLS: some modes do without, others do not.
    let plain = Server::start(Kind::Postgres);
    assert_eq!(said(&plain.url(), None), "works");
    let required = format!("{}?sslmode=require", plain.url());
    contains(&said(&required, None), "does not support TLS");
}

/// A password that is bound to the connection: nobody in between can pass it on.
#[test]
fn a_password_is_bound_to_the_certificate() {
    let folder = tempfile::tempdir().unwrap();
    certificates(folder.path(), "DNS:localhost");
    let server = Server::start_secure(Kind::Postgres, folder.path());
    server.demand_password("secret");
    let url = |query: &str| {
        let port = server.port();
        format!("postgres://toctou:secret@localhost:{port}/postgres?{query}")
    };
    assert_eq!(
        said(&url("sslmode=require&channel_binding=require"), None),
        "works"
    );
    let without = said(&url("sslmode=disable&channel_binding=require"), None);
    contains(&without, "postgres backend failed");
    let wrong = url("sslmode=require").replace("secret", "wrong");
    contains(&said(&wrong, None), "password authentication failed");
}
