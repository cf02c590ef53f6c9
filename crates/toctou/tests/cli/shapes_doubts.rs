//! Windows that are open, and harmless as often as not: for those who ask, not for everybody.
//! Beside each stands one that differs in the point that matters.

use crate::common::Project;
use crate::common::shapes::scan;

fn rules(files: &[(&str, &str)], persona: &str) -> Vec<String> {
    let run = Project::new(files).run(&format!(
        "scan . --no-config --persona {persona} --output json"
    ));
    assert!(matches!(run.code, Some(0 | 1)), "{}", run.seen());
    run.rules()
}

#[track_caller]
pub(crate) fn for_the_pedantic(rule: &str, source: &str) {
    assert_eq!(scan(source, "regular"), Vec::<String>::new());
    let found = scan(source, "pedantic");
    assert!(found.contains(&rule.to_owned()), "{found:?}");
}

#[track_caller]
pub(crate) fn for_everybody(rule: &str, source: &str) {
    let found = scan(source, "regular");
    assert!(found.contains(&rule.to_owned()), "{found:?}");
}

const SERVER: &str = r#"import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { existsSync, watch, writeFileSync } from "node:fs";
import { access, readFile, rename, writeFile } from "node:fs/promises";
import { Mutex } from "async-mutex";
import { Pool } from "pg";
const server = new McpServer({ name: "s", version: "1.0.0" });
const db = new Pool();
const lock = new Mutex();
"#;

pub(crate) fn tool(rest: &str, body: &str) -> String {
    format!(
        "{SERVER}{rest}\nserver.registerTool(\"t\", {{}}, async ({{ id, text }}: any) => {{\n{body}\n  return {{ content: [] }};\n}});\n"
    )
}

#[test]
fn a_file_looked_for_and_written_in_one_go() {
    for_the_pedantic(
        "file-check-then-act",
        &tool(
            "",
            "  if (existsSync(id)) throw new Error(\"there\");\n  writeFileSync(id, text);",
        ),
    );
    for_everybody(
        "file-check-then-act",
        &tool(
            "",
            "  const there = await access(id).then(() => true, () => false);\n  if (there) throw new Error(\"there\");\n  await writeFile(id, text);",
        ),
    );
}

/// A row that is read by `below`, so many calls down, and decides about an update here.
fn decided(below: &str) -> String {
    tool(
        &format!(
            r#"async function row(id: string) {{
  const {{ rows }} = await db.query("SELECT state FROM jobs WHERE id = $1", [id]);
  return rows[0].state;
}}
async function one(id: string) {{ return await row(id); }}
async function two(id: string) {{ return await one(id); }}
async function state(id: string) {{ return await {below}(id); }}"#
        ),
        "  if (await state(id) !== \"open\") throw new Error(\"no\");\n  await db.query(\"UPDATE jobs SET state = 'taken' WHERE id = $1\", [id]);",
    )
}

#[test]
fn a_row_that_decides_far_from_where_it_is_read() {
    for_the_pedantic("db-check-then-write", &decided("two"));
    let near = decided("row").replace("await state(id) !==", "await row(id) !==");
    for_everybody("db-check-then-write", &near);
}

const LOOK: &str = r#"const put = async (name: string, what: string) => {
  if (await access(name).then(() => true, () => false)) return;
  await writeFile(name, what);
};
"#;

#[test]
fn what_only_an_event_leads_to() {
    let watched =
        format!("{LOOK}watch(\".\", (event: any, name: any) => {{ void put(name, event); }});");
    for_the_pedantic("file-check-then-act", &tool(&watched, ""));
    for_everybody("file-check-then-act", &tool(LOOK, "  await put(id, text);"));
    // That others could import it is no call.
    let exported = watched.replace("const put", "export const put");
    for_the_pedantic("file-check-then-act", &tool(&exported, ""));
}

