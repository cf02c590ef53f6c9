//! A place at a sandbox's loopback that leads to one address outside, and nowhere else.

use std::io;
use std::net::TcpListener;

use tokio::io::{AsyncRead, AsyncWrite, copy_bidirectional};
use tokio::net::{TcpStream, UnixStream};
use tokio::runtime::Handle;
use tokio::task::{JoinHandle, JoinSet};

use super::address::Host;

/// Ends with all its connections when dropped.
pub struct Relay {
    task: JoinHandle<()>,
}

impl Relay {
    pub fn start(handle: &Handle, listener: TcpListener, to: Host) -> io::Result<Self> {
        listener.set_nonblocking(true)?;
        let inside = handle.enter();
        let listener = tokio::net::TcpListener::from_std(listener)?;
        drop(inside);
        let task = handle.spawn(async move {
            let mut all = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                let to = to.clone();
                // What cannot be passed on ends, as the server's own connection would.
                all.spawn(async move { pass_on(stream, &to).await.ok() });
                while all.try_join_next().is_some() {}
            }
        });
        Ok(Self { task })
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn pass_on(stream: TcpStream, to: &Host) -> io::Result<()> {
    stream.set_nodelay(true)?;
    match to {
        Host::Tcp(host, port) => {
            let other = TcpStream::connect((host.as_str(), *port)).await?;
            other.set_nodelay(true)?;
            copied(stream, other).await
        }
        Host::Unix(path) => copied(stream, UnixStream::connect(path).await?).await,
    }
}

async fn copied<S>(mut stream: TcpStream, mut other: S) -> io::Result<()>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    copy_bidirectional(&mut stream, &mut other).await.map(drop)
}
