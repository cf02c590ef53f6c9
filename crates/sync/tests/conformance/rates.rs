use std::time::Duration;

use toctou_sync::{Decision, Error, Quota};
use tokio::task::JoinSet;
use tokio::time::sleep;

use crate::Place;

const SLOW: Quota = Quota::every(Duration::from_secs(600)).burst(5);

pub async fn burst_then_refused(place: &Place) {
    let clients = [place.client().await, place.client().await];
    for call in 0..5u32 {
        let decision = clients[call as usize % 2]
            .take("burst", SLOW, 1)
            .await
            .unwrap();
        assert_eq!(
            decision,
            Decision::Allowed {
                remaining: 4 - call
            }
        );
    }
    for client in &clients {
        match client.take("burst", SLOW, 1).await.unwrap() {
            Decision::Denied { retry_after } => {
                assert!(retry_after <= Duration::from_secs(600), "{retry_after:?}");
                assert!(retry_after > Duration::from_secs(500), "{retry_after:?}");
            }
            allowed => panic!("{allowed:?}"),
        }
    }
}

pub async fn refills(place: &Place) {
    let client = place.client().await;
    let quota = Quota::every(Duration::from_millis(200)).burst(2);
    assert!(client.take("refills", quota, 2).await.unwrap().is_allowed());
    let Decision::Denied { retry_after } = client.take("refills", quota, 1).await.unwrap() else {
        panic!("allowed");
    };
    assert!(retry_after <= Duration::from_millis(200), "{retry_after:?}");
    sleep(retry_after + Duration::from_millis(5)).await;
    // What was promised is there; nobody else took any.
    assert!(client.take("refills", quota, 1).await.unwrap().is_allowed());
}

pub async fn exact_under_concurrency(place: &Place) {
    let clients = [
        place.client().await,
        place.client().await,
        place.client().await,
    ];
    let mut calls = JoinSet::new();
    for call in 0..60 {
        let client = clients[call % 3].clone();
        calls.spawn(async move { client.take("exact", SLOW, 1).await.unwrap().is_allowed() });
    }
    let mut allowed = 0;
    while let Some(call) = calls.join_next().await {
        allowed += u32::from(call.unwrap());
    }
    assert_eq!(allowed, 5);
}

pub async fn cost_and_refusals(place: &Place) {
    let client = place.client().await;
    assert!(client.take("cost", SLOW, 4).await.unwrap().is_allowed());
    // A refusal takes nothing: the last one is still there.
    assert!(!client.take("cost", SLOW, 2).await.unwrap().is_allowed());
    assert!(client.take("cost", SLOW, 1).await.unwrap().is_allowed());
    assert!(!client.take("cost", SLOW, 1).await.unwrap().is_allowed());
    assert!(client.take("cost", SLOW, 0).await.unwrap().is_allowed());
    for (quota, cost) in [
        (SLOW, 6),
        (Quota::per_second(0), 1),
        (SLOW.burst(u32::MAX), 1),
    ] {
        let refused = client.take("cost", quota, cost).await;
        assert!(matches!(refused, Err(Error::Invalid(_))), "{refused:?}");
    }
}

pub async fn keys_are_apart(place: &Place) {
    let client = place.client().await;
    for key in ["apart", "apart ", "APART"] {
        assert!(client.take(key, SLOW, 5).await.unwrap().is_allowed());
        assert!(!client.take(key, SLOW, 1).await.unwrap().is_allowed());
    }
}
