//! Where things stand in the text.
//!
//! A node of the tree has no place of its own, only its tokens have. Printing a
//! node to ask where it begins and ends would cost its size each time, so its
//! first and last token are looked for instead.

use proc_macro2::{LineColumn, Span as TokenSpan};
use syn::{Expr, Pat, Path, Stmt};
use toctou_core::Span;

/// Where the lines of the text begin.
///
/// A token knows its line and column, in characters. Its place in bytes it would have to count
/// and keep, which takes far longer.
pub(crate) struct Lines<'t> {
    text: &'t str,
    /// The first byte and the first character of each line.
    starts: Vec<(u32, u32)>,
    /// The byte of every so many characters, unless a character is a byte everywhere: a line can
    /// be as long as its file, and must not be counted through for each of its tokens.
    marks: Vec<u32>,
}

const STEP: usize = 64;

impl<'t> Lines<'t> {
    /// `text` is what was parsed.
    pub(crate) fn new(text: &'t str) -> Self {
        let mut starts = vec![(0, 0)];
        let mut marks = Vec::new();
        if text.is_ascii() {
            let ends = text.bytes().enumerate().filter(|(_, b)| *b == b'\n');
            starts.extend(ends.map(|(at, _)| (at as u32 + 1, at as u32 + 1)));
        } else {
            for (n, (at, c)) in text.char_indices().enumerate() {
                if n % STEP == 0 {
                    marks.push(at as u32);
                }
                if c == '\n' {
                    starts.push((at as u32 + 1, n as u32 + 1));
                }
            }
        }
        Self {
            text,
            starts,
            marks,
        }
    }

    fn offset(&self, place: LineColumn) -> u32 {
        let line = place.line.saturating_sub(1);
        let (byte, character) = self.starts.get(line).copied().unwrap_or_default();
        if self.marks.is_empty() {
            return byte + place.column as u32;
        }
        let wanted = character as usize + place.column;
        let mark = self
            .marks
            .get(wanted / STEP)
            .map_or(self.text.len(), |m| *m as usize);
        let rest = self.text.get(mark..).unwrap_or_default();
        match rest.char_indices().nth(wanted % STEP) {
            Some((at, _)) => (mark + at) as u32,
            None => self.text.len() as u32,
        }
    }
}

/// Turns places of tokens into places in the file.
#[derive(Clone, Copy)]
pub(crate) struct Places<'t> {
    /// What was cut off before parsing (a byte order mark, a `#!` line).
    pub(crate) base: u32,
    pub(crate) lines: &'t Lines<'t>,
}

/// Operators nest to the left as deep as they like; the rest of a long chain is left out.
const MAX_STEPS: usize = 64;

impl Places<'_> {
    pub(crate) fn token(self, span: TokenSpan) -> Span {
        Span::new(self.place(span.start()), self.place(span.end()))
    }

    fn place(self, place: LineColumn) -> u32 {
        self.base + self.lines.offset(place)
    }

    fn between(self, first: TokenSpan, last: TokenSpan) -> Span {
        let (first, end) = (self.token(first), self.place(last.end()));
        Span::new(first.start, end.max(first.end))
    }

    pub(crate) fn expr(self, e: &Expr) -> Span {
        match (first(e), last(e)) {
            (Some(a), Some(b)) => self.between(a, b),
            (Some(a), None) => self.token(a),
            _ => Span::new(self.base, self.base),
        }
    }

    pub(crate) fn path(self, path: &Path) -> Span {
        match (path.segments.first(), path.segments.last()) {
            (Some(a), Some(b)) => self.between(a.ident.span(), b.ident.span()),
            _ => Span::new(self.base, self.base),
        }
    }

    pub(crate) fn pat(self, pat: &Pat) -> Span {
        match pat {
            Pat::Ident(p) => self.token(p.ident.span()),
            Pat::Type(p) => self.pat(&p.pat),
            Pat::Reference(p) => self.pat(&p.pat),
            Pat::Tuple(p) => self.token(p.paren_token.span.join()),
            Pat::TupleStruct(p) => self.path(&p.path),
            Pat::Struct(p) => self.path(&p.path),
            Pat::Path(p) => self.path(&p.path),
            Pat::Wild(p) => self.token(p.underscore_token.span),
            Pat::Slice(p) => self.token(p.bracket_token.span.join()),
            Pat::Lit(p) => self.token(p.lit.span()),
            _ => Span::new(self.base, self.base),
        }
    }

    pub(crate) fn stmt(self, s: &Stmt) -> Span {
        match s {
            Stmt::Local(l) => self.between(l.let_token.span, l.semi_token.span),
            Stmt::Expr(e, _) => self.expr(e),
            Stmt::Macro(m) => self.path(&m.mac.path),
            Stmt::Item(_) => Span::new(self.base, self.base),
        }
    }
}

