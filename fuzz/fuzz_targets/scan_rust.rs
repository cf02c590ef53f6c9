//! Front end, linking, analysis and rules on arbitrary Rust source text.
//!
//! The input is split at NUL bytes into several files that may use each other.

#![no_main]

use std::sync::{Arc, LazyLock};

use libfuzzer_sys::fuzz_target;
use toctou_core::ir::{Program, validate};
use toctou_core::source::{FileId, FileRole, SourceFile};
use toctou_models::Models;

static MODELS: LazyLock<Models> = LazyLock::new(|| Models::builtin("rust"));

fuzz_target!(|data: &[u8]| {
    let text = String::from_utf8_lossy(data);
    let mut files = Vec::new();
    let mut modules = Vec::new();
    let mut paths = Vec::new();
    for (i, part) in text.split('\0').take(4).enumerate() {
        let path = format!("src/{}.rs", ["main", "a", "b", "c"][i]);
        if let Ok(lowered) = toctou_frontend_rust::lower(FileId(files.len() as u32), &path, part) {
            assert_eq!(validate(&lowered.module), Vec::<String>::new());
            files.push(SourceFile::new(Arc::from(path.as_str()), Arc::from(part), FileRole::Product));
            modules.push(lowered.module);
            paths.push(path);
        }
    }
    toctou_frontend_rust::resolve(&paths, &mut modules, &[]);
    let program = Program::link(files, modules);
    let analysis = toctou_analysis::analyze(&program, &MODELS);
    for finding in toctou_rules::findings(&program, &analysis) {
        assert!(finding.location.line >= 1);
    }
});
