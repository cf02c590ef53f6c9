//! Locks made by hand of a flag and of those who wait for it, known by their structure.
//!
//! * `while (locked) await …; locked = true`: who wakes up looks again, and sets the flag in
//!   the same turn in which it was seen to be clear.
//! * `if (!locked) { locked = true; return } await new Promise((go) => waiters.push(go))`: whoever
//!   gives the lock back hands it to the first who waits, and clears the flag only if nobody does.
//!
//! In one function that clears the flag again it is a lock from there to there
//! ([`Interp::flag_locks`](crate::interp::Interp)). A function that leaves the flag set has taken
//! the lock for its caller, if there is another that clears it. What is a little different is no
//! lock: a waiter that neither looks again nor is handed anything goes in beside others.

use rustc_hash::{FxHashMap, FxHashSet};
use toctou_core::ir::{
    BinOp, Callee, ClassId, Dispatch, FuncId, FuncKind, Function, Op, Program, Term, Var,
};
use toctou_core::{Name, Names};

use crate::cfg::Cfg;
use crate::checks::flow::{self, Base, Defs, Words};
use crate::effect::Pos;

/// A place with the class that has it.
type Flag = (Option<ClassId>, Base);

#[derive(Default)]
pub(crate) struct Turns {
    takes: FxHashMap<FuncId, Base>,
    gives: FxHashMap<FuncId, Vec<Base>>,
    waited: FxHashSet<(FuncId, Pos)>,
    handed: FxHashMap<(FuncId, Pos), Pos>,
}

impl Turns {
    /// The flag that a function has set for its caller.
    pub(crate) fn taken(&self, f: FuncId) -> Option<Base> {
        self.takes.get(&f).copied()
    }

    /// The flags that a function clears, for whoever comes next.
    pub(crate) fn given(&self, f: FuncId) -> &[Base] {
        self.gives.get(&f).map_or(&[], Vec::as_slice)
    }

    /// Was the flag that is set here waited for in a loop?
    pub(crate) fn is_waited_for(&self, f: FuncId, store: Pos) -> bool {
        self.waited.contains(&(f, store))
    }

    /// Where those wait who are handed what others take by setting a flag here.
    pub(crate) fn handed_at(&self, f: FuncId, store: Pos) -> Option<Pos> {
        self.handed.get(&(f, store)).copied()
    }

    pub(crate) fn new(program: &Program, names: &Names) -> Self {
        let words = Words {
            get: names.find("get"),
            set: names.find("set"),
            has: names.find("has"),
            delete: names.find("delete"),
        };
        let (first, last) = (names.find("shift"), names.find("pop"));
        let taken_from = |name: Name| Some(name) == first || Some(name) == last;
        let mut found = Self::default();
        let mut seen: Vec<Seen<'_>> = Vec::new();
        for (f, function) in program.functions.iter().enumerate() {
            let id = FuncId(f as u32);
            let module = program.function_module[f];
            let turns = program.modules[module.0 as usize].dispatch == Dispatch::Await;
            let made = matches!(function.kind, FuncKind::ModuleInit | FuncKind::Constructor);
            if turns && !made && sets_something(function) {
                seen.extend(Seen::of(program, id, function, &words));
            }
        }
        // Who gives a lock back: the flags that are cleared, and whether only if nobody waits.
        let mut cleared: FxHashMap<Flag, Vec<(FuncId, bool)>> = FxHashMap::default();
        for s in &seen {
            for (base, at, _) in s.stores.iter().filter(|(_, _, nothing)| *nothing) {
                let asks = s.cfg.controls_of(at.block).iter().any(|c| c.way < 2);
                let hands = asks && s.calls(|name, _| taken_from(name)).next().is_some();
                let list = cleared.entry((s.class, *base)).or_default();
                list.push((s.defs.id, hands));
            }
        }
        for s in &seen {
            for test in &s.tests {
                s.judge(program, test, &cleared, &mut found);
            }
        }
        let flags: FxHashSet<Flag> = found
            .takes
            .iter()
            .map(|(f, base)| (class_of(program, *f), *base))
            .collect();
        for (flag, functions) in cleared {
            for (f, _) in functions {
                if flags.contains(&flag) && !found.takes.contains_key(&f) {
                    found.gives.entry(f).or_default().push(flag.1);
                }
            }
        }
        found.gives.values_mut().for_each(|bases| {
            bases.sort_unstable();
            bases.dedup();
        });
        found
    }
}

fn sets_something(function: &Function) -> bool {
    let insts = || function.blocks.iter().flat_map(|b| &b.insts);
    function.blocks.len() <= flow::MAX_BLOCKS
        && insts().any(|i| matches!(i.op, Op::StoreVar { .. } | Op::SetField { .. }))
}

fn class_of(program: &Program, f: FuncId) -> Option<ClassId> {
    let mut at = Some(f);
    for _ in 0..32 {
        let function = program.function(at?);
        if function.class.is_some() {
            return function.class;
        }
        at = function.parent;
    }
    None
}

