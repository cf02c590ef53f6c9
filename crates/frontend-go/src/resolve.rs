//! What imports lead to, and what the files of a package share.
//!
//! A Go package is a folder of files with one scope. Each file is a module;
//! a name that a file does not declare is an import from the file of its
//! folder that does ([`SIBLING`]). A package that others import is its first
//! file, which passes on what the rest declare. An interface is implemented by
//! whatever has its methods, so that is worked out here, too.

mod interfaces;
mod versions;

use rustc_hash::FxHashMap;
use toctou_core::Name;
use toctou_core::frontend::Manifest;
use toctou_core::ir::{ClassId, ImportedName, Module, ModuleId, Target, TypeDef};

use crate::lower::SIBLING;
pub(crate) use versions::requirements;

/// Files of one folder and one package clause.
#[derive(Default)]
struct Package {
    files: Vec<usize>,
    /// Which file declares a name.
    names: FxHashMap<String, usize>,
    classes: FxHashMap<String, (usize, ClassId)>,
}

/// Fills in the targets of all imports. `paths[i]` is the file of `modules[i]`.
pub fn resolve(paths: &[String], modules: &mut [Module], manifests: &[Manifest]) {
    let roots = roots(manifests);
    let mut packages: FxHashMap<String, Package> = FxHashMap::default();
    for (at, path) in paths.iter().enumerate() {
        let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
        let key = key(folder, path.ends_with("_test.go"));
        let package = packages.entry(key).or_default();
        package.files.push(at);
        let Some(module) = modules.get(at) else {
            continue;
        };
        for (name, _) in &module.exports {
            let text = module.names.text(*name).to_owned();
            package.names.entry(text).or_insert(at);
        }
        for (name, def) in &module.types {
            let text = module.names.text(*name).to_owned();
            match def {
                TypeDef::Class(class) => {
                    package.names.entry(text.clone()).or_insert(at);
                    package.classes.entry(text).or_insert((at, *class));
                }
                TypeDef::Alias(_) => {
                    package.names.entry(text).or_insert(at);
                }
                TypeDef::Import(_) => {}
            }
        }
    }
    for (at, path) in paths.iter().enumerate() {
        let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
        let own: Vec<&Package> = [path.ends_with("_test.go"), false]
            .iter()
            .filter_map(|test| packages.get(&key(folder, *test)))
            .collect();
        let Some(module) = modules.get_mut(at) else {
            continue;
        };
        let mut targets = Vec::with_capacity(module.imports.len());
        for import in &module.imports {
            let specifier = module.names.text(import.specifier);
            targets.push(if specifier == SIBLING {
                let ImportedName::Named(name) = &import.name else {
                    targets.push(None);
                    continue;
                };
                let name = module.names.text(*name);
                own.iter()
                    .find_map(|package| package.names.get(name))
                    .map(|file| Target::Module(ModuleId(*file as u32)))
            } else {
                match package_at(specifier, &roots, &packages) {
                    Some(file) => Some(Target::Module(ModuleId(file as u32))),
                    None => Some(Target::External(import.specifier)),
                }
            });
        }
        for (import, target) in module.imports.iter_mut().zip(targets) {
            import.target = target;
        }
        for extension in &mut module.extensions {
            let class = module.names.text(extension.class);
            extension.target = own
                .iter()
                .find_map(|package| package.classes.get(class))
                .map(|(file, class)| (ModuleId(*file as u32), *class));
        }
    }
    let mut all: Vec<&Package> = packages.values().collect();
    all.sort_by_key(|package| package.files.first().copied());
    for package in all {
        let [first, rest @ ..] = package.files.as_slice() else {
            continue;
        };
        let Some(module) = modules.get_mut(*first) else {
            continue;
        };
        for file in rest {
            let specifier: Name = module.names.intern(SIBLING);
            let target = Target::Module(ModuleId(*file as u32));
            module.star_exports.push((specifier, Some(target)));
        }
    }
    interfaces::implement(paths, modules);
}

/// Tests may be a package of their own, and nobody imports them.
fn key(folder: &str, test: bool) -> String {
    if test {
        format!("{folder}\0test")
    } else {
        folder.to_owned()
    }
}

/// Module paths and the folders that they are rooted in, the longest path first.
fn roots(manifests: &[Manifest]) -> Vec<(String, String)> {
    let mut roots: Vec<(String, String)> = manifests
        .iter()
        .filter(|m| m.path == "go.mod" || m.path.ends_with("/go.mod"))
        .filter_map(|m| {
            let folder = m.path.strip_suffix("go.mod")?.trim_end_matches('/');
            let line = m
                .text
                .lines()
                .find_map(|l| l.trim().strip_prefix("module"))?;
            let line = line.split("//").next().unwrap_or(line);
            let path = line.trim().trim_matches('"');
            (!path.is_empty()).then(|| (path.to_owned(), folder.to_owned()))
        })
        .collect();
    roots.sort_by(|a, b| b.0.len().cmp(&a.0.len()).then_with(|| a.cmp(b)));
    roots
}

/// The first file of the package that an import path names.
fn package_at(
    specifier: &str,
    roots: &[(String, String)],
    packages: &FxHashMap<String, Package>,
) -> Option<usize> {
    for (path, folder) in roots {
        let Some(rest) = specifier.strip_prefix(path.as_str()) else {
            continue;
        };
        if !rest.is_empty() && !rest.starts_with('/') {
            continue;
        }
        let rest = rest.trim_start_matches('/');
        let at = match (folder.is_empty(), rest.is_empty()) {
            (true, _) => rest.to_owned(),
            (false, true) => folder.clone(),
            (false, false) => format!("{folder}/{rest}"),
        };
        if let Some(package) = packages.get(&at) {
            return package.files.first().copied();
        }
    }
    None
}
