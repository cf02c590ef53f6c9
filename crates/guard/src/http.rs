//! Clients that come by HTTP: Streamable HTTP, or HTTP+SSE as 2024-11-05 has it.
//!
//! Every server has an address of its own (`/NAME`), rather than one address
//! with prefixed names: so names, capabilities, resources and prompts of the
//! servers arrive as they are. A client of a revision with sessions gets a
//! process of its own, since such a server keeps one client's state and may
//! ask it questions. Clients of revisions without sessions share one.

mod access;
mod answer;
mod backlog;
mod body;
mod post;
mod service;
mod sessions;
mod sse;
mod streams;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use socket2::SockRef;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio_rustls::TlsAcceptor;

use crate::log::log;
use crate::metrics::Metrics;
pub use access::{Access, AccessError, Tokens};
pub(crate) use service::Service;

/// Where and for whom to serve.
#[derive(Debug)]
pub struct Listen {
    pub address: SocketAddr,
    pub access: Access,
    pub tls: Option<Arc<rustls::ServerConfig>>,
}

const MOST_CONNECTIONS: usize = 1024;
/// A client that takes longer to say what it wants is gone.
const HEADERS_WITHIN: Duration = Duration::from_secs(10);
const HANDSHAKE_WITHIN: Duration = Duration::from_secs(10);
/// One that takes nothing of what is written to it for this long is gone, too.
const TAKEN_WITHIN: Duration = Duration::from_secs(60);
const MOST_HEADERS: usize = 64;
const HEADER_BYTES: usize = 64 << 10;

/// Reads a certificate chain and its key.
pub fn tls(certificate: &PathBuf, key: &PathBuf) -> Result<Arc<rustls::ServerConfig>, String> {
    use rustls::pki_types::pem::PemObject as _;
    use rustls::pki_types::{CertificateDer, PrivateKeyDer};
    let chain = CertificateDer::pem_file_iter(certificate)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .map_err(|error| format!("{}: {error}", certificate.display()))?;
    let key_der =
        PrivateKeyDer::from_pem_file(key).map_err(|error| format!("{}: {error}", key.display()))?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .and_then(|builder| {
            builder
                .with_no_client_auth()
                .with_single_cert(chain, key_der)
        })
        .map_err(|error| error.to_string())?;
    Ok(Arc::new(config))
}

/// Takes connections until it is told to stop; then waits for those that are there.
pub(crate) async fn accept(
    listener: TcpListener,
    tls: Option<Arc<rustls::ServerConfig>>,
    service: Arc<Service>,
    mut stopped: watch::Receiver<bool>,
) {
    let room = Arc::new(Semaphore::new(MOST_CONNECTIONS));
    let tls = tls.map(TlsAcceptor::from);
    let mut connections = tokio::task::JoinSet::new();
    // A timer that is set to end before all others makes the runtime wake itself, by a system call. Each call would set
    // such a one, for the next request's headers, if there were not always this one before.
    let mut earlier = tokio::time::interval(HEADERS_WITHIN / 2);
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            _ = earlier.tick() => continue,
            _ = stopped.wait_for(|stopped| *stopped) => break,
        };
        while connections.try_join_next().is_some() {}
        let stream = match accepted {
            Ok((stream, _)) => stream,
            Err(error) => {
                // Out of descriptors, most likely: some will be free again.
                log!(Error, "cannot-accept", because = error.to_string());
                tokio::time::sleep(Duration::from_millis(100)).await;
                continue;
            }
        };
        let Ok(permit) = Arc::clone(&room).try_acquire_owned() else {
            log!(Warn, "too-many-connections", most = MOST_CONNECTIONS);
            continue;
        };
        patient(&stream, TAKEN_WITHIN);
        let service = Arc::clone(&service);
        let stopped = stopped.clone();
        let tls = tls.clone();
        connections.spawn(async move {
            let _permit = permit;
            match tls {
                None => serve(stream, service, stopped).await,
                Some(tls) => match tokio::time::timeout(HANDSHAKE_WITHIN, tls.accept(stream)).await
                {
                    Ok(Ok(stream)) => serve(stream, service, stopped).await,
                    Ok(Err(error)) => log!(Debug, "tls-failed", because = error.to_string()),
                    Err(_) => log!(Debug, "tls-failed", because = "too slow"),
                },
            }
        });
    }
    drop(listener);
    let _ = tokio::time::timeout(Duration::from_secs(5), async {
        while connections.join_next().await.is_some() {}
    })
    .await;
}

/// A connection whose client takes nothing, or is no longer there, ends after a time: it would keep its place, and its
/// answer, for ever.
fn patient(stream: &TcpStream, within: Duration) {
    let _ = stream.set_nodelay(true);
    let _ = SockRef::from(stream).set_tcp_user_timeout(Some(within));
}

async fn serve<S>(stream: S, service: Arc<Service>, mut stopped: watch::Receiver<bool>)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADERS_WITHIN)
        .max_headers(MOST_HEADERS)
        .max_buf_size(HEADER_BYTES)
        .writev(false)
        .serve_connection(
            TokioIo::new(stream),
            service_fn(move |request| {
                let service = Arc::clone(&service);
                async move { Ok::<_, std::convert::Infallible>(service.handle(request).await) }
            }),
        );
    tokio::pin!(connection);
    tokio::select! {
        biased;
        _ = connection.as_mut() => return,
        _ = stopped.wait_for(|stopped| *stopped) => {}
    }
    connection.as_mut().graceful_shutdown();
    let _ = connection.await;
}

/// Answers Prometheus.
pub(crate) async fn serve_metrics(listener: TcpListener, metrics: Arc<Metrics>) {
    while let Ok((stream, _)) = listener.accept().await {
        let metrics = Arc::clone(&metrics);
        tokio::spawn(async move {
            let answer = service_fn(move |request: hyper::Request<hyper::body::Incoming>| {
                let metrics = Arc::clone(&metrics);
                async move {
                    let answer = if request.uri().path() == "/metrics" {
                        answer::text(hyper::StatusCode::OK, metrics.text())
                    } else {
                        answer::text(
                            hyper::StatusCode::NOT_FOUND,
                            "only /metrics is here\n".to_owned(),
                        )
                    };
                    Ok::<_, std::convert::Infallible>(answer)
                }
            });
            let _ = http1::Builder::new()
                .timer(TokioTimer::new())
                .header_read_timeout(HEADERS_WITHIN)
                .serve_connection(TokioIo::new(stream), answer)
                .await;
        });
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncWriteExt as _;

    use super::*;

    #[tokio::test]
    async fn a_client_that_does_not_read_is_given_up() {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let client = TcpStream::connect(address).await.expect("a connection");
        let (mut stream, _) = listener.accept().await.expect("a client");
        patient(&stream, Duration::from_millis(500));
        let writing = async {
            let some = vec![0; 1 << 16];
            while stream.write_all(&some).await.is_ok() {}
        };
        tokio::time::timeout(Duration::from_secs(20), writing)
            .await
            .expect("an end");
        drop(client);
    }
}
