//! Plain accesses to memory and the locks round them, and who is called with
//! which: what the check for data races looks at, over the whole program.
//!
//! A place is known by its class and field, not by the object: a lock and what
//! it guards hang from the same object in nearly all code.

use super::Interp;
use crate::calls::CallView;
use crate::effect::{Lock, Pos};
use crate::held::{Held, MAX_ACQUIRES};
use crate::library::EffectRule;
use crate::linkage::TypeTarget;
use crate::points_to::Obj;
use crate::sym::{Sym, SymKind};
use std::rc::Rc;
use toctou_core::ir::{Cell, ClassId, FuncId, ModuleId, Op, TypeRef, Var, VarKind};
use toctou_core::{Name, Span};
use toctou_models::{Do, Mode};

/// A variable of the program, whichever object it is a part of.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Spot {
    Field(ClassId, Name),
    Variable(Cell),
    /// The object itself: a lock that is embedded in it.
    Object(ClassId),
    /// Set up once, when this field says so (see `ready`).
    Ready(ClassId, Name),
    /// What is counted here is over for who has waited for it (see `threads`).
    Joined(ClassId, Name),
    /// Whatever this instruction of a function changes: a part of something of
    /// a library's type, known by nothing but the way to it.
    Site(FuncId, u32, u32),
}

/// Whose object an access goes through.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Owner {
    This,
    Param(u32),
    /// Something that a parameter holds: an entry of a list …
    Within(u32),
    /// … or what an entry leads to.
    Beyond(u32),
    Variable(Cell),
    /// What others were given to look at, and is exchanged for another one when there is news:
    /// who writes to it writes to everybody's, who reads it reads what nobody writes to.
    /// Unless what is put into the field of this name is not new.
    Published(Name),
    /// Made here, or not known: nobody else's.
    Own,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct HeldLock {
    pub spot: Spot,
    pub shared: bool,
    pub once: bool,
}

/// One plain access: no library that synchronises stands between.
#[derive(Clone, Debug)]
pub struct Access {
    pub spot: Spot,
    /// What is in the map or slice, not the variable that holds it.
    pub content: bool,
    pub write: bool,
    /// Of a write: what is written is made from what was there.
    pub from_old: bool,
    /// All that is read is how many there are, or whether there is one.
    pub glance: bool,
    pub owner: Owner,
    pub locks: Vec<HeldLock>,
    pub span: Span,
    pub key: Sym,
    /// In one step, as all others that are so.
    pub indivisible: bool,
    /// The object that holds the table whose entry is set.
    pub within: Option<Var>,
    /// What it is known by here, where that is not the place that others know.
    pub through: Option<Sym>,
    pub(crate) at: Pos,
}

/// One call of a function of the program.
#[derive(Clone, Debug)]
pub struct Passed {
    pub callee: FuncId,
    pub this: Owner,
    pub args: Vec<Owner>,
    /// Of lists that are the caller's own: whose the things in them are, and the parts of those.
    pub inside: Vec<(Owner, Owner)>,
    pub locks: Vec<HeldLock>,
    pub spawned: bool,
    /// In a loop: it may be done many times at once.
    pub repeated: bool,
    /// A thread that is started only if none was.
    pub single: bool,
    given: Vec<Rc<Lock>>,
    /// The arguments, as they are known by others.
    pub(crate) values: Vec<Sym>,
    pub at: Pos,
    pub span: Span,
    /// The object whose method it is.
    pub recv: Option<Sym>,
}

/// A step in the life of something: it is opened, used, counted, closed.
#[derive(Clone, Debug)]
pub struct Step {
    pub what: Do,
    pub key: Sym,
    pub span: Span,
    pub at: Pos,
    /// What is held, and by which acquisition.
    pub locks: Vec<(HeldLock, usize)>,
    /// What must not be done twice: to which place, if others can have it by now.
    pub only_once: Option<Spot>,
    /// Where threads are counted.
    pub counter: Option<Spot>,
}

