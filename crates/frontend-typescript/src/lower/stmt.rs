//! Statements and variable declarations.

use oxc_ast::ast::{
    BindingPattern, Declaration, Function, IfStatement, LabeledStatement, Statement,
    VariableDeclaration, VariableDeclarationKind, VariableDeclarator,
};
use oxc_span::GetSpan;
use toctou_core::Span;
use toctou_core::ir::{BlockId, FuncKind, Op, Term, Var};

use super::finally::Frame;
use super::{Hint, Lower, MAX_DEPTH, span};
use crate::scope::EXPORTED;
use crate::types;

impl<'a> Lower<'a, '_> {
    /// A block's statements, with the functions declared among them first.
    pub(super) fn statements(&mut self, list: &'a [Statement<'a>]) {
        self.hoist(list);
        self.statement_list(list);
    }

    pub(super) fn statement_list(&mut self, list: &'a [Statement<'a>]) {
        for (index, statement) in list.iter().enumerate() {
            // Behind a `return` nothing runs; declared functions are hoisted already.
            if !self.reachable() {
                return;
            }
            if let Statement::VariableDeclaration(declaration) = statement
                && matches!(
                    declaration.kind,
                    VariableDeclarationKind::Using | VariableDeclarationKind::AwaitUsing
                )
            {
                let rest = list.get(index + 1..).unwrap_or_default();
                self.using_declaration(declaration, 0, rest);
                return;
            }
            self.statement(statement);
        }
    }

    /// Function declarations can be called before the line they stand on.
    pub(super) fn hoist(&mut self, list: &'a [Statement<'a>]) {
        for statement in list {
            let mut statement = statement;
            while let Statement::LabeledStatement(labeled) = statement {
                statement = &labeled.body;
            }
            match statement {
                Statement::FunctionDeclaration(function) => self.function_declaration(function),
                Statement::ExportDeclaration(export) => {
                    if let Declaration::FunctionDeclaration(function) = &export.declaration {
                        self.function_declaration(function);
                    }
                }
                Statement::ExportDefaultDeclaration(export) => self.hoist_default(export),
                _ => {}
            }
        }
    }

    pub(super) fn function_declaration(&mut self, function: &'a Function<'a>) {
        let Some(id) = &function.id else { return };
        let Some(symbol) = id.symbol_id.get() else {
            return;
        };
        let at = span(id.span);
        if function.body.is_none() {
            // An overload signature; a `declare function` lives elsewhere.
            if function.declare {
                let value = self.global(at, id.name.as_str());
                self.declare_symbol(symbol, value, at);
            }
            return;
        }
        let hint = Hint {
            name: self.names.intern(id.name.as_str()),
            span: at,
            exported: self.symbols.has(symbol, EXPORTED),
        };
        let value = self.function_value(function, FuncKind::Function, Some(hint));
        self.declare_symbol(symbol, value, at);
    }

    pub(super) fn statement(&mut self, statement: &'a Statement<'a>) {
        if self.depth >= MAX_DEPTH {
            self.too_deep(span(statement.span()));
            return;
        }
        self.depth += 1;
        self.statement_inner(statement);
        self.depth -= 1;
    }

    fn statement_inner(&mut self, statement: &'a Statement<'a>) {
        match statement {
            Statement::ExpressionStatement(s) => {
                self.expr(&s.expression);
            }
            Statement::BlockStatement(s) => self.statements(&s.body),
            Statement::IfStatement(s) => self.if_statement(s),
            Statement::ReturnStatement(s) => {
                let value = s.argument.as_ref().map(|e| self.expr(e));
                self.return_value(value, span(s.span));
            }
            Statement::ThrowStatement(s) => {
                let value = self.expr(&s.argument);
                self.end(span(s.span), Term::Throw(value));
            }
            Statement::TryStatement(s) => self.try_statement(s),
            Statement::WhileStatement(s) => self.while_statement(s),
            Statement::DoWhileStatement(s) => self.do_statement(s),
            Statement::ForStatement(s) => self.for_statement(s),
            Statement::ForOfStatement(s) => self.for_of(s),
            Statement::ForInStatement(s) => self.for_in(s),
            Statement::SwitchStatement(s) => self.switch(s),
            Statement::LabeledStatement(s) => self.labeled(s),
            Statement::BreakStatement(s) => {
                let label = s.label.as_ref().map(|l| l.name.as_str());
                if let Some(jump) = self.break_target(label) {
                    self.jump(jump, span(s.span));
                }
            }
            Statement::ContinueStatement(s) => {
                let label = s.label.as_ref().map(|l| l.name.as_str());
                if let Some(jump) = self.continue_target(label) {
                    self.jump(jump, span(s.span));
                }
            }
            Statement::WithStatement(s) => {
                self.expr(&s.object);
                self.statement(&s.body);
            }
            Statement::EmptyStatement(_) | Statement::DebuggerStatement(_) => {}
            other => {
                if let Some(declaration) = other.as_declaration() {
                    self.declaration(declaration);
                } else if let Some(module) = other.as_module_declaration() {
                    self.module_declaration(module);
                }
            }
        }
    }

    /// A chain of `else if` is a loop here: generated code has thousands of them.
    fn if_statement(&mut self, s: &'a IfStatement<'a>) {
        let at = span(s.span);
        // Where the branches meet again; none if all of them leave.
        let mut join = None;
        let mut node = s;
        loop {
            let then = self.block();
            let otherwise = match &node.alternate {
                Some(_) => self.block(),
                None => self.join(&mut join),
            };
            self.condition(&node.test, then, otherwise);
            self.start(then);
            self.nested(&node.consequent);
            self.goto_join(at, &mut join);
            match &node.alternate {
                None => break,
                Some(Statement::IfStatement(next)) => {
                    self.start(otherwise);
                    node = next;
                }
                Some(alternate) => {
                    self.start(otherwise);
                    self.nested(alternate);
                    self.goto_join(at, &mut join);
                    break;
                }
            }
        }
        self.f.current = join;
    }

    fn join(&mut self, join: &mut Option<BlockId>) -> BlockId {
        match *join {
            Some(block) => block,
            None => *join.insert(self.block()),
        }
    }

    fn goto_join(&mut self, at: Span, join: &mut Option<BlockId>) {
        if self.reachable() {
            let block = self.join(join);
            self.goto(at, block);
        }
    }

    /// A statement that stands alone; in sloppy code it can declare a function.
    fn nested(&mut self, statement: &'a Statement<'a>) {
        if let Statement::FunctionDeclaration(function) = statement {
            self.function_declaration(function);
        }
        self.statement(statement);
    }

    fn labeled(&mut self, s: &'a LabeledStatement<'a>) {
        let exit = self.exit();
        let name = self.names.intern(s.label.name.as_str());
        self.f.frames.push(Frame::Label { name, exit });
        self.statement(&s.body);
        self.leave(span(s.span));
    }

    pub(super) fn declaration(&mut self, declaration: &'a Declaration<'a>) {
        match declaration {
            Declaration::VariableDeclaration(d) => self.variables(d),
            Declaration::FunctionDeclaration(_) => {}
            Declaration::ClassDeclaration(class) => self.class_declaration(class),
            Declaration::TSTypeAliasDeclaration(d) => self.type_alias(d),
            Declaration::TSInterfaceDeclaration(d) => self.interface(d),
            Declaration::TSEnumDeclaration(d) => self.enumeration(d),
            Declaration::TSNamespaceDeclaration(d) => self.namespace(d),
            Declaration::TSImportEqualsDeclaration(d) => self.import_equals(d),
            // `declare module "x"` and `declare global` describe other code.
            Declaration::TSExternalModuleDeclaration(_) | Declaration::TSGlobalDeclaration(_) => {}
        }
    }

    pub(super) fn variables(&mut self, declaration: &'a VariableDeclaration<'a>) {
        if matches!(
            declaration.kind,
            VariableDeclarationKind::Using | VariableDeclarationKind::AwaitUsing
        ) {
            // The head of a `for`: there is no block whose end would release it.
            self.using_declaration(declaration, 0, &[]);
            return;
        }
        for declarator in &declaration.declarations {
            self.declarator(declarator, declaration.kind, declaration.declare);
        }
    }

    fn declarator(
        &mut self,
        declarator: &'a VariableDeclarator<'a>,
        kind: VariableDeclarationKind,
        ambient: bool,
    ) {
        let at = span(declarator.span);
        let BindingPattern::BindingIdentifier(id) = &declarator.id else {
            if let Some(init) = &declarator.init {
                let value = self.expr(init);
                self.bind(&declarator.id, value);
            }
            return;
        };
        let Some(symbol) = id.symbol_id.get() else {
            return;
        };
        let ty = types::annotation(&mut self.names, declarator.type_annotation.as_deref())
            .or_else(|| types::of_initialiser(&mut self.names, declarator.init.as_ref()?));
        self.set_type(symbol, ty);
        match &declarator.init {
            Some(init) => {
                let hint = Hint {
                    name: self.names.intern(id.name.as_str()),
                    span: span(id.span),
                    exported: self.symbols.has(symbol, EXPORTED),
                };
                let value = self.expr_named(init, Some(hint));
                self.declare_symbol(symbol, value, at);
            }
            None if ambient => {
                let value = self.global(at, id.name.as_str());
                self.declare_symbol(symbol, value, at);
            }
            // `let x;` is undefined again in every iteration; `var x;` keeps its value.
            None if kind == VariableDeclarationKind::Let => {
                let value = self.null(at);
                self.declare_symbol(symbol, value, at);
            }
            None => {}
        }
    }

    /// `using a = …, b = …;` and the statements that run while they are held.
    fn using_declaration(
        &mut self,
        declaration: &'a VariableDeclaration<'a>,
        index: usize,
        rest: &'a [Statement<'a>],
    ) {
        let Some(declarator) = declaration.declarations.get(index) else {
            self.statement_list(rest);
            return;
        };
        let awaited = declaration.kind == VariableDeclarationKind::AwaitUsing;
        let value = match &declarator.init {
            Some(init) => self.expr(init),
            None => self.null(span(declarator.span)),
        };
        // Each resource nests a scope: count it like any other nesting.
        if self.depth >= MAX_DEPTH {
            self.too_deep(span(declarator.span));
            return;
        }
        self.depth += 1;
        self.using(&declarator.id, value, awaited, |this| {
            this.using_declaration(declaration, index + 1, rest);
        });
        self.depth -= 1;
    }

    /// Holds a resource while `body` runs, and releases it on every way out.
    pub(super) fn using(
        &mut self,
        id: &'a BindingPattern<'a>,
        resource: Var,
        awaited: bool,
        body: impl FnOnce(&mut Self),
    ) {
        let at = span(id.span());
        let dst = self.temp();
        self.emit(at, Op::Enter { dst, resource });
        self.bind_copy(id, dst);
        let finally = self.begin_finally(at);
        body(self);
        self.end_finally(finally, at, |this| {
            this.emit(at, Op::Exit { resource: dst });
            if awaited {
                let src = this.null(at);
                let done = this.temp();
                this.emit(at, Op::Await { dst: done, src });
            }
        });
    }

    /// Like [`Lower::bind`], for a value that is used again afterwards.
    fn bind_copy(&mut self, id: &'a BindingPattern<'a>, value: Var) {
        let src = value;
        let dst = self.temp();
        self.emit(span(id.span()), Op::Copy { dst, src });
        self.bind(id, dst);
    }
}
