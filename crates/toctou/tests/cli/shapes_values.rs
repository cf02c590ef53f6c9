//! Where a value comes from and which path a name means, by ways that real servers take: through
//! parts of what a helper returns, through tables of handlers, through paths that are built anew,
//! and through memory that a process has kept since its start.

use crate::common::Project;
use crate::common::shapes::{dangerous, safe, scan};

const RMW: &[&str] = &["file-read-modify-write"];

/// A server whose tool adds to a list in a file, with `helpers` for the rest.
fn adds(helpers: &str, tool: &str) -> String {
    format!(
        r#"import {{ McpServer }} from "@modelcontextprotocol/sdk/server/mcp.js";
import {{ readFile, writeFile }} from "node:fs/promises";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
const server = new McpServer({{ name: "list", version: "1.0.0" }});
{helpers}
server.registerTool("add", {{}}, async (entry: any) => {{
{tool}
  return {{ content: [] }};
}});
"#
    )
}

#[test]
fn dangerous_content_in_a_part_of_what_is_returned() {
    let read = r#"async function read(file: string) {
  const text = await readFile(file, "utf8");
  return { text, about: { file, size: text.length } };
}"#;
    let tool = r#"  const { text } = await read("list.json");
  const list = JSON.parse(text);
  list.push(entry);
  await writeFile("list.json", JSON.stringify(list));"#;
    dangerous("regular", RMW, &[], &adds(read, tool));
}

#[test]
fn safe_other_part_of_what_is_returned() {
    let read = r#"async function read(file: string, name: string) {
  const text = await readFile(file, "utf8");
  return { text, title: name.trim() };
}"#;
    let tool = r#"  const { title } = await read("list.json", entry.name);
  await writeFile("list.json", JSON.stringify({ title }));"#;
    safe(&[], &adds(read, tool));
}

#[test]
fn dangerous_path_that_is_built_anew() {
    for file in [
        r#"path.join(os.homedir(), ".list", "list.json")"#,
        r#"path.join(process.env.LIST_DIR ?? "/var/lib/list", "list.json")"#,
        r#"path.join(process.env.LIST_DIR || path.join(os.homedir(), ".list"), "list.json")"#,
        r#""/srv/" + os.hostname().replace(/[^a-z]/g, "_") + ".json""#,
    ] {
        let helpers = format!(
            r#"const file = () => {file};
async function load() {{
  return JSON.parse(await readFile(file(), "utf8"));
}}
async function save(list: any[]) {{
  await writeFile(file(), JSON.stringify(list));
}}"#
        );
        let tool = "  const list = await load();\n  list.push(entry);\n  await save(list);";
        dangerous("regular", RMW, &[], &adds(&helpers, tool));
    }
}

/// What differs by the call is not the same path.
#[test]
fn safe_path_with_another_part_each_time() {
    let helpers = r#"import { randomUUID } from "node:crypto";
const file = () => path.join(process.env.LIST_DIR ?? "/var/lib/list", randomUUID() + ".json");
async function load() {
  return JSON.parse(await readFile(file(), "utf8"));
}"#;
    let tool = r#"  const list = await load();
  list.push(entry);
  await writeFile(file(), JSON.stringify(list));"#;
    safe(&[], &adds(helpers, tool));
}

#[test]
fn dangerous_handlers_in_a_map() {
    let source = r#"import { Server } from "@modelcontextprotocol/sdk/server/index.js";
import { CallToolRequestSchema } from "@modelcontextprotocol/sdk/types.js";
import { readFile, writeFile } from "node:fs/promises";
type Tool = { name: string; run: (entry: any) => Promise<any> };
class Registry {
  private tools = new Map<string, Tool>();
  register(tool: Tool) {
    this.tools.set(tool.name, tool);
  }
  async call(name: string, entry: any) {
    const tool = this.tools.get(name);
    if (!tool) throw new Error("no such tool");
    return await tool.run(entry);
  }
}
async function add(entry: any) {
  const list = JSON.parse(await readFile("list.json", "utf8"));
  list.push(entry);
  await writeFile("list.json", JSON.stringify(list));
  return { content: [] };
}
const registry = new Registry();
registry.register({ name: "add", run: add });
const server = new Server({ name: "list", version: "1.0.0" }, { capabilities: { tools: {} } });
server.setRequestHandler(CallToolRequestSchema, async (request) =>
  registry.call(request.params.name, request.params.arguments),
);
"#;
    dangerous("regular", RMW, &[], source);
}

