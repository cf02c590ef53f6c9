//! Input that means harm, or looks as if it did. Whatever comes: the real binary
//! ends, in time and in bounded memory, with an exit code of the contract, and
//! says what it did not analyse.

use std::fmt::Write as _;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::common::{Project, QUIET, RACY};
use serde_json::Value;

/// Generous: a debug build on a busy machine.
const SECONDS: u64 = 240;
/// Of address space, in kilobytes; stacks are reserved there, not used.
const MEMORY: u64 = 4_000_000;

struct Ended {
    code: Option<i32>,
    stdout: String,
    stderr: String,
    took: Duration,
}

impl Ended {
    fn json(&self) -> Value {
        serde_json::from_str(&self.stdout)
            .unwrap_or_else(|error| panic!("{error}: {}\n{}", self.stdout, self.stderr))
    }

    /// Why `file` was skipped.
    fn reason(&self, file: &str) -> String {
        let json = self.json();
        let skipped = json["skipped"].as_array().expect("skipped");
        let found = skipped.iter().find(|s| s["file"] == file);
        let found = found.unwrap_or_else(|| panic!("{file} is not skipped: {skipped:?}"));
        found["reason"].as_str().expect("a reason").to_owned()
    }

    /// The whole scan went through: `files` of them, none skipped.
    fn is_complete(&self, files: u64) -> &Self {
        let json = self.json();
        assert!(matches!(self.code, Some(0 | 1)), "{:?}", self.code);
        assert_eq!(json["summary"]["skipped"], 0, "{}", json["skipped"]);
        assert_eq!(json["summary"]["files"], files);
        self
    }
}

/// Two threads, so that the reserved stacks are the same on every machine.
fn scan(project: &Project, args: &str) -> Ended {
    let args = format!("scan --no-config --threads 2 {args}");
    ended(project, &mut limited(&args), SECONDS)
}

fn scan_json(project: &Project, args: &str) -> Ended {
    scan(project, &format!("--output json {args}"))
}

/// The binary, under a limit of memory if this system has one.
fn limited(args: &str) -> Command {
    let binary = env!("CARGO_BIN_EXE_toctou");
    if !cfg!(target_os = "linux") {
        let mut command = Command::new(binary);
        command.args(args.split_whitespace());
        return command;
    }
    let mut command = Command::new("sh");
    command
        .arg("-c")
        .arg(format!("ulimit -v {MEMORY}; exec \"$0\" \"$@\""))
        .arg(binary)
        .args(args.split_whitespace());
    command
}

/// Output goes to files: a full pipe must not look like a hang.
fn ended(project: &Project, command: &mut Command, seconds: u64) -> Ended {
    let output = tempfile::tempdir().expect("a folder");
    let file = |name: &str| std::fs::File::create(output.path().join(name)).expect("a file");
    let path = std::env::var_os("PATH").unwrap_or_default();
    let start = Instant::now();
    let mut child = command
        .current_dir(project.path())
        .env_clear()
        .env("PATH", path)
        .env("LANG", "C.UTF-8")
        .env("COLUMNS", "90")
        .stdin(Stdio::null())
        .stdout(file("stdout"))
        .stderr(file("stderr"))
        .spawn()
        .expect("toctou runs");
    let status = loop {
        if let Some(status) = child.try_wait().expect("a child") {
            break status;
        }
        if start.elapsed() > Duration::from_secs(seconds) {
            let _ = child.kill();
            let _ = child.wait();
            panic!("not done in {seconds} seconds");
        }
        std::thread::sleep(Duration::from_millis(10));
    };
    let text = |name: &str| {
        let bytes = std::fs::read(output.path().join(name)).expect("output");
        String::from_utf8(bytes).expect("output is UTF-8")
    };
    let ended = Ended {
        code: status.code(),
        stdout: text("stdout"),
        stderr: text("stderr"),
        took: start.elapsed(),
    };
    let both = [&ended.stdout, &ended.stderr];
    for sign in [
        "panicked",
        "overflowed",
        "toctou itself failed",
        "toctou failed on it",
    ] {
        assert!(
            !both.iter().any(|text| text.contains(sign)),
            "{sign}: {status}\n{}",
            ended.stderr
        );
    }
    assert!(
        matches!(ended.code, Some(0..=3)),
        "{status}\n{}",
        ended.stderr
    );
    ended
}

