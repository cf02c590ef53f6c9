use std::time::Duration;

use toctou_sync::{Begin, Call, InFlight, Ticket};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};

use crate::Place;

fn ticket(begin: Begin) -> Ticket {
    match begin {
        Begin::First(ticket) => ticket,
        other => panic!("{other:?}"),
    }
}

pub async fn first_then_replay(place: &Place) {
    let (a, b) = (place.client().await, place.client().await);
    let call = Call::new("replay", b"arguments");
    ticket(a.begin(call).await.unwrap())
        .complete(b"res\0ult".to_vec())
        .await
        .unwrap();
    for client in [&a, &b] {
        match client.begin(call).await.unwrap() {
            Begin::Replay(result) => assert_eq!(result, b"res\0ult"),
            other => panic!("{other:?}"),
        }
    }
}

pub async fn other_arguments(place: &Place) {
    let (a, b) = (place.client().await, place.client().await);
    let running = ticket(a.begin(Call::new("other", b"ten")).await.unwrap());
    let other = b.begin(Call::new("other", b"eleven")).await.unwrap();
    assert!(matches!(other, Begin::OtherArguments), "{other:?}");
    running.complete(*b"done").await.unwrap();
    let other = a.begin(Call::new("other", b"eleven")).await.unwrap();
    assert!(matches!(other, Begin::OtherArguments), "{other:?}");
}

pub async fn in_flight(place: &Place) {
    let (a, b) = (place.client().await, place.client().await);
    let call = Call::new("flight", b"");
    let running = ticket(a.begin(call).await.unwrap());
    for client in [&a, &b] {
        let second = client.begin(call).await.unwrap();
        assert!(matches!(second, Begin::InFlight), "{second:?}");
        let start = Instant::now();
        let waited = client
            .begin(call.in_flight(InFlight::Wait(Duration::from_millis(80))))
            .await;
        assert!(matches!(waited.unwrap(), Begin::InFlight));
        assert!(start.elapsed() >= Duration::from_millis(80));
    }
    running.complete(*b"").await.unwrap();
}

pub async fn waits_for_the_result(place: &Place) {
    let (a, b) = (place.client().await, place.client().await);
    let call = Call::new("waits", b"").in_flight(InFlight::Wait(Duration::from_secs(20)));
    let running = ticket(a.begin(call).await.unwrap());
    let waiting = tokio::spawn(async move { b.begin(call).await.unwrap() });
    sleep(Duration::from_millis(60)).await;
    assert!(!waiting.is_finished());
    running.complete(*b"late").await.unwrap();
    match waiting.await.unwrap() {
        Begin::Replay(result) => assert_eq!(result, b"late"),
        other => panic!("{other:?}"),
    }
}

async fn until_unknown(place: &Place, call: Call<'_>) {
    let client = place.client().await;
    let start = Instant::now();
    loop {
        match client.begin(call).await.unwrap() {
            Begin::Unknown => return,
            // The news may be on its way.
            Begin::InFlight if start.elapsed() < Duration::from_secs(2) => {
                sleep(Duration::from_millis(5)).await;
            }
            other => panic!("{other:?}"),
        }
    }
}

pub async fn dropped_is_unknown(place: &Place) {
    let client = place.client().await;
    let call = Call::new("dropped", b"");
    drop(ticket(client.begin(call).await.unwrap()));
    until_unknown(place, call).await;
    // And it stays so, however often one asks.
    for _ in 0..3 {
        assert!(matches!(client.begin(call).await.unwrap(), Begin::Unknown));
    }
    // To ask, and go away before the answer, is not to run.
    let asked = Call::new("asked", b"");
    for _ in 0..10 {
        let _ = timeout(Duration::from_micros(50), client.begin(asked))
            .await
            .map(|begin| {
                if let Begin::First(ticket) = begin.unwrap() {
                    tokio::spawn(ticket.forget());
                }
            });
    }
    let start = Instant::now();
    loop {
        match client.begin(asked).await.unwrap() {
            Begin::First(ticket) => break ticket.forget().await.unwrap(),
            Begin::InFlight if start.elapsed() < Duration::from_secs(2) => {
                sleep(Duration::from_millis(5)).await;
            }
            other => panic!("{other:?}"),
        }
    }
}

pub async fn forgotten_runs_again(place: &Place) {
    let (a, b) = (place.client().await, place.client().await);
    let call = Call::new("forgotten", b"");
    for client in [&a, &b, &a] {
        ticket(client.begin(call).await.unwrap())
            .forget()
            .await
            .unwrap();
    }
    ticket(a.begin(call).await.unwrap())
        .complete(*b"x")
        .await
        .unwrap();
    assert!(matches!(b.begin(call).await.unwrap(), Begin::Replay(_)));
}

pub async fn settles(place: &Place) {
    let client = place.client().await;
    assert!(
        !client.settle("settles", Some(vec![1])).await.unwrap(),
        "nothing to settle"
    );
    let call = Call::new("settles", b"");
    let running = ticket(client.begin(call).await.unwrap());
    assert!(!client.settle("settles", None).await.unwrap(), "it runs");
    drop(running);
    until_unknown(place, call).await;
    assert!(
        client
            .settle("settles", Some(b"it did".to_vec()))
            .await
            .unwrap()
    );
    match client.begin(call).await.unwrap() {
        Begin::Replay(result) => assert_eq!(result, b"it did"),
        other => panic!("{other:?}"),
    }
    assert!(!client.settle("settles", None).await.unwrap(), "it is done");
    let call = Call::new("settles, not run", b"");
    drop(ticket(client.begin(call).await.unwrap()));
    until_unknown(place, call).await;
    assert!(client.settle("settles, not run", None).await.unwrap());
    ticket(client.begin(call).await.unwrap())
        .forget()
        .await
        .unwrap();
}

pub async fn only_one_is_first(place: &Place) {
    let clients = [
        place.client().await,
        place.client().await,
        place.client().await,
    ];
    let mut calls = JoinSet::new();
    for call in 0..40 {
        let client = clients[call % 3].clone();
        calls.spawn(async move {
            let call = Call::new("once", b"").in_flight(InFlight::Wait(Duration::from_secs(30)));
            match client.begin(call).await.unwrap() {
                Begin::First(ticket) => {
                    sleep(Duration::from_millis(30)).await;
                    ticket.complete(*b"only").await.unwrap();
                    true
                }
                Begin::Replay(result) => {
                    assert_eq!(result, b"only");
                    false
                }
                other => panic!("{other:?}"),
            }
        });
    }
    let mut first = 0;
    while let Some(call) = calls.join_next().await {
        first += u32::from(call.unwrap());
    }
    assert_eq!(first, 1);
}

pub async fn is_forgotten_after_its_time(place: &Place) {
    let client = place.client().await;
    let call = Call::new("short", b"").keep(Duration::from_millis(100));
    ticket(client.begin(call).await.unwrap())
        .complete(*b"x")
        .await
        .unwrap();
    assert!(matches!(
        client.begin(call).await.unwrap(),
        Begin::Replay(_)
    ));
    sleep(Duration::from_millis(150)).await;
    ticket(client.begin(call).await.unwrap())
        .forget()
        .await
        .unwrap();
}
