//! Front end, linking, analysis and rules on arbitrary source text.
//!
//! The input is split at NUL bytes into several files that may import each
//! other, so that linking is exercised as well.

#![no_main]

use std::sync::{Arc, LazyLock};

use libfuzzer_sys::fuzz_target;
use toctou_core::ir::{Program, validate};
use toctou_core::source::{FileId, FileRole, SourceFile};
use toctou_models::Models;

static MODELS: LazyLock<Models> = LazyLock::new(|| Models::builtin("go"));

fuzz_target!(|data: &[u8]| {
    let text = String::from_utf8_lossy(data);
    let mut files = Vec::new();
    let mut modules = Vec::new();
    let mut paths = Vec::new();
    for (i, part) in text.split('\0').take(4).enumerate() {
        let path = format!("{}.go", ["a", "b", "c", "d"][i]);
        if let Ok(lowered) = toctou_frontend_go::lower(FileId(files.len() as u32), &path, part) {
            assert_eq!(validate(&lowered.module), Vec::<String>::new());
            files.push(SourceFile::new(Arc::from(path.as_str()), Arc::from(part), FileRole::Product));
            modules.push(lowered.module);
            paths.push(path);
        }
    }
    toctou_frontend_go::resolve(&paths, &mut modules, &[]);
    let program = Program::link(files, modules);
    let analysis = toctou_analysis::analyze(&program, &MODELS);
    let findings = toctou_rules::findings(&program, &analysis);
    for finding in findings {
        assert!(finding.location.line >= 1);
        assert!(!finding.interleaving.is_empty());
    }
});