/// `text` alone in a file, beside one that is in order.
fn beside(text: impl AsRef<[u8]>) -> Project {
    let project = Project::new(&[("ok.ts", QUIET)]);
    project.write("hostile.ts", text);
    project
}

// ---- files that are no source

#[test]
fn truncated() {
    for before in ["(FILE, \"utf8\")", "JSON.stringify", "notes.push(text)"] {
        let at = RACY.find(before).expect("a place") + 5;
        let run = scan_json(&beside(&RACY[..at]), "");
        assert_eq!(run.code, Some(0), "{}", run.stderr);
        assert_eq!(run.json()["summary"]["skipped"], 1, "cut at {at}");
        assert!(!run.reason("hostile.ts").is_empty());
    }
}

#[test]
fn truncated_anywhere() {
    // All in one scan: each is analysed or reported, none is lost.
    let project = Project::new(&[("ok.ts", QUIET)]);
    let cuts: Vec<usize> = (0..RACY.len()).step_by(7).collect();
    for at in &cuts {
        project.write(&format!("cut{at}.ts"), &RACY[..*at]);
    }
    let run = scan_json(&project, "");
    let summary = &run.json()["summary"];
    let counted =
        summary["files"].as_u64().expect("files") + summary["skipped"].as_u64().expect("skipped");
    assert_eq!(counted as usize, cuts.len() + 1);
}

#[test]
fn binary() {
    let bytes: Vec<u8> = (0..200_000u32).map(|n| (n * 7 + n / 256) as u8).collect();
    let run = scan_json(&beside(bytes), "");
    assert_eq!(run.code, Some(0));
    assert_eq!(run.reason("hostile.ts"), "not text");
}

#[test]
fn not_utf8() {
    let mut bytes = RACY.as_bytes().to_vec();
    bytes.extend(b"// caf\xe9 \xff\xfe\xc3\x28 \xed\xa0\x80\nexport const x\xe9 = \"\xf0\x28\";\n");
    let run = scan_json(&beside(bytes), "");
    let json = run.json();
    // In an identifier it is an error, elsewhere it is replaced; said either way.
    let said = json["notes"].to_string() + &json["skipped"].to_string();
    assert!(said.contains("hostile.ts"), "{said}");
    let run = scan_json(&beside([RACY.as_bytes(), b"// caf\xe9\n"].concat()), "");
    assert_eq!(run.code, Some(1));
    assert!(run.json()["notes"].to_string().contains("UTF-8"));
}

#[test]
fn utf16_and_byte_order_marks() {
    let utf16: Vec<u8> = std::iter::once(0xfeff)
        .chain(RACY.encode_utf16())
        .flat_map(u16::to_le_bytes)
        .collect();
    assert_eq!(
        scan_json(&beside(utf16), "").reason("hostile.ts"),
        "not text"
    );
    let marked = [b"\xef\xbb\xbf", RACY.as_bytes()].concat();
    let run = scan_json(&beside(marked), "");
    assert_eq!(run.is_complete(2).code, Some(1));
}

#[test]
fn empty_and_nearly_empty() {
    let project = Project::new(&[
        ("empty.ts", ""),
        ("space.ts", " \n\t\r\n"),
        ("comment.ts", "/* nothing */"),
        ("hashbang.js", "#!/usr/bin/env node"),
        ("semicolon.ts", ";"),
        ("separator.ts", "\u{2028}\u{2029}"),
        ("package.json", ""),
        ("tsconfig.json", "{"),
    ]);
    assert_eq!(scan_json(&project, "").is_complete(6).code, Some(0));
}

