//! What the passes over functions share: tables about the whole program.

use std::rc::Rc;

use rustc_hash::{FxHashMap, FxHashSet};
use toctou_core::finding::{EntryKind, ResourceKind};
use toctou_core::ir::{
    Arg, BinOp, CallKind, Cell, Dispatch, FuncId, FuncKind, Function, Key, Literal, ModuleId, Op,
    Program, Target, TypeRef, Var,
};
use toctou_core::{Name, Names, Span};

use crate::entity::{Entities, Entity, EntityId, GLOBAL};
use crate::library::Library;
use crate::linkage::{Binding, Linkage, TypeTarget};
use crate::points_to::PointsTo;
use crate::settled::Settled;
use crate::started::Started;
use crate::summary::Summary;
use crate::sym::{Sym, SymKind, Syms};

/// A variable, or a field by its name.
type Holder = Result<Cell, Name>;

/// Which handlers have a thread of their own.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Thread {
    /// Those that are not asynchronous.
    Synchronous,
    All,
}

/// A handler that was registered somewhere.
#[derive(Clone, Debug)]
pub struct FoundEntry {
    pub kind: EntryKind,
    pub name: Option<String>,
    pub handler: FuncId,
    /// Where it is registered.
    pub func: FuncId,
    pub span: Span,
    pub dispatches: bool,
    /// It runs in a thread: if it is not asynchronous, or whatever it is.
    pub thread: Option<Thread>,
    /// It is called again only when it is done.
    pub serial: bool,
}

