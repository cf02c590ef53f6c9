//! Stores that a library or a class of the server keeps, and what callers hand on to them.

use crate::common::Project;
use crate::common::shapes::{dangerous, safe, scan};

const RMW: &[&str] = &["file-read-modify-write"];

fn server(helpers: &str, tool: &str) -> String {
    format!(
        r#"import {{ McpServer }} from "@modelcontextprotocol/sdk/server/mcp.js";
import fs from "node:fs/promises";
import path from "node:path";
{helpers}
const server = new McpServer({{ name: "notes", version: "1.0.0" }});
server.registerTool("add", {{}}, async (entry: any) => {{
{tool}
  return {{ content: [] }};
}});
"#
    )
}

/// The part that the tool changed is as old as its own read, however fresh the rest is that
/// the store puts it into.
const MERGING: &str = r#"import { Redis } from "ioredis";
class Boards {
  private client = new Redis();
  async get(id: string) {
    const text = await this.client.get("board:" + id);
    return text ? JSON.parse(text) : null;
  }
  async update(id: string, changes: any) {
    const board = await this.get(id);
    if (!board) throw new Error("no such board");
    await this.client.set("board:" + id, JSON.stringify({ ...board, ...changes }));
  }
}
const boards = new Boards();"#;

fn lost_updates(tool: &str) -> Vec<String> {
    let source = server(MERGING, tool);
    let project = Project::new(&[("index.ts", &source)]);
    let json = project.run("scan --output json --exit-zero .").json();
    let findings = json["findings"].as_array().cloned().unwrap_or_default();
    findings
        .iter()
        .filter(|f| f["rule"] == "db-lost-update")
        .filter_map(|f| Some(f["location"]["function"].as_str()?.to_owned()))
        .collect()
}

#[test]
fn dangerous_list_that_is_handed_on_to_a_store_that_merges() {
    let tool = r#"  const board = await boards.get(entry.board);
  const cards = [...board.cards, entry.card];
  await boards.update(entry.board, { cards });"#;
    assert_eq!(lost_updates(tool), ["Boards.update", "add"]);
}

#[test]
fn safe_what_the_caller_made_itself_is_merged() {
    let tool = r#"  const board = await boards.get(entry.board);
  if (!board) throw new Error("no such board");
  await boards.update(entry.board, { title: entry.title });"#;
    assert_eq!(lost_updates(tool), ["Boards.update"]);
}

/// A record is read by an id that was given, and put back by the one that is in it.
fn put_back(key: &str) -> String {
    let helpers = format!(
        r#"import {{ Redis }} from "ioredis";
const client = new Redis();
const keyOf = (id: string) => `task:${{id}}`;
async function save(task: any) {{
  await client.set({key}, JSON.stringify(task));
}}"#
    );
    let tool = r#"  const text = await client.get(keyOf(entry.id));
  if (!text) throw new Error("no such task");
  const task = JSON.parse(text);
  await save({ ...task, title: entry.title });"#;
    server(&helpers, tool)
}

#[test]
fn dangerous_record_under_its_own_id() {
    dangerous(
        "regular",
        &["db-lost-update"],
        &[],
        &put_back("keyOf(task.id)"),
    );
}

#[test]
fn safe_record_under_another_name() {
    safe(&[], &put_back("`archived:${task.id}`"));
    safe(&[], &put_back("`task:${task.id}:copy`"));
}

#[test]
fn dangerous_file_of_lowdb() {
    let opened = r#"import { Low } from "lowdb";
import { JSONFile } from "lowdb/node";
const db = new Low<any>(new JSONFile("notes.json"), { notes: [] });"#;
    let preset = r#"import { JSONFilePreset } from "lowdb/node";
const db = await JSONFilePreset("notes.json", { notes: [] });"#;
    for helpers in [opened, preset] {
        let push = "  await db.read();\n  db.data.notes.push(entry);\n  await db.write();";
        dangerous("regular", RMW, &[], &server(helpers, push));
        let update = "  await db.update(({ notes }) => notes.push(entry));";
        dangerous("regular", RMW, &[], &server(helpers, update));
    }
}

