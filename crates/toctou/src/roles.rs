//! What a file is there for, by its path: product, test, example or script;
//! written by hand or made by a tool.

use toctou_core::FileRole;

/// Folders of code that others wrote. Never scanned from outside.
pub(crate) const VENDORED: &[&str] = &[
    "node_modules",
    "bower_components",
    "jspm_packages",
    "venv",
    ".venv",
    "site-packages",
    "__pycache__",
    "vendor",
    "third_party",
    "third-party",
];

/// Folders of code that a tool made.
const GENERATED: &[&str] = &["dist", "build", "out", ".next", "coverage"];

const TESTS: &[&str] = &[
    "__tests__",
    "__mocks__",
    "__fixtures__",
    "test",
    "tests",
    "e2e",
    "fixtures",
    "mocks",
    "testdata",
];
const EXAMPLES: &[&str] = &[
    "examples", "example", "demo", "demos", "samples", "sample", "docs",
];
const SCRIPTS: &[&str] = &["scripts", "bench", "benches", "benchmark", "benchmarks"];

/// `path` is relative to the scanned root, with `/`. Tests are told by [`is_test`].
pub(crate) fn role(path: &str) -> FileRole {
    let (folders, name) = split(path);
    let within = |set: &[&str]| folders.iter().any(|folder| set.contains(folder));
    if name == "build.rs" {
        FileRole::Script
    } else if within(EXAMPLES) {
        FileRole::Example
    } else if name.contains(".config.") || within(SCRIPTS) || is_kept_copy(name) {
        FileRole::Script
    } else {
        FileRole::Product
    }
}

/// `server_old.py`, `server_backup_20250830.py`: kept beside what took its place. What the product
/// loads is part of it all the same.
fn is_kept_copy(name: &str) -> bool {
    let stem = name.split('.').next().unwrap_or_default();
    let mut words = stem.rsplit(['_', '-']).peekable();
    let is_number = |word: &&str| !word.is_empty() && word.bytes().all(|b| b.is_ascii_digit());
    let mut dated = false;
    while words.next_if(is_number).is_some() {
        dated = true;
    }
    let last = words.next().unwrap_or_default();
    words.next().is_some()
        && (matches!(last, "old" | "bak" | "orig") || dated && matches!(last, "backup" | "copy"))
}

/// A race that a test has with itself is nobody's loss, and the stand-ins that it
/// hands to the product are not what the product is given.
pub(crate) fn is_test(path: &str) -> bool {
    let (folders, name) = split(path);
    name.contains(".test.")
        || name.contains(".spec.")
        || name.ends_with("_test.go")
        || (name.ends_with(".py")
            && (name.starts_with("test_") || name.ends_with("_test.py") || name == "conftest.py"))
        || folders.iter().any(|folder| TESTS.contains(folder))
}

/// The outermost folder of generated code that the path is in (`packages/a/dist/`),
/// or the path itself if its name says that it is minified.
pub(crate) fn generated(path: &str) -> Option<&str> {
    let (folders, name) = split(path);
    let mut end = 0;
    for folder in folders {
        end += folder.len() + 1;
        if GENERATED.contains(&folder) {
            return path.get(..end);
        }
    }
    [".min.js", ".min.mjs", ".min.cjs", ".bundle.js"]
        .iter()
        .any(|tail| name.ends_with(tail))
        .then_some(path)
}

/// Long lines, and not just one long string in a small file.
pub(crate) fn is_minified(text: &str) -> bool {
    const SMALL: usize = 5 * 1024;
    // As many lines as there are where each has one byte too many: others are seen to have
    // more of them soon.
    let long = text.len() / 501;
    let mut breaks = text.bytes().filter(|&b| b == b'\n');
    text.len() >= SMALL && (breaks.nth(long - 1).is_none() || is_made_for_a_browser(text))
}

