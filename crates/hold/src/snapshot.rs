//! What a state holds, as values to compare.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use sha2::{Digest as _, Sha256};

use crate::error::Error;
use crate::scratch::{Area, State};

/// Bounds on what is read.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Files that are larger are known by their hash.
    pub content: u64,
    /// Entries, files and folders alike. What is beyond is not looked at, and `truncated` says so.
    pub entries: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            content: 1 << 20,
            entries: 20_000,
        }
    }
}

/// The files of a state. Keys are the area and the path in it: `workspace/notes/a.json`,
/// `home/.config/x`, `tmp/y`, `package/0/data.db` (what was written into the first package folder).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Snapshot {
    pub entries: BTreeMap<String, Entry>,
    pub truncated: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Entry {
    Folder,
    File {
        /// Permission bits.
        mode: u32,
        length: u64,
        content: Content,
    },
    Link(String),
    /// A file of a package folder was removed.
    Removed,
    /// A socket, a pipe, a device.
    Special,
    /// It could not be read, for the reason given.
    Unreadable(String),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Content {
    Bytes(Vec<u8>),
    /// SHA-256, as hexadecimal digits.
    Hash(String),
}

impl Entry {
    /// The content of a file that was read in full.
    pub fn bytes(&self) -> Option<&[u8]> {
        match self {
            Self::File {
                content: Content::Bytes(bytes),
                ..
            } => Some(bytes),
            _ => None,
        }
    }
}

impl Snapshot {
    pub(crate) fn of(state: &State, limits: &Limits) -> Result<Self, Error> {
        let mut snapshot = Self::default();
        for area in Area::ALL {
            snapshot.add_tree(&state.area(area), area.name(), None, limits)?;
        }
        for n in 0.. {
            let package = state.package(n);
            if !package.is_dir() {
                break;
            }
            let key = format!("package/{n}");
            let original = fs::read_to_string(package.join(ORIGINAL))
                .ok()
                .map(PathBuf::from);
            if package.join(UPPER).is_dir() {
                snapshot.add_tree(&package.join(UPPER), &key, None, limits)?;
            } else if package.join(COPY).is_dir() {
                snapshot.add_tree(&package.join(COPY), &key, original.as_deref(), limits)?;
            }
        }
        Ok(snapshot)
    }

    /// Files that are as they are in `original` are left out.
    fn add_tree(
        &mut self,
        root: &Path,
        key: &str,
        original: Option<&Path>,
        limits: &Limits,
    ) -> Result<(), Error> {
        let mut stack = vec![(
            root.to_owned(),
            key.to_owned(),
            original.map(Path::to_owned),
        )];
        while let Some((dir, key, original)) = stack.pop() {
            let entries = match fs::read_dir(&dir) {
                Ok(entries) => entries,
                Err(e) => {
                    self.entries
                        .insert(key, Entry::Unreadable(e.kind().to_string()));
                    continue;
                }
            };
            for entry in entries {
                if self.entries.len() >= limits.entries {
                    self.truncated = true;
                    return Ok(());
                }
                // A file that is gone by now is not there.
                let Ok(entry) = entry else { continue };
                let name = entry.file_name();
                let (path, key) = (entry.path(), format!("{key}/{}", name.to_string_lossy()));
                let original = original.as_ref().map(|o| o.join(&name));
                let Ok(meta) = fs::symlink_metadata(&path) else {
                    continue;
                };
                if let Some(original) = &original
                    && !meta.is_dir()
                    && fs::symlink_metadata(original).is_ok_and(|o| same(&o, &meta))
                {
                    continue;
                }
                if meta.is_dir() {
                    stack.push((path, key.clone(), original.clone()));
                    if original.as_ref().is_some_and(|o| o.is_dir()) {
                        continue;
                    }
                }
                self.entries
                    .insert(key, read_entry(&entry.path(), &meta, limits));
            }
            // What the original has and the copy has not was removed.
            if let Some(original) = &original {
                for entry in fs::read_dir(original).into_iter().flatten().flatten() {
                    if fs::symlink_metadata(dir.join(entry.file_name())).is_err() {
                        let key = format!("{key}/{}", entry.file_name().to_string_lossy());
                        self.entries.insert(key, Entry::Removed);
                    }
                }
            }
        }
        Ok(())
    }
}

/// In the folder of a package: where an overlay writes, or the copy, the path of the original, and
/// what Node finds above the copy.
pub(crate) const UPPER: &str = "upper";
#[cfg(target_os = "linux")]
pub(crate) const WORK: &str = "work";
pub(crate) const COPY: &str = "copy";
pub(crate) const ORIGINAL: &str = "original";
pub(crate) const MODULES: &str = "node_modules";

/// A copy keeps length and time; what was written since has another time.
fn same(a: &fs::Metadata, b: &fs::Metadata) -> bool {
    a.file_type() == b.file_type() && a.len() == b.len() && a.modified().ok() == b.modified().ok()
        || a.is_symlink() && b.is_symlink()
}

fn read_entry(path: &Path, meta: &fs::Metadata, limits: &Limits) -> Entry {
    if meta.is_dir() {
        return Entry::Folder;
    }
    if meta.is_symlink() {
        return match fs::read_link(path) {
            Ok(target) => Entry::Link(target.to_string_lossy().into_owned()),
            Err(e) => Entry::Unreadable(e.kind().to_string()),
        };
    }
    if !meta.is_file() {
        return if is_whiteout(meta) {
            Entry::Removed
        } else {
            Entry::Special
        };
    }
    match read_content(path, limits.content) {
        Ok((length, content)) => Entry::File {
            mode: mode(meta),
            length,
            content,
        },
        Err(e) => Entry::Unreadable(e.kind().to_string()),
    }
}

fn read_content(path: &Path, most: u64) -> io::Result<(u64, Content)> {
    let mut file = File::open(path)?;
    let mut bytes = Vec::new();
    (&mut file).take(most + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 <= most {
        return Ok((bytes.len() as u64, Content::Bytes(bytes)));
    }
    let mut hash = Sha256::new();
    hash.update(&bytes);
    let mut length = bytes.len() as u64;
    loop {
        // The file of a server that still runs may grow faster than it is read.
        if length > most.saturating_mul(1024) {
            break;
        }
        bytes.resize(1 << 16, 0);
        let n = file.read(&mut bytes)?;
        if n == 0 {
            break;
        }
        hash.update(&bytes[..n]);
        length += n as u64;
    }
    let digits = hash.finalize().iter().map(|b| format!("{b:02x}")).collect();
    Ok((length, Content::Hash(digits)))
}

#[cfg(unix)]
fn mode(meta: &fs::Metadata) -> u32 {
    std::os::unix::fs::PermissionsExt::mode(&meta.permissions()) & 0o7777
}

#[cfg(not(unix))]
fn mode(_meta: &fs::Metadata) -> u32 {
    0
}

#[cfg(unix)]
fn is_whiteout(meta: &fs::Metadata) -> bool {
    use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
    meta.file_type().is_char_device() && meta.rdev() == 0
}

#[cfg(not(unix))]
fn is_whiteout(_meta: &fs::Metadata) -> bool {
    false
}
