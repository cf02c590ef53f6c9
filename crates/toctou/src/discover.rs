//! Which files are scanned, and which are not and why.
//!
//! Walks folders without following symbolic links, honours `.gitignore`, and
//! leaves out tests and code that others wrote or a tool made, unless that is all
//! there is (a published npm package is all `dist`). What is left out is counted.
//! The result is sorted, so nothing depends on the order of a directory.

mod twins;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use globset::GlobSet;
use ignore::{DirEntry, WalkBuilder};
use toctou_core::FileRole;
use toctou_core::finding::Skipped;

use crate::errors::Error;
use crate::{languages, roles};

/// A file to read.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Candidate {
    /// Relative to the root, with `/`.
    pub(crate) path: String,
    pub(crate) absolute: PathBuf,
    pub(crate) role: FileRole,
    /// Index into [`languages::FRONTENDS`]. A file that is named and whose name
    /// says nothing is taken for the first.
    pub(crate) language: usize,
    /// Named on the command line: scanned whatever it is.
    pub(crate) explicit: bool,
}

impl Candidate {
    /// In bytes; none if it cannot be asked.
    fn size(&self) -> u64 {
        self.absolute.metadata().map_or(0, |meta| meta.len())
    }
}

#[derive(Debug, Default)]
pub(crate) struct Discovery {
    pub(crate) files: Vec<Candidate>,
    /// `package.json`, `tsconfig.json` and the like: they say how imports resolve.
    pub(crate) manifests: Vec<Candidate>,
    pub(crate) skipped: Vec<Skipped>,
    /// Files behind `skipped`: a folder counts as many as were seen in it.
    pub(crate) skipped_files: u32,
    /// Generated code is scanned, because there is nothing else.
    pub(crate) generated: bool,
    /// Source in languages that are not analysed.
    pub(crate) other_languages: BTreeMap<&'static str, u32>,
}

/// Where the paths of a report start.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Root {
    pub(crate) folder: PathBuf,
    /// Leads from the working directory to it (`packages/a/`), if it is below.
    pub(crate) base: String,
    /// What to scan: canonical, sorted, each once.
    pub(crate) paths: Vec<PathBuf>,
    /// What the folder was fetched from. Then strangers made all of it, and its
    /// own `.gitignore` hides nothing.
    pub(crate) origin: Option<String>,
}

impl Root {
    /// A folder that was fetched.
    pub(crate) fn fetched(folder: &Path, origin: String) -> Self {
        Self {
            folder: folder.to_owned(),
            base: String::new(),
            paths: vec![folder.to_owned()],
            origin: Some(origin),
        }
    }
}

/// One folder is its own root; several paths share the working directory, or
/// what they have in common if they are elsewhere.
pub(crate) fn root(given: &[PathBuf]) -> Result<Root, Error> {
    let mut paths = Vec::new();
    for path in given {
        paths.push(
            path.canonicalize()
                .map_err(|_| Error::NoSuchPath { path: path.clone() })?,
        );
    }
    paths.sort_unstable();
    paths.dedup();
    // A path inside another one that is given adds nothing, unless it is a file:
    // files are scanned whatever they are.
    let folders: Vec<PathBuf> = paths.iter().filter(|path| path.is_dir()).cloned().collect();
    paths.retain(|path| {
        !path.is_dir()
            || !folders
                .iter()
                .any(|folder| folder != path && path.starts_with(folder))
    });

    let here = std::env::current_dir()
        .and_then(|here| here.canonicalize())
        .unwrap_or_default();
    let folder = match paths.as_slice() {
        [one] if one.is_dir() => one.clone(),
        all if all.iter().all(|path| path.starts_with(&here)) => here.clone(),
        all => common(all),
    };
    let mut base = folder.strip_prefix(&here).map(slashed).unwrap_or_default();
    if !base.is_empty() {
        base.push('/');
    }
    Ok(Root {
        folder,
        base,
        paths,
        origin: None,
    })
}

fn common(paths: &[PathBuf]) -> PathBuf {
    let mut folders = paths.iter().map(|path| {
        if path.is_dir() {
            path
        } else {
            path.parent().unwrap_or(path)
        }
    });
    let first = folders.next().map(Path::to_path_buf).unwrap_or_default();
    folders.fold(first, |common, path| {
        common
            .components()
            .zip(path.components())
            .take_while(|(a, b)| a == b)
            .map(|(a, _)| a)
            .collect()
    })
}

