//! The tree of one file to code IR.
//!
//! Three things of the language decide how. Errors are values here, but they
//! travel as exceptions do elsewhere: `return Err(e)` and `bail!` are throws,
//! and `?` on a call needs no code of its own. `Some(x)`, `Ok(x)` and the
//! pointers are the value they hold, `None` is null. And values are dropped at
//! the end of their scope: for those that may hold something (a lock's guard, a
//! transaction) there is an [`Op::Exit`] on every ordinary way out; on the way
//! of an error the function is left, and its guards with it.

mod block;
mod calls;
mod captures;
mod control;
mod expr;
mod function;
mod guards;
mod items;
mod macros;
mod paths;
mod pattern;
mod uses;

pub(crate) use paths::is_type_name;

use std::rc::Rc;

use rustc_hash::{FxHashMap, FxHashSet};
use toctou_core::ir::{
    Block, BlockId, Cell, Class, ClassId, Detours, Dispatch, ExportTarget, Extension, FuncId,
    FuncKind, Function, Import, ImportedName, Inst, Literal, Module, Op, Target, Term, TypeDef,
    TypeRef, Var, VarInfo, VarKind,
};
use toctou_core::{FileId, Name, Names, Span};

use crate::spans::Places;

/// Expressions and statements inside each other; deeper ones are left out.
pub(crate) const MAX_DEPTH: u32 = 200;

pub(crate) fn lower(
    file: FileId,
    path: &str,
    text: &str,
    places: Places<'_>,
    tree: &syn::File,
) -> Module {
    let mut lower = Lower::new(path, text, places);
    lower.file(tree);
    lower.finish(file)
}

/// Something that a name at item level stands for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Item {
    /// Register of function 0 that holds it; none for a type alias.
    pub(super) var: Option<Var>,
    /// Its name in [`Module::types`], if it is a type or may be one.
    pub(super) ty: Option<Name>,
    /// The class in this file.
    pub(super) class: Option<ClassId>,
}

/// A local variable.
#[derive(Clone, Debug)]
pub(super) struct Local {
    pub(super) name: Name,
    pub(super) var: Var,
    /// It holds a guard: `*x` is what the guard protects.
    pub(super) guard: bool,
    /// … which is dropped under this register.
    pub(super) held: Option<Var>,
    /// It came out of what a guard protects.
    pub(super) taken: bool,
    /// It is an `async` block that has not begun.
    pub(super) runs: bool,
}

#[derive(Default)]
pub(super) struct Scope {
    pub(super) locals: Vec<Local>,
    /// Values that are dropped at the end, in the order they were made.
    pub(super) guards: Vec<Var>,
    /// Items and imports declared in a block.
    pub(super) items: Vec<(Name, Item)>,
}

/// A loop or a labelled block.
pub(super) struct Frame {
    pub(super) label: Option<Name>,
    /// `None` for a labelled block.
    pub(super) again: Option<BlockId>,
    pub(super) exit: Option<BlockId>,
    /// What `break value` sets.
    pub(super) value: Option<Var>,
    /// How many scopes stand round it.
    pub(super) scopes: usize,
}

/// What `?` does when there is nothing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Fails {
    /// The function gives back a `Result`, or we do not know.
    Throw,
    /// It gives back an `Option`.
    Null,
}

pub(crate) struct FuncState {
    pub(super) id: FuncId,
    pub(super) name: Name,
    pub(super) kind: FuncKind,
    pub(super) parent: Option<FuncId>,
    pub(super) class: Option<ClassId>,
    pub(super) is_async: bool,
    pub(super) exported: bool,
    pub(super) params: Vec<Var>,
    pub(super) vars: Vec<VarInfo>,
    pub(super) blocks: Vec<Block>,
    pub(super) current: Option<BlockId>,
    pub(super) scopes: Vec<Scope>,
    pub(super) frames: Vec<Frame>,
    /// Names that functions inside this one use.
    pub(super) captured: Rc<FxHashSet<String>>,
    /// Type parameters and the trait that each stands for.
    pub(crate) generics: Vec<(String, Option<TypeRef>)>,
    pub(super) return_type: Option<TypeRef>,
    pub(super) fails: Fails,
    pub(super) decorators: Vec<Name>,
    pub(super) span: Span,
    pub(super) name_span: Span,
}

