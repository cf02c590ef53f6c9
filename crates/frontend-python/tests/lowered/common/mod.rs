//! What the tests of the lowering share.

use toctou_core::FileId;
use toctou_core::ir::{Module, validate};
use toctou_frontend_python::lower;

/// Lowers a file that must be clean and must give a valid module.
pub fn module(path: &str, text: &str) -> Module {
    match lower(FileId(0), path, text) {
        Ok(lowered) => {
            assert_eq!(lowered.warnings, Vec::<String>::new(), "{text}");
            assert_eq!(validate(&lowered.module), Vec::<String>::new(), "{text}");
            lowered.module
        }
        Err(error) => panic!("{error}\n{text}"),
    }
}
