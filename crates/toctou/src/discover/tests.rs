use std::path::PathBuf;

use super::*;

struct Tree(tempfile::TempDir);

impl Tree {
    fn new(files: &[&str]) -> Self {
        let tree = Self(tempfile::tempdir().expect("folder"));
        for file in files {
            let (path, text) = file.split_once('=').unwrap_or((file, "x"));
            let path = tree.0.path().join(path);
            std::fs::create_dir_all(path.parent().expect("parent")).expect("folder");
            std::fs::write(path, text).expect("file");
        }
        tree
    }

    fn at(&self, path: &str) -> PathBuf {
        self.0.path().join(path)
    }

    fn scan(&self, paths: &[&str]) -> Discovery {
        let paths: Vec<PathBuf> = paths.iter().map(|path| self.at(path)).collect();
        discover(&root(&paths).expect("paths exist"), &GlobSet::empty(), "")
    }
}

fn names(found: &Discovery) -> Vec<&str> {
    found.files.iter().map(|file| file.path.as_str()).collect()
}

fn skipped(found: &Discovery) -> Vec<(&str, &str)> {
    found
        .skipped
        .iter()
        .map(|s| (s.file.as_str(), s.reason.as_str()))
        .collect()
}

#[test]
fn leaves_out_what_others_wrote_or_a_tool_made() {
    let tree = Tree::new(&[
        "src/b.ts",
        "src/a.ts",
        "src/types.d.ts",
        "README.md",
        "dist/a.js",
        "dist/b/c.js",
        "lib/x.min.js",
        "node_modules/p/index.js",
        ".hidden/a.ts",
        "package.json",
        "venv/lib/x.py",
        "src/third_party/big.js",
        "Server.java",
    ]);
    let found = tree.scan(&[""]);
    assert_eq!(names(&found), ["src/a.ts", "src/b.ts"]);
    assert_eq!(
        skipped(&found),
        [
            ("node_modules/", "vendored"),
            ("src/third_party/", "vendored"),
            ("venv/", "vendored"),
            ("dist/", "generated, 2 files"),
            ("lib/x.min.js", "minified")
        ]
    );
    assert_eq!(found.skipped_files, 6);
    // The README tells how the program is started.
    assert_eq!(found.manifests.len(), 2);
    assert_eq!(found.other_languages.get("Java"), Some(&1));
}

#[test]
fn honours_gitignore_without_a_repository() {
    let tree = Tree::new(&[".gitignore=gen/\n", "gen/a.ts", "b.ts"]);
    assert_eq!(names(&tree.scan(&[""])), ["b.ts"]);
}

#[test]
fn scans_a_published_package() {
    let big = format!("dist/index.js={}", "x".repeat(500));
    let tree = Tree::new(&[
        "package.json",
        &big,
        "dist/index.d.ts",
        "cli.js=y",
        "node_modules/p/i.js",
    ]);
    let found = tree.scan(&[""]);
    assert!(found.generated);
    assert_eq!(names(&found), ["cli.js", "dist/index.js"]);
}

#[test]
fn one_build_in_two_formats_is_read_once() {
    let file = |name: &str| format!("{name}={}", "x".repeat(100));
    let all = [
        "dist/index.js",
        "dist/index.cjs",
        "dist/other.mjs",
        "dist/other.js",
        // Shared parts have a hash in their names.
        "dist/chunk-AAAA.js",
        "dist/chunk-BBBB.cjs",
        // There is no other of it, or it is another.
        "dist/bin.cjs",
        "dist/small.js",
        "dist/sub/chunk-CCCC.cjs",
        "dist/cjs/a.js",
        "dist/esm/a.js",
        "dist/cjs/b.js",
    ]
    .map(file);
    let mut all: Vec<&str> = all.iter().map(String::as_str).collect();
    let large = format!("dist/small.cjs={}", "x".repeat(1000));
    all.extend(["package.json", &large]);
    let found = Tree::new(&all).scan(&[""]);
    assert_eq!(
        names(&found),
        [
            "dist/bin.cjs",
            "dist/chunk-AAAA.js",
            "dist/cjs/b.js",
            "dist/esm/a.js",
            "dist/index.js",
            "dist/other.js",
            "dist/small.cjs",
            "dist/small.js",
            "dist/sub/chunk-CCCC.cjs",
        ]
    );
    assert_eq!(
        skipped(&found),
        [(".", "the same code in another module format, 4 files")]
    );
}

#[test]
fn the_format_that_is_started_is_read() {
    let tree = Tree::new(&[
        r#"package.json={"bin": {"server": "./dist/index.cjs"}}"#,
        "dist/index.js=xxxxx",
        "dist/index.cjs=xxxxx",
        "dist/chunk-AAAA.js=xxxxx",
        "dist/chunk-BBBB.cjs=xxxxx",
    ]);
    let found = tree.scan(&[""]);
    assert_eq!(names(&found), ["dist/chunk-BBBB.cjs", "dist/index.cjs"]);
}

#[test]
fn a_path_into_node_modules_is_scanned() {
    let tree = Tree::new(&[
        "node_modules/p/index.js",
        "node_modules/p/node_modules/q/index.js",
    ]);
    assert_eq!(names(&tree.scan(&["node_modules/p"])), ["index.js"]);
}

#[test]
fn a_file_that_is_named_is_always_scanned_as_product() {
    let tree = Tree::new(&["a.ts", "test/b.ts", "dist/c.js"]);
    let found = tree.scan(&["test/b.ts", "dist/c.js", "a.ts", "a.ts"]);
    assert_eq!(names(&found), ["a.ts", "dist/c.js", "test/b.ts"]);
    assert!(
        found
            .files
            .iter()
            .all(|file| file.role == FileRole::Product)
    );
}

#[test]
fn order_and_repetition_of_paths_do_not_matter() {
    let tree = Tree::new(&["x/a.ts", "y/b.ts", "y/z/c.ts"]);
    let one = tree.scan(&["x", "y"]);
    let other = tree.scan(&["y/z", "y", "x", "x", "y/z/c.ts"]);
    assert_eq!(names(&one), ["x/a.ts", "y/b.ts", "y/z/c.ts"]);
    assert_eq!(names(&other), names(&one));
}

#[test]
fn excludes_are_relative_to_the_config() {
    let tree = Tree::new(&["src/a.ts", "src/gen/b.ts"]);
    let mut set = globset::GlobSetBuilder::new();
    set.add(globset::Glob::new("packages/p/src/gen/**").expect("glob"));
    let root = root(&[tree.at("")]).expect("root");
    let found = discover(&root, &set.build().expect("set"), "packages/p/");
    assert_eq!(names(&found), ["src/a.ts"]);
    assert_eq!(found.skipped_files, 1);
}

#[cfg(unix)]
#[test]
fn symbolic_links_are_not_followed() {
    let tree = Tree::new(&["src/a.ts"]);
    std::os::unix::fs::symlink(tree.at(""), tree.at("src/loop")).expect("link");
    std::os::unix::fs::symlink(tree.at("src/a.ts"), tree.at("src/b.ts")).expect("link");
    let found = tree.scan(&[""]);
    assert_eq!(names(&found), ["src/a.ts"]);
    assert_eq!(skipped(&found), [("src/b.ts", "symbolic link")]);
}