/// A flaw that is not a window: found while looking at a function, or by a
/// check over the whole program (`checks`).
#[derive(Clone, Debug)]
pub struct FoundDefect {
    pub kind: DefectKind,
    pub func: FuncId,
    pub span: Span,
    /// The step before it that it goes with: the check, the first write, the opening.
    pub first: Option<(FuncId, Span)>,
    pub key: Sym,
    pub resource: ResourceKind,
    /// Who is on the other side: calls in this process, other processes.
    pub in_process: bool,
    pub cross_process: bool,
    /// Rests on a method's name alone.
    pub duck: bool,
    /// A number or a truth value is set by one and read by others, and nobody loses any.
    pub word: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum DefectKind {
    /// A promise chain: one rejection makes every later one fail.
    PoisonedChain,
    /// A lock is taken, and an exception skips the release.
    NotReleased,
    /// A hand-made lock lets two in.
    LetsTwoIn,
    /// Entries of a live lock or limiter are dropped.
    DropsLive,
    /// A lock with a time to live over work without a bound.
    LeaseInUse,
    /// Closed is tested and work is begun, not in one step with closing.
    CloseRace,
    /// Closed is tested under a lock, and work is counted in when the lock is given back.
    CountedLate,
    /// What a call uses can be closed while it does.
    UseAfterClose,
    /// What must be closed once is closed in two places that know nothing of each other.
    ClosedTwice,
    /// Opened in a sequence; a later failure leaks the earlier ones.
    PartialInit,
    /// Closed if it was opened well, and not if that failed half-way.
    HalfOpen,
    /// A retry that never gives up.
    RetryForever,
    /// A retry that does not spread.
    RetryInStep,
    /// … with a wait that grows from turn to turn: they meet a few times more.
    RetryWidening,
    /// One server or transport for many HTTP clients.
    SharedServer,
    /// Something costly is reached, and nothing bounds one caller.
    NoLimit,
    /// Writes that belong together, with nothing that holds them together.
    MultiStep,
    /// Writes under one key in several tables: they may belong together.
    RelatedSteps,
    /// Something that cannot be taken back is sent without an idempotency key.
    SendTwice,
    /// Memory that several threads use with nothing that keeps them apart.
    DataRace,
    /// A table is gone through while somebody adds to it or takes from it.
    ChangedUnderway,
    /// A record that others read and write back is overwritten blindly.
    BlindUpdate,
}

pub struct Context<'a, 'm> {
    pub program: &'a Program,
    pub names: Names,
    pub entities: Entities,
    pub linkage: Linkage,
    pub library: Library<'m>,
    pub points_to: PointsTo,
    pub settled: Settled,
    /// Locks that are made of a flag and of those who wait for it.
    pub(crate) turns: crate::turns::Turns,
    pub(crate) started: Started,
    pub syms: Syms,
    /// What is known of terms in the function at hand.
    pub(crate) marks: crate::interp::marks::Marks,
    pub(crate) sets: std::cell::RefCell<crate::interp::sets::Sets>,
    pub summaries: Vec<Option<Rc<Summary>>>,
    /// Fields that somebody sets after construction.
    pub mutable_fields: FxHashSet<Name>,
    /// Variables and fields whose content is changed in place, somewhere.
    pub changed_cells: FxHashSet<Cell>,
    pub changed_fields: FxHashSet<Name>,
    /// Does any class say which table it is a row of?
    pub(crate) has_tables: bool,
    /// Variables of modules that are gone through: where, and which.
    pub(crate) gone_through: Vec<(FuncId, crate::effect::Pos, Sym, Span)>,
    /// Fields that are counted up.
    pub counted_fields: FxHashSet<Name>,
    /// Fields and variables whose entries somebody sets.
    pub indexed_fields: FxHashSet<Name>,
    pub indexed_cells: FxHashSet<Cell>,
    /// Functions after which a path can lead elsewhere.
    pub relinkers: FxHashSet<FuncId>,
    /// Functions that have run before the server lets anybody in.
    pub early: FxHashSet<FuncId>,
    /// By which ways the program lets clients in.
    pub doors: Vec<toctou_models::Door>,
    /// Variables that another function than their own sets.
    pub mutable_cells: FxHashSet<Cell>,
    /// Fields, variables and parameters of types through which shared memory can be changed.
    holder_fields: FxHashSet<Name>,
    /// Fields that hold things with a lock of their own each.
    holders_fields: FxHashSet<Name>,
    holder_vars: FxHashSet<Cell>,
    /// Captured variables that hold a parameter, and which.
    pub param_cells: FxHashMap<Cell, u32>,
    /// How often a variable is set, and the register and function of the last time.
    stores: FxHashMap<Cell, (u32, FuncId, Var)>,
    /// The one instruction that defines a register, for functions that were asked about.
    defs: FxHashMap<FuncId, Definitions>,
    constants: FxHashMap<Cell, Option<Sym>>,
    /// Arguments that the object in a variable or field was made with.
    pub made_with: FxHashMap<Cell, Vec<Sym>>,
    field_made_with: FxHashMap<Name, Vec<Sym>>,
    /// The same for a part of an object that is written out: by what holds the object, and by
    /// its name alone (`None`: the name stands for several things).
    part_made_with: FxHashMap<(Holder, Name), Vec<Sym>>,
    named_part_made_with: FxHashMap<Name, Option<Vec<Sym>>>,
    /// Names of files that are not always given the same.
    pub written: FxHashSet<Name>,
    pub entries: Vec<FoundEntry>,
    pub requests: Vec<crate::requests::Request>,
    /// Objects that hold what was read from files: see [`crate::made`].
    pub made: Vec<crate::made::Made>,
    /// Functions that make objects of what they are given: the class, and which fields get what.
    pub makers: FxHashMap<FuncId, Vec<crate::made::Makes>>,
    /// Tables of handlers: who calls out of one, and what is in it.
    pub tables: Vec<(FuncId, Vec<FuncId>)>,
    pub defects: Vec<FoundDefect>,
    /// Functions that product code was seen to call.
    pub entered: FxHashSet<FuncId>,
    /// Fields that libraries put things into as a whole: is all that is put there new?
    pub published: FxHashMap<Name, bool>,
    /// Column sets that cannot be there twice, by table.
    pub unique: FxHashMap<String, Vec<Vec<String>>>,
    /// Tables whose definition was seen.
    pub defined: std::collections::BTreeSet<String>,
    /// Names that the bodies of classes that are tables give something to.
    pub class_bodies: FxHashSet<(toctou_core::ir::ClassId, Name)>,
    /// Columns that some statement changes in rows that are there, in plain letters.
    /// `None`: that is not known of one of the statements.
    pub updated: FxHashMap<Sym, Option<FxHashSet<String>>>,
    /// Tables that the program itself puts rows into.
    pub inserted: FxHashSet<Sym>,
    /// There are statements that may change rows, and nobody knows of which table.
    pub unread_statements: bool,
    pub unknown_calls: FxHashMap<String, u32>,
    /// Variables that a loop gives another value every time.
    pub looped_cells: FxHashSet<Cell>,
    /// Plain accesses to memory, by function.
    pub(crate) plain: Vec<crate::interp::access::Accesses>,
    names_beside: Option<FxHashMap<FuncId, Name>>,
    pub words: Words,
    /// There are modules whose functions may run in threads.
    pub has_threads: bool,
}

/// Names that the analysis itself looks at.
pub struct Words {
    pub length: Name,
    pub size: Name,
    /// All of what a guard protects.
    pub content: Name,
    /// The thing that a place refers to which others exchange for another one, whole.
    pub published: Name,
    pub name: Name,
    pub then: Name,
    pub catch: Name,
    pub finally: Name,
    pub op: Name,
    pub either: Name,
    /// The first of several results, and those after it: whether it went well.
    pub first: Name,
    pub others: [Name; 3],
    pub release: [Name; 6],
    pub promise: EntityId,
    /// Marks the object that holds the arguments by name.
    pub keywords: Name,
    /// Stands for the name of an argument whose fields are arguments.
    pub spread: Name,
    /// Fields that only wrap what was read: `rows`, `data`.
    pub wrappers: FxHashSet<Name>,
    /// What says of which kind a thing is, or how old.
    pub asides: FxHashSet<Name>,
    /// … that it is a folder.
    pub folders: FxHashSet<Name>,
    /// What asks where a path leads, or whether it is a link.
    pub judges: FxHashSet<Name>,
    /// How many rows the last statement has changed, asked of who has run it.
    pub rowcount: Name,
}

impl<'a, 'm> Context<'a, 'm> {
    pub fn new(program: &'a Program, models: &'m toctou_models::Models) -> Self {
        let mut names = program.names.clone();
        let mut entities = Entities::default();
        let mut linkage = Linkage::new(program, &mut names, &mut entities);
        for (module, class, field, number) in models.generics() {
            let class = [module, class, field].map(|n| names.intern(n));
            let argument = names.intern(&toctou_core::ir::type_argument(number));
            linkage.generics.insert(class.into(), argument);
        }
        let mut library = Library::new(models);
        let mut env = crate::points_to::Env {
            program,
            names: &mut names,
            entities: &mut entities,
            linkage: &linkage,
            library: &mut library,
        };
        let mut points_to = PointsTo::solve(&mut env);
        let settled = Settled::solve(&mut env, &points_to);
        let servers = points_to.servers(&mut env);
        let started = Started::solve(program, &linkage, &points_to, &settled, &servers);
        points_to.forget(|f| started.has_no_object(program.function(f)));
        let global = names.intern(GLOBAL);
        let promise_name = names.intern("Promise");
        let words = Words {
            length: names.intern("length"),
            content: names.intern("*"),
            published: names.intern("<published>"),
            size: names.intern("size"),
            name: names.intern("name"),
            then: names.intern("then"),
            catch: names.intern("catch"),
            finally: names.intern("finally"),
            op: names.intern("<op>"),
            either: names.intern("??"),
            keywords: names.intern("<keywords>"),
            spread: names.intern(toctou_core::ir::KEYWORDS),
            first: names.intern("#0"),
            others: ["#1", "#2", "#3"].map(|w| names.intern(w)),
            release: [
                "release",
                "unlock",
                "dispose",
                "close",
                "free",
                "releaseLock",
            ]
            .map(|w| names.intern(w)),
            rowcount: names.intern("rowcount"),
            asides: models.asides().map(|w| names.intern(w)).collect(),
            folders: models.folders().map(|w| names.intern(w)).collect(),
            judges: models.judges().map(|w| names.intern(w)).collect(),
            wrappers: [
                "rows", "row", "data", "result", "results", "value", "values", "items", "length",
                "size", "0", "ids", "docs", "rowCount", "count", "changes", "error", "body",
            ]
            .map(|w| names.intern(w))
            .into_iter()
            .collect(),
            promise: entities.make(Entity {
                module: global,
                path: promise_name,
                instance: true,
            }),
        };
        let blocks = program.functions.iter().flat_map(|f| &f.blocks);
        let room = blocks.map(|block| block.insts.len()).sum();
        let mut cx = Self {
            has_threads: program
                .modules
                .iter()
                .any(|m| matches!(m.dispatch, Dispatch::Threads { .. })),
            program,
            names,
            entities,
            linkage,
            library,
            points_to,
            settled,
            turns: crate::turns::Turns::default(),
            started,
            syms: Syms::with_room_for(room),
            marks: crate::interp::marks::Marks::default(),
            sets: std::cell::RefCell::default(),
            summaries: vec![None; program.functions.len()],
            mutable_fields: FxHashSet::default(),
            changed_cells: FxHashSet::default(),
            changed_fields: FxHashSet::default(),
            counted_fields: FxHashSet::default(),
            indexed_fields: FxHashSet::default(),
            indexed_cells: FxHashSet::default(),
            relinkers: FxHashSet::default(),
            written: FxHashSet::default(),
            mutable_cells: FxHashSet::default(),
            early: FxHashSet::default(),
            doors: Vec::new(),
            holder_fields: FxHashSet::default(),
            holders_fields: FxHashSet::default(),
            holder_vars: FxHashSet::default(),
            param_cells: FxHashMap::default(),
            stores: FxHashMap::default(),
            has_tables: program.classes.iter().any(|c| c.table.is_some()),
            gone_through: Vec::new(),
            defs: FxHashMap::default(),
            constants: FxHashMap::default(),
            made_with: FxHashMap::default(),
            field_made_with: FxHashMap::default(),
            part_made_with: FxHashMap::default(),
            named_part_made_with: FxHashMap::default(),
            entries: Vec::new(),
            requests: Vec::new(),
            made: Vec::new(),
            makers: FxHashMap::default(),
            tables: Vec::new(),
            defects: Vec::new(),
            entered: FxHashSet::default(),
            published: FxHashMap::default(),
            unique: FxHashMap::default(),
            defined: std::collections::BTreeSet::new(),
            class_bodies: FxHashSet::default(),
            updated: FxHashMap::default(),
            inserted: FxHashSet::default(),
            unread_statements: false,
            unknown_calls: FxHashMap::default(),
            looped_cells: FxHashSet::default(),
            plain: std::iter::repeat_with(Default::default)
                .take(program.functions.len())
                .collect(),
            names_beside: None,
            words,
        };
        cx.syms.rest = Some(cx.names.intern("..."));
        cx.syms.either = Some(cx.words.either);
        cx.syms.normalisers = crate::normal::normalisers(program, &cx.names);
        cx.turns = crate::turns::Turns::new(program, &cx.names);
        cx.collect();
        cx.collect_holders();
        cx
    }

