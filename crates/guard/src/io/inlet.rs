//! Reads lines.

use std::io;

use bytes::Bytes;
use tokio::io::AsyncReadExt as _;
use tokio::net::UnixStream;
use tokio::net::unix::pipe;

use crate::wire::{LineTooLong, Lines};

pub(super) enum Source {
    Pipe(pipe::Receiver),
    Socket(UnixStream),
    Other(tokio::fs::File),
}

/// A stream that is read one message at a time.
pub struct Inlet {
    source: Source,
    lines: Lines,
    ended: bool,
}

impl Inlet {
    pub(super) fn new(source: Source, limit: usize) -> Self {
        Self {
            source,
            lines: Lines::new(limit),
            ended: false,
        }
    }

    /// A line that is here already.
    pub fn buffered(&mut self) -> Option<Result<Bytes, LineTooLong>> {
        self.lines.next_line()
    }

    /// Waits for more bytes; false at the end of the stream. Cancel-safe.
    pub async fn fill(&mut self) -> io::Result<bool> {
        if self.ended {
            return Ok(false);
        }
        // Not `try_read`: after a read that did not fill the buffer, this waits without asking again.
        let room = self.lines.room();
        let read = match &mut self.source {
            Source::Pipe(pipe) => pipe.read_buf(room).await?,
            Source::Socket(socket) => socket.read_buf(room).await?,
            Source::Other(file) => file.read_buf(room).await?,
        };
        self.ended = read == 0;
        Ok(read > 0)
    }

    /// What stands after the last end of line, once the stream has ended.
    pub fn rest(&mut self) -> Option<Bytes> {
        self.lines.rest()
    }
}