/// Somebody asks for it, however many functions hand it on: that is no event.
#[test]
fn what_a_route_leads_to_by_way_of_many_functions() {
    let route = format!(
        "{LOOK}const one = (n: string, w: string) => put(n, w);\nconst two = (n: string, w: string) => one(n, w);\nconst three = (n: string, w: string) => two(n, w);\napp.post(\"/put\", async (req: any, res: any) => {{ await three(req.body.name, req.body.what); res.end(); }});"
    );
    let app = format!("import express from \"express\";\nconst app = express();\n{route}");
    for_everybody("file-check-then-act", &tool(&app, ""));
}

#[test]
fn what_another_function_sets() {
    let owners = "const owners = new Map<string, string>();\nfunction claim(id: string, who: string) { owners.set(id, who); }";
    let claim = |set: &str| {
        let body = format!(
            "  if (owners.has(id)) throw new Error(\"taken\");\n  await readFile(text);\n  {set};"
        );
        tool(owners, &body)
    };
    for_the_pedantic("memory-check-then-act", &claim("claim(id, text)"));
    for_everybody("memory-check-then-act", &claim("owners.set(id, text)"));
}

/// A store that is opened by whoever comes first, and a server that starts so.
fn opened(main: &str) -> String {
    let store = r#"import { StdioServerTransport } from "@modelcontextprotocol/sdk/server/stdio.js";
import puppeteer from "puppeteer";
class Store {
  private browser: any;
  private ready = false;
  async open() {
    if (this.ready) return;
    await readFile("a.json");
    this.browser = await puppeteer.launch();
    this.ready = true;
  }
  async prepare() { return this.open(); }
}
const store = new Store();
async function main() {
"#;
    tool(
        &format!("{store}{main}\n}}\nvoid main();"),
        "  await store.open();",
    )
}

#[test]
fn what_is_set_before_anybody_is_let_in() {
    let connect = "await server.connect(new StdioServerTransport());";
    let rule = "memory-check-then-act";
    for_the_pedantic(rule, &opened(&format!("await store.prepare();\n{connect}")));
    let attempted = "try { await store.open(); } catch (error) { console.error(error); }";
    for_the_pedantic(rule, &opened(&format!("{attempted}\n{connect}")));
    for_everybody(rule, &opened(connect));
    for_everybody(rule, &opened(&format!("{connect}\nawait store.open();")));
    // Nobody waits for it, or it is not done in any case.
    for_everybody(rule, &opened(&format!("void store.prepare();\n{connect}")));
    let sometimes = "if (process.env.EARLY) await store.open();";
    for_everybody(rule, &opened(&format!("{sometimes}\n{connect}")));
    // A second way in that does without it.
    let either =
        format!("if (process.env.A) {{ await store.open(); {connect} }} else {{ {connect} }}");
    for_everybody(rule, &opened(&either));
}

/// `last` by way of so many functions.
fn by_way_of(functions: usize, last: &str, arguments: &str) -> (String, String) {
    let mut through = String::new();
    let mut name = last.to_owned();
    for number in 0..functions {
        let next = format!("step{number}");
        through += &format!(
            "async function {next}(id: any, text: any) {{ await {name}({arguments}); }}\n"
        );
        name = next;
    }
    (through, format!("  await {name}({arguments});"))
}

const TAKE: &str = r#"async function take(id: string) {
  const { rows } = await db.query("SELECT state FROM jobs WHERE id = $1", [id]);
  if (rows[0].state !== "open") throw new Error("no");
  await db.query("UPDATE jobs SET state = 'taken' WHERE id = $1", [id]);
}
"#;

#[test]
fn a_test_far_below_the_handler() {
    let take = |functions| {
        let (through, call) = by_way_of(functions, "take", "id");
        tool(&format!("{TAKE}{through}"), &call)
    };
    for_the_pedantic("db-check-then-write", &take(4));
    for_everybody("db-check-then-write", &take(0));
    // That others could import it does not bring it nearer.
    let (through, call) = by_way_of(4, "take", "id");
    let exported = format!("export {TAKE}{through}");
    for_the_pedantic("db-check-then-write", &tool(&exported, &call));
}