#[test]
fn only_hostile_files() {
    let project = Project::new(&[]);
    project.write("a.ts", b"\x00\x00");
    project.write("b.ts", "export const = ;");
    let run = scan_json(&project, "");
    assert_eq!(run.code, Some(2));
    assert!(run.stderr.contains("a.ts: not text"), "{}", run.stderr);
}

#[test]
fn manifests_that_lie() {
    let deep = "{\"a\":".repeat(100_000);
    let project = Project::new(&[
        (
            "src/a.ts",
            "import { b } from \"@/b\";\nexport const a = b;\n",
        ),
        (
            "src/b.ts",
            "import { a } from \"pkg/a\";\nexport const b = a;\n",
        ),
        ("package.json", &deep),
        (
            "src/package.json",
            r##"{ "name": 5, "exports": { "./*": [[[["./*"]]]], "." : null }, "imports": { "#a": "#a" } }"##,
        ),
        (
            "tsconfig.json",
            r#"{ "extends": "./tsconfig.base.json", "compilerOptions": { "paths": { "@/*": ["./src/*", "../../../../*"], "*": ["*"] } } }"#,
        ),
        (
            "tsconfig.base.json",
            r#"{ "extends": ["./tsconfig.json", "./tsconfig.base.json"] }"#,
        ),
        (
            "pnpm-workspace.yaml",
            "packages:\n  - '../../**'\n  - '!!!'\n",
        ),
    ]);
    scan_json(&project, "").is_complete(2);
}

// ---- folders

#[cfg(unix)]
#[test]
fn links_in_circles() {
    use std::os::unix::fs::symlink;

    let project = Project::new(&[("src/a.ts", RACY)]);
    symlink(project.at("src"), project.at("src/again")).expect("a link");
    symlink(project.path(), project.at("src/up")).expect("a link");
    symlink(project.at("b.ts"), project.at("c.ts")).expect("a link");
    symlink(project.at("c.ts"), project.at("b.ts")).expect("a link");
    let run = scan_json(&project, "");
    assert_eq!(run.code, Some(1));
    assert_eq!(run.json()["summary"]["files"], 1, "each file once");
    assert_eq!(run.reason("b.ts"), "symbolic link");
    assert_eq!(run.reason("c.ts"), "symbolic link");
    // By name, a link that leads nowhere is a path that is not there.
    let run = scan(&project, "b.ts");
    assert_eq!(run.code, Some(2));
    assert!(run.stderr.contains("no such file"), "{}", run.stderr);
}

#[cfg(unix)]
#[test]
fn things_that_are_not_files() {
    let project = Project::new(&[("a.ts", QUIET), ("folder.ts/inner.ts", QUIET)]);
    std::os::unix::fs::symlink("/nowhere/at/all.ts", project.at("dangling.ts")).expect("a link");
    let fifo = Command::new("mkfifo").arg(project.at("fifo.ts")).status();
    let run = scan_json(&project, "");
    assert_eq!(run.code, Some(0));
    assert_eq!(run.json()["summary"]["files"], 2);
    assert_eq!(run.reason("dangling.ts"), "symbolic link");
    if fifo.is_ok_and(|status| status.success()) {
        // Opening it would wait for somebody to write, for ever.
        assert_eq!(run.reason("fifo.ts"), "not a regular file");
    }
}

