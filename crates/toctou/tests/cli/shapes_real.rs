//! Shapes that real servers have shown, and that were once judged wrongly: freshly written, and as
//! small as they can be.

use crate::common::shapes::{dangerous, safe, scan};

#[test]
fn safe_failure_that_restores_what_was_there() {
    safe(
        &[],
        r#"import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { load } from "./config.js";
let servers: Record<string, string> = {};
async function reload() {
  const previous = servers;
  try {
    servers = await load();
  } catch {
    servers = previous;
  }
}
const server = new McpServer({ name: "config", version: "1.0.0" });
server.registerTool("list", {}, async () => {
  await reload();
  return { content: [{ type: "text", text: Object.keys(servers).join() }] };
});
"#,
    );
}

#[test]
fn dangerous_rows_counted_then_one_moved_among_them() {
    dangerous(
        "regular",
        &[
            "non-atomic-rate-limit",
            "db-check-then-write",
            "db-lost-update",
        ],
        &[],
        r#"import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import Database from "better-sqlite3";
import { z } from "zod";
const db = new Database("board.db");
const server = new McpServer({ name: "board", version: "1.0.0" });
const schema = { task: z.string(), column: z.string() };
server.registerTool("move_task", { inputSchema: schema }, async ({ task, column }) => {
  const { count } = db.prepare("SELECT COUNT(*) AS count FROM tasks WHERE column_id = ?").get(column) as any;
  if (count >= 3) throw new Error("column limit reached");
  db.prepare("UPDATE tasks SET column_id = ? WHERE id = ?").run(column, task);
  return { content: [] };
});
"#,
    );
}

/// The connection below has a window of its own; what is found out through it
/// and kept is found out twice, at worst.
#[test]
fn dangerous_connection_below_a_harmless_cache() {
    let source = r#"import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { ImapFlow } from "imapflow";
import { detect } from "./detect.js";
import { z } from "zod";
const clients = new Map<string, any>();
async function client(name: string) {
  const existing = clients.get(name);
  if (existing?.usable) return existing;
  const fresh = new ImapFlow({ host: name });
  await fresh.connect();
  clients.set(name, fresh);
  return fresh;
}
const kinds = new Map<string, string>();
async function kind(name: string) {
  const known = kinds.get(name);
  if (known) return known;
  const found = await detect(await client(name));
  kinds.set(name, found);
  return found;
}
const server = new McpServer({ name: "mail", version: "1.0.0" });
server.registerTool("label", { inputSchema: { name: z.string() } }, async ({ name }) => {
  return { content: [{ type: "text", text: await kind(name) }] };
});
"#;
    assert_eq!(scan(source, "regular"), ["memory-check-then-act"]);
}

#[test]
fn safe_entry_under_a_key_that_the_call_has_made() {
    safe(
        &[],
        r#"import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { randomUUID } from "node:crypto";
import { run } from "./steps.js";
import { z } from "zod";
const open = new Map<string, { status: string; steps: string[] }>();
function begin() {
  const id = randomUUID();
  open.set(id, { status: "pending", steps: [] });
  return id;
}
async function commit(id: string) {
  const work = open.get(id);
  if (!work || work.status !== "pending") throw new Error("not open");
  for (const step of work.steps) await run(step);
  work.status = "committed";
}
const server = new McpServer({ name: "work", version: "1.0.0" });
server.registerTool("work", { inputSchema: { step: z.string() } }, async ({ step }) => {
  const id = begin();
  open.get(id)!.steps.push(step);
  await commit(id);
  return { content: [] };
});
"#,
    );
}

/// What goes out is a list; what is put back is made from the list as it is then.
#[test]
fn safe_list_that_every_step_reads_anew() {
    safe(
        &[],
        r#"import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { removeRemote } from "./remote.js";
class Tracker {
  private items: { name: string }[] = [];
  async remove(name: string) {
    await removeRemote(name);
    this.items = this.items.filter((item) => item.name !== name);
  }
  async removeAll() {
    for (const item of [...this.items]) await this.remove(item.name);
  }
  add(name: string) {
    this.items.push({ name });
  }
}
const tracker = new Tracker();
const server = new McpServer({ name: "tracker", version: "1.0.0" });
server.registerTool("add", {}, async () => {
  tracker.add("x");
  return { content: [] };
});
server.registerTool("clear", {}, async () => {
  await tracker.removeAll();
  return { content: [] };
});
"#,
    );
}

