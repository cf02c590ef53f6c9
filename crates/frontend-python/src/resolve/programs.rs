//! Where the programs of a package start.

use toctou_core::frontend::Manifest;
use toctou_core::ir::{ExportTarget, ImportedName, Module, ModuleId, Target};
use toctou_core::shipped::Programs;

use super::files::Files;

/// Projects whose scripts lead to modules that are here.
pub(crate) fn programs(paths: &[String], manifests: &[Manifest]) -> Vec<Programs> {
    let files = Files::new(paths);
    let mut out = Vec::new();
    for manifest in manifests {
        let Some(dir) = manifest.path.strip_suffix("pyproject.toml") else {
            continue;
        };
        let Ok(table) = manifest.text.parse::<toml::Table>() else {
            continue;
        };
        // `module:function`, looked for from the folder of the project.
        let find = |text: &str| {
            let module = text.split([':', ' ']).next().unwrap_or(text).trim();
            files.find(&manifest.path, module)
        };
        let scripts = scripts(&table);
        let starts: Option<Vec<usize>> = scripts.iter().map(|text| find(text)).collect();
        let Some(mut starts) = starts.filter(|starts| !starts.is_empty()) else {
            continue;
        };
        // To load a module is to load the packages that it is in, and `-m` starts a package.
        let always = |path: &String| {
            path.ends_with("__init__.py") || path.ends_with("__main__.py") || path == "setup.py"
        };
        let all = paths.iter().enumerate();
        starts.extend(all.filter(|(_, path)| always(path)).map(|(at, _)| at));
        out.push(Programs {
            folder: dir.to_owned(),
            starts: starts.into_iter().map(|at| ModuleId(at as u32)).collect(),
        });
    }
    out
}

fn scripts(table: &toml::Table) -> Vec<&str> {
    let under = |path: &[&str]| {
        let mut at = table.get(path[0])?;
        for name in &path[1..] {
            at = at.get(name)?;
        }
        at.as_table()
    };
    let mut out = Vec::new();
    let tables = [
        under(&["project", "scripts"]),
        under(&["project", "gui-scripts"]),
        under(&["tool", "poetry", "scripts"]),
    ];
    for table in tables.into_iter().flatten() {
        out.extend(table.values().filter_map(toml::Value::as_str));
    }
    let groups = under(&["project", "entry-points"]);
    for group in groups.into_iter().flat_map(|groups| groups.values()) {
        let table = group.as_table().into_iter();
        out.extend(table.flat_map(|t| t.values()).filter_map(|v| v.as_str()));
    }
    out
}

/// What a module imports. That a package has its modules under their names loads none of them,
/// unless one is asked for by its name.
pub(crate) fn loads(modules: &[Module], at: ModuleId) -> Vec<ModuleId> {
    let Some(module) = modules.get(at.0 as usize) else {
        return Vec::new();
    };
    let mut out = Vec::new();
    for import in &module.imports {
        let Some(Target::Module(target)) = &import.target else {
            continue;
        };
        out.push(*target);
        let ImportedName::Named(name) = import.name else {
            continue;
        };
        let from = modules.get(target.0 as usize);
        let name = from.and_then(|from| from.names.find(module.names.text(name)));
        let exports = from.into_iter().flat_map(|from| &from.exports);
        out.extend(exports.filter_map(|(export, what)| match what {
            ExportTarget::From {
                target: Some(Target::Module(target)),
                ..
            } if Some(*export) == name => Some(*target),
            _ => None,
        }));
    }
    let stars = module.star_exports.iter();
    out.extend(stars.filter_map(|(_, target)| match target {
        Some(Target::Module(target)) => Some(*target),
        _ => None,
    }));
    out
}