/// Root reads everything, so as root this runs as nobody.
#[cfg(unix)]
#[test]
fn unreadable() {
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};

    let project = Project::new(&[
        ("ok.ts", QUIET),
        ("secret.ts", RACY),
        ("locked/inner.ts", RACY),
        ("package.json", "{}"),
    ]);
    // A copy: nobody may not be able to reach the folder that cargo builds in.
    let binary = project.at("toctou");
    std::fs::copy(env!("CARGO_BIN_EXE_toctou"), &binary).expect("a copy");
    let mode = |path: &str, mode| {
        std::fs::set_permissions(project.at(path), std::fs::Permissions::from_mode(mode))
            .expect("permissions");
    };
    mode("", 0o755);
    mode("toctou", 0o755);
    mode("ok.ts", 0o644);
    for path in ["secret.ts", "locked", "package.json"] {
        mode(path, 0o000);
    }
    let is_root = std::fs::metadata(project.path()).expect("a folder").uid() == 0;
    let mut command = if is_root {
        let mut command = Command::new("setpriv");
        command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]);
        command.arg(&binary);
        command
    } else {
        Command::new(&binary)
    };
    let can_drop = !is_root
        || Command::new("setpriv")
            .args(["--reuid=65534", "--regid=65534", "--clear-groups", "true"])
            .status()
            .is_ok_and(|status| status.success());
    if can_drop {
        command.args(["scan", "--no-config", "--output", "json"]);
        let run = ended(&project, &mut command, SECONDS);
        assert_eq!(run.code, Some(0), "{}", run.stderr);
        assert_eq!(run.json()["summary"]["files"], 1);
        assert!(run.reason("secret.ts").contains("Permission denied"));
        assert!(run.reason("locked").contains("Permission denied"));
    } else {
        eprintln!("not tested: cannot become another user here");
    }
    mode("locked", 0o755);
}

#[test]
fn names_that_terminals_act_on() {
    let project = Project::new(&[]);
    project.write("a\u{1b}[31m\u{7}\n::error::x\u{202e}.ts", RACY);
    project.write("b \u{1b}]0;title\u{7}.ts", b"\x00");
    for format in ["text", "github", "markdown"] {
        let run = scan(&project, &format!("--output {format}"));
        assert_eq!(run.code, Some(1), "{}", run.stderr);
        assert_harmless(&run.stdout, format);
        assert_harmless(&run.stderr, format);
    }
}

// ---- nesting

/// Line breaks, so that it is not taken for minified code and left out.
fn nested(open: &str, middle: &str, close: &str, depth: usize) -> String {
    let mut text = String::new();
    for _ in 0..depth {
        text.push_str(open);
        text.push('\n');
    }
    text.push_str(middle);
    text.push('\n');
    for _ in 0..depth {
        text.push_str(close);
        text.push('\n');
    }
    text
}

/// Analysed, or named as too deep; the file beside it is analysed in any case.
fn survives(what: &str, text: &str) {
    let project = beside(text);
    let run = scan_json(&project, "");
    let json = run.json();
    let files = json["summary"]["files"].as_u64().expect("files");
    let skipped = json["summary"]["skipped"].as_u64().expect("skipped");
    assert_eq!(files + skipped, 2, "{what}: {}", json["skipped"]);
    if skipped == 1 {
        let reason = run.reason("hostile.ts");
        assert!(
            !reason.contains("expected") && !reason.contains("Unexpected"),
            "{what}: the test's source is wrong: {reason}"
        );
    }
    eprintln!("{what}: {files} analysed, {:.1} s", run.took.as_secs_f64());
}

#[test]
fn nested_arrays() {
    survives(
        "arrays",
        &format!("const x = {};", nested("[", "1", "]", 10_000)),
    );
}

#[test]
fn nested_parentheses() {
    survives(
        "parentheses",
        &format!("const x = {};", nested("(", "1", ")", 10_000)),
    );
}

#[test]
fn nested_ifs() {
    let ifs = nested("if (a) {", "a();", "}", 10_000);
    survives("ifs", &format!("function f(a: any) {{\n{ifs}}}\n"));
}

#[test]
fn nested_functions() {
    survives("functions", &nested("function f() {", "f();", "}", 10_000));
    survives(
        "arrows",
        &format!(
            "const x = {};",
            nested("() => {\nreturn (", "1", ")\n}", 5_000)
        ),
    );
}

#[test]
fn nested_async_closures_over_one_variable() {
    let open = "await Promise.all([1].map(async () => {\nshared = shared + 1;";
    let text = nested(open, "shared = 0;", "}));", 300);
    survives(
        "closures",
        &format!("let shared = 0;\nexport async function f() {{\n{text}}}\n"),
    );
}

#[test]
fn nested_templates() {
    survives(
        "templates",
        &format!("const x = {};", nested("`a${", "1", "}b`", 10_000)),
    );
}

