//! A million distinct keys and callers leave nothing behind.
#![allow(clippy::unwrap_used)]

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

#[tokio::test]
async fn many_keys_on_the_host() {
    let folder = tempfile::tempdir().unwrap();
    let host = Host::open(HostOptions::in_directory(folder.path())).unwrap();
    stays_flat(&host, 10_000, 8.0).await;
    // And a hundred thousand locks, which are the most used.
    let before = resident();
    for number in 0..100_000u32 {
        let request = LockRequest::new().exclusive(format!("lock {number}"));
        drop(toctou_sync::Locks::acquire(&host, request).await.unwrap());
    }
    assert!(resident() - before < 4.0);
    let on_disk: u64 = std::fs::read_dir(folder.path())
        .unwrap()
        .map(|entry| {
            use std::os::unix::fs::MetadataExt;
            entry.unwrap().metadata().unwrap().blocks() * 512
        })
        .sum();
    assert!(on_disk < 16_000_000, "{on_disk} bytes on the disk");
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
