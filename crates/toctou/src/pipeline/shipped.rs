//! Files that the programs of their package do without: old servers that were kept, a folder that
//! is no longer built. Shown, and not counted.

use toctou_core::FileRole;
use toctou_core::frontend::{Frontend, Manifest};
use toctou_core::ir::ModuleId;
use toctou_core::shipped::reached;

use super::lower::Sources;
use super::units::{package_of, packages};

pub(super) fn mark(
    frontend: &Frontend,
    paths: &[String],
    sources: &mut Sources,
    manifests: &[Manifest],
    guides: &[String],
) {
    promote(frontend, sources);
    let packages = packages(frontend, manifests);
    let package: Vec<&str> = paths.iter().map(|p| package_of(p, &packages)).collect();
    for programs in (frontend.programs)(paths, manifests) {
        let used = reached(paths, &sources.modules, &programs, frontend.loads, guides);
        for ((file, used), package) in sources.files.iter_mut().zip(used).zip(&package) {
            let ours = *package == programs.folder;
            if ours && !used && file.role == FileRole::Product {
                file.role = FileRole::Unused;
            }
        }
    }
}

/// What the product loads is part of it, whatever its folder is called.
fn promote(frontend: &Frontend, sources: &mut Sources) {
    let files = sources.files.iter().enumerate();
    let product = files.filter(|(_, file)| file.role == FileRole::Product);
    let mut work: Vec<usize> = product.map(|(at, _)| at).collect();
    while let Some(at) = work.pop() {
        for module in (frontend.loads)(&sources.modules, ModuleId(at as u32)) {
            let at = module.0 as usize;
            if let Some(file) = sources.files.get_mut(at)
                && file.role == FileRole::Script
            {
                file.role = FileRole::Product;
                work.push(at);
            }
        }
    }
}