/// With `/`, on every system. What is not Unicode is replaced: it is for showing only.
pub(crate) fn slashed(path: &Path) -> String {
    path.components()
        .map(|part| part.as_os_str().to_string_lossy())
        .collect::<Vec<_>>()
        .join("/")
}

/// `exclude` matches paths with `prefix` before them.
pub(crate) fn discover(root: &Root, exclude: &GlobSet, prefix: &str) -> Discovery {
    let mut walk = Walk {
        root: &root.folder,
        fetched: root.origin.is_some(),
        exclude,
        prefix,
        found: Discovery::default(),
        generated: Vec::new(),
        tests: Vec::new(),
        excluded: 0,
        twins: 0,
    };
    for path in &root.paths {
        if path.is_dir() {
            walk.folder(path);
        } else {
            let candidate = walk.candidate(path, true);
            walk.found.files.push(candidate);
        }
    }
    walk.finish()
}

struct Walk<'a> {
    root: &'a Path,
    fetched: bool,
    exclude: &'a GlobSet,
    prefix: &'a str,
    found: Discovery,
    /// Generated files, with what makes them so.
    generated: Vec<(String, Candidate)>,
    tests: Vec<Candidate>,
    excluded: u32,
    /// Files of code that is there in another module format.
    twins: u32,
}

