//! One thread for each launched server answers for its system calls.
//!
//! The thread never waits for anyone: a held call is simply not answered yet, and a delayed one is
//! answered when its time has come, so the server's other threads are served meanwhile. It ends
//! when the last process under the filter is gone, and the kernel is who says so.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::decode::{Territory, decode};
use super::sys::stage::LISTENING;
use super::sys::{self, notify};
use super::tracee::Tracee;
use crate::event::ProcessId;
use crate::supervisor::{Resume, Supervisor, Verdict};

/// What came of the attempt to install the filter: for [`Process::blind`](crate::Process::blind).
pub(crate) type Installed = tokio::sync::oneshot::Receiver<Result<(), String>>;

struct Waiting {
    listener: Arc<OwnedFd>,
    id: u64,
}

impl Resume for Waiting {
    fn resume(self: Box<Self>) {
        notify::go_on(self.listener.as_fd(), self.id);
    }
}

/// Starts the thread. It has to run before the server does: even a server that cannot be started
/// makes a call that has to be answered.
pub(crate) fn start(
    socket: OwnedFd,
    supervisor: Supervisor,
    process: ProcessId,
    territory: Territory,
) -> io::Result<Installed> {
    let (tell, installed) = tokio::sync::oneshot::channel();
    thread::Builder::new()
        .name(format!("toctou-hold-{}", process.0))
        .stack_size(256 << 10)
        .spawn(move || {
            let listener = match sys::receive_fd(socket.as_fd()) {
                Ok(Some((LISTENING, Some(listener)))) => listener,
                Ok(Some((errno, _))) => {
                    let errno = i64::from_ne_bytes(errno) as i32;
                    let _ = tell.send(Err(io::Error::from_raw_os_error(errno).to_string()));
                    return;
                }
                // It was never started; who tried says so.
                Ok(None) | Err(_) => return,
            };
            drop(socket);
            let _ = tell.send(Ok(()));
            let mut watch = Watch {
                listener: Arc::new(listener),
                supervisor,
                process,
                territory,
                later: BinaryHeap::new(),
                processes: HashMap::new(),
            };
            watch.run();
            watch.supervisor.process_ended(process);
        })?;
    Ok(installed)
}

struct Watch {
    listener: Arc<OwnedFd>,
    supervisor: Supervisor,
    process: ProcessId,
    territory: Territory,
    /// Calls that go on at a time.
    later: BinaryHeap<Reverse<(Instant, u64)>>,
    /// The process of each thread that was seen. Grows with the number of threads of one server.
    processes: HashMap<u32, u32>,
}

impl Watch {
    fn run(&mut self) {
        loop {
            self.answer_due();
            let timeout = self.until_next();
            let mut watched = [PollFd::new(&self.listener, PollFlags::IN)];
            match poll(&mut watched, timeout.as_ref()) {
                Ok(0) | Err(rustix::io::Errno::INTR) => continue,
                Ok(_) => {}
                Err(_) => return,
            }
            let got = watched[0].revents();
            if got.contains(PollFlags::IN) {
                match notify::receive(self.listener.as_fd()) {
                    Ok(Some(call)) => self.answer(&call),
                    Ok(None) => {}
                    Err(_) => return,
                }
            } else if got.intersects(PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL) {
                return;
            }
        }
    }

    fn answer(&mut self, call: &notify::Notification) {
        let draft = decode(call, &self.territory);
        // What was read was read from this call, and not from a thread that got its number.
        if !notify::is_valid(self.listener.as_fd(), call.id) {
            return;
        }
        let Some(mut draft) = draft else {
            notify::go_on(self.listener.as_fd(), call.id);
            return;
        };
        draft.pid = *self
            .processes
            .entry(call.tid)
            .or_insert_with(|| Tracee { tid: call.tid }.process().unwrap_or(call.tid));
        let verdict = self.supervisor.arrive(self.process, draft, || {
            Box::new(Waiting {
                listener: Arc::clone(&self.listener),
                id: call.id,
            })
        });
        match verdict {
            Verdict::Go => notify::go_on(self.listener.as_fd(), call.id),
            Verdict::After(delay) => self.later.push(Reverse((Instant::now() + delay, call.id))),
            Verdict::Held => {}
        }
    }

    fn answer_due(&mut self) {
        let now = Instant::now();
        while let Some(Reverse((due, id))) = self.later.peek().copied() {
            if due > now {
                return;
            }
            self.later.pop();
            notify::go_on(self.listener.as_fd(), id);
        }
    }

    fn until_next(&self) -> Option<Timespec> {
        let Reverse((due, _)) = self.later.peek()?;
        let left = due.saturating_duration_since(Instant::now());
        // Rounded up, so that it is due after the wait.
        Timespec::try_from(left + Duration::from_micros(1)).ok()
    }
}
