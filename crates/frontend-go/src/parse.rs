//! From text to tree, and what was wrong with the text.

use toctou_core::FileId;
use toctou_core::frontend::{LowerError, Lowered};
use tree_sitter::{Node, Parser, Tree, TreeCursor};

/// Enough to say what is wrong with a file; the rest would be noise.
const MAX_WARNINGS: usize = 10;

pub(crate) fn lower(file: FileId, path: &str, text: &str) -> Result<Lowered, LowerError> {
    let tree = parse(text)?;
    let root = tree.root_node();
    let mut warnings = Vec::new();
    if root.has_error() {
        errors(root, &mut warnings);
    }
    let module = crate::lower::lower(file, path, text, root);
    if module.opaque > 0 {
        warnings.push(format!(
            "{} constructs nested deeper than {} levels were left out",
            module.opaque,
            crate::lower::MAX_DEPTH
        ));
    }
    Ok(Lowered { module, warnings })
}

fn parse(text: &str) -> Result<Tree, LowerError> {
    let failed = |message: &str| LowerError {
        message: message.to_owned(),
        line: 1,
    };
    if u32::try_from(text.len()).is_err() {
        return Err(failed("the file is too large"));
    }
    let mut parser = Parser::new();
    parser
        .set_language(&tree_sitter_go::LANGUAGE.into())
        .map_err(|_| failed("the parser does not load"))?;
    parser
        .parse(text, None)
        .ok_or_else(|| failed("the parser failed on this file"))
}

/// Places where the parser had to guess, the first few.
fn errors(root: Node<'_>, out: &mut Vec<String>) {
    let mut cursor = root.walk();
    loop {
        let node = cursor.node();
        if node.is_error() || node.is_missing() {
            let line = node.start_position().row + 1;
            out.push(format!("line {line}: syntax error"));
            if out.len() >= MAX_WARNINGS {
                return;
            }
        }
        let enter = node.has_error() && !node.is_error() && cursor.goto_first_child();
        if !enter && !next(&mut cursor) {
            return;
        }
    }
}

/// The next node that is not below this one.
pub(crate) fn next(cursor: &mut TreeCursor<'_>) -> bool {
    loop {
        if cursor.goto_next_sibling() {
            return true;
        }
        if !cursor.goto_parent() {
            return false;
        }
    }
}
