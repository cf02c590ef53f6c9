//! Known wrong answers, as tests: `fp_` reports what is no race, `fn_` misses
//! one. Each asserts what is wrong today, with the reason, so that the limits
//! can be run and searched, and a change that mends one shows up here. Then the
//! test moves to where right answers are tested.

use crate::common::Project;
use crate::shapes_go::{self, SIGNATURE};

/// Rule ids of what the regular persona sees in a tool with this body.
fn rules(before: &str, tool: &str) -> Vec<String> {
    let source = format!(
        r#"import {{ McpServer }} from "@modelcontextprotocol/sdk/server/mcp.js";
import {{ z }} from "zod";
{before}
const server = new McpServer({{ name: "wrong", version: "1.0.0" }});
server.registerTool("tool", {{ inputSchema: {{ text: z.string() }} }}, async ({{ text }}) => {{
{tool}
  return {{ content: [] }};
}});
"#
    );
    let run =
        Project::new(&[("server.ts", &source)]).run("scan server.ts --no-config --output json");
    assert!(matches!(run.code, Some(0 | 1)), "{}", run.seen());
    assert_eq!(run.json()["summary"]["skipped"], 0, "{}", run.stdout);
    run.rules()
}

const NOTHING: &[&str] = &[];

/// The name of the file is the hash of its content: whoever writes it writes the
/// same bytes. Nothing says that a hash ties a name to a content.
#[test]
fn fp_file_named_by_its_content() {
    let found = rules(
        r#"import { createHash } from "node:crypto";
import { access, writeFile } from "node:fs/promises";"#,
        r#"  const file = `blobs/${createHash("sha256").update(text).digest("hex")}`;
  const there = await access(file).then(() => true, () => false);
  if (!there) await writeFile(file, text);"#,
    );
    assert_eq!(found, ["file-check-then-act"]);
}

/// A unique index refuses the second insert and the code is ready for that. The
/// schema is in a migration, and error codes are not understood. Documented on
/// the page of the rule, under "Limits".
#[test]
fn fp_insert_that_a_unique_index_refuses() {
    let found = rules(
        r#"import { Pool } from "pg";
const pool = new Pool();"#,
        r#"  const { rows } = await pool.query("SELECT mail FROM people WHERE mail = $1", [text]);
  if (rows.length > 0) throw new Error("you are in already");
  try {
    await pool.query("INSERT INTO people (mail) VALUES ($1)", [text]);
  } catch (error: any) {
    if (error.code === "23505") throw new Error("you are in already");
    throw error;
  }"#,
    );
    assert_eq!(found, ["db-check-then-write"]);
}

/// No other process has this file: its name holds the process id. A mutex of
/// this process is all that it needs.
#[test]
fn fp_file_of_this_process_alone() {
    let found = rules(
        r#"import { Mutex } from "async-mutex";
import { readFile, writeFile } from "node:fs/promises";
const FILE = `/tmp/state-${process.pid}.json`;
const mutex = new Mutex();"#,
        r#"  await mutex.runExclusive(async () => {
    const list = JSON.parse(await readFile(FILE, "utf8"));
    list.push(text);
    await writeFile(FILE, JSON.stringify(list));
  });"#,
    );
    assert_eq!(found, ["process-lock-on-shared-resource"]);
}

/// Properties of the global object are shared like module variables, and are
/// not seen as such.
#[test]
fn fn_state_on_the_global_object() {
    let found = rules(
        r#"import { fetchRate } from "./rates.js";
(globalThis as any).total = 0;"#,
        r#"  const before = (globalThis as any).total;
  const rate = await fetchRate(text);
  (globalThis as any).total = before + rate;"#,
    );
    assert_eq!(found, NOTHING);
}

/// Calls that no model knows are harmless. `--stats` lists them; a model in the
/// project's config makes this one a finding.
#[test]
fn fn_store_that_no_model_knows() {
    let found = rules(
        r#"import { connect } from "in-house-store";
const store = connect("notes");"#,
        r#"  const list = await store.fetch("list");
  list.push(text);
  await store.persist("list", list);"#,
    );
    assert_eq!(found, NOTHING);
}

/// What a command does to files is in its arguments, which are not understood.
#[test]
fn fn_file_changed_by_commands() {
    let found = rules(
        r#"import { execFile } from "node:child_process";
import { promisify } from "node:util";
const run = promisify(execFile);"#,
        r#"  const { stdout } = await run("cat", ["count.txt"]);
  await run("sh", ["-c", `echo ${Number(stdout) + text.length} > count.txt`]);"#,
    );
    assert!(!found.iter().any(|rule| rule.starts_with("file-")));
}

/// Two calls run each other's code. What a command does with the name that it is given is not
/// known, so that only temporary files that are renamed count.
#[test]
fn fn_temporary_file_that_is_handed_to_a_command() {
    let found = rules(
        r#"import { execFile } from "node:child_process";
import { writeFile } from "node:fs/promises";
import os from "node:os";
import path from "node:path";
import { promisify } from "node:util";
const run = promisify(execFile);"#,
        r#"  const script = path.join(os.tmpdir(), "script.py");
  await writeFile(script, text);
  await run("python3", [script]);"#,
    );
    assert!(!found.contains(&"shared-temp-path".to_owned()), "{found:?}");
}

