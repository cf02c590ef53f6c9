//! Which functions and objects a register can hold, over the whole program.
//!
//! Flow-insensitive inclusion constraints (0-CFA with fields), solved with a
//! worklist. It answers one question: who is called here? Handler tables,
//! wrappers, injected services, callbacks and factories all come down to it.
//! Sets are capped, so the cost stays linear; past the cap a call has no known
//! target and is treated like a library's that no model knows.

mod answers;
mod by_name;
mod constrain;
mod contents;
mod copies;
mod libraries;

use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;
use toctou_core::ir::{
    CallKind, ClassId, FuncId, FuncKind, Function, ModuleId, Program, TypeRef, Var,
};
use toctou_core::{FileRole, Name, Names};

use crate::entity::{Entities, Entity, EntityId, GLOBAL};
use crate::library::{Call as CallRule, Library};
use crate::linkage::{Binding, Linkage, TypeTarget};
pub use answers::PointsTo;
use contents::{Contents, holds};
use copies::Registers;

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Node(u32);

impl Node {
    pub(crate) fn number(self) -> u32 {
        self.0
    }
}

/// Never holds anything.
const NOTHING: Node = Node(0);

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ObjId(u32);

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Obj {
    Func(FuncId),
    Class(ClassId),
    Instance(ClassId),
    Literal(u32),
    Array(u32),
    Namespace(ModuleId),
    /// A library's function, namespace or instance.
    Ext(EntityId),
    /// A library's container (`Map`), made at one place.
    Container(u32, EntityId),
}

/// More objects than this in one register mostly say nothing any more: they came together in a
/// helper that everybody calls.
const CAP: usize = 96;
/// A server can have more tools than that, though. Their table is held by a few registers, where
/// a helper's objects are in thousands: so a few may hold more.
const WIDE: usize = 384;
const MAX_WIDE: usize = 256;
/// A method that nobody's type is known for is looked up by name, if so few have it.
const BY_NAME: usize = 3;
/// So many copies of one register are kept as a list alone.
const FEW_COPIES: usize = 48;
/// So many fields of one object are kept as a list alone.
const FEW_FIELDS: usize = 16;

/// The registers that one is copied to. Most are copied to few.
#[derive(Default)]
enum Copies {
    #[default]
    None,
    Few(u8, [Node; 3]),
    Many(Box<SmallVec<[Node; 6]>>),
}

impl std::ops::Deref for Copies {
    type Target = [Node];

    fn deref(&self) -> &[Node] {
        match self {
            Self::None => &[],
            Self::Few(count, few) => &few[..usize::from(*count)],
            Self::Many(many) => many,
        }
    }
}

impl Copies {
    fn push(&mut self, node: Node) {
        match self {
            Self::None => *self = Self::Few(1, [node; 3]),
            Self::Few(count, few) if usize::from(*count) < few.len() => {
                few[usize::from(*count)] = node;
                *count += 1;
            }
            Self::Few(_, few) => {
                let mut many: SmallVec<[Node; 6]> = SmallVec::from_slice(few);
                many.push(node);
                *self = Self::Many(Box::new(many));
            }
            Self::Many(many) => many.push(node),
        }
    }
}

#[derive(Default)]
struct NodeData {
    pts: Contents,
    copies: Copies,
    /// The last of its uses, by its number plus one.
    last_use: u32,
    queued: bool,
    /// Something of a library that no model speaks of.
    foreign: bool,
    /// Can hold more functions than are followed.
    cut: bool,
    /// How many of `pts` were propagated already.
    done: u32,
}

#[derive(Clone, Copy)]
enum Use {
    Get {
        field: Name,
        dst: Node,
    },
    Set {
        field: Name,
        value: Node,
    },
    GetAny {
        dst: Node,
    },
    /// A method or field of it, by a name that is only known when it runs.
    Member {
        dst: Node,
    },
    SetAny {
        value: Node,
    },
    Element {
        dst: Node,
    },
    /// Called by a library for what it makes.
    Makes {
        dst: Node,
    },
    /// The register is called.
    Callee(u32),
    /// A method of the register's value is called.
    Receiver(u32),
    /// The register's functions are called back by a library.
    Callback {
        call: u32,
        rule: u32,
    },
}

