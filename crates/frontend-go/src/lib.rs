//! Go source to code IR.
//!
//! Knows syntax and scoping, no library and no rule, and does no I/O: the
//! caller reads the files. [`lower`] turns one file into a [`Module`], on its
//! own and in any thread; [`resolve`] then says what every import leads to,
//! and joins the files of a package, which share one scope.
//!
//! [`Module`]: toctou_core::ir::Module

mod captures;
mod directives;
mod fields;
mod lower;
mod mend;
mod parse;
mod resolve;

use toctou_core::FileId;
use toctou_core::frontend::{Frontend, LowerError, Lowered};

pub use resolve::resolve;

/// Go.
pub const FRONTEND: Frontend = Frontend {
    id: "go",
    label: "Go",
    is_source: |name| name.ends_with(".go"),
    is_manifest: |name| name == "go.mod",
    is_package: |name| name == "go.mod",
    lower,
    resolve,
    requirements: resolve::requirements,
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
