//! What the tests of the lowering share.

use toctou_core::FileId;
use toctou_core::ir::{Module, dump, validate};
use toctou_frontend_typescript::lower;

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

/// The module must look like this.
#[track_caller]
pub fn check(text: &str, expected: &str) {
    check_as("file.ts", text, expected);
}

#[track_caller]
pub fn check_as(path: &str, text: &str, expected: &str) {
    let actual = dump(&module(path, text));
    let expected = expected.trim_start_matches('\n');
    assert!(
        actual == expected,
        "\n--- source\n{text}\n--- expected\n{expected}\n--- actual\n{actual}"
    );
}
