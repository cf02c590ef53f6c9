//! A million distinct keys and callers leave nothing behind.
#![allow(clippy::unwrap_used)]

use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Duration;

use toctou_sync::{
    Backend, Begin, Call, Host, HostOptions, Limit, LockRequest, Locks, Memory, Quota, RateLimits,
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

/// Uses so many keys; what is resident grows by less after the first tenth of them.
async fn stays_flat(keys: u32, megabytes: f64, mut once: impl AsyncFnMut(u32)) {
    let mut before = 0.0;
    for number in 0..keys {
        if number == keys / 10 {
            before = resident();
        }
        once(number).await;
    }
    let grown = resident() - before;
    assert!(grown < megabytes, "{grown:.1} MB more");
}

#[tokio::test]
async fn a_million_keys_in_memory() {
    let memory = Memory::default();
    stays_flat(1_000_000, 4.0, async |number| {
        use_once(&memory, number).await
    })
    .await;
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

/// Locks leave nothing anywhere, of the directory's files neither.
#[tokio::test]
async fn a_million_locks_on_the_host() {
    let folder = tempfile::tempdir().unwrap();
    let host = Host::open(HostOptions::in_directory(folder.path())).unwrap();
    stays_flat(1_000_000, 4.0, async |number| {
        let key = format!("key {number}");
        let request = LockRequest::new().exclusive(&key).shared("all");
        drop(host.acquire(request).await.unwrap());
    })
    .await;
    assert!(on_disk(folder.path()) < 1.0, "{}", on_disk(folder.path()));
}

/// Everything there is, a million times: minutes, and so not with every run.
/// `TMPDIR=/dev/shm cargo test --profile quick -p toctou-sync --test memory -- --ignored`
#[tokio::test]
#[ignore = "takes minutes"]
async fn a_million_keys_on_the_host() {
    keys_on_the_host(1_000_000).await;
}

#[tokio::test]
async fn many_keys_on_the_host() {
    keys_on_the_host(20_000).await;
}

/// Every key is in a database here, and every step a transaction.
async fn keys_on_the_host(keys: u32) {
    let folder = tempfile::tempdir().unwrap();
    let host = Host::open(HostOptions::in_directory(folder.path())).unwrap();
    let once = async |number| use_once(&host, number).await;
    stays_flat(keys / 10, 4.0, once).await;
    let before = on_disk(folder.path());
    stays_flat(keys, 4.0, once).await;
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