/// What is done with a register, and the number plus one of the next such thing; behind the last
/// comes the first.
type Used = (Use, u32);

/// The arguments of a call, among those of all calls.
#[derive(Clone, Copy)]
struct Args {
    start: u32,
    count: u32,
}

type Named = Vec<(Name, Node)>;

struct CallSite {
    func: FuncId,
    dst: Node,
    args: Args,
    /// Arguments that are passed by name.
    named: Option<Box<Named>>,
    spread: bool,
    recv: Option<Node>,
    method: Option<Name>,
    kind: CallKind,
    funcs: SmallVec<[FuncId; 4]>,
    exts: SmallVec<[EntityId; 4]>,
    ducked: bool,
    /// What is known of the method by its name alone was said.
    by_name: bool,
}

impl CallSite {
    /// Whether a rule is about calls with so many arguments.
    fn fits(&self, rule: &CallRule) -> bool {
        let named = self.named.as_ref().map_or(0, |named| named.len());
        let count = self.args.count as usize + named;
        (rule.min_args..=rule.max_args).contains(&count)
    }
}

/// What can be put into an object.
#[derive(Default)]
struct Parts {
    fields: Vec<(Name, Node)>,
    elem: Option<Node>,
}

struct Solver {
    base: Vec<u32>,
    registers: Registers,
    nodes: Vec<NodeData>,
    objs: Vec<Obj>,
    obj_map: FxHashMap<Obj, ObjId>,
    /// By object.
    parts: Vec<Parts>,
    /// Fields of objects that have many.
    fields: FxHashMap<(ObjId, Name), Node>,
    uses: Vec<Used>,
    calls: Vec<CallSite>,
    args: Vec<Node>,
    call_base: Vec<u32>,
    rets: Vec<Node>,
    this: Vec<Node>,
    worklist: Vec<Node>,
    callback_rules: Vec<(std::rc::Rc<CallRule>, usize)>,
    params: Vec<SmallVec<[Node; 4]>>,
    param_names: Vec<SmallVec<[Option<Name>; 4]>>,
    /// The copies of registers that have many.
    copied: FxHashSet<(Node, Node)>,
    /// Registers that can hold more functions than are followed.
    cut: usize,
    /// Registers that hold more than most may.
    wide: usize,
    /// Functions of product files.
    product: Vec<bool>,
    methods_by_name: FxHashMap<Name, Vec<FuncId>>,
    method_class: FxHashMap<FuncId, ClassId>,
}

pub struct Env<'a, 'm> {
    pub program: &'a Program,
    pub names: &'a mut Names,
    pub entities: &'a mut Entities,
    pub linkage: &'a Linkage,
    pub library: &'a mut Library<'m>,
}

/// Whether so many objects are all that a register can hold, where so many hold more than most.
fn is_full(held: usize, wide: usize) -> bool {
    held >= WIDE || held == CAP && wide >= MAX_WIDE
}

