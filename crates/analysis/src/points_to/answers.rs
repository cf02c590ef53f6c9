//! What was found out, for those who ask.

use super::{Node, Obj, ObjId, PointsTo};
use crate::entity::EntityId;
use crate::linkage::Linkage;
use rustc_hash::{FxHashMap, FxHashSet};
use toctou_core::Name;
use toctou_core::ir::{Block, Cell, ClassId, FuncId, Key, Op, Program, Term, Var};

impl PointsTo {
    // --- answers ---

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
            let product = self.product[site.func.0 as usize];
            each(&site.funcs, &site.exts, site.method, product);
        }
    }

    /// Functions that register handlers.
    pub(crate) fn servers(&self, env: &mut super::Env<'_, '_>) -> FxHashSet<FuncId> {
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
    pub(crate) fn handed_on(&self) -> impl Iterator<Item = Obj> + '_ {
        let args = self.calls.iter().flat_map(|site| {
            let named = site.named.iter().map(|(_, node)| node);
            site.args.iter().chain(named)
        });
        let kept = self.fields.values().chain(self.elems.values());
        let nodes = args.chain(kept).chain(&self.rets);
        nodes.flat_map(|node| self.objects(*node))
    }

    /// How many values could be more things than were followed.
    pub(crate) fn cut_off(&self) -> usize {
        self.cut
    }

    pub fn objects(&self, node: Node) -> impl Iterator<Item = Obj> + '_ {
        self.nodes[node.0 as usize]
            .pts
            .iter()
            .map(|o| self.objs[o.0 as usize])
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
        let (f, var) = self.owner(site)?;
        let made_here = (var.0 as usize) < program.function(f).vars.len();
        made_here.then_some(f)
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
        for obj in self.nodes[self.node(f, v).0 as usize].pts.iter() {
            for (name, node) in self.field_list.get(obj).into_iter().flatten() {
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
        for &obj in self.nodes[self.node(f, v).0 as usize].pts.iter() {
            let listed = match self.objs[obj.0 as usize] {
                Obj::Array(_) => self.elems.get(&obj),
                _ => None,
            };
            let listed = listed.map(|elem| self.nodes[elem.0 as usize].pts.iter());
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
                if let Some(node) = self.fields.get(&(obj, *name)) {
                    next.extend(self.nodes[node.0 as usize].pts.iter().map(|o| (top, *o)));
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
        for (obj, fields) in &self.field_list {
            let Obj::Literal(node) = self.objs[obj.0 as usize] else {
                continue;
            };
            let Some(name) = constants.get(&Node(node)) else {
                continue;
            };
            for (_, field) in fields {
                for o in self.objects(*field) {
                    if let Obj::Func(f) = o {
                        out.insert(f, *name);
                    }
                }
            }
        }
        out
    }

    /// A number for a captured variable, and back.
    /// All numbers are below this.
    pub(crate) fn count(&self) -> usize {
        self.nodes.len()
    }

    pub fn number(&self, cell: Cell) -> u32 {
        self.base[cell.owner.0 as usize] + cell.var.0
    }

    pub fn cell(&self, number: u32) -> Option<Cell> {
        let (owner, var) = self.owner(number)?;
        Some(Cell { owner, var })
    }

    /// The function and register of a node.
    pub(crate) fn owner(&self, node: u32) -> Option<(FuncId, Var)> {
        let f = self.base.partition_point(|&b| b <= node).checked_sub(1)?;
        Some((FuncId(f as u32), Var(node - self.base[f])))
    }
}
