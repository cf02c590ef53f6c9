use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicUsize, Ordering};
use std::time::Duration;

use toctou_sync::{Backend, Error, LockGuard, LockRequest, Mode, Wait};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};

use crate::Place;

fn exclusive(key: &str) -> LockRequest {
    LockRequest::new().exclusive(key)
}

fn shared(key: &str) -> LockRequest {
    LockRequest::new().shared(key)
}

fn now(request: LockRequest) -> LockRequest {
    request.wait(Wait::No)
}

async fn is_free(client: &Arc<dyn Backend>, key: &str) -> bool {
    match client.acquire(now(exclusive(key))).await {
        Ok(guard) => guard.release().await.is_ok(),
        Err(Error::Busy { .. }) => false,
        Err(error) => panic!("{error:?}"),
    }
}

/// Releases that nobody waits for arrive a little later.
async fn becomes_free(client: &Arc<dyn Backend>, key: &str) {
    let start = Instant::now();
    while !is_free(client, key).await {
        assert!(
            start.elapsed() < Duration::from_secs(2),
            "{key} is still held"
        );
        sleep(Duration::from_millis(5)).await;
    }
}

pub async fn excludes(place: &Place) {
    let (a, b) = (place.client().await, place.client().await);
    let guard = a.acquire(exclusive("excludes")).await.unwrap();
    assert!(!guard.is_lost());
    for client in [&a, &b] {
        let other = client.acquire(now(exclusive("excludes"))).await;
        assert!(matches!(other, Err(Error::Busy { .. })), "{other:?}");
        let reader = client.acquire(now(shared("excludes"))).await;
        assert!(matches!(reader, Err(Error::Busy { .. })), "{reader:?}");
        assert!(is_free(client, "excludes, another").await);
    }
    drop(guard);
    becomes_free(&b, "excludes").await;
}

pub async fn shares(place: &Place) {
    let (a, b) = (place.client().await, place.client().await);
    let readers = [
        a.acquire(shared("shares")).await.unwrap(),
        a.acquire(shared("shares")).await.unwrap(),
        b.acquire(now(shared("shares"))).await.unwrap(),
    ];
    for reader in readers {
        assert!(!is_free(&a, "shares").await);
        assert!(!is_free(&b, "shares").await);
        reader.release().await.unwrap();
    }
    assert!(is_free(&a, "shares").await);
    assert!(is_free(&b, "shares").await);
}

/// Readers come and go without a gap, in both clients; a writer gets in all the same.
pub async fn writers_do_not_starve(place: &Place) {
    let stop = Arc::new(AtomicBool::new(false));
    let mut readers = JoinSet::new();
    for client in [place.client().await, place.client().await] {
        for reader in 0..3u64 {
            let (client, stop) = (client.clone(), stop.clone());
            readers.spawn(async move {
                sleep(Duration::from_millis(7 * reader)).await;
                while !stop.load(Ordering::SeqCst) {
                    let guard = client.acquire(shared("no starving writer")).await.unwrap();
                    sleep(Duration::from_millis(20)).await;
                    guard.release().await.unwrap();
                }
            });
        }
    }
    sleep(Duration::from_millis(100)).await;
    for client in [place.client().await, place.client().await] {
        let request = exclusive("no starving writer").within(Duration::from_secs(10));
        client
            .acquire(request)
            .await
            .expect("the writer starves")
            .release()
            .await
            .unwrap();
    }
    stop.store(true, Ordering::SeqCst);
    while let Some(reader) = readers.join_next().await {
        reader.unwrap();
    }
}

pub async fn readers_do_not_starve(place: &Place) {
    let stop = Arc::new(AtomicBool::new(false));
    let mut writers = JoinSet::new();
    for client in [place.client().await, place.client().await] {
        for _ in 0..2 {
            let (client, stop) = (client.clone(), stop.clone());
            writers.spawn(async move {
                while !stop.load(Ordering::SeqCst) {
                    let guard = client
                        .acquire(exclusive("no starving reader"))
                        .await
                        .unwrap();
                    sleep(Duration::from_millis(5)).await;
                    guard.release().await.unwrap();
                }
            });
        }
    }
    sleep(Duration::from_millis(50)).await;
    let client = place.client().await;
    for _ in 0..3 {
        let request = shared("no starving reader").within(Duration::from_secs(10));
        client
            .acquire(request)
            .await
            .expect("the reader starves")
            .release()
            .await
            .unwrap();
    }
    stop.store(true, Ordering::SeqCst);
    while let Some(writer) = writers.join_next().await {
        writer.unwrap();
    }
}

