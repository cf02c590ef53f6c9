//! What every path leads to: a file of the program, or a library.
//!
//! Modules are found by where their files lie (`a/b.rs`, `a/b/mod.rs`), crates
//! by their `Cargo.toml`. `mod` declarations are taken to agree with that;
//! `#[path]` is not followed.

mod crates;

use rustc_hash::{FxHashMap, FxHashSet};
use toctou_core::Name;
use toctou_core::frontend::Manifest;
use toctou_core::ir::{
    ClassId, ExportTarget, Import, ImportedName, Module, ModuleId, Target, TypeDef, Var, VarInfo,
    VarKind,
};

use crate::lower::is_type_name;
use crates::Crates;

/// Names that need no import.
const PRELUDE: &[&str] = &[
    "Vec",
    "String",
    "Option",
    "Some",
    "None",
    "Result",
    "Ok",
    "Err",
    "Box",
    "Default",
    "Clone",
    "Copy",
    "Drop",
    "Iterator",
    "IntoIterator",
    "From",
    "Into",
    "ToString",
    "ToOwned",
    "AsRef",
    "Fn",
    "FnMut",
    "FnOnce",
    "Send",
    "Sync",
    "drop",
    "str",
    "u8",
    "u16",
    "u32",
    "u64",
    "usize",
    "i8",
    "i16",
    "i32",
    "i64",
    "isize",
    "f32",
    "f64",
    "bool",
    "char",
];

/// Re-exports are followed this far; longer ones are cycles.
const MAX_HOPS: usize = 16;
/// Modules that are gone through behind one `*`.
const MAX_STARS: usize = 64;

/// `paths[i]` is the file of `modules[i]`.
pub fn resolve(paths: &[String], modules: &mut [Module], manifests: &[Manifest]) {
    let crates = Crates::new(paths, manifests);
    let exports: Vec<FxHashSet<String>> = modules
        .iter()
        .map(|m| {
            let values = m.exports.iter().map(|(n, _)| n);
            // `#[sqlx(…)]` asks for a type `diesel`, and declares none.
            let written: FxHashMap<Var, Name> =
                m.imports.iter().map(|i| (i.var, i.specifier)).collect();
            let asked = |n: &Name, def: &TypeDef| match def {
                TypeDef::Import(var) => written.get(var) == Some(n),
                _ => false,
            };
            let types = m.types.iter().filter(|(n, d)| !asked(n, d)).map(|(n, _)| n);
            values
                .chain(types)
                .map(|n| m.names.text(*n).to_owned())
                .collect()
        })
        .collect();
    let uses = modules.iter().map(uses).collect();
    let passed_on = modules.iter().map(passed_on).collect();
    let mut resolver = Resolver {
        crates,
        exports,
        uses,
        passed_on,
        stars: vec![Vec::new(); modules.len()],
        inline_stars: vec![Vec::new(); modules.len()],
        inline: modules.iter().map(inline).collect(),
        rows: modules.iter().map(rows).collect(),
        foreign: vec![Vec::new(); modules.len()],
    };
    for (index, module) in modules.iter_mut().enumerate() {
        resolver.star_exports(index, module);
    }
    for (index, module) in modules.iter_mut().enumerate() {
        resolver.imports(index, module);
    }
    extensions(modules);
}

struct Resolver {
    crates: Crates,
    /// Names that each module has.
    exports: Vec<FxHashSet<String>>,
    /// Where each module has its names from that it has by `use`.
    uses: Vec<FxHashMap<String, Vec<String>>>,
    /// Names that each module has from a `use`, not from a `mod`.
    passed_on: Vec<FxHashSet<String>>,
    /// Modules whose names each module has by `*`.
    stars: Vec<Vec<usize>>,
    /// Modules within a file that each module has everything of by `*`.
    inline_stars: Vec<Vec<(usize, Vec<String>)>>,
    /// Modules within each file.
    inline: Vec<FxHashSet<String>>,
    /// Structs of each module that are rows of a table.
    rows: Vec<Vec<String>>,
    /// Paths of libraries that each module takes everything from.
    foreign: Vec<Vec<String>>,
}