pub(crate) struct Lower<'t> {
    pub(super) text: &'t str,
    pub(super) places: Places<'t>,
    pub(crate) names: Names,
    functions: Vec<Option<Function>>,
    pub(super) classes: Vec<Class>,
    pub(super) imports: Vec<Import>,
    import_of: FxHashMap<String, Var>,
    pub(super) import_path: FxHashMap<Var, Name>,
    /// Inline modules, by their path in the file.
    pub(super) inline: FxHashSet<Name>,
    pub(super) exports: Vec<(Name, ExportTarget)>,
    pub(super) star_exports: Vec<(Name, Option<Target>)>,
    pub(super) types: Vec<(Name, TypeDef)>,
    pub(super) extensions: Vec<Extension>,
    /// Attributes of structs, which mark their methods too.
    pub(super) class_marks: FxHashMap<ClassId, Vec<Name>>,
    /// What `Self` is, if it is declared in another file.
    pub(super) self_type: Option<syn::Type>,
    typed: FxHashSet<Name>,
    /// Items by the inline module that they are in, and their name.
    pub(super) items: FxHashMap<(Name, Name), Item>,
    /// Inline modules that we are in: `a::b`, or empty.
    pub(super) within: String,
    pub(crate) f: FuncState,
    pub(crate) outer: Vec<FuncState>,
    /// Where the variables of an or-pattern begin, while we are in one.
    pub(super) or_from: Option<usize>,
    pub(super) depth: u32,
    /// Macros inside each other: each is parsed again.
    pub(super) macros: u32,
    pub(super) opaque: u32,
}

impl<'t> Lower<'t> {
    fn new(path: &str, text: &'t str, places: Places<'t>) -> Self {
        let mut names = Names::new();
        let name = names.intern(path);
        let span = Span::new(0, text.len() as u32);
        let init = FuncState::new(FuncId(0), name, FuncKind::ModuleInit, None, span, span);
        let mut lower = Self {
            text,
            places,
            names,
            functions: vec![None],
            classes: Vec::new(),
            imports: Vec::new(),
            import_of: FxHashMap::default(),
            import_path: FxHashMap::default(),
            inline: FxHashSet::default(),
            exports: Vec::new(),
            star_exports: Vec::new(),
            types: Vec::new(),
            extensions: Vec::new(),
            class_marks: FxHashMap::default(),
            self_type: None,
            typed: FxHashSet::default(),
            items: FxHashMap::default(),
            within: String::new(),
            f: init,
            outer: Vec::new(),
            or_from: None,
            depth: 0,
            macros: 0,
            opaque: 0,
        };
        let entry = lower.block();
        lower.f.current = Some(entry);
        lower.f.scopes.push(Scope::default());
        lower
    }

    fn finish(mut self, file: FileId) -> Module {
        let at = Span::new(0, 0);
        self.end(at, Term::Return(None));
        let init = std::mem::replace(
            &mut self.f,
            FuncState::new(FuncId(0), Name(0), FuncKind::ModuleInit, None, at, at),
        );
        self.functions[0] = Some(init.done());
        // A function whose body was never reached cannot be here; keep the numbers anyway.
        let functions = self.functions.into_iter().flatten().collect();
        Module {
            file,
            names: self.names,
            functions,
            classes: self.classes,
            imports: self.imports,
            exports: self.exports,
            star_exports: self.star_exports,
            types: self.types,
            extensions: self.extensions,
            directives: crate::directives::collect(self.text),
            opaque: self.opaque,
            closed: false,
            dispatch: Dispatch::Guarded,
        }
    }

    // --- blocks and instructions ---

    pub(super) fn block(&mut self) -> BlockId {
        self.f.blocks.push(Block {
            insts: Vec::new(),
            term: Term::Return(None),
            term_span: self.f.span,
            handler: None,
        });
        BlockId(self.f.blocks.len() as u32 - 1)
    }

    pub(super) fn start(&mut self, block: BlockId) {
        self.f.current = Some(block);
    }

    pub(super) fn reachable(&self) -> bool {
        self.f.current.is_some()
    }

    pub(super) fn emit(&mut self, span: Span, op: Op) {
        if let Some(block) = self
            .f
            .current
            .and_then(|b| self.f.blocks.get_mut(b.0 as usize))
        {
            block.insts.push(Inst { op, span });
        }
    }

    /// Ends the current block.
    pub(super) fn end(&mut self, span: Span, term: Term) {
        if let Some(block) = self
            .f
            .current
            .take()
            .and_then(|b| self.f.blocks.get_mut(b.0 as usize))
        {
            block.term = term;
            block.term_span = span;
        }
    }

    pub(super) fn goto(&mut self, span: Span, to: BlockId) {
        self.end(span, Term::Goto(to));
    }

    pub(super) fn branch(&mut self, span: Span, cond: Var, then: BlockId, otherwise: BlockId) {
        self.end(
            span,
            Term::Branch {
                cond,
                then,
                otherwise,
            },
        );
    }

    pub(super) fn temp(&mut self) -> Var {
        self.f.var(VarKind::Temp, None)
    }

    pub(super) fn op(&mut self, span: Span, op: impl FnOnce(Var) -> Op) -> Var {
        let dst = self.temp();
        let op = op(dst);
        self.emit(span, op);
        dst
    }

    pub(super) fn null(&mut self, span: Span) -> Var {
        self.op(span, |dst| Op::Const {
            dst,
            value: Literal::Null,
        })
    }

    pub(super) fn string(&mut self, span: Span, text: &str) -> Var {
        let name = self.names.intern(text);
        self.op(span, |dst| Op::Const {
            dst,
            value: Literal::Str(name),
        })
    }

