//! The shapes that every reader of this field knows, ten dangerous and nineteen
//! safe, in their plainest form: a few lines, one file, often without a server
//! round them. A dangerous one must be reported under one of its names, a safe
//! one must stay quiet, except for what is said to be true of it as well.

use crate::common::shapes::{dangerous, quiet_for, safe};

// ---- dangerous

#[test]
fn dangerous_file_looked_for_then_written() {
    dangerous(
        "regular",
        &["file-check-then-act"],
        &[],
        r#"
import { promises as disk } from "node:fs";
import * as paths from "node:path";

const ARCHIVE = "/srv/archive";

async function storeMinutes(meeting: string, minutes: string): Promise<string> {
  const target = paths.join(ARCHIVE, meeting + ".txt");
  const taken = await disk.stat(target).then(() => true, () => false);
  if (taken) {
    throw new Error("minutes of " + meeting + " are there already");
  }
  await disk.writeFile(target, minutes);
  return target;
}
"#,
    );
}

#[test]
fn dangerous_file_read_changed_written() {
    dangerous(
        "regular",
        &["file-read-modify-write"],
        &[],
        r#"
import { promises as disk } from "node:fs";

async function tally(voteFile: string, choice: string) {
  const votes = JSON.parse(await disk.readFile(voteFile, "utf-8"));
  votes[choice] = (votes[choice] || 0) + 1;
  await disk.writeFile(voteFile, JSON.stringify(votes, null, 2));
}
"#,
    );
}

#[test]
fn dangerous_balance_read_compared_written_back() {
    dangerous(
        "regular",
        &["db-check-then-write", "db-lost-update"],
        &[],
        r#"
import { Pool } from "pg";

const db = new Pool({ max: 5 });

async function takeStock(article: number, wanted: number): Promise<boolean> {
  const found = await db.query("SELECT in_stock FROM articles WHERE article_no = $1", [article]);
  const inStock = found.rows[0].in_stock;
  if (inStock < wanted) return false;
  await db.query("UPDATE articles SET in_stock = $1 WHERE article_no = $2", [inStock - wanted, article]);
  return true;
}
"#,
    );
}

#[test]
fn dangerous_cached_balance() {
    dangerous(
        "regular",
        &[
            "memory-check-then-act",
            "session-lost-update",
            "db-check-then-write",
        ],
        &["db-lost-update"],
        r#"
import { Pool } from "pg";

const db = new Pool();
const prepaid = new Map<string, number>();

async function minutesOf(team: string): Promise<number> {
  const known = prepaid.get(team);
  if (known !== undefined) return known;
  const { rows } = await db.query("SELECT minutes FROM teams WHERE name = $1", [team]);
  prepaid.set(team, rows[0].minutes);
  return rows[0].minutes;
}

export async function talk(team: string, seconds: number) {
  const left = await minutesOf(team);
  if (left < seconds) throw new Error("nothing left");
  prepaid.set(team, left - seconds);
  await db.query("UPDATE teams SET minutes = $2 WHERE name = $1", [team, left - seconds]);
}
"#,
    );
}

#[test]
fn dangerous_blind_overwrite() {
    let source = r#"
import { Pool } from "pg";

const db = new Pool();

async function readPolicy(region: string) {
  return (await db.query("SELECT wording FROM policies WHERE region = $1", [region])).rows[0];
}

async function replacePolicy(region: string, wording: string) {
  await db.query("UPDATE policies SET wording = $2 WHERE region = $1", [region, wording]);
}
"#;
    quiet_for(&["regular"], source);
    dangerous("pedantic", &["unversioned-update"], &[], source);
}

#[test]
fn dangerous_checked_then_incremented() {
    dangerous(
        "regular",
        &["db-check-then-write"],
        &["multi-step-without-transaction"],
        r#"
import { MongoClient } from "mongodb";

const wallets = new MongoClient("mongodb://db").db("game").collection("wallets");

export async function give(args: { giver: string; taker: string; coins: number }) {
  const wallet = await wallets.findOne({ player: args.giver });
  if (!wallet || wallet.coins < args.coins) {
    return { ok: false, reason: "too few coins" };
  }
  await wallets.updateOne({ player: args.giver }, { $inc: { coins: -args.coins } });
  await wallets.updateOne({ player: args.taker }, { $inc: { coins: args.coins } });
  return { ok: true };
}
"#,
    );
}