#[test]
fn dangerous_state_kept_since_the_start() {
    let store = r#"class Store {
  private entries = new Map<string, any>();
  constructor(private file: string) {}
  async load() {
    for (const entry of JSON.parse(await readFile(this.file, "utf8"))) this.entries.set(entry.id, entry);
  }
  async add(entry: any) {
    this.entries.set(entry.id, entry);
    const text = JSON.stringify(Array.from(this.entries.values()));
    await writeFile(this.file, text);
  }
}
const store = new Store(path.join(os.homedir(), "list.json"));
await store.load();"#;
    let tool = "  await store.add(entry);";
    dangerous("regular", RMW, &[], &adds(store, tool));
    let variable = r#"let list: any[] = [];
function load() {
  if (fs.existsSync("list.json")) list = JSON.parse(fs.readFileSync("list.json", "utf8"));
}
load();"#;
    let tool = r#"  list.push(entry);
  fs.writeFileSync("list.json", JSON.stringify(list));"#;
    dangerous("regular", RMW, &[], &adds(variable, tool));
}

/// Files that are written beside their places first, all together.
fn drafts(name: &str) -> String {
    let save = format!(
        r#"async function save(files: any[]) {{
  const call = crypto.randomUUID();
  const drafts = files.map((file) => ({{ ...file, draft: {name} }}));
  await Promise.all(drafts.map((file) => writeFile(file.draft, file.text)));
  for (const file of drafts) await fs.promises.rename(file.draft, file.place);
}}"#
    );
    adds(
        &save,
        r#"  await save([{ place: "a.json", text: entry.a }, { place: "b.json", text: entry.b }]);"#,
    )
}

#[test]
fn safe_names_that_are_made_anew_for_each_of_a_list() {
    safe(&[], &drafts("`${file.place}.${call}.tmp`"));
}

#[test]
fn dangerous_names_that_are_the_same_in_every_call() {
    let temp = &["shared-temp-path"];
    dangerous("regular", temp, &[], &drafts("`${file.place}.tmp`"));
}

/// Loaded when the store is made, and again when somebody asks for it.
fn reloaded(add: &str, entry: &str) -> String {
    let store = format!(
        r#"class Store {{
  list: any[];
  constructor(private file: string) {{
    this.list = this.load();
  }}
  load() {{
    if (!fs.existsSync(this.file)) return [];
    return JSON.parse(fs.readFileSync(this.file, "utf8"));
  }}
  reload() {{
    this.list = this.load();
  }}
  add(entry: any) {{
{add}
    fs.writeFileSync(this.file, JSON.stringify(this.list));
  }}
}}
const store = new Store(path.join(os.homedir(), "list.json"));"#
    );
    adds(&store, entry)
}

#[test]
fn dangerous_state_that_another_call_may_load() {
    let push = "    this.list.push(entry);";
    let either = r#"  switch (entry.kind) {
    case "reload":
      store.reload();
      break;
    default:
      store.add(entry);
  }"#;
    dangerous("regular", RMW, &[], &reloaded(push, either));
}

/// Who loads it first has what is there, and nobody comes in between; or all of it is given anew.
#[test]
fn safe_state_that_the_call_loads_or_replaces() {
    let first = "  store.reload();\n  store.add(entry);";
    let push = "    this.list.push(entry);";
    let found = scan(&reloaded(push, first), "regular");
    // One window, the one of the call itself.
    assert_eq!(found, RMW);
    let either = "  if (entry.again) store.reload();\n  else store.add(entry);";
    safe(&[], &reloaded("    this.list = entry.all;", either));
}

/// What is written is not what was loaded, or only this process writes there.
#[test]
fn safe_state_that_no_other_process_shares() {
    let report = r#"const names: string[] = JSON.parse(fs.readFileSync("names.json", "utf8"));
let last: any = null;"#;
    let tool = r#"  last = { known: names.includes(entry.name) };
  fs.writeFileSync("last.json", JSON.stringify(last));"#;
    safe(&[], &adds(report, tool));
    let own = r#"const file = () => `/run/list-${process.pid}.json`;
let list: any[] = [];
function load() {
  list = JSON.parse(fs.readFileSync(file(), "utf8"));
}
load();"#;
    let tool = r#"  list.push(entry);
  fs.writeFileSync(file(), JSON.stringify(list));"#;
    safe(&[], &adds(own, tool));
}

