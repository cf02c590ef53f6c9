//! What the targets for the front ends share.

use std::sync::Arc;

use toctou_core::frontend::Frontend;
use toctou_core::ir::{Program, validate};
use toctou_core::source::{FileId, FileRole, SourceFile};
use toctou_models::Models;

/// Front end, linking, analysis and rules on arbitrary source text.
///
/// The input is split at NUL bytes into several files, which have the names
/// given and may import each other, so that linking is exercised as well.
pub fn scan(frontend: &Frontend, models: &Models, names: [&str; 4], data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let mut files = Vec::new();
    let mut modules = Vec::new();
    let mut paths = Vec::new();
    for (part, name) in text.split('\0').zip(names) {
        if let Ok(lowered) = (frontend.lower)(FileId(files.len() as u32), name, part) {
            assert_eq!(validate(&lowered.module), Vec::<String>::new());
            files.push(SourceFile::new(
                Arc::from(name),
                Arc::from(part),
                FileRole::Product,
            ));
            modules.push(lowered.module);
            paths.push(name.to_owned());
        }
    }
    (frontend.resolve)(&paths, &mut modules, &[]);
    let program = Program::link(files, modules);
    let analysis = toctou_analysis::analyze(&program, models);
    for finding in toctou_rules::findings(&program, &analysis, frontend) {
        assert!(finding.location.line >= 1);
        assert!(!finding.interleaving.is_empty());
    }
}
