//! Does a module keep the conventions of [`super`]? A front end's tests ask;
//! the analysis then indexes without looking.

use super::{
    Arg, BlockId, Callee, Cell, ClassId, ExportTarget, FuncId, FuncKind, Function, ImportedName,
    Key, Literal, Module, Op, Term, TypeDef, TypeRef, Var, VarKind,
};
use crate::names::Name;

/// Everything that is wrong with `module`, in words. Empty is good.
pub fn validate(module: &Module) -> Vec<String> {
    let mut check = Check {
        module,
        at: String::new(),
        problems: Vec::new(),
    };
    check.module();
    check.problems
}

struct Check<'a> {
    module: &'a Module,
    /// Where we are, for the message.
    at: String,
    problems: Vec<String>,
}

/// How an instruction touches a register.
#[derive(Clone, Copy, PartialEq)]
enum Touch {
    Read,
    Write,
}

impl<'a> Check<'a> {
    fn problem(&mut self, text: impl std::fmt::Display) {
        self.problems.push(format!("{}: {text}", self.at));
    }

    fn module(&mut self) {
        let module = self.module;
        self.at = "module".to_owned();
        match module.functions.first() {
            None => return self.problem("has no function 0"),
            Some(init) => {
                if init.kind != FuncKind::ModuleInit || init.parent.is_some() {
                    self.problem("function 0 is not the top-level code");
                }
                for import in &module.imports {
                    match init.vars.get(import.var.0 as usize) {
                        None => self.problem("import of a register that does not exist"),
                        Some(info) if info.kind != VarKind::Import || !info.captured => {
                            self.problem("import into a register that is no captured import");
                        }
                        Some(_) => {}
                    }
                }
                for (_, target) in &module.exports {
                    if let ExportTarget::Local(var) = target {
                        match init.vars.get(var.0 as usize) {
                            Some(info) if info.captured => {}
                            _ => self.problem("export of a register that is not captured"),
                        }
                    }
                }
                for (_, def) in &module.types {
                    if let TypeDef::Import(var) = def
                        && var.0 as usize >= init.vars.len()
                    {
                        self.problem("type of a register that does not exist");
                    }
                }
            }
        }
        self.tables();
        for (index, class) in module.classes.iter().enumerate() {
            self.at = format!("class {index}");
            self.name(class.name);
            class.extends.iter().for_each(|n| self.name(*n));
            class.implements.iter().for_each(|n| self.name(*n));
            class.table.iter().for_each(|n| self.name(*n));
            class.unique.iter().for_each(|n| self.name(*n));
            class.constructor.iter().for_each(|f| self.func(*f));
            for (name, func) in &class.methods {
                self.name(*name);
                self.func(*func);
            }
            for field in &class.fields {
                self.name(field.name);
                self.opt_type(field.ty.as_ref());
            }
        }
        for (index, function) in module.functions.iter().enumerate() {
            self.at = format!("f{index}");
            self.function(index, function);
        }
    }

    fn tables(&mut self) {
        let module = self.module;
        for import in &module.imports {
            self.name(import.specifier);
            self.imported(&import.name);
        }
        for (name, target) in &module.exports {
            self.name(*name);
            if let ExportTarget::From {
                specifier, name, ..
            } = target
            {
                self.name(*specifier);
                self.imported(name);
            }
        }
        for (name, _) in &module.star_exports {
            self.name(*name);
        }
        for extension in &module.extensions {
            self.name(extension.class);
            self.name(extension.method);
            self.func(extension.func);
        }
        for (name, def) in &module.types {
            self.name(*name);
            match def {
                TypeDef::Class(class) => self.class(*class),
                TypeDef::Alias(ty) => self.opt_type(Some(ty)),
                TypeDef::Import(_) => {}
            }
        }
    }

    fn function(&mut self, index: usize, function: &Function) {
        self.name(function.name);
        if index > 0 {
            match function.parent {
                None => self.problem("has no parent"),
                Some(parent) => self.func(parent),
            }
            if function.kind == FuncKind::ModuleInit {
                self.problem("is a second top level");
            }
        }
        function.class.iter().for_each(|c| self.class(*c));
        function.decorators.iter().for_each(|n| self.name(*n));
        self.opt_type(function.return_type.as_ref());
        for info in &function.vars {
            info.name.iter().for_each(|n| self.name(*n));
            self.opt_type(info.ty.as_deref());
        }
        for param in &function.params {
            match function.vars.get(param.0 as usize) {
                None => self.problem("parameter register does not exist"),
                Some(info) if info.kind != VarKind::Param => {
                    self.problem("parameter register is not a parameter");
                }
                Some(_) => {}
            }
        }
        if function.blocks.is_empty() {
            self.problem("has no entry block");
        }
        let mut assigned = vec![false; function.vars.len()];
        for (index, block) in function.blocks.iter().enumerate() {
            if let Some(handler) = block.handler {
                self.block(function, handler);
                if handler.0 as usize == index {
                    self.problem(format_args!("b{index} is its own handler"));
                }
            }
            for inst in &block.insts {
                if let Some(dst) = inst.op.dst() {
                    self.register(function, dst, Touch::Write);
                    let slot = dst.0 as usize;
                    if let (Some(seen), Some(info)) =
                        (assigned.get_mut(slot), function.vars.get(slot))
                    {
                        if *seen && info.kind == VarKind::Temp {
                            self.problems
                                .push(format!("f: temporary t{slot} is assigned twice"));
                        }
                        *seen = true;
                    }
                }
                self.op(function, &inst.op);
            }
            match &block.term {
                Term::Branch { cond, .. } => self.register(function, *cond, Touch::Read),
                Term::Return(Some(var)) | Term::Throw(var) => {
                    self.register(function, *var, Touch::Read);
                }
                Term::Goto(_) | Term::Multi(_) | Term::Return(None) => {}
            }
            for successor in block.term.successors() {
                self.block(function, successor);
            }
        }
    }

