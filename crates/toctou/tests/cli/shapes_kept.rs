//! What is kept to save work: things with an age, answers under a name that is made from the
//! question, places that are replaced only if they still are what they were. Each beside a
//! dangerous one that looks like it.

use crate::common::python::expect;
use crate::common::shapes::{dangerous, safe};
use crate::shapes_go;

/// A server with one tool, whose class has `members` and is asked by `tool`.
fn keeps(members: &str, tool: &str) -> String {
    format!(
        r#"import {{ McpServer }} from "@modelcontextprotocol/sdk/server/mcp.js";
import {{ access, readFile, writeFile }} from "node:fs/promises";
const server = new McpServer({{ name: "kept", version: "1.0.0" }});
class Store {{
{members}
}}
const store = new Store();
server.registerTool("ask", {{}}, async (args: any) => {{
{tool}
  return {{ content: [] }};
}});
"#
    )
}

/// Tested, made anew, stored; the same file is written on the way, which is more than waste.
fn listed(test: &str) -> String {
    let members = format!(
        r#"  list: any = null;
  at = 0;
  async all() {{
    {test}
    const list = await fetchList();
    await writeFile("list.json", JSON.stringify(list));
    this.list = list;
    this.at = Date.now();
    return list;
  }}"#
    );
    keeps(&members, "  await store.all();")
}

#[test]
fn safe_list_that_is_made_anew_when_it_is_too_old() {
    let test = "if (this.list && Date.now() - this.at < 30000) return this.list;";
    safe(&[], &listed(test));
    let test = "const fresh = this.list && Date.now() - this.at < 30000;\n    if (fresh) return this.list;";
    safe(&[], &listed(test));
}

#[test]
fn dangerous_list_without_an_age() {
    let test = "if (this.list) return this.list;";
    dangerous("pedantic", &["memory-check-then-act"], &[], &listed(test));
}

/// Who is told to come back later has nothing: that is no cache, but a limit.
#[test]
fn dangerous_pause_that_refuses() {
    let test = r#"if (Date.now() - this.at < 30000) throw new Error("too soon");"#;
    dangerous("regular", &["memory-check-then-act"], &[], &listed(test));
}

const AVAILABLE: &str = r#"
type entry struct { there bool; at time.Time }
type Store struct { mu sync.RWMutex; known map[string]entry }
func (s *Store) get(key string) (bool, bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	e, ok := s.known[key]
	if !ok { return false, false }
	AGE
	return e.there, true
}
func (s *Store) set(key string, there bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.known[key] = entry{there: there, at: time.Now()}
}
"#;

fn looks_up(age: &str) -> Vec<String> {
    let handle = format!(
        "{} {{
	there, known := s.get(in.Key)
	if !known {{
		_, err := exec.LookPath(in.Key)
		there = err == nil
		os.WriteFile(\"asked.txt\", []byte(in.Key), 0o644)
		s.set(in.Key, there)
	}}
	if there {{ return &mcp.CallToolResult{{}}, nil, nil }}
	return nil, nil, nil
}}",
        shapes_go::SIGNATURE
    );
    shapes_go::scan(&format!("{}\n{handle}", AVAILABLE.replace("AGE", age)))
}

#[test]
fn the_age_is_asked_in_a_function_of_its_own() {
    let quiet = Vec::<String>::new();
    let asked = "if time.Since(e.at) > time.Minute { return false, false }";
    assert_eq!(looks_up(asked), quiet);
    let asked = "now := time.Now()\n\tif now.Sub(e.at) > time.Minute { return false, false }";
    assert_eq!(looks_up(asked), quiet);
    // Without an age it is only known to be set by another function, which may look again.
    assert_eq!(looks_up(""), quiet);
}

fn paper(value: &str) -> String {
    format!(
        "
import httpx
from pathlib import Path

@mcp.tool()
async def paper(name: str, text: str) -> str:
    path = Path(\"/srv/papers\") / f\"{{name}}.md\"
    if path.exists():
        return path.read_text()
    async with httpx.AsyncClient() as client:
        answer = await client.get(\"https://example.com/\" + name)
    value = {value}
    path.write_text(value)
    return value
"
    )
}

#[test]
fn an_answer_is_kept_under_the_name_of_the_question() {
    expect(&[], &paper("answer.text"));
    expect(&["file-check-then-act"], &paper("text"));
    expect(&["file-check-then-act"], &paper("answer.text + text"));
}

/// What is written on one branch is not what the other branch has read.
#[test]
fn a_variable_is_what_it_was_set_to_on_the_way() {
    let source = |reset: &str| {
        let members = format!(
            r#"  parts: any = {{}};
  async build(args: any) {{
    let parts: any = {{}};
    if (args.cached) {{
      parts = this.parts;
    }} else {{
      {reset}
      const made = await fetchParts(args);
      for (const part of made) {{
        try {{
          parts[part.name] = check(part);
        }} catch (error) {{
          console.error(error);
        }}
      }}
      if (args.keep) {{
        this.parts = parts;
      }}
    }}
    return parts;
  }}"#
        );
        keeps(&members, "  await store.build(args);")
    };
    safe(&[], &source("parts = {};"));
    dangerous(
        "regular",
        &["session-lost-update"],
        &[],
        &source("parts = { ...this.parts };"),
    );
}

/// Replaced only if nobody else has replaced it.
#[test]
fn what_still_is_what_it_was_is_replaced() {
    let source = |test: &str| {
        let members = format!(
            r#"  current: any = {{ n: 0 }};
  async next(args: any) {{
    const before = this.current;
    const made = await change(before, args);
    const after = {{ ...before, made }};
    {test} this.current = after;
  }}"#
        );
        keeps(&members, "  await store.next(args);")
    };
    safe(&[], &source("if (this.current === before)"));
    dangerous(
        "regular",
        &["session-lost-update"],
        &[],
        &source("if (args.force)"),
    );
}

/// An entry that is too old is removed: nobody has used it up.
#[test]
fn an_entry_that_is_too_old_is_no_longer_good_for_anything() {
    let source = |body: &str| {
        let members = format!(
            r#"  tokens = new Map<string, any>();
  async get(id: string) {{ return this.tokens.get(id); }}
  async drop(id: string) {{ this.tokens.delete(id); }}
  expired(at: number) {{ return Date.now() > at; }}
  async find(id: string) {{
    const token = await this.get(id);
    if (!token) return null;
    {body}
  }}"#
        );
        keeps(&members, "  await store.find(args.id);")
    };
    let old =
        "if (this.expired(token.at)) { await this.drop(id); return null; }\n    return token;";
    safe(&[], &source(old));
    let used =
        "if (this.expired(token.at)) return null;\n    await this.drop(id);\n    return token;";
    dangerous(
        "regular",
        &["single-use-check-then-consume"],
        &[],
        &source(used),
    );
}
