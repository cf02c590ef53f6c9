//! Control flow of one function: order, dominance, control dependence.
//!
//! Exception edges that leave the function are not edges here: what comes
//! after a call does not *depend* on that call not failing, or everything
//! would depend on everything. Edges to a handler in the function are.

use std::cell::RefCell;
use std::rc::Rc;

use rustc_hash::FxHashSet;
use smallvec::SmallVec;
use toctou_core::ir::{Block, BlockId, Detours, Function, Op, Term};

/// Past this many blocks a function is too large for control dependence; its
/// windows by value flow are still found.
const MAX_BLOCKS: usize = 6_000;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum EdgeKind {
    Then,
    Otherwise,
    Normal,
    Handler,
}

#[derive(Clone, Copy, Debug)]
pub struct Edge {
    pub to: BlockId,
    pub kind: EdgeKind,
}

/// A block whose outcome decides whether another one runs.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Control {
    pub block: u32,
    /// Which way it went: 0 then, 1 otherwise, 2 normal, 3 handler.
    pub way: u8,
}

/// Most blocks have one or two of each: these lie in the table itself.
pub type Edges = SmallVec<[Edge; 2]>;
pub type Preds = SmallVec<[u32; 4]>;
type Controls = SmallVec<[Control; 2]>;

pub struct Cfg {
    pub succs: Vec<Edges>,
    pub preds: Vec<Preds>,
    idom: Vec<u32>,
    depth: Vec<u32>,
    /// Direct control dependence.
    controls: Vec<Controls>,
    /// The same with who leaves by way of a `finally` going there at once, for what comes after
    /// it: as blocks go, everybody who enters a `finally` may come out of it anywhere.
    past: Option<Vec<Controls>>,
    /// Blocks of a `finally`: they run in any case.
    meanwhile: FxHashSet<u32>,
    /// Where a failing instruction of each block leads. A `throw` is a decision, no failure.
    fails_to: Vec<Option<BlockId>>,
    pub has_loop: bool,
    pub rpo: Vec<u32>,
    /// Answers given.
    known: RefCell<Vec<Option<Rc<[Control]>>>>,
}

const NONE: u32 = u32::MAX;

/// Can an instruction of this block throw, as far as handlers are concerned?
fn may_throw(block: &Block) -> bool {
    matches!(block.term, Term::Throw(_))
        || block.insts.iter().any(|i| {
            matches!(
                i.op,
                Op::Call { .. }
                    | Op::TaggedTemplate { .. }
                    | Op::Await { .. }
                    | Op::YieldValue { .. }
                    | Op::Enter { .. }
            )
        })
}

fn fails_to(block: &Block) -> Option<BlockId> {
    block
        .handler
        .filter(|_| !matches!(block.term, Term::Throw(_)))
}

impl Cfg {
    /// Can a block run again after it ran?
    pub fn leads_back(&self, block: u32) -> bool {
        let mut seen = vec![false; self.succs.len()];
        let mut work = vec![block];
        while let Some(b) = work.pop() {
            for edge in &self.succs[b as usize] {
                if edge.to.0 == block {
                    return true;
                }
                if !std::mem::replace(&mut seen[edge.to.0 as usize], true) {
                    work.push(edge.to.0);
                }
            }
        }
        false
    }

    pub fn new(function: &Function) -> Self {
        Self::deciding(function, |_, _| None)
    }

    /// Blocks that can run.
    pub fn running(function: &Function, way: impl Fn(u32) -> Option<bool>) -> Vec<bool> {
        let mut seen = vec![false; function.blocks.len()];
        let mut work: Vec<BlockId> = vec![BlockId(0)];
        while let Some(b) = work.pop() {
            let (Some(block), Some(seen)) = (
                function.blocks.get(b.0 as usize),
                seen.get_mut(b.0 as usize),
            ) else {
                continue;
            };
            if std::mem::replace(seen, true) {
                continue;
            }
            work.extend(block.handler);
            match &block.term {
                Term::Goto(to) => work.push(*to),
                Term::Multi(all) => work.extend(all),
                Term::Branch {
                    then, otherwise, ..
                } => {
                    let way = way(b.0);
                    work.extend((way != Some(false)).then_some(*then));
                    work.extend((way != Some(true)).then_some(*otherwise));
                }
                Term::Return(_) | Term::Throw(_) => {}
            }
        }
        seen
    }

