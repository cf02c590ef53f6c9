//! Files without windows.
//!
//! | instead of | use |
//! |---|---|
//! | "does it exist?", then create | [`create`] |
//! | write in place | [`replace`] |
//! | read, change, write back | [`update`] |
//! | check a path, then open it | [`Root`] |
//!
//! All but [`update`] block the thread, for as long as the disk takes: in async code, call them in `spawn_blocking`.
//!
//! - **Crash:** a file is there whole, in its old or its new form. A temporary file (`.name.random.tmp`) may be left.
//! - **Power cut:** when a function has returned, its result survives, as far as the disk keeps what it confirms.
//! - **Pause:** a process that is stopped in `update` keeps others waiting.

mod root;
mod update;

use std::ffi::OsStr;
use std::fs::File;
use std::io::Write;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, Mode, OFlags, RenameFlags};
use rustix::io::Errno;

pub use self::root::Root;
pub use self::update::update;
use crate::{Error, Result};

/// Creates a file with these contents, if there is none of this name. Of several who try, exactly one succeeds.
///
/// Others see no file, then the whole file. A failure leaves none. A link of this name counts as a file, wherever it
/// leads. New files are for this user alone (mode 0600).
///
/// # Errors
///
/// [`Error::File`] with the kind `AlreadyExists` if there is one; other [`Error::File`]s from the file system.
pub fn create(path: impl AsRef<Path>, contents: &[u8]) -> Result<()> {
    let place = Place::of(path.as_ref())?;
    place
        .create(contents)
        .map_err(|error| Error::file(path.as_ref(), error))
}

/// Replaces a file, or creates it. A reader sees the old or the new contents, never parts of both.
///
/// The new file has the permissions of the old one, and its owner if that is allowed; other names (hard links) of the old
/// file keep the old contents, and a link of this name is replaced by the file.
///
/// This does **not** prevent lost updates: if two read, change and replace, the last one wins. That is what [`update`] is
/// for.
///
/// # Errors
///
/// [`Error::File`] from the file system. The old file is then untouched, except if only the last step failed, which
/// makes the change survive a power cut.
pub fn replace(path: impl AsRef<Path>, contents: &[u8]) -> Result<()> {
    let place = Place::of(path.as_ref())?;
    place
        .replace(contents)
        .map_err(|error| Error::file(path.as_ref(), error))
}

/// A name in an open directory: whatever happens to the path, it stays this directory.
struct Place<'a> {
    directory: File,
    name: &'a OsStr,
}

impl<'a> Place<'a> {
    fn of(path: &'a Path) -> Result<Self> {
        let name = path
            .file_name()
            .ok_or_else(|| Error::Invalid(format!("{} names no file", path.display())))?;
        let parent = path
            .parent()
            .filter(|parent| !parent.as_os_str().is_empty());
        let parent = parent.unwrap_or(Path::new("."));
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let directory = rustix::fs::open(parent, flags, Mode::empty())
            .map_err(|error| Error::file(parent, error))?;
        Ok(Self {
            directory: directory.into(),
            name,
        })
    }

    fn create(&self, contents: &[u8]) -> Result<(), Errno> {
        let temporary = Temporary::write(self, contents, None)?;
        let (here, from) = (self.directory.as_fd(), &temporary.name);
        match rustix::fs::renameat_with(here, from, here, self.name, RenameFlags::NOREPLACE) {
            // Not on this file system: a second name, which fails if it is taken, and the first one goes.
            Err(Errno::INVAL | Errno::NOSYS) => {
                rustix::fs::linkat(here, from, here, self.name, AtFlags::empty())?;
            }
            Err(error) => return Err(error),
            Ok(()) => temporary.moved(),
        }
        rustix::fs::fsync(here)
    }

    fn replace(&self, contents: &[u8]) -> Result<(), Errno> {
        let here = self.directory.as_fd();
        let old = match rustix::fs::statat(here, self.name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(old) => Some(old),
            Err(Errno::NOENT) => None,
            Err(error) => return Err(error),
        };
        let old = old.filter(|old| rustix::fs::FileType::from_raw_mode(old.st_mode).is_file());
        let temporary = Temporary::write(self, contents, old.as_ref())?;
        rustix::fs::renameat(here, &temporary.name, here, self.name)?;
        temporary.moved();
        rustix::fs::fsync(here)
    }
}

/// A file that is not there yet. Dropped, it is removed.
struct Temporary<'a> {
    directory: BorrowedFd<'a>,
    name: PathBuf,
    moved: bool,
}

impl<'a> Temporary<'a> {
    /// Writes the contents and waits until they are on the disk.
    fn write(
        place: &'a Place<'_>,
        contents: &[u8],
        like: Option<&rustix::fs::Stat>,
    ) -> Result<Self, Errno> {
        let directory = place.directory.as_fd();
        let flags =
            OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let (file, name) = loop {
            let name = temporary_name(place.name);
            match rustix::fs::openat(directory, &name, flags, Mode::RUSR | Mode::WUSR) {
                Ok(file) => break (file, name),
                Err(Errno::EXIST) => {}
                Err(error) => return Err(error),
            }
        };
        let temporary = Self {
            directory,
            name,
            moved: false,
        };
        let mut file = File::from(file);
        if let Some(old) = like {
            // The owner first: changing it takes special bits away. Who may not keeps the own one.
            let owner = rustix::fs::Uid::from_raw(old.st_uid);
            let group = rustix::fs::Gid::from_raw(old.st_gid);
            let _ = rustix::fs::fchown(&file, Some(owner), Some(group));
            rustix::fs::fchmod(&file, Mode::from_raw_mode(old.st_mode & 0o7777))?;
        }
        let written = file.write_all(contents).and_then(|()| file.sync_all());
        written.map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))?;
        Ok(temporary)
    }

    fn moved(mut self) {
        self.moved = true;
    }
}

impl Drop for Temporary<'_> {
    fn drop(&mut self) {
        if !self.moved {
            let _ = rustix::fs::unlinkat(self.directory, &self.name, AtFlags::empty());
        }
    }
}

/// A part of the name only: with it all, the whole could be longer than names may be.
fn temporary_name(name: &OsStr) -> PathBuf {
    let name: String = name.to_string_lossy().chars().take(32).collect();
    format!(".{name}.{:016x}.tmp", fastrand::u64(..)).into()
}
