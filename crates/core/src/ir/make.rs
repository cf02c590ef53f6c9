//! Empty modules, functions, blocks and registers, for front ends to fill.

use super::{
    Block, BlockId, Detours, Dispatch, FuncKind, Function, Module, Term, VarInfo, VarKind,
};
use crate::names::{Name, Names};
use crate::source::{FileId, Span};

impl Module {
    pub fn new(file: FileId, dispatch: Dispatch) -> Self {
        Self {
            file,
            names: Names::new(),
            functions: Vec::new(),
            classes: Vec::new(),
            imports: Vec::new(),
            exports: Vec::new(),
            star_exports: Vec::new(),
            types: Vec::new(),
            extensions: Vec::new(),
            directives: Vec::new(),
            opaque: 0,
            closed: false,
            dispatch,
        }
    }
}

impl Function {
    /// A function whose body is still to come.
    pub fn new(name: Name, kind: FuncKind, at: Span) -> Self {
        Self {
            name,
            kind,
            parent: None,
            class: None,
            is_async: false,
            is_generator: false,
            exported: false,
            params: Vec::new(),
            has_rest: false,
            vars: Vec::new(),
            blocks: Vec::new(),
            detours: Detours::default(),
            return_type: None,
            decorators: Vec::new(),
            span: at,
            name_span: at,
        }
    }
}

impl Block {
    /// No instructions, and the function ends here.
    pub fn new(handler: Option<BlockId>) -> Self {
        Self {
            insts: Vec::new(),
            term: Term::Return(None),
            term_span: Span::default(),
            handler,
        }
    }
}

impl VarInfo {
    pub fn temp() -> Self {
        Self {
            name: None,
            kind: VarKind::Temp,
            captured: false,
            lent: false,
            word: false,
            ty: None,
        }
    }
}
