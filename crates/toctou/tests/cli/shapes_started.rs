//! What is ever made and started: classes that nobody makes, stores that are never chosen; and
//! files that everybody makes alike, paths that are only resolved.

use crate::common::shapes::{dangerous, safe};
use crate::common::{Project, python};

const RMW: &[&str] = &["file-read-modify-write"];

const ADD: &str = r#"async function add(file: string, entry: any) {
  const list = JSON.parse(await readFile(file, "utf8"));
  list.push(entry);
  await writeFile(file, JSON.stringify(list));
}"#;

fn server(rest: &str) -> String {
    format!(
        r#"import {{ McpServer }} from "@modelcontextprotocol/sdk/server/mcp.js";
import {{ readFile, writeFile }} from "node:fs/promises";
const server = new McpServer({{ name: "list", version: "1.0.0" }});
server.registerTool("ping", {{}}, async () => ({{ content: [] }}));
{ADD}
{rest}
"#
    )
}

const LEDGER: &str = r#"export class Ledger {
  constructor(private file: string) {
    this.start();
  }
  start() {
    setInterval(() => this.compact(), 60000);
  }
  async compact() {
    await add(this.file, 1);
  }
}"#;

#[test]
fn safe_timer_of_a_class_that_nobody_makes() {
    safe(&[], &server(LEDGER));
    let exported = LEDGER.replace("export class", "class") + "\nexport { Ledger };";
    safe(&[], &server(&exported));
}

#[test]
fn dangerous_timer_of_a_class_that_is_made() {
    for make in [
        "new Ledger('ledger.json');",
        "function main() { return new Ledger('ledger.json'); }\nmain();",
        // Whoever is handed the class may make one.
        "register(Ledger);",
        "export const kinds = { ledger: Ledger };",
        "class Sub extends Ledger {}\nnew Sub('ledger.json');",
    ] {
        let source = server(&format!("{LEDGER}\n{make}"));
        // Only a timer leads there, and nobody else changes the file.
        dangerous("pedantic", RMW, &[], &source);
    }
}

fn stores(kind: &str) -> String {
    server(&format!(
        r#"class FileStore {{
  async put(entry: any) {{ await add("store.json", entry); }}
}}
class RemoteStore {{
  async put(entry: any) {{ await fetch("https://example.org", {{ method: "PUT", body: entry }}); }}
}}
function kind() {{ return {kind}; }}
function make(config: {{ type: string }}) {{
  let store;
  switch (config.type.toLowerCase()) {{
    case "file":
      store = new FileStore();
      break;
    case "remote":
      store = new RemoteStore();
      break;
    default:
      throw new Error("what?");
  }}
  return store;
}}
class Manager {{
  store: FileStore | RemoteStore | undefined;
  constructor(options: {{ store?: FileStore | RemoteStore }}) {{ this.store = options?.store; }}
  async put(entry: any) {{
    if (this.store) {{
      return this.store.put(entry);
    }}
    await add("old.json", entry);
  }}
}}
const manager = new Manager({{ store: make({{ type: kind() }}) }});
server.registerTool("put", {{}}, async (entry: any) => {{
  await manager.put(entry);
  return {{ content: [] }};
}});"#
    ))
}

#[test]
fn safe_store_that_is_never_chosen() {
    safe(&[], &stores("\"Remote\""));
}

#[test]
fn dangerous_store_that_may_be_chosen() {
    for kind in ["\"FILE\"", "process.env.STORE ?? \"remote\""] {
        dangerous("regular", RMW, &[], &stores(kind));
    }
}

/// A function that nobody is seen to call may be what the program starts with.
#[test]
fn dangerous_tools_of_a_function_that_nobody_calls() {
    let main = r#"export function main() {
  server.registerTool("add", {}, async (entry: any) => {
    await add("list.json", entry);
    return { content: [] };
  });
}"#;
    dangerous("regular", RMW, &[], &server(main));
}

fn python_server(make: &str) -> String {
    format!(
        r#"import json
from mcp.server.fastmcp import FastMCP
mcp = FastMCP("list")

class Base:
    async def put(self, entry):
        raise NotImplementedError

class FileStore(Base):
    async def put(self, entry):
        with open("list.json") as file:
            items = json.load(file)
        items.append(entry)
        with open("list.json", "w") as file:
            json.dump(items, file)

class NoStore(Base):
    async def put(self, entry):
        return None

def make_store() -> Base:
    {make}

store = make_store()

@mcp.tool()
async def put(entry: str):
    await store.put(entry)
"#
    )
}

#[test]
fn safe_python_store_that_nobody_makes() {
    let source = python_server("return NoStore()");
    python::files(&[], &[("server.py", &source)]);
}