/// The newest row is found, and that one is given a title made of its own.
const RENAME: &str = r#"async function rename_(id: string, text: string) {
  const { rows } = await db.query("SELECT id, title FROM notes WHERE owner = $1", [id]);
  for (const row of rows) {
    await db.query("UPDATE notes SET title = $1 WHERE id = $2", [row.title + text, row.id]);
  }
}
"#;

#[test]
fn rows_that_are_looked_for_far_below_the_handler() {
    let rename = |functions| {
        let (through, call) = by_way_of(functions, "rename_", "id, text");
        tool(&format!("{RENAME}{through}"), &call)
    };
    for_the_pedantic("db-lost-update", &rename(4));
    for_everybody("db-lost-update", &rename(0));
}

#[test]
fn a_session_far_below_the_handler() {
    let count = |functions| {
        let count = "const sessions = new Map<string, any>();\nasync function count(id: string, text: string) {\n  const s = sessions.get(id) ?? { n: 0 };\n  await readFile(text);\n  sessions.set(id, { ...s, n: s.n + 1 });\n}\n";
        let (through, call) = by_way_of(functions, "count", "id, text");
        tool(&format!("{count}{through}"), &call)
    };
    for_the_pedantic("session-lost-update", &count(4));
    for_everybody("session-lost-update", &count(0));
}

#[test]
fn a_file_written_far_below_the_look() {
    let write = |functions| {
        let (through, call) = by_way_of(functions, "writeFile", "id, text");
        let look = "  const there = await access(id).then(() => true, () => false);\n  if (there) throw new Error(\"there\");\n";
        tool(&through, &format!("{look}{call}"))
    };
    for_the_pedantic("file-check-then-act", &write(4));
    for_everybody("file-check-then-act", &write(1));
}

#[test]
fn a_lock_of_the_process_and_a_look() {
    let locked = |body: &str| {
        tool(
            "",
            &format!("  await lock.runExclusive(async () => {{\n{body}\n  }});"),
        )
    };
    for_the_pedantic(
        "process-lock-on-shared-resource",
        &locked(
            "    const there = await access(\"state.json\").then(() => true, () => false);\n    if (!there) await writeFile(\"state.json\", text);",
        ),
    );
    for_everybody(
        "process-lock-on-shared-resource",
        &locked(
            "    const list = JSON.parse(await readFile(\"state.json\", \"utf8\"));\n    list.push(text);\n    await writeFile(\"state.json\", JSON.stringify(list));",
        ),
    );
}

#[test]
fn a_transaction_round_the_write_alone() {
    let update = "UPDATE jobs SET state = 'taken' WHERE id = $1";
    let take = |begin: &str, end: &str| {
        let body = format!(
            "  const client = await db.connect();\n  const {{ rows }} = await client.query(\"SELECT state FROM jobs WHERE id = $1\", [id]);\n  if (rows[0].state !== \"open\") throw new Error(\"no\");\n{begin}  await client.query(\"{update}\", [id]);\n{end}"
        );
        tool("", &body)
    };
    let (begin, end) = (
        "  await client.query(\"BEGIN\");\n",
        "  await client.query(\"COMMIT\");\n",
    );
    for_the_pedantic("db-check-then-write", &take(begin, end));
    for_everybody("db-check-then-write", &take("", ""));
}

#[test]
fn a_session_that_is_written_once() {
    let session = |body: &str| {
        let body = format!("  const s = sessions.get(id) ?? {{ seen: false, n: 0 }};\n{body}");
        tool("const sessions = new Map<string, any>();", &body)
    };
    for_the_pedantic(
        "session-lost-update",
        &session(
            "  if (!s.seen) { await readFile(text); sessions.set(id, { ...s, seen: true }); }",
        ),
    );
    for_everybody(
        "session-lost-update",
        &session("  await readFile(text);\n  sessions.set(id, { ...s, n: s.n + 1 });"),
    );
}