impl Solver {
    fn new(program: &Program) -> Self {
        let mut registers = 0;
        let mut base = Vec::with_capacity(program.functions.len());
        for function in &program.functions {
            base.push(registers);
            registers += function.vars.len() as u32 + 2;
        }
        let registers = copies::registers(program, &base);
        // Fields and elements come on top; what is not touched costs nothing, and moving costs.
        let mut nodes = Vec::with_capacity(registers.owners.len() * 2);
        nodes.resize_with(registers.owners.len(), NodeData::default);
        let of = |at: u32| registers.nodes[at as usize];
        let functions = || program.functions.iter().zip(&base);
        let name = |f: &Function, v: &Var| f.vars.get(v.0 as usize).and_then(|info| info.name);
        Self {
            rets: functions()
                .map(|(f, base)| of(base + f.vars.len() as u32))
                .collect(),
            this: functions()
                .map(|(f, base)| of(base + f.vars.len() as u32 + 1))
                .collect(),
            params: functions()
                .map(|(f, base)| f.params.iter().map(|v| of(base + v.0)).collect())
                .collect(),
            param_names: functions()
                .map(|(f, _)| f.params.iter().map(|v| name(f, v)).collect())
                .collect(),
            base,
            calls: Vec::with_capacity(registers.calls),
            registers,
            nodes,
            objs: Vec::new(),
            obj_map: FxHashMap::default(),
            parts: Vec::new(),
            fields: FxHashMap::default(),
            uses: Vec::new(),
            args: Vec::new(),
            call_base: Vec::with_capacity(program.functions.len()),
            worklist: Vec::new(),
            callback_rules: Vec::new(),
            copied: FxHashSet::default(),
            cut: 0,
            wide: 0,
            product: (0..program.functions.len())
                .map(|f| program.file_of(FuncId(f as u32)).role == FileRole::Product)
                .collect(),
            methods_by_name: FxHashMap::default(),
            method_class: FxHashMap::default(),
        }
    }

    fn solve(env: &mut Env<'_, '_>) -> Self {
        let program = env.program;
        let mut pt = Self::new(program);
        for (c, class) in program.classes.iter().enumerate() {
            for (name, f) in &class.methods {
                pt.methods_by_name.entry(*name).or_default().push(*f);
                pt.method_class.insert(*f, ClassId(c as u32));
            }
            for f in class.methods.iter().map(|m| m.1).chain(class.constructor) {
                // Members are called on instances, even if we never see who makes them.
                if program.function(f).kind != FuncKind::StaticMethod {
                    let obj = pt.obj(Obj::Instance(ClassId(c as u32)));
                    let this = pt.this[f.0 as usize];
                    pt.add(this, obj);
                }
            }
        }
        for f in 0..program.functions.len() {
            pt.constrain(env, FuncId(f as u32));
        }
        pt.run(env);
        if pt.resolve_by_name(env) {
            pt.run(env);
        }
        pt
    }

    fn fresh(&mut self) -> Node {
        self.nodes.push(NodeData::default());
        Node(self.nodes.len() as u32 - 1)
    }

    fn node(&self, f: FuncId, v: Var) -> Node {
        self.registers.nodes[(self.base[f.0 as usize] + v.0) as usize]
    }

    fn obj(&mut self, obj: Obj) -> ObjId {
        *self.obj_map.entry(obj).or_insert_with(|| {
            self.objs.push(obj);
            self.parts.push(Parts::default());
            ObjId(self.objs.len() as u32 - 1)
        })
    }

    fn add(&mut self, node: Node, obj: ObjId) {
        self.add_all(node, &[obj]);
    }

    fn add_all(&mut self, node: Node, new: &[ObjId]) {
        debug_assert!(node != NOTHING || new.is_empty());
        let data = &mut self.nodes[node.0 as usize];
        // What is full stays full, and says so once.
        if data.cut && is_full(data.pts.len(), self.wide) {
            return;
        }
        // What comes by two ways comes twice, one right after the other.
        if data.pts.ends_with(new) || data.pts.starts_with(new) {
            return;
        }
        let mut rest = new;
        while let Some(at) = data.pts.first_missing(rest) {
            let held = data.pts.len();
            if is_full(held, self.wide) {
                let is_func = |o: ObjId| matches!(self.objs[o.0 as usize], Obj::Func(_));
                if !data.cut && rest[at..].iter().any(|o| is_func(*o) && !data.pts.has(*o)) {
                    data.cut = true;
                    self.cut += 1;
                }
                return;
            }
            data.pts.push(rest[at]);
            self.wide += usize::from(held == CAP);
            if !data.queued {
                data.queued = true;
                self.worklist.push(node);
            }
            rest = &rest[at + 1..];
        }
    }

