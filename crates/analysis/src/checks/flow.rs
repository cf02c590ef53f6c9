//! What the checks ask again and again: who is at the root, what lies between
//! two places of a function, which place in memory a register was loaded from.

use rustc_hash::FxHashSet;
use toctou_core::Name;
use toctou_core::ir::{
    BinOp, BlockId, Callee, Cell, FuncId, FuncKind, Function, Key, Literal, Op, Var,
};

use crate::cfg::{Cfg, Edge, EdgeKind};
use crate::context::Context;
use crate::effect::Pos;
use crate::sym::{Sym, SymKind};

/// Larger functions are no locks and no retry helpers, and take too long.
pub const MAX_BLOCKS: usize = 1_000;

/// Handlers, and functions that nobody is seen to call: where a summary says
/// what really happens, with all the locks that are held on the way down.
pub fn roots(cx: &Context<'_, '_>) -> Vec<FuncId> {
    let mut out: Vec<FuncId> = cx.entries.iter().map(|e| e.handler).collect();
    for (f, function) in cx.program.functions.iter().enumerate() {
        let id = FuncId(f as u32);
        let made = matches!(function.kind, FuncKind::ModuleInit | FuncKind::Constructor);
        if !made && !cx.entered.contains(&id) {
            out.push(id);
        }
    }
    out.sort_unstable();
    out.dedup();
    out
}

/// Can `to` come after `from`, and does an `await` stand between them then?
/// Blocks for which `stop` holds are not passed through.
pub fn between(
    function: &Function,
    cfg: &Cfg,
    from: Pos,
    to: Pos,
    stop: impl Fn(u32) -> bool,
) -> Option<bool> {
    let mut seen: FxHashSet<(u32, bool)> = FxHashSet::default();
    let mut work = vec![(from.block, from.inst + 1, false)];
    let mut reached = None;
    while let Some((block, first, mut waited)) = work.pop() {
        let insts = &function.blocks[block as usize].insts;
        let mut arrived = false;
        for (i, inst) in insts.iter().enumerate().skip(first as usize) {
            if block == to.block && i as u32 == to.inst {
                arrived = true;
                break;
            }
            waited |= matches!(inst.op, Op::Await { .. } | Op::YieldValue { .. });
        }
        if arrived {
            reached = Some(reached.unwrap_or(false) | waited);
            if waited {
                return reached;
            }
            continue;
        }
        if stop(block) {
            continue;
        }
        for edge in &cfg.succs[block as usize] {
            if seen.insert((edge.to.0, waited)) {
                work.push((edge.to.0, 0, waited));
            }
        }
    }
    reached
}

/// Blocks that can follow a block by edges that are taken, itself only if it is in a loop.
pub fn after(cfg: &Cfg, block: u32, takes: impl Fn(&Edge) -> bool) -> FxHashSet<u32> {
    let mut seen = FxHashSet::default();
    let mut work = vec![block];
    while let Some(b) = work.pop() {
        for edge in &cfg.succs[b as usize] {
            if takes(edge) && seen.insert(edge.to.0) {
                work.push(edge.to.0);
            }
        }
    }
    seen
}

/// Blocks whose failure leads back to them, and whose success does not: what
/// stands there is tried again. In a loop over things to do, both lead back.
pub fn retried(function: &Function, cfg: &Cfg) -> FxHashSet<u32> {
    let mut out = FxHashSet::default();
    if !cfg.has_loop || function.blocks.len() > MAX_BLOCKS {
        return out;
    }
    let mut handlers: Vec<BlockId> = function.blocks.iter().filter_map(|b| b.handler).collect();
    handlers.sort_unstable();
    handlers.dedup();
    // More than a few `try` in a function with a loop is not how a retry looks.
    for handler in handlers.into_iter().take(16) {
        let again = after(cfg, handler.0, |_| true);
        for (b, block) in function.blocks.iter().enumerate() {
            let b = b as u32;
            if block.handler == Some(handler)
                && again.contains(&b)
                && !after(cfg, b, |e| e.kind != EdgeKind::Handler).contains(&b)
            {
                out.insert(b);
            }
        }
    }
    out
}

/// A place that outlives a call: a variable, a field of `this`, or an entry of
/// what stands there.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Place {
    pub base: Base,
    pub entry: Option<EntryKey>,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Base {
    Cell(Cell),
    Field(Name),
}

