//! From text to tree. The parser grows its own stack; what it builds may be
//! deeper than a thread can take down again, so a deep tree is never dropped.

use ruff_python_ast::PySourceType;
use toctou_core::FileId;

use crate::scope::Scopes;
use crate::{LowerError, Lowered};

/// Enough to say what is wrong with a file; the rest would be noise.
const MAX_WARNINGS: usize = 10;

pub(crate) fn lower(file: FileId, text: &str) -> Result<Lowered, LowerError> {
    // The parser is not ours: should it panic, that costs one file, not the run.
    std::panic::catch_unwind(|| lower_here(file, text)).unwrap_or_else(|_| {
        Err(LowerError {
            message: "the parser failed on this file".to_owned(),
            line: 1,
        })
    })
}

fn lower_here(file: FileId, text: &str) -> Result<Lowered, LowerError> {
    if text.len() > u32::MAX as usize / 2 {
        return Err(LowerError {
            message: "the file is too large".to_owned(),
            line: 1,
        });
    }
    let parsed = ruff_python_parser::parse_unchecked_source(text, PySourceType::Python);
    let mut warnings: Vec<String> = parsed
        .errors()
        .iter()
        .take(MAX_WARNINGS)
        .map(|error| {
            let line = line_of(text, usize::from(error.location.start()));
            format!("line {line}: {}", error.error)
        })
        .collect();
    let directives = crate::directives::collect(text, parsed.tokens());
    let scopes = Scopes::new(parsed.suite());
    let deep = scopes.deep;
    let mut module = crate::lower::lower(file, text, parsed.suite(), scopes);
    module.directives = directives;
    if deep {
        std::mem::forget(parsed);
    }
    if module.opaque > 0 {
        warnings.push(format!(
            "{} constructs nested deeper than {} levels were left out",
            module.opaque,
            crate::lower::MAX_DEPTH
        ));
    }
    Ok(Lowered { module, warnings })
}

fn line_of(text: &str, offset: usize) -> u32 {
    let before = text.as_bytes().get(..offset.min(text.len()));
    let count = before.unwrap_or_default().iter().filter(|&&b| b == b'\n');
    count.count() as u32 + 1
}
