//! Syntax tree to code IR.
//!
//! One [`Lower`] per file, one [`State`] per function being lowered. The tree
//! is walked once, by recursion over nesting and by loops over everything
//! that is merely long (operator, member, `else if` chains), so that the
//! native stack grows with nesting alone; past [`MAX_DEPTH`] a construct
//! becomes [`Op::Opaque`].

mod assign;
mod bundle;
mod chain;
mod class;
mod commonjs;
mod expr;
mod finally;
mod function;
mod interface;
mod jsx;
mod logic;
mod loops;
mod module;
mod namespace;
mod pattern;
mod stmt;
mod vars;
mod webpack;

use oxc_ast::ast::{Expression, Program};
use oxc_semantic::Scoping;
use oxc_span::GetSpan;
use oxc_syntax::symbol::SymbolId;
use rustc_hash::FxHashMap;
use toctou_core::ir::{
    Block, BlockId, Cell, Class, ClassId, Detours, Dispatch, FuncId, FuncKind, Function, Inst,
    Literal, Module, Op, Term, Var, VarInfo,
};
use toctou_core::{Name, Names, Span};

use crate::parse::Job;
use crate::scope::Symbols;
use finally::Frame;

/// Levels of nesting that are lowered. Hand-written code stays below 50.
pub(crate) const MAX_DEPTH: u32 = 1_000;

pub(crate) struct Lower<'a, 's> {
    text: &'a str,
    scoping: &'s Scoping,
    symbols: Symbols,
    /// Per symbol: its register, once something touched it.
    slots: Vec<Option<Cell>>,
    /// Per function scope: position of its state, see [`Lower::state`].
    scope_state: Vec<u32>,
    /// The function being lowered, and those it stands in.
    f: State<'a>,
    outer: Vec<State<'a>>,
    names: Names,
    module: Module,
    depth: u32,
    /// Room for instructions of blocks to come; a finished block takes a copy
    /// of the right size with it.
    spare: Vec<Vec<Inst>>,
    /// Links of the member and call chains being lowered; a stack.
    links: Vec<chain::Link<'a>>,
    /// `require("x")` and `import("x")`: specifier to import register.
    requires: FxHashMap<Name, Var>,
    loaders: bundle::Loaders<'a>,
    webpack: Option<webpack::Getters>,
    /// Registers behind `exports.x = …`.
    cjs_exports: FxHashMap<Name, Var>,
    /// What the namespace being lowered exports.
    namespace: Option<Vec<(Name, SymbolId)>>,
    /// Dotted prefix of types declared in the namespace being lowered.
    namespace_prefix: String,
}

/// One function under construction.
struct State<'a> {
    id: FuncId,
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
    /// `this` in static initialisers, which run in the enclosing function.
    this: Option<Var>,
    /// Fields still to be initialised, in a constructor before `super()`.
    fields: Option<class::Fields<'a>>,
}

/// What a function value is called, and where that name stands.
#[derive(Clone, Copy)]
struct Hint {
    name: Name,
    span: Span,
    exported: bool,
}

fn span(span: oxc_span::Span) -> Span {
    Span::new(span.start, span.end)
}

/// Through parentheses and everything that only speaks to the type checker.
fn peel<'a, 'b>(mut expression: &'b Expression<'a>) -> &'b Expression<'a> {
    loop {
        expression = match expression {
            Expression::ParenthesizedExpression(e) => &e.expression,
            Expression::TSAsExpression(e) => &e.expression,
            Expression::TSSatisfiesExpression(e) => &e.expression,
            Expression::TSTypeAssertion(e) => &e.expression,
            Expression::TSNonNullExpression(e) => &e.expression,
            Expression::TSInstantiationExpression(e) => &e.expression,
            other => return other,
        };
    }
}

pub(crate) fn lower<'a>(job: Job<'a>, program: &'a Program<'a>, scoping: &Scoping) -> Module {
    let Job { file, text, .. } = job;
    let symbols = Symbols::new(program, scoping, job.inner_classes);
    let slots = vec![None; symbols.len()];
    let scope_state = vec![u32::MAX; symbols.scopes];
    let mut lower = Lower {
        text,
        scoping,
        symbols,
        slots,
        scope_state,
        f: State::new(FuncId(0), Vec::new()),
        outer: Vec::new(),
        names: Names::new(),
        module: Module::new(file, Dispatch::Await),
        depth: 0,
        spare: Vec::new(),
        links: Vec::new(),
        requires: FxHashMap::default(),
        loaders: FxHashMap::default(),
        webpack: webpack::Getters::of(text, program),
        cjs_exports: FxHashMap::default(),
        namespace: None,
        namespace_prefix: String::new(),
    };
    lower.program(program);
    lower.module.names = lower.names;
    lower.module
}

impl State<'_> {
    fn new(id: FuncId, insts: Vec<Inst>) -> Self {
        Self {
            id,
            vars: Vec::with_capacity(16),
            blocks: vec![Block {
                insts,
                ..Block::new(None)
            }],
            current: Some(BlockId(0)),
            handler: None,
            frames: Vec::new(),
            finallies: Vec::new(),
            detours: Detours::default(),
            returned: None,
            this: None,
            fields: None,
        }
    }

    fn var(&mut self, info: VarInfo) -> Var {
        let var = Var(self.vars.len() as u32);
        self.vars.push(info);
        var
    }
}

/// Registers, instructions and blocks.
impl<'a> Lower<'a, '_> {
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

    fn get_field(&mut self, span: Span, obj: Var, field: Name) -> Var {
        let dst = self.temp();
        self.emit(span, Op::GetField { dst, obj, field });
        dst
    }

    fn this(&mut self, span: Span) -> Var {
        if let Some(this) = self.f.this {
            return this;
        }
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
        let insts = self.spare.pop().unwrap_or_default();
        self.f.blocks.push(Block {
            insts,
            ..Block::new(handler)
        });
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

    /// The blocks of the function that is done, each with room for just its own.
    fn finished_blocks(&mut self, mut blocks: Vec<Block>) -> Vec<Block> {
        for block in &mut blocks {
            let exact = block.insts.drain(..).collect();
            let spare = std::mem::replace(&mut block.insts, exact);
            if spare.capacity() > 0 {
                self.spare.push(spare);
            }
        }
        blocks.shrink_to_fit();
        blocks
    }

    fn start(&mut self, block: BlockId) {
        self.f.current = Some(block);
    }

    fn reachable(&self) -> bool {
        self.f.current.is_some()
    }
}

impl Lower<'_, '_> {
    /// Makes room for a function, so that its id is known while it is lowered.
    fn new_function(&mut self, name: Name, kind: FuncKind, at: Span) -> FuncId {
        let id = FuncId(self.module.functions.len() as u32);
        self.module.functions.push(Function::new(name, kind, at));
        id
    }

    fn class_mut(&mut self, id: ClassId) -> Option<&mut Class> {
        self.module.classes.get_mut(id.0 as usize)
    }

    fn span_of(expression: &Expression<'_>) -> Span {
        span(expression.span())
    }
}