pub async fn several_keys_without_deadlock(place: &Place) {
    let mut tasks = JoinSet::new();
    for client in [place.client().await, place.client().await] {
        for task in 0..4usize {
            let client = client.clone();
            tasks.spawn(async move {
                for round in 0..15 {
                    // In every order, and not all of them exclusive.
                    let (x, y, z) = (task % 3, (task + 1 + round % 2) % 3, (task + 2) % 3);
                    let request = LockRequest::new()
                        .exclusive(format!("deadlock {x}"))
                        .key(
                            format!("deadlock {y}"),
                            if round % 3 == 0 {
                                Mode::Shared
                            } else {
                                Mode::Exclusive
                            },
                        )
                        .shared(format!("deadlock {z}"));
                    client
                        .acquire(request)
                        .await
                        .unwrap()
                        .release()
                        .await
                        .unwrap();
                }
            });
        }
    }
    while let Some(task) = tasks.join_next().await {
        task.unwrap();
    }
    let client = place.client().await;
    for key in 0..3 {
        becomes_free(&client, &format!("deadlock {key}")).await;
    }
}

pub async fn same_key_twice(place: &Place) {
    let client = place.client().await;
    let request = LockRequest::new()
        .shared("twice")
        .exclusive("twice")
        .shared("twice");
    let guard = client.acquire(request).await.unwrap();
    let reader = client.acquire(now(shared("twice"))).await;
    assert!(
        matches!(reader, Err(Error::Busy { .. })),
        "the stronger mode counts: {reader:?}"
    );
    guard.release().await.unwrap();
    assert!(is_free(&client, "twice").await);
    let empty = client.acquire(LockRequest::new()).await;
    assert!(matches!(empty, Err(Error::Invalid(_))), "{empty:?}");
}

pub async fn refuses_and_times_out(place: &Place) {
    let (a, b) = (place.client().await, place.client().await);
    let guard = a.acquire(exclusive("times out")).await.unwrap();
    for client in [&a, &b] {
        let start = Instant::now();
        let late = client
            .acquire(exclusive("times out").within(Duration::from_millis(60)))
            .await;
        assert!(matches!(late, Err(Error::Timeout { .. })), "{late:?}");
        assert!(start.elapsed() >= Duration::from_millis(60));
        assert!(
            start.elapsed() < Duration::from_secs(2),
            "{:?}",
            start.elapsed()
        );
    }
    guard.release().await.unwrap();
    becomes_free(&b, "times out").await;
}

/// Requests are dropped at all stages of their wait. The key is free in the end, for writers and readers.
pub async fn cancelled_waiters_leave_nothing(place: &Place) {
    let (a, b) = (place.client().await, place.client().await);
    for round in 0..12u64 {
        let guard = a.acquire(exclusive("cancelled")).await.unwrap();
        for request in [exclusive("cancelled"), shared("cancelled")] {
            for client in [&a, &b] {
                let pause = Duration::from_micros(300 * round * round);
                let cancelled = timeout(pause, client.acquire(request.clone())).await;
                assert!(cancelled.is_err());
            }
        }
        // One is dropped at the very moment at which it gets in.
        let waiting = b.acquire(exclusive("cancelled"));
        let (_, _) = tokio::join!(timeout(Duration::from_millis(5), waiting), async {
            sleep(Duration::from_micros(4000 + 100 * round)).await;
            drop(guard);
        });
        becomes_free(&a, "cancelled").await;
        let reader = b
            .acquire(shared("cancelled").within(Duration::from_secs(5)))
            .await
            .unwrap();
        reader.release().await.unwrap();
    }
}

pub async fn queue_is_bounded(place: &Place) {
    let client = place.client().await;
    let guard = client.acquire(exclusive("bounded")).await.unwrap();
    let mut waiting = JoinSet::new();
    for _ in 0..3 {
        let client = client.clone();
        waiting.spawn(async move { client.acquire(exclusive("bounded").queue_at_most(3)).await });
    }
    sleep(Duration::from_millis(50)).await;
    let refused = client.acquire(exclusive("bounded").queue_at_most(3)).await;
    assert!(
        matches!(refused, Err(Error::QueueFull { queued: 3, .. })),
        "{refused:?}"
    );
    guard.release().await.unwrap();
    while let Some(next) = waiting.join_next().await {
        next.unwrap().unwrap().release().await.unwrap();
    }
}

