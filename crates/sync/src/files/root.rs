//! A directory that paths cannot lead out of.

use std::ffi::OsStr;
use std::fs::File;
use std::io::Read;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Component, Path, PathBuf};

use rustix::fs::{AtFlags, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;

use super::Place;
use crate::{Error, Result};

/// A directory that was opened once, and below which paths are resolved.
///
/// To resolve a path, compare it with an allowed directory and then open it is a window: somebody can put a link in its
/// place between. Here the kernel resolves and opens in one step, and refuses to leave the directory (`openat2`, with
/// `RESOLVE_BENEATH`).
///
/// # What is promised
///
/// - No `..`, absolute path or link leads out of the directory, whoever changes what at the same time.
/// - Only regular files are read: a pipe or device does not hang the reader.
/// - The directory is the one that was opened, even if it is renamed.
///
/// # What is not
///
/// - Links that stay inside are followed; where there is no `openat2` (a kernel before 5.6, a container that
///   forbids it), every link is refused.
/// - Hard links and bind mounts are not links in this sense.
#[derive(Debug)]
pub struct Root {
    directory: OwnedFd,
    path: PathBuf,
}

/// Not in a terminal, not inherited by children, not waiting for the other end of a pipe.
const COMMON: OFlags = OFlags::CLOEXEC
    .union(OFlags::NOCTTY)
    .union(OFlags::NONBLOCK);

impl Root {
    /// Opens the directory. Its own path is trusted.
    ///
    /// # Errors
    ///
    /// [`Error::File`] if it is not a directory or cannot be opened.
    pub fn open(path: impl Into<PathBuf>) -> Result<Self> {
        let path = path.into();
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        match rustix::fs::open(&path, flags, Mode::empty()) {
            Ok(directory) => Ok(Self { directory, path }),
            Err(error) => Err(Error::file(&path, error)),
        }
    }

    /// Opens a regular file below the directory, for reading.
    ///
    /// # Errors
    ///
    /// [`Error::File`]: a path that leads out has the error `EXDEV` or (on old kernels) `ELOOP`; something that is not a
    /// regular file the kind `InvalidInput`.
    pub fn file(&self, path: impl AsRef<Path>) -> Result<File> {
        let path = path.as_ref();
        let failed = |error: std::io::Error| Error::file(&self.path.join(path), error);
        let file = self
            .resolve(path, OFlags::RDONLY)
            .map_err(|error| failed(error.into()))?;
        let file = File::from(file);
        if !file.metadata().map_err(failed)?.is_file() {
            return Err(failed(std::io::ErrorKind::InvalidInput.into()));
        }
        Ok(file)
    }

    /// Reads a file of at most `max` bytes.
    ///
    /// # Errors
    ///
    /// As [`Root::file`]; for a larger file, the kind `FileTooLarge`.
    pub fn read(&self, path: impl AsRef<Path>, max: u64) -> Result<Vec<u8>> {
        let path = path.as_ref();
        let failed = |error: std::io::Error| Error::file(&self.path.join(path), error);
        let mut contents = Vec::new();
        // One more than allowed tells that there is more, however the file grows meanwhile.
        let limit = max.saturating_add(1);
        self.file(path)?
            .take(limit)
            .read_to_end(&mut contents)
            .map_err(failed)?;
        if contents.len() as u64 > max {
            return Err(failed(std::io::ErrorKind::FileTooLarge.into()));
        }
        Ok(contents)
    }

    /// As [`super::create`], below the directory. Directories on the way must be there.
    ///
    /// # Errors
    ///
    /// As [`super::create`] and [`Root::file`].
    pub fn create(&self, path: impl AsRef<Path>, contents: &[u8]) -> Result<()> {
        self.at(path.as_ref(), |place| place.create(contents))
    }

    /// As [`super::replace`], below the directory. A link of this name is replaced, not followed.
    ///
    /// # Errors
    ///
    /// As [`super::replace`] and [`Root::file`].
    pub fn replace(&self, path: impl AsRef<Path>, contents: &[u8]) -> Result<()> {
        self.at(path.as_ref(), |place| place.replace(contents))
    }

    /// Removes a file, or a link of this name.
    ///
    /// # Errors
    ///
    /// As [`Root::file`].
    pub fn remove(&self, path: impl AsRef<Path>) -> Result<()> {
        self.at(path.as_ref(), |place| {
            rustix::fs::unlinkat(place.directory.as_fd(), place.name, AtFlags::empty())
        })
    }

    fn at(&self, path: &Path, act: impl FnOnce(&Place<'_>) -> Result<(), Errno>) -> Result<()> {
        let failed = |error: Errno| Error::file(&self.path.join(path), error);
        let name: &OsStr = match path.components().next_back() {
            Some(Component::Normal(name)) => name,
            _ => return Err(failed(Errno::INVAL)),
        };
        let parent = path
            .parent()
            .filter(|parent| !parent.as_os_str().is_empty());
        let parent = parent.unwrap_or(Path::new("."));
        let directory = self
            .resolve(parent, OFlags::RDONLY | OFlags::DIRECTORY)
            .map_err(failed)?;
        act(&Place {
            directory: directory.into(),
            name,
        })
        .map_err(failed)
    }

    fn resolve(&self, path: &Path, flags: OFlags) -> Result<OwnedFd, Errno> {
        let inside = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
        loop {
            let opened =
                rustix::fs::openat2(&self.directory, path, flags | COMMON, Mode::empty(), inside);
            match opened {
                // Something was renamed on the way: the kernel cannot tell whether it led out.
                Err(Errno::AGAIN | Errno::INTR) => {}
                // A kernel that does not have it, or a container that does not let it through.
                Err(Errno::NOSYS | Errno::PERM) => return self.resolve_by_steps(path, flags),
                opened => return opened,
            }
        }
    }

    /// One component at a time, none of which may be a link.
    fn resolve_by_steps(&self, path: &Path, flags: OFlags) -> Result<OwnedFd, Errno> {
        let step = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | COMMON;
        let mut here = rustix::fs::openat(&self.directory, ".", step, Mode::empty())?;
        let mut components = path.components().peekable();
        while let Some(component) = components.next() {
            let name = match component {
                Component::CurDir => continue,
                Component::Normal(name) => name,
                _ => return Err(Errno::XDEV),
            };
            let flags = match components.peek() {
                Some(_) => step,
                None => flags | OFlags::NOFOLLOW | COMMON,
            };
            here = rustix::fs::openat(&here, name, flags, Mode::empty())?;
        }
        Ok(here)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    type Resolve = fn(&Root, &Path, OFlags) -> Result<OwnedFd, Errno>;

    /// Both ways to resolve refuse the same ways out.
    #[test]
    fn nothing_leads_out() {
        let folder = tempfile::tempdir().unwrap();
        let inside = folder.path().join("inside");
        std::fs::create_dir_all(inside.join("deep")).unwrap();
        std::fs::write(folder.path().join("secret"), "secret").unwrap();
        std::fs::write(inside.join("deep/file"), "file").unwrap();
        symlink("../secret", inside.join("relative")).unwrap();
        symlink(folder.path().join("secret"), inside.join("absolute")).unwrap();
        symlink("..", inside.join("up")).unwrap();
        let root = Root::open(&inside).unwrap();
        let ways: [(&str, Resolve); 2] = [
            ("openat2", Root::resolve),
            ("by steps", Root::resolve_by_steps),
        ];
        for (way, resolve) in ways {
            let open = |path: &str| resolve(&root, Path::new(path), OFlags::RDONLY);
            assert!(open("deep/file").is_ok(), "{way}");
            assert!(open("./deep/./file").is_ok(), "{way}");
            for out in [
                "../secret",
                "relative",
                "absolute",
                "up/secret",
                "deep/../../secret",
                "/etc/passwd",
            ] {
                assert!(open(out).is_err(), "{way}: {out}");
            }
        }
    }
}