/// A branch that asks whether a flag is set.
struct Test {
    base: Base,
    block: u32,
    set: u32,
    clear: u32,
}

/// What a function does with flags.
struct Seen<'a> {
    class: Option<ClassId>,
    defs: Defs<'a>,
    cfg: Cfg,
    /// Where what is stored, and whether that is nothing.
    stores: Vec<(Base, Pos, bool)>,
    tests: Vec<Test>,
}

impl<'a> Seen<'a> {
    fn of(
        program: &'a Program,
        id: FuncId,
        function: &'a Function,
        words: &'a Words,
    ) -> Option<Self> {
        let defs = Defs::new(id, function, words);
        let mut stores = Vec::new();
        let mut tests = Vec::new();
        for (b, block) in function.blocks.iter().enumerate() {
            for (i, inst) in block.insts.iter().enumerate() {
                let plain = matches!(inst.op, Op::StoreVar { .. } | Op::SetField { .. });
                if let Some((place, value)) = defs.stored(&inst.op).filter(|_| plain) {
                    let own = matches!(place.base, Base::Cell(cell) if cell.owner == id);
                    let at = Pos {
                        block: b as u32,
                        inst: i as u32,
                    };
                    if !own {
                        stores.push((place.base, at, defs.is_nothing(value)));
                    }
                }
            }
            if let Term::Branch {
                cond,
                then,
                otherwise,
            } = block.term
                && let Some((base, yes)) = asked(&defs, cond)
            {
                let (set, clear) = if yes {
                    (then, otherwise)
                } else {
                    (otherwise, then)
                };
                tests.push(Test {
                    base,
                    block: b as u32,
                    set: set.0,
                    clear: clear.0,
                });
            }
        }
        if stores.is_empty() {
            return None;
        }
        Some(Self {
            class: class_of(program, id),
            cfg: Cfg::new(function),
            defs,
            stores,
            tests,
        })
    }

