//! The first process of a sandbox: it makes the namespaces, builds what is seen in them, and
//! then only waits. When it ends, the kernel ends everyone else in there.

use std::ffi::CString;
use std::io::{self, PipeReader, Read as _, Write as _};
use std::os::fd::{AsRawFd as _, OwnedFd, RawFd};

use super::{check, check_long, close_from, last, pidfd_open, raw_fork};

/// One step of the building. Paths are those of the host until `Pivot`.
#[derive(Debug)]
pub(crate) enum Step {
    /// Nothing that is mounted from here on is seen outside.
    Private,
    Tmpfs(CString),
    /// Binds of what is above leave this mount out.
    Unbindable(CString),
    Proc(CString),
    Devpts(CString),
    Folder(CString),
    File(CString),
    Link {
        to: CString,
        at: CString,
    },
    /// With everything that is mounted below.
    Bind {
        from: CString,
        to: CString,
    },
    Overlay {
        options: CString,
        at: CString,
    },
    /// This mount and all below it.
    ReadOnly(CString),
    /// The network of the sandbox has a loopback.
    Loopback,
    /// What was built becomes the root, and the host's root is gone.
    Pivot(CString),
}

/// A step, and whether it may fail.
#[derive(Debug)]
pub(crate) struct Planned {
    pub step: Step,
    pub optional: bool,
}

/// The namespaces to make, and how to build in them.
pub(crate) struct Plan {
    pub namespaces: libc::c_int,
    /// Written from outside, where the privileges are: who is who within.
    pub maps: Option<Maps>,
    pub steps: Vec<Planned>,
}

pub(crate) struct Maps {
    pub uid: String,
    pub gid: String,
    /// A user without privileges has to give up changing groups.
    pub deny_setgroups: bool,
}

/// Why it was not built.
#[derive(Debug)]
pub(crate) enum Failure {
    /// No namespaces.
    Clone(io::Error),
    Maps(io::Error),
    /// The step with this number.
    Step(usize, io::Error),
    Lost(io::Error),
}

/// A sandbox's first process. Killed, with all the others in there, when dropped.
#[derive(Debug)]
pub(crate) struct Init {
    pid: libc::pid_t,
    pub pidfd: OwnedFd,
    /// Steps that failed and were allowed to.
    pub failed: Vec<(usize, io::Error)>,
    lifeline: Option<io::PipeWriter>,
}

/// A report of the child: a step's number and an error, or `DONE`.
type Report = [u8; 8];
const DONE: u32 = u32::MAX;

impl Init {
    pub(crate) fn start(plan: &Plan) -> Result<Self, Failure> {
        let (go_out, mut go) = io::pipe().map_err(Failure::Lost)?;
        let (mut reports, report_in) = io::pipe().map_err(Failure::Lost)?;
        let (lifeline_out, lifeline) = io::pipe().map_err(Failure::Lost)?;
        let fds = [
            go_out.as_raw_fd(),
            report_in.as_raw_fd(),
            lifeline_out.as_raw_fd(),
        ];
        // SAFETY: the child makes system calls only, on what was prepared here, and never returns.
        let pid = unsafe {
            let pid = raw_fork(plan.namespaces).map_err(Failure::Clone)?;
            if pid == 0 {
                child(&plan.steps, fds);
            }
            pid
        };
        drop((go_out, report_in, lifeline_out));
        let ended = |failure| {
            reap(pid);
            failure
        };
        // From here on every way out closes the lifeline, and the child ends.
        let mut init = match pidfd_open(pid) {
            Ok(pidfd) => Self {
                pid,
                pidfd,
                failed: Vec::new(),
                lifeline: Some(lifeline),
            },
            Err(e) => {
                drop((go, lifeline));
                return Err(ended(Failure::Lost(e)));
            }
        };
        if let Some(maps) = &plan.maps {
            maps.write(pid).map_err(Failure::Maps)?;
        }
        go.write_all(b"g").map_err(Failure::Lost)?;
        init.read_reports(&mut reports, plan)?;
        Ok(init)
    }

    fn read_reports(&mut self, reports: &mut PipeReader, plan: &Plan) -> Result<(), Failure> {
        loop {
            let mut report: Report = [0; 8];
            reports.read_exact(&mut report).map_err(Failure::Lost)?;
            let [a, b, c, d, e, f, g, h] = report;
            let step = u32::from_ne_bytes([a, b, c, d]);
            let errno = i32::from_ne_bytes([e, f, g, h]);
            if step == DONE {
                return Ok(());
            }
            let error = io::Error::from_raw_os_error(errno);
            if plan.steps.get(step as usize).is_some_and(|s| s.optional) {
                self.failed.push((step as usize, error));
            } else {
                return Err(Failure::Step(step as usize, error));
            }
        }
    }

