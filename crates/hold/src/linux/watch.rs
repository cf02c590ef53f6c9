//! One thread for each launched server answers for its system calls.
//!
//! The thread never waits for anyone: a held call is simply not answered yet, and the server's
//! other threads are served meanwhile. It ends when the last process under the filter is gone, and
//! the kernel is who says so.

use std::collections::HashMap;
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::sync::Arc;
use std::thread;

use rustix::event::{PollFd, PollFlags, poll};

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
    /// The process of each thread that was seen. Grows with the number of threads of one server.
    processes: HashMap<u32, u32>,
}

impl Watch {
    fn run(&mut self) {
        loop {
            let mut watched = [PollFd::new(&self.listener, PollFlags::IN)];
            match poll(&mut watched, None) {
                Err(rustix::io::Errno::INTR) => continue,
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
        if verdict == Verdict::Go {
            notify::go_on(self.listener.as_fd(), call.id);
        }
    }
}