    /// Which declared types are, or contain, something made for sharing.
    fn collect_holders(&mut self) {
        let program = self.program;
        for (c, class) in program.classes.iter().enumerate() {
            for field in &class.fields {
                let Some(ty) = &field.ty else { continue };
                match self.holders_in(program.class_module[c], ty) {
                    0 => continue,
                    1 => {}
                    _ => {
                        self.holders_fields.insert(field.name);
                    }
                }
                self.holder_fields.insert(field.name);
            }
        }
        for (f, function) in program.functions.iter().enumerate() {
            for (v, info) in function.vars.iter().enumerate() {
                if let Some(ty) = &info.ty
                    && self.holders_in(program.function_module[f], ty) > 0
                {
                    self.holder_vars.insert(Cell {
                        owner: FuncId(f as u32),
                        var: Var(v as u32),
                    });
                }
            }
        }
    }

    /// How many types made for sharing stand in a type, one inside the other.
    fn holders_in(&mut self, module: ModuleId, ty: &TypeRef) -> usize {
        let mut count = 0;
        let mut ty = Some(ty);
        for _ in 0..4 {
            let Some(this) = ty else { break };
            let target = self.linkage.type_target(
                self.program,
                module,
                this,
                &mut self.names,
                &mut self.entities,
            );
            if let Some(TypeTarget::Ext(e)) = target
                && self.library.is_holder(e, &self.entities, &self.names)
            {
                count += 1;
            }
            ty = this.element.as_deref();
        }
        count
    }