    fn copy(&mut self, from: Node, to: Node) {
        if from == to {
            return;
        }
        let target = &self.nodes[to.0 as usize];
        // What is full takes no more.
        if is_full(target.pts.len(), self.wide) {
            let is_func = |o: &ObjId| matches!(self.objs[o.0 as usize], Obj::Func(_));
            if !target.cut && target.pts.iter().all(is_func) {
                self.nodes[to.0 as usize].cut = true;
                self.cut += 1;
            }
            return;
        }
        if from == NOTHING {
            return;
        }
        let data = &mut self.nodes[from.0 as usize];
        // A helper's result goes to every caller: only a short list is searched.
        let few = data.copies.len() < FEW_COPIES;
        if few && holds(&data.copies, to) {
            return;
        }
        if !few {
            if data.copies.len() == FEW_COPIES {
                self.copied.extend(data.copies.iter().map(|to| (from, *to)));
            }
            if !self.copied.insert((from, to)) {
                return;
            }
        }
        data.copies.push(to);
        let pts = std::mem::take(&mut data.pts);
        self.add_all(to, &pts);
        self.nodes[from.0 as usize].pts = pts;
    }

    fn on(&mut self, env: &mut Env<'_, '_>, node: Node, what: Use) {
        if node == NOTHING {
            return;
        }
        self.uses.push((what, 0));
        let number = self.uses.len() as u32;
        let data = &mut self.nodes[node.0 as usize];
        let first = match std::mem::replace(&mut data.last_use, number) {
            0 => number,
            last => std::mem::replace(&mut self.uses[last as usize - 1].1, number),
        };
        self.uses[number as usize - 1].1 = first;
        let known = data.pts.len();
        for i in 0..known {
            let obj = self.nodes[node.0 as usize].pts[i];
            self.apply(env, what, obj);
        }
    }

    fn known_field(&self, obj: ObjId, name: Name) -> Option<Node> {
        let fields = &self.parts[obj.0 as usize].fields;
        if fields.len() > FEW_FIELDS {
            return self.fields.get(&(obj, name)).copied();
        }
        let known = fields.iter().find(|field| field.0 == name);
        known.map(|field| field.1)
    }

    fn field(&mut self, env: &mut Env<'_, '_>, obj: ObjId, name: Name) -> Node {
        if let Some(known) = self.known_field(obj, name) {
            return known;
        }
        let node = self.fresh();
        let fields = &mut self.parts[obj.0 as usize].fields;
        fields.push((name, node));
        match fields.len() {
            count if count > FEW_FIELDS + 1 => {
                self.fields.insert((obj, name), node);
            }
            count if count > FEW_FIELDS => {
                let all = fields.iter().map(|(name, node)| ((obj, *name), *node));
                self.fields.extend(all);
            }
            _ => {}
        }
        if let Obj::Instance(class) = self.objs[obj.0 as usize]
            && let Some((module, ty)) =
                env.linkage
                    .field_type(env.program, env.entities, class, name)
        {
            self.seed(env, node, module, ty);
        }
        node
    }

    fn elem(&mut self, obj: ObjId) -> Node {
        if let Some(known) = self.parts[obj.0 as usize].elem {
            return known;
        }
        let node = self.fresh();
        self.parts[obj.0 as usize].elem = Some(node);
        node
    }

    /// What all fields of an object hold goes to a register.
    fn copy_fields(&mut self, obj: ObjId, dst: Node) {
        // Nothing of this makes a field.
        for i in 0..self.parts[obj.0 as usize].fields.len() {
            let node = self.parts[obj.0 as usize].fields[i].1;
            let full = is_full(self.nodes[dst.0 as usize].pts.len(), self.wide);
            self.copy(node, dst);
            // It was noted that there is more, and nothing else can come.
            if full && node != dst {
                return;
            }
        }
    }

