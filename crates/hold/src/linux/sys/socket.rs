//! Sockets of a sandbox's network, for use outside of it: a socket stays in the network in which
//! it was made, whoever holds it.

use std::io;
use std::os::fd::{AsFd as _, AsRawFd as _, BorrowedFd, OwnedFd, RawFd};
use std::os::unix::net::UnixStream;

use super::init::reap;
use super::{check, raw_fork, receive_fd, send_fd};

/// A new TCP socket in the network of the sandbox with this init. A user namespace can only be
/// entered by a process with one thread, so a child makes it and hands it over.
pub(crate) fn make(
    init: BorrowedFd<'_>,
    namespaces: libc::c_int,
    family: libc::c_int,
) -> io::Result<OwnedFd> {
    let (here, there) = UnixStream::pair()?;
    let enter = namespaces & (libc::CLONE_NEWUSER | libc::CLONE_NEWNET);
    // SAFETY: the child makes system calls on integers only, and ends in `_exit`.
    let child = unsafe {
        let child = raw_fork(0)?;
        if child == 0 {
            let made = in_child(init.as_raw_fd(), enter, family, there.as_raw_fd());
            libc::_exit(libc::c_int::from(made.is_err()));
        }
        child
    };
    drop(there);
    let received = receive_fd(here.as_fd());
    reap(child);
    match received? {
        Some((_, Some(socket))) => Ok(socket),
        Some((errno, None)) => {
            let errno = i64::from_ne_bytes(errno);
            Err(io::Error::from_raw_os_error(errno as i32))
        }
        None => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}

/// Async-signal-safe, as all that it calls.
fn in_child(init: RawFd, enter: libc::c_int, family: libc::c_int, report: RawFd) -> io::Result<()> {
    // SAFETY: calls that take integers.
    let made = unsafe {
        check(libc::setns(init, enter)).and_then(|_| {
            let kind = libc::SOCK_STREAM | libc::SOCK_CLOEXEC;
            check(libc::socket(family, kind, 0))
        })
    };
    match made {
        Ok(socket) => send_fd(report, [0; 8], Some(socket)),
        Err(e) => {
            let errno = e.raw_os_error().unwrap_or(libc::EIO);
            send_fd(report, i64::from(errno).to_ne_bytes(), None)
        }
    }
}
