use std::sync::Arc;
use std::time::Duration;

use toctou_sync::{
    Backend, Begin, Call, Error, Fence, Limit, LockRequest, Redis, RedisOptions, Wait,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout};

use crate::process::Process;
use crate::support::{Kind, Server};

fn exclusive() -> LockRequest {
    LockRequest::new().exclusive("key")
}

async fn short_lease(url: &str) -> Arc<dyn Backend> {
    let options = RedisOptions::new(url).lease(Duration::from_millis(600));
    Arc::new(Redis::connect(options).await.unwrap())
}

/// A holder is stopped past its lease. Somebody else gets in; the late write is refused by its fence, and the holder is
/// told when it goes on.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_late_write_of_a_stopped_holder_is_refused() {
    let server = Server::start(Kind::Redis);
    let mut sleeper = Process::start("sleeper", &server.url());
    let old = Fence::new(sleeper.hear().parse().unwrap());
    sleeper.signal("STOP");
    let backend = short_lease(&server.url()).await;
    let guard = backend
        .acquire(exclusive().within(Duration::from_secs(10)))
        .await
        .unwrap();
    assert!(guard.fence() > old);
    backend
        .write_fenced("cell", guard.fence(), b"right".to_vec())
        .await
        .unwrap();
    sleeper.tell();
    sleeper.signal("CONT");
    let late = sleeper.hear();
    assert!(late.contains("StaleFence"), "{late}");
    let released = sleeper.hear();
    assert!(released.contains("Lost"), "{released}");
    assert_eq!(backend.read("cell").await.unwrap().unwrap().value, b"right");
    assert!(!guard.is_lost());
    guard.release().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_killed_process_held_becomes_free() {
    for kind in [Kind::Redis, Kind::Postgres] {
        let server = Server::start(kind);
        let mut holder = Process::start("holder", &server.url());
        let fence: u64 = holder.hear().parse().unwrap();
        let mut waiter = Process::start("waiter", &server.url());
        waiter.hear();
        sleep(Duration::from_millis(100)).await;
        holder.signal("KILL");
        // One who waited dies too, before it gets in or after: those behind it get in all the same.
        waiter.signal("KILL");
        let backend = match kind {
            Kind::Redis => short_lease(&server.url()).await,
            Kind::Postgres => toctou_sync::connect(&server.url()).await.unwrap(),
        };
        let guard = backend
            .acquire(exclusive().within(Duration::from_secs(5)))
            .await
            .unwrap();
        assert!(guard.fence().get() > fence);
        let limit = Limit::at_most(1).queue(1, Duration::from_secs(5));
        drop(backend.enter("caller", limit).await.unwrap());
        let start = Instant::now();
        loop {
            match backend.begin(Call::new("order", b"")).await.unwrap() {
                Begin::Unknown => break,
                Begin::InFlight if start.elapsed() < Duration::from_secs(5) => {
                    sleep(Duration::from_millis(20)).await;
                }
                other => panic!("{other:?}"),
            }
        }
    }
}

/// After a restart everything works again; what was held is said to be lost, and no number comes twice.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn servers_are_restarted() {
    for kind in [Kind::Redis, Kind::Postgres] {
        let mut server = Server::start(kind);
        let backend = match kind {
            Kind::Redis => short_lease(&server.url()).await,
            Kind::Postgres => toctou_sync::connect(&server.url()).await.unwrap(),
        };
        let guard = backend.acquire(exclusive()).await.unwrap();
        let permit = backend.enter("caller", Limit::at_most(1)).await.unwrap();
        let fence = guard.fence();
        server.stop();
        let down = backend.acquire(LockRequest::new().exclusive("other")).await;
        assert!(
            matches!(&down, Err(error) if error.is_unavailable()),
            "{down:?}"
        );
        server.run();
        timeout(Duration::from_secs(5), guard.lost())
            .await
            .expect("the lock is not lost");
        timeout(Duration::from_secs(5), permit.lost())
            .await
            .expect("the permit is not lost");
        assert!(matches!(guard.release().await, Err(Error::Lost { .. })));
        drop(permit);
        let start = Instant::now();
        let again = loop {
            match backend
                .acquire(exclusive().within(Duration::from_secs(5)))
                .await
            {
                Ok(guard) => break guard,
                Err(error) if error.is_unavailable() && start.elapsed().as_secs() < 10 => {
                    sleep(Duration::from_millis(50)).await;
                }
                Err(error) => panic!("{error:?}"),
            }
        };
        assert!(again.fence() > fence, "{:?} after {fence:?}", again.fence());
        again.release().await.unwrap();
        let limit = Limit::at_most(1).queue(1, Duration::from_secs(5));
        backend
            .enter("caller", limit)
            .await
            .unwrap()
            .release()
            .await
            .unwrap();
        backend.check().await.unwrap();
    }
}

