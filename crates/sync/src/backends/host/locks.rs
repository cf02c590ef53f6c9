//! Locks between processes.
//!
//! Each key has three bytes in one of a few files. The third is the lock proper. The second is a gate: a writer holds
//! both, a reader passes the gate and holds the third, shared. A writer that waits for readers holds the gate, so that no
//! new reader passes: it does not starve. The first is held, shared, by all who wait, so that nobody who comes later
//! takes what was just released before one of them has woken up.
//!
//! What is free is taken with one open file for all keys of this process. (The turn within the process has been taken
//! before: the kernel does not tell apart who of us holds a byte.) For what is not free, a thread opens the file anew and
//! blocks on it: the kernel has the queue, and knows when a holder dies. When the one who waits goes away, the thread
//! stays until it is woken, and closes its file. So that contention on many keys does not become many threads, there is a
//! limit, above which waiting is looking again every few milliseconds.

use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};
use tokio::time::sleep;

use super::range::{self, Kind};
use crate::backends::remote::Id;
use crate::local::shim::lock;
use crate::{Mode, Result};

/// Locks of one file are a list in the kernel: several files keep it short.
const FILES: u64 = 16;
const MAX_THREADS: usize = 32;
const STACK: usize = 256 << 10;

pub struct LockFiles {
    directory: PathBuf,
    files: Vec<File>,
    /// Readers of this process that hold a byte through the common file.
    readers: Mutex<HashMap<Place, usize>>,
    threads: Arc<Semaphore>,
}

/// Where a key is locked.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place {
    file: usize,
    /// The first of the three bytes.
    start: u64,
}

impl Place {
    pub fn of(id: &Id) -> Self {
        let mut bytes = [0; 8];
        bytes.copy_from_slice(&id[..8]);
        let number = u64::from_le_bytes(bytes);
        #[allow(clippy::cast_possible_truncation)] // less than FILES
        let file = (number % FILES) as usize;
        // Below 2^60, and a multiple of four.
        Self {
            file,
            start: number / FILES / 4 * 4,
        }
    }

    fn waiters(self) -> u64 {
        self.start
    }

    fn gate(self) -> u64 {
        self.start + 1
    }

    fn proper(self) -> u64 {
        self.start + 2
    }
}

/// A key that is held.
pub struct HeldPlace {
    locks: Arc<LockFiles>,
    place: Place,
    mode: Mode,
    /// The file that a thread waited with. Closing it releases.
    own: Option<Arc<Waiting>>,
}

impl Drop for HeldPlace {
    fn drop(&mut self) {
        if self.own.is_none() {
            self.locks.give_back(self.place, self.mode);
        }
    }
}

impl LockFiles {
    pub fn open(directory: PathBuf) -> io::Result<Self> {
        let files = (0..FILES as usize)
            .map(|number| super::open_file(&path(&directory, number)))
            .collect::<io::Result<_>>()?;
        let threads = Arc::new(Semaphore::new(MAX_THREADS));
        Ok(Self {
            directory,
            files,
            readers: Mutex::default(),
            threads,
        })
    }

    /// Waits for the place. The caller has its turn within this process.
    pub async fn lock(self: &Arc<Self>, place: Place, mode: Mode) -> Result<HeldPlace> {
        let mut pause = Duration::from_millis(1);
        loop {
            if let Some(held) = self.try_lock(place, mode)? {
                return Ok(held);
            }
            if let Ok(slot) = self.threads.clone().try_acquire_owned()
                && let Some(woken) = self.wait_in_thread(place, mode, slot)?
            {
                let own = Some(woken.file().await?);
                return Ok(HeldPlace {
                    locks: self.clone(),
                    place,
                    mode,
                    own,
                });
            }
            sleep(pause.mul_f64(0.5 + fastrand::f64())).await;
            pause = (pause * 2).min(Duration::from_millis(20));
        }
    }