    /// Method calls, by name, on what stands in a shared place.
    fn calls<'s>(
        &'s self,
        wanted: impl Fn(Name, Base) -> bool + 's,
    ) -> impl Iterator<Item = (Pos, &'a [toctou_core::ir::Arg])> + 's {
        let blocks = self.defs.function.blocks.iter().enumerate();
        let insts = blocks.flat_map(|(b, block)| {
            let numbered = block.insts.iter().enumerate();
            numbered.map(move |(i, inst)| (b as u32, i as u32, inst))
        });
        insts.filter_map(move |(block, inst, i)| match &i.op {
            Op::Call {
                callee: Callee::Method { obj, name },
                args,
                ..
            } => {
                let base = self.defs.base(*obj)?;
                wanted(*name, base).then_some((Pos { block, inst }, &**args))
            }
            _ => None,
        })
    }

    fn judge(
        &self,
        program: &Program,
        test: &Test,
        cleared: &FxHashMap<Flag, Vec<(FuncId, bool)>>,
        found: &mut Turns,
    ) {
        let id = self.defs.id;
        let Some(gives) = cleared.get(&(self.class, test.base)) else {
            return;
        };
        // The flag is set where it was clear, in the same turn.
        let only_from_test = |block: u32| self.cfg.preds[block as usize][..] == [test.block];
        let store = self.stores.iter().find(|(base, at, nothing)| {
            *base == test.base
                && !nothing
                && only_from_test(test.clear)
                && self.cfg.dominates(test.clear, at.block)
                && self.in_the_same_turn(test, *at)
        });
        let Some(&(_, store, _)) = store else { return };
        let clears_itself = gives.iter().any(|(f, _)| *f == id);
        if self.comes_back(test) {
            found.waited.insert((id, store));
            if !clears_itself && self.always_passes(&[store.block]) {
                found.takes.insert(id, test.base);
            }
            return;
        }
        // It is handed on to those who wait, and cleared only if nobody does.
        if !gives.iter().any(|(_, hands)| *hands) || !only_from_test(test.set) {
            return;
        }
        let waits = self
            .waiting(program)
            .find(|at| self.cfg.dominates(test.set, at.block));
        if let Some(at) = waits {
            found.handed.insert((id, store), at);
            if !clears_itself && self.always_passes(&[store.block, at.block]) {
                found.takes.insert(id, test.base);
            }
        } else if self.queues_itself(program, Some(test.set))
            && let Some(maker) = self.defs.function.parent
            && !gives.iter().any(|(f, _)| *f == maker)
        {
            // `return new Promise((go) => { if (!locked) { locked = true; go() } else waiters.push(go) })`
            found.takes.insert(maker, test.base);
        }
    }

    /// Is nothing waited for between the answer that it is clear and this place?
    fn in_the_same_turn(&self, test: &Test, at: Pos) -> bool {
        let insts = &self.defs.function.blocks[test.clear as usize].insts;
        let here = test.clear == at.block;
        let first = if here { at.inst as usize } else { insts.len() };
        let waits = insts[..first]
            .iter()
            .any(|i| matches!(i.op, Op::Await { .. }));
        let end = Pos {
            block: test.clear,
            inst: insts.len() as u32,
        };
        let again = |b: u32| b == test.block;
        !waits
            && (here || flow::between(self.defs.function, &self.cfg, end, at, again) == Some(false))
    }

    /// Where the flag is set, is something waited for and then looked again?
    fn comes_back(&self, test: &Test) -> bool {
        let loops = flow::after(&self.cfg, test.set, |_| true);
        let round = |b: u32| loops.contains(&b) || b == test.set;
        let waits = |b: u32| {
            let insts = &self.defs.function.blocks[b as usize].insts;
            insts.iter().any(|i| matches!(i.op, Op::Await { .. }))
        };
        let mut blocks = 0..self.defs.function.blocks.len() as u32;
        loops.contains(&test.block)
            && blocks.any(|b| {
                round(b)
                    && waits(b)
                    && flow::after(&self.cfg, b, |_| true).contains(&test.block)
                    && self.cfg.dominates(test.set, b)
            })
    }

    /// Does every way to a return pass one of the blocks?
    fn always_passes(&self, blocks: &[u32]) -> bool {
        let function = self.defs.function;
        let mut seen: FxHashSet<u32> = FxHashSet::default();
        let mut work = vec![0];
        while let Some(b) = work.pop() {
            if blocks.contains(&b) || !seen.insert(b) {
                continue;
            }
            if matches!(function.blocks[b as usize].term, Term::Return(_)) {
                return false;
            }
            work.extend(self.cfg.succs[b as usize].iter().map(|edge| edge.to.0));
        }
        true
    }

    /// Where a promise is made whose resolver is put into a list.
    fn waiting(&self, program: &'a Program) -> impl Iterator<Item = Pos> {
        let blocks = self.defs.function.blocks.iter().enumerate();
        blocks.flat_map(move |(b, block)| {
            let insts = block.insts.iter().enumerate();
            insts.filter_map(move |(i, inst)| {
                let Op::Call { args, .. } = &inst.op else {
                    return None;
                };
                let Some(Op::Func { func, .. }) = self.defs.def(args.first()?.value) else {
                    return None;
                };
                let function = program.function(*func);
                let words = Words {
                    get: None,
                    set: None,
                    has: None,
                    delete: None,
                };
                let inner = Seen {
                    class: self.class,
                    defs: Defs::new(*func, function, &words),
                    cfg: Cfg::new(function),
                    stores: Vec::new(),
                    tests: Vec::new(),
                };
                let at = Pos {
                    block: b as u32,
                    inst: i as u32,
                };
                let queues = inner.queues_itself(program, None);
                (function.parent == Some(self.defs.id) && queues).then_some(at)
            })
        })
    }

    /// Is what a promise's function is given first put into a list, by itself or in something?
    fn queues_itself(&self, program: &Program, below: Option<u32>) -> bool {
        let Some(&go) = self.defs.function.params.first() else {
            return false;
        };
        let mut puts = self.calls(|_, _| true);
        puts.any(|(at, args)| {
            below.is_none_or(|b| self.cfg.dominates(b, at.block))
                && args.iter().any(|a| self.has(program, a.value, go))
        })
    }

    /// Is a value a parameter, or does it hold it?
    fn has(&self, program: &Program, value: Var, go: Var) -> bool {
        let id = self.defs.id;
        let is_go =
            |op: &Op| matches!(op, Op::LoadVar { cell, .. } if cell.owner == id && cell.var == go);
        let mut work = vec![value];
        for _ in 0..16 {
            let Some(v) = work.pop() else { return false };
            if v == go {
                return true;
            }
            match self.defs.def(v) {
                Some(Op::Object { fields, .. }) => work.extend(fields.iter().map(|f| f.1)),
                Some(Op::Array { items, .. }) => work.extend(items.iter().map(|a| a.value)),
                Some(Op::Func { func, .. }) => {
                    let insts = program.function(*func).blocks.iter().flat_map(|b| &b.insts);
                    if insts.into_iter().any(|i| is_go(&i.op)) {
                        return true;
                    }
                }
                Some(op) if is_go(op) => return true,
                _ => {}
            }
        }
        false
    }
}

/// The place that a condition asks about, and whether it holds where that is set.
fn asked(defs: &Defs<'_>, cond: Var) -> Option<(Base, bool)> {
    let (mut var, mut yes) = (cond, true);
    for _ in 0..8 {
        match defs.def(var)? {
            Op::Not { src, .. } => (var, yes) = (*src, !yes),
            Op::Binary {
                op: op @ (BinOp::Eq | BinOp::Ne),
                left,
                right,
                ..
            } if defs.is_nothing(*right) => (var, yes) = (*left, yes == (*op == BinOp::Ne)),
            _ => return Some((defs.base(var)?, yes)),
        }
    }
    None
}
