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
