//! Files that the function that writes reads for itself, whoever has looked before; locks that are
//! sought until a variable says that they were had; and failures that are handed on.

use crate::common::shapes::{dangerous, safe, scan};
use crate::shapes_doubts::{for_everybody, for_the_pedantic, tool};

fn server(rest: &str) -> String {
    format!(
        r#"import {{ McpServer }} from "@modelcontextprotocol/sdk/server/mcp.js";
import {{ open, readFile, unlink, writeFile }} from "node:fs/promises";
import lockfile from "proper-lockfile";
const server = new McpServer({{ name: "anew", version: "1.0.0" }});
const sleep = (ms: number) => new Promise((done) => setTimeout(done, ms));
{rest}"#
    )
}

/// A tool that looks for a note, and then has it changed under a lock.
fn looked_up(change: &str) -> String {
    server(&format!(
        r#"class Notes {{
  private dir = "notes";
  async get(id: string) {{
    try {{
      return JSON.parse(await readFile(`${{this.dir}}/${{id}}.json`, "utf8"));
    }} catch {{
      return null;
    }}
  }}
  async update(id: string, title: string, old: any) {{
    const file = `${{this.dir}}/${{id}}.json`;
    const release = await lockfile.lock(file);
    try {{
      const note = {change};
      await writeFile(file, JSON.stringify({{ ...note, title }}));
    }} finally {{
      await release();
    }}
  }}
}}
const notes = new Notes();
server.registerTool("rename", {{}}, async ({{ id, title }}: any) => {{
  const note = await notes.get(id);
  if (!note) return {{ content: [] }};
  await notes.update(id, title, {given});
  return {{ content: [] }};
}});
"#,
        given = if change == "old" { "note" } else { "title" },
    ))
}

#[test]
fn safe_file_that_is_read_anew_under_the_lock() {
    safe(
        &[],
        &looked_up("JSON.parse(await readFile(file, \"utf8\"))"),
    );
}

#[test]
fn dangerous_file_that_was_read_before_the_lock() {
    dangerous(
        "regular",
        &["lock-scope-too-narrow"],
        &[],
        &looked_up("old"),
    );
}

/// Replaces names in a file by what `patch` makes of them; `given` are the names.
fn renamed(given: &str, patch: &str) -> String {
    server(&format!(
        r#"async function load(file: string) {{
  return JSON.parse(await readFile(file, "utf8"));
}}
async function patch(file: string, names: string[], title: string) {{
  {patch}
}}
server.registerTool("rename", {{}}, async ({{ file, title }}: any) => {{
  const settings = await load(file);
  await patch(file, {given}, title);
  return {{ content: [] }};
}});
"#
    ))
}

/// The callee's own window is the one: of what its caller has read, it gets names.
#[test]
fn one_window_where_the_callee_reads_the_file_for_itself() {
    let anew = "let text = await readFile(file, \"utf8\");\n  for (const name of names) text = text.replace(name, title);\n  await writeFile(file, text);";
    let found = |given: &str, patch: &str| scan(&renamed(given, patch), "regular").len();
    assert_eq!(found("settings.names", anew), 1);
    let old = "await writeFile(file, JSON.stringify({ names, title }));";
    assert_eq!(found("settings.names", old), 1);
    // FP: a list that the caller has made from what it read is taken for a part of the file, though
    // it is only looked for here. Where it is put into the file, it is one.
    let made = "settings.names.map((name: any) => name.text)";
    assert_eq!(found(made, anew), 2);
}

/// Takes the lock file and changes what it is for; `taken` is what the loop goes by.
fn sought(taken: &str) -> String {
    server(&format!(
        r#"async function add(text: string) {{
  const lock = "list.json.lock";
  let got = false;
  while (!got) {{
    try {{
      {taken}
    }} catch (error: any) {{
      if (error.code !== "EEXIST") throw error;
      await sleep(50 + Math.random() * 50);
    }}
  }}
  try {{
    const list = JSON.parse(await readFile("list.json", "utf8"));
    list.push(text);
    await writeFile("list.json", JSON.stringify(list));
  }} finally {{
    await unlink(lock);
  }}
}}
server.registerTool("add", {{}}, async ({{ text }}: any) => {{
  await add(text);
  return {{ content: [] }};
}});
"#
    ))
}

#[test]
fn safe_lock_file_that_is_sought_until_it_is_had() {
    let taken = "await writeFile(lock, \"\", { flag: \"wx\" });\n      got = true;";
    safe(&["retry-without-bound-or-jitter"], &sought(taken));
}

/// Who says that it was had before it was sought goes on without.
#[test]
fn dangerous_lock_file_that_is_given_up() {
    let taken = "got = true;\n      await writeFile(lock, \"\", { flag: \"wx\" });";
    dangerous(
        "regular",
        &["file-read-modify-write"],
        &["retry-without-bound-or-jitter"],
        &sought(taken),
    );
}

/// A queue whose members tell their callers how it went.
fn queue(failed: &str) -> String {
    server(&format!(
        r#"class Queue {{
  private tail: Promise<void> = Promise.resolve();
  run<T>(task: () => Promise<T>): Promise<T> {{
    return new Promise<T>((resolve, reject) => {{
      this.tail = this.tail.then(async () => {{
        {failed}
      }});
    }});
  }}
}}
const queue = new Queue();
const seen: Record<string, number> = {{}};
server.registerTool("count", {{}}, async ({{ id }}: any) =>
  queue.run(async () => {{
    const count = seen[id] ?? 0;
    await fetch("https://example.org/" + id);
    seen[id] = count + 1;
    return {{ content: [] }};
  }}),
);
"#
    ))
}

#[test]
fn safe_chain_whose_members_hand_their_failures_on() {
    safe(
        &[],
        &queue("try { resolve(await task()); } catch (error) { reject(error); }"),
    );
}

#[test]
fn dangerous_chain_whose_members_fail() {
    dangerous(
        "regular",
        &["lock-not-released-on-error"],
        &[],
        &queue("resolve(await task());"),
    );
}

/// A record that is written anew, but for one field that is kept.
fn kept(field: &str) -> String {
    tool(
        "",
        &format!(
            "  const file = `records/${{id}}.json`;\n  const old = JSON.parse(await readFile(file, \"utf8\"));\n  await writeFile(file, JSON.stringify({{ id, text, {field}: old.{field} }}));"
        ),
    )
}

#[test]
fn a_record_of_which_only_its_age_is_kept() {
    for_the_pedantic("file-read-modify-write", &kept("createdAt"));
    for_everybody("file-read-modify-write", &kept("owners"));
}
