//! Conditions that are settled before anybody calls: by what every call gives, by what a function
//! always gives back, by what every constructor fills.

use crate::common::Project;
use crate::common::python;
use crate::common::shapes::{dangerous, safe};

const RMW: &[&str] = &["file-read-modify-write"];

/// A server whose tool calls something of `helpers`.
fn server(helpers: &str, tool: &str) -> String {
    format!(
        r#"import {{ McpServer }} from "@modelcontextprotocol/sdk/server/mcp.js";
import {{ readFile, writeFile }} from "node:fs/promises";
const server = new McpServer({{ name: "list", version: "1.0.0" }});
async function add(entry: any) {{
  const list = JSON.parse(await readFile("list.json", "utf8"));
  list.push(entry);
  await writeFile("list.json", JSON.stringify(list));
}}
{helpers}
server.registerTool("add", {{}}, async (entry: any) => {{
{tool}
  return {{ content: [] }};
}});
"#
    )
}

const UPDATE: &str = r#"async function update(entry: any, keep = false, mode?: string) {
  if (keep) {
    await add(entry);
  }
  if (mode === "all") {
    await add(entry);
  }
}"#;

#[test]
fn safe_parameter_that_no_call_gives() {
    safe(&[], &server(UPDATE, "  await update(entry);"));
    safe(
        &[],
        &server(UPDATE, "  await update(entry, false, \"one\");"),
    );
}

#[test]
fn dangerous_parameter_that_some_call_gives() {
    let tool = "  await update(entry);\n  await update(entry, true);";
    dangerous("regular", RMW, &[], &server(UPDATE, tool));
    let tool = "  await update(entry, false, entry.mode);";
    dangerous("regular", RMW, &[], &server(UPDATE, tool));
    // Who is handed on is called with anything.
    let tool = "  await update(entry);\n  schedule(update);";
    dangerous("regular", RMW, &[], &server(UPDATE, tool));
}

const STORE: &str = r#"class Remote { async put(entry: any) { await fetch("https://example.org", { method: "POST", body: entry }); } }
class Manager {
  remote: Remote | undefined;
  constructor(options?: { remote?: Remote }) {
    this.remote = options?.remote;
  }
  async put(entry: any) {
    if (!this.remote) {
      await add(entry);
      return;
    }
    await this.remote.put(entry);
  }
}"#;

#[test]
fn safe_field_that_every_constructor_fills() {
    let make = "const manager = new Manager({ remote: new Remote() });";
    let helpers = format!("{STORE}\n{make}");
    safe(
        &["multi-step-write"],
        &server(&helpers, "  await manager.put(entry);"),
    );
}

#[test]
fn dangerous_field_that_one_constructor_leaves_empty() {
    for make in [
        "const manager = new Manager();",
        "const manager = new Manager({ remote: process.env.URL ? new Remote() : undefined });",
        "const manager = new Manager({ remote: new Remote() });\nfunction close() { manager.remote = undefined; }\nserver.registerTool(\"close\", {}, async () => { close(); return { content: [] }; });",
    ] {
        let helpers = format!("{STORE}\n{make}");
        let tool = "  await manager.put(entry);";
        dangerous(
            "regular",
            RMW,
            &["memory-check-then-act", "close-race"],
            &server(&helpers, tool),
        );
    }
}

const KIND: &str = r#"async function save(entry: any) {
  switch (kind()) {
    case "file":
      await add(entry);
      break;
    default:
      console.error(entry);
  }
}"#;

#[test]
fn safe_result_that_is_always_the_same() {
    let helpers = format!("function kind() {{ return \"remote\"; }}\n{KIND}");
    safe(&[], &server(&helpers, "  await save(entry);"));
}

#[test]
fn dangerous_result_that_can_be_another() {
    let kind = "function kind() { return process.env.KIND ? \"file\" : \"remote\"; }";
    let helpers = format!("{kind}\n{KIND}");
    dangerous(
        "regular",
        RMW,
        &[],
        &server(&helpers, "  await save(entry);"),
    );
}

/// A variable that is declared empty and filled on the first call is not settled.
#[test]
fn dangerous_variable_that_is_filled_later() {
    let helpers = r#"let client: any;
async function connect() { return fetch("https://example.org"); }
async function get() {
  if (!client) {
    client = await connect();
  }
  return client;
}"#;
    let source = server(helpers, "  await (await get()).text();");
    dangerous(
        "pedantic",
        &["memory-check-then-act"],
        &["no-concurrency-limit", "file-read-modify-write"],
        &source,
    );
}

