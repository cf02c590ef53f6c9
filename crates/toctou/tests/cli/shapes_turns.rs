//! Locks made by hand of a flag and those who wait for it, and what is just not one.

use crate::common::shapes::{dangerous, safe};

const LOST: &[&str] = &["session-lost-update"];

/// A counter in memory that is read, awaited and written back inside of `body`.
fn counting(lock: &str, body: &str) -> String {
    format!(
        r#"import {{ McpServer }} from "@modelcontextprotocol/sdk/server/mcp.js";
import {{ known }} from "./words.js";
{lock}
const counts = new Map<string, number>();
async function count(word: string) {{
  const old = counts.get(word) ?? 0;
  if (await known(word)) counts.set(word, old + 1);
}}
const server = new McpServer({{ name: "words", version: "1.0.0" }});
server.registerTool("add", {{}}, async ({{ word }}: {{ word: string }}) => {{
{body}
  return {{ content: [] }};
}});
"#
    )
}

const HELD: &str = "  await gate.take();
  try {
    await count(word);
  } finally {
    gate.give();
  }";
const RUN: &str = "  await gate.run(() => count(word));";
const RELEASED: &str = "  const release = await gate.take();
  try {
    await count(word);
  } finally {
    release();
  }";

/// Who waits is handed the lock by who gives it back.
const HANDED: &str = r#"class Gate {
  private taken = false;
  private waiting: Array<() => void> = [];
  async take() {
    if (!this.taken) {
      this.taken = true;
      return;
    }
    await new Promise<void>((go) => this.waiting.push(go));
  }
  give() {
    const next = this.waiting.shift();
    if (next) next();
    else this.taken = false;
  }
}
const gate = new Gate();"#;

#[test]
fn safe_lock_that_is_handed_on() {
    safe(&[], &counting(HANDED, HELD));
}

/// The flag is cleared first: somebody else takes it before the one who waits wakes up.
#[test]
fn dangerous_lock_that_is_cleared_and_handed_on() {
    let cleared = HANDED
        .replace("    else this.taken = false;\n", "")
        .replace(
            "    const next = this",
            "    this.taken = false;\n    const next = this",
        );
    dangerous("regular", LOST, &[], &counting(&cleared, HELD));
}

/// The same, with the test inside of the promise, and what gives it back for a result.
const PROMISED: &str = r#"class Gate {
  private taken = false;
  private waiting: Array<(release: () => void) => void> = [];
  take(): Promise<() => void> {
    return new Promise((go) => {
      if (!this.taken) {
        this.taken = true;
        go(() => this.give());
      } else {
        this.waiting.push(go);
      }
    });
  }
  private give() {
    if (this.waiting.length > 0) this.waiting.shift()!(() => this.give());
    else this.taken = false;
  }
}
const gate = new Gate();"#;

#[test]
fn safe_lock_that_is_promised() {
    safe(&[], &counting(PROMISED, RELEASED));
}

/// What is given back before the write protects nothing.
#[test]
fn dangerous_lock_that_is_promised_and_given_back_early() {
    let early = "  const release = await gate.take();
  release();
  await count(word);";
    dangerous("regular", LOST, &[], &counting(PROMISED, early));
}

/// Who wakes up looks again, and sets the flag in the same turn.
const LOOKS_AGAIN: &str = r#"let taken = false;
const waiting: Array<() => void> = [];
const gate = {
  async run<T>(work: () => Promise<T>): Promise<T> {
    while (taken) {
      await new Promise<void>((go) => waiting.push(go));
    }
    taken = true;
    try {
      return await work();
    } finally {
      taken = false;
      waiting.shift()?.();
    }
  },
};"#;

#[test]
fn safe_lock_that_looks_again() {
    safe(&[], &counting(LOOKS_AGAIN, RUN));
}

/// Who wakes up does not look again, or waits once more before the flag is set.
#[test]
fn dangerous_lock_that_does_not_look_again() {
    let once = LOOKS_AGAIN.replace("while (taken)", "if (taken)");
    dangerous("regular", LOST, &[], &counting(&once, RUN));
    let late = LOOKS_AGAIN.replace(
        "    taken = true;",
        "    await known(\"\");\n    taken = true;",
    );
    dangerous("regular", LOST, &[], &counting(&late, RUN));
}

/// A flag that is asked every few milliseconds, in two functions.
const ASKED: &str = r#"let taken = false;
const gate = {
  async take() {
    while (taken) await new Promise((go) => setTimeout(go, 10));
    taken = true;
  },
  give() {
    taken = false;
  },
};"#;

#[test]
fn safe_lock_that_is_asked_for() {
    safe(&[], &counting(ASKED, HELD));
}

/// One that nobody ever gives back is no lock, and neither is one that is not taken at once.
#[test]
fn dangerous_lock_that_is_taken_after_a_wait() {
    let late = ASKED.replace(
        "    taken = true;",
        "    await known(\"\");\n    taken = true;",
    );
    dangerous("regular", LOST, &[], &counting(&late, HELD));
}
