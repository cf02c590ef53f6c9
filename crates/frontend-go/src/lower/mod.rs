//! Syntax tree to code IR.
//!
//! One [`Lower`] per file, one [`State`] per function being lowered. The tree
//! is walked once, by recursion over nesting and by loops over what is merely
//! long (operator and `else if` chains); past [`MAX_DEPTH`] a construct
//! becomes [`Op::Opaque`].
//!
//! What is Go's own, in the IR's terms:
//!
//! * Several results are one object with the fields `#0`, `#1` …; a call that
//!   a library answers stands for its first result.
//! * The receiver is `this`; a closure is an arrow.
//! * `defer` is code before the return, in reverse order; every way out of the
//!   function leads through the part of it that is registered there.
//! * A channel is a value that the built-ins `chan.send` and `chan.receive` use.

mod assign;
mod call;
mod control;
mod decl;
mod defer;
mod expr;
mod func;
mod literal;
mod stmt;
mod types;
mod vars;

pub(crate) use vars::SIBLING;

use rustc_hash::FxHashMap;
use toctou_core::ir::{
    Block, BlockId, Dispatch, FuncId, FuncKind, Function, Inst, Literal, Module, Op, Term, Var,
    VarInfo,
};
use toctou_core::{FileId, Name, Names, Span};
use tree_sitter::Node;

use crate::captures::Captures;
use vars::Slot;

/// Levels of nesting that are lowered. Hand-written code stays below 50.
pub(crate) const MAX_DEPTH: u32 = 200;

pub(crate) struct Lower<'t> {
    text: &'t str,
    names: Names,
    module: Module,
    /// The function being lowered, and those it stands in.
    f: State,
    outer: Vec<State>,
    depth: u32,
    captures: Captures<'t>,
    /// Local variables by name, innermost last, and the depth of their scopes.
    locals: FxHashMap<Name, Vec<(Slot, u32)>>,
    scope: u32,
    /// Names declared in open scopes, in order; scopes are cut off at their end.
    declared: Vec<Name>,
    /// What this file declares at package level, and the names of its imports.
    package: FxHashMap<Name, Var>,
    imported: FxHashMap<Name, Var>,
    /// Names that other files of the package declare.
    siblings: FxHashMap<Name, Var>,
    /// Types this file declares, by name.
    classes: FxHashMap<Name, toctou_core::ir::ClassId>,
    /// Value and position of `iota` in the constant being lowered.
    iota: Option<u32>,
    /// A label that stands before the next loop or switch.
    label: Option<Name>,
    /// A receiver that the method about to be lowered has a copy of.
    own_receiver: Option<Name>,
    /// Is this `package main`?
    is_program: bool,
    /// Has the types table an entry for this name?
    typed: rustc_hash::FxHashSet<Name>,
}

/// One function under construction.
struct State {
    id: FuncId,
    vars: Vec<VarInfo>,
    blocks: Vec<Block>,
    /// Does a jump lead to the block? May be shorter than `blocks`.
    reached: Vec<bool>,
    /// `None`: the code that comes next cannot be reached.
    current: Option<BlockId>,
    /// Where `break` and `continue` go.
    targets: Vec<control::Jump>,
    labels: FxHashMap<Name, BlockId>,
    defers: Vec<defer::Defer>,
    /// Registers of results that a `defer` holds up.
    returned: Vec<Var>,
    /// The block that returns, after all that was deferred.
    exit: Option<BlockId>,
    /// Named results.
    results: Vec<Name>,
    result_count: usize,
    /// Which of them are structs, not pointers.
    result_copies: Vec<bool>,
    /// Does the function's body defer anything?
    defers_any: bool,
    /// How many closures deep it stands.
    literal_depth: u32,
}

fn span(node: Node<'_>) -> Span {
    Span::new(node.start_byte() as u32, node.end_byte() as u32)
}

