//! Schemas, the command line reference and the rule pages are as `toctou dev generate` makes them.

use std::path::Path;

#[test]
fn generated_files_are_current() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let run = crate::common::run_in(&root, &["dev", "generate", "--check"], &[]);
    assert_eq!(run.code, Some(0), "{}", run.stderr);
}
