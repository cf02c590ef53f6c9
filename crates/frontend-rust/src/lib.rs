//! Rust source to code IR.
//!
//! Knows syntax, scoping and where values are dropped, no library and no rule,
//! and does no I/O: the caller reads the files. [`lower`] turns one file into a
//! [`Module`](toctou_core::ir::Module), on its own and in any thread;
//! [`resolve`] then says what every path leads to.

mod depth;
mod directives;
mod lower;
mod mend;
mod parse;
mod product;
mod resolve;
mod spans;
mod types;

use toctou_core::FileId;
use toctou_core::frontend::{Frontend, LowerError, Lowered};

pub use resolve::resolve;

/// Rust.
pub const FRONTEND: Frontend = Frontend {
    id: "rust",
    label: "Rust",
    is_source: |name| name.ends_with(".rs"),
    is_manifest: |name| name == "Cargo.toml",
    is_package: |name| name == "Cargo.toml",
    lower,
    resolve,
    requirements: |_| Vec::new(),
    // What nothing leads to is not compiled in.
    programs: |_, _| Vec::new(),
    loads: |_, _| Vec::new(),
    comment: "//",
    mend: mend::mend,
};

/// Lowers one file. Pure; never panics, whatever the text.
pub fn lower(file: FileId, path: &str, text: &str) -> Result<Lowered, LowerError> {
    parse::lower(file, path, text)
}
