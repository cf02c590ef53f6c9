//! What an imported name or a type name leads to, across modules.

use rustc_hash::{FxHashMap, FxHashSet};
use toctou_core::ir::{
    Cell, ClassId, ExportTarget, FuncId, ImportedName, ModuleId, Op, Program, Target, TypeDef,
    TypeRef, Var, VarKind,
};
use toctou_core::{Name, Names};

use crate::entity::{Entities, Entity, EntityId, GLOBAL};

/// What a name is bound to.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Binding {
    /// A top-level variable of a module.
    Cell(Cell),
    /// A module of the program as an object.
    Namespace(ModuleId),
    Ext(EntityId),
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum TypeTarget {
    Class(ClassId),
    /// An instance of a library's type.
    Ext(EntityId),
}

/// Re-export chains are followed this far; longer ones are cycles.
const MAX_HOPS: usize = 24;

pub struct Linkage {
    exports: Vec<FxHashMap<Name, usize>>,
    imports: FxHashMap<(ModuleId, Var), usize>,
    types: Vec<FxHashMap<Name, usize>>,
    /// Classes that extend or implement a class, transitively closed.
    subclasses: Vec<Vec<ClassId>>,
    superclass: Vec<Option<TypeTarget>>,
    /// Classes whose members a class has beside those of its superclass.
    embedded: Vec<Vec<ClassId>>,
    /// Interfaces of a class that have bodies for some of their methods.
    defaults: Vec<Vec<ClassId>>,
    class_cells: FxHashMap<Cell, ClassId>,
    default: Option<Name>,
    /// Each module and those whose exports it passes on (`export *`), nearest first.
    stars: Vec<Vec<ModuleId>>,
    pub imported: FxHashMap<Cell, Binding>,
    /// Fields of a library's class that are of a type argument: by module, class and field.
    pub generics: FxHashMap<(Name, Name, Name), Name>,
}

/// The way of one question through modules that pass names on. Modules that pass on everything of
/// each other would be gone through again and again: who was asked once has answered.
#[derive(Default)]
struct Way {
    hops: usize,
    asked: FxHashSet<(ModuleId, Name)>,
}

impl Way {
    /// Whether the question is new, and did not come too far.
    fn enter(&mut self, module: ModuleId, name: Name) -> bool {
        let new = self.hops < MAX_HOPS && self.asked.insert((module, name));
        self.hops += usize::from(new);
        new
    }

    fn leave(&mut self) {
        self.hops -= 1;
    }
}

impl Linkage {
    pub fn new(program: &Program, names: &mut Names, entities: &mut Entities) -> Self {
        let mut linkage = Self {
            exports: Vec::with_capacity(program.modules.len()),
            imports: FxHashMap::default(),
            types: Vec::with_capacity(program.modules.len()),
            subclasses: vec![Vec::new(); program.classes.len()],
            superclass: vec![None; program.classes.len()],
            embedded: vec![Vec::new(); program.classes.len()],
            defaults: vec![Vec::new(); program.classes.len()],
            class_cells: FxHashMap::default(),
            default: names.find("default"),
            stars: star_exports(program),
            imported: FxHashMap::default(),
            generics: FxHashMap::default(),
        };
        for (m, module) in program.modules.iter().enumerate() {
            let by_name = |i: usize, n: &Name| (*n, i);
            linkage.exports.push(
                module
                    .exports
                    .iter()
                    .enumerate()
                    .map(|(i, (n, _))| by_name(i, n))
                    .collect(),
            );
            linkage.types.push(
                module
                    .types
                    .iter()
                    .enumerate()
                    .map(|(i, (n, _))| by_name(i, n))
                    .collect(),
            );
            for (i, import) in module.imports.iter().enumerate() {
                linkage.imports.insert((ModuleId(m as u32), import.var), i);
            }
            let init = program.function(module.init);
            let mut class_vars: FxHashMap<Var, ClassId> = FxHashMap::default();
            for inst in init.blocks.iter().flat_map(|b| &b.insts) {
                match &inst.op {
                    Op::Class { dst, class } => {
                        class_vars.insert(*dst, *class);
                    }
                    Op::StoreVar { cell, value } => {
                        if let Some(class) = class_vars.get(value) {
                            linkage.class_cells.insert(*cell, *class);
                        }
                    }
                    _ => {}
                }
            }
        }
        for (m, module) in program.modules.iter().enumerate() {
            for import in &module.imports {
                let cell = Cell {
                    owner: module.init,
                    var: import.var,
                };
                if let Some(binding) =
                    linkage.import(program, ModuleId(m as u32), import.var, names, entities)
                {
                    linkage.imported.insert(cell, binding);
                }
            }
        }
        linkage.class_hierarchy(program, names, entities);
        linkage
    }

