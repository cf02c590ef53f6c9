//! Python source to code IR.
//!
//! Knows syntax and scoping, no library and no rule, and does no I/O: the
//! caller reads the files. [`lower`] turns one file into a module, on its own
//! and in any thread; [`resolve`] then says what every import leads to, and
//! which versions of which packages the project asks for.

mod collected;
mod directives;
mod lower;
mod mend;
mod parse;
mod resolve;
mod scope;
mod types;

use toctou_core::FileId;
use toctou_core::frontend::{Frontend, LowerError, Lowered};

pub use resolve::resolve;

/// Python.
pub const FRONTEND: Frontend = Frontend {
    id: "python",
    label: "Python",
    is_source: |name| name.ends_with(".py"),
    is_manifest: resolve::is_manifest,
    is_package: |name| matches!(name, "pyproject.toml" | "setup.cfg" | "setup.py"),
    lower,
    resolve,
    requirements: resolve::requirements,
    programs: resolve::programs,
    loads: resolve::loads,
    comment: "#",
    mend: mend::mend,
};

/// Lowers one file. Pure; never panics, whatever the text.
pub fn lower(file: FileId, _path: &str, text: &str) -> Result<Lowered, LowerError> {
    parse::lower(file, text)
}