#[test]
fn dangerous_python_store_that_somebody_makes() {
    for make in [
        "return FileStore()",
        "return {\"file\": FileStore, \"none\": NoStore}[KIND]()",
    ] {
        python::files(RMW, &[("server.py", &python_server(make))]);
    }
}

/// A file that is missing is made by whoever comes first.
fn first_comer(write: &str, rest: &str) -> String {
    format!(
        r#"import {{ McpServer }} from "@modelcontextprotocol/sdk/server/mcp.js";
import {{ access, readFile, writeFile }} from "node:fs/promises";
import {{ join }} from "node:path";
const server = new McpServer({{ name: "roles", version: "1.0.0" }});
const DEFAULTS = {{ roles: ["reader", "writer"] }};
async function ensure(folder: string, wish: string) {{
  const path = join(folder, "roles.json");
  try {{
    await access(path);
    return;
  }} catch {{}}
  {write}
}}
server.registerTool("ensure", {{}}, async ({{ folder, wish }}: any) => {{
  await ensure(folder, wish);
  return {{ content: [] }};
}});
{rest}
"#
    )
}

const DEFAULTS: &str = "await writeFile(path, JSON.stringify(DEFAULTS, null, 2));";

#[test]
fn safe_defaults_that_everybody_would_write() {
    safe(&[], &first_comer(DEFAULTS, ""));
    let template = r#"const text = await readFile("roles.default.json", "utf8");
  await writeFile(path, "// made once\n" + text);"#;
    safe(&[], &first_comer(template, ""));
}

#[test]
fn dangerous_defaults_over_what_others_write() {
    const CHECK: &[&str] = &["file-check-then-act"];
    let own = "await writeFile(path, JSON.stringify({ roles: [wish] }));";
    dangerous("regular", CHECK, &[], &first_comer(own, ""));
    let fresh = "await writeFile(path, JSON.stringify({ id: crypto.randomUUID() }));";
    dangerous("regular", CHECK, &[], &first_comer(fresh, ""));
    let other = r#"server.registerTool("set", {}, async ({ folder, roles }: any) => {
  await writeFile(join(folder, "roles.json"), JSON.stringify(roles));
  return { content: [] };
});"#;
    dangerous("regular", CHECK, &[], &first_comer(DEFAULTS, other));
}

fn resolved(judge: &str, refuse: &str) -> String {
    format!(
        r#"import {{ McpServer }} from "@modelcontextprotocol/sdk/server/mcp.js";
import {{ realpath, rename, stat, writeFile }} from "node:fs/promises";
import {{ dirname, resolve }} from "node:path";
const server = new McpServer({{ name: "files", version: "1.0.0" }});
async function real(name: string) {{
  const path = resolve(name);
  let found: string;
  try {{
    found = await realpath(path);
  }} catch {{
    await realpath(dirname(path));
    return path;
  }}
  {judge}
  return found;
}}
server.registerTool("write", {{}}, async ({{ name, text }}: any) => {{
  await writeFile(await real(name), text);
  return {{ content: [] }};
}});
server.registerTool("move", {{}}, async ({{ from, to }}: any) => {{
  const path = await real(from);
  {refuse}
  await rename(path, await real(to));
  return {{ content: [] }};
}});
"#
    )
}

const JUDGE: &str = r#"if (!found.startsWith("/srv/")) throw new Error("outside");"#;

#[test]
fn safe_path_that_is_resolved_and_not_judged() {
    safe(&[], &resolved("", ""));
}

/// A file that is moved brings no links along.
#[test]
fn safe_path_where_only_files_are_moved() {
    let refuse = r#"if ((await stat(path)).isDirectory()) throw new Error("a folder");"#;
    safe(&[], &resolved(JUDGE, refuse));
}

#[test]
fn dangerous_path_that_is_judged() {
    const OPEN: &[&str] = &["path-check-then-open"];
    dangerous("regular", OPEN, &[], &resolved(JUDGE, ""));
    let refuse = r#"if (!(await stat(path)).isDirectory()) throw new Error("a file");"#;
    dangerous("regular", OPEN, &[], &resolved(JUDGE, refuse));
}

const GO_TOOLS: &str = r#"package main

import (
	"context"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
)

type Store struct{ counts map[string]int }

func (s *Store) add(ctx context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	s.counts[req.Params.Name] = s.counts[req.Params.Name] + 1
	return mcp.NewToolResultText("ok"), nil
}

func (s *Store) nothing(ctx context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	return mcp.NewToolResultText("ok"), nil
}

func (s *Store) tools() []server.ServerTool {
	return []server.ServerTool{{Tool: mcp.NewTool("none"), Handler: s.nothing}, {Tool: mcp.NewTool("add"), Handler: s.HANDLER}}
}