#[test]
fn nested_objects_calls_and_types() {
    survives(
        "objects",
        &format!("const x = {};", nested("{ a:", "1", "}", 10_000)),
    );
    survives(
        "calls",
        &format!("const x = {};", nested("f(", "1", ")", 10_000)),
    );
    survives(
        "types",
        &format!("type T = {};", nested("Array<", "1", ">", 5_000)),
    );
    survives("blocks", &nested("{", ";", "}", 10_000));
    survives("tries", &nested("try {", ";", "} finally { f(); }", 3_000));
    survives("loops", &nested("for (;;) {", "break;", "}", 5_000));
    survives("classes", &nested("class A { m() {", ";", "} }", 3_000));
    survives(
        "awaits",
        &format!(
            "async function f() {{ return {} 1; }}",
            "await\n".repeat(5_000)
        ),
    );
    survives("nots", &format!("const x = {} 1;", "!\n".repeat(10_000)));
}

#[test]
fn unclosed_nesting() {
    for open in [
        "(",
        "[",
        "{",
        "`${",
        "f(",
        "if (a) {",
        "<a>",
        "async () => {",
    ] {
        let text = format!("{open}\n").repeat(10_000);
        let run = scan_json(&beside(text), "");
        assert_eq!(run.json()["summary"]["files"], 1, "{open}");
        assert!(!run.reason("hostile.ts").is_empty());
    }
}

#[test]
fn long_chains() {
    let mut ifs = String::from("export function f(a: number) {\n  if (a === 0) return 0;\n");
    for n in 1..10_000 {
        let _ = writeln!(ifs, "  else if (a === {n}) return {n};");
    }
    survives("else-if", &(ifs + "}\n"));
    survives(
        "plus",
        &format!("const a = 1;\nconst x = a{};\n", "\n+ a".repeat(10_000)),
    );
    survives(
        "commas",
        &format!("const x = (1{});\n", "\n, 1".repeat(10_000)),
    );
    survives(
        "ands",
        &format!("const x = a{};\n", "\n&& a".repeat(10_000)),
    );
    survives(
        "members",
        &format!("const x = a{};\n", "\n.a".repeat(10_000)),
    );
    survives(
        "thens",
        &format!("const x = a{};\n", "\n.then((a) => a)".repeat(5_000)),
    );
    survives(
        "ternaries",
        &format!("const x = {}0;\n", "a ? 1 :\n".repeat(10_000)),
    );
    survives(
        "assignments",
        &format!("let a = 0;\n{}0;\n", "a =\n".repeat(10_000)),
    );
    let mut cases = String::from("export function g(a: number) {\n  switch (a) {\n");
    for n in 0..10_000 {
        let _ = writeln!(cases, "    case {n}:\n      a += {n};");
    }
    survives("cases", &(cases + "  }\n}\n"));
}

// ---- programs

const SERVER: &str = "import { McpServer } from \"@modelcontextprotocol/sdk/server/mcp.js\";\n\
    import { readFile, writeFile } from \"node:fs/promises\";\n\
    const server = new McpServer({ name: \"hostile\", version: \"1\" });\n";

#[test]
fn imports_in_circles() {
    let project = Project::new(&[]);
    for n in 0..100 {
        let next = (n + 1) % 100;
        project.write(
            &format!("m{n}.ts"),
            format!(
                "import {{ value as other, change as otherChange }} from \"./m{next}.js\";\n\
                 export let value = other;\n\
                 export async function change(x: number): Promise<void> {{\n\
                 \u{20} const before = value;\n\
                 \u{20} await otherChange(x);\n\
                 \u{20} value = before + x;\n\
                 }}\n\
                 export {{ change as again{n} }} from \"./m{next}.js\";\n"
            ),
        );
    }
    scan_json(&project, "").is_complete(100);
}

