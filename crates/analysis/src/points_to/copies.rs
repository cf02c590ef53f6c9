//! Which registers need a set of their own.
//!
//! Half of all registers are temporaries that a variable was loaded into: they share its set. Many
//! others only ever hold numbers, texts and what is worked out of them: they share one that stays
//! empty.

use toctou_core::ir::{BinOp, Function, Op, Program, Var, VarInfo, VarKind};

use super::{NOTHING, Node};

/// Nobody has set the register yet.
const UNSET: u32 = u32::MAX;
/// It never holds a function or an object.
const EMPTY: u32 = u32::MAX - 1;

pub(super) struct Registers {
    /// For every register the node that stands for it.
    pub(super) nodes: Vec<Node>,
    /// The register that a node was made for. The first is [`NOTHING`], and nobody's.
    pub(super) owners: Vec<u32>,
    /// How many calls there are.
    pub(super) calls: usize,
}

/// `base`: the first register of each function. Behind its variables stand its result and `this`.
pub(super) fn registers(program: &Program, base: &[u32]) -> Registers {
    let mut same = Vec::new();
    for (function, base) in program.functions.iter().zip(base) {
        let own = |(v, info): (u32, &VarInfo)| match is_open(info) {
            true => base + v,
            false => UNSET,
        };
        same.extend((0..).zip(&function.vars).map(own));
        same.extend([same.len() as u32, same.len() as u32 + 1]);
        for param in &function.params {
            same[(base + param.0) as usize] = base + param.0;
        }
    }
    let mut calls = 0;
    for (function, at) in program.functions.iter().zip(base) {
        for inst in function.blocks.iter().flat_map(|block| &block.insts) {
            let Some(Var(dst)) = inst.op.dst() else {
                continue;
            };
            calls += usize::from(matches!(
                inst.op,
                Op::Call { .. } | Op::TaggedTemplate { .. }
            ));
            let own = at + dst;
            let source = source(&inst.op, function, *at, base).unwrap_or(own);
            let known = &mut same[own as usize];
            *known = match (*known, source) {
                (UNSET, source) => source,
                (EMPTY, EMPTY) => EMPTY,
                _ => own,
            };
        }
    }
    follow(&mut same);
    let (nodes, owners) = number(&same);
    Registers {
        nodes,
        owners,
        calls,
    }
}

/// Somebody else can set it, or say more about it.
fn is_open(var: &VarInfo) -> bool {
    var.captured || var.ty.is_some() || matches!(var.kind, VarKind::Param | VarKind::Import)
}

/// The register that an instruction copies. `None`: it makes something of its own.
fn source(op: &Op, function: &Function, at: u32, base: &[u32]) -> Option<u32> {
    match op {
        Op::Copy { src, .. } | Op::Await { src, .. } | Op::Enter { resource: src, .. } => {
            Some(at + src.0)
        }
        Op::LoadVar { cell, .. } => Some(base[cell.owner.0 as usize] + cell.var.0),
        Op::This { .. } => Some(at + function.vars.len() as u32 + 1),
        Op::Phi { .. }
        | Op::Binary {
            op: BinOp::Either, ..
        }
        | Op::Func { .. }
        | Op::Class { .. }
        | Op::Global { .. }
        | Op::GetField { .. }
        | Op::GetIndex { .. }
        | Op::Object { .. }
        | Op::Array { .. }
        | Op::Element { keys: false, .. }
        | Op::Call { .. }
        | Op::TaggedTemplate { .. } => None,
        _ => Some(EMPTY),
    }
}

/// Leads every register to the last of those that it is a copy of.
fn follow(same: &mut [u32]) {
    let mut way = Vec::new();
    let mut on_way = vec![false; same.len()];
    for register in 0..same.len() {
        let mut at = register as u32;
        loop {
            let next = match same[at as usize] {
                // Copies in a circle hold nothing.
                _ if on_way[at as usize] => EMPTY,
                UNSET => EMPTY,
                next => next,
            };
            if next == at {
                break;
            }
            if next == EMPTY {
                if !on_way[at as usize] {
                    way.push(at);
                }
                at = EMPTY;
                break;
            }
            on_way[at as usize] = true;
            way.push(at);
            at = next;
        }
        for passed in way.drain(..) {
            on_way[passed as usize] = false;
            same[passed as usize] = at;
        }
    }
}

/// Numbers those that stand for themselves.
fn number(same: &[u32]) -> (Vec<Node>, Vec<u32>) {
    let mut nodes = vec![NOTHING; same.len()];
    let mut owners = vec![u32::MAX];
    for (register, to) in (0..).zip(same) {
        if *to == register {
            nodes[register as usize] = Node(owners.len() as u32);
            owners.push(register);
        }
    }
    for (register, to) in same.iter().enumerate() {
        if *to != EMPTY {
            nodes[register] = nodes[*to as usize];
        }
    }
    (nodes, owners)
}
