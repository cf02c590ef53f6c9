//! Writes lines.

use std::fs::File;
use std::io::{self, Write as _};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::net::UnixStream;
use tokio::net::unix::pipe;
use tokio::sync::Notify;

pub(super) enum Sink {
    Pipe(pipe::Sender),
    Socket(UnixStream),
    Other(File),
}

/// A stream that messages are written to, from anywhere and without waiting.
///
/// Messages are put into a buffer and written together at the next [`flush`].
/// What the reader does not take at once is written when it does. Whoever
/// produces messages asks [`ready`] before the next, so that the buffer stays
/// bounded by its limit and one message of each producer.
///
/// [`flush`]: Self::flush
/// [`ready`]: Self::ready
pub struct Outlet {
    sink: Mutex<Option<Arc<Sink>>>,
    buffer: Mutex<Buffer>,
    /// Somebody is writing the rest as the reader takes it.
    draining: AtomicBool,
    room: Notify,
    /// Somebody wants it flushed, soon.
    asked: Notify,
    limit: usize,
}

#[derive(Default)]
struct Buffer {
    bytes: Vec<u8>,
    written: usize,
    broken: bool,
}

impl Buffer {
    fn left(&self) -> usize {
        self.bytes.len() - self.written
    }
}

impl Outlet {
    pub(super) fn new(sink: Sink, limit: usize) -> Arc<Self> {
        Arc::new(Self {
            sink: Mutex::new(Some(Arc::new(sink))),
            buffer: Mutex::default(),
            draining: AtomicBool::new(false),
            room: Notify::new(),
            asked: Notify::new(),
            limit,
        })
    }

    fn buffer(&self) -> MutexGuard<'_, Buffer> {
        self.buffer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn sink(&self) -> Option<Arc<Sink>> {
        self.sink
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Adds a message; false if nobody reads any more.
    pub fn push(&self, message: &[u8]) -> bool {
        let mut buffer = self.buffer();
        if buffer.broken {
            return false;
        }
        buffer.bytes.reserve(message.len() + 1);
        buffer.bytes.extend_from_slice(message);
        buffer.bytes.push(b'\n');
        true
    }

    /// Writes what is there.
    pub fn flush(self: &Arc<Self>) {
        if self.draining.load(Ordering::Acquire) {
            return;
        }
        let Some(sink) = self.sink() else { return };
        if !self.write_some(&sink) && !self.draining.swap(true, Ordering::AcqRel) {
            let outlet = Arc::clone(self);
            tokio::spawn(async move { outlet.drain(&sink).await });
        }
    }

    /// Has it flushed once those who are about to add messages have done so:
    /// connections that were heard together share one write. Needs
    /// [`flush_as_asked`](Self::flush_as_asked) to be running.
    pub fn flush_soon(&self) {
        self.asked.notify_one();
    }

    /// Flushes whenever that was asked for, until the stream is closed.
    pub async fn flush_as_asked(self: Arc<Self>) {
        loop {
            self.asked.notified().await;
            if self.buffer().broken {
                return;
            }
            self.flush();
        }
    }

    /// Adds a message and writes it.
    pub fn send(self: &Arc<Self>, message: &[u8]) -> bool {
        let sent = self.push(message);
        self.flush();
        sent
    }

    /// Waits while the reader is behind.
    pub async fn ready(&self) {
        self.until(|buffer| buffer.left() <= self.limit).await;
    }

    /// Waits until everything is written, or nobody reads any more.
    pub async fn drained(&self) {
        self.until(|buffer| buffer.left() == 0).await;
    }

    async fn until(&self, done: impl Fn(&Buffer) -> bool) {
        loop {
            let room = self.room.notified();
            tokio::pin!(room);
            room.as_mut().enable();
            {
                let buffer = self.buffer();
                if buffer.broken || done(&buffer) {
                    return;
                }
            }
            room.await;
        }
    }

    /// Closes the stream once the buffer is written.
    pub async fn close(&self) {
        self.drained().await;
        self.break_off();
    }

    /// Closes the stream at once.
    pub fn break_off(&self) {
        self.buffer().broken = true;
        self.sink
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        self.room.notify_waiters();
        self.asked.notify_one();
    }

    /// True if nothing is left to write.
    fn write_some(&self, sink: &Sink) -> bool {
        let mut buffer = self.buffer();
        while buffer.left() > 0 && !buffer.broken {
            let rest = &buffer.bytes[buffer.written..];
            let wrote = match sink {
                Sink::Pipe(pipe) => pipe.try_write(rest),
                Sink::Socket(socket) => socket.try_write(rest),
                // A file does not block, and a terminal is a person.
                Sink::Other(file) => {
                    let mut file: &File = file;
                    file.write(rest)
                }
            };
            match wrote {
                Ok(count) => buffer.written += count,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return false,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => buffer.broken = true,
            }
        }
        if buffer.bytes.capacity() > 1 << 20 {
            buffer.bytes = Vec::new();
        } else {
            buffer.bytes.clear();
        }
        buffer.written = 0;
        drop(buffer);
        self.room.notify_waiters();
        true
    }

    async fn drain(self: Arc<Self>, sink: &Sink) {
        loop {
            let writable = async {
                match sink {
                    Sink::Pipe(pipe) => pipe.writable().await,
                    Sink::Socket(socket) => socket.writable().await,
                    Sink::Other(_) => Ok(()),
                }
            };
            // Whoever breaks it off wants it closed, whether its reader takes the rest or not.
            let writable = tokio::select! {
                writable = writable => writable,
                () = self.until(|_| false) => Ok(()),
            };
            if writable.is_err() {
                self.buffer().broken = true;
            }
            let done = self.write_some(sink);
            if done {
                self.draining.store(false, Ordering::Release);
                // Somebody may have added a message since, and left it to us.
                if self.buffer().left() == 0 || self.draining.swap(true, Ordering::AcqRel) {
                    return;
                }
            } else {
                // The buffer shrinks as it is written; producers may go on.
                let mut buffer = self.buffer();
                if buffer.written > 1 << 20 {
                    let written = std::mem::take(&mut buffer.written);
                    buffer.bytes.drain(..written);
                }
                drop(buffer);
                self.room.notify_waiters();
            }
        }
    }
}
