//! The order in which functions are looked at: callees before callers.

use toctou_core::ir::{Callee, FuncId, Op, Program, Var};

use crate::points_to::PointsTo;

/// Who calls, creates or hands on whom.
pub fn edges(program: &Program, points_to: &PointsTo) -> Vec<Vec<u32>> {
    let mut out: Vec<Vec<u32>> = vec![Vec::new(); program.functions.len()];
    for (f, function) in program.functions.iter().enumerate() {
        let id = FuncId(f as u32);
        let mut call = 0;
        let list = &mut out[f];
        for inst in function.blocks.iter().flat_map(|b| &b.insts) {
            match &inst.op {
                Op::Func { func, .. } => list.push(func.0),
                Op::Call { args, callee, .. } => {
                    list.extend(points_to.targets(id, call).0.iter().map(|f| f.0));
                    call += 1;
                    let mut take = |v: Var| list.extend(points_to.functions(id, v).map(|f| f.0));
                    args.iter().for_each(|a| take(a.value));
                    if let Callee::Value(v) = callee {
                        take(*v);
                    }
                }
                Op::TaggedTemplate { .. } => {
                    list.extend(points_to.targets(id, call).0.iter().map(|f| f.0));
                    call += 1;
                }
                _ => {}
            }
        }
        list.sort_unstable();
        list.dedup();
    }
    out
}

/// Strongly connected components, callees first (Tarjan, without recursion).
pub fn components(edges: &[Vec<u32>]) -> Vec<Vec<u32>> {
    const NEW: u32 = u32::MAX;
    let n = edges.len();
    let mut index = vec![NEW; n];
    let mut low = vec![0u32; n];
    let mut on_stack = vec![false; n];
    let mut stack: Vec<u32> = Vec::new();
    let mut out = Vec::new();
    let mut next = 0u32;
    for root in 0..n as u32 {
        if index[root as usize] != NEW {
            continue;
        }
        let mut work: Vec<(u32, usize)> = vec![(root, 0)];
        while let Some((v, i)) = work.pop() {
            let vi = v as usize;
            if i == 0 {
                index[vi] = next;
                low[vi] = next;
                next += 1;
                stack.push(v);
                on_stack[vi] = true;
            }
            if let Some(&w) = edges[vi].get(i) {
                work.push((v, i + 1));
                let wi = w as usize;
                if index[wi] == NEW {
                    work.push((w, 0));
                } else if on_stack[wi] {
                    low[vi] = low[vi].min(index[wi]);
                }
                continue;
            }
            if low[vi] == index[vi] {
                let mut component = Vec::new();
                while let Some(w) = stack.pop() {
                    on_stack[w as usize] = false;
                    component.push(w);
                    if w == v {
                        break;
                    }
                }
                // Popped in this order, callees come before most of their callers.
                out.push(component);
            }
            if let Some(&(parent, _)) = work.last() {
                low[parent as usize] = low[parent as usize].min(low[vi]);
            }
        }
    }
    out
}

/// Who is called, created or handed on by whom.
pub fn reverse(edges: &[Vec<u32>]) -> Vec<Vec<u32>> {
    let mut out = vec![Vec::new(); edges.len()];
    for (f, list) in edges.iter().enumerate() {
        for &t in list {
            out[t as usize].push(f as u32);
        }
    }
    out
}

/// Everything that can run when one of `roots` does.
pub fn reachable(edges: &[Vec<u32>], roots: impl IntoIterator<Item = FuncId>) -> Vec<bool> {
    reachable_within(edges, roots, usize::MAX)
}

/// … by way of so many calls at most.
pub fn reachable_within(
    edges: &[Vec<u32>],
    roots: impl IntoIterator<Item = FuncId>,
    calls: usize,
) -> Vec<bool> {
    let mut seen = vec![false; edges.len()];
    let mut level: Vec<u32> = roots.into_iter().map(|f| f.0).collect();
    let mut depth = 0;
    while !level.is_empty() && depth <= calls {
        let mut next = Vec::new();
        for f in level {
            if !std::mem::replace(&mut seen[f as usize], true) {
                next.extend(edges[f as usize].iter().filter(|t| !seen[**t as usize]));
            }
        }
        level = next;
        depth += 1;
    }
    seen
}
