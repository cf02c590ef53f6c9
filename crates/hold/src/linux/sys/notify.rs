//! seccomp user notification: to install a filter, and to answer for it.

use std::io;
use std::os::fd::{AsRawFd as _, BorrowedFd, RawFd};

use super::{check, check_long};

/// A system call that waits for an answer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Notification {
    pub id: u64,
    /// The thread, as this process sees it.
    pub tid: u32,
    pub nr: i32,
    pub args: [u64; 6],
}

/// Installs the filter for this thread and all it will start, and gives the descriptor that its
/// notifications come from. Async-signal-safe.
pub(super) fn install(program: &[libc::sock_filter]) -> io::Result<RawFd> {
    let program = libc::sock_fprog {
        len: u16::try_from(program.len()).map_err(|_| io::Error::from_raw_os_error(libc::E2BIG))?,
        filter: program.as_ptr().cast_mut(),
    };
    // SAFETY: takes integers.
    check(unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) })?;
    // A signal must not take back a notification that was received: Go sends one to a thread
    // that runs for long, and the call would come again as another event. Linux 5.19.
    let killable =
        libc::SECCOMP_FILTER_FLAG_NEW_LISTENER | libc::SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV;
    for flags in [killable, libc::SECCOMP_FILTER_FLAG_NEW_LISTENER] {
        // SAFETY: `program` names a slice of the given length that lives until the kernel has
        // copied it.
        let result = check_long(unsafe {
            libc::syscall(
                libc::SYS_seccomp,
                libc::SECCOMP_SET_MODE_FILTER,
                flags,
                &raw const program,
            )
        });
        match result {
            Ok(fd) => return Ok(fd as RawFd),
            Err(e) if e.raw_os_error() == Some(libc::EINVAL) && flags == killable => {}
            Err(e) => return Err(e),
        }
    }
    Err(io::Error::from_raw_os_error(libc::EINVAL))
}

/// Waits for a call. `None` if it was gone before it could be taken.
pub(crate) fn receive(listener: BorrowedFd<'_>) -> io::Result<Option<Notification>> {
    // SAFETY: all zeros is what the kernel asks for, and plain data.
    let mut raw: libc::seccomp_notif = unsafe { std::mem::zeroed() };
    // SAFETY: `raw` is of the type that the request is made for.
    let result = check(unsafe {
        libc::ioctl(
            listener.as_raw_fd(),
            libc::SECCOMP_IOCTL_NOTIF_RECV as _,
            &raw mut raw,
        )
    });
    match result {
        Ok(_) => Ok(Some(Notification {
            id: raw.id,
            tid: raw.pid,
            nr: raw.data.nr,
            args: raw.data.args,
        })),
        Err(e) if matches!(e.raw_os_error(), Some(libc::ENOENT | libc::EINTR)) => Ok(None),
        Err(e) => Err(e),
    }
}

/// Whether the call still waits: what was read from its process before is then about it.
pub(crate) fn is_valid(listener: BorrowedFd<'_>, id: u64) -> bool {
    // SAFETY: `id` is the `u64` that the request reads.
    check(unsafe {
        libc::ioctl(
            listener.as_raw_fd(),
            libc::SECCOMP_IOCTL_NOTIF_ID_VALID as _,
            &raw const id,
        )
    })
    .is_ok()
}

/// Lets the call go on. That it is gone by now is no error.
pub(crate) fn go_on(listener: BorrowedFd<'_>, id: u64) {
    let response = libc::seccomp_notif_resp {
        id,
        val: 0,
        error: 0,
        flags: libc::SECCOMP_USER_NOTIF_FLAG_CONTINUE as u32,
    };
    // SAFETY: `response` is of the type that the request reads. The kernel runs the call with the
    // arguments it was made with; it is never used to refuse one, so that a thread that changes
    // its path meanwhile gains nothing.
    unsafe {
        libc::ioctl(
            listener.as_raw_fd(),
            libc::SECCOMP_IOCTL_NOTIF_SEND as _,
            &raw const response,
        );
    }
}
