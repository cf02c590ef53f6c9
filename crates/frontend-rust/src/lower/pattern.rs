//! Patterns: what they test, and what they bind.

use syn::{Expr, Lit, Member, Pat};
use toctou_core::Span;
use toctou_core::ir::{BinOp, BlockId, Op, Var};

use super::paths::{is_type_name, segments};
use super::{Lower, MAX_DEPTH};

impl Lower<'_> {
    /// A pattern that always fits.
    pub(super) fn bind(&mut self, pat: &Pat, value: Var, at: Span) {
        self.matches(pat, value, at, None);
    }

    /// Tests `value`; where the pattern does not fit, control goes to `fail`.
    pub(super) fn matches(&mut self, pat: &Pat, value: Var, at: Span, fail: Option<BlockId>) {
        if self.depth >= MAX_DEPTH {
            self.opaque += 1;
            return;
        }
        self.depth += 1;
        self.pattern(pat, value, at, fail);
        self.depth -= 1;
    }

    fn pattern(&mut self, pat: &Pat, value: Var, at: Span, fail: Option<BlockId>) {
        match pat {
            Pat::Ident(p) => {
                let text = p.ident.to_string();
                let constant = p.subpat.is_none()
                    && p.by_ref.is_none()
                    && p.mutability.is_none()
                    && text.chars().next().is_some_and(char::is_uppercase);
                if constant {
                    self.test_path(&[text], value, at, fail);
                    return;
                }
                self.rebind(
                    self.places.token(p.ident.span()),
                    &text,
                    value,
                    p.mutability.is_some(),
                );
                if let Some((_, inner)) = &p.subpat {
                    self.matches(inner, value, at, fail);
                }
            }
            Pat::Type(p) => {
                let ty = self.type_ref(&p.ty);
                self.matches(&p.pat, value, at, fail);
                if ty.is_some()
                    && let Some(ident) = super::function::simple(&p.pat)
                {
                    let name = self.names.intern(&ident);
                    if let Some((0, local)) = self.local(name)
                        && let Some(info) = self.f.vars.get_mut(local.var.0 as usize)
                    {
                        info.ty = ty.map(Box::new);
                    }
                }
            }
            Pat::Reference(p) => self.matches(&p.pat, value, at, fail),
            Pat::Paren(p) => self.matches(&p.pat, value, at, fail),
            Pat::Guard(p) => {
                self.matches(&p.pat, value, at, fail);
                if let Some(fail) = fail {
                    let fits = self.block();
                    self.condition(&p.guard, fits, fail);
                    self.start(fits);
                }
            }
            Pat::Tuple(p) => self.elements(p.elems.iter(), value, at, fail),
            Pat::Slice(p) => {
                self.test_derived(value, at, fail);
                self.elements(p.elems.iter(), value, at, fail);
            }
            Pat::TupleStruct(p) => self.tuple_struct(p, value, at, fail),
            Pat::Struct(p) => {
                let path = segments(&p.path);
                // `Shape::Circle { r }` is one of several, `Point { x }` is not.
                let single = path.len() == 1 && is_type_name(&path[0]);
                if !single {
                    self.test_derived(value, at, fail);
                }
                for field in &p.fields {
                    let part = self.member(at, value, &field.member);
                    self.matches(&field.pat, part, at, fail);
                }
            }
            Pat::Path(p) => self.test_path(&segments(&p.path), value, at, fail),
            Pat::Lit(p) => {
                if let Some(fail) = fail {
                    let literal = self.literal(at, &p.lit);
                    self.test_equal(value, literal, at, fail);
                }
            }
            Pat::Range(p) => {
                if let Some(fail) = fail {
                    let bound = p.start.as_deref().or(p.end.as_deref());
                    let right = match bound {
                        Some(e) => self.expr(e),
                        None => self.null(at),
                    };
                    let cond = self.op(at, |dst| Op::Binary {
                        dst,
                        op: BinOp::Compare,
                        left: value,
                        right,
                    });
                    self.test(cond, at, fail);
                }
            }
            Pat::Or(p) => self.alternatives(&p.cases, value, at, fail),
            Pat::Const(_) | Pat::Macro(_) | Pat::Verbatim(_) => {
                self.test_derived(value, at, fail);
            }
            _ => {}
        }
    }

    /// In an or-pattern every case binds the same names: to the same variables.
    fn rebind(&mut self, at: Span, text: &str, value: Var, mutable: bool) {
        let name = self.names.intern(text);
        let again = self.or_from.and_then(|start| {
            let locals = &self.f.scopes.last()?.locals;
            locals.iter().skip(start).find(|l| l.name == name).cloned()
        });
        match again {
            Some(local) => self.write_local(at, 0, &local, value),
            None => {
                self.declare_local(at, text, Some(value), mutable || self.or_from.is_some());
            }
        }
    }

    fn alternatives(
        &mut self,
        cases: &syn::punctuated::Punctuated<Pat, syn::Token![|]>,
        value: Var,
        at: Span,
        fail: Option<BlockId>,
    ) {
        let Some(fail) = fail else {
            if let Some(first) = cases.first() {
                self.matches(first, value, at, None);
            }
            return;
        };
        let old = self.or_from;
        if old.is_none() {
            self.or_from = self.f.scopes.last().map(|s| s.locals.len());
        }
        let fits = self.block();
        let count = cases.len();
        for (index, case) in cases.iter().enumerate() {
            let next = if index + 1 == count {
                fail
            } else {
                self.block()
            };
            self.matches(case, value, at, Some(next));
            self.goto(at, fits);
            if index + 1 < count {
                self.start(next);
            }
        }
        self.or_from = old;
        self.start(fits);
    }

    fn elements<'p>(
        &mut self,
        pats: impl Iterator<Item = &'p Pat>,
        value: Var,
        at: Span,
        fail: Option<BlockId>,
    ) {
        for (index, pat) in pats.enumerate() {
            match pat {
                Pat::Wild(_) => {}
                // What stands behind `..` counts from the end.
                Pat::Rest(_) => break,
                pat => {
                    let part = self.element_at(at, value, index);
                    self.matches(pat, part, at, fail);
                }
            }
        }
    }

    pub(super) fn element_at(&mut self, at: Span, obj: Var, index: usize) -> Var {
        let index = self.number(at, &index.to_string());
        self.op(at, |dst| Op::GetIndex { dst, obj, index })
    }

    pub(super) fn member(&mut self, at: Span, obj: Var, member: &Member) -> Var {
        match member {
            Member::Named(ident) => {
                let field = self.names.intern(&ident.to_string());
                self.op(at, |dst| Op::GetField { dst, obj, field })
            }
            Member::Unnamed(index) => self.element_at(at, obj, index.index as usize),
        }
    }

    fn tuple_struct(
        &mut self,
        p: &syn::PatTupleStruct,
        value: Var,
        at: Span,
        fail: Option<BlockId>,
    ) {
        let path = segments(&p.path);
        let last = path.last().map_or("", String::as_str);
        match last {
            "Some" | "Ok" => {
                if let Some(fail) = fail {
                    self.test(value, at, fail);
                }
                if let Some(inner) = p.elems.first() {
                    self.matches(inner, value, at, fail);
                }
            }
            "Err" => {
                if let Some(fail) = fail {
                    let fits = self.block();
                    self.branch(at, value, fail, fits);
                    self.start(fits);
                }
                if let Some(inner) = p.elems.first() {
                    let error = self.derived(at, vec![value]);
                    self.matches(inner, error, at, fail);
                }
            }
            // `State(app)` in a parameter: a wrapper of one value is that value.
            _ if fail.is_none()
                && p.elems.len() == 1
                && path.len() == 1
                && !self.is_class(&path) =>
            {
                if let Some(inner) = p.elems.first() {
                    self.matches(inner, value, at, fail);
                }
            }
            _ => {
                if path.len() > 1 || !self.is_class(&path) {
                    self.test_derived(value, at, fail);
                }
                self.elements(p.elems.iter(), value, at, fail);
            }
        }
    }

    fn is_class(&mut self, path: &[String]) -> bool {
        match path {
            [one] => self.item(one).is_some_and(|i| i.class.is_some()),
            _ => false,
        }
    }

    fn test_path(&mut self, path: &[String], value: Var, at: Span, fail: Option<BlockId>) {
        let Some(fail) = fail else { return };
        if path.last().is_some_and(|s| s == "None") {
            let fits = self.block();
            self.branch(at, value, fail, fits);
            self.start(fits);
            return;
        }
        let constant = self.plain_value(at, path);
        self.test_equal(value, constant, at, fail);
    }

    fn test_equal(&mut self, left: Var, right: Var, at: Span, fail: BlockId) {
        let cond = self.op(at, |dst| Op::Binary {
            dst,
            op: BinOp::Eq,
            left,
            right,
        });
        self.test(cond, at, fail);
    }

    fn test_derived(&mut self, value: Var, at: Span, fail: Option<BlockId>) {
        if let Some(fail) = fail {
            let cond = self.derived(at, vec![value]);
            self.test(cond, at, fail);
        }
    }

    fn test(&mut self, cond: Var, at: Span, fail: BlockId) {
        let fits = self.block();
        self.branch(at, cond, fits, fail);
        self.start(fits);
    }

    pub(super) fn literal(&mut self, at: Span, lit: &Lit) -> Var {
        use toctou_core::ir::Literal;
        match lit {
            Lit::Str(s) => self.string(at, &s.value()),
            Lit::Int(n) => self.number(at, n.base10_digits()),
            Lit::Float(n) => self.number(at, n.base10_digits()),
            Lit::Bool(b) => {
                let value = Literal::Bool(b.value);
                self.op(at, |dst| Op::Const { dst, value })
            }
            Lit::Char(c) => self.string(at, &c.value().to_string()),
            _ => self.op(at, |dst| Op::Const {
                dst,
                value: Literal::Other,
            }),
        }
    }
}

/// Peels parentheses and references: `(&x)` is `x`.
pub(super) fn bare(e: &Expr) -> &Expr {
    let mut e = e;
    loop {
        e = match e {
            Expr::Paren(x) => &x.expr,
            Expr::Group(x) => &x.expr,
            Expr::Reference(x) => &x.expr,
            _ => return e,
        };
    }
}
