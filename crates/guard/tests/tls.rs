//! TLS on both sides: a guard that serves it, and a guard whose server is behind it.

mod common;

use std::io::{Read as _, Write as _};
use std::path::PathBuf;
use std::process::Command;

use common::http::Guard;
use common::{Bench, Client, example, reason};
use serde_json::json;

fn pem(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("tests/tls")
        .join(name)
}

/// A client whose guard reaches another guard by https.
fn near(bench: &Bench, far: &Guard, trusted: bool) -> Client {
    bench.policy("");
    let url = format!("https://{}/mcp", far.address);
    let servers = json!({"mcpServers": {"far": {"url": url}}});
    std::fs::write(bench.path("mcp.json"), servers.to_string()).expect("a file");
    let mut command = Command::new(example("guard"));
    command
        .arg("--policy")
        .arg(bench.path("guard.toml"))
        .arg("--servers")
        .arg(bench.path("mcp.json"))
        .env_remove("SSL_CERT_FILE");
    if trusted {
        command.env("SSL_CERT_FILE", pem("certificate.pem"));
    }
    Client::start(command)
}

#[test]
fn a_session_through_tls() {
    let bench = Bench::new();
    let certificate = pem("certificate.pem").display().to_string();
    let key = pem("key.pem").display().to_string();
    let far = Guard::start(
        &bench,
        &["--tls-certificate", &certificate, "--tls-key", &key],
    );
    let (friend, other) = (Bench::new(), Bench::new());
    let mut client = near(&friend, &far, true);
    client.initialize();
    for id in 0..10 {
        client.call(id, "write", json!({"count": bench.text("counter")}));
    }
    for answer in client.answers(10) {
        assert_eq!(reason(&answer), "not refused");
    }
    assert_eq!(bench.counted(), "10");
    // Whoever has not been told to trust it does not.
    let mut stranger = near(&other, &far, false);
    stranger.send(&json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {}}));
    let refused = stranger.answer(1);
    let text = refused["error"]["message"].as_str().expect("a message");
    assert!(text.contains("certificate"), "{text}");
    // And to speak without TLS leads nowhere.
    let mut plain = far.connect();
    plain
        .write_all(b"GET /mcp HTTP/1.1\r\nHost: localhost\r\n\r\n")
        .expect("sent");
    let mut bytes = Vec::new();
    let _ = plain.read_to_end(&mut bytes);
    assert!(!bytes.starts_with(b"HTTP/1.1 2"), "{bytes:?}");
}
