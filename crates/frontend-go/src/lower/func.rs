//! Functions, methods and closures: a state of their own, parameters first.

use toctou_core::ir::{
    ClassId, Extension, FuncId, FuncKind, Op, Term, TypeRef, Var, VarInfo, VarKind,
};
use toctou_core::{Name, Span};
use tree_sitter::Node;

use super::types::is_exported;
use super::vars::Slot;
use super::{Lower, State, children, field, fields, span};

/// A parameter or result as written.
struct Formal {
    name: Option<Name>,
    ty: Option<TypeRef>,
    at: Span,
    rest: bool,
}

impl<'t> Lower<'t> {
    pub(super) fn function_declaration(&mut self, node: Node<'_>) {
        let name = self.name_of(node, "<function>");
        let at = span(node);
        let func = self.function(node, name, FuncKind::Function, None);
        let dst = self.temp();
        self.emit(at, Op::Func { dst, func });
        if self.names.text(name) == "init" {
            // Run by the runtime, before everything else.
            let result = self.temp();
            self.emit(
                at,
                Op::Call {
                    dst: result,
                    callee: toctou_core::ir::Callee::Value(dst),
                    args: Box::default(),
                    kind: toctou_core::ir::CallKind::Plain,
                },
            );
            return;
        }
        self.write_name(name, dst, at);
        if self.names.text(name) == "main" && self.is_program {
            let result = self.temp();
            self.emit(
                at,
                Op::Call {
                    dst: result,
                    callee: toctou_core::ir::Callee::Value(dst),
                    args: Box::default(),
                    kind: toctou_core::ir::CallKind::Plain,
                },
            );
        }
    }

    pub(super) fn method_declaration(&mut self, node: Node<'_>) {
        let name = self.name_of(node, "<method>");
        let receiver = field(node, "receiver")
            .and_then(|list| children(list).into_iter().next())
            .and_then(|declaration| {
                let written = field(declaration, "type")?;
                let ty = self.type_ref(written)?;
                let ty = self.pointee(ty);
                let name = field(declaration, "name").map(|n| self.name(n));
                // A method that changes its own copy, or a copy of that.
                let copies = written.kind() != "pointer_type"
                    && name.is_some()
                    && self.captures.changes_any();
                Some((name, ty, copies))
            });
        let class = receiver
            .as_ref()
            .and_then(|(_, ty, _)| self.classes.get(&ty.name).copied());
        let mark = self.open_scope();
        if let Some((Some(receiver), _, copies)) = &receiver {
            self.bind(*receiver, Slot::This);
            self.own_receiver = copies.then_some(*receiver);
        }
        let func = self.function(node, name, FuncKind::Method, class);
        self.close_scope(mark);
        match (class, receiver) {
            (Some(class), _) => {
                self.module.classes[class.0 as usize]
                    .methods
                    .push((name, func));
            }
            // The type is declared in another file of the package.
            (None, Some((_, ty, _))) => self.module.extensions.push(Extension {
                class: ty.name,
                method: name,
                func,
                target: None,
            }),
            (None, None) => {}
        }
    }

    /// A method without a body: what it gives back is known by its type alone.
    pub(super) fn interface_method(&mut self, class: ClassId, node: Node<'_>) {
        let name = self.name_of(node, "<method>");
        let at = span(node);
        let func = self.new_function(name, FuncKind::Method, at);
        self.enter(func);
        let formals = match field(node, "parameters") {
            Some(list) => self.formals(list),
            None => Vec::new(),
        };
        let mark = self.open_scope();
        let params = self.bind_params(formals);
        let results = self.result_formals(node);
        let values: Vec<Var> = results
            .into_iter()
            .map(|formal| {
                self.f.var(VarInfo {
                    name: None,
                    kind: VarKind::Let,
                    captured: false,
                    lent: false,
                    word: false,
                    ty: formal.ty.map(Box::new),
                })
            })
            .collect();
        let value = self.tuple(at, values);
        self.end(at, Term::Return(value));
        self.close_scope(mark);
        self.leave(func, params, false);
        let function = &mut self.module.functions[func.0 as usize];
        function.class = Some(class);
        function.parent = Some(FuncId(0));
        self.module.classes[class.0 as usize]
            .methods
            .push((name, func));
    }