#[test]
fn a_save_that_nobody_waits_for() {
    let save = |call: &str| {
        let save = "async function save(text: string) {\n  await writeFile(\"state.json.tmp\", text);\n  await rename(\"state.json.tmp\", \"state.json\");\n}";
        tool(save, call)
    };
    for_the_pedantic("shared-temp-path", &save("  void save(text);"));
    for_everybody("shared-temp-path", &save("  await save(text);"));
}

/// Asked under the lock, and set under it: in between it is free.
const JOBS: &str = r#"class Jobs {
  private jobs = new Map<string, any>();
  private lock = new Mutex();
  async get(id: string) { return await this.lock.runExclusive(async () => this.jobs.get(id)); }
  async put(id: string, job: any) { await this.lock.runExclusive(async () => { this.jobs.set(id, job); }); }
}
const jobs = new Jobs();
async function add(id: string, job: any) {
  if (await jobs.get(id)) throw new Error("there is one");
  await jobs.put(id, job);
}
"#;

#[test]
fn two_sections_of_one_lock() {
    let add = |functions| {
        let (through, call) = by_way_of(functions, "add", "id, text");
        tool(&format!("{JOBS}{through}"), &call)
    };
    for_the_pedantic("lock-scope-too-narrow", &add(4));
    for_everybody("lock-scope-too-narrow", &add(0));
    // Nobody is told no: what is put there may be the same for everybody.
    let fills = JOBS.replace(
        "if (await jobs.get(id)) throw new Error(\"there is one\");",
        "if (await jobs.get(id)) return;",
    );
    for_the_pedantic(
        "lock-scope-too-narrow",
        &tool(&fills, "  await add(id, text);"),
    );
}

#[test]
fn what_was_read_gets_to_a_lock_far_below() {
    let save = |functions| {
        let (through, call) = by_way_of(functions, "put", "id, text");
        let put = "async function put(id: any, text: any) { await lock.runExclusive(async () => { await writeFile(id, text); }); }\n";
        let body = format!(
            "  const old = JSON.parse(await readFile(id, \"utf8\"));\n  old.push(text);\n  text = JSON.stringify(old);\n{call}"
        );
        tool(&format!("{put}{through}"), &body)
    };
    for_the_pedantic("lock-scope-too-narrow", &save(4));
    for_everybody("lock-scope-too-narrow", &save(0));
}

#[test]
fn what_is_set_twice_and_leaves_nothing_open() {
    let load = |between: &str| {
        let rest = format!(
            "import puppeteer from \"puppeteer\";\nlet ready = false;\nlet browser: any;\nasync function load() {{\n  if (ready) return;\n  {between}\n  await writeFile(\"a.json\", \"x\");\n  ready = true;\n}}"
        );
        tool(&rest, "  await load();")
    };
    for_the_pedantic(
        "memory-check-then-act",
        &load("await readFile(\"a.json\");"),
    );
    for_everybody(
        "memory-check-then-act",
        &load("browser = await puppeteer.launch();"),
    );
}

/// What a module holds, made on first use, so many functions below the handler.
fn made_on_first_use(functions: usize, imports: &str, make: &str) -> String {
    let mut source = format!(
        "from mcp.server.fastmcp import FastMCP\n{imports}\nmcp = FastMCP(\"s\")\nheld = None\nasync def step0():\n    global held\n    if held is None:\n{make}    held[\"seen\"] = 1\n"
    );
    for n in 1..=functions {
        source += &format!("async def step{n}():\n    return await step{}()\n", n - 1);
    }
    source + &format!("@mcp.tool()\nasync def t():\n    return await step{functions}()\n")
}