    fn op(&mut self, function: &Function, op: &Op) {
        let read = |check: &mut Self, var: Var| check.register(function, var, Touch::Read);
        match op {
            Op::Const { value, .. } => match value {
                Literal::Str(name) | Literal::Num(name) => self.name(*name),
                Literal::Bool(_) | Literal::Null | Literal::Other => {}
            },
            Op::Func { func, .. } => self.func(*func),
            Op::Class { class, .. } => self.class(*class),
            Op::Global { name, .. } => self.name(*name),
            Op::LoadVar { cell, .. } => self.cell(*cell),
            Op::StoreVar { cell, value } => {
                self.cell(*cell);
                read(self, *value);
            }
            Op::This { .. } | Op::Catch { .. } => {}
            Op::GetField { obj, field, .. } => {
                read(self, *obj);
                self.name(*field);
            }
            Op::SetField { obj, field, value } => {
                read(self, *obj);
                read(self, *value);
                self.name(*field);
            }
            Op::GetIndex { obj, index, .. } => {
                read(self, *obj);
                read(self, *index);
            }
            Op::SetIndex { obj, index, value } => {
                read(self, *obj);
                read(self, *index);
                read(self, *value);
            }
            Op::Delete { obj, key } => {
                read(self, *obj);
                match key {
                    Ok(name) => self.name(*name),
                    Err(var) => read(self, *var),
                }
            }
            Op::Object { fields, .. } => {
                for (key, value) in fields {
                    match key {
                        Key::Name(name) => self.name(*name),
                        Key::Computed(var) => read(self, *var),
                        Key::Spread => {}
                    }
                    read(self, *value);
                }
            }
            Op::Array { items, .. } => self.args(function, items),
            Op::Concat { parts: vars, .. }
            | Op::Phi { from: vars, .. }
            | Op::Opaque { from: vars, .. } => vars.iter().for_each(|v| read(self, *v)),
            Op::Binary { left, right, .. } => {
                read(self, *left);
                read(self, *right);
            }
            Op::Copy { src, .. } | Op::Not { src, .. } | Op::Await { src, .. } => read(self, *src),
            Op::Element { of, .. } => read(self, *of),
            Op::YieldValue { value, .. } => read(self, *value),
            Op::Enter { resource, .. } | Op::Exit { resource } => read(self, *resource),
            Op::Call { callee, args, .. } => {
                self.callee(function, callee);
                self.args(function, args);
            }
            Op::TaggedTemplate {
                tag,
                strings,
                values,
                ..
            } => {
                self.callee(function, tag);
                strings.iter().for_each(|n| self.name(*n));
                values
                    .iter()
                    .for_each(|v| self.register(function, *v, Touch::Read));
                if strings.len() != values.len() + 1 {
                    self.problem("tagged template with the wrong number of strings");
                }
            }
        }
    }

    fn args(&mut self, function: &Function, args: &[Arg]) {
        for arg in args {
            self.register(function, arg.value, Touch::Read);
            arg.name.iter().for_each(|n| self.name(*n));
        }
    }

    fn callee(&mut self, function: &Function, callee: &Callee) {
        match callee {
            Callee::Value(var) => self.register(function, *var, Touch::Read),
            Callee::Method { obj, name } => {
                self.register(function, *obj, Touch::Read);
                self.name(*name);
            }
            Callee::Super(name) => name.iter().for_each(|n| self.name(*n)),
        }
    }

    fn register(&mut self, function: &Function, var: Var, touch: Touch) {
        match function.vars.get(var.0 as usize) {
            None => self.problem(format_args!("register {} does not exist", var.0)),
            Some(info) if info.captured => self.problem(format_args!(
                "captured variable {} is {} as a register",
                var.0,
                if touch == Touch::Read {
                    "read"
                } else {
                    "written"
                }
            )),
            Some(_) => {}
        }
    }

    fn cell(&mut self, cell: Cell) {
        let owner = self.module.functions.get(cell.owner.0 as usize);
        match owner.and_then(|f| f.vars.get(cell.var.0 as usize)) {
            None => self.problem(format_args!(
                "cell {}@{} does not exist",
                cell.var.0, cell.owner.0
            )),
            Some(info) if !info.captured => self.problem(format_args!(
                "cell {}@{} is not captured",
                cell.var.0, cell.owner.0
            )),
            Some(_) => {}
        }
    }

    fn block(&mut self, function: &Function, block: BlockId) {
        if block.0 as usize >= function.blocks.len() {
            self.problem(format_args!("block {} does not exist", block.0));
        }
    }

    fn func(&mut self, func: FuncId) {
        if func.0 as usize >= self.module.functions.len() {
            self.problem(format_args!("function {} does not exist", func.0));
        }
    }

    fn class(&mut self, class: ClassId) {
        if class.0 as usize >= self.module.classes.len() {
            self.problem(format_args!("class {} does not exist", class.0));
        }
    }

    fn name(&mut self, name: Name) {
        if name.0 as usize >= self.module.names.len() {
            self.problem(format_args!("name {} does not exist", name.0));
        }
    }

    fn imported(&mut self, name: &ImportedName) {
        if let ImportedName::Named(name) = name {
            self.name(*name);
        }
    }

    fn opt_type(&mut self, ty: Option<&TypeRef>) {
        let mut next = ty;
        while let Some(ty) = next {
            self.name(ty.name);
            next = ty.element.as_deref();
        }
    }
}
