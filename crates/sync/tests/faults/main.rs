//! Faults, on purpose: processes are killed and stopped, connections cut, servers restarted.
//!
//! Where a second process is needed, this test starts itself again with a role in its environment.
#![allow(clippy::unwrap_used)]

mod host;
#[allow(dead_code)] // without the servers, parts of it are not used
mod process;
#[cfg(all(feature = "redis", feature = "postgres"))]
mod servers;
#[path = "../support/mod.rs"]
mod support;

/// Not a test: what the other process does. Without a role it does nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn other_process() {
    process::play_role().await;
}
