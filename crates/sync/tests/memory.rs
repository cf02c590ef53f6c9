//! A million distinct keys and callers leave nothing behind.
#![allow(clippy::unwrap_used)]

use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Duration;

use toctou_sync::{
    Backend, Begin, Call, Host, HostOptions, Limit, LockRequest, Memory, Quota, RateLimits,
};

/// Resident memory, in MB.
fn resident() -> f64 {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
    let pages: f64 = statm.split(' ').nth(1).unwrap().parse().unwrap();
    pages * 4096.0 / 1e6
}

/// Everything there is, for one key.
async fn use_once(backend: &dyn Backend, number: u32) {
    let key = format!("key {number}");
    drop(
        backend
            .acquire(LockRequest::new().exclusive(&key))
            .await
            .unwrap(),
    );
    drop(backend.enter(&key, Limit::at_most(1)).await.unwrap());
    backend
        .take(&key, Quota::every(Duration::from_micros(50)), 1)
        .await
        .unwrap();
    let call = Call::new(&key, b"").keep(Duration::from_micros(50));
    if let Begin::First(ticket) = backend.begin(call).await.unwrap() {
        ticket.complete(*b"result").await.unwrap();
    }
}

async fn stays_flat(backend: &dyn Backend, keys: u32, megabytes: f64) {
    for number in 0..keys / 10 {
        use_once(backend, number).await;
    }
    let before = resident();
    for number in keys / 10..keys {
        use_once(backend, number).await;
    }
    let grown = resident() - before;
    assert!(grown < megabytes, "{grown:.1} MB more");
}

#[tokio::test]
async fn a_million_keys_in_memory() {
    let memory = Memory::default();
    stays_flat(&memory, 1_000_000, 4.0).await;
    assert!(memory.len() < 10_000, "{} entries", memory.len());
}

/// What the files of a folder take, in MB.
fn on_disk(folder: &Path) -> f64 {
    let files = std::fs::read_dir(folder).unwrap();
    let blocks: u64 = files
        .map(|entry| entry.unwrap().metadata().unwrap().blocks())
        .sum();
    blocks as f64 * 512.0 / 1e6
}

/// Every key is in a database here, and every step a transaction: a million of each takes minutes, and with a debug build
/// too many of them.
#[tokio::test]
async fn many_keys_on_the_host() {
    let keys = if cfg!(debug_assertions) {
        100_000
    } else {
        1_000_000
    };
    let folder = tempfile::tempdir().unwrap();
    let host = Host::open(HostOptions::in_directory(folder.path())).unwrap();
    stays_flat(&host, keys / 10, 4.0).await;
    let before = on_disk(folder.path());
    stays_flat(&host, keys, 4.0).await;
    let grown = on_disk(folder.path()) - before;
    assert!(grown < 2.0, "{grown:.1} MB more on the disk");
    assert!(on_disk(folder.path()) < 16.0);
    host.check().await.unwrap();
    let database = rusqlite::Connection::open(folder.path().join("state.db")).unwrap();
    for (table, most) in [("permits", 0), ("rates", 4096), ("records", 4096)] {
        let count = format!("SELECT count(*) FROM {table}");
        let rows: u32 = database.query_row(&count, [], |row| row.get(0)).unwrap();
        assert!(rows <= most, "{rows} {table} are left");
    }
}

/// What is full refuses, and does not forget somebody who is limited.
#[tokio::test]
async fn limits_are_not_evicted() {
    let mut options = toctou_sync::MemoryOptions::default();
    options.max_rates = 100;
    let memory = Memory::new(options);
    let quota = Quota::every(Duration::from_secs(600));
    for key in 0..100 {
        assert!(
            memory
                .take(&key.to_string(), quota, 1)
                .await
                .unwrap()
                .is_allowed()
        );
    }
    let full = memory.take("one more", quota, 1).await;
    assert!(
        matches!(full, Err(toctou_sync::Error::Full { max: 100, .. })),
        "{full:?}"
    );
    assert!(!memory.take("7", quota, 1).await.unwrap().is_allowed());
}