    pub(super) fn number(&mut self, span: Span, text: &str) -> Var {
        let name = self.names.intern(text);
        self.op(span, |dst| Op::Const {
            dst,
            value: Literal::Num(name),
        })
    }

    pub(super) fn copy(&mut self, span: Span, src: Var) -> Var {
        self.op(span, |dst| Op::Copy { dst, src })
    }

    pub(super) fn derived(&mut self, span: Span, from: Vec<Var>) -> Var {
        self.op(span, |dst| Op::Opaque { dst, from })
    }

    pub(super) fn too_deep(&mut self, span: Span) -> Var {
        self.opaque += 1;
        self.derived(span, Vec::new())
    }

    /// A variable that several branches set: the value of `if`, `match` and blocks.
    pub(super) fn result(&mut self) -> Var {
        self.f.var(VarKind::Let, None)
    }

    // --- functions ---

    pub(super) fn new_function(&mut self) -> FuncId {
        self.functions.push(None);
        FuncId(self.functions.len() as u32 - 1)
    }

    /// Begins a function; the current one waits in `outer`.
    pub(super) fn enter(&mut self, mut state: FuncState) {
        state.scopes.push(Scope::default());
        let old = std::mem::replace(&mut self.f, state);
        self.outer.push(old);
        let entry = self.block();
        self.f.current = Some(entry);
    }

    pub(super) fn leave(&mut self, span: Span) {
        if self.reachable() {
            self.end(span, Term::Return(None));
        }
        let Some(outer) = self.outer.pop() else {
            return;
        };
        let inner = std::mem::replace(&mut self.f, outer);
        let id = inner.id.0 as usize;
        if let Some(slot) = self.functions.get_mut(id) {
            *slot = Some(inner.done());
        }
    }

    // --- names at item level ---

    /// A register of function 0, which all functions see as a captured variable.
    pub(super) fn top_level(&mut self, name: Name, kind: VarKind) -> Var {
        let init = match self.outer.first_mut() {
            Some(init) => init,
            None => &mut self.f,
        };
        let var = init.var(kind, Some(name));
        if let Some(info) = init.vars.get_mut(var.0 as usize) {
            info.captured = true;
        }
        var
    }

    pub(super) fn set_top_level_type(&mut self, var: Var, ty: Option<TypeRef>) {
        let init = match self.outer.first_mut() {
            Some(init) => init,
            None => &mut self.f,
        };
        if let Some(info) = init.vars.get_mut(var.0 as usize) {
            info.ty = ty.map(Box::new);
        }
    }

    pub(super) fn load_top(&mut self, span: Span, var: Var) -> Var {
        let cell = Cell {
            owner: FuncId(0),
            var,
        };
        self.op(span, |dst| Op::LoadVar { dst, cell })
    }

    /// The register for a path that is looked up in other files or crates.
    pub(super) fn import(&mut self, path: &str) -> Var {
        if let Some(var) = self.import_of.get(path) {
            return *var;
        }
        let last = path.rsplit("::").next().unwrap_or(path);
        let name = self.names.intern(last);
        let var = self.top_level(name, VarKind::Import);
        let specifier = self.names.intern(path);
        self.imports.push(Import {
            var,
            specifier,
            // The resolver says which part of the path is the module's.
            name: ImportedName::Named(name),
            target: None,
        });
        self.import_of.insert(path.to_owned(), var);
        self.import_path.insert(var, specifier);
        var
    }

    pub(super) fn add_type(&mut self, name: Name, def: TypeDef) {
        if self.typed.insert(name) {
            self.types.push((name, def));
        }
    }
}

impl FuncState {
    pub(super) fn new(
        id: FuncId,
        name: Name,
        kind: FuncKind,
        parent: Option<FuncId>,
        span: Span,
        name_span: Span,
    ) -> Self {
        Self {
            id,
            name,
            kind,
            parent,
            class: None,
            is_async: false,
            exported: false,
            params: Vec::new(),
            vars: Vec::new(),
            blocks: Vec::new(),
            current: None,
            scopes: Vec::new(),
            frames: Vec::new(),
            captured: Rc::default(),
            generics: Vec::new(),
            return_type: None,
            fails: Fails::Throw,
            decorators: Vec::new(),
            span,
            name_span,
        }
    }

    pub(super) fn var(&mut self, kind: VarKind, name: Option<Name>) -> Var {
        self.vars.push(VarInfo {
            name,
            kind,
            captured: false,
            lent: false,
            word: false,
            ty: None,
        });
        Var(self.vars.len() as u32 - 1)
    }

    fn done(self) -> Function {
        Function {
            name: self.name,
            kind: self.kind,
            parent: self.parent,
            class: self.class,
            is_async: self.is_async,
            is_generator: false,
            exported: self.exported,
            params: self.params,
            has_rest: false,
            vars: self.vars,
            blocks: self.blocks,
            detours: Detours::default(),
            return_type: self.return_type,
            decorators: self.decorators,
            span: self.span,
            name_span: self.name_span,
        }
    }
}