    /// A declared type says what a register can hold, whoever fills it.
    fn seed(&mut self, env: &mut Env<'_, '_>, node: Node, module: ModuleId, ty: &TypeRef) {
        let mut node = node;
        let mut ty = ty;
        for _ in 0..4 {
            // A lock stands for what it protects; a class of the program with
            // type arguments is still that class.
            if let Some(element) = &ty.element {
                let target =
                    env.linkage
                        .type_target(env.program, module, ty, env.names, env.entities);
                match target {
                    Some(TypeTarget::Ext(entity))
                        if env.library.is_holder(entity, env.entities, env.names) =>
                    {
                        let obj = self.obj(Obj::Ext(entity));
                        self.add(node, obj);
                        ty = element;
                        continue;
                    }
                    // `Pool<Postgres>` is a pool, not a list.
                    Some(TypeTarget::Ext(entity))
                        if env.names.text(env.entities.get(entity).module) != GLOBAL
                            && env.library.knows(entity, env.entities, env.names) =>
                    {
                        let obj = self.obj(Obj::Ext(entity));
                        self.add(node, obj);
                        return;
                    }
                    Some(TypeTarget::Class(class)) => {
                        for c in env.linkage.concrete(env.program, class) {
                            let obj = self.obj(Obj::Instance(c));
                            self.add(node, obj);
                        }
                        return;
                    }
                    _ => {}
                }
            }
            if let Some(element) = &ty.element {
                let text = env.names.text(ty.name).to_owned();
                // A reference to a thing is the thing.
                if text == "*" {
                    ty = element;
                    continue;
                }
                let site = self.nodes.len() as u32;
                let global = Entity {
                    module: env.names.intern(GLOBAL),
                    path: ty.name,
                    instance: true,
                };
                let obj = match text.as_str() {
                    "Map" | "Set" | "WeakMap" => Obj::Container(site, env.entities.make(global)),
                    // Where models say something about lists, they are things with methods, too.
                    "Array" => {
                        let entity = env.entities.make(global);
                        if env.library.knows(entity, env.entities, env.names) {
                            Obj::Container(site, entity)
                        } else {
                            Obj::Array(site)
                        }
                    }
                    _ => Obj::Array(site),
                };
                let obj = self.obj(obj);
                self.add(node, obj);
                node = self.elem(obj);
                ty = element;
                continue;
            }
            match env
                .linkage
                .type_target(env.program, module, ty, env.names, env.entities)
            {
                Some(TypeTarget::Class(class)) => {
                    for c in env.linkage.concrete(env.program, class) {
                        let obj = self.obj(Obj::Instance(c));
                        self.add(node, obj);
                    }
                }
                Some(TypeTarget::Ext(entity)) => {
                    if env.library.knows(entity, env.entities, env.names) {
                        let obj = self.obj(Obj::Ext(entity));
                        self.add(node, obj);
                    } else {
                        self.nodes[node.0 as usize].foreign = true;
                    }
                }
                None => {}
            }
            return;
        }
    }

    fn run(&mut self, env: &mut Env<'_, '_>) {
        while let Some(node) = self.worklist.pop() {
            let data = &mut self.nodes[node.0 as usize];
            data.queued = false;
            let from = data.done as usize;
            data.done = data.pts.len() as u32;
            let new: SmallVec<[ObjId; 8]> = data.pts[from..].into();
            let copies = std::mem::take(&mut data.copies);
            for &to in copies.iter() {
                self.add_all(to, &new);
            }
            let data = &mut self.nodes[node.0 as usize];
            data.copies = copies;
            // Uses that are added meanwhile see to what is known already.
            let last = data.last_use;
            if last == 0 {
                continue;
            }
            let mut at = self.uses[last as usize - 1].1;
            loop {
                let what = self.uses[at as usize - 1].0;
                for &obj in &new {
                    self.apply(env, what, obj);
                }
                if at == last {
                    break;
                }
                at = self.uses[at as usize - 1].1;
            }
        }
    }

