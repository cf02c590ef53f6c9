//! What is ever made and started: classes of which somebody makes an object, handlers that are
//! registered and timers that are set by code that runs.
//!
//! A store that was exchanged for another one, a class that is handed on and never made, are
//! left over.

use rustc_hash::{FxHashMap, FxHashSet};
use toctou_core::finding::EntryKind;
use toctou_core::ir::{
    Callee, ClassId, Dispatch, FuncId, FuncKind, Function, ModuleId, Op, Program, Target, Term,
    TypeDef, TypeRef, Var,
};
use toctou_core::{FileRole, Name};

use crate::cfg::Cfg;
use crate::checks::operands;
use crate::context::FoundEntry;
use crate::linkage::{Linkage, TypeTarget};
use crate::points_to::{Obj, PointsTo};
use crate::settled::Settled;

/// What of a server is there to run, whatever of it is called from outside.
#[derive(Default)]
pub(crate) struct Started {
    unmade: FxHashSet<ClassId>,
    /// Empty: all of it.
    live: Vec<bool>,
}

impl Started {
    /// `servers`: functions that register handlers.
    pub(crate) fn solve(
        program: &Program,
        linkage: &Linkage,
        points_to: &PointsTo,
        settled: &Settled,
        servers: &FxHashSet<FuncId>,
    ) -> Self {
        let mut start = Start::new(program, linkage, points_to, settled);
        start.run_all(|function| {
            function.kind == FuncKind::ModuleInit || !function.decorators.is_empty()
        });
        // What a library offers is made by those who use it; what it keeps to itself is not.
        if !servers.iter().any(|f| start.live[f.0 as usize]) {
            let closed = |module: ModuleId| program.modules[module.0 as usize].closed;
            start.run_where(|f, _| !closed(program.function_module[f.0 as usize]));
            let own = start.written_out.iter().copied();
            let own = own.filter(|c| closed(program.class_module[c.0 as usize]));
            return Self {
                unmade: own.filter(|c| !start.made.contains(c)).collect(),
                live: Vec::new(),
            };
        }
        // A compiled program starts with what it starts with, and nowhere else.
        let early = start.written_out.iter().filter(|c| !start.made.contains(c));
        let mut unmade: FxHashSet<ClassId> = early.copied().collect();
        // A function may be what a program starts with, by a name in a manifest.
        start.run_all(|function| is_free(program, function));
        let classes = (0..program.classes.len() as u32).map(ClassId);
        let later = |c: &ClassId| !start.made.contains(c) && !start.written_out.contains(c);
        unmade.extend(classes.filter(later));
        Self {
            unmade,
            live: start.live,
        }
    }

    /// Is it a method of a class of which nobody makes an object?
    pub(crate) fn has_no_object(&self, function: &Function) -> bool {
        function.class.is_some_and(|c| self.unmade.contains(&c))
    }

    /// Entries that nothing leads to are there for others to use, like an export.
    pub(crate) fn set_apart(&self, program: &Program, entries: &mut [FoundEntry]) {
        for entry in entries.iter_mut() {
            let runs = self.live.get(entry.func.0 as usize).is_none_or(|l| *l);
            // What is found by its name or mark needs nobody to register it, and what belongs to
            // no program is shown as such anyway.
            let registered = entry.func != entry.handler;
            if !runs && registered && program.file_of(entry.func).role == FileRole::Product {
                entry.kind = EntryKind::Export;
            }
        }
    }
}

/// It needs no class to be called.
fn is_free(program: &Program, function: &Function) -> bool {
    let mut at = function;
    loop {
        if at.class.is_some() && at.decorators.is_empty() {
            return false;
        }
        match at.parent {
            Some(parent) => at = program.function(parent),
            None => return true,
        }
    }
}

fn instances(points_to: &PointsTo, f: FuncId, var: Var) -> impl Iterator<Item = ClassId> + '_ {
    let objects = points_to.objects(points_to.node(f, var));
    objects.filter_map(|object| match object {
        Obj::Instance(class) => Some(class),
        _ => None,
    })
}