/// Whoever has not got the lock has nothing to give back.
#[test]
fn safe_lock_that_was_not_taken() {
    let source = r#"import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import fs from "node:fs";
function locked<T>(work: () => T): T {
  let lock: number | undefined;
  for (let i = 0; i < 100; i++) {
    try {
      lock = fs.openSync("/srv/list.lock", "wx");
      break;
    } catch (error: any) {
      if (error.code !== "EEXIST") throw error;
    }
  }
  if (lock === undefined) throw new Error("busy");
  try {
    return work();
  } finally {
    fs.closeSync(lock);
    fs.unlinkSync("/srv/list.lock");
  }
}
const server = new McpServer({ name: "list", version: "1.0.0" });
server.registerTool("add", {}, async () => locked(() => ({ content: [] })));
"#;
    safe(&[], source);
}

#[test]
fn dangerous_failure_before_the_lock_is_given_back() {
    let source = r#"import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { Mutex } from "async-mutex";
const mutex = new Mutex();
const server = new McpServer({ name: "list", version: "1.0.0" });
server.registerTool("add", {}, async ({ name }: any) => {
  const release = await mutex.acquire();
  if (!name) throw new Error("no name");
  release();
  return { content: [] };
});
"#;
    dangerous("regular", &["lock-not-released-on-error"], &[], source);
}

/// There is one already, and a newer one takes its place.
#[test]
fn safe_renewed_value() {
    let source = r#"import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { chromium } from "playwright";
import { current } from "./pages.js";
const state: { page: any } = { page: null };
const server = new McpServer({ name: "browser", version: "1.0.0" });
server.registerTool("look", {}, async () => {
  if (state.page) {
    const { page } = await current();
    state.page = page || state.page;
  }
  return { content: [] };
});
server.registerTool("go", {}, async ({ page }: any) => {
  state.page = page;
  return { content: [] };
});
"#;
    safe(&[], source);
}

#[test]
fn safe_write_unless_it_changes_nothing() {
    let put = r#"async function put(file: string, text: string) {
  try {
    if ((await readFile(file, "utf8")) === text) return false;
  } catch (error: any) {
    if (error.code !== "ENOENT") throw error;
  }
  await writeFile(file, text);
  return true;
}"#;
    safe(&[], &adds(put, r#"  await put("rules.md", entry.text);"#));
}

/// … but not where something else is written than was compared.
#[test]
fn dangerous_write_unless_it_is_as_expected() {
    let put = r#"async function put(file: string, text: string, next: string) {
  if ((await readFile(file, "utf8")) !== text) throw new Error("changed");
  await writeFile(file, next);
}"#;
    dangerous(
        "regular",
        &["file-check-then-act", "file-read-modify-write"],
        &[],
        &adds(put, r#"  await put("rules.md", entry.text, entry.next);"#),
    );
}

#[test]
fn dangerous_limits_in_memory() {
    for (state, tool) in [
        (
            "const sessions = new Map<string, any>();",
            r#"  if (sessions.size >= 5) throw new Error("too many");
  const session = await fetch("https://example.com/sessions");
  sessions.set(entry.id, session);"#,
        ),
        (
            "let spent = 0;",
            r#"  if (spent + entry.cost > 10) throw new Error("budget");
  await fetch("https://example.com/paid");
  spent += entry.cost;"#,
        ),
    ] {
        dangerous(
            "regular",
            &["non-atomic-rate-limit"],
            &["no-concurrency-limit"],
            &adds(state, tool),
        );
    }
}

/// A cache that is full refuses nobody; a limit that is tested again at once holds.
#[test]
fn safe_limits_in_memory() {
    let cache = "const pages = new Map<string, any>();";
    let tool = r#"  const page = await fetch("https://example.com/" + entry.id);
  if (pages.size < 100) pages.set(entry.id, page);"#;
    safe(&["no-concurrency-limit"], &adds(cache, tool));
    let again = r#"  if (spent + entry.cost > 10) throw new Error("budget");
  await fetch("https://example.com/paid");
  if (spent + entry.cost > 10) throw new Error("budget");
  spent += entry.cost;"#;
    safe(&["no-concurrency-limit"], &adds("let spent = 0;", again));
    let places = r#"  if (active >= 5) throw new Error("busy");
  try {
    active++;
    console.log(`${active} at work`);
    await fetch("https://example.com/paid");
  } finally {
    active--;
  }"#;
    safe(&["no-concurrency-limit"], &adds("let active = 0;", places));
    let object = r#"class Places {
  private active = 0;
  async use(work: () => Promise<any>) {
    if (this.active >= 5) throw new Error("busy");
    this.active++;
    try {
      console.log(`${this.active} at work`);
      return await work();
    } finally {
      this.active--;
    }
  }
}
const places = new Places();"#;
    let tool = r#"  await places.use(() => fetch("https://example.com/paid"));"#;
    safe(&["no-concurrency-limit"], &adds(object, tool));
}