#[test]
fn a_place_that_is_filled_far_below_the_handler() {
    let rule = "memory-check-then-act".to_owned();
    let found = |source: &str, persona| rules(&[("server.py", source)], persona);
    let load = |functions| {
        let make = "        async with aiofiles.open(\"index.json\") as f:\n            held = json.loads(await f.read())\n";
        made_on_first_use(functions, "import json, aiofiles", make)
    };
    assert_eq!(found(&load(4), "regular"), Vec::<String>::new());
    assert!(found(&load(4), "pedantic").contains(&rule));
    assert!(found(&load(0), "regular").contains(&rule));
    // What is left open is left open, however far below.
    let connect = "        held = await asyncpg.create_pool(\"db\")\n";
    let connect = made_on_first_use(4, "import asyncpg", connect);
    assert!(found(&connect, "regular").contains(&rule));
}

#[test]
fn what_is_looked_up_and_handed_out() {
    let save = |last: &str| {
        let save = "class Store {\n  private notes = new Map<string, any>();\n  put(id: string, text: string) { this.notes.set(id, text); }\n  async save() {\n    const all: any[] = [];\n    for (const note of this.notes.values()) all.push(note);\n    await readFile(\"a.json\");\n    await writeFile(\"notes.json\", JSON.stringify(all));\n";
        tool(
            &format!("{save}{last}  }}\n}}\nconst store = new Store();"),
            "  store.put(id, text);\n  await store.save();",
        )
    };
    for_the_pedantic("file-read-modify-write", &save("    return all;\n"));
    for_everybody("file-read-modify-write", &save(""));
}

#[test]
fn what_nobody_calls_and_nobody_comes_between() {
    let add = |read: &str, write: &str| {
        format!(
            "import {{ readFileSync, writeFileSync }} from \"node:fs\";\nimport {{ readFile, writeFile }} from \"node:fs/promises\";\nexport async function add(entry: string) {{\n  const list = JSON.parse({read}(\"list.json\", \"utf8\"));\n  list.push(entry);\n  {write}(\"list.json\", JSON.stringify(list));\n}}\n"
        )
    };
    let rule = "file-read-modify-write";
    for_the_pedantic(rule, &add("readFileSync", "writeFileSync"));
    for_everybody(rule, &add("await readFile", "await writeFile"));
}

/// A browser's page, or an editor's extension, beside the server of the same repository.
#[test]
fn a_package_beside_the_server() {
    let add = r#"import { readFile, writeFile } from "node:fs/promises";
export async function add(entry: string) {
  const list = JSON.parse(await readFile("list.json", "utf8"));
  list.push(entry);
  await writeFile("list.json", JSON.stringify(list));
}
"#;
    let page = |name: &str| format!("{{ \"name\": \"{name}\", \"version\": \"1.0.0\" }}");
    let (a, b) = (page("page"), page("server"));
    let alone = [("page/package.json", a.as_str()), ("page/list.ts", add)];
    assert_eq!(rules(&alone, "regular"), ["file-read-modify-write"]);
    let quiet = tool("", "");
    let beside = [
        alone[0],
        alone[1],
        ("server/package.json", b.as_str()),
        ("server/index.ts", quiet.as_str()),
    ];
    assert_eq!(rules(&beside, "regular"), Vec::<String>::new());
    assert_eq!(rules(&beside, "pedantic"), ["file-read-modify-write"]);
    // What the server uses is the server.
    let uses = quiet.replace("  return {", "  await add(text);\n  return {");
    let uses = format!("import {{ add }} from \"../page/list\";\n{uses}");
    let used = [
        beside[0],
        beside[1],
        beside[2],
        ("server/index.ts", uses.as_str()),
    ];
    assert_eq!(rules(&used, "regular"), ["file-read-modify-write"]);
}