pub(crate) fn lower(file: FileId, path: &str, text: &str, root: Node<'_>) -> Module {
    let mut lower = Lower {
        text,
        names: Names::new(),
        module: Module {
            directives: crate::directives::collect(text, root),
            ..Module::new(file, Dispatch::Anywhere)
        },
        f: State::new(FuncId(0), 0),
        outer: Vec::new(),
        depth: 0,
        captures: Captures::default(),
        locals: FxHashMap::default(),
        scope: 0,
        declared: Vec::new(),
        package: FxHashMap::default(),
        imported: FxHashMap::default(),
        siblings: FxHashMap::default(),
        classes: FxHashMap::default(),
        iota: None,
        label: None,
        own_receiver: None,
        is_program: false,
        typed: rustc_hash::FxHashSet::default(),
    };
    lower.file(path, root);
    lower.module.names = lower.names;
    lower.module
}

impl State {
    fn new(id: FuncId, literal_depth: u32) -> Self {
        Self {
            id,
            vars: Vec::with_capacity(16),
            blocks: vec![Block::new(None)],
            reached: Vec::new(),
            current: Some(BlockId(0)),
            targets: Vec::new(),
            labels: FxHashMap::default(),
            defers: Vec::new(),
            returned: Vec::new(),
            exit: None,
            results: Vec::new(),
            result_count: 0,
            result_copies: Vec::new(),
            defers_any: false,
            literal_depth,
        }
    }

    fn var(&mut self, info: VarInfo) -> Var {
        let var = Var(self.vars.len() as u32);
        self.vars.push(info);
        var
    }

    fn lend(&mut self, address: Var) {
        if let Some(info) = self.vars.get_mut(address.0 as usize) {
            info.lent = true;
        }
    }
}

/// Registers, instructions and blocks.
impl<'t> Lower<'t> {
    fn text(&self, node: Node<'_>) -> &'t str {
        self.text.get(node.byte_range()).unwrap_or_default()
    }

    fn name(&mut self, node: Node<'_>) -> Name {
        let text = self.text(node);
        self.names.intern(text)
    }

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

    fn null(&mut self, span: Span) -> Var {
        self.constant(span, Literal::Null)
    }

    fn opaque(&mut self, span: Span, from: Vec<Var>) -> Var {
        let dst = self.temp();
        self.emit(span, Op::Opaque { dst, from });
        dst
    }

    fn copy(&mut self, span: Span, src: Var) -> Var {
        let dst = self.temp();
        self.emit(span, Op::Copy { dst, src });
        dst
    }

    fn global(&mut self, span: Span, name: &str) -> Var {
        let name = self.names.intern(name);
        let dst = self.temp();
        self.emit(span, Op::Global { dst, name });
        dst
    }

    fn get_field(&mut self, span: Span, obj: Var, field: Name) -> Var {
        let dst = self.temp();
        self.emit(span, Op::GetField { dst, obj, field });
        dst
    }

    /// Result `index` of a call that gives several.
    fn component(&mut self, span: Span, tuple: Var, index: usize) -> Var {
        let field = self.names.intern(&format!("#{index}"));
        self.get_field(span, tuple, field)
    }

    /// Past the nesting limit: one instruction for all of it, and counted.
    #[cold]
    fn too_deep(&mut self, span: Span) -> Var {
        self.module.opaque += 1;
        self.opaque(span, Vec::new())
    }

    fn block(&mut self) -> BlockId {
        let id = BlockId(self.f.blocks.len() as u32);
        self.f.blocks.push(Block::new(None));
        id
    }

    /// Ends the current block, if it can be reached at all.
    fn end(&mut self, span: Span, term: Term) {
        let Some(current) = self.f.current.take() else {
            return;
        };
        for to in term.successors() {
            let to = to.0 as usize;
            if self.f.reached.len() <= to {
                self.f.reached.resize(to + 1, false);
            }
            self.f.reached[to] = true;
        }
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

/// Children that matter: no punctuation, no comments.
fn children<'a>(node: Node<'a>) -> Vec<Node<'a>> {
    let mut cursor = node.walk();
    node.named_children(&mut cursor)
        .filter(|child| child.kind() != "comment")
        .collect()
}

fn fields<'a>(node: Node<'a>, field: &str) -> Vec<Node<'a>> {
    let mut cursor = node.walk();
    node.children_by_field_name(field, &mut cursor)
        .filter(Node::is_named)
        .collect()
}

fn field<'a>(node: Node<'a>, name: &str) -> Option<Node<'a>> {
    crate::fields::child(node, name)
}
