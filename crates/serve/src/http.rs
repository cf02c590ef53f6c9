//! From a connection to an answer.

mod answer;
mod api;
mod body;
mod form;
mod pages;
mod routes;
mod service;
mod submit;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use toctou_sync::{Limit, Memory, MemoryOptions, Semaphores as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};

use crate::callers;
use crate::log::log;
pub(crate) use service::{Service, SiteOptions};

const MOST_CONNECTIONS: usize = 1024;
/// One caller cannot have them all.
const MOST_OF_ONE: u32 = 256;
/// A client that takes longer to say what it wants is gone.
const HEADERS_WITHIN: Duration = Duration::from_secs(10);
const MOST_HEADERS: usize = 64;
const HEADER_BYTES: usize = 64 << 10;

/// Takes connections until it is told to stop; then waits a little for those that are there.
pub(crate) async fn accept(
    listener: TcpListener,
    service: Arc<Service>,
    mut stopped: watch::Receiver<bool>,
) {
    let room = Arc::new(Semaphore::new(MOST_CONNECTIONS));
    // Connections are of this process, wherever the other limits are kept.
    let peers = Memory::new(MemoryOptions::default());
    let mut connections = tokio::task::JoinSet::new();
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            _ = stopped.wait_for(|stopped| *stopped) => break,
        };
        while connections.try_join_next().is_some() {}
        let (stream, peer) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                // Out of descriptors, most likely: some will be free again.
                log("cannot-accept", &error);
                tokio::time::sleep(Duration::from_millis(100)).await;
                continue;
            }
        };
        let Ok(permit) = Arc::clone(&room).try_acquire_owned() else {
            log("too-many-connections", &MOST_CONNECTIONS);
            continue;
        };
        // Behind a proxy, all come from the proxy.
        let of_one = if service.options.behind_proxy {
            None
        } else {
            let limit = Limit::at_most(MOST_OF_ONE);
            match peers.enter(&callers::name(peer.ip()), limit).await {
                Ok(permit) => Some(permit),
                Err(_) => continue,
            }
        };
        let _ = stream.set_nodelay(true);
        let (service, stopped) = (Arc::clone(&service), stopped.clone());
        connections.spawn(async move {
            let _permits = (permit, of_one);
            serve(stream, peer, service, stopped).await;
        });
    }
    drop(listener);
    let _ = tokio::time::timeout(Duration::from_secs(3), async {
        while connections.join_next().await.is_some() {}
    })
    .await;
}

async fn serve(
    stream: TcpStream,
    peer: SocketAddr,
    service: Arc<Service>,
    mut stopped: watch::Receiver<bool>,
) {
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADERS_WITHIN)
        .max_headers(MOST_HEADERS)
        .max_buf_size(HEADER_BYTES)
        .serve_connection(
            TokioIo::new(stream),
            service_fn(move |request| {
                let service = Arc::clone(&service);
                async move {
                    Ok::<_, std::convert::Infallible>(service.handle(request, peer.ip()).await)
                }
            }),
        );
    tokio::pin!(connection);
    tokio::select! {
        _ = connection.as_mut() => return,
        _ = stopped.wait_for(|stopped| *stopped) => {}
    }
    connection.as_mut().graceful_shutdown();
    let _ = connection.await;
}