    /// Kills it, and waits until it and all others in there are gone: the kernel lets nobody wait
    /// for the first process of a namespace before the others are dead.
    pub(crate) fn end(&mut self) {
        if self.lifeline.take().is_some() {
            // SAFETY: takes integers. It has not been waited for, so the number is still its own.
            unsafe { libc::kill(self.pid, libc::SIGKILL) };
            reap(self.pid);
        }
    }
}

impl Drop for Init {
    fn drop(&mut self) {
        self.end();
    }
}

pub(super) fn reap(pid: libc::pid_t) {
    let mut status = 0;
    // SAFETY: `status` is a local; `pid` is a child that nobody else waits for.
    while unsafe { libc::waitpid(pid, &mut status, 0) } == -1
        && last().kind() == io::ErrorKind::Interrupted
    {}
}

impl Maps {
    fn write(&self, pid: libc::pid_t) -> io::Result<()> {
        let at = format!("/proc/{pid}");
        if self.deny_setgroups {
            std::fs::write(format!("{at}/setgroups"), "deny")?;
        }
        std::fs::write(format!("{at}/uid_map"), &self.uid)?;
        std::fs::write(format!("{at}/gid_map"), &self.gid)
    }
}

/// The life of the first process.
///
/// # Safety
/// Only in a process that has just been forked.
unsafe fn child(steps: &[Planned], [go, reports, lifeline]: [RawFd; 3]) -> ! {
    // SAFETY: system calls on integers, locals and prepared data, and `_exit` at the end.
    unsafe {
        libc::setsid();
        // The parent's ends of the pipes came along. Who holds them never sees an end.
        let (go, reports, lifeline) = keep_only(go, reports, lifeline);
        // Orphans are reaped by the kernel.
        libc::signal(libc::SIGCHLD, libc::SIG_IGN);
        let mut byte = 0u8;
        if libc::read(go, (&raw mut byte).cast(), 1) != 1 {
            libc::_exit(1);
        }
        libc::umask(0);
        for (number, planned) in steps.iter().enumerate() {
            if let Err(e) = run(&planned.step) {
                report(
                    reports,
                    number as u32,
                    e.raw_os_error().unwrap_or(libc::EIO),
                );
                if !planned.optional {
                    libc::_exit(1);
                }
            }
        }
        libc::umask(0o022);
        report(reports, DONE, 0);
        libc::dup2(lifeline, 0);
        close_from(1);
        let mut watched = libc::pollfd {
            fd: 0,
            events: libc::POLLIN,
            revents: 0,
        };
        while libc::poll(&mut watched, 1, -1) == -1 && last().kind() == io::ErrorKind::Interrupted {
        }
        libc::_exit(0)
    }
}

/// Moves the three to 0, 1 and 2 and closes all others.
///
/// # Safety
/// As for `child`.
unsafe fn keep_only(a: RawFd, b: RawFd, c: RawFd) -> (RawFd, RawFd, RawFd) {
    // SAFETY: takes integers. High numbers first, so that none is overwritten before it is moved.
    unsafe {
        let high = [a, b, c].map(|fd| libc::fcntl(fd, libc::F_DUPFD_CLOEXEC, 100));
        for (target, fd) in high.into_iter().enumerate() {
            libc::dup2(fd, target as RawFd);
        }
        close_from(3);
    }
    (0, 1, 2)
}

unsafe fn report(to: RawFd, step: u32, errno: i32) {
    let mut bytes: Report = [0; 8];
    bytes[..4].copy_from_slice(&step.to_ne_bytes());
    bytes[4..].copy_from_slice(&errno.to_ne_bytes());
    // SAFETY: a local of that length.
    unsafe { libc::write(to, bytes.as_ptr().cast(), bytes.len()) };
}

