//! What was found out, for those who ask.

use super::{CallSite, Env, Node, NodeData, Obj, ObjId, Parts, Solver};
use crate::entity::EntityId;
use crate::linkage::Linkage;
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;
use toctou_core::Name;
use toctou_core::ir::{Block, Cell, ClassId, FuncId, Key, Op, Program, Term, Var};

/// Who is called where.
pub struct PointsTo {
    base: Vec<u32>,
    /// The node of each register, and the register that a node was made for.
    nodes: Vec<Node>,
    owners: Vec<u32>,
    held: Held,
    objs: Vec<Obj>,
    /// By object.
    parts: Vec<Parts>,
    calls: Vec<Call>,
    call_base: Vec<u32>,
    /// Registers that can hold more functions than were followed.
    cut: usize,
    handed_on: Vec<Obj>,
    methods_by_name: FxHashMap<Name, Vec<FuncId>>,
    method_class: FxHashMap<FuncId, ClassId>,
}

/// What all registers hold, one after the other.
struct Held {
    /// Where what a node holds ends; it starts where that of the one before ends.
    ends: Vec<u32>,
    objs: Vec<ObjId>,
}

impl Held {
    fn new(nodes: Vec<NodeData>) -> Self {
        let count = nodes.iter().map(|node| node.pts.len()).sum();
        let mut held = Self {
            ends: Vec::with_capacity(nodes.len()),
            objs: Vec::with_capacity(count),
        };
        for node in nodes {
            held.objs.extend_from_slice(&node.pts);
            held.ends.push(held.objs.len() as u32);
        }
        held
    }

    fn by(&self, node: Node) -> &[ObjId] {
        let node = node.0 as usize;
        let start = node.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.objs[start as usize..self.ends[node] as usize]
    }
}

struct Call {
    func: FuncId,
    method: Option<Name>,
    funcs: SmallVec<[FuncId; 4]>,
    exts: SmallVec<[EntityId; 4]>,
    ducked: bool,
    product: bool,
}

/// What is an argument, a part of something, or given back.
fn handed_on(solver: &Solver) -> Vec<Obj> {
    let mut seen = vec![false; solver.objs.len()];
    let mut asked = vec![false; solver.nodes.len()];
    let named = solver.calls.iter().flat_map(|site| &site.named);
    let named = named.flat_map(|named| named.iter().map(|(_, node)| node));
    let args = solver.args.iter().chain(named);
    let kept = solver.parts.iter().flat_map(|parts| {
        let fields = parts.fields.iter().map(|(_, node)| node);
        fields.chain(&parts.elem)
    });
    for node in args.chain(kept).chain(&solver.rets) {
        if !std::mem::replace(&mut asked[node.0 as usize], true) {
            for obj in solver.nodes[node.0 as usize].pts.iter() {
                seen[obj.0 as usize] = true;
            }
        }
    }
    let objs = solver.objs.iter().zip(seen);
    objs.filter_map(|(obj, seen)| seen.then_some(*obj))
        .collect()
}

impl PointsTo {
    pub fn solve(env: &mut Env<'_, '_>) -> Self {
        let solver = Solver::solve(env);
        let handed_on = handed_on(&solver);
        let product = solver.product;
        let call = |site: CallSite| Call {
            func: site.func,
            method: site.method,
            funcs: site.funcs,
            exts: site.exts,
            ducked: site.ducked,
            product: product[site.func.0 as usize],
        };
        Self {
            base: solver.base,
            nodes: solver.registers.nodes,
            owners: solver.registers.owners,
            held: Held::new(solver.nodes),
            objs: solver.objs,
            parts: solver.parts,
            calls: solver.calls.into_iter().map(call).collect(),
            call_base: solver.call_base,
            cut: solver.cut,
            handed_on,
            methods_by_name: solver.methods_by_name,
            method_class: solver.method_class,
        }
    }

    pub fn node(&self, f: FuncId, v: Var) -> Node {
        self.nodes[(self.base[f.0 as usize] + v.0) as usize]
    }

