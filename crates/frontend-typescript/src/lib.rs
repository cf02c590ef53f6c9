//! TypeScript and JavaScript source to code IR.
//!
//! Knows syntax and scoping, no library and no rule, and does no I/O: the
//! caller reads the files. [`lower`] turns one file into a [`Module`], on its
//! own and in any thread; [`resolve`] then says what every import leads to.

mod depth;
mod directives;
mod lower;
mod mend;
mod parse;
mod resolve;
mod scope;
mod types;

use toctou_core::FileId;
use toctou_core::frontend::{Frontend, LowerError, Lowered};

pub use resolve::{ResolveStats, resolve};

/// TypeScript and JavaScript.
pub const FRONTEND: Frontend = Frontend {
    id: "typescript",
    label: "TypeScript, JavaScript",
    is_source,
    is_manifest,
    is_package: |name| name == "package.json",
    lower,
    resolve: |paths, modules, manifests| {
        resolve(paths, modules, manifests);
    },
    requirements: |_| Vec::new(),
    programs: resolve::programs,
    loads: resolve::loads,
    comment: "//",
    mend: mend::mend,
};

const EXTENSIONS: &[&str] = &["ts", "tsx", "mts", "cts", "js", "jsx", "mjs", "cjs"];

fn is_source(name: &str) -> bool {
    name.rsplit_once('.')
        .is_some_and(|(_, extension)| EXTENSIONS.contains(&extension))
        && !is_declaration(name)
}

fn is_manifest(name: &str) -> bool {
    matches!(
        name,
        "package.json" | "jsconfig.json" | "pnpm-workspace.yaml" | "deno.json"
    ) || (name.starts_with("tsconfig") && name.ends_with(".json"))
}

/// A declaration file has types and no code.
fn is_declaration(path: &str) -> bool {
    let name = path.rsplit(['/', '\\']).next().unwrap_or(path);
    [".d.ts", ".d.mts", ".d.cts"]
        .iter()
        .any(|end| name.ends_with(end))
        // `styles.d.css.ts`: declarations for a file of another kind.
        || (name.ends_with(".ts") && name.contains(".d."))
}

/// Lowers one file. Pure; never panics, whatever the text.
pub fn lower(file: FileId, path: &str, text: &str) -> Result<Lowered, LowerError> {
    parse::lower(file, path, text)
}
