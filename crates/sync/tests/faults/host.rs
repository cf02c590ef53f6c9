use std::time::{Duration, Instant};

use toctou_sync::{Backend, Begin, Call, Error, Host, HostOptions, Limit, LockRequest, Wait};

use crate::process::Process;

fn place() -> (tempfile::TempDir, String) {
    let folder = tempfile::tempdir().unwrap();
    let url = format!("host:{}", folder.path().display());
    (folder, url)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_killed_process_held_is_free_within_a_second() {
    let (_folder, url) = place();
    let mut holder = Process::start("holder", &url);
    let fence: u64 = holder.hear().parse().unwrap();
    let backend = toctou_sync::connect(&url).await.unwrap();
    let busy = backend
        .acquire(LockRequest::new().exclusive("key").wait(Wait::No))
        .await;
    assert!(matches!(busy, Err(Error::Busy { .. })), "{busy:?}");
    assert!(backend.enter("caller", Limit::at_most(1)).await.is_err());
    assert!(matches!(
        backend.begin(Call::new("order", b"")).await.unwrap(),
        Begin::InFlight
    ));

    let waiting = {
        let backend = backend.clone();
        tokio::spawn(async move { backend.acquire(LockRequest::new().exclusive("key")).await })
    };
    tokio::time::sleep(Duration::from_millis(100)).await;
    let killed = Instant::now();
    holder.signal("KILL");
    let guard = waiting.await.unwrap().unwrap();
    assert!(
        killed.elapsed() < Duration::from_secs(1),
        "{:?}",
        killed.elapsed()
    );
    assert!(guard.fence().get() > fence);
    let limit = Limit::at_most(1).queue(1, Duration::from_secs(1));
    drop(backend.enter("caller", limit).await.unwrap());
    // It may have taken effect or not: it is not run again.
    assert!(matches!(
        backend.begin(Call::new("order", b"")).await.unwrap(),
        Begin::Unknown
    ));
}

/// Its callers may never come again: what it held must not stay in the database for ever.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_killed_process_leaves_in_the_database_is_swept() {
    let (folder, url) = place();
    let mut holder = Process::start("holder", &url);
    holder.hear();
    let database = rusqlite::Connection::open(folder.path().join("state.db")).unwrap();
    let count = |what: &str| -> u32 {
        let query = format!("SELECT count(*) FROM {what}");
        database.query_row(&query, [], |row| row.get(0)).unwrap()
    };
    // Somebody else's start takes nothing from one that lives.
    let first = toctou_sync::connect(&url).await.unwrap();
    first.check().await.unwrap();
    assert_eq!((count("permits"), count("records WHERE state = 0")), (1, 1));
    drop(holder);
    let second = toctou_sync::connect(&url).await.unwrap();
    second.check().await.unwrap();
    assert_eq!((count("permits"), count("records WHERE state = 0")), (0, 0));
    // That it is not known whether it ran is kept, for as long as it was to be.
    let day = 25 * 3600;
    let ends = format!("records WHERE state = 1 AND until / 1000000 < unixepoch() + {day}");
    assert_eq!(count(&ends), 1);
    let again = second.begin(Call::new("order", b"")).await.unwrap();
    assert!(matches!(again, Begin::Unknown), "{again:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_waiter_is_in_nobodys_way() {
    let (_folder, url) = place();
    let backend = toctou_sync::connect(&url).await.unwrap();
    let guard = backend
        .acquire(LockRequest::new().shared("key"))
        .await
        .unwrap();
    let mut waiter = Process::start("waiter", &url);
    assert_eq!(waiter.hear(), "waiting");
    let reader = || backend.acquire(LockRequest::new().shared("key").wait(Wait::No));
    // The writer waits at the gate: no new reader passes it.
    let start = Instant::now();
    while reader().await.is_ok() {
        assert!(
            start.elapsed() < Duration::from_secs(10),
            "readers pass a writer that waits"
        );
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    waiter.signal("KILL");
    let start = Instant::now();
    while reader().await.is_err() {
        assert!(
            start.elapsed() < Duration::from_secs(1),
            "the dead writer is still in the way"
        );
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    drop(guard);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_processes_on_one_key() {
    let (folder, url) = place();
    let file = folder.path().join("counter");
    std::fs::write(&file, "0").unwrap();
    // The name goes through the environment, which children inherit.
    let start = |url: &str| {
        let mut command = std::process::Command::new(std::env::current_exe().unwrap());
        command
            .args(["other_process", "--exact"])
            .env("TOCTOU_TEST_ROLE", "counter")
            .env("TOCTOU_TEST_URL", url)
            .env("TOCTOU_TEST_FILE", &file)
            .stdout(std::process::Stdio::null());
        command.spawn().unwrap()
    };
    let mut processes = [start(&url), start(&url), start(&url)];
    for process in &mut processes {
        assert!(process.wait().unwrap().success());
    }
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "600");
}

/// A process that does nothing but take and release does not keep the others out.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_busy_process_lets_others_in() {
    let (folder, _) = place();
    let open = || Host::open(HostOptions::in_directory(folder.path())).unwrap();
    let (busy, other) = (std::sync::Arc::new(open()), open());
    let worker = {
        let busy = busy.clone();
        tokio::spawn(async move {
            let busy: &dyn Backend = &*busy;
            loop {
                drop(
                    busy.acquire(LockRequest::new().exclusive("key"))
                        .await
                        .unwrap(),
                );
                tokio::task::yield_now().await;
            }
        })
    };
    let other: &dyn Backend = &other;
    let mut slowest = Duration::ZERO;
    for _ in 0..50 {
        let start = Instant::now();
        let request = LockRequest::new()
            .exclusive("key")
            .within(Duration::from_secs(10));
        drop(other.acquire(request).await.unwrap());
        slowest = slowest.max(start.elapsed());
    }
    worker.abort();
    assert!(slowest < Duration::from_secs(1), "{slowest:?}");
}

/// More waiters than there are threads for them, on as many keys; half of them go away.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_contended_keys_do_not_exhaust_threads() {
    let (folder, _) = place();
    let open =
        || std::sync::Arc::new(Host::open(HostOptions::in_directory(folder.path())).unwrap());
    let (holder, waiter): (std::sync::Arc<dyn Backend>, std::sync::Arc<dyn Backend>) =
        (open(), open());
    let request = |key: usize| LockRequest::new().exclusive(format!("key {key}"));
    let mut guards = Vec::new();
    let mut waiting = tokio::task::JoinSet::new();
    for key in 0..200 {
        guards.push(holder.acquire(request(key)).await.unwrap());
        let (waiter, request) = (waiter.clone(), request(key));
        let request = if key % 2 == 0 {
            request
        } else {
            request.within(Duration::from_millis(50))
        };
        waiting.spawn(async move { waiter.acquire(request).await.is_ok() });
    }
    tokio::time::sleep(Duration::from_millis(300)).await;
    let threads = std::fs::read_dir("/proc/self/task").unwrap().count();
    drop(guards);
    let mut entered = 0;
    while let Some(inside) = waiting.join_next().await {
        entered += usize::from(inside.unwrap());
    }
    assert_eq!(entered, 100);
    // Other tests run in this process too.
    assert!(threads < 150, "{threads} threads");
    for key in 0..200 {
        let free = holder
            .acquire(request(key).within(Duration::from_secs(5)))
            .await;
        assert!(free.is_ok(), "key {key} is left locked");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_removed_directory_is_noticed() {
    let (folder, url) = place();
    let backend = toctou_sync::connect(&url).await.unwrap();
    drop(
        backend
            .acquire(LockRequest::new().exclusive("key"))
            .await
            .unwrap(),
    );
    folder.close().unwrap();
    tokio::time::sleep(Duration::from_millis(110)).await;
    let lost = backend.acquire(LockRequest::new().exclusive("key")).await;
    assert!(matches!(lost, Err(Error::Unavailable { .. })), "{lost:?}");
}
