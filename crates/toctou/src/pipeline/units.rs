//! Cuts what was lowered into units that know nothing of each other.
//!
//! Two packages without an import between them share no variable and no call.
//! Looking at them apart is quicker, uses all cores, and keeps what is said
//! about one from depending on whatever else lies in the repository.

use std::collections::BTreeMap;

use toctou_core::frontend::{Frontend, Manifest};
use toctou_core::ir::{ExportTarget, Module, ModuleId, Target};
use toctou_core::source::{FileId, SourceFile};

use super::lower::Sources;

/// One program for each unit, in the order of their first files.
pub(super) fn units(
    frontend: &Frontend,
    sources: Sources,
    manifests: &[Manifest],
) -> Vec<(Vec<SourceFile>, Vec<Module>)> {
    let mut groups = Groups::new(sources.modules.len());
    let packages = packages(frontend, manifests);
    let mut first_of: BTreeMap<&str, usize> = BTreeMap::new();
    for (at, file) in sources.files.iter().enumerate() {
        let package = package_of(&file.path, &packages);
        groups.join(at, *first_of.entry(package).or_insert(at));
    }
    for (at, module) in sources.modules.iter().enumerate() {
        for target in targets(module) {
            groups.join(at, target.0 as usize);
        }
    }

    // Where each module goes: which unit, and which place in it.
    let mut unit_of: BTreeMap<usize, usize> = BTreeMap::new();
    let mut sizes: Vec<u32> = Vec::new();
    let places: Vec<(usize, ModuleId)> = (0..sources.modules.len())
        .map(|at| {
            let unit = *unit_of.entry(groups.find(at)).or_insert_with(|| {
                sizes.push(0);
                sizes.len() - 1
            });
            sizes[unit] += 1;
            (unit, ModuleId(sizes[unit] - 1))
        })
        .collect();
    let mut units: Vec<(Vec<SourceFile>, Vec<Module>)> =
        sizes.iter().map(|_| (Vec::new(), Vec::new())).collect();
    for (at, (file, mut module)) in sources.files.into_iter().zip(sources.modules).enumerate() {
        let (unit, place) = places[at];
        module.file = FileId(place.0);
        for target in targets_mut(&mut module) {
            *target = places[target.0 as usize].1;
        }
        units[unit].0.push(file);
        units[unit].1.push(module);
    }
    units
}

/// Folders of packages, with a `/` at the end; the longest first.
pub(super) fn packages<'m>(frontend: &Frontend, manifests: &'m [Manifest]) -> Vec<&'m str> {
    let mut folders: Vec<&str> = manifests
        .iter()
        .filter_map(|manifest| {
            let at = manifest.path.rfind('/').map_or(0, |at| at + 1);
            let (folder, name) = manifest.path.split_at(at);
            (frontend.is_package)(name).then_some(folder)
        })
        .collect();
    folders.sort_unstable();
    folders.dedup();
    folders
}

/// The innermost package that the file is in, else the root.
pub(super) fn package_of<'m>(path: &str, packages: &[&'m str]) -> &'m str {
    let mut end = path.len();
    while let Some(at) = path[..end].rfind('/') {
        if let Ok(found) = packages.binary_search(&&path[..=at]) {
            return packages[found];
        }
        end = at;
    }
    ""
}

fn targets(module: &Module) -> impl Iterator<Item = ModuleId> {
    let imports = module.imports.iter().map(|import| &import.target);
    let exports = module
        .exports
        .iter()
        .filter_map(|(_, export)| match export {
            ExportTarget::From { target, .. } => Some(target),
            ExportTarget::Local(_) => None,
        });
    let stars = module.star_exports.iter().map(|(_, target)| target);
    let apart = module.extensions.iter();
    imports
        .chain(exports)
        .chain(stars)
        .filter_map(|target| match target {
            Some(Target::Module(module)) => Some(*module),
            _ => None,
        })
        .chain(apart.filter_map(|extension| Some(extension.target?.0)))
}

fn targets_mut(module: &mut Module) -> impl Iterator<Item = &mut ModuleId> {
    let imports = module.imports.iter_mut().map(|import| &mut import.target);
    let exports = module
        .exports
        .iter_mut()
        .filter_map(|(_, export)| match export {
            ExportTarget::From { target, .. } => Some(target),
            ExportTarget::Local(_) => None,
        });
    let stars = module.star_exports.iter_mut().map(|(_, target)| target);
    let apart = module.extensions.iter_mut();
    imports
        .chain(exports)
        .chain(stars)
        .filter_map(|target| match target {
            Some(Target::Module(module)) => Some(module),
            _ => None,
        })
        .chain(apart.filter_map(|extension| Some(&mut extension.target.as_mut()?.0)))
}

/// Disjoint sets.
struct Groups(Vec<usize>);

impl Groups {
    fn new(count: usize) -> Self {
        Self((0..count).collect())
    }

    fn find(&mut self, mut at: usize) -> usize {
        while self.0[at] != at {
            self.0[at] = self.0[self.0[at]];
            at = self.0[at];
        }
        at
    }

    fn join(&mut self, a: usize, b: usize) {
        let (a, b) = (self.find(a), self.find(b));
        self.0[a.max(b)] = a.min(b);
    }
}