/// Every module passes on everything of all others, and a name that none of them has.
#[test]
fn exports_of_everything_by_everybody() {
    const MODULES: usize = 12;
    let project = Project::new(&[]);
    for i in 0..MODULES {
        let next = (i + 1) % MODULES;
        let others = (0..MODULES).filter(|k| *k != i);
        let stars: String = others
            .map(|k| format!("export * from \"./m{k}.js\";\n"))
            .collect();
        let text = format!(
            "import {{ x, T }} from \"./m{next}.js\";\nexport {{ x, T }};\n{stars}\
             export async function f{i}(t: T) {{ await x(t); }}\n"
        );
        project.write(&format!("m{i}.ts"), text);
    }
    scan_json(&project, "").is_complete(MODULES as u64);
}

#[test]
fn exports_in_circles() {
    let project = Project::new(&[(
        "self.ts",
        "export * from \"./self.js\";\nexport * as self from \"./self.js\";\n",
    )]);
    for n in 0..50 {
        let text: String = (0..50)
            .map(|m| format!("export * from \"./m{m}.js\";\n"))
            .collect();
        project.write(&format!("m{n}.ts"), text);
    }
    project.write("user.ts", "import { nothing, nobody } from \"./m0.js\";\nimport { self } from \"./self.js\";\nnothing();\nself.self.self.nobody();\nnobody();\n");
    project.write("renamed.ts", "export { a as b, b as a } from \"./renamed.js\";\nimport { a } from \"./renamed.js\";\na();\n");
    scan_json(&project, "").is_complete(53);
}

#[test]
fn two_hundred_thousand_lines() {
    let mut text = String::from(SERVER);
    for n in 0..20_000 {
        let _ = write!(
            text,
            "export async function f{n}(name: string): Promise<string[]> {{\n\
             \u{20} const list: string[] = JSON.parse(await readFile(name, \"utf8\"));\n\
             \u{20} if (list.length > {n}) {{\n\
             \u{20}   return list;\n\
             \u{20} }}\n\
             \u{20} list.push(`${{name}} {n}`);\n\
             \u{20} list.sort();\n\
             \u{20} return list;\n\
             }}\n\n"
        );
    }
    assert!(text.lines().count() >= 200_000);
    let project = Project::new(&[("big.ts", &text)]);
    let run = scan_json(&project, "big.ts --max-file-size 100");
    run.is_complete(1);
    eprintln!("200,000 lines: {:.1} s", run.took.as_secs_f64());
}

#[test]
fn everybody_calls_everybody() {
    // One knot of recursion. A debug build takes twenty times as long.
    let count = if cfg!(debug_assertions) { 60 } else { 1_000 };
    let mut text = String::from(SERVER);
    text.push_str("let total = 0;\n");
    for n in 0..count {
        let _ = write!(
            text,
            "async function f{n}(x: string) {{\n\
             \u{20} const before = total;\n\
             \u{20} await f{}(x);\n\
             \u{20} await f{}(x);\n\
             \u{20} if (before) await f{}(x + before);\n\
             \u{20} total = before + 1;\n\
             \u{20} await writeFile(x, await readFile(x));\n\
             \u{20} return f{}(x);\n\
             }}\n",
            (n + 1) % count,
            (n * 7 + 3) % count,
            (n * 31 + 11) % count,
            (n * 131 + n / 2) % count,
        );
    }
    text.push_str("server.registerTool(\"go\", {}, async ({ x }) => f0(x));\n");
    let project = Project::new(&[("a.ts", &text)]);
    let run = scan_json(&project, "");
    assert_eq!(run.is_complete(1).code, Some(1));
    eprintln!("{count} functions: {:.1} s", run.took.as_secs_f64());
}

#[test]
fn callbacks_that_are_handed_on_for_ever() {
    let mut text = String::from("type F = (g: any) => any;\n");
    for n in 0..300 {
        let _ = writeln!(
            text,
            "export async function h{n}(cb: F) {{\n  await cb(h{n});\n  return h{}(async (x: any) => h{}(() => cb(x)));\n}}",
            (n + 1) % 300,
            (n + 17) % 300,
        );
    }
    text.push_str(
        "const y = (f: any) => ((x: any) => x(x))((x: any) => f((v: any) => x(x)(v)));\ny(y)(y);\n",
    );
    scan_json(&Project::new(&[("a.ts", &text)]), "").is_complete(1);
}

