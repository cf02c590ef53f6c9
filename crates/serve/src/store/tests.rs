#![allow(clippy::unwrap_used)]

use super::*;

#[path = "../../../sync/tests/support/mod.rs"]
mod support;

fn job(id: &str) -> NewJob {
    NewJob {
        id: id.to_owned(),
        source: "https://git.example/a".to_owned(),
        upload: None,
        caller: "somebody".to_owned(),
    }
}

fn done(grade: &str) -> Outcome {
    Outcome::Done(Box::new(Report {
        grade: grade.to_owned(),
        score: 95,
        html: b"page".to_vec(),
        policy: "default-src 'none'".to_owned(),
        ..Report::default()
    }))
}

const LONG: Duration = Duration::from_secs(60);
const SHORT: Duration = Duration::from_millis(1);

/// What every store promises.
async fn suite(store: &Store) {
    store.check().await.unwrap();
    assert!(store.claim(LONG).await.unwrap().is_none(), "an empty queue");
    for id in ["a", "b", "c"] {
        store.submit(job(id)).await.unwrap();
    }
    // To say it twice changes nothing.
    store.submit(job("a")).await.unwrap();
    assert_eq!(store.pending("somebody").await.unwrap(), 3);
    assert_eq!(store.pending("nobody").await.unwrap(), 0);

    // In the order in which they came, each to one.
    let first = store.claim(SHORT).await.unwrap().unwrap();
    assert_eq!((&*first.id, first.fence), ("a", 1));
    let second = store.claim(LONG).await.unwrap().unwrap();
    tokio::time::sleep(Duration::from_millis(20)).await;
    // The first was silent for too long: its job is given to another.
    let again = store.claim(LONG).await.unwrap().unwrap();
    let (again, other) = if again.id == "a" {
        (again, second)
    } else {
        (second, again)
    };
    assert_eq!((&*again.id, again.fence), ("a", 2));
    assert_eq!(other.id, "b");
    assert!(!store.beat("a", first.fence, LONG, "late").await.unwrap());
    assert!(!store.finish("a", first.fence, &done("F")).await.unwrap());
    assert!(store.beat("a", again.fence, LONG, "on it").await.unwrap());
    assert_eq!(store.job("a").await.unwrap().unwrap().progress, "on it");
    assert!(store.finish("a", again.fence, &done("A")).await.unwrap());
    // An answer that got lost is given again; a late one is refused still.
    assert!(store.finish("a", again.fence, &done("A")).await.unwrap());
    assert!(!store.finish("a", first.fence, &done("F")).await.unwrap());
    let over = store.job("a").await.unwrap().unwrap();
    assert_eq!(
        (over.state, over.grade.as_deref()),
        (State::Done, Some("A"))
    );
    let (html, policy) = store.report("a", Format::Html).await.unwrap().unwrap();
    assert_eq!((&*html, &*policy), (&b"page"[..], "default-src 'none'"));
    assert!(store.report("b", Format::Html).await.unwrap().is_none());

    // What is given back is as if nobody had had it.
    store.release("b", other.fence).await.unwrap();
    for attempt in 0..MOST_ATTEMPTS {
        let claim = store.claim(SHORT).await.unwrap().unwrap();
        assert_eq!((&*claim.id, claim.fence), ("b", attempt + 2));
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    // It ended every worker: nobody gets it again, and those behind it are served.
    let claim = store.claim(LONG).await.unwrap().unwrap();
    assert_eq!(claim.id, "c");
    assert!(store.claim(LONG).await.unwrap().is_none());
    let poisoned = store.job("b").await.unwrap().unwrap();
    assert_eq!(poisoned.state, State::Failed);
    assert!(
        store
            .finish("c", claim.fence, &Outcome::Failed("no".to_owned()))
            .await
            .unwrap()
    );

    // Lists, newest first, without uploads.
    let mut upload = job("d");
    upload.upload = Some(b"PK".to_vec());
    store.submit(upload).await.unwrap();
    let listed: Vec<String> = store
        .recent(i64::MAX, 10, true)
        .await
        .unwrap()
        .into_iter()
        .map(|j| j.id)
        .collect();
    assert_eq!(listed, ["c", "b", "a"]);
    assert_eq!(store.recent(i64::MAX, 10, false).await.unwrap().len(), 1);
    let before = store.job("c").await.unwrap().unwrap().number;
    assert_eq!(store.recent(before, 1, true).await.unwrap()[0].id, "b");
    assert_eq!(
        store
            .latest("https://git.example/a")
            .await
            .unwrap()
            .unwrap()
            .id,
        "a"
    );
    let claim = store.claim(LONG).await.unwrap().unwrap();
    assert_eq!(claim.upload.as_deref(), Some(&b"PK"[..]));

    // What is over and old goes; what runs stays.
    store.prune(1).await.unwrap();
    assert!(store.job("a").await.unwrap().is_none());
    assert_eq!(store.job("d").await.unwrap().unwrap().state, State::Running);
}

/// Many who want one job each.
async fn crowd(store: std::sync::Arc<Store>) {
    for n in 0..40 {
        store.submit(job(&format!("crowd{n}"))).await.unwrap();
    }
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..60 {
        let store = std::sync::Arc::clone(&store);
        tasks.spawn(async move { store.claim(LONG).await.unwrap().map(|claim| claim.id) });
    }
    let mut claimed = tasks
        .join_all()
        .await
        .into_iter()
        .flatten()
        .collect::<Vec<_>>();
    claimed.sort();
    let count = claimed.len();
    claimed.dedup();
    assert_eq!((count, claimed.len()), (40, 40), "each once");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sqlite() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("deep/serve.db").display().to_string();
    let store = std::sync::Arc::new(Store::open(&path).await.unwrap());
    suite(&store).await;
    crowd(std::sync::Arc::clone(&store)).await;
    assert!(Store::open(&path).await.is_err(), "one process");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs PostgreSQL: ./scripts/test runs it"]
async fn postgres() {
    let server = support::Server::start(support::Kind::Postgres);
    let store = std::sync::Arc::new(Store::open(&server.url()).await.unwrap());
    suite(&store).await;
    crowd(store).await;
}