/// `T{…}`, in a language where an object is made by that. A type that is part of another is
/// made with it, unseen.
fn written_out(program: &Program, points_to: &PointsTo) -> FxHashSet<ClassId> {
    let mut out = FxHashSet::default();
    for (f, function) in program.functions.iter().enumerate() {
        let id = FuncId(f as u32);
        let module = program.function_module[f];
        if !program.modules[module.0 as usize].dispatch.is_unguarded() {
            continue;
        }
        for inst in function.blocks.iter().flat_map(|b| &b.insts) {
            if let Op::Object { dst, .. } = inst.op {
                out.extend(instances(points_to, id, dst));
            }
        }
    }
    let mut speech = Speech::new(program);
    speech.hear_fields();
    out.retain(|c| {
        let name = program.classes[c.0 as usize].name;
        !speech.named.contains(last_part(program.names.text(name)))
    });
    out.extend(unnamed(speech));
    out
}

/// Types that the product has and does not speak of: what tests make, and what is left over.
fn unnamed(mut speech: Speech<'_>) -> Vec<ClassId> {
    let program = speech.program;
    let product = |f: &usize| program.file_of(FuncId(*f as u32)).role == FileRole::Product;
    for f in (0..program.functions.len()).filter(product) {
        let (function, module) = (&program.functions[f], program.function_module[f]);
        let types = function.vars.iter().filter_map(|v| v.ty.as_deref());
        let types = types.chain(&function.return_type);
        types.for_each(|ty| speech.hear(module, ty));
        for inst in function.blocks.iter().flat_map(|b| &b.insts) {
            match &inst.op {
                Op::GetField { field, .. } => {
                    speech.named.insert(program.names.text(*field));
                }
                Op::LoadVar { cell, .. } => {
                    let info = &program.function(cell.owner).vars[cell.var.0 as usize];
                    let name = info.name.map(|name| program.names.text(name));
                    speech.named.extend(name);
                }
                _ => {}
            }
        }
    }
    for class in &program.classes {
        let above = class.extends.iter().chain(&class.implements);
        let above = above.map(|name| last_part(program.names.text(*name)));
        speech.named.extend(above);
    }
    for (m, module) in program.modules.iter().enumerate() {
        for (_, def) in &module.types {
            if let TypeDef::Alias(ty) = def {
                speech.hear(ModuleId(m as u32), ty);
            }
        }
    }
    let classes = program.classes.iter().enumerate();
    let unnamed = classes.filter(|(c, class)| {
        let module = &program.modules[program.class_module[*c].0 as usize];
        module.dispatch.is_unguarded()
            && !class.is_interface
            && !speech.named.contains(program.names.text(class.name))
    });
    unnamed.map(|(c, _)| ClassId(c as u32)).collect()
}

/// Which names of a module are those of libraries.
struct Speech<'p> {
    program: &'p Program,
    foreign: Vec<FxHashSet<&'p str>>,
    named: FxHashSet<&'p str>,
}

impl<'p> Speech<'p> {
    fn new(program: &'p Program) -> Self {
        let foreign = program.modules.iter().map(|module| {
            let target = |var: Var| {
                let import = module.imports.iter().find(|i| i.var == var);
                import.and_then(|i| i.target.as_ref())
            };
            let names = module.types.iter().filter_map(|(name, def)| match def {
                TypeDef::Import(var) => match target(*var) {
                    Some(Target::External(_)) => Some(program.names.text(*name)),
                    _ => None,
                },
                _ => None,
            });
            names.collect()
        });
        Self {
            program,
            foreign: foreign.collect(),
            named: FxHashSet::default(),
        }
    }

    /// The names of types of the program that a type is made of. `strings.Builder` is none of
    /// them.
    fn hear(&mut self, module: ModuleId, ty: &'p TypeRef) {
        let foreign = &self.foreign[module.0 as usize];
        for part in std::iter::successors(Some(ty), |ty| ty.element.as_deref()) {
            let text = self.program.names.text(part.name);
            let head = text.split_once('.').map(|(head, _)| head);
            if !head.is_some_and(|head| foreign.contains(head)) {
                self.named.insert(last_part(text));
            }
        }
    }

    fn hear_fields(&mut self) {
        for (class, module) in self.program.classes.iter().zip(&self.program.class_module) {
            for ty in class.fields.iter().filter_map(|field| field.ty.as_ref()) {
                self.hear(*module, ty);
            }
        }
    }
}

