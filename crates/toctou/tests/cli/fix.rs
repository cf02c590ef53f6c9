//! `--diff` and `--fix`: what may be changed is changed, what may not is left alone.

use std::process::Command;

use crate::common::{Project, Run};

const TS_HEAD: &str = r#"import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { access, open, writeFile } from "node:fs/promises";
import { existsSync, writeFileSync } from "node:fs";
import { Mutex } from "async-mutex";
import { Pool } from "pg";
import { z } from "zod";
import { render } from "./render.js";

const pool = new Pool();
const mutex = new Mutex();
const server = new McpServer({ name: "s", version: "1.0.0" });

async function exists(path: string): Promise<boolean> {
  return access(path).then(() => true, () => false);
}

"#;

/// A tool of this body in TypeScript.
fn ts(body: &str) -> String {
    format!(
        "{TS_HEAD}server.registerTool(\"t\", {{ inputSchema: {{ path: z.string(), text: z.string() }} }}, async ({{ path, text }}) => {{\n{body}\n  return {{ content: [] }};\n}});\n"
    )
}

fn py(body: &str) -> String {
    format!(
        "import asyncio\nimport os\nfrom pathlib import Path\n\nimport aiosqlite\nimport httpx\nfrom anyio import to_thread\nfrom mcp.server.fastmcp import FastMCP\n\nmcp = FastMCP(\"s\")\nlock = asyncio.Lock()\n\n\n{body}"
    )
}

fn py_thread(body: &str) -> String {
    py(&format!(
        "def create(path: Path, text: str) -> str:\n{body}\n    return \"created\"\n\n\n@mcp.tool()\nasync def t(name: str, text: str) -> str:\n    return await to_thread.run_sync(create, Path(name), text)\n"
    ))
}

fn go(body: &str) -> String {
    format!(
        "package main\n\nimport (\n\t\"context\"\n\t\"database/sql\"\n\t\"errors\"\n\t\"os\"\n\t\"sync\"\n\n\t\"github.com/modelcontextprotocol/go-sdk/mcp\"\n)\n\ntype In struct {{\n\tName, Text string\n\tID         int\n}}\n\ntype Store struct {{\n\tmu    sync.Mutex\n\titems map[string]string\n\tdb    *sql.DB\n}}\n\nfunc (s *Store) t(ctx context.Context, req *mcp.CallToolRequest, in In) (*mcp.CallToolResult, any, error) {{\n{body}\n}}\n\nfunc main() {{\n\tstore := &Store{{items: map[string]string{{}}}}\n\tserver := mcp.NewServer(&mcp.Implementation{{Name: \"s\"}}, nil)\n\tmcp.AddTool(server, &mcp.Tool{{Name: \"t\"}}, store.t)\n\tserver.Run(context.Background(), &mcp.StdioTransport{{}})\n}}\n"
    )
}

fn rs(body: &str) -> String {
    format!(
        "use rmcp::{{tool, tool_router}};\nuse sqlx::PgPool;\nuse std::path::PathBuf;\nuse tokio::fs::File;\n\npub struct S {{\n    folder: PathBuf,\n    pool: PgPool,\n}}\n\n#[tool_router]\nimpl S {{\n    #[tool]\n    async fn t(&self, name: String, text: String) -> anyhow::Result<i64> {{\n{body}\n    }}\n}}\n"
    )
}

fn run(project: &Project, args: &str) -> Run {
    let path = std::env::var("PATH").expect("PATH");
    let home = project.path().display().to_string();
    project.run_with(
        &format!("scan --no-config --persona pedantic {args}"),
        &[("PATH", &path), ("HOME", &home)],
    )
}

fn rules(project: &Project) -> Vec<String> {
    run(project, "--output json").rules()
}

