//! Files that everybody makes alike: a missing file is given the defaults, or a copy of what came
//! with the package. Twice is as good as once, unless somebody writes something else there.

use rustc_hash::FxHashSet;
use toctou_core::Name;
use toctou_core::finding::ResourceKind;
use toctou_core::ir::FuncId;

use crate::context::Context;
use crate::effect::{Act, Loc, Source};
use crate::interp::Interp;
use crate::sym::{self, CalleeSym, Sym, SymKind, Syms};

const BUDGET: u32 = 256;

/// The name of a file, without the folder: those of the same name are taken to be the same.
pub(crate) fn name(syms: &Syms, path: Sym) -> Option<Name> {
    let mut at = path;
    for _ in 0..16 {
        at = match syms.kind(at) {
            SymKind::Str(text) => return Some(*text),
            SymKind::Concat(parts) | SymKind::Join(parts) => *parts.last()?,
            SymKind::Call(call) => *call.args.last()?,
            _ => return None,
        };
    }
    None
}

/// Names of files that the program writes something into that is not the same for all.
pub(crate) fn written(cx: &Context<'_, '_>) -> FxHashSet<Name> {
    let mut out = FxHashSet::default();
    for (f, summary) in cx.summaries.iter().enumerate() {
        let called = cx.entered.contains(&FuncId(f as u32));
        for e in summary.iter().flat_map(|s| s.events.iter()) {
            let writes = matches!(e.act, Act::Write | Act::Append);
            if e.loc.kind != ResourceKind::File || !writes || e.constant {
                continue;
            }
            // What it is given is seen where it is called.
            let given = |v: Sym| {
                cx.syms
                    .any(v, |s| matches!(cx.syms.kind(s), SymKind::Param(_)))
            };
            let same = |v: Sym| called && given(v) || is_fixed(cx, v, |_| false);
            if !e.value.is_some_and(same) {
                out.extend(name(&cx.syms, e.loc.key));
            }
        }
    }
    out
}

/// Is a value the same whoever calls? `such`: other values that are.
fn is_fixed(cx: &Context<'_, '_>, value: Sym, such: impl Fn(Sym) -> bool) -> bool {
    let mut stack = vec![value];
    let mut budget = BUDGET;
    while let Some(s) = stack.pop() {
        budget -= 1;
        if budget == 0 {
            return false;
        }
        if such(s) {
            continue;
        }
        match cx.syms.kind(s) {
            SymKind::Cell(cell) | SymKind::VarLoc(cell) => {
                let kept = cx.is_module_cell(*cell)
                    && !cx.mutable_cells.contains(cell)
                    && !cx.changed_cells.contains(cell)
                    && !cx.indexed_cells.contains(cell);
                if !kept {
                    return false;
                }
            }
            SymKind::Call(call) if matches!(call.callee, CalleeSym::Func(_)) => return false,
            SymKind::Param(_)
            | SymKind::This
            | SymKind::Fresh(_)
            | SymKind::Unknown(_)
            | SymKind::Handle(_)
            | SymKind::Element(_)
            | SymKind::Bound(..)
            | SymKind::New(..) => return false,
            kind => sym::for_each_child(kind, |c| stack.push(c)),
        }
    }
    true
}

impl Interp<'_, '_, '_> {
    /// Would everybody write this, or what another file holds?
    pub(crate) fn is_alike(&self, value: Sym, to: Loc) -> bool {
        let of_file = |s: Sym| {
            let deps = self.deps_of(s);
            let mut read = false;
            let all = deps.iter().filter(|d| !d.implicit).all(|d| match d.source {
                Source::Event(e) => {
                    let e = &self.events[e as usize];
                    read |= e.act == Act::Read;
                    e.loc.kind == ResourceKind::File
                        && e.loc != to
                        && is_fixed(self.cx, e.loc.key, |_| false)
                }
                _ => false,
            });
            all && read
        };
        is_fixed(self.cx, value, of_file)
    }
}