pub async fn fences_grow(place: &Place) {
    let clients = [place.client().await, place.client().await];
    let mut last = None;
    for round in 0..20 {
        let client = &clients[round % 2];
        let request = match round % 5 {
            4 => shared("fences").exclusive("fences, too"),
            _ => exclusive("fences"),
        };
        let guard: LockGuard = client.acquire(request).await.unwrap();
        assert!(
            Some(guard.fence()) > last,
            "{:?} after {last:?}",
            guard.fence()
        );
        last = Some(guard.fence());
        guard.release().await.unwrap();
    }
}

/// Somebody who waits gets in when the holder leaves, and not much later.
pub async fn release_lets_the_next_in(place: &Place) {
    let (a, b) = (place.client().await, place.client().await);
    let guard = a.acquire(exclusive("hand over")).await.unwrap();
    let waiting = tokio::spawn(async move { b.acquire(exclusive("hand over")).await });
    sleep(Duration::from_millis(100)).await;
    assert!(!waiting.is_finished());
    let released = Instant::now();
    drop(guard);
    let next = waiting.await.unwrap().unwrap();
    assert!(
        released.elapsed() < Duration::from_secs(1),
        "{:?}",
        released.elapsed()
    );
    next.release().await.unwrap();
}

/// Whoever asks to release, and does not wait for the answer, has released.
pub async fn a_cancelled_release_releases(place: &Place) {
    let (a, b) = (place.client().await, place.client().await);
    for request in [exclusive("half released"), shared("half released")] {
        let guard = a.acquire(request).await.unwrap();
        let _ = timeout(Duration::ZERO, guard.release()).await;
        becomes_free(&b, "half released").await;
        let guard = a.acquire(exclusive("half released")).await.unwrap();
        drop(guard.release());
        becomes_free(&b, "half released").await;
    }
}

pub async fn stress_never_two_inside(place: &Place) {
    let inside = Arc::new(AtomicI64::new(0));
    let entered = Arc::new(AtomicUsize::new(0));
    let mut tasks = JoinSet::new();
    for client in [
        place.client().await,
        place.client().await,
        place.client().await,
    ] {
        for task in 0..6 {
            let (client, inside, entered) = (client.clone(), inside.clone(), entered.clone());
            tasks.spawn(async move {
                for round in 0..12 {
                    let writes = (task + round) % 3 != 0;
                    let request = if writes {
                        exclusive("stress")
                    } else {
                        shared("stress")
                    };
                    // Some give up.
                    let request = match round % 4 {
                        3 => request.within(Duration::from_millis(3)),
                        _ => request,
                    };
                    let Ok(guard) = client.acquire(request).await else {
                        continue;
                    };
                    let weight = if writes { 1000 } else { 1 };
                    let before = inside.fetch_add(weight, Ordering::SeqCst);
                    assert!(before < 1000 && (!writes || before == 0), "{before} inside");
                    tokio::task::yield_now().await;
                    inside.fetch_sub(weight, Ordering::SeqCst);
                    entered.fetch_add(1, Ordering::SeqCst);
                    drop(guard);
                }
            });
        }
    }
    while let Some(task) = tasks.join_next().await {
        task.unwrap();
    }
    assert!(entered.load(Ordering::SeqCst) >= 18 * 9);
}

pub async fn odd_keys(place: &Place) {
    let (a, b) = (place.client().await, place.client().await);
    for key in [
        "",
        "../../etc/passwd",
        "a\0b",
        "\u{202e}\n\r\u{1b}[2J",
        "'; DROP TABLE x; --",
        "*?[]{}",
    ] {
        let guard = a.acquire(exclusive(key)).await.unwrap();
        assert!(!is_free(&b, key).await, "{key:?}");
        guard.release().await.unwrap();
        assert!(is_free(&b, key).await, "{key:?}");
    }
    let long = "k".repeat(5000);
    assert!(matches!(
        a.acquire(exclusive(&long)).await,
        Err(Error::Invalid(_))
    ));
}