#[test]
fn dangerous_access_fails_then_written() {
    dangerous(
        "regular",
        &["file-check-then-act"],
        &[],
        r#"
import { access, writeFile } from "node:fs/promises";

export async function openTicket(input: { ticket: string; text: string }) {
  const file = `./tickets/${input.ticket}.md`;
  try {
    await access(file);
    return { error: "there is such a ticket" };
  } catch {
    await writeFile(file, input.text, "utf8");
    return { file };
  }
}
"#,
    );
}

#[test]
fn dangerous_owner_checked_then_deleted() {
    dangerous(
        "regular",
        &["auth-check-then-act"],
        &[],
        r#"
import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { Pool } from "pg";
import { z } from "zod";

const db = new Pool();
const server = new McpServer({ name: "pictures", version: "2.1.0" });

server.tool("remove_picture", { picture: z.string() }, async ({ picture }, extra) => {
  const result = await db.query("SELECT owner_id FROM pictures WHERE id = $1", [picture]);
  const row = result.rows[0];
  if (!row || row.owner_id !== extra.authInfo?.clientId) {
    return { content: [{ type: "text", text: "not allowed" }], isError: true };
  }
  await db.query("DELETE FROM pictures WHERE id = $1", [picture]);
  return { content: [{ type: "text", text: "removed" }] };
});
"#,
    );
}

const SYNC_COUNTER: &str = r#"
import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { z } from "zod";

const server = new McpServer({ name: "meter", version: "0.3.0" });
const pagesPrinted = new Map<string, number>();

server.tool("count_pages", { pages: z.number() }, async ({ pages }, extra) => {
  const who = extra.sessionId ?? "anybody";
  const before = pagesPrinted.get(who) ?? 0;
  pagesPrinted.set(who, before + pages);
  return { content: [{ type: "text", text: String(before + pages) }] };
});
"#;

#[test]
fn dangerous_counter_atomic_by_accident() {
    // No `await` between read and write: atomic in one process, for now.
    quiet_for(&["regular", "pedantic"], SYNC_COUNTER);
    dangerous("auditor", &["session-lost-update"], &[], SYNC_COUNTER);
}

#[test]
fn dangerous_limit_of_one_process() {
    let source = r#"
const attempts = new Map<string, { since: number; count: number }>();
const MAX_REQUESTS = 20;
const WINDOW = 60_000;

export function checkRateLimit(address: string): boolean {
  const now = Date.now();
  const entry = attempts.get(address);
  if (!entry || now - entry.since > WINDOW) {
    attempts.set(address, { since: now, count: 1 });
    return true;
  }
  if (entry.count >= MAX_REQUESTS) return false;
  entry.count++;
  return true;
}
"#;
    quiet_for(&["regular"], source);
    dangerous("pedantic", &["process-local-limit"], &[], source);
}

// ---- safe

#[test]
fn safe_file_created_exclusively() {
    safe(
        &[],
        r#"
import { constants, promises as disk } from "node:fs";
import * as paths from "node:path";

async function storeMinutes(meeting: string, minutes: string) {
  const target = paths.join("/srv/archive", meeting + ".txt");
  const handle = await disk.open(target, constants.O_CREAT | constants.O_EXCL | constants.O_WRONLY, 0o600);
  try {
    await handle.writeFile(minutes);
  } finally {
    await handle.close();
  }
}
"#,
    );
}

#[test]
fn safe_file_replaced_by_rename() {
    safe(
        &[],
        r#"
import { randomUUID } from "node:crypto";
import { rename, unlink, writeFile } from "node:fs/promises";

async function publish(page: string, html: string) {
  const draft = page + "." + randomUUID() + ".draft";
  try {
    await writeFile(draft, html, { flag: "wx" });
    await rename(draft, page);
  } catch (problem) {
    await unlink(draft).catch(() => {});
    throw problem;
  }
}
"#,
    );
}

#[test]
fn safe_update_with_condition() {
    safe(
        &[],
        r#"
import { Pool } from "pg";

const db = new Pool();

async function takeStock(article: number, wanted: number): Promise<boolean> {
  const done = await db.query(
    "UPDATE articles SET in_stock = in_stock - $1 WHERE article_no = $2 AND in_stock >= $1 RETURNING in_stock",
    [wanted, article],
  );
  return done.rowCount === 1;
}
"#,
    );
}

