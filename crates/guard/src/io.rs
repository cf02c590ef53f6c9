//! Byte streams of messages: a client's standard input and output, a child's pipes.
//!
//! Pipes and sockets are read and written without a thread in between, which
//! is worth 20 µs a call. A terminal or a file, which cannot be waited for,
//! goes through tokio's helper threads.

mod inlet;
mod outlet;

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream as StdStream;
use std::sync::Arc;

use tokio::net::UnixStream;
use tokio::net::unix::pipe;

pub use inlet::Inlet;
pub use outlet::Outlet;

/// So many messages at most are written together: the other side can begin
/// with them while the rest is looked at.
pub const TOGETHER: usize = 24;

/// What a descriptor leads to.
enum Stream {
    Pipe(OwnedFd),
    Socket(UnixStream),
    Other(File),
}

fn open(fd: impl AsFd) -> io::Result<Stream> {
    let fd = fd.as_fd().try_clone_to_owned()?;
    let kind = rustix::fs::FileType::from_raw_mode(rustix::fs::fstat(&fd)?.st_mode);
    Ok(match kind {
        rustix::fs::FileType::Fifo => Stream::Pipe(fd),
        // Node starts its children with sockets for pipes.
        rustix::fs::FileType::Socket => {
            let socket = StdStream::from(fd);
            socket.set_nonblocking(true)?;
            Stream::Socket(UnixStream::from_std(socket)?)
        }
        _ => Stream::Other(File::from(fd)),
    })
}

/// Standard input, to be read as messages.
pub fn stdin(limit: usize) -> io::Result<Inlet> {
    inlet(io::stdin(), limit)
}

/// Standard output, to write messages to.
pub fn stdout(limit: usize) -> io::Result<Arc<Outlet>> {
    outlet(io::stdout(), limit)
}

/// Reads messages from a descriptor.
pub fn inlet(fd: impl AsFd, limit: usize) -> io::Result<Inlet> {
    Ok(match open(fd)? {
        Stream::Pipe(fd) => Inlet::new(
            inlet::Source::Pipe(pipe::Receiver::from_owned_fd(fd)?),
            limit,
        ),
        Stream::Socket(socket) => Inlet::new(inlet::Source::Socket(socket), limit),
        Stream::Other(file) => {
            Inlet::new(inlet::Source::Other(tokio::fs::File::from_std(file)), limit)
        }
    })
}

/// Writes messages to a descriptor.
pub fn outlet(fd: impl AsFd, limit: usize) -> io::Result<Arc<Outlet>> {
    Ok(match open(fd)? {
        Stream::Pipe(fd) => {
            Outlet::new(outlet::Sink::Pipe(pipe::Sender::from_owned_fd(fd)?), limit)
        }
        Stream::Socket(socket) => Outlet::new(outlet::Sink::Socket(socket), limit),
        Stream::Other(file) => Outlet::new(outlet::Sink::Other(file), limit),
    })
}
