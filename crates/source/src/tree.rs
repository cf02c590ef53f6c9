//! The one writer of fetched files.
//!
//! It makes plain files and folders in a folder that nobody else has, and no
//! links: so no name can lead out of it, and none can be made to later. Names
//! are checked all the same, because one that tries is a reason to stop.

use std::fs::OpenOptions;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use crate::error::megabytes;
use crate::{LeftOut, Limits, SourceError};

/// Below this, a high ratio proves nothing.
const RATIO_FROM: u64 = 32 << 20;
/// Naming more than these helps nobody.
const MOST_LEFT_OUT: usize = 1000;

pub(crate) struct Tree<'a> {
    /// For messages.
    what: &'a str,
    root: &'a Path,
    limits: Limits,
    /// Bytes that everything came in.
    packed: u64,
    bytes: u64,
    entries: u64,
    left_out: Vec<LeftOut>,
}

impl<'a> Tree<'a> {
    pub(crate) fn new(
        what: &'a str,
        root: &'a Path,
        packed: u64,
        limits: Limits,
    ) -> Result<Self, SourceError> {
        std::fs::create_dir_all(root).map_err(|error| SourceError::Io {
            path: root.to_owned(),
            error,
        })?;
        Ok(Self {
            what,
            root,
            limits,
            packed,
            bytes: 0,
            entries: 0,
            left_out: Vec::new(),
        })
    }

    /// Counts an entry, whatever becomes of it.
    pub(crate) fn entry(&mut self) -> Result<(), SourceError> {
        self.entries += 1;
        if self.entries > self.limits.entries {
            return Err(self.too_large(format!("{} entries", self.limits.entries)));
        }
        Ok(())
    }

    pub(crate) fn leave_out(&mut self, path: &str, reason: &'static str) {
        if self.left_out.len() < MOST_LEFT_OUT {
            self.left_out.push(LeftOut {
                path: path.to_owned(),
                reason,
            });
        }
    }

    /// A folder. That it was there before is no fault.
    pub(crate) fn folder(&mut self, name: &str) -> Result<(), SourceError> {
        let path = self.place(name)?;
        self.make(name, &path)
    }

    /// A file; a second of the same name is a fault.
    pub(crate) fn file(&mut self, name: &str, content: &mut dyn Read) -> Result<(), SourceError> {
        let path = self.place(name)?;
        if path == self.root {
            return Err(self.refused(name, "a file without a name"));
        }
        if let Some(parent) = path.parent() {
            self.make(name, parent)?;
        }
        let mut file = match OpenOptions::new().write(true).create_new(true).open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                return Err(self.refused(name, "the name is there twice"));
            }
            Err(error) if error.kind() == io::ErrorKind::InvalidFilename => {
                self.leave_out(name, "the name is too long");
                return Ok(());
            }
            Err(error) => return Err(SourceError::Io { path, error }),
        };
        let room = self.room();
        let copied = io::copy(&mut content.take(room + 1), &mut file);
        let copied = copied.map_err(|error| self.broken(name, &error))?;
        self.bytes += copied;
        if copied > room {
            let limit = if self.bytes > self.limits.bytes {
                megabytes(self.limits.bytes)
            } else {
                format!("{} times its packed size", self.limits.ratio)
            };
            return Err(self.too_large(limit));
        }
        Ok(())
    }

    pub(crate) fn finish(self) -> Vec<LeftOut> {
        self.left_out
    }

    pub(crate) fn broken(&self, name: &str, error: &dyn std::fmt::Display) -> SourceError {
        SourceError::Broken {
            archive: self.what.to_owned(),
            because: format!("{name}: {error}"),
        }
    }

    pub(crate) fn refused(&self, name: &str, because: &'static str) -> SourceError {
        SourceError::Unsafe {
            archive: self.what.to_owned(),
            entry: name.chars().take(200).collect(),
            because,
        }
    }

    fn too_large(&self, limit: String) -> SourceError {
        SourceError::TooLarge {
            what: self.what.to_owned(),
            limit,
        }
    }

    /// How many bytes may still come.
    fn room(&self) -> u64 {
        let by_ratio = self
            .packed
            .saturating_mul(self.limits.ratio)
            .max(RATIO_FROM);
        self.limits.bytes.min(by_ratio).saturating_sub(self.bytes)
    }

    fn place(&self, name: &str) -> Result<PathBuf, SourceError> {
        if name.contains('\0') {
            return Err(self.refused(name, "there is a zero in its name"));
        }
        if name.starts_with('/') {
            return Err(self.refused(name, "an absolute path"));
        }
        let mut path = self.root.to_owned();
        let mut depth = 0;
        for part in name.split('/') {
            match part {
                "" | "." => continue,
                ".." => return Err(self.refused(name, "a path that leads out")),
                part => path.push(part),
            }
            depth += 1;
        }
        if depth > self.limits.depth {
            return Err(self.too_large(format!("{} folders deep", self.limits.depth)));
        }
        Ok(path)
    }

    fn make(&self, name: &str, folder: &Path) -> Result<(), SourceError> {
        match std::fs::create_dir_all(folder) {
            Ok(()) => Ok(()),
            // A file is where a folder should be.
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::AlreadyExists | io::ErrorKind::NotADirectory
                ) =>
            {
                Err(self.refused(name, "a file and a folder of one name"))
            }
            Err(error) => Err(SourceError::Io {
                path: folder.to_owned(),
                error,
            }),
        }
    }
}