    /// Is this an entry of a collection whose entries are locks themselves?
    /// Two of them for one key keep nobody apart.
    pub fn holds_holders(&self, place: Sym) -> bool {
        let mut at = place;
        while let SymKind::Index(base, _) | SymKind::Element(base) | SymKind::Field(base, _) =
            *self.syms.kind(at)
        {
            if let SymKind::Field(_, name) = *self.syms.kind(base)
                && self.holders_fields.contains(&name)
            {
                return true;
            }
            at = base;
        }
        false
    }

    /// Is a field of this name of a type that is made for sharing?
    pub fn is_holder_field(&self, field: Name) -> bool {
        self.holder_fields.contains(&field)
    }

    /// Is a place in memory reached through a type that is made for sharing?
    pub fn is_behind_holder(&self, place: Sym, f: FuncId) -> bool {
        let mut at = place;
        loop {
            match *self.syms.kind(at) {
                SymKind::Field(base, name) => {
                    if self.holder_fields.contains(&name) {
                        return true;
                    }
                    at = base;
                }
                SymKind::Index(base, _) | SymKind::Element(base) => at = base,
                SymKind::Cell(cell) | SymKind::VarLoc(cell) => {
                    return self.holder_vars.contains(&cell);
                }
                SymKind::Param(i) => {
                    let var = self.program.function(f).params.get(i as usize).copied();
                    return var
                        .is_some_and(|var| self.holder_vars.contains(&Cell { owner: f, var }));
                }
                _ => return false,
            }
        }
    }

