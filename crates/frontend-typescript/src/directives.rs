//! Comments that speak to the analyser: `// toctou: ignore[…]`.
//!
//! Only real comments count, so they are taken from the parser's list: the
//! same words in a string or in a regular expression mean nothing.

use oxc_ast::Comment;
use toctou_core::Span;
use toctou_core::ir::Directive;

const MARK: &str = "toctou:";

pub(crate) fn collect(text: &str, comments: &[Comment]) -> Vec<Directive> {
    // Nearly no file has one; this search is faster than looking at each comment.
    if !text.contains(MARK) {
        return Vec::new();
    }
    comments
        .iter()
        .filter_map(|comment| directive(text, comment))
        .collect()
}

fn directive(text: &str, comment: &Comment) -> Option<Directive> {
    let content = comment.content_span();
    let content = text.get(content.start as usize..content.end as usize)?;
    let content = content.trim_start_matches('*').trim();
    if !content.starts_with(MARK) {
        return None;
    }
    let before = text.get(..comment.span.start as usize)?;
    let line = before.rfind('\n').map_or(before, |at| &before[at + 1..]);
    Some(Directive {
        text: content.to_owned(),
        span: Span::new(comment.span.start, comment.span.end),
        // A byte order mark is white space to the parser, not to `trim`.
        alone: line.trim_start_matches('\u{feff}').trim().is_empty(),
    })
}