#[derive(Default, Debug)]
pub struct Accesses {
    pub accesses: Vec<Access>,
    pub calls: Vec<Passed>,
    pub life: Vec<Step>,
    /// What is set up once, for sure, when the function has returned.
    pub readies: Vec<Spot>,
    /// Tests (`false`) and settings (`true`) of flags, by the event that they are.
    pub flags: Vec<(bool, Step)>,
}

const MAX_ACCESSES: usize = 400;
const MAX_CALLS: usize = 400;
/// Fields of an object that is written out.
const MAX_SURVEYED: usize = 24;

impl Interp<'_, '_, '_> {
    /// Can plain accesses meet? Not where the compiler sees to it that they do not.
    pub(crate) fn is_racy(&self) -> bool {
        self.anywhere && !self.guarded
    }

    pub(crate) fn owner_of(&self, sym: Sym) -> Owner {
        let owner = match *self.cx.syms.kind(self.cx.syms.root(sym)) {
            SymKind::This => Owner::This,
            SymKind::Param(i) => match self.is_entry(sym) {
                None => Owner::Param(i),
                Some(false) => Owner::Within(i),
                Some(true) => Owner::Beyond(i),
            },
            SymKind::Cell(cell) | SymKind::VarLoc(cell) => Owner::Variable(cell),
            _ => return Owner::Own,
        };
        let published = self.published_by(sym).filter(|_| self.is_racy());
        published.map_or(owner, Owner::Published)
    }

    /// Is a place in an entry of a list or table? And is it a part of one?
    fn is_entry(&self, sym: Sym) -> Option<bool> {
        let mut part = false;
        let mut at = sym;
        loop {
            match *self.cx.syms.kind(at) {
                SymKind::Element(_) | SymKind::Index(..) => return Some(part),
                SymKind::Field(base, _) => {
                    part = true;
                    at = base;
                }
                _ => return None,
            }
        }
    }

    pub(crate) fn class_here(&self) -> Option<ClassId> {
        let mut at = Some(self.id);
        for _ in 0..32 {
            let function = self.cx.program.function(at?);
            if function.class.is_some() {
                return function.class;
            }
            at = function.parent;
        }
        None
    }

    fn register_type(&self, f: FuncId, v: Var) -> Option<(ModuleId, TypeRef)> {
        let ty = self
            .cx
            .program
            .function(f)
            .vars
            .get(v.0 as usize)?
            .ty
            .clone()?;
        Some((self.cx.program.function_module[f.0 as usize], *ty))
    }

    /// `x.(T)`: the value is a `T`, unless it is said to be something else as well.
    pub(crate) fn note_assertion(&mut self, dst: Var, sym: Sym) {
        let info = &self.function.vars[dst.0 as usize];
        if info.kind != VarKind::Temp || info.ty.is_none() || !self.is_racy() {
            return;
        }
        let types = &self.function.vars;
        self.asserted
            .entry(sym)
            .and_modify(|known| {
                *known = known.filter(|old| types[old.0 as usize].ty == info.ty);
            })
            .or_insert(Some(dst));
    }

    /// The type of a value, as far as fields, variables and assertions say.
    fn type_of(&mut self, sym: Sym, depth: u32) -> Option<(ModuleId, TypeRef)> {
        self.declared_type(sym, depth).or_else(|| {
            let var = self.asserted.get(&sym).copied().flatten()?;
            self.register_type(self.id, var)
        })
    }

    fn declared_type(&mut self, sym: Sym, depth: u32) -> Option<(ModuleId, TypeRef)> {
        if depth > 6 {
            return None;
        }
        match *self.cx.syms.kind(sym) {
            SymKind::Param(i) => {
                let var = *self.function.params.get(i as usize)?;
                self.register_type(self.id, var)
            }
            SymKind::Cell(cell) | SymKind::VarLoc(cell) => self.register_type(cell.owner, cell.var),
            SymKind::Field(base, name) => {
                let class = self.class_of(base, depth + 1)?;
                let cx = &*self.cx;
                let (module, ty) = cx
                    .linkage
                    .field_type(cx.program, &cx.entities, class, name)?;
                Some((module, ty.clone()))
            }
            SymKind::Index(base, _) | SymKind::Element(base) => {
                let (module, mut ty) = self.type_of(base, depth + 1)?;
                if self.cx.names.text(ty.name) == "*" {
                    ty = *ty.element?;
                }
                Some((module, *ty.element?))
            }
            _ => None,
        }
    }

    /// The class of an object, by its declared type.
    pub(crate) fn class_of(&mut self, sym: Sym, depth: u32) -> Option<ClassId> {
        if matches!(self.cx.syms.kind(sym), SymKind::This) {
            return self.class_here();
        }
        let (module, mut ty) = self.type_of(sym, depth)?;
        if self.cx.names.text(ty.name) == "*" {
            ty = *ty.element?;
        }
        let cx = &mut *self.cx;
        match cx
            .linkage
            .type_target(cx.program, module, &ty, &mut cx.names, &mut cx.entities)?
        {
            TypeTarget::Class(class) => Some(class),
            TypeTarget::Ext(_) => None,
        }
    }

    /// Is a value a struct itself, not a reference to one?
    pub(super) fn is_plain_struct(&mut self, sym: Sym) -> bool {
        let Some((_, ty)) = self.type_of(sym, 0) else {
            return false;
        };
        ty.element.is_none()
            && self
                .class_of(sym, 0)
                .is_some_and(|c| !self.cx.program.classes[c.0 as usize].is_interface)
    }

    /// Is the register a variable's value, so that a struct in it is a copy?
    fn is_variable(&mut self, var: Var) -> bool {
        let Some(inst) = self.cx.definition(self.id, var) else {
            return false;
        };
        let Op::Copy { src, .. } = inst.op else {
            return false;
        };
        let info = &self.function.vars[src.0 as usize];
        info.name.is_some() || info.kind == VarKind::Param
    }

    /// A struct in a variable is a copy, whatever it was taken from: its fields
    /// are nobody else's.
    pub(crate) fn is_copy(&mut self, obj: Var, base: Sym) -> bool {
        self.is_racy()
            && (self.by_value.contains(&obj) || self.is_variable(obj) && self.is_plain_struct(base))
    }

    /// Is it a struct that stands within another, which nobody else has?
    fn is_part_of_own(&mut self, obj: Var) -> bool {
        let Some(inst) = self.cx.definition(self.id, obj) else {
            return false;
        };
        let Op::GetField {
            obj: outer, field, ..
        } = inst.op
        else {
            return false;
        };
        let cx = &*self.cx;
        let by_value = cx.points_to.only_class(self.id, outer).and_then(|class| {
            let (_, ty) = cx
                .linkage
                .field_type(cx.program, &cx.entities, class, field)?;
            Some(ty.element.is_none())
        });
        let outer = self.val(outer);
        let outer = self.origin(outer);
        by_value == Some(true) && self.owner_of(outer) == Owner::Own
    }

    /// Are the fields of what a register holds other ones in every thread?
    pub(crate) fn is_own_to_thread(&self, obj: Var) -> bool {
        let cx = &self.cx;
        let node = cx.points_to.node(self.id, obj);
        cx.points_to.objects(node).any(|o| match o {
            Obj::Ext(e) => cx.library.is_own_to_thread(e, &cx.entities, &cx.names),
            _ => false,
        })
    }

    /// A value is put into a place that was just noted as written to.
    pub(crate) fn note_new_value(&mut self, place: Sym, value: Sym) {
        let noted = self.plain.accesses.last();
        if !noted.is_some_and(|a| a.write && a.at == self.at) {
            return;
        }
        let old = match *self.cx.syms.kind(place) {
            SymKind::VarLoc(cell) => self.cx.syms.make(SymKind::Cell(cell)),
            _ => place,
        };
        let made_of = self.cx.syms.contains(value, old);
        if let Some(access) = self.plain.accesses.last_mut() {
            access.from_old = made_of;
        }
    }

    /// `obj.field` is read or set.
    pub(crate) fn field_access(&mut self, obj: Var, base: Sym, field: Name, write: bool) {
        if !self.is_racy() {
            return;
        }
        if self.owner_of(base) == Owner::Own && self.is_part_of_own(obj) {
            return;
        }
        let found = base;
        let base = self.origin(base);
        let owner = self.owner_of(base);
        if owner == Owner::Own {
            return;
        }
        if self.is_copy(obj, base) {
            return;
        }
        let class = self
            .cx
            .points_to
            .only_class(self.id, obj)
            .or_else(|| self.class_of(base, 0));
        let key = self.cx.syms.make(SymKind::Field(base, field));
        let Some(class) = class else {
            if write && self.steps_to(key) > 2 {
                self.push_access(self.here(), false, true, owner, key);
            }
            return;
        };
        self.push_access(Spot::Field(class, field), false, write, owner, key);
        if let Some(access) = self.plain.accesses.last_mut().filter(|_| found != base) {
            access.through = Some(found);
        }
    }

    /// An entry of a map or slice is read or set.
    pub(crate) fn content_access(&mut self, base: Sym, write: bool) {
        if !self.is_racy() {
            return;
        }
        let base = self.origin(base);
        let owner = self.owner_of(base);
        let spot = match *self.cx.syms.kind(base) {
            SymKind::Field(object, name) => match self.class_of(object, 0) {
                Some(class) => Spot::Field(class, name),
                None if write && self.steps_to(base) > 1 => self.here(),
                None => return,
            },
            SymKind::Cell(cell) => Spot::Variable(cell),
            _ => return,
        };
        if owner != Owner::Own {
            self.push_access(spot, true, write, owner, base);
        }
    }

    /// How many there are is a part of a table; of a list it is a part of the variable.
    pub(crate) fn size_access(&mut self, base: Sym) {
        if !self.is_racy() {
            return;
        }
        let base = self.origin(base);
        let is_table = self
            .type_of(base, 0)
            .is_some_and(|(_, ty)| self.cx.names.text(ty.name) == "map");
        let before = self.plain.accesses.len();
        if is_table {
            self.content_access(base, false);
        }
        if let Some(access) = self.plain.accesses.get_mut(before) {
            access.glance = true;
        }
    }

    /// The processor does it in one step: as if the place had a lock of its own, which only
    /// such accesses take.
    pub(crate) fn indivisible_access(&mut self, effect: &EffectRule, view: &CallView<'_>) {
        let place = effect.key.as_ref().and_then(|p| self.place(p, view));
        let Some(place) = place.filter(|_| self.is_racy()) else {
            return;
        };
        let key = self.origin(place);
        let owner = self.owner_of(key);
        let SymKind::Field(base, name) = *self.cx.syms.kind(key) else {
            return;
        };
        let Some(class) = self.class_of(base, 0).filter(|_| owner != Owner::Own) else {
            return;
        };
        let spot = Spot::Field(class, name);
        let write = effect.effect.r#do == Do::Write;
        self.push_access(spot, false, write, owner, key);
        if let Some(access) = self.plain.accesses.last_mut() {
            access.indivisible = true;
        }
        // To take the address of a place is not to read it.
        let addressed = view.arg_vars.first().and_then(|v| {
            let at = self.cx.definition(self.id, *v)?;
            matches!(at.op, Op::GetField { .. }).then_some(at.span)
        });
        if let Some(span) = addressed {
            self.plain
                .accesses
                .retain(|a| a.indivisible || a.write || a.spot != spot || a.span != span);
        }
    }

    /// Everything that an object holds is read: it is written out.
    pub(crate) fn survey(&mut self, whole: Sym) {
        if !self.is_racy() {
            return;
        }
        let whole = self.origin(whole);
        self.content_access(whole, false);
        self.survey_object(whole);
        let element = self.cx.syms.make(SymKind::Element(whole));
        let thing = self.origin(element);
        if thing != element || self.owner_of(element) != Owner::Own {
            self.survey_object(thing);
        }
    }

    pub(super) fn survey_object(&mut self, object: Sym) {
        let owner = self.owner_of(object);
        if owner == Owner::Own || matches!(self.cx.syms.kind(object), SymKind::This) {
            return;
        }
        let Some(class) = self.class_of(object, 0) else {
            return;
        };
        let fields: Vec<Name> = self.cx.program.classes[class.0 as usize]
            .fields
            .iter()
            .map(|f| f.name)
            .take(MAX_SURVEYED)
            .collect();
        for name in fields {
            let key = self.cx.syms.make(SymKind::Field(object, name));
            self.push_access(Spot::Field(class, name), false, false, owner, key);
        }
    }

    fn here(&self) -> Spot {
        Spot::Site(self.id, self.at.block, self.at.inst)
    }

    /// Fields and entries between a variable and a place.
    fn steps_to(&self, mut key: Sym) -> u32 {
        let mut steps = 0;
        while let SymKind::Field(base, _) | SymKind::Index(base, _) | SymKind::Element(base) =
            *self.cx.syms.kind(key)
        {
            steps += 1;
            key = base;
        }
        steps
    }

    pub(crate) fn variable_access(&mut self, cell: Cell, write: bool) {
        let small = self.function.blocks.len() < 256;
        if self.is_racy()
            && write
            && cell.owner == self.id
            && self.cfg.has_loop
            && (!small || self.cfg.leads_back(self.at.block))
        {
            self.cx.looped_cells.insert(cell);
        }
        if self.is_racy() && (self.cx.is_module_cell(cell) || cell.owner != self.id) {
            let key = self.cx.syms.make(SymKind::VarLoc(cell));
            self.push_access(
                Spot::Variable(cell),
                false,
                write,
                Owner::Variable(cell),
                key,
            );
        }
    }

    fn push_access(&mut self, spot: Spot, content: bool, write: bool, owner: Owner, key: Sym) {
        if self.plain.accesses.len() < MAX_ACCESSES {
            self.plain.accesses.push(Access {
                spot,
                content,
                write,
                from_old: false,
                glance: false,
                owner,
                locks: Vec::new(),
                span: self.span,
                key,
                indivisible: false,
                within: None,
                through: None,
                at: self.at,
            });
        }
    }

    /// An entry of what a register holds is set: of which object's table?
    pub(crate) fn entry_set(&mut self, table: Var, base: Sym) {
        let before = self.plain.accesses.len();
        self.content_access(base, true);
        if self.plain.accesses.len() > before
            && let Some(inst) = self.cx.definition(self.id, table)
            && let Op::GetField { obj, .. } = inst.op
            && let Some(access) = self.plain.accesses.last_mut()
        {
            access.within = Some(obj);
        }
    }

    pub(crate) fn note_call(&mut self, callee: FuncId, entry: &crate::calls::Entry) {
        if !self.is_racy() || self.plain.calls.len() >= MAX_CALLS {
            return;
        }
        self.hand_on_addresses();
        let lexical = self.cx.program.function(callee).kind == toctou_core::ir::FuncKind::Arrow;
        let this = match entry.recv {
            Some(recv) if !lexical => {
                let recv = self.origin(recv);
                self.owner_of(recv)
            }
            _ => Owner::This,
        };
        let values: Vec<Sym> = entry.args.iter().map(|a| self.origin(*a)).collect();
        let args = values.iter().map(|arg| self.owner_of(*arg)).collect();
        let inside = entry.args.iter().map(|a| self.owners_inside(*a)).collect();
        let block = self.at.block;
        let small = self.function.blocks.len() < 256;
        let repeated = (entry.spawned || small) && self.cfg.has_loop && self.cfg.leads_back(block);
        self.plain.calls.push(Passed {
            callee,
            this,
            args,
            inside,
            locks: Vec::new(),
            spawned: entry.spawned,
            repeated,
            single: false,
            given: entry.locks.clone(),
            values,
            at: self.at,
            span: self.span,
            recv: entry.recv,
        });
    }

    /// To hand on the address of a place is not to look at it. Who is given it does that, and
    /// may take the lock first.
    fn hand_on_addresses(&mut self) {
        let block = &self.function.blocks[self.at.block as usize];
        let Some(Op::Call { args, .. }) = block.insts.get(self.at.inst as usize).map(|i| &i.op)
        else {
            return;
        };
        for arg in args {
            if self.function.vars[arg.value.0 as usize].lent
                && let Some(place) = self.cx.definition(self.id, arg.value)
                && matches!(place.op, Op::GetField { .. })
            {
                let accesses = &mut self.plain.accesses;
                accesses.retain(|a| a.write || a.content || a.span != place.span);
            }
        }
    }

    pub(crate) fn life(&mut self, effect: &EffectRule, view: &CallView<'_>) {
        if !self.is_racy() || self.plain.life.len() >= MAX_CALLS {
            return;
        }
        let key = match &effect.key {
            Some(place) => self.place(place, view),
            None => view.recv,
        };
        if let Some(key) = key {
            let only_once = match effect.effect.mode {
                Mode::Exclusive => self.only_once(view),
                _ => None,
            };
            let counter = match effect.effect.r#do {
                Do::Enroll | Do::Join => self.counter(key),
                _ => None,
            };
            self.plain.life.push(Step {
                what: effect.effect.r#do,
                counter,
                key,
                span: self.span,
                at: self.at,
                locks: Vec::new(),
                only_once,
            });
        }
    }

    /// The field that must not be closed twice, of an object that others can have. Not if
    /// something has decided already that nobody else does it.
    fn only_once(&mut self, view: &CallView<'_>) -> Option<Spot> {
        let Op::GetField {
            obj, field: name, ..
        } = self.cx.definition(self.id, *view.arg_vars.first()?)?.op
        else {
            return None;
        };
        let decided = self
            .control_deps(self.at.block)
            .events()
            .any(|(e, _)| self.events[e as usize].mode != Mode::Blind);
        if decided {
            return None;
        }
        let base = self.val(obj);
        let object = self.origin(base);
        let known = self.owner_of(object) != Owner::Own || self.is_given_out(base);
        let class = self
            .cx
            .points_to
            .only_class(self.id, obj)
            .or_else(|| self.class_of(object, 0))?;
        known.then_some(Spot::Field(class, name))
    }

    /// Was something that was made here put where others find it?
    fn is_given_out(&self, object: Sym) -> bool {
        self.stored
            .iter()
            .any(|(place, values)| values.contains(&object) && self.cx.may_be_shared(*place))
    }

    /// Flags of this object that are tested or set, by this function itself.
    fn collect_flags(&mut self, plain: &mut Accesses) {
        if plain.life.is_empty() && plain.accesses.is_empty() {
            return;
        }
        for e in self.events.iter().filter(|e| e.call.is_none()) {
            let sets = e.act == crate::effect::Act::Write && e.constant && !e.idempotent;
            let asks = e.act == crate::effect::Act::Read;
            let named = match self.cx.syms.kind(e.loc.key) {
                SymKind::Field(_, name) => crate::checks::is_closing(self.cx.names.text(*name)),
                _ => false,
            };
            if named && (sets || asks) && plain.flags.len() < MAX_CALLS {
                plain.flags.push((
                    sets,
                    Step {
                        what: if sets { Do::Write } else { Do::Read },
                        key: e.loc.key,
                        span: e.trail.span,
                        at: e.at,
                        locks: Vec::new(),
                        only_once: None,
                        counter: None,
                    },
                ));
            }
        }
    }

    fn held_lock(&mut self, lock: &Rc<Lock>) -> Option<HeldLock> {
        if lock.keyed {
            return None;
        }
        let spot = match *self.cx.syms.kind(lock.key) {
            SymKind::Field(base, name) => match self.class_of(base, 0) {
                Some(class) => Spot::Field(class, name),
                None => match *self.cx.syms.kind(base) {
                    // A field of a variable without a type that is known.
                    SymKind::Cell(cell) => Spot::Variable(cell),
                    _ => return None,
                },
            },
            SymKind::This | SymKind::Param(_) => Spot::Object(self.class_of(lock.key, 0)?),
            SymKind::Cell(cell) => match self.class_of(lock.key, 0) {
                Some(class) => Spot::Object(class),
                None => Spot::Variable(cell),
            },
            _ => return None,
        };
        Some(HeldLock {
            spot,
            shared: lock.shared,
            once: lock.once,
        })
    }

    /// A lock out of a table of them, and the key that it is for.
    fn table_lock(&mut self, lock: &Rc<Lock>) -> Option<(HeldLock, Sym)> {
        let SymKind::Index(table, key) = *self.cx.syms.kind(lock.key) else {
            return None;
        };
        let spot = match *self.cx.syms.kind(table) {
            SymKind::Field(object, name) => Spot::Field(self.class_of(object, 0)?, name),
            SymKind::Cell(cell) => Spot::Variable(cell),
            _ => return None,
        };
        let held = HeldLock {
            spot,
            shared: lock.shared,
            once: lock.once,
        };
        Some((held, key))
    }

    /// What is held at each access and call, once that is known.
    pub(crate) fn settle_accesses(&mut self, held: &Held) {
        let mut plain = std::mem::take(&mut self.plain);
        if self.is_racy() {
            self.collect_flags(&mut plain);
            self.settle_taken(held, &mut plain);
        }
        let all: Vec<Rc<Lock>> = self
            .acquires
            .iter()
            .take(MAX_ACQUIRES)
            .map(|a| Rc::clone(&a.lock))
            .collect();
        let locks: Vec<Option<HeldLock>> = all.iter().map(|lock| self.held_lock(lock)).collect();
        let of_keys: Vec<Option<(HeldLock, Sym)>> =
            all.iter().map(|lock| self.table_lock(lock)).collect();
        let whichever = if self.is_racy() {
            held.whichever(self)
        } else {
            None
        };
        let at = |at: Pos| -> Vec<HeldLock> {
            let bits = held.at(at) | whichever.as_ref().map_or(0, |h| h.at(at));
            let mut out: Vec<HeldLock> = locks
                .iter()
                .enumerate()
                .filter(|(i, _)| bits >> i & 1 == 1)
                .filter_map(|(_, lock)| *lock)
                .collect();
            out.sort_unstable();
            out.dedup();
            out
        };
        let by = |at: Pos| -> Vec<(HeldLock, usize)> {
            let bits = held.at(at);
            locks
                .iter()
                .enumerate()
                .filter(|(i, _)| bits >> i & 1 == 1)
                .filter_map(|(i, lock)| Some(((*lock)?, i)))
                .collect()
        };
        for access in &mut plain.accesses {
            access.locks = at(access.at);
            if access.indivisible {
                access.locks.push(HeldLock {
                    spot: access.spot,
                    shared: false,
                    once: false,
                });
            }
            // The lock of a key is for what belongs to that key.
            let bits = held.at(access.at);
            for (i, (lock, key)) in of_keys
                .iter()
                .enumerate()
                .filter_map(|(i, l)| Some((i, (*l)?)))
            {
                if bits >> i & 1 == 1 && self.cx.syms.contains(access.key, key) {
                    access.locks.push(lock);
                }
            }
            // What nothing else says the type of, found here or there or in a table of anything, has
            // its lock with it.
            let found = access.through.or(match *self.cx.syms.kind(access.key) {
                SymKind::Field(base, _) => Some(base),
                _ => None,
            });
            if let (Some(found), Spot::Field(class, _)) = (found, access.spot) {
                for (i, lock) in all.iter().enumerate().filter(|(i, _)| bits >> i & 1 == 1) {
                    let spot = match *self.cx.syms.kind(lock.key) {
                        _ if lock.key == found => Spot::Object(class),
                        SymKind::Field(base, name) if base == found => Spot::Field(class, name),
                        _ => continue,
                    };
                    if locks[i].is_none() {
                        access.locks.push(HeldLock {
                            spot,
                            shared: lock.shared,
                            once: lock.once,
                        });
                    }
                }
            }
        }
        for step in &mut plain.life {
            step.locks = by(step.at);
        }
        for (_, step) in &mut plain.flags {
            step.locks = by(step.at);
        }
        for call in &mut plain.calls {
            call.locks = at(call.at);
            for lock in std::mem::take(&mut call.given) {
                call.locks.extend(self.held_lock(&lock));
            }
        }
        if self.is_racy() {
            self.settle_ready(held, &mut plain);
            self.settle_threads(held, &mut plain);
        }
        self.cx.plain[self.id.0 as usize] = plain;
    }
}