    /// Who sets what, anywhere.
    fn collect(&mut self) {
        let mut made: Vec<(Holder, FuncId, &[Arg])> = Vec::new();
        let mut parts: Vec<(Option<Holder>, Name, FuncId, &[Arg])> = Vec::new();
        for (f, function) in self.program.functions.iter().enumerate() {
            let id = FuncId(f as u32);
            let building = matches!(function.kind, FuncKind::Constructor | FuncKind::ModuleInit);
            let mut bases: FxHashMap<Var, Result<Cell, Name>> = FxHashMap::default();
            let mut news: FxHashMap<Var, &[Arg]> = FxHashMap::default();
            let mut literals: FxHashMap<Var, Vec<(Name, &[Arg])>> = FxHashMap::default();
            let mut sums: FxHashSet<Var> = FxHashSet::default();
            let mut classes: FxHashSet<Var> = FxHashSet::default();
            let mut texts: FxHashMap<Var, Name> = FxHashMap::default();
            for inst in function.blocks.iter().flat_map(|b| &b.insts) {
                match &inst.op {
                    Op::Class { dst, .. } if function.kind == FuncKind::Constructor => {
                        classes.insert(*dst);
                    }
                    Op::Binary {
                        dst,
                        op: BinOp::Add | BinOp::Arith,
                        ..
                    } => {
                        sums.insert(*dst);
                    }
                    Op::LoadVar { dst, cell } => {
                        bases.insert(*dst, Ok(*cell));
                    }
                    Op::GetField { dst, field, .. } => {
                        bases.insert(*dst, Err(*field));
                    }
                    Op::StoreVar { cell, value } => {
                        let store = self.stores.entry(*cell).or_insert((0, id, *value));
                        *store = (store.0 + 1, id, *value);
                        if cell.owner != id {
                            self.mutable_cells.insert(*cell);
                        }
                        if cell.owner == id
                            && let Some(i) = function.params.iter().position(|p| p == value)
                        {
                            self.param_cells.insert(*cell, i as u32);
                        }
                        if let Some(args) = news.get(value) {
                            made.push((Ok(*cell), id, *args));
                        }
                        for (name, args) in literals.get(value).into_iter().flatten() {
                            parts.push((Some(Ok(*cell)), *name, id, args));
                        }
                    }
                    Op::SetField { obj, field, value } => {
                        if sums.contains(value) {
                            self.counted_fields.insert(*field);
                        }
                        // What a class has is not the new object's.
                        if !building || classes.contains(obj) {
                            self.mutable_fields.insert(*field);
                        }
                        if let Some(args) = news.get(value) {
                            made.push((Err(*field), id, *args));
                        }
                        for (name, args) in literals.get(value).into_iter().flatten() {
                            parts.push((Some(Err(*field)), *name, id, args));
                        }
                    }
                    Op::Delete { key: Ok(field), .. } => {
                        self.mutable_fields.insert(*field);
                    }
                    Op::Const {
                        dst,
                        value: Literal::Str(text),
                    } => {
                        texts.insert(*dst, *text);
                    }
                    Op::SetIndex { obj, .. } | Op::Delete { obj, key: Err(_) } => {
                        // An entry whose key is written out is like a field.
                        if let Op::SetIndex { index, value, .. } = &inst.op
                            && let Some(field) = texts.get(index)
                            && !building
                        {
                            self.mutable_fields.insert(*field);
                            if sums.contains(value) {
                                self.counted_fields.insert(*field);
                            }
                        }
                        match bases.get(obj) {
                            Some(Ok(cell)) => {
                                self.indexed_cells.insert(*cell);
                            }
                            Some(Err(field)) => {
                                self.indexed_fields.insert(*field);
                            }
                            None => {}
                        }
                    }
                    Op::Call { dst, args, .. } => {
                        news.insert(*dst, &**args);
                    }
                    Op::Object { dst, fields } => {
                        let made: Vec<(Name, &[Arg])> = fields
                            .iter()
                            .filter_map(|(key, value)| match key {
                                Key::Name(name) => {
                                    let args = *news.get(value)?;
                                    (!args.is_empty()).then_some((*name, args))
                                }
                                _ => None,
                            })
                            .collect();
                        if !made.is_empty() {
                            parts.extend(made.iter().map(|(n, args)| (None, *n, id, *args)));
                            literals.insert(*dst, made);
                        }
                    }
                    _ => {}
                }
            }
        }
        // A parameter that is set again is a variable like others.
        self.param_cells
            .retain(|cell, _| self.stores.get(cell).is_some_and(|s| s.0 == 1));
        for (holder, name, f, args) in parts {
            let values = self.constant_args(f, args);
            match holder {
                Some(holder) => {
                    self.part_made_with.entry((holder, name)).or_insert(values);
                }
                None => {
                    let known = self.named_part_made_with.entry(name);
                    let known = known.or_insert_with(|| Some(values.clone()));
                    if known.as_ref() != Some(&values) {
                        *known = None;
                    }
                }
            }
        }
        for (what, f, args) in made {
            let values = self.constant_args(f, args);
            match what {
                Ok(cell) => {
                    self.made_with.entry(cell).or_insert(values);
                }
                Err(field) => {
                    self.field_made_with.entry(field).or_insert(values);
                }
            }
        }
    }