fn counter(step: &str) -> String {
    format!(
        "from fastmcp import FastMCP\nmcp = FastMCP(\"x\")\n\nclass Stats:\n    def __init__(self):\n        self.hits = 0\n        self.last = {{}}\n\nstats = Stats()\n\n@mcp.tool()\ndef hit(key: str) -> int:\n    {step}\n    return 1\n"
    )
}

/// Threads of the interpreter take turns at calls and where a loop goes round.
#[test]
fn a_number_that_is_raised_in_one_go() {
    let scan = |step: &str, persona: &str| {
        let source = counter(step);
        let files = [
            ("server.py", source.as_str()),
            ("requirements.txt", "fastmcp>=3.0\n"),
        ];
        rules(&files, persona)
    };
    for step in ["stats.hits += 1", "stats.last[key] += 1"] {
        assert_eq!(scan(step, "regular"), Vec::<String>::new(), "{step}");
    }
    let called = "stats.hits = max(stats.hits, len(key)) + 1";
    assert_eq!(scan(called, "regular"), ["session-lost-update"]);
}

const GO: &str = r#"package main

import (
	"context"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

type In struct{ Key string }

type Store interface{ Add(key string) }

type Memory struct{ seen map[string]int }

func NewMemory() *Memory { return &Memory{seen: map[string]int{}} }

func (m *Memory) Add(key string) { m.seen[key] = m.seen[key] + 1 }

type Nothing struct{ name string }

func NewNothing() *Nothing { return &Nothing{name: "x"} }

func (n *Nothing) Add(key string) {}

type Tools struct{ store Store }

func (t *Tools) add(ctx context.Context, req *mcp.CallToolRequest, in In) (*mcp.CallToolResult, any, error) {
	t.store.Add(in.Key)
	return nil, nil, nil
}

func main() {
	tools := &Tools{store: MADE()}
	server := mcp.NewServer(&mcp.Implementation{Name: "x"}, nil)
	mcp.AddTool(server, &mcp.Tool{Name: "add"}, tools.add)
	server.Run(context.Background(), &mcp.StdioTransport{})
}
"#;

/// A store that only tests make is not what the server runs.
#[test]
fn a_type_that_only_tests_make() {
    let with = |made: &str| {
        let source = GO.replace("MADE", made);
        let test = "package main\n\nimport \"testing\"\n\nfunc TestAdd(t *testing.T) {\n\tt.Log(&Tools{store: NewMemory()})\n}\n";
        rules(&[("main.go", &source), ("main_test.go", test)], "regular")
    };
    assert_eq!(with("NewMemory"), ["data-race"]);
    assert_eq!(with("NewNothing"), Vec::<String>::new());
}

/// A row that is put beside one that was found, with what `values` says.
fn beside(look: &str, values: &str) -> String {
    tool(
        "",
        &format!(
            "  const {{ rows }} = await db.query(\"SELECT * FROM notes WHERE folder = $1\", [id]);\n  {look}\n  await db.query(\"INSERT INTO notes (folder, title) VALUES ($1, $2)\", {values});"
        ),
    )
}

#[test]
fn a_row_that_is_put_beside_another() {
    let none = "if (rows.length > 0) throw new Error(\"there\");";
    for_everybody("db-check-then-write", &beside(none, "[id, text]"));
    // That there is one is no reason not to put another: nobody was to be kept out.
    let found = "if (rows.length === 0) throw new Error(\"no such folder\");";
    for_the_pedantic("db-check-then-write", &beside(found, "[id, text]"));
    // A copy is a row of its own.
    for_the_pedantic("db-check-then-write", &beside("", "[id, rows[0].title]"));
    // The next number, though, is the same for everybody who asks.
    let next =
        beside("", "[id, rows[0].last + 1]").replace("SELECT *", "SELECT MAX(title) AS last");
    for_everybody("db-check-then-write", &next);
}

/// Whether a row that was found in a state goes depends on that state, if it can be another by now.
#[test]
fn a_row_that_is_looked_at_and_then_goes() {
    let looked = |columns: &str| {
        let other = format!(
            "server.registerTool(\"u\", {{}}, async ({{ id, text }}: any) => {{ await db.query(`UPDATE jobs SET {columns} = $2 WHERE id = $1`, [id, text]); return {{ content: [] }}; }});"
        );
        tool(
            &other,
            "  const { rows } = await db.query(\"SELECT state FROM jobs WHERE id = $1\", [id]);\n  if (rows[0].state !== \"done\") throw new Error(\"no\");\n  await db.query(\"DELETE FROM jobs WHERE id = $1\", [id]);",
        )
    };
    for_the_pedantic("db-check-then-write", &looked("${text}"));
    for_everybody("db-check-then-write", &looked("state"));
    // Who has it looked for by another function mostly asks whether it is there.
    let read = "const { rows } = await db.query(\"SELECT state FROM jobs WHERE id = $1\", [id]);";
    let far = looked("state").replace(read, "const rows = await find(id);")
        + &format!("async function find(id: string) {{\n  {read}\n  return rows;\n}}\n");
    for_the_pedantic("db-check-then-write", &far);
}

/// A row that is only marked goes as well.
#[test]
fn a_row_that_is_marked_as_deleted() {
    let marked = |column: &str| {
        tool(
            "",
            &format!(
                "  const {{ rows }} = await db.query(\"SELECT path FROM notes WHERE id = $1 AND {column} IS NULL\", [id]);\n  if (!rows[0]) throw new Error(\"no\");\n  await db.query(\"UPDATE notes SET {column} = now(), updated_at = now() WHERE id = $1\", [id]);"
            ),
        )
    };
    for_the_pedantic("db-check-then-write", &marked("deleted_at"));
    for_everybody("db-check-then-write", &marked("taken_at"));
}

/// What of a row goes into what is written: what says which it is, another column, or its own.
#[test]
fn what_of_a_row_is_written_back() {
    let written = |column: &str, value: &str| {
        tool(
            "",
            &format!(
                "  const {{ rows }} = await db.query(\"SELECT id, title, size FROM notes WHERE slug = $1\", [id]);\n  await db.query(\"UPDATE notes SET {column} = $2 WHERE slug = $1\", [id, {value}]);"
            ),
        )
    };
    for_everybody("db-lost-update", &written("size", "rows[0].size + 1"));
    for_the_pedantic("db-lost-update", &written("label", "`${rows[0].title}!`"));
    for_the_pedantic(
        "db-lost-update",
        &written("reference", "`note ${rows[0].id}`"),
    );
}

/// A row that is put in whatever was found.
#[test]
fn a_row_that_is_put_in_either_way() {
    let put = |look: &str| {
        tool(
            "async function known(id: string) {\n  const { rows } = await db.query(\"SELECT COUNT(*) AS n FROM notes WHERE folder = $1\", [id]);\n  return rows[0].n;\n}",
            &format!(
                "  const n = await known(id);\n  {look}\n  await db.query(\"INSERT INTO notes (folder, title) VALUES ($1, $2)\", [id, text]);"
            ),
        )
    };
    for_everybody(
        "db-check-then-write",
        &put("if (n > 0) throw new Error(\"there\");"),
    );
    assert_eq!(
        scan(&put("if (n > 0) console.log(\"more\");"), "regular"),
        Vec::<String>::new()
    );
}

/// What a schema of Prisma says to be unique is refused by the database.
#[test]
fn a_schema_of_prisma() {
    let source = r#"import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { PrismaClient } from "@prisma/client";
const server = new McpServer({ name: "s", version: "1.0.0" });
const prisma = new PrismaClient();
server.registerTool("t", {}, async ({ id }: any) => {
  const found = await prisma.userSetting.findUnique({ where: { userId: id } });
  if (!found) await prisma.userSetting.create({ data: { userId: id, theme: "dark" } });
  return { content: [] };
});
"#;
    let with = |mark: &str| {
        let schema = format!("model UserSetting {{\n  id String @id\n  userId String{mark}\n}}\n");
        rules(
            &[("server.ts", source), ("prisma/schema.prisma", &schema)],
            "regular",
        )
    };
    assert_eq!(with(""), ["db-check-then-write"]);
    assert_eq!(with(" @unique"), Vec::<String>::new());
    // A migration gives the table a name of its own.
    let migrated = |index: &str| {
        let text = format!(
            "CREATE TABLE user_settings (id text PRIMARY KEY, user_id text);\nCREATE {index} i ON user_settings (user_id);\n"
        );
        rules(
            &[("server.ts", source), ("migration.sql", &text)],
            "regular",
        )
    };
    assert_eq!(migrated("INDEX"), ["db-check-then-write"]);
    assert_eq!(migrated("UNIQUE INDEX"), Vec::<String>::new());
}

/// What a client of Prisma is given to write, in words or as it came.
#[test]
fn columns_that_are_not_seen() {
    let written = |data: &str| {
        format!(
            r#"import {{ McpServer }} from "@modelcontextprotocol/sdk/server/mcp.js";
import {{ PrismaClient }} from "@prisma/client";
const server = new McpServer({{ name: "s", version: "1.0.0" }});
const prisma = new PrismaClient();
server.registerTool("t", {{}}, async ({{ id, data }}: any) => {{
  const job = await prisma.job.findUnique({{ where: {{ id }} }});
  if (job.state !== "open") throw new Error("no");
  await prisma.job.update({{ where: {{ id }}, data{data} }});
  return {{ content: [] }};
}});
"#
        )
    };
    for_the_pedantic("db-check-then-write", &written(""));
    for_everybody("db-check-then-write", &written(": { state: \"taken\" }"));
}

/// A row that goes from one table to another is one of the two, always. What tells of its removal
/// is a line about it.
#[test]
fn a_row_that_is_moved_and_a_line_about_one_that_is_removed() {
    let found = "  const found = (await db.query(\"SELECT id, title, body FROM notes WHERE id = $1\", [id])).rows[0];\n  if (!found) throw new Error(\"none\");\n";
    let gone = "  await db.query(\"DELETE FROM notes WHERE id = $1\", [id]);";
    let rule = "multi-step-without-transaction";
    let kept = "  await db.query(\"INSERT INTO old_notes (id, title, body) VALUES ($1, $2, $3)\", [found.id, found.title, found.body]);\n";
    for_everybody(rule, &tool("", &format!("{found}{kept}{gone}")));
    let told = "  await db.query(\"INSERT INTO provenance (note_id, operation, details) VALUES ($1, $2, $3)\", [id, \"delete\", JSON.stringify({ reason: text, was: found })]);\n";
    let reported = scan(&tool("", &format!("{found}{told}{gone}")), "pedantic");
    assert!(!reported.contains(&rule.to_owned()), "{reported:?}");
}

/// What is taken from one is given to another, once. In a loop each round has its own record.
#[test]
fn two_steps_of_a_transfer_and_two_rounds_of_an_import() {
    let rule = "multi-step-without-transaction";
    let step = |key: &str, sign: char| {
        format!(
            "  await db.query(\"UPDATE stock SET amount = amount {sign} $2 WHERE shelf = $1\", [{key}, text]);\n"
        )
    };
    for_everybody(
        rule,
        &tool(
            "",
            &format!("{}{}", step("id.from", '-'), step("id.to", '+')),
        ),
    );
    let rounds = format!(
        "  for (const line of text.lines) {{\n{}{}  }}\n",
        step("line.shelf", '+'),
        step("line.before", '+'),
    );
    let reported = scan(&tool("", &rounds), "regular");
    assert!(!reported.contains(&rule.to_owned()), "{reported:?}");
}
