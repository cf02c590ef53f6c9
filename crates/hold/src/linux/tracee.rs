//! What can be read from a process while one of its calls waits.

use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, openat, openat2};

use super::sys;

/// A thread that waits for an answer. All of this may fail at any time, since it may be killed.
#[derive(Clone, Copy)]
pub(crate) struct Tracee {
    pub tid: u32,
}

/// As `AT_FDCWD` comes in a register.
const CURRENT_FOLDER: i32 = libc::AT_FDCWD;
const LONGEST_PATH: usize = libc::PATH_MAX as usize;

impl Tracee {
    fn pid(self) -> libc::pid_t {
        self.tid as libc::pid_t
    }

    fn proc(self, what: &str) -> PathBuf {
        PathBuf::from(format!("/proc/{}/{what}", self.tid))
    }

    /// Bytes at an address, all or nothing.
    pub(crate) fn bytes<const N: usize>(self, address: u64) -> Option<[u8; N]> {
        let mut bytes = [0; N];
        (sys::read_memory(self.pid(), address, &mut bytes) == N).then_some(bytes)
    }

    /// A text that ends in a zero byte. `None` if it is longer than a path can be.
    pub(crate) fn text(self, address: u64) -> Option<Vec<u8>> {
        // Most paths are short, and a page of zeros costs more than a second look.
        for size in [256, LONGEST_PATH] {
            let mut bytes = vec![0; size];
            let got = sys::read_memory(self.pid(), address, &mut bytes);
            let end = bytes.iter().take(got).position(|b| *b == 0);
            if let Some(end) = end {
                bytes.truncate(end);
                return Some(bytes);
            }
        }
        None
    }

    /// What a descriptor leads to: a path, or `pipe:[…]` and the like.
    pub(crate) fn fd_target(self, fd: u64) -> Option<PathBuf> {
        // The register's lower half counts.
        fs::read_link(self.proc(&format!("fd/{}", fd as i32))).ok()
    }

    /// A path as the process means it, absolute and without `.` and `..`.
    pub(crate) fn path(self, folder: Option<u64>, address: u64) -> Option<PathBuf> {
        let text = self.text(address)?;
        if text.is_empty() {
            // About the descriptor itself, if it means anything.
            return None;
        }
        let path = Path::new(std::ffi::OsStr::from_bytes(&text));
        let joined = if path.is_absolute() {
            path.to_owned()
        } else {
            let folder = match folder.map(|fd| fd as i32) {
                None | Some(CURRENT_FOLDER) => fs::read_link(self.proc("cwd")).ok()?,
                Some(_) => self.fd_target(folder?)?,
            };
            folder.join(path)
        };
        Some(normal(&joined))
    }

    /// Whether something is there, as the process would find it. A link that leads nowhere is not.
    pub(crate) fn exists(self, path: &Path) -> bool {
        let root = openat(
            CWD,
            self.proc("root"),
            OFlags::PATH | OFlags::CLOEXEC,
            Mode::empty(),
        );
        let Ok(root) = root else { return false };
        let how = OFlags::PATH | OFlags::CLOEXEC;
        // Absolute links must lead to the process's root, not to ours.
        openat2(root, path, how, Mode::empty(), ResolveFlags::IN_ROOT).is_ok()
    }

    /// The process of this thread.
    pub(crate) fn process(self) -> Option<u32> {
        let status = fs::read_to_string(self.proc("status")).ok()?;
        let line = status.lines().find_map(|l| l.strip_prefix("Tgid:"))?;
        line.trim().parse().ok()
    }
}

/// By text alone: links on the way are not followed, so the same text gives the same path
/// whatever others do to the files.
fn normal(path: &Path) -> PathBuf {
    let mut out = PathBuf::new();
    for component in path.components() {
        match component {
            Component::ParentDir => {
                out.pop();
            }
            Component::CurDir => {}
            other => out.push(other),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_made_plain() {
        assert_eq!(normal(Path::new("/a/./b/../c")), Path::new("/a/c"));
        assert_eq!(normal(Path::new("/../..")), Path::new("/"));
    }

    #[test]
    fn this_process_can_be_read() {
        let here = Tracee {
            tid: std::process::id(),
        };
        let text = c"hello";
        assert_eq!(
            here.text(text.as_ptr() as u64).as_deref(),
            Some(&b"hello"[..])
        );
        assert_eq!(here.text(8), None);
        assert!(here.exists(Path::new("/proc/self")));
        assert!(!here.exists(Path::new("/no/such/thing")));
        assert_eq!(here.process(), Some(here.tid));
    }
}