#[test]
fn safe_cache_filled_twice_behind_a_breaker_that_counts() {
    safe(
        &[],
        r#"import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { analyse } from "./engine.js";
import { z } from "zod";
class Breaker {
  private total = 0;
  private failures: number[] = [];
  async run<T>(work: () => Promise<T>): Promise<T> {
    this.total++;
    try {
      return await work();
    } catch (error) {
      this.failures.push(Date.now());
      throw error;
    }
  }
}
const breaker = new Breaker();
const cache = new Map<string, unknown>();
async function analysed(path: string) {
  const known = cache.get(path);
  if (known) return known;
  const result = await breaker.run(() => analyse(path));
  cache.set(path, result);
  return result;
}
const server = new McpServer({ name: "analyse", version: "1.0.0" });
server.registerTool("analyse", { inputSchema: { path: z.string() } }, async ({ path }) => {
  return { content: [{ type: "text", text: JSON.stringify(await analysed(path)) }] };
});
"#,
    );
}

#[test]
fn safe_fallback_that_is_never_taken() {
    let server = |class: &str| {
        format!(
            r#"
import {{ McpServer }} from "@modelcontextprotocol/sdk/server/mcp.js";

class Codes {{
  codes = new Map<string, string>();
  async get(key: string) {{ return this.codes.get(key) ?? null; }}
  async delete(key: string) {{ this.codes.delete(key); }}
  {class}
}}

class Login {{
  constructor(private store: Codes) {{}}
  async redeem(code: string) {{
    if (this.store.take) return this.store.take(code);
    const used = await this.store.get(code);
    if (used === null) return null;
    await this.store.delete(code);
    return used;
  }}
}}

const login = new Login(new Codes());
const server = new McpServer({{ name: "login", version: "1" }});
server.registerTool("redeem", {{}}, async ({{ code }}) => login.redeem(code));
"#
        )
    };
    let take = "async take(key: string) { const v = this.codes.get(key) ?? null; this.codes.delete(key); return v; }";
    safe(&[], &server(take));
    dangerous(
        "regular",
        &["single-use-check-then-consume"],
        &[],
        &server(""),
    );
}

#[test]
fn safe_lock_that_is_asked_for_again() {
    safe(
        &[],
        r#"
import { writeFile, unlink, readFile } from "node:fs/promises";

export async function locked(path: string, change: (text: string) => string) {
  for (let turn = 0; turn < 20; turn++) {
    try {
      await writeFile(`${path}.lock`, String(process.pid), { flag: "wx" });
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
      await new Promise((next) => setTimeout(next, 100));
      continue;
    }
    try {
      return change(await readFile(path, "utf8"));
    } finally {
      await unlink(`${path}.lock`);
    }
  }
  throw new Error("busy");
}
"#,
    );
}

#[test]
fn safe_row_made_because_something_else_failed() {
    safe(
        &[],
        r#"
import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { Pool } from "pg";

const pool = new Pool();
const server = new McpServer({ name: "notes", version: "1.0.0" });

server.registerTool("note", {}, async ({ text }: { text: string }) => {
  try {
    const { rows } = await pool.query("SELECT name FROM folders WHERE id = 1");
    if (rows.length === 0) return { content: [] };
    await fetch("https://index.example/" + rows[0].name, { method: "POST", body: text });
  } catch (error) {
    if (String(error).includes("refused")) {
      await pool.query("INSERT INTO folders (name) VALUES ('unsent')");
    }
  }
  return { content: [] };
});
"#,
    );
}

#[test]
fn safe_temporary_file_of_this_process() {
    let source = |name: &str| {
        format!(
            r#"
import {{ McpServer }} from "@modelcontextprotocol/sdk/server/mcp.js";
import {{ renameSync, writeFileSync }} from "node:fs";

const server = new McpServer({{ name: "board", version: "1.0.0" }});
server.tool("pin", {{ note: z.string() }}, async ({{ note }}) => {{
  const draft = {name};
  writeFileSync(draft, note);
  renameSync(draft, "/srv/board.txt");
  return {{ content: [] }};
}});
"#
        )
    };
    safe(&[], &source("`/srv/board.txt.${process.pid}.new`"));
    let rules = scan(&source("`/srv/board.txt.new`"), "regular");
    assert_eq!(rules, ["shared-temp-path"]);
}

#[test]
fn safe_step_that_only_a_failure_would_skip() {
    safe(
        &[],
        r#"
import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { chmod, copyFile, rename, rm, stat, writeFile } from "node:fs/promises";
import { randomUUID } from "node:crypto";

const server = new McpServer({ name: "pages", version: "1.0.0" });
server.tool("publish", { text: z.string() }, async ({ text }) => {
  const draft = `/srv/page.html.${randomUUID()}`;
  const before = await stat("/srv/page.html").catch(() => undefined);
  try {
    await writeFile(draft, text);
    if (before) await chmod(draft, before.mode);
    if (before) await copyFile("/srv/page.html", `/srv/page.${randomUUID()}.old`);
    await rename(draft, "/srv/page.html");
  } catch (error) {
    await rm(draft, { force: true });
    throw error;
  }
  return { content: [] };
});
"#,
    );
}

