//! Ways through a function that a `finally` or a `with` stands on: who leaves there by `return`
//! does not come to what follows. And lists that are searched before something is added.

use crate::common::Project;

#[track_caller]
fn expect(rules: &[&str], file: &str, source: &str) {
    let files = [(file, source), ("requirements.txt", "mcp>=1.9,<2\n")];
    let run = Project::new(&files).run(&format!("scan {file} --no-config --output json"));
    assert!(matches!(run.code, Some(0 | 1)), "{}", run.seen());
    assert_eq!(run.json()["summary"]["skipped"], 0, "{}", run.stdout);
    assert_eq!(run.rules(), rules, "{source}");
}

/// A tool in TypeScript, with a lock and a table.
#[track_caller]
fn typescript(rules: &[&str], tool: &str) {
    let source = format!(
        r#"import {{ McpServer }} from "@modelcontextprotocol/sdk/server/mcp.js";
import {{ z }} from "zod";
import {{ Mutex }} from "async-mutex";
import {{ prepare }} from "./rooms.js";
const mutex = new Mutex();
const rooms = new Map<string, string>();
const server = new McpServer({{ name: "rooms", version: "1.0.0" }});
server.registerTool("tool", {{ inputSchema: {{ text: z.string() }} }}, async ({{ text }}) => {{
{tool}
  return {{ content: [] }};
}});
"#
    );
    expect(rules, "server.ts", &source);
}

/// A method in Python, of an object that all calls share.
#[track_caller]
fn python(rules: &[&str], body: &str) {
    let source = format!(
        "import asyncio\n\
         from mcp.server.fastmcp import FastMCP\n\
         mcp = FastMCP(\"rooms\")\n\
         class Rooms:\n    \
             def __init__(self):\n        \
                 self.names = []\n        \
                 self.taken = {{}}\n        \
                 self.lock = asyncio.Lock()\n    \
             async def take(self, name, prepare):\n{body}\n\
         rooms = Rooms()\n\
         @mcp.tool()\n\
         async def take(name: str) -> str:\n    \
             await rooms.take(name, asyncio.sleep)\n    \
             return \"taken\"\n"
    );
    expect(rules, "server.py", &source);
}

const SECTION: &str = r#"  const first = await mutex.acquire();
  try {
    if (rooms.has(text)) return { content: [] };
  } finally {
    first();
  }
"#;

#[test]
fn dangerous_section_that_is_left_by_return() {
    typescript(
        &["lock-scope-too-narrow"],
        &format!(
            r#"{SECTION}  const room = await prepare(text);
  const second = await mutex.acquire();
  try {{
    rooms.set(text, room);
  }} finally {{
    second();
  }}"#
        ),
    );
}

#[test]
fn safe_section_that_is_left_by_return_and_looked_again() {
    typescript(
        &[],
        &format!(
            r#"{SECTION}  const room = await prepare(text);
  const second = await mutex.acquire();
  try {{
    if (rooms.has(text)) return {{ content: [] }};
    rooms.set(text, room);
  }} finally {{
    second();
  }}"#
        ),
    );
}

/// What stands in the `finally` runs whichever way it is entered.
#[test]
fn safe_note_that_is_made_in_any_case() {
    typescript(
        &[],
        r#"  try {
    if (rooms.has(text)) return { content: [] };
    await prepare(text);
  } finally {
    rooms.set(text, "asked for");
  }"#,
    );
}

#[test]
fn dangerous_with_that_is_left_by_return() {
    python(
        &["lock-scope-too-narrow"],
        "        async with self.lock:
            if name in self.taken:
                return None
        room = await prepare(1)
        async with self.lock:
            self.taken[name] = room",
    );
}

#[test]
fn safe_with_that_is_left_at_the_end() {
    python(
        &[],
        "        async with self.lock:
            if name in self.taken:
                return None
            self.taken[name] = await prepare(1)",
    );
}

/// The rest of a round is what `continue` leaves out, and nothing after the loop.
#[test]
fn dangerous_round_that_is_left_by_continue() {
    python(
        &["lock-scope-too-narrow"],
        "        for part in name.split(\"/\"):
            async with self.lock:
                if part in self.taken:
                    continue
            room = await prepare(1)
            async with self.lock:
                self.taken[part] = room",
    );
}

#[test]
fn dangerous_list_that_is_searched_and_added_to() {
    python(
        &["memory-check-then-act"],
        "        if name in self.names:
            raise ValueError(\"taken\")
        await prepare(1)
        self.names.append(name)",
    );
}

#[test]
fn safe_list_that_is_added_to_at_once() {
    python(
        &[],
        "        if name in self.names:
            raise ValueError(\"taken\")
        self.names.append(name)
        await prepare(1)",
    );
}

/// It is added where it is there already: that says nothing about a second one.
#[test]
fn safe_list_that_must_have_it() {
    python(
        &[],
        "        if name not in self.names:
            raise ValueError(\"nobody\")
        await prepare(1)
        self.names.append(name)",
    );
}