    /// `way`: which way the block's condition always goes.
    pub fn deciding(function: &Function, way: impl Fn(u32, &Block) -> Option<bool>) -> Self {
        let n = function.blocks.len();
        let mut succs: Vec<Edges> = Vec::with_capacity(n);
        for (b, block) in function.blocks.iter().enumerate() {
            let mut edges = Edges::new();
            match &block.term {
                Term::Goto(b) => edges.push(Edge {
                    to: *b,
                    kind: EdgeKind::Normal,
                }),
                Term::Branch {
                    then, otherwise, ..
                } => {
                    let way = way(b as u32, block);
                    let to = |side: bool| if side { *then } else { *otherwise };
                    edges.push(Edge {
                        to: to(way != Some(false)),
                        kind: EdgeKind::Then,
                    });
                    edges.push(Edge {
                        to: to(way == Some(true)),
                        kind: EdgeKind::Otherwise,
                    });
                }
                Term::Multi(blocks) => {
                    edges.extend(blocks.iter().map(|&to| Edge {
                        to,
                        kind: EdgeKind::Normal,
                    }));
                }
                Term::Return(_) | Term::Throw(_) => {}
            }
            if let Some(to) = block.handler
                && may_throw(block)
            {
                edges.push(Edge {
                    to,
                    kind: EdgeKind::Handler,
                });
            }
            edges.retain(|e| (e.to.0 as usize) < n);
            succs.push(edges);
        }
        let mut preds = vec![Preds::new(); n];
        for (from, edges) in succs.iter().enumerate() {
            for edge in edges {
                preds[edge.to.0 as usize].push(from as u32);
            }
        }
        let (rpo, has_loop) = reverse_post_order(&succs);
        let mut cfg = Self {
            succs,
            preds,
            idom: Vec::new(),
            depth: Vec::new(),
            controls: vec![Controls::new(); n],
            past: None,
            meanwhile: function.detours.meanwhile.iter().map(|b| b.0).collect(),
            fails_to: function.blocks.iter().map(fails_to).collect(),
            has_loop,
            rpo,
            known: RefCell::new(vec![None; n]),
        };
        cfg.dominance();
        if n <= MAX_BLOCKS {
            cfg.controls = cfg.control_dependence(&cfg.succs);
            cfg.past = cfg
                .straight(&function.detours)
                .map(|succs| cfg.control_dependence(&succs));
        }
        cfg
    }

    /// The edges if nobody had to pass a `finally`.
    fn straight(&self, detours: &Detours) -> Option<Vec<Edges>> {
        if detours.jumps.is_empty() {
            return None;
        }
        let mut succs = self.succs.clone();
        for (from, to) in &detours.jumps {
            let edges = succs.get_mut(from.0 as usize)?;
            edges.retain(|e| e.kind == EdgeKind::Handler);
            edges.extend(to.map(|to| Edge {
                to,
                kind: EdgeKind::Normal,
            }));
        }
        Some(succs)
    }

    fn dominance(&mut self) {
        let n = self.succs.len();
        let (idom, _) = dominators(n, &self.rpo, |b| &self.preds[b as usize]);
        let mut depth = vec![0; n];
        for &b in &self.rpo {
            if idom[b as usize] != NONE && idom[b as usize] != b {
                depth[b as usize] = depth[idom[b as usize] as usize] + 1;
            }
        }
        self.idom = idom;
        self.depth = depth;
    }

    /// Does every way into `b` pass through `a`?
    pub fn dominates(&self, a: u32, mut b: u32) -> bool {
        if self.idom.get(b as usize).is_none_or(|&d| d == NONE) {
            return false;
        }
        while self.depth[b as usize] > self.depth[a as usize] {
            b = self.idom[b as usize];
        }
        a == b
    }

    /// The blocks that every way into all of these passes through. Of none, all there are.
    pub fn dominators_of(&self, blocks: &[u32]) -> FxHashSet<u32> {
        let Some((&first, others)) = blocks.split_first() else {
            return (0..self.succs.len() as u32).collect();
        };
        let above = |b: u32| self.idom.get(b as usize).copied().filter(|&d| d != NONE);
        let mut common = first;
        for &other in others {
            let mut other = other;
            while common != other {
                let lower = if self.depth[common as usize] >= self.depth[other as usize] {
                    &mut common
                } else {
                    &mut other
                };
                match above(*lower) {
                    Some(next) if next != *lower => *lower = next,
                    // One that nothing leads to says nothing.
                    _ => return FxHashSet::default(),
                }
            }
        }
        let up = |&b: &u32| above(b).filter(|&next| next != b);
        match above(common) {
            Some(_) => std::iter::successors(Some(common), up).collect(),
            None => FxHashSet::default(),
        }
    }

