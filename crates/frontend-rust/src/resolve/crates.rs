//! Crates and the module trees of their files.

use rustc_hash::{FxHashMap, FxHashSet};
use toctou_core::frontend::Manifest;

/// A module: the folder of its crate, and its path in it.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Place {
    /// Root folder of the modules: `crates/a/src`, or that of a binary.
    root: String,
    path: Vec<String>,
}

impl Place {
    pub(super) fn parent(&self) -> Option<Place> {
        let mut path = self.path.clone();
        path.pop()?;
        Some(Place {
            root: self.root.clone(),
            path,
        })
    }
}

pub(super) struct Crates {
    places: Vec<Option<Place>>,
    files: FxHashMap<Place, Vec<usize>>,
    /// Library crates of the workspace, by the name that code uses.
    libraries: FxHashMap<String, Place>,
    /// Names of dependencies, by the folder of the manifest.
    dependencies: Vec<(String, FxHashSet<String>)>,
    paths: Vec<String>,
}

fn folder(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(dir, _)| dir)
}

fn below<'p>(path: &'p str, dir: &str) -> Option<&'p str> {
    if dir.is_empty() {
        return Some(path);
    }
    path.strip_prefix(dir)?.strip_prefix('/')
}

fn join(dir: &str, name: &str) -> String {
    if dir.is_empty() {
        name.to_owned()
    } else {
        format!("{dir}/{name}")
    }
}

impl Crates {
    pub(super) fn new(paths: &[String], manifests: &[Manifest]) -> Self {
        let mut packages: Vec<(String, toml::Table)> = manifests
            .iter()
            .filter(|m| m.path.rsplit('/').next() == Some("Cargo.toml"))
            .map(|m| {
                let table = m.text.parse::<toml::Table>().unwrap_or_default();
                (folder(&m.path).to_owned(), table)
            })
            .collect();
        packages.sort_by(|a, b| a.0.cmp(&b.0));
        let mut crates = Self {
            places: Vec::with_capacity(paths.len()),
            files: FxHashMap::default(),
            libraries: FxHashMap::default(),
            dependencies: Vec::new(),
            paths: paths.to_vec(),
        };
        // The innermost package that a file is in.
        let dirs: Vec<&str> = packages.iter().map(|(dir, _)| dir.as_str()).collect();
        for (index, path) in paths.iter().enumerate() {
            let dir = nearest(&dirs, folder(path));
            let place = place(path, dir);
            crates.files.entry(place.clone()).or_default().push(index);
            crates.places.push(Some(place));
        }
        for (dir, table) in &packages {
            crates.package(dir, table);
        }
        crates
    }

    fn package(&mut self, dir: &str, table: &toml::Table) {
        let text = |section: &str, key: &str| {
            table
                .get(section)
                .and_then(|s| s.get(key))
                .and_then(toml::Value::as_str)
                .map(str::to_owned)
        };
        let mut known: FxHashSet<String> = FxHashSet::default();
        for section in ["dependencies", "dev-dependencies", "build-dependencies"] {
            if let Some(list) = table.get(section).and_then(toml::Value::as_table) {
                known.extend(list.keys().map(|k| k.replace('-', "_")));
            }
        }
        self.dependencies.push((dir.to_owned(), known));
        let Some(name) = text("lib", "name").or_else(|| text("package", "name")) else {
            return;
        };
        let file = text("lib", "path").unwrap_or_else(|| "src/lib.rs".to_owned());
        let root = join(dir, folder(&file));
        let lib = Place {
            root,
            path: Vec::new(),
        };
        if self.files.contains_key(&lib) {
            self.libraries.entry(name.replace('-', "_")).or_insert(lib);
        }
    }

    pub(super) fn place(&self, index: usize) -> Option<Place> {
        self.places.get(index)?.clone()
    }

    pub(super) fn root_of(&self, index: usize) -> Option<Place> {
        Some(Place {
            root: self.place(index)?.root,
            path: Vec::new(),
        })
    }

    pub(super) fn library(&self, name: &str) -> Option<Place> {
        self.libraries.get(name).cloned()
    }

    pub(super) fn child(&self, index: usize, name: &str) -> Option<usize> {
        let mut place = self.place(index)?;
        place.path.push(name.to_owned());
        self.files.get(&place)?.first().copied()
    }

    pub(super) fn is_dependency(&self, index: usize, name: &str) -> bool {
        let Some(path) = self.paths.get(index) else {
            return false;
        };
        self.libraries.contains_key(name)
            || self
                .dependencies
                .iter()
                .any(|(dir, names)| below(path, dir).is_some() && names.contains(name))
    }

    /// The file that the longest part of a path leads to, and its length.
    pub(super) fn deepest(
        &self,
        start: &Place,
        path: &[String],
        has: impl Fn(usize, &str) -> bool,
    ) -> Option<(usize, usize)> {
        let mut at = start.clone();
        let mut best: Option<(Vec<usize>, usize)> =
            self.files.get(&at).map(|files| (files.clone(), 0));
        for (used, part) in path.iter().enumerate() {
            at.path.push(part.clone());
            if let Some(files) = self.files.get(&at) {
                best = Some((files.clone(), used + 1));
            }
        }
        let (files, used) = best?;
        // `lib.rs` and `main.rs` are both the root: the one that has the name.
        let wanted = path.get(used);
        let file = match wanted {
            Some(name) => files
                .iter()
                .find(|f| {
                    let joined = path.get(used..).unwrap_or_default().join("::");
                    has(**f, name) || has(**f, &joined)
                })
                .or_else(|| files.first()),
            None => files.first(),
        };
        file.map(|f| (*f, used))
    }
}

fn nearest<'d>(dirs: &[&'d str], of: &str) -> Option<&'d str> {
    let mut at = of;
    loop {
        if let Ok(found) = dirs.binary_search(&at) {
            return dirs.get(found).copied();
        }
        if at.is_empty() {
            return None;
        }
        at = folder(at);
    }
}

/// `src/a/b.rs` is `a::b` below `src`; `src/bin/x.rs` and files elsewhere are
/// roots of their own.
fn place(path: &str, package: Option<&str>) -> Place {
    let dir = match package {
        Some(dir) => dir.to_owned(),
        // Without a manifest, what stands before `src/` is taken for the package.
        None => match path.find("src/") {
            Some(at) if at == 0 || path.as_bytes().get(at - 1) == Some(&b'/') => path
                .get(..at.saturating_sub(1))
                .unwrap_or_default()
                .to_owned(),
            _ => folder(path).to_owned(),
        },
    };
    let relative = below(path, &dir).unwrap_or(path);
    let stem = relative.strip_suffix(".rs").unwrap_or(relative);
    let mut parts: Vec<String> = stem.split('/').map(str::to_owned).collect();
    let mut root = dir;
    if parts.len() > 1 {
        // `src`, `tests`, `examples`: each is a tree of its own.
        root = join(&root, &parts.remove(0));
    }
    if parts.first().is_some_and(|p| p == "bin") && parts.len() > 1 {
        root = join(&root, "bin");
        parts.remove(0);
        root = join(&root, &parts.remove(0));
    }
    let last = parts.last().map_or("", String::as_str);
    if last == "mod" || parts.len() == 1 && (last == "lib" || last == "main") {
        parts.pop();
    }
    Place { root, path: parts }
}
