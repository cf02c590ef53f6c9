use toctou_sync::{Error, Fence, Retry, Swap, Version, update};
use tokio::task::JoinSet;

use crate::Place;

async fn done(swap: toctou_sync::Result<Swap>) -> Version {
    match swap.unwrap() {
        Swap::Done(Some(version)) => version,
        other => panic!("{other:?}"),
    }
}

pub async fn compares_and_swaps(place: &Place) {
    let (a, b) = (place.client().await, place.client().await);
    assert_eq!(a.read("swap").await.unwrap(), None);
    let first = done(
        a.compare_and_swap("swap", None, Some(b"one".to_vec()))
            .await,
    )
    .await;
    let found = b.read("swap").await.unwrap().unwrap();
    assert_eq!(
        (found.value.as_slice(), found.version),
        (b"one".as_slice(), first)
    );
    match b
        .compare_and_swap("swap", None, Some(b"two".to_vec()))
        .await
        .unwrap()
    {
        Swap::Conflict(Some(current)) => assert_eq!(current, found),
        other => panic!("{other:?}"),
    }
    let second = done(
        b.compare_and_swap("swap", Some(first), Some(b"two".to_vec()))
            .await,
    )
    .await;
    assert_ne!(first, second);
    let late = a
        .compare_and_swap("swap", Some(first), Some(b"three".to_vec()))
        .await
        .unwrap();
    assert!(matches!(late, Swap::Conflict(Some(_))), "{late:?}");
    assert_eq!(a.read("swap").await.unwrap().unwrap().value, b"two");
}

pub async fn versions_are_never_reused(place: &Place) {
    let client = place.client().await;
    let mut seen = std::collections::HashSet::new();
    for _ in 0..5 {
        let version = done(client.compare_and_swap("reuse", None, Some(vec![1])).await).await;
        assert!(seen.insert(version), "{version:?} came back");
        let deleted = client
            .compare_and_swap("reuse", Some(version), None)
            .await
            .unwrap();
        assert_eq!(deleted, Swap::Done(None));
    }
}

pub async fn no_update_is_lost(place: &Place) {
    let clients = [
        place.client().await,
        place.client().await,
        place.client().await,
    ];
    let mut tasks = JoinSet::new();
    for task in 0..12 {
        let client = clients[task % 3].clone();
        tasks.spawn(async move {
            for _ in 0..4 {
                let retry = Retry {
                    attempts: 200,
                    ..Retry::default()
                };
                update(&*client, "counter", retry, |old| {
                    let number = old.map_or(0, |old| String::from_utf8_lossy(old).parse().unwrap());
                    Ok(Some((number + 1u32).to_string().into_bytes()))
                })
                .await
                .unwrap();
            }
        });
    }
    while let Some(task) = tasks.join_next().await {
        task.unwrap();
    }
    assert_eq!(
        clients[0].read("counter").await.unwrap().unwrap().value,
        b"48"
    );
}

pub async fn deletes(place: &Place) {
    let client = place.client().await;
    let nothing = client
        .compare_and_swap("deletes", None, None)
        .await
        .unwrap();
    assert_eq!(nothing, Swap::Done(None));
    let version = done(
        client
            .compare_and_swap("deletes", None, Some(vec![1]))
            .await,
    )
    .await;
    let other = Version::new(version.get() + 1000);
    let refused = client
        .compare_and_swap("deletes", Some(other), None)
        .await
        .unwrap();
    assert!(matches!(refused, Swap::Conflict(Some(_))), "{refused:?}");
    assert_eq!(
        client
            .compare_and_swap("deletes", Some(version), None)
            .await
            .unwrap(),
        Swap::Done(None)
    );
    assert_eq!(client.read("deletes").await.unwrap(), None);
    let gone = client
        .compare_and_swap("deletes", Some(version), Some(vec![2]))
        .await
        .unwrap();
    assert_eq!(gone, Swap::Conflict(None));
}

pub async fn fences_are_checked(place: &Place) {
    let (a, b) = (place.client().await, place.client().await);
    a.write_fenced("fenced", Fence::new(10), b"ten".to_vec())
        .await
        .unwrap();
    // One holder may write more than once.
    a.write_fenced("fenced", Fence::new(10), b"ten again".to_vec())
        .await
        .unwrap();
    b.write_fenced("fenced", Fence::new(12), b"twelve".to_vec())
        .await
        .unwrap();
    match a
        .write_fenced("fenced", Fence::new(11), b"late".to_vec())
        .await
    {
        Err(Error::StaleFence { presented, seen }) => {
            assert_eq!((presented.get(), seen.get()), (11, 12));
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(a.read("fenced").await.unwrap().unwrap().value, b"twelve");
}

pub async fn fence_survives_deletion(place: &Place) {
    let client = place.client().await;
    let version = client
        .write_fenced("tomb", Fence::new(7), vec![1])
        .await
        .unwrap();
    client
        .compare_and_swap("tomb", Some(version), None)
        .await
        .unwrap();
    assert_eq!(client.read("tomb").await.unwrap(), None);
    let late = client.write_fenced("tomb", Fence::new(6), vec![2]).await;
    assert!(matches!(late, Err(Error::StaleFence { .. })), "{late:?}");
    let version = done(client.compare_and_swap("tomb", None, Some(vec![3])).await).await;
    assert_eq!(client.read("tomb").await.unwrap().unwrap().version, version);
}

pub async fn binary_values(place: &Place) {
    let client = place.client().await;
    for value in [vec![], vec![0, 255, 10, 13, 0], vec![7; 300_000]] {
        let current = client
            .read("binary")
            .await
            .unwrap()
            .map(|found| found.version);
        done(
            client
                .compare_and_swap("binary", current, Some(value.clone()))
                .await,
        )
        .await;
        assert_eq!(client.read("binary").await.unwrap().unwrap().value, value);
    }
    let big = client
        .compare_and_swap("too big", None, Some(vec![0; (16 << 20) + 1]))
        .await;
    assert!(matches!(big, Err(Error::Invalid(_))));
}

/// Somebody always comes between: the helper ends all the same.
pub async fn gives_up(place: &Place) {
    let client = place.client().await;
    let attempts = std::sync::atomic::AtomicU32::new(0);
    let retry = Retry {
        attempts: 3,
        base: std::time::Duration::from_millis(1),
        ..Retry::default()
    };
    let spoiler = client.clone();
    let result = update(&*client, "contended", retry, |old| {
        attempts.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
        let (spoiler, old) = (spoiler.clone(), old.map(<[u8]>::to_vec));
        tokio::task::block_in_place(|| {
            tokio::runtime::Handle::current().block_on(async move {
                let current = spoiler.read("contended").await.unwrap();
                assert_eq!(current.as_ref().map(|found| &found.value), old.as_ref());
                let expected = current.map(|found| found.version);
                spoiler
                    .compare_and_swap("contended", expected, Some(vec![9]))
                    .await
                    .unwrap();
            });
        });
        Ok(Some(vec![1]))
    })
    .await;
    assert!(
        matches!(result, Err(Error::Conflict { attempts: 3, .. })),
        "{result:?}"
    );
    assert_eq!(attempts.into_inner(), 3);
}
