//! Same input, same bytes: whatever the number of threads, the order of the
//! paths, the place where the folder lies, and however often it is asked.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use crate::common::{Project, run_in};

const FORMATS: &[&str] = &["json", "sarif", "text"];

fn testbed() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../testbed/typescript")
        .canonicalize()
        .expect("the testbed")
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).expect("a folder");
    for entry in std::fs::read_dir(from).expect("a folder") {
        let entry = entry.expect("an entry");
        let target = to.join(entry.file_name());
        if ["node_modules", "build", "venv"]
            .iter()
            .any(|made| entry.file_name() == *made)
        {
            continue;
        }
        if entry.file_type().expect("a type").is_dir() {
            copy(&entry.path(), &target);
        } else {
            std::fs::copy(entry.path(), &target).expect("a copy");
        }
    }
}

/// The bytes of every format, for every persona at once.
fn outputs(folder: &Path, args: &[&str]) -> Vec<(&'static str, String)> {
    FORMATS
        .iter()
        .map(|format| {
            let mut all = vec!["scan", "--persona", "auditor", "--no-config"];
            all.extend(["--verbose", "--no-progress", "--output", format]);
            all.extend(args);
            let run = run_in(folder, &all, &[]);
            assert!(matches!(run.code, Some(0 | 1)), "{}", run.seen());
            (*format, run.stdout)
        })
        .collect()
}

/// Says where, and does not print megabytes.
fn assert_same(first: &[(&'static str, String)], other: &[(&'static str, String)], what: &str) {
    for ((format, a), (_, b)) in first.iter().zip(other) {
        if a == b {
            continue;
        }
        let at = a.lines().zip(b.lines()).position(|(a, b)| a != b);
        let line = |text: &str| {
            at.and_then(|at| text.lines().nth(at))
                .map(str::to_owned)
                .unwrap_or_default()
        };
        panic!(
            "{what}: {format} differs at line {:?} ({} and {} bytes)\n  {}\n  {}",
            at.map(|at| at + 1),
            a.len(),
            b.len(),
            line(a),
            line(b),
        );
    }
}

/// Modules that import one another in circles, each with tools, state, files
/// and a lock of its own, and helpers that are reached by several ways.
fn generated(modules: usize) -> Project {
    let project = Project::new(&[("package.json", r#"{ "name": "circles", "type": "module" }"#)]);
    for n in 0..modules {
        let next = (n + 1) % modules;
        let far = (n * 7 + 3) % modules;
        let mut text = String::from(
            "import { McpServer } from \"@modelcontextprotocol/sdk/server/mcp.js\";\n\
             import { Mutex } from \"async-mutex\";\n\
             import { access, readFile, writeFile } from \"node:fs/promises\";\n",
        );
        let _ = writeln!(
            text,
            "import {{ load{next}, save{next} }} from \"../m{}/part{next}.js\";",
            next % 5
        );
        if far != next {
            let _ = writeln!(
                text,
                "import * as far from \"../m{}/part{far}.js\";",
                far % 5
            );
        } else {
            text.push_str("const far: any = {};\n");
        }
        let _ = write!(
            text,
            r#"
const server = new McpServer({{ name: "part{n}", version: "1" }});
const mutex{n} = new Mutex();
const seen{n} = new Map<string, number>();
let total{n} = 0;

export async function load{n}(name: string): Promise<string[]> {{
  return JSON.parse(await readFile(`data/${{name}}{n}.json`, "utf8"));
}}
export async function save{n}(name: string, list: string[]): Promise<void> {{
  await writeFile(`data/${{name}}{n}.json`, JSON.stringify(list));
}}
export async function around{n}(name: string, depth: number): Promise<number> {{
  if (depth === 0) return total{n};
  const before = seen{n}.get(name) ?? 0;
  const more = await far.around{far}(name, depth - 1);
  seen{n}.set(name, before + more);
  return before;
}}
server.registerTool("append_{n}", {{}}, async ({{ name, text }}) => {{
  const list = await load{next}(name);
  list.push(text);
  await save{next}(name, list);
  return {{ content: [] }};
}});
server.registerTool("create_{n}", {{}}, async ({{ name }}) => {{
  try {{
    await access(name);
  }} catch {{
    await writeFile(name, "new");
  }}
  return {{ content: [] }};
}});
server.registerTool("count_{n}", {{}}, async ({{ name }}) => {{
  const now = total{n};
  await around{n}(name, 3);
  total{n} = now + 1;
  await mutex{n}.runExclusive(async () => {{
    const list = await load{n}(name);
    await save{n}(name, list.slice(1));
  }});
  return {{ content: [] }};
}});
"#
        );
        project.write(&format!("src/m{}/part{n}.ts", n % 5), text);
    }
    let all: String = (0..modules)
        .map(|n| format!("export * from \"./m{}/part{n}.js\";\n", n % 5))
        .collect();
    project.write("src/index.ts", all);
    project
}

fn whatever_happens(folder: &Path) {
    let first = outputs(folder, &["--threads", "1"]);
    assert!(
        first[0].1.contains("\"rule\""),
        "a test of nothing: no findings"
    );
    for threads in ["1", "2", "8"] {
        let again = outputs(folder, &["--threads", threads]);
        assert_same(&first, &again, &format!("{threads} threads"));
    }
    let elsewhere = tempfile::tempdir().expect("a folder");
    let copied = elsewhere.path().join("some/other place");
    copy(folder, &copied);
    assert_same(&first, &outputs(&copied, &[]), "a copy in another folder");
}

#[test]
fn testbed_gives_the_same_bytes() {
    whatever_happens(&testbed());
}

#[test]
fn circles_of_imports_give_the_same_bytes() {
    whatever_happens(generated(23).path());
}

#[test]
fn order_of_paths_does_not_matter() {
    let folder = testbed();
    let first = outputs(&folder, &["racy", "repaired", "smoke.mjs"]);
    for order in [
        ["smoke.mjs", "repaired", "racy"],
        ["repaired", "racy", "smoke.mjs"],
    ] {
        assert_same(&first, &outputs(&folder, &order), &order.join(" "));
    }
    let project = generated(11);
    let (forth, back) = (
        ["src/m0", "src/m1", "src/m2", "src/m3", "src/m4"],
        ["src/m4", "src/m3", "src/m2", "src/m1", "src/m0"],
    );
    assert_same(
        &outputs(project.path(), &forth),
        &outputs(project.path(), &back),
        "folders backwards",
    );
}

/// A directory lists its entries in the order in which they were made, or in
/// that of a hash; neither may be seen.
#[test]
fn order_of_creation_does_not_matter() {
    let source = generated(11);
    let mut files: Vec<PathBuf> = Vec::new();
    let mut folders = vec![source.path().to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                folders.push(path);
            } else {
                files.push(path);
            }
        }
    }
    files.sort();
    let make = |order: &mut dyn Iterator<Item = &PathBuf>| {
        let project = Project::new(&[]);
        for file in order {
            let path = file.strip_prefix(source.path()).expect("inside");
            let text = std::fs::read(file).expect("a file");
            project.write(path.to_str().expect("text"), text);
        }
        project
    };
    let forth = make(&mut files.iter());
    let back = make(&mut files.iter().rev());
    assert_same(
        &outputs(forth.path(), &[]),
        &outputs(back.path(), &[]),
        "files made backwards",
    );
}
