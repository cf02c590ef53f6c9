//! Comments that speak to the analyser: `// toctou: ignore[…]`.

use toctou_core::Span;
use toctou_core::ir::Directive;
use tree_sitter::Node;

const MARK: &str = "toctou:";

pub(crate) fn collect(text: &str, root: Node<'_>) -> Vec<Directive> {
    // Nearly no file has one; this search is faster than a walk over the tree.
    if !text.contains(MARK) {
        return Vec::new();
    }
    let mut out = Vec::new();
    let mut cursor = root.walk();
    loop {
        let node = cursor.node();
        if node.kind() == "comment" {
            out.extend(directive(text, node));
        }
        if !cursor.goto_first_child() && !crate::parse::next(&mut cursor) {
            return out;
        }
    }
}

fn directive(text: &str, node: Node<'_>) -> Option<Directive> {
    let comment = text.get(node.byte_range())?;
    let content = comment
        .strip_prefix("//")
        .or_else(|| comment.strip_prefix("/*")?.strip_suffix("*/"))?;
    let content = content.trim_start_matches('*').trim();
    if !content.starts_with(MARK) {
        return None;
    }
    let before = text.get(..node.start_byte())?;
    let line = before.rfind('\n').map_or(before, |at| &before[at + 1..]);
    Some(Directive {
        text: content.to_owned(),
        span: Span::new(node.start_byte() as u32, node.end_byte() as u32),
        alone: line.trim_start_matches('\u{feff}').trim().is_empty(),
    })
}