impl Walk<'_> {
    fn candidate(&self, absolute: &Path, explicit: bool) -> Candidate {
        let path = slashed(absolute.strip_prefix(self.root).unwrap_or(absolute));
        let name = path.rsplit('/').next().unwrap_or(&path);
        Candidate {
            language: languages::of(name).unwrap_or_default(),
            role: if explicit {
                FileRole::Product
            } else {
                roles::role(&path)
            },
            path,
            absolute: absolute.to_owned(),
            explicit,
        }
    }

    fn folder(&mut self, folder: &Path) {
        let vendored: Arc<Mutex<Vec<PathBuf>>> = Arc::default();
        let seen = Arc::clone(&vendored);
        let walk = WalkBuilder::new(folder)
            .follow_links(false)
            .require_git(false)
            // What is scanned must not depend on the settings of who scans.
            .git_global(false)
            .git_ignore(!self.fetched)
            .git_exclude(!self.fetched)
            .ignore(!self.fetched)
            .parents(!self.fetched)
            .sort_by_file_name(Ord::cmp)
            .filter_entry(move |entry| {
                let name = entry.file_name().to_string_lossy();
                let is_vendored = entry.depth() > 0
                    && entry.file_type().is_some_and(|kind| kind.is_dir())
                    && (roles::VENDORED.contains(&&*name)
                        // What cargo builds; the tag tells it from a folder of sources.
                        || name == "target" && entry.path().join("CACHEDIR.TAG").is_file());
                if is_vendored && let Ok(mut seen) = seen.lock() {
                    seen.push(entry.path().to_owned());
                }
                !is_vendored
            })
            .build();
        for entry in walk {
            match entry {
                Ok(entry) => self.entry(&entry),
                Err(error) => self.fault(folder, &error),
            }
        }
        let mut vendored = vendored
            .lock()
            .map(|mut seen| std::mem::take(&mut *seen))
            .unwrap_or_default();
        vendored.sort_unstable();
        for path in vendored {
            self.found.skipped_files += 1;
            self.found.skipped.push(Skipped {
                file: self.candidate(&path, false).path + "/",
                reason: "vendored".to_owned(),
                fault: false,
            });
        }
    }

    fn entry(&mut self, entry: &DirEntry) {
        let Some(kind) = entry.file_type().filter(|kind| !kind.is_dir()) else {
            return;
        };
        let path = entry.path();
        let name = entry.file_name().to_string_lossy();
        let extension = path
            .extension()
            .map(|e| e.to_string_lossy())
            .unwrap_or_default();
        let is_source = languages::of(&name).is_some();
        let is_manifest = languages::is_manifest(&name);
        if !is_source && !is_manifest {
            if let Some(language) = roles::unsupported_language(&extension) {
                *self.found.other_languages.entry(language).or_default() += 1;
            }
            return;
        }
        let candidate = self.candidate(path, false);
        if kind.is_symlink() || !kind.is_file() {
            if is_source {
                self.found.skipped_files += 1;
                self.found.skipped.push(Skipped {
                    file: candidate.path,
                    reason: if kind.is_symlink() {
                        "symbolic link"
                    } else {
                        "not a regular file"
                    }
                    .to_owned(),
                    fault: false,
                });
            }
        } else if is_manifest {
            self.found.manifests.push(candidate);
        } else if self
            .exclude
            .is_match(format!("{}{}", self.prefix, candidate.path))
        {
            self.excluded += 1;
        } else if let Some(what) = roles::generated(&candidate.path) {
            self.generated.push((what.to_owned(), candidate));
        } else if roles::is_test(&candidate.path) {
            self.tests.push(candidate);
        } else {
            self.found.files.push(candidate);
        }
    }

    fn fault(&mut self, folder: &Path, error: &ignore::Error) {
        let (path, reason) = explain(error);
        self.found.skipped_files += 1;
        let file = self
            .candidate(&path.unwrap_or_else(|| folder.to_owned()), false)
            .path;
        self.found.skipped.push(Skipped {
            file: if file.is_empty() {
                ".".to_owned()
            } else {
                file
            },
            reason,
            fault: true,
        });
    }

    fn finish(mut self) -> Discovery {
        if !self.generated.is_empty() && self.is_published_package() {
            self.found.generated = true;
            self.twins = twins::take(&mut self.generated, &self.found.manifests).len() as u32;
            self.found
                .files
                .extend(self.generated.drain(..).map(|(_, candidate)| candidate));
        }
        if self.found.files.is_empty() {
            self.found.files = std::mem::take(&mut self.tests);
        }
        let mut folders: BTreeMap<String, u32> = BTreeMap::new();
        for (what, _) in &self.generated {
            *folders.entry(what.clone()).or_default() += 1;
        }
        for (file, count) in folders {
            self.found.skipped_files += count;
            let reason = match (file.ends_with('/'), count) {
                (false, _) => "minified".to_owned(),
                (true, 1) => "generated, 1 file".to_owned(),
                (true, count) => format!("generated, {count} files"),
            };
            self.found.skipped.push(Skipped {
                file,
                reason,
                fault: false,
            });
        }
        let mut leave_out = |count: u32, file: &str, reason: &str| {
            if count > 0 {
                let files = if count == 1 { "file" } else { "files" };
                self.found.skipped_files += count;
                self.found.skipped.push(Skipped {
                    file: file.to_owned(),
                    reason: format!("{reason}, {count} {files}"),
                    fault: false,
                });
            }
        };
        leave_out(self.excluded, crate::config::NAME, "excluded by the config");
        leave_out(self.tests.len() as u32, ".", "tests");
        leave_out(self.twins, ".", "the same code in another module format");
        // Given by name and found in a folder too: the name says more.
        for list in [&mut self.found.files, &mut self.found.manifests] {
            list.sort_unstable_by(|a, b| (&a.path, !a.explicit).cmp(&(&b.path, !b.explicit)));
            list.dedup_by(|later, first| later.path == first.path);
        }
        self.found
    }

    /// No hand-written source but a few small files of JavaScript: a launcher,
    /// a config. Then the generated code is the program.
    fn is_published_package(&self) -> bool {
        let own: Vec<&Candidate> = self
            .found
            .files
            .iter()
            .filter(|file| file.role == FileRole::Product)
            .collect();
        if own
            .iter()
            .any(|file| file.explicit || !file.path.ends_with("js"))
        {
            return false;
        }
        let own: u64 = own.into_iter().map(Candidate::size).sum();
        let made: u64 = self
            .generated
            .iter()
            .map(|(_, candidate)| candidate.size())
            .sum();
        own * 10 <= made
    }
}

/// The path that an error is about, and the error without it.
fn explain(error: &ignore::Error) -> (Option<PathBuf>, String) {
    match error {
        ignore::Error::WithPath { path, err } => (Some(path.clone()), explain(err).1),
        ignore::Error::WithDepth { err, .. } | ignore::Error::WithLineNumber { err, .. } => {
            explain(err)
        }
        ignore::Error::Loop { child, .. } => (Some(child.clone()), "symbolic link loop".to_owned()),
        // The system's message, without the path that walkdir puts before it.
        ignore::Error::Io(error) => (
            None,
            error.raw_os_error().map_or_else(
                || error.to_string(),
                |code| std::io::Error::from_raw_os_error(code).to_string(),
            ),
        ),
        other => (None, other.to_string()),
    }
}

#[cfg(test)]
mod tests;
