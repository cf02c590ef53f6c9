//! What a value in a loop was computed from, within its function.

use rustc_hash::FxHashSet;
use smallvec::SmallVec;
use toctou_core::ir::{Callee, Function, Op, Var};

use crate::effect::Pos;

#[derive(Default)]
pub struct Slice {
    pub vars: FxHashSet<Var>,
    /// Calls whose results are in it.
    pub calls: FxHashSet<Pos>,
    /// A register that each turn changes, starting from itself, is in it.
    pub counter: bool,
    /// A caught exception is in it.
    pub caught: bool,
    /// Variables and fields that others can change are in it.
    pub outside: bool,
}

pub struct Slicer<'a> {
    function: &'a Function,
    defs: Vec<SmallVec<[Pos; 1]>>,
    counters: FxHashSet<Var>,
    /// Captured variables that the loop itself sets.
    cells: FxHashSet<Var>,
}

/// More than this says nothing any more.
const MAX: usize = 400;

pub fn operands(op: &Op) -> SmallVec<[Var; 6]> {
    let mut out: SmallVec<[Var; 6]> = SmallVec::new();
    match op {
        Op::Copy { src, .. } | Op::Not { src, .. } | Op::Await { src, .. } => out.push(*src),
        Op::GetField { obj, .. } => out.push(*obj),
        Op::GetIndex { obj, index, .. } => out.extend([*obj, *index]),
        Op::Element { of, .. } => out.push(*of),
        Op::Object { fields, .. } => out.extend(fields.iter().map(|f| f.1)),
        Op::Array { items, .. } => out.extend(items.iter().map(|a| a.value)),
        Op::Concat { parts: from, .. } | Op::Phi { from, .. } | Op::Opaque { from, .. } => {
            out.extend(from.iter().copied());
        }
        Op::Binary { left, right, .. } => out.extend([*left, *right]),
        Op::Call { callee, args, .. } => {
            if let Callee::Method { obj, .. } = callee {
                out.push(*obj);
            }
            out.extend(args.iter().map(|a| a.value));
        }
        Op::TaggedTemplate { values, .. } => out.extend(values.iter().copied()),
        _ => {}
    }
    out
}

impl<'a> Slicer<'a> {
    pub fn new(function: &'a Function, body: &[bool]) -> Self {
        let mut defs: Vec<SmallVec<[Pos; 1]>> = vec![SmallVec::new(); function.vars.len()];
        let mut cells = FxHashSet::default();
        for (b, block) in function.blocks.iter().enumerate() {
            for (i, inst) in block.insts.iter().enumerate() {
                if let Some(list) = inst.op.dst().and_then(|d| defs.get_mut(d.0 as usize)) {
                    list.push(Pos {
                        block: b as u32,
                        inst: i as u32,
                    });
                }
                if let Op::StoreVar { cell, .. } = &inst.op
                    && body[b]
                {
                    cells.insert(cell.var);
                }
            }
        }
        let mut slicer = Self {
            function,
            defs,
            counters: FxHashSet::default(),
            cells,
        };
        let mut counters = FxHashSet::default();
        for v in 0..function.vars.len() {
            let var = Var(v as u32);
            if slicer.defs[v].len() < 2 {
                continue;
            }
            let turns = slicer.defs[v].iter().any(|p| {
                body[p.block as usize] && {
                    let inst = &function.blocks[p.block as usize].insts[p.inst as usize];
                    slicer.of(operands(&inst.op)).vars.contains(&var)
                }
            });
            if turns {
                counters.insert(var);
            }
        }
        slicer.counters = counters;
        slicer
    }

    pub fn of(&self, from: impl IntoIterator<Item = Var>) -> Slice {
        let mut out = Slice::default();
        // What a call is given is not what it gives back: it counts as seen, not as `outside`.
        let mut work: Vec<(Var, bool)> = from.into_iter().map(|v| (v, false)).collect();
        while let Some((v, given)) = work.pop() {
            if out.vars.len() > MAX || !out.vars.insert(v) {
                continue;
            }
            out.counter |= self.counters.contains(&v);
            for at in &self.defs[v.0 as usize] {
                let op = &self.function.blocks[at.block as usize].insts[at.inst as usize].op;
                let mut given = given;
                match op {
                    Op::Call { .. } | Op::TaggedTemplate { .. } => {
                        out.calls.insert(*at);
                        given = true;
                    }
                    Op::Catch { .. } => out.caught = true,
                    Op::LoadVar { cell, .. } => {
                        // Its own variable, that an inner function uses as well.
                        out.counter |= self.cells.contains(&cell.var);
                        out.outside |= !given;
                    }
                    Op::This { .. } => out.outside |= !given,
                    _ => {}
                }
                work.extend(operands(op).into_iter().map(|v| (v, given)));
            }
        }
        out
    }
}