/// Where a path leads, and what is left of it there.
enum Found {
    Module(usize, Vec<String>),
    Library(String, Vec<String>),
}

impl Resolver {
    fn star_exports(&mut self, index: usize, module: &mut Module) {
        let Module {
            names,
            star_exports,
            ..
        } = module;
        for (specifier, target) in star_exports {
            let path: Vec<String> = names
                .text(*specifier)
                .split("::")
                .map(str::to_owned)
                .collect();
            match self.find(index, &path) {
                // Of an inline module. Of an enum (`use super::Kind::*`) nothing is exported.
                Some(Found::Module(m, rest)) if !rest.is_empty() => {
                    self.inline_stars[index].push((m, rest));
                }
                Some(Found::Module(m, _)) if m != index => {
                    self.stars[index].push(m);
                    *target = Some(Target::Module(ModuleId(m as u32)));
                }
                Some(Found::Module(..)) | None => {}
                Some(Found::Library(name, rest)) => {
                    let mut text = name;
                    for part in rest {
                        text.push_str("::");
                        text.push_str(&part);
                    }
                    self.foreign[index].push(text);
                }
            }
        }
    }

    fn imports(&self, index: usize, module: &mut Module) {
        let Module { names, imports, .. } = module;
        for import in imports {
            let path: Vec<String> = names
                .text(import.specifier)
                .split("::")
                .map(str::to_owned)
                .collect();
            let found = match path.as_slice() {
                [one] => self.single(index, one),
                path => self.find(index, path),
            };
            match found {
                Some(Found::Module(m, rest)) => {
                    import.target = Some(Target::Module(ModuleId(m as u32)));
                    let name = rest.join("::");
                    import.name = match self.made_for(m, &name) {
                        _ if name.is_empty() => ImportedName::Namespace,
                        Some(row) => ImportedName::Named(names.intern(row)),
                        None => ImportedName::Named(names.intern(&name)),
                    };
                }
                Some(Found::Library(name, rest)) => {
                    import.target = Some(Target::External(names.intern(&name)));
                    import.name = if rest.is_empty() {
                        ImportedName::Namespace
                    } else {
                        ImportedName::Named(names.intern(&rest.join(".")))
                    };
                }
                None => {}
            }
        }
    }

    /// A name that the file neither declares nor imports.
    fn single(&self, index: usize, name: &str) -> Option<Found> {
        let own = || vec![name.to_owned()];
        if PRELUDE.contains(&name) {
            return Some(Found::Library("<global>".to_owned(), own()));
        }
        if self.has_by_star(index, name) {
            return Some(Found::Module(index, own()));
        }
        for (m, within) in &self.inline_stars[index] {
            let full = format!("{}::{name}", within.join("::"));
            if self.exports[*m].contains(&full) {
                return Some(Found::Module(*m, vec![full]));
            }
        }
        if let Some(child) = self.crates.child(index, name) {
            return Some(Found::Module(child, Vec::new()));
        }
        if self.crates.is_dependency(index, name) || is_standard(name) {
            return self.find(index, &own());
        }
        if let Some(path) = self.foreign[index].first() {
            let mut parts = path.split("::").map(str::to_owned);
            let library = parts.next()?;
            let mut rest: Vec<String> = parts.collect();
            rest.push(name.to_owned());
            return Some(Found::Library(library, rest));
        }
        Some(Found::Library("<global>".to_owned(), own()))
    }

