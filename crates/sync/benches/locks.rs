//! What a lock costs that nobody else wants: take and release, one after the other.
//!
//! `cargo bench --profile quick -p toctou-sync --all-features`
#![allow(clippy::unwrap_used)]

#[path = "../tests/support/mod.rs"]
mod support;

use divan::Bencher;
use toctou_sync::{Backend, Host, HostOptions, LockRequest, Memory};
use tokio::runtime::Runtime;

fn main() {
    divan::main();
}

fn runtime() -> Runtime {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap()
}

fn bench(
    bencher: Bencher<'_, '_>,
    runtime: &Runtime,
    backend: &dyn Backend,
    request: &LockRequest,
) {
    bencher.bench_local(|| {
        runtime.block_on(async {
            backend
                .acquire(request.clone())
                .await
                .unwrap()
                .release()
                .await
                .unwrap();
        });
    });
}

/// In memory, as the runtime directory of a user is.
fn folder() -> tempfile::TempDir {
    tempfile::tempdir_in("/dev/shm")
        .or_else(|_| tempfile::tempdir())
        .unwrap()
}

fn exclusive() -> LockRequest {
    LockRequest::new().exclusive("invoice:17")
}

#[divan::bench(sample_size = 500)]
fn memory_exclusive(bencher: Bencher<'_, '_>) {
    bench(bencher, &runtime(), &Memory::default(), &exclusive());
}

#[divan::bench(sample_size = 500)]
fn host_exclusive(bencher: Bencher<'_, '_>) {
    let folder = folder();
    let host = Host::open(HostOptions::in_directory(folder.path())).unwrap();
    bench(bencher, &runtime(), &host, &exclusive());
}

#[divan::bench(sample_size = 500)]
fn host_exclusive_on_disk(bencher: Bencher<'_, '_>) {
    let folder = tempfile::tempdir().unwrap();
    let host = Host::open(HostOptions::in_directory(folder.path())).unwrap();
    bench(bencher, &runtime(), &host, &exclusive());
}

#[divan::bench(sample_size = 500)]
fn host_shared(bencher: Bencher<'_, '_>) {
    let folder = folder();
    let host = Host::open(HostOptions::in_directory(folder.path())).unwrap();
    bench(
        bencher,
        &runtime(),
        &host,
        &LockRequest::new().shared("invoice:17"),
    );
}

#[divan::bench(sample_size = 500)]
fn host_three_keys(bencher: Bencher<'_, '_>) {
    let folder = folder();
    let host = Host::open(HostOptions::in_directory(folder.path())).unwrap();
    let request = exclusive().shared("customer:4").shared("server");
    bench(bencher, &runtime(), &host, &request);
}

/// What the kernel needs for one lock of the simplest kind, to compare.
#[divan::bench(sample_size = 500)]
fn flock_alone(bencher: Bencher<'_, '_>) {
    let file = tempfile::tempfile().unwrap();
    bencher.bench_local(|| {
        file.lock().unwrap();
        file.unlock().unwrap();
    });
}

#[cfg(feature = "redis")]
#[divan::bench]
fn redis_exclusive(bencher: Bencher<'_, '_>) {
    with_server(bencher, support::Kind::Redis);
}

#[cfg(feature = "postgres")]
#[divan::bench]
fn postgres_exclusive(bencher: Bencher<'_, '_>) {
    with_server(bencher, support::Kind::Postgres);
}

#[cfg(any(feature = "redis", feature = "postgres"))]
fn with_server(bencher: Bencher<'_, '_>, kind: support::Kind) {
    let server = support::Server::start(kind);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build();
    let runtime = runtime.unwrap();
    let backend = runtime
        .block_on(toctou_sync::connect(&server.url()))
        .unwrap();
    bench(bencher, &runtime, &*backend, &exclusive());
}
