//! Read, change, write back, with nobody between.

use std::fs::File;
use std::io::Read;
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use super::Place;
use crate::{Error, LockRequest, Locks, Result, Wait, key};

/// Reads a file, changes its contents and replaces it, under a lock.
///
/// `change` gets the contents (`None` if there is no file) and returns the new ones, in a thread where it may block.
///
/// # What is promised
///
/// - With the `host` backend, no update of this file by this function is lost, by whatever process of this user, and by
///   whatever path it names the file. With `redis` or `postgres`, also on a file system that several hosts share, as long
///   as no lease is lost.
/// - The file is replaced as by [`super::replace`].
/// - The lock is held until the file is written, even if the future is dropped before.
///
/// # What is not
///
/// - Programs that write the file in other ways are not kept out.
/// - A link is not followed, but refused: two names of one file would be two locks.
///
/// # Errors
///
/// What `change` returns, with the file untouched; what [`Locks::acquire`] returns; [`Error::Lost`] if the lock was lost
/// before the file was written; [`Error::File`].
pub async fn update<L, F>(locks: &L, path: impl AsRef<Path>, wait: Wait, change: F) -> Result<()>
where
    L: Locks + ?Sized,
    F: FnOnce(Option<Vec<u8>>) -> Result<Vec<u8>> + Send + 'static,
{
    let path = path.as_ref().to_owned();
    let lock = lock_name(&path)?;
    let guard = locks
        .acquire(LockRequest::new().exclusive(lock).wait(wait))
        .await?;
    let step = move || {
        let place = Place::of(&path)?;
        let old = read(&place).map_err(|error| Error::file(&path, error))?;
        let new = change(old)?;
        if guard.is_lost() {
            return Err(Error::Lost {
                what: path.display().to_string(),
            });
        }
        place
            .replace(&new)
            .map_err(|error| Error::file(&path, error))?;
        drop(guard);
        Ok(())
    };
    match tokio::task::spawn_blocking(step).await {
        Ok(result) => result,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            Err(_) => Err(Error::Invalid(
                "the runtime was shut down before the update".into(),
            )),
        },
    }
}

/// The same for all paths that lead to this name in this directory.
fn lock_name(path: &Path) -> Result<String> {
    let place = Place::of(path)?;
    let directory = place
        .directory
        .metadata()
        .map_err(|error| Error::file(path, error))?;
    let name = key::hex(&key::digest(place.name.as_bytes()));
    Ok(format!(
        "file:{}:{}:{name}",
        directory.dev(),
        directory.ino()
    ))
}

fn read(place: &Place<'_>) -> std::io::Result<Option<Vec<u8>>> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = match rustix::fs::openat(place.directory.as_fd(), place.name, flags, Mode::empty()) {
        Ok(file) => file,
        Err(Errno::NOENT) => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    let mut contents = Vec::new();
    File::from(file).read_to_end(&mut contents)?;
    Ok(Some(contents))
}