fn python(tool: &str) -> String {
    format!(
        r#"import json
from mcp.server.fastmcp import FastMCP
mcp = FastMCP("list")

class Projects:
    async def load(self):
        with open("list.json") as file:
            return json.load(file)

    async def update(self, name, path=None, active=None):
        if path is not None:
            projects = await self.load()
            projects[name] = path
            with open("list.json", "w") as file:
                json.dump(projects, file)

projects = Projects()

@mcp.tool()
async def update(name: str, path: str):
{tool}
"#
    )
}

#[test]
fn safe_python_argument_that_is_left_out() {
    let source = python("    await projects.update(name, active=True)");
    python::files(&[], &[("server.py", &source)]);
}

#[test]
fn dangerous_python_argument_that_is_given() {
    let source = python("    await projects.update(name, path=path)");
    python::files(RMW, &[("server.py", &source)]);
}

const RACY_SERVER: &str = r#"import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { readFile, writeFile } from "node:fs/promises";
const server = new McpServer({ name: "list", version: "1.0.0" });
server.registerTool("add", {}, async (entry: any) => {
  const list = JSON.parse(await readFile("list.json", "utf8"));
  list.push(entry);
  await writeFile("list.json", JSON.stringify(list));
  return { content: [] };
});
"#;

/// Is the finding in `file` of a package counted?
#[track_caller]
fn counts(manifest: (&str, &str), main: &str, file: &str, counted: bool) {
    let project = Project::new(&[manifest, ("src/index.ts", main), (file, RACY_SERVER)]);
    let run = project.run("scan --no-config --output json");
    let report = run.json();
    let found = report["findings"].as_array().map(Vec::as_slice);
    let found = found.and_then(|list| list.iter().find(|f| f["location"]["file"] == file));
    let found = found.unwrap_or_else(|| panic!("{}", run.seen()));
    let apart = found["non_product"].as_bool().unwrap_or(false);
    assert_eq!(apart, !counted, "{main}");
}

#[test]
fn a_server_that_its_package_does_not_start_is_set_apart() {
    let package = (
        "package.json",
        r#"{ "name": "list", "bin": { "list": "dist/index.js" }, "scripts": { "dev": "tsx src/index.ts" } }"#,
    );
    counts(package, "console.error(1);", "legacy/index.ts", false);
    for main in [
        "import '../legacy/index.js';",
        "import { fork } from 'node:child_process'; fork('./legacy/index.js');",
        "await import('../legacy/index.js');",
    ] {
        counts(package, main, "legacy/index.ts", true);
    }
    // Who does not say what is started starts anything.
    let silent = ("package.json", r#"{ "name": "list" }"#);
    counts(silent, "console.error(1);", "legacy/index.ts", true);
    let bundled = ("package.json", r#"{ "name": "list", "bin": "bundle.js" }"#);
    counts(bundled, "console.error(1);", "legacy/index.ts", true);
    let scripts = (
        "package.json",
        r#"{ "bin": "dist/index.js", "scripts": { "old": "tsx legacy/index.ts" } }"#,
    );
    counts(scripts, "console.error(1);", "legacy/index.ts", true);
}

/// Whoever has the address of a variable can set it.
#[test]
fn what_is_filled_by_its_address_is_not_settled() {
    let server = |fill: &str| {
        format!(
            r#"package main

import (
	"context"
	"flag"
	"os"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

var keep bool

func add(ctx context.Context, req *mcp.CallToolRequest, in string) (*mcp.CallToolResult, any, error) {{
	if !keep {{
		return nil, nil, nil
	}}
	old, err := os.ReadFile("list.txt")
	if err != nil {{
		return nil, nil, err
	}}
	return nil, nil, os.WriteFile("list.txt", append(old, in...), 0o600)
}}

func main() {{
	{fill}
	server := mcp.NewServer(&mcp.Implementation{{Name: "list"}}, nil)
	mcp.AddTool(server, &mcp.Tool{{Name: "add"}}, add)
	server.Run(context.Background(), &mcp.StdioTransport{{}})
}}
"#
        )
    };
    for (fill, found) in [
        (r#"flag.BoolVar(&keep, "keep", false, "keep the list")"#, 1),
        ("flag.Parse()", 0),
    ] {
        let project = Project::new(&[("main.go", &server(fill))]);
        let run = project.run("scan main.go --no-config --output json");
        assert_eq!(run.rules().len(), found, "{fill}: {}", run.stdout);
    }
}