func (s *Store) tool() (mcp.Tool, server.ToolHandlerFunc) {
	return mcp.NewTool("add"), s.HANDLER
}

func main() {
	s := server.NewMCPServer("x", "1")
	store := &Store{counts: map[string]int{}}
	REGISTER
	server.ServeStdio(s)
}
"#;

/// Lists of tools, a function that gives tool and handler, a table that is gone through.
#[test]
fn tools_in_go_however_they_are_registered() {
    let module = "module example.com/x\n\ngo 1.23\n\nrequire github.com/mark3labs/mcp-go v0.43.0\n";
    let scan = |register: &str, handler: &str| {
        let source = GO_TOOLS
            .replace("REGISTER", register)
            .replace("HANDLER", handler);
        let project = Project::new(&[("go.mod", module), ("main.go", &source)]);
        project.run("scan . --no-config --output json").rules()
    };
    for register in [
        "s.AddTools(store.tools()...)",
        "s.SetTools(server.ServerTool{Tool: mcp.NewTool(\"none\"), Handler: store.nothing}, server.ServerTool{Tool: mcp.NewTool(\"add\"), Handler: store.HANDLER})",
        "s.AddTool(store.tool())",
        "for _, t := range store.tools() {\n\t\ts.AddTool(t.Tool, t.Handler)\n\t}",
        "for name, handler := range map[string]server.ToolHandlerFunc{\"add\": store.HANDLER} {\n\t\ts.AddTool(mcp.NewTool(name), handler)\n\t}",
    ] {
        assert_eq!(scan(register, "add"), ["data-race"], "{register}");
        assert_eq!(
            scan(register, "nothing"),
            Vec::<String>::new(),
            "{register}"
        );
    }
}

/// A program without a server that we know, and a queue in a folder of its own.
fn queue(folder: &str, rest: &str) -> Vec<String> {
    let source = "package queue

import \"sync\"

type Queue struct {
	mu    sync.Mutex
	items map[string]string
}

func New() *Queue { return &Queue{items: map[string]string{}} }

func (q *Queue) Put(key string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.items[key] = key
}

func (q *Queue) Get(key string) string { return q.items[key] }
";
    let main = format!(
        "package main\n\nimport \"example.com/x/{folder}\"\n\nvar _ queue.Queue2\n\nfunc main() {{ {rest} }}\n"
    );
    let file = format!("{folder}/queue.go");
    let more = format!("{folder}/more.go");
    let project = Project::new(&[
        ("go.mod", "module example.com/x\n"),
        ("main.go", &main),
        (&file, source),
        (&more, "package queue\n\ntype Queue2 struct{}\n"),
    ]);
    let run = project.run("scan . --no-config --output json");
    assert!(matches!(run.code, Some(0 | 1)), "{}", run.seen());
    run.rules()
}

#[test]
fn what_nobody_makes_and_nobody_else_can_make() {
    assert_eq!(queue("internal/queue", ""), [""; 0]);
    assert_eq!(queue("internal/queue", "serve(queue.New())"), ["data-race"]);
    // Whoever imports it makes one.
    assert_eq!(queue("queue", ""), ["data-race"]);
}

/// A backend that is asked by its interface; `beside` may make another one.
fn backend(beside: &str) -> Vec<String> {
    let source = format!(
        "package main

import (
	\"context\"

	\"github.com/modelcontextprotocol/go-sdk/mcp\"
)

type In struct{{ Key string }}
type Backend interface {{ Find(key string) string }}
type Plain struct{{ dir string }}

func (p *Plain) Find(key string) string {{ return p.dir + key }}

type Mock struct{{ seen map[string]int }}

func (m *Mock) Find(key string) string {{
	m.seen[key]++
	return key
}}

var backend Backend = &Plain{{}}

{beside}

func find(ctx context.Context, req *mcp.CallToolRequest, in In) (*mcp.CallToolResult, any, error) {{
	return nil, backend.Find(in.Key), nil
}}

func main() {{
	server := mcp.NewServer(&mcp.Implementation{{Name: \"x\"}}, nil)
	mcp.AddTool(server, &mcp.Tool{{Name: \"find\"}}, find)
	server.Run(context.Background(), &mcp.StdioTransport{{}})
}}
"
    );
    let project = Project::new(&[("go.mod", "module example.com/x\n"), ("main.go", &source)]);
    let run = project.run("scan . --no-config --output json");
    assert!(matches!(run.code, Some(0 | 1)), "{}", run.seen());
    run.rules()
}

#[test]
fn a_backend_that_only_tests_make() {
    assert_eq!(backend(""), [""; 0]);
    let made = "func init() { backend = &Mock{seen: map[string]int{}} }";
    assert_eq!(backend(made), ["data-race"]);
}