#[test]
fn safe_file_of_lowdb_under_a_lock() {
    let helpers = r#"import lockfile from "proper-lockfile";
import { JSONFilePreset } from "lowdb/node";
const db = await JSONFilePreset("notes.json", { notes: [] });"#;
    let tool = r#"  const release = await lockfile.lock("notes.json");
  try {
    await db.read();
    db.data.notes.push(entry);
    await db.write();
  } finally {
    await release();
  }"#;
    safe(&[], &server(helpers, tool));
}

/// The writers are kept by their paths: what comes out of the table is what was put there.
const WRITERS: &str = r#"import lockfile from "proper-lockfile";
import { Writer } from "steno";
class Files {
  private writers = new Map<string, Writer>();
  private writer(file: string): Writer {
    let writer = this.writers.get(file);
    if (!writer) {
      writer = new Writer(file);
      this.writers.set(file, writer);
    }
    return writer;
  }
  async load(file: string) {
    return JSON.parse(await fs.readFile(file, "utf8"));
  }
  async save(file: string, data: any) {
    await this.writer(file).write(JSON.stringify(data));
  }
}
const files = new Files();"#;

#[test]
fn dangerous_file_of_a_writer_that_is_kept() {
    let tool = r#"  const notes = await files.load("notes.json");
  notes.push(entry);
  await files.save("notes.json", notes);"#;
    dangerous("regular", RMW, &[], &server(WRITERS, tool));
}

#[test]
fn safe_file_of_a_writer_under_a_lock() {
    let tool = r#"  const release = await lockfile.lock("notes.json");
  try {
    const notes = await files.load("notes.json");
    notes.push(entry);
    await files.save("notes.json", notes);
  } finally {
    await release();
  }"#;
    safe(&[], &server(WRITERS, tool));
}

const VAULT: &str = r#"import { App, TFile } from "obsidian";
class Notes {
  constructor(private app: App) {}
  private find(name: string): TFile {
    const file = this.app.vault.getAbstractFileByPath(name);
    if (!(file instanceof TFile)) throw new Error("no such note");
    return file;
  }
  async read(name: string) {
    return await this.app.vault.read(this.find(name));
  }
  async write(name: string, text: string) {
    await this.app.vault.modify(this.find(name), text);
  }
  async change(name: string, how: (text: string) => string) {
    await this.app.vault.process(this.find(name), how);
  }
}
declare const app: App;
const notes = new Notes(app);"#;

#[test]
fn dangerous_note_that_is_read_and_modified() {
    let tool = r#"  const text = await notes.read(entry.note);
  await notes.write(entry.note, text.replace(entry.old, entry.new));"#;
    dangerous("regular", RMW, &[], &server(VAULT, tool));
}

#[test]
fn safe_note_that_is_processed() {
    let tool = r#"  await notes.change(entry.note, (text) => text.replace(entry.old, entry.new));"#;
    safe(&[], &server(VAULT, tool));
}

#[test]
fn dangerous_path_that_is_set_again_on_another_way() {
    let helpers = r#"async function load(file: string) {
  return await fs.readFile(path.resolve(file), "utf8");
}
async function save(file: string, text: string) {
  await fs.writeFile(path.resolve(file), text);
}"#;
    let tool = r#"  let file = path.join("notes", entry.name);
  const text = await load(file);
  if (entry.copy) {
    file = path.join("copies", entry.name);
  }
  await save(file, text + entry.more);"#;
    dangerous("regular", RMW, &[], &server(helpers, tool));
    let elsewhere = r#"  let file = path.join("notes", entry.name);
  const text = await load(file);
  file = path.join("copies", entry.name);
  if (entry.old) {
    file = path.join("older", entry.name);
  }
  await save(file, text + entry.more);"#;
    safe(&[], &server(helpers, elsewhere));
}

/// However much is done when a database is opened, what a statement reads is known later.
#[test]
fn dangerous_row_of_a_database_with_a_long_opening() {
    let steps: String = (0..120)
        .map(|i| format!("  db.exec(\"ALTER TABLE t{i} ADD COLUMN more TEXT\");\n"))
        .collect();
    let helpers = format!(
        r#"import Database from "better-sqlite3";
let db: Database.Database | null = null;
function open(): Database.Database {{
  if (db) return db;
  db = new Database("notes.db");
{steps}  return db;
}}"#
    );
    let tool = r#"  const row = open().prepare("SELECT tags FROM notes WHERE id = ?").get(entry.id) as any;
  open().prepare("UPDATE notes SET tags = ? WHERE id = ?").run(row.tags + entry.tag, entry.id);"#;
    dangerous("regular", &["db-lost-update"], &[], &server(&helpers, tool));
    let within = r#"  open().transaction(() => {
    const row = open().prepare("SELECT tags FROM notes WHERE id = ?").get(entry.id) as any;
    open().prepare("UPDATE notes SET tags = ? WHERE id = ?").run(row.tags + entry.tag, entry.id);
  }).immediate();"#;
    safe(&[], &server(&helpers, within));
}