    /// The `n`-th call of a function, in order of its instructions.
    pub fn targets(&self, f: FuncId, n: u32) -> (&[FuncId], &[EntityId]) {
        let index = (self.call_base[f.0 as usize] + n) as usize;
        match self.calls.get(index) {
            // Beyond the last call of a function stand those of the next.
            Some(site) if site.func == f => (&site.funcs, &site.exts),
            _ => (&[], &[]),
        }
    }

    /// Is it known by the method's name alone who is called?
    pub(crate) fn is_guessed(&self, f: FuncId, n: u32) -> bool {
        let index = (self.call_base[f.0 as usize] + n) as usize;
        let site = self.calls.get(index);
        site.is_none_or(|site| site.ducked)
    }

    /// Each call: whom it calls, the method's name, and whether the product makes it.
    pub(crate) fn each_call(
        &self,
        mut each: impl FnMut(&[FuncId], &[EntityId], Option<Name>, bool),
    ) {
        for site in &self.calls {
            each(&site.funcs, &site.exts, site.method, site.product);
        }
    }

    /// Functions that register handlers.
    pub(crate) fn servers(&self, env: &mut Env<'_, '_>) -> FxHashSet<FuncId> {
        let mut registers = |e: &EntityId| {
            let entries = env.library.entries(*e, env.entities, env.names);
            !entries.is_empty()
        };
        let sites = self.calls.iter();
        sites
            .filter(|site| site.exts.iter().any(&mut registers))
            .map(|site| site.func)
            .collect()
    }

    /// Calls that lead to others as well do not lead to these. Of those that are known by name
    /// alone, one that is left over would look like the one that is meant.
    pub(crate) fn forget(&mut self, gone: impl Fn(FuncId) -> bool) {
        for site in &mut self.calls {
            if !site.ducked && !site.funcs.iter().all(|f| gone(*f)) {
                site.funcs.retain(|f| !gone(*f));
            }
        }
    }

    /// What is an argument, a part of something, or given back.
    pub(crate) fn handed_on(&self) -> &[Obj] {
        &self.handed_on
    }

    /// How many values could be more things than were followed.
    pub(crate) fn cut_off(&self) -> usize {
        self.cut
    }

