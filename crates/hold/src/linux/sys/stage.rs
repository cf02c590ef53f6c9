//! From the fork of a server to its `exec`.
//!
//! There are two processes. The *monitor* stays: it ends the server and all it started when its
//! lifeline is closed, which also happens when this program is killed, and it ends as the server
//! does. The other one becomes the server. A namespace of process numbers can only be entered by
//! forking, so the monitor costs nothing more there.

use std::ffi::CString;
use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd, RawFd};

use super::{check, check_long, close_from, last, notify, raw_fork, send_fd};

/// All that is needed after the fork, prepared before it.
pub(crate) struct Stage {
    /// The sandbox to enter: its init, and the namespaces that it has of its own.
    pub enter: Option<(OwnedFd, libc::c_int)>,
    /// As seen from within.
    pub cwd: CString,
    /// The monitor kills when the other end of this is closed.
    pub lifeline: OwnedFd,
    /// The filter to install, and the socket that its listener is sent to.
    pub filter: Option<(Vec<libc::sock_filter>, OwnedFd)>,
}

/// What the server's first message says.
pub(crate) const LISTENING: [u8; 8] = *b"listener";

/// What a server may do as root of its own user namespace: what needs no trust in it. To mount
/// is not among them, so what is read-only stays so.
const KEPT_CAPABILITIES: [libc::c_ulong; 9] = [
    0,  // CHOWN
    1,  // DAC_OVERRIDE
    2,  // DAC_READ_SEARCH
    3,  // FOWNER
    4,  // FSETID
    5,  // KILL
    6,  // SETGID
    7,  // SETUID
    10, // NET_BIND_SERVICE
];
const LAST_CAPABILITY: libc::c_ulong = 63;

impl Stage {
    /// Has the command go through here between its fork and its `exec`.
    pub(crate) fn attach(self, command: &mut tokio::process::Command) {
        // SAFETY: `run` makes system calls only: no allocation, no lock, no panic.
        unsafe {
            command.pre_exec(move || self.run());
        }
    }

    /// Returns in the server only.
    fn run(&self) -> io::Result<()> {
        // SAFETY: calls that take integers, and a path that lives as long as `self`. After the
        // fork there is one thread, as the kernel asks for to enter a user namespace.
        unsafe {
            // Out of reach of the terminal's Ctrl-C: that is for this program alone.
            check(libc::setsid())?;
            match &self.enter {
                Some((init, namespaces)) => {
                    check(libc::setns(init.as_raw_fd(), *namespaces))?;
                }
                // Who is left behind by the server then becomes the monitor's child.
                None => {
                    check(libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0))?;
                }
            }
            let server = raw_fork(0)?;
            if server != 0 {
                monitor(server, self.lifeline.as_raw_fd());
            }
            check(libc::setsid())?;
            check(libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL, 0, 0, 0))?;
            check(libc::chdir(self.cwd.as_ptr()))?;
            if self.enter.is_some() {
                for capability in 0..=LAST_CAPABILITY {
                    if !KEPT_CAPABILITIES.contains(&capability) {
                        // Fails for those that this kernel does not know.
                        libc::prctl(libc::PR_CAPBSET_DROP, capability, 0, 0, 0);
                    }
                }
            }
        }
        if let Some((program, socket)) = &self.filter {
            match notify::install(program) {
                Ok(listener) => {
                    let sent = send_fd(socket.as_raw_fd(), LISTENING, Some(listener));
                    // SAFETY: it was made here and is not used any more. A server that held it
                    // would never be seen to end.
                    unsafe { libc::close(listener) };
                    sent?;
                }
                // Not fatal: the server then runs without being seen, and that is said.
                Err(e) => {
                    let errno = e.raw_os_error().unwrap_or(libc::EINVAL);
                    send_fd(socket.as_raw_fd(), i64::from(errno).to_ne_bytes(), None)?;
                }
            }
        }
        Ok(())
    }
}

