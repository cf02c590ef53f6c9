//! Modules by their dotted names.

use std::collections::BTreeMap;

use rustc_hash::{FxHashMap, FxHashSet};

/// Folders above a file in which its imports are looked for.
const MAX_LEVELS: usize = 24;

pub(super) struct Files<'p> {
    /// Path without `.py` or `/__init__.py` to position.
    by_path: FxHashMap<&'p str, usize>,
    /// Folders with an `__init__.py`.
    packages: FxHashSet<&'p str>,
    /// Packages at the top of an import path, by name.
    top: FxHashMap<&'p str, Vec<&'p str>>,
}

pub(super) fn folder(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(folder, _)| folder)
}

fn join(folder: &str, rest: &str) -> String {
    if folder.is_empty() {
        rest.to_owned()
    } else {
        format!("{folder}/{rest}")
    }
}

impl<'p> Files<'p> {
    pub(super) fn new(paths: &'p [String]) -> Self {
        let mut files = Self {
            by_path: FxHashMap::default(),
            packages: FxHashSet::default(),
            top: FxHashMap::default(),
        };
        for (index, path) in paths.iter().enumerate() {
            let Some(stem) = path.strip_suffix(".py") else {
                continue;
            };
            let name = match stem.strip_suffix("/__init__") {
                Some(package) => {
                    files.packages.insert(package);
                    package
                }
                None => stem,
            };
            files.by_path.insert(name, index);
        }
        for package in &files.packages {
            if !files.packages.contains(folder(package)) {
                let name = package.rsplit('/').next().unwrap_or(package);
                files.top.entry(name).or_default().push(package);
            }
        }
        for list in files.top.values_mut() {
            list.sort_unstable();
        }
        files
    }

    /// The module that a specifier means in a file.
    pub(super) fn find(&self, from: &str, specifier: &str) -> Option<usize> {
        let dots = specifier.bytes().take_while(|&b| b == b'.').count();
        let rest = specifier.get(dots..)?.replace('.', "/");
        let mut at = folder(from);
        if dots > 0 {
            for _ in 1..dots {
                if at.is_empty() {
                    return None;
                }
                at = folder(at);
            }
            let path = if rest.is_empty() {
                at.to_owned()
            } else {
                join(at, &rest)
            };
            return self.by_path.get(path.as_str()).copied();
        }
        for _ in 0..MAX_LEVELS {
            // The inside of a package is no place that imports start from.
            if !self.packages.contains(at) {
                for base in [join(at, &rest), join(at, &format!("src/{rest}"))] {
                    if let Some(&index) = self.by_path.get(base.as_str()) {
                        return Some(index);
                    }
                }
            }
            if at.is_empty() {
                break;
            }
            at = folder(at);
        }
        // A package elsewhere in the repository; the nearest one, if there are several.
        let head = rest.split('/').next()?;
        let mut best: Option<(usize, usize)> = None;
        for package in self.top.get(head)?.iter().take(64) {
            let path = join(folder(package), &rest);
            if let Some(&index) = self.by_path.get(path.as_str()) {
                let near = common(package, from);
                if best.is_none_or(|(n, _)| near > n) {
                    best = Some((near, index));
                }
            }
        }
        best.map(|(_, index)| index)
    }

    /// Packages and the modules in their folders, in the order of their paths.
    pub(super) fn packages(&self) -> Vec<(usize, Vec<(String, usize)>)> {
        let mut out: BTreeMap<usize, Vec<(String, usize)>> = BTreeMap::new();
        for (path, &index) in &self.by_path {
            let folder = folder(path);
            if folder.is_empty() || !self.packages.contains(folder) {
                continue;
            }
            if let Some(&package) = self.by_path.get(folder) {
                let name = path.rsplit('/').next().unwrap_or(path).to_owned();
                out.entry(package).or_default().push((name, index));
            }
        }
        for list in out.values_mut() {
            list.sort_unstable();
        }
        out.into_iter().collect()
    }
}

fn common(a: &str, b: &str) -> usize {
    a.split('/')
        .zip(b.split('/'))
        .take_while(|(a, b)| a == b)
        .count()
}
