//! Expressions.

use syn::{BinOp as Operator, Expr, Member, UnOp};
use toctou_core::Span;
use toctou_core::ir::{Arg, BinOp, Key, Op, Var};

use super::paths::{is_type_name, segments};
use super::pattern::bare;
use super::{Lower, MAX_DEPTH};

impl Lower<'_> {
    pub(super) fn expr(&mut self, e: &Expr) -> Var {
        if self.depth >= MAX_DEPTH {
            let at = self.places.expr(e);
            return self.too_deep(at);
        }
        self.depth += 1;
        let value = self.expr_inner(e);
        self.depth -= 1;
        value
    }

    fn expr_inner(&mut self, e: &Expr) -> Var {
        match e {
            Expr::Paren(x) => self.expr(&x.expr),
            Expr::Group(x) => self.expr(&x.expr),
            Expr::Reference(x) => {
                let value = self.expr(&x.expr);
                if x.mutability.is_some()
                    && let Some(info) = self.f.vars.get_mut(value.0 as usize)
                {
                    info.lent = true;
                }
                value
            }
            Expr::RawAddr(x) => self.expr(&x.expr),
            Expr::Cast(x) => self.expr(&x.expr),
            Expr::Lit(x) => {
                let at = self.places.token(x.lit.span());
                self.literal(at, &x.lit)
            }
            Expr::Path(x) => self.path_expr(x),
            Expr::Field(x) => self.field(x),
            Expr::Index(x) => {
                let at = self.places.expr(e);
                let obj = self.expr(&x.expr);
                if matches!(*x.index, Expr::Range(_)) {
                    return self.derived(at, vec![obj]);
                }
                let index = self.expr(&x.index);
                self.op(at, |dst| Op::GetIndex { dst, obj, index })
            }
            Expr::Call(x) => self.call(x),
            Expr::MethodCall(x) => self.method_call(x),
            Expr::Await(x) => self.await_expr(x),
            Expr::Try(x) => self.try_expr(x),
            Expr::Macro(x) => self.macro_value(&x.mac),
            Expr::Unary(x) => self.unary(x, e),
            Expr::Binary(x) => self.binary(x, e),
            Expr::Assign(x) => {
                let at = self.places.expr(e);
                let value = self.expr(&x.right);
                self.assign(&x.left, value, at);
                self.null(at)
            }
            Expr::Closure(x) => self.closure(x),
            Expr::Async(x) => self.async_block(x),
            Expr::Block(x) => self.labelled_block(x),
            Expr::Unsafe(x) => self.block_value(&x.block),
            Expr::Const(x) => self.block_value(&x.block),
            Expr::TryBlock(x) => self.block_value(&x.block),
            Expr::If(x) => {
                let result = self.result();
                self.if_expr(x, false, Some(result));
                result
            }
            Expr::Match(x) => {
                let result = self.result();
                self.match_expr(x, false, Some(result));
                result
            }
            Expr::Loop(x) => self.loop_expr(x),
            Expr::While(x) => {
                self.while_expr(x);
                self.null_at(e)
            }
            Expr::ForLoop(x) => {
                self.for_expr(x);
                self.null_at(e)
            }
            Expr::Break(x) => {
                self.break_expr(x);
                self.null_at(e)
            }
            Expr::Continue(x) => {
                self.continue_expr(x);
                self.null_at(e)
            }
            Expr::Return(x) => {
                let at = self.places.expr(e);
                self.return_expr(x.expr.as_deref(), at);
                self.null_at(e)
            }
            Expr::Let(x) => {
                // Outside a condition it is an error of the program.
                let value = self.expr(&x.expr);
                let at = self.places.expr(e);
                self.bind(&x.pat, value, at);
                value
            }
            Expr::Struct(x) => self.structure_value(x, e),
            Expr::Tuple(x) if x.elems.is_empty() => self.null_at(e),
            Expr::Tuple(x) => self.array(self.places.expr(e), x.elems.iter()),
            Expr::Array(x) => self.array(self.places.expr(e), x.elems.iter()),
            Expr::Repeat(x) => {
                let value = self.expr(&x.expr);
                let at = self.places.expr(e);
                self.derived(at, vec![value])
            }
            Expr::Range(x) => {
                let mut from = Vec::new();
                for bound in [&x.start, &x.end].into_iter().flatten() {
                    from.push(self.expr(bound));
                }
                let at = self.places.expr(e);
                self.derived(at, from)
            }
            Expr::Yield(x) => {
                let at = self.places.expr(e);
                let value = match &x.expr {
                    Some(value) => self.expr(value),
                    None => self.null(at),
                };
                self.op(at, |dst| Op::YieldValue { dst, value })
            }
            _ => {
                let at = self.places.expr(e);
                self.derived(at, Vec::new())
            }
        }
    }

    fn null_at(&mut self, e: &Expr) -> Var {
        let at = self.places.expr(e);
        self.null(at)
    }

    fn path_expr(&mut self, x: &syn::ExprPath) -> Var {
        let at = self.places.path(&x.path);
        if x.qself.is_some() {
            return self.derived(at, Vec::new());
        }
        let path = segments(&x.path);
        match path.as_slice() {
            [one] if one == "self" => self.this(at),
            [one] if one == "None" => self.null(at),
            path => self.plain_value(at, path),
        }
    }

    pub(super) fn this(&mut self, at: Span) -> Var {
        self.op(at, |dst| Op::This { dst })
    }

    fn field(&mut self, x: &syn::ExprField) -> Var {
        let obj = self.expr(&x.base);
        let at = match &x.member {
            Member::Named(ident) => self.places.token(ident.span()),
            Member::Unnamed(index) => self.places.token(index.span),
        };
        let start = self.places.expr(&x.base).start.min(at.start);
        let at = Span::new(start, at.end);
        // `self.0` is a field that has a declared type.
        if let Member::Unnamed(index) = &x.member
            && is_self(&x.base)
        {
            let field = self.names.intern(&index.index.to_string());
            return self.op(at, |dst| Op::GetField { dst, obj, field });
        }
        self.member(at, obj, &x.member)
    }

    pub(super) fn array<'e>(&mut self, at: Span, items: impl Iterator<Item = &'e Expr>) -> Var {
        let items = items
            .map(|e| Arg {
                value: self.expr(e),
                spread: false,
                name: None,
            })
            .collect();
        self.op(at, |dst| Op::Array { dst, items })
    }

    fn await_expr(&mut self, x: &syn::ExprAwait) -> Var {
        let at = self.places.token(x.await_token.span);
        let start = self.places.expr(&x.base).start.min(at.start);
        let at = Span::new(start, at.end);
        let src = self.waited_for(&x.base);
        self.op(at, |dst| Op::Await { dst, src })
    }

    /// Calls pass their errors on by themselves. That there is nothing where
    /// something should be is a branch.
    fn try_expr(&mut self, x: &syn::ExprTry) -> Var {
        let value = self.expr(&x.expr);
        let asks = match bare(&x.expr) {
            Expr::MethodCall(m) => {
                let name = m.method.to_string();
                matches!(name.as_str(), "ok_or" | "ok_or_else")
            }
            _ => false,
        };
        if asks || self.f.fails == super::Fails::Null {
            let at = self.places.token(x.question_token.span);
            let goes_on = self.block();
            let nothing = self.block();
            self.branch(at, value, goes_on, nothing);
            self.start(nothing);
            self.give_up(at, value);
            self.start(goes_on);
        }
        value
    }

    fn unary(&mut self, x: &syn::ExprUnary, e: &Expr) -> Var {
        let at = self.places.expr(e);
        match x.op {
            UnOp::Not(_) => {
                let src = self.expr(&x.expr);
                self.op(at, |dst| Op::Not { dst, src })
            }
            UnOp::Deref(_) => {
                let guard = self.is_guard(&x.expr);
                let value = self.expr(&x.expr);
                if guard {
                    return self.content(at, value);
                }
                value
            }
            _ => {
                let value = self.expr(&x.expr);
                // `-1` is not `1`.
                self.derived(at, vec![value])
            }
        }
    }

    fn binary(&mut self, x: &syn::ExprBinary, e: &Expr) -> Var {
        let at = self.places.expr(e);
        if let Some(op) = assigned(&x.op) {
            let old = self.expr(&x.left);
            let right = self.expr(&x.right);
            let value = self.op(at, |dst| Op::Binary {
                dst,
                op,
                left: old,
                right,
            });
            self.assign(&x.left, value, at);
            return self.null(at);
        }
        if matches!(x.op, Operator::And(_) | Operator::Or(_)) {
            return self.short_circuit(e, at);
        }
        let left = self.expr(&x.left);
        let right = self.expr(&x.right);
        let op = match x.op {
            Operator::Eq(_) => BinOp::Eq,
            Operator::Ne(_) => BinOp::Ne,
            Operator::Lt(_) | Operator::Le(_) | Operator::Ge(_) | Operator::Gt(_) => BinOp::Compare,
            Operator::Add(_) if is_text(&x.left) => {
                return self.op(at, |dst| Op::Concat {
                    dst,
                    parts: vec![left, right],
                });
            }
            Operator::Add(_) => BinOp::Add,
            _ => BinOp::Arith,
        };
        self.op(at, |dst| Op::Binary {
            dst,
            op,
            left,
            right,
        })
    }

    fn short_circuit(&mut self, e: &Expr, at: Span) -> Var {
        let result = self.result();
        let (yes, no, join) = (self.block(), self.block(), self.block());
        self.condition(e, yes, no);
        for (block, value) in [(yes, true), (no, false)] {
            self.start(block);
            let src = self.op(at, |dst| Op::Const {
                dst,
                value: toctou_core::ir::Literal::Bool(value),
            });
            self.emit(at, Op::Copy { dst: result, src });
            self.goto(at, join);
        }
        self.start(join);
        result
    }

    pub(super) fn assign(&mut self, left: &Expr, value: Var, at: Span) {
        match left {
            Expr::Paren(x) => self.assign(&x.expr, value, at),
            Expr::Path(x) => {
                let path = segments(&x.path);
                let [one] = path.as_slice() else { return };
                let name = self.names.intern(one);
                if let Some((out, local)) = self.local(name) {
                    self.write_local(at, out, &local, value);
                }
            }
            Expr::Field(x) => {
                let obj = self.expr(&x.base);
                match &x.member {
                    Member::Named(ident) => {
                        let field = self.names.intern(&ident.to_string());
                        self.emit(at, Op::SetField { obj, field, value });
                    }
                    Member::Unnamed(index) if is_self(&x.base) => {
                        let field = self.names.intern(&index.index.to_string());
                        self.emit(at, Op::SetField { obj, field, value });
                    }
                    Member::Unnamed(index) => {
                        let index = self.number(at, &index.index.to_string());
                        self.emit(at, Op::SetIndex { obj, index, value });
                    }
                }
            }
            Expr::Index(x) => {
                let obj = self.expr(&x.expr);
                let index = self.expr(&x.index);
                self.emit(at, Op::SetIndex { obj, index, value });
            }
            Expr::Unary(x) if matches!(x.op, UnOp::Deref(_)) => {
                let guard = self.is_guard(&x.expr);
                if !guard && !matches!(bare(&x.expr), Expr::Path(_)) {
                    return self.assign(&x.expr, value, at);
                }
                let obj = self.expr(&x.expr);
                let field = self.names.intern("*");
                self.emit(at, Op::SetField { obj, field, value });
            }
            Expr::Tuple(x) => {
                for (index, part) in x.elems.iter().enumerate() {
                    let value = self.element_at(at, value, index);
                    self.assign(part, value, at);
                }
            }
            _ => {}
        }
    }

    fn structure_value(&mut self, x: &syn::ExprStruct, e: &Expr) -> Var {
        let at = self.places.expr(e);
        let mut fields = Vec::new();
        if let Some(rest) = &x.rest {
            fields.push((Key::Spread, self.expr(rest)));
        }
        for field in &x.fields {
            let name = match &field.member {
                Member::Named(ident) => ident.to_string(),
                Member::Unnamed(index) => index.index.to_string(),
            };
            let value = self.expr(&field.expr);
            fields.push((Key::Name(self.names.intern(&name)), value));
        }
        let value = self.op(at, |dst| Op::Object { dst, fields });
        // An enum's variant is no type of its own.
        let path = segments(&x.path);
        let ty = if !matches!(path.as_slice(), [.., of, _] if is_type_name(of)) {
            self.type_of_value(e)
        } else {
            None
        };
        if let Some(info) = self.f.vars.get_mut(value.0 as usize) {
            info.ty = ty.map(Box::new);
        }
        value
    }

    fn labelled_block(&mut self, x: &syn::ExprBlock) -> Var {
        if x.label.is_none() {
            return self.block_value(&x.block);
        }
        let at = self.places.token(x.block.brace_token.span.close());
        let result = self.result();
        let body = self.block();
        self.goto(at, body);
        self.push_frame(x.label.as_ref(), None, Some(result));
        self.start(body);
        let value = self.block_value(&x.block);
        let frame = self.f.frames.len() - 1;
        if self.reachable() {
            self.emit(
                at,
                Op::Copy {
                    dst: result,
                    src: value,
                },
            );
            if let Some(exit) = self.exit_of(frame) {
                self.goto(at, exit);
            }
        }
        self.pop_frame();
        result
    }
}

pub(super) fn is_self(e: &Expr) -> bool {
    matches!(bare(e), Expr::Path(p) if p.path.is_ident("self"))
}

fn is_text(e: &Expr) -> bool {
    match bare(e) {
        Expr::Lit(x) => matches!(x.lit, syn::Lit::Str(_)),
        Expr::MethodCall(x) => matches!(x.method.to_string().as_str(), "to_string" | "to_owned"),
        Expr::Macro(x) => x.mac.path.is_ident("format"),
        Expr::Binary(x) => {
            matches!(x.op, Operator::Add(_)) && matches!(*x.right, Expr::Reference(_))
        }
        _ => false,
    }
}

fn assigned(op: &Operator) -> Option<BinOp> {
    match op {
        Operator::AddAssign(_) => Some(BinOp::Add),
        Operator::SubAssign(_)
        | Operator::MulAssign(_)
        | Operator::DivAssign(_)
        | Operator::RemAssign(_)
        | Operator::BitXorAssign(_)
        | Operator::BitAndAssign(_)
        | Operator::BitOrAssign(_)
        | Operator::ShlAssign(_)
        | Operator::ShrAssign(_) => Some(BinOp::Arith),
        _ => None,
    }
}