    /// Takes it if nobody is in the way, and nobody waits.
    pub fn try_lock(self: &Arc<Self>, place: Place, mode: Mode) -> Result<Option<HeldPlace>> {
        let file = &self.files[place.file];
        if range::is_locked(file, place.waiters(), 1).map_err(super::failed)? {
            return Ok(None);
        }
        let taken = match mode {
            Mode::Exclusive => range::try_lock(file, Kind::Exclusive, place.gate(), 2),
            Mode::Shared => {
                let mut readers = lock(&self.readers);
                let taken = range::try_lock(file, Kind::Shared, place.gate(), 2);
                if let Ok(true) = taken {
                    range::unlock(file, place.gate(), 1);
                    *readers.entry(place).or_default() += 1;
                }
                taken
            }
        };
        let held = || HeldPlace {
            locks: self.clone(),
            place,
            mode,
            own: None,
        };
        Ok(taken.map_err(super::failed)?.then(held))
    }

    fn give_back(&self, place: Place, mode: Mode) {
        let file = &self.files[place.file];
        match mode {
            Mode::Exclusive => range::unlock(file, place.gate(), 2),
            Mode::Shared => {
                let mut readers = lock(&self.readers);
                if let Some(count) = readers.get_mut(&place) {
                    *count -= 1;
                    if *count == 0 {
                        readers.remove(&place);
                        range::unlock(file, place.proper(), 1);
                    }
                }
            }
        }
    }

    /// `None` if there is no thread to be had.
    fn wait_in_thread(
        self: &Arc<Self>,
        place: Place,
        mode: Mode,
        slot: OwnedSemaphorePermit,
    ) -> Result<Option<Woken>> {
        let file = super::open_file(&path(&self.directory, place.file)).map_err(super::failed)?;
        let waiting = Arc::new(Waiting {
            file,
            place,
            abandoned: AtomicBool::new(false),
        });
        let (send, receive) = oneshot::channel();
        let thread = std::thread::Builder::new()
            .name("toctou-lock".into())
            .stack_size(STACK);
        let started = thread.spawn({
            let waiting = waiting.clone();
            move || {
                // Nobody listening closes the file.
                let _ = send.send(waiting.block(mode).map(|()| waiting));
                drop(slot);
            }
        });
        Ok(started.ok().map(|_| Woken {
            waiting,
            receive,
            received: false,
        }))
    }
}

fn path(directory: &std::path::Path, file: usize) -> PathBuf {
    directory.join(format!("locks.{file}"))
}

/// A file that a thread waits with.
struct Waiting {
    file: File,
    place: Place,
    abandoned: AtomicBool,
}

impl Waiting {
    fn block(&self, mode: Mode) -> io::Result<()> {
        let Self { file, place, .. } = self;
        range::lock(file, Kind::Shared, place.waiters(), 1)?;
        // Readers too: only one of those who wait is at the gate.
        range::lock(file, Kind::Exclusive, place.gate(), 1)?;
        if self.abandoned.load(Ordering::SeqCst) {
            return Ok(());
        }
        match mode {
            Mode::Exclusive => range::lock(file, Kind::Exclusive, place.proper(), 1)?,
            Mode::Shared => {
                range::lock(file, Kind::Shared, place.proper(), 1)?;
                range::unlock(file, place.gate(), 1);
            }
        }
        range::unlock(file, place.waiters(), 1);
        Ok(())
    }

    /// Gets out of the way of others. The thread may still be blocked: if it gets the lock, it closes the file.
    fn abandon(&self) {
        self.abandoned.store(true, Ordering::SeqCst);
        range::unlock(&self.file, self.place.waiters(), 2);
    }
}

/// The end of a thread's wait.
struct Woken {
    waiting: Arc<Waiting>,
    receive: oneshot::Receiver<io::Result<Arc<Waiting>>>,
    received: bool,
}

impl Woken {
    async fn file(mut self) -> Result<Arc<Waiting>> {
        let woken = (&mut self.receive).await;
        let waiting = woken.unwrap_or_else(|_| Err(io::Error::other("the waiting thread is gone")));
        self.received = waiting.is_ok();
        waiting.map_err(super::failed)
    }
}

impl Drop for Woken {
    fn drop(&mut self) {
        if !self.received {
            self.waiting.abandon();
        }
    }
}
