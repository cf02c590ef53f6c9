//! From the numbers of a system call to an event.

use std::path::{Path, PathBuf};

use super::calls::{self, Call, Form, OPEN_TO_CHANGE};
use super::sys::notify::Notification;
use super::tracee::Tracee;
use crate::event::{Class, Source};
use crate::supervisor::Draft;

/// Which files are state.
#[derive(Clone, Debug)]
pub(crate) enum Territory {
    /// What can be written in a sandbox; the rest of its files is read-only.
    Under(Vec<PathBuf>),
    /// Everything but the kernel's own, for servers without a sandbox.
    Everywhere,
}

impl Territory {
    pub(crate) fn contains(&self, path: &Path) -> bool {
        match self {
            Self::Under(roots) => roots.iter().any(|root| path.starts_with(root)),
            Self::Everywhere => {
                path.is_absolute()
                    && (path.starts_with("/dev/shm")
                        || !["/dev", "/proc", "/sys", "/memfd:"]
                            .iter()
                            .any(|root| path.to_string_lossy().starts_with(root)))
            }
        }
    }
}

/// Pieces of a `writev` that are added up. The kernel takes no more.
const MOST_PIECES: u64 = 1024;

/// What the call is about to do; `None` if that is nothing to the state.
pub(crate) fn decode(call: &Notification, territory: &Territory) -> Option<Draft> {
    let known = calls::by_number(call.nr)?;
    let tracee = Tracee { tid: call.tid };
    let seen = Seen {
        call,
        tracee,
        territory,
    };
    let mut what = seen.read(known)?;
    // Servers make sure of their folders all the time.
    if known.name.starts_with("mkdir") && what.paths.iter().all(|p| tracee.exists(p)) {
        what.class = Class::Read;
        what.detail = "exists".to_owned();
    }
    Some(Draft {
        pid: call.tid,
        tid: call.tid,
        source: Source::Syscall,
        class: what.class,
        name: known.name.to_owned(),
        paths: what
            .paths
            .iter()
            .map(|p| p.to_string_lossy().into_owned())
            .collect(),
        length: what.length,
        detail: what.detail,
    })
}

struct What {
    class: Class,
    paths: Vec<PathBuf>,
    length: Option<u64>,
    detail: String,
}

impl What {
    fn change(paths: Vec<PathBuf>) -> Self {
        Self {
            class: Class::Mutate,
            paths,
            length: None,
            detail: String::new(),
        }
    }
}

struct Seen<'a> {
    call: &'a Notification,
    tracee: Tracee,
    territory: &'a Territory,
}