/// The change closes the finding of this rule and says this; `git apply` takes the diff.
fn mended(file: &str, text: &str, rule: &str, expected: &str) {
    let project = Project::new(&[(file, text)]);
    let before = rules(&project);
    assert!(
        before.contains(&rule.to_owned()),
        "{file}: {before:?}\n{text}"
    );
    let diff = run(&project, "--diff");
    assert_eq!(diff.code, Some(1), "{}", diff.stderr);
    assert!(
        diff.stdout.contains(expected),
        "{file}: no `{expected}` in\n{}\n{}",
        diff.stdout,
        diff.stderr
    );
    assert_eq!(project.read(file), text, "--diff changes nothing");

    let fixed = run(&project, "--fix --allow-dirty");
    assert!(
        fixed.stderr.contains("closed, 1 file changed"),
        "{}",
        fixed.stderr
    );
    let after = rules(&project);
    assert!(
        after.len() < before.len() && !after.contains(&rule.to_owned()),
        "{after:?}\n{}",
        project.read(file)
    );
    // Once more changes nothing more.
    let again = project.read(file);
    run(&project, "--fix --allow-dirty");
    assert_eq!(project.read(file), again);

    let other = Project::new(&[(file, text), ("the.diff", &diff.stdout)]);
    let applied = Command::new("git")
        .args(["apply", "the.diff"])
        .current_dir(other.path())
        .status();
    assert!(applied.expect("git").success(), "{}", diff.stdout);
    assert_eq!(other.read(file), again, "the diff is the change");
}

/// There is a finding of this rule, and no change is offered for it.
fn left_alone(file: &str, text: &str, rule: &str) {
    let project = Project::new(&[(file, text)]);
    let before = rules(&project);
    assert!(
        before.contains(&rule.to_owned()),
        "{file}: {before:?}\n{text}"
    );
    let diff = run(&project, "--diff");
    assert_eq!(diff.stdout, "", "{text}");
    run(&project, "--fix --allow-dirty");
    assert_eq!(project.read(file), text);
}

const CREATE: &str = "file-check-then-act";
const RELEASE: &str = "lock-not-released-on-error";
const REPEAT: &str = "db-check-then-write";

#[test]
fn files_in_typescript() {
    for (body, expected) in [
        (
            "  if (await exists(path)) throw new Error(\"there\");\n  await writeFile(path, text);",
            "+  await writeFile(path, text, { flag: \"wx\" });",
        ),
        (
            "  if (existsSync(path)) throw new Error(\"there\");\n  writeFileSync(path, text, \"utf8\");",
            "+  writeFileSync(path, text, { encoding: \"utf8\", flag: \"wx\" });",
        ),
        (
            "  if (await exists(path)) {\n    return { content: [], isError: true };\n  }\n  await writeFile(path, text, { mode: 0o600 });",
            "+  await writeFile(path, text, { mode: 0o600, flag: \"wx\" });",
        ),
    ] {
        mended("a.ts", &ts(body), CREATE, expected);
    }
}

#[test]
fn files_in_python() {
    mended(
        "a.py",
        &py_thread(
            "    if path.exists():\n        return \"there is one\"\n    path.write_text(text)",
        ),
        CREATE,
        "+    with path.open(\"x\") as new_file:\n+        new_file.write(text)\n",
    );
    mended(
        "a.py",
        &py_thread(
            "    if os.path.exists(path):\n        raise ValueError(\"there is one\")\n    with open(path, \"w\") as f:\n        f.write(text)",
        ),
        CREATE,
        "+    with open(path, \"x\") as f:\n",
    );
}

#[test]
fn files_in_go_and_rust() {
    mended(
        "main.go",
        &go(
            "\tif _, err := os.Stat(in.Name); err == nil {\n\t\treturn nil, nil, errors.New(\"there is one\")\n\t}\n\tf, err := os.Create(in.Name)\n\tif err != nil {\n\t\treturn nil, nil, err\n\t}\n\treturn nil, nil, f.Close()",
        ),
        CREATE,
        "+\tf, err := os.OpenFile(in.Name, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o666)\n",
    );
    mended(
        "src/lib.rs",
        &rs(
            "        let path = self.folder.join(name);\n        if path.exists() {\n            anyhow::bail!(\"there is one\");\n        }\n        let file = File::create(&path).await?;\n        file.sync_all().await?;\n        Ok(0)",
        ),
        CREATE,
        "+        let file = File::create_new(&path).await?;\n",
    );
}

