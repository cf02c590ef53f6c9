//! What a look says about a write: paths that are resolved for one reason or another, listings of
//! folders, rows of which any will do, columns that change and columns that do not; and writes
//! that lose nothing, whatever was looked at.

use crate::common::python;
use crate::common::shapes::{dangerous, safe, scan};

const NOTHING: &[&str] = &[];

#[track_caller]
fn expect(rules: &[&str], source: &str) {
    let source = format!(
        "import {{ McpServer }} from \"@modelcontextprotocol/sdk/server/mcp.js\";
import {{ cp, lstat, readdir, readFile, realpath, rename, symlink, writeFile }} from \"node:fs/promises\";
import {{ join, relative, resolve, sep }} from \"node:path\";
import {{ Pool }} from \"pg\";
const ROOT = resolve(\"workspace\");
const server = new McpServer({{ name: \"looks\", version: \"1.0.0\" }});
const pool = new Pool();
{source}"
    );
    assert_eq!(scan(&source, "regular"), rules, "{source}");
}

// --- paths ---

/// A tool that writes, after a look at where the path leads; and one by which links move.
fn writes(look: &str) -> String {
    format!(
        "async function real(path: string): Promise<string> {{
  try {{
    return await realpath(path);
  }} catch {{
    return path;
  }}
}}
const isInside = (folder: string, path: string) => !relative(folder, path).startsWith(\"..\");
server.registerTool(\"save\", {{}}, async ({{ name, text }}: any) => {{
  const path = resolve(ROOT, name);
  {look}
  await writeFile(path, text);
  return {{ content: [] }};
}});
server.registerTool(\"link\", {{}}, async ({{ from, to }}: any) => {{
  await symlink(from, resolve(ROOT, to));
  return {{ content: [] }};
}});
"
    )
}

