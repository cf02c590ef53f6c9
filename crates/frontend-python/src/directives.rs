//! Comments that speak to the analyser: `# toctou: ignore[…]`.

use ruff_python_ast::token::{TokenKind, Tokens};
use ruff_text_size::Ranged;
use toctou_core::Span;
use toctou_core::ir::Directive;

const MARK: &str = "toctou:";

pub(crate) fn collect(text: &str, tokens: &Tokens) -> Vec<Directive> {
    // Nearly no file has one; this search is faster than looking at each token.
    if !text.contains(MARK) {
        return Vec::new();
    }
    tokens
        .iter()
        .filter(|token| token.kind() == TokenKind::Comment)
        .filter_map(|token| {
            let (start, end) = (
                usize::from(token.range().start()),
                usize::from(token.range().end()),
            );
            let content = text.get(start..end)?.trim_start_matches('#').trim();
            if !content.starts_with(MARK) {
                return None;
            }
            let before = text.get(..start)?;
            let line = before.rfind('\n').map_or(before, |at| &before[at + 1..]);
            Some(Directive {
                text: content.to_owned(),
                span: Span::new(start as u32, end as u32),
                alone: line.trim_start_matches('\u{feff}').trim().is_empty(),
            })
        })
        .collect()
}
