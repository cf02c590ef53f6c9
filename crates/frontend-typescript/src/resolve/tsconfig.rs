//! `baseUrl` and `paths` of the nearest `tsconfig.json` or `jsconfig.json`.

use rustc_hash::FxHashMap;
use serde_json::Value;
use toctou_core::ir::ModuleId;

use super::files::{Files, ancestors, join, parent};
use super::packages::Packages;
use super::{Manifest, jsonc};

/// Longer chains of `extends` are loops.
const MAX_EXTENDS: usize = 16;

pub(super) struct Configs {
    /// By the folder they stand in.
    by_dir: FxHashMap<String, Config>,
}

#[derive(Clone, Default)]
struct Config {
    base_url: Option<String>,
    paths: Option<Paths>,
}

#[derive(Clone)]
struct Paths {
    /// What the targets are relative to.
    dir: String,
    /// Most specific first.
    entries: Vec<(String, Vec<String>)>,
}

impl Configs {
    pub(super) fn new(manifests: &[Manifest], packages: &Packages) -> Self {
        let mut raw: FxHashMap<&str, Value> = FxHashMap::default();
        for manifest in manifests {
            let name = manifest.path.rsplit('/').next().unwrap_or_default();
            // Any JSON file can be extended; a manifest of packages is none.
            if name.ends_with(".json")
                && name != "package.json"
                && let Some(value) = jsonc::parse(&manifest.text)
            {
                raw.insert(&manifest.path, value);
            }
        }
        let mut by_dir = FxHashMap::default();
        // Where both are there, `tsconfig.json` is the one that counts.
        for wanted in ["tsconfig.json", "jsconfig.json"] {
            for path in raw.keys() {
                if path.rsplit('/').next() == Some(wanted) {
                    by_dir
                        .entry(parent(path).to_owned())
                        .or_insert_with(|| load(&raw, packages, path, 0));
                }
            }
        }
        Self { by_dir }
    }

    pub(super) fn find(&self, dir: &str, specifier: &str, files: &Files<'_>) -> Option<ModuleId> {
        let config = ancestors(dir).find_map(|dir| self.by_dir.get(dir))?;
        if let Some(paths) = &config.paths {
            for (pattern, targets) in &paths.entries {
                let Some(star) = match_pattern(pattern, specifier) else {
                    continue;
                };
                let found = targets.iter().find_map(|target| {
                    let target = target.replacen('*', star, 1);
                    files.find(&join(&paths.dir, &target)?)
                });
                if found.is_some() {
                    return found;
                }
            }
        }
        let base = config.base_url.as_ref()?;
        files.find(&join(base, specifier)?)
    }
}

fn load(raw: &FxHashMap<&str, Value>, packages: &Packages, path: &str, depth: usize) -> Config {
    let mut config = Config::default();
    let Some(value) = raw.get(path) else {
        return config;
    };
    if depth >= MAX_EXTENDS {
        return config;
    }
    let dir = parent(path);
    // Later ones win, and the file itself wins over all.
    let parents: Vec<&str> = match value.get("extends") {
        Some(Value::String(one)) => vec![one],
        Some(Value::Array(many)) => many.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    };
    for extended in parents {
        if let Some(path) = extended_path(raw, packages, dir, extended) {
            let inherited = load(raw, packages, &path, depth + 1);
            config.base_url = inherited.base_url.or(config.base_url);
            config.paths = inherited.paths.or(config.paths);
        }
    }
    let options = value.get("compilerOptions");
    let option = |name: &str| options.and_then(|o| o.get(name));
    if let Some(base) = option("baseUrl").and_then(Value::as_str) {
        config.base_url = join(dir, base);
    }
    if let Some(entries) = option("paths").and_then(Value::as_object) {
        let mut entries: Vec<(String, Vec<String>)> = entries
            .iter()
            .map(|(pattern, targets)| {
                let targets = targets
                    .as_array()
                    .into_iter()
                    .flatten()
                    .filter_map(Value::as_str)
                    .map(str::to_owned)
                    .collect();
                (pattern.clone(), targets)
            })
            .collect();
        entries.sort_by_key(|(pattern, _)| {
            let prefix = pattern.find('*').unwrap_or(usize::MAX);
            (std::cmp::Reverse(prefix), pattern.clone())
        });
        config.paths = Some(Paths {
            dir: config.base_url.clone().unwrap_or_else(|| dir.to_owned()),
            entries,
        });
    }
    // A solution file has no options of its own, only projects.
    if config.paths.is_none()
        && let Some(references) = value.get("references").and_then(Value::as_array)
    {
        for reference in references {
            let referenced = reference
                .get("path")
                .and_then(Value::as_str)
                .filter(|path| path.ends_with(".json"))
                .and_then(|path| join(dir, path));
            if let Some(path) = referenced {
                let inner = load(raw, packages, &path, depth + 1);
                if inner.paths.is_some() {
                    config.base_url = config.base_url.or(inner.base_url);
                    config.paths = inner.paths;
                    break;
                }
            }
        }
    }
    config
}

fn extended_path(
    raw: &FxHashMap<&str, Value>,
    packages: &Packages,
    dir: &str,
    extended: &str,
) -> Option<String> {
    let base = if extended.starts_with('.') {
        join(dir, extended)?
    } else {
        packages.file(extended)?
    };
    let candidates = [
        base.clone(),
        format!("{base}.json"),
        format!("{base}/tsconfig.json"),
    ];
    candidates
        .into_iter()
        .find(|path| raw.contains_key(path.as_str()))
}

/// What `*` stands for, if the pattern matches; nothing for a pattern without.
pub(super) fn match_pattern<'s>(pattern: &str, text: &'s str) -> Option<&'s str> {
    match pattern.split_once('*') {
        None => (pattern == text).then_some(""),
        Some((before, after)) => text
            .strip_prefix(before)
            .and_then(|rest| rest.strip_suffix(after)),
    }
}
