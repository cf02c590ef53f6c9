//! Comments that speak to the analyser: `// toctou: ignore[…]`.
//!
//! The parser drops comments, so they are looked for in the text. Only real
//! comments count: the same words in a string mean nothing.

use toctou_core::Span;
use toctou_core::ir::Directive;

use crate::depth::{Piece, Pieces};

const MARK: &str = "toctou:";

pub(crate) fn collect(text: &str) -> Vec<Directive> {
    // Nearly no file has one; this search is faster than going through the text.
    if !text.contains(MARK) {
        return Vec::new();
    }
    let mut out = Vec::new();
    for (piece, start, end) in Pieces::new(text.as_bytes()) {
        if piece != Piece::Comment {
            continue;
        }
        let Some(comment) = text.get(start..end) else {
            continue;
        };
        let content = comment
            .trim_start_matches(['/', '!', '*'])
            .trim_end_matches("*/")
            .trim();
        if !content.starts_with(MARK) {
            continue;
        }
        let before = text.get(..start).unwrap_or_default();
        let line = before.rfind('\n').map_or(before, |at| &before[at + 1..]);
        out.push(Directive {
            text: content.to_owned(),
            span: Span::new(start as u32, end as u32),
            alone: line.trim_start_matches('\u{feff}').trim().is_empty(),
        });
    }
    out
}
