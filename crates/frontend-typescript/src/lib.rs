//! TypeScript and JavaScript source to code IR.
//!
//! Knows syntax and scoping, no library and no rule, and does no I/O: the
//! caller reads the files. [`lower`] turns one file into a [`Module`], on its
//! own and in any thread; [`resolve`] then says what every import leads to.

mod depth;
mod directives;
mod lower;
mod parse;
mod resolve;
mod scope;
mod types;

use toctou_core::FileId;
use toctou_core::ir::Module;

pub use resolve::{Manifest, ResolveStats, resolve};

/// File name extensions of the languages lowered here.
pub const EXTENSIONS: &[&str] = &["ts", "tsx", "mts", "cts", "js", "jsx", "mjs", "cjs"];

/// A declaration file has types and no code; callers skip it.
pub fn is_declaration(path: &str) -> bool {
    let name = path.rsplit(['/', '\\']).next().unwrap_or(path);
    [".d.ts", ".d.mts", ".d.cts"]
        .iter()
        .any(|end| name.ends_with(end))
        // `styles.d.css.ts`: declarations for a file of another kind.
        || (name.ends_with(".ts") && name.contains(".d."))
}

/// A file that could not be lowered at all.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LowerError {
    pub message: String,
    /// 1-based.
    pub line: u32,
}

impl std::fmt::Display for LowerError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "line {}: {}", self.line, self.message)
    }
}

impl std::error::Error for LowerError {}

/// A lowered file, and what was wrong with it.
#[derive(Debug)]
pub struct Lowered {
    pub module: Module,
    /// Syntax errors the parser recovered from, nesting that was cut off.
    pub warnings: Vec<String>,
}

/// Lowers one file. Pure; never panics, whatever the text.
pub fn lower(file: FileId, path: &str, text: &str) -> Result<Lowered, LowerError> {
    parse::lower(file, path, text)
}
