//! A module as text, for tests and for looking at what a front end made.
//!
//! One line per instruction. `x:3` is register 3, named `x`; `t4` is a
//! temporary; `x:3@0` is the captured variable of function 0. Spans are left
//! out: they would make every snapshot change with its first line.

use std::fmt::Write;

use super::{
    Arg, BinOp, CallKind, Callee, Cell, Class, ExportTarget, FuncKind, Function, ImportedName, Key,
    Literal, Module, Op, Target, Term, TypeDef, TypeRef, Var, VarKind,
};
use crate::names::Name;

/// The whole module, functions in order.
pub fn dump(module: &Module) -> String {
    let mut dump = Dump {
        module,
        function: None,
        out: String::new(),
    };
    dump.module();
    dump.out
}

struct Dump<'a> {
    module: &'a Module,
    function: Option<&'a Function>,
    out: String,
}

/// `write!` to a `String` cannot fail.
macro_rules! put {
    ($self:ident, $($arg:tt)*) => {{ let _ = write!($self.out, $($arg)*); }};
}

impl<'a> Dump<'a> {
    fn module(&mut self) {
        let module = self.module;
        for import in &module.imports {
            self.function = module.functions.first();
            let var = self.var(import.var);
            let name = self.imported(&import.name);
            let specifier = self.text(import.specifier);
            put!(self, "import {var} = {name} from {specifier:?}");
            self.target(import.target.as_ref());
        }
        for (name, target) in &module.exports {
            let name = self.text(*name);
            match target {
                ExportTarget::Local(var) => {
                    self.function = module.functions.first();
                    let var = self.var(*var);
                    put!(self, "export {name} = {var}\n");
                }
                ExportTarget::From {
                    specifier,
                    name: imported,
                    target,
                } => {
                    let imported = self.imported(imported);
                    let specifier = self.text(*specifier);
                    put!(self, "export {name} = {imported} from {specifier:?}");
                    self.target(target.as_ref());
                }
            }
        }
        for (specifier, target) in &module.star_exports {
            let specifier = self.text(*specifier);
            put!(self, "export * from {specifier:?}");
            self.target(target.as_ref());
        }
        for (name, def) in &module.types {
            let name = self.text(*name);
            match def {
                TypeDef::Class(class) => put!(self, "type {name} = class {}\n", class.0),
                TypeDef::Alias(ty) => {
                    let ty = self.ty(ty);
                    put!(self, "type {name} = {ty}\n");
                }
                TypeDef::Import(var) => put!(self, "type {name} = import of {}\n", var.0),
            }
        }
        for (index, class) in module.classes.iter().enumerate() {
            self.class(index, class);
        }
        for (index, function) in module.functions.iter().enumerate() {
            self.function = Some(function);
            self.function(index, function);
        }
        for directive in &module.directives {
            let alone = if directive.alone { " alone" } else { "" };
            put!(self, "directive{alone} {:?}\n", directive.text);
        }
        if module.opaque > 0 {
            put!(self, "opaque {}\n", module.opaque);
        }
    }

    fn class(&mut self, index: usize, class: &Class) {
        let keyword = if class.is_interface {
            "interface"
        } else {
            "class"
        };
        let name = self.text(class.name);
        put!(self, "{keyword} {index} {name}");
        if class.exported {
            put!(self, " exported");
        }
        if let Some(extends) = class.extends {
            let extends = self.text(extends);
            put!(self, " extends {extends}");
        }
        for name in &class.implements {
            let name = self.text(*name);
            put!(self, " implements {name}");
        }
        if let Some(table) = class.table {
            let table = self.text(table);
            put!(self, " table={table}");
        }
        for name in &class.unique {
            let name = self.text(*name);
            put!(self, " unique={name}");
        }
        if let Some(constructor) = class.constructor {
            put!(self, " constructor=f{}", constructor.0);
        }
        self.out.push('\n');
        for (name, func) in &class.methods {
            let name = self.text(*name);
            put!(self, "  {name}() = f{}\n", func.0);
        }
        for field in &class.fields {
            let is_static = if field.is_static { "static " } else { "" };
            let read_only = if field.read_only { "readonly " } else { "" };
            let name = self.text(field.name);
            put!(self, "  {is_static}{read_only}{name}");
            if let Some(ty) = &field.ty {
                let ty = self.ty(ty);
                put!(self, ": {ty}");
            }
            self.out.push('\n');
        }
    }

