//! Statements.

use ruff_python_ast::{self as ast, Expr, Stmt};
use toctou_core::Span;
use toctou_core::ir::{BlockId, Op, Term};

use super::finally::Jump;
use super::{Lower, MAX_DEPTH, at};

impl<'a> Lower<'a> {
    pub(super) fn statements(&mut self, list: &'a [Stmt]) {
        for statement in list {
            // Behind a `return` nothing runs.
            if !self.reachable() {
                return;
            }
            self.statement(statement);
        }
    }

    fn statement(&mut self, statement: &'a Stmt) {
        if self.depth >= MAX_DEPTH {
            self.too_deep(at(statement));
            return;
        }
        self.depth += 1;
        self.statement_inner(statement);
        self.depth -= 1;
    }

    fn statement_inner(&mut self, statement: &'a Stmt) {
        match statement {
            Stmt::Expr(s) => {
                self.expr(&s.value);
            }
            Stmt::Assign(s) => self.assignment(s),
            Stmt::AnnAssign(s) => self.annotated(s),
            Stmt::AugAssign(s) => self.augmented(s),
            Stmt::If(s) => self.if_statement(s),
            Stmt::Return(s) => {
                let value = s.value.as_ref().map(|e| self.expr(e));
                self.return_value(value, at(s));
            }
            Stmt::Raise(s) => {
                let value = match &s.exc {
                    Some(e) => self.expr(e),
                    None => match self.f.caught.last() {
                        Some(&exception) => exception,
                        None => self.null(at(s)),
                    },
                };
                if let Some(cause) = &s.cause {
                    self.expr(cause);
                }
                self.end(at(s), Term::Throw(value));
            }
            Stmt::Try(s) => self.try_statement(s),
            Stmt::While(s) => self.while_statement(s),
            Stmt::For(s) => self.for_statement(s),
            Stmt::With(s) => self.with(s),
            Stmt::Match(s) => self.match_statement(s),
            Stmt::FunctionDef(s) => self.function_def(s),
            Stmt::ClassDef(s) => self.class_def(s),
            Stmt::Import(s) => self.import(s),
            Stmt::ImportFrom(s) => self.import_from(s),
            Stmt::Break(s) => {
                if let Some(frame) = self.innermost_loop() {
                    self.jump(Jump::Break(frame), at(s));
                }
            }
            Stmt::Continue(s) => {
                if let Some(frame) = self.innermost_loop() {
                    self.jump(Jump::Continue(frame), at(s));
                }
            }
            Stmt::Assert(s) => {
                let (holds, fails) = (self.block(), self.block());
                self.condition(&s.test, holds, fails);
                self.start(fails);
                let value = match &s.msg {
                    Some(message) => self.expr(message),
                    None => self.null(at(s)),
                };
                self.end(at(s), Term::Throw(value));
                self.start(holds);
            }
            Stmt::Delete(s) => {
                for target in &s.targets {
                    self.delete(target);
                }
            }
            Stmt::TypeAlias(s) => {
                if let Expr::Name(name) = s.name.as_ref() {
                    self.alias(name.id.as_str(), &s.value);
                }
            }
            Stmt::Global(_) | Stmt::Nonlocal(_) | Stmt::Pass(_) | Stmt::IpyEscapeCommand(_) => {}
        }
    }

    fn if_statement(&mut self, s: &'a ast::StmtIf) {
        let span = at(s);
        // Where the branches meet again; none if all of them leave.
        let mut join = None;
        let mut test = s.test.as_ref();
        let mut body: &'a [Stmt] = &s.body;
        let mut clauses = s.elif_else_clauses.iter();
        loop {
            let then = self.block();
            let clause = clauses.next();
            let otherwise = match clause {
                Some(_) => self.block(),
                None => self.join(&mut join),
            };
            self.condition(test, then, otherwise);
            self.start(then);
            self.statements(body);
            self.goto_join(span, &mut join);
            let Some(clause) = clause else { break };
            self.start(otherwise);
            body = &clause.body;
            match &clause.test {
                Some(next) => test = next,
                None => {
                    self.statements(body);
                    self.goto_join(span, &mut join);
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

    fn delete(&mut self, target: &'a ast::Expr) {
        let span = at(target);
        match target {
            ast::Expr::Attribute(attribute) => {
                let obj = self.expr(&attribute.value);
                let key = Ok(self.names.intern(attribute.attr.as_str()));
                self.emit(span, Op::Delete { obj, key });
            }
            ast::Expr::Subscript(subscript) => {
                let obj = self.expr(&subscript.value);
                let key = match subscript.slice.as_ref() {
                    ast::Expr::StringLiteral(text) => Ok(self.names.intern(text.value.to_str())),
                    index => Err(self.expr(index)),
                };
                self.emit(span, Op::Delete { obj, key });
            }
            ast::Expr::Tuple(tuple) => {
                for target in tuple.elts.iter().take(64) {
                    if !matches!(target, ast::Expr::Tuple(_) | ast::Expr::List(_)) {
                        self.delete(target);
                    }
                }
            }
            _ => {}
        }
    }
}