/// Waits for the end of the server or of the lifeline, kills what is left, and ends as the server
/// did.
fn monitor(server: libc::pid_t, lifeline: RawFd) -> ! {
    // SAFETY: calls on integers and locals. Nothing of the memory that was copied by the fork is
    // used, and every path ends in `_exit`.
    unsafe {
        libc::dup2(lifeline, 0);
        close_from(1);
        let pidfd = libc::syscall(libc::SYS_pidfd_open, server, 0) as RawFd;
        let mut watched = [
            libc::pollfd {
                fd: 0,
                events: libc::POLLIN,
                revents: 0,
            },
            libc::pollfd {
                fd: pidfd,
                events: libc::POLLIN,
                revents: 0,
            },
        ];
        while libc::poll(watched.as_mut_ptr(), 2, -1) == -1 && last_is(libc::EINTR) {}
        // Its number is not given to another before it is waited for.
        libc::kill(-server, libc::SIGKILL);
        libc::kill(server, libc::SIGKILL);
        let mut status = 0;
        while libc::waitpid(server, &mut status, 0) == -1 && last_is(libc::EINTR) {}
        kill_children();
        if libc::WIFSIGNALED(status) {
            let signal = libc::WTERMSIG(status);
            let none = libc::rlimit {
                rlim_cur: 0,
                rlim_max: 0,
            };
            libc::setrlimit(libc::RLIMIT_CORE, &none);
            libc::signal(signal, libc::SIG_DFL);
            libc::kill(libc::getpid(), signal);
            libc::_exit(128 + signal);
        }
        libc::_exit(libc::WEXITSTATUS(status))
    }
}

/// Kills the orphans that the server left, and theirs, until there are none.
///
/// # Safety
/// Only in the monitor, which has no other children.
unsafe fn kill_children() {
    // A bound, for a kernel that cannot list children.
    for _ in 0..2000 {
        // SAFETY: a null status is allowed; the path is a literal; `buffer` is as long as is said.
        unsafe {
            let ended = libc::waitpid(-1, std::ptr::null_mut(), libc::WNOHANG);
            if ended > 0 {
                continue;
            }
            if ended == -1 {
                return;
            }
            let mut buffer = [0u8; 4096];
            let list = libc::open(
                c"/proc/thread-self/children".as_ptr(),
                libc::O_RDONLY | libc::O_CLOEXEC,
            );
            let length = libc::read(list, buffer.as_mut_ptr().cast(), buffer.len());
            libc::close(list);
            for pid in numbers(&buffer, length) {
                libc::kill(pid, libc::SIGKILL);
            }
            libc::usleep(1000);
        }
    }
}

/// The numbers in a text. One that may be cut off at the end is left for the next time.
fn numbers(text: &[u8], length: isize) -> impl Iterator<Item = libc::pid_t> {
    let length = usize::try_from(length).unwrap_or(0).min(text.len());
    let text = text.split_at(length).0;
    let whole = text.iter().rposition(|b| *b == b' ').unwrap_or(0);
    text.split_at(whole)
        .0
        .split(|b| *b == b' ')
        .filter_map(|word| {
            let mut value: libc::pid_t = 0;
            for byte in word {
                let digit = byte.checked_sub(b'0').filter(|d| *d < 10)?;
                value = value
                    .checked_mul(10)?
                    .checked_add(libc::pid_t::from(digit))?;
            }
            (value > 1).then_some(value)
        })
}

fn last_is(errno: libc::c_int) -> bool {
    last().raw_os_error() == Some(errno)
}

/// Whether a filter with a listener can be installed here. Forks, and the child ends at once.
pub(crate) fn try_filter(program: &[libc::sock_filter]) -> io::Result<()> {
    // SAFETY: the child makes system calls only and ends in `_exit`.
    unsafe {
        let child = raw_fork(0)?;
        if child == 0 {
            let code = match notify::install(program) {
                Ok(_) => 0,
                Err(e) => e.raw_os_error().unwrap_or(libc::EINVAL),
            };
            libc::_exit(code.clamp(0, 255));
        }
        let mut status = 0;
        while libc::waitpid(child, &mut status, 0) == -1 {
            if !last_is(libc::EINTR) {
                return Err(last());
            }
        }
        match libc::WEXITSTATUS(status) {
            0 if libc::WIFEXITED(status) => Ok(()),
            0 => Err(io::Error::other("the probe was killed")),
            errno => Err(io::Error::from_raw_os_error(errno)),
        }
    }
}

/// Whether the kernel knows the flag that lets a call go on (Linux 5.5), by its version of the
/// structures.
pub(crate) fn notification_sizes() -> io::Result<()> {
    let mut sizes = libc::seccomp_notif_sizes {
        seccomp_notif: 0,
        seccomp_notif_resp: 0,
        seccomp_data: 0,
    };
    // SAFETY: `sizes` is of the type that the operation fills in.
    check_long(unsafe {
        libc::syscall(
            libc::SYS_seccomp,
            libc::SECCOMP_GET_NOTIF_SIZES,
            0,
            &raw mut sizes,
        )
    })?;
    // A kernel with larger structures would write past ours.
    let fits = usize::from(sizes.seccomp_notif) <= size_of::<libc::seccomp_notif>()
        && usize::from(sizes.seccomp_notif_resp) <= size_of::<libc::seccomp_notif_resp>();
    if fits {
        Ok(())
    } else {
        Err(io::Error::other(
            "the kernel's notifications are larger than this program knows",
        ))
    }
}
