//! Syntax tree to code IR.
//!
//! One [`Lower`] per file, one [`State`] per function being lowered. The tree
//! is walked by recursion over nesting; past [`MAX_DEPTH`] a construct becomes
//! [`Op::Opaque`].

mod assign;
mod call;
mod carried;
mod class;
mod comprehension;
mod expr;
mod finally;
mod function;
mod given;
mod logic;
mod loops;
mod matching;
mod module;
mod stmt;
mod vars;

use ruff_python_ast::Stmt;
use ruff_text_size::{Ranged, TextRange};
use rustc_hash::{FxHashMap, FxHashSet};
use toctou_core::ir::{
    Arg, Block, BlockId, CallKind, Callee, ClassId, Detours, Dispatch, FuncId, FuncKind, Function,
    Inst, Literal, Module, Op, Term, Var, VarInfo,
};
use toctou_core::{FileId, Name, Names, Span};

use crate::scope::Scopes;
use finally::Frame;
pub(crate) use given::maker_of;

/// Levels of nesting that are lowered. Python itself gives up at 200 brackets
/// and 100 levels of indentation.
pub(crate) const MAX_DEPTH: u32 = 200;

pub(crate) struct Lower<'a> {
    text: &'a str,
    scopes: Scopes<'a>,
    /// The function being lowered, and those it stands in.
    f: State<'a>,
    outer: Vec<State<'a>>,
    names: Names,
    module: Module,
    depth: u32,
    /// Imports made inside functions: specifier and name to import register.
    imports: FxHashMap<(Name, Option<Name>), Var>,
    /// Names of types that an import brought.
    typed: FxHashSet<Name>,
    /// Names for what a framework makes, and the variables that hold who makes it.
    makers: Vec<(Name, Var)>,
    /// Names of the methods of this file's classes.
    methods: FxHashMap<&'a str, Vec<&'a str>>,
    /// Variables for what a framework carries to all handlers.
    kept: Vec<(&'static str, toctou_core::ir::Cell)>,
}

/// One function under construction.
struct State<'a> {
    id: FuncId,
    /// Position in [`Scopes::list`].
    scope: usize,
    vars: Vec<VarInfo>,
    blocks: Vec<Block>,
    /// `None`: the code that comes next cannot be reached.
    current: Option<BlockId>,
    /// Where a throw goes from here.
    handler: Option<BlockId>,
    frames: Vec<Frame>,
    /// Positions of the `finally` frames in `frames`.
    finallies: Vec<usize>,
    detours: Detours,
    /// Value of a `return` that a `finally` holds up.
    returned: Option<Var>,
    /// What the method calls its object.
    this: Option<&'a str>,
    class: Option<ClassId>,
    /// Exceptions being handled, for a bare `raise`.
    caught: Vec<Var>,
    /// Names of the class bodies being run, innermost last.
    class_names: Vec<FxHashMap<&'a str, Var>>,
}

impl State<'_> {
    fn new(id: FuncId, scope: usize) -> Self {
        Self {
            id,
            scope,
            vars: Vec::with_capacity(16),
            blocks: vec![Block::new(None)],
            current: Some(BlockId(0)),
            handler: None,
            frames: Vec::new(),
            finallies: Vec::new(),
            detours: Detours::default(),
            returned: None,
            this: None,
            class: None,
            caught: Vec::new(),
            class_names: Vec::new(),
        }
    }

    fn var(&mut self, info: VarInfo) -> Var {
        let var = Var(self.vars.len() as u32);
        self.vars.push(info);
        var
    }
}

fn span(range: TextRange) -> Span {
    Span::new(range.start().to_u32(), range.end().to_u32())
}

fn at(node: &impl Ranged) -> Span {
    span(node.range())
}

pub(crate) fn lower<'a>(
    file: FileId,
    text: &'a str,
    body: &'a [Stmt],
    scopes: Scopes<'a>,
) -> Module {
    let mut lower = Lower {
        text,
        scopes,
        f: State::new(FuncId(0), 0),
        outer: Vec::new(),
        names: Names::new(),
        module: Module::new(
            file,
            Dispatch::Threads {
                handlers: Some(false),
            },
        ),
        depth: 0,
        imports: FxHashMap::default(),
        typed: FxHashSet::default(),
        makers: Vec::new(),
        methods: carried::methods(body),
        kept: Vec::new(),
    };
    lower.program(body);
    lower.module.names = lower.names;
    lower.module
}