#[test]
fn safe_row_locked() {
    safe(
        &[],
        r#"
import { Pool } from "pg";

const db = new Pool();

async function takeStock(article: number, wanted: number) {
  const session = await db.connect();
  try {
    await session.query("BEGIN");
    const found = await session.query("SELECT in_stock FROM articles WHERE article_no = $1 FOR UPDATE", [article]);
    if (found.rows[0].in_stock < wanted) {
      throw new Error("sold out");
    }
    await session.query("UPDATE articles SET in_stock = in_stock - $1 WHERE article_no = $2", [wanted, article]);
    await session.query("COMMIT");
  } catch (problem) {
    await session.query("ROLLBACK");
    throw problem;
  } finally {
    session.release();
  }
}
"#,
    );
}

const KEYED_MUTEX: &str = r#"
class KeyedMutex {
  private readonly tails = new Map<string, Promise<void>>();

  async hold<T>(key: string, work: () => Promise<T>): Promise<T> {
    const before = this.tails.get(key) ?? Promise.resolve();
    let open!: () => void;
    const gate = new Promise<void>((resolve) => {
      open = resolve;
    });
    const tail = before.then(() => gate);
    this.tails.set(key, tail);
    await before;
    try {
      return await work();
    } finally {
      open();
      if (this.tails.get(key) === tail) this.tails.delete(key);
    }
  }
}
"#;

#[test]
fn safe_hand_made_mutex() {
    safe(&[], KEYED_MUTEX);
}

#[test]
fn safe_file_changed_under_a_mutex() {
    safe(
        &["process-lock-on-shared-resource"],
        &format!(
            r#"import {{ promises as disk }} from "node:fs";
{KEYED_MUTEX}
const files = new KeyedMutex();

export async function tally(voteFile: string, choice: string) {{
  await files.hold(voteFile, async () => {{
    const votes = JSON.parse(await disk.readFile(voteFile, "utf-8"));
    votes[choice] = (votes[choice] || 0) + 1;
    await disk.writeFile(voteFile, JSON.stringify(votes));
  }});
}}
"#
        ),
    );
}

#[test]
fn safe_helper_that_holds_a_lock() {
    safe(
        &[],
        r#"
const busy = new Map<string, Promise<unknown>>();

export async function serially<T>(name: string, work: () => Promise<T>): Promise<T> {
  const previous = busy.get(name) ?? Promise.resolve();
  const mine = previous.catch(() => undefined).then(() => work());
  const settled = mine.catch(() => undefined);
  busy.set(name, settled);
  try {
    return await mine;
  } finally {
    if (busy.get(name) === settled) busy.delete(name);
  }
}
"#,
    );
}

#[test]
fn safe_version_in_the_condition() {
    safe(
        &[],
        r#"
import { Pool } from "pg";

const db = new Pool();

async function rename(room: number, title: string) {
  const found = await db.query("SELECT title, version FROM rooms WHERE id = $1", [room]);
  const { version } = found.rows[0];
  const done = await db.query(
    "UPDATE rooms SET title = $1, version = version + 1 WHERE id = $2 AND version = $3",
    [title, room, version],
  );
  if (done.rowCount === 0) throw new Error("somebody else was faster");
}
"#,
    );
}

#[test]
fn safe_version_and_bounded_retry() {
    safe(
        &[],
        r#"
import { Pool } from "pg";

const db = new Pool();
const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

async function addSeats(hall: number, seats: number) {
  for (let attempt = 1; attempt <= 5; attempt++) {
    const found = await db.query("SELECT seats, version FROM halls WHERE id = $1", [hall]);
    const row = found.rows[0];
    const done = await db.query(
      "UPDATE halls SET seats = $1, version = version + 1 WHERE id = $2 AND version = $3",
      [row.seats + seats, hall, row.version],
    );
    if (done.rowCount === 1) return;
    await pause(2 ** attempt * 10 + Math.random() * 20);
  }
  throw new Error("too much traffic");
}
"#,
    );
}

