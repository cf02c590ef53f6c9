//! Locks on bytes of a file, owned by the open file (`F_OFD_SETLK`), not by the process.
//!
//! A byte can be locked far beyond the end of a file, so that one file has a lock for every key and none has to be
//! created, cleaned up or kept open per key. The kernel releases them when the file is closed, however that comes about.

use std::fs::File;
use std::io;

use nix::errno::Errno;
use nix::fcntl::{FcntlArg, fcntl};
use nix::libc;

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Shared,
    Exclusive,
}

impl Kind {
    fn raw(self) -> i32 {
        match self {
            Self::Shared => libc::F_RDLCK,
            Self::Exclusive => libc::F_WRLCK,
        }
    }
}

fn description(kind: i32, start: u64, length: u64) -> libc::flock {
    // All values fit: kinds are 0 to 2, and starts are below 2^60.
    #[allow(clippy::cast_possible_truncation, clippy::cast_possible_wrap)]
    libc::flock {
        l_type: kind as _,
        l_whence: libc::SEEK_SET as _,
        l_start: start as _,
        l_len: length as _,
        l_pid: 0,
    }
}

/// Locks if nobody else is in the way.
pub fn try_lock(file: &File, kind: Kind, start: u64, length: u64) -> io::Result<bool> {
    match fcntl(
        file,
        FcntlArg::F_OFD_SETLK(&description(kind.raw(), start, length)),
    ) {
        Ok(_) => Ok(true),
        Err(Errno::EAGAIN | Errno::EACCES) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Locks, and blocks the thread until it can.
pub fn lock(file: &File, kind: Kind, start: u64, length: u64) -> io::Result<()> {
    loop {
        match fcntl(
            file,
            FcntlArg::F_OFD_SETLKW(&description(kind.raw(), start, length)),
        ) {
            Ok(_) => return Ok(()),
            Err(Errno::EINTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// Cannot fail in a way that matters: what cannot be unlocked is unlocked when the file is closed.
pub fn unlock(file: &File, start: u64, length: u64) {
    let _ = fcntl(
        file,
        FcntlArg::F_OFD_SETLK(&description(libc::F_UNLCK, start, length)),
    );
}

/// True if somebody else, not this open file, has locked it.
pub fn is_locked(file: &File, start: u64, length: u64) -> io::Result<bool> {
    let mut found = description(libc::F_WRLCK, start, length);
    fcntl(file, FcntlArg::F_OFD_GETLK(&mut found))?;
    Ok(i32::from(found.l_type) != libc::F_UNLCK)
}
