//! Servers in JavaScript that read JSON-RPC from standard input themselves.

use crate::common::Project;

/// A server without an SDK that listens on standard input.
fn listener(on: &str, dispatch: &str) -> String {
    format!(
        r#"import {{ readFile, writeFile }} from "node:fs/promises";
import readline from "node:readline";
let initialised = false;
async function handle(message: any) {{
  {dispatch}
}}
async function add(note: string) {{
  if (!initialised) {{
    await readFile("settings.json", "utf8");
    initialised = true;
    await writeFile("session.log", note);
  }}
  const list = JSON.parse(await readFile("notes.json", "utf8"));
  list.push(note);
  await writeFile("notes.json", JSON.stringify(list));
}}
const rl = readline.createInterface({{ input: process.stdin }});
{on}
"#
    )
}

fn kinds(source: &str) -> Vec<String> {
    let project = Project::new(&[("server.ts", source)]);
    let run = project.run(
        "scan server.ts --no-config --persona pedantic --output json --rule file-read-modify-write",
    );
    let json = run.json();
    let points = json["findings"][0]["entry_points"].as_array().cloned();
    let text = |e: &serde_json::Value| format!("{} {}", e["kind"], e["name"]).replace('"', "");
    points.unwrap_or_default().iter().map(text).collect()
}

#[test]
fn a_listener_on_standard_input_that_knows_the_method_serves_tools() {
    let dispatch = r#"switch (message.method) {
    case "initialize":
      return {};
    case "tools/call":
      if (message.params.name === "add_note") await add(message.params.arguments.note);
  }"#;
    let line = r#"rl.on("line", async (line) => { await handle(JSON.parse(line)); });"#;
    assert_eq!(
        kinds(&listener(line, dispatch)),
        ["tool add_note", "event line"]
    );
    let data = r#"process.stdin.on("data", (chunk) => { handle(JSON.parse(String(chunk))); });"#;
    assert_eq!(
        kinds(&listener(data, dispatch)),
        ["tool add_note", "event data"]
    );
}

#[test]
fn a_listener_that_does_not_know_it_is_a_command_line() {
    let dispatch = r#"if (message.command === "add") await add(message.text);"#;
    let line = r#"rl.on("line", async (line) => { await handle(JSON.parse(line)); });"#;
    assert_eq!(kinds(&listener(line, dispatch)), ["event line"]);
    // Another event is no message.
    let history = r#"rl.on("history", async (lines) => { await handle(lines); });"#;
    let knows = r#"if (message.method === "tools/call") await add(message.text);"#;
    assert_eq!(kinds(&listener(history, knows)), ["event history"]);
}