    /// What an import variable is bound to.
    fn import(
        &self,
        program: &Program,
        module: ModuleId,
        var: Var,
        names: &mut Names,
        entities: &mut Entities,
    ) -> Option<Binding> {
        let import =
            &program.modules[module.0 as usize].imports[*self.imports.get(&(module, var))?];
        self.through(
            program,
            import.target.as_ref()?,
            &import.name,
            names,
            entities,
            &mut Way::default(),
        )
    }

    fn through(
        &self,
        program: &Program,
        target: &Target,
        name: &ImportedName,
        names: &mut Names,
        entities: &mut Entities,
        way: &mut Way,
    ) -> Option<Binding> {
        match (target, name) {
            (Target::External(module), name) => {
                let path = match name {
                    ImportedName::Default | ImportedName::Namespace => names.intern(""),
                    ImportedName::Named(n) if Some(*n) == self.default => names.intern(""),
                    ImportedName::Named(n) => *n,
                };
                let entity = Entity {
                    module: *module,
                    path,
                    instance: false,
                };
                Some(Binding::Ext(entities.make(entity)))
            }
            (Target::Module(m), ImportedName::Namespace) => Some(Binding::Namespace(*m)),
            (Target::Module(m), ImportedName::Default) => self
                .default
                .and_then(|d| self.passed_on(program, *m, d, names, entities, way))
                // CommonJS: the module object is the default.
                .or(Some(Binding::Namespace(*m))),
            (Target::Module(m), ImportedName::Named(n)) => {
                self.passed_on(program, *m, *n, names, entities, way)
            }
        }
    }

    /// What a module exports under a name, itself or by `export *`.
    pub fn export(
        &self,
        program: &Program,
        module: ModuleId,
        name: Name,
        names: &mut Names,
        entities: &mut Entities,
    ) -> Option<Binding> {
        self.passed_on(program, module, name, names, entities, &mut Way::default())
    }

    fn passed_on(
        &self,
        program: &Program,
        module: ModuleId,
        name: Name,
        names: &mut Names,
        entities: &mut Entities,
        way: &mut Way,
    ) -> Option<Binding> {
        if !way.enter(module, name) {
            return None;
        }
        let mut stars = self.stars.get(module.0 as usize).into_iter().flatten();
        let found = stars.find_map(|m| self.own_export(program, *m, name, names, entities, way));
        way.leave();
        found
    }

    /// The names that a module exports, its own and those it passes on.
    pub fn export_names(&self, program: &Program, module: ModuleId) -> Vec<Name> {
        let modules = self.stars.get(module.0 as usize).into_iter().flatten();
        modules
            .filter_map(|m| program.modules.get(m.0 as usize))
            .flat_map(|linked| linked.exports.iter().map(|(name, _)| *name))
            .collect()
    }

    fn own_export(
        &self,
        program: &Program,
        module: ModuleId,
        name: Name,
        names: &mut Names,
        entities: &mut Entities,
        way: &mut Way,
    ) -> Option<Binding> {
        let linked = program.modules.get(module.0 as usize)?;
        if let Some(&i) = self.exports[module.0 as usize].get(&name) {
            return match &linked.exports[i].1 {
                ExportTarget::Local(var) => {
                    let init = program.function(linked.init);
                    if init
                        .vars
                        .get(var.0 as usize)
                        .is_some_and(|v| v.kind == VarKind::Import)
                    {
                        let import = &linked.imports[*self.imports.get(&(module, *var))?];
                        return self.through(
                            program,
                            import.target.as_ref()?,
                            &import.name,
                            names,
                            entities,
                            way,
                        );
                    }
                    Some(Binding::Cell(Cell {
                        owner: linked.init,
                        var: *var,
                    }))
                }
                ExportTarget::From { name, target, .. } => {
                    self.through(program, target.as_ref()?, name, names, entities, way)
                }
            };
        }
        None
    }