const CLEANS: &str = r#"function normalizeName(name: string) {
  let p = name.trim();
  if (p.startsWith("~/")) p = p.replace("~", os.homedir());
  if (p.startsWith("/")) p = p.slice(1);
  return p;
}
const place = (name: string) => path.join("/srv/notes", normalizeName(name));
async function read(name: string) {
  const clean = normalizeName(name);
  return readFile(place(clean), "utf8");
}"#;

#[test]
fn dangerous_path_that_is_cleaned_by_the_caller_and_by_its_helper() {
    let tool = r#"  const name = normalizeName(entry.name);
  const text = await read(name);
  await writeFile(place(name), text.replace(entry.from, entry.to));"#;
    dangerous("regular", RMW, &[], &adds(CLEANS, tool));
}

#[test]
fn safe_path_of_another_file_that_is_cleaned_alike() {
    let tool = r#"  const text = await read(normalizeName(entry.template));
  await writeFile(place(entry.name), text.replace(entry.from, entry.to));"#;
    safe(&[], &adds(CLEANS, tool));
}

/// What all tools do is told of each of them, and takes no room from the last.
#[test]
fn dangerous_last_tool_of_a_long_switch() {
    let noted: String = (0..20)
        .map(|i| {
            format!(
                r#"  await writeFile("stats/{i}.json", (await readFile("stats/{i}.json", "utf8")) + name);
"#
            )
        })
        .collect();
    let cases: String = (0..25)
        .map(|i| format!("    case \"tool_{i}\": await note(\"{i}\"); break;\n"))
        .collect();
    let source = format!(
        r#"import {{ Server }} from "@modelcontextprotocol/sdk/server/index.js";
import {{ CallToolRequestSchema }} from "@modelcontextprotocol/sdk/types.js";
import {{ readFile, writeFile }} from "node:fs/promises";
const server = new Server({{ name: "many", version: "1.0.0" }}, {{ capabilities: {{ tools: {{}} }} }});
async function note(name: string) {{
{noted}}}
async function last(file: string) {{
  await writeFile(file, (await readFile(file, "utf8")).replace("a", "b"));
}}
server.setRequestHandler(CallToolRequestSchema, async (request) => {{
  switch (request.params.name) {{
{cases}    case "last": await last("list.json"); break;
  }}
  return {{ content: [] }};
}});
"#
    );
    let run = Project::new(&[("server.ts", &source)]).run("scan server.ts --output json");
    let report = run.json();
    let found = report["findings"].as_array().expect("findings");
    let last = |f: &&serde_json::Value| f["location"]["function"] == "last";
    let last = found.iter().find(last).expect("the last tool is found");
    assert_eq!(last["entry_points"][0]["name"], "last");
}

/// One call leads to all tools of a registry: each is told by its own name.
#[test]
fn tools_of_a_registry_have_their_names() {
    let in_a_map = r#"const tools = new Map<string, { name: string; run: (args: any) => Promise<void> }>();
tools.set("look", { name: "look", run: async () => { await readFile("list.json", "utf8"); } });
tools.set("change", { name: "change", run: async (args) => { await change(args.text); } });
const find = (name: string) => tools.get(name)!;"#;
    let classes = r#"interface Tool { name: string; run(args: any): Promise<void>; }
class Look implements Tool {
  name = "look";
  async run() { await readFile("list.json", "utf8"); }
}
class Change implements Tool {
  get name() { return "change"; }
  async run(args: any) { await change(args.text); }
}
const tools: Tool[] = [new Look(), new Change()];
const find = (name: string) => tools.find((tool) => tool.name === name)!;"#;
    for registry in [in_a_map, classes] {
        let source = format!(
            r#"import {{ Server }} from "@modelcontextprotocol/sdk/server/index.js";
import {{ CallToolRequestSchema }} from "@modelcontextprotocol/sdk/types.js";
import {{ readFile, writeFile }} from "node:fs/promises";
const server = new Server({{ name: "list", version: "1.0.0" }}, {{ capabilities: {{ tools: {{}} }} }});
async function change(text: string) {{
  await writeFile("list.json", (await readFile("list.json", "utf8")) + text);
}}
{registry}
server.setRequestHandler(CallToolRequestSchema, async (request) => {{
  await find(request.params.name).run(request.params.arguments);
  return {{ content: [] }};
}});
"#
        );
        let run = Project::new(&[("server.ts", &source)]).run("scan server.ts --output json");
        let report = run.json();
        let entries = report["findings"][0]["entry_points"].as_array();
        let names: Vec<_> = entries.into_iter().flatten().map(|e| &e["name"]).collect();
        assert_eq!(names, ["change"], "{registry}\n{}", run.seen());
    }
}

