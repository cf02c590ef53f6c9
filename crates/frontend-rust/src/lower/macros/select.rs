//! `select!`: whichever is ready first.

use proc_macro2::TokenStream;
use syn::parse::{ParseStream, Parser};
use syn::{Expr, Pat, Token};
use toctou_core::Span;
use toctou_core::ir::{Op, Term, Var};

use super::Lower;

struct Branch {
    /// `None` for `else`.
    wait: Option<(Pat, Expr)>,
    body: Expr,
}

fn parse(input: ParseStream<'_>) -> syn::Result<Vec<Branch>> {
    let mut out = Vec::new();
    if input.peek(syn::Ident) && input.peek2(Token![;]) {
        // `biased;`
        input.parse::<syn::Ident>()?;
        input.parse::<Token![;]>()?;
    }
    while !input.is_empty() {
        let wait = if input.peek(Token![else]) {
            input.parse::<Token![else]>()?;
            None
        } else {
            let pat = Pat::parse_multi(input)?;
            input.parse::<Token![=]>()?;
            let future: Expr = input.parse()?;
            if input.peek(Token![,]) {
                input.parse::<Token![,]>()?;
                input.parse::<Token![if]>()?;
                input.parse::<Expr>()?;
            }
            Some((pat, future))
        };
        input.parse::<Token![=>]>()?;
        let body: Expr = input.parse()?;
        input.parse::<Option<Token![,]>>()?;
        out.push(Branch { wait, body });
    }
    Ok(out)
}

impl Lower<'_> {
    pub(super) fn select(&mut self, at: Span, tokens: &TokenStream) -> Var {
        let Ok(branches) = parse.parse2(tokens.clone()) else {
            return self.opaque_tokens(at, tokens);
        };
        if branches.is_empty() {
            return self.null(at);
        }
        let result = self.result();
        let join = self.block();
        let starts: Vec<_> = branches.iter().map(|_| self.block()).collect();
        self.end(at, Term::Multi(starts.clone()));
        for (branch, start) in branches.iter().zip(starts) {
            self.start(start);
            self.push_scope();
            if let Some((pat, future)) = &branch.wait {
                let value = self.run_future(future, at);
                // A pattern that does not fit leaves the branch to the others.
                self.matches(pat, value, at, Some(join));
            }
            let value = self.expr(&branch.body);
            self.pop_scope(at, &[value]);
            self.emit(
                at,
                Op::Copy {
                    dst: result,
                    src: value,
                },
            );
            self.goto(at, join);
        }
        self.start(join);
        result
    }
}
