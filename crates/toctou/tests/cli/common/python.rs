//! A shape is a few lines of Python: what is said of a server on version 1 of the SDK.

#![allow(unreachable_pub)]

use super::Project;

#[track_caller]
pub fn scan(files: &[(&str, &str)], persona: &str) -> Vec<String> {
    let requirements = ("requirements.txt", "mcp>=1.9,<2\n");
    let project = Project::new(&[files, &[requirements]].concat());
    let run = project.run(&format!(
        "scan . --no-config --persona {persona} --output json"
    ));
    assert!(matches!(run.code, Some(0 | 1)), "{}", run.seen());
    assert_eq!(run.json()["summary"]["skipped"], 0, "{}", run.stdout);
    let mut found = run.rules();
    found.sort();
    found
}

#[track_caller]
pub fn files(rules: &[&str], files: &[(&str, &str)]) {
    assert_eq!(scan(files, "regular"), rules, "{files:?}");
}

#[track_caller]
pub fn expect(rules: &[&str], source: &str) {
    files(rules, &[("server.py", &format!("{HEAD}{source}"))]);
}

/// For those who ask for more, and not for everybody.
#[track_caller]
pub fn pedantic(rule: &str, source: &str) {
    let source = format!("{HEAD}{source}");
    let all = [("server.py", source.as_str())];
    assert_eq!(scan(&all, "regular"), Vec::<String>::new(), "{source}");
    let found = scan(&all, "pedantic");
    assert!(found.contains(&rule.to_owned()), "{found:?}\n{source}");
}

pub const HEAD: &str = "import asyncio, fcntl, functools, json, sqlite3
from pathlib import Path
from mcp.server.fastmcp import FastMCP
mcp = FastMCP(\"x\")
ROOT = Path(\"notes\")
def db():
    c = sqlite3.connect(\"a.db\")
    c.row_factory = sqlite3.Row
    return c
";
