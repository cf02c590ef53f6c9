//! The files that were lowered, and the paths they may be asked for by.

use rustc_hash::FxHashMap;
use toctou_core::ir::ModuleId;

use crate::EXTENSIONS;

pub(super) struct Files<'p> {
    by_path: FxHashMap<&'p str, ModuleId>,
}

/// Folders that hold built code, for which there is a source elsewhere.
const BUILT: &[&str] = &[
    "dist", "build", "lib", "out", "output", "esm", "cjs", "types", "bin", "es",
];

impl<'p> Files<'p> {
    pub(super) fn new(paths: &'p [String]) -> Self {
        let by_path = paths
            .iter()
            .enumerate()
            .map(|(index, path)| (path.as_str(), ModuleId(index as u32)))
            .collect();
        Self { by_path }
    }

    /// The module meant by a path that may lack its extension, have that of
    /// the compiled file, or name a folder.
    pub(super) fn find(&self, base: &str) -> Option<ModuleId> {
        let base = base.trim_end_matches('/');
        if let Some((stem, extension)) = split_extension(base) {
            // `./x.js` is written for the output; the source next to it wins.
            let sources: &[&str] = match extension {
                "js" => &["ts", "tsx", "js", "jsx"],
                "jsx" => &["tsx", "jsx"],
                "mjs" => &["mts", "mjs"],
                "cjs" => &["cts", "cjs"],
                _ => &[],
            };
            if let Some(found) = self.with_extension(stem, sources) {
                return Some(found);
            }
        }
        if let Some(&found) = self.by_path.get(base) {
            return Some(found);
        }
        if !base.is_empty()
            && let Some(found) = self.with_extension(base, EXTENSIONS)
        {
            return Some(found);
        }
        let index = if base.is_empty() {
            "index".to_owned()
        } else {
            format!("{base}/index")
        };
        self.with_extension(&index, EXTENSIONS)
    }

    fn with_extension(&self, stem: &str, extensions: &[&str]) -> Option<ModuleId> {
        let mut path = String::with_capacity(stem.len() + 5);
        path.push_str(stem);
        path.push('.');
        let length = path.len();
        extensions.iter().find_map(|extension| {
            path.truncate(length);
            path.push_str(extension);
            self.by_path.get(path.as_str()).copied()
        })
    }

    /// A file that a package's manifest names: its source if there is one.
    pub(super) fn find_source(&self, dir: &str, target: &str) -> Option<ModuleId> {
        let target = target.trim_start_matches("./");
        let target = [".d.ts", ".d.mts", ".d.cts"]
            .iter()
            .find_map(|end| target.strip_suffix(end))
            .unwrap_or(target);
        if let Some((first, rest)) = target.split_once('/')
            && BUILT.contains(&first)
        {
            // `dist/esm/index.js`, `dist/src/index.js`: `src/index.ts`.
            let mut rest = rest;
            for _ in 0..3 {
                let source = join(dir, &format!("src/{rest}"))?;
                if let Some(found) = self.find(&source) {
                    return Some(found);
                }
                match rest.split_once('/') {
                    Some((_, shorter)) => rest = shorter,
                    None => break,
                }
            }
        }
        self.find(&join(dir, target)?)
    }
}

impl Files<'_> {
    /// `bin/cli.js` imports `../dist/main.js`, which is built from `src/main.ts`.
    pub(super) fn find_built(&self, base: &str) -> Option<ModuleId> {
        let mut start = 0;
        loop {
            let rest = base.get(start..)?;
            let end = rest.find('/')?;
            if BUILT.contains(&rest.get(..end)?) {
                let dir = base.get(..start)?;
                if let Some(found) = self.find_source(dir, rest) {
                    return Some(found);
                }
            }
            start += end + 1;
        }
    }
}

fn split_extension(path: &str) -> Option<(&str, &str)> {
    let name = path.rfind('/').map_or(0, |at| at + 1);
    let dot = path.get(name..)?.rfind('.')? + name;
    Some((path.get(..dot)?, path.get(dot + 1..)?))
}

/// The folder of a path; the root is the empty string.
pub(super) fn parent(path: &str) -> &str {
    path.rfind('/').and_then(|at| path.get(..at)).unwrap_or("")
}

/// A folder and the folders above it, the root last.
pub(super) fn ancestors(dir: &str) -> impl Iterator<Item = &str> {
    let mut next = Some(dir);
    std::iter::from_fn(move || {
        let dir = next?;
        next = (!dir.is_empty()).then(|| parent(dir));
        Some(dir)
    })
}

/// `dir/path` without `.` and `..`. `None` where it leaves the root.
pub(super) fn join(dir: &str, path: &str) -> Option<String> {
    let mut parts: Vec<&str> = Vec::new();
    for part in dir.split('/').chain(path.split('/')) {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop()?;
            }
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}