#[test]
fn safe_cached_balance_under_a_lock() {
    safe(
        &["process-lock-on-shared-resource"],
        &format!(
            r#"import {{ Pool }} from "pg";
{KEYED_MUTEX}
const db = new Pool();
const prepaid = new Map<string, number>();
const teams = new KeyedMutex();

export async function talk(team: string, seconds: number) {{
  return teams.hold(team, async () => {{
    let left = prepaid.get(team);
    if (left === undefined) {{
      const {{ rows }} = await db.query("SELECT minutes FROM teams WHERE name = $1", [team]);
      left = rows[0].minutes as number;
    }}
    if (left < seconds) throw new Error("nothing left");
    const done = await db.query("UPDATE teams SET minutes = minutes - $2 WHERE name = $1 AND minutes >= $2", [team, seconds]);
    if (done.rowCount === 0) throw new Error("nothing left");
    prepaid.set(team, left - seconds);
  }});
}}
"#
        ),
    );
}

#[test]
fn safe_find_and_update_in_one() {
    safe(
        &[
            "multi-step-without-transaction",
            "retry-without-bound-or-jitter",
        ],
        r#"
import { MongoClient } from "mongodb";

const wallets = new MongoClient("mongodb://db").db("game").collection("wallets");

export async function give(args: { giver: string; taker: string; coins: number }) {
  const paid = await wallets.findOneAndUpdate(
    { player: args.giver, coins: { $gte: args.coins } },
    { $inc: { coins: -args.coins } },
  );
  if (!paid) return { ok: false };
  await wallets.updateOne({ player: args.taker }, { $inc: { coins: args.coins } });
  return { ok: true };
}
"#,
    );
}

#[test]
fn safe_version_in_a_document() {
    safe(
        &["retry-without-bound-or-jitter"],
        r#"
import { MongoClient } from "mongodb";

const wallets = new MongoClient("mongodb://db").db("game").collection("wallets");

export async function buy(args: { player: string; price: number }) {
  for (let attempt = 0; attempt < 3; attempt++) {
    const wallet = await wallets.findOne({ player: args.player });
    if (!wallet || wallet.coins < args.price) return { ok: false };
    const done = await wallets.updateOne(
      { player: args.player, revision: wallet.revision },
      { $set: { coins: wallet.coins - args.price, revision: wallet.revision + 1 } },
    );
    if (done.modifiedCount === 1) return { ok: true };
  }
  throw new Error("gave up");
}
"#,
    );
}

#[test]
fn safe_under_a_lock_of_all_machines() {
    safe(
        &["lease-expires-in-use"],
        r#"
import Redis from "ioredis";
import { MongoClient } from "mongodb";
import Redlock from "redlock";

const redlock = new Redlock([new Redis()]);
const parcels = new MongoClient("mongodb://db").db("post").collection("parcels");

export async function dispatch(parcel: string) {
  const lock = await redlock.acquire([`parcel:${parcel}`], 10_000);
  try {
    const found = await parcels.findOne({ number: parcel });
    if (!found || found.state !== "packed") throw new Error("not packed");
    await parcels.updateOne({ number: parcel }, { $set: { state: "sent" } });
  } finally {
    await lock.release();
  }
}
"#,
    );
}

#[test]
fn safe_flag_wx() {
    safe(
        &["leak-on-partial-init"],
        r#"
import { open } from "node:fs/promises";

export async function openTicket(input: { ticket: string; text: string }) {
  let handle;
  try {
    handle = await open(`./tickets/${input.ticket}.md`, "wx");
  } catch (problem: any) {
    if (problem.code === "EEXIST") return { error: "there is such a ticket" };
    throw problem;
  }
  await handle.writeFile(input.text);
  await handle.close();
  return { ok: true };
}
"#,
    );
}

#[test]
fn safe_owner_in_the_condition() {
    safe(
        &[],
        r#"
import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { Pool } from "pg";
import { z } from "zod";

const db = new Pool();
const server = new McpServer({ name: "pictures", version: "2.1.0" });

server.tool("remove_picture", { picture: z.string() }, async ({ picture }, extra) => {
  const gone = await db.query("DELETE FROM pictures WHERE id = $1 AND owner_id = $2", [
    picture,
    extra.authInfo?.clientId,
  ]);
  if (gone.rowCount === 0) {
    return { content: [{ type: "text", text: "no such picture of yours" }], isError: true };
  }
  return { content: [{ type: "text", text: "removed" }] };
});
"#,
    );
}