    pub(super) fn closure(&mut self, node: Node<'_>) -> Var {
        let name = self.names.intern("<anonymous>");
        let func = self.function(node, name, FuncKind::Arrow, None);
        let dst = self.temp();
        self.emit(span(node), Op::Func { dst, func });
        dst
    }

    fn enter(&mut self, id: FuncId) {
        // A closure in a package variable's initialiser is one deep, as it is in a function.
        let closure = self.module.functions[id.0 as usize].kind == FuncKind::Arrow;
        let depth = self.f.literal_depth + u32::from(closure);
        let outer = std::mem::replace(&mut self.f, State::new(id, depth));
        self.outer.push(outer);
    }

    fn leave(&mut self, id: FuncId, params: Vec<Var>, has_rest: bool) {
        let Some(outer) = self.outer.pop() else {
            return;
        };
        let done = std::mem::replace(&mut self.f, outer);
        let function = &mut self.module.functions[id.0 as usize];
        function.vars = done.vars;
        function.blocks = done.blocks;
        function.params = params;
        function.has_rest = has_rest;
    }

    /// The top-level code is done.
    pub(super) fn finish(&mut self, init: FuncId) {
        let done = std::mem::replace(&mut self.f, State::new(init, 0));
        let function = &mut self.module.functions[init.0 as usize];
        function.vars = done.vars;
        function.blocks = done.blocks;
    }

    fn function(
        &mut self,
        node: Node<'_>,
        name: Name,
        kind: FuncKind,
        class: Option<ClassId>,
    ) -> FuncId {
        let at = span(node);
        let id = self.new_function(name, kind, at);
        let parent = self.f.id;
        let return_type = match field(node, "result") {
            Some(result) if result.kind() != "parameter_list" => self.type_ref(result),
            Some(_) => {
                let formals = self.result_formals(node);
                formals.into_iter().next().and_then(|first| first.ty)
            }
            None => None,
        };
        let exported = kind != FuncKind::Arrow && is_exported(self.names.text(name));
        let name_span = match field(node, "name") {
            Some(name) => span(name),
            // `func` itself.
            None => Span::new(at.start, (at.start + 4).min(at.end)),
        };
        {
            let function = &mut self.module.functions[id.0 as usize];
            function.parent = Some(parent);
            function.class = class;
            function.exported = exported;
            function.return_type = return_type;
            function.name_span = name_span;
        }
        let label = self.label.take();
        self.enter(id);
        let mark = self.open_scope();
        let formals = match field(node, "parameters") {
            Some(list) => self.formals(list),
            None => Vec::new(),
        };
        let has_rest = formals.last().is_some_and(|f| f.rest);
        let params = self.bind_params(formals);
        if let Some(receiver) = self.own_receiver.take() {
            let this = self.load(Slot::This, at);
            let copy = self.copied(at, this);
            let slot = self.declare(receiver, None, VarKind::Let);
            self.store(slot, copy, at);
        }
        let results = self.result_formals(node);
        self.f.result_count = results.len();
        let by_value = |ty: &TypeRef| ty.element.is_none();
        self.f.result_copies = results
            .iter()
            .map(|r| r.ty.as_ref().is_some_and(by_value))
            .collect();
        for result in results {
            let Some(name) = result.name else { continue };
            let slot = self.declare(name, result.ty, VarKind::Let);
            let zero = self.null(result.at);
            self.store(slot, zero, result.at);
            self.f.results.push(name);
        }
        if self.f.results.len() < self.f.result_count {
            self.f.results.clear();
        }
        if let Some(body) = field(node, "body") {
            self.f.defers_any = self.may_defer(body) && defers(body);
            if self.depth >= super::MAX_DEPTH {
                self.too_deep(at);
            } else {
                self.depth += 1;
                // Parameters and body are one scope.
                self.statement_list(body);
                self.depth -= 1;
            }
            let end = Span::new(at.end.saturating_sub(1), at.end);
            if self.reachable() {
                self.leave_function(end, None);
            }
            self.run_deferred(end);
        }
        self.close_scope(mark);
        self.leave(id, params, has_rest);
        self.label = label;
        id
    }