/// A wire between client and server that can be cut, and that can swallow what the server says.
struct Wire {
    port: u16,
    cut: watch::Sender<u32>,
    deaf: watch::Sender<bool>,
}

impl Wire {
    async fn to(server: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let (cut, cuts) = watch::channel(0);
        let (deaf, deafs) = watch::channel(false);
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let mut cuts = cuts.clone();
                cuts.mark_unchanged();
                let deaf = deafs.clone();
                tokio::spawn(async move {
                    let Ok(server) = TcpStream::connect(("127.0.0.1", server)).await else {
                        return;
                    };
                    let (mut from_client, mut to_client) = client.into_split();
                    let (mut from_server, mut to_server) = server.into_split();
                    let up = tokio::io::copy(&mut from_client, &mut to_server);
                    let down = async {
                        let mut buffer = [0; 4096];
                        loop {
                            let read = from_server.read(&mut buffer).await.unwrap_or(0);
                            if read == 0 {
                                return;
                            }
                            let swallow = *deaf.borrow();
                            if !swallow && to_client.write_all(&buffer[..read]).await.is_err() {
                                return;
                            }
                        }
                    };
                    tokio::select! { _ = up => {}, () = down => {}, _ = cuts.changed() => {} }
                });
            }
        });
        Self { port, cut, deaf }
    }

    fn url(&self, kind: Kind) -> String {
        match kind {
            Kind::Redis => format!("redis://127.0.0.1:{}/", self.port),
            Kind::Postgres => format!("postgres://toctou@127.0.0.1:{}/postgres", self.port),
        }
    }

    fn cut(&self) {
        self.cut.send_modify(|cuts| *cuts += 1);
    }
}

/// Connections break in the middle of operations: the server did it, and the answer does not come. Nothing stays locked,
/// nothing runs twice, and the client works again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connections_break_in_the_middle() {
    for kind in [Kind::Redis, Kind::Postgres] {
        let server = Server::start(kind);
        let wire = Wire::to(server.port()).await;
        let (near, far) = match kind {
            Kind::Redis => (
                short_lease(&wire.url(kind)).await,
                short_lease(&server.url()).await,
            ),
            Kind::Postgres => (
                toctou_sync::connect(&wire.url(kind)).await.unwrap(),
                toctou_sync::connect(&server.url()).await.unwrap(),
            ),
        };
        for round in 0..3 {
            let key = format!("round {round}");
            near.check().await.unwrap();
            wire.deaf.send_replace(true);
            let call = Call::new(&key, b"");
            let (locked, entered, begun, ()) = tokio::join!(
                near.acquire(LockRequest::new().exclusive(&key)),
                near.enter(&key, Limit::at_most(1)),
                near.begin(call),
                async {
                    sleep(Duration::from_millis(150)).await;
                    wire.cut();
                }
            );
            wire.deaf.send_replace(false);
            assert!(locked.is_err_and(|error| error.is_unavailable()));
            assert!(entered.is_err_and(|error| error.is_unavailable()));
            assert!(begun.is_err_and(|error| error.is_unavailable()));

            let request = LockRequest::new()
                .exclusive(&key)
                .within(Duration::from_secs(5));
            far.acquire(request)
                .await
                .expect("stays locked")
                .release()
                .await
                .unwrap();
            let limit = Limit::at_most(1).queue(1, Duration::from_secs(5));
            far.enter(&key, limit)
                .await
                .expect("the permit stays out")
                .release()
                .await
                .unwrap();
            // Nobody ran it, but nobody can know that: it must not look as if it could run freely *and* be unknown.
            let start = Instant::now();
            loop {
                match far.begin(call).await.unwrap() {
                    Begin::InFlight if start.elapsed() < Duration::from_secs(5) => {
                        sleep(Duration::from_millis(20)).await;
                    }
                    Begin::First(ticket) => break ticket.forget().await.unwrap(),
                    Begin::Unknown => break,
                    other => panic!("{other:?}"),
                }
            }
            // And the one that was cut off is back.
            let start = Instant::now();
            while let Err(error) = near.acquire(exclusive().wait(Wait::No)).await.map(drop) {
                assert!(start.elapsed() < Duration::from_secs(10), "{error:?}");
                sleep(Duration::from_millis(50)).await;
            }
        }
    }
}