#[test]
fn safe_counter_in_redis() {
    safe(
        &[],
        r#"
import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { createClient } from "redis";
import { z } from "zod";

const cache = createClient();
const server = new McpServer({ name: "meter", version: "0.3.0" });

server.tool("count_pages", { pages: z.number() }, async ({ pages }, extra) => {
  const total = await cache.incrBy(`pages:${extra.sessionId}`, pages);
  return { content: [{ type: "text", text: String(total) }] };
});
"#,
    );
}

#[test]
fn safe_counter_under_a_mutex() {
    safe(
        &[],
        r#"
import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { Mutex } from "async-mutex";
import { z } from "zod";
import { audit } from "./audit.js";

const server = new McpServer({ name: "meter", version: "0.3.0" });
const pagesPrinted = new Map<string, number>();
const counting = new Mutex();

server.tool("count_pages", { pages: z.number() }, async ({ pages }, extra) => {
  const release = await counting.acquire();
  try {
    const who = extra.sessionId ?? "anybody";
    const before = pagesPrinted.get(who) ?? 0;
    await audit(who, pages);
    pagesPrinted.set(who, before + pages);
    return { content: [{ type: "text", text: String(before + pages) }] };
  } finally {
    release();
  }
});
"#,
    );
}

#[test]
fn safe_limit_in_a_script() {
    safe(
        &[],
        r#"
import type { Redis } from "ioredis";

const SCRIPT = `
local used = redis.call("INCR", KEYS[1])
if used == 1 then redis.call("PEXPIRE", KEYS[1], ARGV[1]) end
return used
`;

export async function allowed(store: Redis, caller: string, limit: number): Promise<boolean> {
  const used = (await store.eval(SCRIPT, 1, `limit:${caller}`, 60_000)) as number;
  return used <= limit;
}
"#,
    );
}

#[test]
fn safe_semaphore_per_caller() {
    safe(
        &["broken-lock"],
        r#"
import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { Semaphore } from "async-mutex";
import { z } from "zod";
import { draw } from "./draw.js";

const server = new McpServer({ name: "art", version: "1.0.0" });
const atWork = new Map<string, Semaphore>();

function limitOf(caller: string): Semaphore {
  const known = atWork.get(caller);
  if (known) return known;
  const fresh = new Semaphore(4);
  atWork.set(caller, fresh);
  return fresh;
}

server.tool("draw", { subject: z.string() }, async ({ subject }, extra) => {
  const text = await limitOf(extra.sessionId ?? "").runExclusive(() => draw(subject));
  return { content: [{ type: "text", text }] };
});
"#,
    );
}

/// What is stored was fetched, never read from the map: at worst it is fetched
/// twice. That both meet in one variable does not make it a lost update.
#[test]
fn safe_cache_filled_through_one_variable() {
    safe(
        &[],
        r#"import { fetchPage } from "./web.js";
const pages = new Map<string, string>();

export async function page(address: string): Promise<string> {
  let found = pages.get(address);
  if (found === undefined) {
    found = await fetchPage(address);
    pages.set(address, found);
  }
  return found;
}
"#,
    );
}

#[test]
fn safe_memoised_promise_whose_work_checks_for_itself() {
    safe(
        &[],
        r#"import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { load, connect } from "./model.js";
class Embedder {
  private model: any = null;
  private ready: Promise<void> | null = null;
  private table: any = null;
  private opening: Promise<void> | null = null;
  private calls: number[] = [];
  async initialize() {
    if (this.model) return;
    this.calls.push(1);
    this.model = await load("small");
    this.model.tokenizer = clamp(this.model.tokenizer);
  }
  async ensure() {
    if (this.model) return;
    if (this.ready !== null) {
      await this.ready;
      return;
    }
    this.ready = this.initialize().catch((error) => {
      this.ready = null;
      throw error;
    });
    await this.ready;
  }
  async open() {
    if (this.opening !== null) return this.opening;
    if (this.table) return;
    this.opening = (async () => {
      this.calls.push(2);
      this.table = await connect("vectors");
    })();
    try {
      await this.opening;
    } finally {
      this.opening = null;
    }
  }
}
function clamp(tokenizer: any) {
  return (text: string) => tokenizer(text.slice(0, 100));
}
const embedder = new Embedder();
const server = new McpServer({ name: "embed", version: "1.0.0" });
server.registerTool("embed", {}, async () => {
  await embedder.ensure();
  await embedder.open();
  return { content: [] };
});
"#,
    );
}
