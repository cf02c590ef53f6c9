//! The packages of a workspace: every `package.json` that has a name.

use rustc_hash::FxHashMap;
use serde_json::Value;
use toctou_core::ir::ModuleId;

use super::files::{Files, ancestors, join, parent};
use super::tsconfig::match_pattern;
use super::{Manifest, jsonc};

pub(super) struct Packages {
    list: Vec<Package>,
    by_name: FxHashMap<String, usize>,
    by_dir: FxHashMap<String, usize>,
}

pub(super) struct Package {
    dir: String,
    json: Value,
}

impl Packages {
    pub(super) fn new(manifests: &[Manifest]) -> Self {
        let mut list: Vec<Package> = manifests
            .iter()
            .filter(|m| m.path.rsplit('/').next() == Some("package.json"))
            .filter_map(|m| {
                Some(Package {
                    dir: parent(&m.path).to_owned(),
                    json: jsonc::parse(&m.text)?,
                })
            })
            .collect();
        // The outermost of two packages of one name; templates and fixtures lie deep.
        list.sort_by(|a, b| {
            let depth = |p: &Package| p.dir.matches('/').count();
            (depth(a), &a.dir).cmp(&(depth(b), &b.dir))
        });
        let mut by_name = FxHashMap::default();
        let mut by_dir = FxHashMap::default();
        for (index, package) in list.iter().enumerate() {
            by_dir.entry(package.dir.clone()).or_insert(index);
            if let Some(name) = package.json.get("name").and_then(Value::as_str)
                && !name.is_empty()
            {
                by_name.entry(name.to_owned()).or_insert(index);
            }
        }
        Self {
            list,
            by_name,
            by_dir,
        }
    }

    /// Each package: its folder, and what its manifest says.
    pub(super) fn all(&self) -> impl Iterator<Item = (&str, &Value)> {
        self.list.iter().map(|p| (p.dir.as_str(), &p.json))
    }

    /// The package in this very folder.
    pub(super) fn at(&self, dir: &str) -> Option<&Package> {
        self.list.get(*self.by_dir.get(dir)?)
    }

    fn split<'s>(&self, specifier: &'s str) -> Option<(&Package, &'s str)> {
        let end = match specifier.strip_prefix('@') {
            Some(scoped) => {
                let slash = scoped.find('/')? + 1;
                let rest = specifier.get(slash + 1..)?;
                rest.find('/').map(|at| slash + 1 + at)
            }
            None => specifier.find('/'),
        };
        let name = specifier.get(..end.unwrap_or(specifier.len()))?;
        let subpath = match end {
            Some(end) => specifier.get(end + 1..)?,
            None => "",
        };
        let package = self.list.get(*self.by_name.get(name)?)?;
        Some((package, subpath))
    }

    /// `@scope/pkg` or `@scope/pkg/sub`.
    pub(super) fn find(&self, specifier: &str, files: &Files<'_>) -> Option<ModuleId> {
        let (package, subpath) = self.split(specifier)?;
        if subpath.is_empty() {
            package.entry(files)
        } else {
            package.subpath(subpath, files)
        }
    }

    /// A path inside a package, for `extends` of a shared configuration.
    pub(super) fn file(&self, specifier: &str) -> Option<String> {
        let (package, subpath) = self.split(specifier)?;
        join(&package.dir, subpath)
    }

    /// `#name`: the `imports` of the package that the importing file is in.
    pub(super) fn internal(
        &self,
        dir: &str,
        specifier: &str,
        files: &Files<'_>,
    ) -> Option<ModuleId> {
        let package = ancestors(dir).find_map(|dir| self.at(dir))?;
        let imports = package.json.get("imports")?.as_object()?;
        package.mapped(imports.iter(), specifier, files)
    }
}

impl Package {
    pub(super) fn entry(&self, files: &Files<'_>) -> Option<ModuleId> {
        let field = |name: &str| self.json.get(name).and_then(Value::as_str);
        let mut targets: Vec<String> = Vec::new();
        targets.extend(field("source").map(str::to_owned));
        match self.json.get("exports") {
            Some(Value::Object(map)) if map.keys().any(|key| key.starts_with('.')) => {
                if let Some(root) = map.get(".") {
                    strings(root, "", &mut targets, 0);
                }
            }
            Some(other) => strings(other, "", &mut targets, 0),
            None => {}
        }
        for name in ["module", "main", "types", "typings"] {
            targets.extend(field(name).map(str::to_owned));
        }
        targets.extend(["src/index", "index", "src/main", "lib/index"].map(str::to_owned));
        targets
            .iter()
            .find_map(|target| files.find_source(&self.dir, target))
    }

    fn subpath(&self, subpath: &str, files: &Files<'_>) -> Option<ModuleId> {
        let key = format!("./{subpath}");
        let exports = self.json.get("exports").and_then(Value::as_object);
        exports
            .and_then(|map| self.mapped(map.iter(), &key, files))
            .or_else(|| files.find_source(&self.dir, subpath))
            .or_else(|| files.find(&join(&self.dir, &format!("src/{subpath}"))?))
    }

    /// Looks a specifier up in an `exports` or `imports` table.
    fn mapped<'v>(
        &self,
        table: impl Iterator<Item = (&'v String, &'v Value)>,
        specifier: &str,
        files: &Files<'_>,
    ) -> Option<ModuleId> {
        let mut matches: Vec<(usize, &str, &Value)> = table
            .filter_map(|(pattern, value)| {
                let star = match_pattern(pattern, specifier)?;
                let prefix = pattern.find('*').unwrap_or(usize::MAX);
                Some((prefix, star, value))
            })
            .collect();
        // The most specific pattern counts.
        matches.sort_by_key(|(prefix, ..)| std::cmp::Reverse(*prefix));
        matches.into_iter().find_map(|(_, star, value)| {
            let mut targets = Vec::new();
            strings(value, star, &mut targets, 0);
            targets
                .iter()
                .find_map(|target| files.find_source(&self.dir, target))
        })
    }
}

/// All files that a conditional target may mean, in an order of their own:
/// which condition holds does not matter when all are built from one source.
pub(super) fn strings(value: &Value, star: &str, out: &mut Vec<String>, depth: usize) {
    if depth > 8 {
        return;
    }
    match value {
        Value::String(target) => out.push(target.replace('*', star)),
        Value::Array(list) => {
            for item in list {
                strings(item, star, out, depth + 1);
            }
        }
        Value::Object(map) => {
            for key in ["source", "development", "import", "default"] {
                if let Some(item) = map.get(key) {
                    strings(item, star, out, depth + 1);
                }
            }
            for (key, item) in map {
                if !["source", "development", "import", "default"].contains(&key.as_str()) {
                    strings(item, star, out, depth + 1);
                }
            }
        }
        _ => {}
    }
}