    /// What every way on from a block passes next: dominators of the reversed graph, from a
    /// virtual exit behind the last block. `is_way`: the edges that count.
    fn post_dominators(graph: &[Edges], is_way: impl Fn(usize, &Edge) -> bool) -> Vec<u32> {
        let n = graph.len();
        let exit = n as u32;
        let mut rev_succs: Vec<Edges> = vec![Edges::new(); n + 1];
        let mut rev_preds: Vec<Preds> = vec![Preds::new(); n + 1];
        let link = |from: u32, to: u32, s: &mut [Edges], p: &mut [Preds]| {
            // The edge from -> to of the program is to -> from here.
            s[to as usize].push(Edge {
                to: BlockId(from),
                kind: EdgeKind::Normal,
            });
            p[from as usize].push(to);
        };
        for (from, edges) in graph.iter().enumerate() {
            // A block whose only way on is its handler also ends the function.
            if edges.iter().all(|e| e.kind == EdgeKind::Handler) {
                link(from as u32, exit, &mut rev_succs, &mut rev_preds);
            }
            for edge in edges.iter().filter(|e| is_way(from, e)) {
                link(from as u32, edge.to.0, &mut rev_succs, &mut rev_preds);
            }
        }
        // Blocks that never reach the exit (endless loops) hang from it directly.
        let mut order = post_order_from(exit, &rev_succs);
        let mut seen = vec![false; n + 1];
        for &b in &order {
            seen[b as usize] = true;
        }
        for b in 0..n as u32 {
            if !seen[b as usize] {
                link(b, exit, &mut rev_succs, &mut rev_preds);
            }
        }
        if seen.iter().any(|s| !s) {
            order = post_order_from(exit, &rev_succs);
        }
        order.reverse();
        dominators_from(n + 1, exit, &order, |b| &rev_preds[b as usize]).0
    }

    fn control_dependence(&self, graph: &[Edges]) -> Vec<Controls> {
        let n = graph.len();
        let exit = n as u32;
        // A `return` in a `try` has two ways on: out, or into the handler.
        let ends = |edges: &[Edge]| edges.len() == 1 && edges[0].kind == EdgeKind::Handler;
        let parts = |edges: &[Edge]| edges.len() > 1 || ends(edges);
        let mut controls = vec![Controls::new(); n];
        if !graph.iter().any(|edges| parts(edges)) {
            return controls;
        }
        let ipdom = Self::post_dominators(graph, |_, _| true);
        // What runs whichever way a condition goes, if only nothing fails, was not decided by it.
        let fails =
            |from: usize, e: &Edge| e.kind == EdgeKind::Handler && self.fails_to[from].is_some();
        let has_failures = (0..n).any(|b| graph[b].iter().any(|e| fails(b, e)));
        let unless_it_fails =
            has_failures.then(|| Self::post_dominators(graph, |from, e| !fails(from, e)));
        let runs_anyway = |from: u32, at: u32| {
            let Some(ipdom) = &unless_it_fails else {
                return false;
            };
            let mut next = ipdom[from as usize];
            let mut budget = MAX_BLOCKS;
            while next != at && next != exit && next != NONE && budget > 0 {
                next = ipdom[next as usize];
                budget -= 1;
            }
            next == at
        };
        for from in 0..n as u32 {
            let edges = &graph[from as usize];
            if !parts(edges) {
                continue;
            }
            for edge in edges {
                let stop = ipdom[from as usize];
                let mut at = edge.to.0;
                let mut budget = MAX_BLOCKS;
                while at != stop && at != exit && at != NONE && budget > 0 {
                    let branches = matches!(edge.kind, EdgeKind::Then | EdgeKind::Otherwise);
                    if at != from && !(branches && runs_anyway(from, at)) {
                        let way = match edge.kind {
                            EdgeKind::Then => 0,
                            EdgeKind::Otherwise => 1,
                            EdgeKind::Normal => 2,
                            EdgeKind::Handler => 3,
                        };
                        let control = Control { block: from, way };
                        let list = &mut controls[at as usize];
                        if !list.contains(&control) {
                            list.push(control);
                        }
                    }
                    at = ipdom[at as usize];
                    budget -= 1;
                }
            }
        }
        controls
    }

    /// Everything that decides whether `block` runs, transitively.
    pub fn controls_of(&self, block: u32) -> Rc<[Control]> {
        if let Some(known) = &self.known.borrow()[block as usize] {
            return Rc::clone(known);
        }
        let found: Rc<[Control]> = self.find_controls(block).into();
        self.known.borrow_mut()[block as usize] = Some(Rc::clone(&found));
        found
    }