    fn function(&mut self, index: usize, function: &Function) {
        let name = self.text(function.name);
        put!(self, "fn f{index} {name}");
        match function.kind {
            FuncKind::ModuleInit => put!(self, " module"),
            FuncKind::Function => {}
            FuncKind::Arrow => put!(self, " arrow"),
            FuncKind::Method => put!(self, " method"),
            FuncKind::StaticMethod => put!(self, " static"),
            FuncKind::Constructor => put!(self, " constructor"),
            FuncKind::Getter => put!(self, " getter"),
            FuncKind::Setter => put!(self, " setter"),
        }
        if function.is_async {
            put!(self, " async");
        }
        if function.is_generator {
            put!(self, " generator");
        }
        if function.exported {
            put!(self, " exported");
        }
        if let Some(parent) = function.parent {
            put!(self, " in f{}", parent.0);
        }
        if let Some(class) = function.class {
            put!(self, " of {}", class.0);
        }
        for decorator in &function.decorators {
            let decorator = self.text(*decorator);
            put!(self, " @{decorator}");
        }
        let params: Vec<String> = function.params.iter().map(|p| self.var(*p)).collect();
        let rest = if function.has_rest { " ..." } else { "" };
        put!(self, " ({}{rest})", params.join(", "));
        if let Some(ty) = &function.return_type {
            let ty = self.ty(ty);
            put!(self, " -> {ty}");
        }
        self.out.push('\n');
        for (index, info) in function.vars.iter().enumerate() {
            if info.name.is_none() && info.kind == VarKind::Temp && info.ty.is_none() {
                continue;
            }
            if !info.captured && info.ty.is_none() {
                continue;
            }
            let var = self.var(Var(index as u32));
            let kind = match info.kind {
                VarKind::Param => "param",
                VarKind::Const => "const",
                VarKind::Let => "let",
                VarKind::Temp => "temp",
                VarKind::Import => "import",
            };
            let captured = if info.captured { " captured" } else { "" };
            put!(self, "  {kind} {var}{captured}");
            if let Some(ty) = &info.ty {
                let ty = self.ty(ty);
                put!(self, ": {ty}");
            }
            self.out.push('\n');
        }
        for (index, block) in function.blocks.iter().enumerate() {
            put!(self, " b{index}");
            if let Some(handler) = block.handler {
                put!(self, " catch b{}", handler.0);
            }
            self.out.push_str(":\n");
            for inst in &block.insts {
                self.out.push_str("  ");
                if let Some(dst) = inst.op.dst() {
                    let dst = self.var(dst);
                    put!(self, "{dst} = ");
                }
                self.op(&inst.op);
                self.out.push('\n');
            }
            self.out.push_str("  ");
            self.term(&block.term);
            self.out.push('\n');
        }
    }

    fn op(&mut self, op: &Op) {
        let text = match op {
            Op::Const { value, .. } => match value {
                Literal::Str(name) => format!("{:?}", self.text(*name)),
                Literal::Num(name) => self.text(*name).to_owned(),
                Literal::Bool(value) => value.to_string(),
                Literal::Null => "null".to_owned(),
                Literal::Other => "literal".to_owned(),
            },
            Op::Copy { src, .. } => self.var(*src),
            Op::Func { func, .. } => format!("func f{}", func.0),
            Op::Class { class, .. } => format!("class {}", class.0),
            Op::Global { name, .. } => format!("global {}", self.text(*name)),
            Op::LoadVar { cell, .. } => format!("load {}", self.cell(*cell)),
            Op::StoreVar { cell, value } => {
                format!("store {} = {}", self.cell(*cell), self.var(*value))
            }
            Op::This { .. } => "this".to_owned(),
            Op::GetField { obj, field, .. } => {
                format!("{}.{}", self.var(*obj), self.text(*field))
            }
            Op::SetField { obj, field, value } => format!(
                "{}.{} = {}",
                self.var(*obj),
                self.text(*field),
                self.var(*value)
            ),
            Op::GetIndex { obj, index, .. } => {
                format!("{}[{}]", self.var(*obj), self.var(*index))
            }
            Op::SetIndex { obj, index, value } => format!(
                "{}[{}] = {}",
                self.var(*obj),
                self.var(*index),
                self.var(*value)
            ),
            Op::Delete { obj, key: Ok(name) } => {
                format!("delete {}.{}", self.var(*obj), self.text(*name))
            }
            Op::Delete { obj, key: Err(key) } => {
                format!("delete {}[{}]", self.var(*obj), self.var(*key))
            }
            Op::Object { fields, .. } => {
                let fields: Vec<String> = fields
                    .iter()
                    .map(|(key, value)| match key {
                        Key::Name(name) => format!("{}: {}", self.text(*name), self.var(*value)),
                        Key::Computed(key) => format!("[{}]: {}", self.var(*key), self.var(*value)),
                        Key::Spread => format!("...{}", self.var(*value)),
                    })
                    .collect();
                format!("{{{}}}", fields.join(", "))
            }
            Op::Array { items, .. } => format!("[{}]", self.args(items)),
            Op::Concat { parts, .. } => format!("concat {}", self.vars(parts)),
            Op::Binary {
                op, left, right, ..
            } => {
                let op = match op {
                    BinOp::Eq => "==",
                    BinOp::Ne => "!=",
                    BinOp::Compare => "<>",
                    BinOp::Add => "+",
                    BinOp::Arith => "arith",
                    BinOp::Test => "test",
                    BinOp::Either => "either",
                };
                format!("{} {op} {}", self.var(*left), self.var(*right))
            }
            Op::Not { src, .. } => format!("!{}", self.var(*src)),
            Op::Phi { from, .. } => format!("phi {}", self.vars(from)),
            Op::Call {
                callee, args, kind, ..
            } => {
                let kind = match kind {
                    CallKind::Plain => "call",
                    CallKind::New => "new",
                    CallKind::Spawn => "spawn",
                    CallKind::Decorate => "decorate",
                };
                format!("{kind} {}({})", self.callee(callee), self.args(args))
            }
            Op::TaggedTemplate {
                tag,
                strings,
                values,
                ..
            } => {
                let strings: Vec<&str> = strings.iter().map(|s| self.text(*s)).collect();
                format!("tag {} {strings:?} {}", self.callee(tag), self.vars(values))
            }
            Op::Await { src, .. } => format!("await {}", self.var(*src)),
            Op::Element { of, keys, .. } => {
                let what = if *keys { "key" } else { "element" };
                format!("{what} of {}", self.var(*of))
            }
            Op::YieldValue { value, .. } => format!("yield {}", self.var(*value)),
            Op::Enter { resource, .. } => format!("enter {}", self.var(*resource)),
            Op::Exit { resource } => format!("exit {}", self.var(*resource)),
            Op::Catch { .. } => "catch".to_owned(),
            Op::Opaque { from, .. } => format!("opaque {}", self.vars(from)),
        };
        self.out.push_str(text.trim_end());
    }