    fn apply(&mut self, env: &mut Env<'_, '_>, what: Use, obj: ObjId) {
        match what {
            Use::Get { field, dst } => self.get(env, obj, field, dst),
            Use::Set { field, value } => match self.objs[obj.0 as usize] {
                Obj::Ext(e) if !env.entities.get(e).instance => {}
                Obj::Namespace(_) | Obj::Func(_) => {}
                _ => {
                    let node = self.field(env, obj, field);
                    self.copy(value, node);
                }
            },
            Use::GetAny { dst } => {
                let elem = self.elem(obj);
                self.copy(elem, dst);
                match self.objs[obj.0 as usize] {
                    Obj::Literal(_) => self.copy_fields(obj, dst),
                    // A module's exports, by a name that is only known when it runs.
                    Obj::Namespace(m) => {
                        for name in env.linkage.export_names(env.program, m) {
                            self.get(env, obj, name, dst);
                        }
                    }
                    _ => {}
                }
            }
            Use::Member { dst } => match self.objs[obj.0 as usize] {
                Obj::Instance(class) | Obj::Class(class) => {
                    for name in env.linkage.method_names(env.program, class) {
                        self.get(env, obj, name, dst);
                    }
                }
                _ => self.apply(env, Use::GetAny { dst }, obj),
            },
            Use::SetAny { value } => {
                let elem = self.elem(obj);
                self.copy(value, elem);
            }
            Use::Element { dst } => {
                let elem = self.elem(obj);
                self.copy(elem, dst);
                // Entries of a Map come as pairs: [key, value].
                if let Obj::Container(..) = self.objs[obj.0 as usize] {
                    let pair = self.obj(Obj::Array(elem.0 | 1 << 31));
                    let inner = self.elem(pair);
                    self.copy(elem, inner);
                    self.add(dst, pair);
                }
                // A table that was written down, gone through.
                if let Obj::Literal(_) = self.objs[obj.0 as usize] {
                    self.copy_fields(obj, dst);
                }
            }
            Use::Makes { dst } => self.made_by(env, obj, dst),
            Use::Callee(call) => self.called(env, call, obj, None),
            Use::Receiver(call) => self.received(env, call, obj),
            Use::Callback { call, rule } => {
                if let Obj::Func(f) = self.objs[obj.0 as usize] {
                    self.called_back(env, call, rule, f);
                }
            }
        }
    }

    fn get(&mut self, env: &mut Env<'_, '_>, obj: ObjId, field: Name, dst: Node) {
        // The first of several results, of something that gives only one.
        if !matches!(self.objs[obj.0 as usize], Obj::Literal(_)) && env.names.text(field) == "#0" {
            self.add(dst, obj);
            return;
        }
        match self.objs[obj.0 as usize] {
            Obj::Instance(class) => {
                if let Some(f) = env.linkage.method(env.program, class, field) {
                    if env.program.function(f).kind == FuncKind::Getter {
                        let ret = self.rets[f.0 as usize];
                        self.copy(ret, dst);
                    } else {
                        let func = self.obj(Obj::Func(f));
                        self.add(dst, func);
                        let this = self.this[f.0 as usize];
                        self.add(this, obj);
                    }
                }
                let node = self.field(env, obj, field);
                self.copy(node, dst);
            }
            Obj::Class(class) => {
                if let Some(f) = env.linkage.method(env.program, class, field) {
                    let func = self.obj(Obj::Func(f));
                    self.add(dst, func);
                }
                let node = self.field(env, obj, field);
                self.copy(node, dst);
            }
            Obj::Literal(_) | Obj::Array(_) => {
                let node = self.field(env, obj, field);
                self.copy(node, dst);
                let elem = self.elem(obj);
                self.copy(elem, dst);
            }
            Obj::Namespace(m) => {
                match env
                    .linkage
                    .export(env.program, m, field, env.names, env.entities)
                {
                    Some(Binding::Cell(cell)) => {
                        let from = self.node(cell.owner, cell.var);
                        self.copy(from, dst);
                    }
                    Some(Binding::Namespace(m)) => {
                        let ns = self.obj(Obj::Namespace(m));
                        self.add(dst, ns);
                    }
                    Some(Binding::Ext(e)) => {
                        let ext = self.obj(Obj::Ext(e));
                        self.add(dst, ext);
                    }
                    None => {}
                }
            }
            Obj::Ext(entity) | Obj::Container(_, entity) => {
                if let Some(member) = env.entities.member(entity, field, env.names)
                    && env.library.knows(member, env.entities, env.names)
                {
                    let ext = self.obj(Obj::Ext(member));
                    self.add(dst, ext);
                } else {
                    self.nodes[dst.0 as usize].foreign = true;
                }
                // What the program has put on it: `app.store = Store()`.
                if env.entities.get(entity).instance {
                    let node = self.field(env, obj, field);
                    self.copy(node, dst);
                }
            }
            Obj::Func(_) => {}
        }
    }

