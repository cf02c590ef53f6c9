//! The program as CI runs it: the whole site, from the repository's own pages.

use std::path::Path;
use std::process::Command;

#[test]
fn the_site_is_made_from_the_repository() {
    let folder = tempfile::tempdir().expect("a folder");
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let made = Command::new(env!("CARGO_BIN_EXE_toctou-site"))
        .arg(folder.path())
        .current_dir(root)
        .output()
        .expect("it runs");
    assert!(made.status.success(), "{made:?}");
    let rules = std::fs::read_dir(folder.path().join("docs/rules")).expect("pages of rules");
    assert!(rules.count() > 20);
    let index = std::fs::read_to_string(folder.path().join("index.html")).expect("a first page");
    assert!(index.contains("<title>"), "{index}");
}
