//! A million distinct keys and callers leave nothing behind in the guard.

mod common;

use std::sync::Arc;

use common::inner::{self, Deaf};
use toctou_guard::session::Origin;
use toctou_sync::{Host, HostOptions};

/// Unoptimised, a tenth of it is enough to wait for.
const CALLS: u32 = if cfg!(debug_assertions) {
    100_000
} else {
    1_000_000
};

fn resident() -> f64 {
    let statm = std::fs::read_to_string("/proc/self/statm").expect("memory");
    let pages = statm.split(' ').nth(1).and_then(|pages| pages.parse().ok());
    pages.map_or(0.0, |pages: f64| pages * 4096.0 / 1e6)
}

/// Calls with a key and a caller of their own each, 50 at once; what is resident grows by less.
async fn stays_flat(policy: &str, backend: Arc<dyn toctou_sync::Backend>, calls: u32) {
    let (session, server) = inner::session(policy, backend);
    let mut before = 0.0;
    for number in 0..calls {
        if number == calls / 10 {
            before = resident();
        }
        let message = format!(
            r#"{{"jsonrpc":"2.0","id":{number},"method":"tools/call","params":{{"name":"t","arguments":{{"k":"key {number}"}}}}}}"#
        );
        let origin = Origin {
            sink: Arc::new(Deaf),
            subject: Some(format!("caller {number}").into()),
        };
        session.from_client(&message.into(), &origin);
        if number % 50 == 49 {
            // Those that had to wait for the backend's thread go on here.
            while session.in_flight() > 0 {
                for asked in server.take() {
                    let asked: serde_json::Value = serde_json::from_slice(&asked).expect("JSON");
                    let answer =
                        format!(r#"{{"jsonrpc":"2.0","id":{},"result":{{}}}}"#, asked["id"]);
                    session.from_server(&answer.into());
                }
                tokio::task::yield_now().await;
            }
        }
    }
    let grown = resident() - before;
    assert!(grown < 8.0, "{grown:.1} MB more after {calls} calls");
}

#[tokio::test]
async fn keys_and_callers_in_memory() {
    let backend = toctou_sync::connect("memory:").await.expect("memory");
    let policy = "[[tool]]\nmatch = \"*\"\nlock = \"{k}\"\nin-flight = { max = 1 }\n";
    stays_flat(policy, backend, CALLS).await;
}

#[tokio::test]
async fn keys_on_the_host() {
    let folder = tempfile::tempdir().expect("a folder");
    let host = Host::open(HostOptions::in_directory(folder.path())).expect("a backend");
    let policy = "[[tool]]\nmatch = \"*\"\nlock = \"{k}\"\n";
    stays_flat(policy, Arc::new(host), CALLS).await;
    // Nothing per key is left on the disk either.
    let files: Vec<_> = std::fs::read_dir(folder.path()).expect("files").collect();
    assert!(files.len() < 30, "{files:?}");
}