    /// An object is called (or constructed).
    fn called(&mut self, env: &mut Env<'_, '_>, call: u32, obj: ObjId, recv: Option<ObjId>) {
        match self.objs[obj.0 as usize] {
            Obj::Func(f) => {
                self.invoke(call, f);
                if let Some(recv) = recv {
                    let this = self.this[f.0 as usize];
                    self.add(this, recv);
                }
            }
            Obj::Class(class) => {
                let dst = self.calls[call as usize].dst;
                let instance = self.obj(Obj::Instance(class));
                self.add(dst, instance);
                if let Some(f) = constructor(env, class) {
                    self.invoke(call, f);
                    let this = self.this[f.0 as usize];
                    self.add(this, instance);
                }
            }
            Obj::Ext(entity) => self.called_ext(env, call, entity, recv),
            _ => {}
        }
    }

    fn received(&mut self, env: &mut Env<'_, '_>, call: u32, recv: ObjId) {
        let Some(method) = self.calls[call as usize].method else {
            return;
        };
        match self.objs[recv.0 as usize] {
            Obj::Func(f) => match env.names.text(method) {
                "bind" => {
                    let dst = self.calls[call as usize].dst;
                    self.add(dst, recv);
                    self.bind_this(call, f);
                }
                "call" | "apply" => {
                    self.bind_this(call, f);
                    let site = &mut self.calls[call as usize];
                    if !site.funcs.contains(&f) {
                        site.funcs.push(f);
                    }
                    let (ret, dst) = (self.rets[f.0 as usize], self.calls[call as usize].dst);
                    self.copy(ret, dst);
                }
                _ => {}
            },
            Obj::Array(_) => self.duck(env, call, Some(recv)),
            Obj::Container(_, entity) => {
                if let Some(member) = env.entities.member(entity, method, env.names) {
                    self.called_ext(env, call, member, Some(recv));
                }
            }
            Obj::Instance(class) => {
                if let Some(f) = env.linkage.method(env.program, class, method) {
                    let func = self.obj(Obj::Func(f));
                    self.called(env, call, func, Some(recv));
                } else {
                    let field = self.field(env, recv, method);
                    self.on(env, field, Use::Callee(call));
                    // A subclass of a library's class has the library's methods.
                    if let Some(TypeTarget::Ext(entity)) = base_type(env, class)
                        && let Some(member) = env.entities.member(entity, method, env.names)
                    {
                        self.called_ext(env, call, member, Some(recv));
                    }
                }
            }
            Obj::Class(class) => {
                if let Some(f) = env.linkage.method(env.program, class, method) {
                    let func = self.obj(Obj::Func(f));
                    self.called(env, call, func, Some(recv));
                }
            }
            Obj::Literal(_) => {
                let field = self.field(env, recv, method);
                self.on(env, field, Use::Callee(call));
                let known = self.nodes[field.0 as usize].pts.len();
                if known == 0 {
                    self.duck(env, call, Some(recv));
                }
            }
            Obj::Namespace(m) => {
                match env
                    .linkage
                    .export(env.program, m, method, env.names, env.entities)
                {
                    Some(Binding::Cell(cell)) => {
                        let node = self.node(cell.owner, cell.var);
                        self.on(env, node, Use::Callee(call));
                    }
                    Some(Binding::Ext(e)) => self.called_ext(env, call, e, None),
                    _ => {}
                }
            }
            Obj::Ext(entity) => {
                if let Some(member) = env.entities.member(entity, method, env.names) {
                    self.called_ext(env, call, member, Some(recv));
                }
            }
        }
    }

