//! Where the programs of a package start.

use serde_json::Value;
use toctou_core::frontend::Manifest;
use toctou_core::ir::{ExportTarget, Module, ModuleId, Target};
use toctou_core::shipped::Programs;

use super::files::{Files, join, parent};
use super::packages::{Packages, strings};

/// Folders whose files a framework finds by itself.
const FOUND: &[&str] = &[
    "api",
    "app",
    "functions",
    "pages",
    "plugins",
    "routes",
    "workers",
];

/// Packages whose commands (`bin`), or else whose `main`, lead to files that are here.
pub(crate) fn programs(paths: &[String], manifests: &[Manifest]) -> Vec<Programs> {
    let files = Files::new(paths);
    let found: Vec<ModuleId> = paths
        .iter()
        .enumerate()
        .filter(|(_, path)| parent(path).split('/').any(|f| FOUND.contains(&f)))
        .map(|(at, _)| ModuleId(at as u32))
        .collect();
    let mut out = Vec::new();
    for (dir, json) in Packages::new(manifests).all() {
        let of = |name: &str| {
            let mut texts = Vec::new();
            if let Some(value) = json.get(name) {
                strings(value, "*", &mut texts, 0);
            }
            texts
        };
        let module = |text: &String| files.find_source(dir, text);
        let commands: Option<Vec<ModuleId>> = of("bin").iter().map(module).collect();
        // What a bundler makes under a name of its own comes from anywhere.
        let Some(mut starts) = commands else { continue };
        if starts.is_empty() {
            starts.extend(of("main").iter().filter_map(module));
        }
        if starts.is_empty() {
            continue;
        }
        for name in ["main", "module", "browser", "exports", "types", "source"] {
            starts.extend(of(name).iter().filter_map(module));
        }
        let scripts = json.get("scripts").and_then(Value::as_object);
        for script in scripts.into_iter().flat_map(|s| s.values()) {
            let words = script.as_str().unwrap_or_default().split_whitespace();
            let names = words.filter(|word| word.contains(['.', '/']));
            starts.extend(names.filter_map(|word| files.find_source(dir, word)));
        }
        // What was built may lie beside its source.
        let built = |text: &String| files.find(&join(dir, text)?);
        starts.extend(of("bin").iter().chain(&of("main")).filter_map(built));
        starts.extend(&found);
        let folder = match dir {
            "" => String::new(),
            dir => format!("{dir}/"),
        };
        out.push(Programs { folder, starts });
    }
    out
}

/// What a module imports, or hands on from elsewhere.
pub(crate) fn loads(modules: &[Module], at: ModuleId) -> Vec<ModuleId> {
    let Some(module) = modules.get(at.0 as usize) else {
        return Vec::new();
    };
    let imports = module.imports.iter().map(|import| &import.target);
    let exports = module.exports.iter().filter_map(|(_, e)| match e {
        ExportTarget::From { target, .. } => Some(target),
        ExportTarget::Local(_) => None,
    });
    let stars = module.star_exports.iter().map(|(_, target)| target);
    let all = imports.chain(exports).chain(stars);
    all.filter_map(|target| match target {
        Some(Target::Module(module)) => Some(*module),
        _ => None,
    })
    .collect()
}