#[test]
fn files_that_are_left_alone() {
    for body in [
        // Options that are somewhere else, and a function without flags.
        "  const options = { mode: 0o600 };\n  if (await exists(path)) throw new Error(\"there\");\n  await writeFile(path, text, options);",
        // A comment inside of the call.
        "  if (await exists(path)) throw new Error(\"there\");\n  await writeFile(path, /* all of it */ text);",
    ] {
        left_alone("a.ts", &ts(body), CREATE);
    }
    left_alone(
        "main.go",
        &go(
            "\tif _, err := os.Stat(in.Name); err == nil {\n\t\treturn nil, nil, errors.New(\"there is one\")\n\t}\n\treturn nil, nil, os.WriteFile(in.Name, []byte(in.Text), 0o600)",
        ),
        CREATE,
    );
    left_alone(
        "src/lib.rs",
        &rs(
            "        let path = self.folder.join(name);\n        if path.exists() {\n            anyhow::bail!(\"there is one\");\n        }\n        tokio::fs::write(&path, text).await?;\n        Ok(0)",
        ),
        CREATE,
    );
}

#[test]
fn locks_in_typescript_python_and_go() {
    mended(
        "a.ts",
        &ts(
            "  const release = await mutex.acquire();\n  const html = await render(text);\n  release();\n  console.log(html);",
        ),
        RELEASE,
        "+  try {\n+    const html = await render(text);\n",
    );
    mended(
        "a.py",
        &py(
            "@mcp.tool()\nasync def t(url: str) -> str:\n    await lock.acquire()\n    async with httpx.AsyncClient() as client:\n        answer = await client.get(url)\n    lock.release()\n    return answer.text\n",
        ),
        RELEASE,
        "+    finally:\n+        lock.release()\n",
    );
    mended(
        "main.go",
        &go(
            "\ts.mu.Lock()\n\tif s.items[in.Name] != \"\" {\n\t\treturn nil, nil, errors.New(\"there is one\")\n\t}\n\ts.items[in.Name] = in.Text\n\ts.mu.Unlock()\n\treturn nil, nil, nil",
        ),
        RELEASE,
        "+\tdefer s.mu.Unlock()\n",
    );
}

#[test]
fn locks_that_are_left_alone() {
    // Behind the release something is waited for: the lock would be held there.
    left_alone(
        "a.ts",
        &ts(
            "  const release = await mutex.acquire();\n  const html = await render(text);\n  release();\n  await render(html);",
        ),
        RELEASE,
    );
    left_alone(
        "a.py",
        &py(
            "@mcp.tool()\nasync def t(url: str) -> str:\n    await lock.acquire()\n    async with httpx.AsyncClient() as client:\n        answer = await client.get(url, content=\"\"\"a\n  b\"\"\")\n    lock.release()\n    return answer.text\n",
        ),
        RELEASE,
    );
}

#[test]
fn conditions_in_all_languages() {
    mended(
        "a.ts",
        &ts(
            "  const { rows } = await pool.query(\"SELECT status FROM tasks WHERE id = $1\", [path]);\n  if (rows[0]?.status !== \"open\") {\n    return { content: [], isError: true };\n  }\n  await pool.query(\"UPDATE tasks SET status = 'running' WHERE id = $1\", [path]);",
        ),
        REPEAT,
        "+  await pool.query(\"UPDATE tasks SET status = 'running' WHERE id = $1 AND status = 'open'\", [path]);",
    );
    mended(
        "src/lib.rs",
        &rs(
            "        let id: i64 = sqlx::query_scalar(\"SELECT id FROM jobs WHERE state = 'waiting' LIMIT 1\")\n            .fetch_one(&self.pool)\n            .await?;\n        sqlx::query(\"UPDATE jobs SET state = 'running' WHERE id = $1\")\n            .bind(id)\n            .execute(&self.pool)\n            .await?;\n        Ok(id)",
        ),
        REPEAT,
        "WHERE id = $1 AND state = 'waiting'\")",
    );
}