    /// `user::Entity`, where the file has a struct that is a row and nothing of that name: a macro
    /// has made it of the struct, and it stands for the same table.
    fn made_for(&self, m: usize, name: &str) -> Option<&str> {
        let (within, last) = name.rsplit_once("::").unwrap_or(("", name));
        if !is_type_name(last)
            || self.exports[m].contains(name)
            || within.is_empty() && (self.has_by_star(m, name) || self.used_by(m, name).is_some())
        {
            return None;
        }
        let beside = |row: &&String| row.rsplit_once("::").map_or("", |(w, _)| w) == within;
        let mut rows = self.rows[m].iter().filter(beside);
        rows.next()
            .filter(|_| rows.next().is_none())
            .map(String::as_str)
    }

    fn has_by_star(&self, index: usize, name: &str) -> bool {
        let mut seen = FxHashSet::default();
        let mut work = self.stars[index].clone();
        while let Some(m) = work.pop() {
            if !seen.insert(m) || seen.len() > MAX_STARS {
                continue;
            }
            if self.exports[m].contains(name) {
                return true;
            }
            work.extend(&self.stars[m]);
        }
        false
    }

    /// `use crate::tools::*;` brings the modules of `tools` along: the one that has this module.
    fn module_by_star(&self, index: usize, name: &str) -> Option<usize> {
        let mut seen = FxHashSet::default();
        let mut work = self.stars[index].clone();
        while let Some(m) = work.pop() {
            if !seen.insert(m) || seen.len() > MAX_STARS {
                continue;
            }
            if self.crates.child(m, name).is_some() {
                return Some(m);
            }
            work.extend(&self.stars[m]);
        }
        None
    }

    fn find(&self, index: usize, path: &[String]) -> Option<Found> {
        let mut found = self.place_of(index, path)?;
        for _ in 0..MAX_HOPS {
            match self.behind(&found) {
                Some(next) => found = next,
                None => break,
            }
        }
        Some(found)
    }

    /// `pub use other::tools;` and elsewhere `here::tools::run`: the path goes on in that module.
    fn behind(&self, found: &Found) -> Option<Found> {
        let Found::Module(at, rest) = found else {
            return None;
        };
        let (name, more) = rest.split_first()?;
        let own = |m: usize| self.exports[m].contains(&rest.join("::"));
        // What an inline module has is the file's.
        if !more.is_empty() && own(*at) {
            return None;
        }
        let (user, used) = self.used_by(*at, name)?;
        let mut path = used.clone();
        path.extend(more.iter().cloned());
        match self.place_of(user, &path)? {
            // A function or a type: who asks the module for it is led there.
            Found::Module(_, left) if more.is_empty() && !left.is_empty() => None,
            Found::Library(..) if more.is_empty() => None,
            Found::Module(m, left) if m == *at && left == *rest => None,
            next => Some(next),
        }
    }

    /// The `use` that a module has a name from, its own or behind a `*`.
    fn used_by(&self, index: usize, name: &str) -> Option<(usize, &Vec<String>)> {
        let mut seen = FxHashSet::default();
        let mut work = vec![index];
        while let Some(m) = work.pop() {
            if !seen.insert(m) || seen.len() > MAX_STARS {
                continue;
            }
            if let Some(path) = self.uses[m].get(name) {
                return Some((m, path));
            }
            if self.crates.child(m, name).is_none() {
                work.extend(&self.stars[m]);
            }
        }
        None
    }

    /// `use anyhow::anyhow;`: in a path, the name is still the crate's.
    fn is_own_crate(&self, index: usize, name: &str) -> bool {
        let path = self.uses[index].get(name);
        path.is_some_and(|path| path.first().is_some_and(|first| first == name))
    }

    /// Is it a module within the file?
    fn has_inline(&self, index: usize, name: &str) -> bool {
        self.inline[index].contains(name)
    }