    /// What a type's name means in a module.
    pub fn type_target(
        &self,
        program: &Program,
        module: ModuleId,
        ty: &TypeRef,
        names: &mut Names,
        entities: &mut Entities,
    ) -> Option<TypeTarget> {
        self.type_name(
            program,
            module,
            ty.name,
            names,
            entities,
            &mut Way::default(),
        )
    }

    fn type_name(
        &self,
        program: &Program,
        module: ModuleId,
        name: Name,
        names: &mut Names,
        entities: &mut Entities,
        way: &mut Way,
    ) -> Option<TypeTarget> {
        let text = names.text(name);
        if text.starts_with("typeof ") {
            return None;
        }
        let (head, rest) = match text.split_once('.') {
            Some((head, rest)) => (head.to_owned(), Some(rest.to_owned())),
            None => (text.to_owned(), None),
        };
        let head_name = names.find(&head)?;
        let linked = &program.modules[module.0 as usize];
        if let Some(&i) = self.types[module.0 as usize].get(&head_name) {
            match &linked.types[i].1 {
                TypeDef::Class(class) => return Some(TypeTarget::Class(*class)),
                TypeDef::Alias(alias) => {
                    if !way.enter(module, alias.name) {
                        return None;
                    }
                    let found = self.type_name(program, module, alias.name, names, entities, way);
                    way.leave();
                    return found;
                }
                TypeDef::Import(var) => {
                    let import = &linked.imports[*self.imports.get(&(module, *var))?];
                    return self.imported_type(
                        program,
                        import.target.as_ref()?,
                        &import.name,
                        rest.as_deref(),
                        names,
                        entities,
                        way,
                    );
                }
            }
        }
        let global = names.intern(GLOBAL);
        Some(TypeTarget::Ext(entities.make(Entity {
            module: global,
            path: name,
            instance: true,
        })))
    }

    #[allow(clippy::too_many_arguments)]
    fn imported_type(
        &self,
        program: &Program,
        target: &Target,
        name: &ImportedName,
        rest: Option<&str>,
        names: &mut Names,
        entities: &mut Entities,
        way: &mut Way,
    ) -> Option<TypeTarget> {
        match target {
            Target::External(module) => {
                let head = match name {
                    ImportedName::Named(n) => names.text(*n).to_owned(),
                    ImportedName::Default | ImportedName::Namespace => String::new(),
                };
                let text = match (head.is_empty(), rest) {
                    (true, Some(rest)) => rest.to_owned(),
                    (true, None) => String::new(),
                    (false, Some(rest)) => format!("{head}.{rest}"),
                    (false, None) => head,
                };
                let path = names.intern(&text);
                Some(TypeTarget::Ext(entities.make(Entity {
                    module: *module,
                    path,
                    instance: true,
                })))
            }
            Target::Module(m) => {
                let wanted = match (name, rest) {
                    (ImportedName::Named(n), None) => *n,
                    (_, Some(rest)) => names.find(rest)?,
                    (ImportedName::Default, None) => self.default?,
                    (ImportedName::Namespace, None) => return None,
                };
                self.exported_type(program, *m, wanted, names, entities, way)
            }
        }
    }

    fn exported_type(
        &self,
        program: &Program,
        module: ModuleId,
        name: Name,
        names: &mut Names,
        entities: &mut Entities,
        way: &mut Way,
    ) -> Option<TypeTarget> {
        if !way.enter(module, name) {
            return None;
        }
        let mut stars = self.stars.get(module.0 as usize).into_iter().flatten();
        let found =
            stars.find_map(|m| self.own_exported_type(program, *m, name, names, entities, way));
        way.leave();
        found
    }

