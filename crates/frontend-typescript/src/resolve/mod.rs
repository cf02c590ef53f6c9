//! What every import leads to: a module of this program, or a library.
//!
//! Follows TypeScript's and Node's rules with one difference: it looks for
//! sources. Where a package's manifest names `dist/index.js`, the file meant
//! is `src/index.ts`, because that is what was lowered.

mod files;
mod jsonc;
mod packages;
mod programs;
mod tsconfig;

use rustc_hash::FxHashMap;
use toctou_core::frontend::Manifest;
use toctou_core::ir::{ExportTarget, Module, ModuleId, Target};
use toctou_core::{Name, Names};

use files::Files;
use packages::Packages;
pub(crate) use programs::{loads, programs};
use tsconfig::Configs;

/// How the imports came out.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ResolveStats {
    /// Led to a module of the program.
    pub internal: usize,
    /// Led to a library.
    pub external: usize,
    /// Relative, but no such module was given: assets, generated files.
    pub missing: usize,
}

/// Fills in the target of every import and re-export. `paths[i]` is the file
/// of `modules[i]`.
pub fn resolve(paths: &[String], modules: &mut [Module], manifests: &[Manifest]) -> ResolveStats {
    let files = Files::new(paths);
    let packages = Packages::new(manifests);
    let configs = Configs::new(manifests, &packages);
    let resolver = Resolver {
        files,
        packages,
        configs,
    };
    let mut stats = ResolveStats::default();
    for (path, module) in paths.iter().zip(modules) {
        let Module {
            names,
            imports,
            exports,
            star_exports,
            ..
        } = module;
        let mut seen: FxHashMap<Name, Target> = FxHashMap::default();
        let mut target = |specifier: Name| {
            let target = seen
                .entry(specifier)
                .or_insert_with(|| resolver.target(path, names, specifier))
                .clone();
            match &target {
                Target::Module(_) => stats.internal += 1,
                Target::External(name) if names.text(*name).starts_with('.') => stats.missing += 1,
                Target::External(_) => stats.external += 1,
            }
            Some(target)
        };
        for import in imports {
            import.target = target(import.specifier);
        }
        for (_, export) in exports {
            if let ExportTarget::From {
                specifier,
                target: slot,
                ..
            } = export
            {
                *slot = target(*specifier);
            }
        }
        for (specifier, slot) in star_exports {
            *slot = target(*specifier);
        }
    }
    stats
}

struct Resolver<'p> {
    files: Files<'p>,
    packages: Packages,
    configs: Configs,
}

impl Resolver<'_> {
    fn target(&self, from: &str, names: &mut Names, specifier: Name) -> Target {
        let text = names.text(specifier);
        if let Some(module) = self.module(from, text) {
            return Target::Module(module);
        }
        let canonical = canonical(text).into_owned();
        Target::External(names.intern(&canonical))
    }

    fn module(&self, from: &str, specifier: &str) -> Option<ModuleId> {
        // Bundlers put `?raw` and the like behind the path.
        let specifier = specifier.split('?').next().unwrap_or(specifier);
        let dir = files::parent(from);
        if specifier.starts_with("./")
            || specifier.starts_with("../")
            || specifier == "."
            || specifier == ".."
        {
            let base = files::join(dir, specifier)?;
            return self
                .files
                .find(&base)
                .or_else(|| self.packages.at(&base)?.entry(&self.files))
                .or_else(|| self.files.find_built(&base));
        }
        if specifier.starts_with("node:") || specifier.contains("://") {
            return None;
        }
        if specifier.starts_with('#')
            && let Some(module) = self.packages.internal(dir, specifier, &self.files)
        {
            return Some(module);
        }
        self.configs
            .find(dir, specifier, &self.files)
            .or_else(|| self.packages.find(specifier, &self.files))
    }
}

/// The name by which library models know a module.
fn canonical(specifier: &str) -> std::borrow::Cow<'_, str> {
    if let Some(name) = specifier.strip_prefix("node:") {
        return name.into();
    }
    // Deno: `npm:pg@8.11`, `npm:@scope/name@1/sub`.
    let Some(name) = specifier
        .strip_prefix("npm:")
        .or_else(|| specifier.strip_prefix("jsr:"))
    else {
        return specifier.into();
    };
    let name = name.trim_start_matches('/');
    let after_scope = if name.starts_with('@') { 1 } else { 0 };
    match name.get(after_scope..).and_then(|rest| rest.find('@')) {
        None => name.into(),
        Some(at) => {
            let (bare, version) = name.split_at(after_scope + at);
            match version.find('/') {
                Some(slash) => format!("{bare}{}", &version[slash..]).into(),
                None => bare.into(),
            }
        }
    }
}
