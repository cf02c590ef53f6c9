//! The system calls that touch files, and how to read each. To add one, add its line.
//!
//! Machines with an old kernel interface (x86-64) have the calls without `at`, too.

use libc::c_long;

/// Which of its arguments say what. Numbers are positions of arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
// Some forms are those of old calls only.
#[cfg_attr(not(target_arch = "x86_64"), allow(dead_code))]
pub(crate) enum Form {
    /// A path, relative to the current folder.
    Path(usize),
    /// A folder and a path relative to it.
    PathAt(usize, usize),
    TwoPaths(usize, usize),
    TwoPathsAt(usize, usize, usize, usize),
    /// The text of a link, and the link's own folder and path.
    Symlink(usize, Option<usize>, usize),
    /// Folder, path, flags.
    Open(Option<usize>, usize, usize),
    /// Folder, path, a structure with the flags.
    OpenHow(usize, usize, usize),
    /// A path and the new length.
    Truncate(usize, usize),
    /// An open file, and how many bytes are written to it.
    Fd(usize, Option<usize>),
    /// An open file, pieces to write and their number.
    FdPieces(usize, usize, usize),
    /// An open file and an operation on its mode.
    Flock(usize, usize),
    /// An open file, a command and a structure that says what is locked.
    Fcntl(usize, usize, usize),
    /// A folder and a path that is only looked at. Told on request, as are opens for reading.
    Look(Option<usize>, usize),
    /// A folder that is listed.
    List(usize),
    /// Refused: work that is queued there is not seen.
    Refused,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Call {
    pub nr: c_long,
    pub name: &'static str,
    pub form: Form,
}

const fn call(nr: c_long, name: &'static str, form: Form) -> Call {
    Call { nr, name, form }
}

/// `fchmodat` with flags, Linux 6.6. The same number everywhere.
const FCHMODAT2: c_long = 452;

const EVERYWHERE: &[Call] = &[
    call(libc::SYS_write, "write", Form::Fd(0, Some(2))),
    call(libc::SYS_openat, "openat", Form::Open(Some(0), 1, 2)),
    call(libc::SYS_fcntl, "fcntl", Form::Fcntl(0, 1, 2)),
    call(libc::SYS_pwrite64, "pwrite64", Form::Fd(0, Some(2))),
    call(libc::SYS_writev, "writev", Form::FdPieces(0, 1, 2)),
    call(libc::SYS_pwritev, "pwritev", Form::FdPieces(0, 1, 2)),
    call(libc::SYS_pwritev2, "pwritev2", Form::FdPieces(0, 1, 2)),
    call(libc::SYS_openat2, "openat2", Form::OpenHow(0, 1, 2)),
    call(libc::SYS_flock, "flock", Form::Flock(0, 1)),
    call(libc::SYS_unlinkat, "unlinkat", Form::PathAt(0, 1)),
    call(libc::SYS_renameat, "renameat", Form::TwoPathsAt(0, 1, 2, 3)),
    call(
        libc::SYS_renameat2,
        "renameat2",
        Form::TwoPathsAt(0, 1, 2, 3),
    ),
    call(libc::SYS_mkdirat, "mkdirat", Form::PathAt(0, 1)),
    call(libc::SYS_linkat, "linkat", Form::TwoPathsAt(0, 1, 2, 3)),
    call(
        libc::SYS_symlinkat,
        "symlinkat",
        Form::Symlink(0, Some(1), 2),
    ),
    call(libc::SYS_mknodat, "mknodat", Form::PathAt(0, 1)),
    call(libc::SYS_ftruncate, "ftruncate", Form::Fd(0, Some(1))),
    call(libc::SYS_truncate, "truncate", Form::Truncate(0, 1)),
    call(libc::SYS_fallocate, "fallocate", Form::Fd(0, Some(3))),
    call(
        libc::SYS_copy_file_range,
        "copy_file_range",
        Form::Fd(2, Some(4)),
    ),
    call(libc::SYS_sendfile, "sendfile", Form::Fd(0, Some(3))),
    call(libc::SYS_splice, "splice", Form::Fd(2, Some(4))),
    call(libc::SYS_fchmod, "fchmod", Form::Fd(0, None)),
    call(libc::SYS_fchmodat, "fchmodat", Form::PathAt(0, 1)),
    call(FCHMODAT2, "fchmodat2", Form::PathAt(0, 1)),
    call(libc::SYS_newfstatat, "newfstatat", Form::Look(Some(0), 1)),
    call(libc::SYS_statx, "statx", Form::Look(Some(0), 1)),
    call(libc::SYS_faccessat, "faccessat", Form::Look(Some(0), 1)),
    call(libc::SYS_faccessat2, "faccessat2", Form::Look(Some(0), 1)),
    call(libc::SYS_readlinkat, "readlinkat", Form::Look(Some(0), 1)),
    call(libc::SYS_getdents64, "getdents64", Form::List(0)),
    call(libc::SYS_io_uring_setup, "io_uring_setup", Form::Refused),
];

#[cfg(target_arch = "x86_64")]
const HERE: &[Call] = &[
    call(libc::SYS_open, "open", Form::Open(None, 0, 1)),
    call(libc::SYS_creat, "creat", Form::Path(0)),
    call(libc::SYS_unlink, "unlink", Form::Path(0)),
    call(libc::SYS_rename, "rename", Form::TwoPaths(0, 1)),
    call(libc::SYS_mkdir, "mkdir", Form::Path(0)),
    call(libc::SYS_rmdir, "rmdir", Form::Path(0)),
    call(libc::SYS_link, "link", Form::TwoPaths(0, 1)),
    call(libc::SYS_symlink, "symlink", Form::Symlink(0, None, 1)),
    call(libc::SYS_mknod, "mknod", Form::Path(0)),
    call(libc::SYS_chmod, "chmod", Form::Path(0)),
    call(libc::SYS_stat, "stat", Form::Look(None, 0)),
    call(libc::SYS_lstat, "lstat", Form::Look(None, 0)),
    call(libc::SYS_access, "access", Form::Look(None, 0)),
    call(libc::SYS_readlink, "readlink", Form::Look(None, 0)),
];

#[cfg(not(target_arch = "x86_64"))]
const HERE: &[Call] = &[];

pub(crate) fn all() -> impl Iterator<Item = &'static Call> {
    EVERYWHERE.iter().chain(HERE)
}

pub(crate) fn by_number(nr: i32) -> Option<&'static Call> {
    all().find(|c| c.nr == c_long::from(nr))
}

/// Flags of `open` without which it only looks.
pub(crate) const OPEN_TO_CHANGE: i32 =
    libc::O_WRONLY | libc::O_RDWR | libc::O_CREAT | libc::O_TRUNC;

/// Commands of `fcntl` that take or give locks.
pub(crate) const LOCK_COMMANDS: [i32; 4] = [
    libc::F_SETLK,
    libc::F_SETLKW,
    libc::F_OFD_SETLK,
    libc::F_OFD_SETLKW,
];