    fn formals(&mut self, list: Node<'_>) -> Vec<Formal> {
        let mut out = Vec::new();
        for declaration in children(list) {
            let rest = declaration.kind() == "variadic_parameter_declaration";
            if !rest && declaration.kind() != "parameter_declaration" {
                continue;
            }
            let ty = field(declaration, "type").and_then(|ty| self.type_ref(ty));
            let names = fields(declaration, "name");
            let at = span(declaration);
            if names.is_empty() {
                out.push(Formal {
                    name: None,
                    ty: ty.clone(),
                    at,
                    rest,
                });
            }
            for node in names {
                let name = self.name(node);
                out.push(Formal {
                    name: Some(name),
                    ty: ty.clone(),
                    at: span(node),
                    rest,
                });
            }
        }
        out
    }

    fn result_formals(&mut self, node: Node<'_>) -> Vec<Formal> {
        match field(node, "result") {
            Some(list) if list.kind() == "parameter_list" => self.formals(list),
            Some(one) => {
                let ty = self.type_ref(one);
                vec![Formal {
                    name: None,
                    ty,
                    at: span(one),
                    rest: false,
                }]
            }
            None => Vec::new(),
        }
    }

    /// Parameter registers first, then a cell for each that a closure uses.
    fn bind_params(&mut self, formals: Vec<Formal>) -> Vec<Var> {
        let params: Vec<Var> = formals
            .iter()
            .map(|formal| {
                self.f.var(VarInfo {
                    name: formal.name,
                    kind: VarKind::Param,
                    captured: false,
                    lent: false,
                    word: false,
                    ty: if formal.rest {
                        None
                    } else {
                        formal.ty.clone().map(Box::new)
                    },
                })
            })
            .collect();
        for (formal, &param) in formals.iter().zip(&params) {
            let Some(name) = formal.name else { continue };
            let captured = self
                .captures
                .deeper(self.names.text(name), self.f.literal_depth);
            if captured {
                let slot = self.declare(name, formal.ty.clone(), VarKind::Let);
                self.store(slot, param, formal.at);
            } else {
                self.bind(name, Slot::Register(self.f.id, param));
            }
        }
        params
    }

    /// What a function gives back: nothing, one value, or several in one.
    pub(super) fn tuple(&mut self, at: Span, values: Vec<Var>) -> Option<Var> {
        match values.as_slice() {
            [] => None,
            [one] => Some(*one),
            _ => {
                let dst = self.temp();
                let fields = values
                    .into_iter()
                    .enumerate()
                    .map(|(i, value)| {
                        let name = self.names.intern(&format!("#{i}"));
                        (toctou_core::ir::Key::Name(name), value)
                    })
                    .collect();
                self.emit(at, Op::Object { dst, fields });
                Some(dst)
            }
        }
    }
}

impl Lower<'_> {
    /// Most bodies have no such word, and need not be walked through. Where the parser had to
    /// guess, a word may stand for another.
    fn may_defer(&self, body: Node<'_>) -> bool {
        let text = self.text.get(body.byte_range());
        body.has_error() || text.is_none_or(|text| text.contains("defer"))
    }
}

/// Does a body defer anything, closures not counted?
fn defers(body: Node<'_>) -> bool {
    let mut cursor = body.walk();
    loop {
        let kind = cursor.node().kind();
        if kind == "defer_statement" {
            return true;
        }
        if kind != "func_literal" && cursor.goto_first_child() {
            continue;
        }
        loop {
            if cursor.node() == body {
                return false;
            }
            if cursor.goto_next_sibling() {
                break;
            }
            if !cursor.goto_parent() {
                return false;
            }
        }
    }
}
