//! How a server lets clients in: by standard input there is a process for each, by a port there is
//! one for all. What is done before that is done when the first one comes.

use crate::common::Project;

fn rules(persona: &str, source: &str) -> Vec<String> {
    let files = [("server.py", source), ("requirements.txt", "mcp>=1.9,<2\n")];
    let project = Project::new(&files);
    let run = project.run(&format!(
        "scan . --no-config --persona {persona} --output json"
    ));
    assert!(matches!(run.code, Some(0 | 1)), "{}", run.seen());
    run.rules()
}

const NOTES: &str = "
import json, sys
from pathlib import Path
from mcp.server.fastmcp import FastMCP
mcp = FastMCP(\"x\")
PATH = Path(\"notes.json\")

@mcp.tool()
def add(text: str) -> str:
    notes = json.loads(PATH.read_text())
    notes.append(text)
    PATH.write_text(json.dumps(notes))
    return \"ok\"
";

#[test]
fn one_process_serves_all_clients_by_a_port() {
    let rule = "file-read-modify-write";
    for one in [
        "mcp.run(transport=\"streamable-http\")",
        "import uvicorn\nuvicorn.run(mcp.streamable_http_app(), port=8000)",
    ] {
        let source = format!("{NOTES}{one}\n");
        assert_eq!(rules("regular", &source), [""; 0], "{one}");
        assert!(
            rules("pedantic", &source).contains(&rule.to_owned()),
            "{one}"
        );
    }
    for many in [
        "mcp.run()",
        "mcp.run(transport=\"stdio\")",
        "mcp.run(transport=sys.argv[1])",
        "mcp.run() if sys.argv[1:] else mcp.run(transport=\"http\")",
        "import uvicorn\nuvicorn.run(\"server:app\", workers=4)",
        "",
    ] {
        let source = format!("{NOTES}{many}\n");
        assert_eq!(rules("regular", &source), [rule], "{many}");
    }
}

#[test]
fn what_two_calls_of_the_one_process_do_is_no_matter_of_processes() {
    let waits = NOTES
        .replace("def add", "async def add")
        .replace(
            "    notes.append",
            "    await lib.check(text)\n    notes.append",
        )
        .replace("import json", "import lib, json");
    let source = format!("{waits}mcp.run(transport=\"http\")\n");
    assert_eq!(rules("regular", &source), ["file-read-modify-write"]);
}

#[test]
fn what_the_lifespan_makes_is_there_when_clients_come() {
    let source = |before: &str| {
        format!(
            "
import lib
from contextlib import asynccontextmanager
from mcp.server.fastmcp import FastMCP
client = None

async def get_client():
    global client
    if client is None:
        client = await lib.connect()
        await client.send(\"hello\")
    return client

@asynccontextmanager
async def life(server):
    {before}
    yield {{}}

mcp = FastMCP(\"x\", lifespan=life)

@mcp.tool()
async def ask(text: str):
    found = await get_client()
    return await found.ask(text)
"
        )
    };
    assert_eq!(rules("regular", &source("await get_client()")), [""; 0]);
    assert_eq!(rules("regular", &source("pass")), ["memory-check-then-act"]);
}
