//! Methods that are handed to somebody who calls them, and other ways to a tool's work that are
//! easy to lose: then what a client can do looks like something that nobody calls.

use crate::common::Project;

/// The rule of what is found by the regular persona, with the tool that leads there.
#[track_caller]
fn expect(found: &[(&str, &str)], files: &[(&str, &str)]) {
    let run = Project::new(files).run("scan . --no-config --output json");
    assert!(matches!(run.code, Some(0 | 1)), "{}", run.seen());
    let json = run.json();
    assert_eq!(json["summary"]["skipped"], 0, "{}", run.stdout);
    let text = |v: &serde_json::Value| v.as_str().unwrap_or_default().to_owned();
    let seen: Vec<(String, String)> = json["findings"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|f| (text(&f["rule"]), text(&f["entry_points"][0]["name"])))
        .collect();
    let found: Vec<(String, String)> = found
        .iter()
        .map(|(rule, tool)| ((*rule).to_owned(), (*tool).to_owned()))
        .collect();
    assert_eq!(seen, found);
}

/// A class whose tool hands one of its methods to `run`.
fn python(run: &str, lock: &str) -> String {
    format!(
        "import asyncio, json
from contextlib import nullcontext
from functools import partial
from filelock import FileLock
from mcp.server import Server

class Board:
    def __init__(self):
        self._server = Server(\"board\")
        self._tools = {{\"add\": self._add}}
        self._setup()

    async def _run(self, func, *args):
        {run}

    def _setup(self):
        @self._server.call_tool()
        async def call_tool(name: str, arguments: dict):
            return await self._run(self._handle, name, arguments)

    def _handle(self, name, arguments):
        handler = self._tools.get(name)
        if handler is None:
            raise ValueError(name)
        return handler(arguments)

    def _add(self, arguments):
        with {lock}:
            with open(\"board.json\") as f:
                cards = json.load(f)
            cards.append(arguments[\"card\"])
            with open(\"board.json\", \"w\") as f:
                json.dump(cards, f)
"
    )
}

#[test]
fn a_method_that_is_handed_to_a_runner_is_run() {
    for run in [
        "return func(*args)",
        "return await asyncio.to_thread(func, *args)",
        "return await asyncio.get_running_loop().run_in_executor(None, partial(func, *args))",
    ] {
        let open = python(run, "nullcontext()");
        let lost = [("file-read-modify-write", "call_tool")];
        expect(&lost, &[("server.py", &open)]);
        let locked = python(run, "FileLock(\"board.lock\")");
        expect(&[], &[("server.py", &locked)]);
    }
    // Who is never called leads nowhere.
    expect(
        &[],
        &[("server.py", &python("return None", "nullcontext()"))],
    );
}

#[test]
fn a_method_in_a_field_or_bound_to_its_object_is_run() {
    let source = |handed: &str, method: &str| {
        format!(
            r#"import {{ McpServer }} from "@modelcontextprotocol/sdk/server/mcp.js";
import {{ readFile, writeFile }} from "node:fs/promises";
class Board {{
  server = new McpServer({{ name: "board", version: "1.0.0" }});
  constructor() {{ this.setup(); }}
  async run(work: (card: string) => Promise<void>, card: string) {{ return await work(card); }}
  setup() {{
    this.server.tool("add", async ({{ card }}) => {{ await this.run({handed}, card); return {{ content: [] }}; }});
  }}
  {method} {{
    const cards = JSON.parse(await readFile("board.json", "utf8"));
    cards.push(card);
    await writeFile("board.json", JSON.stringify(cards));
  }}
}}
new Board();
"#
        )
    };
    let lost = [("file-read-modify-write", "add")];
    let field = source("this.add", "add = async (card: string) =>");
    expect(&lost, &[("server.ts", &field)]);
    let bound = source("this.add.bind(this)", "async add(card: string)");
    expect(&lost, &[("server.ts", &bound)]);
}

const APPEND: &str = "pub async fn append(path: &str, text: &str) -> Result<String, String> {
    let mut whole = tokio::fs::read_to_string(path).await.map_err(|e| e.to_string())?;
    whole.push_str(text);
    tokio::fs::write(path, whole).await.map_err(|e| e.to_string())?;
    Ok(String::new())
}
";

/// A tool of `rmcp` with this body.
fn rust(head: &str, body: &str) -> String {
    format!(
        "{head}
use rmcp::{{handler::server::wrapper::Parameters, tool, tool_router}};
use tracing::Instrument;
pub struct Board {{ path: String }}
#[tool_router]
impl Board {{
    #[tool(description = \"adds a card\")]
    async fn add(&self, params: Parameters<Card>) -> Result<String, String> {{
        let path = self.path.clone();
        {body}
    }}
}}
"
    )
}

#[test]
fn a_block_runs_however_it_is_dressed_up() {
    for body in [
        "async move { append(&path, &params.0.text).await }.instrument(tracing::info_span!(\"add\")).await",
        "tokio::spawn(async move { append(&path, &params.0.text).await }.in_current_span()).await.unwrap()",
        "let work = async move { append(&path, &params.0.text).await };\n        work.instrument(tracing::info_span!(\"add\")).await",
    ] {
        let source = rust(APPEND, body);
        let lost = [("file-read-modify-write", "add")];
        expect(&lost, &[("src/main.rs", &source)]);
    }
}

#[test]
fn a_star_brings_modules_along() {
    let add = "cards::append(&path, &params.0.text).await";
    let files = |uses: &str, tools: &str| {
        let main = rust(&format!("mod tools;\n{uses}"), add);
        let manifest = "[package]\nname = \"board\"\nversion = \"0.1.0\"\nedition = \"2021\"\n";
        [
            ("Cargo.toml", manifest.to_owned()),
            ("src/main.rs", main),
            ("src/tools/mod.rs", tools.to_owned()),
            ("src/tools/cards.rs", APPEND.to_owned()),
            ("src/tools/all.rs", "pub use super::*;\n".to_owned()),
        ]
    };
    let lost = [("file-read-modify-write", "add")];
    for uses in ["use crate::tools::*;", "use crate::tools::all::*;"] {
        let files = files(uses, "pub mod all;\npub mod cards;\n");
        let files = files.each_ref().map(|(path, text)| (*path, text.as_str()));
        expect(&lost, &files);
    }
}
