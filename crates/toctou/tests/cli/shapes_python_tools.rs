//! Ways by which Python servers register tools: found when the program runs, given to the server
//! when it is made, made before there is one. Beside each stands a function that is not a tool.

use crate::common::Project;

/// `add` loses a note. Nobody calls it but a client.
const NOTES: &str = "
import inspect, json
from pathlib import Path
from fastmcp import FastMCP

def add(text: str) -> str:
    notes = json.loads(Path(\"notes.json\").read_text())
    notes.append(text)
    Path(\"notes.json\").write_text(json.dumps(notes))
    return \"ok\"

def other(text: str) -> str:
    return text
";

/// Which tools lead to the lost note?
fn tools(source: &str) -> Vec<String> {
    let files = [
        ("server.py", source),
        ("requirements.txt", "fastmcp>=2.10,<3\n"),
    ];
    let run = Project::new(&files).run("scan . --no-config --output json");
    assert!(matches!(run.code, Some(0 | 1)), "{}", run.seen());
    let json = run.json();
    let mut found = Vec::new();
    for finding in json["findings"].as_array().into_iter().flatten() {
        for entry in finding["entry_points"].as_array().into_iter().flatten() {
            if entry["kind"] == "tool" {
                found.push(entry["name"].as_str().unwrap_or_default().to_owned());
            }
        }
    }
    found
}

#[track_caller]
fn expect(name: &str, registers: &str) {
    assert_eq!(tools(&format!("{NOTES}{registers}")), [name], "{registers}");
    // With the other function in its place there is nothing to lose.
    let other = registers.replace("add", "other");
    assert_eq!(tools(&format!("{NOTES}{other}")), [""; 0], "{other}");
}

#[test]
fn a_table_of_tools_is_gone_through_with_their_names() {
    expect(
        "add",
        "
mcp = FastMCP(\"x\")
TABLE = {\"note\": add}
for name, function in TABLE.items():
    mcp.tool(name=name)(function)
",
    );
}

#[test]
fn tools_are_given_to_the_server_when_it_is_made() {
    expect("add", "mcp = FastMCP(\"x\", tools=[add])\n");
}

#[test]
fn a_tool_is_made_before_there_is_a_server() {
    let source = |mark: &str| {
        let import = "from fastmcp.tools import tool\n";
        format!(
            "{import}{}",
            NOTES.replace("def add", &format!("{mark}def add"))
        )
    };
    assert_eq!(tools(&source("@tool\n")), ["add"]);
    assert_eq!(tools(&source("@tool(tags={\"x\"})\n")), ["add"]);
    assert_eq!(tools(&source("")), [""; 0]);
}

#[test]
fn methods_of_a_mixin_are_marked() {
    let source = |mark: &str| {
        format!(
            "{NOTES}
from fastmcp.contrib.mcp_mixin import MCPMixin, mcp_tool

class Notes(MCPMixin):
    {mark}
    def put(self, text: str) -> str:
        return add(text)

mcp = FastMCP(\"x\")
Notes().register_all(mcp_server=mcp)
"
        )
    };
    assert_eq!(tools(&source("@mcp_tool(name=\"put\")")), ["put"]);
    assert_eq!(tools(&source("")), [""; 0]);
}

#[test]
fn methods_are_found_by_a_name_that_the_client_brings() {
    let source = |call: &str| {
        format!(
            "{NOTES}
from mcp.server import Server

class Notes:
    def put(self, text):
        return add(text)

notes = Notes()
app = Server(\"x\")

@app.call_tool()
async def call(name, arguments):
    {call}
"
        )
    };
    let named = "return getattr(notes, name)(**arguments)";
    assert_eq!(tools(&source(named)), ["call"]);
    let by_default = "return getattr(notes, name, None)(**arguments)";
    assert_eq!(tools(&source(by_default)), ["call"]);
    // Another object's.
    let of_text = "return getattr(name, name)(**arguments)";
    assert_eq!(tools(&source(of_text)), [""; 0]);
}

#[test]
fn all_methods_of_an_object_are_registered() {
    let source = |given: &str| {
        format!(
            "{NOTES}
class Notes:
    def put(self, text: str) -> str:
        return add(text)

class Nothing:
    def get(self) -> str:
        return \"\"

mcp = FastMCP(\"x\")
for _, method in inspect.getmembers({given}, inspect.ismethod):
    mcp.tool()(method)
"
        )
    };
    assert_eq!(tools(&source("Notes()")), ["Notes.put"]);
    assert_eq!(tools(&source("Nothing()")), [""; 0]);
}
