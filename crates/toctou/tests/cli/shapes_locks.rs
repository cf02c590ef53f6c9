//! Where a lock is taken and given back: in loops, in branches, in helpers.

use crate::common::shapes::{dangerous, safe};

/// Counts words; `body` has `word` in hand.
fn counting(body: &str) -> String {
    format!(
        r#"import {{ McpServer }} from "@modelcontextprotocol/sdk/server/mcp.js";
import {{ Mutex }} from "async-mutex";
import {{ known }} from "./words.js";
const counts = new Map<string, number>();
const mutex = new Mutex();
const server = new McpServer({{ name: "words", version: "1.0.0" }});
server.registerTool("add", {{}}, async ({{ words }}: {{ words: string[] }}) => {{
{body}
  return {{ content: [] }};
}});
"#
    )
}

const ROUND: &str = r#"  for (const word of words) {
    const release = await mutex.acquire();
    try {
      const count = counts.get(word) ?? 0;
      if (await known(word)) counts.set(word, count + 1);
    } finally {
      release();
    }
  }"#;

/// The lock is given back between two rounds, and everything is read again.
#[test]
fn safe_lock_of_each_round() {
    safe(&[], &counting(ROUND));
}

#[test]
fn dangerous_read_before_the_lock_of_a_round() {
    let read = "      const count = counts.get(word) ?? 0;\n";
    let early = ROUND
        .replace(read, "")
        .replace("    const release", &format!("{read}    const release"));
    dangerous(
        "regular",
        &["lock-scope-too-narrow"],
        &[],
        &counting(&early),
    );
}

/// A file that is read, changed and written inside of `locked`; `head` makes that.
fn filing(head: &str) -> String {
    format!(
        r#"import {{ McpServer }} from "@modelcontextprotocol/sdk/server/mcp.js";
import {{ AsyncLocalStorage }} from "node:async_hooks";
import {{ readFile, writeFile }} from "node:fs/promises";
import lockfile from "proper-lockfile";
{head}
const server = new McpServer({{ name: "notes", version: "1.0.0" }});
server.registerTool("add", {{}}, async ({{ note }}: {{ note: string }}) => {{
  await locked(async () => {{
    const notes = JSON.parse(await readFile("notes.json", "utf8"));
    notes.push(note);
    await writeFile("notes.json", JSON.stringify(notes));
  }});
  return {{ content: [] }};
}});
"#
    )
}

const REENTRANT: &str = r#"const mine = new AsyncLocalStorage<Set<string>>();
async function locked<T>(work: () => Promise<T>): Promise<T> {
  const has = mine.getStore();
  if (has?.has("notes")) return work();
  const release = await lockfile.lock("notes.json");
  const next = new Set(has ?? []);
  next.add("notes");
  return mine.run(next, async () => {
    try {
      return await work();
    } finally {
      await release();
    }
  });
}"#;