    /// The arguments of a call, as far as they are constant.
    fn constant_args(&mut self, f: FuncId, args: &[Arg]) -> Vec<Sym> {
        let mut values = Vec::with_capacity(args.len());
        let mut named = Vec::new();
        for arg in args {
            let sym = self.constant_var(f, arg.value, 0);
            match arg.name {
                Some(name) => named.push((name, sym)),
                None => values.push(sym),
            }
        }
        if !named.is_empty() {
            values.push(self.keyword_object(named));
        }
        values
    }

    /// What the object in a field was made with.
    pub fn made_in_field(&self, base: Sym, name: Name) -> Option<&[Sym]> {
        let holder = match self.syms.kind(base) {
            SymKind::Cell(cell) => Some(Ok(*cell)),
            SymKind::Field(_, field) => Some(Err(*field)),
            _ => None,
        };
        let part = holder.and_then(|h| self.part_made_with.get(&(h, name)));
        part.or_else(|| self.field_made_with.get(&name))
            .or_else(|| self.named_part_made_with.get(&name)?.as_ref())
            .map(Vec::as_slice)
    }

    /// Arguments that are passed by name, as the last argument of a call's term.
    pub fn keyword_object(&mut self, named: impl IntoIterator<Item = (Name, Sym)>) -> Sym {
        let null = self.syms.null();
        let mut fields = vec![(self.words.keywords, null)];
        fields.extend(named);
        self.syms.make(SymKind::Object(fields.into()))
    }

    /// The arguments by name, if this is what [`Context::keyword_object`] made.
    pub fn keywords(&self, sym: Sym) -> Option<&[(Name, Sym)]> {
        match self.syms.kind(sym) {
            SymKind::Object(fields)
                if fields.first().is_some_and(|f| f.0 == self.words.keywords) =>
            {
                Some(&fields[1..])
            }
            _ => None,
        }
    }

    /// The value of a variable that is set once, if that is a constant, a
    /// function, a class, or something of a library.
    pub fn constant(&mut self, cell: Cell) -> Option<Sym> {
        self.constant_cell(cell, 0)
    }

    fn constant_cell(&mut self, cell: Cell, depth: u32) -> Option<Sym> {
        if let Some(&known) = self.constants.get(&cell) {
            return known;
        }
        if depth > 8 {
            return None;
        }
        self.constants.insert(cell, None);
        let value = match self.linkage.imported.get(&cell).copied() {
            Some(Binding::Ext(e)) => Some(self.syms.make(SymKind::Ext(e))),
            Some(Binding::Namespace(m)) => Some(self.syms.make(SymKind::Namespace(m))),
            Some(Binding::Cell(c)) => Some(match self.constant_cell(c, depth + 1) {
                Some(sym) => sym,
                None => self.syms.make(SymKind::Cell(c)),
            }),
            None => self.stored_once(cell, depth),
        };
        self.constants.insert(cell, value);
        value
    }

    /// What a variable is set to, if that is done in one place.
    pub(crate) fn stored_in(&self, cell: Cell) -> Option<(FuncId, Var)> {
        let (1, func, value) = *self.stores.get(&cell)? else {
            return None;
        };
        Some((func, value))
    }

