//! Who implements an interface: whatever has all its methods.

use rustc_hash::{FxHashMap, FxHashSet};
use toctou_core::Name;
use toctou_core::ir::{
    ClassId, FuncId, Import, ImportedName, Module, ModuleId, Target, TypeDef, VarInfo, VarKind,
};

/// An interface that more types than this implement says nothing about who is meant.
const MAX_IMPLEMENTATIONS: usize = 16;

type At = (usize, ClassId);

/// Says of each class which interfaces it implements, in the terms of its own module.
pub(super) fn implement(paths: &[String], modules: &mut [Module]) {
    let (methods, interfaces) = tables(paths, modules);
    let mut by_method: FxHashMap<&str, Vec<At>> = FxHashMap::default();
    let mut classes: Vec<(&At, &FxHashSet<String>)> = methods.iter().collect();
    classes.sort_by_key(|(at, _)| (at.0, at.1.0));
    for (at, names) in &classes {
        if interfaces.iter().any(|(i, _)| i == *at) {
            continue;
        }
        for name in *names {
            by_method.entry(name).or_default().push(**at);
        }
    }
    let mut found: Vec<(At, At)> = Vec::new();
    for (interface, name) in &interfaces {
        let Some(wanted) = methods.get(interface).filter(|w| !w.is_empty()) else {
            continue;
        };
        let _ = name;
        // The rarest method has the fewest candidates.
        let candidates = wanted
            .iter()
            .map(|m| by_method.get(m.as_str()).map_or(&[][..], Vec::as_slice))
            .min_by_key(|list| list.len())
            .unwrap_or_default();
        let mut implementations: Vec<At> = candidates
            .iter()
            .filter(|at| {
                methods
                    .get(*at)
                    .is_some_and(|has| wanted.iter().all(|m| has.contains(m)))
            })
            .copied()
            .collect();
        implementations.sort_by_key(|at| (at.0, at.1.0));
        implementations.dedup();
        if implementations.len() <= MAX_IMPLEMENTATIONS {
            found.extend(implementations.into_iter().map(|class| (class, *interface)));
        }
    }
    let names: FxHashMap<At, String> = interfaces.into_iter().collect();
    for (class, interface) in found {
        if let Some(name) = names.get(&interface) {
            declare(modules, class, interface, name);
        }
    }
}

/// `class` implements `interface`: an import that nobody wrote.
fn declare(modules: &mut [Module], class: At, interface: At, interface_name: &str) {
    let Some(module) = modules.get_mut(class.0) else {
        return;
    };
    let wanted = module.names.intern(interface_name);
    // No name that source could have.
    let local = if class.0 == interface.0 {
        wanted
    } else {
        let local = format!("{interface_name} of {}", interface.0);
        let known = module.names.find(&local);
        let local = module.names.intern(&local);
        if known.is_none() {
            let Some(init) = module.functions.first_mut() else {
                return;
            };
            let var = toctou_core::ir::Var(init.vars.len() as u32);
            init.vars.push(VarInfo {
                name: Some(local),
                kind: VarKind::Import,
                captured: true,
                lent: false,
                word: false,
                ty: None,
            });
            module.imports.push(Import {
                var,
                specifier: local,
                name: ImportedName::Named(wanted),
                target: Some(Target::Module(ModuleId(interface.0 as u32))),
            });
            module.types.push((local, TypeDef::Import(var)));
        }
        local
    };
    if let Some(class) = module.classes.get_mut(class.1.0 as usize) {
        class.implements.push(local);
    }
}

/// A method's name and what its parameters are, as far as their types have names.
fn signature(module: &Module, name: Name, func: FuncId) -> String {
    let mut out = module.names.text(name).to_owned();
    let Some(function) = module.functions.get(func.0 as usize) else {
        return out;
    };
    for param in &function.params {
        let mut ty = function
            .vars
            .get(param.0 as usize)
            .and_then(|v| v.ty.as_deref());
        while let Some(element) = ty.and_then(|ty| ty.element.as_deref()) {
            ty = Some(element);
        }
        // `Item` here is `store.Item` elsewhere.
        let text = ty.map_or("", |ty| module.names.text(ty.name));
        out.push(' ');
        out.push_str(text.rsplit('.').next().unwrap_or(text));
    }
    out
}

/// The methods of every type, wherever they are declared, and the interfaces.
#[allow(clippy::type_complexity)]
fn tables(
    paths: &[String],
    modules: &[Module],
) -> (FxHashMap<At, FxHashSet<String>>, Vec<(At, String)>) {
    let mut methods: FxHashMap<At, FxHashSet<String>> = FxHashMap::default();
    let mut interfaces = Vec::new();
    for (m, module) in modules.iter().enumerate() {
        // What stands in for something in a test is not what the product is given.
        let test = paths.get(m).is_some_and(|path| path.ends_with("_test.go"));
        for (c, class) in module.classes.iter().enumerate() {
            let at = (m, ClassId(c as u32));
            let own = class.methods.iter().map(|(n, f)| signature(module, *n, *f));
            methods.entry(at).or_default().extend(own);
            if class.is_interface && !test {
                interfaces.push((at, module.names.text(class.name).to_owned()));
            }
        }
        for extension in &module.extensions {
            if let Some((file, class)) = extension.target {
                methods
                    .entry((file.0 as usize, class))
                    .or_default()
                    .insert(signature(module, extension.method, extension.func));
            }
        }
    }
    methods.retain(|at, _| {
        !paths
            .get(at.0)
            .is_some_and(|path| path.ends_with("_test.go"))
    });
    // What is embedded is promoted; two steps are all that is met.
    for _ in 0..2 {
        promote(modules, &mut methods);
    }
    (methods, interfaces)
}

fn promote(modules: &[Module], methods: &mut FxHashMap<At, FxHashSet<String>>) {
    let mut more: Vec<(At, FxHashSet<String>)> = Vec::new();
    for (m, module) in modules.iter().enumerate() {
        for (c, class) in module.classes.iter().enumerate() {
            for base in class.extends.iter().chain(&class.implements) {
                let base = module.types.iter().find(|(name, _)| name == base);
                let at = match base {
                    Some((_, TypeDef::Class(class))) => Some((m, *class)),
                    Some((name, TypeDef::Import(var))) => module
                        .imports
                        .iter()
                        .find(|import| import.var == *var)
                        .and_then(|import| match &import.target {
                            Some(Target::Module(other)) => Some(other.0 as usize),
                            _ => None,
                        })
                        .and_then(|other| {
                            let target = modules.get(other)?;
                            let name = target.names.find(module.names.text(*name))?;
                            target.types.iter().find_map(|(n, def)| match def {
                                TypeDef::Class(class) if *n == name => Some((other, *class)),
                                _ => None,
                            })
                        }),
                    _ => None,
                };
                if let Some(base) = at.and_then(|at| methods.get(&at)) {
                    more.push(((m, ClassId(c as u32)), base.clone()));
                }
            }
        }
    }
    for (at, names) in more {
        if let Some(own) = methods.get_mut(&at) {
            own.extend(names);
        }
    }
}
