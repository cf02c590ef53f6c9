//! Which variables functions inside a function use.
//!
//! By name, and from the text: a closure's body may have macros in it, and
//! format strings with names in braces. A name too many costs a load and a
//! store, nothing else.

use std::rc::Rc;

use rustc_hash::FxHashSet;
use syn::visit::Visit;
use toctou_core::Span;

use super::Lower;
use crate::spans::Places;

impl Lower<'_> {
    pub(super) fn captured_in(&self, walk: impl FnOnce(&mut Finder<'_>)) -> Rc<FxHashSet<String>> {
        let mut finder = Finder {
            text: self.text,
            places: self.places,
            names: FxHashSet::default(),
        };
        walk(&mut finder);
        Rc::new(finder.names)
    }
}

pub(super) struct Finder<'t> {
    text: &'t str,
    places: Places<'t>,
    names: FxHashSet<String>,
}

impl<'t> Finder<'t> {
    fn text(&self, span: Span) -> &'t str {
        let range = span.start as usize..span.end as usize;
        self.text.get(range).unwrap_or_default()
    }

    fn take(&mut self, span: Span) {
        let words = self
            .text(span)
            .split(|c: char| !(c.is_alphanumeric() || c == '_'));
        for word in words {
            let first = word.bytes().next().unwrap_or(b'0');
            if !first.is_ascii_digit() && !self.names.contains(word) {
                self.names.insert(word.to_owned());
            }
        }
    }
}

impl<'ast> Visit<'ast> for Finder<'_> {
    fn visit_expr_closure(&mut self, e: &'ast syn::ExprClosure) {
        let start = self.places.token(e.inputs_begin.span).start;
        let end = self.places.expr(&e.body).end;
        self.take(Span::new(start, end.max(start)));
    }

    fn visit_expr_async(&mut self, e: &'ast syn::ExprAsync) {
        self.take(self.places.token(e.block.brace_token.span.join()));
    }

    fn visit_macro(&mut self, mac: &'ast syn::Macro) {
        let span = self.places.token(match &mac.delimiter {
            syn::MacroDelimiter::Paren(t) => t.span.join(),
            syn::MacroDelimiter::Brace(t) => t.span.join(),
            syn::MacroDelimiter::Bracket(t) => t.span.join(),
        });
        let text = self.text(span);
        if text.contains('|') || text.contains("async") || text.contains("=>") {
            self.take(span);
        }
    }

    /// `spawn(work(x))` is lowered as a function of its own.
    fn visit_expr_call(&mut self, e: &'ast syn::ExprCall) {
        if super::calls::starts_work(&e.func) {
            self.take(self.places.token(e.paren_token.span.join()));
        }
        syn::visit::visit_expr_call(self, e);
    }

    fn visit_expr_method_call(&mut self, e: &'ast syn::ExprMethodCall) {
        if e.method.to_string().starts_with("spawn") {
            self.take(self.places.token(e.paren_token.span.join()));
        }
        syn::visit::visit_expr_method_call(self, e);
    }

    fn visit_item(&mut self, _: &'ast syn::Item) {}
}
