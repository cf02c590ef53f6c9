//! Macros: those whose arguments are expressions are read as such.
//!
//! What a macro does is not known here, except for those of the language and
//! those that are control flow by another name (`select!`, `bail!`) or declare items
//! (`lazy_static!`, `table!`). All others are calls of a function named like the macro, `query!`, about which a model
//! may say something. What does not parse as expressions is opaque.

mod format;
mod json;
mod select;
mod tables;

use proc_macro2::{TokenStream, TokenTree};
use syn::parse::Parser;
use syn::punctuated::Punctuated;
use syn::{Expr, Token};
use toctou_core::Span;
use toctou_core::ir::{Arg, Op, Term, Var};

use super::Lower;
use super::paths::segments;

/// Each level parses its tokens again.
const MAX_NESTED: u32 = 16;

pub(super) fn expressions(tokens: &TokenStream) -> Option<Vec<Expr>> {
    Punctuated::<Expr, Token![,]>::parse_terminated
        .parse2(tokens.clone())
        .ok()
        .map(|list| list.into_iter().collect())
}

impl Lower<'_> {
    pub(super) fn macro_value(&mut self, mac: &syn::Macro) -> Var {
        let at = self.macro_span(mac);
        if self.macros >= MAX_NESTED {
            return self.too_deep(at);
        }
        self.macros += 1;
        let value = self.macro_inner(mac, at);
        self.macros -= 1;
        value
    }

    fn macro_span(&self, mac: &syn::Macro) -> Span {
        let close = match &mac.delimiter {
            syn::MacroDelimiter::Paren(t) => t.span.close(),
            syn::MacroDelimiter::Brace(t) => t.span.close(),
            syn::MacroDelimiter::Bracket(t) => t.span.close(),
        };
        let path = self.places.path(&mac.path);
        Span::new(path.start, self.places.token(close).end.max(path.end))
    }

    fn macro_inner(&mut self, mac: &syn::Macro, at: Span) -> Var {
        let path = segments(&mac.path);
        let name = path.last().map_or("", String::as_str);
        match name {
            "format" | "format_args" | "anyhow" | "concat" => match expressions(&mac.tokens) {
                Some(args) => self.formatted(at, &args),
                None => self.opaque_tokens(at, &mac.tokens),
            },
            "panic" | "unreachable" | "todo" | "unimplemented" | "bail" => {
                let value = match expressions(&mac.tokens) {
                    Some(args) => self.formatted(at, &args),
                    None => self.opaque_tokens(at, &mac.tokens),
                };
                self.drop_to(0, at, &[]);
                self.end(at, Term::Throw(value));
                self.null(at)
            }
            "ensure" | "assert" | "debug_assert" => self.asserted(at, &mac.tokens),
            "assert_eq" | "assert_ne" | "debug_assert_eq" | "debug_assert_ne" | "println"
            | "print" | "eprintln" | "eprint" | "dbg" | "trace" | "debug" | "info" | "warn"
            | "error" | "log" | "span" | "event" | "info_span" | "debug_span" => {
                self.evaluated(&mac.tokens, at)
            }
            "write" | "writeln" => self.written(at, &mac.tokens),
            "vec" | "smallvec" | "hashset" | "btreeset" => match expressions(&mac.tokens) {
                Some(items) => self.array(at, items.iter()),
                None => self.repeated(at, &mac.tokens),
            },
            "matches" => self.matched(at, &mac.tokens),
            "json" => self.json(at, mac.tokens.clone()),
            "select" => self.select(at, &mac.tokens),
            "join" | "try_join" => self.joined(at, &mac.tokens),
            "include_str" | "include_bytes" | "env" | "option_env" | "line" | "file"
            | "stringify" | "module_path" | "column" => self.string(at, name),
            // `params![a, b]`: brackets are written round lists.
            _ if matches!(mac.delimiter, syn::MacroDelimiter::Bracket(_)) => {
                match expressions(&mac.tokens) {
                    Some(items) => self.array(at, items.iter()),
                    None => self.opaque_tokens(at, &mac.tokens),
                }
            }
            "params" => match expressions(&mac.tokens) {
                Some(items) => self.array(at, items.iter()),
                None => self.opaque_tokens(at, &mac.tokens),
            },
            _ => self.macro_call(at, &path, &mac.tokens),
        }
    }

    fn macro_call(&mut self, at: Span, path: &[String], tokens: &TokenStream) -> Var {
        let Some(args) = expressions(tokens) else {
            return self.opaque_tokens(at, tokens);
        };
        let mut path = path.to_vec();
        // `use sqlx::query;` and then `query!(…)`.
        if let [one] = path.as_slice()
            && let Some(var) = self.item(one).and_then(|i| i.var)
            && let Some(full) = self.import_path.get(&var)
        {
            path = self
                .names
                .text(*full)
                .split("::")
                .map(str::to_owned)
                .collect();
        }
        if let Some(last) = path.last_mut() {
            last.push('!');
        }
        let callee = self.path_value(at, &path);
        let args = args
            .iter()
            .map(|e| Arg {
                value: self.expr(e),
                spread: false,
                name: None,
            })
            .collect();
        self.invoke(at, callee, args)
    }

    /// The value may depend on every variable that is named in it.
    fn opaque_tokens(&mut self, at: Span, tokens: &TokenStream) -> Var {
        let mut from = Vec::new();
        let mut work: Vec<TokenStream> = vec![tokens.clone()];
        let mut budget = 2_000;
        while let Some(stream) = work.pop() {
            for token in stream {
                budget -= 1;
                if budget == 0 || from.len() >= 16 {
                    return self.derived(at, from);
                }
                match token {
                    TokenTree::Ident(ident) => {
                        let name = self.names.intern(&ident.to_string());
                        if let Some((out, local)) = self.local(name)
                            && let Some(value) = self.read_local(at, out, &local)
                        {
                            from.push(value);
                        }
                    }
                    TokenTree::Group(group) => work.push(group.stream()),
                    _ => {}
                }
            }
        }
        self.derived(at, from)
    }

    fn evaluated(&mut self, tokens: &TokenStream, at: Span) -> Var {
        for e in expressions(tokens).unwrap_or_default() {
            // `field = value`, `target: "x"` of logging macros.
            match &e {
                Expr::Assign(x) => {
                    self.expr(&x.right);
                }
                e => {
                    self.expr(e);
                }
            }
        }
        self.null(at)
    }

    fn asserted(&mut self, at: Span, tokens: &TokenStream) -> Var {
        let args = expressions(tokens).unwrap_or_default();
        if let Some(first) = args.first() {
            let (holds, fails) = (self.block(), self.block());
            self.condition(first, holds, fails);
            self.start(fails);
            let value = self.null(at);
            self.drop_to(0, at, &[]);
            self.end(at, Term::Throw(value));
            self.start(holds);
        }
        self.null(at)
    }

    fn written(&mut self, at: Span, tokens: &TokenStream) -> Var {
        let Some(args) = expressions(tokens) else {
            return self.opaque_tokens(at, tokens);
        };
        let Some((target, rest)) = args.split_first() else {
            return self.null(at);
        };
        let obj = self.expr(target);
        let value = self.formatted(at, rest);
        let name = self.names.intern("write_fmt");
        let args = vec![Arg {
            value,
            spread: false,
            name: None,
        }];
        self.call_method(at, obj, name, args)
    }

    /// `vec![x; n]`
    fn repeated(&mut self, at: Span, tokens: &TokenStream) -> Var {
        let pair = |input: syn::parse::ParseStream<'_>| {
            let value: Expr = input.parse()?;
            input.parse::<Token![;]>()?;
            let count: Expr = input.parse()?;
            Ok((value, count))
        };
        match pair.parse2(tokens.clone()) {
            Ok((value, count)) => {
                let value = self.expr(&value);
                let count = self.expr(&count);
                self.derived(at, vec![value, count])
            }
            Err(_) => self.opaque_tokens(at, tokens),
        }
    }

    fn matched(&mut self, at: Span, tokens: &TokenStream) -> Var {
        let parts = |input: syn::parse::ParseStream<'_>| {
            let value: Expr = input.parse()?;
            input.parse::<Token![,]>()?;
            let pat = syn::Pat::parse_multi(input)?;
            let guard = if input.peek(Token![if]) {
                input.parse::<Token![if]>()?;
                Some(input.parse::<Expr>()?)
            } else {
                None
            };
            input.parse::<Option<Token![,]>>()?;
            Ok((value, pat, guard))
        };
        let Ok((value, pat, guard)) = parts.parse2(tokens.clone()) else {
            return self.opaque_tokens(at, tokens);
        };
        let result = self.result();
        let (yes, no, join) = (self.block(), self.block(), self.block());
        self.push_scope();
        let value = self.expr(&value);
        self.matches(&pat, value, at, Some(no));
        match &guard {
            Some(guard) => self.condition(guard, yes, no),
            None => self.goto(at, yes),
        }
        self.f.scopes.pop();
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

    fn joined(&mut self, at: Span, tokens: &TokenStream) -> Var {
        let Some(args) = expressions(tokens) else {
            return self.opaque_tokens(at, tokens);
        };
        let mut items = Vec::new();
        for e in &args {
            let value = self.run_future(e, at);
            items.push(Arg {
                value,
                spread: false,
                name: None,
            });
        }
        self.op(at, |dst| Op::Array { dst, items })
    }

    /// Waits for what an expression stands for.
    pub(super) fn run_future(&mut self, e: &Expr, at: Span) -> Var {
        let mut src = self.expr(e);
        if let Expr::Async(_) = super::pattern::bare(e) {
            src = self.invoke(at, src, Vec::new());
        }
        self.op(at, |dst| Op::Await { dst, src })
    }

    // --- items ---

    /// `lazy_static! { static ref NAME: T = value; }`, `thread_local! { static NAME … }`
    pub(super) fn declare_macro(&mut self, m: &syn::ItemMacro) {
        for (ident, _, _) in statics(m) {
            self.declare_value(&ident.to_string());
        }
        self.declare_table(m);
    }

    pub(super) fn macro_item(&mut self, m: &syn::ItemMacro) {
        for (ident, ty, value) in statics(m) {
            self.constant(&ident, &ty, &value);
        }
        self.table_item(m);
    }
}

fn statics(m: &syn::ItemMacro) -> Vec<(syn::Ident, syn::Type, Expr)> {
    let known = m
        .mac
        .path
        .segments
        .last()
        .is_some_and(|s| s.ident == "lazy_static");
    if !known {
        return Vec::new();
    }
    let parser = |input: syn::parse::ParseStream<'_>| {
        let mut out = Vec::new();
        while !input.is_empty() {
            syn::Attribute::parse_outer(input)?;
            input.parse::<syn::Visibility>()?;
            input.parse::<Token![static]>()?;
            input.parse::<Token![ref]>()?;
            let ident: syn::Ident = input.parse()?;
            input.parse::<Token![:]>()?;
            let ty: syn::Type = input.parse()?;
            input.parse::<Token![=]>()?;
            let value: Expr = input.parse()?;
            input.parse::<Token![;]>()?;
            out.push((ident, ty, value));
        }
        Ok(out)
    };
    parser.parse2(m.mac.tokens.clone()).unwrap_or_default()
}
