//! Merging modules into one program: local ids and names become global.

use super::{
    BlockId, Callee, Cell, ClassId, ExportTarget, Extension, FuncId, Function, ImportedName, Key,
    LinkedModule, Literal, Module, ModuleId, Op, Program, Target, TypeDef, TypeRef,
};
use smallvec::SmallVec;

use crate::names::{Name, Names};
use crate::source::SourceFile;

impl Program {
    /// How many functions with a place of their own a trail of calls goes down. What is written inside
    /// another function, and handed to a lock or run at once, is part of that one.
    pub fn levels(&self, calls: impl IntoIterator<Item = FuncId>) -> usize {
        let mut levels: SmallVec<[(FuncId, usize); 8]> = SmallVec::new();
        for func in calls {
            let outer = self.functions[func.0 as usize].parent;
            let around = levels.iter().rev().find(|(f, _)| Some(*f) == outer);
            let level = match around {
                Some((_, level)) => *level,
                None => levels.last().map_or(1, |(_, level)| level + 1),
            };
            levels.push((func, level));
        }
        levels.last().map_or(0, |(_, level)| *level)
    }

    /// Modules must come in the order their [`Target::Module`]s count them.
    pub fn link(files: Vec<SourceFile>, modules: Vec<Module>) -> Self {
        let mut program = Self {
            files,
            ..Self::default()
        };
        let functions = modules.iter().map(|module| module.functions.len()).sum();
        program.functions.reserve_exact(functions);
        program.function_module.reserve_exact(functions);
        let mut first_class = Vec::with_capacity(modules.len());
        let mut extensions: Vec<Extension> = Vec::new();
        for (index, mut module) in modules.into_iter().enumerate() {
            first_class.push(program.classes.len() as u32);
            let mut apart = std::mem::take(&mut module.extensions);
            let map = program.add(ModuleId(index as u32), module);
            for extension in &mut apart {
                map.name(&mut extension.method);
                map.func(&mut extension.func);
            }
            extensions.extend(apart);
        }
        for extension in extensions {
            let Some((module, class)) = extension.target else {
                continue;
            };
            let Some(&first) = first_class.get(module.0 as usize) else {
                continue;
            };
            let id = ClassId(first + class.0);
            if let Some(class) = program.classes.get_mut(id.0 as usize) {
                class.methods.push((extension.method, extension.func));
                program.functions[extension.func.0 as usize].class = Some(id);
            }
        }
        program
    }

    fn add(&mut self, id: ModuleId, module: Module) -> Remap {
        let map = Remap {
            names: module
                .names
                .iter()
                .map(|text| self.names.intern(text))
                .collect(),
            func: self.functions.len() as u32,
            class: self.classes.len() as u32,
        };
        let mut functions = module.functions;
        for function in &mut functions {
            map.function(function);
            self.function_module.push(id);
        }
        self.functions.append(&mut functions);
        for mut class in module.classes {
            map.name(&mut class.name);
            class.extends.iter_mut().for_each(|n| map.name(n));
            class.implements.iter_mut().for_each(|n| map.name(n));
            class.table.iter_mut().for_each(|n| map.name(n));
            class.unique.iter_mut().for_each(|n| map.name(n));
            class.constructor.iter_mut().for_each(|f| map.func(f));
            for (name, func) in &mut class.methods {
                map.name(name);
                map.func(func);
            }
            for field in &mut class.fields {
                map.name(&mut field.name);
                map.opt_type(&mut field.ty);
            }
            self.classes.push(class);
            self.class_module.push(id);
        }
        let mut imports = module.imports;
        for import in &mut imports {
            map.name(&mut import.specifier);
            map.imported(&mut import.name);
            map.target(&mut import.target);
        }
        let mut exports = module.exports;
        for (name, target) in &mut exports {
            map.name(name);
            if let ExportTarget::From {
                specifier,
                name,
                target,
            } = target
            {
                map.name(specifier);
                map.imported(name);
                map.target(target);
            }
        }
        let mut star_exports = module.star_exports;
        for (name, target) in &mut star_exports {
            map.name(name);
            map.target(target);
        }
        let mut types = module.types;
        for (name, def) in &mut types {
            map.name(name);
            match def {
                TypeDef::Class(class) => map.class(class),
                TypeDef::Alias(ty) => map.ty(ty),
                TypeDef::Import(_) => {}
            }
        }
        self.modules.push(LinkedModule {
            file: module.file,
            init: FuncId(map.func),
            imports,
            exports,
            star_exports,
            types,
            directives: module.directives,
            closed: module.closed,
            dispatch: module.dispatch,
        });
        map
    }

    pub fn function(&self, id: FuncId) -> &Function {
        &self.functions[id.0 as usize]
    }

    pub fn file_of(&self, id: FuncId) -> &SourceFile {
        let module = self.function_module[id.0 as usize];
        &self.files[self.modules[module.0 as usize].file.0 as usize]
    }

    /// `Class.method`, `function`, or the file for top-level code.
    pub fn qualified_name(&self, id: FuncId) -> String {
        let function = self.function(id);
        let name = self.names.text(function.name);
        match function.class {
            Some(class) => {
                let class = &self.classes[class.0 as usize];
                format!("{}.{}", self.names.text(class.name), name)
            }
            None => name.to_owned(),
        }
    }
}

impl Names {
    /// The table of a linked program can still grow: models bring names too.
    pub fn intern_all<'a>(&mut self, texts: impl IntoIterator<Item = &'a str>) -> Vec<Name> {
        texts.into_iter().map(|t| self.intern(t)).collect()
    }
}