    fn own_exported_type(
        &self,
        program: &Program,
        module: ModuleId,
        name: Name,
        names: &mut Names,
        entities: &mut Entities,
        way: &mut Way,
    ) -> Option<TypeTarget> {
        let linked = program.modules.get(module.0 as usize)?;
        if self.types[module.0 as usize].contains_key(&name) {
            return self.type_name(program, module, name, names, entities, way);
        }
        if let Some(&i) = self.exports[module.0 as usize].get(&name) {
            return match &linked.exports[i].1 {
                ExportTarget::Local(var) => {
                    let cell = Cell {
                        owner: linked.init,
                        var: *var,
                    };
                    if let Some(class) = self.class_cells.get(&cell) {
                        return Some(TypeTarget::Class(*class));
                    }
                    let import = &linked.imports[*self.imports.get(&(module, *var))?];
                    self.imported_type(
                        program,
                        import.target.as_ref()?,
                        &import.name,
                        None,
                        names,
                        entities,
                        way,
                    )
                }
                ExportTarget::From { name, target, .. } => {
                    self.imported_type(program, target.as_ref()?, name, None, names, entities, way)
                }
            };
        }
        None
    }

    fn class_hierarchy(&mut self, program: &Program, names: &mut Names, entities: &mut Entities) {
        let mut parents: Vec<Vec<ClassId>> = vec![Vec::new(); program.classes.len()];
        for (c, class) in program.classes.iter().enumerate() {
            let module = program.class_module[c];
            if let Some(extends) = class.extends {
                let target = self.type_name(
                    program,
                    module,
                    extends,
                    names,
                    entities,
                    &mut Way::default(),
                );
                self.superclass[c] = target;
            }
            for name in class.extends.iter().chain(&class.implements) {
                if let Some(TypeTarget::Class(parent)) =
                    self.type_name(program, module, *name, names, entities, &mut Way::default())
                {
                    parents[c].push(parent);
                    if Some(*name) != class.extends
                        && !program.classes[parent.0 as usize].is_interface
                    {
                        self.embedded[c].push(parent);
                    }
                }
            }
        }
        for c in 0..program.classes.len() {
            let mut stack = parents[c].clone();
            let mut seen = rustc_hash::FxHashSet::default();
            while let Some(parent) = stack.pop() {
                if seen.insert(parent) && seen.len() < 64 {
                    let class = &program.classes[parent.0 as usize];
                    if class.is_interface && !class.methods.is_empty() {
                        self.defaults[c].push(parent);
                    }
                    self.subclasses[parent.0 as usize].push(ClassId(c as u32));
                    stack.extend(&parents[parent.0 as usize]);
                }
            }
        }
        self.structural(program);
        self.by_all_parts(program, &parents);
    }

    /// An interface that is nothing but several others is met by those that
    /// meet each of them.
    fn by_all_parts(&mut self, program: &Program, parents: &[Vec<ClassId>]) {
        for (c, class) in program.classes.iter().enumerate() {
            let Some((first, rest)) = parents[c].split_first() else {
                continue;
            };
            if !class.is_interface || !self.subclasses[c].is_empty() {
                continue;
            }
            let meets = |class: &&ClassId| {
                !program.classes[class.0 as usize].is_interface
                    && rest
                        .iter()
                        .all(|p| self.subclasses[p.0 as usize].contains(class))
            };
            let found = self.subclasses[first.0 as usize].iter().take(256);
            self.subclasses[c] = found.filter(meets).take(8).copied().collect();
        }
    }

    /// An interface that no class names is met by those that have all it asks for.
    fn structural(&mut self, program: &Program) {
        let mut by_method: FxHashMap<Name, Vec<ClassId>> = FxHashMap::default();
        for (c, class) in program.classes.iter().enumerate() {
            for (name, _) in class.methods.iter().filter(|_| !class.is_interface) {
                by_method.entry(*name).or_default().push(ClassId(c as u32));
            }
        }
        for (c, class) in program.classes.iter().enumerate() {
            let asks = &class.fields;
            if !class.is_interface
                || !self.subclasses[c].is_empty()
                || !class.methods.is_empty()
                || !(2..=64).contains(&asks.len())
            {
                continue;
            }
            let Some(candidates) = by_method.get(&asks[0].name) else {
                continue;
            };
            let has = |class: ClassId, name: Name| {
                let methods = &program.classes[class.0 as usize].methods;
                methods.len() <= 256 && methods.iter().any(|(n, _)| *n == name)
            };
            let meets = candidates
                .iter()
                .take(256)
                .filter(|&&class| asks.iter().all(|f| has(class, f.name)))
                .take(8);
            self.subclasses[c] = meets.copied().collect();
        }
    }

    pub fn superclass(&self, class: ClassId) -> Option<TypeTarget> {
        self.superclass[class.0 as usize]
    }