#[test]
fn two_thousand_tools_in_a_table() {
    let mut text = String::from(SERVER);
    text.push_str("const tools = [\n");
    for n in 0..2_000 {
        let _ = writeln!(
            text,
            "  {{ name: \"tool_{n}\", run: async (args: any) => {{\n    const old = JSON.parse(await readFile(\"state{}.json\", \"utf8\"));\n    old.count += args.by;\n    await writeFile(\"state{}.json\", JSON.stringify(old));\n    return {{ content: [] }};\n  }} }},",
            n % 50,
            n % 50
        );
    }
    text.push_str(
        "];\nfor (const tool of tools) {\n  server.registerTool(tool.name, {}, tool.run);\n}\n",
    );
    let project = Project::new(&[("a.ts", &text)]);
    let run = scan_json(&project, "");
    run.is_complete(1);
    eprintln!("2,000 tools: {:.1} s", run.took.as_secs_f64());
    for format in ["text", "sarif", "markdown", "github"] {
        scan(&project, &format!("--output {format}"));
    }
}

#[test]
fn fifty_megabytes() {
    let project = Project::new(&[("ok.ts", QUIET)]);
    let line = "export const value = { a: 1, b: [2, 3], c: \"text that is not code\" };\n";
    project.write("big.ts", line.repeat(50 * 1024 * 1024 / line.len() + 1));
    let run = scan_json(&project, "");
    assert_eq!(run.code, Some(0));
    assert!(run.reason("big.ts").contains("larger than 10 MB"));
    assert!(run.took < Duration::from_secs(20), "it was read");
    let run = scan(&project, "big.ts");
    assert_eq!(run.code, Some(2), "nothing else was asked for");
    if cfg!(debug_assertions) {
        return;
    }
    let mut command = Command::new(env!("CARGO_BIN_EXE_toctou"));
    command.args("scan big.ts --no-config --max-file-size 100 --output json".split(' '));
    ended(&project, &mut command, 120).is_complete(1);
}

#[test]
fn classes_and_types_in_circles() {
    let project = Project::new(&[
        (
            "a.ts",
            "import { B } from \"./b.js\";\n\
             export class A extends B {\n  n = 0;\n  async m() { const n = this.n; await super.m(); this.n = n + 1; return this.k(); }\n}\n\
             class S extends S { m() { return super.m(); } }\n\
             class X extends Y { constructor() { super(); } }\nclass Y extends X {}\nnew X().anything().at().all;\n",
        ),
        (
            "b.ts",
            "import { A } from \"./a.js\";\nexport class B extends A { async m() { return super.m(); } }\nnew B().m();\nnew A().m();\n",
        ),
        (
            "types.ts",
            "type T = U;\ntype U = T;\ntype V = V[] | { v: V; w: W<V> };\ntype W<X> = W<W<X>>;\n\
             interface I extends J {}\ninterface J extends I {}\n\
             enum E { a = b, b = a }\n\
             declare const t: T; declare const w: W<T>; declare const i: I;\n\
             export const all = [t, w, i, E.a];\nt.x(); w.y(); i.z();\n\
             const self: any = {}; self.self = self; self.self.self.self();\n\
             const f: any = f; let g = () => g; g()()();\n",
        ),
    ]);
    scan_json(&project, "--persona auditor").is_complete(3);
}