    fn term(&mut self, term: &Term) {
        let text = match term {
            Term::Goto(block) => format!("goto b{}", block.0),
            Term::Branch {
                cond,
                then,
                otherwise,
            } => format!("if {} b{} else b{}", self.var(*cond), then.0, otherwise.0),
            Term::Multi(blocks) => {
                let blocks: Vec<String> = blocks.iter().map(|b| format!("b{}", b.0)).collect();
                format!("multi {}", blocks.join(" "))
            }
            Term::Return(None) => "return".to_owned(),
            Term::Return(Some(var)) => format!("return {}", self.var(*var)),
            Term::Throw(var) => format!("throw {}", self.var(*var)),
        };
        self.out.push_str(&text);
    }

    fn text(&self, name: Name) -> &'a str {
        // A broken module must still be printable: that is when one looks at it.
        if (name.0 as usize) < self.module.names.len() {
            self.module.names.text(name)
        } else {
            "<bad name>"
        }
    }

    fn var_of(&self, function: Option<&Function>, var: Var) -> String {
        let name = function
            .and_then(|f| f.vars.get(var.0 as usize))
            .and_then(|info| info.name);
        match name {
            Some(name) => format!("{}:{}", self.text(name), var.0),
            None => format!("t{}", var.0),
        }
    }

    fn var(&self, var: Var) -> String {
        self.var_of(self.function, var)
    }

    fn cell(&self, cell: Cell) -> String {
        let owner = self.module.functions.get(cell.owner.0 as usize);
        format!("{}@{}", self.var_of(owner, cell.var), cell.owner.0)
    }

    fn vars(&self, vars: &[Var]) -> String {
        let vars: Vec<String> = vars.iter().map(|v| self.var(*v)).collect();
        vars.join(", ")
    }

    fn args(&self, args: &[Arg]) -> String {
        let args: Vec<String> = args
            .iter()
            .map(|arg| {
                let name = arg
                    .name
                    .map(|n| format!("{}=", self.text(n)))
                    .unwrap_or_default();
                let spread = if arg.spread { "..." } else { "" };
                format!("{name}{spread}{}", self.var(arg.value))
            })
            .collect();
        args.join(", ")
    }

    fn callee(&self, callee: &Callee) -> String {
        match callee {
            Callee::Value(var) => self.var(*var),
            Callee::Method { obj, name } => format!("{}.{}", self.var(*obj), self.text(*name)),
            Callee::Super(None) => "super".to_owned(),
            Callee::Super(Some(name)) => format!("super.{}", self.text(*name)),
        }
    }

    fn ty(&self, ty: &TypeRef) -> String {
        match &ty.element {
            Some(element) => format!("{}<{}>", self.text(ty.name), self.ty(element)),
            None => self.text(ty.name).to_owned(),
        }
    }

    fn imported(&self, name: &ImportedName) -> String {
        match name {
            ImportedName::Default => "default".to_owned(),
            ImportedName::Namespace => "*".to_owned(),
            ImportedName::Named(name) => self.text(*name).to_owned(),
        }
    }

    fn target(&mut self, target: Option<&Target>) {
        match target {
            None => {}
            Some(Target::Module(id)) => put!(self, " -> module {}", id.0),
            Some(Target::External(name)) => {
                let name = self.text(*name);
                put!(self, " -> {name}");
            }
        }
        self.out.push('\n');
    }
}
