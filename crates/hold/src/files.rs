//! Copying and removing trees that strangers made.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use crate::error::Error;

/// Bytes that a copy of a tree may have. Past this the folder is not a server's.
const MOST_BYTES: u64 = 4 << 30;

pub(crate) fn create_private_dir(path: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path)
}

/// Removes a tree, whatever its modes are. What cannot be removed stays: nobody can
/// do anything about it at this point, and the next run tries again.
pub(crate) fn remove_all(path: &Path) {
    if fs::remove_dir_all(path).is_ok() {
        return;
    }
    // A server may have taken its own folders' permissions away; overlayfs does.
    open_up(path);
    let _ = fs::remove_dir_all(path);
}

fn open_up(root: &Path) {
    let mut stack = vec![root.to_owned()];
    while let Some(dir) = stack.pop() {
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            let _ = fs::set_permissions(&dir, fs::Permissions::from_mode(0o700));
        }
        let Ok(entries) = fs::read_dir(&dir) else {
            continue;
        };
        stack.extend(
            entries
                .flatten()
                .filter(|e| e.file_type().is_ok_and(|t| t.is_dir()))
                .map(|e| e.path()),
        );
    }
}

/// Copies what is in one folder into another: files, folders, links, modes and times.
/// Sockets and the like are left out: they mean nothing without their process.
pub(crate) fn copy_all(from: &Path, to: &Path) -> Result<(), Error> {
    fs::create_dir_all(to).map_err(Error::file("create", to))?;
    let mut budget = MOST_BYTES;
    let mut stack: Vec<(PathBuf, PathBuf)> = vec![(from.to_owned(), to.to_owned())];
    // Modes of folders come last: a folder may not be writable.
    let mut folders = Vec::new();
    while let Some((from, to)) = stack.pop() {
        for entry in fs::read_dir(&from).map_err(Error::file("read", &from))? {
            let entry = entry.map_err(Error::file("read", &from))?;
            let (source, target) = (entry.path(), to.join(entry.file_name()));
            let meta = fs::symlink_metadata(&source).map_err(Error::file("read", &source))?;
            if meta.is_dir() {
                fs::create_dir_all(&target).map_err(Error::file("create", &target))?;
                folders.push((target.clone(), meta.permissions()));
                stack.push((source, target));
            } else if meta.is_symlink() {
                fs::read_link(&source)
                    .and_then(|to| link(&to, &target))
                    .map_err(Error::file("copy", &source))?;
            } else if meta.is_file() {
                budget = budget.checked_sub(meta.len()).ok_or_else(|| {
                    Error::file("copy", &source)(io::Error::other("the folder is too large"))
                })?;
                fs::copy(&source, &target).map_err(Error::file("copy", &source))?;
                if let Ok(time) = meta.modified() {
                    // Times are a convenience: a read-only copy keeps those of today.
                    let _ = File::options()
                        .write(true)
                        .open(&target)
                        .and_then(|f| f.set_modified(time));
                }
            } else {
                copy_special(&source, &target, &meta).map_err(Error::file("copy", &source))?;
            }
        }
    }
    for (folder, permissions) in folders.into_iter().rev() {
        fs::set_permissions(&folder, permissions).map_err(Error::file("copy", &folder))?;
    }
    Ok(())
}

#[cfg(unix)]
pub(crate) fn link(to: &Path, at: &Path) -> io::Result<()> {
    std::os::unix::fs::symlink(to, at)
}

/// A removed file of an overlay is a character device 0/0, and has to be one in the copy.
#[cfg(target_os = "linux")]
fn copy_special(_from: &Path, to: &Path, meta: &fs::Metadata) -> io::Result<()> {
    use rustix::fs::{CWD, FileType, Mode, mknodat};
    use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
    if meta.file_type().is_char_device() && meta.rdev() == 0 {
        mknodat(CWD, to, FileType::CharacterDevice, Mode::empty(), 0)?;
    }
    Ok(())
}

#[cfg(not(target_os = "linux"))]
fn copy_special(_from: &Path, _to: &Path, _meta: &fs::Metadata) -> io::Result<()> {
    Ok(())
}