    fn place_of(&self, index: usize, path: &[String]) -> Option<Found> {
        let first = path.first()?;
        let (start, rest) = match first.as_str() {
            "crate" => (self.crates.root_of(index)?, &path[1..]),
            "self" => (self.crates.place(index)?, &path[1..]),
            "super" => {
                let mut place = self.crates.place(index)?;
                let mut used = 0;
                while path.get(used).is_some_and(|s| s == "super") {
                    place = place.parent()?;
                    used += 1;
                }
                (place, &path[used..])
            }
            name => {
                // A module or item of the file itself comes before a crate.
                if self.crates.child(index, name).is_some() {
                    (self.crates.place(index)?, path)
                } else if is_standard(name) {
                    return Some(Found::Library("std".to_owned(), path[1..].to_vec()));
                } else if (self.exports[index].contains(name) || self.has_inline(index, name))
                    && path.len() > 1
                    && !self.is_own_crate(index, name)
                {
                    return Some(Found::Module(index, path.to_vec()));
                } else if let Some(owner) = self.module_by_star(index, name)
                    && path.len() > 1
                {
                    (self.crates.place(owner)?, path)
                } else if let Some(place) = self.crates.library(name) {
                    (place, &path[1..])
                } else {
                    return Some(Found::Library(name.to_owned(), path[1..].to_vec()));
                }
            }
        };
        let (file, used) = self.crates.deepest(&start, rest, |m, name| {
            self.exports[m].contains(name) || self.has_by_star(m, name)
        })?;
        // `mod add; pub use add::add;`: behind a path that ends there, the function is meant.
        if let Some((last, before)) = rest.split_last()
            && used == rest.len()
            && let Some((parent, all)) = self.crates.deepest(&start, before, |_, _| true)
            && all == before.len()
            && self.passed_on[parent].contains(last)
        {
            return Some(Found::Module(parent, vec![last.clone()]));
        }
        Some(Found::Module(file, rest[used..].to_vec()))
    }
}

fn inline(module: &Module) -> FxHashSet<String> {
    let names = module.exports.iter().map(|(n, _)| module.names.text(*n));
    let first = names.filter_map(|n| n.split_once("::"));
    first.map(|(first, _)| first.to_owned()).collect()
}

/// Structs whose objects are rows of a table.
fn rows(module: &Module) -> Vec<String> {
    let rows = module.classes.iter().filter(|c| c.table.is_some());
    let names = rows.map(|c| module.names.text(c.name).to_owned());
    let declared = |n: &String| module.types.iter().any(|(t, _)| module.names.text(*t) == n);
    names.filter(declared).collect()
}

fn uses(module: &Module) -> FxHashMap<String, Vec<String>> {
    let text = |name| module.names.text(name);
    let paths: FxHashMap<Var, &str> = module
        .imports
        .iter()
        .map(|import| (import.var, text(import.specifier)))
        .collect();
    let mut out = FxHashMap::default();
    for (name, target) in &module.exports {
        if let ExportTarget::Local(var) = target
            && let Some(path) = paths.get(var)
        {
            let path = path.split("::").map(str::to_owned).collect();
            out.entry(text(*name).to_owned()).or_insert(path);
        }
    }
    out
}

fn passed_on(module: &Module) -> FxHashSet<String> {
    let mut paths: FxHashMap<Var, &str> = FxHashMap::default();
    for import in &module.imports {
        paths.insert(import.var, module.names.text(import.specifier));
    }
    let mut out = FxHashSet::default();
    for (name, target) in &module.exports {
        let text = module.names.text(*name);
        if let ExportTarget::Local(var) = target
            && let Some(path) = paths.get(var)
            && path.rsplit("::").next() == Some(text)
            && path.split("::").count() > 1
            && *path != format!("self::{text}")
        {
            out.insert(text.to_owned());
        }
    }
    out
}

fn is_standard(name: &str) -> bool {
    matches!(name, "std" | "core" | "alloc")
}

