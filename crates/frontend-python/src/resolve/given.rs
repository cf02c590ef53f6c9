//! Parameters whose types are names for what a framework makes, in whichever file they stand:
//! `db: SessionDep`. See [`crate::lower`] for those that say so themselves.

use rustc_hash::FxHashMap;
use toctou_core::Name;
use toctou_core::ir::{
    CallKind, Callee, Cell, ExportTarget, FuncId, Import, ImportedName, Inst, Module, ModuleId, Op,
    Target, Var, VarInfo, VarKind,
};

use crate::lower::maker_of;

/// Files that are looked into for one name.
const MAX_FILES: u32 = 64;

/// Lets the functions that have such parameters call who makes the values.
pub(super) fn connect(modules: &mut [Module]) {
    let any = modules.iter().any(|m| {
        let mut names = m.exports.iter().map(|(name, _)| m.names.text(*name));
        names.any(|text| text.ends_with("()"))
    });
    if !any {
        return;
    }
    for index in 0..modules.len() {
        let mut makers: FxHashMap<Name, Option<(usize, String)>> = FxHashMap::default();
        let mut places: Vec<(usize, usize, Name)> = Vec::new();
        for (f, function) in modules[index].functions.iter().enumerate() {
            for (i, param) in function.params.iter().enumerate() {
                let Some(ty) = function
                    .vars
                    .get(param.0 as usize)
                    .and_then(|v| v.ty.as_ref())
                else {
                    continue;
                };
                let text = modules[index].names.text(ty.name);
                let maker = makers
                    .entry(ty.name)
                    .or_insert_with(|| find(modules, index, text, &mut { MAX_FILES }));
                if maker.is_some() {
                    places.push((f, i, ty.name));
                }
            }
        }
        let mut cells: FxHashMap<Name, Cell> = FxHashMap::default();
        for (f, i, name) in places.into_iter().rev() {
            let cell = match cells.get(&name) {
                Some(cell) => Some(*cell),
                None => makers
                    .get(&name)
                    .and_then(|maker| maker.as_ref())
                    .and_then(|(from, alias)| cell_of(modules, index, *from, alias)),
            };
            if let Some(cell) = cell {
                cells.insert(name, cell);
                call(&mut modules[index], f, i, cell);
            }
        }
    }
}

/// The module that says who makes what a name stands for, and the name there.
fn find(modules: &[Module], at: usize, text: &str, left: &mut u32) -> Option<(usize, String)> {
    let module = modules.get(at)?;
    let export = |text: &str| {
        let name = module.names.find(text)?;
        module.exports.iter().find(|(n, _)| *n == name)
    };
    if export(&maker_of(text)).is_some() {
        return Some((at, text.to_owned()));
    }
    *left = left.checked_sub(1)?;
    let Some((_, ExportTarget::Local(var))) = export(text) else {
        return module
            .star_exports
            .iter()
            .find_map(|(_, target)| match target {
                Some(Target::Module(m)) => find(modules, m.0 as usize, text, left),
                _ => None,
            });
    };
    let import = module.imports.iter().find(|i| i.var == *var)?;
    match (&import.name, &import.target) {
        (ImportedName::Named(name), Some(Target::Module(m))) => {
            find(modules, m.0 as usize, module.names.text(*name), left)
        }
        _ => None,
    }
}

/// The variable that holds who makes it: the module's own, or one that is imported.
fn cell_of(modules: &mut [Module], at: usize, from: usize, alias: &str) -> Option<Cell> {
    let text = maker_of(alias);
    let module = modules.get_mut(at)?;
    let name = module.names.intern(&text);
    let owner = FuncId(0);
    if from == at {
        let (_, target) = module.exports.iter().find(|(n, _)| *n == name)?;
        return match target {
            ExportTarget::Local(var) => Some(Cell { owner, var: *var }),
            ExportTarget::From { .. } => None,
        };
    }
    let top = module.functions.first_mut()?;
    let var = Var(top.vars.len() as u32);
    top.vars.push(VarInfo {
        name: None,
        kind: VarKind::Import,
        captured: true,
        lent: false,
        word: false,
        ty: None,
    });
    module.imports.push(Import {
        var,
        specifier: name,
        name: ImportedName::Named(name),
        target: Some(Target::Module(ModuleId(from as u32))),
    });
    Some(Cell { owner, var })
}

/// In place of what a caller passes: what the maker gives back, waited for.
fn call(module: &mut Module, f: usize, i: usize, cell: Cell) {
    let Some(function) = module.functions.get_mut(f) else {
        return;
    };
    let (Some(&param), Some(entry)) = (function.params.get(i), function.blocks.first_mut()) else {
        return;
    };
    // Its default says more.
    let has_default = |inst: &Inst| matches!(inst.op, Op::Phi { dst, .. } if dst == param);
    if entry.insts.iter().any(has_default) {
        return;
    }
    let Some(info) = function.vars.get_mut(param.0 as usize) else {
        return;
    };
    let passed = info.clone();
    info.kind = VarKind::Const;
    let first = function.vars.len() as u32;
    let [unused, maker, made, settled] = [0, 1, 2, 3].map(|n| Var(first + n));
    function.vars.push(passed);
    function.vars.extend([(); 3].map(|()| VarInfo::temp()));
    function.params[i] = unused;
    let span = function.name_span;
    let ops = [
        Op::LoadVar { dst: maker, cell },
        Op::Call {
            dst: made,
            callee: Callee::Value(maker),
            args: Box::default(),
            kind: CallKind::Plain,
        },
        Op::Await {
            dst: settled,
            src: made,
        },
        Op::Copy {
            dst: param,
            src: settled,
        },
    ];
    entry.insts.splice(0..0, ops.map(|op| Inst { op, span }));
}