fn last_part(name: &str) -> &str {
    name.rsplit('.').next().unwrap_or(name)
}

struct Start<'a> {
    program: &'a Program,
    linkage: &'a Linkage,
    points_to: &'a PointsTo,
    settled: &'a Settled,
    live: Vec<bool>,
    work: Vec<FuncId>,
    made: FxHashSet<ClassId>,
    /// Types of a compiled language whose objects are written out, and are part of nothing else.
    written_out: FxHashSet<ClassId>,
    /// Called, if their class is ever made.
    waiting: FxHashMap<ClassId, Vec<FuncId>>,
    /// Functions that some call of the product leads to.
    called: Vec<bool>,
    /// Methods by name, for calls of which nobody knows whom they reach.
    methods: FxHashMap<Name, Vec<FuncId>>,
    /// Classes by name, for what nobody knows to be one.
    classes: FxHashMap<Name, Vec<ClassId>>,
    /// What was used somewhere, by its node.
    mentioned: Vec<bool>,
}

impl<'a> Start<'a> {
    fn new(
        program: &'a Program,
        linkage: &'a Linkage,
        points_to: &'a PointsTo,
        settled: &'a Settled,
    ) -> Self {
        let mut called = vec![false; program.functions.len()];
        points_to.each_call(|funcs, _, _, product| {
            for f in funcs {
                called[f.0 as usize] |= product;
            }
        });
        let mut methods: FxHashMap<Name, Vec<FuncId>> = FxHashMap::default();
        let mut classes: FxHashMap<Name, Vec<ClassId>> = FxHashMap::default();
        for (c, class) in program.classes.iter().enumerate() {
            let named = classes.entry(class.name).or_default();
            named.push(ClassId(c as u32));
            for (name, f) in &class.methods {
                methods.entry(*name).or_default().push(*f);
            }
        }
        let mut start = Self {
            program,
            linkage,
            points_to,
            settled,
            live: vec![false; program.functions.len()],
            work: Vec::new(),
            made: FxHashSet::default(),
            written_out: written_out(program, points_to),
            waiting: FxHashMap::default(),
            called,
            methods,
            classes,
            mentioned: vec![false; points_to.nodes()],
        };
        for c in (0..program.classes.len() as u32).map(ClassId) {
            // Objects of a library's kind are made by the library, too.
            let foreign = matches!(linkage.superclass(c), Some(TypeTarget::Ext(_)));
            let named = start.is_made_by_name(c) || start.written_out.contains(&c);
            if foreign || !named {
                start.make(c);
            }
        }
        start
    }

    /// Things are made by naming their class, and in no other way.
    fn is_made_by_name(&self, class: ClassId) -> bool {
        let module = self.program.class_module[class.0 as usize];
        let dispatch = self.program.modules[module.0 as usize].dispatch;
        matches!(dispatch, Dispatch::Await | Dispatch::Threads { .. })
    }

    fn run_all(&mut self, such: impl Fn(&Function) -> bool) {
        self.run_where(|_, function| such(function));
    }

    fn run_where(&mut self, such: impl Fn(FuncId, &Function) -> bool) {
        for (f, function) in self.program.functions.iter().enumerate() {
            let id = FuncId(f as u32);
            if such(id, function) && self.program.file_of(id).role == FileRole::Product {
                self.run(id);
            }
        }
        while let Some(f) = self.work.pop() {
            self.look_at(f);
        }
    }

    fn run(&mut self, f: FuncId) {
        if !std::mem::replace(&mut self.live[f.0 as usize], true) {
            self.work.push(f);
        }
    }

    /// A method runs only if there is something to call it on.
    fn call(&mut self, f: FuncId) {
        let function = self.program.function(f);
        let of_object = matches!(
            function.kind,
            FuncKind::Method | FuncKind::Getter | FuncKind::Setter
        );
        match function.class {
            Some(class) if of_object && !self.made.contains(&class) => {
                self.waiting.entry(class).or_default().push(f);
            }
            _ => self.run(f),
        }
    }