    /// A class and everything below it that can be instantiated.
    pub fn concrete(&self, program: &Program, class: ClassId) -> Vec<ClassId> {
        let mut out = Vec::new();
        if !program.classes[class.0 as usize].is_interface {
            out.push(class);
        }
        out.extend(
            self.subclasses[class.0 as usize]
                .iter()
                .filter(|c| !program.classes[c.0 as usize].is_interface),
        );
        out.truncate(64);
        if out.is_empty() {
            // A type of plain objects: its fields still have types.
            out.push(class);
        }
        out
    }

    /// A method of the class or of its nearest superclass that has it; or, where none has, what an
    /// interface that it implements says for all that do not say anything else.
    pub fn method(&self, program: &Program, class: ClassId, name: Name) -> Option<FuncId> {
        let of = |c: &toctou_core::ir::Class| {
            let found = c.methods.iter().find(|(n, _)| *n == name);
            found.map(|(_, f)| *f)
        };
        let mut at = class;
        for _ in 0..MAX_HOPS {
            let c = &program.classes[at.0 as usize];
            let embedded = self.embedded[at.0 as usize].iter();
            if let Some(f) = of(c).or_else(|| {
                embedded
                    .clone()
                    .find_map(|e| of(&program.classes[e.0 as usize]))
            }) {
                return Some(f);
            }
            match self.superclass(at) {
                Some(TypeTarget::Class(next)) => at = next,
                _ => break,
            }
        }
        let mut defaults = self.defaults[class.0 as usize].iter();
        defaults.find_map(|d| of(&program.classes[d.0 as usize]))
    }

    /// The methods of a class and its superclasses, but for those that only the language calls.
    pub fn method_names(&self, program: &Program, class: ClassId) -> Vec<Name> {
        let mut found = Vec::new();
        let mut at = Some(class);
        for _ in 0..MAX_HOPS {
            let Some(class) = at else { break };
            let methods = program.classes[class.0 as usize].methods.iter();
            found.extend(methods.map(|(name, _)| *name));
            at = match self.superclass(class) {
                Some(TypeTarget::Class(next)) => Some(next),
                _ => None,
            };
        }
        found.retain(|name| !program.names.text(*name).starts_with("__"));
        found
    }

    /// The declared type of a field, here or in a superclass.
    pub fn field_type<'p>(
        &self,
        program: &'p Program,
        entities: &Entities,
        class: ClassId,
        name: Name,
    ) -> Option<(ModuleId, &'p TypeRef)> {
        let mut at = class;
        for _ in 0..MAX_HOPS {
            for c in std::iter::once(&at).chain(&self.embedded[at.0 as usize]) {
                let fields = &program.classes[c.0 as usize].fields;
                if let Some(field) = fields.iter().find(|f| f.name == name) {
                    let module = program.class_module[c.0 as usize];
                    return field.ty.as_ref().map(|t| (module, t));
                }
            }
            match self.superclass(at) {
                Some(TypeTarget::Class(next)) => at = next,
                Some(TypeTarget::Ext(e)) => {
                    let e = entities.get(e);
                    let argument = self.generics.get(&(e.module, e.path, name))?;
                    let fields = &program.classes[at.0 as usize].fields;
                    let field = fields.iter().find(|f| f.name == *argument)?;
                    let module = program.class_module[at.0 as usize];
                    return field.ty.as_ref().map(|t| (module, t));
                }
                None => return None,
            }
        }
        None
    }
}

/// Modules reached from each by `export *`. Each is visited once, so that
/// modules which pass each other on cost no more than their number.
fn star_exports(program: &Program) -> Vec<Vec<ModuleId>> {
    let n = program.modules.len();
    let mut out = Vec::with_capacity(n);
    for m in 0..n {
        let mut order = vec![ModuleId(m as u32)];
        let mut seen = rustc_hash::FxHashSet::default();
        seen.insert(ModuleId(m as u32));
        let mut at = 0;
        while at < order.len() {
            for (_, target) in &program.modules[order[at].0 as usize].star_exports {
                if let Some(Target::Module(next)) = target
                    && (next.0 as usize) < n
                    && seen.insert(*next)
                {
                    order.push(*next);
                }
            }
            at += 1;
        }
        out.push(order);
    }
    out
}
