//! What every import leads to: a module of the program, or a library.

mod files;
mod given;
mod programs;
mod versions;

use rustc_hash::{FxHashMap, FxHashSet};
use toctou_core::Name;
use toctou_core::frontend::Manifest;
use toctou_core::ir::{ExportTarget, ImportedName, Module, ModuleId, Target};

use files::Files;
pub(crate) use programs::{loads, programs};
pub(crate) use versions::requirements;

pub(crate) fn is_manifest(name: &str) -> bool {
    matches!(
        name,
        "pyproject.toml" | "setup.cfg" | "uv.lock" | "poetry.lock" | "Pipfile"
    ) || (name.starts_with("requirements") && name.ends_with(".txt"))
}

/// Says what every import leads to.
pub fn resolve(paths: &[String], modules: &mut [Module], _manifests: &[Manifest]) {
    let files = Files::new(paths);
    submodules(&files, modules);
    let exported: Vec<FxHashSet<Name>> = modules
        .iter()
        .map(|m| m.exports.iter().map(|(name, _)| *name).collect())
        .collect();
    // The same few specifiers are asked for again and again.
    let mut known: FxHashMap<(String, String), Option<usize>> = FxHashMap::default();
    for index in 0..modules.len() {
        let Some(path) = paths.get(index) else { break };
        let mut find = |specifier: &str| -> Option<usize> {
            let folder = files::folder(path).to_owned();
            *known
                .entry((folder, specifier.to_owned()))
                .or_insert_with(|| files.find(path, specifier))
        };
        let mut found: Vec<(usize, Target, bool)> = Vec::new();
        for (i, import) in modules[index].imports.iter().enumerate() {
            let names = &modules[index].names;
            let specifier = names.text(import.specifier);
            let module = find(specifier);
            if let ImportedName::Named(name) = import.name {
                let text = names.text(name);
                let has = |m: usize| {
                    let name = modules.get(m).and_then(|m| m.names.find(text));
                    name.is_some_and(|name| exported.get(m).is_some_and(|set| set.contains(&name)))
                };
                if !module.is_some_and(has) {
                    let joined = if specifier.ends_with('.') {
                        format!("{specifier}{text}")
                    } else {
                        format!("{specifier}.{text}")
                    };
                    if let Some(m) = find(&joined) {
                        found.push((i, Target::Module(ModuleId(m as u32)), true));
                        continue;
                    }
                }
            }
            if let Some(m) = module {
                found.push((i, Target::Module(ModuleId(m as u32)), false));
            } else if !specifier.starts_with('.') {
                found.push((i, Target::External(import.specifier), false));
            }
        }
        let stars: Vec<Option<Target>> = modules[index]
            .star_exports
            .iter()
            .map(|(name, _)| {
                let m = find(modules[index].names.text(*name))?;
                Some(Target::Module(ModuleId(m as u32)))
            })
            .collect();
        let module = &mut modules[index];
        for (i, target, namespace) in found {
            if let Some(import) = module.imports.get_mut(i) {
                import.target = Some(target);
                if namespace {
                    import.name = ImportedName::Namespace;
                }
            }
        }
        for ((_, slot), target) in module.star_exports.iter_mut().zip(stars) {
            *slot = target;
        }
    }
    given::connect(modules);
}

/// A package has the modules in its folder under their names.
fn submodules(files: &Files, modules: &mut [Module]) {
    for (package, children) in files.packages() {
        let Some(module) = modules.get_mut(package) else {
            continue;
        };
        let taken: FxHashSet<Name> = module.exports.iter().map(|(name, _)| *name).collect();
        for (name, child) in children {
            let specifier = module.names.intern(&format!(".{name}"));
            let name = module.names.intern(&name);
            if taken.contains(&name) {
                continue;
            }
            let target = ExportTarget::From {
                specifier,
                name: ImportedName::Namespace,
                target: Some(Target::Module(ModuleId(child as u32))),
            };
            module.exports.push((name, target));
        }
    }
}
