//! Which variables functions inside a function use.
//!
//! By name, and from the text: a closure's body may have macros in it, and
//! format strings with names in braces. A name too many costs a load and a
//! store, nothing else.

use std::rc::Rc;

use rustc_hash::FxHashSet;
use syn::visit::Visit;

use super::Lower;

impl Lower<'_> {
    pub(super) fn captured_in(&self, walk: impl FnOnce(&mut Finder<'_>)) -> Rc<FxHashSet<String>> {
        let mut finder = Finder {
            text: self.text,
            base: self.places.base as usize,
            names: FxHashSet::default(),
        };
        walk(&mut finder);
        Rc::new(finder.names)
    }
}

pub(super) struct Finder<'t> {
    text: &'t str,
    base: usize,
    names: FxHashSet<String>,
}

impl Finder<'_> {
    fn take(&mut self, start: usize, end: usize) {
        let text = self
            .text
            .get(self.base + start..self.base + end)
            .unwrap_or_default();
        let words = text.split(|c: char| !(c.is_alphanumeric() || c == '_'));
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
        let start = e.inputs_begin.span.byte_range().start;
        let end = (crate::spans::Places { base: 0 }).expr(&e.body).end as usize;
        self.take(start, end.max(start));
    }

    fn visit_expr_async(&mut self, e: &'ast syn::ExprAsync) {
        let range = e.block.brace_token.span.join().byte_range();
        self.take(range.start, range.end);
    }

    fn visit_macro(&mut self, mac: &'ast syn::Macro) {
        let span = match &mac.delimiter {
            syn::MacroDelimiter::Paren(t) => t.span.join(),
            syn::MacroDelimiter::Brace(t) => t.span.join(),
            syn::MacroDelimiter::Bracket(t) => t.span.join(),
        };
        let range = span.byte_range();
        let text = self
            .text
            .get(self.base + range.start..self.base + range.end)
            .unwrap_or_default();
        if text.contains('|') || text.contains("async") || text.contains("=>") {
            self.take(range.start, range.end);
        }
    }

    /// `spawn(work(x))` is lowered as a function of its own.
    fn visit_expr_call(&mut self, e: &'ast syn::ExprCall) {
        if super::calls::starts_work(&e.func) {
            let range = e.paren_token.span.join().byte_range();
            self.take(range.start, range.end);
        }
        syn::visit::visit_expr_call(self, e);
    }

    fn visit_expr_method_call(&mut self, e: &'ast syn::ExprMethodCall) {
        if e.method.to_string().starts_with("spawn") {
            let range = e.paren_token.span.join().byte_range();
            self.take(range.start, range.end);
        }
        syn::visit::visit_expr_method_call(self, e);
    }

    fn visit_item(&mut self, _: &'ast syn::Item) {}
}