#[test]
fn safe_failure_that_puts_back_what_was_written() {
    safe(
        &[],
        r#"
import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { copyFile, stat, writeFile } from "node:fs/promises";

const server = new McpServer({ name: "pages", version: "1.0.0" });
server.tool("publish", { text: z.string(), kept: z.string() }, async ({ text, kept }) => {
  try {
    if (text) await writeFile("/srv/page.html", text);
    const now = await stat("/srv/page.html");
    return { content: [{ type: "text", text: String(now.size) }] };
  } catch {
    await copyFile(kept, "/srv/page.html");
  }
});
"#,
    );
}

#[test]
fn safe_work_that_calls_of_one_key_share() {
    safe(
        &[],
        r#"
import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";

const asked = new Map();
async function tokenFor(account) {
  if (!asked.get(account)) {
    const answer = fetch(`https://sso.example/${account}`).finally(() => {
      asked.delete(account);
    });
    asked.set(account, answer);
  }
  const answer = await asked.get(account);
  return answer.text();
}

const server = new McpServer({ name: "mail", version: "1.0.0" });
server.tool("inbox", { account: z.string() }, async ({ account }) => {
  return { content: [{ type: "text", text: await tokenFor(account) }] };
});
"#,
    );
}

#[test]
fn safe_job_that_a_library_was_asked_about() {
    safe(
        &[],
        r#"
import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { Videos } from "video-service";

const server = new McpServer({ name: "videos", version: "1.0.0" });
const videos = new Videos();
const jobs = new Map<string, object>();

async function ask(job: object) {
  try {
    return await videos.operations.get({ job });
  } catch (error) {
    throw new Error(`no answer: ${error}`);
  }
}

server.registerTool("start", {}, async ({ id }) => {
  jobs.set(id, await videos.operations.start(id));
  return { content: [] };
});
server.registerTool("status", {}, async ({ id }) => {
  const job = jobs.get(id);
  if (!job) return { content: [] };
  const now = await ask(job);
  jobs.set(id, now);
  return { content: [{ type: "text", text: JSON.stringify(now) }] };
});
"#,
    );
}

#[test]
fn dangerous_list_that_a_helper_made_longer() {
    dangerous(
        "regular",
        &["session-lost-update"],
        &[],
        r#"
import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { Prices } from "price-service";

const server = new McpServer({ name: "carts", version: "1.0.0" });
const prices = new Prices();
const carts = new Map<string, object[]>();

async function longer(cart: object[], item: string) {
  const price = await prices.of(item);
  return [...cart, { item, price }];
}

server.registerTool("add", {}, async ({ id, item }) => {
  const cart = carts.get(id) ?? [];
  carts.set(id, await longer(cart, item));
  return { content: [] };
});
"#,
    );
}

#[test]
fn safe_name_that_a_service_gave() {
    safe(
        &[],
        r#"
import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";

const upstream = { session: undefined };
const server = new McpServer({ name: "bridge", version: "1.0.0" });
server.tool("forward", { body: z.string() }, async ({ body }) => {
  const headers = { "Mcp-Session-Id": upstream.session };
  const answer = await fetch("https://example.com/mcp", { method: "POST", headers, body });
  const session = answer.headers.get("Mcp-Session-Id");
  if (session) upstream.session = session;
  return { content: [{ type: "text", text: await answer.text() }] };
});
"#,
    );
}

#[test]
fn safe_page_with_one_person_before_it() {
    safe(
        &[],
        r#"
const state = { draft: "" };
const box = document.querySelector("input");
box.addEventListener("blur", async () => {
  const draft = state.draft;
  await fetch("/save", { method: "POST", body: draft });
  state.draft = draft + box.value;
});
"#,
    );
}

/// Who has only looked before has no window of its own; who hands on what it read has one.
#[test]
fn dangerous_once_where_the_caller_has_looked_before() {
    let looked = r#"  if (before.full) throw new Error("full");
  await count(word, [word]);"#;
    let handed_on = "  await count(word, [...before.seen, word]);";
    for (calls, times) in [(looked, 1), (handed_on, 2)] {
        let found = scan(&counting(calls), "regular");
        assert_eq!(found, ["file-read-modify-write"].repeat(times), "{calls}");
    }
}

fn counting(calls: &str) -> String {
    let source = r#"
import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { readFile, writeFile } from "node:fs/promises";

async function load() {
  return JSON.parse(await readFile("/srv/words.json", "utf8"));
}
async function count(word: string, seen: string[]): Promise<void> {
  const words = await load();
  words[word] = seen.concat(words[word] ?? []);
  await writeFile("/srv/words.json", JSON.stringify(words));
}

const server = new McpServer({ name: "words", version: "1.0.0" });
server.tool("count", { word: z.string() }, async ({ word }) => {
  const before = await load();
CALLS
  return { content: [] };
});
"#;
    source.replace("CALLS", calls)
}
