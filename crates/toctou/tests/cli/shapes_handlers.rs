//! Windows in handlers, in the ways that people write them: what is written is handed to a helper,
//! a path is a text, what is left is counted down, a list is searched, an object saves itself.

use crate::common::shapes::scan;

const NOTHING: &[&str] = &[];

#[track_caller]
fn expect(rules: &[&str], source: &str) {
    let source = format!(
        "import {{ McpServer }} from \"@modelcontextprotocol/sdk/server/mcp.js\";
import {{ StdioServerTransport }} from \"@modelcontextprotocol/sdk/server/stdio.js\";
const server = new McpServer({{ name: \"handlers\", version: \"1.0.0\" }});
{source}
await server.connect(new StdioServerTransport());"
    );
    assert_eq!(scan(&source, "regular"), rules, "{source}");
}

/// A tool, and what stands before it.
fn tool(before: &str, body: &str) -> String {
    format!(
        "{before}
server.registerTool(\"do\", {{}}, async ({{ id, name, text }}: any) => {{
  {body}
  return {{ content: [] }};
}});"
    )
}

/// Tasks in a table, with a helper that sets whatever it is given.
fn tasks(set: &str, given: &str) -> String {
    let before = format!(
        "import {{ drizzle }} from \"drizzle-orm/node-postgres\";
import {{ eq }} from \"drizzle-orm\";
import {{ pgTable, text }} from \"drizzle-orm/pg-core\";
const tasks = pgTable(\"tasks\", {{ id: text(\"id\").primaryKey(), title: text(\"title\"), doneAt: text(\"done_at\") }});
const db = drizzle(process.env.DATABASE_URL!);
class Tasks {{
  async find(id: string) {{
    return (await db.select().from(tasks).where(eq(tasks.id, id)))[0];
  }}
  async update(id: string, data: any) {{
    const [task] = await db.update(tasks).set({set}).where(eq(tasks.id, id)).returning();
    return task;
  }}
}}
const all = new Tasks();"
    );
    let body = format!(
        "const task = await all.find(id);
  if (!task) throw new Error(\"none\");
  if (task.doneAt) throw new Error(\"done already\");
  await all.update(id, {given});"
    );
    tool(&before, &body)
}

#[test]
fn columns_of_what_a_helper_is_given() {
    expect(
        &["db-check-then-write"],
        &tasks("data", "{ doneAt: new Date() }"),
    );
    expect(
        &["db-check-then-write"],
        &tasks("{ ...data }", "{ doneAt: new Date() }"),
    );
    // It is not what was tested.
    expect(NOTHING, &tasks("data", "{ title: name }"));
}

#[test]
fn a_path_that_is_a_text_is_the_one_that_is_joined() {
    let fs = "import { readdir, readFile, writeFile } from \"node:fs/promises\";
import { join } from \"node:path\";
const DIR = process.env.DIR!;";
    let update = |path: &str| {
        format!(
            "const list = JSON.parse(await readFile(join(DIR, `${{id}}.json`), \"utf8\"));
  list.push(text);
  await writeFile({path}, JSON.stringify(list));"
        )
    };
    for path in ["`${DIR}/${id}.json`", "DIR + \"/\" + id + \".json\""] {
        expect(&["file-read-modify-write"], &tool(fs, &update(path)));
    }
    expect(NOTHING, &tool(fs, &update("`${DIR}/copies/${id}.json`")));
    let next = |flag: &str| {
        format!(
            "const files = await readdir(`${{DIR}}/tickets`);
  await writeFile(`${{DIR}}/tickets/${{files.length + 1}}.md`, text{flag});"
        )
    };
    expect(&["file-check-then-act"], &tool(fs, &next("")));
    expect(NOTHING, &tool(fs, &next(", { flag: \"wx\" }")));
}

#[test]
fn what_is_left_is_counted_down_after_a_wait() {
    let wait = "await new Promise((done) => setTimeout(done, 100));";
    for test in [
        "if (left <= 0) throw new Error(\"none left\");",
        "if (left < 1) throw new Error(\"none left\");",
        "if (left === 0) throw new Error(\"none left\");",
    ] {
        let racy = tool("let left = 5;", &format!("{test}\n  {wait}\n  left--;"));
        expect(&["memory-check-then-act"], &racy);
        let safe = tool("let left = 5;", &format!("{test}\n  left--;\n  {wait}"));
        expect(NOTHING, &safe);
    }
    // A place that is taken before the wait and given back after it.
    let place = format!(
        "if (busy >= 1) throw new Error(\"busy\");
  busy++;
  try {{
    {wait}
  }} finally {{
    busy--;
  }}"
    );
    expect(NOTHING, &tool("let busy = 0;", &place));
    // The old number goes into the new one.
    let stock = "const stock = new Map<string, number>();";
    let take = |wait: &str| {
        format!(
            "const left = stock.get(id) ?? 0;
  if (left === 0) throw new Error(\"none left\");
  {wait}
  stock.set(id, left - 1);"
        )
    };
    expect(&["session-lost-update"], &tool(stock, &take(wait)));
    expect(NOTHING, &tool(stock, &take("")));
}

#[test]
fn a_list_is_searched_by_the_entry_itself() {
    let wait = "await new Promise((done) => setTimeout(done, 100));";
    let names = "const names: string[] = [];";
    for test in [
        "names.indexOf(name) >= 0",
        "names.indexOf(name) !== -1",
        "names.includes(name)",
    ] {
        let test = format!("if ({test}) throw new Error(\"taken\");");
        let racy = format!("{test}\n  {wait}\n  names.push(name);");
        expect(&["memory-check-then-act"], &tool(names, &racy));
        let safe = format!("{test}\n  names.push(name);\n  {wait}");
        expect(NOTHING, &tool(names, &safe));
    }
}

#[test]
fn a_connection_that_is_opened_twice_is_left_open() {
    for (import, open) in [
        (
            "import mysql from \"mysql2/promise\";",
            "mysql.createConnection(\"db\")",
        ),
        (
            "import { open } from \"sqlite\";",
            "open({ filename: \"a.db\" })",
        ),
    ] {
        let racy = format!(
            "{import}
let connection: any;
async function connect() {{
  if (!connection) connection = await {open};
  return connection;
}}"
        );
        expect(
            &["memory-check-then-act"],
            &tool(&racy, "await (await connect()).ping(id);"),
        );
        let safe = format!(
            "{import}
let connection: any;
function connect() {{
  connection ??= {open};
  return connection;
}}"
        );
        expect(NOTHING, &tool(&safe, "await (await connect()).ping(id);"));
    }
}

#[test]
fn an_object_of_a_class_that_is_a_model_saves_itself() {
    let model = "import { DataTypes, Model, Sequelize } from \"sequelize\";
const sequelize = new Sequelize(\"postgres://db\");
class Product extends Model {}
Product.init({ stock: DataTypes.INTEGER }, { sequelize });";
    let racy = "const product: any = await Product.findByPk(id);
  if (!product || product.stock < 1) throw new Error(\"sold out\");
  product.stock -= 1;
  await product.save();";
    expect(&["db-check-then-write"], &tool(model, racy));
    let safe = "const product: any = await Product.findByPk(id);
  if (!product) throw new Error(\"none\");
  console.log(product.stock);";
    expect(NOTHING, &tool(model, safe));
}

#[test]
fn a_database_in_memory_that_is_saved_whole() {
    let notes = |save: &str| {
        format!(
            "import Loki from \"lokijs\";
const db = new Loki(\"notes.db\", {{ autoload: true }});
const notes = db.addCollection(\"notes\");
function add(text: string) {{
  notes.insert({{ text }});
  {save}
}}"
        )
    };
    expect(
        &["file-read-modify-write"],
        &tool(&notes("db.saveDatabase();"), "add(text);"),
    );
    expect(NOTHING, &tool(&notes(""), "add(text);"));
}

/// Sessions in a store, with an `update` that reads again and puts in what it is given.
fn sessions(given: &str) -> String {
    let before = "import { createClient } from \"redis\";
class Sessions {
  private client = createClient();
  async get(id: string): Promise<any> {
    return JSON.parse((await this.client.get(`session:${id}`)) ?? \"null\");
  }
  async update(id: string, changes: any) {
    const session = await this.get(id);
    await this.client.set(`session:${id}`, JSON.stringify({ ...session, ...changes }));
  }
}
const sessions = new Sessions();";
    let body = format!(
        "const session = await sessions.get(id);
  if (!session) throw new Error(\"none\");
  {given}"
    );
    tool(before, &body)
}

#[test]
fn an_older_part_is_put_into_what_is_read_again() {
    let both = &["db-lost-update", "db-lost-update"];
    for given in [
        "await sessions.update(id, { notes: session.notes.filter((n: any) => n !== text) });",
        "await sessions.update(id, { notes: session.notes.map((n: any) => n.trim()) });",
        "const notes = [...session.notes];
  notes[0] = text;
  await sessions.update(id, { notes });",
    ] {
        expect(both, &sessions(given));
    }
    // What the caller has read is only looked at.
    expect(
        &["db-lost-update"],
        &sessions("if (session.notes.length) await sessions.update(id, { name });"),
    );
}