    fn make(&mut self, class: ClassId) {
        let mut at = Some(class);
        while let Some(class) = at.filter(|c| !self.made.contains(c)) {
            self.made.insert(class);
            for f in self.waiting.remove(&class).unwrap_or_default() {
                self.run(f);
            }
            let info = &self.program.classes[class.0 as usize];
            if let Some(f) = info.constructor {
                self.run(f);
            }
            let above = self.linkage.superclass(class);
            let foreign = matches!(above, Some(TypeTarget::Ext(_)));
            // Whom nobody here calls, the library may that it is made for.
            for (_, f) in &info.methods {
                if foreign || !self.called[f.0 as usize] {
                    self.run(*f);
                }
            }
            at = match above {
                Some(TypeTarget::Class(next)) => Some(next),
                _ => None,
            };
        }
    }

    fn look_at(&mut self, id: FuncId) {
        let points_to = self.points_to;
        let function = self.program.function(id);
        let runs = Cfg::running(function, |b| self.settled.way(id, b));
        let mut call = 0;
        for (block, runs) in function.blocks.iter().zip(runs) {
            for inst in &block.insts {
                let calls = matches!(inst.op, Op::Call { .. } | Op::TaggedTemplate { .. });
                let (funcs, exts) = match calls && runs {
                    true => points_to.targets(id, call),
                    false => Default::default(),
                };
                call += u32::from(calls);
                if !runs {
                    continue;
                }
                funcs.iter().for_each(|f| self.call(*f));
                match &inst.op {
                    // To give it a name is not to use it.
                    Op::Copy { .. } | Op::StoreVar { .. } => continue,
                    Op::SetField { field, value, .. } if self.is_named(id, *value, *field) => {
                        continue;
                    }
                    Op::Call {
                        callee: Callee::Method { name, .. },
                        ..
                    } if funcs.is_empty() && exts.is_empty() => {
                        for f in self.methods.get(name).cloned().unwrap_or_default() {
                            self.call(f);
                        }
                        self.make_named(*name);
                    }
                    Op::Object { dst, .. } => {
                        for class in instances(points_to, id, *dst) {
                            if self.written_out.contains(&class) {
                                self.make(class);
                            }
                        }
                    }
                    Op::GetField { dst, field, .. } => self.make_lost(id, *dst, *field),
                    Op::LoadVar { dst, cell } => {
                        let owner = self.program.function(cell.owner);
                        if let Some(name) = owner.vars[cell.var.0 as usize].name {
                            self.make_lost(id, *dst, name);
                        }
                    }
                    Op::SetField { value, .. }
                    | Op::SetIndex { value, .. }
                    | Op::YieldValue { value, .. }
                    | Op::Call {
                        callee: Callee::Value(value),
                        ..
                    } => self.mention(id, *value),
                    _ => {}
                }
                for var in operands(&inst.op) {
                    self.mention(id, var);
                }
            }
            if let Term::Return(Some(var)) = block.term
                && runs
            {
                self.mention(id, var);
            }
        }
    }

    /// An import that could not be followed, by the name of a class.
    fn make_lost(&mut self, f: FuncId, var: Var, name: Name) {
        let node = self.points_to.node(f, var);
        if self.points_to.objects(node).next().is_none() {
            self.make_named(name);
        }
    }

    fn make_named(&mut self, name: Name) {
        for class in self.classes.get(&name).cloned().unwrap_or_default() {
            self.make(class);
        }
    }

    /// `exports.Store = Store`
    fn is_named(&self, f: FuncId, var: Var, name: Name) -> bool {
        let node = self.points_to.node(f, var);
        let mut objects = self.points_to.objects(node).peekable();
        objects.peek().is_some()
            && objects.all(|object| match object {
                Obj::Class(class) => self.program.classes[class.0 as usize].name == name,
                Obj::Func(f) => self.program.function(f).name == name,
                _ => false,
            })
    }

    /// Who uses a class or a function may make or call it.
    fn mention(&mut self, f: FuncId, var: Var) {
        let points_to = self.points_to;
        let node = points_to.node(f, var);
        if std::mem::replace(&mut self.mentioned[node.number() as usize], true) {
            return;
        }
        for object in points_to.objects(node) {
            match object {
                Obj::Class(class) => self.make(class),
                Obj::Func(f) => self.call(f),
                _ => {}
            }
        }
    }
}