    fn find_controls(&self, block: u32) -> Vec<Control> {
        let mut out: Vec<Control> = Vec::new();
        let direct = match &self.past {
            Some(past) if !self.meanwhile.contains(&block) => past,
            _ => &self.controls,
        };
        if direct[block as usize].is_empty() {
            return out;
        }
        // With the handler that a failure has led to: what decided how far its `try` came
        // did not decide about the handler.
        let mut stack: Vec<(u32, Option<BlockId>)> = vec![(block, None)];
        let mut seen = vec![false; direct.len()];
        seen[block as usize] = true;
        let mut seen_failed: SmallVec<[(u32, BlockId); 8]> = SmallVec::new();
        while let Some((b, failed)) = stack.pop() {
            for &control in &direct[b as usize] {
                let within = self.fails_to[control.block as usize];
                let tried = failed.is_some() && within == failed;
                if !tried {
                    out.push(control);
                }
                let next = match control.way {
                    3 => within,
                    _ if tried => failed,
                    _ => None,
                };
                let is_new = match next {
                    None => !std::mem::replace(&mut seen[control.block as usize], true),
                    Some(handler) => {
                        let way = (control.block, handler);
                        let is_new = !seen_failed.contains(&way);
                        if is_new {
                            seen_failed.push(way);
                        }
                        is_new
                    }
                };
                if is_new {
                    stack.push((control.block, next));
                }
            }
            if out.len() > 400 {
                break;
            }
        }
        out.sort_unstable();
        out.dedup();
        out
    }
}

fn reverse_post_order(succs: &[Edges]) -> (Vec<u32>, bool) {
    let n = succs.len();
    let mut state = vec![0u8; n];
    let mut order = Vec::with_capacity(n);
    let mut has_loop = false;
    let mut stack: Vec<(u32, usize)> = Vec::new();
    if n > 0 {
        stack.push((0, 0));
        state[0] = 1;
    }
    while let Some((b, i)) = stack.pop() {
        // Last things first: so the body of a loop stands before what follows it.
        let edges = &succs[b as usize];
        if let Some(edge) = edges.len().checked_sub(i + 1).map(|last| &edges[last]) {
            stack.push((b, i + 1));
            let to = edge.to.0;
            match state[to as usize] {
                0 => {
                    state[to as usize] = 1;
                    stack.push((to, 0));
                }
                1 => has_loop = true,
                _ => {}
            }
        } else {
            state[b as usize] = 2;
            order.push(b);
        }
    }
    order.reverse();
    (order, has_loop)
}

fn post_order_from(root: u32, succs: &[Edges]) -> Vec<u32> {
    let mut seen = vec![false; succs.len()];
    let mut order = Vec::new();
    let mut stack = vec![(root, 0usize)];
    seen[root as usize] = true;
    while let Some((b, i)) = stack.pop() {
        if let Some(edge) = succs[b as usize].get(i) {
            stack.push((b, i + 1));
            if !seen[edge.to.0 as usize] {
                seen[edge.to.0 as usize] = true;
                stack.push((edge.to.0, 0));
            }
        } else {
            order.push(b);
        }
    }
    order
}

fn dominators<'a>(n: usize, rpo: &[u32], preds: impl Fn(u32) -> &'a Preds) -> (Vec<u32>, Vec<u32>) {
    dominators_from(n, 0, rpo, preds)
}

/// Cooper, Harvey and Kennedy's iteration.
fn dominators_from<'a>(
    n: usize,
    root: u32,
    rpo: &[u32],
    preds: impl Fn(u32) -> &'a Preds,
) -> (Vec<u32>, Vec<u32>) {
    let mut number = vec![NONE; n];
    for (i, &b) in rpo.iter().enumerate() {
        number[b as usize] = i as u32;
    }
    let mut idom = vec![NONE; n];
    if (root as usize) < n {
        idom[root as usize] = root;
    }
    let mut changed = true;
    let mut rounds = 0;
    while changed && rounds < 50 {
        changed = false;
        rounds += 1;
        for &b in rpo {
            if b == root {
                continue;
            }
            let mut new = NONE;
            for &p in preds(b) {
                if idom[p as usize] == NONE {
                    continue;
                }
                new = if new == NONE {
                    p
                } else {
                    intersect(&idom, &number, p, new)
                };
            }
            if new != NONE && idom[b as usize] != new {
                idom[b as usize] = new;
                changed = true;
            }
        }
    }
    (idom, number)
}

fn intersect(idom: &[u32], number: &[u32], mut a: u32, mut b: u32) -> u32 {
    while a != b {
        while number[a as usize] > number[b as usize] {
            a = idom[a as usize];
        }
        while number[b as usize] > number[a as usize] {
            b = idom[b as usize];
        }
    }
    a
}