#[test]
fn names_that_pollute() {
    let mut text = String::from(SERVER);
    let names = [
        "__proto__",
        "constructor",
        "prototype",
        "toString",
        "hasOwnProperty",
        "",
        " ",
        "0",
        "-1",
    ];
    text.push_str("const shared: any = {};\nlet __proto__ = 0, constructor = 1;\n");
    for name in names {
        let _ = writeln!(
            text,
            "server.registerTool(\"{name}\", {{}}, async ({{ __proto__: x }}: any) => {{\n  const old = shared[\"{name}\"];\n  const data = await readFile(\"{name}.json\", \"utf8\");\n  shared[\"{name}\"] = old + data;\n  await writeFile(\"{name}.json\", data + x);\n  return {{ content: [], __proto__: null, [\"__proto__\"]: 1, constructor }};\n}});"
        );
    }
    text.push_str("class __proto__2 { static prototype = 1; constructor() {} [\"constructor\"]() {} static async *[Symbol.iterator]() {} }\n");
    let run = scan_json(
        &Project::new(&[("a.ts", &text.replace("static prototype = 1; ", ""))]),
        "",
    );
    assert_eq!(run.is_complete(1).code, Some(1));
    let tools: Vec<String> = run.json()["findings"]
        .as_array()
        .expect("findings")
        .iter()
        .flat_map(|f| f["entry_points"].as_array().expect("entry points").clone())
        .filter_map(|point| point["name"].as_str().map(str::to_owned))
        .collect();
    for name in ["__proto__", "constructor", "toString"] {
        assert!(tools.iter().any(|tool| tool == name), "{name}: {tools:?}");
    }
}

// ---- text that others act on

/// Nothing that a terminal, a CI log or a reader of Markdown would take for more than text.
fn assert_harmless(text: &str, what: &str) {
    for c in text.chars() {
        let direction = matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{200e}' | '\u{200f}');
        assert!(
            !direction && (!c.is_control() || c == '\n'),
            "{what}: {:?} in the output",
            c
        );
    }
    for line in text.lines() {
        let command = line.trim_start();
        assert!(
            !command.starts_with("::error::x") && !command.starts_with("::stop-commands"),
            "{what}: {line:?}"
        );
    }
}

#[test]
fn escapes_in_names_and_strings() {
    let text =
        RACY.replace(
            "add_note",
            "\u{1b}[2J\\u001b[31mred\\x07\\n::error::x\\r\\n::stop-commands::y\u{202e}",
        )
        .replace(
            "notes.json",
            "\u{1b}]8;;http://x\u{7}notes\\u202e\u{9b}31m<img src=x onerror=alert(1)>|`.json",
        ) + "// \u{1b}[31m \u{8} \u{7f} \u{85} \u{2066}\n";
    let project = Project::new(&[("a.ts", &text)]);
    for format in ["text", "github", "markdown"] {
        for more in ["", "--verbose --stats"] {
            let run = scan(&project, &format!("--output {format} {more}"));
            assert_eq!(run.code, Some(1), "{}", run.stderr);
            assert_harmless(&run.stdout, format);
            assert_harmless(&run.stderr, format);
            assert!(
                format != "markdown" || !run.stdout.contains("<img"),
                "{}",
                run.stdout
            );
        }
    }
    for format in ["json", "sarif"] {
        let run = scan(&project, &format!("--output {format}"));
        assert_eq!(run.code, Some(1));
        let _ = run.json();
        assert!(!run.stdout.contains('\u{1b}'), "escaped by the format");
    }
}

#[test]
fn very_long_names_and_strings() {
    let long = "x".repeat(1_000_000);
    let text = RACY
        .replace("add_note", &long)
        .replace("notes.json", &format!("{long}.json"));
    let project = Project::new(&[("a.ts", &text)]);
    for format in ["text", "github", "markdown", "json", "sarif"] {
        let run = scan(&project, &format!("a.ts --output {format}"));
        assert_eq!(run.code, Some(1));
        assert!(
            run.stdout.len() < 60_000_000,
            "{format}: {}",
            run.stdout.len()
        );
    }
}

#[test]
fn comments_that_steer_are_checked() {
    let project = beside(
        "// toctou-ignore[\u{1b}[31m] \u{202e}\n// toctou-ignore[*]\n/* toctou-ignore */\n"
            .repeat(100),
    );
    let run = scan(&project, "");
    assert_harmless(&run.stdout, "stdout");
    assert_harmless(&run.stderr, "stderr");
}