/// Registers, instructions and blocks.
impl<'a> Lower<'a> {
    fn temp(&mut self) -> Var {
        self.f.var(VarInfo::temp())
    }

    fn emit(&mut self, span: Span, op: Op) {
        let Some(current) = self.f.current else {
            return;
        };
        if let Some(block) = self.f.blocks.get_mut(current.0 as usize) {
            block.insts.push(Inst { op, span });
        }
    }

    fn constant(&mut self, span: Span, value: Literal) -> Var {
        let dst = self.temp();
        self.emit(span, Op::Const { dst, value });
        dst
    }

    fn string(&mut self, span: Span, text: &str) -> Var {
        let name = self.names.intern(text);
        self.constant(span, Literal::Str(name))
    }

    fn null(&mut self, span: Span) -> Var {
        self.constant(span, Literal::Null)
    }

    fn opaque(&mut self, span: Span, from: Vec<Var>) -> Var {
        let dst = self.temp();
        self.emit(span, Op::Opaque { dst, from });
        dst
    }

    fn phi(&mut self, span: Span, from: Vec<Var>) -> Var {
        let dst = self.temp();
        self.emit(span, Op::Phi { dst, from });
        dst
    }

    fn get_field(&mut self, span: Span, obj: Var, field: &str) -> Var {
        let field = self.names.intern(field);
        let dst = self.temp();
        self.emit(span, Op::GetField { dst, obj, field });
        dst
    }

    fn this(&mut self, span: Span) -> Var {
        let dst = self.temp();
        self.emit(span, Op::This { dst });
        dst
    }

    fn global(&mut self, span: Span, name: &str) -> Var {
        let name = self.names.intern(name);
        let dst = self.temp();
        self.emit(span, Op::Global { dst, name });
        dst
    }

    fn awaited(&mut self, span: Span, src: Var) -> Var {
        let dst = self.temp();
        self.emit(span, Op::Await { dst, src });
        dst
    }

    /// `obj.name(args)`, where the language calls a method of its own accord.
    fn method_call(&mut self, span: Span, obj: Var, name: &str, args: &[Var]) -> Var {
        let name = self.names.intern(name);
        self.call_op(span, Callee::Method { obj, name }, args, CallKind::Plain)
    }

    fn call_op(&mut self, span: Span, callee: Callee, args: &[Var], kind: CallKind) -> Var {
        let dst = self.temp();
        let args = args
            .iter()
            .map(|&value| Arg {
                value,
                spread: false,
                name: None,
            })
            .collect();
        self.emit(
            span,
            Op::Call {
                dst,
                callee,
                args,
                kind,
            },
        );
        dst
    }

    /// Past the nesting limit: one instruction for all of it, and counted.
    #[cold]
    fn too_deep(&mut self, span: Span) -> Var {
        self.module.opaque += 1;
        self.opaque(span, Vec::new())
    }

    fn block(&mut self) -> BlockId {
        self.block_under(self.f.handler)
    }

    fn block_under(&mut self, handler: Option<BlockId>) -> BlockId {
        let id = BlockId(self.f.blocks.len() as u32);
        self.f.blocks.push(Block::new(handler));
        id
    }

    /// Ends the current block, if it can be reached at all.
    fn end(&mut self, span: Span, term: Term) {
        let Some(current) = self.f.current.take() else {
            return;
        };
        if let Some(block) = self.f.blocks.get_mut(current.0 as usize) {
            block.term = term;
            block.term_span = span;
        }
    }

    fn goto(&mut self, span: Span, target: BlockId) {
        self.end(span, Term::Goto(target));
    }

    fn start(&mut self, block: BlockId) {
        self.f.current = Some(block);
    }

    fn reachable(&self) -> bool {
        self.f.current.is_some()
    }

    /// Makes room for a function, so that its id is known while it is lowered.
    fn new_function(&mut self, name: Name, kind: FuncKind, at: Span) -> FuncId {
        let id = FuncId(self.module.functions.len() as u32);
        self.module.functions.push(Function::new(name, kind, at));
        id
    }
}