    fn stored_once(&mut self, cell: Cell, depth: u32) -> Option<Sym> {
        let (1, func, value) = *self.stores.get(&cell)? else {
            return None;
        };
        let sym = self.constant_var(func, value, depth + 1);
        match self.syms.kind(sym) {
            SymKind::Str(_)
            | SymKind::Num(_)
            | SymKind::Func(_)
            | SymKind::Class(_)
            | SymKind::Ext(_)
            | SymKind::Bound(..)
            | SymKind::Namespace(_) => Some(sym),
            // Another variable's constant value, under a second name.
            SymKind::Cell(other) if *other != cell => Some(sym),
            _ => None,
        }
    }

    /// What a decorator made of a function: the function, or the one closure
    /// that comes back, which knows what it was made with.
    fn decorated(&mut self, f: FuncId, dst: Var, args: &[Arg], depth: u32) -> Sym {
        let made: Vec<FuncId> = self.points_to.functions(f, dst).take(2).collect();
        let Some(arg) = args.first() else {
            return self.syms.null();
        };
        let arg = self.constant_var(f, arg.value, depth + 1);
        match (made.as_slice(), self.syms.kind(arg)) {
            ([one], SymKind::Func(g)) if one == g => arg,
            ([one], SymKind::Func(_) | SymKind::Bound(..)) => {
                let env: Box<[Sym]> = [arg].into();
                self.syms.make(SymKind::Bound(*one, env))
            }
            _ => self.syms.null(),
        }
    }

    /// What a parameter is if the caller leaves it out.
    pub fn default_of(&mut self, f: FuncId, i: usize) -> Option<Sym> {
        let function = self.program.function(f);
        let param = *function.params.get(i)?;
        let value = function.blocks.first()?.insts.iter().find_map(|inst| {
            let Op::Phi { dst, from } = &inst.op else {
                return None;
            };
            match from.as_slice() {
                [own, default] if *dst == param && *own == param => Some(*default),
                _ => None,
            }
        })?;
        let sym = self.constant_var(f, value, 0);
        if !matches!(self.syms.kind(sym), SymKind::Null) {
            return Some(sym);
        }
        let loaded = function
            .blocks
            .first()?
            .insts
            .iter()
            .find_map(|inst| match inst.op {
                Op::LoadVar { dst, cell } if dst == value => Some(cell),
                _ => None,
            })?;
        Some(self.syms.make(SymKind::Cell(loaded)))
    }

    /// The text in a register, if it is constant.
    pub fn constant_text_of(&mut self, f: FuncId, var: Var) -> Option<String> {
        let sym = self.constant_var(f, var, 0);
        let name = self.syms.as_str(sym)?;
        Some(self.names.text(name).to_owned())
    }

    /// A register's value as far as it is constant; `Null` where it is not.
    fn constant_var(&mut self, f: FuncId, var: Var, depth: u32) -> Sym {
        if depth > 8 {
            return self.syms.null();
        }
        let program = self.program;
        let function = program.function(f);
        let defs = Rc::clone(self.defs.entry(f).or_insert_with(|| definitions(function)));
        let Some(Some((block, inst))) = defs.get(var.0 as usize).copied() else {
            return self.syms.null();
        };
        let def = &function.blocks[block as usize].insts[inst as usize];
        let kind = match &def.op {
            Op::Const {
                value: Literal::Str(n),
                ..
            } => SymKind::Str(*n),
            Op::Const {
                value: Literal::Num(n),
                ..
            } => SymKind::Num(*n),
            Op::Const {
                value: Literal::Bool(b),
                ..
            } => SymKind::Bool(*b),
            Op::Func { func, .. } => SymKind::Func(*func),
            Op::Class { class, .. } => SymKind::Class(*class),
            Op::Copy { src, .. } => return self.constant_var(f, *src, depth + 1),
            Op::LoadVar { cell, .. } => {
                return self
                    .constant_cell(*cell, depth + 1)
                    .unwrap_or_else(|| self.syms.null());
            }
            Op::Global { name, .. } => {
                let module = self.names.intern(GLOBAL);
                SymKind::Ext(self.entities.make(Entity {
                    module,
                    path: *name,
                    instance: false,
                }))
            }
            Op::GetField { obj, field, .. } => {
                let base = self.constant_var(f, *obj, depth + 1);
                return self
                    .member(base, *field)
                    .unwrap_or_else(|| self.syms.null());
            }
            Op::Call {
                dst,
                args,
                kind: CallKind::Decorate,
                ..
            } => return self.decorated(f, *dst, args, depth),
            Op::Object { fields, .. } => {
                let mut out = Vec::new();
                for (key, value) in fields {
                    if let Key::Name(name) = key {
                        out.push((*name, self.constant_var(f, *value, depth + 1)));
                    }
                }
                SymKind::Object(out.into())
            }
            _ => SymKind::Null,
        };
        self.syms.make(kind)
    }

