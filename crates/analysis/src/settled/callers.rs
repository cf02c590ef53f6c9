//! Whose callers are all known?

use rustc_hash::FxHashSet;
use toctou_core::ir::{ClassId, FuncId, FuncKind};
use toctou_core::{FileRole, Name};

use crate::linkage::TypeTarget;
use crate::points_to::{Env, Obj, PointsTo, base_type};

/// Functions that others than the calls of this program may call, or with other arguments than
/// those that are seen.
pub(super) fn open(env: &mut Env<'_, '_>, points_to: &PointsTo) -> Vec<bool> {
    let program = env.program;
    let mut open = vec![false; program.functions.len()];
    let mut called = vec![false; program.functions.len()];
    let mut lost: FxHashSet<Name> = FxHashSet::default();
    let serves = !points_to.servers(env).is_empty();
    points_to.each_call(|funcs, _, method, product| {
        for f in funcs {
            called[f.0 as usize] |= product;
            // `f.call(this, …)`: arguments are elsewhere.
            let name = program.function(*f).name;
            let renamed = method.is_some_and(|m| m != name);
            let is_constructor = program.function(*f).kind == FuncKind::Constructor;
            open[f.0 as usize] |= renamed && !is_constructor;
        }
        if funcs.is_empty() {
            lost.extend(method);
        }
    });
    // Who is handed on or kept may be called by anybody.
    for obj in points_to.handed_on() {
        match *obj {
            Obj::Func(f) => open[f.0 as usize] = true,
            Obj::Class(class) => {
                if let Some(f) = program.classes[class.0 as usize].constructor {
                    open[f.0 as usize] = true;
                }
            }
            _ => {}
        }
    }
    for (c, class) in program.classes.iter().enumerate() {
        let foreign = matches!(base_type(env, ClassId(c as u32)), Some(TypeTarget::Ext(_)));
        for (name, f) in &class.methods {
            open[f.0 as usize] |= foreign || lost.contains(name);
        }
    }
    for (f, function) in program.functions.iter().enumerate() {
        let id = FuncId(f as u32);
        open[f] |= !called[f]
            || function.exported && !serves
            || function.has_rest
            || function.is_generator
            || !function.decorators.is_empty()
            || function.kind == FuncKind::ModuleInit
            || program.file_of(id).role != FileRole::Product;
    }
    open
}