#[test]
fn conditions_that_are_left_alone() {
    for (from, to) in [
        ("!== \"open\"", "!== text"),
        (
            "UPDATE tasks SET status = 'running' WHERE id = $1",
            "UPDATE tasks SET status = 'running' WHERE id = $1 OR parent = $1",
        ),
    ] {
        let body = "  const { rows } = await pool.query(\"SELECT status FROM tasks WHERE id = $1\", [path]);\n  if (rows[0]?.status !== \"open\") {\n    return { content: [], isError: true };\n  }\n  await pool.query(\"UPDATE tasks SET status = 'running' WHERE id = $1\", [path]);";
        left_alone("a.ts", &ts(&body.replace(from, to)), REPEAT);
    }
}

fn racy() -> String {
    ts("  if (await exists(path)) throw new Error(\"there\");\n  await writeFile(path, text);")
}

fn git(project: &Project, args: &[&str]) {
    let output = Command::new("git")
        .args([
            "-c",
            "user.name=t",
            "-c",
            "user.email=t@example.org",
            "-c",
            "init.defaultBranch=main",
        ])
        .args(args)
        .current_dir(project.path())
        .env("HOME", project.path())
        .output()
        .expect("git");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

#[test]
fn refuses_what_cannot_be_undone() {
    let project = Project::new(&[("a.ts", &racy())]);
    let run_ = run(&project, "--fix");
    assert_eq!(run_.code, Some(2), "no repository");
    assert!(
        run_.stderr.contains("could not be undone"),
        "{}",
        run_.stderr
    );
    git(&project, &["init", "-q"]);
    assert_eq!(run(&project, "--fix").code, Some(2), "untracked");
    git(&project, &["add", "a.ts"]);
    git(&project, &["commit", "-q", "-m", "x"]);
    project.write("a.ts", racy() + "// changed\n");
    assert_eq!(run(&project, "--fix").code, Some(2), "modified");
    assert!(!project.read("a.ts").contains("wx"));
    project.write("a.ts", racy());
    project.write("other.ts", "export {};\n");
    let run_ = run(&project, "--fix");
    assert_eq!(run_.code, Some(0), "{}", run_.stderr);
    assert!(project.read("a.ts").contains("wx"));
}

#[test]
fn keeps_what_it_does_not_change() {
    let text = format!("\u{feff}{}", racy().replace('\n', "\r\n"));
    let project = Project::new(&[("a.ts", &text)]);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let mode = std::fs::Permissions::from_mode(0o750);
        std::fs::set_permissions(project.at("a.ts"), mode).expect("a mode");
    }
    assert_eq!(run(&project, "--fix --allow-dirty").code, Some(0));
    let expected = text.replace(
        "writeFile(path, text)",
        "writeFile(path, text, { flag: \"wx\" })",
    );
    assert_eq!(project.read("a.ts"), expected);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let mode = std::fs::metadata(project.at("a.ts"))
            .expect("a file")
            .permissions()
            .mode();
        assert_eq!(mode & 0o777, 0o750);
    }
}

#[test]
fn only_what_was_asked_for() {
    let ignored = racy().replace(
        "  await writeFile",
        "  // toctou: ignore[file-check-then-act] one caller\n  await writeFile",
    );
    let project = Project::new(&[("a.ts", &ignored)]);
    assert_eq!(run(&project, "--diff").stdout, "");
    let project = Project::new(&[("a.ts", &racy())]);
    assert_eq!(run(&project, "--diff --rule data-race").stdout, "");
    let clash = run(&project, "--diff --output json");
    assert_eq!(clash.code, Some(2));
    assert!(clash.stderr.contains("one place"), "{}", clash.stderr);
    assert_eq!(run(&project, "--diff --fix").code, Some(2));
    assert_eq!(run(&project, "--allow-dirty").code, Some(2));
    let json = run(&project, "--output json").json();
    let edit = &json["findings"][0]["edit"];
    assert_eq!(edit["title"], "Create the file only if there is none");
    assert_eq!(edit["changes"][0]["text"], ", { flag: \"wx\" }");
}
