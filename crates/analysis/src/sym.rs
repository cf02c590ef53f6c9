//! Symbolic values: what a register denotes, as far as the source says.
//!
//! Hash-consed, so that two accesses name the same location exactly if their
//! symbols have the same number. A symbol is relative to the function it was
//! made in (`Param`, `This`) and is rewritten when a summary is used by a
//! caller: that is how `save(path)` three calls below a handler becomes a
//! write of `this.dir + "/" + name`.

use indexmap::IndexMap;
use indexmap::map::Entry;
use rustc_hash::{FxBuildHasher, FxHashMap, FxHashSet};
use smallvec::SmallVec;
use toctou_core::Name;
use toctou_core::ir::{Cell, ClassId, FuncId, ModuleId};

use crate::entity::EntityId;

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Sym(pub u32);

/// An instruction of the program, made unique per chain of calls that leads to it.
pub type Site = u64;

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum SymKind {
    Str(Name),
    Num(Name),
    Bool(bool),
    Null,
    Param(u32),
    This,
    /// The value of a captured variable.
    Cell(Cell),
    /// The captured variable itself, as a place in memory. Never rewritten.
    VarLoc(Cell),
    Field(Sym, Name),
    Index(Sym, Sym),
    /// One element of an iterated value.
    Element(Sym),
    /// A library's function, class, namespace or object.
    Ext(EntityId),
    /// A module of the program as an object.
    Namespace(ModuleId),
    Func(FuncId),
    /// A function with the arguments of the call that made it: what `wrap(fn)` gives back.
    Bound(FuncId, Box<[Sym]>),
    Class(ClassId),
    /// Made anew here: nobody else has it yet.
    New(Site, NewOf),
    Object(Box<[(Name, Sym)]>),
    Array(Box<[Sym]>),
    /// String parts, or path parts, in order.
    Concat(Box<[Sym]>),
    Join(Box<[Sym]>),
    /// The result of a call that is taken to be a function of its operands.
    Call(Box<CallSym>),
    /// Another value every time: a uuid, a temporary path, the time.
    Fresh(Site),
    /// What an acquisition returned.
    Handle(Site),
    Eq(Sym, Sym),
    Not(Sym),
    Unknown(Site),
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum NewOf {
    Class(ClassId),
    Ext(EntityId),
    Other,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct CallSym {
    pub callee: CalleeSym,
    pub recv: Option<Sym>,
    pub args: Box<[Sym]>,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum CalleeSym {
    Method(Name),
    Func(FuncId),
    Value(Sym),
}

/// Parts of a term, while it is rewritten.
type Parts = SmallVec<[Sym; 8]>;

/// Terms grow only so deep: past this a term is an [`SymKind::Unknown`].
const MAX_DEPTH: u8 = 14;
/// And only so large, counted as a tree: what is rewritten at every call must stay small.
const MAX_SIZE: u32 = 400;

/// Room for so many terms is made beforehand.
const MAX_ROOM: usize = 1 << 20;

#[derive(Default)]
pub struct Syms {
    kinds: IndexMap<SymKind, (), FxBuildHasher>,
    /// Depth and size of the term, whether it mentions something fresh, and whether it
    /// can change under substitution.
    info: Vec<Info>,
    null: Option<Sym>,
    /// In a [`SymKind::Object`]: what the object is a copy of.
    pub rest: Option<Name>,
    /// The callee of `a ?? b`.
    pub either: Option<Name>,
    /// Functions that change nothing about what they have made: `clean(clean(p))` is `clean(p)`.
    pub normalisers: FxHashSet<FuncId>,
    /// Of an object that was made anew: what its constructor has put into fields that nobody
    /// else sets.
    pub fields_of: FxHashMap<Sym, Vec<(Name, Sym)>>,
}

#[derive(Clone, Copy)]
struct Info {
    depth: u8,
    size: u32,
    fresh: bool,
    open: bool,
    /// It is a library's own function or object.
    library: bool,
    /// Calls of what a library's function has begun.
    chain: bool,
}

impl Syms {
    /// With room for so many terms: to move them costs more than what is never touched.
    pub fn with_room_for(count: usize) -> Self {
        let count = count.min(MAX_ROOM);
        Self {
            kinds: IndexMap::with_capacity_and_hasher(count, FxBuildHasher),
            info: Vec::with_capacity(count),
            ..Self::default()
        }
    }

    pub fn kind(&self, sym: Sym) -> &SymKind {
        match self.kinds.get_index(sym.0 as usize) {
            Some((kind, ())) => kind,
            None => unreachable!("a symbol that was not made here"),
        }
    }

    /// A part of an entry whose key this call has made for itself.
    pub fn is_of_fresh_entry(&self, place: Sym) -> bool {
        let mut at = place;
        loop {
            match *self.kind(at) {
                SymKind::Index(_, key) if self.is_fresh(key) => return true,
                SymKind::Index(base, _) | SymKind::Field(base, _) | SymKind::Element(base) => {
                    at = base;
                }
                _ => return false,
            }
        }
    }

    /// Does the term mention a value that is another one every time?
    pub fn is_fresh(&self, sym: Sym) -> bool {
        self.info[sym.0 as usize].fresh
    }

    /// Does the term mention a parameter, `this` or a variable of an outer function?
    pub fn is_open(&self, sym: Sym) -> bool {
        self.info[sym.0 as usize].open
    }

    pub fn make(&mut self, kind: SymKind) -> Sym {
        if let Some(made) = self.made_already(&kind) {
            let known = self.kinds.get_index_of(&kind);
            return known.map_or(made, |known| Sym(known as u32));
        }
        let beside = self.is_beside_fresh(&kind);
        let new = match self.kinds.entry(kind) {
            Entry::Occupied(known) => return Sym(known.index() as u32),
            Entry::Vacant(new) => new,
        };
        let kind = new.key();
        let mut info = Info {
            depth: 0,
            size: 1,
            fresh: matches!(kind, SymKind::Fresh(_)),
            library: matches!(kind, SymKind::Ext(_)),
            chain: false,
            open: matches!(
                kind,
                SymKind::Param(_)
                    | SymKind::This
                    | SymKind::Cell(_)
                    | SymKind::Unknown(_)
                    | SymKind::New(..)
                    | SymKind::Fresh(_)
                    | SymKind::Handle(_)
            ),
        };
        // A chain that a library's function begins is long, not deep: `query(…).bind(…).bind(…)`.
        // Its size is bounded.
        let mut chain = None;
        if let SymKind::Call(call) = kind {
            info.chain = match (call.recv, call.callee) {
                (Some(recv), _) => self.info[recv.0 as usize].chain,
                (None, CalleeSym::Value(v)) => self.info[v.0 as usize].library,
                _ => false,
            };
            chain = call.recv.filter(|_| info.chain);
        }
        for_each_child(kind, |child| {
            let c = self.info[child.0 as usize];
            let step = u8::from(Some(child) != chain);
            info.depth = info.depth.max(c.depth.saturating_add(step));
            info.size = info.size.saturating_add(c.size);
            info.fresh |= c.fresh;
            info.open |= c.open;
        });
        info.fresh &= !beside;
        if info.depth > MAX_DEPTH || info.size > MAX_SIZE {
            // Equal deep terms stay equal: the stand-in is made from the term itself.
            let site = hash_kind(kind);
            return self.make(if info.fresh {
                SymKind::Fresh(site)
            } else {
                SymKind::Unknown(site)
            });
        }
        self.info.push(info);
        let sym = Sym(new.index() as u32);
        new.insert(());
        sym
    }

    /// A field that an object was not made with is set by somebody: what else is in the object,
    /// the time at which it was made, says nothing about it.
    fn is_beside_fresh(&self, kind: &SymKind) -> bool {
        let SymKind::Field(base, _) = kind else {
            return false;
        };
        match self.kind(*base) {
            SymKind::Object(fields) => !fields
                .iter()
                .any(|&(name, value)| Some(name) == self.rest && self.is_fresh(value)),
            _ => false,
        }
    }

    /// Is what this would normalise the normaliser's own result?
    fn made_already(&self, kind: &SymKind) -> Option<Sym> {
        let SymKind::Call(call) = kind else {
            return None;
        };
        let CalleeSym::Func(f) = call.callee else {
            return None;
        };
        let first = *call
            .args
            .first()
            .filter(|_| self.normalisers.contains(&f))?;
        let SymKind::Call(inner) = self.kind(first) else {
            return None;
        };
        (inner.callee == call.callee && inner.recv == call.recv).then_some(first)
    }

    pub fn null(&mut self) -> Sym {
        if let Some(null) = self.null {
            return null;
        }
        let null = self.make(SymKind::Null);
        self.null = Some(null);
        null
    }

    pub fn unknown(&mut self, site: Site) -> Sym {
        self.make(SymKind::Unknown(site))
    }

    pub fn as_str(&self, sym: Sym) -> Option<Name> {
        match self.kind(sym) {
            SymKind::Str(name) => Some(*name),
            _ => None,
        }
    }

    /// What a place in memory hangs from: the variable, parameter or object at
    /// the bottom of `a.b[c].d`.
    pub fn root(&self, mut sym: Sym) -> Sym {
        loop {
            match self.kind(sym) {
                SymKind::Field(base, _) | SymKind::Index(base, _) | SymKind::Element(base) => {
                    sym = *base;
                }
                _ => return sym,
            }
        }
    }

    /// A temporary file, whether it is known by its name or as what is open: `fd, name = mkstemp()`.
    pub fn temporary(&self, file: Sym) -> Sym {
        let root = self.root(file);
        match self.kind(root) {
            SymKind::Fresh(_) => root,
            _ => file,
        }
    }

    /// Does `needle` occur in `hay`?
    pub fn contains(&self, hay: Sym, needle: Sym) -> bool {
        self.any(hay, |sym| sym == needle)
    }

    /// Is one of the terms that a term is made of such a one?
    pub fn any(&self, hay: Sym, is_such: impl Fn(Sym) -> bool) -> bool {
        let mut stack = vec![hay];
        let mut budget = 4096;
        while let Some(sym) = stack.pop() {
            if is_such(sym) {
                return true;
            }
            budget -= 1;
            if budget == 0 {
                return false;
            }
            for_each_child(self.kind(sym), |c| stack.push(c));
        }
        false
    }

    /// Shows each of the terms that a term is made of.
    pub fn each(&self, hay: Sym, mut show: impl FnMut(Sym)) {
        let mut stack = vec![hay];
        for _ in 0..4096 {
            let Some(sym) = stack.pop() else { return };
            show(sym);
            for_each_child(self.kind(sym), |c| stack.push(c));
        }
    }

    /// Rewrites a term bottom-up. `leaf` answers for the terms that a caller
    /// knows more about, and `None` for the rest. Depth is bounded by
    /// [`MAX_DEPTH`], chains by [`MAX_SIZE`], so the recursion is too.
    pub fn rewrite(
        &mut self,
        sym: Sym,
        cache: &mut FxHashMap<Sym, Sym>,
        leaf: &mut dyn FnMut(&mut Self, Sym) -> Option<Sym>,
    ) -> Sym {
        if !self.is_open(sym) {
            return sym;
        }
        if let Some(&done) = cache.get(&sym) {
            return done;
        }
        let new = match leaf(self, sym) {
            Some(new) => new,
            None => self.rewrite_children(sym, cache, leaf),
        };
        cache.insert(sym, new);
        new
    }

    /// What is made of the same parts is the same: nothing is made anew for it.
    fn rewrite_children(
        &mut self,
        sym: Sym,
        cache: &mut FxHashMap<Sym, Sym>,
        leaf: &mut dyn FnMut(&mut Self, Sym) -> Option<Sym>,
    ) -> Sym {
        let kind = match *self.kind(sym) {
            SymKind::Field(base, name) => {
                let base = self.rewrite(base, cache, leaf);
                return self.field(base, name);
            }
            SymKind::Index(base, index) => SymKind::Index(
                self.rewrite(base, cache, leaf),
                self.rewrite(index, cache, leaf),
            ),
            SymKind::Element(base) => SymKind::Element(self.rewrite(base, cache, leaf)),
            SymKind::Eq(a, b) => {
                SymKind::Eq(self.rewrite(a, cache, leaf), self.rewrite(b, cache, leaf))
            }
            SymKind::Not(a) => SymKind::Not(self.rewrite(a, cache, leaf)),
            SymKind::Object(ref fields) => {
                let mut fields: SmallVec<[(Name, Sym); 8]> = SmallVec::from_slice(fields);
                let mut same = true;
                for (_, value) in &mut fields {
                    let new = self.rewrite(*value, cache, leaf);
                    same &= std::mem::replace(value, new) == new;
                }
                if same {
                    return sym;
                }
                SymKind::Object(fields.as_slice().into())
            }
            SymKind::Bound(f, ref items) => {
                let items = Parts::from_slice(items);
                match self.rewrite_all(items, cache, leaf) {
                    Some(items) => SymKind::Bound(f, items.as_slice().into()),
                    None => return sym,
                }
            }
            SymKind::Array(ref items) => {
                let items = Parts::from_slice(items);
                match self.rewrite_all(items, cache, leaf) {
                    Some(items) => SymKind::Array(items.as_slice().into()),
                    None => return sym,
                }
            }
            SymKind::Concat(ref items) => {
                let items = Parts::from_slice(items);
                match self.rewrite_all(items, cache, leaf) {
                    Some(items) => SymKind::Concat(items.as_slice().into()),
                    None => return sym,
                }
            }
            SymKind::Join(ref items) => {
                let items = Parts::from_slice(items);
                return match self.rewrite_all(items, cache, leaf) {
                    Some(items) => self.join(items.into_vec()),
                    None => sym,
                };
            }
            SymKind::Call(ref call) => {
                let (callee, recv) = (call.callee, call.recv);
                let old = Parts::from_slice(&call.args);
                let args = self.rewrite_all(old.clone(), cache, leaf);
                let same = args.is_none();
                let args = args.unwrap_or(old);
                if let (CalleeSym::Method(name), [first, second]) = (callee, args.as_slice())
                    && Some(name) == self.either
                {
                    match self.kind(*first) {
                        SymKind::Null => return *second,
                        SymKind::Str(_) => return *first,
                        _ => {}
                    }
                }
                let new = match callee {
                    CalleeSym::Value(value) => CalleeSym::Value(self.rewrite(value, cache, leaf)),
                    other => other,
                };
                let on = recv.map(|r| self.rewrite(r, cache, leaf));
                if same && new == callee && on == recv {
                    return sym;
                }
                SymKind::Call(Box::new(CallSym {
                    callee: new,
                    recv: on,
                    args: args.as_slice().into(),
                }))
            }
            ref leaf_kind => leaf_kind.clone(),
        };
        self.make(kind)
    }

    /// `None` where nothing is another.
    fn rewrite_all(
        &mut self,
        mut items: Parts,
        cache: &mut FxHashMap<Sym, Sym>,
        leaf: &mut dyn FnMut(&mut Self, Sym) -> Option<Sym>,
    ) -> Option<Parts> {
        let mut same = true;
        for item in &mut items {
            let new = self.rewrite(*item, cache, leaf);
            same &= std::mem::replace(item, new) == new;
        }
        (!same).then_some(items)
    }

    /// `base.name`, looking into literals and through copies.
    pub fn field(&mut self, base: Sym, name: Name) -> Sym {
        if let SymKind::Object(fields) = self.kind(base) {
            if let Some((_, value)) = fields.iter().rev().find(|(n, _)| *n == name) {
                return *value;
            }
            if let [(rest, whole)] = **fields
                && Some(rest) == self.rest
            {
                return self.make(SymKind::Field(whole, name));
            }
        }
        if let SymKind::New(..) = self.kind(base)
            && let Some(fields) = self.fields_of.get(&base)
            && let Some((_, value)) = fields.iter().find(|(n, _)| *n == name)
        {
            return *value;
        }
        self.make(SymKind::Field(base, name))
    }

    pub fn index(&mut self, base: Sym, index: Sym, names: &toctou_core::Names) -> Sym {
        match (self.kind(base), self.kind(index)) {
            (_, SymKind::Str(name)) => {
                let name = *name;
                self.field(base, name)
            }
            (SymKind::Array(items), SymKind::Num(n)) => {
                let item = names
                    .text(*n)
                    .parse::<usize>()
                    .ok()
                    .and_then(|i| items.get(i).copied());
                item.unwrap_or_else(|| self.make(SymKind::Index(base, index)))
            }
            _ => self.make(SymKind::Index(base, index)),
        }
    }

    /// Path parts joined; nested joins are flattened so that
    /// `join(join(a, b), c)` and `join(a, b, c)` are the same path.
    pub fn join(&mut self, parts: Vec<Sym>) -> Sym {
        let mut flat = Vec::with_capacity(parts.len());
        for part in parts {
            match self.kind(part) {
                SymKind::Join(inner) => flat.extend(inner.iter().copied()),
                _ => flat.push(part),
            }
        }
        match flat.as_slice() {
            [one] => *one,
            _ => self.make(SymKind::Join(flat.into())),
        }
    }

    /// The parts of a path: itself, if it is not joined.
    pub fn path_parts(&self, sym: Sym) -> Vec<Sym> {
        match self.kind(sym) {
            SymKind::Join(parts) => parts.to_vec(),
            _ => vec![sym],
        }
    }
}

pub fn for_each_child(kind: &SymKind, mut f: impl FnMut(Sym)) {
    match kind {
        SymKind::Field(a, _) | SymKind::Element(a) | SymKind::Not(a) => f(*a),
        SymKind::Index(a, b) | SymKind::Eq(a, b) => {
            f(*a);
            f(*b);
        }
        SymKind::Object(fields) => fields.iter().for_each(|(_, v)| f(*v)),
        SymKind::Bound(_, items)
        | SymKind::Array(items)
        | SymKind::Concat(items)
        | SymKind::Join(items) => items.iter().for_each(|v| f(*v)),
        SymKind::Call(call) => {
            if let CalleeSym::Value(v) = call.callee {
                f(v);
            }
            call.recv.iter().for_each(|v| f(*v));
            call.args.iter().for_each(|v| f(*v));
        }
        SymKind::Str(_)
        | SymKind::Num(_)
        | SymKind::Bool(_)
        | SymKind::Null
        | SymKind::Param(_)
        | SymKind::This
        | SymKind::Cell(_)
        | SymKind::VarLoc(_)
        | SymKind::Ext(_)
        | SymKind::Namespace(_)
        | SymKind::Func(_)
        | SymKind::Class(_)
        | SymKind::New(..)
        | SymKind::Fresh(_)
        | SymKind::Handle(_)
        | SymKind::Unknown(_) => {}
    }
}

fn hash_kind(kind: &SymKind) -> Site {
    use std::hash::{Hash, Hasher};
    let mut hasher = rustc_hash::FxHasher::default();
    kind.hash(&mut hasher);
    hasher.finish() | 1 << 63
}

/// The same instruction, reached through one more call.
pub fn through(site: Site, call: Site) -> Site {
    let mixed = site.rotate_left(23) ^ call.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed | 1 << 63
}

/// The site of an instruction in its own function.
pub fn site(func: FuncId, inst: u32) -> Site {
    u64::from(func.0) << 24 | u64::from(inst)
}