/// A proxy answers for methods that are written nowhere.
#[test]
fn fn_methods_made_by_a_proxy() {
    let found = rules(
        r#"import { readFile, writeFile } from "node:fs/promises";
const disk: any = new Proxy({}, {
  get: (_, name) => async (text?: string) =>
    name === "load" ? readFile("a.txt", "utf8") : writeFile("a.txt", text ?? ""),
});"#,
        r#"  const before = await disk.load();
  await disk.save(before + text);"#,
    );
    assert_eq!(found, NOTHING);
}

/// A server with so many tools, each with a file of its own, all in one table.
fn long_table(tools: usize) -> (usize, String) {
    let handlers: String = (0..tools)
        .map(|i| format!("  async t{i}(n: number) {{ const x = JSON.parse(await readFile(\"f{i}.json\", \"utf8\")); x.n = n; await writeFile(\"f{i}.json\", JSON.stringify(x)); }},\n"))
        .collect();
    let source = format!(
        "import {{ Server }} from \"@modelcontextprotocol/sdk/server/index.js\";\n\
         import {{ CallToolRequestSchema }} from \"@modelcontextprotocol/sdk/types.js\";\n\
         import {{ readFile, writeFile }} from \"node:fs/promises\";\n\
         const tools: any = {{\n{handlers}}};\n\
         const server = new Server({{ name: \"x\", version: \"1\" }}, {{}});\n\
         server.setRequestHandler(CallToolRequestSchema, async (r: any) => tools[r.params.name](r.params.n));\n"
    );
    let project = Project::new(&[("server.ts", source.as_str())]);
    let json = project
        .run("scan server.ts --no-config --output json")
        .json();
    let found = json["findings"].as_array().map_or(0, Vec::len);
    (found, json["notes"].to_string())
}

/// A table of more functions than are followed loses some of them, and says so.
#[test]
fn fn_table_that_is_too_long() {
    let (found, notes) = long_table(300);
    assert_eq!(found, 300);
    assert!(!notes.contains("more functions than are followed"));
    let (found, notes) = long_table(500);
    assert!(found < 500);
    assert!(
        notes.contains("more functions than are followed"),
        "{notes}"
    );
}

/// Rule ids of what the regular persona sees in a Go server.
fn go_rules(body: &str) -> Vec<String> {
    let source = format!(
        r#"package main

import (
	"context"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"golang.org/x/sync/errgroup"
)

var _ sync.Mutex
var _ errgroup.Group

type In struct{{ Text string }}

{body}

func main() {{
	server := mcp.NewServer(&mcp.Implementation{{Name: "wrong"}}, nil)
	store := &Store{{}}
	mcp.AddTool(server, &mcp.Tool{{Name: "tool"}}, store.tool)
}}
"#
    );
    let run = Project::new(&[("main.go", &source)]).run("scan main.go --no-config --output json");
    assert!(matches!(run.code, Some(0 | 1)), "{}", run.seen());
    assert_eq!(run.json()["summary"]["skipped"], 0, "{}", run.stdout);
    run.rules()
}

/// Two goroutines of one call append to one slice of its own. That goroutines of
/// a group run beside each other is known; that a variable of the call is
/// shared by them is not, since who waits for whom is not followed.
#[test]
fn fn_goroutines_of_one_call_that_append_to_one_slice() {
    let found = go_rules(
        r#"type Store struct{ name string }

func names(text string) []string { return []string{text} }

func (s *Store) tool(ctx context.Context, req *mcp.CallToolRequest, in In) (*mcp.CallToolResult, any, error) {
	var all []string
	group, _ := errgroup.WithContext(ctx)
	group.Go(func() error { all = append(all, names(in.Text)...); return nil })
	group.Go(func() error { all = append(all, names(s.name)...); return nil })
	return nil, all, group.Wait()
}"#,
    );
    assert_eq!(found, NOTHING);
}

/// Rule ids of what the regular persona sees in a Rust server with this tool.
fn rust_rules(tool: &str) -> Vec<String> {
    let source = format!(
        "use std::path::PathBuf;\nuse std::sync::atomic::{{AtomicBool, Ordering}};\nuse rmcp::{{tool, tool_router}};\n\
         use tokio::sync::Mutex;\nuse tokio::task::JoinHandle;\n\
         pub struct Server {{ folder: PathBuf, closed: AtomicBool, running: Mutex<Vec<JoinHandle<()>>> }}\n\
         #[tool_router]\nimpl Server {{\n{tool}\n}}\n"
    );
    let project = Project::new(&[("src/main.rs", &source)]);
    let run = project.run("scan src/main.rs --no-config --output json");
    assert!(matches!(run.code, Some(0 | 1)), "{}", run.seen());
    run.rules()
}

