//! The kernel's side: the only module with `unsafe` code.
//!
//! Three rules keep it small enough to be read in one go:
//!
//! - Code that runs between `fork` and `exec` ([`stage`], [`init`]) makes system calls and nothing
//!   else. It allocates nothing, takes no lock and cannot panic: all it needs is prepared before.
//! - Every pointer that is given to the kernel points to a local or to prepared data that outlives
//!   the call, with its length next to it.
//! - Decisions are elsewhere. Here are calls.

#![allow(unsafe_code)]

pub(crate) mod init;
pub(crate) mod notify;
pub(crate) mod socket;
pub(crate) mod stage;

use std::io;
use std::os::fd::{AsRawFd as _, BorrowedFd, FromRawFd as _, OwnedFd, RawFd};

/// The error of the last call.
fn last() -> io::Error {
    io::Error::last_os_error()
}

/// `-1` is an error, anything else is not.
fn check(result: libc::c_int) -> io::Result<libc::c_int> {
    if result == -1 {
        Err(last())
    } else {
        Ok(result)
    }
}

fn check_long(result: libc::c_long) -> io::Result<libc::c_long> {
    if result == -1 {
        Err(last())
    } else {
        Ok(result)
    }
}

/// Takes a descriptor that the kernel has just given.
fn own(fd: libc::c_long) -> OwnedFd {
    // SAFETY: callers pass the result of a successful call that makes a descriptor, which nobody
    // else knows. Descriptors fit into an int.
    unsafe { OwnedFd::from_raw_fd(fd as RawFd) }
}

/// A descriptor that stands for a process, whatever becomes of its number.
pub(crate) fn pidfd_open(pid: libc::pid_t) -> io::Result<OwnedFd> {
    // SAFETY: takes two integers.
    check_long(unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) }).map(own)
}

/// `fork`, into new namespaces if any are given. Not by way of the C library, which would run
/// handlers and take locks that other threads may hold.
///
/// # Safety
/// The child may only make system calls until it ends or runs another program.
unsafe fn raw_fork(namespaces: libc::c_int) -> io::Result<libc::pid_t> {
    let flags = libc::c_long::from(namespaces | libc::SIGCHLD);
    // SAFETY: no stack is given, so the child goes on with a copy of this one, as after `fork`.
    // The order of the last two arguments, which differs between machines, does not matter.
    check_long(unsafe { libc::syscall(libc::SYS_clone, flags, 0, 0, 0, 0) })
        .map(|pid| pid as libc::pid_t)
}

/// Closes all descriptors from one on. Async-signal-safe.
fn close_from(first: libc::c_uint) {
    // SAFETY: called only in a child that uses none of these descriptors afterwards.
    unsafe {
        if libc::syscall(libc::SYS_close_range, first, libc::c_uint::MAX, 0) == -1 {
            // Linux before 5.9. Nobody has more than this open that would matter here.
            for fd in first..4096 {
                libc::close(fd as libc::c_int);
            }
        }
    }
}

/// Copies memory of another process. Stops at the first page that cannot be read, and says how
/// much it got.
pub(crate) fn read_memory(pid: libc::pid_t, address: u64, into: &mut [u8]) -> usize {
    const PAGE: usize = 4096;
    let mut done = 0;
    while done < into.len() {
        let Some(from) = address.checked_add(done as u64) else {
            break;
        };
        // Page by page: a longer piece fails as a whole if its end is not mapped.
        let in_page = PAGE - (from as usize % PAGE);
        let n = in_page.min(into.len() - done);
        let local = libc::iovec {
            iov_base: into[done..].as_mut_ptr().cast(),
            iov_len: n,
        };
        let remote = libc::iovec {
            iov_base: from as *mut libc::c_void,
            iov_len: n,
        };
        // SAFETY: `local` covers `n` bytes of `into`, which is borrowed for writing. `remote` is
        // an address of the other process and is checked by the kernel.
        let got = unsafe { libc::process_vm_readv(pid, &local, 1, &remote, 1, 0) };
        match usize::try_from(got) {
            Ok(got) if got > 0 => done += got,
            _ => break,
        }
    }
    done
}

/// Receives a message of up to 8 bytes, and a descriptor if one came with it. `None` at the end.
pub(crate) fn receive_fd(socket: BorrowedFd<'_>) -> io::Result<Option<([u8; 8], Option<OwnedFd>)>> {
    let mut data = [0u8; 8];
    let mut control = ControlBuffer::default();
    let mut piece = libc::iovec {
        iov_base: data.as_mut_ptr().cast(),
        iov_len: data.len(),
    };
    let mut message = control.header(&mut piece);
    let got = loop {
        // SAFETY: `message` points to `piece`, `data` and `control`, which live here.
        let got =
            unsafe { libc::recvmsg(socket.as_raw_fd(), &mut message, libc::MSG_CMSG_CLOEXEC) };
        if got >= 0 || last().kind() != io::ErrorKind::Interrupted {
            break got;
        }
    };
    if got < 0 {
        return Err(last());
    }
    if got == 0 {
        return Ok(None);
    }
    // SAFETY: the kernel has filled in `message`; the macros stay within `control`. A descriptor
    // that came is ours alone.
    let fd = unsafe {
        let header = libc::CMSG_FIRSTHDR(&message);
        if !header.is_null()
            && (*header).cmsg_level == libc::SOL_SOCKET
            && (*header).cmsg_type == libc::SCM_RIGHTS
        {
            let fd = libc::CMSG_DATA(header).cast::<RawFd>().read_unaligned();
            Some(OwnedFd::from_raw_fd(fd))
        } else {
            None
        }
    };
    Ok(Some((data, fd)))
}

/// Sends 8 bytes, and a descriptor with them. Async-signal-safe.
fn send_fd(socket: RawFd, mut data: [u8; 8], fd: Option<RawFd>) -> io::Result<()> {
    let mut control = ControlBuffer::default();
    let mut piece = libc::iovec {
        iov_base: data.as_mut_ptr().cast(),
        iov_len: data.len(),
    };
    let mut message = control.header(&mut piece);
    // SAFETY: as in `receive_fd`. `control` has room for one descriptor, and its header is within.
    let sent = unsafe {
        if let Some(fd) = fd {
            let header = libc::CMSG_FIRSTHDR(&message);
            (*header).cmsg_level = libc::SOL_SOCKET;
            (*header).cmsg_type = libc::SCM_RIGHTS;
            (*header).cmsg_len = libc::CMSG_LEN(size_of::<RawFd>() as libc::c_uint) as _;
            libc::CMSG_DATA(header).cast::<RawFd>().write_unaligned(fd);
        } else {
            message.msg_control = std::ptr::null_mut();
            message.msg_controllen = 0;
        }
        libc::sendmsg(socket, &message, libc::MSG_NOSIGNAL)
    };
    if sent < 0 { Err(last()) } else { Ok(()) }
}

/// Room for one descriptor in a message, aligned as its header has to be.
#[derive(Default)]
#[repr(align(8))]
struct ControlBuffer([u8; 32]);

impl ControlBuffer {
    fn header(&mut self, piece: &mut libc::iovec) -> libc::msghdr {
        // SAFETY: all zeros is a message without anything.
        let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
        message.msg_iov = piece;
        message.msg_iovlen = 1;
        message.msg_control = self.0.as_mut_ptr().cast();
        // SAFETY: computes a length.
        message.msg_controllen =
            unsafe { libc::CMSG_SPACE(size_of::<RawFd>() as libc::c_uint) } as _;
        message
    }
}