/// A bundle of a page, which has its styles in it, line by line: half of it are long lines of code.
/// (What servers are bundled to has such lines, too, and no document.)
fn is_made_for_a_browser(text: &str) -> bool {
    const LONG: usize = 2_000;
    // Of every so many characters of code one ends a statement or begins a list of arguments.
    const SPARSE: usize = 60;
    let mut short = 0;
    let mut lines = text.split('\n').filter(|line| line.len() <= LONG);
    // Most are seen to be something else half-way.
    if lines.any(|line| {
        short += line.len() + 1;
        short * 2 > text.len()
    }) {
        return false;
    }
    let long = || text.split('\n').filter(|line| line.len() > LONG);
    let size: usize = long().map(str::len).sum();
    let is_mark = |b: &u8| matches!(b, b';' | b'(');
    long().flat_map(str::bytes).filter(is_mark).count() * SPARSE >= size
        && ["document.createElement", "document.querySelector"]
            .iter()
            .any(|call| text.contains(call))
}

fn split(path: &str) -> (Vec<&str>, &str) {
    let mut parts: Vec<&str> = path.split('/').collect();
    let name = parts.pop().unwrap_or_default();
    (parts, name)
}

/// Languages that MCP servers are written in and toctou does not know: said, not silently passed over.
pub(crate) fn unsupported_language(extension: &str) -> Option<&'static str> {
    match extension {
        "java" => Some("Java"),
        "kt" => Some("Kotlin"),
        "cs" => Some("C#"),
        "rb" => Some("Ruby"),
        "php" => Some("PHP"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roles_follow_folders_and_names() {
        assert_eq!(role("src/index.ts"), FileRole::Product);
        assert!(is_test("src/index.test.ts"));
        assert!(is_test("src/__tests__/a.ts"));
        assert!(is_test("pkg/test_store.py"));
        assert!(is_test("pkg/store_test.py"));
        assert!(is_test("conftest.py"));
        assert_eq!(role("pkg/store.py"), FileRole::Product);
        assert!(is_test("pkg/store/store_test.go"));
        assert!(is_test("pkg/testdata/a.go"));
        assert_eq!(role("packages/a/examples/b.ts"), FileRole::Example);
        assert_eq!(role("vitest.config.ts"), FileRole::Script);
        assert_eq!(role("scripts/release.mjs"), FileRole::Script);
        // Kept beside what took its place; what makes copies is none.
        assert_eq!(role("server_backup_20250830_135313.py"), FileRole::Script);
        assert_eq!(role("src/server-old.ts"), FileRole::Script);
        assert_eq!(role("src/db_backup.py"), FileRole::Product);
        assert_eq!(role("old.py"), FileRole::Product);
        assert_eq!(role("src/threshold.py"), FileRole::Product);
        // A file that is called like a folder is not in it.
        assert_eq!(role("src/tests.ts"), FileRole::Product);
        assert_eq!(role("src/contest/a.ts"), FileRole::Product);
    }

    #[test]
    fn generated_names_the_outermost_folder() {
        assert_eq!(
            generated("packages/a/dist/x/build/y.js"),
            Some("packages/a/dist/")
        );
        assert_eq!(generated("lib/jquery.min.js"), Some("lib/jquery.min.js"));
        assert_eq!(generated("src/builder/a.ts"), None);
    }

    #[test]
    fn minified_is_long_lines_in_a_large_file() {
        assert!(is_minified(&"x();".repeat(2000)));
        assert!(!is_minified(&"x();".repeat(200)));
        assert!(!is_minified(&"x();\n".repeat(2000)));
        // Of a page that is bundled with its styles, of a server with a long text, and with data.
        let styles = "    height: 1px;\n".repeat(400);
        let code = "let e=document.createElement(t);".repeat(400);
        assert!(is_minified(&format!("{code}\n{styles}")));
        let server = "let e=await read(t);".repeat(400);
        assert!(!is_minified(&format!("{server}\n{styles}")));
        let data = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJ".repeat(400);
        let page = "document.createElement(t);\n".repeat(400);
        assert!(!is_minified(&format!("const image = \"{data}\";\n{page}")));
    }
}