fn first(e: &Expr) -> Option<TokenSpan> {
    let mut e = e;
    for _ in 0..MAX_STEPS {
        e = match e {
            Expr::Assign(x) => &x.left,
            Expr::Await(x) => &x.base,
            Expr::Binary(x) => &x.left,
            Expr::Call(x) => &x.func,
            Expr::Cast(x) => &x.expr,
            Expr::Field(x) => &x.base,
            Expr::Group(x) => &x.expr,
            Expr::Index(x) => &x.expr,
            Expr::MethodCall(x) => &x.receiver,
            Expr::Try(x) => &x.expr,
            Expr::Range(x) => match &x.start {
                Some(start) => start,
                None => return None,
            },
            Expr::Array(x) => return Some(x.bracket_token.span.open()),
            Expr::Async(x) => return Some(x.async_token.span),
            Expr::Block(x) => return Some(x.block.brace_token.span.open()),
            Expr::Break(x) => return Some(x.break_token.span),
            Expr::Closure(x) => {
                return Some(match (&x.asyncness, &x.capture) {
                    (Some(t), _) => t.span,
                    (None, Some(t)) => t.span,
                    (None, None) => x.inputs_begin.span,
                });
            }
            Expr::Const(x) => return Some(x.const_token.span),
            Expr::Continue(x) => return Some(x.continue_token.span),
            Expr::ForLoop(x) => return Some(x.for_token.span),
            Expr::If(x) => return Some(x.if_token.span),
            Expr::Infer(x) => return Some(x.underscore_token.span),
            Expr::Let(x) => return Some(x.let_token.span),
            Expr::Lit(x) => return Some(x.lit.span()),
            Expr::Loop(x) => return Some(x.loop_token.span),
            Expr::Macro(x) => return x.mac.path.segments.first().map(|s| s.ident.span()),
            Expr::Match(x) => return Some(x.match_token.span),
            Expr::Paren(x) => return Some(x.paren_token.span.open()),
            Expr::Path(x) => {
                return match &x.qself {
                    Some(q) => Some(q.lt_token.span),
                    None => x.path.segments.first().map(|s| s.ident.span()),
                };
            }
            Expr::RawAddr(x) => return Some(x.and_token.span),
            Expr::Reference(x) => return Some(x.and_token.span),
            Expr::Repeat(x) => return Some(x.bracket_token.span.open()),
            Expr::Return(x) => return Some(x.return_token.span),
            Expr::Struct(x) => return x.path.segments.first().map(|s| s.ident.span()),
            Expr::TryBlock(x) => return Some(x.try_token.span),
            Expr::Tuple(x) => return Some(x.paren_token.span.open()),
            Expr::Unary(x) => {
                return Some(match &x.op {
                    syn::UnOp::Deref(t) => t.span,
                    syn::UnOp::Not(t) => t.span,
                    syn::UnOp::Neg(t) => t.span,
                    _ => return None,
                });
            }
            Expr::Unsafe(x) => return Some(x.unsafe_token.span),
            Expr::While(x) => return Some(x.while_token.span),
            Expr::Yield(x) => return Some(x.yield_token.span),
            _ => return None,
        };
    }
    None
}