impl Seen<'_> {
    fn arg(&self, n: usize) -> u64 {
        self.call.args[n]
    }

    fn read(&self, known: &Call) -> Option<What> {
        match known.form {
            Form::Path(path) => self.one(None, path),
            Form::PathAt(folder, path) => self.one(Some(folder), path),
            Form::TwoPaths(from, to) => self.two((None, from), (None, to)),
            Form::TwoPathsAt(f1, p1, f2, p2) => self.two((Some(f1), p1), (Some(f2), p2)),
            Form::Symlink(text, folder, path) => {
                let mut what = self.one(folder, path)?;
                let text = self.tracee.text(self.arg(text))?;
                what.detail = format!("to {}", String::from_utf8_lossy(&text));
                Some(what)
            }
            Form::Open(folder, path, flags) => self.open(folder, path, self.arg(flags) as i32),
            Form::OpenHow(folder, path, how) => {
                let flags = self.tracee.bytes::<8>(self.arg(how))?;
                self.open(Some(folder), path, u64::from_ne_bytes(flags) as i32)
            }
            Form::Truncate(path, length) => {
                let mut what = self.one(None, path)?;
                what.length = Some(self.arg(length));
                Some(what)
            }
            Form::Fd(fd, length) => {
                let mut what = What::change(vec![self.file(fd)?]);
                what.length = length.map(|n| self.arg(n));
                Some(what)
            }
            Form::FdPieces(fd, pieces, count) => {
                let mut what = What::change(vec![self.file(fd)?]);
                what.length = self.pieces(self.arg(pieces), self.arg(count));
                Some(what)
            }
            Form::Flock(fd, operation) => self.flock(fd, self.arg(operation) as i32),
            Form::Fcntl(fd, command, lock) => self.fcntl(fd, self.arg(command) as i32, lock),
            Form::Look(folder, path) => self.look(self.path(folder, path)?),
            Form::List(fd) => self.look(self.file(fd)?),
            Form::Refused => None,
        }
    }

    fn path(&self, folder: Option<usize>, path: usize) -> Option<PathBuf> {
        self.tracee
            .path(folder.map(|n| self.arg(n)), self.arg(path))
    }

    fn one(&self, folder: Option<usize>, path: usize) -> Option<What> {
        let path = self.path(folder, path)?;
        self.territory
            .contains(&path)
            .then(|| What::change(vec![path]))
    }

    fn look(&self, path: PathBuf) -> Option<What> {
        self.territory.contains(&path).then(|| What {
            class: Class::Read,
            ..What::change(vec![path])
        })
    }

    fn two(&self, from: (Option<usize>, usize), to: (Option<usize>, usize)) -> Option<What> {
        let paths = vec![self.path(from.0, from.1)?, self.path(to.0, to.1)?];
        let touched = paths.iter().any(|p| self.territory.contains(p));
        touched.then(|| What::change(paths))
    }

    fn file(&self, fd: usize) -> Option<PathBuf> {
        let path = self.tracee.fd_target(self.arg(fd))?;
        // Nobody else can find a file that has no name any more.
        let named = !path.to_string_lossy().ends_with(" (deleted)");
        (named && self.territory.contains(&path)).then_some(path)
    }

    fn open(&self, folder: Option<usize>, path: usize, flags: i32) -> Option<What> {
        let path = self.path(folder, path)?;
        if !self.territory.contains(&path) {
            return None;
        }
        // To open a file that exists changes nothing unless it is emptied. SQLite opens for
        // writing and creating whatever it does.
        let unnamed = flags & libc::O_TMPFILE == libc::O_TMPFILE;
        let creates = flags & libc::O_CREAT != 0 && !unnamed;
        let exclusive = flags & libc::O_EXCL != 0;
        let there = creates && !exclusive && self.tracee.exists(&path);
        let truncates = flags & libc::O_TRUNC != 0;
        let changes = (creates && !there) || truncates;
        let mut words = Vec::new();
        words.push(match flags & libc::O_ACCMODE {
            _ if flags & OPEN_TO_CHANGE == 0 => "read",
            libc::O_WRONLY => "write",
            libc::O_RDWR => "read and write",
            _ => "read",
        });
        if creates && exclusive {
            words.push("create, must not exist");
        } else if creates && !there {
            words.push("create");
        }
        if truncates {
            words.push("truncate");
        }
        if flags & libc::O_APPEND != 0 {
            words.push("append");
        }
        Some(What {
            class: if changes { Class::Mutate } else { Class::Read },
            paths: vec![path],
            length: None,
            detail: words.join(", "),
        })
    }

    fn flock(&self, fd: usize, operation: i32) -> Option<What> {
        let (class, words) = match operation & !libc::LOCK_NB {
            libc::LOCK_UN => (Class::Unlock, "unlock"),
            libc::LOCK_SH => (Class::Lock, "shared lock"),
            _ => (Class::Lock, "exclusive lock"),
        };
        Some(What {
            class,
            paths: vec![self.file(fd)?],
            length: None,
            detail: words.to_owned(),
        })
    }

    fn fcntl(&self, fd: usize, command: i32, lock: usize) -> Option<What> {
        if !calls::LOCK_COMMANDS.contains(&command) {
            return None;
        }
        // struct flock: type and whence, then start and length, each aligned to 8 bytes.
        let bytes = self.tracee.bytes::<24>(self.arg(lock))?;
        let kind = i16::from_ne_bytes([bytes[0], bytes[1]]);
        let word = |at: usize| {
            let mut word = [0; 8];
            word.copy_from_slice(&bytes[at..at + 8]);
            i64::from_ne_bytes(word)
        };
        let (start, length) = (word(8), word(16));
        let (class, words) = match i32::from(kind) {
            libc::F_UNLCK => (Class::Unlock, "unlock"),
            libc::F_RDLCK => (Class::Read, "read lock"),
            _ => (Class::Lock, "write lock"),
        };
        let range = if length == 0 {
            format!("{start}..")
        } else {
            format!("{start}..{}", start.saturating_add(length))
        };
        Some(What {
            class,
            paths: vec![self.file(fd)?],
            length: None,
            detail: format!("{words} {range}"),
        })
    }

    fn pieces(&self, address: u64, count: u64) -> Option<u64> {
        let mut sum: u64 = 0;
        for n in 0..count.min(MOST_PIECES) {
            let at = address.checked_add(n * 16 + 8)?;
            sum = sum.saturating_add(u64::from_ne_bytes(self.tracee.bytes(at)?));
        }
        Some(sum)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn territory_knows_folders_from_names_that_begin_alike() {
        let area = Territory::Under(vec!["/toctou/workspace".into()]);
        assert!(area.contains(Path::new("/toctou/workspace/a")));
        assert!(!area.contains(Path::new("/toctou/workspace2/a")));
        assert!(Territory::Everywhere.contains(Path::new("/srv/a")));
        assert!(Territory::Everywhere.contains(Path::new("/dev/shm/a")));
        for path in ["/dev/null", "/proc/self/comm", "pipe:[1]", "/memfd:x"] {
            assert!(!Territory::Everywhere.contains(Path::new(path)), "{path}");
        }
    }
}
