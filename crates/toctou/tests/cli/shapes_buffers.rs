//! Lists in memory: searched and then added to, handed on and then emptied.

use crate::common::shapes::{dangerous, safe};

fn server(state: &str, body: &str) -> String {
    format!(
        r#"import {{ McpServer }} from "@modelcontextprotocol/sdk/server/mcp.js";
import {{ send }} from "./remote.js";
{state}
const server = new McpServer({{ name: "notes", version: "1.0.0" }});
server.registerTool("add", {{}}, async (entry: {{ name: string }}) => {{
{body}
  return {{ content: [] }};
}});
"#
    )
}

const NAMES: &str = "const entries: Array<{ name: string }> = [];";

/// Two calls find that there is none of that name, and both add one.
#[test]
fn dangerous_list_that_is_searched_and_added_to() {
    for search in [
        "entries.some((e) => e.name === entry.name)",
        "entries.find((e) => e.name === entry.name)",
        "entries.findIndex((e) => e.name === entry.name) !== -1",
    ] {
        let body = format!(
            "  if ({search}) throw new Error(\"there is one\");
  await send(entry);
  entries.push(entry);"
        );
        let rules = ["memory-check-then-act"];
        dangerous("regular", &rules, &[], &server(NAMES, &body));
    }
}

#[test]
fn safe_list_that_is_added_to_at_once() {
    let body =
        "  if (entries.some((e) => e.name === entry.name)) throw new Error(\"there is one\");
  entries.push(entry);
  await send(entry);";
    safe(&[], &server(NAMES, body));
}

const BUFFER: &str = r#"class Buffer {
  private entries: unknown[] = [];
  add(entry: unknown) {
    this.entries.push(entry);
  }
  async flush() {
    const batch = this.entries;
    await send(batch);
    this.entries = [];
  }
}
const buffer = new Buffer();"#;
const FLUSH: &str = "  buffer.add(entry);\n  await buffer.flush();";

/// What another call adds while the list is sent is thrown away unsent.
#[test]
fn dangerous_buffer_that_is_emptied_after_it_was_sent() {
    let rules = ["session-lost-update"];
    dangerous("regular", &rules, &[], &server(BUFFER, FLUSH));
    let state = "const waiting = new Map<string, unknown>();";
    let body = "  waiting.set(entry.name, entry);
  for (const [name, value] of waiting) await send([name, value]);
  waiting.clear();";
    dangerous("regular", &rules, &[], &server(state, body));
}

/// Taken away first, or only that much taken out.
#[test]
fn safe_buffer_that_is_taken_away_before_it_is_sent() {
    let first = BUFFER.replace(
        "    await send(batch);\n    this.entries = [];",
        "    this.entries = [];\n    await send(batch);",
    );
    safe(&[], &server(&first, FLUSH));
    let part = BUFFER.replace(
        "this.entries = [];\n  }",
        "this.entries = this.entries.slice(batch.length);\n  }",
    );
    safe(&[], &server(&part, FLUSH));
}