    /// What a decorator that nothing is known about gives back.
    pub(crate) fn stands_for_argument(&mut self, call: u32) {
        let site = &self.calls[call as usize];
        let first = self.args(call).first();
        if let (CallKind::Decorate, Some(&arg), dst) = (site.kind, first, site.dst) {
            self.copy(arg, dst);
        }
    }

    fn args(&self, call: u32) -> &[Node] {
        let Args { start, count } = self.calls[call as usize].args;
        &self.args[start as usize..(start + count) as usize]
    }

    fn bind_this(&mut self, call: u32, f: FuncId) {
        if let Some(&arg) = self.args(call).first() {
            let this = self.this[f.0 as usize];
            self.copy(arg, this);
        }
    }

    fn invoke(&mut self, call: u32, f: FuncId) {
        let site = &mut self.calls[call as usize];
        if site.funcs.contains(&f) || site.funcs.len() >= WIDE {
            return;
        }
        site.funcs.push(f);
        let (dst, spread, kind) = (site.dst, site.spread, site.kind);
        // An example's stand-ins are not what the product is given.
        if self.product[site.func.0 as usize] || !self.product[f.0 as usize] {
            self.pending_params(f, call, spread);
            for (name, node) in self.named(call) {
                let names = &self.param_names[f.0 as usize];
                if let Some(i) = names.iter().position(|n| *n == Some(name)) {
                    let param = self.params[f.0 as usize][i];
                    self.copy(node, param);
                }
            }
        }
        if kind != CallKind::New {
            let ret = self.rets[f.0 as usize];
            self.copy(ret, dst);
        }
    }

    fn named(&self, call: u32) -> Named {
        let named = &self.calls[call as usize].named;
        named.as_ref().map_or_else(Vec::new, |named| named.to_vec())
    }

    fn pending_params(&mut self, f: FuncId, call: u32, spread: bool) {
        for i in 0..self.params[f.0 as usize].len() {
            let param = self.params[f.0 as usize][i];
            let args = self.args(call);
            if let Some(&arg) = args.get(i) {
                self.copy(arg, param);
            } else if spread && let Some(&last) = args.last() {
                self.copy(last, param);
            }
        }
    }
}

fn constructor(env: &Env<'_, '_>, class: ClassId) -> Option<FuncId> {
    let mut at = class;
    for _ in 0..16 {
        if let Some(f) = env.program.classes[at.0 as usize].constructor {
            return Some(f);
        }
        match env.linkage.superclass(at) {
            Some(TypeTarget::Class(next)) => at = next,
            _ => return None,
        }
    }
    None
}

/// The library's class at the bottom of a class's ancestry.
pub fn base_type(env: &Env<'_, '_>, class: ClassId) -> Option<TypeTarget> {
    let mut at = class;
    for _ in 0..16 {
        match env.linkage.superclass(at) {
            Some(TypeTarget::Class(next)) => at = next,
            other => return other,
        }
    }
    None
}

/// The class that `super` is about in a function or in a closure within it.
fn enclosing_class(program: &Program, id: FuncId, function: &Function) -> Option<ClassId> {
    if function.class.is_some() {
        return function.class;
    }
    let mut at = program.function(id).parent;
    for _ in 0..32 {
        let f = program.function(at?);
        if f.class.is_some() {
            return f.class;
        }
        at = f.parent;
    }
    None
}