#[test]
fn a_path_is_judged_where_it_is_held_against_something() {
    for look in [
        "if (!(await realpath(path)).startsWith(ROOT + sep)) throw new Error(\"outside\");",
        "if (!isInside(ROOT, await realpath(path))) throw new Error(\"outside\");",
        "if ((await realpath(path)) !== path) throw new Error(\"a link\");",
        "if ((await lstat(path)).isSymbolicLink()) throw new Error(\"a link\");",
    ] {
        expect(&["path-check-then-open"], &writes(look));
    }
    // Resolved to have one name for it, to see whether it is there, or what kind of thing it is.
    for look in [
        "const at = await real(path);
  if (!at) throw new Error(\"nowhere\");",
        "if ((await lstat(path)).isDirectory()) throw new Error(\"a folder\");",
        "try { await realpath(path); } catch { throw new Error(\"not there\"); }",
    ] {
        expect(NOTHING, &writes(look));
    }
}

// --- listings ---

#[test]
fn a_listing_says_nothing_about_what_lies_deeper() {
    let source = "async function refresh(folder: string, note: string) {
  const names = await readdir(folder);
  for (const name of names) {
    if (name.startsWith(\".\")) continue;
    await writeFile(join(folder, name, \"seen.txt\"), note);
  }
}
server.registerTool(\"refresh\", {}, async ({ note }: any) => {
  await refresh(ROOT, note);
  return { content: [] };
});
";
    expect(NOTHING, source);
    // A name that is made from the listing is free for one of two callers only.
    let next = source
        .replace(
            "for (const name of names) {",
            "{\n    const name = `run-${names.length + 1}`;",
        )
        .replace("continue", "return");
    expect(&["file-check-then-act"], &next);
}

// --- statements ---

#[test]
fn an_upsert_that_keeps_the_larger_loses_nothing() {
    let source = |update: &str| {
        format!(
            "server.registerTool(\"seen\", {{}}, async ({{ id, at }}: any) => {{
  const {{ rows }} = await pool.query(\"SELECT seen FROM peers WHERE id = $1\", [id]);
  const next = rows[0].seen + at;
  await pool.query(\"INSERT INTO peers (id, seen) VALUES ($1, $2) ON CONFLICT (id) DO UPDATE SET {update}\", [id, next]);
  return {{ content: [] }};
}});
"
        )
    };
    for update in [
        "seen = CASE WHEN excluded.seen > seen THEN excluded.seen ELSE seen END",
        "seen = GREATEST(peers.seen, excluded.seen)",
        "seen = excluded.seen WHERE excluded.seen > peers.seen",
    ] {
        expect(NOTHING, &source(update));
    }
    expect(&["db-lost-update"], &source("seen = excluded.seen"));
    expect(
        &["db-lost-update"],
        &source("seen = excluded.seen WHERE peers.id <> ''"),
    );
}

#[test]
fn any_row_that_is_there_is_not_the_one_that_is_named() {
    let source = |look: &str| {
        format!(
            "server.registerTool(\"put\", {{}}, async ({{ id, vector }}: any) => {{
  const {{ rows }} = await pool.query(\"SELECT vector FROM words {look}\");
  const next = rows[0].vector + vector;
  await pool.query(\"UPDATE words SET vector = $1 WHERE id = $2\", [next, id]);
  return {{ content: [] }};
}});
"
        )
    };
    expect(NOTHING, &source("LIMIT 1"));
    expect(
        &["db-lost-update"],
        &source("WHERE id = $1\", [id]); void (\""),
    );
    // A table of one row.
    let one = source("LIMIT 1").replace("WHERE id = $2\", [next, id]", "WHERE id = 1\", [next]");
    expect(&["db-lost-update"], &one);
}

#[test]
fn of_the_rights_that_were_tested_one_has_to_change() {
    let source = |more: &str| {
        format!(
            "server.registerTool(\"make\", {{}}, async ({{ id, text }}: any, extra: any) => {{
  await pool.query(\"INSERT INTO notes (id, owner, state, text) VALUES ($1, $2, 'open', $3)\", [id, extra.authInfo.clientId, text]);
  return {{ content: [] }};
}});
server.registerTool(\"write\", {{}}, async ({{ id, text }}: any, extra: any) => {{
  const {{ rows }} = await pool.query(\"SELECT owner, state FROM notes WHERE id = $1\", [id]);
  if (rows[0]?.owner !== extra.authInfo.clientId) throw new Error(\"not yours\");
  if (rows[0].state === \"closed\") throw new Error(\"closed\");
  await pool.query(\"UPDATE notes SET text = $1 WHERE id = $2\", [text, id]);
  return {{ content: [] }};
}});
server.registerTool(\"more\", {{}}, async ({{ id, to }}: any) => {{
  await pool.query(\"UPDATE notes SET {more} = $1 WHERE id = $2\", [to, id]);
  return {{ content: [] }};
}});
"
        )
    };
    expect(NOTHING, &source("state"));
    expect(&["auth-check-then-act"], &source("owner"));
}

