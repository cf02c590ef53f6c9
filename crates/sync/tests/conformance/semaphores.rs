use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use toctou_sync::{Error, Limit};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};

use crate::Place;

/// A thousand calls of one caller, in three clients.
pub async fn never_more_than_the_limit(place: &Place) {
    let running = Arc::new(AtomicU32::new(0));
    let most = Arc::new(AtomicU32::new(0));
    let mut calls = JoinSet::new();
    let clients = [
        place.client().await,
        place.client().await,
        place.client().await,
    ];
    for call in 0..1000 {
        let (client, running, most) = (clients[call % 3].clone(), running.clone(), most.clone());
        calls.spawn(async move {
            let limit = Limit::at_most(10).queue(1000, Duration::from_secs(50));
            let permit = client.enter("many", limit).await.unwrap();
            let now = running.fetch_add(1, Ordering::SeqCst) + 1;
            most.fetch_max(now, Ordering::SeqCst);
            sleep(Duration::from_millis(1)).await;
            running.fetch_sub(1, Ordering::SeqCst);
            drop(permit);
        });
    }
    while let Some(call) = calls.join_next().await {
        call.unwrap();
    }
    let most = most.load(Ordering::SeqCst);
    assert!((2..=10).contains(&most), "{most} ran at once");
}

pub async fn refuses_at_once(place: &Place) {
    let (a, b) = (place.client().await, place.client().await);
    let first = a.enter("refuses", Limit::at_most(2)).await.unwrap();
    let second = b.enter("refuses", Limit::at_most(2)).await.unwrap();
    for client in [&a, &b] {
        let third = client.enter("refuses", Limit::at_most(2)).await;
        assert!(
            matches!(third, Err(Error::AtLimit { limit: 2, .. })),
            "{third:?}"
        );
    }
    first.release().await.unwrap();
    let third = b.enter("refuses", Limit::at_most(2)).await.unwrap();
    drop((second, third));
}

pub async fn queue_is_bounded(place: &Place) {
    let client = place.client().await;
    let limit = Limit::at_most(1).queue(2, Duration::from_secs(20));
    let running = client.enter("queue", limit).await.unwrap();
    let mut waiting = JoinSet::new();
    for _ in 0..2 {
        let client = client.clone();
        waiting.spawn(async move { client.enter("queue", limit).await });
    }
    sleep(Duration::from_millis(50)).await;
    let refused = client.enter("queue", limit).await;
    assert!(
        matches!(refused, Err(Error::QueueFull { queued: 2, .. })),
        "{refused:?}"
    );
    drop(running);
    while let Some(next) = waiting.join_next().await {
        drop(next.unwrap().unwrap());
    }
    let limit = Limit::at_most(1).queue(2, Duration::from_millis(40));
    let running = client.enter("late", limit).await.unwrap();
    let late = client.enter("late", limit).await;
    assert!(matches!(late, Err(Error::Timeout { .. })), "{late:?}");
    drop(running);
}

pub async fn cancelled_waiters_leave_nothing(place: &Place) {
    let (a, b) = (place.client().await, place.client().await);
    let limit = Limit::at_most(1).queue(10, Duration::from_secs(20));
    for round in 0..10 {
        let running = a.enter("cancelled", limit).await.unwrap();
        for client in [&a, &b] {
            let pause = Duration::from_micros(400 * round);
            assert!(
                timeout(pause, client.enter("cancelled", limit))
                    .await
                    .is_err()
            );
        }
        drop(running);
        // Nobody is in: one may enter, and no more than one.
        let start = Instant::now();
        let next = b.enter("cancelled", limit).await.unwrap();
        assert!(start.elapsed() < Duration::from_secs(2));
        assert!(a.enter("cancelled", Limit::at_most(1)).await.is_err());
        next.release().await.unwrap();
    }
}

pub async fn callers_are_apart(place: &Place) {
    let client = place.client().await;
    let permits: Vec<_> = ["one caller", "another caller", ""].to_vec();
    let mut held = Vec::new();
    for caller in permits {
        held.push(client.enter(caller, Limit::at_most(1)).await.unwrap());
        assert!(client.enter(caller, Limit::at_most(1)).await.is_err());
    }
}

pub async fn a_cancelled_release_releases(place: &Place) {
    let (a, b) = (place.client().await, place.client().await);
    let limit = Limit::at_most(1).queue(1, Duration::from_secs(2));
    for _ in 0..3 {
        let permit = a.enter("half released", limit).await.unwrap();
        let _ = timeout(Duration::ZERO, permit.release()).await;
        let permit = b.enter("half released", limit).await.unwrap();
        drop(permit.release());
    }
}

pub async fn limit_of_zero_is_refused(place: &Place) {
    let client = place.client().await;
    let nobody = client.enter("zero", Limit::at_most(0)).await;
    assert!(matches!(nobody, Err(Error::Invalid(_))), "{nobody:?}");
}