/// Async-signal-safe, as all that it calls.
fn run(step: &Step) -> io::Result<()> {
    let none = std::ptr::null();
    // SAFETY: pointers are to prepared strings or literals, or null where that is allowed.
    unsafe {
        match step {
            Step::Private => mount(
                none,
                c"/".as_ptr(),
                none,
                libc::MS_REC | libc::MS_PRIVATE,
                none,
            ),
            Step::Tmpfs(at) => {
                let flags = libc::MS_NOSUID | libc::MS_NODEV;
                let name = c"tmpfs".as_ptr();
                mount(name, at.as_ptr(), name, flags, c"mode=0755".as_ptr())
            }
            Step::Unbindable(at) => mount(none, at.as_ptr(), none, libc::MS_UNBINDABLE, none),
            Step::Proc(at) => {
                let flags = libc::MS_NOSUID | libc::MS_NODEV | libc::MS_NOEXEC | libc::MS_RDONLY;
                let name = c"proc".as_ptr();
                mount(name, at.as_ptr(), name, flags, none)
            }
            Step::Devpts(at) => {
                let options = c"newinstance,ptmxmode=0666,mode=0620".as_ptr();
                let name = c"devpts".as_ptr();
                let flags = libc::MS_NOSUID | libc::MS_NOEXEC;
                mount(name, at.as_ptr(), name, flags, options)
            }
            Step::Folder(at) => existing(check(libc::mkdir(at.as_ptr(), 0o755))),
            // Not by `open`, which fails on a file that is there in a folder that is read-only.
            Step::File(at) => existing(check(libc::mknod(at.as_ptr(), libc::S_IFREG | 0o644, 0))),
            Step::Link { to, at } => existing(check(libc::symlink(to.as_ptr(), at.as_ptr()))),
            Step::Bind { from, to } => {
                let flags = libc::MS_BIND | libc::MS_REC;
                mount(from.as_ptr(), to.as_ptr(), none, flags, none)
            }
            Step::Overlay { options, at } => {
                let name = c"overlay".as_ptr();
                mount(name, at.as_ptr(), name, 0, options.as_ptr())
            }
            Step::ReadOnly(at) => read_only(at),
            Step::Loopback => loopback_up(),
            Step::Pivot(root) => {
                check(libc::chdir(root.as_ptr()))?;
                // The old root lands on top of the new one, and is taken away from there.
                let here = c".".as_ptr();
                check_long(libc::syscall(libc::SYS_pivot_root, here, here))?;
                check(libc::umount2(here, libc::MNT_DETACH))?;
                check(libc::chdir(c"/".as_ptr())).map(drop)
            }
        }
    }
}

fn existing(result: io::Result<libc::c_int>) -> io::Result<()> {
    match result {
        Err(e) if e.raw_os_error() != Some(libc::EEXIST) => Err(e),
        _ => Ok(()),
    }
}

type Text = *const libc::c_char;

/// # Safety
/// Strings end in a zero byte; null where `mount` allows it.
unsafe fn mount(
    from: Text,
    to: Text,
    kind: Text,
    flags: libc::c_ulong,
    data: Text,
) -> io::Result<()> {
    // SAFETY: as above.
    check(unsafe { libc::mount(from, to, kind, flags, data.cast()) }).map(drop)
}

fn read_only(at: &CString) -> io::Result<()> {
    let attributes = libc::mount_attr {
        attr_set: libc::MOUNT_ATTR_RDONLY,
        attr_clr: 0,
        propagation: 0,
        userns_fd: 0,
    };
    // SAFETY: a prepared string, and a local with its size.
    check_long(unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            libc::AT_FDCWD,
            at.as_ptr(),
            libc::AT_RECURSIVE,
            &raw const attributes,
            size_of::<libc::mount_attr>(),
        )
    })
    .map(drop)
}

fn loopback_up() -> io::Result<()> {
    // SAFETY: all zeros is a valid request; the name is shorter than its field; the request's type
    // is the one that these two operations use.
    unsafe {
        let socket = check(libc::socket(
            libc::AF_INET,
            libc::SOCK_DGRAM | libc::SOCK_CLOEXEC,
            0,
        ))?;
        let mut request: libc::ifreq = std::mem::zeroed();
        request.ifr_name[0] = b'l' as libc::c_char;
        request.ifr_name[1] = b'o' as libc::c_char;
        request.ifr_ifru.ifru_flags = (libc::IFF_UP | libc::IFF_RUNNING) as libc::c_short;
        let result = check(libc::ioctl(
            socket,
            libc::SIOCSIFFLAGS as _,
            &raw const request,
        ));
        libc::close(socket);
        result.map(drop)
    }
}

/// Who this process is, for the maps.
pub(crate) fn ids() -> (u32, u32) {
    // SAFETY: these cannot fail.
    unsafe { (libc::geteuid(), libc::getegid()) }
}
