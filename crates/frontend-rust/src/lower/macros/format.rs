//! Format strings: the text between the holes, and what is in the holes.

use syn::{Expr, Lit};
use toctou_core::Span;
use toctou_core::ir::{Op, Var};

use super::Lower;

impl Lower<'_> {
    /// `"{}/{name}.json", dir`: the parts in order.
    pub(super) fn formatted(&mut self, at: Span, args: &[Expr]) -> Var {
        let Some((first, rest)) = args.split_first() else {
            return self.string(at, "");
        };
        let text = match first {
            Expr::Lit(x) => match &x.lit {
                Lit::Str(s) => s.value(),
                _ => return self.parts(at, args),
            },
            // `concat!(…)`, a constant: nothing to take apart.
            _ => return self.parts(at, args),
        };
        let mut named: Vec<(String, Var)> = Vec::new();
        let mut numbered: Vec<Var> = Vec::new();
        for e in rest {
            match e {
                Expr::Assign(x) => {
                    let value = self.expr(&x.right);
                    if let Expr::Path(p) = &*x.left
                        && let Some(ident) = p.path.get_ident()
                    {
                        named.push((ident.to_string(), value));
                    }
                }
                e => {
                    let value = self.expr(e);
                    numbered.push(value);
                }
            }
        }
        let mut parts = Vec::new();
        let mut next = 0;
        for piece in pieces(&text) {
            match piece {
                Piece::Text(text) => parts.push(self.string(at, &text)),
                Piece::Hole(name) => {
                    let value = if name.is_empty() {
                        next += 1;
                        numbered.get(next - 1).copied()
                    } else if let Ok(index) = name.parse::<usize>() {
                        numbered.get(index).copied()
                    } else {
                        named.iter().find(|(n, _)| *n == name).map(|(_, v)| *v)
                    };
                    let value = match value {
                        Some(value) => value,
                        None if name.is_empty() => self.derived(at, Vec::new()),
                        None => self.path_value(at, &[name]),
                    };
                    parts.push(value);
                }
            }
        }
        match parts.as_slice() {
            [] => self.string(at, ""),
            [one] => {
                let src = *one;
                self.copy(at, src)
            }
            _ => self.op(at, |dst| Op::Concat { dst, parts }),
        }
    }

    fn parts(&mut self, at: Span, args: &[Expr]) -> Var {
        let parts: Vec<Var> = args.iter().map(|e| self.expr(e)).collect();
        self.op(at, |dst| Op::Concat { dst, parts })
    }
}

enum Piece {
    Text(String),
    Hole(String),
}

fn pieces(text: &str) -> Vec<Piece> {
    let mut out = Vec::new();
    let mut plain = String::new();
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '{' if chars.peek() == Some(&'{') => {
                chars.next();
                plain.push('{');
            }
            '}' if chars.peek() == Some(&'}') => {
                chars.next();
                plain.push('}');
            }
            '{' => {
                if !plain.is_empty() {
                    out.push(Piece::Text(std::mem::take(&mut plain)));
                }
                let mut name = String::new();
                for c in chars.by_ref() {
                    if c == '}' {
                        break;
                    }
                    name.push(c);
                }
                // `{name:>8}`
                let name = name.split(':').next().unwrap_or_default().trim().to_owned();
                out.push(Piece::Hole(name));
            }
            c => plain.push(c),
        }
    }
    if !plain.is_empty() {
        out.push(Piece::Text(plain));
    }
    out
}