/// Who has the lock already is told by what only the lock's holder sets.
#[test]
fn safe_lock_that_its_holder_may_take_again() {
    safe(&[], &filing(REENTRANT));
    let plain = REENTRANT.replace(r#"has?.has("notes")"#, "has");
    safe(&[], &filing(&plain));
}

#[test]
fn dangerous_lock_that_others_may_pass() {
    let names = ["file-read-modify-write"];
    // The wrong way round.
    let wrong = REENTRANT.replace(r#"has?.has("notes")"#, r#"!has?.has("notes")"#);
    dangerous("regular", &names, &[], &filing(&wrong));
    // Set without the lock, too.
    let set = format!(
        "{REENTRANT}\nexport const quick = (work: () => Promise<void>) => mine.run(new Set([\"notes\"]), work);"
    );
    dangerous("regular", &names, &[], &filing(&set));
    // That somebody has the lock does not say who.
    let shared = r#"const held = new Set<string>();
async function locked<T>(work: () => Promise<T>): Promise<T> {
  if (held.has("notes")) return work();
  const release = await lockfile.lock("notes.json");
  held.add("notes");
  try {
    return await work();
  } finally {
    held.delete("notes");
    await release();
  }
}"#;
    dangerous(
        "regular",
        &names,
        &["lock-scope-too-narrow"],
        &filing(shared),
    );
}

const DEGRADED: &str = r#"async function locked<T>(work: () => Promise<T>): Promise<T> {
  let release: (() => Promise<void>) | null = null;
  try {
    release = await lockfile.lock("notes.json", { retries: 10 });
  } catch {
    console.warn("no lock, going on");
  }
  try {
    return await work();
  } finally {
    if (release) await release();
  }
}"#;

/// Who has waited for the lock in vain goes on: that is meant.
#[test]
fn pedantic_lock_that_is_gone_without() {
    let source = filing(DEGRADED);
    safe(&[], &source);
    dangerous("pedantic", &["file-read-modify-write"], &[], &source);
}

#[test]
fn dangerous_lock_that_is_hardly_held() {
    // Nobody waits: whoever comes second goes on at once.
    let impatient = DEGRADED.replace(", { retries: 10 }", "");
    dangerous(
        "regular",
        &["file-read-modify-write"],
        &[],
        &filing(&impatient),
    );
    // Given back before the work.
    let early = DEGRADED.replace(
        "  try {\n    return await work();",
        "  if (release) await release();\n  try {\n    return await work();",
    );
    dangerous("regular", &["file-read-modify-write"], &[], &filing(&early));
}

/// A number that is raised in what `limit` lets through.
fn limited(import: &str, shared: &str, own: &str) -> String {
    format!(
        r#"import {{ McpServer }} from "@modelcontextprotocol/sdk/server/mcp.js";
{import}
import {{ known }} from "./words.js";
{shared}
let count = 0;
const server = new McpServer({{ name: "words", version: "1.0.0" }});
server.registerTool("add", {{}}, async ({{ word }}: {{ word: string }}) => {{
  {own}
  await limit(async () => {{
    const before = count;
    if (await known(word)) count = before + 1;
  }});
  return {{ content: [] }};
}});
"#
    )
}

const P_LIMIT: &str = r#"import pLimit from "p-limit";"#;

#[test]
fn safe_limit_of_one() {
    safe(&[], &limited(P_LIMIT, "const limit = pLimit(1);", ""));
    let throat = r#"import throat from "throat";"#;
    safe(&[], &limited(throat, "const limit = throat(1);", ""));
}

#[test]
fn dangerous_limit_of_more_or_of_each_call() {
    let lost = |source: String| dangerous("regular", &["session-lost-update"], &[], &source);
    lost(limited(P_LIMIT, "const limit = pLimit(2);", ""));
    lost(limited(P_LIMIT, "", "const limit = pLimit(1);"));
}

/// A file that a class creates exclusively, and removes.
fn created(class: &str) -> String {
    format!(
        r#"import {{ McpServer }} from "@modelcontextprotocol/sdk/server/mcp.js";
import {{ open, readFile, unlink, writeFile }} from "node:fs/promises";
class {class} {{
  private handle: any = null;
  constructor(private readonly path: string) {{}}
  async begin() {{
    for (let attempt = 0; attempt < 3; attempt += 1) {{
      try {{
        this.handle = await open(this.path, "wx");
        return;
      }} catch (error: any) {{
        if (error.code !== "EEXIST") throw error;
      }}
    }}
    throw new Error("somebody else is at it");
  }}
  async end() {{
    await this.handle.close();
    await unlink(this.path);
  }}
}}
const server = new McpServer({{ name: "notes", version: "1.0.0" }});
server.registerTool("add", {{}}, async ({{ note }}: {{ note: string }}) => {{
  const mine = new {class}("notes.busy");
  await mine.begin();
  try {{
    const notes = JSON.parse(await readFile("notes.json", "utf8"));
    notes.push(note);
    await writeFile("notes.json", JSON.stringify(notes));
  }} finally {{
    await mine.end();
  }}
  return {{ content: [] }};
}});
"#
    )
}

/// What its file is called does not matter.
#[test]
fn safe_file_of_a_class_that_is_called_a_lock() {
    safe(&[], &created("NotesLock"));
    safe(&[], &created("LockFile"));
}

#[test]
fn dangerous_file_of_a_class_that_is_not() {
    let rmw = &["file-read-modify-write"];
    dangerous("regular", rmw, &[], &created("NotesBlock"));
    dangerous("regular", rmw, &[], &created("NotesMarker"));
    dangerous("regular", rmw, &[], &created("LockedNotes"));
}