fn last(e: &Expr) -> Option<TokenSpan> {
    let mut e = e;
    for _ in 0..MAX_STEPS {
        e = match e {
            Expr::Assign(x) => &x.right,
            Expr::Binary(x) => &x.right,
            Expr::Closure(x) => &x.body,
            Expr::Group(x) => &x.expr,
            Expr::Let(x) => &x.expr,
            Expr::RawAddr(x) => &x.expr,
            Expr::Reference(x) => &x.expr,
            Expr::Unary(x) => &x.expr,
            Expr::Break(x) => match &x.expr {
                Some(value) => value,
                None => return Some(x.break_token.span),
            },
            Expr::Return(x) => match &x.expr {
                Some(value) => value,
                None => return Some(x.return_token.span),
            },
            Expr::Range(x) => match (&x.end, &x.start) {
                (Some(end), _) => end,
                (None, Some(start)) => start,
                (None, None) => return None,
            },
            Expr::If(x) => match &x.else_branch {
                Some((_, other)) => other,
                None => return Some(x.then_branch.brace_token.span.close()),
            },
            Expr::Array(x) => return Some(x.bracket_token.span.close()),
            Expr::Async(x) => return Some(x.block.brace_token.span.close()),
            Expr::Await(x) => return Some(x.await_token.span),
            Expr::Block(x) => return Some(x.block.brace_token.span.close()),
            Expr::Call(x) => return Some(x.paren_token.span.close()),
            Expr::Cast(x) => return Some(x.as_token.span),
            Expr::Const(x) => return Some(x.block.brace_token.span.close()),
            Expr::Continue(x) => return Some(x.continue_token.span),
            Expr::Field(x) => {
                return Some(match &x.member {
                    syn::Member::Named(ident) => ident.span(),
                    syn::Member::Unnamed(index) => index.span,
                });
            }
            Expr::ForLoop(x) => return Some(x.body.brace_token.span.close()),
            Expr::Index(x) => return Some(x.bracket_token.span.close()),
            Expr::Infer(x) => return Some(x.underscore_token.span),
            Expr::Lit(x) => return Some(x.lit.span()),
            Expr::Loop(x) => return Some(x.body.brace_token.span.close()),
            Expr::Macro(x) => {
                return Some(match &x.mac.delimiter {
                    syn::MacroDelimiter::Paren(t) => t.span.close(),
                    syn::MacroDelimiter::Brace(t) => t.span.close(),
                    syn::MacroDelimiter::Bracket(t) => t.span.close(),
                });
            }
            Expr::Match(x) => return Some(x.brace_token.span.close()),
            Expr::MethodCall(x) => return Some(x.paren_token.span.close()),
            Expr::Paren(x) => return Some(x.paren_token.span.close()),
            Expr::Path(x) => return x.path.segments.last().map(|s| s.ident.span()),
            Expr::Repeat(x) => return Some(x.bracket_token.span.close()),
            Expr::Struct(x) => return Some(x.brace_token.span.close()),
            Expr::Try(x) => return Some(x.question_token.span),
            Expr::TryBlock(x) => return Some(x.block.brace_token.span.close()),
            Expr::Tuple(x) => return Some(x.paren_token.span.close()),
            Expr::Unsafe(x) => return Some(x.block.brace_token.span.close()),
            Expr::While(x) => return Some(x.body.brace_token.span.close()),
            _ => return None,
        };
    }
    None
}

#[cfg(test)]
mod tests {
    use super::Lines;
    use proc_macro2::LineColumn;

    /// Lines with and without letters of several bytes, longer and shorter than a step.
    #[test]
    fn places_of_characters_are_those_of_bytes() {
        for letter in ["x", "é", "🦀"] {
            let text = format!("a\n{}b\n\n{letter}c", letter.repeat(200));
            let lines = Lines::new(&text);
            for (l, line) in text.split('\n').enumerate() {
                let start = line.as_ptr().addr() - text.as_ptr().addr();
                let ends = line.char_indices().map(|(at, _)| at).chain([line.len()]);
                for (column, at) in ends.enumerate() {
                    let line = l + 1;
                    let place = LineColumn { line, column };
                    assert_eq!(
                        lines.offset(place) as usize,
                        start + at,
                        "{letter} {place:?}"
                    );
                }
            }
        }
    }
}