#[test]
fn a_value_that_is_made_from_another_column_is_no_limit_that_is_raised() {
    let source = |select: &str| {
        format!(
            "server.registerTool(\"fill\", {{}}, async ({{ most }}: any) => {{
  const {{ rows }} = await pool.query(\"SELECT {select} FROM words WHERE id = $1\", [\"a\"]);
  // slowly: the rate limit of the service
  if (rows.length < most) {{
    const {{ value }} = await (await fetch(\"https://x.example/\" + rows[0].{select})).json();
    await pool.query(\"UPDATE words SET uses = $1 WHERE id = $2\", [value + rows[0].{select}, \"a\"]);
  }}
  return {{ content: [] }};
}});
"
        )
    };
    expect(NOTHING, &source("name"));
    expect(&["non-atomic-rate-limit"], &source("uses"));
}

// --- memory ---

#[test]
fn a_set_that_is_changed_in_place_loses_nothing() {
    let source = |made: &str, change: &str| {
        format!(
            "
class Hub:
    def __init__(self):
        self.clients = {made}

    async def tell(self, text):
        gone = {made}
        for client in self.clients:
            try:
                await client.send(text)
            except OSError:
                pass
        self.clients {change}

hub = Hub()

@mcp.tool()
async def tell(text: str) -> str:
    await hub.tell(text)
    return \"ok\"
"
        )
    };
    for change in ["-= gone", "|= gone", "&= gone"] {
        python::expect(&[], &source("set()", change));
    }
    python::expect(&[], &source("[]", "+= gone"));
    // Put together anew, what another call has added meanwhile is not in it.
    let copied = source("set()", "= seen - gone").replace(
        "        gone = set()",
        "        gone = set()\n        seen = set(self.clients)",
    );
    python::expect(&["session-lost-update"], &copied);
}

#[test]
fn a_path_that_the_writer_judges_itself_is_judged_there() {
    let source = |judges: &str| {
        format!(
            "
import os, lib
from mcp.server.fastmcp import FastMCP
mcp = FastMCP(\"x\")

def is_inside(name):
    return os.path.realpath(name).startswith(\"/work\")

async def save(name, text):
    {judges}
    with open(name, \"w\") as f:
        f.write(text)

async def load(name):
    if not is_inside(name):
        raise ValueError(\"outside\")
    path = os.path.realpath(name)
    if not os.path.isfile(path):
        raise ValueError(\"nothing\")
    with open(path) as f:
        return f.read()

@mcp.tool()
async def link(a: str, b: str):
    os.symlink(a, b)

@mcp.tool()
async def put(name: str, text: str):
    old = await load(name)
    await lib.check(old)
    await save(name, old + text)
"
        )
    };
    let count = |judges: &str| {
        let source = source(judges);
        let found = python::scan(&[("server.py", source.as_str())], "pedantic");
        let paths = found.iter().filter(|r| *r == "path-check-then-open");
        paths.count()
    };
    // Once in the writer, or once where it is trusted from before.
    let judged = "if not is_inside(name):
        raise ValueError(\"outside\")
    name = os.path.realpath(name)";
    assert_eq!((count(judged), count("pass")), (1, 1));
}

#[test]
fn a_listing_says_which_file_and_who_writes_it_reads_it() {
    let source = |before: &str, inside: &str| {
        format!(
            "
import threading, lib
lock = threading.Lock()

def finish(task, data):
    path = ROOT / f\"{{task}}.json\"
    with lock:
        {inside}
        if data[\"done\"]:
            return
        data[\"done\"] = True
        path.write_text(json.dumps(data))

@mcp.tool()
async def finish_all():
    for file in ROOT.glob(\"*.json\"):
        data = {before}
        await lib.check(file.stem)
        finish(file.stem, data)
"
        )
    };
    let anew = source("None", "data = json.loads(path.read_text())");
    // Another process can come between; the calls of this one take turns.
    python::expect(&["file-read-modify-write"], &anew);
    let before = "json.loads((ROOT / f\"{file.stem}.json\").read_text())";
    python::expect(&["lock-scope-too-narrow"], &source(before, "pass"));
}

/// A listing has the names of files, and nothing of what is in them: a report about a folder
/// that is put into it is no update of anything.
fn indexing(body: &str) -> String {
    format!(
        r#"import {{ McpServer }} from "@modelcontextprotocol/sdk/server/mcp.js";
import fs from "node:fs/promises";
import path from "node:path";
const server = new McpServer({{ name: "notes", version: "1.0.0" }});
server.registerTool("index", {{}}, async ({{ dir }}: {{ dir: string }}) => {{
  const names = await fs.readdir(dir);
{body}
  return {{ content: [] }};
}});
"#
    )
}

#[test]
fn safe_report_about_a_folder_that_was_listed() {
    let body = "  await fs.writeFile(path.join(dir, \"INDEX.md\"), names.map((n) => `- ${n}`).join(\"\\n\"));";
    safe(&[], &indexing(body));
}

/// What was found by it is read and written back.
#[test]
fn dangerous_files_of_a_folder_that_are_read_and_written_back() {
    let body = "  for (const name of names) {
    const file = path.join(dir, name);
    const text = await fs.readFile(file, \"utf8\");
    await fs.writeFile(file, text + \"\\n\");
  }";
    let rules = ["file-read-modify-write"];
    dangerous("regular", &rules, &[], &indexing(body));
}