    /// Where a variable is set, if it is in one place only, and to what.
    pub fn only_store(&self, cell: Cell) -> Option<(FuncId, Var)> {
        match self.stores.get(&cell)? {
            (1, f, v) => Some((*f, *v)),
            _ => None,
        }
    }

    /// The one instruction that gives a register its value.
    pub fn definition(&mut self, f: FuncId, var: Var) -> Option<&'a toctou_core::ir::Inst> {
        let function = self.program.function(f);
        let defs = self.defs.entry(f).or_insert_with(|| definitions(function));
        let (block, inst) = defs.get(var.0 as usize).copied()??;
        Some(&function.blocks[block as usize].insts[inst as usize])
    }

    /// Does the program import one of these libraries, or something below one?
    pub(crate) fn imports_any(&self, modules: &[String]) -> bool {
        let imports = self.program.modules.iter().flat_map(|m| &m.imports);
        imports.into_iter().any(|import| {
            let Some(Target::External(name)) = &import.target else {
                return false;
            };
            let name = self.names.text(*name);
            modules.iter().any(|module| {
                // `diesel:SqliteConnection`, wherever below the module it stands.
                if let Some((module, wanted)) = module.split_once(':') {
                    let toctou_core::ir::ImportedName::Named(path) = import.name else {
                        return false;
                    };
                    let last = self.names.text(path).rsplit(['.', ':']).next();
                    return name == module && last == Some(wanted);
                }
                let below = name.strip_prefix(module.as_str());
                below.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
            })
        })
    }

    /// Is the place named by something that no other process has?
    pub(crate) fn is_own_to_process(&self, place: Sym) -> bool {
        self.syms.any(place, |s| match self.syms.kind(s) {
            SymKind::Ext(e) => self
                .library
                .is_own_to_process(*e, &self.entities, &self.names),
            _ => false,
        })
    }

    /// `base.field` where the base is a module or a library's thing.
    pub fn member(&mut self, base: Sym, field: Name) -> Option<Sym> {
        match *self.syms.kind(base) {
            SymKind::Ext(e) => {
                let member = self.entities.member(e, field, &mut self.names)?;
                Some(self.syms.make(SymKind::Ext(member)))
            }
            SymKind::Namespace(m) => {
                match self.linkage.export(
                    self.program,
                    m,
                    field,
                    &mut self.names,
                    &mut self.entities,
                )? {
                    Binding::Cell(cell) => Some(match self.constant(cell) {
                        Some(sym) => sym,
                        None => self.syms.make(SymKind::Cell(cell)),
                    }),
                    Binding::Namespace(m) => Some(self.syms.make(SymKind::Namespace(m))),
                    Binding::Ext(e) => Some(self.syms.make(SymKind::Ext(e))),
                }
            }
            SymKind::Object(_) => Some(self.syms.field(base, field)),
            _ => None,
        }
    }

    pub fn is_module_cell(&self, cell: Cell) -> bool {
        self.program.function(cell.owner).kind == FuncKind::ModuleInit
    }

    /// The `name` that stands beside a function: see [`crate::named`].
    pub fn name_beside(&mut self, f: FuncId) -> Option<Name> {
        let names = self.names_beside.get_or_insert_with(|| {
            crate::named::names(self.program, &self.points_to, self.words.name)
        });
        names.get(&f).copied()
    }

    /// Is the thing that a place in memory hangs from possibly somebody else's too?
    pub fn may_be_shared(&self, place: Sym) -> bool {
        matches!(
            self.syms.kind(self.syms.root(place)),
            SymKind::This
                | SymKind::Param(_)
                | SymKind::Cell(_)
                | SymKind::VarLoc(_)
                | SymKind::Class(_)
        )
    }
}

/// Block and instruction that define each register, if there is only one.
type Definitions = Rc<[Option<(u32, u32)>]>;

/// Where each register is defined, if it is in one place only.
fn definitions(function: &Function) -> Definitions {
    let mut defs = vec![None; function.vars.len()];
    let mut seen = vec![false; function.vars.len()];
    for (b, block) in function.blocks.iter().enumerate() {
        for (i, inst) in block.insts.iter().enumerate() {
            if let Some(dst) = inst.op.dst()
                && let Some(slot) = defs.get_mut(dst.0 as usize)
            {
                *slot = (!seen[dst.0 as usize]).then_some((b as u32, i as u32));
                seen[dst.0 as usize] = true;
            }
        }
    }
    defs.into()
}