    pub fn objects(&self, node: Node) -> impl Iterator<Item = Obj> + '_ {
        let held = self.held.by(node).iter();
        held.map(|o| self.objs[o.0 as usize])
    }

    pub fn functions(&self, f: FuncId, v: Var) -> impl Iterator<Item = FuncId> + '_ {
        self.objects(self.node(f, v)).filter_map(|o| match o {
            Obj::Func(f) => Some(f),
            _ => None,
        })
    }

    /// The function that makes the thing that a register was the first to hold. None for things
    /// that only a declared type speaks of.
    pub(crate) fn made_in(&self, program: &Program, site: u32) -> Option<FuncId> {
        let Cell { owner, var } = self.cell(*self.owners.get(site as usize)?)?;
        let made_here = (var.0 as usize) < program.function(owner).vars.len();
        made_here.then_some(owner)
    }

    /// The class of what a register holds, if there is but one.
    pub fn only_class(&self, f: FuncId, v: Var) -> Option<ClassId> {
        let mut found = None;
        for obj in self.objects(self.node(f, v)) {
            if let Obj::Instance(class) = obj
                && found.replace(class).is_some_and(|other| other != class)
            {
                return None;
            }
        }
        found
    }

    /// `if (store.take) return store.take(key)`, where everything that `store`
    /// can be has that method.
    pub fn tests_for_a_method(
        &self,
        program: &Program,
        linkage: &Linkage,
        f: FuncId,
        block: &Block,
    ) -> bool {
        let Term::Branch { cond, .. } = block.term else {
            return false;
        };
        let Some(&Op::GetField { dst, obj, field }) = block.insts.last().map(|inst| &inst.op)
        else {
            return false;
        };
        let has_it = |thing| match thing {
            Obj::Instance(class) => linkage.method(program, class, field).is_some(),
            _ => false,
        };
        let mut things = self.objects(self.node(f, obj)).peekable();
        dst == cond && things.peek().is_some() && things.all(has_it)
    }

    /// Fields of the object literals that a register may hold, with the functions in them.
    pub fn function_fields(&self, f: FuncId, v: Var) -> Vec<(Name, FuncId)> {
        let mut out = Vec::new();
        for obj in self.held.by(self.node(f, v)) {
            for (name, node) in &self.parts[obj.0 as usize].fields {
                for o in self.objects(*node) {
                    if let Obj::Func(f) = o {
                        out.push((*name, f));
                    }
                }
            }
        }
        out.sort_unstable();
        out.dedup();
        out
    }

    /// Objects in a register, with a field's node looked up on each. Of a list, those in it.
    pub fn field_functions(&self, f: FuncId, v: Var, path: &[Name]) -> Vec<(ObjId, FuncId)> {
        let mut at: Vec<(ObjId, ObjId)> = Vec::new();
        for &obj in self.held.by(self.node(f, v)) {
            let listed = match self.objs[obj.0 as usize] {
                Obj::Array(_) => self.parts[obj.0 as usize].elem,
                _ => None,
            };
            let listed = listed.map(|elem| self.held.by(elem));
            at.extend(listed.into_iter().flatten().map(|o| (*o, *o)));
            at.push((obj, obj));
        }
        let mut methods = Vec::new();
        for (i, name) in path.iter().enumerate() {
            let mut next = Vec::new();
            for (top, obj) in at {
                // An object's method, by its class.
                if let Obj::Instance(class) = self.objs[obj.0 as usize]
                    && i + 1 == path.len()
                {
                    let named = self.methods_by_name.get(name).into_iter().flatten();
                    let own = named.filter(|f| self.method_class.get(f) == Some(&class));
                    methods.extend(own.map(|f| (top, *f)));
                }
                let mut fields = self.parts[obj.0 as usize].fields.iter();
                if let Some((_, node)) = fields.find(|field| field.0 == *name) {
                    next.extend(self.held.by(*node).iter().map(|o| (top, *o)));
                }
            }
            at = next;
        }
        at.into_iter()
            .filter_map(|(top, o)| match self.objs[o.0 as usize] {
                Obj::Func(f) => Some((top, f)),
                _ => None,
            })
            .chain(methods)
            .collect()
    }

    /// For functions in object literals: the constant in the literal's `name` field.
    pub fn literal_names(&self, program: &Program, field: Name) -> FxHashMap<FuncId, Name> {
        let mut constants: FxHashMap<Node, Name> = FxHashMap::default();
        for (f, function) in program.functions.iter().enumerate() {
            let id = FuncId(f as u32);
            let mut strings: FxHashMap<Var, Name> = FxHashMap::default();
            for inst in function.blocks.iter().flat_map(|b| &b.insts) {
                match &inst.op {
                    Op::Const {
                        dst,
                        value: toctou_core::ir::Literal::Str(text),
                    } => {
                        strings.insert(*dst, *text);
                    }
                    Op::Object { dst, fields } => {
                        for (key, value) in fields {
                            if *key == Key::Name(field)
                                && let Some(text) = strings.get(value)
                            {
                                constants.insert(self.node(id, *dst), *text);
                            }
                        }
                    }
                    _ => {}
                }
            }
        }
        let mut out = FxHashMap::default();
        for (obj, parts) in self.objs.iter().zip(&self.parts) {
            let Obj::Literal(node) = *obj else {
                continue;
            };
            let Some(name) = constants.get(&Node(node)) else {
                continue;
            };
            for (_, field) in &parts.fields {
                for o in self.objects(*field) {
                    if let Obj::Func(f) = o {
                        out.insert(f, *name);
                    }
                }
            }
        }
        out
    }

    // A number for a captured variable, and back.

    /// All numbers are below this.
    pub(crate) fn count(&self) -> usize {
        self.nodes.len()
    }

    /// All numbers of nodes are below this.
    pub(crate) fn nodes(&self) -> usize {
        self.held.ends.len()
    }

    pub fn number(&self, cell: Cell) -> u32 {
        self.base[cell.owner.0 as usize] + cell.var.0
    }

    pub fn cell(&self, number: u32) -> Option<Cell> {
        let before = self.base.partition_point(|&b| b <= number);
        let f = before.checked_sub(1)?;
        let (owner, var) = (FuncId(f as u32), Var(number - self.base[f]));
        Some(Cell { owner, var })
    }
}