/// Tools that a module exports one by one, put into a table by what they say of themselves.
fn by_table(filling: &str, add: &str) -> Vec<String> {
    let tools = format!(
        r#"import fs from "node:fs/promises";
import {{ Mutex }} from "async-mutex";
import lockfile from "proper-lockfile";
const mutex = new Mutex();
function tool(config: any) {{
  return {{ name: config.name, run: async (args: any) => config.handler(args) }};
}}
export const list = tool({{ name: "list", handler: async () => fs.readFile("notes.json", "utf8") }});
export const add = tool({{ name: "add", handler: async (args: any) => {{
{add}
}} }});
"#
    );
    let manager = format!(
        r#"import * as tools from "./tools.js";
class Manager {{
  private tools = new Map<string, any>();
  async initialize() {{
{filling}
  }}
  async call(name: string, args: unknown) {{
    const tool = this.tools.get(name);
    if (!tool) throw new Error("no such tool");
    return await tool.run(args);
  }}
}}
export default new Manager();
"#
    );
    let index = r#"import { Server } from "@modelcontextprotocol/sdk/server/index.js";
import { CallToolRequestSchema } from "@modelcontextprotocol/sdk/types.js";
import manager from "./manager.js";
const server = new Server({ name: "notes", version: "1.0.0" });
await manager.initialize();
server.setRequestHandler(CallToolRequestSchema, async (request: any) => {
  const text = await manager.call(request.params.name, request.params.arguments);
  return { content: [{ type: "text", text }] };
});
"#;
    let project = Project::new(&[
        ("tools.ts", &tools),
        ("manager.ts", &manager),
        ("index.ts", index),
    ]);
    project.run("scan --output json --exit-zero .").rules()
}

const ADDS: &str = r#"  const notes = JSON.parse(await fs.readFile("notes.json", "utf8"));
  notes.push(args);
  await fs.writeFile("notes.json", JSON.stringify(notes));"#;

#[test]
fn dangerous_tools_in_a_table_that_a_loop_fills() {
    for filling in [
        "    for (const one of Object.values(tools)) this.tools.set(one.name, one);",
        "    for (const [, one] of Object.entries(tools)) this.tools.set(one.name, one);",
        "    const all = await import(\"./tools.js\");\n    for (const [, one] of Object.entries(all)) this.tools.set((one as any).name, one);",
        "    const all = { a: tools.add, b: tools.list };\n    Object.values(all).forEach((one) => this.tools.set(one.name, one));",
        "    this.tools = new Map([tools.add, tools.list].map((one) => [one.name, one]));",
        "    const all = Object.fromEntries([tools.add, tools.list].map((one) => [one.name, one]));\n    this.tools.set(\"add\", all.add);",
    ] {
        assert_eq!(by_table(filling, ADDS), RMW, "{filling}");
    }
}

#[test]
fn safe_tools_in_a_table_under_a_lock() {
    let filling = "    for (const one of Object.values(tools)) this.tools.set(one.name, one);";
    let locked = format!(
        r#"  const release = await lockfile.lock("notes.json");
  try {{
{ADDS}
  }} finally {{
    await release();
  }}"#
    );
    assert!(by_table(filling, &locked).is_empty());
}

/// What the product loads is part of it, whatever its folder is called; a script that nothing
/// loads is not.
#[test]
fn dangerous_module_of_the_product_in_a_folder_of_scripts() {
    let notes = format!(
        "import fs from \"node:fs/promises\";\nexport async function add(args: any) {{\n{ADDS}\n}}\n"
    );
    let index = server(
        r#"import { add } from "./scripts/notes.js";"#,
        "  await add(entry);",
    );
    let alone = "import { add } from \"./notes.js\";\nawait add({});\n";
    let project = Project::new(&[
        ("index.ts", index.as_str()),
        ("scripts/notes.ts", &notes),
        ("scripts/once.ts", alone),
    ]);
    let json = project.run("scan --output json --exit-zero .").json();
    let finding = &json["findings"][0];
    assert_eq!(finding["location"]["file"], "scripts/notes.ts");
    assert_eq!(finding["non_product"], serde_json::Value::Null);
}

