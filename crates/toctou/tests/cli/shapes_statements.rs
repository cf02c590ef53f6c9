//! Shapes of statements: where servers keep their texts, who runs them, on which connection,
//! and which of their columns ever change.

use crate::common::Project;

const NOTHING: &[&str] = &[];

/// What the regular persona finds in a server with these tools: rules, and the scopes of the first.
#[track_caller]
fn found(source: &str) -> (Vec<String>, Vec<String>) {
    let source = format!(
        "import {{ McpServer }} from \"@modelcontextprotocol/sdk/server/mcp.js\";
const server = new McpServer({{ name: \"rows\", version: \"1.0.0\" }});
{source}"
    );
    let project = Project::new(&[("server.ts", &source)]);
    let run = project.run("scan server.ts --no-config --output json");
    assert!(matches!(run.code, Some(0 | 1)), "{}", run.seen());
    assert_eq!(run.json()["summary"]["skipped"], 0, "{}", run.stdout);
    let scopes = run.json()["findings"][0]["scopes"].clone();
    let scopes = scopes.as_array().into_iter().flatten();
    let scopes = scopes.filter_map(|s| Some(s.as_str()?.to_owned()));
    (run.rules(), scopes.collect())
}

#[track_caller]
fn expect(rules: &[&str], source: &str) {
    assert_eq!(found(source).0, rules, "{source}");
}

const BUMP: &str = "server.registerTool(\"bump\", {}, async ({ id }: any) => {
  const row = await get(id);
  await set(id, row.n + 1);
  return { content: [] };
});
";

#[test]
fn statements_in_one_object_are_those_that_were_prepared() {
    let open = "import Database from \"better-sqlite3\";
const db = new Database(\"a.db\");
";
    let texts = "{
  read: db.prepare(\"SELECT n FROM t WHERE id = ?\"),
  write: db.prepare(\"UPDATE t SET n = ? WHERE id = ?\"),
}";
    let ways = [
        format!("const statements = {texts};"),
        format!("function prepare() {{ return {texts}; }}\nconst statements = prepare();"),
    ];
    let use_them = "const get = (id: string) => statements.read.get(id) as any;
const set = (id: string, n: number) => statements.write.run(n, id);
";
    for way in ways {
        expect(
            &["db-lost-update"],
            &format!("{open}{way}\n{use_them}{BUMP}"),
        );
    }
    let field = format!(
        "{open}class Store {{
  private statements: any;
  constructor() {{ this.statements = {texts}; }}
  get(id: string) {{ return this.statements.read.get(id) as any; }}
  set(id: string, n: number) {{ this.statements.write.run(n, id); }}
}}
const store = new Store();
const get = (id: string) => store.get(id);
const set = (id: string, n: number) => store.set(id, n);
{BUMP}"
    );
    expect(&["db-lost-update"], &field);
}

#[test]
fn statements_in_one_object_that_ask_for_what_was_read_are_safe() {
    expect(
        NOTHING,
        "import Database from \"better-sqlite3\";
const db = new Database(\"a.db\");
const statements = {
  read: db.prepare(\"SELECT n FROM t WHERE id = ?\"),
  write: db.prepare(\"UPDATE t SET n = n + 1 WHERE id = ?\"),
};
server.registerTool(\"bump\", {}, async ({ id }: any) => {
  const row = statements.read.get(id) as any;
  if (row) statements.write.run(id);
  return { content: [] };
});
",
    );
}

const PROMISES: &str = "import sqlite3 from \"sqlite3\";
const db = new sqlite3.Database(\"a.db\");
class Rows {
  get(sql: string, params: any[] = []): Promise<any> {
    return new Promise((resolve, reject) => {
      db.get(sql, params, (error, row) => { if (error) reject(error); else resolve(row); });
    });
  }
  run(sql: string, params: any[] = []): Promise<void> {
    return new Promise((resolve, reject) => {
      db.run(sql, params, (error) => { if (error) reject(error); else resolve(); });
    });
  }
}
const rows = new Rows();
";

#[test]
fn parameters_in_a_list_before_a_callback() {
    let source = "import sqlite3 from \"sqlite3\";
const db = new sqlite3.Database(\"a.db\");
const get = (id: string): Promise<any> => new Promise((resolve) => {
  db.get(\"SELECT n FROM t WHERE id = ?\", [id], (error, row) => resolve(row));
});
const set = async (id: string, n: number) => db.run(\"UPDATE t SET n = ? WHERE id = ?\", [n, id]);
";
    expect(&["db-lost-update"], &format!("{source}{BUMP}"));
    // Another row is written than the one that was read.
    let other = source.replace("[n, id]", "[n, \"other\"]");
    expect(NOTHING, &format!("{other}{BUMP}"));
}

#[test]
fn helpers_of_the_program_run_the_texts_that_they_are_given() {
    let source = format!(
        "{PROMISES}const get = (id: string) => rows.get(\"SELECT n FROM t WHERE id = ?\", [id]);
const set = (id: string, n: number) => rows.run(\"UPDATE t SET n = ? WHERE id = ?\", [n, id]);
{BUMP}"
    );
    expect(&["db-lost-update"], &source);
    let counted = source.replace(
        "n = ? WHERE id = ?\", [n, id]",
        "n = n + 1 WHERE id = ?\", [id]",
    );
    expect(NOTHING, &counted);
    let versioned = source
        .replace(
            "(id: string, n: number)",
            "(id: string, n: number, old?: number)",
        )
        .replace(
            "n = ? WHERE id = ?\", [n, id]",
            "n = ? WHERE id = ? AND n = ?\", [n, id, old]",
        )
        .replace("row.n + 1", "row.n + 1, row.n");
    expect(NOTHING, &versioned);
}

#[test]
fn who_begins_and_who_commits_may_be_helpers() {
    let source = "import { Pool } from \"pg\";
const pool = new Pool();
class Work {
  constructor(private client: any) {}
  async begin() { await this.client.query(\"BEGIN ISOLATION LEVEL SERIALIZABLE\"); }
  async commit() { await this.client.query(\"COMMIT\"); }
}
server.registerTool(\"bump\", {}, async ({ id }: any) => {
  const client = await pool.connect();
  const work = new Work(client);
  await work.begin();
  const { rows } = await client.query(\"SELECT n FROM t WHERE id = $1\", [id]);
  await client.query(\"UPDATE t SET n = $1 WHERE id = $2\", [rows[0].n + 1, id]);
  await work.commit();
  return { content: [] };
});
";
    expect(NOTHING, source);
    let early = source.replace(
        "  const { rows }",
        "  await work.commit();\n  const { rows }",
    );
    expect(&["db-lost-update"], &early);
}

#[test]
fn an_upsert_by_the_key_of_the_row_that_was_read() {
    let source = "import { DatabaseSync } from \"node:sqlite\";
const db = new DatabaseSync(\"a.db\");
const read = (id: string) => db.prepare(\"SELECT * FROM tasks WHERE id = ?\").get(id) as any;
function save(task: any) {
  db.prepare(
    \"INSERT INTO tasks (id, title) VALUES (?, ?) ON CONFLICT(id) DO UPDATE SET title = excluded.title\",
  ).run(task.id, task.title);
}
server.registerTool(\"shout\", {}, async ({ id }: any) => {
  const task = read(id);
  task.title += \"!\";
  save(task);
  return { content: [] };
});
";
    expect(&["db-lost-update"], source);
    // A copy under a new key overwrites nobody.
    let copy = source.replace("run(task.id,", "run(crypto.randomUUID(),");
    expect(NOTHING, &copy);
}

#[test]
fn a_transaction_keeps_out_who_does_not_share_its_connection() {
    let tool = |open: &str| {
        format!(
            "import {{ open }} from \"sqlite\";
import sqlite3 from \"sqlite3\";
const path = {{ filename: \"a.db\", driver: sqlite3.Database }};
{open}
  await db.run(\"BEGIN IMMEDIATE\");
  const row = await db.get(\"SELECT n FROM t WHERE id = ?\", [id]);
  await db.run(\"UPDATE t SET n = ? WHERE id = ?\", [row.n + 1, id]);
  await db.run(\"COMMIT\");
  return {{ content: [] }};
}});
"
        )
    };
    let shared = tool(
        "const db = await open(path);
server.registerTool(\"bump\", {}, async ({ id }: any) => {",
    );
    let (rules, scopes) = found(&shared);
    assert_eq!(rules, ["db-lost-update"]);
    assert_eq!(scopes, ["in-process"]);
    let own = tool(
        "server.registerTool(\"bump\", {}, async ({ id }: any) => {
  const db = await open(path);",
    );
    expect(NOTHING, &own);
}

#[test]
fn nobody_gives_way_in_a_transaction_of_a_driver_that_does_not_wait() {
    expect(
        NOTHING,
        "import { DatabaseSync } from \"node:sqlite\";
const db = new DatabaseSync(\"a.db\");
server.registerTool(\"bump\", {}, async ({ id }: any) => {
  db.exec(\"BEGIN IMMEDIATE\");
  const row = db.prepare(\"SELECT n FROM t WHERE id = ?\").get(id) as any;
  db.prepare(\"UPDATE t SET n = ? WHERE id = ?\").run(row.n + 1, id);
  db.exec(\"COMMIT\");
  return { content: [] };
});
",
    );
}

const RIGHTS: &str = "import { Pool } from \"pg\";
const pool = new Pool();
server.registerTool(\"create\", {}, async ({ id, text }: any, extra: any) => {
  const owner = extra.authInfo.clientId;
  await pool.query(\"INSERT INTO notes (id, owner, text) VALUES ($1, $2, $3)\", [id, owner, text]);
  return { content: [] };
});
server.registerTool(\"edit\", {}, async ({ id, text }: any, extra: any) => {
  const { rows } = await pool.query(\"SELECT owner FROM notes WHERE id = $1\", [id]);
  if (rows[0]?.owner !== extra.authInfo.clientId) throw new Error(\"not yours\");
  await pool.query(\"UPDATE notes SET text = $1 WHERE id = $2\", [text, id]);
  return { content: [] };
});
";

#[test]
fn a_right_that_no_statement_changes_is_as_it_was() {
    expect(NOTHING, RIGHTS);
    let auth = &["auth-check-then-act"];
    let more = |statement: &str| {
        format!(
            "{RIGHTS}server.registerTool(\"more\", {{}}, async ({{ id, to, set }}: any) => {{
  {statement}
  return {{ content: [] }};
}});
"
        )
    };
    // Somebody gives it away, puts another row in its place, or does what nobody can read.
    for statement in [
        "await pool.query(\"UPDATE notes SET owner = $1 WHERE id = $2\", [to, id]);",
        "await pool.query(\"INSERT INTO notes (id, owner) VALUES ($1, $2) ON CONFLICT (id) DO UPDATE SET owner = excluded.owner\", [id, to]);",
        "await pool.query(\"REPLACE INTO notes (id, owner, text) VALUES ($1, $2, '')\", [id, to]);",
        "await pool.query(`UPDATE notes SET ${set} WHERE id = $1`, [id]);",
        "await pool.query(`UPDATE ${to} SET text = '' WHERE id = $1`, [id]);",
        "await pool.query(set);",
    ] {
        expect(auth, &more(statement));
    }
    // To delete a row, or to set another column, gives no right to anybody.
    for statement in [
        "await pool.query(\"DELETE FROM notes WHERE id = $1\", [id]);",
        "await pool.query(\"INSERT INTO notes (id, owner) VALUES ($1, $2) ON CONFLICT (id) DO UPDATE SET text = ''\", [id, to]);",
    ] {
        expect(NOTHING, &more(statement));
    }
    // Who does not make the rows does not know who else changes them.
    let elsewhere = RIGHTS.replace("INSERT INTO notes", "INSERT INTO drafts");
    expect(auth, &elsewhere);
}

#[test]
fn a_version_that_is_named_does_not_change() {
    let source = "export function make(env: Env) {
  server.registerTool(\"rollback\", {}, async ({ path, version }: any) => {
    const old = await env.FILES.get(path, { version });
    await env.FILES.put(path, await old!.text());
    return { content: [] };
  });
}
interface Env { FILES: R2Bucket }
";
    expect(NOTHING, source);
    let newest = source.replace("path, { version }", "path");
    expect(&["db-lost-update"], &newest);
}

#[test]
fn a_delete_that_asks_for_itself_needs_no_answer() {
    let source = "import Database from \"better-sqlite3\";
const db = new Database(\"a.db\");
server.registerTool(\"tidy\", {}, async () => {
  const lost = db.prepare(\"SELECT word FROM words WHERE note NOT IN (SELECT id FROM notes)\").all();
  await fetch(\"https://log.example/\");
  if (lost.length > 0) db.prepare(\"DELETE FROM words WHERE note NOT IN (SELECT id FROM notes)\").run();
  return { content: [] };
});
";
    expect(NOTHING, source);
}

#[test]
fn a_list_of_what_is_set_names_its_columns() {
    let more = |part: &str| {
        format!(
            "{RIGHTS}server.registerTool(\"more\", {{}}, async ({{ id, to, column }}: any) => {{
  const sets: string[] = [];
  const values: any[] = [];
  if (to) {{
    sets.push({part});
    values.push(to);
  }}
  await pool.query(`UPDATE notes SET ${{sets.join(\", \")}} WHERE id = $1`, [id, ...values]);
  return {{ content: [] }};
}});
"
        )
    };
    expect(NOTHING, &more("\"text = $2\""));
    expect(&["auth-check-then-act"], &more("\"owner = $2\""));
    expect(&["auth-check-then-act"], &more("`${column} = $2`"));
}

#[test]
fn whether_an_object_is_there_has_nothing_to_do_with_what_is_in_it() {
    let source = "import { Pool } from \"pg\";
const pool = new Pool();
async function find(id: string) {
  const { rows } = await pool.query(\"SELECT * FROM tasks WHERE id = $1\", [id]);
  if (rows.length === 0) return null;
  return { id: rows[0].id, state: rows[0].state };
}
server.registerTool(\"start\", {}, async ({ id }: any) => {
  const task = await find(id);
  if (!task) throw new Error(\"no such task\");
  await pool.query(\"UPDATE tasks SET state = 'running' WHERE id = $1\", [id]);
  return { content: [] };
});
";
    expect(NOTHING, source);
    let asked = source.replace("if (!task)", "if (!task || task.state === \"running\")");
    expect(&["db-check-then-write"], &asked);
}

/// A note is found by its name, and another function reads it again by its id and writes it.
fn appended(given: &str) -> String {
    format!(
        r#"import {{ Pool }} from "pg";
const db = new Pool();
async function find(name: string) {{
  const {{ rows }} = await db.query("SELECT id, text FROM notes WHERE name = $1", [name]);
  return rows[0];
}}
async function append(id: string, more: string) {{
  const client = await db.connect();
  try {{
    await client.query("BEGIN");
    const {{ rows }} = await client.query("SELECT text FROM notes WHERE id = $1 FOR UPDATE", [id]);
    await client.query("UPDATE notes SET text = $1 WHERE id = $2", [rows[0].text + more, id]);
    await client.query("COMMIT");
  }} finally {{
    client.release();
  }}
}}
server.registerTool("t", {{}}, async ({{ name, more }}: any) => {{
  const note = await find(name);
  await append(note.id, {given});
  return {{ content: [] }};
}});
"#
    )
}

/// The key says which row is read, and is no part of what is in it.
#[test]
fn a_row_that_only_says_which_one_is_read() {
    expect(NOTHING, &appended("more"));
    expect(&["db-lost-update"], &appended("note.text + more"));
}

/// A job is chosen by its state and taken by its name.
fn claimed(open: &str, read: &str, write: &str) -> String {
    format!(
        "{open}
server.registerTool(\"claim\", {{}}, async () => {{
  const job = await {read};
  if (!job) return {{ content: [] }};
  await {write};
  return {{ content: [{{ type: \"text\", text: String(job.id) }}] }};
}});
"
    )
}

#[test]
fn a_row_that_was_chosen_by_its_state_is_taken_twice() {
    let knex = "import knexFactory from \"knex\";\nconst knex = knexFactory({ client: \"pg\" });";
    let read = "knex(\"jobs\").where({ status: \"pending\" }).first()";
    let by_id = "knex(\"jobs\").where({ id: job.id }).update({ status: \"running\" })";
    let again = by_id.replace("job.id", "job.id, status: \"pending\"");
    expect(&["db-check-then-write"], &claimed(knex, read, by_id));
    expect(NOTHING, &claimed(knex, read, &again));
    let mongo = "import { MongoClient } from \"mongodb\";
const jobs = new MongoClient(\"mongodb://db\").db(\"a\").collection(\"jobs\");";
    let read = "jobs.findOne({ status: \"pending\" })";
    let by_id = "jobs.updateOne({ _id: job._id }, { $set: { status: \"running\" } })";
    let again = by_id.replace("job._id", "job._id, status: \"pending\"");
    expect(&["db-check-then-write"], &claimed(mongo, read, by_id));
    expect(NOTHING, &claimed(mongo, read, &again));
}

#[test]
fn an_option_that_locks_the_row_holds_it_until_the_transaction_ends() {
    let sequelize = |lock: &str| {
        format!(
            "import {{ Sequelize }} from \"sequelize\";
const sequelize = new Sequelize(\"postgres://db\");
const Account = sequelize.define(\"Account\", {{}});
server.registerTool(\"debit\", {{}}, async ({{ id, n }}: any) => {{
  await sequelize.transaction(async (t) => {{
    const a: any = await Account.findByPk(id, {{ transaction: t{lock} }});
    if (a.balance < n) throw new Error(\"too little\");
    await Account.update({{ balance: a.balance - n }}, {{ where: {{ id }}, transaction: t }});
  }});
  return {{ content: [] }};
}});
"
        )
    };
    expect(&["db-lost-update"], &sequelize(""));
    expect(&["db-lost-update"], &sequelize(", lock: false"));
    expect(NOTHING, &sequelize(", lock: true"));
    expect(NOTHING, &sequelize(", lock: t.LOCK.UPDATE"));
}

/// A row is asked for and then set, unless `same` holds.
fn set_unless(same: &str, set: &str) -> String {
    format!(
        r#"import {{ Pool }} from "pg";
const pool = new Pool();
server.registerTool("tool", {{}}, async ({{ id, text }}: any) => {{
  const {{ rows }} = await pool.query("SELECT status, title FROM tasks WHERE id = $1", [id]);
  if ({same}) return {{ content: [] }};
  {set}
  return {{ content: [] }};
}});
"#
    )
}

/// To leave out a statement that changes nothing is to run it.
#[test]
fn a_row_that_is_set_to_what_it_was_compared_with() {
    let set = r#"await pool.query("UPDATE tasks SET status = $1 WHERE id = $2", [text, id]);"#;
    expect(NOTHING, &set_unless("rows[0].status === text", set));
    let and_when = r#"await pool.query("UPDATE tasks SET status = $1, at = now() WHERE id = $2", [text, id]);"#;
    expect(NOTHING, &set_unless("rows[0].status === text", and_when));
}

#[test]
fn a_row_that_is_compared_with_something_else() {
    let check = &["db-check-then-write"];
    let set = r#"await pool.query("UPDATE tasks SET status = $1 WHERE id = $2", [text, id]);"#;
    // More was asked of it than whether it is the same.
    let locked = r#"rows[0].status === text || rows[0].title === "locked""#;
    expect(check, &set_unless(locked, set));
    // Who finds it open may do more than close it.
    let close =
        r#"await pool.query("UPDATE tasks SET status = $1 WHERE id = $2", ["closed", id]);"#;
    expect(check, &set_unless(r#"rows[0].status === "closed""#, close));
    // Something else is set with it, over what somebody else has set meanwhile.
    let both = r#"await pool.query("UPDATE tasks SET status = $1, title = $2 WHERE id = $3", [text, text + "!", id]);"#;
    expect(check, &set_unless("rows[0].status === text", both));
    // Something is done before, which the second does again.
    let moved = r#"await rename(`${id}.json`, `${text}.json`);
  await pool.query("UPDATE tasks SET status = $1 WHERE id = $2", [text, id]);"#;
    let server = set_unless("rows[0].status === text", moved);
    expect(
        check,
        &format!("import {{ rename }} from \"node:fs/promises\";\n{server}"),
    );
}