impl Base {
    pub fn symbol(self, cx: &mut Context<'_, '_>) -> Sym {
        match self {
            Self::Cell(cell) => cx.syms.make(SymKind::VarLoc(cell)),
            Self::Field(name) => {
                let this = cx.syms.make(SymKind::This);
                cx.syms.make(SymKind::Field(this, name))
            }
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum EntryKey {
    Cell(Cell),
    Var(FuncId, Var),
    Text(Name),
}

/// The words of containers that this looks at.
pub struct Words {
    pub get: Option<Name>,
    pub set: Option<Name>,
    pub has: Option<Name>,
    pub delete: Option<Name>,
}

impl Words {
    pub fn new(cx: &Context<'_, '_>) -> Self {
        Self {
            get: cx.names.find("get"),
            set: cx.names.find("set"),
            has: cx.names.find("has"),
            delete: cx.names.find("delete"),
        }
    }
}

/// Definitions of a function's registers, where there is one only.
pub struct Defs<'a> {
    pub id: FuncId,
    pub function: &'a Function,
    defs: Vec<Option<&'a Op>>,
    words: &'a Words,
}

impl<'a> Defs<'a> {
    pub fn new(id: FuncId, function: &'a Function, words: &'a Words) -> Self {
        let mut defs: Vec<Option<&Op>> = vec![None; function.vars.len()];
        let mut seen = vec![false; function.vars.len()];
        for inst in function.blocks.iter().flat_map(|b| &b.insts) {
            if let Some(dst) = inst.op.dst()
                && let Some(slot) = defs.get_mut(dst.0 as usize)
            {
                let again = std::mem::replace(&mut seen[dst.0 as usize], true);
                *slot = (!again).then_some(&inst.op);
            }
        }
        Self {
            id,
            function,
            defs,
            words,
        }
    }

    /// The instruction that made a value, past copies.
    pub fn def(&self, var: Var) -> Option<&'a Op> {
        let mut var = var;
        for _ in 0..16 {
            match self.defs.get(var.0 as usize).copied().flatten()? {
                Op::Copy { src, .. } => var = *src,
                other => return Some(other),
            }
        }
        None
    }

    /// A container's or variable's own place.
    pub fn base(&self, var: Var) -> Option<Base> {
        match self.def(var)? {
            Op::LoadVar { cell, .. } => Some(Base::Cell(*cell)),
            Op::GetField { obj, field, .. } => {
                matches!(self.def(*obj)?, Op::This { .. }).then_some(Base::Field(*field))
            }
            _ => None,
        }
    }

    pub fn entry_key(&self, var: Var) -> Option<EntryKey> {
        let mut at = var;
        for _ in 0..16 {
            match self.defs.get(at.0 as usize).copied().flatten() {
                Some(Op::Copy { src, .. }) => at = *src,
                Some(Op::LoadVar { cell, .. }) => return Some(EntryKey::Cell(*cell)),
                Some(Op::Const {
                    value: Literal::Str(text),
                    ..
                }) => return Some(EntryKey::Text(*text)),
                _ => return Some(EntryKey::Var(self.id, at)),
            }
        }
        None
    }

    fn entry(&self, container: Var, key: Option<Var>) -> Option<Place> {
        Some(Place {
            base: self.base(container)?,
            entry: Some(self.entry_key(key?)?),
        })
    }

    /// The place that a register's value was loaded from.
    pub fn loaded(&self, var: Var) -> Option<Place> {
        let mut stack = vec![var];
        let mut budget = 24;
        while let Some(v) = stack.pop() {
            budget -= 1;
            if budget == 0 {
                return None;
            }
            let found = match self.def(v) {
                Some(Op::Call {
                    callee: Callee::Method { obj, name },
                    args,
                    ..
                }) if Some(*name) == self.words.get => {
                    self.entry(*obj, args.first().map(|a| a.value))
                }
                Some(Op::GetIndex { obj, index, .. }) => self.entry(*obj, Some(*index)),
                // `held ?? Promise.resolve()`
                Some(Op::Binary {
                    op: BinOp::Either,
                    left,
                    right,
                    ..
                }) => {
                    stack.extend([*right, *left]);
                    None
                }
                Some(Op::Phi { from, .. }) => {
                    stack.extend(from.iter().rev());
                    None
                }
                _ => self.base(v).map(|base| Place { base, entry: None }),
            };
            if found.is_some() {
                return found;
            }
        }
        None
    }

    /// The place whose being there a condition asks about.
    pub fn tested(&self, cond: Var) -> Option<Place> {
        let mut var = cond;
        for _ in 0..8 {
            match self.def(var)? {
                Op::Not { src, .. } => var = *src,
                Op::Binary {
                    op: BinOp::Eq | BinOp::Ne,
                    left,
                    ..
                } => var = *left,
                Op::Call {
                    callee: Callee::Method { obj, name },
                    args,
                    ..
                } if Some(*name) == self.words.has => {
                    return self.entry(*obj, args.first().map(|a| a.value));
                }
                _ => return self.loaded(var),
            }
        }
        None
    }

    /// What an instruction stores, and where.
    pub fn stored(&self, op: &Op) -> Option<(Place, Var)> {
        match op {
            Op::StoreVar { cell, value } => Some((
                Place {
                    base: Base::Cell(*cell),
                    entry: None,
                },
                *value,
            )),
            Op::SetField { obj, field, value } => matches!(self.def(*obj)?, Op::This { .. })
                .then_some((
                    Place {
                        base: Base::Field(*field),
                        entry: None,
                    },
                    *value,
                )),
            Op::SetIndex { obj, index, value } => Some((self.entry(*obj, Some(*index))?, *value)),
            Op::Call {
                callee: Callee::Method { obj, name },
                args,
                ..
            } if Some(*name) == self.words.set && args.len() == 2 => {
                Some((self.entry(*obj, Some(args[0].value))?, args[1].value))
            }
            _ => None,
        }
    }

    /// The entry that an instruction takes out of a container.
    pub fn removed(&self, op: &Op) -> Option<Place> {
        match op {
            Op::Call {
                callee: Callee::Method { obj, name },
                args,
                ..
            } if Some(*name) == self.words.delete => {
                self.entry(*obj, args.first().map(|a| a.value))
            }
            Op::Delete {
                obj,
                key: Err(index),
            } => self.entry(*obj, Some(*index)),
            _ => None,
        }
    }

    /// `null`, `undefined`, `false`: what clears a place.
    pub fn is_nothing(&self, var: Var) -> bool {
        matches!(
            self.def(var),
            Some(Op::Const {
                value: Literal::Null | Literal::Bool(false),
                ..
            })
        )
    }

    pub fn is_constant(&self, var: Var) -> bool {
        matches!(self.def(var), Some(Op::Const { .. }))
    }
}

/// Names of an object literal's fields.
pub fn literal_fields(op: &Op) -> Vec<Name> {
    match op {
        Op::Object { fields, .. } => fields
            .iter()
            .filter_map(|(key, _)| match key {
                Key::Name(name) => Some(*name),
                _ => None,
            })
            .collect(),
        _ => Vec::new(),
    }
}