/// The work is registered under a lock which the flag is not set under, so that
/// closing can miss it. A lock round the registration is taken for enough.
#[test]
fn fn_closing_while_work_is_registered_under_a_lock() {
    let found = rust_rules(
        "#[tool]\nasync fn submit(&self, name: String) -> anyhow::Result<()> {\n\
         if self.closed.load(Ordering::SeqCst) { anyhow::bail!(\"closed\"); }\n\
         let job = prepare(name).await;\nlet handle = tokio::spawn(async move { run(job).await });\n\
         self.running.lock().await.push(handle);\nOk(())\n}\n\
         #[tool]\nasync fn stop(&self) -> anyhow::Result<()> {\nself.closed.store(true, Ordering::SeqCst);\n\
         let all: Vec<_> = self.running.lock().await.drain(..).collect();\n\
         for one in all { let _ = one.await; }\nOk(())\n}",
    );
    assert_eq!(found, NOTHING);
}

/// One `AsyncFileLock` for all tasks counts how often it is taken and lets in whoever is in this
/// process already: only other processes wait. The model calls it a lock of the host, for all.
#[test]
fn fn_file_lock_that_all_tasks_of_a_process_share() {
    let source = r#"
import json
import aiofiles
from filelock import AsyncFileLock
from mcp.server.fastmcp import FastMCP

mcp = FastMCP("settings")
lock = AsyncFileLock("settings.lock")

@mcp.tool()
async def set_setting(name: str, value: str) -> str:
    async with lock:
        async with aiofiles.open("settings.json") as file:
            settings = json.loads(await file.read())
        settings[name] = value
        async with aiofiles.open("settings.json", "w") as file:
            await file.write(json.dumps(settings))
    return "set"
"#;
    let run =
        Project::new(&[("server.py", source)]).run("scan server.py --no-config --output json");
    assert_eq!(run.json()["summary"]["entry_points"], 1, "{}", run.stdout);
    assert_eq!(run.rules(), NOTHING);
}

/// In Go: a workbook remembers in its field `Path` what it was opened by. Models
/// say what calls give back, not what fields hold.
#[test]
fn fn_workbook_written_by_its_own_path() {
    let found = shapes_go::scan(&format!(
        r#"type Store struct {{ n int }}
{SIGNATURE} {{
	book, err := excelize.OpenFile(in.Key)
	if err != nil {{ return nil, nil, err }}
	if err := book.SetCellValue("Sheet1", "A1", in.Text); err != nil {{ return nil, nil, err }}
	out, err := os.Create(book.Path)
	if err != nil {{ return nil, nil, err }}
	defer out.Close()
	return nil, nil, book.Write(out)
}}"#
    ));
    assert_eq!(found, NOTHING);
}

/// A job is looked for by its state and taken by its number, which is found without the test of
/// the length (`const job = rows[0]; if (!job)`). With it, the test is taken for a look whether there
/// is a row at all.
#[test]
fn fn_job_taken_after_a_test_of_the_length() {
    let found = rules(
        r#"import { Pool } from "pg";
const pool = new Pool();"#,
        r#"  const { rows } = await pool.query("SELECT id FROM jobs WHERE state = 'new' LIMIT 1");
  if (rows.length === 0) return { content: [] };
  await pool.query("UPDATE jobs SET state = 'taken', worker = $2 WHERE id = $1", [rows[0].id, text]);"#,
    );
    assert_eq!(found, NOTHING);
}

/// What was read before the wait is put into what is read after it, and written. The second
/// read counts as a look again, so only other processes are named: which read each part of
/// the written value comes from is not known.
#[test]
fn fn_old_list_in_a_fresh_file() {
    let source = r#"import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { readFileSync, writeFileSync } from "node:fs";
import { hash } from "bcryptjs";
const load = () => JSON.parse(readFileSync("state.json", "utf8"));
const server = new McpServer({ name: "wrong", version: "1.0.0" });
server.registerTool("add", {}, async ({ word }: { word: string }) => {
  const words = load().words;
  words.push(await hash(word, 10));
  const state = load();
  state.words = words;
  writeFileSync("state.json", JSON.stringify(state));
  return { content: [] };
});
"#;
    let run =
        Project::new(&[("server.ts", source)]).run("scan server.ts --no-config --output json");
    let findings = &run.json()["findings"];
    assert_eq!(
        findings[0]["scopes"],
        serde_json::json!(["cross-process"]),
        "{}",
        run.stdout
    );
}

/// What was set before the server was connected is taken to stay set. Here another tool empties
/// it, and two calls after that open it twice.
#[test]
fn fn_set_before_the_server_and_emptied_by_a_tool() {
    let found = rules(
        r#"import { StdioServerTransport } from "@modelcontextprotocol/sdk/server/stdio.js";
import { MongoClient } from "mongodb";
let client: MongoClient | undefined;
async function connection() {
  if (!client) client = await MongoClient.connect("mongodb://localhost");
  return client;
}
async function main() {
  await connection();
  await server.connect(new StdioServerTransport());
}
void main();"#,
        r#"  if (text === "reset") client = undefined;
  await connection();"#,
    );
    assert_eq!(found, NOTHING);
}
