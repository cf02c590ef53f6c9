//! Registers that are another's copy and nothing else.
//!
//! Half of all registers are temporaries that a variable was loaded into.
//! They need no set of their own.

use toctou_core::ir::{Function, Op, Program, Var, VarKind};

use super::Node;

/// For every register the one that stands for it. `nodes` is the number of all.
pub(super) fn same(program: &Program, base: &[u32], this: &[Node], nodes: usize) -> Vec<Node> {
    let mut same: Vec<Node> = (0..nodes as u32).map(Node).collect();
    for (f, function) in program.functions.iter().enumerate() {
        let only_copied = only_copied(function);
        for inst in function.blocks.iter().flat_map(|block| &block.insts) {
            let (dst, src) = match &inst.op {
                Op::Copy { dst, src }
                | Op::Await { dst, src }
                | Op::Enter { dst, resource: src } => (dst, Node(base[f] + src.0)),
                Op::LoadVar { dst, cell } => (dst, Node(base[cell.owner.0 as usize] + cell.var.0)),
                Op::This { dst } => (dst, this[f]),
                _ => continue,
            };
            if only_copied[dst.0 as usize] {
                same[(base[f] + dst.0) as usize] = src;
            }
        }
    }
    let mut way = Vec::new();
    let mut on_way = vec![false; nodes];
    for node in 0..nodes {
        let mut at = Node(node as u32);
        // Copies in a circle hold nothing: any of them may stand for the rest.
        while same[at.0 as usize] != at && !on_way[at.0 as usize] {
            on_way[at.0 as usize] = true;
            way.push(at);
            at = same[at.0 as usize];
        }
        for passed in way.drain(..) {
            on_way[passed.0 as usize] = false;
            same[passed.0 as usize] = at;
        }
    }
    same
}

/// Registers with one definition, which nobody else can set or say more about.
fn only_copied(function: &Function) -> Vec<bool> {
    let mut only: Vec<bool> = function
        .vars
        .iter()
        .map(|var| {
            !var.captured
                && var.ty.is_none()
                && !matches!(var.kind, VarKind::Param | VarKind::Import)
        })
        .collect();
    let mut defined = vec![false; function.vars.len()];
    for inst in function.blocks.iter().flat_map(|block| &block.insts) {
        if let Some(Var(dst)) = inst.op.dst()
            && std::mem::replace(&mut defined[dst as usize], true)
        {
            only[dst as usize] = false;
        }
    }
    only
}