#[test]
fn dangerous_work_inside_of_a_scope() {
    for (import, call) in [
        (
            r#"import { AsyncLocalStorage } from "node:async_hooks";
const requests = new AsyncLocalStorage<{ id: string }>();"#,
            "requests.run({ id: entry.id }, work)",
        ),
        (
            r#"import { trace } from "@opentelemetry/api";
const tracer = trace.getTracer("list");"#,
            r#"tracer.startActiveSpan("add", () => work())"#,
        ),
        (r#"import pRetry from "p-retry";"#, "pRetry(work)"),
        (
            r#"import * as Sentry from "@sentry/node";"#,
            r#"Sentry.startSpan({ name: "add" }, async () => work())"#,
        ),
    ] {
        let tool = format!(
            r#"  const work = async () => {{
    const list = JSON.parse(await readFile("list.json", "utf8"));
    list.push(entry);
    await writeFile("list.json", JSON.stringify(list));
  }};
  await {call};"#
        );
        dangerous("regular", RMW, &[], &adds(import, &tool));
    }
}

#[test]
fn dangerous_work_that_a_helper_hands_to_a_library() {
    let helper = r#"import { Scope } from "some-library";
const scope = new Scope();
function scoped(work: () => Promise<void>) {
  return scope.run({ id: 1 }, work);
}"#;
    let tool = r#"  await scoped(async () => {
    const list = JSON.parse(await readFile("list.json", "utf8"));
    list.push(entry);
    await writeFile("list.json", JSON.stringify(list));
  });"#;
    dangerous("regular", RMW, &[], &adds(helper, tool));
}

/// A collection that another method opened is one by the field that holds it.
#[test]
fn dangerous_table_that_another_method_opened() {
    let source = r#"import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { ChromaClient, Collection } from "chromadb";
class Projects {
  private all: Collection | null = null;
  async open() {
    const client = new ChromaClient({ path: "store" });
    this.all = await client.getOrCreateCollection({ name: "projects" });
  }
  async create(name: string) {
    const found = await this.all!.get({ ids: [name] });
    if (found.ids.length > 0) throw new Error("exists");
    await this.all!.add({ ids: [name], documents: [name] });
  }
}
const projects = new Projects();
const server = new McpServer({ name: "projects", version: "1.0.0" });
server.registerTool("create", {}, async ({ name }: { name: string }) => {
  await projects.create(name);
  return { content: [] };
});
await projects.open();
"#;
    dangerous("regular", &["db-check-then-write"], &[], source);
    let unasked = source.replace("if (found.ids.length > 0) throw new Error(\"exists\");", "");
    safe(&[], &unasked);
}

/// What only routes and events reach is mostly meant: the last one wins.
#[test]
fn state_that_no_call_of_a_client_reaches() {
    let server = |entry: &str| {
        format!(
            r#"import {{ McpServer }} from "@modelcontextprotocol/sdk/server/mcp.js";
import express from "express";
import {{ work }} from "./work.js";
const app = express();
const server = new McpServer({{ name: "count", version: "1.0.0" }});
let total = 0;
async function add() {{
  const before = total;
  await work();
  total = before + 1;
}}
server.registerTool("total", {{}}, async () => ({{ content: [{{ type: "text", text: String(total) }}] }}));
{entry}
"#
        )
    };
    let route = server(r#"app.post("/add", async (req, res) => { await add(); res.end(); });"#);
    safe(&[], &route);
    dangerous("pedantic", &["session-lost-update"], &[], &route);
    let tool =
        r#"server.registerTool("add", {}, async () => { await add(); return { content: [] }; });"#;
    dangerous("regular", &["session-lost-update"], &[], &server(tool));
}