/// Methods that are declared apart from their class: finds the class.
fn extensions(modules: &mut [Module]) {
    let mut found: Vec<(usize, usize, ModuleId, ClassId)> = Vec::new();
    let mut cache: FxHashMap<(usize, String), Option<(usize, ClassId)>> = FxHashMap::default();
    for (m, module) in modules.iter().enumerate() {
        for (i, extension) in module.extensions.iter().enumerate() {
            let name = module.names.text(extension.class).to_owned();
            let class = *cache
                .entry((m, name.clone()))
                .or_insert_with(|| class_of(modules, m, &name));
            if let Some((owner, class)) = class {
                found.push((m, i, ModuleId(owner as u32), class));
            }
        }
    }
    let mut implemented: Vec<(usize, ClassId, usize, ClassId)> = Vec::new();
    for &(m, i, owner, class) in &found {
        let module = &modules[m];
        let Some(function) = module.functions.get(module.extensions[i].func.0 as usize) else {
            continue;
        };
        // A trait's method is marked with the trait.
        for mark in &function.decorators {
            let name = module.names.text(*mark).to_owned();
            let mark = *cache
                .entry((m, name.clone()))
                .or_insert_with(|| class_of(modules, m, &name));
            if let Some((t, interface)) = mark {
                let one = (owner.0 as usize, class, t, interface);
                if !implemented.contains(&one) {
                    implemented.push(one);
                }
            }
        }
    }
    for (m, i, owner, class) in found {
        if let Some(extension) = modules[m].extensions.get_mut(i) {
            extension.target = Some((owner, class));
        }
    }
    for (owner, class, t, interface) in implemented {
        implement(modules, owner, class, t, interface);
    }
}

/// Lets a class implement a trait, as if the `impl` block stood in its file.
fn implement(modules: &mut [Module], owner: usize, class: ClassId, t: usize, interface: ClassId) {
    let Some(text) = modules.get(t).and_then(|m| {
        Some(
            m.names
                .text(m.classes.get(interface.0 as usize)?.name)
                .to_owned(),
        )
    }) else {
        return;
    };
    let Some(module) = modules.get_mut(owner) else {
        return;
    };
    let name = module.names.intern(&text);
    let local = module.names.intern(&format!("impl {t} {text}"));
    let Some(init) = module.functions.first_mut() else {
        return;
    };
    let var = Var(init.vars.len() as u32);
    init.vars.push(VarInfo {
        name: Some(name),
        kind: VarKind::Import,
        captured: true,
        lent: false,
        word: false,
        ty: None,
    });
    module.imports.push(Import {
        var,
        specifier: local,
        name: ImportedName::Named(name),
        target: Some(Target::Module(ModuleId(t as u32))),
    });
    module.types.push((local, TypeDef::Import(var)));
    if let Some(class) = module.classes.get_mut(class.0 as usize) {
        class.implements.push(local);
    }
}

fn class_of(modules: &[Module], module: usize, name: &str) -> Option<(usize, ClassId)> {
    let (mut at, mut name) = (module, name.to_owned());
    for _ in 0..MAX_HOPS {
        let m = modules.get(at)?;
        let by_name = m.types.iter().find(|(n, _)| m.names.text(*n) == name);
        let var = match by_name {
            Some((_, TypeDef::Class(class))) => return Some((at, *class)),
            Some((_, TypeDef::Import(var))) => *var,
            Some((_, TypeDef::Alias(alias))) => {
                name = m.names.text(alias.name).to_owned();
                continue;
            }
            None => {
                let (_, target) = m.exports.iter().find(|(n, _)| m.names.text(*n) == name)?;
                match target {
                    ExportTarget::Local(var) => *var,
                    ExportTarget::From { .. } => return None,
                }
            }
        };
        let import = m.imports.iter().find(|i| i.var == var)?;
        let (Some(Target::Module(next)), ImportedName::Named(n)) = (&import.target, &import.name)
        else {
            return None;
        };
        name = m.names.text(*n).to_owned();
        at = next.0 as usize;
    }
    None
}
