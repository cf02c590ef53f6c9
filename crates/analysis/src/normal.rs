//! Functions that change nothing about what they have made, by what they are called: a caller
//! and its helper may both clean a path, and mean the same file.

use rustc_hash::FxHashSet;
use toctou_core::Names;
use toctou_core::ir::{FuncId, Program};

const SAID_BY: [&str; 6] = ["normal", "resolv", "sanit", "expand", "canon", "valid"];

pub(crate) fn normalisers(program: &Program, names: &Names) -> FxHashSet<FuncId> {
    let says = |name: &str| SAID_BY.iter().any(|word| name.contains(word));
    let functions = program.functions.iter().enumerate();
    functions
        .filter(|(_, f)| says(&names.text(f.name).to_ascii_lowercase()))
        .map(|(i, _)| FuncId(i as u32))
        .collect()
}
