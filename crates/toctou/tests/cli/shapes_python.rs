//! The same shapes as in `shapes.rs`, in Python, and those that only Python
//! has: threads by the version of the SDK, `with`, decorators, context managers.

use crate::common::Project;

fn scan(files: &[(&str, &str)], persona: &str) -> Vec<String> {
    let project = Project::new(files);
    let run = project.run(&format!(
        "scan . --no-config --persona {persona} --output json"
    ));
    assert!(matches!(run.code, Some(0 | 1)), "{}", run.seen());
    assert_eq!(run.json()["summary"]["skipped"], 0, "{}", run.stdout);
    let mut rules = run.rules();
    rules.sort();
    rules
}

/// A server on version 1 of the SDK.
#[track_caller]
fn expect(rules: &[&str], source: &str) {
    let source = format!("{HEAD}{source}");
    let files = [
        ("server.py", source.as_str()),
        ("requirements.txt", "mcp>=1.9,<2\n"),
    ];
    assert_eq!(scan(&files, "regular"), rules, "{source}");
}

const HEAD: &str = "import asyncio, fcntl, json, functools, threading
from contextlib import contextmanager
from pathlib import Path
from mcp.server.fastmcp import FastMCP
from mcp.server import Server
mcp = FastMCP(\"x\")
server = Server(\"y\")
P = Path(\"data.json\")
counts = {}
";

#[test]
fn helpers_with_default_arguments_mean_one_file() {
    expect(
        &["file-read-modify-write"],
        "
def load(path=P):
    with open(path) as f:
        return json.load(f)

def save(data, *, path=P):
    with open(path, \"w\") as f:
        json.dump(data, f)

@mcp.tool()
async def add(x: str) -> str:
    data = load()
    data.append(x)
    save(data)
    return \"ok\"
",
    );
}

#[test]
fn the_low_level_server_is_split_by_tool() {
    let source = format!(
        "{HEAD}
async def add(arguments):
    data = json.loads(P.read_text())
    data.append(arguments)
    P.write_text(json.dumps(data))

@server.call_tool()
async def handle(name: str, arguments: dict):
    match name:
        case \"add\":
            await add(arguments)
        case _:
            raise ValueError(name)
"
    );
    let project = Project::new(&[("server.py", &source)]);
    let run = project.run("scan . --no-config --output json");
    let json = run.json();
    assert_eq!(json["findings"][0]["rule"], "file-read-modify-write");
    assert_eq!(json["findings"][0]["entry_points"][0]["name"], "add");
}

#[test]
fn a_context_manager_that_locks_protects_its_body() {
    for body in [
        "    with locked():\n",
        "    with Guard():\n",
        "    with guard:\n",
    ] {
        expect(
            &[],
            &format!(
                "
@contextmanager
def locked():
    f = open(\"data.lock\", \"w\")
    fcntl.flock(f, fcntl.LOCK_EX)
    try:
        yield
    finally:
        fcntl.flock(f, fcntl.LOCK_UN)

class Guard:
    def __enter__(self):
        self.f = open(\"data.lock\", \"w\")
        fcntl.flock(self.f, fcntl.LOCK_EX)
    def __exit__(self, *rest):
        fcntl.flock(self.f, fcntl.LOCK_UN)

guard = Guard()

@mcp.tool()
async def add(x: str) -> str:
{body}        data = json.loads(P.read_text())
        data.append(x)
        P.write_text(json.dumps(data))
    return \"ok\"
"
            ),
        );
    }
}

#[test]
fn a_decorator_that_locks_protects_what_it_decorates() {
    expect(
        &[],
        "
@contextmanager
def locked():
    f = open(\"data.lock\", \"w\")
    fcntl.flock(f, fcntl.LOCK_EX)
    try:
        yield
    finally:
        fcntl.flock(f, fcntl.LOCK_UN)

def serial(fn):
    @functools.wraps(fn)
    async def wrapper(*args, **kwargs):
        with locked():
            return await fn(*args, **kwargs)
    return wrapper

@mcp.tool()
@serial
async def add(x: str) -> str:
    data = json.loads(P.read_text())
    data.append(x)
    P.write_text(json.dumps(data))
    return \"ok\"
",
    );
}

const COUNTER: &str = "
@mcp.tool()
def hit(user: str) -> int:
    counts[user] = counts.get(user, 0) + 1
    return counts[user]
";

#[test]
fn synchronous_tools_have_threads_from_version_two_on() {
    expect(&[], COUNTER);
    let source = format!("{HEAD}{COUNTER}");
    let two = [
        ("server.py", source.as_str()),
        ("requirements.txt", "mcp==2.0.0\n"),
    ];
    assert_eq!(scan(&two, "regular"), ["session-lost-update"]);
    // Not known: said, and less certain.
    let project = Project::new(&[("server.py", &source)]);
    let json = project.run("scan . --no-config --output json").json();
    assert_eq!(json["findings"][0]["rule"], "session-lost-update");
    assert_eq!(json["findings"][0]["confidence"], "medium");
    assert_eq!(json["notes"].as_array().map(Vec::len), Some(1));
}

#[test]
fn an_asynchronous_tool_is_interrupted_at_await_only() {
    let source = format!(
        "{HEAD}
@mcp.tool()
async def hit(user: str) -> int:
    counts[user] = counts.get(user, 0) + 1
    return counts[user]
"
    );
    let two = [
        ("server.py", source.as_str()),
        ("requirements.txt", "mcp==2.0.0\n"),
    ];
    assert_eq!(scan(&two, "regular"), Vec::<String>::new());
}

#[test]
fn what_runs_in_a_thread_is_interrupted_anywhere() {
    expect(
        &["session-lost-update"],
        "
def bump(user):
    counts[user] = counts.get(user, 0) + 1

@mcp.tool()
async def hit(user: str) -> str:
    await asyncio.to_thread(bump, user)
    return \"ok\"
",
    );
    expect(
        &[],
        "
lock = threading.Lock()

def bump(user):
    with lock:
        counts[user] = counts.get(user, 0) + 1

@mcp.tool()
async def hit(user: str) -> str:
    await asyncio.to_thread(bump, user)
    return \"ok\"
",
    );
}

#[test]
fn suppressions_are_comments() {
    expect(
        &[],
        "
@mcp.tool()
async def add(x: str) -> str:
    data = json.loads(P.read_text())
    data.append(x)
    P.write_text(json.dumps(data))  # toctou: ignore[file-read-modify-write] one client only
    return \"ok\"
",
    );
}

/// Handlers in a table, looked up however that is written. What is not in the table is not called.
#[test]
fn a_table_of_handlers() {
    let table = |entries: &str, call: &str| {
        format!(
            "async def add(args):
    items = json.loads(P.read_text())
    await asyncio.sleep(0)
    items.append(args)
    P.write_text(json.dumps(items))
    return []
async def nothing(args):
    return []
HANDLERS = {{{entries}}}
@server.call_tool()
async def call_tool(name, arguments):
{call}"
        )
    };
    for call in [
        "    return await HANDLERS[name](arguments)\n",
        "    handler = HANDLERS.get(name)\n    if handler is None:\n        raise ValueError(name)\n    return await handler(arguments)\n",
        "    if (handler := HANDLERS.get(name)):\n        return await handler(arguments)\n",
    ] {
        expect(&["file-read-modify-write"], &table("\"add\": add", call));
        expect(&[], &table("\"nothing\": nothing", call));
    }
}