struct Remap {
    names: Vec<Name>,
    func: u32,
    class: u32,
}

impl Remap {
    fn name(&self, name: &mut Name) {
        *name = self.names[name.0 as usize];
    }

    fn func(&self, func: &mut FuncId) {
        func.0 += self.func;
    }

    fn class(&self, class: &mut ClassId) {
        class.0 += self.class;
    }

    fn cell(&self, cell: &mut Cell) {
        self.func(&mut cell.owner);
    }

    fn ty(&self, ty: &mut TypeRef) {
        let mut next = Some(ty);
        while let Some(ty) = next {
            self.name(&mut ty.name);
            next = ty.element.as_deref_mut();
        }
    }

    fn opt_type(&self, ty: &mut Option<TypeRef>) {
        if let Some(ty) = ty {
            self.ty(ty);
        }
    }

    fn imported(&self, name: &mut ImportedName) {
        if let ImportedName::Named(name) = name {
            self.name(name);
        }
    }

    fn target(&self, target: &mut Option<Target>) {
        if let Some(Target::External(name)) = target {
            self.name(name);
        }
    }

    fn callee(&self, callee: &mut Callee) {
        match callee {
            Callee::Value(_) | Callee::Super(None) => {}
            Callee::Method { name, .. } | Callee::Super(Some(name)) => self.name(name),
        }
    }

    fn function(&self, f: &mut Function) {
        self.name(&mut f.name);
        f.parent.iter_mut().for_each(|p| self.func(p));
        f.class.iter_mut().for_each(|c| self.class(c));
        self.opt_type(&mut f.return_type);
        f.decorators.iter_mut().for_each(|n| self.name(n));
        for var in &mut f.vars {
            var.name.iter_mut().for_each(|n| self.name(n));
            if let Some(ty) = &mut var.ty {
                self.ty(ty);
            }
        }
        for block in &mut f.blocks {
            for inst in &mut block.insts {
                self.op(&mut inst.op);
            }
        }
    }

    fn op(&self, op: &mut Op) {
        match op {
            Op::Const { value, .. } => match value {
                Literal::Str(name) | Literal::Num(name) => self.name(name),
                Literal::Bool(_) | Literal::Null | Literal::Other => {}
            },
            Op::Func { func, .. } => self.func(func),
            Op::Class { class, .. } => self.class(class),
            Op::Global { name, .. } => self.name(name),
            Op::LoadVar { cell, .. } | Op::StoreVar { cell, .. } => self.cell(cell),
            Op::GetField { field, .. } | Op::SetField { field, .. } => self.name(field),
            Op::Delete { key: Ok(name), .. } => self.name(name),
            Op::Object { fields, .. } => {
                for (key, _) in fields {
                    if let Key::Name(name) = key {
                        self.name(name);
                    }
                }
            }
            Op::Array { items, .. } => {
                for arg in items {
                    arg.name.iter_mut().for_each(|n| self.name(n));
                }
            }
            Op::Call { callee, args, .. } => {
                self.callee(callee);
                for arg in args {
                    arg.name.iter_mut().for_each(|n| self.name(n));
                }
            }
            Op::TaggedTemplate { tag, strings, .. } => {
                self.callee(tag);
                strings.iter_mut().for_each(|n| self.name(n));
            }
            Op::Copy { .. }
            | Op::This { .. }
            | Op::GetIndex { .. }
            | Op::SetIndex { .. }
            | Op::Delete { key: Err(_), .. }
            | Op::Concat { .. }
            | Op::Binary { .. }
            | Op::Not { .. }
            | Op::Phi { .. }
            | Op::Await { .. }
            | Op::Element { .. }
            | Op::YieldValue { .. }
            | Op::Enter { .. }
            | Op::Exit { .. }
            | Op::Catch { .. }
            | Op::Opaque { .. } => {}
        }
    }
}

impl super::Term {
    /// Successors within the function, exception edges not included.
    pub fn successors(&self) -> Vec<BlockId> {
        match self {
            Self::Goto(b) => vec![*b],
            Self::Branch {
                then, otherwise, ..
            } => vec![*then, *otherwise],
            Self::Multi(blocks) => blocks.clone(),
            Self::Return(_) | Self::Throw(_) => Vec::new(),
        }
    }
}

impl Op {
    /// The register that the instruction defines.
    #[inline]
    pub fn dst(&self) -> Option<super::Var> {
        match self {
            Self::Const { dst, .. }
            | Self::Copy { dst, .. }
            | Self::Func { dst, .. }
            | Self::Class { dst, .. }
            | Self::Global { dst, .. }
            | Self::LoadVar { dst, .. }
            | Self::This { dst }
            | Self::GetField { dst, .. }
            | Self::GetIndex { dst, .. }
            | Self::Object { dst, .. }
            | Self::Array { dst, .. }
            | Self::Concat { dst, .. }
            | Self::Binary { dst, .. }
            | Self::Not { dst, .. }
            | Self::Phi { dst, .. }
            | Self::Call { dst, .. }
            | Self::TaggedTemplate { dst, .. }
            | Self::Await { dst, .. }
            | Self::Element { dst, .. }
            | Self::YieldValue { dst, .. }
            | Self::Enter { dst, .. }
            | Self::Catch { dst }
            | Self::Opaque { dst, .. } => Some(*dst),
            Self::StoreVar { .. }
            | Self::SetField { .. }
            | Self::SetIndex { .. }
            | Self::Delete { .. }
            | Self::Exit { .. } => None,
        }
    }
}