/// A lock file that looks left behind is removed by its name.
fn stale_lock(taking: &str) -> String {
    let helpers = format!(
        r#"async function exclusive<T>(job: () => Promise<T>): Promise<T> {{
{taking}
  try {{
    return await job();
  }} finally {{
    await fs.unlink("notes.lock");
  }}
}}"#
    );
    server(&helpers, "  await exclusive(async () => {});")
}

#[test]
fn dangerous_lock_file_that_is_removed_for_its_age() {
    let lock = &["broken-lock"];
    let before = r#"  for (let attempt = 0; attempt < 50; attempt++) {
    try {
      const found = await fs.stat("notes.lock");
      if (Date.now() - found.mtimeMs > 60_000) await fs.unlink("notes.lock");
    } catch {}
    try {
      await fs.writeFile("notes.lock", String(process.pid), { flag: "wx" });
      break;
    } catch (error) {
      if (attempt === 49) throw error;
      await new Promise((resolve) => setTimeout(resolve, 100 + Math.random() * 100));
    }
  }"#;
    dangerous("regular", lock, &[], &stale_lock(before));
}

/// Looked at since it could not be created: what is there is another's, and nothing to put right.
#[test]
fn dangerous_lock_file_that_is_removed_since_it_is_in_the_way() {
    let taking = |create: &str, old: &str| {
        format!(
            r#"  for (let attempt = 0; ; attempt++) {{
    try {{
      {create}
      break;
    }} catch (error: any) {{
      if (error.code !== "EEXIST" || attempt > 50) throw error;
      if ({old}) await fs.unlink("notes.lock");
      await new Promise((resolve) => setTimeout(resolve, 100 + Math.random() * 100));
    }}
  }}"#
        )
    };
    let write = r#"await fs.writeFile("notes.lock", String(process.pid), { flag: "wx" });"#;
    let open = r#"await fs.open("notes.lock", "wx");"#;
    let age = r#"Date.now() - (await fs.stat("notes.lock")).mtimeMs > 60_000"#;
    let owner = r#"!isRunning(Number(await fs.readFile("notes.lock", "utf8")))"#;
    for create in [write, open] {
        for old in [age, owner] {
            let source = stale_lock(&taking(create, old));
            dangerous("regular", &["broken-lock"], &[], &source);
        }
    }
}

/// What was created since the look is the call's own: to write into it, or to take it away again,
/// has nothing to do with what was there before.
#[test]
fn a_lock_file_is_written_by_who_has_created_it() {
    let taking = r#"  for (let attempt = 0; ; attempt++) {
    try {
      const mine = await fs.open("notes.lock", "wx");
      try {
        await mine.writeFile(String(process.pid));
        break;
      } catch (error) {
        await mine.close();
        await fs.unlink("notes.lock");
        throw error;
      }
    } catch (error: any) {
      if (error.code !== "EEXIST" || attempt > 50) throw error;
      const owner = Number(await fs.readFile("notes.lock", "utf8"));
      if (!isRunning(owner)) await fs.unlink("notes.lock");
      await new Promise((resolve) => setTimeout(resolve, 100 + Math.random() * 100));
    }
  }"#;
    assert_eq!(scan(&stale_lock(taking), "regular"), ["broken-lock"]);
    let waiting = taking.replace(
        "if (!isRunning(owner)) await fs.unlink(\"notes.lock\");",
        "console.error(owner);",
    );
    assert_eq!(scan(&stale_lock(&waiting), "regular"), Vec::<String>::new());
}

#[test]
fn safe_lock_file_that_is_waited_for() {
    let taking = r#"  for (let attempt = 0; ; attempt++) {
    try {
      await fs.writeFile("notes.lock", String(process.pid), { flag: "wx" });
      break;
    } catch (error) {
      if (attempt > 50) throw error;
      await new Promise((resolve) => setTimeout(resolve, 100 + Math.random() * 100));
    }
  }"#;
    safe(&[], &stale_lock(taking));
}
