//! `json!`: objects and arrays with expressions in them.

use proc_macro2::{Delimiter, TokenStream, TokenTree};
use syn::Expr;
use toctou_core::Span;
use toctou_core::ir::{Arg, Key, Op, Var};

use super::super::MAX_DEPTH;
use super::Lower;

impl Lower<'_> {
    pub(super) fn json(&mut self, at: Span, tokens: TokenStream) -> Var {
        if self.depth >= MAX_DEPTH {
            return self.too_deep(at);
        }
        self.depth += 1;
        let value = self.json_value(at, tokens);
        self.depth -= 1;
        value
    }

    fn json_value(&mut self, at: Span, tokens: TokenStream) -> Var {
        let mut list = tokens.clone().into_iter();
        if let (Some(TokenTree::Group(group)), None) = (list.next(), list.next()) {
            match group.delimiter() {
                Delimiter::Brace => return self.json_object(at, group.stream()),
                Delimiter::Bracket => {
                    let items = split(group.stream())
                        .into_iter()
                        .map(|item| Arg {
                            value: self.json(at, item),
                            spread: false,
                            name: None,
                        })
                        .collect();
                    return self.op(at, |dst| Op::Array { dst, items });
                }
                _ => {}
            }
        }
        match syn::parse2::<Expr>(tokens) {
            Ok(Expr::Path(p)) if p.path.is_ident("null") => self.null(at),
            Ok(e) => self.expr(&e),
            Err(_) => self.derived(at, Vec::new()),
        }
    }

    fn json_object(&mut self, at: Span, tokens: TokenStream) -> Var {
        let mut fields = Vec::new();
        for entry in split(tokens) {
            let mut key = TokenStream::new();
            let mut value = TokenStream::new();
            let mut behind = false;
            for token in entry {
                match &token {
                    TokenTree::Punct(p) if p.as_char() == ':' && !behind => behind = true,
                    _ if behind => value.extend([token]),
                    _ => key.extend([token]),
                }
            }
            let value = self.json(at, value);
            let key = match syn::parse2::<syn::LitStr>(key.clone()) {
                Ok(text) => Key::Name(self.names.intern(&text.value())),
                Err(_) => match syn::parse2::<Expr>(key) {
                    Ok(e) => Key::Computed(self.expr(&e)),
                    Err(_) => continue,
                },
            };
            fields.push((key, value));
        }
        self.op(at, |dst| Op::Object { dst, fields })
    }
}

/// At the commas that stand in no bracket.
fn split(tokens: TokenStream) -> Vec<TokenStream> {
    let mut out = Vec::new();
    let mut one = TokenStream::new();
    for token in tokens {
        match &token {
            TokenTree::Punct(p) if p.as_char() == ',' => {
                if !one.is_empty() {
                    out.push(std::mem::take(&mut one));
                }
            }
            _ => one.extend([token]),
        }
    }
    if !one.is_empty() {
        out.push(one);
    }
    out
}
